//! `cargo sim points`: the crash points that one schedule passes.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use revenant::api::Program;
use revenant::ids::ProcessId;

use super::out::say;
use super::{CliResult, load, options};
use crate::run::Collect;

pub fn points(file: &Path, process: ProcessId, program: &Arc<Program>) -> CliResult {
    let scenario = load(file, program)?;
    scenario.check_process(process)?;
    let mut options = options();
    options.collect = Collect::Of(process);
    let outcome = crate::run::run(&scenario, program, &options);
    for point in &outcome.detail.points {
        let names: Vec<String> = point.names.iter().map(ToString::to_string).collect();
        say!("{}  event {:>6}  {}  {}", point.time, point.event, point.point, names.join("  "));
    }
    say!(
        "{} points of {process} in the schedule of seed {}",
        outcome.detail.points.len(),
        scenario.schedule.seed
    );
    Ok(ExitCode::SUCCESS)
}
