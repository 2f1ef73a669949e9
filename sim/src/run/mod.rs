//! Runs a scenario: the engine's actors on madsim, one node per process.
//!
//! All that happens goes through one [agenda](crate::agenda). The process whose event is next
//! holds the baton and handles events until the next one is another's; madsim's random choice of
//! task never decides anything, because only the holder of the baton can go on. Each run has an
//! operating-system thread of its own, so that nothing is left over from an earlier one.

use std::sync::Arc;
use std::time::Duration;

use madsim::runtime::{Handle, Runtime};
use revenant::actor::{Actor, Boot, Time};
use revenant::api::Program;
use revenant::disk::Volume;
use revenant::ids::{ActorId, ProcessId};
use revenant::message::TaskDeploymentDescriptor;

use crate::agenda::{Agenda, Due, Entry};
use crate::disk::Disks;
use crate::network::Network;
use crate::scenario::{Scenario, Trigger};
use crate::trace::{Allocated, RunEnd, RunOutcome};

mod crash;
mod disturb;
mod effects;
mod foreign;
mod points;
mod process;
mod profile;
mod record;
mod states;
mod survivors;
mod turn;
mod wire;
mod world;

pub use profile::{Activity, Cost, Profile};
pub use states::ProcessStates;
use turn::Turn;
use world::Shared;

/// Makes the actors of a fresh incarnation.
pub type MakeActors = fn(&Boot, &Arc<Program>) -> Vec<(ActorId, Box<dyn Actor>)>;
/// Makes the actor of one task.
pub type MakeTask = fn(&Boot, &Arc<Program>, TaskDeploymentDescriptor) -> Box<dyn Actor>;

/// What a process consists of.
#[derive(Clone, Copy, Debug)]
pub struct Engine {
    pub actors: MakeActors,
    pub task_actor: MakeTask,
}

impl Default for Engine {
    fn default() -> Self {
        Self { actors: revenant::process::actors, task_actor: revenant::process::task_actor }
    }
}

/// How a run is watched; nothing here changes what happens.
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
#[derive(Clone, Copy, Debug, Default)]
pub struct RunOptions {
    pub engine: Engine,
    /// Encodes and decodes every message on its way.
    pub codec: bool,
    /// Keeps the hash after each event.
    pub keep_chain: bool,
    /// Keeps each event as text.
    pub keep_text: bool,
    /// Keeps each message.
    pub keep_messages: bool,
    /// Measures what handling each kind of event takes.
    pub profile: bool,
    pub collect: Collect,
    /// Says of each point that is collected what a crash there would leave.
    pub survivors: bool,
    /// Cuts the run after this many events and keeps the state of every actor.
    pub until: Option<u64>,
}

/// Whose crash points are collected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Collect {
    #[default]
    Nothing,
    Of(ProcessId),
    /// Of every JobManager, leader or standby.
    JobManagers,
    All,
}

impl Collect {
    fn includes(self, process: ProcessId) -> bool {
        match self {
            Self::Nothing => false,
            Self::Of(one) => one == process,
            Self::JobManagers => matches!(process, ProcessId::JobManager(_)),
            Self::All => true,
        }
    }
}

/// Executes the scenario. The program must know the scenario's job.
///
/// # Panics
/// If the operating system gives no thread, or on a defect of the simulator itself.
pub fn run(scenario: &Scenario, program: &Arc<Program>, options: &RunOptions) -> RunOutcome {
    let dispatch = tracing::dispatcher::get_default(Clone::clone);
    let work = || tracing::dispatcher::with_default(&dispatch, || run_here(scenario, program, options));
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("simulation".to_owned()).spawn_scoped(scope, work);
        match thread.expect("the operating system gives a thread").join() {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// With what it allocates, on the thread that is its own.
fn run_here(scenario: &Scenario, program: &Arc<Program>, options: &RunOptions) -> RunOutcome {
    let (mut outcome, allocated) = densa_alloc::measure(|| simulate(scenario, program, options));
    outcome.detail.allocated =
        Allocated { count: allocated.allocs + allocated.reallocs, bytes: allocated.bytes_allocated };
    outcome
}

fn simulate(scenario: &Scenario, program: &Arc<Program>, options: &RunOptions) -> RunOutcome {
    let runtime = Runtime::with_seed_and_config(scenario.schedule.seed, madsim::Config::default());
    runtime.add_simulator::<Agenda>();
    runtime.add_simulator::<Network>();
    runtime.add_simulator::<Disks>();
    runtime.block_on(async {
        let shared = Arc::new(Shared::new(scenario.clone(), Arc::clone(program), *options));
        schedule(&shared);
        while let Some((_, Entry { process, due })) = Turn::conductor(&shared).await {
            match due {
                Due::Boot => shared.boot(process),
                Due::Fault(fault) => {
                    shared.act(fault, None);
                }
                _ => unreachable!("the conductor is given only starts and faults"),
            }
        }
        let mut outcome = outcome(&shared);
        bury(&shared).await;
        outcome.detail.states = shared.take_states();
        outcome
    })
}

/// Puts the first starts, one after the other, and the faults with a fixed time on the agenda.
fn schedule(shared: &Shared) {
    let mut start = Time(0);
    for process in 0..shared.process_count() {
        let order = shared.boot_offset(process);
        shared.agenda.lock().push(start, 0, Entry { process, due: Due::Boot });
        start = start + order;
    }
    for (index, fault) in shared.scenario.faults.iter().enumerate() {
        if let Trigger::Time(time) = fault.at {
            let entry = Entry { process: 0, due: Due::Fault(index) };
            shared.agenda.lock().push(time, 0, entry);
        }
    }
}

fn outcome(shared: &Shared) -> RunOutcome {
    let mut world = shared.world();
    let record = std::mem::take(&mut world.record);
    let mut outcome = RunOutcome {
        trace: record.trace,
        hash: record.hash,
        events: record.events,
        messages: record.messages,
        end: world.now,
        ended: world.ended.take().unwrap_or_else(|| RunEnd::Stuck { why: "the run was cut".to_owned() }),
        output: std::collections::BTreeMap::new(),
        leftovers: Vec::new(),
        foreign: foreign::harm(&shared.disks.lock()),
        vacuous: (0..world.fired.len()).filter(|&fault| !world.fired[fault]).collect(),
        idle_rates: shared.network.lock().idle_rates(),
        probes: record.probes,
        detail: record.detail,
    };
    for (owner, volume, path, bytes) in shared.disks.lock().files() {
        if volume == Volume::Output {
            outcome.output.insert(path.to_owned(), bytes);
        } else if !foreign::is_foreign(volume, path) {
            outcome.leftovers.push((owner, volume, path.to_owned()));
        }
    }
    outcome
}

/// Ends every task, so that nothing of the run outlives its runtime.
async fn bury(shared: &Shared) {
    let handle = Handle::current();
    for node in shared.nodes() {
        handle.resume(node);
        handle.kill(node);
    }
    madsim::time::sleep(Duration::from_secs(1)).await;
}
