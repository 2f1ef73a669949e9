//! A whole cluster inside this operating-system process, over real sockets and real files: for tests
//! of jobs, and for programs that run one. It checks everything before it starts anything, runs one job
//! and leaves nothing but its output.

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::actor::ExitStatus;
use crate::api::{JobError, Program, StreamExecutionEnvironment};
use crate::config::{ConfigError, Configuration, JobArguments, ShuffleServiceKind};
use crate::ids::ProcessId;
use crate::message::{Accumulators, JobOutcome};
use crate::note::Note;

use super::directories::{WorkingDirectory, keep_apart, remove_pending, volumes};
use super::start::{boot, check_job};
use super::{Observer, ProcessOptions, RunningProcess};

mod keeper;
mod keepers;
mod result;
#[cfg(test)]
mod tests;

use keepers::Keepers;
pub use result::{JobExecutionError, JobExecutionResult};

/// Processes of one kind.
const PROCESSES_MAX: u32 = 256;

/// How long a process may wait for the high-availability process: both are here.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs the job that `describe` describes, as a job function does, on a [`MiniCluster`] with two
/// TaskManagers, and blocks until it has ended.
///
/// ```
/// use revenant::connectors::NumberSequenceSource;
///
/// let result = revenant::runtime::run(|env| {
///     env.from_source("numbers", NumberSequenceSource::new(0, 10, 2)).filter(|n| n % 3 == 0).print();
///     Ok(())
/// })?;
/// assert_eq!(result.printed().len(), 4);
/// # Ok::<(), revenant::runtime::JobExecutionError>(())
/// ```
pub fn run(
    describe: impl Fn(&mut StreamExecutionEnvironment) -> Result<(), JobError> + Send + Sync + 'static,
) -> Result<JobExecutionResult, JobExecutionError> {
    let program = Program::new().register("job", "The job of this program.", move |env, _| describe(env));
    MiniCluster::new(program).run("job")
}

/// A cluster inside this operating-system process (Flink's class of this name): a high-availability
/// service, a JobManager and TaskManagers, each with a port and actors of its own. A JobManager or
/// TaskManager that ends by itself is started again, a few times. A program that is killed leaves the
/// working files, below the directory that [`Self::temporary_directory`] says.
///
/// ```
/// use revenant::api::{JobError, Program};
/// use revenant::config::JobArguments;
/// use revenant::connectors::NumberSequenceSource;
/// use revenant::runtime::MiniCluster;
///
/// let program = Program::new().register("sum", "Adds numbers up.", |env, job| {
///     let to = job.get("to", 10, "a whole number from 0", |&to: &i64| to >= 0)?;
///     let numbers = env.from_source("numbers", NumberSequenceSource::new(0, to, 4)).set_parallelism(2);
///     numbers.full_window_partition().reduce(|a, b| a + b).collect("sums");
///     Ok(())
/// });
/// let result = MiniCluster::new(program)
///     .task_managers(1)
///     .set("taskmanager.numberOfTaskSlots", "2")?
///     .run(JobArguments::new("sum").with("to", 100))?;
/// assert_eq!(result.collected::<i64>("sums")?.iter().sum::<i64>(), 4950);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct MiniCluster {
    program: Arc<Program>,
    config: Configuration,
    task_managers: u32,
    shuffle_services: Option<u32>,
    input: Option<PathBuf>,
    output: Option<PathBuf>,
    temporary: PathBuf,
}

impl MiniCluster {
    /// A cluster for the jobs of a program, with two TaskManagers and Flink's configuration but for
    /// faster heartbeats and registrations: without job recovery and without restarts.
    pub fn new(program: impl Into<Arc<Program>>) -> Self {
        let config = Configuration {
            registration_retry: Duration::from_millis(100),
            heartbeat_interval: Duration::from_secs(1),
            heartbeat_timeout: Duration::from_secs(10),
            ..Configuration::default()
        };
        Self {
            program: program.into(),
            config,
            task_managers: 2,
            shuffle_services: None,
            input: None,
            output: None,
            temporary: std::env::temp_dir(),
        }
    }

    /// Number of TaskManagers, from 1 to 256.
    #[must_use]
    pub fn task_managers(mut self, count: u32) -> Self {
        self.task_managers = count;
        self
    }

    /// Number of shuffle services, up to 256. Without it: one with `shuffle.service` = `external`,
    /// otherwise none.
    #[must_use]
    pub fn shuffle_services(mut self, count: u32) -> Self {
        self.shuffle_services = Some(count);
        self
    }

    /// Sets a configuration option of all processes.
    pub fn set(mut self, key: &str, value: &str) -> Result<Self, ConfigError> {
        self.config.set(key, value)?;
        Ok(self)
    }

    /// The directory that sources read from.
    #[must_use]
    pub fn input(mut self, directory: impl Into<PathBuf>) -> Self {
        self.input = Some(directory.into());
        self
    }

    /// The directory for the job's output, new or empty, which is kept. Without it, the output goes
    /// with the result.
    #[must_use]
    pub fn output(mut self, directory: impl Into<PathBuf>) -> Self {
        self.output = Some(directory.into());
        self
    }

    /// Where the cluster's working files lie while it runs, each run's in a directory of its own.
    /// Without it, where the system keeps temporary files.
    #[must_use]
    pub fn temporary_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.temporary = directory.into();
        self
    }

    /// Runs a job and blocks until it has ended. Needs no asynchronous runtime, and may be called inside
    /// of one, whose thread it then blocks.
    pub fn run(&self, job: impl Into<JobArguments>) -> Result<JobExecutionResult, JobExecutionError> {
        let job = job.into();
        let name = job.name.clone();
        let run = || {
            let runtime =
                tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(
                    |error| JobExecutionError::Cluster {
                        job: name,
                        reason: format!("the system gives no threads: {error}"),
                    },
                )?;
            let result = runtime.block_on(self.execute(job));
            runtime.shutdown_background();
            result
        };
        // A thread that is inside of a runtime must not enter another one.
        std::thread::scope(|scope| match scope.spawn(run).join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }

    /// Runs a job until it has ended. Needs a tokio runtime with time and network. Whoever drops it
    /// ends the cluster at once.
    pub async fn execute(
        &self,
        job: impl Into<JobArguments>,
    ) -> Result<JobExecutionResult, JobExecutionError> {
        let job = job.into();
        self.check(&job).map_err(JobExecutionError::Refused)?;
        let output = match &self.output {
            Some(given) => WorkingDirectory::given("the output directory", given),
            None => WorkingDirectory::temporary(&self.temporary),
        }
        .map_err(JobExecutionError::Refused)?;
        let storage = WorkingDirectory::temporary(&self.temporary).map_err(JobExecutionError::Refused)?;
        let started = Instant::now();
        let config = Configuration { job: Some(job.clone()), ..self.config.clone() };
        let cluster = Cluster { options: self, config, storage: storage.path(), output: output.path() };
        let ended = cluster.run().await;
        remove_pending(output.path());
        drop(storage);
        let net_runtime = started.elapsed();
        match ended {
            Ok(End { status: ExitStatus::Success, accumulators, restarts }) => {
                Ok(JobExecutionResult::new(job.name, net_runtime, accumulators, restarts, output)?)
            }
            Ok(End { status: ExitStatus::Failure(reason), .. }) => {
                Err(JobExecutionError::Failed { job: job.name, reason })
            }
            Ok(End { status: ExitStatus::Canceled, .. }) => {
                Err(JobExecutionError::Canceled { job: job.name })
            }
            Err(reason) => Err(JobExecutionError::Cluster { job: job.name, reason }),
        }
    }

    /// Whether the job can run on this cluster.
    fn check(&self, job: &JobArguments) -> Result<(), String> {
        if !(1..=PROCESSES_MAX).contains(&self.task_managers) {
            let count = self.task_managers;
            return Err(format!("{count} TaskManagers are none or too many: right is 1 to {PROCESSES_MAX}"));
        }
        match (self.config.shuffle_service, self.shuffle_services) {
            (ShuffleServiceKind::External, Some(0)) => {
                return Err(
                    "shuffle.service = external needs a shuffle service that keeps results".to_owned()
                );
            }
            (ShuffleServiceKind::TaskManager, Some(1..)) => {
                return Err("shuffle services do nothing without shuffle.service = external".to_owned());
            }
            (_, Some(count)) if count > PROCESSES_MAX => {
                return Err(format!("{count} shuffle services are too many: right is up to {PROCESSES_MAX}"));
            }
            _ => {}
        }
        check_job(&self.program, &self.config, job)?;
        let given = [("the input directory", &self.input), ("the output directory", &self.output)];
        let given: Vec<(&str, &Path)> =
            given.into_iter().filter_map(|(what, path)| Some((what, path.as_deref()?))).collect();
        keep_apart(&given)?;
        if let Some(input) = &self.input {
            fs::read_dir(input)
                .map_err(|error| format!("the input directory {}: {error}", input.display()))?;
        }
        Ok(())
    }

    /// The processes that are started again when they end by themselves.
    fn members(&self) -> impl Iterator<Item = ProcessId> {
        let services = match self.config.shuffle_service {
            ShuffleServiceKind::External => self.shuffle_services.unwrap_or(1),
            ShuffleServiceKind::TaskManager => 0,
        };
        let task_managers = (1..=self.task_managers).map(ProcessId::TaskManager);
        let services = (1..=services).map(ProcessId::ShuffleService);
        std::iter::once(ProcessId::JOB_MANAGER).chain(task_managers).chain(services)
    }
}

/// How a job ended.
struct End {
    status: ExitStatus,
    accumulators: Accumulators,
    restarts: BTreeMap<ProcessId, u32>,
}

/// A cluster for one run.
struct Cluster<'a> {
    options: &'a MiniCluster,
    config: Configuration,
    storage: &'a Path,
    output: &'a Path,
}

impl Cluster<'_> {
    /// Runs the job; the error is one of the cluster. All processes are gone when this returns.
    async fn run(&self) -> Result<End, String> {
        let start = async |options| RunningProcess::start(options).await.map_err(|error| error.to_string());
        let high_availability = start(self.process(ProcessId::HighAvailability, None, None)).await?;
        let address = Some(high_availability.endpoint());
        let outcome = Arc::new(Mutex::new(None));
        let client = start(self.process(ProcessId::Client, address, Some(reader(&outcome)))).await?;
        let (stop, stopped) = watch::channel(false);
        let keep = |process| keeper::keep(self.process(process, address, None), stopped.clone());
        let mut members: Keepers = self.options.members().map(keep).collect();
        let mut restarts = BTreeMap::new();
        let status = loop {
            tokio::select! {
                biased;
                status = client.ended() => break Ok(status),
                status = high_availability.ended() => {
                    break Err(format!("the high-availability process ended: {status:?}"));
                }
                Some(kept) = members.next() => match kept {
                    Ok((process, count)) => drop(restarts.insert(process, count)),
                    Err(error) => break Err(error.to_string()),
                }
            }
        };
        stop.send_replace(true);
        while let Some(kept) = members.next().await {
            restarts.extend(kept);
        }
        client.shut_down().await;
        high_availability.shut_down().await;
        restarts.retain(|_, count| *count > 0);
        let accumulators = match outcome.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(JobOutcome::Finished { accumulators, .. }) => accumulators,
            _ => Accumulators::new(),
        };
        Ok(End { status: status?, accumulators, restarts })
    }

    fn process(
        &self,
        process: ProcessId,
        high_availability: Option<SocketAddr>,
        observer: Option<Observer>,
    ) -> ProcessOptions {
        ProcessOptions {
            boot: boot(process, self.config.clone()),
            engine: Arc::new(Arc::clone(&self.options.program)),
            volumes: volumes(process, self.storage, Some(self.output), self.options.input.as_deref()),
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            high_availability,
            patience: PATIENCE,
            record: None,
            observer,
        }
    }
}

/// Keeps what the client reads of the job's end.
fn reader(outcome: &Arc<Mutex<Option<JobOutcome>>>) -> Observer {
    let outcome = Arc::clone(outcome);
    Arc::new(move |_, note| {
        if let Note::ResultRead { outcome: read } = note {
            *outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(read.clone());
        }
    })
}
