//! L4: nothing of the job outlives it: no partition or spill file on a TaskManager, no file of the
//! job event store, no pending file of a sink. (The job result that HA keeps is meant to stay.) A process
//! that died and did not come back, or stands still for good, cannot tidy its own volumes; and what a
//! broken disk refused to delete, or to list for it, stays: that is said in a warning, and not tried again.

use revenant::disk::Volume;
use revenant::ids::ProcessId;

use super::{History, Violation};
use crate::trace::TraceKind;

pub fn check(history: &History) -> Result<(), Violation> {
    let outcome = history.outcome;
    let fail = |message| Err(history.violation("L4", outcome.trace.len(), message));
    let is_pending = |path: &&String| path.split('/').any(|part| part == ".pending");
    let mut pending = outcome.output.keys().filter(is_pending);
    if let Some(path) = pending.find(|path| !was_refused(history, Volume::Output, path)) {
        return fail(format!("a pending file was left: {}:{path}", Volume::Output));
    }
    for (owner, volume, path) in &outcome.leftovers {
        if owner.is_some_and(|process| is_out_of_action(history, process))
            || was_refused(history, *volume, path)
        {
            continue;
        }
        let owner = owner.map_or_else(|| "shared".to_owned(), |process| process.to_string());
        match volume {
            _ if path.split('/').any(|part| part == "job-events") => {
                return fail(format!("a file of the job event store was left: {owner} {volume}:{path}"));
            }
            Volume::Local | Volume::Scratch => {
                return fail(format!("a file was left: {owner} {volume}:{path}"));
            }
            Volume::Ha | Volume::Output | Volume::Input => {}
        }
    }
    Ok(())
}

/// Whether a broken disk refused to delete any output.
pub fn may_stay(history: &History) -> bool {
    let is_pending = |path: &&String| path.split('/').any(|part| part == ".pending");
    history.outcome.output.keys().filter(is_pending).any(|path| was_refused(history, Volume::Output, path))
}

/// Whether a fault of the disk kept somebody from deleting the file, or from finding it.
fn was_refused(history: &History, volume: Volume, path: &str) -> bool {
    history.outcome.trace.iter().any(|event| match &event.what {
        TraceKind::DiskRefused { error } if error.volume == volume => match error.operation.as_str() {
            "delete" => error.path == path,
            "list" => path.starts_with(&error.path),
            _ => false,
        },
        _ => false,
    })
}

/// Whether the process is dead or stands still at the end. One that ended by itself could have tidied.
fn is_out_of_action(history: &History, process: ProcessId) -> bool {
    let of_process = history.outcome.trace.iter().rev().filter(|event| event.process == process);
    let last = of_process.map(|event| &event.what).find(|what| {
        matches!(
            what,
            TraceKind::Started
                | TraceKind::Crashed { .. }
                | TraceKind::Exited { .. }
                | TraceKind::Paused
                | TraceKind::Resumed
        )
    });
    matches!(last, Some(TraceKind::Crashed { .. } | TraceKind::Paused))
}

#[cfg(test)]
mod tests {
    use revenant::disk::{DiskError, DiskErrorKind};

    use super::*;
    use crate::oracle::testing::{Story, caught, passes};

    #[test]
    fn the_job_result_may_stay_and_nothing_else() {
        let mut story = Story::new();
        story.leave(None, Volume::Ha, "default/job-result").output("part-0.csv", b"");
        passes(check, &story);

        let mut story = Story::new();
        story.leave(Some(ProcessId::TaskManager(2)), Volume::Local, "d0/v0.0.e1a1");
        caught(check, &story, "a file was left: task-manager-2 local:d0/v0.0.e1a1");

        let mut story = Story::new();
        story.leave(None, Volume::Ha, "default/job-events/events.1");
        caught(check, &story, "a file of the job event store was left: shared ha:");

        let mut story = Story::new();
        story.output(".pending/v1.0.e1a1", b"1");
        caught(check, &story, "a pending file was left: output:.pending/v1.0.e1a1");
    }

    #[test]
    fn what_a_disk_refused_to_delete_may_stay_and_nothing_else() {
        let refused = |operation: &str, at: &str| {
            let (kind, volume) = (DiskErrorKind::Other, Volume::Output);
            let (operation, path) = (operation.to_owned(), at.to_owned());
            let error = DiskError { kind, operation, volume, path, message: "broken".to_owned() };
            let mut story = Story::new();
            story.happens(ProcessId::JOB_MANAGER, TraceKind::DiskRefused { error });
            story.output(".pending/v1.0.e1a1", b"1");
            story
        };
        passes(check, &refused("delete", ".pending/v1.0.e1a1"));
        passes(check, &refused("list", ".pending"));
        caught(check, &refused("delete", ".pending/v1.1.e1a1"), "a pending file was left");
        caught(check, &refused("sync", ".pending/v1.0.e1a1"), "a pending file was left");
    }

    #[test]
    fn who_is_dead_or_stands_still_is_excused_and_nobody_else() {
        let worker = ProcessId::TaskManager(2);
        let left = |last: &[TraceKind]| {
            let mut story = Story::new();
            for what in last {
                story.happens(worker, what.clone());
            }
            story.leave(Some(worker), Volume::Local, "d0/v0.0.e1a1");
            story
        };
        let crashed = TraceKind::Crashed { point: None, machine: false };
        passes(check, &left(&[TraceKind::Started, crashed.clone()]));
        passes(check, &left(&[TraceKind::Started, TraceKind::Paused]));
        for last in [
            &[crashed, TraceKind::Started][..],
            &[TraceKind::Paused, TraceKind::Resumed],
            &[TraceKind::Started, TraceKind::Exited { failure: None }],
        ] {
            caught(check, &left(last), "a file was left: task-manager-2");
        }
    }
}
