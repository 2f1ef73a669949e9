//! A job outlives its JobManager: killed in mid-job, it leaves the same output as a run without a
//! crash, does not begin anew, and every actor of both incarnations can be replayed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use revenant::actor::{Actor, Effect};
use revenant::ids::{ActorId, ExecutionVertexId};
use revenant::jobs;
use revenant::note::Note;
use revenant::process::{actors, task_actor};
use revenant::runtime::recording::{self, Recording, RecordingError};

use crate::harness::{Directory, revenant};

const JOB: &str = "lineitem-by-ship-date";

pub fn command(directory: &Directory, run: &str) -> Command {
    let (out, storage) = (directory.path(&format!("{run}-out")), directory.path(&format!("{run}-storage")));
    let mut command = revenant(&["local", JOB, "--task-managers", "2"]);
    command.arg("--out").arg(out).arg("--storage").arg(storage);
    for setting in [
        "job-event.store.write-buffer.flush-interval=20 ms",
        "execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task=256 kb",
    ] {
        command.args(["--set", setting]);
    }
    command.arg("--record").arg(directory.path(&format!("{run}-record")));
    command.args(["--arg", "scale-factor=0.05", "--arg", "splits=16"]);
    command
}

pub fn successful(output: Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// All files below, by path.
pub fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(next) = directories.pop() {
        for entry in fs::read_dir(next).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                directories.push(path);
            } else if let Ok(bytes) = fs::read(&path) {
                files.insert(path.strip_prefix(directory).expect("it is below").to_owned(), bytes);
            }
        }
    }
    files
}

/// The rows of all files, sorted.
pub fn rows(files: &BTreeMap<PathBuf, Vec<u8>>) -> Vec<String> {
    let text = |bytes: &Vec<u8>| String::from_utf8(bytes.clone()).expect("rows are text");
    let mut rows: Vec<String> =
        files.values().flat_map(|bytes| text(bytes).lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    rows.sort();
    rows
}

/// Waits until some of the job's finishes are durable.
pub fn wait_for_progress(storage: &Path) {
    let started = Instant::now();
    loop {
        let logs = files(&storage.join("ha"));
        let events: usize = logs
            .iter()
            .filter(|(path, _)| path.components().any(|part| part.as_os_str() == "job-events"))
            .map(|(_, bytes)| bytes.len())
            .sum();
        if events > 600 {
            return;
        }
        assert!(started.elapsed() < Duration::from_mins(1), "no job event became durable");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Kills processes of the cluster, all at once.
pub fn kill(storage: &Path, processes: &[&str]) {
    let pid = |name: &&str| fs::read_to_string(storage.join("pids").join(name)).expect("it runs");
    let pids: Vec<String> = processes.iter().map(pid).collect();
    let killed = Command::new("kill").arg("-9").args(pids).status().expect("kill can be run");
    assert!(killed.success());
}

/// What all actors recorded but the client, which the program makes in a way of its own.
pub fn recordings(directory: &Path) -> Vec<Recording> {
    let read = |path: &PathBuf| match recording::read(&directory.join(path)) {
        Ok(recording) => Some(recording),
        // The actor was killed before it had recorded who it is.
        Err(RecordingError::Foreign { .. }) => None,
        Err(error) => panic!("a recording cannot be read: {error}"),
    };
    files(directory).keys().filter_map(read).filter(|r| r.origin.actor != ActorId::Client).collect()
}

/// What actors told the trace.
pub fn notes(recordings: &[Recording]) -> impl Iterator<Item = &Note> {
    let steps = recordings.iter().flat_map(|recording| &recording.steps);
    steps.flat_map(|step| &step.effects).filter_map(|effect| match effect {
        Effect::Note(note) => Some(note),
        _ => None,
    })
}

pub fn replay(recording: &Recording) {
    let program = Arc::new(jobs::registry());
    let origin = recording.origin.clone();
    let mut actor: Box<dyn Actor> = if let Some(task) = origin.task {
        task_actor(&origin.boot, &program, task)
    } else {
        let all = actors(&origin.boot, &program);
        let own = all.into_iter().find(|(id, _)| *id == origin.actor);
        own.expect("it was recorded, so there is such an actor").1
    };
    if let Err(mismatch) = recording.replay(actor.as_mut()) {
        panic!("{} of {}: {mismatch}", origin.actor, origin.boot.process);
    }
}

#[test]
fn a_killed_job_manager_changes_nothing_about_the_output() {
    let directory = Directory::new("recovery");
    successful(command(&directory, "calm").output().expect("the program starts"));
    let calm = rows(&files(&directory.path("calm-out")));
    assert!(!calm.is_empty());

    let run = command(&directory, "crash")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let storage = directory.path("crash-storage");
    wait_for_progress(&storage);
    kill(&storage, &["job-manager"]);
    let summary = successful(run.wait_with_output().expect("it can be waited for"));
    assert!(summary.contains("job-manager was started again 1 times"), "{summary}");
    let crashed = files(&directory.path("crash-out"));
    assert!(crashed.keys().all(|path| !path.starts_with(".pending")), "{:?}", crashed.keys());
    assert_eq!(rows(&crashed), calm);

    let recordings = recordings(&directory.path("crash-record"));
    let notes = || notes(&recordings);
    let kept: BTreeSet<ExecutionVertexId> = notes()
        .filter_map(|note| match note {
            Note::Recovered { token, kept, .. } if token.0 > 1 => Some(kept),
            _ => None,
        })
        .flatten()
        .map(|attempt| attempt.subtask)
        .collect();
    assert!(!kept.is_empty(), "the second leader began anew");
    let again = notes().filter_map(|note| match note {
        Note::Deployed { attempt, .. } if attempt.epoch.0 > 1 => Some(attempt.subtask),
        _ => None,
    });
    let again: BTreeSet<ExecutionVertexId> = again.collect();
    assert_eq!(kept.intersection(&again).next(), None, "a task that had finished was run again");
    recordings.iter().for_each(replay);
}
