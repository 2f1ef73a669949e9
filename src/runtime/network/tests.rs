//! Frames against damaged and foreign input.

use std::net::{Ipv4Addr, SocketAddr};

use bytes::BytesMut;

use super::frame::{FRAME_BYTES_MAX, FrameError, FrameReader, Welcome, encode, encode_greeting};
use super::*;
use crate::message::RequestJobStatus;

fn hello() -> Hello {
    Hello {
        process: ProcessId::TaskManager(1),
        session: SessionId(7),
        endpoint: SocketAddr::from((Ipv4Addr::LOCALHOST, 4)),
        to: ProcessId::JOB_MANAGER,
    }
}

fn message() -> Frame {
    let from = Address::executor(ProcessId::TaskManager(1));
    Frame::Message { from, to: Address::MASTER, message: RequestJobStatus {}.into() }
}

fn conversation() -> BytesMut {
    let mut bytes = BytesMut::new();
    encode_greeting(&hello(), &mut bytes).unwrap();
    encode(&message(), &mut bytes).unwrap();
    bytes
}

async fn read(bytes: &[u8]) -> Result<(Hello, Option<Frame>), FrameError> {
    let mut reader = FrameReader::new(bytes);
    let hello = reader.greeting().await?;
    Ok((hello, reader.frame().await?))
}

#[test]
fn a_sender_does_not_wait_for_a_destination_that_takes_nothing() {
    let (queue, mut waiting) = mpsc::channel(1);
    let started = Instant::now();
    for _ in 0..3 {
        offer(&queue, message(), Address::MASTER);
    }
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_eq!(waiting.try_recv(), Ok(message()), "what found room is kept");
    assert!(waiting.try_recv().is_err());
}

#[tokio::test]
async fn what_is_written_is_read() {
    assert_eq!(read(&conversation()).await.unwrap(), (hello(), Some(message())));
}

#[tokio::test]
async fn input_that_ends_anywhere_or_has_any_wrong_byte_is_an_error_or_a_frame() {
    let bytes = conversation();
    for length in 0..bytes.len() {
        let _ = read(&bytes[..length]).await;
    }
    assert!(read(&bytes[..3]).await.is_err());
    for position in 0..bytes.len() {
        for flip in [1, 0x80, 0xff] {
            let mut damaged = bytes.to_vec();
            damaged[position] ^= flip;
            let _ = read(&damaged).await;
        }
    }
}

#[tokio::test]
async fn foreign_and_oversized_greetings_are_told_apart_from_other_versions() {
    assert!(matches!(read(b"GET / HTTP/1.1\r\n\r\n").await, Err(FrameError::Io(_))));
    assert!(matches!(read(b"\0\0\0\x05hello").await, Err(FrameError::Foreign)));
    let mut newer = conversation();
    newer[4 + 6] = 9;
    assert!(matches!(read(&newer).await, Err(FrameError::Version(9))));
    let mut huge = conversation();
    huge.extend_from_slice(&u32::try_from(FRAME_BYTES_MAX + 1).unwrap().to_be_bytes());
    let mut reader = FrameReader::new(&huge[..]);
    reader.greeting::<Hello>().await.unwrap();
    assert_eq!(reader.frame().await.unwrap(), Some(message()));
    assert!(matches!(reader.frame().await, Err(FrameError::Io(_))));
}

#[tokio::test]
async fn a_welcome_is_no_hello() {
    let mut bytes = BytesMut::new();
    encode_greeting(&Welcome::Accepted { session: SessionId(1) }, &mut bytes).unwrap();
    assert!(matches!(read(&bytes).await, Err(FrameError::Malformed(_))));
}
