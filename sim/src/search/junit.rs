//! A search as JUnit XML: a case for each class of crashes, which fails with the first of its failures.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::lines::{CaseLine, FailureLine};

/// What the cases of a class came to.
#[derive(Default)]
struct Class<'a> {
    runs: u64,
    seconds: f64,
    failures: Vec<&'a FailureLine>,
}

/// The document for cases of a search of `name`.
pub fn junit<'a>(name: &str, cases: impl IntoIterator<Item = &'a CaseLine>) -> String {
    let mut classes: BTreeMap<(&str, &str), Class<'_>> = BTreeMap::new();
    for case in cases {
        let class = classes.entry((case.strategy.name(), &case.class)).or_default();
        class.runs += 1;
        class.seconds += case.microseconds as f64 / 1e6;
        class.failures.extend(&case.failure);
    }
    let failed = classes.values().filter(|class| !class.failures.is_empty()).count();
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let suite = escaped(name);
    let _ = writeln!(text, "<testsuite name=\"{suite}\" tests=\"{}\" failures=\"{failed}\">", classes.len());
    for ((strategy, class), Class { runs, seconds, failures }) in &classes {
        let (class, runs) = (escaped(class), format!("{runs} runs"));
        let _ = write!(
            text,
            "  <testcase classname=\"{suite}.{strategy}\" name=\"{class}\" time=\"{seconds:.6}\">\
             <system-out>{runs}</system-out>"
        );
        if let Some(FailureLine { oracle, message, file, .. }) = failures.first() {
            let (message, more) = (escaped(message), failures.len());
            let replay = file.as_ref().map(|file| format!("cargo sim replay {}", file.display()));
            let replay = escaped(&replay.unwrap_or_default());
            let _ = write!(
                text,
                "<failure type=\"{}\" message=\"{message}\">{more} of {runs} failed\n{replay}</failure>",
                escaped(oracle)
            );
        }
        text.push_str("</testcase>\n");
    }
    text.push_str("</testsuite>\n");
    text
}

/// Without what XML gives a meaning, or does not allow.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            c if c.is_control() => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::Kind;

    #[test]
    fn each_class_is_a_case_and_fails_with_its_first_failure() {
        let case = |class: &str, failure: Option<&str>| CaseLine {
            strategy: Kind::Twice,
            number: 0,
            class: class.to_owned(),
            outcome: if failure.is_some() { "failed" } else { "passed" }.to_owned(),
            microseconds: 1500,
            failure: failure.map(|message| FailureLine {
                oracle: "S1".to_owned(),
                message: message.to_owned(),
                hash: "ff".to_owned(),
                file: Some("target/failures/a.toml".into()),
            }),
        };
        let cases =
            [case("a", None), case("b", Some("x < \"y\"\u{1}\n")), case("a", None), case("b", Some("z"))];
        let text = junit("lineitem & co", &cases);
        assert_eq!(
            text,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <testsuite name=\"lineitem &amp; co\" tests=\"2\" failures=\"1\">\n  \
             <testcase classname=\"lineitem &amp; co.twice\" name=\"a\" time=\"0.003000\">\
             <system-out>2 runs</system-out></testcase>\n  \
             <testcase classname=\"lineitem &amp; co.twice\" name=\"b\" time=\"0.003000\">\
             <system-out>2 runs</system-out><failure type=\"S1\" message=\"x &lt; &quot;y&quot;\u{fffd}&#10;\">\
             2 of 2 runs failed\ncargo sim replay target/failures/a.toml</failure></testcase>\n\
             </testsuite>\n"
        );
    }
}
