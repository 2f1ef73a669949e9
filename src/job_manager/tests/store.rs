//! The JobMaster and an event store that works, fails, is slow, and works again.

use super::*;
use crate::job_event::StoreFailure;
use crate::message::{
    JobEventStoreFailed, JobEventStoreOpened, JobEventStoreRecovered, JobEventsDurable, RecordingStatus,
};

impl Fixture {
    fn store_fails(&mut self, message: &str) {
        let failure = StoreFailure { message: message.to_owned() };
        self.tell(Address::WRITER, JobEventStoreFailed { token: NOW, failure });
    }

    fn store_recovers(&mut self) {
        self.tell(Address::WRITER, JobEventStoreRecovered { token: NOW });
    }

    fn durable_up_to(&mut self, sequence: u64) {
        self.tell(Address::WRITER, JobEventsDurable { token: NOW, sequence });
    }

    /// (sequence, whether the file ends behind it) of the events that were sent to the writer.
    fn written(&self) -> Vec<(u64, bool)> {
        self.sent(|_, message| match message {
            Message::WriteJobEvent(message) => Some((message.sequence, message.cut)),
            _ => None,
        })
    }

    fn warnings(&self) -> Vec<String> {
        let notes = self.effects.iter().filter_map(|effect| match effect {
            Effect::Note(Note::Warning { text }) => Some(text.clone()),
            _ => None,
        });
        notes.collect()
    }

    fn exits(&self) -> bool {
        self.effects.iter().any(|effect| matches!(effect, Effect::Exit(_)))
    }

    fn recording(&mut self) -> RecordingStatus {
        self.tell(Address::executor(ProcessId::Client), crate::message::RequestJobStatus {});
        let mut reports = self.sent(|_, message| match message {
            Message::JobStatusReport(report) => Some(report.recording.clone()),
            _ => None,
        });
        reports.pop().unwrap()
    }
}

fn failing(reason: &str) -> RecordingStatus {
    RecordingStatus::Failing(reason.to_owned())
}

#[test]
fn the_finish_that_completes_a_vertex_ends_the_file_of_the_log_and_no_other_event_does() {
    let mut fixture = Fixture::new(&[]);
    fixture.run_until_sinks();
    // Initialization and both finishes of the source, initialization of the sink.
    assert_eq!(fixture.written(), [(1, false), (2, false), (3, true), (4, false)]);
}

#[test]
fn b10_b11_a_finish_is_recorded_with_its_snapshot_though_a_split_was_never_delivered() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(vec![]);
    fixture.register(TM1, 1, vec![]);
    fixture.register(TM2, 2, vec![]);
    let asked = attempt(SOURCE, 1, NOW);
    fixture.tell(Address::new(TM2, ActorId::Task(asked)), RequestSplit { attempt: asked, received: 0 });
    // The answer gets lost, and with it every word of the TaskManager.
    assert!(fixture.kinds().contains(&"AddSplit"));
    fixture.finish(attempt(SOURCE, 0, NOW));
    let recorded = fixture.recorded();
    let Some(JobEvent::ExecutionVertexFinished { finish, coordinators }) = recorded.last() else {
        panic!("{recorded:?}")
    };
    assert_eq!((finish.attempt, coordinators.len()), (attempt(SOURCE, 0, NOW), 1));
    // A leader that reads it gives the split back to those who are left.
    let mut next = SourceCoordinator::new(&TwoSplits);
    next.reset_to_checkpoint(&coordinators[0].1).unwrap();
    assert_eq!(next.assigned(1).len(), 1);
}

#[test]
fn a_store_of_which_nothing_is_heard_holds_up_nothing_until_the_commit_is_decided() {
    let mut fixture = Fixture::new(&[]);
    fixture.run_until_sinks();
    assert_eq!(fixture.submitted()[2..], [attempt(SINK, 0, NOW), attempt(SINK, 1, NOW)]);
    fixture.finish(attempt(SINK, 0, NOW));
    fixture.finish(attempt(SINK, 1, NOW));
    assert!(fixture.kinds().contains(&"DecideCommit"));
    assert_eq!(fixture.released(), []);
}

#[test]
fn while_the_store_fails_the_job_goes_on_unrecorded_keeps_its_partitions_and_says_so() {
    let mut fixture = Fixture::new(&[]);
    fixture.run_until_sinks();
    assert_eq!(fixture.recording(), RecordingStatus::On);
    fixture.store_fails("no space left");
    assert_eq!(fixture.recording(), failing("no space left"));
    assert!(fixture.warnings().contains(&"job event store: no space left".to_owned()));
    let written = fixture.written().len();
    fixture.finish(attempt(SINK, 0, NOW));
    fixture.finish(attempt(SINK, 1, NOW));
    assert_eq!(fixture.written().len(), written);
    assert_eq!(fixture.released(), []);
    assert!(fixture.kinds().contains(&"DecideCommit"));
    assert!(!fixture.exits());
}

/// Sources finished, the store failed, the first sink finished: sequences up to 5.
fn one_sink_unrecorded() -> Fixture {
    let mut fixture = Fixture::new(&[]);
    fixture.run_until_sinks();
    fixture.durable_up_to(3);
    fixture.store_fails("no space left");
    fixture.finish(attempt(SINK, 0, NOW));
    fixture.effects.clear();
    fixture
}

#[test]
fn a_store_that_works_again_gets_one_base_with_all_that_counts() {
    let mut fixture = one_sink_unrecorded();
    fixture.store_recovers();
    assert_eq!(fixture.kinds(), ["WriteJobEvent", "FlushJobEvents"]);
    assert_eq!(fixture.written(), [(6, false)]);
    let recorded = fixture.recorded();
    let log = crate::scheduler::fold(&recorded, &graph(Arc::new(TwoSplits))).unwrap();
    let finished: Vec<_> = log.finished.values().map(|finish| finish.attempt).collect();
    assert_eq!(finished, [attempt(SOURCE, 0, NOW), attempt(SOURCE, 1, NOW), attempt(SINK, 0, NOW)]);
    assert_eq!(log.initialized.keys().copied().collect::<Vec<_>>(), [SOURCE, SINK]);
    assert_eq!(log.coordinators.keys().copied().collect::<Vec<_>>(), [SOURCE]);
    // A leader that finds the base goes on from there.
    let mut next = Fixture::new(&[]);
    next.lead(recorded);
    next.register(TM1, 1, [0, 1].map(|i| partition(attempt(SOURCE, i, NOW))).into());
    assert_eq!(next.submitted(), [attempt(SINK, 1, NOW)]);
}

#[test]
fn a_base_makes_everything_before_it_durable_and_planned_releases_fire_then() {
    let mut fixture = one_sink_unrecorded();
    fixture.finish_last_sink_and_reset_the_decision();
    fixture.store_recovers();
    assert_eq!(fixture.recording(), failing("no space left"), "not before the base is durable");
    assert_eq!(fixture.released(), []);
    fixture.durable_up_to(7);
    assert_eq!(fixture.recording(), RecordingStatus::On);
    let sources = [0, 1].map(|subtask| partition(attempt(SOURCE, subtask, NOW)).partition);
    assert_eq!(fixture.released(), sources);
}

impl Fixture {
    /// The last sink finishes; the commit is under way.
    fn finish_last_sink_and_reset_the_decision(&mut self) {
        self.finish(attempt(SINK, 1, NOW));
        assert!(self.kinds().contains(&"DecideCommit"));
        self.effects.clear();
    }
}

#[test]
fn a_store_that_fails_with_the_base_is_given_another_one_later() {
    let mut fixture = one_sink_unrecorded();
    fixture.store_recovers();
    fixture.store_fails("the base 6 is longer than a record");
    assert_eq!(fixture.recording(), failing("the base 6 is longer than a record"));
    fixture.store_recovers();
    assert_eq!(fixture.written(), [(6, false), (7, false)]);
    fixture.durable_up_to(7);
    assert_eq!(fixture.recording(), RecordingStatus::On);
    fixture.store_recovers();
    assert_eq!(fixture.written().len(), 2, "who never failed gets no base");
}

#[test]
fn a_store_that_does_not_open_in_time_lets_the_job_start_over_and_gets_a_base_when_it_opens() {
    for fails in [false, true] {
        let mut fixture = Fixture::new(&[]);
        fixture.event(Event::Start);
        fixture.grant(true, None);
        if fails {
            fixture.store_fails("list failed");
        }
        fixture.register(TM1, 1, vec![partition(attempt(SOURCE, 0, OLD))]);
        assert_eq!(fixture.submitted(), [], "it waits");
        fixture.event(Event::Timer(RECOVERY_TIMEOUT));
        let reason = if fails { "list failed" } else { "it did not open within 30s" };
        let warning = format!("the job starts over without its job event store, for now: {reason}");
        assert!(fixture.warnings().contains(&warning), "{:?}", fixture.warnings());
        assert_eq!(fixture.recording(), failing(reason));
        assert_eq!(fixture.submitted(), [attempt(SOURCE, 0, NOW)]);
        assert_eq!(fixture.released(), [partition(attempt(SOURCE, 0, OLD)).partition]);
        assert!(fixture.written().is_empty() && !fixture.exits());
        let replay = Arc::new(Replay { events: sources_finished(), damage: None });
        fixture.tell(Address::WRITER, JobEventStoreOpened { token: NOW, replay });
        let recorded = fixture.recorded();
        assert!(matches!(&recorded[..], [JobEvent::BaseRecorded { finished, .. }] if finished.is_empty()));
    }
}

#[test]
fn a_store_that_opens_at_the_second_try_is_waited_for() {
    let mut fixture = Fixture::new(&[]);
    fixture.event(Event::Start);
    fixture.grant(true, None);
    fixture.store_fails("list failed");
    let replay = Arc::new(Replay { events: sources_finished(), damage: None });
    fixture.tell(Address::WRITER, JobEventStoreOpened { token: NOW, replay });
    assert_eq!(fixture.recording(), RecordingStatus::On);
    fixture.register(TM1, 1, [0, 1].map(|i| partition(attempt(SOURCE, i, OLD))).into());
    assert_eq!(fixture.submitted(), [attempt(SINK, 0, NOW)]);
}

#[test]
fn a_store_that_fails_while_the_leader_recovers_is_not_waited_for() {
    // Before the partitions are known.
    let mut fixture = Fixture::new(&[]);
    fixture.lead(sources_finished());
    fixture.store_fails("no space left");
    fixture.register(TM1, 1, vec![partition(attempt(SOURCE, 0, OLD))]);
    fixture.event(Event::Timer(RECOVERY_TIMEOUT));
    assert_eq!(fixture.submitted(), [attempt(SOURCE, 1, NOW)]);
    // While what was decided is being written.
    let mut fixture = Fixture::new(&[]);
    fixture.lead(sources_finished());
    fixture.register(TM1, 1, vec![partition(attempt(SOURCE, 0, OLD))]);
    fixture.event(Event::Timer(RECOVERY_TIMEOUT));
    assert_eq!(fixture.submitted(), []);
    fixture.store_fails("no space left");
    assert_eq!(fixture.submitted(), [attempt(SOURCE, 1, NOW)]);
    assert!(!fixture.exits());
    fixture.store_recovers();
    let Some(JobEvent::BaseRecorded { finished, .. }) = fixture.recorded().pop() else { panic!() };
    assert_eq!(finished.len(), 1, "what recovery took back is not in the base");
}

#[test]
fn after_the_jobs_end_is_recorded_a_store_that_works_again_gets_nothing() {
    let mut fixture = Fixture::new(&[]);
    fixture.run_until_sinks();
    fixture.store_fails("no space left");
    fixture.master.fail_job("boom", &mut Outbox::new());
    fixture.effects.clear();
    fixture.store_recovers();
    assert!(fixture.effects.is_empty());
}

#[test]
fn a_store_that_hangs_holds_up_no_recovery_for_longer_than_the_recovery_timeout() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(sources_finished());
    fixture.register(TM1, 1, vec![partition(attempt(SOURCE, 0, OLD))]);
    fixture.event(Event::Timer(RECOVERY_TIMEOUT));
    assert_eq!(fixture.submitted(), [], "the reset is not durable");
    fixture.event(Event::Timer(RECOVERY_TIMEOUT));
    assert_eq!(fixture.submitted(), [attempt(SOURCE, 1, NOW)]);
}
