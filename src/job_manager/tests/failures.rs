//! What fails while the job runs: tasks, TaskManagers, partitions, coordinators; and the pause after it.

use std::time::Duration;

use super::*;

const FIXED_DELAY: [(&str, &str); 2] =
    [("restart-strategy.type", "fixed-delay"), ("restart-strategy.fixed-delay.delay", "0 s")];

fn second(vertex: JobVertexId, subtask: u32) -> ExecutionAttemptId {
    ExecutionAttemptId { number: 2, ..attempt(vertex, subtask, NOW) }
}

fn finished_state(attempt: ExecutionAttemptId) -> TaskState {
    TaskState::Finished {
        partitions: vec![partition(attempt)],
        committables: vec![],
        metrics: IoMetrics::default(),
        accumulators: [].into(),
    }
}

fn tell_state(fixture: &mut Fixture, from: ProcessId, attempt: ExecutionAttemptId, state: TaskState) {
    let message = UpdateTaskExecutionState { token: NOW, session: SessionId(1), attempt, state };
    fixture.tell(Address::worker(from), message);
}

/// The source's subtask asks for a split, and says that it has got so many.
fn ask_for_split(fixture: &mut Fixture, attempt: ExecutionAttemptId, received: u32) {
    let location = fixture.master.execution.deployed_at(attempt).expect("the attempt runs");
    fixture.tell(Address::new(location, ActorId::Task(attempt)), RequestSplit { attempt, received });
}

#[test]
fn b25_a_later_attempt_of_a_reader_is_told_again_that_there_are_no_more_splits() {
    let mut fixture = Fixture::new(&FIXED_DELAY);
    fixture.lead(vec![]);
    fixture.register(TM1, 1, vec![]);
    fixture.register(TM2, 2, vec![]);
    let (reader, late) = (attempt(SOURCE, 0, NOW), attempt(SOURCE, 1, NOW));
    ask_for_split(&mut fixture, reader, 0);
    ask_for_split(&mut fixture, reader, 1);
    ask_for_split(&mut fixture, late, 0);
    fixture.fail(late, None);
    ask_for_split(&mut fixture, second(SOURCE, 1), 0);
    let told = fixture.sent(|_, message| match message {
        Message::NoMoreSplits(message) => Some(message.attempt),
        _ => None,
    });
    assert_eq!(told, [late, second(SOURCE, 1)]);
}

#[test]
fn b26_the_finish_of_an_attempt_that_was_reset_is_ignored_and_its_partition_released() {
    let mut fixture = Fixture::new(&FIXED_DELAY);
    fixture.lead(vec![]);
    fixture.register(TM1, 1, vec![]);
    let reset = attempt(SOURCE, 0, NOW);
    fixture.fail(reset, None);
    assert_eq!(fixture.submitted(), [reset, second(SOURCE, 0)]);
    fixture.effects.clear();
    tell_state(&mut fixture, TM1, reset, finished_state(reset));
    assert_eq!(fixture.released(), [partition(reset).partition]);
    assert_eq!(fixture.recorded(), []);
    assert!(!fixture.master.execution.is_finished(reset.subtask));
}

#[test]
fn b26_after_a_global_failure_everything_runs_again_and_no_earlier_finish_counts() {
    let mut fixture = Fixture::new(&FIXED_DELAY);
    fixture.lead(vec![]);
    fixture.register(TM1, 1, vec![]);
    fixture.register(TM2, 2, vec![]);
    let (done, running) = (attempt(SOURCE, 0, NOW), attempt(SOURCE, 1, NOW));
    ask_for_split(&mut fixture, done, 0);
    fixture.finish(done);
    fixture.effects.clear();
    ask_for_split(&mut fixture, running, 7);
    assert!(fixture.effects.iter().any(|effect| matches!(effect, Effect::Note(Note::GlobalFailure { .. }))));
    assert_eq!(fixture.recorded(), [JobEvent::ExecutionVertexReset { subtasks: vec![done.subtask] }]);
    assert_eq!(fixture.cancelled(), [running]);
    assert_eq!(fixture.released(), [partition(done).partition]);
    assert_eq!(fixture.submitted(), [second(SOURCE, 0), second(SOURCE, 1)]);
    tell_state(&mut fixture, TM2, running, finished_state(running));
    assert!(!fixture.master.execution.is_finished(running.subtask));
    // All splits are there again, from the first.
    fixture.effects.clear();
    for attempt in [second(SOURCE, 1), second(SOURCE, 0)] {
        ask_for_split(&mut fixture, attempt, 0);
    }
    let splits = fixture.sent(|_, message| match message {
        Message::AddSplit(message) => Some(message.split.id),
        _ => None,
    });
    assert_eq!(splits, [0, 1]);
}

#[test]
fn a_global_failure_counts_as_one_failure() {
    let options = [FIXED_DELAY[0], FIXED_DELAY[1], ("restart-strategy.fixed-delay.attempts", "1")];
    let mut fixture = Fixture::new(&options);
    fixture.lead(vec![]);
    fixture.register(TM1, 1, vec![]);
    ask_for_split(&mut fixture, attempt(SOURCE, 0, NOW), 7);
    assert_eq!(fixture.outcomes(), []);
    ask_for_split(&mut fixture, second(SOURCE, 0), 7);
    assert!(
        matches!(&fixture.outcomes()[..], [JobOutcome::Failed { reason }] if reason.contains("7 splits"))
    );
}

#[test]
fn b40_a_partition_that_its_task_manager_does_not_have_does_not_count_as_available_any_more() {
    let mut fixture = Fixture::new(&FIXED_DELAY);
    fixture.run_until_sinks();
    let gone = partition(attempt(SOURCE, 1, NOW)).partition;
    fixture.effects.clear();
    fixture.fail(attempt(SINK, 0, NOW), Some(gone));
    assert_eq!(fixture.master.tracker.get(gone), None);
    assert_eq!(fixture.submitted(), [second(SOURCE, 1)], "the consumer waits for the new partition");
    assert_eq!(fixture.released(), [gone], "should it be there after all");
}

#[test]
fn b40_what_was_on_a_lost_task_manager_is_made_again_when_it_is_needed() {
    let mut fixture = Fixture::new(&FIXED_DELAY);
    fixture.run_until_sinks();
    // The second source ran on the second TaskManager; its partition is still needed.
    fixture.effects.clear();
    fixture.now = Time(0) + Configuration::default().heartbeat_timeout / 2;
    let response = HeartbeatResponse { token: NOW, session: SessionId(1), attempts: vec![] };
    fixture.tell(Address::worker(TM1), response);
    fixture.now = Time(0) + Configuration::default().heartbeat_timeout + Duration::from_secs(1);
    fixture.event(Event::Timer(HEARTBEAT));
    let lost = |effect: &Effect| matches!(effect, Effect::Note(Note::TaskManagerLost { process: TM2, .. }));
    assert!(fixture.effects.iter().any(lost));
    let taken_back = vec![ExecutionVertexId::new(SOURCE, 1)];
    assert_eq!(fixture.recorded(), [JobEvent::ExecutionVertexReset { subtasks: taken_back }]);
    assert_eq!(fixture.submitted(), [second(SOURCE, 1)]);
}

#[test]
fn b43_word_of_a_partition_that_comes_after_its_nodes_death_does_not_keep_it_from_being_made_again() {
    let mut fixture = Fixture::new(&FIXED_DELAY);
    fixture.run_until_sinks();
    fixture.effects.clear();
    let source = attempt(SOURCE, 1, NOW);
    fixture.register(TM2, 8, vec![]); // A new process in place of the old one.
    assert_eq!(fixture.submitted(), [second(SOURCE, 1)]);
    // What the old one had still sent.
    let late = PartitionReport { token: NOW, session: SessionId(2), partitions: vec![partition(source)] };
    fixture.tell(Address::worker(TM2), late);
    tell_state(&mut fixture, TM2, source, finished_state(source));
    assert_eq!(fixture.master.tracker.get(partition(source).partition), None);
    assert!(!fixture.master.execution.is_finished(source.subtask));
    assert!(fixture.master.execution.deployed_at(second(SOURCE, 1)).is_some());
}

#[test]
fn b43_within_the_recovery_window_a_dead_nodes_partitions_do_not_count_as_reported() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(sources_finished());
    fixture.register(TM1, 1, vec![partition(attempt(SOURCE, 0, OLD))]);
    fixture.register(TM1, 9, vec![]);
    fixture.register(TM2, 2, vec![partition(attempt(SOURCE, 1, OLD))]);
    let old = PartitionReport {
        token: NOW,
        session: SessionId(1),
        partitions: vec![partition(attempt(SOURCE, 0, OLD))],
    };
    fixture.tell(Address::worker(TM1), old);
    assert_eq!(fixture.submitted(), []);
    fixture.event(Event::Timer(RECOVERY_TIMEOUT));
    fixture.durable();
    assert_eq!(fixture.submitted(), [attempt(SOURCE, 0, NOW)]);
}

#[test]
fn the_job_is_restarting_until_the_pause_of_its_last_failure_is_over() {
    let options = [
        FIXED_DELAY[0],
        ("restart-strategy.fixed-delay.delay", "10 s"),
        ("restart-strategy.fixed-delay.attempts", "2"),
    ];
    let mut fixture = Fixture::new(&options);
    fixture.lead(vec![]);
    fixture.register(TM1, 1, vec![]);
    fixture.register(TM2, 2, vec![]);
    fixture.effects.clear();
    fixture.fail(attempt(SOURCE, 0, NOW), None);
    assert_eq!(fixture.master.status(), JobStatus::Restarting);
    fixture.now = Time(4_000_000_000);
    fixture.fail(attempt(SOURCE, 1, NOW), None);
    let due = fixture.effects.iter().filter_map(|effect| match effect {
        Effect::SetTimer { timer: RESTART, at } => Some(at.0 / 1_000_000_000),
        _ => None,
    });
    assert_eq!(due.collect::<Vec<_>>(), [10, 14]);
    assert_eq!(fixture.submitted(), []);
    fixture.now = Time(14_000_000_000);
    fixture.event(Event::Timer(RESTART));
    assert_eq!(fixture.master.status(), JobStatus::Running);
    assert_eq!(fixture.submitted(), [second(SOURCE, 0), second(SOURCE, 1)]);
    fixture.fail(second(SOURCE, 0), None);
    assert_eq!(fixture.outcomes(), [JobOutcome::Failed { reason: "boom".to_owned() }]);
}

#[test]
fn b19_what_recovery_has_to_run_again_is_no_failure_that_counts() {
    let mut fixture = Fixture::new(&[]); // No restart strategy.
    fixture.lead(sources_finished());
    fixture.register(TM1, 1, [0, 1].map(|i| partition(attempt(SOURCE, i, OLD))).into());
    assert_eq!(fixture.submitted(), [attempt(SINK, 0, NOW)]);

    let mut fixture = Fixture::new(&[]);
    fixture.lead(sources_finished());
    fixture.register(TM1, 1, vec![partition(attempt(SOURCE, 0, OLD))]);
    fixture.event(Event::Timer(RECOVERY_TIMEOUT));
    // A TaskManager is lost before what recovery decided is durable.
    fixture.register(TM1, 9, vec![]);
    fixture.durable();
    assert_eq!(fixture.outcomes(), []);
    assert_eq!(fixture.master.status(), JobStatus::Running);
    assert_eq!(fixture.submitted(), [attempt(SOURCE, 0, NOW)]);
}

#[test]
fn a_result_that_was_made_again_and_that_all_have_read_is_released_when_its_finish_is_durable() {
    let mut fixture = Fixture::of(Determinacy::Determinate, &FIXED_DELAY);
    fixture.run_until_sinks();
    fixture.finish(attempt(SINK, 0, NOW));
    let lost = partition(attempt(SOURCE, 1, NOW)).partition;
    fixture.fail(attempt(SINK, 1, NOW), Some(lost));
    assert!(fixture.master.execution.is_finished(ExecutionVertexId::new(SINK, 0)), "it stays");
    assert!(fixture.submitted().ends_with(&[second(SOURCE, 1)]));
    // The TaskManager of the other consumer hands over its finish at last: nobody is left to read.
    let mut out = Outbox::new();
    fixture.master.execution.set_finished(Finish {
        attempt: second(SINK, 1),
        location: TM1,
        partitions: vec![],
        committables: vec![],
        metrics: IoMetrics::default(),
        accumulators: [].into(),
    });
    fixture.effects.clear();
    fixture.master.schedule(&mut out);
    fixture.finish(second(SOURCE, 1));
    assert_eq!(fixture.released(), []);
    fixture.durable();
    assert_eq!(fixture.released(), [partition(second(SOURCE, 1)).partition]);
}
