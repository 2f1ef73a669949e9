//! The operators on full-window partitions (FLIP-380): each pulls all records of its subtask and
//! pushes results. A subtask without records calls `map_partition`'s function once, emits the result
//! of an empty accumulator for `aggregate`, and emits nothing for `reduce` and `sort_partition`.

use std::sync::Arc;

use crate::api::{AggregateFunction, FunctionError, Order, Record};

use super::Head;
use super::input::Records;
use super::output::{Failure, Out};

/// Runs a function over the records of each subtask (Flink's `MapPartitionOperator`). It may return
/// early: what it did not pull is not fetched any more.
pub fn map_partition<T: Record, U: Record>(
    function: impl AsyncFn(&mut Records<T>, &Out<U>) -> Result<(), FunctionError> + Send + Sync + 'static,
) -> Head {
    let function = Arc::new(function);
    Arc::new(move |context, push| {
        let function = Arc::clone(&function);
        Box::pin(async move {
            let failure = Failure::default();
            let mut records = Records::new(context.clone(), failure.clone());
            let out = Out::new(context.clone(), failure.clone(), push.typed::<U>());
            failure.unless(function(&mut records, &out)).await?.map_err(|error| context.error(error))?;
            records.close();
            out.finish().await
        })
    })
}

/// Emits the records of each subtask in the order of their keys; those with equal keys stay in the
/// order of their arrival, whichever direction is asked for (Flink's `SortPartitionOperator`). Holds
/// the partition in memory.
pub fn sort_partition<T: Record, K: Ord + 'static>(
    key_of: impl Fn(&T) -> K + Send + Sync + 'static,
    order: Order,
) -> Head {
    map_partition(async move |records: &mut Records<T>, out: &Out<T>| {
        let mut keyed = Vec::new();
        while let Some(record) = records.next().await {
            keyed.push((key_of(&record), record));
        }
        match order {
            Order::Ascending => keyed.sort_by(|(a, _), (b, _)| a.cmp(b)),
            Order::Descending => keyed.sort_by(|(a, _), (b, _)| b.cmp(a)),
        }
        for (_, record) in keyed {
            out.collect(record).await;
        }
        Ok(())
    })
}

/// Emits one result for each subtask (Flink's `PartitionAggregateOperator`).
pub fn aggregate<T: Record, A: AggregateFunction<T>>(function: A) -> Head {
    map_partition(async move |records: &mut Records<T>, out: &Out<A::Output>| {
        let mut accumulator = function.create_accumulator();
        while let Some(record) = records.next().await {
            accumulator = function.add(record, accumulator);
        }
        out.collect(function.get_result(accumulator)).await;
        Ok(())
    })
}

/// Folds the records of each subtask in the order of their arrival (Flink's
/// `PartitionReduceOperator`).
pub fn reduce<T: Record>(function: impl Fn(T, T) -> T + Send + Sync + 'static) -> Head {
    map_partition(async move |records: &mut Records<T>, out: &Out<T>| {
        let Some(mut folded) = records.next().await else { return Ok(()) };
        while let Some(record) = records.next().await {
            folded = function(folded, record);
        }
        out.collect(folded).await;
        Ok(())
    })
}
