//! Wrong usage is told before anything is begun.

use std::net::TcpListener;

use crate::harness::{Directory, failure, revenant};

fn refused(arguments: &[&str], expected: &str) {
    let (text, code) = failure(&revenant(arguments).output().expect("the program starts"));
    assert!(text.contains(expected), "{arguments:?} said: {text}");
    assert_eq!(code, Some(2), "{text}");
}

#[test]
fn unknown_jobs_options_and_malformed_settings_are_refused_and_leave_nothing() {
    let directory = Directory::new("usage");
    let out = directory.path("out");
    let path = out.to_str().expect("a plain path");
    refused(&["local", "no-such-job", "--out", path], "there is no job 'no-such-job'");
    refused(
        &["local", "x", "--out", path, "--set", "heartbeat.intervall=1 s"],
        "did you mean 'heartbeat.interval'",
    );
    refused(&["local", "x", "--out", path, "--set", "heartbeat.interval=soon"], "'soon' is not a duration");
    refused(&["local", "x", "--out", path, "--set", "heartbeat.interval"], "name=value");
    refused(&["local", "x", "--out", path, "--arg", "a=1", "--arg", "a=2"], "given twice");
    refused(&["local", "x", "--out", path, "--task-managers", "0"], "0");
    let twice = ["--set", "heartbeat.interval=1 s", "--set", "heartbeat.interval=1 s"];
    refused(&[&["local", "x", "--out", path], &twice[..]].concat(), "given twice");
    refused(&["local", "x", "--out", path, "--set", "shuffle.service=external"], "add --shuffle-services N");
    refused(
        &["local", "x", "--out", path, "--shuffle-services", "1"],
        "does nothing without --set shuffle.service=external",
    );
    let service = ["shuffle-service", "--id", "1", "--ha", "127.0.0.1:1", "--storage", path, "--out", path];
    refused(&service, "needs --set shuffle.service=external");
    refused(&["local", "x"], "--out");
    let local = ["local", "lineitem-by-ship-date", "--out", path, "--set"];
    refused(&[&local[..], &["jobmanager.scheduler=Default"]].concat(), "set it to AdaptiveBatch");
    refused(
        &[&local[..], &["execution.batch-shuffle-mode=ALL_EXCHANGES_PIPELINED"]].concat(),
        "set it to ALL_EXCHANGES_BLOCKING",
    );
    refused(&[&local[..], &["taskmanager.registration.timeout=0 s"]].concat(), "or set it to false");
    assert!(!out.exists());
}

#[test]
fn directories_that_would_mix_are_refused_and_leave_nothing() {
    let directory = Directory::new("mix");
    let (out, inner, file) = (directory.path("out"), directory.path("out/in"), directory.path("file"));
    std::fs::write(&file, b"").expect("it can be written");
    let [out, inner, file] = [&out, &inner, &file].map(|path| path.to_str().expect("a plain path"));
    let local = ["local", "lineitem-by-ship-date", "--out"];
    for option in ["--storage", "--record"] {
        refused(&[&local[..], &[out, option, out]].concat(), "the same directory");
        refused(&[&local[..], &[out, option, inner]].concat(), "is inside --out");
        refused(&[&local[..], &[inner, option, out]].concat(), &format!("is inside {option}"));
        refused(&[&local[..], &[out, option, file]].concat(), "is a file");
    }
    refused(&[&local[..], &[file]].concat(), "is a file");
}

#[test]
fn addresses_that_do_not_work_are_named() {
    let directory = Directory::new("addresses");
    let storage = directory.path("storage");
    let storage = storage.to_str().expect("a plain path");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = taken.local_addr().expect("it is bound").to_string();
    refused(
        &["high-availability", "--listen", &address, "--storage", storage],
        &format!("cannot listen on {address}"),
    );
    // Somebody listens there who never answers.
    let join =
        ["task-manager", "--id", "1", "--storage", storage, "--out", storage, "--patience", "0", "--ha"];
    refused(
        &[&join[..], &[&address]].concat(),
        &format!("the high-availability process at {address} was not reached"),
    );
    drop(taken);
    refused(&[&join[..], &[&address]].concat(), "Connection refused");
}

#[test]
fn options_are_listed_with_default_and_range() {
    let output = revenant(&["options"]).output().expect("the program starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success());
    assert!(text.contains("heartbeat.interval (default 10 s)"), "{text}");
}
