//! Results that are with shuffle services.

use super::*;
use crate::message::TaskDeploymentDescriptor;

const S1: ProcessId = ProcessId::ShuffleService(1);
const S2: ProcessId = ProcessId::ShuffleService(2);
const EXTERNAL: [(&str, &str); 3] = [
    ("shuffle.service", "external"),
    ("restart-strategy.type", "fixed-delay"),
    ("restart-strategy.fixed-delay.delay", "0 s"),
];

impl Fixture {
    /// A worker of a cluster with external shuffle comes.
    fn join(&mut self, process: ProcessId, session: u64, kept: Vec<PartitionWithMetrics>) {
        let session = SessionId(session);
        let slots = u32::from(matches!(process, ProcessId::TaskManager(_)));
        let shuffle_service = ShuffleServiceKind::External;
        let message = RegisterTaskManager { slots, shuffle_service, ..registration(process, session) };
        self.tell(Address::worker(process), message);
        self.tell(Address::worker(process), PartitionReport { token: NOW, session, partitions: kept });
    }

    /// The tasks that were sent to TaskManagers, each with who keeps its results.
    fn placed(&self) -> Vec<(ExecutionAttemptId, Vec<ProcessId>)> {
        let keepers = |task: &TaskDeploymentDescriptor| task.outputs.iter().map(|o| o.location).collect();
        self.sent(|_, message| match message {
            Message::SubmitTask(message) => Some((message.task.attempt, keepers(&message.task))),
            _ => None,
        })
    }

    /// Where the readers that were deployed look for partitions.
    fn read_from(&self) -> Vec<ProcessId> {
        let all = self.sent(|_, message| match message {
            Message::SubmitTask(message) => Some(message.task.inputs.clone()),
            _ => None,
        });
        let gates = all.into_iter().flatten();
        let locations = gates.flat_map(|gate| gate.partitions.iter().map(|p| p.location).collect::<Vec<_>>());
        locations.collect()
    }

    fn released_at(&self) -> Vec<(Address, Vec<ResultPartitionId>)> {
        self.sent(|to, message| match message {
            Message::ReleasePartitions(message) => Some((to, message.partitions.clone())),
            _ => None,
        })
    }
}

fn second(subtask: u32) -> ExecutionAttemptId {
    ExecutionAttemptId { number: 2, ..attempt(SOURCE, subtask, NOW) }
}

/// Two TaskManagers, two services, and both sources run.
fn running() -> Fixture {
    let mut fixture = Fixture::new(&EXTERNAL);
    fixture.lead(vec![]);
    for (process, session) in [(S1, 11), (S2, 12), (TM1, 1), (TM2, 2)] {
        fixture.join(process, session, vec![]);
    }
    fixture
}

#[test]
fn results_go_to_the_services_in_turn_and_are_read_there() {
    let mut fixture = running();
    let (first, last) = (attempt(SOURCE, 0, NOW), attempt(SOURCE, 1, NOW));
    assert_eq!(fixture.placed(), [(first, vec![S1]), (last, vec![S2])]);
    fixture.finish(first);
    fixture.effects.clear();
    fixture.finish(last);
    let sinks = [0, 1].map(|subtask| (attempt(SINK, subtask, NOW), vec![]));
    assert_eq!(fixture.placed(), sinks);
    assert_eq!(fixture.read_from(), [S1, S2, S1, S2]);
    let locations = fixture.master.execution.finish(first.subtask).map(|finish| finish.location);
    assert_eq!(locations, Some(TM1), "where it ran");
}

#[test]
fn nothing_with_results_is_deployed_before_a_service_is_there() {
    let mut fixture = Fixture::new(&EXTERNAL);
    fixture.lead(vec![]);
    fixture.join(TM1, 1, vec![]);
    assert_eq!(fixture.placed(), []);
    fixture.join(S2, 12, vec![]);
    assert_eq!(fixture.placed(), [(attempt(SOURCE, 0, NOW), vec![S2])]);
}

#[test]
fn sinks_are_deployed_though_no_service_is_there_for_new_results() {
    let mut fixture = Fixture::new(&EXTERNAL);
    fixture.lead(vec![initialized(SOURCE), finished(SOURCE, 0), finished(SOURCE, 1)]);
    fixture.join(S1, 11, [0, 1].map(|i| partition(attempt(SOURCE, i, OLD))).into());
    fixture.join(TM1, 1, vec![]);
    assert_eq!(fixture.placed(), [(attempt(SINK, 0, NOW), vec![])]);
}

#[test]
fn a_consumed_partition_is_released_at_its_service() {
    let mut fixture = running();
    for subtask in 0..2 {
        fixture.finish(attempt(SOURCE, subtask, NOW));
    }
    for subtask in 0..2 {
        fixture.finish(attempt(SINK, subtask, NOW));
    }
    fixture.durable();
    let of = |subtask| vec![partition(attempt(SOURCE, subtask, NOW)).partition];
    assert_eq!(fixture.released_at(), [(Address::worker(S1), of(0)), (Address::worker(S2), of(1))]);
}

#[test]
fn b41_the_loss_of_a_task_manager_does_not_touch_what_is_with_the_services() {
    let mut fixture = running();
    fixture.finish(attempt(SOURCE, 0, NOW));
    fixture.effects.clear();
    fixture.join(TM1, 9, vec![]);
    assert_eq!(fixture.recorded(), [], "no finish is taken back");
    assert_eq!(fixture.placed(), [], "source 1 still runs on TM2 and source 0 stays finished");
    fixture.join(TM2, 9, vec![]);
    assert_eq!(fixture.recorded(), []);
    assert_eq!(fixture.placed(), [(second(1), vec![S1])], "only what ran there runs again");
}

#[test]
fn b41_the_loss_of_a_service_takes_what_was_there_and_what_was_pushed_there() {
    let mut fixture = running();
    fixture.finish(attempt(SOURCE, 0, NOW));
    fixture.effects.clear();
    // Source 0 had finished, and its result was with the first service.
    fixture.join(S1, 19, vec![]);
    let lost = ExecutionVertexId::new(SOURCE, 0);
    assert_eq!(fixture.recorded(), [JobEvent::ExecutionVertexReset { subtasks: vec![lost] }]);
    assert_eq!(fixture.placed(), [(second(0), vec![S2])]);
    fixture.effects.clear();
    // Now both sources push to the second service.
    fixture.join(S2, 19, vec![]);
    let cancelled = fixture.sent(|_, message| match message {
        Message::CancelTask(message) => Some(message.attempt),
        _ => None,
    });
    assert_eq!(cancelled, [second(0), attempt(SOURCE, 1, NOW)]);
    let again = [(ExecutionAttemptId { number: 3, ..second(0) }, vec![S1]), (second(1), vec![S1])];
    assert_eq!(fixture.placed(), again);
}

#[test]
fn an_attempt_that_could_not_push_gets_another_service() {
    let mut fixture = running();
    fixture.finish(attempt(SOURCE, 1, NOW));
    let message = "no answer from shuffle-service-1".to_owned();
    let failure = TaskFailure { message, missing: None };
    fixture.effects.clear();
    fixture.state(attempt(SOURCE, 0, NOW), TaskState::Failed(failure));
    assert_eq!(fixture.placed(), [(second(0), vec![S1])], "the one after the last");
    let failure = TaskFailure { message: "again".to_owned(), missing: None };
    fixture.master.restarts = RestartBackoff::new(&fixture.master.boot.config, NOW);
    fixture.state(second(0), TaskState::Failed(failure));
    assert_eq!(fixture.placed().last().map(|(_, at)| at.clone()), Some(vec![S2]));
}

#[test]
fn b40_a_result_that_nobody_asked_for_any_more_is_released_at_the_services() {
    let mut fixture = running();
    let stale = ExecutionAttemptId { number: 7, ..attempt(SOURCE, 0, NOW) };
    let state = TaskState::Finished {
        partitions: vec![partition(stale)],
        committables: vec![],
        metrics: IoMetrics::default(),
        accumulators: [].into(),
    };
    let message = UpdateTaskExecutionState { token: NOW, session: SessionId(1), attempt: stale, state };
    fixture.tell(Address::executor(TM1), message);
    let unread = vec![partition(stale).partition];
    assert_eq!(fixture.released_at(), [(Address::worker(S1), unread.clone()), (Address::worker(S2), unread)]);
}

#[test]
fn what_a_running_attempt_has_registered_is_not_released_by_a_report_that_comes_before_its_finish() {
    let mut fixture = running();
    let of = |attempt| partition(attempt);
    let orphan = ExecutionAttemptId { number: 7, ..attempt(SOURCE, 0, NOW) };
    let partitions = vec![of(attempt(SOURCE, 0, NOW)), of(orphan)];
    let report = PartitionReport { token: NOW, session: SessionId(11), partitions };
    fixture.tell(Address::worker(S1), report);
    assert_eq!(fixture.released(), [partition(orphan).partition]);
}

#[test]
fn b41_recovery_finds_the_results_of_a_task_manager_that_is_gone_with_the_services() {
    let mut fixture = Fixture::new(&EXTERNAL);
    fixture.lead(sources_finished());
    fixture.effects.clear();
    fixture.join(S1, 11, vec![partition(attempt(SOURCE, 0, OLD))]);
    fixture.join(S2, 12, vec![partition(attempt(SOURCE, 1, OLD))]);
    fixture.join(TM2, 2, vec![]);
    assert_eq!(fixture.placed(), [(attempt(SINK, 0, NOW), vec![])]);
    assert_eq!(fixture.read_from(), [S1, S2]);
}

#[test]
fn b52_a_worker_with_another_shuffle_is_refused_with_the_reason() {
    let refusal = |options: &[(&str, &str)], process, shuffle_service| {
        let mut fixture = Fixture::new(options);
        fixture.lead(vec![]);
        fixture.effects.clear();
        let message = RegisterTaskManager { shuffle_service, ..registration(process, SessionId(1)) };
        fixture.tell(Address::worker(process), message);
        let reasons = fixture.sent(|_, message| match message {
            Message::RegistrationRejected(message) => Some(message.reason.clone()),
            _ => None,
        });
        (fixture.kinds().len(), reasons)
    };
    let (sent, reasons) = refusal(&EXTERNAL, TM1, ShuffleServiceKind::TaskManager);
    let expected = "shuffle.service is external at the JobManager and task-manager at task-manager-1: \
                    start all processes with the same configuration";
    assert_eq!((sent, reasons), (1, vec![expected.to_owned()]));
    let (sent, reasons) = refusal(&[], S1, ShuffleServiceKind::External);
    assert_eq!((sent, reasons.len()), (1, 1));
}
