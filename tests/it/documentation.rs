//! The tables of ARCHITECTURE.md and of the differences to Flink are true: every test that they name
//! exists, every option and every call of the API is there as the program has it, no statement and no
//! hazard is left out, and every call has an example.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use revenant::config::Configuration;

/// Statements of FLIP-383 by part, as the table numbers them.
const STATEMENTS: [(&str, u32); 8] =
    [("W", 3), ("E", 9), ("S", 4), ("C", 6), ("P", 5), ("R", 6), ("K", 1), ("L", 3)];

/// Cases of FLIP-380, as the table numbers them.
const CASES: u32 = 19;

/// Where the calls of the API are.
const API: [&str; 8] = [
    "environment",
    "data_stream",
    "results",
    "keyed_stream",
    "partition_windowed_stream",
    "rich_functions",
    "parameters",
    "program",
];

/// The known ways to get such a protocol wrong that this engine answers for.
fn hazards() -> BTreeSet<u32> {
    [1..=7, 10..=13, 15..=28, 30..=33, 35..=37, 40..=43, 47..=50, 52..=52].into_iter().flatten().collect()
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The cells of the table rows under a heading of ARCHITECTURE.md.
fn table(heading: &str) -> Vec<Vec<String>> {
    table_of("ARCHITECTURE.md", heading)
}

/// The cells of the table rows under a heading of a page. A `|` in a cell has a backslash before it.
fn table_of(page: &str, heading: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(root().join(page)).unwrap().replace(r"\|", "\u{2502}");
    let section = text.split("\n## ").find(|section| section.starts_with(heading));
    let section = section.unwrap_or_else(|| panic!("{page} has no section '{heading}'"));
    let rows = section.lines().filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
}

/// Whether there is the test of a name `path::test`, or the scenario of a path.
fn exists(name: &str) -> bool {
    let (path, test) = name.split_once("::").map_or((name, None), |(path, test)| (path, Some(test)));
    let content = fs::read_to_string(root().join(path));
    content.is_ok_and(|content| test.is_none_or(|test| tests(&content).iter().any(|known| known == test)))
}

/// A public call of a type: `Type::call`, and whether it has an example of its own or is in its type's.
#[derive(Debug, PartialEq)]
struct Call {
    name: String,
    has_example: bool,
}

/// The public calls of a source in its order. Those of unit tests are behind all others.
fn calls(source: &str) -> Vec<Call> {
    let (mut calls, mut of_type, mut doc) = (Vec::new(), String::new(), String::new());
    let mut docs_of_types = BTreeMap::new();
    let identifier =
        |text: &str| -> String { text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect() };
    for line in source.split("#[cfg(test)]").next().unwrap().lines().map(str::trim_start) {
        if let Some(text) = line.strip_prefix("///") {
            doc += text;
            doc += "\n";
            continue;
        }
        if line.starts_with("#[") {
            continue;
        }
        if let Some(rest) = line.strip_prefix("pub struct ") {
            docs_of_types.insert(identifier(rest), doc.clone());
        } else if line.starts_with("impl") && line.ends_with('{') {
            let subject = line.rsplit_once(" for ").map_or(line, |(_, subject)| subject);
            let bounds = subject.strip_prefix("impl<").map_or(0, |rest| {
                let mut open = 1;
                let end = rest.find(|c: char| {
                    open += i32::from(c == '<') - i32::from(c == '>');
                    open == 0
                });
                "impl<".len() + end.unwrap_or(0) + 1
            });
            of_type = identifier(subject[bounds..].trim_start_matches("impl").trim_start());
        } else if let Some(rest) = line.strip_prefix("pub fn ") {
            let call = identifier(rest);
            let of_its_type = docs_of_types.get(&of_type).is_some_and(|doc: &String| {
                let code = doc.split("```").skip(1).step_by(2);
                let mut code = code.filter(|code| !code.starts_with("compile_fail"));
                code.any(|code| code.contains(&format!("{call}(")))
            });
            let has_example = of_its_type || doc.contains("```\n");
            calls.push(Call { name: format!("{of_type}::{call}"), has_example });
        }
        doc.clear();
    }
    calls
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

#[test]
fn each_case_of_the_other_flip_names_tests_that_exist() {
    let rows = table("FLIP-380, case by case");
    let found: Vec<String> = rows.iter().map(|row| row[0].clone()).collect();
    assert_eq!(found, (1..=CASES).map(|number| format!("F{number}")).collect::<Vec<_>>());
    let known = names();
    for row in &rows {
        assert!(row.len() == 4 && row.iter().all(|cell| !cell.is_empty()), "{row:?}");
        assert_exist(&known, &quoted(&row[3]), &row[0]);
    }
}

#[test]
fn a_call_is_found_with_its_type_and_its_example() {
    let source = "/// ```\n/// one.two();\n/// ```\npub struct One<T>;\nimpl<T: Deref<Target = u8>> One<T> {\n    \
                  /// Two.\n    pub fn two(&self) {}\n    /// Three.\n    #[must_use]\n    pub fn three<U>(self) {}\n    \
                  /// ```\n    /// four();\n    /// ```\n    pub fn four() {}\n    pub(super) fn five() {}\n}\n\
                  impl Deref for Other {\n}\n#[cfg(test)]\nmod tests {\n    pub fn six() {}\n}\n";
    let call = |name: &str, has_example| Call { name: name.to_owned(), has_example };
    assert_eq!(calls(source), [call("One::two", true), call("One::three", false), call("One::four", true)]);
}

#[test]
fn each_call_of_the_api_has_an_example_and_names_a_test_that_exists() {
    let source = |name: &str| fs::read_to_string(root().join(format!("src/api/{name}.rs"))).unwrap();
    let calls: Vec<Call> = API.iter().flat_map(|name| calls(&source(name))).collect();
    let without: Vec<&str> =
        calls.iter().filter(|call| !call.has_example).map(|call| call.name.as_str()).collect();
    assert_eq!(without, [""; 0], "no example");
    let rows = table("The API, call by call");
    let listed: BTreeSet<&str> = rows.iter().map(|row| row[0].trim_matches('`')).collect();
    assert_eq!(listed, calls.iter().map(|call| call.name.as_str()).collect());
    let known = names();
    for row in &rows {
        assert_eq!(row.len(), 2, "{row:?}");
        assert_exist(&known, &quoted(&row[1]), &row[0]);
    }
}

#[test]
fn each_difference_to_flink_names_tests_where_they_are() {
    let sections = [
        ("Streams and full-window partitions", 5),
        ("After a crash", 4),
        ("The values of Flink's own tests", 2),
    ];
    for (heading, columns) in sections {
        let rows = table_of("docs/differences-to-flink.md", heading);
        assert!(rows.len() > 10, "{heading}");
        for row in &rows {
            assert!(row.len() == columns && row.iter().all(|cell| !cell.is_empty()), "{row:?}");
            let tests = quoted(&row[columns - 1]);
            assert!(!tests.is_empty(), "'{}' names no test", row[0]);
            for test in tests {
                assert!(exists(test), "'{}' names `{test}`, and it is not there", row[0]);
            }
        }
    }
    assert!(exists("tests/it/documentation.rs::each_difference_to_flink_names_tests_where_they_are"));
    assert!(!exists("tests/it/documentation.rs::exists") && !exists("scenarios/none.toml"));
}
