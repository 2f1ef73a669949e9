//! The situations in which Flink was seen to run finished tasks again or to double its output, on a
//! job of the same shape. `scenarios/flink` tells what happened there.

use super::directory::judge_all;

/// Where the crash has to meet finishes that are only in the write buffer.
const BUFFERED: [&str; 2] = ["buffered-consumer.toml", "missing-partition.toml"];

#[test]
fn what_went_wrong_in_flink_does_not_go_wrong_here() {
    let mut buffered = Vec::new();
    judge_all("flink", |name, verdict| {
        if verdict.finishes.buffered > 0 {
            buffered.push(name.to_owned());
        }
    });
    let missed: Vec<&str> = BUFFERED.into_iter().filter(|name| !buffered.iter().any(|b| b == name)).collect();
    assert!(missed.is_empty(), "the crash met no buffered finish in {missed:?}: choose another time");
}
