//! What a job must be to be run at all, and to recover (FLIP-383, "Limitations"): told before
//! anything starts, with what to do. Knows the job and its configuration, and never what happened
//! to it.

use crate::config::{Configuration, RestartStrategy};
use crate::connectors::check_path;
use crate::disk::Volume;
use crate::graph::JobGraph;

const RECOVERY: &str = "execution.batch.job-recovery.enabled";

/// Whether the job can run as it is configured on a JobManager with these volumes. The error is the
/// first reason why not.
pub fn check(config: &Configuration, graph: &JobGraph, volumes: &[Volume]) -> Result<(), String> {
    // Flink reads both without regard to case.
    only(&config.scheduler, "jobmanager.scheduler", "AdaptiveBatch", "scheduler")?;
    only(
        &config.batch_shuffle_mode,
        "execution.batch-shuffle-mode",
        "ALL_EXCHANGES_BLOCKING",
        "shuffle mode, as exchanges are never pipelined or hybrid",
    )?;
    if config.restart_strategy == RestartStrategy::ExponentialDelay
        && config.exponential_initial > config.exponential_max
    {
        return Err("restart-strategy.exponential-delay.initial-backoff is longer than \
                    restart-strategy.exponential-delay.max-backoff: make it shorter"
            .to_owned());
    }
    check_input(graph, volumes)?;
    if config.job_recovery_enabled { check_recovery(config, graph, volumes) } else { Ok(()) }
}

fn only(value: &str, key: &str, only: &str, what: &str) -> Result<(), String> {
    if value.eq_ignore_ascii_case(only) {
        return Ok(());
    }
    Err(format!("{key} is {value}, with or without {RECOVERY}: set it to {only}, there is no other {what}"))
}

/// What sources want to read is on a volume that the JobManager can list.
fn check_input(graph: &JobGraph, volumes: &[Volume]) -> Result<(), String> {
    for vertex in &graph.vertices {
        let paths = vertex.source.as_ref().map_or_else(Vec::new, |source| source.paths());
        if !paths.is_empty() && !volumes.contains(&Volume::Input) {
            return Err(format!(
                "'{}' reads files, but the JobManager has no volume 'input': start it with --input DIR",
                vertex.name
            ));
        }
        for path in &paths {
            check_path(path).map_err(|problem| format!("'{}': {problem}", vertex.name))?;
        }
    }
    Ok(())
}

fn check_recovery(config: &Configuration, graph: &JobGraph, volumes: &[Volume]) -> Result<(), String> {
    let refuse = |problem: String| Err(format!("{RECOVERY} is true, but {problem}; or set it to false"));
    let obstacles: Vec<&str> =
        graph.vertices.iter().flat_map(|vertex| &vertex.recovery_obstacles).map(String::as_str).collect();
    if !obstacles.is_empty() {
        return refuse(obstacles.join("; "));
    }
    if config.registration_timeout.is_zero() {
        return refuse(
            "taskmanager.registration.timeout is 0, so that no partition is kept when the JobManager is gone: \
             make it longer than the JobManager may be away"
                .to_owned(),
        );
    }
    if let Some(missing) =
        [Volume::Ha, config.job_event_volume].iter().find(|volume| !volumes.contains(volume))
    {
        return refuse(format!(
            "the JobManager has no volume '{missing}' on which its progress would outlive it: give it a storage \
             directory"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actor::Boot;
    use crate::api::{DataStream, FunctionError, Out, Program, SourceFunction, StreamExecutionEnvironment};
    use crate::config::JobArguments;
    use crate::connectors::{CsvSink, NumberSequenceSource, Sink, Source, SourceReaderContext};
    use crate::ids::{ProcessId, SessionId};
    use crate::job_manager::JobMaster;
    use crate::operators::OperatorContext;

    #[derive(Clone, serde::Serialize, serde::Deserialize)]
    struct Row {
        number: i64,
    }

    struct Count;

    impl SourceFunction for Count {
        type Record = i64;

        async fn run(&self, out: &Out<i64>) -> Result<(), FunctionError> {
            for number in 0..10 {
                out.collect(number).await;
            }
            Ok(())
        }
    }

    /// As the CSV sink, but it says that it writes whatever it is given.
    struct Appending(CsvSink);

    impl Sink<Row> for Appending {
        type Writer = <CsvSink as Sink<Row>>::Writer;

        fn name(&self) -> String {
            "append".to_owned()
        }

        fn target(&self) -> Result<String, String> {
            Sink::<Row>::target(&self.0)
        }

        fn is_idempotent(&self) -> bool {
            false
        }

        fn writer(&self, context: &OperatorContext) -> Self::Writer {
            Sink::<Row>::writer(&self.0, context)
        }
    }

    fn rows(env: &mut StreamExecutionEnvironment) -> DataStream<Row> {
        env.from_source("numbers", NumberSequenceSource::new(0, 10, 2)).map(|number| Row { number })
    }

    fn program() -> Program {
        Program::new()
            .register("good", "Good.", |env, _| {
                rows(env).sink_to(CsvSink::new("out"));
                Ok(())
            })
            .register("function", "A function.", |env, _| {
                env.add_source("count", Count).map(|number| Row { number }).sink_to(CsvSink::new("out"));
                Ok(())
            })
            .register("file", "Reads a file.", |env, _| {
                one_file(env, "logs");
                Ok(())
            })
            .register("absolute", "Reads a file by its absolute path.", |env, _| {
                one_file(env, "/data/logs");
                Ok(())
            })
            .register("appending", "Appends.", |env, _| {
                rows(env).sink_to(Appending(CsvSink::new("out")));
                Ok(())
            })
    }

    /// Reads one file, of which it says only the path.
    struct OneFile(&'static str);

    impl Source for OneFile {
        type Record = i64;
        type Split = ();

        fn splits(&self) -> Vec<()> {
            vec![]
        }

        fn paths(&self) -> Vec<String> {
            vec![self.0.to_owned()]
        }

        async fn read(&self, (): (), _: &SourceReaderContext, _: &Out<i64>) -> Result<(), FunctionError> {
            Ok(())
        }
    }

    fn one_file(env: &mut StreamExecutionEnvironment, path: &'static str) {
        env.from_source("file", OneFile(path)).map(|number| Row { number }).sink_to(CsvSink::new("out"));
    }

    #[test]
    fn files_need_an_input_volume_and_paths_on_it() {
        assert_eq!(refusal("file", &[], &ALL), None);
        let volumes = [Volume::Local, Volume::Ha, Volume::Output];
        assert_refused(
            refusal("file", &[], &volumes),
            &["'Source: file", "no volume 'input'", "--input DIR"],
        );
        assert_refused(refusal("absolute", &[], &ALL), &["'/data/logs'", "such as 'logs/2024'"]);
    }

    const ALL: [Volume; 5] = [Volume::Local, Volume::Scratch, Volume::Ha, Volume::Output, Volume::Input];

    fn refusal(job: &str, options: &[(&str, &str)], volumes: &[Volume]) -> Option<String> {
        let mut config = Configuration::default();
        for (key, value) in options {
            config.set(key, value).unwrap();
        }
        let job = JobArguments { name: job.to_owned(), arguments: vec![] };
        let checked = check(&config, &program().build(&job).unwrap(), volumes).err();
        config.job = Some(job);
        let (process, session, volumes) = (ProcessId::JOB_MANAGER, SessionId(1), volumes.to_vec());
        let master = JobMaster::new(&Boot { process, session, config, volumes }, &program());
        assert_eq!(master.err(), checked, "the process says the same");
        checked
    }

    fn with_recovery(job: &str, options: &[(&str, &str)], volumes: &[Volume]) -> Option<String> {
        refusal(job, &[&[(RECOVERY, "true")], options].concat(), volumes)
    }

    fn assert_refused(refusal: Option<String>, parts: &[&str]) {
        let refusal = refusal.expect("it is refused");
        assert!(parts.iter().all(|part| refusal.contains(part)), "{refusal}");
    }

    #[test]
    fn a_job_that_meets_every_limit_runs() {
        assert_eq!(with_recovery("good", &[], &ALL), None);
        let spelt = [
            ("jobmanager.scheduler", "adaptivebatch"),
            ("execution.batch-shuffle-mode", "all_exchanges_blocking"),
        ];
        assert_eq!(with_recovery("good", &spelt, &ALL), None);
    }

    #[test]
    fn another_scheduler_or_exchange_is_refused_with_and_without_recovery() {
        for scheduler in ["Default", "Adaptive", "ng"] {
            for refused in [refusal, with_recovery] {
                let refused = refused("good", &[("jobmanager.scheduler", scheduler)], &ALL);
                assert_refused(refused, &["jobmanager.scheduler", scheduler, "set it to AdaptiveBatch"]);
            }
        }
        for mode in ["ALL_EXCHANGES_PIPELINED", "ALL_EXCHANGES_HYBRID_FULL"] {
            for refused in [refusal, with_recovery] {
                let refused = refused("good", &[("execution.batch-shuffle-mode", mode)], &ALL);
                assert_refused(refused, &[mode, "set it to ALL_EXCHANGES_BLOCKING"]);
            }
        }
    }

    #[test]
    fn b36_a_job_that_is_not_idempotent_is_refused_with_recovery_and_runs_without() {
        assert_refused(
            with_recovery("appending", &[], &ALL),
            &["'Sink: append'", "not idempotent", "or set it to false"],
        );
        assert_eq!(refusal("appending", &[], &ALL), None);
    }

    #[test]
    fn a_source_without_splits_is_refused_with_recovery_and_runs_without() {
        assert_refused(
            with_recovery("function", &[], &ALL),
            &["'Source: count'", "from_source", "or set it to false"],
        );
        assert_eq!(refusal("function", &[], &ALL), None);
    }

    #[test]
    fn a_shuffle_that_keeps_nothing_is_refused_with_recovery() {
        let none = [("taskmanager.registration.timeout", "0 s")];
        assert_refused(with_recovery("good", &none, &ALL), &["taskmanager.registration.timeout", "longer"]);
        assert_eq!(refusal("good", &none, &ALL), None);
        // A shuffle service goes by the same option.
        let external = [none[0], ("shuffle.service", "external")];
        assert_refused(with_recovery("good", &external, &ALL), &["taskmanager.registration.timeout"]);
    }

    #[test]
    fn a_job_manager_without_a_volume_that_outlives_it_is_refused_with_recovery() {
        let volumes = [Volume::Local, Volume::Output];
        assert_refused(with_recovery("good", &[], &volumes), &["no volume 'ha'", "storage directory"]);
        assert_eq!(refusal("good", &[], &volumes), None);
    }

    #[test]
    fn a_first_pause_above_the_longest_is_refused() {
        let options = [
            ("restart-strategy.type", "exponential-delay"),
            ("restart-strategy.exponential-delay.initial-backoff", "2 min"),
        ];
        assert_refused(refusal("good", &options, &ALL), &["initial-backoff is longer"]);
    }
}
