//! What the high-availability service knows, as a pure fold over its records. It decides nothing
//! by itself: a record that is durable is applied, in order, and that is all.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::{Address, FencingToken, ProcessId, SessionId};
use crate::message::{CommitDecision, JobOutcome, JobResult, LeaderInfo, RecordedJob};

/// Replaced sessions that are remembered, so that a late message of one does not depose its
/// successor.
const RETIRED_MAX: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leader {
    pub process: ProcessId,
    pub session: SessionId,
    pub token: FencingToken,
}

/// One durable change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HaRecord {
    /// All of the state: the first record of each file.
    Snapshot(HaState),
    Granted {
        token: FencingToken,
        process: ProcessId,
        session: SessionId,
    },
    LeaseEnded {
        token: FencingToken,
    },
    Watching {
        watcher: Address,
        session: SessionId,
    },
    JobRecorded(RecordedJob),
    /// DIRTY in Flink's job result store, with what is to be committed.
    CommitDecided(CommitDecision),
    /// CLEAN in Flink's job result store.
    JobResultRecorded(JobOutcome),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HaState {
    /// The highest token that was ever handed out.
    pub token: FencingToken,
    pub leader: Option<Leader>,
    pub job: Option<RecordedJob>,
    /// The commit decision: made once.
    pub decision: Option<CommitDecision>,
    /// The job's end: recorded once.
    pub outcome: Option<JobOutcome>,
    /// Who wants to hear of leaders. Durable, so that a restart of this service loses nobody.
    pub watchers: BTreeMap<Address, SessionId>,
    /// The session of each process with which it last led, also after its lease has ended: it may
    /// come back until a newer session of the process leads.
    pub led: BTreeMap<ProcessId, SessionId>,
    /// Sessions of leaders that a newer session of the same process followed, oldest first.
    pub retired: Vec<SessionId>,
}

impl HaState {
    pub fn apply(&mut self, record: &HaRecord) {
        match record {
            HaRecord::Snapshot(state) => *self = state.clone(),
            HaRecord::Granted { token, process, session } => {
                if let Some(old) = self.led.insert(*process, *session).filter(|old| old != session) {
                    self.retired.push(old);
                    let excess = self.retired.len().saturating_sub(RETIRED_MAX);
                    self.retired.drain(..excess);
                }
                self.token = *token;
                self.leader = Some(Leader { process: *process, session: *session, token: *token });
            }
            HaRecord::LeaseEnded { token } => self.leader = self.leader.filter(|l| l.token != *token),
            HaRecord::Watching { watcher, session } => {
                self.watchers.insert(*watcher, *session);
            }
            HaRecord::JobRecorded(job) => self.job = Some(job.clone()),
            HaRecord::CommitDecided(decision) => self.decision = Some(decision.clone()),
            HaRecord::JobResultRecorded(outcome) => self.outcome = Some(outcome.clone()),
        }
    }

    /// The record that makes this process the next leader.
    pub fn granted(&self, process: ProcessId, session: SessionId) -> HaRecord {
        HaRecord::Granted { token: FencingToken(self.token.0 + 1), process, session }
    }

    /// Whether `token` is that of the present leader.
    pub fn leads(&self, token: FencingToken) -> bool {
        self.leader.is_some_and(|leader| leader.token == token)
    }

    pub fn leader_info(&self) -> Option<LeaderInfo> {
        self.leader.map(|leader| LeaderInfo { process: leader.process, token: leader.token })
    }

    pub fn result(&self) -> Option<JobResult> {
        match (&self.outcome, &self.decision) {
            (Some(outcome), _) => Some(JobResult::Clean(outcome.clone())),
            (None, Some(decision)) => Some(JobResult::Dirty(decision.clone())),
            (None, None) => None,
        }
    }
}
