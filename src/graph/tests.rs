//! Shapes of job graphs: what is chained, how vertices and data sets are numbered, which
//! parallelism and partitioner an edge gets, and what is refused.

use super::*;
use crate::api::{Order, StreamExecutionEnvironment};
use crate::connectors::{CsvSink, NumberSequenceSource};
use crate::coordinator::SplitAssignment;

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Row {
    number: i64,
}

fn row(number: i64) -> Row {
    Row { number }
}

fn numbers() -> NumberSequenceSource {
    NumberSequenceSource::new(0, 10, 2)
}

/// The graph as text: `v0 x4 Source: a -> Map [] [d0]` and `d0 v0->v1 Hash`.
fn shape(graph: &JobGraph) -> String {
    let list = |ids: &[IntermediateDataSetId]| -> String {
        ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    };
    let vertices = graph.vertices.iter().map(|vertex| {
        let parallelism = vertex.parallelism.map_or_else(|| "?".to_owned(), |p| p.to_string());
        let max = vertex.max_parallelism.map_or_else(String::new, |max| format!("<={max}"));
        let (inputs, outputs) = (list(&vertex.inputs), list(&vertex.outputs));
        format!("{} x{parallelism}{max} {} [{inputs}] [{outputs}]\n", vertex.id, vertex.name)
    });
    let edges = graph.edges.iter().map(|edge| {
        format!("{} {}->{} {:?}\n", edge.data_set, edge.producer, edge.consumer, edge.partitioner)
    });
    vertices.chain(edges).collect()
}

fn job(describe: impl FnOnce(&mut StreamExecutionEnvironment)) -> Result<JobGraph, GraphError> {
    let mut env = StreamExecutionEnvironment::new();
    describe(&mut env);
    env.job_graph("job")
}

fn check(describe: impl FnOnce(&mut StreamExecutionEnvironment), expected: &str) {
    let graph = job(describe).unwrap();
    let expected: String = expected
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .fold(String::new(), |text, line| text + line + "\n");
    assert_eq!(shape(&graph), expected);
    for (index, vertex) in graph.vertices.iter().enumerate() {
        assert_eq!(vertex.id, JobVertexId(index as u32));
        assert_eq!(vertex.source.is_some(), vertex.name.starts_with("Source: "));
    }
    for (index, edge) in graph.edges.iter().enumerate() {
        assert_eq!(edge.data_set, IntermediateDataSetId(index as u32));
        assert!(edge.producer < edge.consumer, "topological order");
    }
}

fn refused(describe: impl FnOnce(&mut StreamExecutionEnvironment)) -> String {
    job(describe).unwrap_err().to_string()
}

#[test]
fn push_operators_and_the_sink_are_chained_behind_their_source() {
    check(
        |env| {
            env.from_source("a", numbers())
                .filter(|n| n % 2 == 0)
                .map(row)
                .name("ToRow")
                .sink_to(CsvSink::new("out"))
                .name("rows");
        },
        "v0 x? Source: a -> Filter -> ToRow -> Sink: rows [] []",
    );
}

#[test]
fn window_operators_begin_a_chain_though_their_edge_is_forward() {
    check(
        |env| {
            env.from_source("a", numbers())
                .full_window_partition()
                .sort_partition(|n| *n, Order::Ascending)
                .full_window_partition()
                .reduce(|a, b| a + b)
                .map(row)
                .sink_to(CsvSink::new("out"));
        },
        "v0 x? Source: a [] [d0]
         v1 x? SortPartition [d0] [d1]
         v2 x? PartitionReduce -> Map -> Sink: csv [d1] []
         d0 v0->v1 Forward
         d1 v1->v2 Forward",
    );
}

#[test]
fn key_by_and_rebalance_cut_the_chain_and_the_last_exchange_counts() {
    check(
        |env| {
            env.from_source("a", numbers())
                .key_by(|n| *n)
                .map(row)
                .rebalance()
                .map(|row| row)
                .key_by(|row| row.number)
                .rebalance()
                .sink_to(CsvSink::new("out"));
        },
        "v0 x? Source: a [] [d0]
         v1 x? Map [d0] [d1]
         v2 x? Map [d1] [d2]
         v3 x? Sink: csv [d2] []
         d0 v0->v1 Hash
         d1 v1->v2 Rebalance
         d2 v2->v3 Rebalance",
    );
}

#[test]
fn rescale_and_broadcast_cut_the_chain_though_the_parallelism_is_the_same() {
    check(
        |env| {
            env.set_parallelism(2);
            env.from_source("a", numbers())
                .rescale()
                .map(row)
                .broadcast()
                .map(|row| row)
                .key_by(|row| row.number)
                .rescale()
                .map(|row| row)
                .key_by(|row| row.number)
                .broadcast()
                .sink_to(CsvSink::new("out"));
        },
        "v0 x2 Source: a [] [d0]
         v1 x2 Map [d0] [d1]
         v2 x2 Map [d1] [d2]
         v3 x2 Map [d2] [d3]
         v4 x2 Sink: csv [d3] []
         d0 v0->v1 Rescale
         d1 v1->v2 Broadcast
         d2 v2->v3 Rescale
         d3 v3->v4 Broadcast",
    );
}

#[test]
fn several_consumers_get_one_data_set_each_or_a_branch_of_the_chain() {
    check(
        |env| {
            let numbers = env.from_source("a", numbers());
            numbers.map(row).sink_to(CsvSink::new("all"));
            numbers
                .rebalance()
                .full_window_partition()
                .reduce(|a, b| a + b)
                .map(row)
                .sink_to(CsvSink::new("sum"));
            let even = numbers.filter(|n| n % 2 == 0);
            even.key_by(|n| *n).map(row).sink_to(CsvSink::new("even"));
        },
        "v0 x? Source: a -> (Map -> Sink: csv, Filter) [] [d0,d1]
         v1 x? PartitionReduce -> Map -> Sink: csv [d0] []
         v2 x? Map -> Sink: csv [d1] []
         d0 v0->v1 Rebalance
         d1 v0->v2 Hash",
    );
}

#[test]
fn a_union_is_several_gates_in_the_order_of_its_streams() {
    check(
        |env| {
            let a = env.from_source("a", numbers()).set_parallelism(2);
            let b = env.from_source("b", numbers()).set_parallelism(2);
            let c = env.from_source("c", numbers()).set_parallelism(3);
            b.union(&a.rebalance()).union(&b).map(row).sink_to(CsvSink::new("same"));
            a.union(&c).map(row).sink_to(CsvSink::new("different"));
        },
        "v0 x2 Source: a [] [d1,d3]
         v1 x2 Source: b [] [d0,d2]
         v2 x3 Source: c [] [d4]
         v3 x2 Map -> Sink: csv [d0,d1,d2] []
         v4 x? Map -> Sink: csv [d3,d4] []
         d0 v1->v3 Forward
         d1 v0->v3 Rebalance
         d2 v1->v3 Forward
         d3 v0->v4 Rebalance
         d4 v2->v4 Rebalance",
    );
}

#[test]
fn an_edge_of_which_nothing_was_said_is_forward_only_between_equal_parallelisms() {
    check(
        |env| {
            let a = env.from_source("a", numbers()).set_parallelism(4);
            a.map(row).sink_to(CsvSink::new("inherits"));
            a.map(row).set_parallelism(4).sink_to(CsvSink::new("equal")).name("equal");
            a.map(row).set_parallelism(3).sink_to(CsvSink::new("fewer"));
            let b = env.from_source("b", numbers());
            b.map(row).set_parallelism(4).sink_to(CsvSink::new("undecided")).set_parallelism(1);
        },
        "v0 x4 Source: a -> (Map -> Sink: csv, Map -> Sink: equal) [] [d0]
         v1 x3 Map -> Sink: csv [d0] []
         v2 x? Source: b [] [d1]
         v3 x4 Map [d1] [d2]
         v4 x1 Sink: csv [d2] []
         d0 v0->v1 Rebalance
         d1 v2->v3 Rebalance
         d2 v3->v4 Rebalance",
    );
}

#[test]
fn streams_whose_parallelism_is_to_be_decided_cannot_meet_forward() {
    check(
        |env| {
            let a = env.from_source("a", numbers());
            let b = env.from_source("b", numbers());
            a.union(&b).map(row).sink_to(CsvSink::new("out"));
        },
        "v0 x? Source: a [] [d0]
         v1 x? Source: b [] [d1]
         v2 x? Map -> Sink: csv [d0,d1] []
         d0 v0->v2 Rebalance
         d1 v1->v2 Rebalance",
    );
}

#[test]
fn the_default_parallelism_is_for_operators_that_say_none() {
    check(
        |env| {
            env.set_parallelism(5);
            let a = env.from_source("a", numbers()).set_parallelism(2);
            a.map(row).sink_to(CsvSink::new("out"));
        },
        "v0 x2 Source: a [] [d0]
         v1 x5 Map -> Sink: csv [d0] []
         d0 v0->v1 Rebalance",
    );
}

#[test]
fn a_maximum_is_kept_from_operators_that_may_become_wider() {
    check(
        |env| {
            let a = env.from_source("a", numbers());
            a.map(row).set_max_parallelism(3).sink_to(CsvSink::new("bounded"));
            let b = env.from_source("b", numbers()).set_max_parallelism(2);
            b.map(row).set_max_parallelism(3).sink_to(CsvSink::new("within"));
        },
        "v0 x? Source: a [] [d0]
         v1 x?<=3 Map -> Sink: csv [d0] []
         v2 x?<=2 Source: b -> Map -> Sink: csv [] []
         d0 v0->v1 Rebalance",
    );
}

#[test]
fn jobs_that_cannot_run_are_refused_with_the_operator() {
    assert_eq!(refused(|_| ()), "it has no sink, so it would do nothing; end a stream with sink_to");
    assert_eq!(
        refused(|env| {
            let a = env.from_source("a", numbers()).map(row);
            a.filter(|_| true).name("Lost");
            a.sink_to(CsvSink::new("out"));
        }),
        "the results of 'Lost' go nowhere; end the stream with sink_to or leave it out"
    );
    for (parallelism, text) in [(0, "0"), (32_769, "32769")] {
        assert_eq!(
            refused(|env| {
                let a = env.from_source("a", numbers());
                a.map(row).set_parallelism(parallelism).sink_to(CsvSink::new("out"));
            }),
            format!("'Map': a parallelism of {text} is not a whole number from 1 to 32768")
        );
    }
    assert_eq!(
        refused(|env| {
            let a = env.from_source("a", numbers()).set_parallelism(4).set_max_parallelism(3);
            a.map(row).sink_to(CsvSink::new("out"));
        }),
        "'Source: a': its parallelism 4 is above its maximum 3; set only one of them"
    );
    assert_eq!(
        refused(|env| {
            let a = env.from_source("a", numbers()).map(row);
            a.sink_to(CsvSink::new("out")).name("first");
            a.sink_to(CsvSink::new("out")).name("second");
        }),
        "'Sink: first' and 'Sink: second' both write to 'out'; give each a place of its own"
    );
    assert!(
        refused(|env| {
            env.from_source("a", numbers())
                .rebalance()
                .set_parallelism(2)
                .map(row)
                .sink_to(CsvSink::new("out"));
        })
        .starts_with("set_parallelism was called on an exchange or a union behind 'Source: a'")
    );
    assert_eq!(
        refused(|env| {
            let stranger = StreamExecutionEnvironment::new().from_source("b", numbers());
            env.from_source("a", numbers()).union(&stranger).map(row).sink_to(CsvSink::new("out"));
        }),
        "a union joins streams of two environments; a job has one"
    );
}

#[test]
fn sinks_that_cannot_write_are_refused() {
    for directory in ["", "/out", "out/", "a//b", "../out", ".pending", "out put", "a/./b"] {
        let error = refused(|env| {
            env.from_source("a", numbers()).map(row).sink_to(CsvSink::new(directory));
        });
        assert!(error.starts_with(&format!("'Sink: csv': '{directory}' is not a directory")), "{error}");
    }
    let error = refused(|env| {
        env.from_source("a", numbers()).sink_to(CsvSink::new("out"));
    });
    assert_eq!(error, "'Sink: csv': i64 has no column names; CSV rows are structs with named fields");
}

#[test]
fn a_vertex_is_as_determinate_as_its_least_determinate_operator() {
    let determinacy = |assignment: SplitAssignment, of_map: Option<Determinacy>| -> Vec<Determinacy> {
        let graph = job(|env| {
            let a = env.from_source("a", numbers().assigned(assignment)).map(row);
            let a = of_map.map_or_else(|| a.clone(), |determinacy| a.clone().set_determinacy(determinacy));
            a.rebalance().map(|row| row).sink_to(CsvSink::new("out"));
        });
        graph.unwrap().vertices.iter().map(|vertex| vertex.determinacy).collect()
    };
    let (fixed, first_come) = (SplitAssignment::Static, SplitAssignment::Dynamic);
    use Determinacy::{Determinate, Indeterminate, Unordered};
    assert_eq!(determinacy(fixed, None), [Determinate, Determinate]);
    assert_eq!(determinacy(fixed, Some(Unordered)), [Unordered, Determinate]);
    assert_eq!(determinacy(first_come, None), [Indeterminate, Determinate]);
    assert_eq!(determinacy(first_come, Some(Determinate)), [Indeterminate, Determinate]);
    let misused = refused(|env| {
        let a = env.from_source("a", numbers()).map(row).rebalance();
        a.set_determinacy(Unordered).sink_to(CsvSink::new("out"));
    });
    assert!(misused.starts_with("set_determinacy was called on an exchange"), "{misused}");
}

#[test]
fn b22_the_fingerprint_is_that_of_the_structure_in_every_process() {
    let fingerprint_of = |parallelism: u32, name: &str, to: i64, exchange: &str, determinacy: Determinacy| {
        job(|env| {
            let source = NumberSequenceSource::new(0, to, 2).assigned(SplitAssignment::Static);
            let a = env.from_source(name, source).map(row).set_determinacy(determinacy);
            let a = match exchange {
                "hash" => a.key_by(|row| row.number).into_data_stream(),
                "rebalance" => a.rebalance(),
                "rescale" => a.rescale(),
                _ => a.broadcast(),
            };
            a.sink_to(CsvSink::new("out")).set_parallelism(parallelism);
        })
        .unwrap()
        .fingerprint
    };
    let fingerprint = |parallelism: u32, name: &str, to: i64, exchange: &str| {
        fingerprint_of(parallelism, name, to, exchange, Determinacy::Determinate)
    };
    let first = fingerprint(2, "a", 10, "hash");
    assert_eq!(first, fingerprint(2, "a", 10, "hash"));
    // The same in every build and on every platform: a changed value changes the format of logs.
    assert_eq!(first, 13_440_173_342_074_800_941);
    let mut all = vec![first];
    for (parallelism, name, to, exchange) in [
        (3, "a", 10, "hash"),
        (2, "b", 10, "hash"),
        (2, "a", 11, "hash"),
        (2, "a", 10, "rebalance"),
        (2, "a", 10, "rescale"),
        (2, "a", 10, "broadcast"),
    ] {
        let other = fingerprint(parallelism, name, to, exchange);
        assert!(!all.contains(&other), "{exchange}");
        all.push(other);
    }
    for determinacy in [Determinacy::Unordered, Determinacy::Indeterminate] {
        let other = fingerprint_of(2, "a", 10, "hash", determinacy);
        assert!(!all.contains(&other), "{determinacy:?}");
        all.push(other);
    }
}

#[test]
fn a_job_graph_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<JobGraph>();
}
