//! `cargo sim bench`: what a run costs.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use revenant::api::Program;
use revenant::ids::ProcessId;

use super::memory::kilobytes;
use super::out::say;
use super::{CliResult, load, options};
use crate::oracle::Judge;
use crate::run::Collect;
use crate::scenario::Fault;
use crate::trace::Allocated;

#[derive(Args)]
pub struct BenchArgs {
    file: PathBuf,
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// So many runs, however long they take.
    #[arg(long, conflicts_with = "seconds", value_parser = clap::value_parser!(u64).range(1..))]
    runs: Option<u64>,
}

/// What all runs came to.
#[derive(Debug, Default)]
struct Sum {
    runs: u64,
    broken: u64,
    messages: u64,
    events: u64,
    simulated: Duration,
    /// Of the runs, and of their oracles.
    running: Duration,
    judging: Duration,
    allocated: Allocated,
    judged: Allocated,
    /// In kilobytes, once a hundredth of the work is done.
    resident_early: Option<u64>,
}

/// Crash-and-recover runs on one core, each judged by all oracles: each crashes the JobManager at
/// another of its points. The run without a crash and the reference are not counted.
pub fn bench(args: &BenchArgs, program: &Arc<Program>) -> CliResult {
    let scenario = load(&args.file, program)?;
    let mut collecting = options();
    collecting.collect = Collect::Of(ProcessId::JOB_MANAGER);
    let points = crate::run::run(&scenario, program, &collecting).detail.points;
    if points.is_empty() {
        return Err("the JobManager passes no crash point in this scenario".to_owned().into());
    }
    let judge = Judge::new(&scenario, program)?;
    let mut sum = Sum::default();
    let begin = Instant::now();
    // How much of the work is done, in hundredths.
    let done = |runs: u64| {
        let seconds = begin.elapsed().as_secs_f64();
        args.runs.map_or(seconds * 100.0 / args.seconds as f64, |all| runs as f64 * 100.0 / all as f64)
    };
    // A step that shares no factor with most counts spreads the points over any duration.
    let mut next = 0;
    while done(sum.runs) < 100.0 {
        let mut scenario = scenario.clone();
        scenario.faults.push(Fault::crash_at(points[next % points.len()].point.clone(), false));
        next += 61;
        let since = Instant::now();
        let outcome = crate::run::run(&scenario, program, &options());
        let until = Instant::now();
        let (verdict, judged) = densa_alloc::measure(|| judge.judge(&outcome));
        sum.running += until - since;
        sum.judging += until.elapsed();
        sum.broken += u64::from(verdict.is_err());
        sum.runs += 1;
        sum.messages += outcome.messages;
        sum.events += outcome.events;
        sum.simulated += outcome.end.since(revenant::actor::Time(0));
        sum.allocated.count += outcome.detail.allocated.count;
        sum.allocated.bytes += outcome.detail.allocated.bytes;
        sum.judged.count += judged.allocs + judged.reallocs;
        sum.judged.bytes += judged.bytes_allocated;
        if sum.resident_early.is_none() && done(sum.runs) >= 1.0 {
            sum.resident_early = kilobytes("VmRSS");
        }
    }
    say(&sum, begin.elapsed())?;
    Ok(if sum.broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn say(sum: &Sum, took: Duration) -> Result<(), super::Stop> {
    let Sum { runs, broken, messages, events, simulated, .. } = sum;
    let (real, of) = (took.as_secs_f64(), |all: u64| all / runs.max(&1));
    let each = |time: Duration| time.as_secs_f64() * 1e3 / (*runs).max(1) as f64;
    say!("{runs} crash-and-recover runs with their oracles in {real:.1} s on one core, {broken} broken");
    say!(
        "{:.0} runs/s/core: {:.2} ms a run and {:.2} ms for its oracles",
        *runs as f64 / real,
        each(sum.running),
        each(sum.judging)
    );
    say!("{:.0} messages/s, {:.0} events/s", *messages as f64 / real, *events as f64 / real);
    say!("{} messages and {} events a run", of(*messages), of(*events));
    say!("simulated time runs {:.0} times as fast as real time", simulated.as_secs_f64() / real);
    for (what, Allocated { count, bytes }) in [("a run", sum.allocated), ("its oracles", sum.judged)] {
        say!("allocated by {what}: {} kB in {} pieces", of(bytes) / 1000, of(count));
    }
    let mb = |kb: Option<u64>| kb.map_or("?".to_owned(), |kb| format!("{:.1}", kb as f64 / 1024.0));
    say!(
        "resident memory: {} MiB after a hundredth of the runs, {} MiB after all, {} MiB at most",
        mb(sum.resident_early),
        mb(kilobytes("VmRSS")),
        mb(kilobytes("VmHWM"))
    );
    Ok(())
}
