//! S1: the committed output is that of a run without faults, each record once. Judged twice: file by
//! file and byte by byte against the reference interpreter's replay of the run's witness, and
//! without the witness against the whole table, so that a witness cannot hide a loss. Nothing else
//! may lie in the output directory. Accumulators count what counts, once. What is wrong is told with the
//! records of sources that it comes to, if the job's rows say of which they are made.

use std::collections::BTreeMap;

use bytes::Bytes;
use revenant::message::JobOutcome;
use revenant::note::Note;

use super::witness::witness;
use super::{History, Violation, l4_leftovers, lineage};
use crate::reference::{Files, Reference, Witness};
use crate::scenario::Profile;
use crate::trace::{RunEnd, TraceKind};

pub fn check(history: &History, reference: &Reference) -> Result<(), Violation> {
    match history.outcome.ended {
        RunEnd::Finished if everybody_tidies(history) => check_all(history, reference),
        RunEnd::Finished => check_committed(history, reference),
        _ => check_unfinished(history, reference),
    }
}

fn everybody_tidies(history: &History) -> bool {
    history.patience.profile == Profile::Recoverable && !l4_leftovers::may_stay(history)
}

fn check_all(history: &History, reference: &Reference) -> Result<(), Violation> {
    check_with(history, reference, &history.outcome.output)
}

/// As [`check_all`], of a run after which nobody tidies.
fn check_committed(history: &History, reference: &Reference) -> Result<(), Violation> {
    let mut committed = history.outcome.output.clone();
    committed.retain(|path, _| !is_pending(path));
    check_with(history, reference, &committed)
}

/// Whether the file is no output yet.
pub fn is_pending(path: &str) -> bool {
    path.split('/').any(|part| part == ".pending")
}

fn check_with(
    history: &History,
    reference: &Reference,
    output: &BTreeMap<String, Bytes>,
) -> Result<(), Violation> {
    let outcome = history.outcome;
    let fail = |message: String| history.violation("S1", outcome.trace.len(), message);
    let witness = witness(history)
        .ok_or_else(|| fail("the job ended though not all subtasks had finished".to_owned()))?;
    let expected = reference.outputs(&witness).map_err(&fail)?;
    same_output(history, reference, &witness, &expected, output)?;
    if let Err(message) = reference.whole(output) {
        let explain = |lineages| lineage::of_whole(history, lineages, &witness, output);
        return Err(told(history, message, reference.lineages().and_then(explain)));
    }
    let ended = outcome.trace.iter().rev().find_map(|event| match &event.what {
        TraceKind::Note(Note::JobEnded { outcome: JobOutcome::Finished { accumulators, .. } }) => {
            Some(accumulators)
        }
        _ => None,
    });
    match ended.filter(|accumulators| **accumulators != reference.accumulators()) {
        Some(accumulators) => {
            let expected = reference.accumulators();
            Err(fail(format!("the job's accumulators are {accumulators:?}, they should be {expected:?}")))
        }
        None => Ok(()),
    }
}

/// Of a run that did not finish: nothing is committed before the decision, and then nothing else than
/// what a finished run has.
fn check_unfinished(history: &History, reference: &Reference) -> Result<(), Violation> {
    let fail = |message: String| history.violation("S1", history.outcome.trace.len(), message);
    let mut committed = history.outcome.output.clone();
    committed.retain(|path, _| !is_pending(path));
    let Some(first) = committed.keys().next() else { return Ok(()) };
    if history.commit_decided.is_none() {
        return Err(fail(format!("output file {first} is there though no commit was decided")));
    }
    let witness = witness(history)
        .ok_or_else(|| fail("a commit was decided though not all subtasks had finished".to_owned()))?;
    let mut expected = Files::clone(&*reference.outputs(&witness).map_err(&fail)?);
    // What is not there may come yet.
    expected.retain(|path, _| committed.contains_key(path));
    same_output(history, reference, &witness, &expected, &committed)
}

/// An error is told with what is known of its records.
fn same_output(
    history: &History,
    reference: &Reference,
    witness: &Witness,
    expected: &Files,
    found: &BTreeMap<String, Bytes>,
) -> Result<(), Violation> {
    let Err((path, message)) = same_files(expected, found) else { return Ok(()) };
    let explain = |lineages| lineage::of_file(history, lineages, witness, (expected, found), &path);
    Err(told(history, message, reference.lineages().and_then(explain)))
}

fn told(history: &History, message: String, lineage: Option<String>) -> Violation {
    let message = match lineage {
        Some(lineage) => format!("{message}; {lineage}"),
        None => message,
    };
    history.violation("S1", history.outcome.trace.len(), message)
}

/// An error names the file and says what is wrong with it.
fn same_files(expected: &Files, found: &BTreeMap<String, Bytes>) -> Result<(), (String, String)> {
    let wrong = |path: &String, what: &str| Err((path.clone(), format!("output file {path} {what}")));
    for (path, bytes) in expected {
        match found.get(path) {
            None => return wrong(path, "is missing"),
            Some(found) if found == bytes => {}
            Some(found) => return wrong(path, &format!("differs: {}", first_difference(bytes, found))),
        }
    }
    match found.keys().find(|path| !expected.contains_key(*path)) {
        Some(path) => wrong(path, "should not be there"),
        None => Ok(()),
    }
}

fn first_difference(expected: &[u8], found: &[u8]) -> String {
    let mut expected = expected.split(|&byte| byte == b'\n');
    let mut found = found.split(|&byte| byte == b'\n');
    let mut line = 1;
    loop {
        let (due, is) = (expected.next(), found.next());
        if due != is {
            let text = |line: Option<&[u8]>| {
                line.map_or_else(
                    || "the end".to_owned(),
                    |line| format!("'{}'", String::from_utf8_lossy(line)),
                )
            };
            return format!("line {line} should be {}, it is {}", text(due), text(is));
        }
        if due.is_none() {
            return "it does not".to_owned();
        }
        line += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::testing::{Story, attempt, caught, passes, test_reference};

    fn run() -> Story {
        let mut story = Story::new();
        story.run_sources().run_sinks().output("part-0", b"0\n2\n").output("part-1", b"1\n3\n");
        story
    }

    fn judge(history: &History) -> Result<(), Violation> {
        check(history, &test_reference())
    }

    #[test]
    fn the_output_of_the_witness_is_good() {
        passes(judge, &run());
    }

    #[test]
    fn another_byte_a_missing_file_and_a_file_too_many_are_caught() {
        caught(judge, run().output("part-1", b"1\n1\n"), "part-1 differs: line 2 should be '3', it is '1'");
        caught(judge, run().output("part-2", b""), "output file part-2 should not be there");
        caught(
            judge,
            run().output(".pending/v1.0.e1a1", b""),
            "output file .pending/v1.0.e1a1 should not be there",
        );
        let mut story = run();
        story.output(".pending/v1.0.e1a1", b"");
        passes(|history| check_committed(history, &test_reference()), &story);
        let mut story = Story::new();
        story.run_sources().run_sinks().output("part-0", b"0\n2\n");
        caught(judge, &story, "output file part-1 is missing");
    }

    #[test]
    fn a_witness_that_hides_a_loss_is_caught_by_the_whole() {
        let mut story = Story::new();
        story.start();
        story.finish_source(attempt(0, 0, 1, 1), &[0, 1]).finish_source(attempt(0, 1, 1, 1), &[2]);
        story.run_sinks().output("part-0", b"0\n2\n").output("part-1", b"1\n");
        caught(judge, &story, "rows are missing");
    }

    #[test]
    fn an_accumulator_that_counts_what_does_not_count_is_caught() {
        let ended = |rows: i64| {
            let accumulators = [("rows".to_owned(), rows)].into();
            let mut story = run();
            story.note(Note::JobEnded { outcome: JobOutcome::Finished { committed: 2, accumulators } });
            story
        };
        caught(judge, &ended(4), "accumulators are {\"rows\": 4}, they should be {}");
        let mut story = run();
        let accumulators = [].into();
        story.note(Note::JobEnded { outcome: JobOutcome::Finished { committed: 2, accumulators } });
        passes(judge, &story);
    }

    #[test]
    fn what_a_run_without_an_end_has_committed_is_right_and_was_decided() {
        let check = |history: &History| check_unfinished(history, &test_reference());
        let mut undecided = Story::new();
        undecided
            .run_sources()
            .output("part-0", b"0\n2\n")
            .end(RunEnd::Stuck { why: "the disk is full".to_owned() });
        caught(check, &undecided, "part-0 is there though no commit was decided");
        let decided = |files: &[(&str, &'static [u8])]| {
            let mut story = Story::new();
            story.run_sources().run_sinks();
            for (path, bytes) in files {
                story.output(path, bytes);
            }
            story
        };
        passes(check, &decided(&[("part-0", b"0\n2\n"), (".pending/v1.0.e1a1", b"?")]));
        caught(check, &decided(&[("part-1", b"1\n1\n")]), "part-1 differs: line 2 should be '3'");
        caught(check, &decided(&[("part-2", b"")]), "part-2 should not be there");
    }

    #[test]
    fn a_job_that_ends_before_all_has_finished_is_caught() {
        let mut story = Story::new();
        story.run_sources();
        caught(judge, &story, "the job ended though not all subtasks had finished");
    }
}
