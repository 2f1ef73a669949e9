//! The canary of exactly-once: a job whose sink commits every record twice, on purpose, and which exists in
//! this test alone. If the judges let it live they are asleep, and nothing that they say is worth anything.

use std::sync::Arc;

use revenant::api::{JobError, JobParameters, Program, StreamExecutionEnvironment};
use revenant::connectors::{CsvSink, Sink, SinkWriter, TextLineSource};
use revenant::operators::OperatorContext;
use revenant::task::BodyError;
use revenant_sim::oracle::Judge;
use revenant_sim::run::{RunOptions, run};
use revenant_sim::scenario::Scenario;
use revenant_sim::trace::RunEnd;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
struct WordCount {
    word: String,
    count: u64,
}

/// Writes every record so many times.
struct Copying {
    sink: CsvSink,
    times: u32,
}

struct CopyingWriter {
    writer: <CsvSink as Sink<WordCount>>::Writer,
    times: u32,
}

impl Sink<WordCount> for Copying {
    type Writer = CopyingWriter;

    fn name(&self) -> String {
        Sink::<WordCount>::name(&self.sink)
    }

    fn target(&self) -> Result<String, String> {
        Sink::<WordCount>::target(&self.sink)
    }

    fn writer(&self, context: &OperatorContext) -> CopyingWriter {
        CopyingWriter { writer: Sink::<WordCount>::writer(&self.sink, context), times: self.times }
    }
}

impl SinkWriter<WordCount> for CopyingWriter {
    fn write(&mut self, record: WordCount) -> Result<usize, BodyError> {
        (0..self.times).map(|_| self.writer.write(record.clone())).sum()
    }

    async fn flush(&mut self) -> Result<(), BodyError> {
        SinkWriter::<WordCount>::flush(&mut self.writer).await
    }

    async fn finish(&mut self) -> Result<(), BodyError> {
        SinkWriter::<WordCount>::finish(&mut self.writer).await
    }
}

fn describe(env: &mut StreamExecutionEnvironment, job: &JobParameters, times: u32) -> Result<(), JobError> {
    let input = job.get("input", String::new(), "a directory", |_| true)?;
    env.from_source("lines", TextLineSource::new([input]))
        .map(|line: String| WordCount { word: line, count: 1 })
        .key_by(|row| row.word.clone())
        .reduce(|sum, row| WordCount { count: sum.count + row.count, ..sum })
        .sink_to(Copying { sink: CsvSink::new("word-count"), times });
    Ok(())
}

fn once(env: &mut StreamExecutionEnvironment, job: &JobParameters) -> Result<(), JobError> {
    describe(env, job, 1)
}

fn twice(env: &mut StreamExecutionEnvironment, job: &JobParameters) -> Result<(), JobError> {
    describe(env, job, 2)
}

/// What the judges of `word-count` say of a job that calls itself so.
fn judged(
    describe: fn(&mut StreamExecutionEnvironment, &JobParameters) -> Result<(), JobError>,
) -> Option<String> {
    let program = Arc::new(Program::new().register("word-count", "Counts words.", describe));
    let text = r#"
        [job]
        name = "word-count"
        [job.arguments]
        input = "poems"
        [[input]]
        path = "poems/tyger.txt"
        text = """
tyger
burning
tyger
"""
        [[fault]]
        at = "t = 50 ms"
        do = "crash job-manager"
    "#;
    let scenario = Scenario::parse("canary", text).expect("the scenario is right");
    let outcome = run(&scenario, &program, &RunOptions::default());
    assert_eq!(outcome.ended, RunEnd::Finished);
    let judge = Judge::new(&scenario, &program).expect("the job has a reference");
    judge.judge(&outcome).err().map(|violation| violation.oracle.to_owned())
}

#[test]
fn a_sink_that_commits_every_record_twice_is_seen_and_one_that_does_so_once_is_not() {
    assert_eq!(judged(once), None);
    assert_eq!(judged(twice).as_deref(), Some("S1"), "the judges are asleep");
}
