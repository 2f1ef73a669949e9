//! Faults, family by family. A family is a file with a table of its kinds; a kind draws its faults from
//! what the run was so far, or finds that there is nothing for it to break.

use std::collections::BTreeSet;

use revenant::actor::Time;
use revenant::ids::ProcessId;

use super::stream::{Purpose, Stream};
use crate::scenario::{
    Action, Fault, ProcessFault, ProcessFaultKind, Profile, RestartAfter, Scenario, Trigger,
};
use crate::trace::{FoundPoint, RunOutcome, TraceKind};

mod cancel;
mod clock;
mod crash;
mod disk;
mod high_availability;
mod network;
mod process;

/// One kind of fault.
pub struct Kind {
    pub name: &'static str,
    /// How often it is drawn, relative to others.
    pub weight: u64,
    /// Where nothing is promised.
    pub only_hostile: bool,
    pub draw: fn(&mut Stream, &Draft) -> Option<Vec<Fault>>,
}

const fn kind(name: &'static str, weight: u64, draw: fn(&mut Stream, &Draft) -> Option<Vec<Fault>>) -> Kind {
    Kind { name, weight, only_hostile: false, draw }
}

const FAMILIES: [(Purpose, &[Kind]); 7] = [
    (Purpose::Crash, crash::KINDS),
    (Purpose::Disk, disk::KINDS),
    (Purpose::Cancel, cancel::KINDS),
    (Purpose::Process, process::KINDS),
    (Purpose::Clock, clock::KINDS),
    (Purpose::HighAvailability, high_availability::KINDS),
    (Purpose::Network, network::KINDS),
];

/// What faults are drawn for.
pub struct Draft<'a> {
    pub scenario: &'a Scenario,
    pub profile: Profile,
    pub run: &'a RunOutcome,
    /// When the last fault so far was met.
    pub from: Time,
    /// When the client ended, or all did.
    pub until: Time,
}

impl<'a> Draft<'a> {
    pub fn of(scenario: &'a Scenario, profile: Profile, run: &'a RunOutcome) -> Self {
        let last = |is: fn(&TraceKind) -> bool| {
            run.trace.iter().rev().find(|event| is(&event.what)).map(|event| event.time)
        };
        let from = last(|what| matches!(what, TraceKind::FaultFired { .. })).unwrap_or(Time(0));
        let ended = run.trace.iter().rev().find(|event| {
            event.process == ProcessId::Client && matches!(event.what, TraceKind::Exited { .. })
        });
        let until = ended.map_or(run.end, |event| event.time);
        Self { scenario, profile, run, from, until }
    }

    /// Points that come behind all faults so far.
    pub fn points(&self) -> impl Iterator<Item = &'a FoundPoint> {
        let from = self.from;
        self.run.detail.points.iter().filter(move |found| found.time > from)
    }

    /// A time behind all faults so far, while the job runs.
    pub fn time(&self, draws: &mut Stream) -> Option<Time> {
        let span = self.until.0.checked_sub(self.from.0).filter(|span| *span > 1)?;
        Some(Time(self.from.0 + 1 + draws.below(span)))
    }

    pub fn is_hostile(&self) -> bool {
        self.profile == Profile::Hostile
    }

    /// Those of the cluster that are not the client's.
    pub fn processes(&self) -> Vec<ProcessId> {
        self.scenario.processes().collect()
    }

    /// Whether others can do what this process does: it is one of several, and no other stays down.
    pub fn can_be_spared(&self, process: ProcessId) -> bool {
        let same = |other: ProcessId| {
            matches!(
                (process, other),
                (ProcessId::TaskManager(_), ProcessId::TaskManager(_))
                    | (ProcessId::ShuffleService(_), ProcessId::ShuffleService(_))
            )
        };
        let never = |fault: &Fault| fault.restart_after == Some(RestartAfter::Never);
        self.scenario.processes().filter(|&other| same(other)).count() > 1
            && !self.scenario.faults.iter().any(never)
    }
}

pub fn at(time: Time, action: Action) -> Fault {
    Fault { at: Trigger::Time(time), action, restart_after: None }
}

/// How many faults a scenario shall have.
pub fn how_many(mix: &mut Stream, profile: Profile) -> u32 {
    match profile {
        Profile::Recoverable => mix.one_of(&[0, 1, 1, 1, 2, 2, 3, 4, 4, 6]),
        Profile::Hostile => mix.one_of(&[1, 2, 3, 4, 5, 8]),
    }
}

/// A stream for each family.
pub fn streams(seed: u64) -> Vec<Stream> {
    FAMILIES.iter().map(|(purpose, _)| Stream::of(seed, *purpose)).collect()
}

/// The names of all kinds.
pub fn kind_names() -> impl Iterator<Item = &'static str> {
    FAMILIES.iter().flat_map(|(_, kinds)| kinds.iter().map(|kind| kind.name))
}

/// Starts of processes that nothing keeps down once the missed faults are taken out: they met a process
/// that another fault had brought down.
pub fn without_cause(faults: &[Fault], missed: &BTreeSet<usize>) -> Vec<usize> {
    let stays_down = |process: ProcessId| {
        (0..).zip(faults).any(|(index, fault)| {
            let crash = matches!(fault.action, Action::Crash { process: dies, .. } if dies == process);
            crash && fault.restart_after == Some(RestartAfter::Never) && !missed.contains(&index)
        })
    };
    let is_lonely = |fault: &Fault| {
        matches!(fault.action, Action::Process(ProcessFault { kind: ProcessFaultKind::Start, process })
            if !stays_down(process))
    };
    (0..).zip(faults).filter(|(_, fault)| is_lonely(fault)).map(|(index, _)| index).collect()
}

/// Tries kinds until one finds something to break.
pub fn draw(mix: &mut Stream, streams: &mut [Stream], draft: &Draft) -> Option<(&'static str, Vec<Fault>)> {
    let kinds = || {
        let families = FAMILIES.iter().enumerate();
        let kinds = families.flat_map(|(family, (_, kinds))| kinds.iter().map(move |kind| (family, kind)));
        kinds.filter(|(_, kind)| draft.is_hostile() || !kind.only_hostile)
    };
    let all: u64 = kinds().map(|(_, kind)| kind.weight).sum();
    for _ in 0..10 {
        let mut place = mix.below(all);
        let chosen = kinds().find(|(_, kind)| {
            let is_it = place < kind.weight;
            place = place.saturating_sub(kind.weight);
            is_it
        });
        let (family, kind) = chosen?;
        if let Some(faults) = (kind.draw)(&mut streams[family], draft) {
            return Some((kind.name, faults));
        }
    }
    None
}
