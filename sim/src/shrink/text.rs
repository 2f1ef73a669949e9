//! Shorter texts: numbers that are lower, plans with fewer stages and words, files with fewer lines.

/// The text with its number lower, if it is one.
pub fn lower(text: &str) -> Vec<String> {
    if let Ok(number) = text.parse::<u64>() {
        let mut lower = vec![0, 1, 2, number / 2, number.saturating_sub(1)];
        lower.retain(|&lower| lower < number);
        lower.dedup();
        return lower.iter().map(u64::to_string).collect();
    }
    match text.parse::<f64>() {
        Ok(number) if number > 1e-5 && number.is_finite() => {
            let mut lower: Vec<String> = [1e-5, 1e-4, number / 10.0]
                .iter()
                .filter(|lower| **lower < number)
                .map(f64::to_string)
                .collect();
            lower.dedup();
            lower
        }
        _ => Vec::new(),
    }
}

/// A plan of the job `dataflow` without one of its stages, whose users use instead what it used; or
/// without one of its options, or with a lower number in it.
pub fn shorter_plans(plan: &str) -> Vec<String> {
    let lines: Vec<&str> = plan.split(['\n', ';']).map(str::trim).filter(|line| !line.is_empty()).collect();
    let mut shorter = Vec::new();
    for (index, line) in lines.iter().enumerate().rev() {
        for instead in std::iter::once(None).chain(inputs(&lines, index).into_iter().map(Some)) {
            let name = line.split(' ').next().unwrap_or_default();
            let rest = lines.iter().enumerate().filter(|(other, _)| *other != index);
            let rename = |word: &str| match instead {
                Some(instead) if word == name => instead.to_owned(),
                _ => word.to_owned(),
            };
            let rest = rest.map(|(_, line)| line.split(' ').map(rename).collect::<Vec<_>>().join(" "));
            shorter.push(rest.collect::<Vec<_>>().join("\n"));
        }
    }
    for (index, line) in lines.iter().enumerate() {
        let words: Vec<&str> = line.split(' ').collect();
        let mut with = |changed: Vec<String>| {
            let mut lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
            lines[index] = changed.join(" ");
            shorter.push(lines.join("\n"));
        };
        for (place, word) in words.iter().enumerate().skip(2) {
            let Some((key, value)) = word.split_once('=') else { continue };
            let others = || words.iter().enumerate().filter(|(other, _)| *other != place);
            with(others().map(|(_, word)| (*word).to_owned()).collect());
            for lower in lower(value) {
                let mut words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
                words[place] = format!("{key}={lower}");
                with(words);
            }
        }
    }
    shorter
}

/// What the stage of a line uses, or, of a source, the other sources.
fn inputs<'a>(lines: &[&'a str], index: usize) -> Vec<&'a str> {
    let name = |line: &&'a str| line.split(' ').next().filter(|name| *name != "lineage");
    let is_source = |line: &&&str| line.split(' ').nth(2) == Some("source");
    let line = lines[index];
    if is_source(&&line) {
        let others = lines.iter().filter(|other| is_source(other) && **other != line);
        return others.filter_map(name).collect();
    }
    let names: Vec<&str> = lines.iter().filter_map(name).collect();
    line.split(' ').skip(2).take_while(|word| *word != "via").filter(|word| names.contains(word)).collect()
}

/// The text without a part of its lines, or of the words of its only one.
pub fn fewer_lines(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut fewer = Vec::new();
    let mut piece = lines.len().div_ceil(2);
    while piece > 0 && lines.len() > 1 {
        for start in (0..lines.len()).step_by(piece) {
            let outside = |index: &usize| !(start..start + piece).contains(index);
            fewer.push((0..lines.len()).filter(outside).map(|index| lines[index]).collect::<String>());
        }
        piece = if piece == 1 { 0 } else { piece.div_ceil(2) };
    }
    if let [line] = lines.as_slice() {
        let words: Vec<&str> = line.split_inclusive(' ').collect();
        let half = words.len() / 2;
        fewer
            .extend([words[..half].concat(), words[half..].concat()].into_iter().filter(|left| left != text));
    }
    fewer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_lower_and_nothing_else_does() {
        assert_eq!(lower("9"), ["0", "1", "2", "4", "8"]);
        assert_eq!(lower("1"), ["0"]);
        assert_eq!(lower("0.001"), ["0.00001", "0.0001"]);
        assert!(lower("0").is_empty() && lower("many").is_empty());
    }

    #[test]
    fn a_plan_loses_a_stage_an_option_or_is_lower() {
        let plan = "lineage = ids\ns0 = source rows=2\ns1 = source rows=1\nn0 = join s0 s1 via broadcast,hash\no = sink n0";
        let shorter = shorter_plans(plan);
        let without_join = "lineage = ids\ns0 = source rows=2\ns1 = source rows=1\no = sink s1";
        let one_source = "lineage = ids\ns1 = source rows=1\nn0 = join s1 s1 via broadcast,hash\no = sink n0";
        for expected in
            [without_join, one_source, &plan.replace("rows=2", "rows=1"), &plan.replace(" rows=2", "")]
        {
            assert!(shorter.iter().any(|plan| plan == expected), "{expected}\nin\n{shorter:#?}");
        }
        assert!(shorter_plans("s = source; o = sink s").iter().any(|plan| plan == "s = source"));
    }

    #[test]
    fn files_lose_lines_then_words() {
        assert_eq!(fewer_lines("a\nb\nc\n"), ["c\n", "a\nb\n", "b\nc\n", "a\nc\n", "a\nb\n"]);
        assert_eq!(fewer_lines("a b c"), ["a ", "b c"]);
        assert!(fewer_lines("").is_empty() && fewer_lines("a") == [""]);
    }
}
