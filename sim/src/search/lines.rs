//! A search as JSON lines, so that its parts can run on many machines and be added up: first what is searched,
//! then each case as soon as it is run, last what it came to. A file without its last line is of a search that
//! was killed; what it has found counts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use revenant::probe::Probe;
use serde::{Deserialize, Serialize};

use super::{Done, Found, Kind, Outcome, Report, Share, add_probes};
use crate::digest::Digest;
use crate::scenario::Scenario;

/// What is searched, by which part of how many.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Beginning {
    /// Of the scenario, in hexadecimal.
    pub scenario: String,
    /// From 1.
    pub part: u64,
    pub parts: u64,
    pub version: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Line {
    Search(Beginning),
    Case(CaseLine),
    End(EndLine),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseLine {
    pub strategy: Kind,
    pub number: u64,
    pub class: String,
    pub outcome: String,
    pub microseconds: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureLine>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailureLine {
    pub oracle: String,
    pub message: String,
    pub hash: String,
    pub file: Option<PathBuf>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndLine {
    pub seconds: f64,
    pub threads: usize,
    pub stopped: bool,
    /// How often rare branches of the engine were taken.
    pub probes: BTreeMap<Probe, u64>,
    pub strategies: Vec<StrategyLine>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StrategyLine {
    pub strategy: Kind,
    pub points: u64,
    pub cases: u64,
    pub all: bool,
}

impl Line {
    pub fn beginning(scenario: &Scenario, (part, parts): (u64, u64)) -> Self {
        let scenario = format!("{:016x}", Digest::of(0, scenario.to_toml().as_bytes()));
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Self::Search(Beginning { scenario, part: part + 1, parts, version })
    }

    pub fn case(done: &Done) -> Self {
        let Done { kind, number, class, outcome, took, probes: _, known: _ } = done;
        let (outcome, failure) = match outcome {
            Outcome::Passed => ("passed", None),
            Outcome::Vacuous => ("vacuous", None),
            Outcome::Failed { message, failure, kept } => {
                let (oracle, hash) = (failure.oracle.clone(), failure.hash.clone());
                ("failed", Some(FailureLine { oracle, message: message.clone(), hash, file: kept.clone() }))
            }
        };
        Self::Case(CaseLine {
            strategy: *kind,
            number: *number,
            class: class.clone(),
            outcome: outcome.to_owned(),
            microseconds: took.as_micros() as u64,
            failure,
        })
    }

    pub fn end(report: &Report) -> Self {
        let strategy = |share: &Share| StrategyLine {
            strategy: share.kind,
            points: share.points,
            cases: share.cases,
            all: share.is_exhausted && !share.is_cut,
        };
        Self::End(EndLine {
            seconds: report.took.as_secs_f64(),
            threads: report.threads,
            stopped: report.is_stopped,
            probes: report.probes.clone(),
            strategies: report.shares.iter().map(strategy).collect(),
        })
    }

    /// As one line, with its end.
    pub fn text(&self) -> String {
        let mut text = serde_json::to_string(self).expect("every line has a JSON form");
        text.push('\n');
        text
    }
}

/// The parts of one search, added up.
#[derive(Debug, Default)]
pub struct Merged {
    pub report: Report,
    /// Each case that was run, for reports by class.
    pub cases: Vec<CaseLine>,
    /// Parts, from 1, that have no last line: they were killed.
    pub cut: Vec<u64>,
}

/// Adds up files of lines, each with its name.
///
/// # Errors
/// If a line is none, or the files are not the parts of one search, each once.
pub fn merge(files: &[(String, String)]) -> Result<Merged, String> {
    let mut merged = Merged::default();
    let mut first: Option<(&str, Beginning)> = None;
    let mut seen: Vec<(u64, &str)> = Vec::new();
    let mut all: Vec<(Kind, bool)> = Vec::new();
    for (name, text) in files {
        let mut has_end = false;
        let mut number = 0;
        let whole = text.ends_with('\n');
        for (index, line) in text.lines().enumerate() {
            let is_last = index + 1 == text.lines().count();
            let line: Line = match serde_json::from_str(line) {
                Ok(line) => line,
                // The last line of a search that was killed may be cut.
                Err(_) if is_last && !whole && index > 0 => break,
                Err(error) => {
                    let line = index + 1;
                    return Err(format!("{name}:{line} is no line that `explore --json` writes: {error}"));
                }
            };
            match line {
                Line::Search(own) if index == 0 => {
                    if let Some((other, known)) = &first {
                        let same = (&known.scenario, known.parts, &known.version)
                            == (&own.scenario, own.parts, &own.version);
                        if !same {
                            return Err(format!("{name} and {other} are parts of different searches"));
                        }
                    }
                    number = own.part;
                    if let Some((_, other)) = seen.iter().find(|(part, _)| *part == number) {
                        return Err(format!("{name} and {other} are both part {number}"));
                    }
                    seen.push((number, name));
                    first.get_or_insert((name, own));
                }
                Line::Case(case) if index > 0 => {
                    add(&mut merged.report, &case);
                    merged.cases.push(case);
                }
                Line::End(end) if index > 0 && is_last => {
                    has_end = true;
                    let report = &mut merged.report;
                    report.took = report.took.max(Duration::from_secs_f64(end.seconds.clamp(0.0, 1e9)));
                    report.threads += end.threads;
                    report.is_stopped |= end.stopped;
                    add_probes(&mut report.probes, &end.probes);
                    for StrategyLine { strategy, points, cases, all: is_all } in end.strategies {
                        let share = report.share(strategy);
                        share.points = share.points.max(points);
                        share.cases = share.cases.max(cases);
                        all.push((strategy, is_all));
                    }
                }
                _ => return Err(format!("{name}:{}: this line is out of its place", index + 1)),
            }
        }
        if number == 0 {
            return Err(format!("{name} is no part of a search: it is empty"));
        }
        if !has_end {
            merged.cut.push(number);
        }
    }
    let Some((_, Beginning { parts, .. })) = first else { return Err("there is no file".to_owned()) };
    let missing: Vec<String> = (1..=parts)
        .filter(|part| seen.iter().all(|(seen, _)| seen != part))
        .map(|part| part.to_string())
        .collect();
    if !missing.is_empty() {
        return Err(format!("of {parts} parts these are missing: {}", missing.join(", ")));
    }
    for share in &mut merged.report.shares {
        let of_all = all.iter().filter(|(kind, is_all)| *kind == share.kind && *is_all).count() as u64;
        share.is_exhausted = of_all == parts;
    }
    merged.report.shares.sort_by_key(|share| share.kind);
    Ok(merged)
}

fn add(report: &mut Report, case: &CaseLine) {
    let share = report.share(case.strategy);
    share.run += 1;
    share.busy += Duration::from_micros(case.microseconds);
    share.vacuous += u64::from(case.outcome == "vacuous");
    if let Some(FailureLine { oracle, message, file, .. }) = &case.failure {
        share.failed += 1;
        let (oracle, message, kept) = (oracle.clone(), message.clone(), file.clone());
        let (kind, runs) = (case.strategy, report.runs());
        report.failures.push(Found { kind, oracle, message, kept, runs, after: Duration::ZERO });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Failure;

    fn done(number: u64, outcome: Outcome) -> Done {
        let took = Duration::from_millis(2);
        Done {
            kind: Kind::Once,
            number,
            known: 2,
            class: "job-manager before SubmitTask".to_owned(),
            outcome,
            probes: BTreeMap::new(),
            took,
        }
    }

    fn failed() -> Outcome {
        let failure = Failure {
            oracle: "S6".to_owned(),
            place: "Recovered".to_owned(),
            event: 7,
            message: "lost".to_owned(),
            hash: "ff".to_owned(),
            version: "0".to_owned(),
        };
        Outcome::Failed { message: "S6 at 1s: lost".to_owned(), failure, kept: Some("a.toml".into()) }
    }

    /// The lines of a part, with the report that it comes to.
    fn part(part: u64, parts: u64, outcomes: Vec<Outcome>) -> String {
        let scenario = Scenario::parse("test", "[job]\nname = 'lineitem-totals'\n").unwrap();
        let mut text = Line::beginning(&scenario, (part, parts)).text();
        let mut report = Report { threads: 2, took: Duration::from_secs(3), ..Report::default() };
        for (number, outcome) in (0..).zip(outcomes) {
            let done = done(number, outcome);
            text += &Line::case(&done).text();
            report.add(done, Duration::ZERO);
        }
        let share = report.share(Kind::Once);
        (share.points, share.cases, share.is_exhausted) = (9, 5, true);
        text + &Line::end(&report).text()
    }

    fn merged(files: &[&str]) -> Result<Merged, String> {
        let named = |(index, text): (usize, &&str)| (format!("{index}.jsonl"), (*text).to_owned());
        merge(&files.iter().enumerate().map(named).collect::<Vec<_>>())
    }

    #[test]
    fn parts_add_up_to_the_whole() {
        let one = part(0, 2, vec![Outcome::Passed, failed(), Outcome::Vacuous]);
        let two = part(1, 2, vec![Outcome::Passed, Outcome::Passed]);
        let Merged { report, cases, cut } = merged(&[&two, &one]).unwrap();
        let share = report.shares[0];
        assert_eq!((share.run, share.failed, share.vacuous, share.points, share.cases), (5, 1, 1, 9, 5));
        assert!(share.is_exhausted && cut.is_empty() && cases.len() == 5);
        assert_eq!((report.threads, report.took), (4, Duration::from_secs(3)));
        assert_eq!(report.failures[0].kept.as_deref(), Some(std::path::Path::new("a.toml")));
    }

    #[test]
    fn a_part_that_was_killed_counts_as_far_as_it_came() {
        let whole = part(0, 1, vec![Outcome::Passed, failed()]);
        let lines: Vec<&str> = whole.lines().collect();
        let killed = format!("{}\n{}\n{}\n{}", lines[0], lines[1], lines[2], &lines[3][..9]);
        let Merged { report, cut, .. } = merged(&[&killed]).unwrap();
        assert_eq!((report.runs(), report.failures.len(), cut), (2, 1, vec![1]));
    }

    #[test]
    fn parts_that_do_not_belong_together_are_refused() {
        let (one, two) = (part(0, 2, vec![]), part(1, 2, vec![]));
        let error = |files: &[&str]| merged(files).unwrap_err();
        assert_eq!(error(&[&one]), "of 2 parts these are missing: 2");
        assert!(error(&[&one, &one]).contains("are both part 1"));
        let other = two.replacen("\"scenario\":\"", "\"scenario\":\"f", 1);
        assert!(error(&[&one, &other]).contains("parts of different searches"));
        assert!(
            error(&[&one, "no json\n"]).starts_with("1.jsonl:1 is no line that `explore --json` writes: ")
        );
        assert!(error(&[&one, ""]).contains("it is empty"));
        let backwards: Vec<&str> = two.lines().rev().collect();
        assert!(error(&[&one, &(backwards.join("\n") + "\n")]).contains("out of its place"));
        assert_eq!(merge(&[]).unwrap_err(), "there is no file");
    }
}
