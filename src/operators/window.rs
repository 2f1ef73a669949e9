//! The operators on full-window partitions (FLIP-380). A partition is all records of a subtask or all
//! of a key. A subtask without records calls `map_partition`'s function once, emits the result of an
//! empty accumulator for `aggregate`, and emits nothing for `reduce` and `sort_partition`; a key
//! without records is not there.

use std::cmp::Reverse;
use std::sync::Arc;

use serde::Serialize;

use crate::api::{AggregateFunction, FunctionError, Order, Record, RichMapPartitionFunction, SortKey};
use crate::task::BodyError;

use super::chain::{AnyPush, Push};
use super::group::Group;
use super::input::Input;
use super::output::{Failure, Out};
use super::records::Records;
use super::rich::Rich;
use super::sort::{ByEncoding, ByEncodingAndKey, ByKey, KeyEncoder, SortBy, Sorter, key_encoder};
use super::{Head, OperatorContext};

/// What a partition is.
pub enum Partition<T> {
    /// All records of a subtask.
    Subtask,
    /// All records of a key.
    Key(Key<T>),
}

/// How records come by their keys.
pub struct Key<T>(KeyEncoder<T>);

impl<T> Clone for Partition<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Subtask => Self::Subtask,
            Self::Key(Key(encode)) => Self::Key(Key(Arc::clone(encode))),
        }
    }
}

impl<T: Record> Partition<T> {
    pub fn by_key<K: Serialize + 'static>(key_of: Arc<dyn Fn(&T) -> K + Send + Sync>) -> Self {
        Self::Key(Key(key_encoder(key_of)))
    }
}

/// Runs a function over the records of each partition (Flink's `MapPartitionOperator`). It may return
/// early: what it did not pull is not fetched any more, or passed over.
pub fn map_partition<T: Record, U: Record>(
    partition: Partition<T>,
    function: impl AsyncFn(&mut Records<T>, &Out<U>) -> Result<(), FunctionError> + Send + Sync + 'static,
) -> Head {
    let function = Arc::new(function);
    Arc::new(move |context, push| {
        let (function, partition) = (Arc::clone(&function), partition.clone());
        Box::pin(async move {
            let each = async |records: &mut Records<T>, out: &Out<U>| function(records, out).await;
            each_partition(&context, push, &partition, each).await
        })
    })
}

/// As [`map_partition`], with a function that has a life in each subtask.
pub fn rich_map_partition<T: Record, F: RichMapPartitionFunction<T>>(
    partition: Partition<T>,
    function: F,
) -> Head {
    Arc::new(move |context, push| {
        let (mut function, partition) = (Rich::new(&context, &function), partition.clone());
        Box::pin(async move {
            function.open()?;
            let each = async |records: &mut Records<T>, out: &Out<F::Output>| {
                function.function().map_partition(records, out).await
            };
            each_partition(&context, push, &partition, each).await?;
            function.close()
        })
    })
}

async fn each_partition<T: Record, U: Record>(
    context: &OperatorContext,
    push: AnyPush,
    partition: &Partition<T>,
    mut each: impl AsyncFnMut(&mut Records<T>, &Out<U>) -> Result<(), FunctionError>,
) -> Result<(), BodyError> {
    let failure = Failure::default();
    let out = Out::open(context, &failure, push.typed::<U>())?;
    let input = Input::new(context);
    let mut next = match partition {
        Partition::Subtask => Some(Records::of_subtask(&failure, input)),
        Partition::Key(Key(encode)) => {
            let by = ByEncoding(Arc::clone(encode));
            let sorter = Sorter::new(context, Arc::new(by), context.task().sort_memory().keyed);
            let sorted = read_all(context, sorter, input).await?.finish().await?;
            Group::first(sorted).await?.map(|group| Records::of_key(&failure, group))
        }
    };
    while let Some(mut records) = next {
        context.enter();
        failure.unless(each(&mut records, &out)).await?.map_err(|error| context.error(error))?;
        next = records.into_next().await?.map(|group| Records::of_key(&failure, group));
    }
    out.finish().await
}

async fn read_all<T: Record, S: SortBy<T>>(
    context: &OperatorContext,
    mut sorter: Sorter<T, S>,
    mut input: Input<T>,
) -> Result<Sorter<T, S>, BodyError> {
    context.enter();
    loop {
        // What needs no waiting, without what a function that may wait costs for every record.
        while sorter.has_room(input.at_hand())
            && let Some((record, encoding)) = input.buffered_encoded()
        {
            sorter.hold(record, encoding)?;
        }
        let Some(record) = input.next().await? else { return Ok(sorter) };
        sorter.add(record, input.encoding()).await?;
    }
}

/// Emits the records of each subtask in the order of their keys; those with equal keys stay in the
/// order of their arrival, whichever direction is asked for (Flink's `SortPartitionOperator` and
/// `KeyedSortPartitionOperator`). Records of a keyed stream are brought together by key, and are in
/// order within it.
pub fn sort_partition<T: Record, K: SortKey>(
    partition: Partition<T>,
    key_of: impl Fn(&T) -> Result<K, String> + Send + Sync + 'static,
    order: Order,
) -> Head {
    let key_of = Arc::new(key_of);
    Arc::new(move |context, push| {
        let (key_of, partition) = (Arc::clone(&key_of), partition.clone());
        Box::pin(async move {
            // An order that is looked at in every comparison makes a sort slower by a tenth.
            match order {
                Order::Ascending => {
                    let by = ByKey(move |record: &T| key_of(record));
                    emit_partition_sorted(&context, push, partition, by).await
                }
                Order::Descending => {
                    let by = ByKey(move |record: &T| key_of(record).map(Reverse));
                    emit_partition_sorted(&context, push, partition, by).await
                }
            }
        })
    })
}

async fn emit_partition_sorted<T: Record, K: SortKey>(
    context: &OperatorContext,
    push: AnyPush,
    partition: Partition<T>,
    within: ByKey<impl Fn(&T) -> Result<K, String>>,
) -> Result<(), BodyError> {
    let (push, memory) = (push.typed::<T>(), context.task().sort_memory());
    match partition {
        Partition::Subtask => emit_sorted(context, push, within, memory.partition).await,
        Partition::Key(Key(encode)) => {
            emit_sorted(context, push, ByEncodingAndKey { encode, within }, memory.keyed).await
        }
    }
}

async fn emit_sorted<T: Record, S: SortBy<T>>(
    context: &OperatorContext,
    mut push: Box<dyn Push<T>>,
    by: S,
    memory: u64,
) -> Result<(), BodyError> {
    push.open()?;
    let sorter = Sorter::new(context, Arc::new(by), memory);
    let mut sorted = read_all(context, sorter, Input::new(context)).await?.finish().await?;
    loop {
        while let Some(record) = sorted.at_hand() {
            push.push(record)?;
            if context.settling_is_due() {
                push.settle().await?;
                context.task().room().await;
            }
        }
        let Some((_, record)) = sorted.next().await? else { break };
        push.push(record)?;
        if context.settling_is_due() {
            push.settle().await?;
            context.task().room().await;
        }
    }
    push.finish().await
}

/// Emits one result for each partition (Flink's `PartitionAggregateOperator`).
pub fn aggregate<T: Record, A: AggregateFunction<T>>(partition: Partition<T>, function: A) -> Head {
    map_partition(partition, async move |records: &mut Records<T>, out: &Out<A::Output>| {
        let add = |accumulator, record| function.add(record, accumulator);
        let accumulator = records.fold(function.create_accumulator(), add).await;
        out.collect(function.get_result(accumulator)).await;
        Ok(())
    })
}

/// Folds the records of each partition in the order of their arrival (Flink's
/// `PartitionReduceOperator`).
pub fn reduce<T: Record>(
    partition: Partition<T>,
    function: impl Fn(T, T) -> T + Send + Sync + 'static,
) -> Head {
    map_partition(partition, async move |records: &mut Records<T>, out: &Out<T>| {
        let Some(first) = records.next().await else { return Ok(()) };
        out.collect(records.fold(first, &function).await).await;
        Ok(())
    })
}
