//! What had finished outlives its TaskManager, too, if a shuffle service keeps it: JobManager and
//! TaskManager are killed together in mid-job, and nothing that was finished runs again.

use std::collections::BTreeSet;
use std::process::Stdio;

use revenant::ids::ProcessId;
use revenant::note::Note;

use crate::harness::Directory;
use crate::recovery::{command, files, kill, notes, recordings, replay, rows, successful, wait_for_progress};

#[test]
fn b41_nothing_finished_is_lost_with_a_job_manager_and_a_task_manager() {
    let directory = Directory::new("external-shuffle");
    successful(command(&directory, "calm").output().expect("the program starts"));
    let calm = rows(&files(&directory.path("calm-out")));
    assert!(!calm.is_empty());

    let run = command(&directory, "crash")
        .args(["--shuffle-services", "2", "--set", "shuffle.service=external"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let storage = directory.path("crash-storage");
    wait_for_progress(&storage);
    kill(&storage, &["job-manager", "task-manager-1"]);
    let summary = successful(run.wait_with_output().expect("it can be waited for"));
    for killed in ["job-manager", "task-manager-1"] {
        assert!(summary.contains(&format!("{killed} was started again 1 times")), "{summary}");
    }
    assert_eq!(rows(&files(&directory.path("crash-out"))), calm);

    let recordings = recordings(&directory.path("crash-record"));
    let recovered: Vec<_> = notes(&recordings)
        .filter_map(|note| match note {
            Note::Recovered { token, kept, reset } if token.0 > 1 => Some((kept, reset)),
            _ => None,
        })
        .collect();
    let [(kept, reset)] = recovered[..] else { panic!("{recovered:?}") };
    assert!(!kept.is_empty(), "the second leader began anew");
    assert_eq!(*reset, [], "a finish that was durable was taken back");
    let kept: BTreeSet<_> = kept.iter().map(|attempt| attempt.subtask).collect();
    let mut again = notes(&recordings).filter_map(|note| match note {
        Note::Deployed { attempt, .. } if attempt.epoch.0 > 1 => Some(attempt.subtask),
        _ => None,
    });
    assert_eq!(again.find(|subtask| kept.contains(subtask)), None, "it had finished");

    let keepers: BTreeSet<ProcessId> = recordings
        .iter()
        .filter(|recording| {
            let kept = |note: &Note| matches!(note, Note::PartitionFinished { .. });
            notes(std::slice::from_ref(*recording)).any(kept)
        })
        .map(|recording| recording.origin.boot.process)
        .collect();
    assert_eq!(keepers, [1, 2].map(ProcessId::ShuffleService).into(), "only services keep results");
    for process in keepers {
        let left = files(&storage.join("local").join(process.to_string()));
        assert!(left.is_empty(), "{process} left {:?}", left.keys());
    }
    recordings.iter().for_each(replay);
}
