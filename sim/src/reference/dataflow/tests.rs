//! Tiny plans, worked out by hand. With 3 keys source 0 has, as (split, offset, key, value):
//! A0 (0, 0, 0, 433), A1 (0, 1, 1, 432), B0 (1, 0, 2, 171), B1 (1, 1, 2, 368).

use revenant::jobs::registry;
use revenant::message::IndexRange;

use super::row::HEADER;
use super::*;

const A0: &str = "0,0,0,0,433,1,0.0.0";
const A1: &str = "0,0,1,1,432,1,0.0.1";
const B0: &str = "0,1,0,2,171,1,0.1.0";
const B1: &str = "0,1,1,2,368,1,0.1.1";

/// A parallelism that the plan leaves open is at most 5.
pub(super) fn parsed(plan: &str) -> Dataflow {
    let arguments = vec![("plan".to_owned(), plan.to_owned())];
    let job = JobArguments { name: "dataflow".to_owned(), arguments };
    let graph = registry().build(&job).unwrap_or_else(|error| panic!("{error}"));
    Dataflow::new(&job, &graph, &[], &mut Shape::of(&graph, 5)).unwrap()
}

/// With the ids of records.
fn dataflow(plan: &str) -> Dataflow {
    parsed(&format!("lineage = ids; {plan}"))
}

/// A source whose subtasks consumed these splits.
pub(super) fn source(splits: &[&[u32]]) -> VertexWitness {
    VertexWitness { inputs: vec![vec![]; splits.len()], splits: splits.iter().map(|s| s.to_vec()).collect() }
}

pub(super) type Ends = (u32, u32);

/// A vertex whose subtasks read these partitions and subpartitions, first and last, by gate.
pub(super) fn inner(subtasks: &[&[(Ends, Ends)]]) -> VertexWitness {
    let range = |(start, end): Ends| IndexRange::new(start, end);
    let ranges = |gates: &&[(Ends, Ends)]| gates.iter().map(|&(p, s)| (range(p), range(s))).collect();
    VertexWitness { inputs: subtasks.iter().map(ranges).collect(), splits: vec![vec![]; subtasks.len()] }
}

/// Lines of each subtask's file of the sink `o`, without headers.
fn lines(job: &Dataflow, vertices: Vec<VertexWitness>) -> Vec<Vec<String>> {
    let files = job.outputs(&Witness { vertices }).unwrap();
    let text = |(path, file): (String, Vec<u8>)| {
        assert!(path.starts_with("o/part-0000"), "{path}");
        let text = String::from_utf8(file).unwrap();
        let mut lines = text.lines().map(ToOwned::to_owned);
        assert_eq!(lines.next().as_deref(), Some(HEADER));
        lines.collect()
    };
    files.into_iter().map(text).collect()
}

/// Of a sink with two subtasks behind source 0, whose first subtask has A and whose second has B.
fn exchanged(via: &str, ranges: [(Ends, Ends); 2]) -> Vec<Vec<String>> {
    let plan = format!("a = source rows=4 splits=2 keys=3 parallelism=2; o = sink a via {via}");
    let job = dataflow(&plan);
    lines(&job, vec![source(&[&[0], &[1]]), inner(&[&[ranges[0]], &[ranges[1]]])])
}

#[test]
fn each_exchange_brings_rows_to_other_subtasks() {
    const ALL: Ends = (0, 1);
    // A0 and B1 are dealt to subpartition 0, A1 and B0 to 1.
    assert_eq!(exchanged("rebalance parallelism=2", [(ALL, (0, 0)), (ALL, (1, 1))]), [[A0, B1], [A1, B0]]);
    // XXH3 sends keys 1 and 2 to subpartition 2 of 5, key 0 to 3.
    assert_eq!(exchanged("hash", [(ALL, (0, 2)), (ALL, (3, 4))]), [vec![A1, B0, B1], vec![A0]]);
    // Keys 0 and 2 go to subpartition 0 of 2, key 1 to 1.
    assert_eq!(
        exchanged("custom parallelism=2", [(ALL, (0, 0)), (ALL, (1, 1))]),
        [vec![A0, B0, B1], vec![A1]]
    );
    assert_eq!(exchanged("broadcast", [(ALL, (0, 0)); 2]), [[A0, A1, B0, B1]; 2]);
    // One consumer for each producer.
    assert_eq!(
        exchanged("rescale parallelism=2", [((0, 0), (0, 0)), ((1, 1), (0, 0))]),
        [[A0, A1], [B0, B1]]
    );
}

#[test]
fn a_rescale_from_few_to_many_deals_each_partition_to_its_readers() {
    let job =
        dataflow("a = source rows=4 splits=2 keys=3 parallelism=2; o = sink a via rescale parallelism=4");
    let reads: [&[(Ends, Ends)]; 4] =
        [&[((0, 0), (0, 0))], &[((0, 0), (1, 1))], &[((1, 1), (0, 0))], &[((1, 1), (1, 1))]];
    // The second producer begins with its own subpartition 1.
    assert_eq!(lines(&job, vec![source(&[&[0], &[1]]), inner(&reads)]), [[A0], [A1], [B1], [B0]]);
}

#[test]
fn a_forwarded_chain_keeps_the_rows_of_each_subtask_in_the_order_of_its_splits() {
    let job = dataflow("a = source rows=4 splits=2 keys=3; b = map a; c = filter b; o = sink c");
    // A0 becomes 1299, which 3 divides.
    let (a1, b0, b1) = ("0,0,1,1,1297,1,0.0.1", "0,1,0,2,515,1,0.1.0", "0,1,1,2,1106,1,0.1.1");
    assert_eq!(lines(&job, vec![source(&[&[1, 0], &[]])]), [vec![b0, b1, a1], vec![]]);
    assert_eq!(lines(&job, vec![source(&[&[0], &[1]])]), [vec![a1], vec![b0, b1]]);
}

#[test]
fn windows_work_on_what_their_own_subtask_gets() {
    let both: [&[(Ends, Ends)]; 2] = [&[((0, 0), (0, 0))], &[((1, 1), (0, 0))]];
    let of = |stage: &str, splits: [&[u32]; 2]| {
        let plan = format!("a = source rows=4 splits=2 keys=3 parallelism=2; b = {stage}; o = sink b");
        lines(&dataflow(&plan), vec![source(&splits), inner(&both)])
    };
    let apart: [&[u32]; 2] = [&[0], &[1]];
    let together: [&[u32]; 2] = [&[1, 0], &[]];
    assert_eq!(of("sort a", together), [vec![A0, A1, B0, B1], vec![]]);
    assert_eq!(of("sort a order=descending", together), [vec![B0, B1, A1, A0], vec![]]);
    assert_eq!(of("group a", together), [vec!["0,1,0,2,539,2,0.1.0+0.1.1", A0, A1], vec![]]);
    assert_eq!(of("group a", apart), [vec![A0, A1], vec!["0,1,0,2,539,2,0.1.0+0.1.1"]]);
    assert_eq!(of("count a", together), [["0,0,0,0,4,4,0.0.0+0.0.1+0.1.0+0.1.1"], ["0,0,0,0,0,0,"]]);
    // 433 * 31 + 432, and 171 * 31 + 368.
    assert_eq!(of("reduce a", apart), [["0,0,0,0,13855,2,0.0.0+0.0.1"], ["0,1,0,2,5669,2,0.1.0+0.1.1"]]);
    assert_eq!(of("first 1 of a", apart), [[A0], [B0]]);
    assert_eq!(of("first 3 of a", together), [vec![B0, B1, A0], vec![]]);
}

/// Key 1 alone goes to the second subtask.
#[test]
fn what_is_per_key_works_on_each_key_and_knows_nothing_of_absent_ones() {
    let of = |stage: &str| {
        let plan =
            format!("a = source rows=4 splits=2 keys=3 parallelism=1; b = {stage} parallelism=2; o = sink b");
        let reads: [&[(Ends, Ends)]; 2] = [&[((0, 0), (0, 0))], &[((0, 0), (1, 1))]];
        lines(&dataflow(&plan), vec![source(&[&[1, 0]]), inner(&reads)])
    };
    let all = of("sort a via hash by=value order=descending per=key");
    assert_eq!(all.concat().len(), 4);
    let place = |row: &str| all.iter().position(|lines| lines.iter().any(|line| line == row)).unwrap();
    let mut sorted: [Vec<&str>; 2] = [vec![], vec![]];
    let mut counts = [vec![], vec![]];
    let mut reduced = [vec![], vec![]];
    let mut first = [vec![], vec![]];
    // 171 * 31 + 368.
    for (rows, count, reduce) in [
        (&[A0] as &[&str], "0,0,0,0,1,1,0.0.0", A0),
        (&[A1], "0,0,0,1,1,1,0.0.1", A1),
        (&[B1, B0], "0,0,0,2,2,2,0.1.0+0.1.1", "0,1,0,2,5669,2,0.1.0+0.1.1"),
    ] {
        let place = place(rows[0]);
        sorted[place].extend(rows);
        counts[place].push(count);
        reduced[place].push(reduce);
        first[place].push(*rows.last().unwrap());
    }
    assert_eq!(all, sorted);
    assert_eq!(of("count a via hash per=key"), counts);
    assert_eq!(of("reduce a via hash per=key"), reduced);
    assert_eq!(of("first 1 of a via hash per=key"), first);
}

#[test]
fn a_join_reads_its_inputs_apart_and_a_union_one_after_the_other() {
    let sources =
        "a = source rows=4 splits=2 keys=3 parallelism=1; b = source rows=2 splits=1 keys=3 parallelism=1";
    let vertices = || {
        let gates: [(Ends, Ends); 2] = [((0, 0), (0, 0)); 2];
        vec![source(&[&[0, 1]]), source(&[&[0]]), inner(&[&gates])]
    };
    // Source 1 has the keys 2 and 1, with 595 and 297.
    let join = dataflow(&format!("{sources}; c = join b a via broadcast,forward; o = sink c"));
    let joined = [A0, "0,0,1,1,729,1,0.0.1+1.0.1", "0,1,0,2,766,1,0.1.0+1.0.0", "0,1,1,2,963,1,0.1.1+1.0.0"];
    assert_eq!(lines(&join, vertices()), [joined]);
    let union = dataflow(&format!("{sources}; o = sink b a via rebalance,forward"));
    let (c0, c1) = ("1,0,0,2,595,1,1.0.0", "1,0,1,1,297,1,1.0.1");
    assert_eq!(lines(&union, vertices()), [[c0, c1, A0, A1, B0, B1]]);
}

fn bytes(files: Files) -> BTreeMap<String, Bytes> {
    files.into_iter().map(|(path, bytes)| (path, Bytes::from(bytes))).collect()
}

#[test]
fn a_split_lost_or_read_twice_is_not_the_whole_whatever_the_witness_says() {
    let plan = "a = source rows=4 splits=2 keys=3 parallelism=2; o = sink a; b = count a via rebalance parallelism=2; p = sink b";
    let job = dataflow(plan);
    let all: Ends = (0, 1);
    let files = |splits: [&[u32]; 2]| {
        let count = inner(&[&[(all, (0, 0))], &[(all, (1, 1))]]);
        bytes(job.outputs(&Witness { vertices: vec![source(&splits), count] }).unwrap())
    };
    for splits in [[&[0_u32][..], &[1]], [&[1, 0], &[]]] {
        job.whole(&files(splits)).unwrap();
    }
    let wrong = |splits| job.whole(&files(splits)).unwrap_err();
    assert_eq!(wrong([&[0], &[]]), format!("output 'o': row {B0} is there 0 times, 1 expected"));
    assert_eq!(wrong([&[0, 1], &[1]]), format!("output 'o': row {B0} is there 2 times, 1 expected"));
    // Only the count of one more.
    let mut mixed = files([&[0], &[1]]);
    mixed.extend(files([&[0, 1], &[1]]).into_iter().filter(|(path, _)| path.starts_with("p/")));
    assert_eq!(job.whole(&mixed).unwrap_err(), "output 'p': it stands for 6 rows of sources, 4 expected");
}

#[test]
fn a_witness_that_cannot_be_is_refused() {
    let job = dataflow("a = source rows=4 splits=2 parallelism=1; o = sink a via hash parallelism=1");
    let outputs = |vertices| job.outputs(&Witness { vertices }).unwrap_err();
    assert_eq!(outputs(vec![source(&[&[2]]), inner(&[&[((0, 0), (0, 0))]])]), "there is no split 2");
    assert_eq!(outputs(vec![source(&[&[0]]), inner(&[&[]])]), "a subtask has no input ranges");
    assert_eq!(outputs(vec![source(&[&[0]]), inner(&[&[((0, 1), (0, 0))]])]), "there is no subpartition 1/0");
    assert_eq!(outputs(vec![source(&[&[0]])]), "the job does not have 2 vertices");
}

#[test]
fn a_graph_that_is_not_the_plans_is_refused() {
    let job = |plan: &str| {
        let arguments = vec![("plan".to_owned(), plan.to_owned())];
        JobArguments { name: "dataflow".to_owned(), arguments }
    };
    let plan = job("a = source rows=4; o = sink a via hash");
    for (other, message) in [
        ("a = source rows=4; o = sink a", "the plan has 2 vertices, the job 1"),
        ("a = source rows=4; o = sink a via rebalance", "the job has other exchanges than the plan"),
    ] {
        let graph = registry().build(&job(other)).unwrap();
        assert_eq!(Dataflow::new(&plan, &graph, &[], &mut Shape::of(&graph, 8)).unwrap_err(), message);
    }
}
