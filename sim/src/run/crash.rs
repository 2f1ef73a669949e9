//! Faults carried out, and death of processes: by a fault, together with another, or by their own exit.

use std::time::Duration;

use madsim::runtime::Handle;
use revenant::actor::{ExitStatus, Time};
use revenant::ids::{ActorId, Address, ProcessId};
use revenant::message::{CancelJob, Message, RevokeLeadership};

use super::world::{Patience, ProcessState, Shared};
use crate::agenda::{Due, Entry, ProcessIndex};
use crate::scenario::{
    Action, DiskFault, DiskFaultKind, ProcessFault, ProcessFaultKind, RestartAfter, Span, Trigger,
};
use crate::trace::{RunEnd, TraceKind};

/// How often a process that exits with a failure is started again, when all is healed that will be.
const FAILURES_MAX: u32 = 20;

impl Shared {
    /// Carries out a fault, if that can be; says whether it did.
    pub fn act(&self, fault: usize, point: Option<String>) -> bool {
        match self.scenario.faults[fault].action {
            Action::Crash { process, machine } => {
                let Some(process) = self.fires(fault, process) else { return false };
                self.crash(fault, process, machine, point);
            }
            Action::Process(process) => return self.disturb(fault, process),
            Action::Clock(clock) => return self.change_clock(fault, clock),
            Action::HighAvailability(ha) => {
                let Some(process) = self.fires(fault, ProcessId::HighAvailability) else { return false };
                self.world().trace(process, TraceKind::HaFault(ha));
                let message = RevokeLeadership { successor: ha.successor, notice: ha.notice };
                self.tell(process, ActorId::HighAvailability, message.into());
            }
            Action::Disk(disk) => return self.break_disk(fault, disk),
            Action::Network(network) => return self.break_network(fault, network),
            Action::CancelJob => {
                let Some(client) = self.fires(fault, ProcessId::Client) else { return false };
                self.tell(client, ActorId::Client, CancelJob {}.into());
            }
        }
        true
    }

    /// The process that a fault befalls, if the fault has not fired and the process is alive: then it
    /// has fired.
    fn fires(&self, fault: usize, process: ProcessId) -> Option<ProcessIndex> {
        self.fires_if(fault, process, |state| state.alive)
    }

    /// As [`Self::fires`], of a process that is as the fault needs it.
    pub(super) fn fires_if(
        &self,
        fault: usize,
        process: ProcessId,
        fits: impl Fn(&ProcessState) -> bool,
    ) -> Option<ProcessIndex> {
        let process = self.index_of(process)?;
        let mut world = self.world();
        if world.fired[fault] || !fits(&world.processes[process]) {
            return None;
        }
        world.fired[fault] = true;
        world.record.fold(&("fault", fault as u64));
        world.trace(process, TraceKind::FaultFired { fault });
        Some(process)
    }

    /// A fault of the disk, told of the process that triggers it, or else of the JobManager.
    fn break_disk(&self, fault: usize, disk: DiskFault) -> bool {
        let mut world = self.world();
        if world.fired[fault] {
            return false;
        }
        if matches!(disk.kind, DiskFaultKind::FailOnce { .. }) {
            if !world.armed[fault] {
                world.armed[fault] = true;
                self.disks.lock().arm(fault, disk);
            }
            return true;
        }
        let Some(happening) = self.disks.lock().fault(disk) else { return false };
        world.fired[fault] = true;
        let process = self.scenario.faults[fault].at.process().unwrap_or(ProcessId::JOB_MANAGER);
        let Some(process) = self.index_of(process) else { return false };
        world.record.fold(&("fault", fault as u64));
        world.trace(process, TraceKind::FaultFired { fault });
        world.trace(process, TraceKind::DiskFault(disk));
        if let Some(happening) = happening {
            world.trace(process, happening);
        }
        true
    }

    /// Faults that waited for an operation have met it.
    pub fn disk_struck(&self) {
        let struck = self.disks.lock().take_struck();
        for (fault, process) in struck {
            let Some(process) = self.index_of(process) else { continue };
            let mut world = self.world();
            world.fired[fault] = true;
            world.record.fold(&("fault", fault as u64));
            world.trace(process, TraceKind::FaultFired { fault });
        }
    }

    /// A process dies.
    fn crash(&self, fault: usize, process: ProcessIndex, machine: bool, point: Option<String>) {
        let restart = self.scenario.faults[fault].restart_after;
        let restart = restart.unwrap_or(self.scenario.cluster.restart_after);
        self.end_process(process, machine, TraceKind::Crashed { point, machine });
        if let RestartAfter::After(after) = restart {
            self.restart(process, after);
        }
        self.crash_together(process);
    }

    /// Whoever runs the cluster tells an actor at once.
    fn tell(&self, process: ProcessIndex, actor: ActorId, message: Message) {
        let from = Address::new(ProcessId::Client, ActorId::Client);
        let due = Due::Message { from, sender: process, actor, message };
        let now = self.world().now;
        self.agenda.lock().push(now, 0, Entry { process, due });
    }

    /// The process ends by itself.
    pub fn exit(&self, process: ProcessIndex, status: ExitStatus) {
        let canceled = status == ExitStatus::Canceled;
        let failure = match status {
            ExitStatus::Success | ExitStatus::Canceled => None,
            ExitStatus::Failure(reason) => Some(reason),
        };
        self.end_process(process, false, TraceKind::Exited { failure: failure.clone() });
        let mut world = self.world();
        let is_healed = world.now >= self.last_heal();
        let state = &mut world.processes[process];
        if state.id == ProcessId::Client {
            let end = match failure {
                Some(reason) => RunEnd::Failed { reason },
                None if canceled => RunEnd::Canceled,
                None => RunEnd::Finished,
            };
            world.settle(end, self.patience(), self.last_heal());
        } else if failure.is_some() && state.failures < FAILURES_MAX {
            // As long as it lasts, a fault may make it fail again and again.
            state.failures += u32::from(is_healed);
            drop(world);
            if let RestartAfter::After(after) = self.scenario.cluster.restart_after {
                self.restart(process, after);
            }
        }
    }

    fn patience(&self) -> Patience {
        let silence = self.longest_silence();
        let scenario = &self.scenario;
        let late = scenario.longest_lateness();
        let waits = self.longest_restart() + self.slowest_disk() * 4 + silence + late * 2;
        let misses = |action: &Action| {
            matches!(
                action,
                Action::Network(_)
                    | Action::CancelJob
                    | Action::Clock(_)
                    // Who watches it is not told of the end.
                    | Action::Crash { process: ProcessId::HighAvailability, .. }
                    | Action::Process(ProcessFault { kind: ProcessFaultKind::Pause, .. })
            )
        };
        let misses =
            scenario.network.has_rates() || scenario.faults.iter().any(|fault| misses(&fault.action));
        Patience { worker: if misses { silence + late } else { Duration::ZERO }, waits }
    }

    /// When the last fault heals that does so at a given time, rates of the network among them.
    fn last_heal(&self) -> Time {
        let heals = self.scenario.faults.iter().filter(|fault| fault.action.is_heal());
        let times = heals.filter_map(|fault| match fault.at {
            Trigger::Time(time) => Some(time),
            Trigger::Point(_) | Trigger::CrashOf { .. } | Trigger::Message(_) => None,
        });
        let rates = self.scenario.network.rates_until.map(|Span(until)| Time(0) + until);
        times.chain(rates).max().unwrap_or(Time(0))
    }

    fn longest_restart(&self) -> Duration {
        let scenario = &self.scenario;
        let all = scenario.faults.iter().filter_map(|fault| fault.restart_after);
        let all = all.chain([scenario.cluster.restart_after]).map(|restart| match restart {
            RestartAfter::After(after) => after,
            RestartAfter::Never => Duration::ZERO,
        });
        all.max().unwrap_or_default()
    }

    /// How long the JobManager may wait for somebody who does not answer.
    fn longest_silence(&self) -> Duration {
        let config = &self.config;
        let silence = (config.heartbeat_timeout + config.heartbeat_interval)
            .max(config.registration_retry)
            .max(config.session_timeout / 3);
        // A standby learns of the end when it follows the leader that ended.
        if self.scenario.cluster.job_managers > 1 { silence + config.session_timeout } else { silence }
    }

    /// By how much a fault slows operations of a disk: the JobManager's last ones may meet it.
    fn slowest_disk(&self) -> Duration {
        let faults = self.scenario.faults.iter().filter_map(|fault| match fault.action {
            Action::Disk(DiskFault { kind: DiskFaultKind::Slow(Span(by)), .. }) => Some(by),
            _ => None,
        });
        let disk = &self.scenario.disk;
        faults.max().unwrap_or_default() + disk.latency.max + disk.sync_latency.max
    }

    pub(super) fn restart(&self, process: ProcessIndex, after: Duration) {
        let at = self.world().now + after;
        self.agenda.lock().push(at, 0, Entry { process, due: Due::Boot });
    }

    /// Kills the node and records what its death does to the disks.
    fn end_process(&self, process: ProcessIndex, machine: bool, what: TraceKind) {
        let node = {
            let mut world = self.world();
            let state = &mut world.processes[process];
            state.alive = false;
            state.paused = false;
            let (id, incarnation, node) = (state.id, state.incarnation, state.node);
            tracing::info!(target: "revenant_sim", at = %world.now, process = %id, incarnation, ?what, "process ended");
            let now = world.now;
            world.record.fold(&("end", now, id, incarnation, machine));
            world.trace(process, what);
            world.stirred();
            node
        };
        self.disks.expect_kill(machine);
        if let Some(node) = node {
            Handle::current().kill(node);
        }
        let mut world = self.world();
        for happening in self.disks.take_aftermath() {
            world.disk_happening(process, happening);
        }
    }

    /// Fires the faults that wait for the death of this incarnation.
    fn crash_together(&self, process: ProcessIndex) {
        let (id, number) = {
            let world = self.world();
            (world.processes[process].id, world.processes[process].incarnation)
        };
        for (index, fault) in self.scenario.faults.iter().enumerate() {
            if fault.at == (Trigger::CrashOf { process: id, incarnation: number }) {
                self.act(index, None);
            }
        }
    }
}
