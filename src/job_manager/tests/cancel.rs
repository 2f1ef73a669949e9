//! The end that somebody asks for, in every phase of a leader's life (B50), and what still runs then.

use super::*;
use crate::message::{CancelJob, JobRecorded, RecordJobResult};

fn cancel(fixture: &mut Fixture) {
    fixture.tell(Address::new(ProcessId::Client, ActorId::Client), CancelJob {});
}

fn recorded(fixture: &mut Fixture, outcome: JobOutcome) {
    fixture.tell(Address::HIGH_AVAILABILITY, JobResultRecorded { token: NOW, outcome });
}

/// A leader in the phase, with nothing sent yet in it.
fn in_phase(phase: &str) -> Fixture {
    let options = [("restart-strategy.type", "fixed-delay")];
    let mut fixture = Fixture::new(&options);
    match phase {
        "enumerating the splits" => {
            fixture = enumeration::leader(&options);
            fixture.grant(false, None);
        }
        "recording the job" => {
            fixture.event(Event::Start);
            fixture.grant(false, None);
        }
        "opening the store" => {
            fixture.event(Event::Start);
            fixture.grant(true, None);
        }
        "reconciling" => {
            fixture.lead(sources_finished());
            fixture.register(TM1, 1, vec![partition(attempt(SOURCE, 0, OLD))]);
        }
        "logging the recovery" => {
            fixture.lead(sources_finished());
            fixture.register(TM1, 1, vec![partition(attempt(SOURCE, 0, OLD))]);
            fixture.event(Event::Timer(RECOVERY_TIMEOUT));
        }
        "running" => fixture.run_until_sinks(),
        "restarting" => {
            fixture.run_until_sinks();
            fixture.fail(attempt(SINK, 0, NOW), None);
            assert_eq!(fixture.master.status(), JobStatus::Restarting);
        }
        other => panic!("no phase {other}"),
    }
    fixture.effects.clear();
    fixture
}

#[test]
fn b50_a_job_is_cancelled_in_every_phase_before_its_commit_was_asked_for() {
    for (phase, tasks) in [
        ("enumerating the splits", 0),
        ("recording the job", 0),
        ("opening the store", 0),
        ("reconciling", 0),
        ("logging the recovery", 0),
        ("running", 2),
        ("restarting", 1),
    ] {
        let mut fixture = in_phase(phase);
        cancel(&mut fixture);
        assert_eq!(fixture.outcomes(), [JobOutcome::Canceled], "{phase}");
        let running = fixture.cancelled();
        assert_eq!(running.len(), tasks, "{phase}");
        cancel(&mut fixture);
        assert_eq!(fixture.outcomes().len(), 1, "{phase}: once is enough");

        // Whatever was under way comes too late.
        fixture.tell(Address::HIGH_AVAILABILITY, JobRecorded { token: NOW });
        let replay = Arc::new(Replay { events: sources_finished(), damage: None });
        fixture.tell(Address::WRITER, crate::message::JobEventStoreOpened { token: NOW, replay });
        assert!(!fixture.kinds().contains(&"ClearJobEvents"), "{phase}");
        for timer in [RECOVERY_TIMEOUT, RESTART] {
            fixture.event(Event::Timer(timer));
        }
        let durable = crate::message::JobEventsDurable { token: NOW, sequence: u64::MAX };
        fixture.tell(Address::WRITER, durable);
        fixture.register(TM2, 2, vec![]);
        assert_eq!(fixture.submitted(), [], "{phase}");
        assert_eq!(fixture.master.status(), JobStatus::Canceled, "{phase}");

        recorded(&mut fixture, JobOutcome::Canceled);
        for attempt in running {
            fixture.state(attempt, TaskState::Canceled);
        }
        let mut files = vec![".pending/half".to_owned()];
        carry_out(&mut fixture, &mut files);
        assert!(files.is_empty(), "{phase}");
        assert!(fixture.kinds().contains(&"ClearJobEvents"), "{phase}");
        assert!(fixture.kinds().contains(&"JobTerminated"), "{phase}: its partitions go");
        fixture.tell(Address::WRITER, crate::message::JobEventsCleared {});
        assert_eq!(fixture.effects.last(), Some(&Effect::Exit(ExitStatus::Success)), "{phase}");
    }
}

#[test]
fn b50_who_is_told_before_it_knows_that_it_leads_cancels_as_soon_as_it_does() {
    for (job, options) in
        [(false, &[][..]), (true, &[]), (true, &[("execution.batch.job-recovery.enabled", "false")])]
    {
        let mut fixture = Fixture::new(options);
        fixture.event(Event::Start);
        fixture.effects.clear();
        cancel(&mut fixture);
        assert_eq!(fixture.effects, []);
        let registration = RegisterTaskManager {
            token: NOW,
            process: TM1,
            session: SessionId(1),
            slots: 1,
            retains: true,
            holds: false,
            shuffle_service: ShuffleServiceKind::TaskManager,
        };
        fixture.tell(Address::worker(TM1), registration);
        fixture.grant(job, None);
        assert_eq!(fixture.outcomes(), [JobOutcome::Canceled]);
        assert_eq!(fixture.submitted(), []);
    }
}

#[test]
fn a_worker_cannot_ask_for_a_cancel() {
    let mut fixture = in_phase("running");
    fixture.tell(Address::worker(TM1), CancelJob {});
    assert_eq!(fixture.effects, []);
}

#[test]
fn after_the_commit_decision_was_asked_for_it_is_too_late_to_cancel() {
    let mut events = sources_finished();
    events.extend([initialized(SINK), finished(SINK, 0), finished(SINK, 1)]);
    let mut fixture = Fixture::new(&[]);
    fixture.lead(events);
    assert!(fixture.kinds().contains(&"DecideCommit"));
    fixture.effects.clear();
    cancel(&mut fixture);
    assert_eq!(fixture.effects, []);
    fixture.tell(Address::HIGH_AVAILABILITY, CommitDecided { token: NOW, decision: decision(vec![]) });
    cancel(&mut fixture);
    carry_out(&mut fixture, &mut Vec::new());
    assert!(matches!(fixture.outcomes()[..], [JobOutcome::Finished { .. }]));
}

#[test]
fn whoever_wanted_another_end_goes_on_to_commit_what_is_decided() {
    let mut fixture = in_phase("reconciling");
    cancel(&mut fixture);
    let decided = committable(attempt(SINK, 0, OLD));
    let mut files = vec![decided.pending.clone()];
    let message = CommitDecided { token: NOW, decision: decision(vec![decided.clone()]) };
    fixture.tell(Address::HIGH_AVAILABILITY, message);
    carry_out(&mut fixture, &mut files);
    assert_eq!(files, [decided.target]);
    assert!(matches!(fixture.outcomes()[..], [JobOutcome::Canceled, JobOutcome::Finished { .. }]));
}

#[test]
fn what_could_still_write_is_waited_for_before_uncommitted_output_is_deleted() {
    let mut fixture = in_phase("running");
    cancel(&mut fixture);
    let disk = |fixture: &Fixture| fixture.effects.iter().any(|effect| matches!(effect, Effect::Disk { .. }));
    recorded(&mut fixture, JobOutcome::Canceled);
    assert!(!disk(&fixture));
    // A cancel that was lost is sent again.
    let running = attempt(SINK, 1, NOW);
    let location = fixture.master.execution.deployed_at(running).unwrap();
    let session = SessionId(if location == TM1 { 1 } else { 2 });
    fixture.effects.clear();
    let response = HeartbeatResponse { token: NOW, session, attempts: vec![running] };
    fixture.tell(Address::worker(location), response);
    assert_eq!(fixture.cancelled(), [running]);
    fixture.state(attempt(SINK, 0, NOW), TaskState::Canceled);
    assert!(!disk(&fixture));
    // The other TaskManager is gone for good.
    fixture.now = Time(0) + Configuration::default().heartbeat_timeout * 2;
    fixture.event(Event::Timer(HEARTBEAT));
    assert!(disk(&fixture));
    assert_eq!(fixture.submitted(), []);
}

#[test]
fn what_was_not_recorded_is_asked_for_again_with_the_lease() {
    let mut fixture = in_phase("running");
    cancel(&mut fixture);
    fixture.effects.clear();
    fixture.event(Event::Timer(RENEW_LEASE));
    let asked = RecordJobResult { token: NOW, outcome: JobOutcome::Canceled };
    assert_eq!(fixture.effects[1], Effect::Send { to: Address::HIGH_AVAILABILITY, message: asked.into() });
}
