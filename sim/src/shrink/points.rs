//! Faults at earlier points, and at rounder times.

use std::sync::Arc;
use std::time::Duration;

use revenant::actor::Time;
use revenant::api::Program;

use crate::point::{CrashPoint, PointAt};
use crate::run::{Collect, RunOptions, run};
use crate::scenario::{Fault, MessageTrigger, Scenario, Trigger};

/// Earlier points that are tried of each fault, evenly spread over all: the steps that follow come closer.
const TRIED: usize = 40;

pub fn earlier(scenario: &Scenario, program: &Arc<Program>) -> Vec<Scenario> {
    let mut earlier = Vec::new();
    for (index, fault) in scenario.faults.iter().enumerate() {
        let triggers = match &fault.at {
            Trigger::Point(point) => points(scenario, index, point, program),
            Trigger::Time(time) => times(*time),
            Trigger::Message(message) => messages(*message),
            Trigger::CrashOf { .. } => Vec::new(),
        };
        for at in triggers {
            let mut changed = scenario.clone();
            changed.faults[index] = Fault { at, ..fault.clone() };
            earlier.push(changed);
        }
    }
    earlier
}

/// Points that the process passes before this one, in the run without the fault; the last of them, too. A point
/// by number becomes one by name at the same place, which is still one if something before it changes.
fn points(scenario: &Scenario, index: usize, point: &CrashPoint, program: &Arc<Program>) -> Vec<Trigger> {
    let mut without = scenario.clone();
    without.faults.remove(index);
    let collecting = RunOptions { collect: Collect::Of(point.process), ..RunOptions::default() };
    let found = run(&without, program, &collecting).detail.points;
    let before: Vec<_> = found.iter().take_while(|found| !is_at(&found.point, &found.names, point)).collect();
    let here = found.get(before.len());
    let named = here.and_then(|here| here.names.first()).filter(|_| !is_named(point));
    let of = |found: &crate::trace::FoundPoint| {
        let name = found.names.first().filter(|_| is_named(point));
        Trigger::Point(name.unwrap_or(&found.point).clone())
    };
    let step = before.len().div_ceil(TRIED).max(1);
    let spread = before.iter().step_by(step).chain(before.last()).map(|found| of(found));
    named.cloned().map(Trigger::Point).into_iter().chain(spread).collect()
}

fn is_named(point: &CrashPoint) -> bool {
    matches!(point.at, PointAt::Name { .. })
}

fn is_at(point: &CrashPoint, names: &[CrashPoint], wanted: &CrashPoint) -> bool {
    point == wanted || names.contains(wanted)
}

fn times(time: Time) -> Vec<Trigger> {
    let nanos = time.since(Time(0)).as_nanos() as u64;
    let units = [1_000_000_000, 100_000_000, 10_000_000, 1_000_000, 1_000];
    let mut earlier: Vec<u64> = units.iter().map(|unit| nanos / unit * unit).collect();
    earlier.insert(0, nanos / 2_000_000_000 * 1_000_000_000);
    earlier.push(nanos.saturating_sub(1_000_000_000));
    earlier.retain(|&earlier| earlier < nanos);
    earlier.dedup();
    earlier.into_iter().map(|nanos| Trigger::Time(Time(0) + Duration::from_nanos(nanos))).collect()
}

fn messages(message: MessageTrigger) -> Vec<Trigger> {
    (1..message.occurrence)
        .take(TRIED)
        .map(|occurrence| Trigger::Message(MessageTrigger { occurrence, ..message }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_become_rounder_and_earlier() {
        let of = |text: &str| -> Vec<String> {
            let Trigger::Time(time) = text.parse().unwrap() else { panic!() };
            times(time).iter().map(ToString::to_string).collect()
        };
        assert_eq!(
            of("t = 4659540946 ns"),
            [
                "t = 2 s",
                "t = 4 s",
                "t = 4600 ms",
                "t = 4650 ms",
                "t = 4659 ms",
                "t = 4659540 us",
                "t = 3659540946 ns"
            ]
        );
        assert_eq!(of("t = 0 s"), [""; 0]);
    }
}
