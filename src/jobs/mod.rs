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
mod tests;
