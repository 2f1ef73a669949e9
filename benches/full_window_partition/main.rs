//! What the operators of FLIP-380 cost, as ratios to plain loops over the same records, measured in
//! turns so that a noisy machine is noisy for both. `cargo bench` runs all; a part of a name behind it
//! (`cargo bench -- reduce`) those that have it. The table of ratios comes at the end.
//!
//! | measured | against |
//! |---|---|
//! | `alone`: a task that gets encoded records from memory | a loop that decodes the same bytes and does the same with the records |
//! | `stage`: a job in a cluster of this process, from the source to the sink's commit | threads that encode, write to a file, read it, decode and do the same |
//!
//! Both have two threads of work. `REVENANT_BENCH_RECORDS` sets how many records there are.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use criterion::{BenchmarkId, Criterion, SamplingMode};
use revenant::api::{Program, StreamExecutionEnvironment};
use revenant::config::{Configuration, MemorySize};
use revenant::runtime::MiniCluster;

mod operators;
mod plain;
mod ratios;
mod records;
mod task;

use operators::{DIGEST, Operator, describe, numbers_of};
use ratios::Ratios;
use records::{Measured, encode};

const PARALLELISM: u32 = 2;
const RECORDS: u64 = 10_000_000;
/// Of a network buffer, Flink's.
const SEGMENT: usize = 32 << 10;
/// Of a sort that spills, in each subtask.
const SMALL_MEMORY: u64 = 16 << 20;
/// Of a sort that does not.
const LARGE_MEMORY: u64 = 2 << 30;

fn sort_memory(operator: Operator) -> u64 {
    if operator == Operator::SpillingSortPartition { SMALL_MEMORY } else { LARGE_MEMORY }
}

/// Runs `work` for each subtask in a thread of its own and adds up what they say.
fn in_threads(work: impl Fn(u32) -> i64 + Sync) -> (Duration, i64) {
    let began = Instant::now();
    let sum = thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..PARALLELISM).map(|subtask| scope.spawn(move || work(subtask))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a benchmark does not panic")).sum()
    });
    (began.elapsed(), sum)
}

/// An empty directory for each subtask, on the disk that builds are on.
fn directories() -> Vec<PathBuf> {
    let below = Path::new(env!("CARGO_TARGET_TMPDIR")).join("full-window-partition");
    let _ = std::fs::remove_dir_all(&below);
    let directories: Vec<PathBuf> = (0..PARALLELISM).map(|subtask| below.join(subtask.to_string())).collect();
    for path in &directories {
        std::fs::create_dir_all(path).expect("a directory can be made");
    }
    directories
}

/// The records of a subtask in buffers, as an exchange cuts them.
fn encoded<T: Measured>(subtask: u32, records: u64) -> Vec<Bytes> {
    let mut buffers = Vec::new();
    let mut buffer = Vec::with_capacity(SEGMENT + 64);
    for number in numbers_of(subtask, records, PARALLELISM) {
        encode(&T::new(number), &mut buffer);
        if buffer.len() >= SEGMENT {
            buffers.push(Bytes::from(std::mem::replace(&mut buffer, Vec::with_capacity(SEGMENT + 64))));
        }
    }
    buffers.push(buffer.into());
    buffers
}

/// Takes turns: what `engine` costs goes to criterion, and both into the table.
fn compare(
    criterion: &mut Criterion,
    ratios: &mut Ratios,
    group: &str,
    operator: Operator,
    record: &str,
    mut engine: impl FnMut() -> (Duration, i64),
    mut plain: impl FnMut() -> (Duration, i64),
) {
    let mut measured = criterion.benchmark_group(group);
    measured.sample_size(10).sampling_mode(SamplingMode::Flat);
    measured.warm_up_time(Duration::from_millis(1)).measurement_time(Duration::from_millis(1));
    let id = BenchmarkId::new(operator.name(), record);
    measured.bench_function(id, |bencher| {
        bencher.iter_custom(|iterations| {
            let mut spent = Duration::ZERO;
            for _ in 0..iterations {
                let (engine, of_engine) = engine();
                let (plain, of_plain) = plain();
                assert_eq!(of_engine, of_plain, "both do the same");
                ratios.add(group, operator.name(), record, engine, plain);
                spent += engine;
            }
            spent
        });
    });
    measured.finish();
}

fn alone<T: Measured>(criterion: &mut Criterion, ratios: &mut Ratios, operator: Operator, records: u64) {
    let mut env = StreamExecutionEnvironment::new();
    describe::<T>(&mut env, operator, records, PARALLELISM);
    let graph = Arc::new(env.job_graph("alone").expect("the job is right"));
    let memory = sort_memory(operator);
    let config = Configuration { sort_partition_memory: MemorySize(memory), ..Configuration::default() };
    // Made when they are first asked for: most runs ask for a part of all benchmarks.
    let buffers = std::cell::LazyCell::new(|| -> Vec<Vec<Bytes>> {
        (0..PARALLELISM).map(|subtask| encoded::<T>(subtask, records)).collect()
    });
    let whole =
        std::cell::LazyCell::new(|| -> Vec<Vec<u8>> { buffers.iter().map(|part| part.concat()).collect() });
    let directories = directories();
    compare(
        criterion,
        ratios,
        "alone",
        operator,
        T::NAME,
        || {
            let buffers = &*buffers;
            in_threads(|n| task::run(&graph, &config, &buffers[n as usize], &directories[n as usize]))
        },
        || {
            let whole = &*whole;
            let (n, directories) = (memory as usize, &directories);
            in_threads(|subtask| {
                plain::encoded::<T>(
                    operator,
                    black_box(&whole[subtask as usize]),
                    n,
                    &directories[subtask as usize],
                )
            })
        },
    );
}

fn stage<T: Measured>(criterion: &mut Criterion, ratios: &mut Ratios, operator: Operator, records: u64) {
    let memory = sort_memory(operator);
    let program = Program::new().register("stage", "One operator.", move |env, _| {
        describe::<T>(env, operator, records, PARALLELISM);
        Ok(())
    });
    let cluster = MiniCluster::new(program)
        .task_managers(1)
        .temporary_directory(env!("CARGO_TARGET_TMPDIR"))
        .set("taskmanager.numberOfTaskSlots", &PARALLELISM.to_string())
        .and_then(|cluster| cluster.set("execution.sort-partition.memory", &format!("{memory} b")))
        .expect("the options are right");
    let directories = directories();
    compare(
        criterion,
        ratios,
        "stage",
        operator,
        T::NAME,
        || {
            let began = Instant::now();
            let result = cluster.run("stage").expect("a job of a benchmark does not fail");
            (began.elapsed(), result.accumulators()[DIGEST])
        },
        || {
            in_threads(|subtask| {
                let numbers = numbers_of(subtask, records, PARALLELISM);
                plain::stage::<T>(operator, numbers, memory as usize, &directories[subtask as usize])
                    .expect("the disk of a benchmark does not fail")
            })
        },
    );
}

/// What a loop costs that has nothing to decode, since the records are there: for the difference.
fn typed<T: Measured>(criterion: &mut Criterion, operator: Operator, records: u64) {
    let mut measured = criterion.benchmark_group("typed");
    measured.sample_size(10).sampling_mode(SamplingMode::Flat);
    measured.warm_up_time(Duration::from_millis(1)).measurement_time(Duration::from_millis(1));
    measured.bench_function(BenchmarkId::new(operator.name(), T::NAME), |bencher| {
        bencher.iter_custom(|iterations| {
            let mut spent = Duration::ZERO;
            for _ in 0..iterations {
                let make =
                    |subtask| numbers_of(subtask, records, PARALLELISM).map(T::new).collect::<Vec<T>>();
                let parts: Vec<_> =
                    (0..PARALLELISM).map(|subtask| std::sync::Mutex::new(Some(make(subtask)))).collect();
                let (elapsed, digest) = in_threads(|subtask| {
                    let records = parts[subtask as usize].lock().ok().and_then(|mut part| part.take());
                    plain::typed(operator, records.unwrap_or_default())
                });
                black_box(digest);
                spent += elapsed;
            }
            spent
        });
    });
    measured.finish();
}

fn all<T: Measured>(criterion: &mut Criterion, ratios: &mut Ratios, records: u64) {
    for operator in Operator::ALL {
        alone::<T>(criterion, ratios, operator, records);
        stage::<T>(criterion, ratios, operator, records);
        if operator != Operator::SpillingSortPartition {
            typed::<T>(criterion, operator, records);
        }
    }
}

fn main() {
    let records = std::env::var("REVENANT_BENCH_RECORDS").ok();
    let records = records.map_or(RECORDS, |n| n.parse().expect("REVENANT_BENCH_RECORDS is a whole number"));
    let mut criterion = Criterion::default().configure_from_args();
    let mut ratios = Ratios::default();
    all::<(i64, i64)>(&mut criterion, &mut ratios, records);
    all::<(i64, String)>(&mut criterion, &mut ratios, records);
    criterion.final_summary();
    print!("{ratios}");
}
