//! `dataflow`: a job whose shape is its argument. The plan has one stage a line (or several with `;`
//! between them; `#` begins a comment), each `<name> = <operation> <inputs> via <exchanges> <options>`:
//!
//! ```text
//! small   = source rows=12 splits=3 parallelism=2 assignment=static
//! numbers = source rows=200 splits=8 keys=20 snapshots=false
//! mapped  = map numbers via rescale
//! joined  = join small mapped via broadcast,hash
//! sums    = group joined via hash
//! sorted  = sort sums via rebalance parallelism=3 order=descending
//! early   = first 3 of sorted
//! out     = sink early
//! ```
//!
//! `via` has one exchange for each input: `forward` (also when `via` is left out), `hash` (of the
//! key), `custom` (the key modulo the number of subpartitions), `rebalance`, `rescale`, `shuffle` or
//! `broadcast`. Several inputs are read one after the other. Options are `parallelism` and
//! `max-parallelism`; without them, the scheduler decides.
//!
//! Each sink writes the rows that it gets as CSV to a directory of its own name, or with
//! `kind=json-lines` as JSON Lines. With `kind=collect` they are kept by its name for who runs the job,
//! with `kind=print` printed with its name in front; both are files below `collect` and `print` until
//! they are asked for.
//!
//! | operation | what a subtask makes of the rows that it gets |
//! |---|---|
//! | `source` | the rows of its splits: `rows` in all, in `splits` (4) pieces, with up to `keys` (16) keys; `assignment` is `dynamic` or `static`, `snapshots` `true` or `false` |
//! | `map` | each row with another value: three times the old one, and the key |
//! | `filter` | the rows whose value 3 does not divide |
//! | `skew` | each row, with key 0 unless 4 divides its value |
//! | `join` | each row of the second input once, its value plus the sum of the values that rows of the first input have with its key |
//! | `group` | one row for each key, in the order in which the keys first came: the smallest identity, the sum of the values |
//! | `sort` | the rows by their keys, or with `by=value` by their values, `order=ascending` or `descending`; equal ones stay in their order |
//! | `count` | one row, also for no rows: the number of rows as value |
//! | `reduce` | one row, or none for no rows: the first one's identity and key, and the value, from the left, 31 times what was plus the next |
//! | `first n of` | its first n rows; the others are not fetched |
//!
//! With `per=key`, the last four work on the rows of each key for itself, and then there is nothing
//! for no rows; the keys come in the order of their encodings. A count then has the key that it counts.
//!
//! A source has its rows from elsewhere if it says a `kind`:
//!
//! | kind | its rows |
//! |---|---|
//! | `rows` | generated, as above |
//! | `collection` | the same rows, given with the job; it always has snapshots |
//! | `sequence` | those that a source with one split has, by their offsets, cut into `splits` pieces |
//! | `csv`, `json-lines` | those in the files at `path`, with fields as an output has, cut into splits of `split-bytes` |
//! | `text` | one for each line of the files at `path`: its key is the number of bytes modulo `keys`, its value from 0, byte after byte, 31 times what was plus the byte; it is where its line is |
//!
//! Sums wrap around. The column `rows` of an output says how many rows of sources a row stands for, and
//! the column `lineage` of which records of sources it is made, those included that a join has added. A
//! record's id is what its first three columns say. A line `lineage = ids` of the plan has all ids
//! written, as `0.0.7+0.1.2*3` with how often each is in it if not once; `lineage = hash`, or no such
//! line, their number and the sum of their hashes, as `4#000c5a5f00c0ffee`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::api::{
    AggregateFunction, DataStream, FunctionError, JobError, JobParameters, Out, PartitionWindowedStream,
    Record, Records, StreamExecutionEnvironment,
};
use crate::connectors::{CsvSink, JsonLinesSink};

mod lineage;
mod plan;
mod row;
mod row_source;
mod source;
mod text_source;

use lineage::{Keeps, Lineage};
use plan::{Operation, Plan, SinkKind, Stage, Via};
use row::Row;

/// The plan if none is given.
const EXAMPLE: &str =
    "rows = source rows=100; sums = group rows via hash; sorted = sort sums; out = sink sorted";

pub(super) fn describe(env: &mut StreamExecutionEnvironment, job: &JobParameters) -> Result<(), JobError> {
    let text = job.get("plan", EXAMPLE.to_owned(), "a plan of stages with ';' between them", |_| true)?;
    let plan = Plan::parse(&text).map_err(|error| JobError(format!("argument 'plan': {error}")))?;
    // Of all stages but the sinks, by their index.
    let mut streams: BTreeMap<usize, DataStream<Row>> = BTreeMap::new();
    let mut sources = 0..;
    for (index, stage) in plan.stages.iter().enumerate() {
        let rows = match &stage.operation {
            Operation::Source(options) => {
                let number = sources.next().unwrap_or_default();
                let rows = source::stream(env, number, stage, options, plan.keeps);
                streams.insert(index, rows);
                continue;
            }
            Operation::Join => join(&streams, stage, plan.keeps),
            operation => {
                let inputs = stage.inputs.iter().map(|input| {
                    let rows = &streams[&input.stage];
                    // A union has no key; that of all inputs comes behind it.
                    if stage.per_key { rows.clone() } else { exchanged(rows, input.via, |row: &Row| row.key) }
                });
                let Some(rows) = inputs.reduce(|union, next| union.union(&next)) else { continue };
                let window = if stage.per_key {
                    rows.key_by(|row| row.key).full_window_partition()
                } else {
                    rows.full_window_partition()
                };
                let Some(result) = one_input(operation, &window, stage.per_key, plan.keeps) else {
                    if let Operation::Sink(kind) = operation {
                        sink(&rows, stage, *kind);
                    }
                    continue;
                };
                result
            }
        };
        let rows = rows.name(&stage.name);
        if let Some(parallelism) = stage.parallelism {
            rows.set_parallelism(parallelism);
        }
        if let Some(max_parallelism) = stage.max_parallelism {
            rows.set_max_parallelism(max_parallelism);
        }
        streams.insert(index, rows);
    }
    Ok(())
}

/// The results of an operation on rows that come together; `None` for a sink.
fn one_input(
    operation: &Operation,
    window: &PartitionWindowedStream<Row>,
    per_key: bool,
    keeps: Keeps,
) -> Option<DataStream<Row>> {
    Some(match *operation {
        Operation::Map => window.map(Row::mapped),
        Operation::Filter => window.filter(Row::is_kept),
        Operation::Skew => window.map(Row::skewed),
        Operation::Group => window.map_partition(group),
        Operation::Sort { by_value: true, order } => window.sort_partition_by_field("value", order),
        Operation::Sort { by_value: false, order } => window.sort_partition(|row| row.key, order),
        Operation::Count => window.aggregate(Count { per_key, keeps }),
        Operation::Reduce => window.reduce(Row::folded),
        Operation::First(count) => {
            window.map_partition(async move |rows: &mut Records<Row>, out: &Out<Row>| {
                for _ in 0..count {
                    let Some(row) = rows.next().await else { break };
                    out.collect(row).await;
                }
                Ok(())
            })
        }
        Operation::Source(_) | Operation::Join | Operation::Sink(_) => return None,
    })
}

fn sink(rows: &DataStream<Row>, stage: &Stage, kind: SinkKind) {
    let directory = stage.name.as_str();
    let sink = match kind {
        SinkKind::Csv => rows.sink_to(CsvSink::new(directory)),
        SinkKind::JsonLines => rows.sink_to(JsonLinesSink::new(directory)),
        SinkKind::Collect => rows.collect(directory),
        SinkKind::Print => rows.print_with(directory),
    };
    let sink = sink.name(&stage.name);
    if let Some(parallelism) = stage.parallelism {
        sink.set_parallelism(parallelism);
    }
}

/// The same records on their way to a consumer.
fn exchanged<T: Record>(stream: &DataStream<T>, via: Via, key_of: fn(&T) -> i64) -> DataStream<T> {
    match via {
        Via::Forward => stream.clone(),
        Via::Hash => stream.key_by(key_of).into_data_stream(),
        Via::Rebalance => stream.rebalance(),
        Via::Rescale => stream.rescale(),
        Via::Shuffle => stream.shuffle(),
        Via::Custom => {
            let partitioner = |key: &i64, subpartitions: u32| {
                u32::try_from(key.rem_euclid(i64::from(subpartitions))).unwrap_or_default()
            };
            stream.partition_custom(partitioner, key_of)
        }
        Via::Broadcast => stream.broadcast(),
    }
}

/// A row on its way to a join.
#[derive(Clone, Serialize, Deserialize)]
struct Sided {
    /// Of the join's first input.
    first: bool,
    row: Row,
}

fn join(streams: &BTreeMap<usize, DataStream<Row>>, stage: &Stage, keeps: Keeps) -> DataStream<Row> {
    let [first, second] = [(0, true), (1, false)].map(|(input, first)| {
        let input = stage.inputs[input];
        let side = if first { "first" } else { "second" };
        // Chained behind the input, so it costs no exchange of its own.
        let sided = streams[&input.stage].map(move |row| Sided { first, row });
        let sided = sided.name(&format!("{}.{side}", stage.name));
        exchanged(&sided, input.via, |sided: &Sided| sided.row.key)
    });
    first.union(&second).full_window_partition().map_partition(
        async move |rows: &mut Records<Sided>, out: &Out<Row>| {
            let none = (0, Lineage::none(keeps));
            let mut sums: BTreeMap<i64, (i64, Lineage)> = BTreeMap::new();
            let mut second_has_begun = false;
            while let Some(Sided { first, row }) = rows.next().await {
                if !first {
                    second_has_begun = true;
                    let sum = sums.get(&row.key).unwrap_or(&none);
                    out.collect(row.joined(sum)).await;
                } else if second_has_begun {
                    return Err("a row of the first input came behind one of the second".into());
                } else {
                    let (sum, lineage) = sums.entry(row.key).or_insert_with(|| none.clone());
                    *sum = sum.wrapping_add(row.value);
                    lineage.add(&row.lineage);
                }
            }
            Ok(())
        },
    )
}

async fn group(rows: &mut Records<Row>, out: &Out<Row>) -> Result<(), FunctionError> {
    let mut groups: Vec<Row> = Vec::new();
    let mut of_key: BTreeMap<i64, usize> = BTreeMap::new();
    while let Some(row) = rows.next().await {
        let index = *of_key.entry(row.key).or_insert(groups.len());
        match groups.get_mut(index) {
            Some(group) => group.group(&row),
            None => groups.push(row),
        }
    }
    for group in groups {
        out.collect(group).await;
    }
    Ok(())
}

/// Counts rows.
struct Count {
    /// They have one key, which the result shall have, too.
    per_key: bool,
    keeps: Keeps,
}

impl AggregateFunction<Row> for Count {
    type Accumulator = Row;
    type Output = Row;

    fn create_accumulator(&self) -> Row {
        Row::none(self.keeps)
    }

    fn add(&self, row: Row, counted: Row) -> Row {
        let key = if self.per_key { row.key } else { counted.key };
        Row { key, ..counted.counted(&row) }
    }

    fn get_result(&self, counted: Row) -> Row {
        counted
    }
}

#[cfg(test)]
mod tests;
