//! `cargo sim explore --budget`, a search for a given time, and `cargo sim merge`, which adds its parts up.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clap::Args;
use indicatif::ProgressBar;
use revenant::api::Program;
use revenant::probe::Probe;

use super::interrupt::stop_on_interrupt;
use super::out::{self, Stop, say};
use super::{CliResult, FailuresArgs};
use crate::explore::{available_threads, bug_name, for_shell, search_bar};
use crate::failure::put;
use crate::scenario::{Scenario, Span};
use crate::search::{
    CaseLine, Done, Found, Kind, Limits, Line, Merged, Outcome, Report, junit, merge, search,
};

#[derive(Args)]
pub struct SearchArgs {
    /// Search for so long, with all strategies in turns, instead of one exploration.
    #[arg(long, value_name = "TIME", conflicts_with_all = ["limit", "action", "machine", "seeds", "pairs"])]
    pub budget: Option<Span>,
    /// Which strategies search; all, if not given.
    #[arg(long, value_enum, value_delimiter = ',', requires = "budget")]
    strategy: Vec<Kind>,
    /// Search only this part: `2/8` is the second of eight.
    #[arg(long, value_parser = parse_shard, requires = "budget")]
    shard: Option<(u64, u64)>,
    /// Write every case to this file as soon as it is run, as JSON lines for `cargo sim merge`.
    #[arg(long, value_name = "FILE", requires = "budget")]
    json: Option<PathBuf>,
    /// Write a JUnit report to this file, a case for each class of crashes.
    #[arg(long, value_name = "FILE", requires = "budget")]
    junit: Option<PathBuf>,
}

#[derive(Args)]
pub struct MergeArgs {
    /// What `explore --json` wrote, each part once.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Write a JUnit report of all of it to this file.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

/// From 0, and of how many.
fn parse_shard(text: &str) -> Result<(u64, u64), String> {
    let numbers =
        text.split_once('/').and_then(|(part, parts)| Some((part.parse().ok()?, parts.parse().ok()?)));
    match numbers {
        Some((part @ 1.., parts)) if part <= parts => Ok((part - 1, parts)),
        _ => Err(format!("'{text}' is no part, for example '2/8': the second of eight")),
    }
}

pub fn run(
    file: &Path,
    scenario: &Scenario,
    budget: Duration,
    threads: Option<usize>,
    args: &SearchArgs,
    failures: &FailuresArgs,
    program: &Arc<Program>,
) -> CliResult {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let folder = failures.folder(&stem)?;
    keep_apart(&[Some(file), args.json.as_deref(), args.junit.as_deref()])?;
    let shard = args.shard.unwrap_or((0, 1));
    let lines =
        args.json.as_deref().map(|path| Lines::begin(path, &Line::beginning(scenario, shard))).transpose()?;
    if let Some(path) = &args.junit {
        write(path, "")?;
    }
    let stop = stop_on_interrupt()?;
    let progress = Progress::begin(budget);
    let limits = Limits {
        budget,
        threads: threads.unwrap_or_else(available_threads),
        strategies: if args.strategy.is_empty() { &Kind::ALL } else { &args.strategy },
        shard,
        failures: Some(&folder),
        stop: &stop,
    };
    let cases: Mutex<Vec<CaseLine>> = Mutex::default();
    let told = |done: &Done| {
        progress.add(done);
        let line = Line::case(done);
        if let Some(lines) = &lines {
            lines.add(&line);
        }
        if let (Line::Case(case), true) = (line, args.junit.is_some()) {
            cases.lock().expect("nobody panics with it").push(case);
        }
    };
    let report = search(scenario, program, &limits, told)?;
    progress.end();
    if let Some(lines) = lines {
        lines.add(&Line::end(&report));
        lines.end()?;
    }
    if let Some(path) = &args.junit {
        let mut cases = cases.into_inner().expect("nobody panics with it");
        cases.sort_by_key(|case| (case.strategy, case.number));
        write(path, &junit(&stem, &cases))?;
    }
    tell(&report)?;
    let is_noticed = !report.failures.is_empty();
    if let Some(bug) = scenario.planted_bug {
        let noticed = if is_noticed { "noticed" } else { "NOT noticed" };
        say!("\nthe bug was {noticed}: {}", bug_name(bug));
        return Ok(if is_noticed { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    code(&report)
}

/// Success if the search found nothing, and looked.
fn code(report: &Report) -> Result<ExitCode, Stop> {
    if let Some(why) = report.why_idle() {
        say!("\nIDLE: {why}");
        return Ok(ExitCode::FAILURE);
    }
    Ok(if report.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

pub fn run_merge(args: &MergeArgs) -> CliResult {
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
        Ok((path.display().to_string(), text))
    };
    let files = args.files.iter().map(read).collect::<Result<Vec<_>, String>>()?;
    let Merged { report, mut cases, cut } = merge(&files)?;
    for part in cut {
        say!("part {part} was killed before its end; what it had run counts");
    }
    if let Some(path) = &args.junit {
        for file in &args.files {
            keep_apart(&[Some(file), Some(path)])?;
        }
        cases.sort_by_key(|case| (case.strategy, case.number));
        write(path, &junit("explore", &cases))?;
    }
    tell(&report)?;
    code(&report)
}

/// The report, and on GitHub a note for each failure.
fn tell(report: &Report) -> Result<(), Stop> {
    out::write(format_args!("{report}"))?;
    if std::env::var_os("GITHUB_ACTIONS").is_some() {
        for Found { oracle, message, kept, .. } in &report.failures {
            let replay = kept
                .as_ref()
                .map(|kept| format!("\ncargo sim replay {}", for_shell(&kept.to_string_lossy())));
            let text = format!("{message}{}", replay.unwrap_or_default());
            let text = text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
            say!("::error title={oracle}::{text}");
        }
    }
    Ok(())
}

/// Refuses to write a file that is read, or two things to one file.
pub fn keep_apart(files: &[Option<&Path>]) -> Result<(), String> {
    let files: Vec<&Path> = files.iter().copied().flatten().collect();
    let is_same = |one: &Path, other: &Path| {
        one == other
            || one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
    };
    for (index, file) in files.iter().enumerate() {
        if files[..index].iter().any(|other| is_same(other, file)) {
            return Err(format!("{} would be overwritten: name another file", file.display()));
        }
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    put(path, text).map_err(|error| format!("{} cannot be written: {error}", path.display()))
}

/// What is said while a search goes on.
struct Progress {
    bar: ProgressBar,
    so_far: Mutex<SoFar>,
}

#[derive(Default)]
struct SoFar {
    runs: u64,
    failures: u64,
    probes: BTreeSet<Probe>,
    /// Of each strategy: cases run, and known.
    strategies: BTreeMap<Kind, (u64, u64)>,
}

impl Progress {
    fn begin(budget: Duration) -> Self {
        let bar = search_bar(budget);
        bar.enable_steady_tick(Duration::from_secs(1));
        Self { bar, so_far: Mutex::default() }
    }

    fn add(&self, done: &Done) {
        let mut so_far = self.so_far.lock().expect("nobody panics with it");
        so_far.runs += 1;
        so_far.failures += u64::from(matches!(done.outcome, Outcome::Failed { .. }));
        so_far.probes.extend(done.probes.keys());
        let (run, known) = so_far.strategies.entry(done.kind).or_default();
        (*run, *known) = (*run + 1, done.known);
        let elapsed = self.bar.elapsed();
        self.bar.set_position(elapsed.as_secs());
        self.bar.set_message(so_far.said(elapsed));
    }

    fn end(&self) {
        self.bar.finish_and_clear();
    }
}

impl SoFar {
    fn said(&self, elapsed: Duration) -> String {
        let speed = self.runs as f64 / elapsed.as_secs_f64().max(1e-3);
        let states: u64 = self.strategies.values().map(|(_, known)| known).sum();
        let each =
            self.strategies.iter().map(|(kind, (run, known))| format!("{} {run}/{known}", kind.name()));
        format!(
            "{} failures, {} runs, {speed:.0}/s, {states} distinct states ({}), {}/{} rare branches",
            self.failures,
            self.runs,
            each.collect::<Vec<_>>().join(", "),
            self.probes.len(),
            Probe::ALL.len()
        )
    }
}

/// A file to which lines are added from many threads, each whole.
struct Lines {
    path: PathBuf,
    file: Mutex<File>,
    failed: AtomicBool,
}

impl Lines {
    fn begin(path: &Path, first: &Line) -> Result<Self, String> {
        let mut file =
            File::create(path).map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
        let written = file.write_all(first.text().as_bytes());
        written.map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
        Ok(Self { path: path.to_owned(), file: Mutex::new(file), failed: AtomicBool::new(false) })
    }

    fn add(&self, line: &Line) {
        let written = self.file.lock().expect("nobody panics with it").write_all(line.text().as_bytes());
        self.failed.fetch_or(written.is_err(), Ordering::Relaxed);
    }

    /// Whether all of it was written.
    fn end(self) -> Result<(), String> {
        let synced = self.file.into_inner().expect("nobody panics with it").sync_all();
        if self.failed.into_inner() || synced.is_err() {
            return Err(format!("{} is not whole: a line could not be written", self.path.display()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_file_is_written_over_another() {
        let folder = std::env::temp_dir().join(format!("revenant-apart-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let [read, other] = ["a.toml", "b.jsonl"].map(|name| folder.join(name));
        std::fs::write(&read, "").unwrap();
        assert_eq!(keep_apart(&[Some(&read), Some(&other), None]), Ok(()));
        assert_eq!(keep_apart(&[Some(&read), None]), Ok(()));
        let winding = folder.join("..").join(folder.file_name().unwrap()).join("a.toml");
        for files in [[&read, &winding], [&other, &other]] {
            let error = keep_apart(&files.map(|file| Some(file.as_path()))).unwrap_err();
            assert!(error.ends_with("would be overwritten: name another file"), "{error}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn progress_says_what_is_done_and_known() {
        let progress = Progress::begin(Duration::from_mins(1));
        let done = |number, outcome, probes: &[Probe]| Done {
            kind: Kind::Twice,
            number,
            known: 70,
            class: String::new(),
            outcome,
            probes: probes.iter().map(|&probe| (probe, 1)).collect(),
            took: Duration::ZERO,
        };
        progress.add(&done(0, Outcome::Passed, &Probe::ALL[..2]));
        progress.add(&done(1, Outcome::Vacuous, &Probe::ALL[1..3]));
        let said = progress.so_far.into_inner().unwrap().said(Duration::from_secs(2));
        let all = Probe::ALL.len();
        assert_eq!(
            said,
            format!("0 failures, 2 runs, 1/s, 70 distinct states (twice 2/70), 3/{all} rare branches")
        );
    }

    #[test]
    fn parts_are_counted_from_one() {
        assert_eq!(parse_shard("2/8"), Ok((1, 8)));
        for wrong in ["0/8", "9/8", "2", "/", "a/b", "-1/2"] {
            assert!(parse_shard(wrong).unwrap_err().contains("for example '2/8'"), "{wrong}");
        }
    }
}
