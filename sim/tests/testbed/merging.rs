//! Points with the same survivors need be tried only once: the runs of those that are merged keep the same
//! finishes, run the same number of tasks again and write the same output as that of their representative.

use std::collections::BTreeMap;
use std::path::Path;

use revenant_sim::digest::output_digest;
use revenant_sim::oracle::Judge;
use revenant_sim::run::{Collect, RunOptions, run};
use revenant_sim::scenario::{Fault, Scenario, Unsynced};

use super::program;

/// Of the points that are merged, one of so many is run.
const SAMPLE: usize = 4;

/// What became of a run: kept finishes, tasks that ran again, output.
type Became = (Result<(u32, u32), String>, u64);

/// Points, states, and how many merged points were run.
fn compared(name: &str) -> (usize, usize, usize) {
    let program = program();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios").join(name);
    let scenario = Scenario::load(&file, &program).unwrap_or_else(|error| panic!("{error}"));
    let judge = Judge::new(&scenario, &program).expect("the job has a reference");
    let options = RunOptions { collect: Collect::JobManagers, survivors: true, ..RunOptions::default() };
    let watched = run(&scenario, &program, &options);
    let plain = run(&scenario, &program, &RunOptions::default());
    assert_eq!(watched.hash, plain.hash, "watching changes nothing");
    let cases = watched.detail.points.iter().flat_map(|found| {
        let images = found.images.iter().map(|&(image, survivors)| (Some(image), survivors));
        [(None, found.survivors)]
            .into_iter()
            .chain(images)
            .map(|(image, survivors)| (&found.point, image, survivors))
    });
    let cases: Vec<_> = cases.collect();
    let became = |index: usize| -> Became {
        let (point, image, _) = &cases[index];
        let mut crashed = scenario.clone();
        crashed.faults.push(Fault::crash_at((*point).clone(), image.is_some()));
        crashed.disk.unsynced_at_machine_crash = image.unwrap_or(Unsynced::Lost);
        let outcome = run(&crashed, &program, &RunOptions::default());
        let verdict = judge.judge(&outcome).map(|verdict| (verdict.kept, verdict.rerun));
        (verdict.map_err(|violation| violation.to_string()), output_digest(&outcome.output))
    };
    let mut representatives: BTreeMap<u64, usize> = BTreeMap::new();
    let mut merged = Vec::new();
    for (index, (_, _, survivors)) in cases.iter().enumerate() {
        let first = *representatives.entry(*survivors).or_insert(index);
        if first != index {
            merged.push((first, index));
        }
    }
    let sample: Vec<_> = merged.iter().step_by(SAMPLE).collect();
    for &&(first, index) in &sample {
        assert_eq!(became(first), became(index), "{name}: {:?} stands for {:?}", cases[first], cases[index]);
    }
    (cases.len(), representatives.len(), sample.len())
}

#[test]
fn a_merged_point_and_its_representative_come_to_the_same() {
    let (mut points, mut states, mut tried) = (0, 0, 0);
    for name in ["lineitem.toml", "lineitem-local-log.toml", "standby.toml", "two-inputs-broadcast.toml"] {
        let (more_points, more_states, more_tried) = compared(name);
        assert!(more_states * 3 < more_points * 2, "{name}: {more_points} points, {more_states} states");
        (points, states, tried) = (points + more_points, states + more_states, tried + more_tried);
    }
    assert!(tried > 100, "{points} points, {states} states, {tried} tried");
}
