//! Job event log bytes → replay: whatever the files hold, replay ends without a panic, and what it
//! gives can be folded onto a job graph or is refused with a reason.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use revenant::config::JobArguments;
use revenant::graph::JobGraph;
use revenant::ids::FencingToken;
use revenant::job_event::replay::{LogFile, replay};
use revenant::scheduler::fold;

static GRAPH: LazyLock<std::sync::Arc<JobGraph>> = LazyLock::new(|| {
    let job = JobArguments { name: "lineitem-by-ship-date".to_owned(), arguments: Vec::new() };
    revenant::jobs::registry().build(&job).expect("the job builds with its defaults")
});

fuzz_target!(|epochs: Vec<Vec<Vec<u8>>>| {
    let files: Vec<LogFile<'_>> = (1..)
        .zip(&epochs)
        .flat_map(|(epoch, files)| (0..).zip(files).map(move |(index, bytes)| (epoch, index, bytes)))
        .map(|(epoch, index, bytes)| LogFile { path: "events", epoch: FencingToken(epoch), index, bytes })
        .collect();
    let outcome = replay(&files, GRAPH.fingerprint);
    assert!(outcome.replay.damage.is_none() || outcome.replay.events.is_empty());
    let _ = fold(&outcome.replay.events, &GRAPH);
});
