//! Writes the seeds that come from runs of scenarios: `cargo test -p revenant-sim --test testbed -- --ignored
//! seeds`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::BytesMut;
use revenant::ids::{Address, SessionId};
use revenant::runtime::frame::{Frame, Hello, Welcome, encode, encode_greeting};
use revenant_sim::run::{RunOptions, run};
use revenant_sim::scenario::{Fault, Scenario};
use revenant_sim::trace::{RunOutcome, TraceKind};

use super::super::program;
use super::targets::job_event_log::{Files, written};

/// Together they send nearly every kind of message.
const SCENARIOS: [&str; 7] = [
    "lineitem.toml",
    "lineitem-cancel.toml",
    "lineitem-external-shuffle.toml",
    "lineitem-store-fails.toml",
    "standby.toml",
    "faults/ha-replaced-unawares.toml",
    "faults/crash-in-recovery.toml",
];

fn directory(target: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    std::fs::create_dir_all(&directory).expect("the directory can be made");
    directory
}

fn put(target: &str, name: &str, bytes: &[u8]) {
    std::fs::write(directory(target).join(name), bytes).expect("the seed can be written");
}

fn outcome(name: &str, change: impl Fn(&mut Scenario)) -> RunOutcome {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios").join(name);
    let mut scenario = Scenario::load(&file, &program()).unwrap_or_else(|error| panic!("{error}"));
    change(&mut scenario);
    run(&scenario, &program(), &RunOptions { keep_messages: true, ..RunOptions::default() })
}

/// The smallest message of each kind, as a frame behind a good greeting, and the beginnings of whole
/// connections.
#[test]
#[ignore = "writes files"]
fn seeds_of_wire_frames() {
    let mut smallest: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
    for (number, name) in SCENARIOS.iter().enumerate() {
        let outcome = outcome(name, |_| ());
        let mut connection: Option<BytesMut> = None;
        for sent in &outcome.detail.messages {
            let (from, to) = (sent.from, Address::new(sent.process, sent.actor));
            let frame = Frame::Message { from, to, message: sent.message.clone() };
            let bytes = postcard::to_allocvec(&frame).expect("messages are plain data");
            let known = smallest.entry(sent.message.kind()).or_insert_with(|| bytes.clone());
            if bytes.len() < known.len() {
                *known = bytes;
            }
            let connection = connection.get_or_insert_with(|| {
                let endpoint = ([127, 0, 0, 1], 6123).into();
                let mut bytes = BytesMut::new();
                let greeted = if number % 2 == 0 {
                    let hello =
                        Hello { process: from.process, session: SessionId(9), endpoint, to: to.process };
                    encode_greeting(&hello, &mut bytes)
                } else {
                    encode_greeting(&Welcome::Accepted { session: SessionId(9) }, &mut bytes)
                };
                greeted.expect("a greeting is short");
                bytes
            });
            if connection.len() < 1500 {
                encode(&frame, connection).expect("messages are short");
            }
        }
        let connection = connection.expect("there are messages");
        let kind: &[u8] = if number % 2 == 0 { b"h" } else { b"w" };
        put("wire_frames", &format!("connection-{number}"), &[kind, &connection[..]].concat());
    }
    for (kind, bytes) in smallest {
        put("wire_frames", &format!("frame-{kind}"), &[b"f", &bytes[..]].concat());
    }
}

/// The log of the target's job at some moments of runs with several leaders.
#[test]
#[ignore = "writes files"]
fn seeds_of_job_event_log() {
    let crash = |at: &str| Fault {
        at: at.parse().expect("it is a trigger"),
        action: "crash job-manager".parse().expect("it is an action"),
        restart_after: None,
    };
    for (number, name) in ["lineitem.toml", "lineitem-store-fails.toml"].iter().enumerate() {
        let outcome = outcome(name, |scenario| {
            for (name, value) in [("splits", "8"), ("source-parallelism", "5")] {
                scenario.job.arguments.0.insert(name.to_owned(), value.to_owned());
            }
            scenario.faults.extend(["t = 60 ms", "t = 2 s"].map(crash));
        });
        let mut files = Files::new();
        let mut moments = 0;
        for event in &outcome.trace {
            let TraceKind::LogAppended { path, bytes, .. } = &event.what else { continue };
            let mut parts = path.rsplit('.');
            let mut part = || parts.next().and_then(|part| part.parse().ok());
            let (Some(index), Some(epoch)) = (part(), part()) else { continue };
            files.entry((epoch, index)).or_default().extend_from_slice(bytes);
            moments += 1;
            if moments % 3 == 1 && files.values().map(Vec::len).sum::<usize>() < 6000 {
                put("job_event_log", &format!("run-{number}-{moments}"), &written(&files, false));
                put("job_event_log", &format!("repaired-{number}-{moments}"), &written(&files, true));
            }
        }
    }
}
