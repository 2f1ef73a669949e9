//! Leaders that go on, or begin, when a newer one has begun its epoch.

use super::*;

#[test]
fn b7_a_leader_that_goes_on_after_its_files_were_accepted_adds_nothing() {
    let mut old = Fixture::new(Configuration::default());
    old.open(1);
    old.write(1);
    old.tell(FlushJobEvents {});
    let mut new = Fixture::on(old.files);
    new.open(2);
    old.files = std::mem::take(&mut new.files);
    old.cut(2);
    old.cut(3);
    new.files = old.files;
    new.write(1);
    new.tell(FlushJobEvents {});
    assert_eq!(new.names(), ["events.1.0", "events.2.0"]);
    assert_eq!(new.replayed().events, [event(1), event(1)]);
}

/// Whom the writer was told to be replaced by, and what it says to be durable.
fn verdict(fixture: &mut Fixture) -> (Option<u64>, Vec<u64>) {
    let fenced = fixture.told.iter().find_map(|message| match message {
        Message::Fenced(fenced) => Some(fenced.current.0),
        _ => None,
    });
    (fenced, fixture.durable())
}

/// In whichever order the disk does what two leaders ask of it: what the old one calls durable, the new one has read.
#[test]
fn whatever_an_old_leader_calls_durable_the_next_has_read() {
    for before in 0..=3 {
        let mut old = Fixture::new(Configuration::default());
        old.open(1);
        old.write(1);
        // Append, sync and the look at the directory: so many of them come before the new leader does anything.
        let mut due = old.held(message(FlushJobEvents {}));
        for _ in 0..before {
            let (op, action) = due.pop().unwrap();
            let result = old.perform(action);
            due = old.held(Event::Disk { op, result });
        }
        let mut new = Fixture::on(std::mem::take(&mut old.files));
        let read = new.open(2).events.len();
        old.files = new.files;
        while let Some((op, action)) = due.pop() {
            let result = old.perform(action);
            due = old.held(Event::Disk { op, result });
        }
        let expected = if before == 3 { (None, vec![1]) } else { (Some(2), vec![]) };
        assert_eq!(verdict(&mut old), expected, "{before}");
        assert_eq!(read, usize::from(before > 0), "{before}: what is written is read, synced or not");
    }
}

#[test]
fn a_log_that_cannot_be_read_is_tried_again_with_the_same_empty_file() {
    for broken in ["list", "read", "sync"] {
        let mut old = Fixture::new(Configuration::default());
        old.open(1);
        let mut new = Fixture::on(old.files);
        new.broken = Some(broken);
        new.tell(OpenJobEventStore { token: FencingToken(2), fingerprint: 5 });
        new.fire(RETRY);
        new.broken = None;
        new.fire(RETRY);
        assert!(matches!(new.told.last(), Some(Message::JobEventStoreOpened(_))), "{broken}");
        assert_eq!(new.names(), ["events.1.0", "events.2.0"], "{broken}");
    }
}

#[test]
fn a_leader_that_opens_its_log_after_a_newer_one_is_fenced_and_reads_nothing() {
    let mut new = Fixture::new(Configuration::default());
    new.open(2);
    let mut old = Fixture::on(new.files);
    old.tell(OpenJobEventStore { token: FencingToken(1), fingerprint: 5 });
    assert_eq!(old.operations, ["create", "list"]);
    assert_eq!(verdict(&mut old), (Some(2), vec![]));
    assert!(old.timers.is_empty());
}
