//! The most frequent words of text files.
//!
//! ```console
//! $ cargo run --release --example word_count -- --input DIR --top 10
//! ```
//!
//! Reads all files in DIR and below it, also compressed ones (`.gz`). Prints the words with their counts,
//! the most frequent first, words of one count in the order of the alphabet.

use std::cmp::Reverse;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::exit;

use clap::Parser;
use revenant::api::{Order, Out, Program, Records, StreamExecutionEnvironment};
use revenant::connectors::TextLineSource;
use revenant::runtime::{JobExecutionError, MiniCluster};
use serde::{Deserialize, Serialize};

/// The most frequent words of text files.
#[derive(Clone, Debug, Parser)]
pub struct Arguments {
    /// Directory with text files.
    #[arg(long)]
    input: PathBuf,
    /// How many words are wanted.
    #[arg(long, default_value = "10")]
    top: NonZeroU32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WordCount {
    pub word: String,
    pub count: u64,
}

pub fn describe(env: &mut StreamExecutionEnvironment, arguments: &Arguments) {
    let top = arguments.top.get();
    env.from_source("lines", TextLineSource::new([""]))
        .flat_map(|line| words(&line))
        .map(|word| WordCount { word, count: 1 })
        .key_by(|row| row.word.clone())
        .reduce(|sum, row| WordCount { count: sum.count + row.count, ..sum })
        .name("Count")
        .full_window_partition()
        .sort_partition(|row| (Reverse(row.count), row.word.clone()), Order::Ascending)
        .set_parallelism(1)
        .full_window_partition()
        .map_partition(async move |records: &mut Records<WordCount>, out: &Out<WordCount>| {
            for _ in 0..top {
                let Some(row) = records.next().await else { break };
                out.collect(row).await;
            }
            Ok(()) // What was not asked for is not read.
        })
        .name("Top")
        .collect("top");
}

/// Runs of letters and digits, in small letters.
fn words(line: &str) -> Vec<String> {
    let words = line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

pub fn run(arguments: Arguments) -> Result<Vec<WordCount>, JobExecutionError> {
    let input = arguments.input.clone();
    let program = Program::new().register("word-count", "The most frequent words.", move |env, _| {
        describe(env, &arguments);
        Ok(())
    });
    Ok(MiniCluster::new(program).input(input).run("word-count")?.collected("top")?)
}

fn main() {
    let top = run(Arguments::parse()).unwrap_or_else(|error| {
        eprintln!("{error}");
        exit(1)
    });
    for WordCount { word, count } in top {
        println!("{count:>7}  {word}");
    }
}
