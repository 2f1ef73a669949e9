//! What both LINEITEM jobs begin with.

use crate::api::{DataStream, JobError, JobParameters, StreamExecutionEnvironment};
use crate::connectors::{LineItem, TpchLineItemSource};

use super::parallelism;

/// The line items of less than `quantity-below` pieces (as in TPC-H query 6).
pub(super) fn small_line_items(
    env: &mut StreamExecutionEnvironment,
    job: &JobParameters,
) -> Result<DataStream<LineItem>, JobError> {
    let (min, max) = (TpchLineItemSource::MIN_SCALE_FACTOR, TpchLineItemSource::MAX_SCALE_FACTOR);
    let scale_factor =
        job.get("scale-factor", 0.01, &format!("a number from {min} to {max}"), |f| (min..=max).contains(f))?;
    let max_splits = TpchLineItemSource::MAX_PARTS;
    let splits = job.get("splits", 4, &format!("a whole number from 1 to {max_splits}"), |splits| {
        (1..=max_splits).contains(splits)
    })?;
    let quantity_below =
        job.get("quantity-below", 24, "a whole number from 1 to 51", |quantity| (1..=51).contains(quantity))?;
    let mut source = env.from_source("lineitem", TpchLineItemSource::new(scale_factor, splits));
    if let Some(parallelism) = parallelism(job, "source-parallelism")? {
        source = source.set_parallelism(parallelism);
    }
    Ok(source.filter(move |row| row.quantity < quantity_below))
}

/// The directory that a job writes to.
pub(super) fn output_directory(job: &JobParameters, default: &str) -> Result<String, JobError> {
    job.get("output", default.to_owned(), "a relative path", |path| !path.is_empty())
}
