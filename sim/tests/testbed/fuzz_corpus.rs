//! The fuzz targets on their corpora: what fuzzing has found worth keeping is tried by every test run,
//! without a fuzzer. Those seeds that come from runs are written here, too.

use std::path::{Path, PathBuf};

mod seeds;

#[path = "../../../fuzz/src/lib.rs"]
mod targets;

/// The files of a target's corpus, in the order of their names.
fn corpus(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&directory)
        .unwrap_or_else(|error| panic!("{} cannot be read: {error}", directory.display()));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap_or_else(|error| panic!("{}: {error}", directory.display())).path())
        .collect();
    files.sort();
    let read = |path: PathBuf| {
        let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (path, bytes)
    };
    files.into_iter().map(read).collect()
}

/// Gives each file to the target; returns how many it found to be of use, and how many not. Says which
/// file it was if the target panics.
fn replayed(target: &str, is_of_use: impl Fn(&[u8]) -> bool) -> (usize, usize) {
    let (mut of_use, mut not) = (0, 0);
    for (path, bytes) in corpus(target) {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| is_of_use(&bytes)));
        match result {
            Ok(true) => of_use += 1,
            Ok(false) => not += 1,
            Err(panic) => {
                eprintln!("{}", path.display());
                std::panic::resume_unwind(panic);
            }
        }
    }
    println!("{target}: {of_use} of use, {not} not");
    (of_use, not)
}

#[test]
fn scenario_text_is_a_scenario_or_an_error_with_its_line() {
    let (right, wrong) = replayed("scenario_text", targets::scenario_text::check);
    assert!(
        right > 9 && wrong > 9,
        "the corpus has {right} scenarios that are right and {wrong} that are not"
    );
}

#[test]
fn wire_frames_are_frames_or_an_error() {
    let (frames, none) = replayed("wire_frames", targets::wire_frames::check);
    assert!(frames > 9 && none > 2, "the corpus has {frames} connections with frames and {none} without");
}

#[test]
fn crash_images_are_read_up_to_some_moment_or_told_to_be_damaged() {
    use targets::crash_image::{Recovered, check, read};
    let (images, _) =
        replayed("crash_image", |bytes| read(bytes).is_some_and(|image| check(&image) == Recovered::Events));
    assert!(images > 9, "the corpus has {images} images of which something is read");
}

#[test]
fn fault_plans_break_no_promise() {
    use targets::fault_plan::{Ran, check, read};
    let (struck, _) =
        replayed("fault_plan", |bytes| read(bytes).is_some_and(|plan| check(&plan) == Ran::Struck));
    assert!(struck > 9, "the corpus has {struck} plans of which a fault is met");
}

#[test]
fn job_event_logs_are_replayed_or_told_to_be_damaged() {
    let (good, damaged) = replayed("job_event_log", targets::job_event_log::check);
    assert!(good > 9 && damaged > 9, "the corpus has {good} logs with events and {damaged} without");
}
