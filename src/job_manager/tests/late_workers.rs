//! Workers that come when the recovery does not wait for them any more (FLIP-383: "only TMs connected
//! within this period will be accepted, and those that time out will be rejected").

use super::*;

fn registration(process: ProcessId, session: u64, holds: bool) -> RegisterTaskManager {
    let (session, shuffle_service) = (SessionId(session), ShuffleServiceKind::TaskManager);
    RegisterTaskManager { token: NOW, process, session, slots: 1, retains: true, holds, shuffle_service }
}

/// A recovery that waited in vain for the second TaskManager.
fn after_the_window() -> Fixture {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(sources_finished());
    fixture.register(TM1, 1, vec![partition(attempt(SOURCE, 0, OLD))]);
    fixture.event(Event::Timer(RECOVERY_TIMEOUT));
    fixture.durable();
    fixture.effects.clear();
    fixture
}

#[test]
fn b15_a_worker_that_comes_too_late_with_partitions_is_rejected_and_welcome_without_them() {
    let mut fixture = after_the_window();
    fixture.tell(Address::executor(TM2), registration(TM2, 2, true));
    let rejections = fixture.sent(|to, message| match message {
        Message::RegistrationRejected(message) => Some((to, message.session, message.too_late)),
        _ => None,
    });
    assert_eq!(rejections, [(Address::executor(TM2), SessionId(2), true)]);
    assert!(!fixture.master.workers.is_registered(TM2));
    fixture.tell(Address::executor(TM2), registration(TM2, 2, false));
    assert!(fixture.kinds().contains(&"RegistrationSuccess"));
    assert!(fixture.master.workers.is_registered(TM2));
}

#[test]
fn a_worker_whose_answer_was_lost_is_not_late_when_it_asks_again() {
    let mut fixture = after_the_window();
    fixture.tell(Address::executor(TM1), registration(TM1, 1, true));
    assert!(fixture.kinds().contains(&"RegistrationSuccess"));
    assert!(!fixture.kinds().contains(&"RegistrationRejected"));
}

#[test]
fn a_worker_with_partitions_is_welcome_while_the_recovery_waits() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(sources_finished());
    for (process, session) in [(TM1, 1), (TM2, 2)] {
        fixture.tell(Address::executor(process), registration(process, session, true));
        assert!(fixture.master.workers.is_registered(process));
    }
}

#[test]
fn a_recovery_asks_a_worker_that_does_not_answer_again_before_its_heartbeat() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(sources_finished());
    fixture.tell(Address::executor(TM1), registration(TM1, 1, true));
    fixture.tell(Address::executor(TM2), registration(TM2, 2, true));
    let report = PartitionReport { token: NOW, session: SessionId(2), partitions: vec![] };
    fixture.tell(Address::executor(TM2), report);
    let asks = |fixture: &mut Fixture| {
        fixture.effects.clear();
        fixture.event(Event::Timer(ASK_AGAIN));
        let asked = fixture.sent(|to, message| {
            matches!(message, Message::GetAndRetainPartitionWithMetrics(_)).then_some(to)
        });
        let again =
            fixture.effects.iter().any(|effect| matches!(effect, Effect::SetTimer { timer: ASK_AGAIN, .. }));
        (asked, again)
    };
    assert_eq!(asks(&mut fixture), (vec![Address::executor(TM1)], true));
    fixture.event(Event::Timer(RECOVERY_TIMEOUT));
    fixture.durable();
    assert_eq!(asks(&mut fixture), (vec![], false));
}

#[test]
fn a_worker_that_does_not_say_what_it_keeps_is_asked_again_with_the_heartbeat() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(sources_finished());
    fixture.tell(Address::executor(TM1), registration(TM1, 1, true));
    let asked = |fixture: &Fixture| {
        fixture.kinds().into_iter().filter(|kind| *kind == "GetAndRetainPartitionWithMetrics").count()
    };
    assert_eq!(asked(&fixture), 1);
    fixture.event(Event::Timer(HEARTBEAT));
    assert_eq!(asked(&fixture), 2);
    fixture.tell(
        Address::executor(TM1),
        PartitionReport { token: NOW, session: SessionId(1), partitions: vec![] },
    );
    fixture.event(Event::Timer(HEARTBEAT));
    assert_eq!(asked(&fixture), 2);
}
