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

/// Every test in the sources, those of `proptest!` among them, and every scenario.
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
            names.extend(tests(&fs::read_to_string(&path).unwrap()));
        }
    }
}

/// The functions that have the attribute of a test.
fn tests(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_test = false;
    for line in source.lines().map(str::trim_start) {
        is_test |= line == "#[test]";
        if let Some(rest) = line.strip_prefix("fn ") {
            let name = rest.split(['(', '<']).next().filter(|_| is_test);
            found.extend(name.map(str::to_owned));
            is_test = false;
        }
    }
    found
}

/// The numbers of the hazards that a test's or a scenario's name begins with, as in `b3_b20_a_job_…`.
fn numbers(name: &str) -> Vec<u32> {
    let stem = Path::new(name).file_stem().map_or(String::new(), |stem| stem.to_string_lossy().into());
    let words = stem.split(['_', '-']).map(|word| word.strip_prefix('b')?.parse().ok());
    words.map_while(|number| number).collect()
}

fn assert_exist(known: &BTreeSet<String>, tests: &[&str], row: &str) {
    assert!(!tests.is_empty(), "{row} names no test");
    for test in tests {
        assert!(known.contains(*test), "{row} names `{test}`, and there is no such test or scenario");
    }
}

#[test]
fn only_functions_with_the_attribute_of_a_test_count_as_tests() {
    let source = "fn helper() {}\n#[test]\n/// Why.\nfn one() {\n    fn inner() {}\n}\nproptest! {\n    \
                  #[test]\n    fn two(\n        x in 0..3,\n    ) {}\n}\nfn other() {}\n";
    assert_eq!(tests(source), ["one", "two"]);
    assert_eq!(numbers("b3_b20_a_job_of_b7"), [3, 20]);
    assert_eq!(numbers("before_b7"), [0; 0]);
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
    let known = names();
    for row in &rows {
        assert!(row.len() == 3 && !row[1].is_empty(), "{row:?}");
        assert_exist(&known, &quoted(&row[2]), &row[0]);
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
    let known = names();
    for row in &rows {
        assert_eq!(row.len(), 4, "{row:?}");
        assert_exist(&known, &quoted(&row[3]), &row[0]);
    }
}

#[test]
fn each_hazard_names_tests_of_its_number_or_the_reason_why_it_does_not_apply() {
    let rows = table("Hazards");
    let number = |row: &Vec<String>| row[0].trim_start_matches('B').parse::<u32>().unwrap();
    assert_eq!(rows.iter().map(number).collect::<Vec<_>>(), hazards().into_iter().collect::<Vec<_>>());
    let known = names();
    for row in &rows {
        assert!(row.len() == 3 && !row[1].is_empty(), "{row:?}");
        let tests = quoted(&row[2]);
        if tests.is_empty() {
            let reason = row[2].strip_prefix("does not apply: ");
            assert!(
                reason.is_some_and(|reason| !reason.is_empty()),
                "{} names no test and no reason",
                row[0]
            );
            continue;
        }
        assert_exist(&known, &tests, &row[0]);
        let is_named = tests.iter().any(|test| numbers(test).contains(&number(row)));
        assert!(is_named, "no test of {} is named after it", row[0]);
    }
}

#[test]
fn each_test_that_is_named_after_a_hazard_has_its_row() {
    let hazards = hazards();
    for name in names() {
        let unknown: Vec<u32> =
            numbers(&name).into_iter().filter(|number| !hazards.contains(number)).collect();
        assert_eq!(unknown, [0; 0], "`{name}` is named after hazards that have no row");
    }
}
