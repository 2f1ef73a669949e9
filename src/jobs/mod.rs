//! The jobs that come with the engine.

mod line_items;
mod lineitem_by_ship_date;
mod lineitem_totals;

use crate::api::{JobError, JobParameters, Program};

/// All of them.
pub fn registry() -> Program {
    Program::new()
        .register(
            "lineitem-by-ship-date",
            "Small line items of TPC-H, sorted by ship date within each part, as CSV.",
            lineitem_by_ship_date::describe,
        )
        .register(
            "lineitem-totals",
            "Totals of small line items of TPC-H, by aggregate and by reduce, as CSV.",
            lineitem_totals::describe,
        )
}

/// An optional parallelism. Without it, the scheduler decides.
fn parallelism(parameters: &JobParameters, name: &str) -> Result<Option<u32>, JobError> {
    parameters.get_optional(name, "a whole number from 1 to 32768", |p| (1..=32_768).contains(p))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::JobArguments;

    fn shape(name: &str, arguments: &[(&str, &str)]) -> Vec<(String, Option<u32>)> {
        let arguments =
            arguments.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let graph = registry().build(&JobArguments { name: name.to_owned(), arguments }).unwrap();
        graph.vertices.iter().map(|vertex| (vertex.name.clone(), vertex.parallelism)).collect()
    }

    #[test]
    fn line_items_by_ship_date_are_three_stages() {
        assert_eq!(
            shape("lineitem-by-ship-date", &[("map-parallelism", "3"), ("sort-parallelism", "2")]),
            [
                ("Source: lineitem -> Filter".to_owned(), None),
                ("Map".to_owned(), Some(3)),
                ("SortPartition -> Sink: csv".to_owned(), Some(2)),
            ]
        );
    }

    #[test]
    fn the_totals_have_two_branches_that_end_in_one_subtask_each() {
        assert_eq!(
            shape("lineitem-totals", &[("source-parallelism", "4")]),
            [
                ("Source: lineitem -> Filter -> Map".to_owned(), Some(4)),
                ("PartitionAggregate".to_owned(), Some(4)),
                ("SumAggregated -> Sink: aggregate".to_owned(), Some(1)),
                ("PartitionReduce".to_owned(), Some(4)),
                ("SumReduced -> Sink: reduce".to_owned(), Some(1)),
            ]
        );
    }

    #[test]
    fn wrong_arguments_are_refused() {
        for (name, value) in [
            ("scale-factor", "0"),
            ("scale-factor", "1001"),
            ("scale-factor", "NaN"),
            ("splits", "0"),
            ("map-parallelism", "0"),
        ] {
            let arguments = vec![(name.to_owned(), value.to_owned())];
            let job = JobArguments { name: "lineitem-by-ship-date".to_owned(), arguments };
            let error = registry().build(&job).unwrap_err().to_string();
            assert!(error.contains(&format!("argument '{name}': '{value}' is not ")), "{error}");
        }
    }
}
