//! The latest report of each device, of all that were recorded: NDJSON in, CSV out.
//!
//! ```console
//! $ cat reports/monday.ndjson
//! {"device":"door","time":7,"state":"open"}
//! {"device":"door","time":9,"state":"shut"}
//! $ cargo run --release --example deduplicate_by_key -- --input reports --output latest monday.ndjson
//! ```
//!
//! Reads the named files of the input directory, or all of it. A line that is no report is left out and
//! counted. Of reports of one time, that with the greatest state counts, so that the result does not depend
//! on who read what first. Prints how many devices there are, how many lines were bad, and the CSV files.

use std::path::PathBuf;
use std::process::exit;

use clap::Parser;
use revenant::api::{FunctionError, Order, Out, Program, Records, StreamExecutionEnvironment};
use revenant::connectors::{BadLines, CsvSink, JsonLinesSource};
use revenant::runtime::{JobExecutionError, MiniCluster};
use serde::{Deserialize, Serialize};

/// The latest report of each device.
#[derive(Clone, Debug, Parser)]
pub struct Arguments {
    /// Directory with files of JSON Lines.
    #[arg(long)]
    input: PathBuf,
    /// Directory for the result, new or empty.
    #[arg(long)]
    output: PathBuf,
    /// Files or directories in the input directory; without any, all of it.
    files: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    device: String,
    time: u64,
    state: String,
}

pub fn describe(env: &mut StreamExecutionEnvironment, arguments: &Arguments) {
    let all = vec![String::new()];
    let files = if arguments.files.is_empty() { all } else { arguments.files.clone() };
    let reports = JsonLinesSource::<Report>::new(files).bad_lines(BadLines::SkipAndCount);
    env.from_source("reports", reports)
        .key_by(|report| report.device.clone())
        .full_window_partition()
        .sort_partition(|report| (report.time, report.state.clone()), Order::Descending)
        .forward()
        .full_window_partition()
        .map_partition(first_of_each_device)
        .name("Latest")
        .sink_to(CsvSink::new("latest"));
}

/// The sort has brought the reports of a device together, the latest first.
async fn first_of_each_device(records: &mut Records<Report>, out: &Out<Report>) -> Result<(), FunctionError> {
    let mut device = None;
    while let Some(report) = records.next().await {
        if device.as_ref() != Some(&report.device) {
            device = Some(report.device.clone());
            out.add_to_accumulator("devices", 1);
            out.collect(report).await;
        }
    }
    Ok(())
}

/// What became of the reports.
pub struct Summary {
    pub devices: i64,
    pub bad_lines: i64,
    /// With one header and any number of devices each.
    pub files: Vec<PathBuf>,
}

pub fn run(arguments: Arguments) -> Result<Summary, JobExecutionError> {
    let (input, output) = (arguments.input.clone(), arguments.output.clone());
    let program =
        Program::new().register("deduplicate", "The latest report of each device.", move |env, _| {
            describe(env, &arguments);
            Ok(())
        });
    let result = MiniCluster::new(program).input(input).output(&output).run("deduplicate")?;
    let sum = |name| result.accumulators().get(name).copied().unwrap_or(0);
    let files = result.files()?.iter().map(|file| output.join(file)).collect();
    Ok(Summary { devices: sum("devices"), bad_lines: sum("reports.bad-lines"), files })
}

fn main() {
    let Summary { devices, bad_lines, files } = run(Arguments::parse()).unwrap_or_else(|error| {
        eprintln!("{error}");
        exit(1)
    });
    println!("devices    {devices}");
    println!("bad lines  {bad_lines}");
    for file in files {
        println!("{}", file.display());
    }
}
