//! Whom a leader may miss though nothing of theirs is lost for good: what E1, E2 and S6 have to know of faults. A
//! worker that could not answer for some time, or to whom an answer took too long, may be given up, and its
//! partitions with it; those of the others may not. Every family of faults has to be told here, and in
//! [`super::disturbance`].

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use revenant::actor::Purpose;
use revenant::disk::Volume;
use revenant::ids::ProcessId;
use revenant::note::Note;

use super::History;
use super::history::{Leader, Patience};
use crate::scenario::{DiskFault, DiskFaultKind};
use crate::trace::{Touched, TraceEvent, TraceKind, What};

/// Whom a leader may have missed until some moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missed {
    /// All of them: what runs again then is another question.
    Everyone,
    Only(BTreeSet<ProcessId>),
}

impl Missed {
    pub fn nobody() -> Self {
        Self::Only(BTreeSet::new())
    }

    pub fn includes(&self, worker: ProcessId) -> bool {
        match self {
            Self::Everyone => true,
            Self::Only(workers) => workers.contains(&worker),
        }
    }
}

/// A worker that dies after the recovery takes partitions along. The same holds of one that dies before the
/// recovery ends and after it was registered: the leader may hear of it later. (One that dies before that has
/// changed what recovery finds alive.) A partition that a broken disk does not give back is lost as well, and so
/// is one of a worker that does not answer. After a global failure everything runs again, and a leader that was
/// told to go is left by everyone.
pub fn missed(history: &History, leader: &Leader, until: usize) -> Missed {
    let trace = &history.outcome.trace[..until.min(history.outcome.trace.len())];
    let since = leader.recovered.unwrap_or(leader.acquired);
    let in_office = || trace.iter().enumerate().skip(leader.acquired);
    let failed_globally = history.global_failures.iter().any(|&at| since < at && at < until);
    if failed_globally
        || in_office().any(|(_, event)| leaves_the_leader(leader, event))
        || stood_still_too_long(history, leader, trace)
    {
        return Missed::Everyone;
    }
    let Some(mut missed) = read_too_slowly(history, leader, trace) else { return Missed::Everyone };
    missed.extend(stood_still(trace, leader.acquired));
    missed.extend(could_not_be_heard(trace, leader, history.patience.recovery));
    missed.extend(turned_away(history, trace, leader));
    for (at, event) in in_office() {
        let had_registered = || {
            let registered = &history.registered;
            registered.iter().any(|&(when, who)| who == event.process && leader.acquired < when && when < at)
        };
        let is_missed = match &event.what {
            TraceKind::Crashed { .. } | TraceKind::Exited { .. } => at > since || had_registered(),
            TraceKind::DiskRefused { error } => {
                at >= since && error.volume == Volume::Local && error.operation == "read"
            }
            TraceKind::ClockChanged { fault: Some(_), .. } => true,
            _ => false,
        };
        if is_missed && is_worker(event.process) {
            missed.insert(event.process);
        }
    }
    Missed::Only(missed)
}

fn is_worker(process: ProcessId) -> bool {
    matches!(process, ProcessId::TaskManager(_) | ProcessId::ShuffleService(_))
}

/// Whether a fault ended the leadership, so that workers turn to the next leader, or the leader's clock jumped or
/// was set right, so that its timeouts seem to have passed.
fn leaves_the_leader(leader: &Leader, event: &TraceEvent) -> bool {
    match event.what {
        TraceKind::HaFault(_) => true,
        TraceKind::ClockChanged { fault: Some(_), .. } => event.process == leader.process,
        _ => false,
    }
}

/// Whether the leader stood still so long that a time was over when it went on: that for which it waits for partitions
/// or its store, or that after which it and its workers take each other for dead.
fn stood_still_too_long(history: &History, leader: &Leader, trace: &[TraceEvent]) -> bool {
    let Patience { recovery, store, silence, .. } = history.patience;
    let waits = if recovery.is_zero() { store } else { recovery };
    let mut since = None;
    trace.iter().enumerate().filter(|(_, event)| event.process == leader.process).any(|(at, event)| {
        match event.what {
            TraceKind::Paused => since = Some(event.time),
            TraceKind::Resumed if at > leader.acquired => {
                let paused = since.map_or(Duration::ZERO, |since| event.time.since(since));
                let in_office = event.time.since(history.time(leader.acquired));
                let recovers = leader.recovered.is_none_or(|recovered| recovered > at);
                return paused >= silence || recovers && in_office >= waits;
            }
            _ => {}
        }
        false
    })
}

/// Workers that had turned to the leader and away again, because a fault ended the leadership before the leader
/// had heard of it: then the fault comes before the leader's time in office, and after that of the one before it.
fn turned_away(history: &History, trace: &[TraceEvent], leader: &Leader) -> BTreeSet<ProcessId> {
    let before = history.leaders.iter().rev().find(|other| other.acquired < leader.acquired);
    let since = before.map_or(0, |before| before.acquired);
    let faulty = trace.iter().skip(since).skip_while(|event| !matches!(event.what, TraceKind::HaFault(_)));
    let lost = faulty.filter(|event| {
        matches!(event.what, TraceKind::Note(Note::JobManagerLost { token }) if token == leader.token)
    });
    lost.map(|event| event.process).collect()
}

/// Workers whose disk was for some time in the leader's office so slow that a reader of their partitions takes them for
/// dead; `None` if it was everybody's. What was begun before a heal comes as late.
fn read_too_slowly(history: &History, leader: &Leader, trace: &[TraceEvent]) -> Option<BTreeSet<ProcessId>> {
    let mut slow = BTreeSet::new();
    for (at, event) in trace.iter().enumerate() {
        let TraceKind::DiskFault(DiskFault {
            purpose: Purpose::Partition,
            process,
            kind: DiskFaultKind::Slow(by),
        }) = event.what
        else {
            continue;
        };
        let healed = trace[at..].iter().find(|later| {
            matches!(later.what, TraceKind::DiskFault(heal)
                if heal.purpose == Purpose::Partition && heal.process == process && heal.kind == DiskFaultKind::Heal)
        });
        let is_over = healed.is_some_and(|heal| heal.time + by.0 < history.time(leader.acquired));
        if by.0 >= history.patience.silence && !is_over {
            slow.insert(process?);
        }
    }
    Some(slow)
}

/// Workers that were paused at some time since `from`.
fn stood_still(trace: &[TraceEvent], from: usize) -> BTreeSet<ProcessId> {
    let mut stood = BTreeSet::new();
    let mut silent = BTreeSet::new();
    for (at, event) in trace.iter().enumerate().filter(|(_, event)| is_worker(event.process)) {
        match event.what {
            TraceKind::Paused => _ = silent.insert(event.process),
            TraceKind::Resumed | TraceKind::Crashed { .. } | TraceKind::Exited { .. }
                if silent.remove(&event.process) && at >= from =>
            {
                stood.insert(event.process);
            }
            _ => {}
        }
    }
    stood.extend(silent);
    stood
}

/// How a worker comes to a new leader, which it tries again only after a long pause.
const INTRODUCTION: [&str; 4] =
    ["WatchLeader", "LeaderChanged", "RegisterTaskManager", "RegistrationSuccess"];
/// The leader asks what a worker keeps, and asks again as long as it waits.
const CLAIM: &[&str] = &["GetAndRetainPartitionWithMetrics", "PartitionReport"];
/// What is said again soon, so that one loss does nothing: what a worker keeps, what it gives to readers, that
/// it lives.
const REPEATED: [&[&str]; 3] = [
    CLAIM,
    &["OpenFetch", "Buffers", "AddCredit", "PartitionNotFound"],
    &["HeartbeatRequest", "HeartbeatResponse"],
];

/// Workers of whom an introduction was lost, or two of what is said again, or that something late held up. A leader that
/// waits for no time asks once.
fn could_not_be_heard(trace: &[TraceEvent], leader: &Leader, waits: Duration) -> BTreeSet<ProcessId> {
    let mut unheard = BTreeSet::new();
    let Some(begin) = trace.get(leader.acquired) else { return unheard };
    let mut lost: BTreeMap<(usize, ProcessId), u32> = BTreeMap::new();
    for (at, event) in trace.iter().enumerate() {
        let TraceKind::Message(Touched { kind, from, to, what }) = &event.what else { continue };
        let ends = [from.process, to.process];
        if ends.into_iter().any(|end| matches!(end, ProcessId::JobManager(_)) && end != leader.process) {
            continue;
        }
        let is_late = match *what {
            // It holds up what follows it, too.
            What::Delayed(by) | What::Slowed(by) => at >= leader.acquired || event.time + by >= begin.time,
            _ => false,
        };
        let is_lost = match *what {
            What::Overtaken(by) => at >= leader.acquired || event.time + by >= begin.time,
            What::Repeated(_) | What::Delayed(_) | What::Slowed(_) => false,
            What::Dropped | What::Cut | What::LostOnTheWay | What::Reset => at >= leader.acquired,
        };
        for worker in ends.into_iter().filter(|end| is_worker(*end)) {
            let again = REPEATED.iter().position(|kinds| kinds.contains(kind)).filter(|_| is_lost);
            let times = again.map_or(0, |about| {
                let times = lost.entry((about, worker)).or_default();
                *times += 1;
                *times
            });
            let asked_once = is_lost && waits.is_zero() && CLAIM.contains(kind);
            if is_late || is_lost && INTRODUCTION.contains(kind) || asked_once || times > 1 {
                unheard.insert(worker);
            }
        }
    }
    unheard
}

#[cfg(test)]
mod tests {
    use revenant::ids::{Address, FencingToken};
    use revenant::note::Note;

    use super::*;
    use crate::clock::Clock;
    use crate::oracle::Patience;
    use crate::oracle::testing::{Story, with_history};
    use crate::scenario::{Action, HaFault};

    const WORKER: ProcessId = ProcessId::TaskManager(1);
    const OTHER: ProcessId = ProcessId::TaskManager(2);

    fn touched(kind: &'static str, what: What) -> TraceKind {
        let to = Address::worker(WORKER);
        TraceKind::Message(Touched { kind, from: Address::MASTER, to, what })
    }

    /// Whom the second leader may have missed at the end.
    fn missed_by_second(story: &Story) -> Missed {
        with_history(story, |history| missed(history, &history.leaders[1], history.outcome.trace.len()))
    }

    fn only(workers: &[ProcessId]) -> Missed {
        Missed::Only(workers.iter().copied().collect())
    }

    /// After the second leader came.
    fn happened(events: &[(ProcessId, TraceKind)]) -> Missed {
        let mut story = Story::new();
        story.start().crash().lead(2);
        for (process, event) in events {
            story.happens(*process, event.clone());
        }
        missed_by_second(&story)
    }

    fn heard(touched: &[TraceKind]) -> bool {
        let events: Vec<_> = touched.iter().map(|event| (ProcessId::JOB_MANAGER, event.clone())).collect();
        let missed = happened(&events);
        assert!(missed == only(&[]) || missed == only(&[WORKER]), "{missed:?}");
        missed == only(&[])
    }

    #[test]
    fn one_lost_question_is_asked_again_and_an_introduction_is_not_in_time() {
        let ask = touched("GetAndRetainPartitionWithMetrics", What::Dropped);
        assert!(heard(std::slice::from_ref(&ask)));
        assert!(!heard(&[ask, touched("PartitionReport", What::Cut)]));
        assert!(!heard(&[touched("LeaderChanged", What::Dropped)]));
        assert!(heard(&[touched("Buffers", What::Dropped), touched("SubmitTask", What::Dropped)]));
        assert!(!heard(&[touched("Buffers", What::Dropped), touched("OpenFetch", What::Dropped)]));
        let beat = touched("HeartbeatResponse", What::Dropped);
        assert!(heard(std::slice::from_ref(&beat)) && !heard(&[beat.clone(), beat]));
    }

    #[test]
    fn a_leader_that_does_not_wait_asks_once() {
        let ask = touched("GetAndRetainPartitionWithMetrics", What::Dropped);
        let mut story = Story::new();
        story.start().crash().lead(2).happens(ProcessId::JOB_MANAGER, ask);
        assert_eq!(missed_by_second(&story), only(&[]));
        let missed = with_history(&story, |history| {
            let patience = Patience { recovery: Duration::ZERO, ..history.patience };
            let history = History::new(history.graph, history.shape, patience, history.outcome);
            missed(&history, &history.leaders[1], history.outcome.trace.len())
        });
        assert_eq!(missed, only(&[WORKER]));
    }

    #[test]
    fn all_may_be_missed_by_a_leader_that_stood_still_for_as_long_as_it_waits() {
        let missed = |process: ProcessId, seconds: u64, recovered: bool| {
            let mut story = Story::new();
            story.start().crash().lead(2);
            if recovered {
                story.recovered(2, &[]);
            }
            story.happens(process, TraceKind::Paused).wait(seconds).happens(process, TraceKind::Resumed);
            missed_by_second(&story)
        };
        let (leader, other) = (ProcessId::JOB_MANAGER, ProcessId::JobManager(2));
        // It waits 30 s in its recovery, and is dead to workers that hear nothing for 40 s.
        assert_eq!(missed(leader, 30, false), Missed::Everyone);
        assert_eq!(missed(leader, 29, false), only(&[]));
        assert_eq!(missed(leader, 40, true), Missed::Everyone);
        assert_eq!(missed(leader, 39, true), only(&[]));
        assert_eq!(missed(other, 100, false), only(&[]));
    }

    #[test]
    fn what_is_late_holds_up_the_rest_and_what_comes_twice_does_not() {
        let second = Duration::from_secs(1);
        assert!(!heard(&[touched("SubmitTask", What::Delayed(second))]));
        assert!(heard(&[touched("SubmitTask", What::Overtaken(second))]));
        assert!(heard(&[touched("LeaderChanged", What::Repeated(second))]));
    }

    #[test]
    fn what_was_late_or_lost_between_a_worker_and_another_leader_is_nothing_to_this_one() {
        let between = |from: ProcessId| {
            let (from, to) = (Address::master(from), Address::worker(WORKER));
            let what = What::Delayed(Duration::from_secs(1));
            let touched = TraceKind::Message(Touched { kind: "SubmitTask", from, to, what });
            happened(&[(WORKER, touched)])
        };
        assert_eq!(between(ProcessId::JobManager(2)), only(&[]));
        assert_eq!(between(ProcessId::JOB_MANAGER), only(&[WORKER]));
    }

    #[test]
    fn a_worker_is_missed_from_its_pause_on_and_not_if_it_was_resumed_before_the_leader_came() {
        assert_eq!(happened(&[(WORKER, TraceKind::Paused)]), only(&[WORKER]));
        let mut story = Story::new();
        story.start().happens(WORKER, TraceKind::Paused).happens(OTHER, TraceKind::Paused);
        story.happens(OTHER, TraceKind::Resumed).crash().lead(2);
        assert_eq!(missed_by_second(&story), only(&[WORKER]));
        story.happens(WORKER, TraceKind::Resumed);
        assert_eq!(missed_by_second(&story), only(&[WORKER]));
    }

    #[test]
    fn a_worker_that_dies_after_it_was_registered_is_missed_and_nobody_else() {
        let crashed = TraceKind::Crashed { machine: false, point: None };
        let registered = TraceKind::Note(Note::TaskManagerRegistered { process: WORKER });
        let happened = |events: &[(ProcessId, TraceKind)]| {
            let mut story = Story::new();
            story.start().crash().lead(2);
            for (process, event) in events {
                story.happens(*process, event.clone());
            }
            missed_by_second(story.recovered(2, &[]))
        };
        assert_eq!(happened(&[(WORKER, crashed.clone())]), only(&[]), "recovery does not find it");
        let registered = (ProcessId::JOB_MANAGER, registered);
        assert_eq!(happened(&[registered, (WORKER, crashed)]), only(&[WORKER]));
    }

    #[test]
    fn workers_whose_disk_is_slower_than_readers_are_patient_are_missed() {
        let fault = |text: &str| match text.parse() {
            Ok(Action::Disk(fault)) => TraceKind::DiskFault(fault),
            other => panic!("{other:?}"),
        };
        let missed = |before: &[&str], after: &[&str]| {
            let mut story = Story::new();
            story.start();
            for text in before {
                story.happens(ProcessId::JOB_MANAGER, fault(text));
            }
            story.wait(100).crash().lead(2);
            for text in after {
                story.happens(ProcessId::JOB_MANAGER, fault(text));
            }
            missed_by_second(&story)
        };
        let slow = "disk slow partition by 40 s";
        assert_eq!(missed(&[], &[slow]), Missed::Everyone);
        assert_eq!(missed(&[slow], &["disk heal partition"]), Missed::Everyone);
        assert_eq!(missed(&[slow, "disk heal partition"], &[]), only(&[]));
        assert_eq!(missed(&[], &["disk slow partition by 40 s of task-manager-1"]), only(&[WORKER]));
        for other in ["disk slow partition by 39 s", "disk slow spill by 40 s"] {
            assert_eq!(missed(&[], &[other]), only(&[]), "{other}");
        }
    }

    #[test]
    fn the_clocks_of_the_leader_and_of_workers_count_and_no_others() {
        let jumped = || match "clock of task-manager-1 jump +5 s".parse() {
            Ok(Action::Clock(fault)) => {
                TraceKind::ClockChanged { fault: Some(fault), clock: Clock::default() }
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(happened(&[(WORKER, jumped())]), only(&[WORKER]));
        assert_eq!(happened(&[(ProcessId::JOB_MANAGER, jumped())]), Missed::Everyone);
        for process in [ProcessId::Client, ProcessId::HighAvailability, ProcessId::JobManager(2)] {
            assert_eq!(happened(&[(process, jumped())]), only(&[]), "{process}");
        }
    }

    #[test]
    fn everyone_leaves_a_leader_that_is_told_to_go_and_all_runs_again_after_a_global_failure() {
        let fault = HaFault { successor: true, notice: false };
        assert_eq!(happened(&[(ProcessId::HighAvailability, TraceKind::HaFault(fault))]), Missed::Everyone);
        let (token, reason) = (FencingToken(2), "lost count".to_owned());
        let failed = TraceKind::Note(Note::GlobalFailure { token, reason });
        assert_eq!(happened(&[(ProcessId::JOB_MANAGER, failed)]), Missed::Everyone);
    }
}
