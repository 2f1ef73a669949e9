//! A ShuffleWorker driven by hand.

use crate::actor::{DiskOpId, Effect};
use crate::config::{Configuration, ShuffleServiceKind};
use crate::disk::{DirectoryEntry, DiskOp, DiskOutput, Volume};
use crate::ids::{ActorId, ExecutionVertexId, IntermediateDataSetId, JobVertexId};
use crate::message::{
    BufferLocation, GetAndRetainPartitionWithMetrics, HeartbeatRequest, JobOutcome, JobTerminated,
    LeaderInfo, RegisterTaskManager, RegistrationSuccess, ReleasePartitions, WatchLeader,
};

use super::*;

const HERE: ProcessId = ProcessId::ShuffleService(1);
const SHUFFLE: Address = Address::shuffle(HERE);
const EXECUTOR: Address = Address::executor(ProcessId::TaskManager(1));
const SESSION: SessionId = SessionId(11);

struct Bench {
    worker: ShuffleWorker,
    now: Time,
    timers: BTreeMap<TimerId, Time>,
    notes: Vec<Note>,
}

fn attempt(epoch: u64, subtask: u32) -> ExecutionAttemptId {
    let subtask = ExecutionVertexId::new(JobVertexId(0), subtask);
    ExecutionAttemptId { subtask, epoch: FencingToken(epoch), number: 1 }
}

fn id(epoch: u64, subtask: u32) -> ResultPartitionId {
    ResultPartitionId { data_set: IntermediateDataSetId(0), producer: attempt(epoch, subtask) }
}

/// Five bytes of subpartition 1 of 2.
fn finished(epoch: u64, subtask: u32) -> FinishedPartition {
    FinishedPartition {
        partition: id(epoch, subtask),
        path: "../anywhere".to_owned(),
        subpartitions: 2,
        buffers: vec![BufferLocation { subpartition: 1, offset: 0, length: 5 }],
    }
}

fn metrics(epoch: u64, subtask: u32) -> PartitionWithMetrics {
    PartitionWithMetrics { partition: id(epoch, subtask), subpartition_bytes: vec![0, 5] }
}

fn claim(epoch: u64) -> GetAndRetainPartitionWithMetrics {
    GetAndRetainPartitionWithMetrics { token: FencingToken(epoch) }
}

fn drop(partitions: &[ResultPartitionId]) -> (Address, Message) {
    (SHUFFLE, DropPartitions { partitions: partitions.to_vec() }.into())
}

fn accept(epoch: Option<u64>) -> (Address, Message) {
    (SHUFFLE, AcceptPushes { token: epoch.map(FencingToken) }.into())
}

fn report(epoch: u64, partitions: Vec<PartitionWithMetrics>) -> (Address, Message) {
    let report = PartitionReport { token: FencingToken(epoch), session: SESSION, partitions };
    (Address::MASTER, report.into())
}

impl Bench {
    /// One that was started, with `recovery`, where files of an earlier incarnation lie.
    fn start(recovery: bool) -> Self {
        let config = Configuration {
            job_recovery_enabled: recovery,
            shuffle_service: ShuffleServiceKind::External,
            task_slots: 4,
            ..Configuration::default()
        };
        let boot = Boot { process: HERE, session: SESSION, config, volumes: vec![Volume::Local] };
        let (timers, notes) = (BTreeMap::new(), Vec::new());
        Self { worker: ShuffleWorker::new(&boot), now: Time(0), timers, notes }
    }

    /// One that is registered with the leader of epoch 1.
    fn registered(recovery: bool) -> Self {
        let mut bench = Self::start(recovery);
        let effects = bench.event(Event::Start);
        let [Effect::Disk { op, .. }] = effects[..] else { panic!("{effects:?}") };
        bench.event(Event::Disk { op, result: Ok(DiskOutput::Entries(vec![])) });
        bench.lead(1);
        bench
    }

    fn event(&mut self, event: Event) -> Vec<Effect> {
        let mut out = Outbox::new();
        self.worker.handle(self.now, event, &mut out);
        let mut effects = out.take();
        effects.retain(|effect| match effect {
            Effect::SetTimer { timer, at } => {
                self.timers.insert(*timer, *at);
                false
            }
            Effect::CancelTimer { timer } => {
                self.timers.remove(timer);
                false
            }
            Effect::Note(note) => {
                self.notes.push(note.clone());
                false
            }
            _ => true,
        });
        effects
    }

    fn tell(&mut self, from: Address, message: impl Into<Message>) -> Vec<(Address, Message)> {
        sent(self.event(Event::Message { from, message: message.into() }))
    }

    fn leader_changed(&mut self, epoch: Option<u64>) -> Vec<(Address, Message)> {
        let info = |epoch| LeaderInfo { process: ProcessId::JOB_MANAGER, token: FencingToken(epoch) };
        let changed = LeaderChanged { leader: epoch.map(info), result: None };
        self.tell(Address::HIGH_AVAILABILITY, changed)
    }

    fn lead(&mut self, epoch: u64) -> Vec<(Address, Message)> {
        let mut sent = self.leader_changed(Some(epoch));
        let success = RegistrationSuccess { token: FencingToken(epoch), session: SESSION };
        sent.extend(self.tell(Address::MASTER, success));
        sent
    }

    /// A task's partition is registered.
    fn keep(&mut self, epoch: u64, subtask: u32) {
        let attempt = attempt(epoch, subtask);
        let partitions = vec![finished(epoch, subtask)];
        self.tell(EXECUTOR, RegisterPartitions { attempt, partitions });
        let told = self.tell(SHUFFLE, PartitionsRegistered { attempt });
        assert_eq!(told, [(EXECUTOR, PartitionsRegistered { attempt }.into())]);
    }

    fn heartbeat(&mut self, epoch: u64) -> Vec<(Address, Message)> {
        self.tell(Address::MASTER, HeartbeatRequest { token: FencingToken(epoch), attempts: vec![] })
    }

    /// Lets time pass; timers that are due fire, in order.
    fn pass(&mut self, seconds: u64) -> Vec<(Address, Message)> {
        let end = self.now + Duration::from_secs(seconds);
        let mut all = Vec::new();
        while let Some((&timer, &at)) =
            self.timers.iter().filter(|(_, at)| **at <= end).min_by_key(|(_, at)| **at)
        {
            self.timers.remove(&timer);
            self.now = at;
            all.extend(sent(self.event(Event::Timer(timer))));
        }
        self.now = end;
        all.retain(|(_, message)| !matches!(message, Message::WatchLeader(_)));
        all
    }
}

fn sent(effects: Vec<Effect>) -> Vec<(Address, Message)> {
    let message = |effect| match effect {
        Effect::Send { to, message } => Some((to, message)),
        _ => None,
    };
    effects.into_iter().filter_map(message).collect()
}

#[test]
fn it_begins_empty_before_it_looks_for_a_leader_and_offers_no_slots() {
    let mut bench = Bench::start(true);
    let effects = bench.event(Event::Start);
    let [Effect::Disk { op: list, .. }] = effects[..] else { panic!("{effects:?}") };
    let entry = DirectoryEntry { path: "partitions/d0-v0.0.e1a1".to_owned(), length: 5 };
    let effects = bench.event(Event::Disk { op: list, result: Ok(DiskOutput::Entries(vec![entry])) });
    let [Effect::Disk { op: delete, action: DiskOp::Delete { path }, .. }] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!(path, "partitions/d0-v0.0.e1a1");
    let found = sent(bench.event(Event::Disk { op: *delete, result: Ok(DiskOutput::Done) }));
    let watcher = Address::new(HERE, ActorId::ShuffleWorker);
    let watch = WatchLeader { watcher, session: SESSION };
    assert_eq!(found, [(Address::HIGH_AVAILABILITY, watch.into())]);
    let registration = RegisterTaskManager {
        token: FencingToken(1),
        process: HERE,
        session: SESSION,
        slots: 0,
        retains: true,
        holds: false,
        shuffle_service: ShuffleServiceKind::External,
    };
    assert_eq!(bench.lead(1), [accept(Some(1)), (Address::MASTER, registration.into())]);
    assert_eq!(bench.event(Event::Disk { op: DiskOpId(77), result: Ok(DiskOutput::Done) }), []);
}

#[test]
fn a_partition_is_kept_when_the_shuffle_has_it_and_only_then_told_to_be_registered() {
    let mut bench = Bench::registered(true);
    let attempt = attempt(1, 0);
    let asked = RegisterPartitions { attempt, partitions: vec![finished(1, 0)] };
    let path = partition_path(id(1, 0));
    let named = FinishedPartition { path, ..finished(1, 0) };
    let forwarded = RegisterPartitions { attempt, partitions: vec![named] };
    assert_eq!(bench.tell(EXECUTOR, asked.clone()), [(SHUFFLE, forwarded.into())]);
    assert_eq!(bench.tell(Address::MASTER, claim(1)), [report(1, vec![])], "not before it is complete");
    let told = bench.tell(SHUFFLE, PartitionsRegistered { attempt });
    assert_eq!(told, [(EXECUTOR, PartitionsRegistered { attempt }.into())]);
    assert_eq!(bench.tell(Address::MASTER, claim(1)), [report(1, vec![metrics(1, 0)])]);
    bench.tell(EXECUTOR, asked);
    bench.tell(SHUFFLE, PartitionsRegistered { attempt });
    let claimed = || Note::PartitionsClaimed { token: FencingToken(1) };
    assert_eq!(
        bench.notes,
        [claimed(), Note::PartitionFinished { partition: id(1, 0), bytes: 5 }, claimed()]
    );
}

#[test]
fn what_the_shuffle_refuses_is_not_kept_and_the_executor_is_told_why() {
    let mut bench = Bench::registered(true);
    let attempt = attempt(1, 0);
    bench.tell(EXECUTOR, RegisterPartitions { attempt, partitions: vec![finished(1, 0)] });
    let refused = PartitionsRefused { attempt, reason: "it has 0 of the 5 bytes".to_owned() };
    assert_eq!(bench.tell(EXECUTOR, refused.clone()), [], "only the shuffle says that");
    assert_eq!(bench.tell(SHUFFLE, refused.clone()), [(EXECUTOR, refused.into())]);
    assert_eq!(bench.tell(Address::MASTER, claim(1)), [report(1, vec![])]);
}

#[test]
fn partitions_that_cannot_be_are_refused() {
    let mut bench = Bench::registered(true);
    let attempt = attempt(1, 0);
    let right = finished(1, 0);
    let mut gap = right.clone();
    gap.buffers[0].offset = 1;
    let mut beyond = right.clone();
    beyond.buffers[0].subpartition = 2;
    let wide = FinishedPartition { subpartitions: u32::MAX, ..right };
    for wrong in [gap, beyond, wide, finished(1, 1)] {
        let told = bench.tell(EXECUTOR, RegisterPartitions { attempt, partitions: vec![wrong] });
        assert!(matches!(&told[..], [(EXECUTOR, Message::PartitionsRefused(_))]), "{told:?}");
    }
}

#[test]
fn finished_partitions_outlive_their_leader_and_go_to_the_next() {
    let mut bench = Bench::registered(true);
    bench.keep(1, 0);
    let lost = bench.lead(2);
    assert!(lost.contains(&accept(Some(2))) && !lost.contains(&drop(&[id(1, 0)])), "{lost:?}");
    assert_eq!(bench.tell(Address::MASTER, claim(2)), [report(2, vec![metrics(1, 0)])]);
    for _ in 0..10 {
        assert_eq!(bench.pass(40), []);
        assert_eq!(bench.heartbeat(2).len(), 1);
    }
    let release = ReleasePartitions { token: FencingToken(2), partitions: vec![id(1, 0), id(1, 7)] };
    assert_eq!(bench.tell(Address::MASTER, release.clone()), [drop(&[id(1, 0)])]);
    assert_eq!(bench.tell(Address::MASTER, release), [], "once");
}

#[test]
fn what_no_leader_claims_is_dropped_in_time() {
    let mut bench = Bench::registered(true);
    bench.keep(1, 0);
    bench.leader_changed(None);
    assert_eq!(bench.pass(299), []);
    assert_eq!(bench.pass(1), [drop(&[id(1, 0)])]);
}

#[test]
fn an_old_timer_does_not_take_what_a_new_leader_counts_on() {
    let mut bench = Bench::registered(true);
    bench.keep(1, 0);
    bench.lead(2);
    bench.keep(2, 1);
    // The leader of epoch 2 took the service in but never claimed what an earlier one had.
    let mut dropped = Vec::new();
    for _ in 0..8 {
        dropped.extend(bench.pass(40));
        bench.heartbeat(2);
    }
    assert_eq!(dropped, [drop(&[id(1, 0)])]);
    assert_eq!(bench.tell(Address::MASTER, claim(2)), [report(2, vec![metrics(2, 1)])]);
}

#[test]
fn what_is_registered_while_there_is_no_leader_does_not_stay_for_ever() {
    let mut bench = Bench::registered(true);
    bench.leader_changed(None);
    bench.keep(1, 0);
    assert_eq!(bench.pass(300), [drop(&[id(1, 0)])]);
}

#[test]
fn a_leader_that_falls_silent_is_lost_and_its_partitions_are_kept() {
    let mut bench = Bench::registered(true);
    bench.keep(1, 0);
    assert_eq!(bench.pass(51), []);
    assert_eq!(bench.notes.last(), Some(&Note::JobManagerLost { token: FencingToken(1) }));
    bench.lead(1);
    assert_eq!(bench.tell(Address::MASTER, claim(1)), [report(1, vec![metrics(1, 0)])]);
}

#[test]
fn without_job_recovery_partitions_go_with_their_leader() {
    let mut bench = Bench::registered(false);
    bench.keep(1, 0);
    assert_eq!(bench.leader_changed(None)[..2], [drop(&[id(1, 0)]), accept(None)]);
}

#[test]
fn the_jobs_end_takes_everything_and_nothing_is_taken_any_more() {
    for by_service in [false, true] {
        let mut bench = Bench::registered(true);
        bench.keep(1, 0);
        let told = if by_service {
            let outcome = JobOutcome::Failed { reason: String::new() };
            let result = Some(JobResult::Clean(outcome));
            bench.tell(Address::HIGH_AVAILABILITY, LeaderChanged { leader: None, result })
        } else {
            bench.tell(Address::MASTER, JobTerminated { token: FencingToken(1) })
        };
        assert_eq!(told, [drop(&[id(1, 0)]), accept(None)]);
        assert!(bench.timers.is_empty(), "{:?}", bench.timers);
    }
}

#[test]
fn what_the_shuffle_takes_when_the_job_has_ended_does_not_stay() {
    let mut bench = Bench::registered(true);
    let partitions = vec![finished(1, 0)];
    bench.tell(EXECUTOR, RegisterPartitions { attempt: attempt(1, 0), partitions });
    bench.tell(Address::MASTER, JobTerminated { token: FencingToken(1) });
    let told = bench.tell(SHUFFLE, PartitionsRegistered { attempt: attempt(1, 0) });
    let reason = "the job has ended".to_owned();
    let refused = PartitionsRefused { attempt: attempt(1, 0), reason };
    assert_eq!(told, [drop(&[id(1, 0)]), (EXECUTOR, refused.into())]);
    assert!(bench.timers.is_empty(), "{:?}", bench.timers);
}

#[test]
fn b40_partitions_of_attempts_that_did_not_finish_do_not_stay() {
    let mut bench = Bench::registered(true);
    bench.keep(1, 0);
    // Of one the registration's answer was lost, the other was never complete.
    let partitions = vec![id(1, 0), id(1, 1)];
    let told = bench.tell(EXECUTOR, DropPartitions { partitions: partitions.clone() });
    assert_eq!(told, [drop(&partitions)]);
    assert_eq!(bench.tell(Address::MASTER, claim(1)), [report(1, vec![])]);
}

#[test]
fn a_leader_of_the_past_is_not_obeyed() {
    let mut bench = Bench::registered(true);
    bench.keep(1, 0);
    bench.lead(2);
    assert_eq!(bench.tell(Address::MASTER, JobTerminated { token: FencingToken(1) }), []);
    assert_eq!(bench.tell(Address::MASTER, claim(1)), []);
    let release = ReleasePartitions { token: FencingToken(1), partitions: vec![id(1, 0)] };
    assert_eq!(bench.tell(Address::MASTER, release), []);
}
