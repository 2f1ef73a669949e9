//! `word-count`: how often each word occurs in text files. A word is a run of letters and digits, in
//! small letters.

use serde::{Deserialize, Serialize};

use crate::api::{JobError, JobParameters, StreamExecutionEnvironment};
use crate::connectors::{CsvSink, DEFAULT_SPLIT_BYTES, TextLineSource};

use super::line_items::output_directory;
use super::parallelism;

/// A row of the output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct WordCount {
    word: String,
    count: u64,
}

pub(super) fn describe(env: &mut StreamExecutionEnvironment, job: &JobParameters) -> Result<(), JobError> {
    let input = job.get(
        "input",
        String::new(),
        "a file or directory on the input volume; without it, all of the volume is read",
        |_| true,
    )?;
    let split_bytes =
        job.get("split-bytes", DEFAULT_SPLIT_BYTES, "a number of bytes from 1", |&bytes| bytes > 0)?;
    let source = TextLineSource::new([input]).split_bytes(split_bytes);
    let mut lines = env.from_source("lines", source);
    if let Some(parallelism) = parallelism(job, "source-parallelism")? {
        lines = lines.set_parallelism(parallelism);
    }
    lines
        .flat_map(|line| words(&line))
        .map(|word| WordCount { word, count: 1 })
        .key_by(|row| row.word.clone())
        .reduce(|sum, row| WordCount { count: sum.count + row.count, ..sum })
        .sink_to(CsvSink::new(output_directory(job, "word-count")?));
    Ok(())
}

fn words(line: &str) -> Vec<String> {
    let words = line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_runs_of_letters_and_digits_in_small_letters() {
        assert_eq!(words("  To be, or not; 2B\u{2014}Über?"), ["to", "be", "or", "not", "2b", "über"]);
        assert_eq!(words(" ,.-"), [""; 0]);
    }
}
