//! Starts the processes of a local cluster and starts them again when they die. It knows nothing of
//! the job: a process that ends in an orderly way is left alone, one that cannot start at all ends
//! the cluster.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tokio::process::{Child, Command};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// A process that dies sooner than this after its start has not really started.
const START_MIN: Duration = Duration::from_secs(2);
/// That many false starts in a row end the cluster.
const FALSE_STARTS_MAX: u32 = 5;
const RESTART_PAUSE: Duration = Duration::from_millis(200);
const LOG_LINES: usize = 12;

/// A process to keep alive.
#[derive(Clone, Debug)]
pub struct ChildSpec {
    pub name: String,
    pub arguments: Vec<OsString>,
}

#[derive(Debug, thiserror::Error)]
pub enum SupervisorError {
    #[error("cannot start {name}: {error}")]
    Spawn { name: String, error: io::Error },
    #[error("{name} does not stay up ({status}); the end of its log {log}:\n{tail}")]
    KeepsDying { name: String, status: ExitStatus, log: PathBuf, tail: String },
}

/// The processes under watch. Dropping it kills them.
pub struct Supervisor {
    stop: watch::Sender<bool>,
    keepers: Vec<(String, JoinHandle<u32>)>,
    errors: mpsc::Receiver<SupervisorError>,
}

impl Supervisor {
    /// Starts all; each one's log goes to `<storage>/logs/<name>.log`, the pid of its present
    /// incarnation to `<storage>/pids/<name>`.
    pub fn start(program: &Path, storage: &Path, children: Vec<ChildSpec>) -> io::Result<Self> {
        fs::create_dir_all(storage.join("logs"))?;
        fs::create_dir_all(storage.join("pids"))?;
        let (stop, _) = watch::channel(false);
        let (report, errors) = mpsc::channel(children.len().max(1));
        let mut keepers = Vec::new();
        for spec in children {
            let name = spec.name.clone();
            let keeper = Keeper { program: program.to_owned(), storage: storage.to_owned(), spec };
            keepers.push((name, tokio::spawn(keeper.keep(stop.subscribe(), report.clone()))));
        }
        Ok(Self { stop, keepers, errors })
    }

    /// Waits until a process cannot be kept alive; for ever if all is well.
    pub async fn failed(&mut self) -> SupervisorError {
        match self.errors.recv().await {
            Some(error) => error,
            None => std::future::pending().await,
        }
    }

    /// Lets the process `patient` end by itself for a while, then kills all; gives how often each
    /// process was started again.
    pub async fn stop(mut self, patient: Option<(&str, Duration)>) -> Vec<(String, u32)> {
        let mut restarts = Vec::new();
        let mut keepers = std::mem::take(&mut self.keepers);
        if let Some((name, patience)) = patient
            && let Some(position) = keepers.iter().position(|(other, _)| other == name)
            && let Ok(Ok(count)) = timeout(patience, &mut keepers[position].1).await
        {
            restarts.push((name.to_owned(), count));
            keepers.remove(position);
        }
        self.stop.send_replace(true);
        for (name, keeper) in keepers {
            restarts.push((name, keeper.await.unwrap_or(0)));
        }
        restarts
    }
}

struct Keeper {
    program: PathBuf,
    storage: PathBuf,
    spec: ChildSpec,
}

impl Keeper {
    async fn keep(self, mut stop: watch::Receiver<bool>, report: mpsc::Sender<SupervisorError>) -> u32 {
        let name = &self.spec.name;
        let (mut restarts, mut false_starts) = (0, 0);
        loop {
            let started = Instant::now();
            let mut child = match self.spawn() {
                Ok(child) => child,
                Err(error) => {
                    let _ = report.send(SupervisorError::Spawn { name: name.clone(), error }).await;
                    return restarts;
                }
            };
            // Waiting for the child would close this pipe.
            let lifeline = child.stdin.take();
            let told = async { drop(stop.wait_for(|stop| *stop).await) };
            let status = tokio::select! {
                biased;
                () = told => {
                    let _ = child.kill().await;
                    return restarts;
                }
                status = child.wait() => status,
            };
            drop(lifeline);
            let status = match status {
                Ok(status) if status.success() => return restarts,
                Ok(status) => status,
                Err(error) => {
                    let _ = report.send(SupervisorError::Spawn { name: name.clone(), error }).await;
                    return restarts;
                }
            };
            false_starts = if started.elapsed() < START_MIN { false_starts + 1 } else { 0 };
            // Wrong usage does not get better by trying again.
            if status.code() == Some(2) || false_starts >= FALSE_STARTS_MAX {
                let (log, name) = (self.log(), name.clone());
                let tail = tail(&log);
                let _ = report.send(SupervisorError::KeepsDying { name, status, log, tail }).await;
                return restarts;
            }
            tracing::warn!("{name} died ({status}); it is started again");
            restarts += 1;
            sleep(RESTART_PAUSE).await;
        }
    }

    fn spawn(&self) -> io::Result<Child> {
        let log = OpenOptions::new().create(true).append(true).open(self.log())?;
        let child = Command::new(&self.program)
            .args(&self.spec.arguments)
            // The child ends when this pipe does, so that none outlives this process.
            .stdin(Stdio::piped())
            .stdout(Stdio::from(File::try_clone(&log)?))
            .stderr(Stdio::from(log))
            .kill_on_drop(true)
            // Ctrl-C at a terminal is for this process to answer.
            .process_group(0)
            .spawn()?;
        if let Some(pid) = child.id() {
            tracing::debug!("{} runs as process {pid}", self.spec.name);
            let path = self.storage.join("pids").join(&self.spec.name);
            let new = path.with_extension("new");
            fs::write(&new, pid.to_string())?;
            fs::rename(new, path)?;
        }
        Ok(child)
    }

    fn log(&self) -> PathBuf {
        self.storage.join("logs").join(format!("{}.log", self.spec.name))
    }
}

fn tail(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(LOG_LINES);
    lines[from..].iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Storage(PathBuf);

    impl Storage {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("revenant-keeper-{}-{name}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            Self(path)
        }

        fn start(&self, script: &str) -> Supervisor {
            let arguments = vec!["-c".into(), script.replace("DIR", &self.0.display().to_string()).into()];
            let child = ChildSpec { name: "child".to_owned(), arguments };
            Supervisor::start(Path::new("/bin/sh"), &self.0, vec![child]).unwrap()
        }
    }

    impl Drop for Storage {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const LONG: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn a_child_that_dies_is_started_again_until_it_ends_in_order() {
        let storage = Storage::new("again");
        let supervisor = storage.start("echo x >> DIR/runs; test $(wc -l < DIR/runs) -ge 3");
        let restarts = supervisor.stop(Some(("child", LONG))).await;
        assert_eq!(restarts, [("child".to_owned(), 2)]);
        assert!(fs::read_to_string(storage.0.join("pids/child")).unwrap().parse::<u32>().is_ok());
    }

    #[tokio::test]
    async fn a_child_that_cannot_start_is_an_error_with_the_end_of_its_log() {
        let storage = Storage::new("keeps-dying");
        let mut supervisor = storage.start("echo no luck >&2; exit 1");
        let error = timeout(LONG, supervisor.failed()).await.expect("must be noticed").to_string();
        assert!(
            error.contains("child does not stay up (exit status: 1)") && error.contains("no luck"),
            "{error}"
        );
        assert_eq!(supervisor.stop(None).await, [("child".to_owned(), FALSE_STARTS_MAX - 1)]);
    }

    #[tokio::test]
    async fn wrong_usage_is_not_tried_twice() {
        let storage = Storage::new("usage");
        let mut supervisor = storage.start("exit 2");
        assert!(timeout(LONG, supervisor.failed()).await.is_ok());
        assert_eq!(supervisor.stop(None).await, [("child".to_owned(), 0)]);
    }

    #[tokio::test]
    async fn the_childs_standard_input_stays_open_while_it_runs() {
        let storage = Storage::new("lifeline");
        // A shell gives what it starts in the background another standard input, unless it is told.
        let script = "exec 3<&0; (cat <&3; touch DIR/orphaned) & sleep 1; test ! -e DIR/orphaned";
        let supervisor = storage.start(script);
        assert_eq!(supervisor.stop(Some(("child", LONG))).await, [("child".to_owned(), 0)]);
    }

    #[tokio::test]
    async fn stopping_kills_what_runs() {
        let storage = Storage::new("kill");
        let supervisor = storage.start("touch DIR/alive; sleep 60; touch DIR/survived");
        while !storage.0.join("alive").exists() {
            sleep(Duration::from_millis(10)).await;
        }
        let restarts = timeout(LONG, supervisor.stop(None)).await.expect("must stop");
        assert_eq!(restarts, [("child".to_owned(), 0)]);
    }
}
