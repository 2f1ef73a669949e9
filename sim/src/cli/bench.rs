//! `cargo sim bench`: what a run costs.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use revenant::api::Program;
use revenant::ids::ProcessId;

use super::out::say;
use super::{CliResult, load, options};
use crate::oracle::Judge;
use crate::run::Collect;
use crate::scenario::Fault;

/// Crash-and-recover runs on one core, each judged by all oracles: each crashes the JobManager at
/// another of its points. The run without a crash and the reference are not counted.
pub fn bench(file: &Path, seconds: u64, program: &Arc<Program>) -> CliResult {
    let scenario = load(file, program)?;
    let mut collecting = options();
    collecting.collect = Collect::Of(ProcessId::JOB_MANAGER);
    let points = crate::run::run(&scenario, program, &collecting).detail.points;
    if points.is_empty() {
        return Err("the JobManager passes no crash point in this scenario".to_owned().into());
    }
    let judge = Judge::new(&scenario, program)?;
    let mut broken = 0u64;
    let (mut runs, mut messages, mut events, mut simulated) = (0u64, 0u64, 0u64, Duration::ZERO);
    let begin = Instant::now();
    // A step that shares no factor with most counts spreads the points over any duration.
    let mut next = 0;
    while begin.elapsed() < Duration::from_secs(seconds) {
        let mut scenario = scenario.clone();
        scenario.faults.push(Fault::crash_at(points[next % points.len()].point.clone(), false));
        next += 61;
        let outcome = crate::run::run(&scenario, program, &options());
        broken += u64::from(judge.judge(&outcome).is_err());
        runs += 1;
        messages += outcome.messages;
        events += outcome.events;
        simulated += outcome.end.since(revenant::actor::Time(0));
    }
    let real = begin.elapsed().as_secs_f64();
    say!("{runs} crash-and-recover runs with their oracles in {real:.1} s on one core, {broken} broken");
    say!("{:.0} runs/s/core, {:.2} ms a run", runs as f64 / real, real * 1000.0 / runs as f64);
    say!("{:.0} messages/s, {:.0} events/s", messages as f64 / real, events as f64 / real);
    say!("{} messages and {} events a run", messages / runs.max(1), events / runs.max(1));
    say!("simulated time runs {:.0} times as fast as real time", simulated.as_secs_f64() / real);
    Ok(if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
