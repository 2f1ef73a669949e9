//! What can be wrong with the description of a job.

/// A job that cannot run, with the operator that is wrong and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    #[error("it has no sink, so it would do nothing; end a stream with sink_to")]
    NoSink,
    #[error(
        "it has {count} operators, at most {max} are right; do more in each, as one map in place of several"
    )]
    TooManyOperators { count: usize, max: usize },
    #[error("'{operator}': it has {count} inputs, at most {max} are right; let fewer streams come together")]
    TooManyInputs { operator: String, count: usize, max: usize },
    #[error("the results of '{operator}' go nowhere; end the stream with sink_to or leave it out")]
    GoesNowhere { operator: String },
    #[error("'{operator}': a parallelism of {parallelism} is not a whole number from 1 to {max}")]
    Parallelism { operator: String, parallelism: u32, max: u32 },
    #[error(
        "'{operator}': its parallelism {parallelism} is above its maximum {max_parallelism}; set only one of them"
    )]
    AboveMaximum { operator: String, parallelism: u32, max_parallelism: u32 },
    #[error(
        "'{operator}': a source without splits runs with parallelism 1, not {parallelism}; leave its parallelism out"
    )]
    ParallelSourceFunction { operator: String, parallelism: u32 },
    #[error("'{operator}': {problem}")]
    Sink { operator: String, problem: String },
    #[error("'{first}' and '{second}' both write to '{target}'; give each a place of its own")]
    SameTarget { first: String, second: String, target: String },
    #[error(
        "{call} was called on an exchange or a union behind {after}, which is no operator; call it right behind \
         the operator that it is meant for"
    )]
    NotAnOperator { call: &'static str, after: String },
    #[error(
        "'{operator}': forward leads from each subtask to the one of the same number, but '{producer}' has {has} and \
         '{operator}' has {own}; give both the same, or use rebalance or rescale"
    )]
    Forward { producer: String, has: String, operator: String, own: String },
    #[error("'{first}' and '{second}' both have the uid '{uid}'; give each operator one of its own")]
    SameUid { first: String, second: String, uid: String },
    #[error("'{operator}': a record's field '{field}' cannot be sorted by: {problem}")]
    SortField { operator: String, field: String, problem: String },
    #[error("{0}")]
    Option(String),
    #[error(
        "'{operator}': a full-window partition is complete when its input ends, so there is none with \
         execution.runtime-mode=STREAMING; other windows need timers and keyed state, which a stream without keys \
         does not have (FLIP-380). Leave the mode out or set it to BATCH"
    )]
    WindowInStreaming { operator: String },
    #[error(
        "execution.runtime-mode=STREAMING is not there: jobs run as BATCH; leave it out or set it to BATCH"
    )]
    Streaming,
    #[error("a union joins streams of two environments; a job has one")]
    OtherEnvironment,
}
