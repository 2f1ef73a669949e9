//! What a new leader makes of what an earlier one left.

use super::*;

#[test]
fn recovery_waits_until_the_required_partitions_are_reported_and_runs_nothing_again() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(sources_finished());
    fixture.register(TM2, 2, vec![partition(attempt(SOURCE, 1, OLD))]);
    assert_eq!(fixture.submitted(), []);
    fixture.register(TM1, 1, vec![partition(attempt(SOURCE, 0, OLD))]);
    assert_eq!(fixture.submitted(), [attempt(SINK, 0, NOW), attempt(SINK, 1, NOW)]);
}

#[test]
fn a_recovery_waits_as_long_as_it_is_told_for_what_is_not_reported() {
    let key = "execution.batch.job-recovery.previous-worker.recovery.timeout";
    let mut fixture = Fixture::new(&[(key, "7 s")]);
    fixture.now = Time(1_000_000_000);
    fixture.lead(sources_finished());
    fixture.register(TM1, 1, vec![partition(attempt(SOURCE, 0, OLD))]);
    let due = fixture.effects.iter().filter_map(|effect| match effect {
        Effect::SetTimer { timer: RECOVERY_TIMEOUT, at } => Some(*at),
        _ => None,
    });
    assert_eq!(due.last(), Some(Time(8_000_000_000)));
    assert_eq!((fixture.submitted(), fixture.master.status()), (vec![], JobStatus::Reconciling));
    fixture.event(Event::Timer(RECOVERY_TIMEOUT));
    fixture.durable();
    assert_eq!(fixture.submitted(), [attempt(SOURCE, 1, NOW)]);
}

#[test]
fn b1_a_finish_whose_partition_is_lost_is_taken_back_durably_before_anything_runs() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(sources_finished());
    fixture.register(TM1, 1, vec![partition(attempt(SOURCE, 0, OLD))]);
    fixture.event(Event::Timer(RECOVERY_TIMEOUT));
    let lost = ExecutionVertexId::new(SOURCE, 1);
    assert_eq!(fixture.recorded(), [JobEvent::ExecutionVertexReset { subtasks: vec![lost] }]);
    assert!(fixture.kinds().contains(&"FlushJobEvents"));
    assert_eq!(fixture.submitted(), []);
    fixture.durable();
    assert_eq!(fixture.submitted(), [attempt(SOURCE, 1, NOW)]);
    let task = Address::new(TM1, ActorId::Task(attempt(SOURCE, 1, NOW)));
    fixture.tell(task, RequestSplit { attempt: attempt(SOURCE, 1, NOW), received: 0 });
    let splits = fixture.sent(|_, message| match message {
        Message::AddSplit(message) => Some(message.split.id),
        _ => None,
    });
    assert_eq!(splits, [1], "the split of the lost subtask comes back, and no other");
}

#[test]
fn b2_a_consumer_whose_initialization_was_lost_is_initialized_by_the_new_leader() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(sources_finished());
    fixture.register(TM1, 1, [0, 1].map(|i| partition(attempt(SOURCE, i, OLD))).into());
    assert_eq!(fixture.recorded(), [initialized(SINK)]);
}

#[test]
fn b3_b20_a_job_whose_tasks_are_all_finished_in_the_log_commits_without_any_partition() {
    let mut events = sources_finished();
    events.extend([initialized(SINK), finished(SINK, 0), finished(SINK, 1)]);
    let mut fixture = Fixture::new(&[]);
    fixture.lead(events);
    let decided = fixture.sent(|_, message| match message {
        Message::DecideCommit(message) => Some(message.decision.committables.clone()),
        _ => None,
    });
    assert_eq!(decided, [[0, 1].map(|subtask| committable(attempt(SINK, subtask, OLD)))]);
}

#[test]
fn b20_a_sink_that_never_finished_is_not_finished_for_want_of_partitions() {
    let mut events = sources_finished();
    events.extend([initialized(SINK), finished(SINK, 0)]);
    let mut fixture = Fixture::new(&[]);
    fixture.lead(events);
    fixture.register(TM1, 1, [0, 1].map(|i| partition(attempt(SOURCE, i, OLD))).into());
    assert_eq!(fixture.submitted(), [attempt(SINK, 1, NOW)]);
}

#[test]
fn b17_partitions_that_no_finish_names_are_released_by_the_id_that_was_reported() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(vec![initialized(SOURCE), finished(SOURCE, 0)]);
    let orphan = partition(attempt(SOURCE, 1, OLD));
    fixture.register(TM1, 1, vec![partition(attempt(SOURCE, 0, OLD)), orphan.clone()]);
    assert_eq!(fixture.released(), [orphan.partition]);
    assert_eq!(fixture.submitted(), [attempt(SOURCE, 1, NOW)]);
}

#[test]
fn the_partition_of_an_older_attempt_does_not_stand_for_a_newer_one() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(sources_finished());
    let older = partition(attempt(SOURCE, 1, FencingToken(5)));
    fixture.register(TM1, 1, vec![partition(attempt(SOURCE, 0, OLD)), older.clone()]);
    assert_eq!(fixture.submitted(), []);
    fixture.event(Event::Timer(RECOVERY_TIMEOUT));
    assert!(fixture.released().contains(&older.partition));
}

#[test]
fn a_worker_that_knows_the_leader_before_the_leader_does_need_not_register_twice() {
    let mut fixture = Fixture::new(&[]);
    fixture.event(Event::Start);
    let message = RegisterTaskManager {
        token: NOW,
        process: TM1,
        session: SessionId(1),
        slots: 1,
        retains: true,
        holds: false,
        shuffle_service: ShuffleServiceKind::TaskManager,
    };
    fixture.tell(Address::executor(TM1), message);
    assert_eq!(fixture.kinds(), ["Contend"]);
    fixture.grant(true, None);
    assert!(fixture.kinds().contains(&"RegistrationSuccess"));
}

#[test]
fn a_producer_whose_partition_is_there_stays_finished_though_its_consumer_runs_again() {
    let mut graph = Fixture::new(&[]);
    let mut events = sources_finished();
    events.extend([initialized(SINK), finished(SINK, 0)]);
    graph.lead(events);
    graph.register(TM1, 1, vec![partition(attempt(SOURCE, 0, OLD))]);
    graph.event(Event::Timer(RECOVERY_TIMEOUT));
    graph.durable();
    assert_eq!(graph.submitted(), [attempt(SOURCE, 1, NOW)]);
}

#[test]
fn b15_what_a_late_worker_reports_is_released_and_its_slots_are_used() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(sources_finished());
    fixture.event(Event::Timer(RECOVERY_TIMEOUT));
    fixture.durable();
    let late = partition(attempt(SOURCE, 0, OLD));
    fixture.register(TM1, 1, vec![late.clone()]);
    assert_eq!(fixture.released(), [late.partition]);
    assert_eq!(fixture.submitted(), [attempt(SOURCE, 0, NOW)]);
}

#[test]
fn s7_a_finish_counts_only_if_no_later_reset_exists() {
    let mut events = sources_finished();
    events.push(JobEvent::ExecutionVertexReset { subtasks: vec![ExecutionVertexId::new(SOURCE, 1)] });
    let mut fixture = Fixture::new(&[]);
    fixture.lead(events);
    let kept = [0, 1].map(|i| partition(attempt(SOURCE, i, OLD)));
    fixture.register(TM1, 1, kept.into());
    assert_eq!(fixture.submitted(), [attempt(SOURCE, 1, NOW)]);
}

#[test]
fn b18_a_history_that_cannot_be_true_is_discarded_durably_and_the_job_starts_over() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(vec![finished(SOURCE, 0)]);
    let recorded = fixture.recorded();
    assert!(matches!(recorded[..], [JobEvent::HistoryDiscarded { .. }]), "{recorded:?}");
    fixture.register(TM1, 1, vec![partition(attempt(SOURCE, 0, OLD))]);
    assert_eq!(fixture.submitted(), []);
    fixture.durable();
    assert_eq!(fixture.submitted(), [attempt(SOURCE, 0, NOW)]);
    let again = vec![finished(SOURCE, 0), recorded[0].clone(), initialized(SOURCE)];
    assert_eq!(crate::scheduler::fold(&again, &graph(Arc::new(TwoSplits))).unwrap().finished.len(), 0);
}

#[test]
fn without_job_recovery_the_log_is_not_even_read() {
    let mut fixture = Fixture::new(&[("execution.batch.job-recovery.enabled", "false")]);
    fixture.event(Event::Start);
    fixture.grant(true, None);
    fixture.register(TM1, 1, vec![partition(attempt(SOURCE, 0, OLD))]);
    assert!(!fixture.kinds().contains(&"OpenJobEventStore"));
    assert_eq!(fixture.released(), [partition(attempt(SOURCE, 0, OLD)).partition]);
    assert_eq!(fixture.submitted(), [attempt(SOURCE, 0, NOW)]);
}

#[test]
fn what_names_no_result_of_the_job_is_released_and_never_a_panic() {
    let mut foreign = partition(attempt(SOURCE, 0, OLD));
    foreign.partition.data_set = IntermediateDataSetId(77);
    let mut fixture = Fixture::new(&[]);
    fixture.lead(sources_finished());
    fixture.register(TM1, 1, vec![foreign.clone()]);
    fixture.event(Event::Timer(RECOVERY_TIMEOUT));
    fixture.durable();
    fixture.register(TM2, 1, vec![foreign.clone()]);
    assert_eq!(fixture.released(), [foreign.partition; 2]);
    let running = attempt(SOURCE, 0, NOW);
    let state = TaskState::Finished {
        partitions: vec![foreign],
        committables: vec![],
        metrics: IoMetrics::default(),
        accumulators: [].into(),
    };
    fixture.state(running, state);
    assert!(!fixture.master.execution.is_finished(running.subtask));
}

#[test]
fn b18_b19_a_recovery_that_fails_starts_the_job_over_under_any_restart_strategy_and_records_all_anew() {
    let mut fixture = Fixture::new(&[("restart-strategy.type", "none")]);
    // A finish of a vertex that was never initialized.
    fixture.lead(vec![finished(SOURCE, 0)]);
    fixture.register(TM1, 1, vec![]);
    fixture.register(TM2, 2, vec![]);
    fixture.durable();
    assert_eq!(fixture.submitted(), [attempt(SOURCE, 0, NOW), attempt(SOURCE, 1, NOW)]);
    let recorded = fixture.recorded();
    assert!(matches!(&recorded[0], JobEvent::HistoryDiscarded { .. }));
    assert_eq!(recorded[1..], [initialized(SOURCE)]);
    // The next leader replays all of it.
    let mut events = vec![finished(SOURCE, 0)];
    events.extend(recorded);
    let mut next = Fixture::new(&[]);
    next.lead(events);
    assert!(next.recorded().is_empty());
}

#[test]
fn accumulators_and_metrics_of_recovered_finishes_count_once() {
    let counted = |event: JobEvent, rows: i64| {
        let JobEvent::ExecutionVertexFinished { mut finish, coordinators } = event else { return event };
        finish.accumulators = [("rows".to_owned(), rows)].into();
        JobEvent::ExecutionVertexFinished { finish, coordinators }
    };
    let mut events = vec![initialized(SOURCE)];
    // Finished twice: only the second counts.
    events.push(counted(finished(SOURCE, 0), 100));
    events.push(JobEvent::ExecutionVertexReset { subtasks: vec![ExecutionVertexId::new(SOURCE, 0)] });
    events.push(counted(finished(SOURCE, 0), 1));
    events.push(counted(finished(SOURCE, 1), 20));
    events.extend([initialized(SINK), counted(finished(SINK, 0), 300)]);
    let mut fixture = Fixture::new(&[]);
    fixture.lead(events);
    fixture.register(TM1, 1, [0, 1].map(|i| partition(attempt(SOURCE, i, OLD))).into());
    let last = attempt(SINK, 1, NOW);
    let accumulators = [("rows".to_owned(), 4000), ("files".to_owned(), 1)].into();
    let committables = vec![committable(last)];
    fixture.state(
        last,
        TaskState::Finished { partitions: vec![], committables, metrics: IoMetrics::default(), accumulators },
    );
    let decided = fixture.sent(|_, message| match message {
        Message::DecideCommit(message) => Some(message.decision.accumulators.clone()),
        _ => None,
    });
    assert_eq!(decided, [[("files".to_owned(), 1), ("rows".to_owned(), 4321)].into()]);
}

#[test]
fn b35_a_consumer_with_one_input_lost_and_one_kept_runs_when_the_lost_one_is_back() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(sources_finished());
    fixture.register(TM1, 1, vec![partition(attempt(SOURCE, 0, OLD))]);
    fixture.register(TM2, 1, vec![]);
    fixture.event(Event::Timer(RECOVERY_TIMEOUT));
    fixture.durable();
    assert_eq!(fixture.submitted(), [attempt(SOURCE, 1, NOW)]);
    fixture.finish(attempt(SOURCE, 1, NOW));
    assert_eq!(fixture.submitted()[1..], [attempt(SINK, 0, NOW), attempt(SINK, 1, NOW)]);
}

#[test]
fn b21_a_leader_leaves_no_trace_in_the_job_graph_that_the_next_one_in_its_process_uses() {
    let mut first = Fixture::new(&[]);
    let open = Arc::new(JobGraph {
        vertices: graph(Arc::new(TwoSplits))
            .vertices
            .iter()
            .map(|vertex| JobVertex {
                id: vertex.id,
                name: vertex.name.clone(),
                parallelism: None,
                max_parallelism: None,
                inputs: vertex.inputs.clone(),
                outputs: vertex.outputs.clone(),
                source: vertex.source.clone(),
                uids: vec![],
                determinacy: vertex.determinacy,
                recovery_obstacles: vec![],
                body: Arc::clone(&vertex.body),
            })
            .collect(),
        name: "two".to_owned(),
        options: vec![],
        edges: graph(Arc::new(TwoSplits)).edges.clone(),
        fingerprint: 1,
    });
    first.master.execution = ExecutionGraph::new(Arc::clone(&open));
    first.lead(vec![]);
    assert_eq!(first.master.execution.parallelism(SOURCE), Some(2), "as many as there are splits");
    let mut second = Fixture::new(&[]);
    second.master.execution = ExecutionGraph::new(open);
    assert_eq!(second.master.execution.parallelism(SOURCE), None);
    // What the log says is what counts.
    second.lead(vec![JobEvent::ExecutionJobVertexInitialized {
        vertex: SOURCE,
        parallelism: 1,
        inputs: vec![vec![]],
    }]);
    assert_eq!(second.master.execution.parallelism(SOURCE), Some(1));
}
