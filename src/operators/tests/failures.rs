//! What fails a task, and that it says which operator did.

use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::task::Poll;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Cluster, Row, row};
use crate::api::{FunctionError, Out, Records, StreamExecutionEnvironment};
use crate::connectors::{CsvSink, NumberSequenceSource, Source, SourceReaderContext};

fn failure(describe: impl FnOnce(&mut StreamExecutionEnvironment)) -> String {
    let failure = Cluster::new(describe).finish().err().expect("the job should fail");
    failure.message
}

#[test]
fn bytes_that_are_no_record_fail_the_operator_that_reads_them() {
    let cut: fn(&mut Vec<u8>) = |file| file.iter_mut().for_each(|byte| *byte = 0xff);
    let job = |env: &mut StreamExecutionEnvironment| {
        env.from_source("numbers", NumberSequenceSource::new(0, 10, 1)).set_parallelism(1)
    };
    let pushed = Cluster::new(|env| {
        job(env).key_by(|n| *n).map(|n| row(n, "")).name("Reader").sink_to(CsvSink::new("out"));
    });
    let pulled = Cluster::new(|env| {
        let sum = job(env).full_window_partition().reduce(|a, b| a + b).name("Reader");
        sum.map(|n| row(n, "")).sink_to(CsvSink::new("out"));
    });
    for cluster in [pushed, pulled] {
        let message = cluster.meddle(cut).finish().err().expect("the job should fail").message;
        assert!(message.contains("operator 'Reader': an input record cannot be decoded"), "{message}");
    }
}

#[test]
fn an_error_of_a_user_function_fails_its_task() {
    let message = failure(|env| {
        env.from_source("numbers", NumberSequenceSource::new(0, 10, 1))
            .full_window_partition()
            .map_partition(async |records: &mut Records<i64>, _: &Out<Row>| {
                while let Some(number) = records.next().await {
                    if number == 7 {
                        Err(format!("{number} is not wanted"))?;
                    }
                }
                Ok(())
            })
            .name("Picky")
            .sink_to(CsvSink::new("out"));
    });
    assert!(message.contains("operator 'Picky': 7 is not wanted"), "{message}");
}

/// Writes two fields and reads one.
#[derive(Clone)]
struct Shorter(i64);

impl Serialize for Shorter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.0, "rest").serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Shorter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        i64::deserialize(deserializer).map(Self)
    }
}

#[test]
fn records_that_are_read_in_another_length_than_they_are_written_in_are_refused() {
    let message = failure(|env| {
        let numbers = env.from_source("numbers", NumberSequenceSource::new(0, 10, 1)).map(Shorter);
        numbers.name("Half").rebalance().map(|half| row(half.0, "")).sink_to(CsvSink::new("out"));
    });
    let expected = "operator 'Half': a record is written as 6 bytes, and only 1 of them are read; it is a ";
    assert!(message.contains(expected), "{message}");
    assert!(message.contains("Shorter, and records travel as postcard"), "{message}");
}

#[test]
fn records_without_content_cannot_leave_a_task() {
    let message = failure(|env| {
        let nothing = env.from_source("numbers", NumberSequenceSource::new(0, 10, 1)).map(|_| ());
        nothing.name("Nothing").rebalance().map(|()| row(0, "")).sink_to(CsvSink::new("out"));
    });
    assert!(message.contains("operator 'Nothing': records of a type without any content"), "{message}");
}

struct Broken;

impl Source for Broken {
    type Record = i64;
    type Split = u8;

    fn splits(&self) -> Vec<u8> {
        vec![1, 2]
    }

    async fn read(&self, split: u8, _: &SourceReaderContext, out: &Out<i64>) -> Result<(), FunctionError> {
        out.collect(i64::from(split)).await;
        if split == 2 { Err("the disk is gone".into()) } else { Ok(()) }
    }
}

#[test]
fn a_split_that_cannot_be_read_fails_its_source() {
    let message = failure(|env| {
        env.from_source("broken", Broken).map(|n| row(n, "")).sink_to(CsvSink::new("out"));
    });
    assert!(
        message.contains("operator 'Source: broken': split 1 cannot be read: the disk is gone"),
        "{message}"
    );
}

/// Both are polled in turns, as `join!` does it.
async fn both(first: impl Future<Output = ()>, second: impl Future<Output = ()>) {
    let (mut first, mut second) = (pin!(first), pin!(second));
    let (mut first_done, mut second_done) = (false, false);
    poll_fn(|task| {
        first_done = first_done || first.as_mut().poll(task).is_ready();
        second_done = second_done || second.as_mut().poll(task).is_ready();
        if first_done && second_done { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

#[test]
fn results_that_are_collected_side_by_side_all_arrive() {
    let outcome = Cluster::run(|env| {
        env.from_source("numbers", NumberSequenceSource::new(0, 300, 1))
            .set_parallelism(1)
            .full_window_partition()
            .map_partition(async |records: &mut Records<i64>, out: &Out<i64>| {
                while let Some(number) = records.next().await {
                    both(out.collect(number), out.collect(number + 1000)).await;
                }
                Ok(())
            })
            .rebalance()
            .map(|n| row(n, "0123456789"))
            .set_parallelism(1)
            .sink_to(CsvSink::new("out"));
    });
    assert_eq!(outcome.rows("out", 0).len(), 600);
}

#[test]
fn a_collect_that_is_dropped_midway_fails_the_task() {
    let message = failure(|env| {
        env.from_source("numbers", NumberSequenceSource::new(0, 1000, 1))
            .full_window_partition()
            .map_partition(async |records: &mut Records<i64>, out: &Out<i64>| {
                while let Some(number) = records.next().await {
                    let mut collect = pin!(out.collect(number));
                    // Polled once and not again.
                    poll_fn(|task| Poll::Ready(collect.as_mut().poll(task).is_ready())).await;
                }
                Ok(())
            })
            .name("Hasty")
            .rebalance()
            .map(|n| row(n, ""))
            .sink_to(CsvSink::new("out"));
    });
    assert!(
        message.contains("operator 'Hasty': a call of `collect` was dropped before it was done"),
        "{message}"
    );
}

#[test]
fn a_function_cannot_outwait_a_failure_below_it() {
    let message = failure(|env| {
        env.from_source("numbers", NumberSequenceSource::new(0, 10, 1))
            .full_window_partition()
            .map_partition(async |_: &mut Records<i64>, out: &Out<()>| {
                out.collect(()).await;
                // Never gets here; would wait forever.
                pending().await
            })
            .name("Empty")
            .rebalance()
            .map(|()| row(0, ""))
            .sink_to(CsvSink::new("out"));
    });
    assert!(message.contains("operator 'Empty': records of a type without any content"), "{message}");
}
