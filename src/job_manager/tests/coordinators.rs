//! What of a source's finishes a new leader keeps: as much as the coordinators' snapshots cover.

use super::*;

/// A finish of source subtask `subtask` without a snapshot.
fn without_snapshot(subtask: u32) -> JobEvent {
    let JobEvent::ExecutionVertexFinished { finish, .. } = finished(SOURCE, subtask) else { unreachable!() };
    JobEvent::ExecutionVertexFinished { finish, coordinators: vec![] }
}

fn reported(fixture: &mut Fixture) {
    fixture.register(TM1, 1, [0, 1].map(|i| partition(attempt(SOURCE, i, OLD))).into());
}

fn resets(fixture: &Fixture) -> Vec<ExecutionVertexId> {
    let resets = fixture.recorded().into_iter().filter_map(|event| match event {
        JobEvent::ExecutionVertexReset { subtasks } => Some(subtasks),
        _ => None,
    });
    resets.flatten().collect()
}

fn splits_given(fixture: &mut Fixture, attempt: ExecutionAttemptId) -> Vec<u32> {
    let location = fixture.master.execution.deployed_at(attempt).expect("it runs");
    fixture.effects.clear();
    for received in 0..3 {
        let from = Address::new(location, ActorId::Task(attempt));
        fixture.tell(from, RequestSplit { attempt, received });
        if fixture.kinds().contains(&"NoMoreSplits") {
            break;
        }
    }
    fixture.sent(|_, message| match message {
        Message::AddSplit(message) => Some(message.split.id),
        _ => None,
    })
}

fn snapshots(fixture: &Fixture) -> Vec<usize> {
    let counts = fixture.recorded().into_iter().filter_map(|event| match event {
        JobEvent::ExecutionVertexFinished { finish, coordinators }
            if finish.attempt.subtask.vertex == SOURCE =>
        {
            Some(coordinators.len())
        }
        _ => None,
    });
    counts.collect()
}

#[test]
fn between_two_snapshots_lies_the_min_pause_but_the_last_finish_of_a_vertex_takes_one() {
    let pause = ("execution.batch.job-recovery.operator-coordinator-snapshot.min-pause", "10 s");
    let mut fixture = Fixture::new(&[pause]);
    fixture.run_until_sinks();
    assert_eq!(snapshots(&fixture), [1, 1], "the first of a leader is always taken");
    let mut fixture = Fixture::new(&[pause]);
    fixture.lead(vec![]);
    fixture.register(TM1, 1, vec![]);
    fixture.register(TM2, 2, vec![]);
    fixture.master.snapshots.covered(fixture.now);
    fixture.finish(attempt(SOURCE, 0, NOW));
    fixture.finish(attempt(SOURCE, 1, NOW));
    assert_eq!(snapshots(&fixture), [0, 1]);
}

#[test]
fn b1_finishes_since_the_latest_snapshot_are_taken_back_durably_with_their_splits() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(vec![initialized(SOURCE), finished(SOURCE, 0), without_snapshot(1)]);
    assert_eq!(resets(&fixture), [ExecutionVertexId::new(SOURCE, 1)]);
    reported(&mut fixture);
    assert_eq!(fixture.released(), [partition(attempt(SOURCE, 1, OLD)).partition], "nobody will read it");
    assert_eq!(fixture.submitted(), [], "not before it is durable");
    fixture.durable();
    let again = attempt(SOURCE, 1, NOW);
    assert_eq!(fixture.submitted(), [again]);
    assert_eq!(splits_given(&mut fixture, again), [1]);
}

#[test]
fn a_snapshot_covers_the_finishes_before_it() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(vec![initialized(SOURCE), without_snapshot(0), finished(SOURCE, 1)]);
    reported(&mut fixture);
    assert_eq!(resets(&fixture), []);
    assert_eq!(fixture.submitted(), [attempt(SINK, 0, NOW)]);
}

#[test]
fn with_static_assignment_no_snapshot_is_needed() {
    let mut fixture = Fixture::with_source(&[], Arc::new(OtherKind(SplitAssignment::Static, false)));
    fixture.lead(vec![initialized(SOURCE), without_snapshot(1)]);
    reported(&mut fixture);
    assert_eq!(resets(&fixture), []);
    let again = attempt(SOURCE, 0, NOW);
    assert_eq!(fixture.submitted(), [again]);
    assert_eq!(splits_given(&mut fixture, again), [0]);
}

#[test]
fn b24_a_source_without_snapshots_runs_as_a_whole_again_unless_all_of_it_had_finished() {
    let source = || Arc::new(OtherKind(SplitAssignment::Dynamic, false));
    let mut fixture = Fixture::with_source(&[], source());
    fixture.lead(vec![initialized(SOURCE), without_snapshot(0)]);
    assert_eq!(resets(&fixture), [ExecutionVertexId::new(SOURCE, 0)]);
    fixture.register(TM2, 2, vec![]);
    reported(&mut fixture);
    fixture.durable();
    assert_eq!(fixture.submitted(), [attempt(SOURCE, 0, NOW), attempt(SOURCE, 1, NOW)]);

    let mut fixture = Fixture::with_source(&[], source());
    fixture.lead(vec![initialized(SOURCE), without_snapshot(0), without_snapshot(1)]);
    reported(&mut fixture);
    assert_eq!(resets(&fixture), []);
    assert_eq!(fixture.submitted(), [attempt(SINK, 0, NOW)]);
}

#[test]
fn b24_when_one_subtask_of_an_unrecovered_source_runs_again_all_do_and_nothing_is_read_twice() {
    let source = Arc::new(OtherKind(SplitAssignment::Dynamic, false));
    let mut fixture = Fixture::with_source(&[], source);
    fixture.lead(vec![initialized(SOURCE), without_snapshot(0), without_snapshot(1)]);
    fixture.register(TM1, 1, vec![partition(attempt(SOURCE, 0, OLD))]);
    fixture.register(TM2, 2, vec![]);
    fixture.event(Event::Timer(RECOVERY_TIMEOUT));
    fixture.durable();
    let again = [attempt(SOURCE, 0, NOW), attempt(SOURCE, 1, NOW)];
    assert_eq!(fixture.submitted(), again);
    let mut splits = splits_given(&mut fixture, again[0]);
    splits.extend(splits_given(&mut fixture, again[1]));
    assert_eq!(splits, [0, 1]);
}

#[test]
fn b27_a_snapshot_that_cannot_be_restored_starts_the_job_over_and_no_later_leader_tries_it_again() {
    let JobEvent::ExecutionVertexFinished { finish, .. } = finished(SOURCE, 0) else { unreachable!() };
    let coordinators = vec![(SOURCE, Bytes::from_static(b"\xff"))];
    let events = vec![initialized(SOURCE), JobEvent::ExecutionVertexFinished { finish, coordinators }];
    let mut fixture = Fixture::new(&[]);
    fixture.lead(events);
    fixture.register(TM1, 1, vec![partition(attempt(SOURCE, 0, OLD))]);
    fixture.register(TM2, 2, vec![]);
    assert!(matches!(&fixture.recorded()[0], JobEvent::HistoryDiscarded { .. }));
    fixture.durable();
    assert_eq!(fixture.submitted(), [attempt(SOURCE, 0, NOW), attempt(SOURCE, 1, NOW)]);
    assert_eq!(fixture.released(), [partition(attempt(SOURCE, 0, OLD)).partition]);
}

/// An earlier leader took a source's finish back and died before it had taken back the consumer that had
/// read it, as in a recovery that is cut short.
#[test]
fn b1_b28_what_rests_on_a_finish_that_an_earlier_recovery_took_back_is_taken_back_by_the_next() {
    let mut fixture = Fixture::new(&[]);
    let mut events = sources_finished();
    events.extend([initialized(SINK), finished(SINK, 0)]);
    events.push(JobEvent::ExecutionVertexReset { subtasks: vec![ExecutionVertexId::new(SOURCE, 1)] });
    fixture.lead(events);
    reported(&mut fixture);
    assert_eq!(resets(&fixture), [ExecutionVertexId::new(SINK, 0)]);
    fixture.durable();
    assert_eq!(fixture.submitted(), [attempt(SOURCE, 1, NOW)]);
}

#[test]
fn after_a_global_failure_a_static_source_reads_each_split_once_again() {
    let source = Arc::new(OtherKind(SplitAssignment::Static, true));
    let mut fixture = Fixture::with_source(&[("restart-strategy.type", "fixed-delay")], source);
    fixture.lead(vec![]);
    fixture.register(TM1, 1, vec![]);
    fixture.register(TM2, 2, vec![]);
    let mut out = Outbox::new();
    fixture.master.fail_globally(Time(0), "lost count", &mut out);
    fixture.effects.extend(out.take());
    fixture.now = Time(2_000_000_000);
    fixture.event(Event::Timer(RESTART));
    let again = |subtask| ExecutionAttemptId { number: 2, ..attempt(SOURCE, subtask, NOW) };
    assert_eq!(splits_given(&mut fixture, again(0)), [0]);
    assert_eq!(splits_given(&mut fixture, again(1)), [1]);
}
