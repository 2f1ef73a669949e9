//! What S1 says of an output that was spoilt after a run: the record, and the attempts that it went through.

use bytes::Bytes;
use revenant_sim::oracle::Judge;
use revenant_sim::run::{RunOptions, run};

use super::{program, scenario};

/// Spoils the lines of a file of a run; what is then said of it.
fn judged(kept: &str, sink: &str, path: &str, spoil: fn(&mut Vec<String>)) -> String {
    let scenario = scenario(&format!(
        "[job]\nname = 'dataflow'\n[job.arguments]\nplan = '''lineage = {kept}\n\
         a = source rows=12 splits=3 keys=4 parallelism=2\nb = group a via hash parallelism=2\no = sink b {sink}'''\n\
         [config]\n'execution.batch.job-recovery.enabled' = true\n"
    ));
    let program = program();
    let judge = Judge::new(&scenario, &program).unwrap();
    let mut outcome = run(&scenario, &program, &RunOptions::default());
    judge.judge(&outcome).unwrap();
    let file = outcome.output.get_mut(path).unwrap_or_else(|| panic!("there is no {path}"));
    let mut lines: Vec<String> = str::from_utf8(file).unwrap().lines().map(ToOwned::to_owned).collect();
    spoil(&mut lines);
    *file = Bytes::from(lines.join("\n") + "\n");
    let violation = judge.judge(&outcome).unwrap_err();
    assert_eq!(violation.oracle, "S1");
    violation.message
}

/// The group of the key 2, which is made of these.
const ROW: &str = "0,0,1,2,930,4,";
const RECORDS: [&str; 4] = ["0.0.1", "0.1.1", "0.2.0", "0.2.2"];

/// Its subtasks had the splits 1, and 0 and 2.
fn read_by(record: &str) -> &str {
    if record.starts_with("0.1.") { "v0.0.e1a1" } else { "v0.1.e1a1" }
}

#[test]
fn a_line_that_is_gone_is_told_with_its_records_and_their_attempts() {
    let path = "o/part-00000.csv";
    for kept in ["ids", "hash"] {
        let message = judged(kept, "", path, |lines| lines.retain(|line| !line.starts_with(ROW)));
        assert!(message.starts_with("output file o/part-00000.csv differs: line "), "{message}");
        let lost = |record: &str| {
            let by = read_by(record);
            let lost = format!("record {record} is lost: {path} has it not at all and should once");
            format!("{lost}; its way is a {by} -> b+o v1.0.e1a1")
        };
        let told: Vec<String> = RECORDS[..3].iter().map(|record| lost(record)).collect();
        assert!(message.ends_with(&format!("; lineage: {}; 1 more records", told.join("; "))), "{message}");
    }
}

#[test]
fn a_line_that_is_there_twice_is_told_with_its_records_and_their_attempts() {
    let path = "print/o/part-00000";
    for kept in ["ids", "hash"] {
        let message = judged(kept, "kind=print", path, |lines| lines.push(lines[0].clone()));
        for record in &RECORDS[..3] {
            let doubled = format!("record {record} is doubled: {path} has it 2 times and should once");
            let way = format!("its way is a {} -> b+o v1.0.e1a1", read_by(record));
            assert!(message.contains(&format!("{doubled}; {way}")), "{message}");
        }
    }
}
