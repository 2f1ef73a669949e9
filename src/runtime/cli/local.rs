//! `revenant local`: a whole cluster on this machine. This process hosts the high-availability
//! service and the client; JobManager, TaskManagers and shuffle services are processes of their own,
//! and are started again when they die.

use std::ffi::OsString;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::actor::ExitStatus;
use crate::api::Program;
use crate::config::{Configuration, ShuffleServiceKind};
use crate::ids::{ActorId, ProcessId};
use crate::message::CancelJob;

use super::super::directories::{WorkingDirectory, empty_directory, keep_apart, remove_pending, volumes};
use super::super::results::{self, Collection, ResultError};
use super::super::start::{boot, check_job};
use super::super::supervisor::{ChildSpec, Supervisor};
use super::super::{Observer, ProcessOptions, RunningProcess};
use super::arguments::LocalArguments;
use super::member::Service;
use super::progress::Progress;
use super::signals::{INTERRUPT, interrupted};
use super::{End, print};

/// What a cluster on one machine needs otherwise than one on many.
const DEFAULTS: [(&str, &str); 8] = [
    ("execution.batch.job-recovery.enabled", "true"),
    ("cluster.registration.error-delay", "500 ms"),
    ("heartbeat.interval", "1 s"),
    ("heartbeat.timeout", "10 s"),
    ("high-availability.session-timeout", "10 s"),
    ("execution.batch.job-recovery.previous-worker.recovery.timeout", "10 s"),
    ("restart-strategy.type", "fixed-delay"),
    ("restart-strategy.fixed-delay.attempts", "3"),
];

/// How long the JobManager may take to end by itself after the job did.
const GOODBYE_MAX: Duration = Duration::from_secs(1);

pub async fn run(program: &Arc<Program>, arguments: LocalArguments) -> Result<End, String> {
    let mut config = Configuration::default();
    for (key, value) in DEFAULTS {
        config.set(key, value).map_err(|error| error.to_string())?;
    }
    arguments.common.apply(&mut config)?;
    check_shuffle(config.shuffle_service, arguments.shuffle_services)?;
    let job = arguments.job.parse()?;
    check_job(program, &config, &job)?;
    if let Some(input) = &arguments.input {
        fs::read_dir(input).map_err(|error| format!("--input {}: {error}", input.display()))?;
    }
    let given = [
        ("--out", Some(&arguments.out)),
        ("--storage", arguments.storage.as_ref()),
        ("--record", arguments.common.record.as_ref()),
        ("--input", arguments.input.as_ref()),
    ];
    let given: Vec<(&str, &Path)> =
        given.into_iter().filter_map(|(what, path)| Some((what, path?.as_path()))).collect();
    keep_apart(&given)?;
    let mut storage = match &arguments.storage {
        Some(given) => WorkingDirectory::given("--storage", given)?,
        None => WorkingDirectory::temporary(&std::env::temp_dir())?,
    };
    if arguments.keep {
        storage.keep();
    }
    let out = empty_directory("--out", &arguments.out)?;
    if let Some(record) = &arguments.common.record {
        empty_directory("--record", record)?;
    }
    config.job = Some(job);

    let progress = Progress::new(&arguments.job.name);
    let cluster = Cluster { arguments: &arguments, config, storage: storage.path(), out: &out };
    let Ended { end, after, restarts } = cluster.run(&progress).await?;
    progress.end();
    remove_pending(&out);
    if matches!(end, End::Failed(_)) {
        storage.keep();
    }
    let mut summary = Vec::new();
    if matches!(end, End::Success) {
        if let Err(error) = show_results(&out, |line| drop(print(std::iter::once(line)))) {
            return Ok(End::Failed(error.to_string()));
        }
        summary.push(format!("{} finished in {:.1?}: {}", arguments.job.name, after, contents(&out)));
        let accumulators = progress.accumulators();
        summary.extend(accumulators.iter().map(|(name, sum)| format!("{name}: {sum}")));
        let restarted = restarts.iter().filter(|(_, count)| *count > 0);
        summary.extend(restarted.map(|(name, count)| format!("{name} was started again {count} times")));
    }
    if storage.is_kept() {
        summary.push(format!("working files and logs are in {}", storage.path().display()));
    }
    print(summary.into_iter());
    Ok(end)
}

struct Ended {
    end: End,
    after: Duration,
    /// How often each process was started again.
    restarts: Vec<(String, u32)>,
}

struct Cluster<'a> {
    arguments: &'a LocalArguments,
    config: Configuration,
    storage: &'a Path,
    out: &'a Path,
}

impl Cluster<'_> {
    async fn run(&self, progress: &Progress) -> Result<Ended, String> {
        let started = Instant::now();
        let high_availability = self.host(ProcessId::HighAvailability, None, None).await?;
        let address = high_availability.endpoint();
        let client = self.host(ProcessId::Client, Some(address), Some(progress.observer())).await?;
        let program =
            std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
        let mut supervisor = Supervisor::start(&program, self.storage, self.children(address))
            .map_err(|error| format!("cannot start the cluster: {error}"))?;
        let mut canceling = false;
        let (end, orderly) = loop {
            tokio::select! {
                biased;
                number = interrupted() => {
                    if canceling || number != INTERRUPT {
                        break (End::Interrupted(number), false);
                    }
                    canceling = true;
                    client.tell(ActorId::Client, CancelJob {});
                    progress.say("the job is being cancelled; Ctrl-C again ends it at once");
                }
                end = client.ended() => {
                    let orderly = matches!(end, ExitStatus::Success | ExitStatus::Canceled);
                    let as_asked = canceling && end == ExitStatus::Canceled;
                    break (if as_asked { End::Interrupted(INTERRUPT) } else { End::from(end) }, orderly);
                }
                end = high_availability.ended() => break (End::from(end), false),
                error = supervisor.failed() => break (End::Failed(error.to_string()), false),
            }
        };
        let after = started.elapsed();
        let patient = orderly.then_some(("job-manager", GOODBYE_MAX));
        let restarts = supervisor.stop(patient).await;
        client.shut_down().await;
        high_availability.shut_down().await;
        Ok(Ended { end, after, restarts })
    }

    async fn host(
        &self,
        process: ProcessId,
        high_availability: Option<SocketAddr>,
        observer: Option<Observer>,
    ) -> Result<RunningProcess, String> {
        let options = ProcessOptions {
            boot: boot(process, self.config.clone()),
            engine: Arc::new(Service),
            volumes: volumes(process, self.storage, None, None),
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            high_availability,
            patience: Duration::from_secs(5),
            record: self.arguments.common.record.clone(),
            observer,
        };
        RunningProcess::start(options).await.map_err(|error| error.to_string())
    }

    fn children(&self, high_availability: SocketAddr) -> Vec<ChildSpec> {
        let mut common: Vec<OsString> = vec!["--ha".into(), high_availability.to_string().into()];
        common.extend(["--attached".into(), "--storage".into(), self.storage.into()]);
        common.extend(["--out".into(), self.out.into()]);
        if let Some(input) = &self.arguments.input {
            common.extend(["--input".into(), input.into()]);
        }
        if let Some(record) = &self.arguments.common.record {
            common.extend(["--record".into(), record.into()]);
        }
        let set = &self.arguments.common;
        let defaults =
            DEFAULTS.iter().filter(|(key, _)| !set.sets(key)).map(|(key, value)| format!("{key}={value}"));
        for setting in defaults.chain(self.arguments.common.set.iter().cloned()) {
            common.extend(["--set".into(), setting.into()]);
        }
        let mut job_manager: Vec<OsString> = vec!["job-manager".into()];
        job_manager.extend(common.iter().cloned());
        for argument in &self.arguments.job.arguments {
            job_manager.extend(["--arg".into(), argument.into()]);
        }
        job_manager.extend(["--".into(), OsString::from(&self.arguments.job.name)]);
        let mut children = vec![ChildSpec { name: "job-manager".to_owned(), arguments: job_manager }];
        let task_managers = (1..=self.arguments.task_managers)
            .map(|number| ("task-manager", number, ProcessId::TaskManager(number)));
        let shuffle_services = (1..=self.arguments.shuffle_services)
            .map(|number| ("shuffle-service", number, ProcessId::ShuffleService(number)));
        for (command, number, process) in task_managers.chain(shuffle_services) {
            let mut arguments: Vec<OsString> = vec![command.into(), "--id".into(), number.to_string().into()];
            arguments.extend(common.iter().cloned());
            children.push(ChildSpec { name: process.to_string(), arguments });
        }
        children
    }
}

/// Results are kept where there is somebody to keep them.
fn check_shuffle(kind: ShuffleServiceKind, services: u32) -> Result<(), String> {
    match (kind, services) {
        (ShuffleServiceKind::External, 0) => {
            Err("shuffle.service=external needs somebody who keeps results: add --shuffle-services N"
                .to_owned())
        }
        (ShuffleServiceKind::TaskManager, 1..) => {
            Err(format!("--shuffle-services {services} does nothing without --set shuffle.service=external"))
        }
        _ => Ok(()),
    }
}

/// The printed lines, and what was collected.
fn show_results(out: &Path, mut line: impl FnMut(String)) -> Result<(), ResultError> {
    results::printed(out, &mut line)?;
    for Collection { name, records, record_type } in results::collections(out)? {
        line(format!("{records} records of type {record_type} were collected as '{name}'"));
    }
    Ok(())
}

/// What is in a directory, for people.
fn contents(out: &Path) -> String {
    let (mut files, mut bytes) = (0, 0);
    let mut directories = vec![out.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => directories.push(entry.path()),
                Ok(metadata) => {
                    files += 1;
                    bytes += metadata.len();
                }
                Err(_) => {}
            }
        }
    }
    format!("{files} files, {bytes} bytes in {}", out.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connectors::NumberSequenceSource;
    use crate::runtime::MiniCluster;

    #[test]
    fn printed_lines_are_shown_and_collected_records_are_counted() {
        let program = Program::new().register("results", "Prints and collects.", |env, _| {
            let numbers = env.from_source("numbers", NumberSequenceSource::new(7, 10, 1));
            numbers.print();
            numbers.collect("numbers");
            numbers.filter(|_| false).map(|number| number.to_string()).collect("none");
            Ok(())
        });
        let result = MiniCluster::new(program).run("results").unwrap();
        let mut lines = Vec::new();
        show_results(result.output(), |line| lines.push(line)).unwrap();
        let collected = [
            "0 records of type alloc::string::String were collected as 'none'",
            "3 records of type i64 were collected as 'numbers'",
        ];
        assert_eq!(lines, [&["7", "8", "9"][..], &collected].concat());
    }
}
