//! `cargo sim scale`: what a large job costs, and what the recovery of its JobManager costs, beside
//! a smaller one. Each run is a process of its own, so that its peak of memory is its own.

use std::collections::BTreeMap;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use revenant::actor::Time;
use revenant::api::Program;
use revenant::ids::ProcessId;
use revenant::message::JobStatus;
use revenant::note::Note;

use super::memory::kilobytes;
use super::out::say;
use super::{CliResult, options};
use crate::oracle::Judge;
use crate::run::run;
use crate::scenario::{Action, Fault, Scenario, Trigger};
use crate::trace::{RunOutcome, TraceKind};

/// Subtasks to one TaskManager.
const SUBTASKS_TO_A_WORKER: u32 = 50;
/// What grows by so much more than the job is no longer near linear.
const SUPERLINEAR: f64 = 2.0;
/// What takes less than this part of the time does not dominate.
const WORTH_A_LINE: f64 = 0.01;

#[derive(Args)]
pub struct ScaleArgs {
    /// Subtasks of the smaller and of the larger job, from 100 to 50000.
    #[arg(long, num_args = 2, value_names = ["SMALL", "LARGE"], default_values_t = [1000, 10_000],
          value_parser = clap::value_parser!(u32).range(100..=50_000))]
    subtasks: Vec<u32>,
}

#[derive(Args)]
pub struct MeasureArgs {
    #[arg(long, value_parser = clap::value_parser!(u32).range(100..=50_000))]
    subtasks: u32,
    /// Nanoseconds of simulated time.
    #[arg(long)]
    crash_at: Option<u64>,
}

/// What one run took, by name; times in microseconds.
type Figures = BTreeMap<String, u64>;

/// Two vertices with a rescale edge between them, so that each task reads from few.
fn scenario(subtasks: u32) -> Result<Scenario, String> {
    let parallelism = subtasks / 2;
    let workers = subtasks.div_ceil(SUBTASKS_TO_A_WORKER);
    let rows = parallelism * 4;
    let text = format!(
        r#"
[job]
name = "dataflow"
[job.arguments]
plan = "numbers = source rows={rows} splits={parallelism} parallelism={parallelism}; mapped = map numbers via rescale parallelism={parallelism}; out = sink mapped via forward"
[cluster]
task-managers = {workers}
[config]
"execution.batch.job-recovery.enabled" = true
"execution.batch.job-recovery.operator-coordinator-snapshot.min-pause" = "1 s"
"job-event.store.write-buffer.flush-interval" = "10 ms"
"taskmanager.numberOfTaskSlots" = 10
"restart-strategy.type" = "fixed-delay"
"#
    );
    Scenario::parse("scale", &text).map_err(|error| error.to_string())
}

/// One run, in this process: prints its figures.
pub fn measure(args: &MeasureArgs, program: &Arc<Program>) -> CliResult {
    let mut scenario = scenario(args.subtasks)?;
    scenario.check(program).map_err(|error| error.to_string())?;
    if let Some(at) = args.crash_at {
        let action = Action::Crash { process: ProcessId::JOB_MANAGER, machine: false };
        scenario.faults.push(Fault { at: Trigger::Time(Time(at)), action, restart_after: None });
    }
    let begin = Instant::now();
    let outcome = run(&scenario, program, &crate::run::RunOptions { profile: true, ..options() });
    let took = begin.elapsed();
    let peak = kilobytes("VmHWM").unwrap_or(0);
    let verdict = Judge::new(&scenario, program)?.judge(&outcome);
    let verdict = verdict.map_err(|violation| format!("{} subtasks: {violation}", args.subtasks))?;
    let mut figures = figures(&outcome);
    figures.insert("wall".to_owned(), micros(took));
    figures.insert("peak".to_owned(), peak);
    figures.insert("rerun".to_owned(), u64::from(verdict.rerun));
    for (name, value) in figures {
        say!("{value} {name}");
    }
    Ok(ExitCode::SUCCESS)
}

fn figures(outcome: &RunOutcome) -> Figures {
    let mut figures = Figures::new();
    let mut add = |name: &str, value| *figures.entry(name.to_owned()).or_default() += value;
    add("events", outcome.events);
    add("messages", outcome.messages);
    let finishes =
        outcome.trace.iter().filter(|e| matches!(e.what, TraceKind::Note(Note::FinishAccepted { .. })));
    let finishes: Vec<Time> = finishes.map(|event| event.time).collect();
    add("half", finishes.get(finishes.len() / 2).map_or(0, |time| time.0));
    let mut started = None;
    for event in &outcome.trace {
        match &event.what {
            TraceKind::LogAppended { bytes, .. } => add("log", bytes.len() as u64),
            TraceKind::Started if event.process == ProcessId::JOB_MANAGER && event.incarnation == 2 => {
                started = Some(event.time);
            }
            TraceKind::Note(Note::JobStatusChanged { status: JobStatus::Running, .. }) => {
                if let Some(started) = started.take() {
                    add("recovery simulated", micros(event.time.since(started)));
                }
            }
            _ => {}
        }
    }
    add("recovery", micros(outcome.detail.profile.recovery));
    for ((recovering, actor, kind), cost) in &outcome.detail.profile.costs {
        let when = if *recovering { "recovering" } else { "running" };
        add(&format!("cost {when}: {actor} handles {kind}"), micros(cost.took));
    }
    figures
}

fn micros(duration: Duration) -> u64 {
    duration.as_micros() as u64
}

pub fn scale(args: &ScaleArgs) -> CliResult {
    if !args.subtasks.is_sorted_by(|small, large| small < large) {
        return Err("--subtasks: the first number must be smaller than the second".to_owned().into());
    }
    let mut sizes = Vec::new();
    for &subtasks in &args.subtasks {
        let calm = in_process(subtasks, None)?;
        let crashed = in_process(subtasks, Some(calm["half"]))?;
        sizes.push(Size { subtasks, calm, crashed });
    }
    let [small, large] = sizes.as_slice() else { return Err("two sizes are needed".to_owned().into()) };
    report(small, large)
}

struct Size {
    subtasks: u32,
    calm: Figures,
    crashed: Figures,
}

fn in_process(subtasks: u32, crash_at: Option<u64>) -> Result<Figures, String> {
    let program = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let mut command = Command::new(program);
    command.args(["measure", "--subtasks", &subtasks.to_string()]);
    if let Some(at) = crash_at {
        command.args(["--crash-at", &at.to_string()]);
    }
    let output = command.output().map_err(|error| format!("cannot start a run: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("the run of {subtasks} subtasks failed: {}", said.trim()));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let figure = |line: &str| {
        let (value, name) = line.split_once(' ')?;
        Some((name.to_owned(), value.parse().ok()?))
    };
    text.lines().map(|line| figure(line).ok_or_else(|| format!("not a figure: '{line}'"))).collect()
}

fn report(small: &Size, large: &Size) -> CliResult {
    let growth = f64::from(large.subtasks) / f64::from(small.subtasks);
    let workers = |size: &Size| u64::from(size.subtasks.div_ceil(SUBTASKS_TO_A_WORKER));
    say!("                              {:>12} {:>12}   growth", small.subtasks, large.subtasks);
    let line = |what: &str, of: &dyn Fn(&Size) -> u64, unit: f64| -> Result<(), super::out::Stop> {
        let (a, b) = (of(small) as f64 / unit, of(large) as f64 / unit);
        say!("{what:<30}{a:>12.1} {b:>12.1}   {:>6.1}", b / a.max(1e-9));
        Ok(())
    };
    line("TaskManagers", &workers, 1.0)?;
    line("messages", &|size| size.crashed["messages"], 1.0)?;
    line("events", &|size| size.crashed["events"], 1.0)?;
    line("event log, kB", &|size| size.crashed["log"], 1e3)?;
    line("tasks run again", &|size| size.crashed["rerun"], 1.0)?;
    line("run without crash, ms", &|size| size.calm["wall"], 1e3)?;
    line("run with crash, ms", &|size| size.crashed["wall"], 1e3)?;
    line("recovery, ms of processor", &|size| size.crashed["recovery"], 1e3)?;
    line("recovery, simulated ms", &|size| size.crashed["recovery simulated"], 1e3)?;
    line("peak without crash, MB", &|size| size.calm["peak"], 1e3)?;
    line("peak with crash, MB", &|size| size.crashed["peak"], 1e3)?;
    line("recovery's peak, MB", &|size| size.crashed["peak"].saturating_sub(size.calm["peak"]), 1e3)?;
    say!();
    say!(
        "What takes the time of the larger run (ms of actors' processor time; * grows more than {SUPERLINEAR} times as fast as the job):"
    );
    let cost = |size: &Size, name: &str| size.crashed.get(name).copied().unwrap_or(0) as f64 / 1e3;
    let mut costs: Vec<(&str, f64)> = large
        .crashed
        .keys()
        .filter(|name| name.starts_with("cost "))
        .map(|name| (&**name, cost(large, name)))
        .collect();
    costs.sort_by(|a, b| b.1.total_cmp(&a.1));
    let all: f64 = costs.iter().map(|(_, cost)| cost).sum();
    for (name, took) in costs.iter().filter(|(_, took)| *took > 0.0 && *took >= WORTH_A_LINE * all) {
        let before = cost(small, name);
        let factor = took / before.max(1e-3);
        let mark = if factor > SUPERLINEAR * growth { "*" } else { " " };
        say!(
            "{mark} {took:>10.1} {:>5.1} %  {factor:>6.1} times as much  {}",
            100.0 * took / all,
            &name[5..]
        );
    }
    Ok(ExitCode::SUCCESS)
}
