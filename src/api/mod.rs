//! What a job author writes: an environment, streams and functions. A call describes what a job
//! will do and does nothing by itself; what is wrong with the description is said when the job
//! graph is built, with the operator's name.
//!
//! ```
//! use revenant::api::{JobError, JobParameters, Order, StreamExecutionEnvironment};
//! use revenant::connectors::{CsvSink, NumberSequenceSource};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Clone, Serialize, Deserialize)]
//! struct Square {
//!     number: i64,
//!     square: i64,
//! }
//!
//! fn squares(env: &mut StreamExecutionEnvironment, job: &JobParameters) -> Result<(), JobError> {
//!     let count = job.get("count", 100, "a whole number from 1", |&count: &i64| count >= 1)?;
//!     env.from_source("numbers", NumberSequenceSource::new(0, count, 4))
//!         .filter(|number| number % 3 != 0)
//!         .map(|number| Square { number, square: number * number })
//!         .rebalance()
//!         .full_window_partition()
//!         .sort_partition(|row: &Square| row.square, Order::Descending)
//!         .sink_to(CsvSink::new("squares"));
//!     Ok(())
//! }
//!
//! let program = revenant::api::Program::new().register("squares", "Squares of numbers.", squares);
//! # use revenant::config::JobArguments;
//! let graph = program.build(&JobArguments { name: "squares".into(), arguments: vec![] })?;
//! assert_eq!(graph.vertices[0].name, "Source: numbers -> Filter -> Map");
//! assert_eq!(graph.vertices[1].name, "SortPartition -> Sink: csv");
//! # Ok::<(), JobError>(())
//! ```

mod data_stream;
mod environment;
mod functions;
mod keyed_stream;
mod parameters;
mod partition_windowed_stream;
mod program;
mod results;
mod rich_functions;
mod sort_key;

pub use crate::coordinator::SplitAssignment;
pub use crate::graph::Determinacy;
pub use crate::operators::{Out, Records};
pub use crate::task::LongCounter;
pub use data_stream::{DataStream, DataStreamSink};
pub use environment::StreamExecutionEnvironment;
pub use functions::{AggregateFunction, FunctionError, Order, Record, SourceFunction};
pub use keyed_stream::KeyedStream;
pub use parameters::{ArgumentInfo, JobParameters};
pub use partition_windowed_stream::PartitionWindowedStream;
pub use program::{JobError, JobFunction, Program};
pub use rich_functions::{
    RichFilterFunction, RichFlatMapFunction, RichFunction, RichMapFunction, RichMapPartitionFunction,
    RuntimeContext,
};
pub use sort_key::{Ordered, SortKey};
