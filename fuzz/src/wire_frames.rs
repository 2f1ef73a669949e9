//! What comes over a TCP connection → decoder of the real runtime: whatever the bytes, they are frames or
//! an error. What is read can be sent on and is read as the same, and what the connection carried before
//! it was cut is what it would have carried anyway.

use std::fmt::Debug;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bytes::BytesMut;
use revenant::ids::SessionId;
use revenant::runtime::frame::{Frame, FrameError, FrameReader, Hello, Welcome, encode, encode_greeting};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The first byte says what the others are: the frame of somebody who has greeted well, what one who
/// connects sends, or what one who was connected to answers. Whether a frame was read.
pub fn check(bytes: &[u8]) -> bool {
    let Some((kind, bytes)) = bytes.split_first() else { return false };
    match kind {
        b'f' => frame(bytes),
        b'h' => connection::<Hello>(bytes),
        b'w' => connection::<Welcome>(bytes),
        _ => false,
    }
}

fn frame(payload: &[u8]) -> bool {
    let greeting = Welcome::Accepted { session: SessionId(1) };
    let mut bytes = greeted(&greeting);
    bytes.extend_from_slice(&(payload.len() as u32).to_be_bytes());
    bytes.extend_from_slice(payload);
    let (found, frames) = read::<Welcome>(&bytes);
    assert_eq!(found, Some(greeting));
    frames.iter().for_each(is_read_as_sent);
    !frames.is_empty()
}

fn connection<T: DeserializeOwned + Serialize + PartialEq + Debug>(bytes: &[u8]) -> bool {
    let (greeting, frames) = read::<T>(bytes);
    let (earlier, before) = read::<T>(&bytes[..bytes.len() / 2]);
    assert!(earlier.is_none() || earlier == greeting, "{earlier:?} before {greeting:?}");
    assert!(frames.starts_with(&before), "{before:?} before {frames:?}");
    let Some(greeting) = greeting else { return false };
    assert_eq!(read::<T>(&greeted(&greeting)).0, Some(greeting));
    frames.iter().for_each(is_read_as_sent);
    !frames.is_empty()
}

/// The greeting and all frames before the end, or before the first error.
fn read<T: DeserializeOwned>(bytes: &[u8]) -> (Option<T>, Vec<Frame>) {
    let mut frames = Vec::new();
    let greeting = at_once(async {
        let mut reader = FrameReader::new(bytes);
        let greeting = reader.greeting().await?;
        while let Ok(Some(frame)) = reader.frame().await {
            frames.push(frame);
        }
        Ok::<T, FrameError>(greeting)
    });
    (greeting.ok(), frames)
}

fn greeted(greeting: &impl Serialize) -> BytesMut {
    let mut bytes = BytesMut::new();
    encode_greeting(greeting, &mut bytes).expect("what was short enough to be read can be sent");
    bytes
}

fn is_read_as_sent(frame: &Frame) {
    let mut bytes = greeted(&Welcome::Accepted { session: SessionId(1) });
    encode(frame, &mut bytes).expect("what was short enough to be read can be sent");
    assert_eq!(read::<Welcome>(&bytes).1, std::slice::from_ref(frame));
}

/// Bytes that are all there keep nobody waiting.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the reader waits, though all bytes are there"),
    }
}
