//! A task's input: one stream of buffers from each TaskManager that holds input partitions, merged
//! into the order (gate, partition, subpartition, production). What the body sees depends only on
//! the partitions, never on which message came first. Flink's SingleInputGate, without its races.

use std::collections::{BTreeMap, VecDeque};
use std::task::Poll;

use bytes::Bytes;

use crate::actor::Outbox;
use crate::ids::{Address, ProcessId, ResultPartitionId};
use crate::message::{
    AddCredit, Buffers, CloseFetch, FetchRange, FetchedBuffer, InputGateDescriptor, OpenFetch,
};

/// A buffer of one input gate: whole records, one behind the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputBuffer {
    /// Index of the input edge.
    pub gate: usize,
    pub bytes: Bytes,
}

/// All input gates of a task.
#[derive(Debug)]
pub(super) struct Inputs {
    /// Every partition that is read, in the order in which the body sees them.
    channels: Vec<Channel>,
    current: usize,
    streams: Vec<Stream>,
    credit: u32,
    opened: bool,
    closed: bool,
    /// The stream that the body waits for.
    waiting: Option<usize>,
    bytes: u64,
}

#[derive(Debug)]
struct Channel {
    gate: usize,
    stream: usize,
    range: u32,
}

#[derive(Debug)]
struct Stream {
    location: ProcessId,
    ranges: Vec<FetchRange>,
    queue: VecDeque<FetchedBuffer>,
    /// Messages that overtook others, by sequence. Bounded by the credit.
    early: BTreeMap<u64, Buffers>,
    /// Buffers received in sequence.
    received: u64,
    last_range: u32,
    /// Buffers consumed whose credit is not yet given back.
    owed: u32,
    /// The last buffer was received.
    finished: bool,
}

impl Inputs {
    pub fn new(gates: &[InputGateDescriptor], credit: u32) -> Self {
        let mut channels = Vec::new();
        let mut streams: Vec<Stream> = Vec::new();
        for (gate, descriptor) in gates.iter().enumerate() {
            for source in descriptor.partitions.iter() {
                let stream =
                    streams.iter().position(|s| s.location == source.location).unwrap_or_else(|| {
                        streams.push(Stream::new(source.location));
                        streams.len() - 1
                    });
                let ranges = &mut streams[stream].ranges;
                channels.push(Channel { gate, stream, range: ranges.len() as u32 });
                ranges.push(FetchRange {
                    partition: source.partition,
                    subpartitions: descriptor.subpartitions,
                });
            }
        }
        Self { channels, current: 0, streams, credit, opened: false, closed: false, waiting: None, bytes: 0 }
    }

    /// The next buffer for the body. Opens the streams when it is first called.
    pub fn poll_next(&mut self, out: &mut Outbox) -> Poll<Option<InputBuffer>> {
        self.waiting = None;
        if self.closed {
            return Poll::Ready(None);
        }
        if !self.opened {
            self.opened = true;
            for fetch in 0..self.streams.len() {
                self.open(fetch, out);
            }
        }
        while let Some(channel) = self.channels.get(self.current) {
            let stream = &mut self.streams[channel.stream];
            match stream.queue.front() {
                Some(front) if front.range == channel.range => {
                    let bytes = stream.queue.pop_front().map(|buffer| buffer.bytes).unwrap_or_default();
                    self.bytes += bytes.len() as u64;
                    stream.owed += 1;
                    // Half a credit at a time: the sender never runs dry, and messages stay few.
                    if !stream.finished && stream.owed >= (self.credit / 2).max(1) {
                        let credit = std::mem::take(&mut stream.owed);
                        let fetch = channel.stream as u64;
                        out.send(Address::shuffle(stream.location), AddCredit { fetch, credit });
                    }
                    return Poll::Ready(Some(InputBuffer { gate: channel.gate, bytes }));
                }
                Some(_) => self.current += 1,
                None if stream.finished => self.current += 1,
                None => {
                    self.waiting = Some(channel.stream);
                    return Poll::Pending;
                }
            }
        }
        Poll::Ready(None)
    }

    fn open(&mut self, fetch: usize, out: &mut Outbox) {
        let stream = &mut self.streams[fetch];
        stream.owed = 0;
        out.send(
            Address::shuffle(stream.location),
            OpenFetch {
                fetch: fetch as u64,
                ranges: stream.ranges.clone(),
                start: stream.received,
                credit: self.credit,
            },
        );
    }

    /// Takes in what a sender sent; an error says how it broke the protocol.
    pub fn receive(&mut self, from: Address, message: Buffers) -> Result<(), String> {
        let credit = self.credit as usize;
        let Some(stream) = self.stream(from, message.fetch) else { return Ok(()) };
        if stream.finished {
            return Ok(());
        }
        stream.early.insert(message.sequence, message);
        while let Some(entry) = stream.early.first_entry().filter(|entry| *entry.key() <= stream.received) {
            let (sequence, message) = entry.remove_entry();
            // What was sent again may overlap with what is here.
            let known = usize::try_from(stream.received - sequence).unwrap_or(usize::MAX);
            for buffer in message.buffers.into_iter().skip(known) {
                if buffer.range < stream.last_range || buffer.range as usize >= stream.ranges.len() {
                    return Err(format!("{from} sent range {} out of order", buffer.range));
                }
                stream.last_range = buffer.range;
                stream.received += 1;
                stream.queue.push_back(buffer);
            }
            if message.finished {
                stream.finished = true;
                stream.early.clear();
            }
        }
        if stream.early.len() > credit {
            return Err(format!("{from} sent more than it had credit for"));
        }
        Ok(())
    }

    /// Whether this answer is about a stream that is read: then its task cannot go on.
    pub fn is_missing(&mut self, from: Address, fetch: u64) -> bool {
        self.stream(from, fetch).is_some_and(|stream| !stream.finished)
    }

    fn stream(&mut self, from: Address, fetch: u64) -> Option<&mut Stream> {
        if self.closed || !self.opened {
            return None;
        }
        let stream = self.streams.get_mut(usize::try_from(fetch).ok()?)?;
        (from == Address::shuffle(stream.location)).then_some(stream)
    }

    /// Ends the input: senders forget what they have not sent.
    pub fn close(&mut self, out: &mut Outbox) {
        if self.closed {
            return;
        }
        self.closed = true;
        self.waiting = None;
        for (fetch, stream) in self.streams.iter_mut().enumerate() {
            stream.queue.clear();
            stream.early.clear();
            if self.opened && !stream.finished {
                out.send(Address::shuffle(stream.location), CloseFetch { fetch: fetch as u64 });
            }
        }
    }

    /// The stream that the body waits for, and how many buffers of it were received.
    pub fn waiting(&self) -> Option<(usize, u64)> {
        self.waiting.map(|stream| (stream, self.streams[stream].received))
    }

    /// Asks again for what a silent stream has not delivered.
    pub fn reopen(&mut self, stream: usize, out: &mut Outbox) {
        self.open(stream, out);
    }

    /// The partition that the body waits for, with the process that holds it.
    pub fn awaited(&self) -> Option<(ResultPartitionId, ProcessId)> {
        let channel = self.channels.get(self.current)?;
        let stream = &self.streams[channel.stream];
        Some((stream.ranges[channel.range as usize].partition, stream.location))
    }

    /// Bytes that the body has taken.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Stream {
    fn new(location: ProcessId) -> Self {
        Self {
            location,
            ranges: Vec::new(),
            queue: VecDeque::new(),
            early: BTreeMap::new(),
            received: 0,
            last_range: 0,
            owed: 0,
            finished: false,
        }
    }
}
