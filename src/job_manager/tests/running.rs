//! A leader at work: deployment, splits, finishes, failures.

use super::*;

#[test]
fn a_new_job_is_stored_before_it_runs_and_its_sources_go_to_the_first_slots() {
    let mut fixture = Fixture::new(&[]);
    fixture.event(Event::Start);
    fixture.grant(false, None);
    assert_eq!(fixture.kinds(), ["Contend", "RecordJob"]);
    fixture.tell(Address::HIGH_AVAILABILITY, crate::message::JobRecorded { token: NOW });
    let replay = Arc::default();
    fixture.tell(Address::WRITER, crate::message::JobEventStoreOpened { token: NOW, replay });
    fixture.register(TM1, 1, vec![]);
    assert_eq!(fixture.submitted(), [attempt(SOURCE, 0, NOW)]);
    assert_eq!(fixture.recorded(), [initialized(SOURCE)]);
    fixture.finish(attempt(SOURCE, 0, NOW));
    assert_eq!(fixture.submitted()[1..], [attempt(SOURCE, 1, NOW)]);
}

#[test]
fn splits_go_to_running_attempts_only() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(vec![]);
    fixture.register(TM1, 1, vec![]);
    let (running, unknown) = (attempt(SOURCE, 0, NOW), attempt(SOURCE, 0, OLD));
    for (attempt, received) in [(running, 0), (unknown, 0), (running, 1), (running, 2)] {
        let task = Address::new(TM1, ActorId::Task(attempt));
        fixture.tell(task, RequestSplit { attempt, received });
    }
    let kinds = fixture.kinds();
    let splits: Vec<_> = kinds.iter().filter(|kind| kind.contains("Split")).collect();
    assert_eq!(splits, [&"AddSplit", &"AddSplit", &"NoMoreSplits"]);
}

#[test]
fn a_finish_is_recorded_with_its_metrics_and_accumulators() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(vec![]);
    fixture.register(TM1, 1, vec![]);
    let attempt = attempt(SOURCE, 0, NOW);
    let metrics = IoMetrics { records_in: 0, records_out: 3, bytes_in: 0, bytes_out: 20 };
    let accumulators: crate::message::Accumulators = [("rows".to_owned(), 3)].into();
    let partitions = vec![partition(attempt)];
    let state = TaskState::Finished {
        partitions: partitions.clone(),
        committables: vec![],
        metrics,
        accumulators: accumulators.clone(),
    };
    fixture.state(attempt, state);
    let recorded = fixture.recorded();
    let JobEvent::ExecutionVertexFinished { finish, .. } = &recorded[1] else { panic!("{recorded:?}") };
    assert_eq!((finish.attempt, finish.location), (attempt, TM1));
    assert_eq!((finish.metrics, &finish.accumulators), (metrics, &accumulators));
    assert_eq!(finish.partitions, partitions, "with the bytes of each subpartition");
}

#[test]
fn b5_a_consumed_partition_is_released_only_when_all_its_consumers_finishes_are_durable() {
    let mut fixture = Fixture::new(&[]);
    fixture.run_until_sinks();
    fixture.finish(attempt(SINK, 0, NOW));
    fixture.durable();
    fixture.finish(attempt(SINK, 1, NOW));
    assert_eq!(fixture.released(), []);
    fixture.durable();
    let sources = [0, 1].map(|subtask| partition(attempt(SOURCE, subtask, NOW)).partition);
    assert_eq!(fixture.released(), sources);
}

#[test]
fn a_failed_task_fails_the_job_without_a_restart_strategy() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(vec![]);
    fixture.register(TM1, 1, vec![]);
    let failure = TaskFailure { message: "boom".to_owned(), missing: None };
    fixture.state(attempt(SOURCE, 0, NOW), TaskState::Failed(failure));
    let outcomes = fixture.sent(|_, message| match message {
        Message::RecordJobResult(message) => Some(message.outcome.clone()),
        _ => None,
    });
    assert_eq!(outcomes, [JobOutcome::Failed { reason: "boom".to_owned() }]);
}

#[test]
fn a_lost_input_brings_its_producer_back_and_with_it_all_that_read_it() {
    let options = [("restart-strategy.type", "fixed-delay"), ("restart-strategy.fixed-delay.delay", "0 s")];
    let mut fixture = Fixture::new(&options);
    fixture.run_until_sinks();
    fixture.finish(attempt(SINK, 0, NOW));
    let lost = partition(attempt(SOURCE, 1, NOW)).partition;
    let failure = TaskFailure { message: "gone".to_owned(), missing: Some(lost) };
    fixture.effects.clear();
    fixture.state(attempt(SINK, 1, NOW), TaskState::Failed(failure));
    let taken_back = vec![ExecutionVertexId::new(SOURCE, 1), ExecutionVertexId::new(SINK, 0)];
    assert_eq!(fixture.recorded(), [JobEvent::ExecutionVertexReset { subtasks: taken_back }]);
    let again = ExecutionAttemptId { number: 2, ..attempt(SOURCE, 1, NOW) };
    assert_eq!(fixture.submitted(), [again]);
}

#[test]
fn a_task_manager_that_comes_back_empty_loses_what_it_kept() {
    let mut fixture = Fixture::new(&[("restart-strategy.type", "fixed-delay")]);
    fixture.lead(sources_finished());
    fixture.register(TM1, 1, [0, 1].map(|i| partition(attempt(SOURCE, i, OLD))).into());
    fixture.effects.clear();
    fixture.register(TM1, 9, vec![]);
    let lost = [0, 1].map(|subtask| ExecutionVertexId::new(SOURCE, subtask));
    assert_eq!(fixture.recorded(), [JobEvent::ExecutionVertexReset { subtasks: lost.into() }]);
}

#[test]
fn a_stale_token_changes_nothing() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(vec![]);
    let message = RegisterTaskManager {
        token: OLD,
        process: TM1,
        session: SessionId(1),
        slots: 1,
        retains: true,
        holds: false,
        shuffle_service: ShuffleServiceKind::TaskManager,
    };
    fixture.effects.clear();
    fixture.tell(Address::executor(TM1), message);
    assert!(fixture.effects.is_empty());
}

#[test]
fn s11_a_consumer_that_runs_again_keeps_its_input_until_its_new_finish_is_durable() {
    let options = [("restart-strategy.type", "fixed-delay"), ("restart-strategy.fixed-delay.delay", "0 s")];
    let mut fixture = Fixture::new(&options);
    fixture.run_until_sinks();
    fixture.finish(attempt(SINK, 0, NOW));
    fixture.finish(attempt(SINK, 1, NOW));
    // Both finishes are still in the buffer when a sink's finish is taken back and comes again.
    let subtask = ExecutionVertexId::new(SINK, 1);
    let mut out = Outbox::new();
    fixture.master.phase = Phase::Running;
    fixture.master.reset_subtasks(&[subtask].into(), &mut out);
    fixture.master.schedule(&mut out);
    fixture.effects.extend(out.take());
    let recorded_before = fixture.recorded().len() as u64;
    fixture.finish(ExecutionAttemptId { number: 2, ..attempt(SINK, 1, NOW) });
    let sequence = recorded_before;
    fixture.tell(Address::WRITER, crate::message::JobEventsDurable { token: NOW, sequence });
    assert_eq!(fixture.released(), []);
    fixture.durable();
    assert_eq!(fixture.released().len(), 2);
}

#[test]
fn a_result_that_nobody_asked_for_any_more_is_released() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(vec![]);
    fixture.register(TM1, 1, vec![]);
    let cancelled = attempt(SOURCE, 1, NOW);
    let state = TaskState::Finished {
        partitions: vec![partition(cancelled)],
        committables: vec![],
        metrics: IoMetrics::default(),
        accumulators: [].into(),
    };
    let message = UpdateTaskExecutionState { token: NOW, session: SessionId(1), attempt: cancelled, state };
    fixture.tell(Address::executor(TM1), message);
    assert_eq!(fixture.released(), [partition(cancelled).partition]);
}

#[test]
fn between_two_heartbeats_lies_the_interval() {
    let mut fixture = Fixture::new(&[("heartbeat.interval", "3 s")]);
    fixture.lead(vec![]);
    fixture.register(TM1, 1, vec![]);
    fixture.effects.clear();
    fixture.now = Time(3_000_000_000);
    fixture.event(Event::Timer(HEARTBEAT));
    assert_eq!(fixture.kinds(), ["HeartbeatRequest"]);
    let next = Effect::SetTimer { timer: HEARTBEAT, at: Time(6_000_000_000) };
    assert_eq!(fixture.effects.last(), Some(&next));
}

#[test]
fn an_attempt_that_should_not_run_is_cancelled_again_at_the_next_heartbeat() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(vec![]);
    fixture.register(TM1, 1, vec![]);
    let (right, wrong) = (attempt(SOURCE, 0, NOW), attempt(SOURCE, 1, NOW));
    let attempts = vec![right, wrong];
    let response = HeartbeatResponse { token: NOW, session: SessionId(1), attempts };
    fixture.tell(Address::executor(TM1), response);
    let cancelled = fixture.sent(|_, message| match message {
        Message::CancelTask(message) => Some(message.attempt),
        _ => None,
    });
    assert_eq!(cancelled, [wrong]);
}

#[test]
fn b52_a_worker_that_would_not_keep_partitions_is_refused_with_the_reason() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(vec![]);
    let session = SessionId(1);
    let message = RegisterTaskManager { retains: false, ..registration(TM1, session) };
    fixture.tell(Address::executor(TM1), message);
    assert_eq!(fixture.kinds().last(), Some(&"RegistrationRejected"));
    assert_eq!(fixture.submitted(), []);
}

#[test]
fn an_unknown_completion_changes_nothing() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(vec![]);
    fixture.effects.clear();
    fixture.event(Event::Disk { op: DiskOpId(99), result: Ok(DiskOutput::Done) });
    assert!(fixture.effects.is_empty());
}

#[test]
fn a_task_is_for_the_incarnation_that_is_registered() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(vec![]);
    fixture.register(TM1, 41, vec![]);
    let sessions = fixture.sent(|to, message| match message {
        Message::SubmitTask(message) => Some((to.process, message.session)),
        _ => None,
    });
    assert_eq!(sessions, [(TM1, SessionId(41))]);
}
