//! What goes over a connection: frames with their length in front. The first frame of each side
//! carries the protocol's magic and version. Foreign or oversized input is an error, never a panic.

use std::io;
use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio_util::codec::{Decoder, Encoder, LengthDelimitedCodec};

use crate::ids::{Address, ProcessId, SessionId};
use crate::message::Message;

const MAGIC: &[u8; 6] = b"RVN-TP";
const VERSION: u16 = 1;

/// Before the other side has shown who it is.
const GREETING_BYTES_MAX: usize = 4 << 10;
/// A message carries at most a window of buffers, or a report of partitions.
pub const FRAME_BYTES_MAX: usize = 256 << 20;

/// The first frame of whoever connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    pub process: ProcessId,
    pub session: SessionId,
    /// Where the sender listens.
    pub endpoint: SocketAddr,
    /// Whom it wants to reach.
    pub to: ProcessId,
}

/// The first frame of whoever was connected to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Welcome {
    Accepted {
        session: SessionId,
    },
    Refused {
        reason: String,
    },
    /// From the high-availability process: another session of the same process is alive.
    Occupied {
        session: SessionId,
        endpoint: SocketAddr,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Frame {
    Message {
        from: Address,
        to: Address,
        message: Message,
    },
    /// Asks the high-availability process where a process is.
    Resolve {
        process: ProcessId,
    },
    Resolved {
        endpoint: Option<SocketAddr>,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
    #[error("the connection ended within a greeting")]
    Ended,
    #[error("the other side does not speak Revenant's protocol")]
    Foreign,
    #[error("the other side speaks protocol version {0}, this one speaks {VERSION}")]
    Version(u16),
    #[error("a frame does not decode: {0}")]
    Malformed(#[from] postcard::Error),
}

fn codec(bytes_max: usize) -> LengthDelimitedCodec {
    LengthDelimitedCodec::builder().max_frame_length(bytes_max).new_codec()
}

/// Appends a frame with its length.
pub fn encode(frame: &Frame, bytes: &mut BytesMut) -> Result<(), FrameError> {
    let payload = postcard::to_allocvec(frame)?;
    Ok(codec(FRAME_BYTES_MAX).encode(Bytes::from(payload), bytes)?)
}

/// Appends the first frame of a side.
pub fn encode_greeting(greeting: &impl Serialize, bytes: &mut BytesMut) -> Result<(), FrameError> {
    let mut payload = MAGIC.to_vec();
    payload.extend_from_slice(&VERSION.to_le_bytes());
    let payload = postcard::to_extend(greeting, payload)?;
    Ok(codec(GREETING_BYTES_MAX).encode(Bytes::from(payload), bytes)?)
}

/// Reads frames from one side of a connection.
pub struct FrameReader<R> {
    io: R,
    buffer: BytesMut,
    codec: LengthDelimitedCodec,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub fn new(io: R) -> Self {
        Self { io, buffer: BytesMut::new(), codec: codec(GREETING_BYTES_MAX) }
    }

    pub async fn greeting<T: for<'de> Deserialize<'de>>(&mut self) -> Result<T, FrameError> {
        let payload = self.payload().await?.ok_or(FrameError::Ended)?;
        let rest = payload.strip_prefix(MAGIC).ok_or(FrameError::Foreign)?;
        let (version, rest) = rest.split_first_chunk::<2>().ok_or(FrameError::Foreign)?;
        let version = u16::from_le_bytes(*version);
        if version != VERSION {
            return Err(FrameError::Version(version));
        }
        let greeting = postcard::from_bytes(rest)?;
        self.codec = codec(FRAME_BYTES_MAX);
        Ok(greeting)
    }

    /// The next frame; `None` when the connection ended between frames. Safe to cancel.
    pub async fn frame(&mut self) -> Result<Option<Frame>, FrameError> {
        match self.payload().await? {
            Some(payload) => Ok(Some(postcard::from_bytes(&payload)?)),
            None => Ok(None),
        }
    }

    async fn payload(&mut self) -> Result<Option<BytesMut>, FrameError> {
        loop {
            if let Some(payload) = self.codec.decode(&mut self.buffer)? {
                return Ok(Some(payload));
            }
            if self.io.read_buf(&mut self.buffer).await? == 0 {
                let whole = self.buffer.is_empty();
                return if whole {
                    Ok(None)
                } else {
                    Err(io::Error::from(io::ErrorKind::UnexpectedEof).into())
                };
            }
        }
    }
}
