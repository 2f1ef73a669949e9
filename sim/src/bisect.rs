//! Where two runs that begin alike part, and what their actors know there.

use std::sync::Arc;

use revenant::api::Program;
use revenant::ids::ProcessId;
use similar::TextDiff;

use crate::run::{ProcessStates, RunOptions, run};
use crate::scenario::Scenario;

/// Lines around a difference of two states.
const CONTEXT: usize = 4;

/// Two runs that are not the same.
#[derive(Clone, Debug)]
pub struct Parting {
    /// So many first events are the same.
    pub alike: usize,
    /// The first event that differs, on each side; `None` where the run was over.
    pub events: [Option<String>; 2],
    /// The states differ before that event: what made the difference was no event.
    pub before: bool,
    /// Of the processes whose states differ, as unified diffs: before that event if they do so there, otherwise
    /// behind it.
    pub states: Vec<(ProcessId, String)>,
}

/// Where the two runs part; `None` if they are the same, event by event.
pub fn parting(scenarios: [&Scenario; 2], program: &Arc<Program>) -> Option<Parting> {
    let with = |options: RunOptions| scenarios.map(|scenario| run(scenario, program, &options).detail);
    let [a, b] = with(RunOptions { keep_text: true, ..RunOptions::default() }).map(|detail| detail.text);
    let alike = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    if alike == a.len() && alike == b.len() {
        return None;
    }
    let differences = |events: usize| {
        let cut = RunOptions { until: Some(events as u64), ..RunOptions::default() };
        let [a, b] = with(cut).map(|detail| detail.states);
        differences(&a, &b)
    };
    let before = differences(alike);
    let events = [a, b].map(|events| events.into_iter().nth(alike));
    let is_before = !before.is_empty();
    let states = if is_before { before } else { differences(alike + 1) };
    Some(Parting { alike, events, before: is_before, states })
}

fn differences(a: &[ProcessStates], b: &[ProcessStates]) -> Vec<(ProcessId, String)> {
    let mut processes: Vec<ProcessId> = a.iter().chain(b).map(|states| states.process).collect();
    processes.sort_unstable();
    processes.dedup();
    let of = |side: &[ProcessStates], process| {
        let found = side.iter().find(|states| states.process == process);
        found.map_or_else(|| format!("{process} does not exist\n"), ProcessStates::to_string)
    };
    let differing = processes.into_iter().filter_map(|process| {
        let (a, b) = (of(a, process), of(b, process));
        let diff = TextDiff::from_lines(&a, &b).unified_diff().context_radius(CONTEXT).to_string();
        (a != b).then_some((process, diff))
    });
    differing.collect()
}
