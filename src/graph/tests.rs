//! Shapes of job graphs: what is chained, how vertices and data sets are numbered, which
//! parallelism and partitioner an edge gets, and what is refused.

use super::*;
use crate::api::{FunctionError, Order, Out, SourceFunction, StreamExecutionEnvironment};
use crate::config::Configuration;
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
fn a_window_has_the_parallelism_of_its_input_whatever_the_default() {
    check(
        |env| {
            env.set_parallelism(5);
            let a = env.from_source("a", numbers()).set_parallelism(2);
            let sums = a.full_window_partition().reduce(|x, y| x + y);
            sums.map(row).set_parallelism(2).sink_to(CsvSink::new("out")).set_parallelism(2);
            let by_key = a.key_by(|n| *n).full_window_partition().reduce(|x, y| x + y);
            by_key.map(row).sink_to(CsvSink::new("keyed"));
        },
        "v0 x2 Source: a [] [d0,d1]
         v1 x2 PartitionReduce -> Map -> Sink: csv [d0] []
         v2 x5 PartitionReduce -> Map -> Sink: csv [d1] []
         d0 v0->v1 Forward
         d1 v0->v2 Hash",
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

struct One;

impl SourceFunction for One {
    type Record = i64;

    async fn run(&self, out: &Out<i64>) -> Result<(), FunctionError> {
        out.collect(1).await;
        Ok(())
    }
}

#[test]
fn a_source_function_is_one_indeterminate_subtask_without_splits_and_no_job_with_it_recovers() {
    let graph = job(|env| {
        env.set_parallelism(3);
        env.add_source("one", One).map(row).sink_to(CsvSink::new("out"));
    })
    .unwrap();
    let source = &graph.vertices[0];
    assert!(source.source.is_none() && source.parallelism == Some(1), "{source:?}");
    assert_eq!(source.determinacy, Determinacy::Indeterminate);
    assert_eq!(
        source.recovery_obstacles,
        ["'Source: one' is a source without splits: read it by from_source"]
    );
    assert!(graph.vertices[1].recovery_obstacles.is_empty());
    let determinate = job(|env| {
        let one = env.add_source("one", One).set_determinacy(Determinacy::Determinate);
        one.map(row).sink_to(CsvSink::new("out"));
    });
    assert_eq!(determinate.unwrap().vertices[0].determinacy, Determinacy::Determinate);
    let error = refused(|env| {
        env.add_source("one", One).set_parallelism(2).map(row).sink_to(CsvSink::new("out"));
    });
    assert!(
        error.starts_with("'Source: one': a source without splits runs with parallelism 1, not 2"),
        "{error}"
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
    assert_eq!(first, 12_091_002_028_549_557_415);
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

#[test]
fn forward_joins_subtasks_of_the_same_number_or_is_refused() {
    check(
        |env| {
            let a = env.from_source("a", numbers()).set_parallelism(3).forward().map(row);
            a.forward()
                .full_window_partition()
                .sort_partition(|row| row.number, Order::Ascending)
                .sink_to(CsvSink::new("x"));
            env.from_source("b", numbers()).forward().map(row).sink_to(CsvSink::new("y"));
        },
        "v0 x3 Source: a -> Map [] [d0]
         v1 x3 SortPartition -> Sink: csv [d0] []
         v2 x? Source: b -> Map -> Sink: csv [] []
         d0 v0->v1 Forward",
    );
    assert_eq!(
        refused(|env| {
            let a = env.from_source("a", numbers()).set_parallelism(3);
            a.forward().map(row).set_parallelism(2).sink_to(CsvSink::new("out"));
        }),
        "'Map': forward leads from each subtask to the one of the same number, but 'Source: a' has parallelism 3 and \
         'Map' has parallelism 2; give both the same, or use rebalance or rescale"
    );
    let open = refused(|env| {
        env.from_source("a", numbers()).forward().map(row).set_parallelism(2).sink_to(CsvSink::new("out"));
    });
    assert!(
        open.contains("'Source: a' has a parallelism to be decided and 'Map' has parallelism 2"),
        "{open}"
    );
}

#[test]
fn shuffle_and_an_own_partitioner_are_exchanges_of_their_own() {
    check(
        |env| {
            let a = env.from_source("a", numbers());
            a.shuffle().map(row).sink_to(CsvSink::new("x"));
            a.partition_custom(|n: &i64, _| u32::from(*n > 4), |n| *n).map(row).sink_to(CsvSink::new("y"));
        },
        "v0 x? Source: a [] [d0,d1]
         v1 x? Map -> Sink: csv [d0] []
         v2 x? Map -> Sink: csv [d1] []
         d0 v0->v1 Shuffle
         d1 v0->v2 Custom",
    );
}

#[test]
fn two_operators_with_one_uid_are_refused() {
    let with_uids = |first: &str, second: &str| {
        job(|env| {
            let a = env.from_source("a", numbers()).uid(first);
            a.map(row).uid(second).sink_to(CsvSink::new("out")).uid("end");
        })
    };
    let graph = with_uids("one", "two").unwrap();
    assert_eq!(graph.vertices[0].uids, ["one", "two", "end"]);
    assert_ne!(graph.fingerprint, with_uids("one", "three").unwrap().fingerprint);
    assert_eq!(
        with_uids("one", "one").unwrap_err().to_string(),
        "'Source: a' and 'Map' both have the uid 'one'; give each operator one of its own"
    );
}

#[test]
fn a_sort_by_a_field_that_is_not_there_or_has_no_order_is_refused() {
    #[derive(Clone, serde::Serialize, serde::Deserialize)]
    struct Listed {
        numbers: Vec<i64>,
    }
    assert_eq!(
        refused(|env| {
            let rows = env.from_source("a", numbers()).map(row).full_window_partition();
            rows.sort_partition_by_field("numbr", Order::Ascending).sink_to(CsvSink::new("out"));
        }),
        "'SortPartition': a record's field 'numbr' cannot be sorted by: there is no such field, did you mean \
         'number'?; its fields are: number"
    );
    assert_eq!(
        refused(|env| {
            let rows = env.from_source("a", numbers()).map(|n| Listed { numbers: vec![n] });
            let sorted = rows.full_window_partition().sort_partition_by_field("numbers", Order::Ascending);
            sorted.map(|_| row(0)).sink_to(CsvSink::new("out"));
        }),
        "'SortPartition': a record's field 'numbers' cannot be sorted by: it is a list, which has no order here; \
         sort by a key function"
    );
}

#[test]
fn a_job_sets_options_of_its_own_and_no_others() {
    let with = |options: &[(&str, &str)]| {
        job(|env| {
            for (key, value) in options {
                env.configure(key, value);
            }
            let a = env.from_source("a", numbers()).map(row).full_window_partition();
            a.sort_partition(|row| row.number, Order::Ascending).sink_to(CsvSink::new("out"));
        })
    };
    let sort = ("execution.sort-partition.memory", "1 mb");
    let graph = with(&[sort, ("parallelism.default", "3"), ("execution.runtime-mode", "BATCH")]).unwrap();
    assert_eq!(graph.vertices[0].parallelism, Some(3));
    let cluster = Configuration::default();
    let config = graph.configured(&cluster);
    assert_eq!((config.sort_partition_memory.0, cluster.sort_partition_memory.0), (1 << 20, 128 << 20));
    assert_ne!(graph.fingerprint, with(&[("parallelism.default", "3")]).unwrap().fingerprint);
    for (key, value, expected) in [
        (
            sort.0,
            "1 parsec",
            "option 'execution.sort-partition.memory': '1 parsec' is not a memory size from 64 b",
        ),
        ("execution.sort-partition.memry", "1 mb", "did you mean 'execution.sort-partition.memory'?"),
        (
            "parallelism.default",
            "0",
            "option 'parallelism.default': '0' is not a whole number from 1 to 32768",
        ),
        ("heartbeat.interval", "1 s", "option 'heartbeat.interval' is the cluster's, not a job's"),
        ("execution.runtime-mode", "batch", "'batch' is not BATCH or AUTOMATIC"),
        (
            "execution.runtime-mode",
            "STREAMING",
            "'SortPartition': a full-window partition is complete when its input",
        ),
    ] {
        let error = with(&[(key, value)]).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let streaming = refused(|env| {
        env.configure("execution.runtime-mode", "STREAMING");
        env.from_source("a", numbers()).map(row).sink_to(CsvSink::new("out"));
    });
    assert!(
        streaming.starts_with("execution.runtime-mode=STREAMING is not there: jobs run as BATCH"),
        "{streaming}"
    );
}

#[test]
fn a_job_of_too_many_operators_or_an_operator_of_too_many_inputs_is_refused() {
    let maps = |count: usize| {
        job(|env| {
            let mut rows = env.from_source("a", numbers()).map(row);
            for _ in 1..count {
                rows = rows.map(|row| row);
            }
            rows.sink_to(CsvSink::new("out"));
        })
    };
    assert!(maps(998).is_ok());
    assert_eq!(
        maps(999).unwrap_err().to_string(),
        "it has 1001 operators, at most 1000 are right; do more in each, as one map in place of several"
    );
    let error = job(|env| {
        let mut rows = env.from_source("a", numbers()).map(row);
        for _ in 0..10 {
            rows = rows.union(&rows);
        }
        rows.sink_to(CsvSink::new("out"));
    });
    let expected = "'Sink: csv': it has 1024 inputs, at most 1000 are right; let fewer streams come together";
    assert_eq!(error.unwrap_err().to_string(), expected);
}
