//! What a run that is cut looks like inside: the state of every actor of every process.

use std::fmt;

use revenant::ids::{ActorId, ProcessId};

use super::process::Process;
use super::world::{Shared, World};
use crate::trace::RunEnd;

/// A process where a run was cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessStates {
    pub process: ProcessId,
    /// 0 before the first start.
    pub incarnation: u32,
    /// `alive`, `paused` or `down`.
    pub life: &'static str,
    /// The actors of a process that is not down, as they print themselves.
    pub actors: Vec<(ActorId, String)>,
}

impl fmt::Display for ProcessStates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}/{}, {}", self.process, self.incarnation, self.life)?;
        for (actor, state) in &self.actors {
            writeln!(f, "  {actor}: {}", state.replace('\n', "\n  "))?;
        }
        Ok(())
    }
}

impl World {
    /// Ends the run here. From now on processes that are dropped leave the state of their actors.
    pub fn cut(&mut self) {
        if self.states.is_some() {
            return;
        }
        let states = self.processes.iter().map(|state| ProcessStates {
            process: state.id,
            incarnation: state.incarnation,
            life: state.life(),
            actors: Vec::new(),
        });
        self.states = Some(states.collect());
        let why = format!("the run was cut after {} events", self.record.events);
        self.stop(RunEnd::Stuck { why });
    }
}

impl Shared {
    pub fn take_states(&self) -> Vec<ProcessStates> {
        self.world().states.take().unwrap_or_default()
    }
}

/// The actors live in the process's task, which is dropped when the run is over.
impl Drop for Process {
    fn drop(&mut self) {
        if self.shared.options.until.is_none() {
            return;
        }
        let mut world = self.shared.world();
        let Some(states) = &mut world.states else { return };
        let all = self.actors.iter().map(|(&id, slot)| (id, format!("{:#?}", slot.actor)));
        states[self.index].actors = all.collect();
    }
}
