//! Whether the files of `scenarios/` show the whole grammar: every trigger, every fault, every heal, every
//! key of the network, the disks and the clocks, and every image that a crash can leave. What is to be
//! shown comes from the tables and types that the page is made of.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use revenant::actor::Purpose;
use revenant::ids::ProcessId;
use revenant::message::Message;
use toml::{Table, Value};

use super::forms::filled;
use super::{Action, Form, PURPOSES, TRIGGERS, Trigger, actions, schema};
use crate::point::parse_incarnation;

/// A text without what is in it instead of others: names, numbers with their units.
fn shape(text: &str) -> String {
    let mut words: Vec<&str> = Vec::new();
    for word in text.split(' ') {
        let is_process = word == "any" || word.parse::<ProcessId>().is_ok();
        let word = match word {
            _ if is_process => "<process>",
            _ if PURPOSES.map(Purpose::name).contains(&word) => "<purpose>",
            _ if Message::KINDS.contains(&word) => "<kind>",
            _ if parse_incarnation(word).is_ok() => "<incarnation>",
            _ if word.contains('@') => "<number of an event>",
            _ if word.contains('#') => "<number of a name>",
            _ if word.starts_with(|first: char| first.is_ascii_digit() || "+-".contains(first)) => "<number>",
            "ns" | "us" | "ms" | "s" | "min" | "h" => "<unit>",
            word => word,
        };
        words.push(word);
    }
    words.join(" ")
}

fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    let entries =
        std::fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    for entry in entries {
        let path = entry.unwrap_or_else(|error| panic!("{}: {error}", directory.display())).path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            found.push(path);
        }
    }
}

fn tables() -> Vec<Table> {
    let mut paths = Vec::new();
    files(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios")), &mut paths);
    assert!(paths.len() > 50, "{paths:?}");
    let read = |path: &PathBuf| {
        let text =
            std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        text.parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    paths.iter().map(read).collect()
}

fn faults(tables: &[Table]) -> impl Iterator<Item = &Table> {
    let faults = tables.iter().filter_map(|table| table.get("fault")?.as_array());
    faults.flatten().filter_map(Value::as_table)
}

/// What the faults say under a key, without names and numbers. Written in full, whatever the file's spelling.
fn shapes(tables: &[Table], key: &str, in_full: fn(&str) -> String) -> BTreeSet<String> {
    let texts = faults(tables).filter_map(|fault| fault.get(key)?.as_str());
    texts.map(|text| shape(&in_full(text))).collect()
}

fn trigger(text: &str) -> String {
    text.parse::<Trigger>().unwrap_or_else(|error| panic!("{error}")).to_string()
}

fn action(text: &str) -> String {
    text.parse::<Action>().unwrap_or_else(|error| panic!("{error}")).to_string()
}

fn missing<'a>(
    forms: impl Iterator<Item = &'a Form>,
    shown: &BTreeSet<String>,
    in_full: fn(&str) -> String,
) -> Vec<&'a str> {
    forms.map(|form| form.text).filter(|text| !shown.contains(&shape(&in_full(&filled(text))))).collect()
}

#[test]
fn every_trigger_fault_and_heal_is_in_a_scenario() {
    let tables = tables();
    assert_eq!(missing(TRIGGERS.iter(), &shapes(&tables, "at", trigger), trigger), [""; 0]);
    assert_eq!(missing(actions(), &shapes(&tables, "do", action), action), [""; 0]);
}

#[test]
fn different_forms_have_different_shapes() {
    let shapes: BTreeSet<String> = actions().map(|form| shape(&action(&filled(form.text)))).collect();
    assert_eq!(shapes.len(), actions().count(), "{shapes:?}");
    let shapes: BTreeSet<String> = TRIGGERS.iter().map(|form| shape(&trigger(form.text))).collect();
    assert_eq!(shapes.len(), TRIGGERS.len(), "{shapes:?}");
    assert_eq!(shape("slow any to client by 50 ms"), shape("slow task-manager-1 to job-manager by 1 min"));
    assert_ne!(shape("disk slow sink by 1 min"), shape("disk slow sink by 1 min of client"));
}

/// The keys of a table, and what those of them can be that are one of several words.
fn keys(of: &str) -> Vec<(String, Vec<String>)> {
    let schema = schema();
    let words = |key: &serde_json::Value| {
        let target = key["$ref"].as_str().and_then(|target| schema.pointer(target.strip_prefix('#')?));
        let variants = target.unwrap_or(key)["oneOf"].as_array().cloned().unwrap_or_default();
        let words = variants.into_iter().map(|variant| variant["const"].clone());
        // Files without the key show the default.
        let words = words.filter(|word| *word != key["default"]);
        words.filter_map(|word| Some(word.as_str()?.to_owned())).collect()
    };
    let properties = schema["$defs"][of]["properties"].as_object();
    let properties = properties.unwrap_or_else(|| panic!("the schema has no {of}"));
    properties.iter().map(|(name, key)| (name.clone(), words(key))).collect()
}

#[test]
fn every_key_and_word_of_what_goes_wrong_is_in_a_scenario() {
    let tables = tables();
    let table = |name: &'static str| tables.iter().filter_map(move |table| table.get(name)?.as_table());
    let clocks = || table("clock").flat_map(Table::values).filter_map(Value::as_table);
    let all: [(&str, Vec<&Table>); 4] = [
        ("Network", table("network").collect()),
        ("Disk", table("disk").collect()),
        ("ClockError", clocks().collect()),
        ("Fault", faults(&tables).collect()),
    ];
    let mut missing = Vec::new();
    for (of, tables) in all {
        for (key, words) in keys(of) {
            let values: Vec<&Value> = tables.iter().filter_map(|table| table.get(&key)).collect();
            if values.is_empty() {
                missing.push(format!("{of}: {key}"));
            }
            let shown = |word: &String| values.iter().any(|value| value.as_str() == Some(word));
            missing
                .extend(words.iter().filter(|word| !shown(word)).map(|word| format!("{of}: {key} = {word}")));
        }
    }
    assert_eq!(missing, [""; 0]);
}
