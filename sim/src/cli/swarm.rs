//! `cargo sim generate` and `cargo sim swarm`: whole scenarios from seeds, one told or many judged.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use revenant::api::Program;
use revenant::probe::Probe;

use super::CliResult;
use super::interrupt::stop_on_interrupt;
use super::out::{self, say};
use crate::explore::{available_threads, for_shell};
use crate::generate::swarm::{Report, swarm};
use crate::generate::{generate, kind_names, known_features};
use crate::scenario::Profile;

#[derive(Args)]
pub struct GenerateArgs {
    #[arg(long)]
    seed: u64,
    /// `recoverable` or `hostile`.
    #[arg(long, default_value = "recoverable", value_parser = parse_profile)]
    profile: Profile,
}

#[derive(Args)]
pub struct SwarmArgs {
    /// `0..1000`: from the first to before the last.
    #[arg(long, value_parser = parse_range)]
    seeds: (u64, u64),
    /// `recoverable` or `hostile`.
    #[arg(long, default_value = "recoverable", value_parser = parse_profile)]
    profile: Profile,
    #[arg(long, value_parser = super::threads())]
    threads: Option<usize>,
    /// Print each seed with the hash of its run, and nothing else.
    #[arg(long)]
    hashes: bool,
    #[command(flatten)]
    failures: super::FailuresArgs,
}

pub fn parse_profile(text: &str) -> Result<Profile, String> {
    match text {
        "recoverable" => Ok(Profile::Recoverable),
        "hostile" => Ok(Profile::Hostile),
        _ => Err(format!("there is no profile '{text}'; there are recoverable and hostile")),
    }
}

pub const fn profile_name(profile: Profile) -> &'static str {
    match profile {
        Profile::Recoverable => "recoverable",
        Profile::Hostile => "hostile",
    }
}

/// More seeds than anybody waits for.
const SEEDS_MAX: u64 = 10_000_000;

fn parse_range(text: &str) -> Result<(u64, u64), String> {
    let wrong = || format!("'{text}' is no range of seeds, for example '0..1000'");
    let (from, to) = text.split_once("..").ok_or_else(wrong)?;
    let (from, to): (u64, u64) = (from.parse().map_err(|_| wrong())?, to.parse().map_err(|_| wrong())?);
    if from < to && to - from <= SEEDS_MAX { Ok((from, to)) } else { Err(wrong()) }
}

pub fn print(args: &GenerateArgs, program: &Arc<Program>) -> CliResult {
    let generated = generate(args.seed, args.profile, program)?;
    say!("# cargo sim generate --seed {} --profile {}\n", args.seed, profile_name(args.profile));
    out::write(format_args!("{}", generated.scenario.to_toml()))?;
    Ok(ExitCode::SUCCESS)
}

pub fn run(args: &SwarmArgs, program: &Arc<Program>) -> CliResult {
    let (from, to) = args.seeds;
    let profile = profile_name(args.profile);
    let folder = args.failures.folder(&format!("generated-{profile}"))?;
    let threads = args.threads.unwrap_or_else(available_threads);
    let stop = stop_on_interrupt()?;
    let report = swarm(from..to, args.profile, threads, Some(&folder), &stop, program)?;
    if args.hashes {
        for (seed, hash) in &report.hashes {
            say!("{seed} {hash:016x}");
        }
        return Ok(ExitCode::SUCCESS);
    }
    for failure in &report.failures {
        say!("FAILED  seed {}: {}", failure.seed, failure.message);
        say!(
            "        cargo sim generate --seed {} --profile {profile} > seed.toml; cargo sim run seed.toml",
            failure.seed
        );
        if let Some(kept) = &failure.kept {
            say!("        cargo sim replay {}", for_shell(&kept.to_string_lossy()));
        }
    }
    table(&report)?;
    let ends: Vec<String> = report.ends.iter().map(|(end, count)| format!("{count} {end}")).collect();
    let stopped = if report.is_stopped { format!(" of {}, stopped", to - from) } else { String::new() };
    say!("{} scenarios{stopped} ({profile}): {}", report.runs(), ends.join(", "));
    for probe in Probe::ALL {
        let count = report.probes.get(probe).copied().unwrap_or_default();
        say!("{count:7}  times {}{}", probe.name(), if count == 0 { ": never" } else { "" });
    }
    say!("{} failed, {} vacuous", report.failures.len(), report.vacuous);
    let is_good = report.failures.is_empty() && !report.is_mostly_vacuous();
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What occurred in how many of a hundred scenarios; what is rare is marked.
fn table(report: &Report) -> Result<(), out::Stop> {
    let mut counts: BTreeMap<String, u64> = known_features().into_iter().map(|name| (name, 0)).collect();
    counts.extend(kind_names().map(|kind| (format!("fault {kind}"), 0)));
    for (name, count) in &report.seen {
        *counts.entry(name.clone()).or_default() += count;
    }
    for (name, count) in counts {
        let share = count as f64 * 100.0 / report.runs().max(1) as f64;
        let mark = if share < 1.0 { "  RARE" } else { "" };
        say!("{share:5.1} %  {name}{mark}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_profiles_that_make_no_sense_are_refused() {
        assert_eq!(parse_range("3..9"), Ok((3, 9)));
        for wrong in ["3", "3..3", "9..3", "a..b", "0..99999999999"] {
            assert!(parse_range(wrong).unwrap_err().contains("for example '0..1000'"), "{wrong}");
        }
        for profile in [Profile::Recoverable, Profile::Hostile] {
            assert_eq!(parse_profile(profile_name(profile)), Ok(profile));
        }
        assert!(parse_profile("friendly").unwrap_err().contains("recoverable and hostile"));
    }
}
