//! What can be said of a sink's rows whoever read which split and however the exchanges were cut:
//! every row exactly, or sums over them, or nothing. A stage's rows are known exactly as long as
//! each depends on its own input row alone, or on all rows of its key.

use std::collections::BTreeMap;

use revenant::graph::Partitioner;

use super::plan::{Input, Operation, Plan, Stage};
use super::row::{Row, counted, grouped, joined, kept, mapped, skewed};
use crate::reference::lineage::Lineage;

/// What is known of all rows that a stage has in its subtasks together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    /// Exactly these, in some order.
    Rows(Vec<Row>),
    /// Sums of columns.
    Sums {
        rows: u64,
        values: Option<i64>,
        lineage: Option<Lineage>,
    },
    Nothing,
}

impl Known {
    fn sums(self, none: &Lineage) -> Self {
        let Self::Rows(rows) = self else { return self };
        let lineage = Some(Lineage::sum(none, rows.iter().map(|row| &row.lineage)));
        let values = rows.iter().fold(0_i64, |sum, row| sum.wrapping_add(row.value));
        let rows = rows.iter().fold(0_u64, |sum, row| sum.wrapping_add(row.rows));
        Self::Sums { rows, values: Some(values), lineage }
    }

    fn without_values(self, none: &Lineage) -> Self {
        match self.sums(none) {
            Self::Sums { rows, lineage, .. } => Self::Sums { rows, values: None, lineage },
            other => other,
        }
    }

    /// Only how many rows of sources it stands for.
    fn counted(self, none: &Lineage) -> Self {
        match self.sums(none) {
            Self::Sums { rows, .. } => Self::Sums { rows, values: None, lineage: None },
            other => other,
        }
    }

    fn and(self, other: Self, none: &Lineage) -> Self {
        match (self, other) {
            (Self::Rows(mut rows), Self::Rows(more)) => {
                rows.extend(more);
                Self::Rows(rows)
            }
            (one, other) => match (one.sums(none), other.sums(none)) {
                (
                    Self::Sums { rows, values, lineage },
                    Self::Sums { rows: more, values: others, lineage: other },
                ) => Self::Sums {
                    rows: rows.wrapping_add(more),
                    values: values.zip(others).map(|(value, other)| value.wrapping_add(other)),
                    lineage: lineage.zip(other).map(|(one, other)| Lineage::sum(&one, [&other])),
                },
                _ => Self::Nothing,
            },
        }
    }

    fn map(self, change: impl FnOnce(Vec<Row>) -> Vec<Row>) -> Option<Self> {
        let Self::Rows(rows) = self else { return None };
        Some(Self::Rows(change(rows)))
    }

    /// Whether these are the rows of a sink's files; or what is wrong.
    pub fn check(&self, found: &[Row], none: &Lineage) -> Result<(), String> {
        match self {
            Self::Rows(rows) => same_rows(rows, found),
            Self::Sums { rows, values, lineage } => {
                let found_values = found.iter().fold(0_i64, |sum, row| sum.wrapping_add(row.value));
                let found_rows = found.iter().fold(0_u64, |sum, row| sum.wrapping_add(row.rows));
                if found_rows != *rows {
                    return Err(format!("it stands for {found_rows} rows of sources, {rows} expected"));
                }
                if let Some(values) = values.filter(|values| *values != found_values) {
                    return Err(format!("its values come to {found_values}, {values} expected"));
                }
                let Some(lineage) = lineage else { return Ok(()) };
                let found = Lineage::sum(none, found.iter().map(|row| &row.lineage));
                if found != *lineage {
                    return Err(format!("it is made of {found}, {lineage} expected"));
                }
                Ok(())
            }
            Self::Nothing => Ok(()),
        }
    }
}

fn same_rows(expected: &[Row], found: &[Row]) -> Result<(), String> {
    let mut times: BTreeMap<&Row, (u32, u32)> = BTreeMap::new();
    for row in expected {
        times.entry(row).or_default().0 += 1;
    }
    for row in found {
        times.entry(row).or_default().1 += 1;
    }
    match times.iter().find(|(_, (expected, found))| expected != found) {
        Some((row, (expected, found))) => {
            Err(format!("row {} is there {found} times, {expected} expected", row.line()))
        }
        None => Ok(()),
    }
}

/// Of each stage, given each source's rows by split. `parallelism` is that of each stage, where the plan
/// sets it.
pub fn known(plan: &Plan, sources: &[Vec<Vec<Row>>], parallelism: &[Option<u32>]) -> Vec<Known> {
    let mut known: Vec<Known> = Vec::new();
    for (stage, &parallelism) in plan.stages.iter().zip(parallelism) {
        let next = of_stage(stage, sources, parallelism, &known, &plan.none);
        known.push(next);
    }
    known
}

fn of_stage(
    stage: &Stage,
    sources: &[Vec<Vec<Row>>],
    parallelism: Option<u32>,
    before: &[Known],
    none: &Lineage,
) -> Known {
    // All that arrives; of a broadcast each subtask gets everything.
    let arriving = |input: &Input| {
        let once = before[input.stage].clone();
        match (input.way, parallelism) {
            (Partitioner::Broadcast, None) => Known::Nothing,
            (Partitioner::Broadcast, Some(times)) => {
                (1..times).fold(once.clone(), |sum, _| sum.and(once.clone(), none))
            }
            _ => once,
        }
    };
    let all = |inputs: &[Input]| {
        let arriving = inputs.iter().map(arriving);
        arriving.reduce(|sum, next| sum.and(next, none)).unwrap_or(Known::Nothing)
    };
    match &stage.operation {
        Operation::Source { number, .. } => Known::Rows(sources[*number as usize].concat()),
        Operation::Join => {
            let [first, second] = stage.inputs.as_slice() else { return Known::Nothing };
            let second = arriving(second);
            match &before[first.stage] {
                Known::Rows(first) => {
                    let exact = second.clone().map(|second| joined(first, &second));
                    exact.unwrap_or_else(|| second.counted(none))
                }
                _ => second.counted(none),
            }
        }
        Operation::Map => {
            let rows = all(&stage.inputs);
            rows.clone()
                .map(|rows| rows.into_iter().map(mapped).collect())
                .unwrap_or_else(|| rows.without_values(none))
        }
        Operation::Skew => {
            let rows = all(&stage.inputs);
            rows.clone().map(|rows| rows.into_iter().map(skewed).collect()).unwrap_or_else(|| rows.sums(none))
        }
        Operation::Filter => {
            let rows = all(&stage.inputs);
            rows.map(|rows| rows.into_iter().filter(kept).collect()).unwrap_or(Known::Nothing)
        }
        Operation::Group => {
            let rows = all(&stage.inputs);
            let ways = [Partitioner::Hash, Partitioner::Custom];
            // All by the same, or one key could be in two subtasks.
            let by_key = ways.iter().any(|way| stage.inputs.iter().all(|input| input.way == *way));
            let exact = if by_key { rows.clone().map(|rows| grouped(&rows)) } else { None };
            exact.unwrap_or_else(|| rows.sums(none))
        }
        Operation::Sort { .. } | Operation::Sink(_) => all(&stage.inputs),
        Operation::Count if stage.per_key => {
            let rows = all(&stage.inputs);
            rows.clone().map(|rows| counted_by_key(&rows, none)).unwrap_or_else(|| rows.without_values(none))
        }
        Operation::Count => match all(&stage.inputs) {
            Known::Rows(rows) => {
                let count = rows.len().cast_signed() as i64;
                match Known::Rows(rows).sums(none) {
                    Known::Sums { rows, lineage, .. } => Known::Sums { rows, values: Some(count), lineage },
                    other => other,
                }
            }
            other => other.without_values(none),
        },
        Operation::Reduce => all(&stage.inputs).without_values(none),
        Operation::First(_) => Known::Nothing,
    }
}

/// What counts the rows of each key.
fn counted_by_key(rows: &[Row], none: &Lineage) -> Vec<Row> {
    let mut keys: BTreeMap<i64, Vec<Row>> = BTreeMap::new();
    for row in rows {
        keys.entry(row.key).or_default().push(row.clone());
    }
    keys.into_iter().map(|(key, rows)| Row { key, ..counted(&rows, none) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::dataflow::plan::read;
    use crate::reference::dataflow::row::HEADER;
    use crate::reference::dataflow::sink::SinkKind;
    use crate::reference::dataflow::sources;

    /// Of the plan's last stage, behind source 0 with the rows (0,0,0,0,433), (0,0,1,1,432),
    /// (0,1,0,2,171) and source 1 with (1,0,0,2,595), (1,0,1,1,297).
    fn of(stages: &str, parallelism: Option<u32>) -> Known {
        let plan = format!("a = source rows=3 splits=2 keys=3; b = source rows=2 splits=1 keys=3; {stages}");
        let plan = read(&format!("lineage = ids; {plan}")).unwrap();
        let sources = sources(&plan, &[]).unwrap();
        known(&plan, &sources, &vec![parallelism; plan.stages.len()]).pop().unwrap()
    }

    fn lines(known: Known) -> Vec<String> {
        let Known::Rows(rows) = known else { panic!("{known:?}") };
        rows.iter().map(Row::line).collect()
    }

    #[test]
    fn rows_are_known_as_long_as_each_depends_on_its_own_or_its_key() {
        let rows = ["0,0,0,0,433,1,0.0.0", "0,0,1,1,432,1,0.0.1", "0,1,0,2,171,1,0.1.0"];
        assert_eq!(lines(of("o = sink a", None)), rows);
        assert_eq!(lines(of("c = map a", None))[1], "0,0,1,1,1297,1,0.0.1");
        assert_eq!(lines(of("c = filter a via rescale", None)), rows[..1]);
        let joined = ["1,0,0,2,766,1,0.1.0+1.0.0", "1,0,1,1,729,1,0.0.1+1.0.1"];
        assert_eq!(lines(of("c = join a b via broadcast,forward", None)), joined);
        assert_eq!(lines(of("c = join a b via hash,hash", None)), joined);
        assert_eq!(lines(of("c = skew a", None))[1], rows[1]);
        assert_eq!(lines(of("c = skew a", None))[2], "0,1,0,0,171,1,0.1.0");
        let counts = ["0,0,0,0,1,1,0.0.0", "0,0,0,1,2,2,0.0.1+1.0.1", "0,0,0,2,2,2,0.1.0+1.0.0"];
        assert_eq!(lines(of("c = count a b via hash,hash per=key", None)), counts);
        assert_eq!(lines(of("c = sort a via hash by=value per=key", None)).len(), 3);
        let mut found = lines(of("c = group b a via hash,hash; d = sort c via rebalance", None));
        found.sort();
        assert_eq!(found, [rows[0], "0,0,1,1,729,2,0.0.1+1.0.1", "0,1,0,2,766,2,0.1.0+1.0.0"]);
    }

    #[test]
    fn where_rows_depend_on_the_cut_their_sums_are_known_and_after_a_first_nothing() {
        const A: &str = "0.0.0+0.0.1+0.1.0";
        const TWICE: &str = "0.0.0*2+0.0.1*2+0.1.0*2";
        const BOTH: &str = "0.0.0+0.0.1+0.1.0+1.0.0+1.0.1";
        let sums = |rows, values, lineage: &str| {
            let lineage = Some(lineage.to_owned()).filter(|lineage| !lineage.is_empty());
            Known::Sums { rows, values, lineage: lineage.map(|lineage| lineage.try_into().unwrap()) }
        };
        assert_eq!(of("c = count a via rebalance", None), sums(3, Some(3), A));
        assert_eq!(of("c = reduce a via rebalance", None), sums(3, None, A));
        assert_eq!(of("c = group a", None), sums(3, Some(433 + 432 + 171), A));
        assert_eq!(of("c = count a; d = map c a", None), sums(6, None, TWICE));
        assert_eq!(
            of("c = count a; d = sink c a via rebalance,rebalance", None),
            sums(6, Some(3 + 1036), TWICE)
        );
        assert_eq!(of("c = count a; d = join c b via broadcast,forward", None), sums(2, None, ""));
        assert_eq!(of("c = reduce a via hash per=key", None), sums(3, None, A));
        assert_eq!(of("c = count b; d = skew c", None), sums(2, Some(2), "1.0.0+1.0.1"));
        assert_eq!(of("c = count a; d = count c via hash per=key", None), sums(3, None, A));
        let values = 433 + 432 + 171 + 595 + 297;
        assert_eq!(of("c = group a b via hash,custom", None), sums(5, Some(values), BOTH));
        assert_eq!(of("c = first 2 of a via hash per=key", None), Known::Nothing);
        assert_eq!(of("c = first 2 of a", None), Known::Nothing);
        assert_eq!(of("c = count a; d = filter c", None), Known::Nothing);
    }

    #[test]
    fn a_broadcast_multiplies_by_the_parallelism_if_that_is_known() {
        assert_eq!(of("o = sink b via broadcast", None), Known::Nothing);
        assert_eq!(lines(of("o = sink b via broadcast", Some(3))).len(), 6);
    }

    #[test]
    fn a_row_lost_or_doubled_is_named() {
        let rows = |texts: &[&str]| {
            let file = format!("{HEADER}\n{}\n", texts.join("\n"));
            SinkKind::Csv.rows(file.as_bytes()).unwrap()
        };
        let known = of("o = sink b", None);
        let none = Lineage::Ids(Vec::new());
        let (first, second) = ("1,0,0,2,595,1,1.0.0", "1,0,1,1,297,1,1.0.1");
        known.check(&rows(&[second, first]), &none).unwrap();
        let wrong = |lines: &[&str]| known.check(&rows(lines), &none).unwrap_err();
        assert_eq!(wrong(&[first]), format!("row {second} is there 0 times, 1 expected"));
        assert_eq!(wrong(&[second, first, first]), format!("row {first} is there 2 times, 1 expected"));
        assert_eq!(
            wrong(&[second, "1,0,0,2,596,1,1.0.0"]),
            format!("row {first} is there 0 times, 1 expected")
        );
        let sums = of("c = count b", None);
        sums.check(&rows(&["0,0,0,0,2,2,1.0.0+1.0.1", "0,0,0,0,0,0,"]), &none).unwrap();
        let wrong = |lines: &[&str]| sums.check(&rows(lines), &none).unwrap_err();
        assert_eq!(wrong(&["0,0,0,0,1,1,1.0.0"]), "it stands for 1 rows of sources, 2 expected");
        assert_eq!(wrong(&["0,0,0,0,3,2,1.0.0+1.0.1"]), "its values come to 3, 2 expected");
        assert_eq!(wrong(&["0,0,0,0,2,2,1.0.0*2"]), "it is made of 1.0.0*2, 1.0.0+1.0.1 expected");
    }
}
