//! The signals that the program answers: it ends in order when it is asked to, and takes a limit on
//! the size of files as an error of the disk. It decides nothing about what ending means.

use std::future::pending;

use tokio::signal::unix::{SignalKind, signal};

pub const HANGUP: u8 = 1;
pub const INTERRUPT: u8 = 2;
const TERMINATE: u8 = 15;
/// A write went beyond the limit on the size of files.
const FILE_SIZE: i32 = 25;

/// Waits for Ctrl-C, the end of the terminal, or a request to terminate; gives the signal's number.
pub async fn interrupted() -> u8 {
    tokio::select! {
        biased;
        number = received(INTERRUPT) => number,
        number = received(TERMINATE) => number,
        number = received(HANGUP) => number,
    }
}

async fn received(number: u8) -> u8 {
    if let Ok(mut signal) = signal(SignalKind::from_raw(number.into()))
        && signal.recv().await.is_some()
    {
        return number;
    }
    pending().await
}

/// Has writes fail that go beyond a limit on the size of files, where the system would end the
/// process. Needs a tokio runtime.
pub fn survive_file_size_limits() {
    // The handler stays though nobody listens.
    if let Err(error) = signal(SignalKind::from_raw(FILE_SIZE)) {
        tracing::debug!("a limit on the size of files will end this process: {error}");
    }
}
