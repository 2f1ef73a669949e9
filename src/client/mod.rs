//! The client: follows the leader, learns the job's result from the high-availability service and
//! ends with it (Flink's `ClusterClient`). It never decides anything about the job, asks for progress
//! only if it is told to, and once it is told to cancel the job says so to every leader until the
//! job has ended.

use std::time::Duration;

use crate::actor::{Actor, Boot, Event, ExitStatus, Outbox, Time, TimerId};
use crate::ids::{ActorId, Address, ProcessId, SessionId};
use crate::message::{
    CancelJob, JobOutcome, JobResult, JobStatusReport, LeaderInfo, Message, RequestJobStatus, WatchLeader,
};
use crate::note::Note;

#[cfg(test)]
mod tests;

const WATCH: TimerId = TimerId(1);
const PROGRESS: TimerId = TimerId(2);
const CANCEL: TimerId = TimerId(3);

/// Pause between two questions for progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// The actor of the client process.
#[derive(Debug)]
pub struct Client {
    session: SessionId,
    retry: Duration,
    /// A watcher that heard long nothing asks again: the answer may have been lost.
    watch_again: Duration,
    progress: bool,
    answered: bool,
    /// Whether the job is to be cancelled.
    cancel: bool,
    leader: Option<LeaderInfo>,
}

impl Client {
    /// With `progress`, asks the leader twice a second how far the job is and notes the answer.
    pub fn new(boot: &Boot, progress: bool) -> Self {
        Self {
            session: boot.session,
            retry: boot.config.registration_retry,
            watch_again: boot.config.session_timeout,
            progress,
            answered: false,
            cancel: false,
            leader: None,
        }
    }

    fn watch(&self, now: Time, out: &mut Outbox) {
        let watcher = Address::new(ProcessId::Client, ActorId::Client);
        out.send(Address::HIGH_AVAILABILITY, WatchLeader { watcher, session: self.session });
        out.set_timer(WATCH, now + if self.answered { self.watch_again } else { self.retry });
    }

    fn leader_changed(
        &mut self,
        now: Time,
        leader: Option<LeaderInfo>,
        result: Option<JobResult>,
        out: &mut Outbox,
    ) {
        if !self.answered {
            self.answered = true;
            out.set_timer(WATCH, now + self.watch_again);
        }
        self.leader = leader;
        if let Some(JobResult::Clean(outcome)) = &result {
            out.note(Note::ResultRead { outcome: outcome.clone() });
        }
        match result {
            Some(JobResult::Clean(JobOutcome::Finished { .. })) => out.exit(ExitStatus::Success),
            Some(JobResult::Clean(JobOutcome::Failed { reason })) => out.exit(ExitStatus::Failure(reason)),
            Some(JobResult::Clean(JobOutcome::Canceled)) => out.exit(ExitStatus::Canceled),
            Some(JobResult::Dirty(_)) | None if self.cancel => self.cancel(now, out),
            Some(JobResult::Dirty(_)) | None => {}
        }
    }

    /// Tells the leader, and the next one, and again after a pause: it may be about to become one, or
    /// die with the message.
    fn cancel(&mut self, now: Time, out: &mut Outbox) {
        self.cancel = true;
        if let Some(leader) = self.leader {
            out.send(Address::new(leader.process, ActorId::Master), CancelJob {});
        }
        out.set_timer(CANCEL, now + self.retry);
    }
}

impl Actor for Client {
    fn handle(&mut self, now: Time, event: Event, out: &mut Outbox) {
        match event {
            Event::Start => {
                self.watch(now, out);
                if self.progress {
                    out.set_timer(PROGRESS, now + PROGRESS_INTERVAL);
                }
            }
            Event::Timer(WATCH) => self.watch(now, out),
            Event::Timer(CANCEL) | Event::Message { message: Message::CancelJob(_), .. } => {
                self.cancel(now, out);
            }
            Event::Timer(PROGRESS) => {
                if let Some(leader) = self.leader {
                    out.send(Address::new(leader.process, ActorId::Master), RequestJobStatus {});
                }
                out.set_timer(PROGRESS, now + PROGRESS_INTERVAL);
            }
            Event::Message { message: Message::LeaderChanged(changed), .. } => {
                self.leader_changed(now, changed.leader, changed.result, out);
            }
            Event::Message { message: Message::JobStatusReport(report), .. } => {
                let JobStatusReport { status, total, finished, running, recording } = report;
                out.note(Note::Progress { status, total, finished, running, recording });
            }
            Event::Message { .. } | Event::Timer(_) | Event::Disk { .. } => {}
        }
    }
}
