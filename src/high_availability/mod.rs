//! The high-availability service: decides who leads and under which fencing token, and keeps what
//! must outlive every leader: the job, the commit decision and the job's result (Flink's
//! `HighAvailabilityServices`, `JobGraphStore` and `JobResultStore`). It never answers before what
//! it says is durable, never hands out a token twice, and knows nothing of tasks or partitions.

use std::collections::VecDeque;
use std::time::Duration;

use crate::actor::{Actor, Boot, Event, ExitStatus, Outbox, Time, TimerId};
use crate::disk::{DiskError, DiskResult};
use crate::ids::{Address, FencingToken, ProcessId, SessionId};
use crate::message::{
    CommitDecided, Fenced, JobOutcome, JobRecorded, JobResultRecorded, LeaderChanged, LeadershipGranted,
    LeadershipRevoked, Message, RevokeLeadership,
};
use crate::note::Note;

mod format;
mod journal;
mod state;
#[cfg(test)]
mod tests;

use journal::{Journal, JournalEvent};
pub use state::{HaRecord, HaState, Leader};

const LEASE: TimerId = TimerId(1);
const REOPEN: TimerId = TimerId(2);

/// Requests that wait for the journal. Every sender repeats itself, so that one too many may go.
const WAITING_MAX: usize = 4096;

/// The actor of the high-availability process.
#[derive(Debug)]
pub struct HighAvailability {
    session_timeout: Duration,
    retry: Duration,
    journal: Journal,
    /// What is durable, and nothing else.
    state: HaState,
    /// Whether `state` has been read; until then every request waits.
    opened: bool,
    /// What is being made durable, with the request that it answers.
    writing: Option<(HaRecord, Request)>,
    waiting: VecDeque<Request>,
    /// Processes that want to lead while another one does, in the order in which they came.
    contenders: VecDeque<Contender>,
    /// When the leader last gave a sign of life.
    heard: Time,
}

#[derive(Clone, Debug)]
enum Request {
    Message { from: Address, message: Message },
    CheckLease,
    Elect,
}

#[derive(Clone, Copy, Debug)]
struct Contender {
    process: ProcessId,
    session: SessionId,
}

impl HighAvailability {
    pub fn new(boot: &Boot) -> Self {
        Self {
            session_timeout: boot.config.session_timeout,
            retry: boot.config.registration_retry,
            journal: Journal::new(&boot.config.cluster_id, boot.config.job_event_volume),
            state: HaState::default(),
            opened: false,
            writing: None,
            waiting: VecDeque::new(),
            contenders: VecDeque::new(),
            heard: Time(0),
        }
    }

    fn ready(&self) -> bool {
        self.opened && self.writing.is_none()
    }

    fn enqueue(&mut self, request: Request, out: &mut Outbox) {
        // Nobody would repeat the look at the lease.
        if self.waiting.len() < WAITING_MAX || !matches!(request, Request::Message { .. }) {
            self.waiting.push_back(request);
        } else {
            warn(out, "the journal is slow: a request to the high-availability service was dropped");
        }
    }

    /// Serves what waits, one request at a time, until one needs the journal.
    fn pump(&mut self, now: Time, out: &mut Outbox) {
        while self.ready() {
            let Some(request) = self.waiting.pop_front() else { return };
            let record = match &request {
                Request::Message { from, message } => self.decide(*from, message, out),
                Request::CheckLease => self.check_lease(now, out),
                Request::Elect => self.elect(),
            };
            if let Some(record) = record {
                self.journal.write(&record, out);
                self.writing = Some((record, request));
            }
        }
    }

    /// Answers at once if nothing has to be written for it; otherwise says what to write.
    fn decide(&mut self, from: Address, message: &Message, out: &mut Outbox) -> Option<HaRecord> {
        match message {
            Message::Contend(contend) => self.contend(from, contend.process, contend.session, out),
            Message::WatchLeader(watch) => {
                if self.state.watchers.get(&watch.watcher) == Some(&watch.session) {
                    self.tell_leader(watch.watcher, out);
                    return None;
                }
                Some(HaRecord::Watching { watcher: watch.watcher, session: watch.session })
            }
            Message::RevokeLeadership(revoke) => {
                let leader = self.state.leader?;
                let next = if revoke.successor { self.contenders.pop_front() } else { None };
                Some(match next {
                    Some(next) => self.state.granted(next.process, next.session),
                    None => HaRecord::LeaseEnded { token: leader.token },
                })
            }
            Message::RenewLease(renew) => {
                if !self.state.leads(renew.token) {
                    out.send(from, LeadershipRevoked { token: renew.token });
                }
                None
            }
            Message::RecordJob(record) => {
                if self.fenced(from, record.token, out) {
                    return None;
                }
                if self.state.job.as_ref() == Some(&record.job) {
                    self.reply(from, message, out);
                    return None;
                }
                Some(HaRecord::JobRecorded(record.job.clone()))
            }
            Message::DecideCommit(decide) => {
                if self.fenced(from, decide.token, out) {
                    return None;
                }
                if self.state.decision.is_some() || self.state.outcome.is_some() {
                    self.reply(from, message, out);
                    return None;
                }
                Some(HaRecord::CommitDecided(decide.decision.clone()))
            }
            Message::RecordJobResult(record) => {
                if self.fenced(from, record.token, out) {
                    return None;
                }
                // What is decided will be committed, whatever became of the job meanwhile.
                let too_late =
                    self.state.decision.is_some() && !matches!(record.outcome, JobOutcome::Finished { .. });
                if self.state.outcome.is_some() || too_late {
                    self.reply(from, message, out);
                    return None;
                }
                Some(HaRecord::JobResultRecorded(record.outcome.clone()))
            }
            other => {
                warn(out, &format!("the high-availability service ignores {} from {from}", other.kind()));
                None
            }
        }
    }

    fn contend(
        &mut self,
        from: Address,
        process: ProcessId,
        session: SessionId,
        out: &mut Outbox,
    ) -> Option<HaRecord> {
        if self.state.retired.contains(&session) {
            // A late message of an incarnation that a newer one has replaced: it must not come back.
            warn(out, &format!("{process} contends with a session that was replaced; ignored"));
            return None;
        }
        match self.state.leader {
            Some(leader) if leader.process == process && leader.session == session => {
                self.grant(from, leader, out);
                None
            }
            // The process was started again: what led is dead, there is nothing to wait for.
            Some(leader) if leader.process == process => Some(self.state.granted(process, session)),
            Some(_) => {
                self.contenders.retain(|contender| contender.process != process);
                self.contenders.push_back(Contender { process, session });
                None
            }
            None => Some(self.state.granted(process, session)),
        }
    }

    /// Grants leadership to the longest waiting contender if nobody leads.
    fn elect(&mut self) -> Option<HaRecord> {
        if self.state.leader.is_some() {
            return None;
        }
        let contender = self.contenders.pop_front()?;
        Some(self.state.granted(contender.process, contender.session))
    }

    fn check_lease(&mut self, now: Time, out: &mut Outbox) -> Option<HaRecord> {
        let leader = self.state.leader?;
        let end = self.heard + self.session_timeout;
        if end > now {
            out.set_timer(LEASE, end);
            return None;
        }
        Some(HaRecord::LeaseEnded { token: leader.token })
    }

    /// `record` is durable: from here on it may be spoken of.
    fn written(&mut self, now: Time, record: HaRecord, request: Request, out: &mut Outbox) {
        let before = self.state.leader;
        self.state.apply(&record);
        match record {
            HaRecord::Granted { process, .. } => {
                self.contenders.retain(|contender| contender.process != process);
                self.heard = now;
                out.set_timer(LEASE, now + self.session_timeout);
                if let Some(leader) = self.state.leader {
                    if let Some(before) = before.filter(|before| before.process != process && tells(&request))
                    {
                        out.send(Address::master(before.process), LeadershipRevoked { token: before.token });
                    }
                    self.grant(Address::master(process), leader, out);
                }
                self.tell_watchers(out);
            }
            HaRecord::LeaseEnded { token } => {
                if let Some(leader) = before.filter(|_| tells(&request)) {
                    out.send(Address::master(leader.process), LeadershipRevoked { token });
                }
                self.tell_watchers(out);
                self.waiting.push_front(Request::Elect);
            }
            HaRecord::Watching { watcher, .. } => self.tell_leader(watcher, out),
            HaRecord::JobResultRecorded(_) => {
                self.reply_to(&request, out);
                self.tell_watchers(out);
            }
            HaRecord::JobRecorded(_) | HaRecord::CommitDecided(_) => self.reply_to(&request, out),
            HaRecord::Snapshot(_) => {}
        }
    }

    fn reply_to(&self, request: &Request, out: &mut Outbox) {
        if let Request::Message { from, message } = request {
            self.reply(*from, message, out);
        }
    }

    /// Answers a write with what is durable about it, whoever wrote it.
    fn reply(&self, to: Address, message: &Message, out: &mut Outbox) {
        match message {
            Message::RecordJob(record) => out.send(to, JobRecorded { token: record.token }),
            Message::DecideCommit(decide) => match (&self.state.decision, &self.state.outcome) {
                (Some(decision), _) => {
                    out.send(to, CommitDecided { token: decide.token, decision: decision.clone() });
                }
                // The job failed or was cancelled: there is no commit to decide any more.
                (None, Some(outcome)) => {
                    out.send(to, JobResultRecorded { token: decide.token, outcome: outcome.clone() });
                }
                (None, None) => {}
            },
            Message::RecordJobResult(record) => match (&self.state.outcome, &self.state.decision) {
                (Some(outcome), _) => {
                    out.send(to, JobResultRecorded { token: record.token, outcome: outcome.clone() });
                }
                (None, Some(decision)) => {
                    out.send(to, CommitDecided { token: record.token, decision: decision.clone() });
                }
                (None, None) => {}
            },
            _ => {}
        }
    }

    /// Whether `token` is not the leader's; says so to the sender.
    fn fenced(&self, from: Address, token: FencingToken, out: &mut Outbox) -> bool {
        let stale = !self.state.leads(token);
        if stale {
            out.send(from, Fenced { token, current: self.state.token });
        }
        stale
    }

    fn grant(&self, to: Address, leader: Leader, out: &mut Outbox) {
        let granted = LeadershipGranted {
            token: leader.token,
            session: leader.session,
            job: self.state.job.clone(),
            result: self.state.result(),
        };
        out.send(to, granted);
    }

    fn tell_leader(&self, watcher: Address, out: &mut Outbox) {
        out.send(watcher, LeaderChanged { leader: self.state.leader_info(), result: self.state.result() });
    }

    fn tell_watchers(&self, out: &mut Outbox) {
        for &watcher in self.state.watchers.keys() {
            self.tell_leader(watcher, out);
        }
    }

    fn on_disk(&mut self, now: Time, event: JournalEvent, out: &mut Outbox) {
        match event {
            JournalEvent::Opened(state) => {
                self.state = state;
                self.opened = true;
                if self.state.leader.is_some() {
                    // Whoever led before this incarnation gets a full lease to show itself.
                    self.heard = now;
                    out.set_timer(LEASE, now + self.session_timeout);
                }
                if let Some((_, request)) = self.writing.take() {
                    self.waiting.push_front(request);
                }
            }
            JournalEvent::Written => {
                if let Some((record, request)) = self.writing.take() {
                    self.written(now, record, request, out);
                }
            }
            JournalEvent::Failed(error) => self.failed(now, &error, out),
            JournalEvent::Damaged(message) => out.exit(ExitStatus::Failure(message)),
        }
    }

    /// After a failed write nobody knows what the file holds. It is left behind for a new one that
    /// begins with all that was durable; the request waits meanwhile.
    fn failed(&mut self, now: Time, error: &DiskError, out: &mut Outbox) {
        warn(out, &format!("the high-availability journal is not usable, will try again: {error}"));
        out.set_timer(REOPEN, now + self.retry);
    }

    fn reopen(&mut self, out: &mut Outbox) {
        if self.opened {
            self.journal.begin_file(&self.state, out);
        } else {
            self.journal.open(out);
        }
    }

    /// Whether the message shows that the leader lives.
    fn shows_leader_alive(&self, message: &Message) -> bool {
        match message {
            Message::Contend(contend) => self
                .state
                .leader
                .is_some_and(|l| (l.process, l.session) == (contend.process, contend.session)),
            Message::RenewLease(renew) => self.state.leads(renew.token),
            Message::RecordJob(record) => self.state.leads(record.token),
            Message::DecideCommit(decide) => self.state.leads(decide.token),
            Message::RecordJobResult(record) => self.state.leads(record.token),
            _ => false,
        }
    }
}

impl Actor for HighAvailability {
    fn handle(&mut self, now: Time, event: Event, out: &mut Outbox) {
        match event {
            Event::Start => self.journal.open(out),
            Event::Message { from, message } => {
                if self.shows_leader_alive(&message) {
                    self.heard = now;
                }
                self.enqueue(Request::Message { from, message }, out);
            }
            Event::Timer(LEASE) => self.enqueue(Request::CheckLease, out),
            Event::Timer(REOPEN) => self.reopen(out),
            Event::Timer(_) => {}
            Event::Disk { op, result } => self.disk(now, op, result, out),
        }
        self.pump(now, out);
    }
}

impl HighAvailability {
    fn disk(&mut self, now: Time, op: crate::actor::DiskOpId, result: DiskResult, out: &mut Outbox) {
        if let Some(event) = self.journal.complete(op, result, out) {
            self.on_disk(now, event, out);
        }
    }
}

/// Whether a leader that does not lead any more by this request is told.
const fn tells(request: &Request) -> bool {
    !matches!(
        request,
        Request::Message { message: Message::RevokeLeadership(RevokeLeadership { notice: false, .. }), .. }
    )
}

fn warn(out: &mut Outbox, text: &str) {
    out.note(Note::Warning { text: text.to_owned() });
}
