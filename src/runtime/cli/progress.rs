//! Shows how far the job is: a bar on a terminal, a line for each change of status elsewhere. Says
//! when its progress is not recorded, for then a crash of the JobManager would cost it.

use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::message::{Accumulators, JobOutcome, JobStatus, RecordingStatus};
use crate::note::Note;

use super::super::Observer;

#[derive(Clone)]
pub struct Progress {
    bar: ProgressBar,
    last: Arc<Mutex<Option<(JobStatus, RecordingStatus)>>>,
    accumulators: Arc<Mutex<Accumulators>>,
}

impl Progress {
    pub fn new(job: &str) -> Self {
        let bar = ProgressBar::new(0);
        if let Ok(style) =
            ProgressStyle::with_template("{prefix} [{bar:30}] {pos}/{len} tasks, {msg} ({elapsed})")
        {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(job.to_owned());
        bar.set_message("starting");
        bar.enable_steady_tick(Duration::from_millis(500));
        Self { bar, last: Arc::default(), accumulators: Arc::default() }
    }

    /// To be told of the client's notes.
    pub fn observer(&self) -> Observer {
        let progress = self.clone();
        Arc::new(move |_, note| progress.see(note))
    }

    /// The job's sums, once it has finished.
    pub fn accumulators(&self) -> Accumulators {
        self.accumulators.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn see(&self, note: &Note) {
        if let Note::ResultRead { outcome: JobOutcome::Finished { accumulators, .. } } = note {
            self.accumulators.lock().unwrap_or_else(PoisonError::into_inner).clone_from(accumulators);
        }
        let Note::Progress { status, total, finished, running, recording } = note else { return };
        self.bar.set_length(u64::from(*total));
        self.bar.set_position(u64::from(*finished));
        let name = format!("{status:?}").to_lowercase();
        let recorded = unrecorded(recording);
        self.bar.set_message(format!("{name}, {running} running{recorded}"));
        let now = (*status, recording.clone());
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.as_ref() != Some(&now) && !std::io::stderr().is_terminal() {
            let _ = writeln!(std::io::stderr(), "{name}: {finished} of {total} tasks finished{recorded}");
        }
        *last = Some(now);
    }

    /// A line for people, beside the bar.
    pub fn say(&self, line: &str) {
        self.bar.suspend(|| {
            let _ = writeln!(std::io::stderr(), "{line}");
        });
    }

    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}

/// What is added while the event store fails.
fn unrecorded(recording: &RecordingStatus) -> String {
    match recording {
        RecordingStatus::Off | RecordingStatus::On => String::new(),
        RecordingStatus::Failing(reason) => format!(", not recorded: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_event_store_shows_with_its_reason_and_nothing_else_does() {
        let failing = RecordingStatus::Failing("no space left".to_owned());
        assert_eq!(unrecorded(&failing), ", not recorded: no space left");
        assert_eq!(unrecorded(&RecordingStatus::On) + &unrecorded(&RecordingStatus::Off), "");
    }
}
