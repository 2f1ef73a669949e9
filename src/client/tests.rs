use super::*;
use crate::actor::Effect;
use crate::config::Configuration;
use crate::ids::FencingToken;
use crate::message::{CommitDecision, JobStatus, JobStatusReport, LeaderChanged, RecordingStatus};

fn client(progress: bool) -> Client {
    let boot = Boot {
        process: ProcessId::Client,
        session: SessionId(3),
        config: Configuration::default(),
        volumes: Vec::new(),
    };
    Client::new(&boot, progress)
}

fn feed(client: &mut Client, event: Event) -> Vec<Effect> {
    let mut out = Outbox::new();
    client.handle(Time(0), event, &mut out);
    out.take()
}

fn changed(result: Option<JobResult>) -> Event {
    let leader = Some(LeaderInfo { process: ProcessId::JOB_MANAGER, token: FencingToken(1) });
    Event::Message { from: Address::HIGH_AVAILABILITY, message: LeaderChanged { leader, result }.into() }
}

fn timer_set(effects: &[Effect]) -> Option<Time> {
    effects.iter().find_map(|effect| match effect {
        Effect::SetTimer { timer: WATCH, at } => Some(*at),
        _ => None,
    })
}

#[test]
fn it_asks_again_soon_until_the_first_answer_and_seldom_after_it() {
    let mut client = client(false);
    let config = Configuration::default();
    let retry = timer_set(&feed(&mut client, Event::Start));
    assert_eq!(retry, Some(Time(0) + config.registration_retry));
    let again = feed(&mut client, Event::Timer(WATCH));
    assert!(matches!(&again[0], Effect::Send { to: Address::HIGH_AVAILABILITY, .. }));
    let answered = timer_set(&feed(&mut client, changed(None)));
    assert_eq!(answered, Some(Time(0) + config.session_timeout));
    assert_eq!(timer_set(&feed(&mut client, Event::Timer(WATCH))), answered);
}

#[test]
fn it_ends_as_the_job_ended() {
    let finished = JobResult::Clean(JobOutcome::Finished { committed: 1, accumulators: [].into() });
    assert_eq!(
        feed(&mut client(false), changed(Some(finished))).last(),
        Some(&Effect::Exit(ExitStatus::Success))
    );
    let failed = JobResult::Clean(JobOutcome::Failed { reason: "no luck".to_owned() });
    assert_eq!(
        feed(&mut client(false), changed(Some(failed))).last(),
        Some(&Effect::Exit(ExitStatus::Failure("no luck".to_owned())))
    );
}

#[test]
fn a_decided_commit_is_not_the_end() {
    let effects = feed(&mut client(false), changed(Some(JobResult::Dirty(CommitDecision::default()))));
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Exit(_))));
}

#[test]
fn only_with_progress_it_asks_the_leader_and_notes_the_answer() {
    let mut quiet = client(false);
    assert_eq!(feed(&mut quiet, Event::Start).len(), 2);
    let mut client = client(true);
    feed(&mut client, Event::Start);
    feed(&mut client, changed(None));
    let asked = feed(&mut client, Event::Timer(PROGRESS));
    assert_eq!(asked[0], Effect::Send { to: Address::MASTER, message: RequestJobStatus {}.into() });
    let recording = RecordingStatus::On;
    let report = JobStatusReport { status: JobStatus::Running, total: 9, finished: 4, running: 2, recording };
    let noted = feed(&mut client, Event::Message { from: Address::MASTER, message: report.into() });
    assert!(matches!(noted[0], Effect::Note(Note::Progress { total: 9, finished: 4, .. })));
}

fn cancels(effects: &[Effect]) -> usize {
    let cancel = Effect::Send { to: Address::MASTER, message: CancelJob {}.into() };
    effects.iter().filter(|effect| **effect == cancel).count()
}

#[test]
fn b50_a_cancel_is_told_to_every_leader_and_again_until_the_job_has_ended() {
    let mut client = client(false);
    let told = Event::Message {
        from: Address::new(ProcessId::Client, ActorId::Client),
        message: CancelJob {}.into(),
    };
    feed(&mut client, Event::Start);
    let early = feed(&mut client, told);
    assert_eq!(cancels(&early), 0, "nobody leads");
    let retry = Time(0) + Configuration::default().registration_retry;
    assert!(early.contains(&Effect::SetTimer { timer: CANCEL, at: retry }));
    for result in [None, None, Some(JobResult::Dirty(CommitDecision::default()))] {
        assert_eq!(cancels(&feed(&mut client, changed(result))), 1);
        assert_eq!(cancels(&feed(&mut client, Event::Timer(CANCEL))), 1);
    }
    let ended = feed(&mut client, changed(Some(JobResult::Clean(JobOutcome::Canceled))));
    assert_eq!(ended.last(), Some(&Effect::Exit(ExitStatus::Canceled)));
    assert_eq!(cancels(&ended), 0);
}

#[test]
fn who_was_not_told_to_cancel_never_does() {
    let mut client = client(true);
    feed(&mut client, Event::Start);
    for event in [changed(None), Event::Timer(WATCH), Event::Timer(PROGRESS)] {
        assert_eq!(cancels(&feed(&mut client, event)), 0);
    }
}
