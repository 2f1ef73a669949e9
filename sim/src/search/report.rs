//! What a search came to, and how it is said.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use revenant::probe::Probe;

use super::{Done, Kind, Outcome, add_probes};
use crate::explore::for_shell;

/// How many failures are listed.
const LISTED: usize = 10;

/// What one strategy has done.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    pub kind: Kind,
    /// Before merging.
    pub points: u64,
    /// After merging: all of them if it is known how many are left, otherwise those that it has thought of.
    pub cases: u64,
    /// Not thought of yet, where that is known.
    pub left: Option<u64>,
    pub run: u64,
    pub failed: u64,
    pub vacuous: u64,
    /// There are no more cases.
    pub is_exhausted: bool,
    /// Time was over before all its cases were run.
    pub is_cut: bool,
    /// Of its runs and their oracles, added up over the threads.
    pub busy: Duration,
}

impl Default for Share {
    fn default() -> Self {
        Self {
            kind: Kind::Once,
            points: 0,
            cases: 0,
            left: None,
            run: 0,
            failed: 0,
            vacuous: 0,
            is_exhausted: false,
            is_cut: false,
            busy: Duration::ZERO,
        }
    }
}

/// A failing case.
#[derive(Clone, Debug)]
pub struct Found {
    pub kind: Kind,
    pub oracle: String,
    pub message: String,
    pub kept: Option<PathBuf>,
    /// How many cases had been run, with this one.
    pub runs: u64,
    /// Since the search began.
    pub after: Duration,
}

#[derive(Clone, Debug, Default)]
pub struct Report {
    pub shares: Vec<Share>,
    pub failures: Vec<Found>,
    /// How often rare branches of the engine were taken.
    pub probes: BTreeMap<Probe, u64>,
    pub took: Duration,
    pub threads: usize,
    /// It was told to end.
    pub is_stopped: bool,
}

impl Report {
    pub fn share(&mut self, kind: Kind) -> &mut Share {
        let index = self.shares.iter().position(|share| share.kind == kind);
        let index = index.unwrap_or_else(|| {
            self.shares.push(Share { kind, ..Share::default() });
            self.shares.len() - 1
        });
        &mut self.shares[index]
    }

    pub fn runs(&self) -> u64 {
        self.shares.iter().map(|share| share.run).sum()
    }

    /// Why the search shows nothing, if so: it ran no case, or more than one of twenty had a fault that did not fire.
    pub fn why_idle(&self) -> Option<&'static str> {
        let vacuous: u64 = self.shares.iter().map(|share| share.vacuous).sum();
        if self.runs() == 0 {
            return Some("no case was run: give it more time, or fewer parts");
        }
        (vacuous * 20 > self.runs()).then_some(
            "in more than one case of twenty a fault did not fire: see which with `cargo sim run` and mend the scenario",
        )
    }

    /// A case was run, so long after the search began.
    pub fn add(&mut self, done: Done, after: Duration) {
        let Done { kind, outcome, took, probes, .. } = done;
        add_probes(&mut self.probes, &probes);
        let share = self.share(kind);
        share.run += 1;
        share.busy += took;
        match outcome {
            Outcome::Passed => {}
            Outcome::Vacuous => share.vacuous += 1,
            Outcome::Failed { message, failure, kept } => {
                share.failed += 1;
                let (oracle, runs) = (failure.oracle, self.runs());
                self.failures.push(Found { kind, oracle, message, kept, runs, after });
            }
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "strategy      points     cases       run    failed   vacuous  runs/s/core")?;
        for share in &self.shares {
            let Share { kind, points, cases, run, failed, vacuous, busy, .. } = share;
            let speed = *run as f64 / busy.as_secs_f64().max(1e-9);
            let state = match share {
                Share { is_exhausted: true, is_cut: false, .. } => "  all".to_owned(),
                Share { is_exhausted: true, .. } | Share { left: Some(_), .. } => {
                    format!("  {:.1} % of all", *run as f64 * 100.0 / (*cases).max(1) as f64)
                }
                _ => String::new(),
            };
            writeln!(
                f,
                "{:<9} {points:>10} {cases:>9} {run:>9} {failed:>9} {vacuous:>9} {speed:>12.0}{state}",
                kind.name()
            )?;
        }
        let stopped = if self.is_stopped { ", stopped" } else { "" };
        // Of parts that were killed nobody knows more than their cases.
        let is_known = self.threads > 0;
        if is_known {
            let (took, threads) = (self.took.as_secs_f64(), self.threads);
            writeln!(f, "{} cases in {took:.1} s on {threads} threads{stopped}", self.runs())?;
        } else {
            writeln!(f, "{} cases; how long they took and which rare branches is not known", self.runs())?;
        }
        let missed: Vec<&str> = Probe::ALL
            .iter()
            .filter(|probe| !self.probes.contains_key(probe))
            .map(|probe| probe.name())
            .collect();
        if is_known {
            write!(f, "rare branches: {} of {} taken", Probe::ALL.len() - missed.len(), Probe::ALL.len())?;
            writeln!(f, "{}{}", if missed.is_empty() { "" } else { "; not " }, missed.join(", "))?;
        }
        let mut by_oracle: BTreeMap<&str, u64> = BTreeMap::new();
        for found in &self.failures {
            *by_oracle.entry(&found.oracle).or_default() += 1;
        }
        if let Some(first) = self.failures.first() {
            let oracles: Vec<String> = by_oracle.iter().map(|(oracle, n)| format!("{oracle} {n}")).collect();
            let after =
                if is_known { format!(" and {:.1} s", first.after.as_secs_f64()) } else { String::new() };
            writeln!(
                f,
                "first failure after {} cases{after}; failures by oracle: {}",
                first.runs,
                oracles.join(", ")
            )?;
        }
        for Found { kind, message, kept, .. } in self.failures.iter().take(LISTED) {
            writeln!(f, "\n{message}  ({})", kind.name())?;
            if let Some(kept) = kept {
                writeln!(f, "  cargo sim replay {}", for_shell(&kept.to_string_lossy()))?;
            }
        }
        if self.failures.len() > LISTED {
            writeln!(f, "\n… and {} more", self.failures.len() - LISTED)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_that_ran_nothing_or_met_few_faults_shows_nothing() {
        let of = |run, vacuous| {
            let share = Share { run, vacuous, ..Share::default() };
            Report { shares: vec![share], ..Report::default() }.why_idle()
        };
        assert!(of(0, 0).is_some_and(|why| why.starts_with("no case was run")));
        assert!(of(100, 6).is_some_and(|why| why.contains("did not fire")));
        assert_eq!(of(100, 5), None);
    }
}
