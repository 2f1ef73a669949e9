//! How much memory a sort takes that is far larger than it may keep: `cargo bench --bench sort_memory`
//! sorts 4 GB with 256 MB, in a cluster of this process with one slot, and says the most that was ever
//! resident. It fails above 400 MB, and if the records are not all there and in order.
//! `REVENANT_BENCH_GB` sets another size; about three times as much disk is needed meanwhile.

use std::time::Instant;

use revenant::api::{FunctionError, JobError, Order, Out, Program, Records, StreamExecutionEnvironment};
use revenant::connectors::NumberSequenceSource;
use revenant::runtime::MiniCluster;

/// Of a record's text; its encoding has about nine bytes more.
const TEXT: usize = 91;
const RECORD_BYTES: u64 = 100;
const LIMIT_MB: u64 = 400;

fn describe(env: &mut StreamExecutionEnvironment, records: u64) -> Result<(), JobError> {
    let records = i64::try_from(records).map_err(|error| JobError(error.to_string()))?;
    env.set_parallelism(1);
    let numbers = env.from_source("numbers", NumberSequenceSource::new(0, records, 1));
    let rows = numbers.map(|n| (n.wrapping_mul(0x5851_f42d_4c95_7f2d), "x".repeat(TEXT)));
    let sorted = rows.full_window_partition().sort_partition(|row| row.0, Order::Ascending);
    let checked = sorted.full_window_partition().map_partition(
        async |rows: &mut Records<(i64, String)>, out: &Out<u64>| -> Result<(), FunctionError> {
            let (mut count, mut last) = (0, i64::MIN);
            while let Some((key, _)) = rows.next().await {
                if key < last {
                    return Err(format!("{key} comes behind {last}").into());
                }
                (count, last) = (count + 1, key);
            }
            out.collect(count).await;
            Ok(())
        },
    );
    checked.collect("count");
    Ok(())
}

/// The most that this process ever had resident, as Linux counts it.
fn peak_mb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? / 1024)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let gigabytes: u64 = std::env::var("REVENANT_BENCH_GB").map_or(Ok(4), |text| text.parse())?;
    let records = (gigabytes << 30) / RECORD_BYTES;
    let program = Program::new().register("sort", "Sorts.", move |env, _| describe(env, records));
    let cluster = MiniCluster::new(program)
        .task_managers(1)
        .temporary_directory(env!("CARGO_TARGET_TMPDIR"))
        .set("taskmanager.numberOfTaskSlots", "1")?
        .set("execution.sort-partition.memory", "256 mb")?;
    let began = Instant::now();
    let result = cluster.run("sort")?;
    let seconds = began.elapsed().as_secs_f64();
    let sorted: u64 = result.collected::<u64>("count")?.iter().sum();
    if sorted != records {
        return Err(format!("{sorted} records came out of the sort, {records} went in").into());
    }
    let peak = peak_mb().ok_or("/proc/self/status does not say how much memory was resident")?;
    println!("sorted {records} records, {gigabytes} GB, in {seconds:.0} s; at most {peak} MB were resident");
    if peak > LIMIT_MB {
        return Err(format!("more than {LIMIT_MB} MB").into());
    }
    Ok(())
}
