//! Where in an incarnation a crash point lies: counts effects, finds armed faults, collects points.

use std::collections::BTreeMap;

use revenant::actor::{Effect, Time};
use revenant::ids::{ActorId, ProcessId};

use crate::point::{CrashPoint, PointAt};
use crate::scenario::{Fault, Trigger};
use crate::trace::FoundPoint;

/// The crash points of one incarnation.
#[derive(Debug)]
pub struct Points {
    process: ProcessId,
    incarnation: u32,
    /// Faults that wait for a point of this incarnation.
    armed: Vec<(usize, CrashPoint)>,
    collect: bool,
    /// Whether effects must be counted by name.
    by_name: bool,
    occurrences: BTreeMap<String, u32>,
    /// Name of the effect that left last in this event.
    left: Option<CrashPoint>,
}

/// A place between two effects.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub actor: ActorId,
    pub event: u64,
    /// Counting effects of the event that have left.
    pub effect: u32,
    pub time: Time,
    /// Number of the event in the run.
    pub run_event: u64,
}

impl Points {
    pub fn new(process: ProcessId, incarnation: u32, faults: &[Fault], collect: bool) -> Self {
        let armed: Vec<(usize, CrashPoint)> = faults
            .iter()
            .enumerate()
            .filter_map(|(index, fault)| match &fault.at {
                Trigger::Point(point) if point.process == process && point.incarnation == incarnation => {
                    Some((index, point.clone()))
                }
                _ => None,
            })
            .collect();
        let by_name = collect || armed.iter().any(|(_, point)| matches!(point.at, PointAt::Name { .. }));
        Self { process, incarnation, armed, collect, by_name, occurrences: BTreeMap::new(), left: None }
    }

    /// Whether nobody waits for any point, so that nothing need be looked at.
    pub fn idle(&self) -> bool {
        self.armed.is_empty() && !self.collect
    }

    /// The place before `next` leaves (or at the event's end): the faults that fire here, and the
    /// point for the record if it is collected.
    pub fn before(
        &mut self,
        place: Place,
        next: Option<&Effect>,
    ) -> (Vec<(usize, String)>, Option<FoundPoint>) {
        let number = PointAt::Number { actor: place.actor, event: place.event, effect: place.effect };
        let mut names: Vec<CrashPoint> = self.left.take().into_iter().collect();
        if self.by_name
            && let Some(effect) = next
        {
            let name = effect.name();
            let occurrence = self.occurrences.entry(name.clone()).or_default();
            *occurrence += 1;
            let occurrence = *occurrence;
            let at = |after| PointAt::Name { name: name.clone(), occurrence, after };
            self.left = Some(self.point(at(true)));
            names.push(self.point(at(false)));
        }
        let fires = self
            .armed
            .iter()
            .filter(|(_, point)| point.at == number || names.iter().any(|name| name.at == point.at))
            .map(|(fault, point)| (*fault, point.to_string()))
            .collect();
        let found = self.collect.then(|| FoundPoint {
            point: self.point(number),
            names,
            time: place.time,
            event: place.run_event,
            survivors: 0,
            images: Vec::new(),
        });
        (fires, found)
    }

    fn point(&self, at: PointAt) -> CrashPoint {
        CrashPoint { process: self.process, incarnation: self.incarnation, at }
    }
}
