//! The end of a job: decision, visibility, cleaning up, and the HA service in between.

use super::*;

#[test]
fn b32_a_new_leader_commits_exactly_the_decided_list_whatever_an_earlier_one_had_done_of_it() {
    let decided = [0, 1].map(|subtask| committable(attempt(SINK, subtask, OLD)));
    let pending = |subtask: usize| decided[subtask].pending.clone();
    for done in 0..=2 {
        let mut fixture = Fixture::new(&[]);
        fixture.event(Event::Start);
        fixture.grant(true, Some(JobResult::Dirty(decision(decided.to_vec()))));
        let mut files: Vec<String> = (0..2)
            .map(|subtask| if subtask < done { decided[subtask].target.clone() } else { pending(subtask) })
            .collect();
        files.push(".pending/of-a-failed-attempt".to_owned());
        carry_out(&mut fixture, &mut files);
        assert!(fixture.kinds().contains(&"RecordJobResult"));
        let outcome = JobOutcome::Finished { committed: 2, accumulators: [].into() };
        fixture.tell(Address::HIGH_AVAILABILITY, JobResultRecorded { token: NOW, outcome });
        carry_out(&mut fixture, &mut files);
        files.sort();
        assert_eq!(files, ["out/0", "out/1"], "{done} were renamed before");
    }
}

fn decided(fixture: &Fixture) -> Vec<Vec<Committable>> {
    fixture.sent(|_, message| match message {
        Message::DecideCommit(message) => Some(message.decision.committables.clone()),
        _ => None,
    })
}

/// A leader that finds both sources and the first sink finished, and runs the second sink.
fn with_one_sink_to_run() -> Fixture {
    let mut events = sources_finished();
    events.extend([initialized(SINK), finished(SINK, 0)]);
    let mut fixture = Fixture::new(&[]);
    fixture.lead(events);
    fixture.register(TM1, 1, [0, 1].map(|i| partition(attempt(SOURCE, i, OLD))).into());
    fixture
}

#[test]
fn b30_no_attempt_of_a_new_leader_has_the_id_or_the_pending_file_of_an_earlier_one() {
    let mut events = sources_finished();
    events.extend([initialized(SINK), finished(SINK, 0), finished(SINK, 1)]);
    events.push(JobEvent::ExecutionVertexReset { subtasks: vec![ExecutionVertexId::new(SINK, 1)] });
    let mut fixture = Fixture::new(&[]);
    fixture.lead(events);
    fixture.register(TM1, 1, [0, 1].map(|i| partition(attempt(SOURCE, i, OLD))).into());
    let (old, [new]) = (attempt(SINK, 1, OLD), fixture.submitted()[..].try_into().expect("one runs"));
    assert_eq!((new.subtask, new.number), (old.subtask, old.number), "it is its leader's first, too");
    assert!(new > old);
    assert_ne!(committable(new).pending, committable(old).pending);
}

#[test]
fn b31_an_attempt_whose_finish_counts_cannot_fail_any_more_and_is_committed_once() {
    let mut fixture = with_one_sink_to_run();
    let sink = attempt(SINK, 1, NOW);
    fixture.finish(sink);
    let failure = TaskFailure { message: "it ended badly".to_owned(), missing: None };
    let state = TaskState::Failed(failure);
    let message = UpdateTaskExecutionState { token: NOW, session: SessionId(1), attempt: sink, state };
    fixture.tell(Address::worker(TM1), message);
    assert_eq!(fixture.submitted(), [sink]);
    assert_eq!(fixture.outcomes(), []);
    assert_eq!(decided(&fixture), [[committable(attempt(SINK, 0, OLD)), committable(sink)]]);
}

#[test]
fn b33_what_every_finished_subtask_wants_committed_is_decided_also_what_an_earlier_leader_recorded() {
    let mut fixture = with_one_sink_to_run();
    assert_eq!(decided(&fixture), [[]; 0]);
    fixture.finish(attempt(SINK, 1, NOW));
    let all = [committable(attempt(SINK, 0, OLD)), committable(attempt(SINK, 1, NOW))];
    assert_eq!(decided(&fixture), [all]);
}

#[test]
fn a_second_job_is_refused_with_what_to_do() {
    let mut fixture = Fixture::new(&[]);
    fixture.event(Event::Start);
    let record = JobRecord { name: "three".to_owned(), arguments: vec![], fingerprint: 3 };
    let other = RecordedJob { record, splits: BTreeMap::new() };
    let granted = LeadershipGranted { token: NOW, session: SessionId(3), job: Some(other), result: None };
    fixture.tell(Address::HIGH_AVAILABILITY, granted);
    let Some(Effect::Exit(ExitStatus::Failure(reason))) = fixture.effects.last() else {
        panic!("{:?}", fixture.effects)
    };
    for part in ["runs job 'three'", "not 'two'", "one job", "high-availability.cluster-id"] {
        assert!(reason.contains(part), "{reason}");
    }
    assert_eq!(fixture.kinds(), ["Contend"]);
}

#[test]
fn a_committed_file_that_is_gone_is_an_error_and_never_a_finished_job() {
    let decided = committable(attempt(SINK, 0, OLD));
    let mut fixture = Fixture::new(&[]);
    fixture.event(Event::Start);
    fixture.grant(true, Some(JobResult::Dirty(decision(vec![decided]))));
    carry_out(&mut fixture, &mut Vec::new());
    assert!(!fixture.kinds().contains(&"RecordJobResult"));
    let failed = |effect: &Effect| matches!(effect, Effect::Exit(ExitStatus::Failure(_)));
    assert!(fixture.effects.iter().any(failed));
}

#[test]
fn s12_nothing_runs_after_a_clean_result() {
    let mut fixture = Fixture::new(&[]);
    fixture.event(Event::Start);
    fixture
        .grant(true, Some(JobResult::Clean(JobOutcome::Finished { committed: 2, accumulators: [].into() })));
    carry_out(&mut fixture, &mut Vec::new());
    fixture.register(TM1, 1, vec![partition(attempt(SOURCE, 0, OLD))]);
    assert_eq!(fixture.submitted(), []);
    assert!(fixture.kinds().contains(&"JobTerminated"));
    fixture.tell(Address::WRITER, crate::message::JobEventsCleared {});
    assert_eq!(fixture.effects.last(), Some(&Effect::Exit(ExitStatus::Success)));
}

#[test]
fn what_the_high_availability_service_did_not_answer_is_asked_again_with_the_lease() {
    let mut fixture = Fixture::new(&[]);
    fixture.event(Event::Start);
    fixture.grant(false, None);
    fixture.effects.clear();
    fixture.event(Event::Timer(RENEW_LEASE));
    assert_eq!(fixture.kinds(), ["RenewLease", "RecordJob"]);

    let mut events = sources_finished();
    events.extend([initialized(SINK), finished(SINK, 0), finished(SINK, 1)]);
    let mut fixture = Fixture::new(&[]);
    fixture.lead(events);
    fixture.effects.clear();
    fixture.event(Event::Timer(RENEW_LEASE));
    assert_eq!(fixture.kinds(), ["RenewLease", "DecideCommit"]);
}

#[test]
fn a_commit_decision_that_comes_twice_is_carried_out_once() {
    let mut events = sources_finished();
    events.extend([initialized(SINK), finished(SINK, 0), finished(SINK, 1)]);
    let mut fixture = Fixture::new(&[]);
    fixture.lead(events);
    let committables = vec![committable(attempt(SINK, 0, OLD))];
    let decided = CommitDecided { token: NOW, decision: decision(committables) };
    fixture.tell(Address::HIGH_AVAILABILITY, decided.clone());
    fixture.effects.clear();
    fixture.tell(Address::HIGH_AVAILABILITY, decided);
    assert_eq!(fixture.effects, []);
}

#[test]
fn a_failed_job_leaves_no_uncommitted_output() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(vec![]);
    fixture.register(TM1, 1, vec![]);
    let failure = TaskFailure { message: "boom".to_owned(), missing: None };
    fixture.state(attempt(SOURCE, 0, NOW), TaskState::Failed(failure));
    let mut files = vec![".pending/half".to_owned(), "out/of-another-job".to_owned()];
    carry_out(&mut fixture, &mut files);
    assert_eq!(files.len(), 2, "nothing goes before the failure is durable");
    let outcome = JobOutcome::Failed { reason: "boom".to_owned() };
    fixture.tell(Address::HIGH_AVAILABILITY, JobResultRecorded { token: NOW, outcome });
    carry_out(&mut fixture, &mut files);
    assert_eq!(files, ["out/of-another-job"]);
    assert_eq!(fixture.master.status(), JobStatus::Failed);
}

#[test]
fn a_store_that_fails_after_the_jobs_end_keeps_the_process_only_until_its_log_is_dealt_with() {
    let mut fixture = Fixture::new(&[]);
    fixture.event(Event::Start);
    fixture
        .grant(true, Some(JobResult::Clean(JobOutcome::Finished { committed: 2, accumulators: [].into() })));
    carry_out(&mut fixture, &mut Vec::new());
    let failure = crate::job_event::StoreFailure { message: "no".to_owned() };
    fixture.tell(Address::WRITER, crate::message::JobEventStoreFailed { token: NOW, failure });
    assert!(!fixture.effects.iter().any(|effect| matches!(effect, Effect::Exit(_))));
    fixture.tell(Address::WRITER, crate::message::JobEventsCleared {});
    assert_eq!(fixture.effects.last(), Some(&Effect::Exit(ExitStatus::Success)));
}

#[test]
fn b4_nothing_of_the_job_goes_before_its_end_is_durable() {
    let gone = |fixture: &Fixture| {
        fixture
            .kinds()
            .into_iter()
            .any(|kind| ["ClearJobEvents", "JobTerminated", "ReleasePartitions"].contains(&kind))
    };
    let mut fixture = Fixture::new(&[]);
    fixture.run_until_sinks();
    fixture.finish(attempt(SINK, 0, NOW));
    fixture.finish(attempt(SINK, 1, NOW));
    let committables = [0, 1].map(|subtask| committable(attempt(SINK, subtask, NOW)));
    let mut files: Vec<String> = committables.iter().map(|committable| committable.pending.clone()).collect();
    carry_out(&mut fixture, &mut files);
    assert!(files.iter().all(|file| file.starts_with(".pending")), "not before the decision is durable");
    let decided = CommitDecided { token: NOW, decision: decision(committables.into()) };
    fixture.tell(Address::HIGH_AVAILABILITY, decided);
    carry_out(&mut fixture, &mut files);
    assert!(!gone(&fixture), "the files are there, the result is not durable yet");
    let outcome = JobOutcome::Finished { committed: 2, accumulators: [].into() };
    fixture.tell(Address::HIGH_AVAILABILITY, JobResultRecorded { token: NOW, outcome });
    carry_out(&mut fixture, &mut files);
    assert!(gone(&fixture));
}

#[test]
fn b42_a_leader_that_was_followed_by_another_clears_nothing_of_the_job() {
    let mut fixture = Fixture::new(&[]);
    fixture.run_until_sinks();
    let outcome = JobOutcome::Finished { committed: 0, accumulators: [].into() };
    fixture.tell(Address::HIGH_AVAILABILITY, JobResultRecorded { token: OLD, outcome });
    fixture.tell(Address::HIGH_AVAILABILITY, crate::message::Fenced { token: NOW, current: FencingToken(8) });
    assert!(matches!(fixture.effects.last(), Some(Effect::Exit(ExitStatus::Failure(_)))));
    assert!(!fixture.kinds().contains(&"ClearJobEvents") && !fixture.kinds().contains(&"JobTerminated"));
}
