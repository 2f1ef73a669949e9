//! The ways of records in tiny plans.

use super::super::tests::{Ends, inner, parsed as dataflow, source};
use super::*;
use crate::reference::ReferenceJob;

/// Ways as `a v0.1 -> b+o v1.0`, with the gate in front of a step that has one.
fn told(ways: &[Vec<Step>]) -> Vec<String> {
    let step = |step: &Step| {
        let gate = step.gate.map_or_else(String::new, |gate| format!("{gate}:"));
        format!("{gate}{} v{}.{}", step.stages, step.vertex.0, step.subtask)
    };
    ways.iter().map(|way| way.iter().map(step).collect::<Vec<_>>().join(" -> ")).collect()
}

fn id(split: u32, offset: u32) -> RecordId {
    RecordId { source: 0, split, offset }
}

#[test]
fn a_way_has_the_stages_of_each_task_and_the_subtasks_that_the_record_passed() {
    let job = dataflow(
        "a = source rows=4 splits=2 parallelism=2; b = map a via rebalance parallelism=2; c = sort b; o = sink c",
    );
    let all: Ends = (0, 1);
    let dealt = inner(&[&[(all, (0, 0))], &[(all, (1, 1))]]);
    let forwarded = inner(&[&[((0, 0), (0, 0))], &[((1, 1), (0, 0))]]);
    let witness = Witness { vertices: vec![source(&[&[1], &[0]]), dealt, forwarded] };
    let way = |id, path: &str| {
        let (often, ways) = job.ways(&witness, id, path).unwrap();
        (often, told(&ways))
    };
    // Its source is subtask 1, which deals its first record to 1.
    let expected = "a v0.1 -> 0:b v1.1 -> 0:c+o v2.1".to_owned();
    assert_eq!(way(id(0, 0), "o/part-00001.csv"), (1, vec![expected]));
    assert_eq!(way(id(0, 0), "o/part-00000.csv"), (0, vec![]));
    assert_eq!(way(id(7, 0), "o/part-00001.csv"), (0, vec![]));
    job.ways(&witness, id(0, 0), "p/part-00001.csv").unwrap_err();
}

#[test]
fn a_record_that_comes_by_several_ways_is_in_the_file_as_often() {
    let job = dataflow(
        "a = source rows=2 splits=1 parallelism=1; b = map a via rebalance parallelism=1
         c = count a b b via broadcast,hash,hash parallelism=1; o = sink c kind=print",
    );
    let one: (Ends, Ends) = ((0, 0), (0, 0));
    let witness = Witness { vertices: vec![source(&[&[0]]), inner(&[&[one]]), inner(&[&[one, one, one]])] };
    let (often, ways) = job.ways(&witness, id(0, 1), "print/o/part-00000").unwrap();
    assert_eq!(often, 3);
    let by_b = |gate| format!("a v0.0 -> 0:b v1.0 -> {gate}:c+o v2.0");
    assert_eq!(told(&ways), ["a v0.0 -> 0:c+o v2.0".to_owned(), by_b(1), by_b(2)]);
}

#[test]
fn rows_that_say_only_a_hash_are_told_by_their_ids() {
    let job = dataflow("a = source rows=4 splits=2 keys=1 parallelism=1; b = group a via hash; o = sink b");
    let witness = Witness { vertices: vec![source(&[&[1, 0]]), inner(&[&[((0, 0), (0, 4))]])] };
    let ids = job.ids(&witness, "o/part-00000.csv").unwrap();
    let ids: Vec<String> = ids.iter().map(Lineage::to_string).collect();
    assert_eq!(ids, ["0.0.0+0.0.1+0.1.0+0.1.1"]);
    let file = Bytes::from(job.outputs(&witness).unwrap().remove("o/part-00000.csv").unwrap());
    let [made] = &job.made("o/part-00000.csv", &file).unwrap()[..] else { panic!() };
    assert!(made.of.to_string().starts_with("4#"), "{made:?}");
    assert_eq!(job.ids(&witness, "o/part-00001.csv").unwrap(), []);
}

#[test]
fn a_file_is_of_one_output_and_records_are_of_one_split() {
    let job =
        dataflow("a = source rows=3 splits=2 parallelism=1; o = sink a; p = sink a via hash kind=collect");
    let place = |path: &str| job.place(path).map(|place| (place.output, place.vertex.0, place.subtask));
    assert_eq!(place("o/part-00012.csv"), Some(("o".to_owned(), 0, 12)));
    assert_eq!(place("collect/p/part-00003"), Some(("p".to_owned(), 1, 3)));
    for other in ["o/part-00012", "o/part-12.csv", "p/part-00003", "collect/q/part-00000", "o/x"] {
        assert_eq!(place(other), None, "{other}");
    }
    let records: Vec<_> = job.records().map(|(id, read)| (id, read.vertex.0, read.split)).collect();
    assert_eq!(records, [(id(0, 0), 0, 0), (id(0, 1), 0, 0), (id(1, 0), 0, 1)]);
}
