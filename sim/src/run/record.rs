//! What is kept of a run: trace, hash, counts, and what the options ask for.

use std::collections::BTreeMap;
use std::hash::Hash;

use revenant::actor::{Event, Time};
use revenant::ids::{ActorId, ProcessId};
use revenant::probe::Probe;

use super::RunOptions;
use crate::digest::Digest;
use crate::trace::{Delivered, FoundPoint, RunDetail, TraceEvent, TraceKind};

#[derive(Debug, Default)]
pub struct Record {
    pub trace: Vec<TraceEvent>,
    pub hash: u64,
    pub events: u64,
    pub messages: u64,
    pub probes: BTreeMap<Probe, u64>,
    pub detail: RunDetail,
    keep_chain: bool,
    keep_text: bool,
    keep_messages: bool,
}

impl Record {
    pub fn new(seed: u64, options: &RunOptions) -> Self {
        Self {
            hash: Digest::of(seed, "run"),
            keep_chain: options.keep_chain,
            keep_text: options.keep_text,
            keep_messages: options.keep_messages,
            ..Self::default()
        }
    }

    /// Adds to the run's hash.
    pub fn fold(&mut self, value: &impl Hash) {
        self.hash = Digest::of(self.hash, value);
    }

    pub fn trace(
        &mut self,
        time: Time,
        process: ProcessId,
        incarnation: u32,
        actor: Option<ActorId>,
        what: TraceKind,
    ) {
        self.trace.push(TraceEvent { time, process, incarnation, actor, what });
    }

    /// An event is about to be handled; returns its number, from 1.
    pub fn event(
        &mut self,
        time: Time,
        process: ProcessId,
        incarnation: u32,
        actor: ActorId,
        event: &Event,
    ) -> u64 {
        self.events += 1;
        self.messages += u64::from(matches!(event, Event::Message { .. }));
        self.fold(&(time, process, incarnation, actor, event));
        if self.keep_chain {
            self.detail.chain.push(self.hash);
        }
        if self.keep_text {
            self.detail.starts.push(self.trace.len());
            self.detail.text.push(format!("{time} {process}/{incarnation}:{actor} {event:?}"));
        }
        if self.keep_messages
            && let Event::Message { from, message } = event
        {
            let (position, from, message) = (self.trace.len(), *from, message.clone());
            let delivered = Delivered { position, time, from, process, incarnation, actor, message };
            self.detail.messages.push(delivered);
        }
        self.events
    }

    pub fn probe(&mut self, probe: Probe) {
        *self.probes.entry(probe).or_default() += 1;
    }

    pub fn point(&mut self, point: FoundPoint) {
        self.detail.points.push(point);
    }
}
