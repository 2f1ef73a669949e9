//! Each kind of message lost, late or repeated, early, late and after a crash: the engine must finish
//! the job all the same, and keep all promises.

use std::collections::BTreeSet;

use revenant::actor::Time;
use revenant::message::Message;
use revenant_sim::oracle::Judge;
use revenant_sim::run::{RunOptions, run};
use revenant_sim::scenario::Scenario;
use revenant_sim::trace::TraceKind;

use super::program;

const ACTIONS: [&str; 4] = ["drop", "delay by 2 s", "overtake by 2 s", "duplicate after 50 ms"];

/// Of each kind the first three and the last, and the first two after a crash of the JobManager.
fn messages(calm: &Scenario) -> BTreeSet<(&'static str, usize)> {
    let options = RunOptions { keep_messages: true, ..RunOptions::default() };
    let outcome = run(calm, &program(), &options);
    let crash = outcome.trace.iter().find(|event| matches!(event.what, TraceKind::Crashed { .. }));
    let mut chosen = BTreeSet::new();
    for &kind in Message::KINDS {
        let of_kind = outcome
            .detail
            .messages
            .iter()
            .filter(|sent| sent.message.kind() == kind && sent.from.process != sent.process);
        let times: Vec<Time> = of_kind.map(|sent| sent.time).collect();
        let after =
            crash.map_or(times.len(), |crash| times.iter().filter(|time| **time < crash.time).count());
        let places = [1, 2, 3, times.len(), after + 1, after + 2];
        chosen.extend(places.into_iter().filter(|n| (1..=times.len()).contains(n)).map(|n| (kind, n)));
    }
    chosen
}

/// The runs in which something was wrong, and how many there were.
fn attack(text: &str) -> (Vec<String>, u32) {
    let program = program();
    let calm = Scenario::parse("test", text).unwrap_or_else(|error| panic!("{error}"));
    let judge = Judge::new(&calm, &program).expect("the job has a reference");
    let (mut broken, mut runs) = (Vec::new(), 0);
    for (kind, occurrence) in messages(&calm) {
        for action in ACTIONS {
            let at = format!("message {kind}#{occurrence}");
            let fault = format!("\n[[fault]]\nat = '{at}'\ndo = '{action}'\n");
            let scenario = Scenario::parse("test", &format!("{text}{fault}")).unwrap();
            let outcome = run(&scenario, &program, &RunOptions::default());
            runs += u32::from(!outcome.vacuous.contains(&(scenario.faults.len() - 1)));
            if let Err(violation) = judge.judge(&outcome) {
                broken.push(format!("{at}: {action}: {violation} ({:?})", outcome.ended));
            }
        }
    }
    (broken, runs)
}

fn withstands(file: &str, more: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (broken, runs) = attack(&format!("{text}\n{more}"));
    assert!(runs > 100, "{runs}");
    assert!(broken.is_empty(), "{file}: {} of {runs}:\n{}", broken.len(), broken.join("\n"));
}

#[test]
fn word_count_withstands_every_message_lost_late_or_twice() {
    withstands("word-count.toml", "");
}

#[test]
fn lineitem_withstands_every_message_lost_late_or_twice() {
    withstands("lineitem.toml", "");
}

#[test]
fn full_windows_withstand_every_message_lost_late_or_twice() {
    withstands("full-window-partition.toml", "");
}

#[test]
fn a_recovery_withstands_every_message_lost_late_or_twice() {
    withstands("lineitem.toml", "[[fault]]\nat = 't = 60 ms'\ndo = 'crash job-manager'\n");
}

#[test]
fn a_shuffle_service_withstands_every_message_lost_late_or_twice() {
    withstands("lineitem-external-shuffle.toml", "");
}
