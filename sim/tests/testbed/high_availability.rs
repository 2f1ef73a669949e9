//! Faults of high availability: what each does to the leader, to who stands by and to workers, and when.

use revenant::actor::Time;
use revenant::ids::ProcessId;
use revenant::message::Message;
use revenant::note::Note;
use revenant::probe::Probe;
use revenant_sim::run::{RunOptions, run};
use revenant_sim::trace::{RunEnd, RunOutcome, TraceEvent, TraceKind};

use super::{LINEITEM, program, scenario};

const AT: u64 = 45_000_000;
const SECOND: u64 = 1_000_000_000;

fn told(fault: &str, job_managers: u32) -> RunOutcome {
    let fault = format!("{LINEITEM}\n[[fault]]\nat = 't = 45 ms'\ndo = '{fault}'\n");
    let mut scenario = scenario(&fault);
    scenario.cluster.job_managers = job_managers;
    let outcome = run(&scenario, &program(), &RunOptions { keep_messages: true, ..RunOptions::default() });
    assert_eq!((&outcome.ended, &outcome.vacuous[..]), (&RunEnd::Finished, &[][..]));
    let fired = outcome.trace.iter().find(|event| matches!(event.what, TraceKind::HaFault(_)));
    assert_eq!(fired.map(|event| event.time), Some(Time(AT)));
    outcome
}

/// How long after the fault this happened first, in nanoseconds.
fn after(outcome: &RunOutcome, wanted: impl Fn(&TraceEvent) -> bool) -> u64 {
    let later = outcome.trace.iter().filter(|event| event.time > Time(AT));
    later.into_iter().find(|event| wanted(event)).expect("it happens").time.0 - AT
}

fn leads(outcome: &RunOutcome, process: ProcessId) -> u64 {
    after(outcome, |event| {
        event.process == process && matches!(event.what, TraceKind::Note(Note::LeadershipAcquired { .. }))
    })
}

/// Whether somebody hears that there is no leader.
fn nobody_leads(outcome: &RunOutcome) -> bool {
    let soon = Time(AT)..Time(AT + SECOND / 100);
    let later = outcome.detail.messages.iter().filter(|delivered| soon.contains(&delivered.time));
    later
        .into_iter()
        .any(|delivered| matches!(&delivered.message, Message::LeaderChanged(news) if news.leader.is_none()))
}

/// When the old leader ends for want of leadership.
fn gives_up(outcome: &RunOutcome) -> u64 {
    after(outcome, |event| {
        event.process == ProcessId::JOB_MANAGER && matches!(event.what, TraceKind::Exited { .. })
    })
}

#[test]
fn a_change_makes_the_standby_lead_and_the_old_leader_hears_of_it_only_with_notice() {
    let told_of_it = told("change leader", 2);
    let not_told = told("change leader without notice", 2);
    for outcome in [&told_of_it, &not_told] {
        assert!(leads(outcome, ProcessId::JobManager(2)) < SECOND / 10 && !nobody_leads(outcome));
        let lost = |event: &TraceEvent| matches!(event.what, TraceKind::Note(Note::JobManagerLost { .. }));
        assert!(after(outcome, lost) < SECOND / 10);
    }
    assert!(gives_up(&told_of_it) < SECOND / 10 && !told_of_it.probes.contains_key(&Probe::FencedByLog));
    // It records something, and finds that its log is not its own any more.
    assert!(gives_up(&not_told) > gives_up(&told_of_it) && not_told.probes.contains_key(&Probe::FencedByLog));
}

#[test]
fn a_leadership_that_is_revoked_goes_to_who_comes_back_if_nobody_stands_by() {
    let told_of_it = told("revoke leadership", 1);
    assert!(gives_up(&told_of_it) < SECOND / 10);
    let leads_again = leads(&told_of_it, ProcessId::JOB_MANAGER);
    assert!(
        (SECOND..SECOND * 3 / 2).contains(&leads_again),
        "it is started again after a second: {leads_again}"
    );
    let not_told = told("revoke leadership without notice", 1);
    assert!(gives_up(&not_told) > SECOND, "it learns of it when it renews its lease");
    let stands_by = told("revoke leadership", 2);
    assert!(leads(&stands_by, ProcessId::JobManager(2)) < SECOND / 10 && nobody_leads(&stands_by));
}
