//! Which record reaches which subtask, and in which order.

use super::{Cluster, Outcome, row};
use crate::api::{DataStream, Out, Records, StreamExecutionEnvironment};
use crate::connectors::{CsvSink, NumberSequenceSource};
use crate::operators::subpartition_of_key;

/// Numbers that reached a sink's subtask.
fn numbers(outcome: &Outcome, directory: &str, subtask: u32) -> Vec<i64> {
    let rows = outcome.rows(directory, subtask);
    rows.iter().map(|line| line.split(',').next().unwrap().parse().unwrap()).collect()
}

#[test]
fn records_of_one_key_reach_the_subtask_that_the_hash_says() {
    let outcome = Cluster::run(|env| {
        env.from_source("numbers", NumberSequenceSource::new(0, 500, 4))
            .key_by(|n| n % 17)
            .map(|n| row(n, ""))
            .set_parallelism(5)
            .sink_to(CsvSink::new("out"));
    });
    let mut all = Vec::new();
    for subtask in 0..5 {
        for number in numbers(&outcome, "out", subtask) {
            let key = postcard::to_stdvec(&(number % 17)).unwrap();
            assert_eq!(subpartition_of_key(&key, 5), subtask);
            all.push(number);
        }
    }
    all.sort_unstable();
    assert_eq!(all, (0..500).collect::<Vec<_>>());
}

/// Two producers: producer 0 has the numbers from 0, producer 1 those from 100.
#[test]
fn a_rebalance_deals_round_robin_from_the_producers_own_number() {
    let outcome = Cluster::run(|env| {
        env.from_source("numbers", NumberSequenceSource::new(0, 2, 2))
            .map(|split| split * 100)
            .full_window_partition()
            .map_partition(async |records: &mut Records<i64>, out: &Out<i64>| {
                while let Some(first) = records.next().await {
                    for number in first..first + 7 {
                        out.collect(number).await;
                    }
                }
                Ok(())
            })
            .rebalance()
            .map(|n| row(n, ""))
            .set_parallelism(3)
            .sink_to(CsvSink::new("out"));
    });
    assert_eq!(numbers(&outcome, "out", 0), [0, 3, 6, 102, 105]);
    assert_eq!(numbers(&outcome, "out", 1), [1, 4, 100, 103, 106]);
    assert_eq!(numbers(&outcome, "out", 2), [2, 5, 101, 104]);
}

/// The numbers 0 to 3 from producer 0, 10 to 13 from producer 1, and so on.
fn tens(env: &mut StreamExecutionEnvironment, producers: u32) -> DataStream<i64> {
    let source = NumberSequenceSource::new(0, i64::from(producers), producers);
    let tens = env.from_source("numbers", source).set_parallelism(producers);
    tens.flat_map(|n| n * 10..n * 10 + 4)
}

#[test]
fn a_rescale_deals_to_the_few_subtasks_that_belong_to_the_producer() {
    let outcome = Cluster::run(|env| {
        tens(env, 2).rescale().map(|n| row(n, "")).set_parallelism(5).sink_to(CsvSink::new("out"));
    });
    // Three subpartitions of each partition. Three subtasks read the first partition, two the second,
    // which is dealt from its producer's own number.
    assert_eq!(numbers(&outcome, "out", 0), [0, 3]);
    assert_eq!(numbers(&outcome, "out", 1), [1]);
    assert_eq!(numbers(&outcome, "out", 2), [2]);
    assert_eq!(numbers(&outcome, "out", 3), [10, 13, 11]);
    assert_eq!(numbers(&outcome, "out", 4), [12]);
}

#[test]
fn a_rescale_to_fewer_subtasks_joins_whole_partitions() {
    let outcome = Cluster::run(|env| {
        tens(env, 3).rescale().map(|n| row(n, "")).set_parallelism(2).sink_to(CsvSink::new("out"));
    });
    assert_eq!(numbers(&outcome, "out", 0), [0, 1, 2, 3]);
    assert_eq!(numbers(&outcome, "out", 1), [10, 11, 12, 13, 20, 21, 22, 23]);
}

#[test]
fn a_broadcast_gives_every_record_to_every_subtask() {
    let outcome = Cluster::run(|env| {
        let keyed = tens(env, 2).key_by(|n| n % 3);
        keyed.broadcast().map(|n| row(n, "")).set_parallelism(3).sink_to(CsvSink::new("out"));
    });
    for subtask in 0..3 {
        assert_eq!(numbers(&outcome, "out", subtask), [0, 1, 2, 3, 10, 11, 12, 13]);
    }
}

#[test]
fn a_union_delivers_its_streams_one_after_the_other() {
    let outcome = Cluster::run(|env| {
        let low = env.from_source("low", NumberSequenceSource::new(0, 4, 1)).set_parallelism(1);
        let high = env.from_source("high", NumberSequenceSource::new(100, 104, 1)).set_parallelism(1);
        high.union(&low).map(|n| row(n, "")).sink_to(CsvSink::new("out"));
    });
    assert_eq!(numbers(&outcome, "out", 0), [100, 101, 102, 103, 0, 1, 2, 3]);
}

#[test]
fn records_are_counted_where_they_enter_and_leave_a_task() {
    let outcome = Cluster::run(|env| {
        env.from_source("numbers", NumberSequenceSource::new(0, 10, 1))
            .set_parallelism(1)
            .filter(|n| n % 2 == 0)
            .rebalance()
            .flat_map(|n| vec![row(n, "a"), row(n, "b")])
            .set_parallelism(1)
            .sink_to(CsvSink::new("out"));
    });
    let counts: Vec<_> =
        outcome.results.values().map(|task| (task.metrics.records_in, task.metrics.records_out)).collect();
    assert_eq!(counts, [(0, 5), (5, 10)]);
}

#[test]
fn each_output_of_a_task_goes_to_its_own_consumer() {
    let outcome = Cluster::run(|env| {
        let numbers = env.from_source("numbers", NumberSequenceSource::new(0, 90, 1)).set_parallelism(1);
        for (third, name) in [(0, "zero"), (1, "one"), (2, "two")] {
            let part = numbers.filter(move |n| n % 3 == third);
            let part = if third == 1 { part.key_by(|_| 1).into_data_stream() } else { part.rebalance() };
            part.map(move |n| row(n, name)).set_parallelism(1).sink_to(CsvSink::new(name));
        }
    });
    for (third, name) in [(0, "zero"), (1, "one"), (2, "two")] {
        let expected: Vec<i64> = (0..90).filter(|n| n % 3 == third).collect();
        assert_eq!(numbers(&outcome, name, 0), expected);
    }
}

#[test]
fn a_union_of_a_stream_with_itself_has_every_record_twice() {
    let outcome = Cluster::run(|env| {
        let once = env.from_source("numbers", NumberSequenceSource::new(0, 3, 1)).set_parallelism(1);
        once.union(&once).map(|n| row(n, "")).sink_to(CsvSink::new("out"));
    });
    assert_eq!(numbers(&outcome, "out", 0), [0, 1, 2, 0, 1, 2]);
}

#[test]
fn a_shuffle_loses_nothing_and_deals_about_evenly_and_the_same_every_time() {
    let run = || {
        let outcome = Cluster::run(|env| {
            let numbers = env.from_source("numbers", NumberSequenceSource::new(0, 300, 1)).set_parallelism(1);
            numbers.shuffle().map(|n| row(n, "")).set_parallelism(3).sink_to(CsvSink::new("out"));
        });
        [0, 1, 2].map(|subtask| numbers(&outcome, "out", subtask))
    };
    let dealt = run();
    assert_eq!(dealt, run());
    assert!(dealt.iter().all(|numbers| (70..130).contains(&numbers.len())), "{dealt:?}");
    let mut all = dealt.concat();
    all.sort_unstable();
    assert_eq!(all, (0..300).collect::<Vec<_>>());
}

#[test]
fn an_own_partitioner_decides_by_the_key_and_the_number_of_subpartitions() {
    let outcome = Cluster::run(|env| {
        let numbers = env.from_source("numbers", NumberSequenceSource::new(0, 9, 1)).set_parallelism(1);
        let apart =
            numbers.partition_custom(|key: &i64, count| u32::try_from(*key).unwrap() % count, |n| n / 3);
        apart.map(|n| row(n, "")).set_parallelism(2).sink_to(CsvSink::new("out"));
    });
    assert_eq!(numbers(&outcome, "out", 0), [0, 1, 2, 6, 7, 8]);
    assert_eq!(numbers(&outcome, "out", 1), [3, 4, 5]);
}

#[test]
fn a_partitioner_that_says_a_subpartition_that_is_not_there_fails_its_task() {
    let cluster = Cluster::new(|env| {
        let numbers = env.from_source("numbers", NumberSequenceSource::new(0, 9, 1)).set_parallelism(1);
        let apart = numbers.partition_custom(|n: &i64, _| u32::try_from(*n).unwrap(), |n| *n);
        apart.map(|n| row(n, "")).set_parallelism(2).sink_to(CsvSink::new("out"));
    });
    let message = cluster.finish().err().expect("the job should fail").message;
    let expected = "operator 'Source: numbers': the partitioner said subpartition 2, and there are 2";
    assert!(message.contains(expected), "{message}");
}
