//! Plans that are read, and wrong ones that are refused with what would be right.

use proptest::prelude::*;

use super::super::source::{Files, Places, SourceKind, SourceOptions};
use super::*;
use crate::connectors::DEFAULT_SPLIT_BYTES;
use crate::coordinator::SplitAssignment;

fn error(text: &str) -> String {
    Plan::parse(text).unwrap_err().to_string()
}

/// Of a stage behind a source `a` with parallelism 4 and a source `b` without.
fn error_behind_sources(stage: &str) -> String {
    let error = error(&format!("a = source rows=9 parallelism=4; b = source rows=9\n{stage}"));
    error.strip_prefix("line 2, stage 'x': ").unwrap_or_else(|| panic!("{error}")).to_owned()
}

#[test]
fn a_plan_is_read_with_all_that_it_says() {
    let plan = Plan::parse(
        "# Two inputs.
         a = source rows=12 splits=3 keys=5 parallelism=2 assignment=static snapshots=false
         b = source rows=0 max-parallelism=7; c = join a b via broadcast, hash parallelism=3
         d = sort c order=descending   # forward
         e = first 3 of d a via rebalance,rescale
         f = sort e via hash by=value per=key; g = map f via custom; out = sink g via shuffle parallelism=1",
    )
    .unwrap();
    let rows = |rows, splits, keys, assignment, snapshots| SourceOptions {
        kind: SourceKind::Rows(Places { rows, splits, keys }),
        assignment,
        snapshots,
    };
    let source = rows(12, 3, 5, SplitAssignment::Static, false);
    let defaults = rows(0, 4, 16, SplitAssignment::Dynamic, true);
    let stage = |name: &str, operation, inputs: &[(usize, Via)], parallelism, max_parallelism| Stage {
        name: name.to_owned(),
        operation,
        inputs: inputs.iter().map(|&(stage, via)| Input { stage, via }).collect(),
        per_key: name == "f",
        parallelism,
        max_parallelism,
    };
    let (join, sort) = (
        [(0, Via::Broadcast), (1, Via::Hash)],
        Operation::Sort { by_value: false, order: Order::Descending },
    );
    let first = [(3, Via::Rebalance), (0, Via::Rescale)];
    let by_value = Operation::Sort { by_value: true, order: Order::Ascending };
    assert_eq!(
        plan.stages,
        [
            stage("a", Operation::Source(source), &[], Some(2), None),
            stage("b", Operation::Source(defaults), &[], None, Some(7)),
            stage("c", Operation::Join, &join, Some(3), None),
            stage("d", sort, &[(2, Via::Forward)], None, None),
            stage("e", Operation::First(3), &first, None, None),
            stage("f", by_value, &[(4, Via::Hash)], None, None),
            stage("g", Operation::Map, &[(5, Via::Custom)], None, None),
            stage("out", Operation::Sink(SinkKind::Csv), &[(6, Via::Shuffle)], Some(1), None),
        ]
    );
}

#[test]
fn a_source_takes_what_its_kind_needs_and_a_sink_says_what_it_writes() {
    let kind = |words: &str| {
        let sinks = "o = sink a kind=json-lines; c = sink a kind=collect; p = sink a kind=print";
        let plan = Plan::parse(&format!("a = source {words}; {sinks}")).unwrap();
        let sinks: Vec<_> = plan.stages[1..].iter().map(|stage| &stage.operation).collect();
        let kinds = [SinkKind::JsonLines, SinkKind::Collect, SinkKind::Print].map(Operation::Sink);
        assert_eq!(sinks, kinds.iter().collect::<Vec<_>>());
        let Operation::Source(options) = &plan.stages[0].operation else { panic!() };
        options.kind.clone()
    };
    let files = |split_bytes| Files { path: "in/a".to_owned(), split_bytes };
    let places = Places { rows: 3, splits: 2, keys: 16 };
    assert_eq!(kind("kind=collection rows=3 splits=2"), SourceKind::Collection(places));
    assert_eq!(kind("kind=sequence rows=3 splits=2 snapshots=false"), SourceKind::Sequence(places));
    assert_eq!(kind("kind=csv path=in/a"), SourceKind::Csv(files(DEFAULT_SPLIT_BYTES)));
    assert_eq!(kind("kind=json-lines path=in/a split-bytes=9"), SourceKind::JsonLines(files(9)));
    let text = SourceKind::Text { files: files(9), keys: 5 };
    assert_eq!(kind("kind=text path=in/a split-bytes=9 keys=5 assignment=static"), text);
    assert_eq!(
        error_behind_sources("x = source kind=cvs path=a"),
        "kind=cvs is not rows or collection or sequence or csv or json-lines or text"
    );
    assert!(error_behind_sources("x = source kind=csv").ends_with("for example 'path=visits'"));
    let takes = error_behind_sources("x = source kind=csv path=a rows=3");
    assert!(takes.starts_with("unknown option 'rows'"), "{takes}");
    let takes = error_behind_sources("x = source kind=collection rows=3 snapshots=false");
    assert!(takes.starts_with("unknown option 'snapshots'"), "{takes}");
    assert_eq!(
        error_behind_sources("x = sink a kind=xml"),
        "kind=xml is not csv or json-lines or collect or print"
    );
}

#[test]
fn a_wrong_line_is_named_with_what_would_be_right() {
    assert_eq!(
        error(" ;\n# nothing"),
        "the plan has no stage; the smallest is 'a = source rows=10; b = sink a'"
    );
    assert_eq!(
        error("a = source rows=1\nsink a"),
        "line 2: 'sink a' is no stage; expected '<name> = <operation> <inputs> …', for example 'b = map a'"
    );
    assert_eq!(
        error("a = source rows=1; a = sink a"),
        "line 1: there is a stage 'a' already, in line 1; give each a name of its own"
    );
    for name in ["", "1a", "a b", "via", "ä", &"a".repeat(65)] {
        let error = error(&format!("{name} = source rows=1"));
        assert!(error.contains("is no name of a stage; right are at most 64 letters"), "{error}");
    }
    let many: Vec<String> = (0..300).map(|n| format!("a{n} = source rows=1")).collect();
    assert_eq!(error(&many.join("\n")), "line 257: a plan has at most 256 stages");
}

#[test]
fn a_plan_says_once_how_lineages_are_kept() {
    let keeps = |line: &str| Plan::parse(&format!("a = source rows=1\n{line}; o = sink a")).unwrap().keeps;
    assert_eq!(
        [keeps(""), keeps("lineage=hash"), keeps("lineage = ids")],
        [Keeps::Hash, Keeps::Hash, Keeps::Ids]
    );
    assert_eq!(
        error("lineage = map a"),
        "line 1: 'lineage = map a' is not 'lineage = ids' or 'lineage = hash'; a stage cannot have this name"
    );
    let twice = error("lineage = ids\nlineage = ids");
    assert_eq!(twice, "line 2: 'lineage' is said twice; say once how lineages are kept");
}

#[test]
fn stages_that_lead_nowhere_are_refused() {
    assert_eq!(
        error("a = source rows=1"),
        "line 1, stage 'a': no stage uses its rows; end it with a sink, as in 'out = sink a', or leave it out"
    );
    let unused = error("a = source rows=1; b = map a\nc = sink a");
    assert!(unused.starts_with("line 1, stage 'b': no stage uses its rows"), "{unused}");
}

#[test]
fn a_wrong_operation_or_option_is_named_with_what_would_be_right() {
    let all = "source, map, filter, skew, join, group, sort, count, reduce, first, sink";
    assert_eq!(error_behind_sources("x = "), format!("it says no operation; there are: {all}"));
    assert_eq!(
        error_behind_sources("x = mapp a"),
        format!("unknown operation 'mapp', did you mean 'map'?; there are: {all}")
    );
    assert_eq!(
        error_behind_sources("x = map a paralelism=2"),
        "unknown option 'paralelism', did you mean 'parallelism'?; it takes: parallelism, max-parallelism"
    );
    assert_eq!(
        error_behind_sources("x = sink a max-parallelism=2"),
        "unknown option 'max-parallelism', did you mean 'parallelism'?; it takes: parallelism, kind"
    );
    assert_eq!(error_behind_sources("x = sort a order=up"), "order=up is not ascending or descending");
    assert_eq!(
        error_behind_sources("x = map a parallelism=2 parallelism=2"),
        "option 'parallelism' is given twice"
    );
    for number in ["0", "32769", "-1", "", "2.0", "99999999999"] {
        assert_eq!(
            error_behind_sources(&format!("x = map a parallelism={number}")),
            format!("parallelism={number} is not a whole number from 1 to 32768")
        );
    }
    assert_eq!(
        error_behind_sources("x = map a via hash parallelism=4 max-parallelism=3"),
        "its parallelism 4 is above its maximum 3; set only one of them"
    );
    assert_eq!(
        error_behind_sources("x = map a parallelism=2 b"),
        "'b' stands behind an option; options come last, as <name>=<value>"
    );
    assert_eq!(
        error_behind_sources("x = source"),
        "a source says how many rows it has, for example 'rows=100'"
    );
    assert_eq!(
        error_behind_sources("x = first three of a"),
        "right is 'first <rows> of <inputs> …' with rows from 0 to 1000000000, for example 'first 3 of a'"
    );
}

#[test]
fn a_wrong_input_is_named_with_what_would_be_right() {
    assert_eq!(
        error_behind_sources("x = source a rows=1"),
        "a source has no inputs; right is for example 'a = source rows=10'"
    );
    assert_eq!(
        error_behind_sources("x = join a"),
        "a join has two inputs, not 1; right is for example 'c = join a b via broadcast,forward'"
    );
    assert_eq!(
        error_behind_sources("x = count"),
        "it has no input; right is for example 'b = map a' or 'b = first 3 of a'"
    );
    assert_eq!(error_behind_sources("x = map x"), "it uses itself; a stage uses stages above it");
    assert_eq!(
        error_behind_sources("x = map y\ny = map a"),
        "it uses 'y', which comes later, in line 3; a stage uses stages above it"
    );
    assert_eq!(error_behind_sources("x = map zzz"), "there is no stage 'zzz'");
    let misspelt = error("numbers = source rows=1\nx = sink number");
    assert_eq!(misspelt, "line 2, stage 'x': there is no stage 'number', did you mean 'numbers'?");
    let behind_sink = error("a = source rows=1; b = sink a\nx = map b");
    assert!(behind_sink.ends_with("it uses 'b', which is a sink and has no results; use the sink's input"));
    assert_eq!(
        error_behind_sources(&format!("x = map {}", "a ".repeat(65))),
        "it has 65 inputs, at most 64 are right"
    );
}

#[test]
fn a_wrong_exchange_is_named_with_what_would_be_right() {
    assert_eq!(
        error_behind_sources("x = map a via random"),
        "unknown exchange 'random'; there are: forward, hash, rebalance, rescale, shuffle, custom, broadcast"
    );
    assert_eq!(
        error_behind_sources("x = map a via"),
        "'via' says no exchange; right is for example 'via hash' or 'via broadcast,forward'"
    );
    assert_eq!(
        error_behind_sources("x = map a b via hash"),
        "it has 2 inputs, but 'via' says 1; it says one for each, with ',' between them"
    );
    for via in ["broadcast", "rebalance", "rescale", "shuffle"] {
        let error = error_behind_sources(&format!("x = group a via {via}"));
        assert!(error.starts_with("a group needs all rows of a key in one subtask"), "{error}");
    }
    for via in ["forward", "custom", "rebalance"] {
        let error = error_behind_sources(&format!("x = count a via {via} per=key"));
        assert_eq!(error, "per=key is for rows that come via hash");
    }
    for via in ["forward,forward", "hash,rebalance", "rebalance,hash"] {
        let error = error_behind_sources(&format!("x = join a a via {via}"));
        assert!(error.ends_with("via broadcast,<any exchange> or via hash,hash"), "{error}");
    }
}

#[test]
fn forward_is_refused_where_the_numbers_of_subtasks_may_differ() {
    for (stage, has, own) in [
        ("x = map a parallelism=3", "'a' has parallelism 4", "parallelism 3"),
        ("x = map b parallelism=3", "'b' has a parallelism to be decided", "parallelism 3"),
        ("x = map a b", "'b' has a parallelism to be decided", "parallelism 4"),
        ("x = map b b", "'b' has a parallelism to be decided", "a parallelism to be decided"),
        ("x = sink a parallelism=1", "'a' has parallelism 4", "parallelism 1"),
    ] {
        let error = error_behind_sources(stage);
        let expected =
            format!("forward joins subtasks of equal numbers, but {has} and this stage has {own};");
        assert!(error.starts_with(&expected), "{stage}: {error}");
    }
    for stage in ["x = map a max-parallelism=3", "x = map b max-parallelism=9"] {
        let error = error_behind_sources(stage);
        assert!(error.starts_with("with forward it has the parallelism of '"), "{error}");
    }
    for stage in [
        "x = map a; y = map a x",
        "x = map a max-parallelism=4; y = sort x",
        "x = map b; y = sort x",
        "x = map b a via forward,hash; y = map x",
    ] {
        let text = format!(
            "a = source rows=1 parallelism=4; b = source rows=1; {stage}; o = sink y; p = sink a; q = sink b"
        );
        Plan::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in any::<String>()) {
        let _ = Plan::parse(&text);
    }

    /// Texts that are nearly plans.
    #[test]
    fn no_heap_of_words_makes_the_parser_panic(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "a", "b", "ä", "lineage", "ids", "=", ";", "\n", "#", ",", "via", "of", "first", "3", "source", "map", "join",
                "group", "sort", "sink", "rows=3", "rows=", "=3", "parallelism=2", "max-parallelism=1",
                "splits=0", "forward", "hash", "broadcast", "hash,hash", "order=ascending",
            ]),
            0..40,
        ),
    ) {
        let _ = Plan::parse(&words.join(" "));
    }
}
