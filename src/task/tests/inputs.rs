//! What a body sees of its input, and what its task asks of the senders.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::actor::{Effect, TimerId};
use crate::ids::Address;
use crate::message::{
    AddCredit, AddSplit, CloseFetch, FetchRange, IndexRange, Message, NoMoreSplits, OpenFetch,
    PartitionNotFound, RequestSplit, SourceSplit,
};
use crate::task::{BodyError, TaskContext};

use super::bench::{Bench, TM1, TM2, attempt, gate, output, partition};

type Seen = Arc<Mutex<Vec<String>>>;

/// A task that notes each buffer as `gate:text`.
fn reader(gates: Vec<crate::message::InputGateDescriptor>) -> (Bench, Seen) {
    let seen = Seen::default();
    let noted = Arc::clone(&seen);
    let bench = Bench::start(gates, vec![], move |context: TaskContext| {
        let noted = Arc::clone(&noted);
        async move {
            while let Some(buffer) = context.next_buffer().await {
                let text = String::from_utf8(buffer.bytes.to_vec()).unwrap();
                noted.lock().unwrap().push(format!("{}:{text}", buffer.gate));
            }
            Ok::<(), BodyError>(())
        }
    });
    (bench, seen)
}

fn seen(seen: &Seen) -> String {
    seen.lock().unwrap().join(" ")
}

#[test]
fn one_fetch_is_opened_for_each_task_manager_with_its_ranges_in_order() {
    let (mut bench, _) = reader(vec![gate(0, &[TM1, TM2]), gate(1, &[TM2])]);
    let range = |data_set, index| FetchRange {
        partition: partition(data_set, index),
        subpartitions: IndexRange::new(0, 1),
    };
    let open = |fetch, ranges| Message::OpenFetch(OpenFetch { fetch, ranges, start: 0, credit: 4 });
    assert_eq!(
        bench.sent(),
        [
            (Address::shuffle(TM1), open(0, vec![range(0, 0)])),
            (Address::shuffle(TM2), open(1, vec![range(0, 1), range(1, 0)])),
        ]
    );
}

#[test]
fn buffers_of_two_task_managers_are_seen_in_global_order_whatever_comes_first() {
    let (mut bench, noted) = reader(vec![gate(0, &[TM2, TM1, TM2])]);
    bench.buffers(TM1, 1, 0, &[(0, "b")], true);
    assert_eq!(seen(&noted), "", "partition 0 is not here yet");
    bench.buffers(TM2, 0, 0, &[(0, "a1"), (0, "a2"), (1, "c")], true);
    assert_eq!(seen(&noted), "0:a1 0:a2 0:b 0:c");
    let metrics = bench.result().metrics;
    assert_eq!(metrics.bytes_in, 6);
}

#[test]
fn overtaken_and_repeated_messages_change_nothing() {
    let (mut bench, noted) = reader(vec![gate(0, &[TM2])]);
    bench.buffers(TM2, 0, 2, &[(0, "c")], true);
    bench.buffers(TM2, 0, 0, &[(0, "a")], false);
    assert_eq!(seen(&noted), "0:a");
    bench.buffers(TM2, 0, 0, &[(0, "a"), (0, "b")], false);
    assert_eq!(seen(&noted), "0:a 0:b 0:c");
    bench.buffers(TM2, 0, 2, &[(0, "c")], true);
    assert!(bench.ended().unwrap().is_ok());
}

#[test]
fn credit_goes_back_in_halves_and_not_after_the_end() {
    let (mut bench, _) = reader(vec![gate(0, &[TM2])]);
    bench.sent();
    bench.buffers(TM2, 0, 0, &[(0, "a")], false);
    assert_eq!(bench.sent(), []);
    bench.buffers(TM2, 0, 1, &[(0, "b"), (0, "c")], false);
    let credit = Message::AddCredit(AddCredit { fetch: 0, credit: 2 });
    assert_eq!(bench.sent(), [(Address::shuffle(TM2), credit)]);
    bench.buffers(TM2, 0, 3, &[(0, "d"), (0, "e")], true);
    assert!(bench.sent().iter().all(|(_, message)| matches!(message, Message::TaskEnded(_))));
}

#[test]
fn a_partition_that_is_not_there_fails_the_task_and_is_named() {
    let (mut bench, _) = reader(vec![gate(0, &[TM1, TM2])]);
    bench.sent();
    let answer = PartitionNotFound { fetch: 1, partition: partition(0, 1) };
    bench.message(Address::shuffle(TM1), answer.clone());
    assert!(bench.ended().is_none(), "that answer is not from the holder");
    bench.message(Address::shuffle(TM2), answer);
    let sent = bench.sent();
    let closed = Message::CloseFetch(CloseFetch { fetch: 0 });
    assert!(sent.contains(&(Address::shuffle(TM1), closed)), "{sent:?}");
    let Message::TaskEnded(ended) = &sent.last().unwrap().1 else { panic!("{sent:?}") };
    assert_eq!(ended.result.as_ref().unwrap_err().missing, Some(partition(0, 1)));
}

#[test]
fn a_silent_sender_is_asked_again_for_the_rest_and_then_counts_as_lost() {
    let (mut bench, _) = reader(vec![gate(0, &[TM2])]);
    bench.buffers(TM2, 0, 0, &[(0, "a")], false);
    bench.sent();
    bench.timer(10);
    let (to, Message::OpenFetch(open)) = bench.sent().remove(0) else { panic!("no question") };
    assert_eq!((to, open.start, open.credit), (Address::shuffle(TM2), 1, 4));
    bench.timer(40);
    assert_eq!(bench.failure().missing, Some(partition(0, 0)));
}

#[test]
fn progress_keeps_a_sender_from_counting_as_lost() {
    let (mut bench, noted) = reader(vec![gate(0, &[TM2])]);
    bench.timer(45);
    bench.buffers(TM2, 0, 0, &[(0, "a")], false);
    bench.sent();
    bench.timer(9);
    assert!(bench.effects().len() == 1, "only the timer is set again");
    bench.buffers(TM2, 0, 1, &[(0, "b")], true);
    assert!(bench.ended().unwrap().is_ok());
    assert_eq!(seen(&noted), "0:a 0:b");
}

#[test]
fn closed_inputs_are_at_their_end_and_their_senders_are_told() {
    let mut bench = Bench::start(vec![gate(0, &[TM1, TM2])], vec![], |context: TaskContext| async move {
        context.next_buffer().await;
        context.close_inputs();
        assert_eq!(context.next_buffer().await, None);
        Ok(())
    });
    bench.sent();
    bench.buffers(TM1, 0, 0, &[(0, "a")], true);
    let sent = bench.sent();
    let close = Message::CloseFetch(CloseFetch { fetch: 1 });
    assert_eq!(sent[0], (Address::shuffle(TM2), close));
    assert!(matches!(&sent[1].1, Message::TaskEnded(ended) if ended.result.is_ok()), "{sent:?}");
}

#[test]
fn a_stream_that_was_closed_is_not_opened_again_while_output_is_written() {
    let mut bench =
        Bench::start(vec![gate(0, &[TM2])], vec![output(1, 1)], |context: TaskContext| async move {
            for _ in 0..2 {
                context.next_buffer().await;
            }
            context.emit(0, 0, |buffer| buffer.push(1));
            Ok(())
        });
    bench.buffers(TM2, 0, 0, &[(0, "a")], false);
    bench.buffers(TM2, 0, 1, &[(0, "b")], false);
    let close = Message::CloseFetch(CloseFetch { fetch: 0 });
    assert_eq!(bench.sent().last(), Some(&(Address::shuffle(TM2), close)));
    bench.timer(10);
    assert_eq!(bench.effects(), []);
}

#[test]
fn inputs_without_partitions_are_at_their_end_at_once() {
    let (mut bench, _) = reader(vec![gate(0, &[])]);
    assert!(bench.ended().unwrap().is_ok());
}

#[test]
fn each_split_is_read_once_and_a_silent_coordinator_is_asked_again() {
    let noted = Seen::default();
    let inner = Arc::clone(&noted);
    let mut bench = Bench::start(vec![], vec![], move |context: TaskContext| {
        let noted = Arc::clone(&inner);
        async move {
            while let Some(split) = context.next_split().await {
                noted.lock().unwrap().push(split.id.to_string());
            }
            Ok(())
        }
    });
    let request =
        |received| (Address::MASTER, Message::RequestSplit(RequestSplit { attempt: attempt(), received }));
    assert_eq!(bench.sent(), [request(0)]);
    for _ in 0..8 {
        bench.timer(10);
        let effects = bench.effects();
        let again = Effect::SetTimer { timer: TimerId(1), at: bench.now + Duration::from_secs(10) };
        assert!(effects.contains(&again), "at {}: {effects:?}", bench.now);
        let (to, message) = request(0);
        assert!(effects.contains(&Effect::Send { to, message }), "at {}: {effects:?}", bench.now);
    }
    let split = AddSplit { attempt: attempt(), split: SourceSplit { id: 5, payload: bytes::Bytes::new() } };
    bench.message(Address::MASTER, split.clone());
    assert_eq!(bench.sent(), [request(1)]);
    bench.message(Address::MASTER, split);
    assert_eq!(bench.sent(), []);
    bench.message(Address::MASTER, NoMoreSplits { attempt: attempt() });
    assert!(bench.ended().unwrap().is_ok());
    assert_eq!(seen(&noted), "5");
}
