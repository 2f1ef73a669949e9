//! The graphs that plans become, and what plans write, worked out from the rows that their sources
//! have. The small cluster reads dynamic splits in turn, so most sources here have one subtask.

use super::lineage::{Keeps, Lineage, RecordId};
use super::row::Row;
use crate::config::JobArguments;
use crate::connectors::CollectedPart;
use crate::graph::Partitioner;
use crate::jobs::registry;
use crate::operators::tests::{Cluster, Outcome};

/// With the ids of records.
fn job(plan: &str) -> JobArguments {
    let plan = format!("{plan}\nlineage = ids");
    JobArguments { name: "dataflow".to_owned(), arguments: vec![("plan".to_owned(), plan)] }
}

fn run(plan: &str) -> Outcome {
    let cluster = Cluster::of_program(&registry(), job(plan));
    cluster.finish().unwrap_or_else(|failure| panic!("{}", failure.message))
}

fn line(row: Row) -> String {
    let Row { source, split, offset, key, value, rows, lineage } = row;
    format!("{source},{split},{offset},{key},{value},{rows},{lineage}")
}

fn lines(rows: impl IntoIterator<Item = Row>) -> Vec<String> {
    rows.into_iter().map(line).collect()
}

/// The rows of a source with one split.
fn source(source: u32, rows: u32, keys: u32) -> Vec<Row> {
    let id = |offset| RecordId { source, split: 0, offset };
    (0..rows).map(|offset| Row::generate(id(offset), keys, Keeps::Ids)).collect()
}

#[test]
fn a_plan_becomes_a_graph_with_its_names_exchanges_and_parallelisms() {
    let graph = registry()
        .build(&job("small = source rows=3 parallelism=2
             numbers = source rows=9
             mapped = map numbers
             joined = join small mapped via broadcast,hash parallelism=3
             kept = filter joined
             both = map kept mapped via rescale,rebalance max-parallelism=5
             out = sink both; audit = sink kept"))
        .unwrap();
    let vertices: Vec<_> =
        graph.vertices.iter().map(|v| (v.name.as_str(), v.parallelism, v.max_parallelism)).collect();
    assert_eq!(
        vertices,
        [
            ("Source: small -> joined.first", Some(2), None),
            ("Source: numbers -> mapped -> joined.second", None, None),
            ("joined -> kept -> Sink: audit", Some(3), None),
            ("both -> Sink: out", None, Some(5)),
        ]
    );
    let edges: Vec<_> = graph.edges.iter().map(|e| (e.producer.0, e.consumer.0, e.partitioner)).collect();
    assert_eq!(
        edges,
        [
            (0, 2, Partitioner::Broadcast),
            (1, 2, Partitioner::Hash),
            (2, 3, Partitioner::Rescale),
            (1, 3, Partitioner::Rebalance),
        ]
    );
}

#[test]
fn what_a_source_says_of_its_splits_reaches_the_graph() {
    use crate::coordinator::SplitAssignment;
    let graph = registry()
        .build(&job("a = source rows=9 splits=5 assignment=static snapshots=false; b = source rows=1; o = sink a; p = sink b"))
        .unwrap();
    let source = |vertex: usize| graph.vertices[vertex].source.as_ref().unwrap();
    let facts = |vertex| {
        let source = source(vertex);
        (source.splits().len(), source.assignment(), source.supports_batch_snapshot())
    };
    assert_eq!(facts(0), (5, SplitAssignment::Static, false));
    assert_eq!(facts(1), (4, SplitAssignment::Dynamic, true));
}

#[test]
fn a_wrong_plan_is_refused_with_its_argument_line_and_stage() {
    let error = registry().build(&job("a = source rows=1\nb = sinc a")).unwrap_err().to_string();
    assert!(
        error.starts_with(
            "job 'dataflow': argument 'plan': line 2, stage 'b': unknown operation 'sinc', did you mean 'sink'?"
        ),
        "{error}"
    );
}

#[test]
fn the_plan_that_stands_for_none_is_right() {
    let arguments = registry().arguments("dataflow").unwrap();
    let example = arguments[0].default.as_deref().unwrap();
    assert_eq!(registry().build(&job(example)).unwrap().vertices.len(), 3);
}

#[test]
fn rows_are_mapped_and_filtered() {
    let outcome = run("a = source rows=20 splits=1 parallelism=1; b = map a; c = filter b; o = sink c");
    let expected: Vec<Row> = source(0, 20, 16).into_iter().map(Row::mapped).filter(Row::is_kept).collect();
    assert!(expected.len() > 5 && expected.len() < 20);
    assert_eq!(outcome.rows("o", 0), lines(expected));
    let header = "source,split,offset,key,value,rows,lineage\n";
    assert!(outcome.files["o/part-00000.csv"].starts_with(header));
}

#[test]
fn a_join_adds_the_first_input_to_each_row_of_the_second_wherever_it_is() {
    let outcome = run(
        "small = source rows=6 splits=1 keys=4 parallelism=1; large = source rows=30 splits=1 keys=5 parallelism=1
         x = join small large via broadcast,rebalance parallelism=3; o = sink x
         y = join small large via hash,hash parallelism=2; p = sink y",
    );
    let small = source(0, 6, 4);
    let sum = |key: i64| {
        let of_key = small.iter().filter(|row| row.key == key);
        let mut lineage = Lineage::none(Keeps::Ids);
        of_key.clone().for_each(|row| lineage.add(&row.lineage));
        (of_key.map(|row| row.value).sum::<i64>(), lineage)
    };
    let mut expected = lines(source(1, 30, 5).into_iter().map(|row| {
        let sum = sum(row.key);
        row.joined(&sum)
    }));
    expected.sort();
    for (directory, subtasks) in [("o", 3), ("p", 2)] {
        let mut found: Vec<String> =
            (0..subtasks).flat_map(|subtask| outcome.rows(directory, subtask)).collect();
        found.sort();
        assert_eq!(found, expected, "{directory}");
    }
}

#[test]
fn a_group_has_one_row_for_each_key_in_the_order_of_first_arrival() {
    let outcome = run("a = source rows=12 splits=1 keys=3 parallelism=1
         b = group a via hash parallelism=1; o = sink b");
    let mut expected: Vec<Row> = Vec::new();
    for row in source(0, 12, 3) {
        match expected.iter_mut().find(|group| group.key == row.key) {
            Some(group) => {
                group.value += row.value;
                group.rows += 1;
                group.lineage.add(&row.lineage);
            }
            None => expected.push(row),
        }
    }
    assert_eq!(expected.len(), 3);
    assert_eq!(outcome.rows("o", 0), lines(expected));
}

#[test]
fn a_sort_is_by_key_and_keeps_the_order_of_arrival_within_one() {
    let outcome = run("a = source rows=12 splits=1 keys=3 parallelism=1
         b = sort a; o = sink b; c = sort a order=descending; p = sink c; d = sort a by=value; q = sink d");
    let mut expected = source(0, 12, 3);
    expected.sort_by_key(|row| (row.key, row.offset));
    assert_eq!(outcome.rows("o", 0), lines(expected.clone()));
    expected.sort_by_key(|row| (-row.key, row.offset));
    assert_eq!(outcome.rows("p", 0), lines(expected.clone()));
    expected.sort_by_key(|row| (row.value, row.offset));
    assert_eq!(outcome.rows("q", 0), lines(expected));
}

/// Of each key, keys below 64 in the order of their encodings, which is theirs.
#[test]
fn what_is_per_key_has_the_keys_in_order_and_the_rows_of_each_in_the_order_of_arrival() {
    let outcome = run("a = source rows=12 splits=1 keys=3 parallelism=1
         b = sort a via hash by=value order=descending per=key parallelism=1; o = sink b
         c = count a via hash per=key parallelism=1; p = sink c
         d = reduce a via hash per=key parallelism=1; q = sink d
         e = first 2 of a via hash per=key parallelism=1; r = sink e");
    let rows = source(0, 12, 3);
    let of_key = |key: i64| rows.iter().filter(move |row| row.key == key).cloned();
    let mut sorted = rows.clone();
    sorted.sort_by_key(|row| (row.key, -row.value, row.offset));
    assert_eq!(outcome.rows("o", 0), lines(sorted));
    let counts = (0..3).map(|key| {
        let counted = of_key(key).fold(Row::none(Keeps::Ids), |counted, row| counted.counted(&row));
        assert_eq!(counted.value, of_key(key).count().cast_signed() as i64);
        Row { key, ..counted }
    });
    assert_eq!(outcome.rows("p", 0), lines(counts));
    assert_eq!(outcome.rows("q", 0), lines((0..3).filter_map(|key| of_key(key).reduce(Row::folded))));
    assert_eq!(outcome.rows("r", 0), lines((0..3).flat_map(|key| of_key(key).take(2))));
}

#[test]
fn a_skew_leaves_most_rows_one_key() {
    let outcome = run("a = source rows=40 splits=1 parallelism=1; b = skew a; o = sink b");
    let expected: Vec<Row> = source(0, 40, 16).into_iter().map(Row::skewed).collect();
    assert!((20..36).contains(&expected.iter().filter(|row| row.key == 0).count()));
    assert_eq!(outcome.rows("o", 0), lines(expected));
}

#[test]
fn custom_and_shuffle_send_every_row_to_one_subtask() {
    let outcome =
        run("a = source rows=40 splits=1 parallelism=1; b = map a via custom parallelism=3; o = sink b
         c = map a via shuffle parallelism=3; p = sink c");
    let keys = |subtask| -> Vec<i64> {
        outcome
            .rows("o", subtask)
            .iter()
            .map(|line| line.split(',').nth(3).unwrap().parse().unwrap())
            .collect()
    };
    for subtask in 0..3 {
        assert!(keys(subtask).iter().all(|key| key % 3 == i64::from(subtask)), "{:?}", keys(subtask));
        assert!(outcome.rows("p", subtask).len() > 5);
    }
    for directory in ["o", "p"] {
        let mut all: Vec<String> = (0..3).flat_map(|subtask| outcome.rows(directory, subtask)).collect();
        let mut expected = lines(source(0, 40, 16).into_iter().map(Row::mapped));
        all.sort();
        expected.sort();
        assert_eq!(all, expected, "{directory}");
    }
}

#[test]
fn an_empty_subtask_is_counted_and_reduces_to_nothing() {
    let outcome = run("a = source rows=2 splits=1 parallelism=1
         b = count a via rebalance parallelism=3; o = sink b
         c = reduce a via rebalance parallelism=3; p = sink c");
    let counts: Vec<String> = (0..3).flat_map(|subtask| outcome.rows("o", subtask)).collect();
    assert_eq!(counts, ["0,0,0,0,1,1,0.0.0", "0,0,0,0,1,1,0.0.1", "0,0,0,0,0,0,"]);
    assert_eq!(outcome.rows("p", 0), lines([source(0, 2, 16)[0].clone()]));
    assert!(outcome.rows("p", 2).is_empty());
}

#[test]
fn a_reduce_folds_from_the_left() {
    let outcome = run("a = source rows=3 splits=1 parallelism=1; b = reduce a; o = sink b");
    let rows = source(0, 3, 16);
    let value = (rows[0].value * 31 + rows[1].value) * 31 + rows[2].value;
    assert_eq!(outcome.rows("o", 0), [format!("0,0,0,{},{value},3,0.0.0+0.0.1+0.0.2", rows[0].key)]);
}

#[test]
fn the_first_rows_are_taken_and_the_others_not_fetched() {
    let outcome = run("a = source rows=200 splits=1 parallelism=1
         b = first 3 of a; o = sink b; c = first 0 of a; p = sink c");
    assert_eq!(outcome.rows("o", 0), lines(source(0, 3, 16)));
    assert!(outcome.rows("p", 0).is_empty());
    // Who wants no row opens no stream.
    assert_eq!(outcome.closed_early, 1);
}

#[test]
fn several_inputs_are_read_one_after_the_other() {
    let outcome = run("a = source rows=2 splits=1 parallelism=1; b = source rows=2 splits=1 parallelism=1
         c = map b a b; o = sink c");
    let twice = source(1, 2, 16);
    let expected = twice
        .iter()
        .chain(&source(0, 2, 16))
        .chain(&twice)
        .map(|row| row.clone().mapped())
        .collect::<Vec<_>>();
    assert_eq!(outcome.rows("o", 0), lines(expected));
}

#[test]
fn what_is_collected_and_printed_are_the_rows() {
    let outcome =
        run("a = source rows=2 splits=1 parallelism=1; c = sink a kind=collect; p = sink a kind=print");
    let rows = source(0, 2, 16);
    let part = CollectedPart::parse(&outcome.bytes["collect/c/part-00000"]).unwrap();
    assert_eq!(part.decode::<Row>().unwrap(), rows);
    let printed: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
    let lines: Vec<&str> = outcome.files["print/p/part-00000"].lines().collect();
    assert_eq!(lines, printed);
    assert!(lines[1].ends_with("rows: 1, lineage: 0.0.1 }"), "{}", lines[1]);
}

#[test]
fn lines_of_text_are_rows_that_know_where_they_are() {
    let plan = "a = source kind=text path=poem split-bytes=4 parallelism=1; o = sink a";
    let cluster = Cluster::of_program(&registry(), job(plan)).with_input("poem", "a\nb\nc\nd");
    let outcome = cluster.finish().unwrap_or_else(|failure| panic!("{}", failure.message));
    let id = |split, offset| RecordId { source: 0, split, offset };
    let rows = [("a", id(0, 0)), ("b", id(0, 1)), ("c", id(1, 0)), ("d", id(1, 1))];
    let rows = rows.map(|(text, id)| Row::of_line(id, text, 16, Keeps::Ids));
    assert_eq!(outcome.rows("o", 0), lines(rows));
}

#[test]
fn a_plan_may_keep_hashes_instead_of_ids() {
    let job = |plan: &str| {
        let arguments = vec![("plan".to_owned(), plan.to_owned())];
        JobArguments { name: "dataflow".to_owned(), arguments }
    };
    let plan = "a = source rows=2 splits=1 parallelism=1; b = count a; o = sink b";
    let cluster = Cluster::of_program(&registry(), job(plan));
    let outcome = cluster.finish().unwrap_or_else(|failure| panic!("{}", failure.message));
    let hash = |offset| RecordId { source: 0, split: 0, offset }.hash();
    assert_eq!(outcome.rows("o", 0), [format!("0,0,0,0,2,2,2#{:016x}", hash(0).wrapping_add(hash(1)))]);
}
