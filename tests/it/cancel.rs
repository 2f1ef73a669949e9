//! A job that is not wanted any more: cancelled by Ctrl-C, or from elsewhere.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{Directory, failure, revenant};

const LONG: Duration = Duration::from_mins(1);

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_none())
}

/// Kills what a test leaves.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn ctrl_c_cancels_a_local_job_and_leaves_no_output() {
    let directory = Directory::new("ctrl-c");
    let (out, storage) = (directory.path("out"), directory.path("storage"));
    let mut command = revenant(&["local", "lineitem-by-ship-date", "--task-managers", "1"]);
    command.arg("--out").arg(&out).arg("--storage").arg(&storage);
    command.args(["--arg", "scale-factor=0.05", "--arg", "splits=16"]);
    let run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    wait_for("the job never began to write", || storage.join("ha/default/job-events").exists());
    let interrupted = Command::new("kill").args(["-INT", &run.id().to_string()]).status();
    assert!(interrupted.expect("kill can be run").success());
    let output = run.wait_with_output().expect("it can be waited for");
    let (text, code) = failure(&output);
    assert_eq!(code, Some(130), "{text}");
    assert!(text.contains("is being cancelled"), "{text}");
    assert!(is_empty(&out), "{out:?}");
    assert!(is_empty(&storage.join("ha/default/job-events")), "the log is deleted");
}

#[test]
fn a_cluster_started_by_hand_is_told_to_cancel_its_job() {
    let directory = Directory::new("cancel");
    let storage = directory.path("storage");
    let address = {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        free.local_addr().expect("it is bound").to_string()
    };
    let started = |mut command: Command| {
        command.arg("--storage").arg(&storage).args(["--set", "cluster.registration.error-delay=100 ms"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Running(command.spawn().expect("the program starts"))
    };
    let _ha = started(revenant(&["high-availability", "--listen", &address]));
    // Without a TaskManager the job waits for ever.
    let mut command = revenant(&["job-manager", "lineitem-by-ship-date", "--ha", &address, "--out"]);
    command.arg(directory.path("out"));
    let mut job_manager = started(command);
    let cancel = ["cancel", "--ha", &address, "--set", "cluster.registration.error-delay=100 ms"];
    let cancel = revenant(&cancel).output().expect("the program starts");
    assert!(cancel.status.success(), "{}", failure(&cancel).0);
    assert_eq!(String::from_utf8_lossy(&cancel.stdout), "the job was cancelled\n");
    wait_for("the JobManager goes on", || job_manager.0.try_wait().expect("it can be asked").is_some());
    let status = job_manager.0.try_wait().expect("it can be asked");
    assert!(status.is_some_and(|status| status.success()), "{status:?}");
}

#[test]
fn whoever_cancels_a_cluster_that_is_not_there_is_told_so() {
    let output = revenant(&["cancel", "--ha", "127.0.0.1:1", "--patience", "0"]).output();
    let (text, code) = failure(&output.expect("the program starts"));
    assert!(text.contains("the high-availability process at 127.0.0.1:1 was not reached"), "{text}");
    assert_eq!(code, Some(2));
}
