//! Jobs that run inside of this process and give back what they collected and printed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use revenant::api::{DataStream, JobError, Out, Program, Records, StreamExecutionEnvironment};
use revenant::config::JobArguments;
use revenant::connectors::{CsvSink, NumberSequenceSource};
use revenant::coordinator::SplitAssignment;
use revenant::ids::ProcessId;
use revenant::runtime::{JobExecutionError, JobExecutionResult, MiniCluster};

use crate::harness::Directory;

/// The numbers from 0 to 8; subtask 0 of 3 has 0 to 2, and so on.
fn thirds(env: &mut StreamExecutionEnvironment) -> DataStream<i64> {
    let source = NumberSequenceSource::new(0, 9, 3).assigned(SplitAssignment::Static);
    env.from_source("numbers", source).set_parallelism(3)
}

fn of(describe: impl Fn(&mut StreamExecutionEnvironment) + Send + Sync + 'static) -> MiniCluster {
    MiniCluster::new(Program::new().register("it", "The job of a test.", move |env, _| {
        describe(env);
        Ok(())
    }))
}

fn run(
    describe: impl Fn(&mut StreamExecutionEnvironment) + Send + Sync + 'static,
) -> Result<JobExecutionResult, JobExecutionError> {
    revenant::runtime::run(move |env| {
        describe(env);
        Ok(())
    })
}

fn failure(result: Result<JobExecutionResult, JobExecutionError>) -> String {
    match result {
        Ok(_) => panic!("the job finished"),
        Err(JobExecutionError::Failed { job, reason }) => {
            assert_eq!(job, "it");
            reason
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn collected_records_come_in_the_order_of_the_subtasks() {
    let result = run(|env| {
        let numbers = thirds(env);
        numbers.collect("numbers");
        numbers
            .map(|number| (number, format!("n{number}")))
            .filter(|(number, _)| number % 4 == 0)
            .collect("named");
    })
    .unwrap();
    assert_eq!(result.collected::<i64>("numbers").unwrap(), (0..9).collect::<Vec<_>>());
    let named = [(0, "n0".to_owned()), (4, "n4".to_owned()), (8, "n8".to_owned())];
    assert_eq!(result.collected::<(i64, String)>("named").unwrap(), named);
}

#[test]
fn records_are_collected_as_they_are_and_given_as_nothing_else() {
    let result = run(|env| drop(thirds(env).collect("numbers"))).unwrap();
    let error = result.collected::<u64>("numbers").unwrap_err().to_string();
    assert!(error.contains("records of type i64, not u64"), "{error}");
    let error = result.collected::<i64>("number").unwrap_err().to_string();
    assert!(error.contains("did you mean 'numbers'?"), "{error}");
}

#[test]
fn an_empty_stream_is_collected_as_no_records() {
    let result = run(|env| drop(thirds(env).filter(|_| false).collect("none"))).unwrap();
    assert_eq!(result.collected::<i64>("none").unwrap(), [0_i64; 0]);
    assert_eq!(result.printed(), [""; 0]);
}

#[test]
fn more_than_a_chunk_is_collected_whole() {
    let result = run(|env| {
        let numbers = env.from_source("numbers", NumberSequenceSource::new(0, 50_000, 1));
        numbers.map(|number| (number, "x".repeat(20))).collect("all");
    })
    .unwrap();
    let all = result.collected::<(i64, String)>("all").unwrap();
    assert!(all.iter().map(|(number, _)| *number).eq(0..50_000));
}

#[test]
fn lines_say_which_of_several_subtasks_printed_them() {
    let result = run(|env| {
        let numbers = thirds(env).filter(|number| number % 3 == 1);
        numbers.print();
        numbers.map(|number| number.to_string()).print_with("text");
        numbers.full_window_partition().reduce(|a, b| a + b).set_parallelism(1).print();
    })
    .unwrap();
    let text = ["text:1> \"1\"", "text:2> \"4\"", "text:3> \"7\""];
    assert_eq!(result.printed(), [&["1> 1", "2> 4", "3> 7", "12"][..], &text].concat());
}

#[test]
fn accumulators_are_those_of_the_attempts_that_count() {
    let result = run(|env| {
        let counted = thirds(env).full_window_partition().map_partition(
            async |records: &mut Records<i64>, out: &Out<i64>| {
                while let Some(number) = records.next().await {
                    out.add_to_accumulator("numbers", 1);
                    out.collect(number).await;
                }
                Ok(())
            },
        );
        counted.collect("counted");
    })
    .unwrap();
    assert_eq!(result.accumulators().clone().into_iter().collect::<Vec<_>>(), [("numbers".to_owned(), 9)]);
}

#[test]
fn a_job_that_fails_says_which_operator_subtask_and_attempt_and_why() {
    let cluster = of(|env| {
        let picky =
            thirds(env).map(|number| if number == 4 { panic!("{number} is not wanted") } else { number });
        picky.name("Picky").collect("numbers");
    });
    let reason = failure(cluster.run("it"));
    let expected = "Source: numbers -> Picky -> Sink: collect numbers (subtask 1, attempt v0.1.e1a1): operator 'Picky': \
                    panicked: 4 is not wanted";
    assert_eq!(reason, expected);
    let cluster = of(|env| {
        let window = thirds(env).full_window_partition();
        let picky = window.map_partition(async |records: &mut Records<i64>, _: &Out<i64>| {
            while let Some(number) = records.next().await {
                if number == 7 {
                    return Err(format!("{number} is not wanted").into());
                }
            }
            Ok(())
        });
        picky.name("Picky").collect("numbers");
    });
    let reason = failure(cluster.run("it"));
    let expected =
        "Picky -> Sink: collect numbers (subtask 2, attempt v1.2.e1a1): operator 'Picky': 7 is not wanted";
    assert_eq!(reason, expected);
}

/// The numbers, but the first attempt that comes to 4 fails.
fn fails_once(env: &mut StreamExecutionEnvironment, attempts: &Arc<AtomicU32>) -> DataStream<i64> {
    let attempts = Arc::clone(attempts);
    let fail =
        move |number| assert!(number != 4 || attempts.fetch_add(1, Ordering::SeqCst) > 0, "the first time");
    thirds(env).map(move |number| {
        fail(number);
        number
    })
}

#[test]
fn a_job_that_may_restart_gives_each_record_once() {
    for recovery in ["false", "true"] {
        let attempts = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&attempts);
        let result = of(move |env| drop(fails_once(env, &attempts).collect("numbers")))
            .set("restart-strategy.type", "fixed-delay")
            .and_then(|cluster| cluster.set("restart-strategy.fixed-delay.delay", "10 ms"))
            .and_then(|cluster| cluster.set("execution.batch.job-recovery.enabled", recovery))
            .unwrap()
            .run("it")
            .unwrap();
        assert_eq!(result.collected::<i64>("numbers").unwrap(), (0..9).collect::<Vec<_>>());
        assert_eq!(counted.load(Ordering::SeqCst), 2);
    }
}

#[test]
fn a_panic_or_an_error_of_a_function_fails_its_task_and_never_a_process() {
    for panics in [true, false] {
        let attempts = Arc::new(AtomicU32::new(0));
        let cluster = of(move |env| {
            let attempts = Arc::clone(&attempts);
            let numbers = thirds(env).full_window_partition().map_partition(
                async move |records: &mut Records<i64>, out: &Out<i64>| {
                    while let Some(number) = records.next().await {
                        if number == 4 && attempts.fetch_add(1, Ordering::SeqCst) == 0 {
                            assert!(!panics, "not at first");
                            return Err("not at first".into());
                        }
                        out.collect(number).await;
                    }
                    Ok(())
                },
            );
            numbers.collect("numbers");
        });
        let cluster = cluster
            .set("restart-strategy.type", "fixed-delay")
            .and_then(|cluster| cluster.set("restart-strategy.fixed-delay.delay", "10 ms"))
            .unwrap();
        let result = cluster.run("it").unwrap();
        assert_eq!(result.collected::<i64>("numbers").unwrap(), (0..9).collect::<Vec<_>>());
        assert_eq!(result.restarts().len(), 0, "{:?}", result.restarts());
    }
}

#[test]
fn without_a_restart_strategy_the_first_failure_is_the_jobs() {
    let attempts = Arc::new(AtomicU32::new(0));
    let cluster = of(move |env| drop(fails_once(env, &attempts).collect("numbers")));
    assert!(failure(cluster.run("it")).ends_with("panicked: the first time"));
}

#[test]
fn results_go_through_shuffle_services_where_they_are_external() {
    let cluster = of(|env| {
        let sums = thirds(env).rebalance().full_window_partition().reduce(|a, b| a + b);
        sums.set_parallelism(2).collect("sums");
    });
    let cluster = cluster.set("shuffle.service", "external").unwrap().shuffle_services(2);
    let sums = cluster.run("it").unwrap().collected::<i64>("sums").unwrap();
    assert_eq!((sums.len(), sums.iter().sum::<i64>()), (2, 36));
}

#[test]
fn clusters_run_beside_each_other_and_one_may_run_again() {
    let cluster = of(|env| drop(thirds(env).collect("numbers")));
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..6).map(|_| scope.spawn(|| cluster.run("it"))).collect();
        for run in runs {
            let result = run.join().expect("no panic").unwrap();
            assert_eq!(result.collected::<i64>("numbers").unwrap().len(), 9);
            assert!(result.restarts().get(&ProcessId::JOB_MANAGER).is_none());
        }
    });
}

#[test]
fn output_stays_in_a_given_directory_and_is_not_written_over() {
    let directory = Directory::new("mini-cluster");
    let output = directory.path("out");
    let cluster = of(|env| {
        thirds(env).collect("numbers");
        thirds(env).map(|number| Row { number }).sink_to(CsvSink::new("rows")).set_parallelism(1);
    })
    .output(&output);
    let files = cluster.run("it").unwrap().files().unwrap();
    let expected = ["collect/numbers/part-00000", "collect/numbers/part-00001", "collect/numbers/part-00002"];
    assert_eq!(
        files.iter().map(|path| path.to_str().unwrap()).collect::<Vec<_>>(),
        [&expected[..], &["rows/part-00000.csv"]].concat()
    );
    assert!(files.iter().all(|file| output.join(file).exists()));
    let Err(JobExecutionError::Refused(reason)) = cluster.run("it") else { panic!("it was written over") };
    assert!(reason.contains("is not empty"), "{reason}");
}

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Row {
    number: i64,
}

#[test]
fn a_job_that_cannot_be_described_is_refused_with_the_reason() {
    let result = revenant::runtime::run(|_| Err(JobError("there is nothing to do".to_owned())));
    let Err(JobExecutionError::Refused(reason)) = result else { panic!("it ran") };
    assert_eq!(reason, "job 'job': there is nothing to do");
}

#[test]
fn sinks_that_would_mix_and_names_that_are_none_are_refused() {
    let refused = |describe: fn(&mut StreamExecutionEnvironment)| match run(describe) {
        Err(JobExecutionError::Refused(reason)) => reason,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it ran"),
    };
    let same = refused(|env| {
        thirds(env).collect("a");
        thirds(env).collect("a");
    });
    assert!(same.contains("both write to 'collect/a'"), "{same}");
    let strange = refused(|env| drop(thirds(env).collect("../a")));
    assert!(strange.contains("'../a' is not a name for collected records"), "{strange}");
}

#[test]
fn a_job_gets_the_arguments_that_it_asks_for() {
    let program = Program::new().register("to", "Collects numbers.", |env, job| {
        let to = job.get("to", 3, "a whole number from 0", |&to: &i64| to >= 0)?;
        let splits = job.get("splits", 1, "a whole number from 1", |&splits: &u32| splits > 0)?;
        env.from_source("numbers", NumberSequenceSource::new(0, to, splits)).collect("numbers");
        Ok(())
    });
    let cluster = MiniCluster::new(program);
    let count = |job: JobArguments| cluster.run(job).unwrap().collected::<i64>("numbers").unwrap().len();
    assert_eq!(count(JobArguments::new("to")), 3);
    assert_eq!(count(JobArguments::new("to").with("to", 7).with("splits", 2)), 7);
    let Err(JobExecutionError::Refused(reason)) = cluster.run(JobArguments::new("to").with("too", 7)) else {
        panic!("it ran")
    };
    assert!(reason.contains("did you mean 'to'?"), "{reason}");
}
