//! Rich functions: opened and closed once in each subtask, whatever becomes of it.

use std::sync::{Arc, Mutex};

use super::{Cluster, row};
use crate::api::{
    DataStream, FunctionError, LongCounter, Out, Records, RichFilterFunction, RichFlatMapFunction,
    RichFunction, RichMapFunction, RichMapPartitionFunction, RuntimeContext, StreamExecutionEnvironment,
};
use crate::connectors::{CsvSink, NumberSequenceSource};

/// Writes down its life, and can fail anywhere in it.
#[derive(Clone, Default)]
struct Diary {
    name: &'static str,
    lines: Arc<Mutex<Vec<String>>>,
    fails_at: &'static str,
    /// Of this subtask's clone alone.
    seen: i64,
}

impl Diary {
    fn line(&self, what: &str) -> Result<(), FunctionError> {
        self.lines.lock().unwrap().push(format!("{} {what}", self.name));
        match self.fails_at.split_once(' ') {
            Some(("panic", at)) if at == what => panic!("at {what}"),
            Some(("error", at)) if at == what => Err(format!("at {what}").into()),
            _ => Ok(()),
        }
    }
}

impl RichFunction for Diary {
    fn open(&mut self, context: &RuntimeContext) -> Result<(), FunctionError> {
        let (index, count) = (context.index_of_this_subtask(), context.number_of_parallel_subtasks());
        self.line(&format!(
            "open {index}/{count} #{} {}",
            context.attempt_number(),
            context.operator_name()
        ))?;
        context.add_to_accumulator("opened", 1);
        self.line("open")
    }

    fn close(&mut self) -> Result<(), FunctionError> {
        self.line("close")
    }
}

impl RichMapFunction<i64> for Diary {
    type Output = i64;

    fn map(&mut self, number: i64) -> Result<i64, FunctionError> {
        self.seen += 1;
        self.line(&format!("map {number}"))?;
        Ok(number * 10 + self.seen)
    }
}

impl RichFilterFunction<i64> for Diary {
    fn filter(&mut self, number: &i64) -> Result<bool, FunctionError> {
        self.line(&format!("filter {number}"))?;
        self.seen += 1;
        Ok(self.seen % 2 == 1)
    }
}

impl RichFlatMapFunction<i64> for Diary {
    type Output = i64;

    fn flat_map(&mut self, number: i64, collect: &mut dyn FnMut(i64)) -> Result<(), FunctionError> {
        collect(number);
        self.line(&format!("flat_map {number}"))?;
        collect(-number);
        Ok(())
    }
}

impl RichMapPartitionFunction<i64> for Diary {
    type Output = i64;

    async fn map_partition(
        &mut self,
        numbers: &mut Records<i64>,
        out: &Out<i64>,
    ) -> Result<(), FunctionError> {
        self.line("map_partition")?;
        while let Some(number) = numbers.next().await {
            self.seen += 1;
            out.collect(number * 10 + self.seen).await;
        }
        Ok(())
    }
}

fn numbers(env: &mut StreamExecutionEnvironment) -> DataStream<i64> {
    env.from_source("numbers", NumberSequenceSource::new(1, 4, 1)).set_parallelism(1)
}

fn diary(name: &'static str, fails_at: &'static str) -> Diary {
    Diary { name, fails_at, ..Diary::default() }
}

fn lines(diary: &Diary) -> Vec<String> {
    diary.lines.lock().unwrap().clone()
}

#[test]
fn rich_functions_are_opened_from_the_end_of_the_chain_and_closed_from_its_beginning() {
    let first = diary("first", "");
    let second = Diary { name: "second", ..first.clone() };
    let third = Diary { name: "third", ..first.clone() };
    let outcome = Cluster::run(|env| {
        let results = numbers(env).rich_map(first.clone()).name("Mine").rich_filter(second);
        results.rich_flat_map(third).map(|n| row(n, "")).sink_to(CsvSink::new("out"));
    });
    assert_eq!(outcome.rows("out", 0), ["11,", "-11,", "33,", "-33,"]);
    let life = [
        "third open 0/1 #4 FlatMap",
        "third open",
        "second open 0/1 #4 Filter",
        "second open",
        "first open 0/1 #4 Mine",
        "first open",
        "first map 1",
        "second filter 11",
        "third flat_map 11",
        "first map 2",
        "second filter 22",
        "first map 3",
        "second filter 33",
        "third flat_map 33",
        "first close",
        "second close",
        "third close",
    ];
    assert_eq!(lines(&first), life);
    let accumulators = outcome.results.values().map(|result| result.accumulators.get("opened"));
    assert_eq!(accumulators.collect::<Vec<_>>(), [Some(&3)]);
}

#[test]
fn each_subtask_has_a_function_of_its_own_for_all_its_partitions() {
    let mine = diary("mine", "");
    let outcome = Cluster::run(|env| {
        let window = numbers(env).rebalance().full_window_partition();
        let results = window.rich_map_partition(mine.clone()).set_parallelism(2);
        results.map(|n| row(n, "")).sink_to(CsvSink::new("subtasks"));
        let by_key = numbers(env).key_by(|n| *n % 2).full_window_partition();
        let results = by_key.rich_map_partition(Diary { name: "keyed", ..mine.clone() }).set_parallelism(1);
        results.map(|n| row(n, "")).sink_to(CsvSink::new("keys"));
    });
    assert_eq!(outcome.rows("subtasks", 0), ["11,", "32,"]);
    assert_eq!(outcome.rows("subtasks", 1), ["21,"]);
    // Keys come in the order of their encodings, and the second key's records are counted on.
    assert_eq!(outcome.rows("keys", 0), ["21,", "12,", "33,"]);
    let count = |what: &str| lines(&mine).iter().filter(|line| *line == what).count();
    assert_eq!((count("mine open"), count("mine map_partition"), count("mine close")), (2, 2, 2));
    assert_eq!((count("keyed open"), count("keyed map_partition"), count("keyed close")), (1, 2, 1));
}

#[test]
fn an_error_or_a_panic_anywhere_fails_the_task_by_the_operators_name_and_closes_what_was_opened() {
    for (fails_at, expected, closes) in [
        ("error open", "operator 'Mine': it cannot be opened: at open", 1),
        ("panic open", "operator 'Mine': panicked: at open", 1),
        ("error map 2", "operator 'Mine': at map 2", 1),
        ("panic map 2", "operator 'Mine': panicked: at map 2", 1),
        ("error close", "operator 'Mine': it cannot be closed: at close", 1),
        ("panic close", "operator 'Mine': panicked: at close", 1),
    ] {
        let (mine, behind) = (diary("mine", fails_at), diary("behind", ""));
        let cluster = Cluster::new(|env| {
            let results =
                numbers(env).map(|n| n).rich_map(mine.clone()).name("Mine").rich_map(behind.clone());
            results.map(|n| row(n, "")).sink_to(CsvSink::new("out"));
        });
        let message = cluster.finish().err().expect("the job should fail").message;
        assert!(message.contains(expected), "{fails_at}: {message}");
        for diary in [&mine, &behind] {
            let closed = lines(diary).iter().filter(|line| line.ends_with(" close")).count();
            assert_eq!(closed, closes, "{fails_at}: {:?}", lines(diary));
        }
    }
}

#[test]
fn a_panic_names_the_operator_of_a_chain_whose_code_it_was() {
    for (at, name) in [(1, "First"), (2, "Second"), (3, "Keys"), (4, "Third")] {
        let fail = move |here: i64, n: i64| {
            assert!(here != at || n < 3, "{n} is too much");
            n
        };
        let cluster = Cluster::new(|env| {
            let chain = numbers(env).map(move |n| fail(1, n)).name("First");
            let chain = chain.flat_map(move |n| std::iter::once_with(move || fail(2, n))).name("Second");
            let keyed = chain.filter(|_| true).name("Keys").key_by(move |n| fail(3, *n));
            let sums = keyed.full_window_partition().reduce(|a, b| a + b);
            sums.map(move |n| fail(4, n)).name("Third").map(|n| row(n, "")).sink_to(CsvSink::new("out"));
        });
        let message = cluster.finish().err().expect("the job should fail").message;
        assert!(message.contains(&format!("operator '{name}': panicked: 3 is too much")), "{message}");
    }
}

/// Keeps the odd numbers.
#[derive(Clone, Default)]
struct Odd {
    dropped: LongCounter,
}

impl RichFunction for Odd {
    fn open(&mut self, context: &RuntimeContext) -> Result<(), FunctionError> {
        self.dropped = context.long_counter("dropped");
        Ok(())
    }

    fn close(&mut self) -> Result<(), FunctionError> {
        self.dropped.add(1000);
        Ok(())
    }
}

impl RichFilterFunction<i64> for Odd {
    fn filter(&mut self, number: &i64) -> Result<bool, FunctionError> {
        let is_odd = number % 2 == 1;
        self.dropped.add(i64::from(!is_odd));
        Ok(is_odd)
    }
}

/// The prototype's own counter is no job's, and both operators of the name add to one sum.
#[test]
fn a_function_keeps_a_sum_of_the_job_and_adds_to_it_until_it_is_closed() {
    let odd = Odd::default();
    odd.dropped.add(7);
    let outcome = Cluster::run(|env| {
        let kept = numbers(env).rich_filter(odd.clone());
        kept.map(|n| n + 1).rich_filter(odd.clone()).map(|n| row(n, "")).sink_to(CsvSink::new("out"));
    });
    assert_eq!(outcome.rows("out", 0), [""; 0]);
    let sums = outcome.results.values().map(|result| result.accumulators.get("dropped"));
    // 2 is dropped by the first, 2 and 4 by the second, and each adds a thousand at its end.
    assert_eq!(sums.collect::<Vec<_>>(), [Some(&2003)]);
}
