//! Which JobManager this process belongs to: how it finds one, registers with it and notices that
//! it is gone. It decides whether a message counts (the fencing token); it never touches tasks or
//! partitions.

use std::time::Duration;

use crate::actor::{Boot, Outbox, Time, TimerId};
use crate::config::ShuffleServiceKind;
use crate::ids::{ActorId, Address, FencingToken, ProcessId, SessionId};
use crate::message::{LeaderInfo, Message, RegisterTaskManager, RegistrationRejected, WatchLeader};
use crate::note::Note;

/// Repeats what was not answered: the search for a leader, the registration.
pub const RETRY: TimerId = TimerId(1);
/// Looks whether the leader was heard of. Set again only when it fires, so that a message of the
/// leader costs nothing.
pub const HEARTBEAT: TimerId = TimerId(2);

#[derive(Debug)]
pub struct Connection {
    process: ProcessId,
    session: SessionId,
    slots: u32,
    retains: bool,
    /// Whether there are partitions of earlier leaders here.
    holds: bool,
    shuffle_service: ShuffleServiceKind,
    retry: Duration,
    timeout: Duration,
    state: State,
    /// The highest token that was ever seen; leaders below it are history.
    highest: FencingToken,
    last_heard: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No leader is known.
    Searching,
    Registering(LeaderInfo),
    Registered(LeaderInfo),
    /// The job ended: nobody is waited for.
    Over,
}

impl Connection {
    pub fn new(boot: &Boot) -> Self {
        Self {
            process: boot.process,
            session: boot.session,
            slots: match boot.process {
                ProcessId::ShuffleService(_) => 0,
                _ => boot.config.task_slots,
            },
            retains: boot.config.job_recovery_enabled && !boot.config.registration_timeout.is_zero(),
            holds: false,
            shuffle_service: boot.config.shuffle_service,
            retry: boot.config.registration_retry,
            timeout: boot.config.heartbeat_timeout,
            state: State::Searching,
            highest: FencingToken(0),
            last_heard: Time(0),
        }
    }

    /// Asks for the leader until one is known.
    pub fn search(&mut self, now: Time, out: &mut Outbox) {
        self.state = State::Searching;
        self.watch_leader(out);
        out.set_timer(RETRY, now + self.retry);
    }

    /// Whether this leader is another than the one that is known, and not an older one.
    pub fn is_news(&self, leader: LeaderInfo) -> bool {
        match self.state {
            _ if leader.token < self.highest => false,
            State::Searching => true,
            State::Registering(known) | State::Registered(known) => known != leader,
            State::Over => leader.token > self.highest,
        }
    }

    /// Registers with the leader until it answers. `holds`: there are partitions of earlier leaders here.
    pub fn register(&mut self, now: Time, leader: LeaderInfo, holds: bool, out: &mut Outbox) {
        self.holds = holds;
        self.state = State::Registering(leader);
        self.highest = leader.token;
        self.send_registration(leader, out);
        out.set_timer(RETRY, now + self.retry);
    }

    /// The leader does not take this process in. If it came too late for a recovery, it may come without
    /// what it kept: the leader to which it may.
    pub fn rejected(&self, message: &RegistrationRejected, out: &mut Outbox) -> Option<LeaderInfo> {
        let again = if message.too_late { "without them" } else { "after a pause" };
        let text = format!(
            "the JobManager did not register {}: {}; it is asked again {again}",
            self.process, message.reason
        );
        out.note(Note::Warning { text });
        // An answer to a repeated registration comes too late itself: what is here now is this leader's.
        let waits = matches!(self.state, State::Registering(_)) && self.holds;
        self.leader().filter(|_| message.too_late && waits)
    }

    /// The leader took this process in.
    pub fn registered(&mut self, now: Time, out: &mut Outbox) {
        let State::Registering(leader) = self.state else { return };
        self.state = State::Registered(leader);
        out.cancel_timer(RETRY);
        out.set_timer(HEARTBEAT, now + self.timeout);
    }

    /// The leader is gone; its token, if there was one.
    pub fn lose(&mut self, out: &mut Outbox) -> Option<FencingToken> {
        let leader = self.leader()?;
        if matches!(self.state, State::Registered(_)) {
            out.cancel_timer(HEARTBEAT);
        } else {
            out.cancel_timer(RETRY);
        }
        self.state = State::Searching;
        Some(leader.token)
    }

    /// Nothing more is expected of anyone.
    pub fn end(&mut self, out: &mut Outbox) {
        self.lose(out);
        if self.state == State::Searching {
            out.cancel_timer(RETRY);
        }
        self.state = State::Over;
    }

    /// Whether no leader was ever known.
    pub fn is_new(&self) -> bool {
        self.highest == FencingToken(0)
    }

    /// Whether the job has ended, as far as this process knows.
    pub fn is_over(&self) -> bool {
        self.state == State::Over
    }

    pub fn leader(&self) -> Option<LeaderInfo> {
        match self.state {
            State::Registering(leader) | State::Registered(leader) => Some(leader),
            State::Searching | State::Over => None,
        }
    }

    /// The token of the leader that took this process in.
    pub fn registered_token(&self) -> Option<FencingToken> {
        match self.state {
            State::Registered(leader) => Some(leader.token),
            _ => None,
        }
    }

    /// Whether a message under this token counts; if so, the leader was heard of.
    pub fn accepts(&mut self, now: Time, token: FencingToken) -> bool {
        let accepted = self.leader().is_some_and(|leader| leader.token == token);
        if accepted {
            self.last_heard = now;
        }
        accepted
    }

    pub fn send(&self, message: impl Into<Message>, out: &mut Outbox) {
        if let Some(leader) = self.leader() {
            out.send(Address::new(leader.process, ActorId::Master), message);
        }
    }

    pub fn retry_fired(&mut self, now: Time, out: &mut Outbox) {
        match self.state {
            State::Searching => self.watch_leader(out),
            State::Registering(leader) => {
                // Perhaps the news of the next leader was lost.
                self.watch_leader(out);
                self.send_registration(leader, out);
            }
            State::Registered(_) | State::Over => return,
        }
        out.set_timer(RETRY, now + self.retry);
    }

    /// Whether the leader was silent for too long.
    pub fn heartbeat_fired(&mut self, now: Time, out: &mut Outbox) -> bool {
        let State::Registered(_) = self.state else { return false };
        let lost = now.since(self.last_heard) >= self.timeout;
        if !lost {
            out.set_timer(HEARTBEAT, self.last_heard + self.timeout);
        }
        lost
    }

    fn watch_leader(&self, out: &mut Outbox) {
        let watcher = Address::worker(self.process);
        out.send(Address::HIGH_AVAILABILITY, WatchLeader { watcher, session: self.session });
    }

    fn send_registration(&self, leader: LeaderInfo, out: &mut Outbox) {
        let Self { process, session, slots, retains, holds, shuffle_service, .. } = *self;
        let token = leader.token;
        let registration =
            RegisterTaskManager { token, process, session, slots, retains, holds, shuffle_service };
        self.send(registration, out);
    }
}
