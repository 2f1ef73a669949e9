//! The tables of ARCHITECTURE.md are true: every test that they name exists, every option is there as
//! the program has it, no statement and no hazard is left out.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use revenant::config::Configuration;

/// Statements of FLIP-383 by part, as the table numbers them.
const STATEMENTS: [(&str, u32); 8] =
    [("W", 3), ("E", 9), ("S", 4), ("C", 6), ("P", 5), ("R", 6), ("K", 1), ("L", 3)];

/// The known ways to get such a protocol wrong that this engine answers for.
fn hazards() -> BTreeSet<u32> {
    [1..=7, 10..=13, 15..=28, 30..=33, 35..=37, 40..=43, 47..=50, 52..=52].into_iter().flatten().collect()
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The cells of the table rows under a heading of ARCHITECTURE.md.
fn table(heading: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let section = text.split("\n## ").find(|section| section.starts_with(heading));
    let section = section.unwrap_or_else(|| panic!("ARCHITECTURE.md has no section '{heading}'"));
    let rows = section.lines().filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
}

/// What a cell says in backticks.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// Every function in the sources, and every scenario.
fn names() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for directory in ["src", "sim", "tests", "scenarios"] {
        collect(&root().join(directory), &mut names);
    }
    names
}

fn collect(directory: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            names.insert(path.strip_prefix(root()).unwrap().display().to_string());
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let functions = text.lines().filter_map(|line| line.trim_start().strip_prefix("fn "));
            let functions = functions.filter_map(|rest| rest.split(['(', '<']).next());
            names.extend(functions.map(str::to_owned));
        }
    }
}

fn assert_exist(tests: &[&str], row: &str) {
    let known = names();
    assert!(!tests.is_empty(), "{row} names no test");
    for test in tests {
        assert!(known.contains(*test), "{row} names `{test}`, which does not exist");
    }
}

#[test]
fn each_statement_of_the_flip_names_tests_that_exist() {
    let rows = table("FLIP-383, statement by statement");
    let found: Vec<String> = rows.iter().map(|row| row[0].clone()).collect();
    let expected: Vec<String> = STATEMENTS
        .iter()
        .flat_map(|&(part, count)| (1..=count).map(move |number| format!("{part}{number}")))
        .collect();
    assert_eq!(found, expected);
    for row in &rows {
        assert_eq!(row.len(), 3, "{row:?}");
        assert_exist(&quoted(&row[2]), &row[0]);
    }
}

#[test]
fn each_option_is_described_as_it_is_and_names_tests_that_exist() {
    let rows = table("Options");
    let described: Vec<(&str, &str, &str)> = rows
        .iter()
        .map(|row| (row[0].trim_matches('`'), row[1].trim_matches('`'), row[2].as_str()))
        .collect();
    let options = Configuration::OPTIONS.iter().map(|option| (option.key, option.default, option.expected));
    assert_eq!(described, options.collect::<Vec<_>>());
    for row in &rows {
        assert_exist(&quoted(&row[3]), &row[0]);
    }
}

#[test]
fn each_hazard_names_tests_of_its_number_or_the_reason_why_it_does_not_apply() {
    let rows = table("Hazards");
    let number = |row: &Vec<String>| row[0].trim_start_matches('B').parse::<u32>().unwrap();
    assert_eq!(rows.iter().map(number).collect::<BTreeSet<_>>(), hazards());
    assert_eq!(rows.len(), hazards().len());
    for row in &rows {
        let tests = quoted(&row[2]);
        if tests.is_empty() {
            assert!(row[2].starts_with("does not apply: "), "{} names neither a test nor a reason", row[0]);
            continue;
        }
        assert_exist(&tests, &row[0]);
        let mark = format!("{}_", row[0].to_lowercase());
        let named = |test: &&str| {
            let file =
                Path::new(test).file_stem().map_or(String::new(), |name| name.to_string_lossy().into());
            format!("_{test}").contains(&format!("_{mark}"))
                || format!("-{file}-").contains(&format!("-{}-", row[0].to_lowercase()))
        };
        assert!(tests.iter().any(|test| named(test)), "no test of {} is named after it", row[0]);
    }
}
