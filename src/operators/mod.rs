//! Operators and how they run as one task: an asynchronous head (a source's reader, the loop over
//! input buffers, or a window function that pulls) pushes typed records through the chained push
//! operators, and tails encode what leaves the chain. It decides how records are encoded and dealt
//! to subpartitions; it never decides which operators are chained, and awaits nothing but what
//! [`TaskContext`](crate::task::TaskContext) offers.

mod body;
mod chain;
mod context;
mod encoding;
mod field;
mod group;
mod input;
mod output;
mod push;
mod records;
mod rich;
mod sink;
mod sort;
mod source;
mod tail;
mod window;

#[cfg(test)]
pub(crate) mod tests;

pub use body::{ChainedOperator, Downstream, Output, VertexBody};
pub use chain::{AnyPush, Fan, LocalFuture, Push, RecordType, Tail};
pub use context::OperatorContext;
pub use field::{FieldKey, check_field, field_key};
pub use output::Out;
pub use push::{filter, flat_map, map};
pub use records::Records;
pub use rich::{rich_filter, rich_flat_map, rich_map};
pub use sink::{Leaf, sink};
pub use source::{read_source, run_source};
pub use tail::{custom_tail, hash_tail, subpartition_of_key};
pub use window::{Partition, aggregate, map_partition, reduce, rich_map_partition, sort_partition};

use std::sync::Arc;

use crate::task::TaskBody;

/// Starts the body of a task whose records go to the given push.
pub type Head = Arc<dyn Fn(OperatorContext, AnyPush) -> TaskBody + Send + Sync>;

/// Puts a push operator before the push that takes its results.
pub type Link = Arc<dyn Fn(&OperatorContext, AnyPush) -> AnyPush + Send + Sync>;

/// The head of a chain whose first operator takes records of type `T` from an exchange.
pub fn input_head<T: crate::api::Record>() -> Head {
    Arc::new(|context, push| Box::pin(input::read_input::<T>(context, push.typed::<T>())))
}
