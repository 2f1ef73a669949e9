//! `cargo sim run`: one run, told.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;

use revenant::api::Program;
use revenant::ids::ExecutionVertexId;
use revenant::note::Note;

use super::out::{Stop, say};
use super::{BlowArgs, CliResult, RunArgs, load, options};
use crate::digest::output_digest;
use crate::dump::dump;
use crate::explore::Blow;
use crate::oracle::{Judge, Verdict};
use crate::point::CrashPoint;
use crate::scenario::{Outcome, Profile, Scenario};
use crate::trace::{RunOutcome, TraceEvent, TraceKind};

pub fn run(args: &RunArgs, program: &Arc<Program>) -> CliResult {
    let mut scenario = load(&args.file, program)?;
    crate::log::init(args.log);
    if let Some(seed) = args.seed {
        scenario.schedule.seed = seed;
    }
    let own_faults = scenario.faults.len();
    let BlowArgs { crash, machine, change_leader, without_notice } = &args.blows;
    for (index, point) in crash.iter().enumerate() {
        if crash[..index].contains(point) {
            return Err(format!("--crash {point} is given twice: an incarnation dies only once").into());
        }
        scenario.check_point(point)?;
        scenario.faults.push(Blow::Crash { machine: *machine }.at(point.clone()));
    }
    for point in change_leader {
        scenario.check_point(point)?;
        let fault = Blow::ChangeLeader { notice: !without_notice }.at(point.clone());
        scenario.check_action(&fault)?;
        scenario.faults.push(fault);
    }
    if args.bug.is_some() {
        scenario.planted_bug = args.bug;
    }
    let mut options = options();
    options.codec = args.codec;
    let outcome = crate::run::run(&scenario, program, &options);
    let points: Vec<&CrashPoint> = crash.iter().chain(change_leader).collect();
    let missed = outcome.vacuous.iter().find_map(|fault| points.get(fault.checked_sub(own_faults)?));
    if let Some(point) = missed {
        let file = args.file.display();
        let process = point.process;
        return Err(Stop::Error(format!(
            "the run never reached {point}: there is no such point in it; \
             `cargo sim points {file} --process {process}` lists those of the crash-free run; what a later \
             incarnation passes depends on the crashes before it"
        )));
    }
    tell(&scenario, &outcome, program)?;
    if args.events {
        say!("\n{}", dump(&outcome));
    }
    judge(&scenario, &outcome, program)
}

/// Whether the run ended as its scenario expects, with every fault, and kept all promises.
fn judge(scenario: &Scenario, outcome: &RunOutcome, program: &Arc<Program>) -> CliResult {
    let mut code = ExitCode::SUCCESS;
    for &fault in &outcome.vacuous {
        let fault = &scenario.faults[fault];
        say!(
            "VACUOUS: the fault at '{}' ({}) never fired; `cargo sim points` lists the points of a run",
            fault.at,
            fault.action
        );
        code = ExitCode::FAILURE;
    }
    for rate in &outcome.idle_rates {
        say!("VACUOUS: {rate} struck no message: make it higher or rates-until later");
        code = ExitCode::FAILURE;
    }
    let is_hostile = scenario.expect.profile == Profile::Hostile;
    if !scenario.expect.is_met(&outcome.ended) {
        say!("UNEXPECTED: the scenario expects {:?}", scenario.expect.outcome);
        code = ExitCode::FAILURE;
    }
    if is_hostile || matches!(scenario.expect.outcome, Outcome::Finished | Outcome::Canceled) {
        match Judge::new(scenario, program)?.judge(outcome) {
            Ok(verdict) => {
                let Verdict { kept, rerun, crashes, .. } = verdict;
                if crashes == 0 {
                    return Ok(code);
                }
                say!(
                    "recovery  kept {kept} durable finishes and ran none of them again; {rerun} tasks ran again"
                );
            }
            Err(violation) => {
                say!("BROKEN: {violation}");
                code = ExitCode::FAILURE;
            }
        }
    }
    Ok(code)
}

fn tell(scenario: &Scenario, outcome: &RunOutcome, program: &Arc<Program>) -> Result<(), Stop> {
    for event in &outcome.trace {
        if let Some(line) = step(event) {
            say!("{}  {}/{}  {line}", event.time, event.process, event.incarnation);
        }
    }
    say!();
    stages(scenario, outcome, program)?;
    say!("end       {:?}", outcome.ended);
    say!("time      {} simulated", outcome.end);
    say!("events    {}, messages {}", outcome.events, outcome.messages);
    say!("hash      {:016x}", outcome.hash);
    let bytes: usize = outcome.output.values().map(bytes::Bytes::len).sum();
    say!("output    {:016x}, {} files, {bytes} bytes", output_digest(&outcome.output), outcome.output.len());
    let rare: Vec<&str> = outcome.probes.keys().map(|probe| probe.name()).collect();
    say!(
        "rare      {}",
        if rare.is_empty() { "no rare branch of the engine".to_owned() } else { rare.join(", ") }
    );
    if !outcome.leftovers.is_empty() {
        say!("leftovers {} files on other volumes", outcome.leftovers.len());
    }
    Ok(())
}

/// The line of a step that shows how the job goes.
fn step(event: &TraceEvent) -> Option<String> {
    Some(match &event.what {
        TraceKind::Note(Note::JobStatusChanged { token, status }) => {
            format!("job {status:?} (epoch {token})")
        }
        TraceKind::Note(Note::Replayed { events, finished, damage, .. }) => {
            let damage = damage.as_ref().map_or_else(String::new, |damage| format!(", damaged: {damage}"));
            format!("replayed {events} events, {} finished{damage}", finished.len())
        }
        TraceKind::Note(Note::Recovered { kept, reset, .. }) => {
            format!("recovered: {} kept, {} reset", kept.len(), reset.len())
        }
        TraceKind::Note(Note::AttemptFailed { attempt, reason }) => format!("{attempt} failed: {reason}"),
        TraceKind::Note(Note::TaskManagerLost { process, reason }) => format!("{process} lost: {reason}"),
        TraceKind::Note(Note::CommitDecided { decision }) => {
            format!("commit of {} files decided", decision.committables.len())
        }
        TraceKind::Note(Note::JobEnded { outcome }) => format!("job ended: {outcome:?}"),
        TraceKind::Note(Note::Warning { text }) => format!("warning: {text}"),
        TraceKind::Crashed { point, machine } => {
            let what = if *machine { "machine crashed" } else { "crashed" };
            point.as_ref().map_or_else(|| what.to_owned(), |point| format!("{what} at {point}"))
        }
        TraceKind::Exited { failure: Some(failure) } => format!("exited: {failure}"),
        TraceKind::Paused => "stands still".to_owned(),
        TraceKind::Resumed => "goes on".to_owned(),
        TraceKind::DiskRemembered => "its disk is remembered as it is".to_owned(),
        TraceKind::DiskRestored => "has an old disk".to_owned(),
        TraceKind::ClockChanged { fault: Some(fault), .. } => fault.to_string(),
        TraceKind::CancelReached => "told to cancel the job".to_owned(),
        TraceKind::Started if event.incarnation > 1 => "started again".to_owned(),
        TraceKind::HaFault(fault) => fault.to_string(),
        TraceKind::DiskRefused { error } => error.to_string(),
        TraceKind::LogZeroed { volume, path, from, to } => {
            format!("bytes {from} to {to} of {volume}:{path} are zeros")
        }
        TraceKind::DiskFault(fault) => fault.to_string(),
        TraceKind::NetworkFault(fault) => fault.to_string(),
        TraceKind::Message(touched) => touched.to_string(),
        TraceKind::LogCorrupted { volume, path, offset } => {
            format!("{volume}:{path} is corrupted at offset {offset}")
        }
        TraceKind::LogAfterCrash { volume, path, length } => {
            format!("{volume}:{path} is left with {length} bytes")
        }
        _ => return None,
    })
}

/// Stages with their parallelism, and how often tasks ran.
fn stages(scenario: &Scenario, outcome: &RunOutcome, program: &Arc<Program>) -> Result<(), Stop> {
    let notes = || {
        outcome.trace.iter().filter_map(|event| match &event.what {
            TraceKind::Note(note) => Some(note),
            _ => None,
        })
    };
    if let Ok(graph) = program.build(&scenario.job()) {
        for vertex in &graph.vertices {
            let parallelism = notes().filter_map(|note| match note {
                Note::VertexInitialized { vertex: id, parallelism, .. } if *id == vertex.id => {
                    Some(*parallelism)
                }
                _ => None,
            });
            let parallelism = parallelism.last().map_or_else(|| "never".to_owned(), |n| n.to_string());
            say!("stage     {} {}: parallelism {parallelism}", vertex.id, vertex.name);
        }
    }
    let deployed: Vec<ExecutionVertexId> = notes()
        .filter_map(|note| match note {
            Note::Deployed { attempt, .. } => Some(attempt.subtask),
            _ => None,
        })
        .collect();
    let subtasks: BTreeSet<ExecutionVertexId> = deployed.iter().copied().collect();
    say!("tasks     {}, re-run {}", subtasks.len(), deployed.len() - subtasks.len());
    Ok(())
}
