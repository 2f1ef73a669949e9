//! What the tasks of a run share: the state of every process, the faults, the record, the baton.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;
use std::time::Duration;

use madsim::plugin::simulator;
use madsim::runtime::Handle;
use madsim::task::NodeId;
use madsim::time::TimeHandle;
use revenant::actor::{Boot, Time};
use revenant::api::Program;
use revenant::config::Configuration;
use revenant::disk::Volume;
use revenant::ids::{ProcessId, SessionId};

use super::process::incarnation;
use super::record::Record;
use super::states::ProcessStates;
use super::survivors::Survivors;
use super::{Engine, RunOptions};
use crate::agenda::{Agenda, AgendaState, ProcessIndex};
use crate::clock::Clock;
use crate::disk::{Disks, DisksState, Happening};
use crate::draw::{Draws, Purpose};
use crate::network::{Network, NetworkState};
use crate::scenario::{DurationRange, InFlight, Scenario, VOLUMES};
use crate::trace::{RunEnd, TraceKind};

/// What goes on after the client has ended, so that processes can tidy up.
const SETTLE: Duration = Duration::from_secs(2);
/// The longest that this goes on beyond the restart of a process that is down, or while the
/// JobManager has not ended.
const DRAIN: Duration = Duration::from_secs(8);
const BOOT_OFFSET: DurationRange =
    DurationRange { min: Duration::from_micros(1), max: Duration::from_micros(200) };

#[derive(Debug)]
pub struct ProcessState {
    pub id: ProcessId,
    pub node: Option<NodeId>,
    /// 0 before the first start.
    pub incarnation: u32,
    pub alive: bool,
    /// Stands still: nothing reaches its actors.
    pub paused: bool,
    pub clock: Clock,
    /// Restarts after an exit with failure.
    pub failures: u32,
}

impl ProcessState {
    pub const fn life(&self) -> &'static str {
        match (self.alive, self.paused) {
            (true, false) => "alive",
            (true, true) => "paused",
            (false, _) => "down",
        }
    }
}

#[derive(Debug)]
pub struct World {
    pub now: Time,
    /// Index of the process that may go on; the number of processes for the conductor.
    pub baton: ProcessIndex,
    pub wakers: Vec<Option<Waker>>,
    pub processes: Vec<ProcessState>,
    /// For each fault of the scenario.
    pub fired: Vec<bool>,
    /// Those that wait for what they strike.
    pub armed: Vec<bool>,
    pub record: Record,
    pub ended: Option<RunEnd>,
    /// Nothing after this is worth waiting for once the run has ended.
    settle_until: Time,
    /// As [`Self::settle_until`], while processes are down or the JobManager is at work.
    drain_until: Time,
    patience: Patience,
    pub draws: Draws,
    pub survivors: Survivors,
    /// What every process looks like where the run was cut.
    pub states: Option<Vec<ProcessStates>>,
}

/// How long what follows from something may take once the client has ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Patience {
    /// Until a worker that missed the job's end asks for it, or one whose tasks were stopped looks again for
    /// what they left.
    pub worker: Duration,
    /// Until what is down starts again, and what the JobManager waits for comes.
    pub waits: Duration,
}

impl World {
    /// Lets another go on.
    pub fn pass(&mut self, next: ProcessIndex) {
        self.baton = next;
        if let Some(waker) = &self.wakers[next] {
            waker.wake_by_ref();
        }
    }

    /// The run is over at once. What ended first stays, but what an actor gets wrong is never hidden by the job's end.
    pub fn stop(&mut self, end: RunEnd) {
        if self.ended.is_none() || matches!(end, RunEnd::Panicked { .. } | RunEnd::Contradicted { .. }) {
            self.ended = Some(end);
        }
        self.settle_until = self.now;
        self.drain_until = self.now;
    }

    /// The run is over as soon as it has settled. Before that, all is healed that will be, at `healed`.
    pub fn settle(&mut self, end: RunEnd, patience: Patience, healed: Time) {
        self.ended.get_or_insert(end);
        self.patience = patience;
        self.wait_from(self.now.max(healed));
    }

    /// A process has come, gone or gone on: if the run has ended, what follows from it is waited for.
    pub fn stirred(&mut self) {
        if self.ended.is_some() && self.drain_until > self.now {
            self.wait_from(self.now);
        }
    }

    fn wait_from(&mut self, from: Time) {
        let Patience { worker, waits } = self.patience;
        self.settle_until = self.settle_until.max(from + worker + SETTLE);
        self.drain_until = self.drain_until.max(from + waits + DRAIN);
    }

    pub fn settled(&self, agenda: &mut AgendaState) -> bool {
        let unsettled = agenda.starts() > 0
            || self
                .processes
                .iter()
                .any(|process| process.alive && matches!(process.id, ProcessId::JobManager(_)));
        let until = if unsettled { self.drain_until } else { self.settle_until };
        // Only a timer makes a worker ask for what it missed.
        let waits_for_workers = !self.patience.worker.is_zero();
        until <= self.now
            || (agenda.work == 0 && !unsettled && !waits_for_workers)
            || agenda.peek().is_none_or(|(time, _)| time > until)
    }

    pub fn trace(&mut self, process: ProcessIndex, what: TraceKind) {
        let (id, incarnation) = (self.processes[process].id, self.processes[process].incarnation);
        self.survivors.everywhere(&(self.now, process, incarnation));
        self.record.trace(self.now, id, incarnation, None, what);
    }

    /// What happened to a disk without an event of the process.
    pub fn disk_happening(&mut self, process: ProcessIndex, (actor, what): Happening) {
        match &what {
            TraceKind::LogAppended { path, bytes, .. } => self.record.fold(&("appended", path, bytes)),
            TraceKind::LogSynced { path, length, .. } => self.record.fold(&("synced", path, length)),
            TraceKind::LogAfterCrash { path, length, .. } => self.record.fold(&("left", path, length)),
            TraceKind::LogZeroed { path, from, to, .. } => self.record.fold(&("zeros", path, from, to)),
            _ => {}
        }
        let (id, incarnation) = (self.processes[process].id, self.processes[process].incarnation);
        self.record.trace(self.now, id, incarnation, actor, what);
    }
}

/// Everything of a run. One thread uses it; the locks are what madsim's bounds ask for.
pub struct Shared {
    pub scenario: Scenario,
    pub options: RunOptions,
    pub program: Arc<Program>,
    pub config: Configuration,
    pub agenda: Arc<Agenda>,
    pub network: Arc<Network>,
    pub disks: Arc<Disks>,
    world: Mutex<World>,
    clock: TimeHandle,
}

impl Shared {
    /// Must be called inside the runtime, once.
    pub fn new(scenario: Scenario, program: Arc<Program>, options: RunOptions) -> Self {
        let seed = scenario.schedule.seed;
        let processes: Vec<ProcessState> = scenario
            .processes()
            .map(|id| ProcessState {
                id,
                node: None,
                incarnation: 0,
                alive: false,
                paused: false,
                clock: scenario.clock_of(id),
                failures: 0,
            })
            .collect();
        let count = processes.len();
        let world = World {
            now: Time(0),
            baton: processes.len(),
            wakers: vec![None; processes.len() + 1],
            processes,
            fired: vec![false; scenario.faults.len()],
            armed: vec![false; scenario.faults.len()],
            record: Record::new(seed, &options),
            ended: None,
            settle_until: Time(0),
            drain_until: Time(0),
            patience: Patience::default(),
            draws: Draws::new(seed),
            survivors: if options.survivors { Survivors::of(count) } else { Survivors::default() },
            states: None,
        };
        let (agenda, network, disks) = (simulator::<Agenda>(), simulator::<Network>(), simulator::<Disks>());
        agenda.lock().sent_dies_with_sender = scenario.network.in_flight_at_crash == InFlight::Lost;
        *network.lock() = NetworkState::new(&scenario);
        *disks.lock() = DisksState::new(seed, scenario.disk.clone());
        super::foreign::place(&mut disks.lock());
        for input in &scenario.inputs {
            let placed = disks.lock().place(Volume::Input, &input.path, input.content().into());
            placed.expect("the files of a scenario are checked when it is loaded");
        }
        Self {
            config: scenario.configuration(),
            scenario,
            options,
            program,
            agenda,
            network,
            disks,
            world: Mutex::new(world),
            clock: TimeHandle::current(),
        }
    }

    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().expect("no panic under this lock")
    }

    pub fn engine(&self) -> Engine {
        self.options.engine
    }

    /// See [`Scenario::processes`].
    pub const fn process_count(&self) -> usize {
        self.first_job_manager() + self.scenario.cluster.job_managers as usize
    }

    /// The HA service, the client, the TaskManagers and shuffle services come before.
    const fn first_job_manager(&self) -> usize {
        let cluster = &self.scenario.cluster;
        2 + cluster.task_managers as usize + cluster.shuffle_services as usize
    }

    pub fn index_of(&self, process: ProcessId) -> Option<ProcessIndex> {
        let index = match process {
            ProcessId::HighAvailability => 0,
            ProcessId::Client => 1,
            ProcessId::TaskManager(n) if (1..=self.scenario.cluster.task_managers).contains(&n) => {
                1 + n as usize
            }
            ProcessId::ShuffleService(n) if (1..=self.scenario.cluster.shuffle_services).contains(&n) => {
                1 + self.scenario.cluster.task_managers as usize + n as usize
            }
            ProcessId::JobManager(n) if (1..=self.scenario.cluster.job_managers).contains(&n) => {
                self.first_job_manager() + n as usize - 1
            }
            ProcessId::TaskManager(_) | ProcessId::ShuffleService(_) | ProcessId::JobManager(_) => {
                return None;
            }
        };
        Some(index)
    }

    pub fn boot_offset(&self, process: ProcessIndex) -> Duration {
        self.world().draws.draw(Purpose::BootOffset, process as u64).within(BOOT_OFFSET)
    }

    pub fn nodes(&self) -> Vec<NodeId> {
        self.world().processes.iter().filter_map(|process| process.node).collect()
    }

    /// Lets madsim's clock follow the agenda; it may be ahead by what its executor adds per poll.
    pub fn advance_clock(&self, now: Time) {
        let behind = now.since(Time(0)).saturating_sub(self.clock.elapsed());
        if !behind.is_zero() {
            self.clock.advance(behind);
        }
    }

    /// Starts a new incarnation, which then holds the baton.
    pub fn boot(self: &Arc<Self>, process: ProcessIndex) {
        let (id, node) = {
            let mut world = self.world();
            let state = &mut world.processes[process];
            state.incarnation += 1;
            state.alive = true;
            state.paused = false;
            let (id, incarnation, node) = (state.id, state.incarnation, state.node);
            if self.options.profile && id == ProcessId::JOB_MANAGER && incarnation > 1 {
                world.record.detail.profile.recovery_begins();
            }
            let now = world.now;
            world.record.fold(&("start", now, id, incarnation));
            world.trace(process, TraceKind::Started);
            let clock = world.processes[process].clock;
            if clock != Clock::default() {
                world.trace(process, TraceKind::ClockChanged { clock, fault: None });
            }
            world.wakers[process] = None;
            world.baton = process;
            world.stirred();
            (id, node)
        };
        if let Some(node) = node {
            return Handle::current().restart(node);
        }
        let shared = Arc::clone(self);
        let node = Handle::current()
            .create_node()
            .name(id.to_string())
            .init(move || incarnation(Arc::clone(&shared), process))
            .build()
            .id();
        self.world().processes[process].node = Some(node);
        self.agenda.add_node(node, process);
        self.network.add_node(node, process);
        self.disks.add_node(node, id);
    }

    /// What an incarnation knows at its start.
    pub fn boot_record(&self, process: ProcessIndex) -> (Boot, u32) {
        let world = self.world();
        let state = &world.processes[process];
        let boot = Boot {
            process: state.id,
            session: SessionId((process as u64 + 1) << 32 | u64::from(state.incarnation)),
            config: self.config.clone(),
            volumes: VOLUMES.to_vec(),
        };
        (boot, state.incarnation)
    }
}

/// Explains why nothing goes on: what each process last said and which timers are set.
pub fn who_waits(world: &World, agenda: &AgendaState, why: &str) -> String {
    let mut text = why.to_owned();
    for (index, process) in world.processes.iter().enumerate() {
        let _ = write!(text, "\n  {}/{} {}", process.id, process.incarnation, process.life());
        let said = world.record.trace.iter().rev().find_map(|event| match &event.what {
            TraceKind::Note(note) if event.process == process.id => Some((event.time, note)),
            _ => None,
        });
        if let Some((time, note)) = said {
            let _ = write!(text, "; last said at {time}: {note:?}");
        }
        let timers: Vec<String> = agenda
            .timers()
            .filter(|(owner, ..)| *owner == index)
            .map(|(_, actor, timer, at)| format!("{actor}'s timer {} at {at}", timer.0))
            .collect();
        if !timers.is_empty() {
            let _ = write!(text, "; waits for {}", timers.join(", "));
        }
    }
    text
}
