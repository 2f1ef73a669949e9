//! A sink of JSON Lines (NDJSON), `part-<subtask>.jsonl`: each record is one line of JSON. A subtask
//! without records writes an empty file.

use std::io::Write;

use crate::api::Record;
use crate::operators::OperatorContext;
use crate::task::BodyError;

use super::part_file::{PartFile, Rendered, check_directory};
use super::{Sink, SinkWriter};

/// Writes records of any type as JSON Lines on the output volume. JSON has no numbers that are not
/// finite: they are written as `null`.
///
/// ```
/// # use revenant::connectors::JsonLinesSink;
/// # use revenant::runtime::run;
/// let result = run(|env| {
///     env.from_collection("pairs", [(1, Some("a")), (2, None)].map(|(n, tag)| (n, tag.map(str::to_owned))))
///         .sink_to(JsonLinesSink::new("pairs"));
///     Ok(())
/// })?;
/// let lines = std::fs::read_to_string(result.output().join("pairs/part-00000.jsonl"))?;
/// assert_eq!(lines, "[1,\"a\"]\n[2,null]\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct JsonLinesSink {
    directory: String,
}

impl JsonLinesSink {
    /// `directory` is a path on the output volume: parts of letters, digits, `-`, `_` and inner `.`
    /// with `/` between them.
    pub fn new(directory: impl Into<String>) -> Self {
        Self { directory: directory.into() }
    }
}

impl<T: Record> Sink<T> for JsonLinesSink {
    type Writer = JsonLinesWriter;

    fn name(&self) -> String {
        "json-lines".to_owned()
    }

    fn target(&self) -> Result<String, String> {
        check_directory(&self.directory)?;
        Ok(self.directory.clone())
    }

    fn writer(&self, context: &OperatorContext) -> JsonLinesWriter {
        let file = PartFile::new(context, &self.directory, ".jsonl");
        JsonLinesWriter { context: context.clone(), rendered: file.rendered(), file }
    }
}

/// Writes one pending file.
pub struct JsonLinesWriter {
    context: OperatorContext,
    rendered: Rendered,
    file: PartFile,
}

impl<T: Record> SinkWriter<T> for JsonLinesWriter {
    fn write(&mut self, record: T) -> Result<usize, BodyError> {
        let before = self.rendered.len();
        serde_json::to_writer(&mut self.rendered, &record)
            .and_then(|()| self.rendered.write_all(b"\n").map_err(serde_json::Error::io))
            .map_err(|error| {
                self.context.error(format_args!("a record cannot be written as JSON: {error}"))
            })?;
        Ok(self.rendered.len() - before)
    }

    async fn flush(&mut self) -> Result<(), BodyError> {
        self.file.flush().await
    }

    async fn finish(&mut self) -> Result<(), BodyError> {
        self.file.finish().await
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::api::StreamExecutionEnvironment;
    use crate::connectors::{CollectionSource, JsonLinesSource};
    use crate::operators::tests::{Cluster, Outcome};

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Visit {
        page: String,
        seconds: Option<u32>,
        tags: Vec<char>,
    }

    fn visits() -> [Visit; 3] {
        let visit = |page: &str, seconds| Visit { page: page.to_owned(), seconds, tags: vec!['a', '"'] };
        [visit("/", Some(3)), visit("two\nlines", None), visit("\u{2028}ü", Some(0))]
    }

    fn text(outcome: &Outcome, subtask: u32) -> String {
        outcome.files[&format!("out/part-{subtask:05}.jsonl")].clone()
    }

    #[test]
    fn each_record_is_a_line_of_json_and_reads_back_as_it_was() {
        let written = Cluster::run(|env| {
            env.from_collection("visits", visits()).sink_to(JsonLinesSink::new("out"));
        });
        let content = text(&written, 0);
        assert!(
            content.starts_with("{\"page\":\"/\",\"seconds\":3,\"tags\":[\"a\",\"\\\"\"]}\n"),
            "{content}"
        );
        assert_eq!(content.matches('\n').count(), 3);
        let read = Cluster::new(|env| {
            let visits = env.from_source("visits", JsonLinesSource::<Visit>::new(["a"]).split_bytes(7));
            visits.set_parallelism(1).sink_to(JsonLinesSink::new("out"));
        });
        let read = read.with_input("a", content.clone()).finish();
        assert_eq!(text(&read.unwrap_or_else(|failure| panic!("{}", failure.message)), 0), content);
    }

    #[test]
    fn a_subtask_without_records_writes_an_empty_file() {
        let outcome = Cluster::run(|env| {
            let source = CollectionSource::new([1_u8]).with_splits(2);
            env.from_source("numbers", source).set_parallelism(2).sink_to(JsonLinesSink::new("out"));
        });
        assert_eq!([text(&outcome, 0), text(&outcome, 1)], ["1\n", ""]);
    }

    #[test]
    fn a_record_that_json_cannot_say_fails_the_sink() {
        let job = |env: &mut StreamExecutionEnvironment| {
            let maps = env.from_collection("maps", [BTreeMap::from([(Some((1, 2)), 3)])]);
            maps.sink_to(JsonLinesSink::new("out"));
        };
        let failure = Cluster::new(job).finish().err().expect("it fails").message;
        assert!(failure.contains("'Sink: json-lines'") && failure.contains("written as JSON"), "{failure}");
    }

    #[test]
    fn a_directory_outside_the_volume_is_refused_with_what_would_be_right() {
        for directory in ["", "/a", "a//b", "../a", "a b"] {
            let error = Sink::<u8>::target(&JsonLinesSink::new(directory)).unwrap_err();
            assert!(error.contains("such as 'result/by-date'"), "{error}");
        }
        assert_eq!(Sink::<u8>::target(&JsonLinesSink::new("a/b-1")), Ok("a/b-1".to_owned()));
    }
}
