//! What a run costs in processor time, by who handles what. Kept only if the options ask for it;
//! nothing that happens in a run depends on it. Inside a run the standard library's clock shows
//! simulated time, so the system is asked directly.

use std::collections::BTreeMap;
use std::time::Duration;

use revenant::actor::Event;
use revenant::ids::ActorId;
use rustix::time::{ClockId, clock_gettime};

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
    /// From the start of the JobManager's second incarnation until the job runs again, the simulator's
    /// own work included.
    pub recovery: Duration,
    recovering: Option<Moment>,
}

impl Profile {
    pub fn recovery_begins(&mut self) {
        self.recovering = Some(Moment::now());
    }

    pub fn recovery_ends(&mut self) {
        if let Some(since) = self.recovering.take() {
            self.recovery += since.elapsed();
        }
    }

    pub fn add(&mut self, actor: ActorId, kind: &'static str, since: Moment) {
        let cost = self.costs.entry((self.recovering.is_some(), name(actor), kind)).or_default();
        cost.events += 1;
        cost.took += since.elapsed();
    }
}

/// A moment in the processor time of this thread.
#[derive(Clone, Copy, Debug)]
pub struct Moment(Duration);

impl Moment {
    pub fn now() -> Self {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Self(Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap_or_default()))
    }

    fn elapsed(self) -> Duration {
        Self::now().0.saturating_sub(self.0)
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
