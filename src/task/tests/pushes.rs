//! How a task pushes its partitions to a shuffle service.

use crate::actor::Effect;
use crate::ids::{Address, ProcessId, ResultPartitionId};
use crate::message::{DataPushed, Message, PushData, PushRefused, ResultPartitionDescriptor};
use crate::task::TaskContext;

use super::bench::{Bench, TM2, gate, output};

const SERVICE: ProcessId = ProcessId::ShuffleService(1);
const SHUFFLE: Address = Address::shuffle(SERVICE);

fn remote(subpartitions: u32) -> ResultPartitionDescriptor {
    ResultPartitionDescriptor { location: SERVICE, ..output(3, subpartitions) }
}

fn id() -> ResultPartitionId {
    remote(1).partition
}

/// A task that emits `records` records of 40 bytes and ends.
fn producer(records: u8) -> Bench {
    Bench::start(vec![], vec![remote(2)], move |context: TaskContext| async move {
        for record in 0..records {
            context.room().await;
            context.emit(0, u32::from(record % 2), |buffer| buffer.extend([record; 40]));
        }
        Ok(())
    })
}

/// What was pushed since the last look: offset and length.
fn pushes(effects: &[Effect]) -> Vec<(u64, usize)> {
    let push = |effect: &Effect| match effect {
        Effect::Send { to, message: Message::PushData(PushData { partition, offset, bytes }) } => {
            assert_eq!((*to, *partition), (SHUFFLE, id()));
            Some((*offset, bytes.len()))
        }
        Effect::Disk { .. } => panic!("{effect:?}"),
        _ => None,
    };
    effects.iter().filter_map(push).collect()
}

fn pushed(bench: &mut Bench, length: u64) {
    bench.message(SHUFFLE, DataPushed { partition: id(), length });
}

#[test]
fn output_is_pushed_to_the_service_and_ends_with_it_there() {
    let mut bench = producer(5);
    assert_eq!(pushes(&bench.effects()), [(0, 200)]);
    bench.message(Address::shuffle(TM2), DataPushed { partition: id(), length: 200 });
    pushed(&mut bench, 100);
    assert!(bench.ended().is_none(), "of another process, and of another push");
    pushed(&mut bench, 200);
    let result = bench.result();
    assert_eq!(result.metrics.bytes_out, 200);
    assert_eq!(result.partitions[0].buffers.len(), 3);
}

#[test]
fn at_most_one_push_is_under_way_and_it_is_bounded() {
    let mut bench = producer(100);
    let effects = bench.effects();
    let mut at = 0;
    let mut under_way = pushes(&effects);
    while let Some((offset, length)) = under_way.pop() {
        assert!(under_way.is_empty() && offset == at && length <= 8 * 64, "{offset} {length}");
        at += length as u64;
        bench.message(SHUFFLE, DataPushed { partition: id(), length: at });
        let effects = bench.effects();
        under_way = pushes(&effects);
        if under_way.is_empty() {
            assert!(matches!(effects.last(), Some(Effect::Send { message: Message::TaskEnded(_), .. })));
        }
    }
    assert_eq!(at, 4000);
}

#[test]
fn a_body_waits_for_room_while_too_much_is_not_written_by_the_service() {
    let mut bench = producer(100);
    // Four buffers of 64 bytes have room, and the push under way counts.
    let first = pushes(&bench.effects())[0].1;
    assert!(first <= 4 * 64 + 80, "{first}");
    bench.timer(1);
    assert_eq!(pushes(&bench.effects()), []);
}

#[test]
fn a_silent_service_is_asked_again_and_then_given_up() {
    let mut bench = producer(5);
    assert_eq!(pushes(&bench.effects()), [(0, 200)]);
    for _ in 0..6 {
        bench.timer(10);
        assert_eq!(pushes(&bench.effects()), [(0, 200)]);
    }
    bench.timer(10);
    let failure = bench.failure();
    let expected = format!("no answer from shuffle-service-1, to which partition {} is pushed", id());
    assert!(failure.message.ends_with(&expected), "{failure:?}");
    assert_eq!(failure.missing, None);
}

#[test]
fn an_answer_ends_the_silence_and_one_that_comes_twice_does_no_harm() {
    let mut bench = producer(20);
    let first = pushes(&bench.effects())[0].1 as u64;
    bench.timer(10);
    assert_eq!(pushes(&bench.effects()).len(), 1);
    pushed(&mut bench, first);
    let (offset, length) = pushes(&bench.effects())[0];
    assert_eq!(offset, first);
    pushed(&mut bench, first);
    assert_eq!(bench.effects(), []);
    pushed(&mut bench, offset + length as u64);
    assert!(!bench.effects().is_empty());
}

#[test]
fn a_refused_push_fails_the_task_unless_it_is_an_old_one() {
    let mut bench = Bench::start(vec![gate(0, &[TM2])], vec![remote(1)], |context: TaskContext| async move {
        context.emit(0, 0, |out| out.extend([0; 64]));
        context.next_buffer().await;
        Ok(())
    });
    assert_eq!(pushes(&bench.effects()), [(0, 64)]);
    let refused = |offset| PushRefused { partition: id(), offset, reason: "no space".to_owned() };
    bench.message(SHUFFLE, refused(64));
    bench.message(Address::shuffle(TM2), refused(0));
    assert!(bench.ended().is_none());
    bench.message(SHUFFLE, refused(0));
    let failure = bench.failure();
    assert!(failure.message.ends_with("no space"), "{failure:?}");
}

#[test]
fn a_task_that_fails_does_not_wait_for_the_service() {
    let mut bench = Bench::start(vec![gate(0, &[TM2])], vec![remote(1)], |context: TaskContext| async move {
        context.emit(0, 0, |out| out.extend([0; 64]));
        context.next_buffer().await;
        panic!("now")
    });
    bench.buffers(TM2, 0, 0, &[(0, "a")], true);
    assert!(bench.failure().message.ends_with("now"));
}
