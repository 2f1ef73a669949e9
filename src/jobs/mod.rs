//! The jobs that come with the engine.

mod dataflow;
mod line_items;
mod lineitem_by_ship_date;
mod lineitem_totals;
mod word_count;

use crate::api::{JobError, JobParameters, Program};
use crate::config::MAX_PARALLELISM;

/// All of them.
pub fn registry() -> Program {
    Program::new()
        .register("dataflow", "Generated rows through the stages of a plan, as CSV.", dataflow::describe)
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
        .register("word-count", "How often each word occurs in text files, as CSV.", word_count::describe)
}

/// An optional parallelism. Without it, the scheduler decides.
fn parallelism(parameters: &JobParameters, name: &str) -> Result<Option<u32>, JobError> {
    let expected = format!("a whole number from 1 to {MAX_PARALLELISM}");
    parameters.get_optional(name, &expected, |p| (1..=MAX_PARALLELISM).contains(p))
}

#[cfg(test)]
mod tests;
