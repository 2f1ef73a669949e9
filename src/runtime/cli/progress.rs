//! Shows how far the job is: a bar on a terminal, a line for each change of status elsewhere.

use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::message::JobStatus;
use crate::note::Note;

use super::super::Observer;

#[derive(Clone)]
pub struct Progress {
    bar: ProgressBar,
    last: Arc<Mutex<Option<JobStatus>>>,
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
        Self { bar, last: Arc::default() }
    }

    /// To be told of the client's notes.
    pub fn observer(&self) -> Observer {
        let progress = self.clone();
        Arc::new(move |_, note| progress.see(note))
    }

    fn see(&self, note: &Note) {
        let Note::Progress { status, total, finished, running, .. } = note else { return };
        self.bar.set_length(u64::from(*total));
        self.bar.set_position(u64::from(*finished));
        let name = format!("{status:?}").to_lowercase();
        self.bar.set_message(format!("{name}, {running} running"));
        let changed =
            self.last.lock().unwrap_or_else(PoisonError::into_inner).replace(*status) != Some(*status);
        if changed && !std::io::stderr().is_terminal() {
            let _ = writeln!(std::io::stderr(), "{name}: {finished} of {total} tasks finished");
        }
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
