//! What an exploration found, and how it is said. Everything but the speed is the same at any
//! number of threads.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use revenant::actor::Time;

use super::survey::{Finding, Surveyed};
use super::{Blow, for_shell};
use crate::oracle::FinishClass;

/// How many failures are listed.
const LISTED: usize = 20;

/// Least, middle and greatest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    pub min: i64,
    pub median: i64,
    pub max: i64,
}

impl Spread {
    pub fn of(values: impl IntoIterator<Item = i64>) -> Self {
        let mut values: Vec<i64> = values.into_iter().collect();
        values.sort_unstable();
        match values.as_slice() {
            [] => Self::default(),
            [min, ..] => Self { min: *min, median: values[values.len() / 2], max: values[values.len() - 1] },
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub oracle: &'static str,
    pub message: String,
    /// A line to paste that runs it again.
    pub replay: String,
    /// The file of the failing run.
    pub kept: Option<PathBuf>,
}

/// How many crashes met which best finish, and how many finishes they met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Classes {
    pub none: usize,
    pub buffered: usize,
    pub durable: usize,
    pub finishes_buffered: u64,
    pub finishes_durable: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The schedule whose points these are.
    pub schedule: String,
    /// What happens at each point.
    pub blow: Blow,
    pub points: usize,
    /// Each is a pair of points: it happens twice.
    pub pairs: bool,
    /// Fewer than the schedule has, if a limit was set.
    pub tried: usize,
    pub passed: usize,
    pub vacuous: usize,
    /// The replay line of the first vacuous run, which names the fault that did not fire.
    pub first_vacuous: Option<String>,
    pub failures: Vec<Failure>,
    pub classes: Classes,
    pub reruns: Spread,
    /// Nanoseconds of simulated time beyond the crash-free run.
    pub lost: Spread,
    /// Crash-and-recover runs that were judged: neither crash-free nor vacuous runs, nor repetitions.
    pub runs: u64,
    /// Messages of those runs.
    pub messages: u64,
    /// What those runs and their oracles took, added up over the threads.
    pub busy: Duration,
    /// Real time in which all points were tried.
    pub took: Duration,
    pub threads: usize,
    /// The name of the planted bug that the engine was given.
    pub bug: Option<&'static str>,
    /// It was told to end before it had tried all.
    pub is_stopped: bool,
    /// What was wrong with the crash-free run of a schedule: nothing else can be said of it then.
    pub crash_free: Option<String>,
}

impl Report {
    /// Sums up; `replay(i)` is the line that runs point `i` again, `base(i)` the end of its schedule's
    /// crash-free run.
    pub fn of(surveyed: &[Surveyed], base: impl Fn(usize) -> Time, replay: impl Fn(usize) -> String) -> Self {
        let mut report = Self { points: surveyed.len(), tried: surveyed.len(), ..Self::default() };
        let (mut reruns, mut lost) = (Vec::new(), Vec::new());
        for (index, Surveyed { finding, messages, took, kept }) in surveyed.iter().enumerate() {
            if !matches!(finding, Finding::Vacuous) {
                report.runs += 1;
                report.messages += messages;
                report.busy += *took;
            }
            match finding {
                Finding::Vacuous => {
                    report.vacuous += 1;
                    report.first_vacuous.get_or_insert_with(|| replay(index));
                }
                Finding::Failed { oracle, message, .. } => {
                    let (message, kept, replay) = (message.clone(), kept.clone(), replay(index));
                    report.failures.push(Failure { oracle, message, replay, kept });
                }
                Finding::Passed(passed) => {
                    report.passed += 1;
                    reruns.push(i64::from(passed.rerun));
                    lost.push(passed.end.0.cast_signed().saturating_sub(base(index).0.cast_signed()));
                    let classes = &mut report.classes;
                    classes.finishes_buffered += u64::from(passed.finishes.buffered);
                    classes.finishes_durable += u64::from(passed.finishes.durable);
                    *match passed.finishes.class() {
                        FinishClass::None => &mut classes.none,
                        FinishClass::Buffered => &mut classes.buffered,
                        FinishClass::Durable => &mut classes.durable,
                    } += 1;
                }
            }
        }
        report.reruns = Spread::of(reruns);
        report.lost = Spread::of(lost);
        report
    }

    /// Whether every point passed and crashes of each class occurred.
    pub fn is_good(&self) -> bool {
        self.failures.is_empty() && self.vacuous == 0 && self.missing_class().is_none()
    }

    /// Whether the exploration found what it should: nothing wrong, or the planted bug.
    pub fn is_as_expected(&self) -> bool {
        if self.bug.is_some() { !self.failures.is_empty() } else { self.is_good() }
    }

    /// A class of finishes that no crash met: then the exploration says nothing about it. A limited
    /// exploration is not held to it.
    pub fn missing_class(&self) -> Option<&'static str> {
        let Classes { none, buffered, durable, .. } = self.classes;
        if self.tried < self.points {
            return None;
        }
        [(none, "no finish"), (buffered, "only buffered finishes"), (durable, "durable finishes")]
            .into_iter()
            .find_map(|(count, name)| (count == 0).then_some(name))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(message) = &self.crash_free {
            writeln!(f, "The run without a crash fails already: {message}\n")?;
        }
        writeln!(f, "schedule    {}", self.schedule)?;
        if self.blow != Blow::default() {
            writeln!(f, "action      {}", self.blow)?;
        }
        let what = if self.pairs { "pairs       " } else { "points      " };
        if self.tried < self.points {
            let how = match (self.is_stopped, self.pairs) {
                (true, _) => "stopped",
                (false, true) => "drawn",
                (false, false) => "limited",
            };
            writeln!(f, "{what}{} of {} ({how})", self.tried, self.points)?;
        } else {
            writeln!(f, "{what}{}", self.points)?;
        }
        writeln!(f, "passed      {}", self.passed)?;
        writeln!(f, "failed      {}", self.failures.len())?;
        writeln!(f, "vacuous     {}", self.vacuous)?;
        if let Some(replay) = &self.first_vacuous {
            writeln!(f, "            which fault did not fire: {replay}")?;
        }
        let Classes { none, buffered, durable, finishes_buffered, finishes_durable } = self.classes;
        writeln!(
            f,
            "finishes    none at {none} points, at best buffered at {buffered}, durable at {durable} \
             (in all {finishes_buffered} buffered, {finishes_durable} durable)"
        )?;
        let Spread { min, median, max } = self.reruns;
        writeln!(f, "run again   {min} / {median} / {max} tasks (min / median / max)")?;
        let Spread { min, median, max } = self.lost;
        writeln!(f, "time lost   {} / {} / {} simulated", Seconds(min), Seconds(median), Seconds(max))?;
        writeln!(
            f,
            "speed       {:.0} runs/s and core ({} crash-and-recover runs with their oracles, {} messages; {:.1} s on {} threads)",
            self.runs as f64 / self.busy.as_secs_f64().max(1e-9),
            self.runs,
            self.messages,
            self.took.as_secs_f64(),
            self.threads
        )?;
        for Failure { message, replay, kept, .. } in self.failures.iter().take(LISTED) {
            writeln!(f, "\n{message}\n  {replay}")?;
            if let Some(kept) = kept {
                writeln!(f, "  cargo sim replay {}", for_shell(&kept.to_string_lossy()))?;
            }
        }
        if self.failures.len() > LISTED {
            writeln!(f, "\n… and {} more", self.failures.len() - LISTED)?;
        }
        if let Some(bug) = self.bug {
            let noticed = if self.failures.is_empty() { "NOT noticed" } else { "noticed" };
            return writeln!(f, "\nthe bug was {noticed}: {bug}");
        }
        if let Some(class) = self.missing_class().filter(|_| self.failures.is_empty()) {
            writeln!(f, "\nno crash met {class}: choose a flush interval or a job that makes some do")?;
        }
        Ok(())
    }
}

/// Nanoseconds as seconds, with their sign.
struct Seconds(i64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:+.3} s", self.0 as f64 / 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explore::survey::Passed;
    use crate::failure;
    use crate::oracle::Finishes;

    fn passed(rerun: u32, end: u64, buffered: u32, durable: u32) -> Surveyed {
        let passed = Passed { end: Time(end), rerun, finishes: Finishes { buffered, durable } };
        Surveyed {
            finding: Finding::Passed(passed),
            messages: 10,
            took: Duration::from_millis(5),
            kept: None,
        }
    }

    fn report(surveyed: &[Surveyed]) -> Report {
        Report::of(surveyed, |_| Time(1_000_000_000), |index| format!("cargo sim run FILE --crash {index}"))
    }

    fn all_classes() -> Vec<Surveyed> {
        vec![passed(0, 900_000_000, 0, 0), passed(4, 1_000_000_000, 2, 0), passed(1, 3_000_000_000, 1, 3)]
    }

    #[test]
    fn points_are_classed_and_spread() {
        let report = report(&all_classes());
        assert!(report.is_good());
        assert_eq!((report.points, report.passed, report.vacuous), (3, 3, 0));
        let classes = Classes { none: 1, buffered: 1, durable: 1, finishes_buffered: 3, finishes_durable: 3 };
        assert_eq!(report.classes, classes);
        assert_eq!(report.reruns, Spread { min: 0, median: 1, max: 4 });
        assert_eq!(report.lost, Spread { min: -100_000_000, median: 0, max: 2_000_000_000 });
        let text = report.to_string();
        assert!(text.contains("run again   0 / 1 / 4 tasks"), "{text}");
        assert!(text.contains("time lost   -0.100 s / +0.000 s / +2.000 s"), "{text}");
    }

    #[test]
    fn a_failure_a_vacuous_point_and_a_missing_class_are_each_not_good() {
        let mut failed = all_classes();
        let message = "S2 at 1.0s: split 1 is lost".to_owned();
        let failure = failure::Failure {
            oracle: "S2".to_owned(),
            place: "end".to_owned(),
            event: 1,
            message: message.clone(),
            hash: "1".to_owned(),
            version: "1".to_owned(),
        };
        let finding = Finding::Failed { oracle: "S2", message, failure };
        let kept = Some(PathBuf::from("target/failures/a b.toml"));
        failed.push(Surveyed { finding, messages: 0, took: Duration::ZERO, kept });
        assert!(!report(&failed).is_good());
        let text = report(&failed).to_string();
        let lines = "S2 at 1.0s: split 1 is lost\n  cargo sim run FILE --crash 3\n  \
                     cargo sim replay 'target/failures/a b.toml'\n";
        assert!(text.contains(lines), "{text}");

        let mut vacuous = all_classes();
        vacuous.push(Surveyed {
            finding: Finding::Vacuous,
            messages: 9,
            took: Duration::from_secs(9),
            kept: None,
        });
        let vacuous = report(&vacuous);
        assert!(!vacuous.is_good());
        let text = vacuous.to_string();
        assert!(
            text.contains(
                "vacuous     1\n            which fault did not fire: cargo sim run FILE --crash 3\n"
            ),
            "{text}"
        );
        assert_eq!((vacuous.runs, vacuous.messages, vacuous.busy), (3, 30, Duration::from_millis(15)));

        let bug = |report: Report| Report { bug: Some("keep-splits"), ..report };
        let noticed = bug(report(&failed));
        assert!(
            noticed.is_as_expected() && noticed.to_string().ends_with("the bug was noticed: keep-splits\n")
        );
        let unnoticed = bug(report(&all_classes()));
        assert!(!unnoticed.is_as_expected());
        assert!(unnoticed.to_string().ends_with("the bug was NOT noticed: keep-splits\n"));

        let missing = report(&all_classes()[..2]);
        assert!(!missing.is_good());
        assert!(missing.to_string().contains("no crash met durable finishes"));
        let limited = Report { points: 9, ..missing };
        assert!(limited.is_good());
    }
}
