//! What a run costs in real time, by who handles what. Kept only if the options ask for it; nothing
//! that happens in a run depends on it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use revenant::actor::Event;
use revenant::ids::ActorId;

/// Where time goes: whether a new leader is recovering, the actor, and what it handles.
pub type Activity = (bool, &'static str, &'static str);

#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    pub events: u64,
    pub took: Duration,
}

#[derive(Clone, Debug, Default)]
pub struct Profile {
    pub costs: BTreeMap<Activity, Cost>,
    /// Real time from the start of the JobManager's second incarnation until the job runs again,
    /// the simulator's own work included.
    pub recovery: Duration,
    recovering: Option<Instant>,
}

impl Profile {
    pub fn recovery_begins(&mut self) {
        self.recovering = Some(Instant::now());
    }

    pub fn recovery_ends(&mut self) {
        if let Some(since) = self.recovering.take() {
            self.recovery += since.elapsed();
        }
    }

    pub fn add(&mut self, actor: ActorId, kind: &'static str, since: Instant) {
        let cost = self.costs.entry((self.recovering.is_some(), name(actor), kind)).or_default();
        cost.events += 1;
        cost.took += since.elapsed();
    }
}

/// What kind of event this is.
pub const fn kind(event: &Event) -> &'static str {
    match event {
        Event::Start => "start",
        Event::Timer(_) => "timer",
        Event::Disk { .. } => "disk",
        Event::Message { message, .. } => message.kind(),
    }
}

fn name(actor: ActorId) -> &'static str {
    match actor {
        ActorId::Master => "master",
        ActorId::Writer => "writer",
        ActorId::Executor => "executor",
        ActorId::Shuffle => "shuffle",
        ActorId::ShuffleWorker => "shuffle worker",
        ActorId::Task(_) => "task",
        ActorId::HighAvailability => "ha",
        ActorId::Client => "client",
    }
}
