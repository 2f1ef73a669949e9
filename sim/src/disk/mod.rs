//! The simulated disks.
//!
//! Durability model:
//! - A crash of a process keeps everything that was written, synced or not.
//! - A crash of a machine hits the volumes that live on it (a process's `local` and `scratch`; the
//!   shared volumes die with no machine unless the scenario puts them on one). Bytes that were not
//!   synced are lost, kept, cut (at a byte, at the end of an append, or at a sector, as file systems
//!   do that write data before they record the length) or zeros (as those that record the length
//!   first), as the scenario says; never bytes that were synced.
//! - Who outlives the machine under a shared volume is told: the next sync, by each actor, of a file or directory
//!   of which the crash took something fails, once (`stale`).
//! - A sync that fails loses what it was about: the system does not try those bytes again, and a later
//!   sync succeeds without them (as on Linux). A process still reads them, until its machine dies:
//!   then they are zeros.
//! - Creations, deletions and renames are durable when the directory of the name that they make or
//!   remove is synced (for a rename, that of the new name, which makes it durable as a whole).
//!   Until then a machine crash undoes them, keeps them, or does either with each as drawn.
//!   Directories themselves are durable at once.
//! - An operation is applied at the moment at which it completes. One that is under way when its
//!   process dies is not done, done, or (an append) cut, as the scenario says. Operations under way
//!   at the same time complete in any order.
//! - A fault of the disk meets the operations that begin after it (`fault`), of all processes or of one.
//!
//! It is a madsim [`Simulator`]: killing a node decides the fate of what its process had under way
//! and, if the machine dies, of its volumes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};

use bytes::Bytes;
use madsim::Config;
use madsim::plugin::Simulator;
use madsim::rand::GlobalRng;
use madsim::task::NodeId;
use madsim::time::TimeHandle;
use revenant::actor::{Purpose, Time};
use revenant::disk::{DiskErrorKind, DiskOp, DiskResult, Volume};
use revenant::ids::{ActorId, Address, ProcessId};

use crate::draw::{self, Draws};
use crate::scenario::{self, DurationRange};
use crate::trace::TraceKind;

mod crash;
mod fault;
mod file;
mod path;
mod snapshot;
mod stale;
mod survivors;
mod volume;

pub use crash::FATES;
use fault::{Armed, Condition};
pub use path::check_file;
use stale::Stale;
use volume::VolumeImage;

/// An operation that has left its actor and is not complete.
#[derive(Clone, Debug)]
struct Operation {
    process: ProcessId,
    actor: ActorId,
    volume: Volume,
    purpose: Purpose,
    action: DiskOp,
    /// With this error, when its time has come.
    fails: Option<DiskErrorKind>,
}

/// What happened to the disk, for the trace and the run's hash.
pub type Happening = (Option<ActorId>, TraceKind);

#[derive(Clone, Debug)]
pub struct DisksState {
    draws: Draws,
    options: scenario::Disk,
    /// By the purpose of the files, and for whom: what is wrong with the disk.
    conditions: BTreeMap<(Purpose, Option<ProcessId>), Condition>,
    /// Operations that are going to fail, each once.
    armed: Vec<Armed>,
    /// The faults of those that have failed, until somebody asks.
    struck: Vec<(usize, ProcessId)>,
    volumes: BTreeMap<(Volume, Option<ProcessId>), VolumeImage>,
    /// Volumes as they were when a fault remembered them, by their owner.
    remembered: BTreeMap<ProcessId, Vec<(Volume, VolumeImage)>>,
    /// For each actor that lives and has used a disk: what a crash took from under it.
    stale: BTreeMap<Address, BTreeSet<Stale>>,
    under_way: BTreeMap<u64, Operation>,
    next_ticket: u64,
    nodes: BTreeMap<NodeId, ProcessId>,
    /// Whether the next kill of a node takes its machine too.
    machine_dies: bool,
    /// What the last kill did to the disks.
    aftermath: Vec<Happening>,
}

/// Shared volumes have no owner.
const fn owner(volume: Volume, process: ProcessId) -> Option<ProcessId> {
    match volume {
        Volume::Local | Volume::Scratch => Some(process),
        Volume::Ha | Volume::Output | Volume::Input => None,
    }
}

impl DisksState {
    pub fn new(seed: u64, options: scenario::Disk) -> Self {
        Self {
            draws: Draws::new(seed),
            options,
            conditions: BTreeMap::new(),
            armed: Vec::new(),
            struck: Vec::new(),
            volumes: BTreeMap::new(),
            remembered: BTreeMap::new(),
            stale: BTreeMap::new(),
            under_way: BTreeMap::new(),
            next_ticket: 0,
            nodes: BTreeMap::new(),
            machine_dies: false,
            aftermath: Vec::new(),
        }
    }

    /// Puts a file on a shared volume, durable, as if it had always been there.
    pub fn place(&mut self, volume: Volume, path: &str, bytes: Bytes) -> Result<(), DiskErrorKind> {
        self.volumes.entry((volume, None)).or_default().place(path, bytes)
    }

    /// Begins an operation: its ticket, when it completes, and its order at that time.
    pub fn begin(
        &mut self,
        now: Time,
        from: Address,
        volume: Volume,
        purpose: Purpose,
        action: DiskOp,
    ) -> (u64, Time, u64) {
        let range: DurationRange = match action {
            DiskOp::Sync { .. } | DiskOp::SyncDirectory { .. } => self.options.sync_latency,
            _ => self.options.latency,
        };
        let draw = self.draws.draw(draw::Purpose::DiskLatency, (from, purpose, action.kind()));
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let Address { process, actor } = from;
        let condition = self.condition(purpose, process);
        let fails = condition.error_of(&action).or_else(|| self.strike(purpose, process, &action));
        self.stale.entry(from).or_default();
        self.under_way.insert(ticket, Operation { process, actor, volume, purpose, action, fails });
        (ticket, now + draw.within(range) + condition.slower, draw.order)
    }

    /// Applies an operation whose time has come. `None` if it died with its process.
    pub fn complete(&mut self, ticket: u64) -> Option<(DiskResult, Vec<Happening>)> {
        let operation = self.under_way.remove(&ticket)?;
        if let Some(kind) = operation.fails.or_else(|| self.why_stale(&operation)) {
            return Some(self.refuse(operation, kind));
        }
        let (result, happening) = self.apply(&operation);
        Some((result, happening.into_iter().collect()))
    }

    fn apply(&mut self, operation: &Operation) -> (DiskResult, Option<Happening>) {
        let Operation { process, volume, purpose, action, .. } = operation;
        let image = self.volumes.entry((*volume, owner(*volume, *process))).or_default();
        match image.apply(action, *purpose) {
            Ok(output) => {
                let happening = image.happening(*volume, *purpose, action);
                (Ok(output), happening.map(|what| (Some(operation.actor), what)))
            }
            Err((kind, message)) => (Err(fault::error(action, *volume, kind, message)), None),
        }
    }

    /// Every file with its content: (owner of the volume, volume, path).
    pub fn files(&self) -> impl Iterator<Item = (Option<ProcessId>, Volume, &str, Bytes)> {
        self.volumes.iter().flat_map(|((volume, owner), image)| {
            image.files().map(|(path, bytes)| (*owner, *volume, path, bytes))
        })
    }
}

#[derive(Debug)]
pub struct Disks(Mutex<DisksState>);

impl Disks {
    pub fn lock(&self) -> MutexGuard<'_, DisksState> {
        self.0.lock().expect("no panic under this lock")
    }

    pub fn add_node(&self, node: NodeId, process: ProcessId) {
        self.lock().nodes.insert(node, process);
    }

    /// Says how the node that is killed next dies.
    pub fn expect_kill(&self, machine: bool) {
        self.lock().machine_dies = machine;
    }

    /// What the kill did, once.
    pub fn take_aftermath(&self) -> Vec<Happening> {
        std::mem::take(&mut self.lock().aftermath)
    }
}

impl Simulator for Disks {
    fn new(_: &GlobalRng, _: &TimeHandle, _: &Config) -> Self {
        Self(Mutex::new(DisksState::new(0, scenario::Disk::default())))
    }

    fn reset_node(&self, node: NodeId) {
        let mut disks = self.lock();
        if let Some(&process) = disks.nodes.get(&node) {
            disks.crash(process);
        }
    }
}
