//! Builds the [`History`] in one pass over the trace: opens a span where a fact begins and closes
//! it where it ends. Decides what a crash ends: of a JobManager, every finish that is not durable;
//! of a TaskManager or shuffle service, every partition that it held.

use std::collections::BTreeMap;

use revenant::graph::JobGraph;
use revenant::ids::{ExecutionAttemptId, ExecutionVertexId, JobVertexId, ProcessId, ResultPartitionId};
use revenant::message::{JobOutcome, JobStatus};
use revenant::note::Note;

use super::history::{Deployed, END, Finish, Held, History, Initialized, Leader, Patience, Released};
use super::log::{Bytes, Log};
use crate::reference::Shape;
use crate::trace::{RunOutcome, TraceEvent, TraceKind};

pub fn index<'a>(
    graph: &'a JobGraph,
    shape: &'a Shape,
    patience: Patience,
    outcome: &'a RunOutcome,
) -> History<'a> {
    let mut index = Index {
        history: History {
            graph,
            shape,
            outcome,
            log: Log::read(&outcome.trace),
            leaders: Vec::new(),
            initialized: Vec::new(),
            deployed: Vec::new(),
            started: Vec::new(),
            finishes: BTreeMap::new(),
            held: Vec::new(),
            released: Vec::new(),
            crashes: Vec::new(),
            workers_lost: Vec::new(),
            global_failures: Vec::new(),
            cancels: Vec::new(),
            commit_decided: None,
            failure_decided: None,
            registered: Vec::new(),
            abandoned: Vec::new(),
            patience,
            complete: None,
        },
        accepted: BTreeMap::new(),
        decided: BTreeMap::new(),
    };
    for (at, event) in outcome.trace.iter().enumerate() {
        index.event(at, event);
    }
    index.history
}

struct Index<'a> {
    history: History<'a>,
    /// What each finish said when it was accepted.
    accepted: BTreeMap<ExecutionAttemptId, (&'a [u32], &'a [Vec<ResultPartitionId>])>,
    /// What leaders decided that were replaced already.
    decided: BTreeMap<JobVertexId, Initialized<'a>>,
}

impl<'a> Index<'a> {
    fn event(&mut self, at: usize, event: &'a TraceEvent) {
        // It may reach one that is going to lead before it knows it.
        if matches!(event.what, TraceKind::CancelReached) {
            self.history.cancels.push(at);
            return;
        }
        // One that hears late that it was elected may be replaced already.
        let is_elected = matches!(event.what, TraceKind::Note(Note::LeadershipAcquired { token })
            if self.history.leaders.last().is_none_or(|leader| leader.token < token));
        let is_granted = matches!(event.what, TraceKind::Note(Note::LeadershipAcquired { .. }));
        let is_replaced = is_granted || !self.may_lead(event.process);
        if matches!(event.process, ProcessId::JobManager(_)) && !is_elected && is_replaced {
            // What one says that another leader has replaced does not count: S9 sees to that. But until the other
            // has read the log it may write there what the other keeps.
            if let TraceKind::Note(note) = &event.what {
                self.replaced(at, note);
            }
            return;
        }
        match &event.what {
            TraceKind::Note(note) => self.note(at, event, note),
            TraceKind::Crashed { .. } | TraceKind::Exited { .. } => match event.process {
                ProcessId::JobManager(_) => {
                    if matches!(event.what, TraceKind::Crashed { .. }) {
                        self.history.crashes.push(at);
                    }
                    self.leader_lost(at);
                }
                ProcessId::TaskManager(_) | ProcessId::ShuffleService(_) => {
                    self.history.workers_lost.push(at);
                    for held in self.history.held.iter_mut().filter(|held| held.until == END) {
                        if held.process == event.process {
                            held.until = at;
                        }
                    }
                }
                ProcessId::HighAvailability | ProcessId::Client => {}
            },
            _ => {}
        }
    }

    fn replaced(&mut self, at: usize, note: &'a Note) {
        match note {
            Note::FinishAccepted { attempt, splits, inputs } => {
                self.accepted.insert(*attempt, (splits, inputs));
            }
            Note::VertexInitialized { token, vertex, parallelism, inputs } => {
                let (token, vertex, parallelism) = (*token, *vertex, *parallelism);
                self.decided.insert(vertex, Initialized { at, token, vertex, parallelism, inputs });
            }
            _ => {}
        }
    }

    /// Whether the process was the last that was elected, or none was.
    fn may_lead(&self, process: ProcessId) -> bool {
        self.history.leaders.last().is_none_or(|leader| leader.process == process)
    }

    fn note(&mut self, at: usize, event: &TraceEvent, note: &'a Note) {
        let history = &mut self.history;
        match note {
            Note::LeadershipAcquired { token } => {
                if history.leaders.last().is_some_and(|leader| leader.until == END) {
                    self.leader_lost(at);
                }
                let lost = self.history.leaders.last().map_or(at, |leader| leader.until);
                self.history.leaders.push(Leader {
                    process: event.process,
                    token: *token,
                    acquired: at,
                    read: at,
                    lost,
                    recovered: None,
                    until: END,
                });
            }
            Note::Replayed { .. } => {
                if let Some(leader) = history.leaders.last_mut() {
                    leader.read = at;
                }
            }
            Note::Recovered { kept, .. } => self.recovered(at, kept),
            Note::VertexInitialized { token, vertex, parallelism, inputs } => {
                history.initialized.push(Initialized {
                    at,
                    token: *token,
                    vertex: *vertex,
                    parallelism: *parallelism,
                    inputs,
                });
            }
            Note::Deployed { attempt, .. } => history.deployed.push(Deployed { at, attempt: *attempt }),
            Note::TaskStarted { attempt } => history.started.push(Deployed { at, attempt: *attempt }),
            Note::FinishAccepted { attempt, splits, inputs } => {
                self.accepted.insert(*attempt, (splits, inputs));
                self.count(at, *attempt);
                self.complete(at);
            }
            Note::SubtaskReset { subtask } => self.uncount(at, *subtask),
            Note::CommitDecided { .. } => {
                history.commit_decided.get_or_insert(at);
            }
            Note::GlobalFailure { .. } => history.global_failures.push(at),
            Note::JobStatusChanged { status: JobStatus::Failed | JobStatus::Canceled, .. }
            | Note::JobEnded { outcome: JobOutcome::Failed { .. } | JobOutcome::Canceled } => {
                history.failure_decided.get_or_insert(at);
            }
            Note::TaskManagerRegistered { process } => history.registered.push((at, *process)),
            Note::JobManagerLost { .. } => history.abandoned.push((at, event.process)),
            Note::PartitionFinished { partition, .. } => history.held.push(Held {
                partition: *partition,
                process: event.process,
                incarnation: event.incarnation,
                from: at,
                until: END,
            }),
            Note::PartitionReleased { partition } => {
                history.released.push(Released {
                    at,
                    partition: *partition,
                    process: event.process,
                    incarnation: event.incarnation,
                });
                for held in history.held.iter_mut().filter(|held| held.until == END) {
                    if held.partition == *partition && held.process == event.process {
                        held.until = at;
                    }
                }
            }
            _ => {}
        }
    }

    fn count(&mut self, at: usize, attempt: ExecutionAttemptId) {
        let Some(&(splits, inputs)) = self.accepted.get(&attempt) else { return };
        self.uncount(at, attempt.subtask);
        let finish = Finish { attempt, splits, inputs, from: at, until: END };
        self.history.finishes.entry(attempt.subtask).or_default().push(finish);
    }

    fn uncount(&mut self, at: usize, subtask: ExecutionVertexId) {
        if let Some(finish) = self.history.finishes.get_mut(&subtask).and_then(|all| all.last_mut()) {
            finish.until = finish.until.min(at);
        }
    }

    /// The leader's memory is gone: what counts is what is durable, and what the coordinators will know.
    fn leader_lost(&mut self, at: usize) {
        if let Some(leader) = self.history.leaders.last_mut() {
            leader.until = leader.until.min(at);
        }
        let History { log, finishes, graph, .. } = &mut self.history;
        let mut state = log.state(at, Bytes::Durable);
        state.reconcile(graph);
        for finish in finishes.values_mut().filter_map(|all| all.last_mut()) {
            if finish.until == END && state.finished.get(&finish.attempt.subtask) != Some(&finish.attempt) {
                finish.until = at;
            }
        }
    }

    /// The new leader says what counts.
    fn recovered(&mut self, at: usize, kept: &[ExecutionAttemptId]) {
        if let Some(leader) = self.history.leaders.last_mut() {
            leader.recovered = Some(at);
        }
        for finish in self.history.finishes.values_mut().filter_map(|all| all.last_mut()) {
            if finish.until == END && !kept.contains(&finish.attempt) {
                finish.until = at;
            }
        }
        let read = self.history.log.state(at, Bytes::Visible).initialized;
        let read: Vec<JobVertexId> = read.into_keys().collect();
        for decision in read.into_iter().filter_map(|vertex| self.decided.get(&vertex)) {
            if self.history.initialized(decision.vertex, at).is_none() {
                self.history.initialized.push(Initialized { at, ..*decision });
            }
        }
        for &attempt in kept {
            if self.history.counted(attempt.subtask, at).is_none_or(|finish| finish.attempt != attempt) {
                self.count(at, attempt);
            }
        }
        self.complete(at);
    }

    fn complete(&mut self, at: usize) {
        let history = &mut self.history;
        if history.commit_decided.is_none() && history.is_complete(at) {
            history.complete = Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use revenant::ids::FencingToken;

    use super::*;
    use crate::oracle::testing::{Story, attempt, finished, with_history};

    /// The first leader still writes when another was elected, which reads the log only then.
    fn replaced(write: impl Fn(&mut Story)) -> Story {
        let mut story = Story::new();
        story.run_sources().log_init(1, 0);
        story.log(1, finished(attempt(0, 0, 1, 1))).log(1, finished(attempt(0, 1, 1, 1)));
        let token = FencingToken(2);
        story.happens(ProcessId::JobManager(2), TraceKind::Note(Note::LeadershipAcquired { token }));
        write(&mut story);
        story.happens(
            ProcessId::JobManager(2),
            TraceKind::Note(Note::Replayed { token, events: 5, finished: vec![], damage: None }),
        );
        story
    }

    fn recovers(story: &mut Story, kept: &[ExecutionAttemptId]) {
        let (token, kept, reset) = (FencingToken(2), kept.to_vec(), vec![]);
        story.happens(ProcessId::JobManager(2), TraceKind::Note(Note::Recovered { token, kept, reset }));
    }

    #[test]
    fn what_a_replaced_leader_decided_and_wrote_before_the_log_was_read_counts_when_it_is_kept() {
        let sink = attempt(1, 0, 1, 1);
        let mut story = replaced(|story| {
            story.init_sinks().log_init(1, 1).finish_sink(sink).log(1, finished(sink));
        });
        with_history(&story, |history| {
            let end = history.outcome.trace.len();
            assert!(history.counted(sink.subtask, end).is_none() && history.initialized.len() == 1);
        });
        recovers(&mut story, &[attempt(0, 0, 1, 1), attempt(0, 1, 1, 1), sink]);
        with_history(&story, |history| {
            let end = history.outcome.trace.len();
            assert_eq!(history.counted(sink.subtask, end).map(|finish| finish.attempt), Some(sink));
            assert!(history.initialized(sink.subtask.vertex, end).is_some());
        });
    }

    #[test]
    fn what_a_replaced_leader_decided_and_nobody_read_does_not_count() {
        let sink = attempt(1, 0, 1, 1);
        let mut story = replaced(|story| _ = story.init_sinks().finish_sink(sink));
        recovers(&mut story, &[attempt(0, 0, 1, 1), attempt(0, 1, 1, 1)]);
        with_history(&story, |history| {
            let end = history.outcome.trace.len();
            assert!(history.counted(sink.subtask, end).is_none());
            assert!(history.initialized(sink.subtask.vertex, end).is_none());
        });
    }
}
