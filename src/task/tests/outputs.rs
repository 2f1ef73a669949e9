//! How a task writes its partitions.

use crate::disk::{DiskError, DiskErrorKind, DiskOp, Volume};
use crate::message::BufferLocation;
use crate::task::{TaskContext, partition_path};

use super::bench::{Bench, TM2, gate, output};

fn appended(action: DiskOp) -> usize {
    let DiskOp::Append { bytes, .. } = action else { panic!("{action:?}") };
    bytes.len()
}

#[test]
fn a_partition_is_one_file_of_buffers_written_one_append_at_a_time() {
    let mut bench = Bench::start(vec![], vec![output(3, 2)], |context: TaskContext| async move {
        for record in 0..5u8 {
            context.emit(0, u32::from(record % 2), |buffer| buffer.extend([record; 40]));
        }
        Ok(())
    });
    let path = partition_path(output(3, 2).partition);
    assert_eq!(bench.complete_one(), DiskOp::CreateNew { path: path.clone() });
    assert_eq!(appended(bench.complete_one()), 200, "all that is ready goes in one append");
    let effects = bench.effects();
    assert_eq!(effects[0].name(), "partition.close");
    let crate::actor::Effect::Send { message: crate::message::Message::TaskEnded(ended), .. } = &effects[1]
    else {
        panic!("{effects:?}")
    };
    let result = ended.result.as_ref().unwrap();
    let partition = &result.partitions[0];
    assert_eq!((partition.path.clone(), partition.subpartitions), (path, 2));
    let at = |subpartition, offset, length| BufferLocation { subpartition, offset, length };
    assert_eq!(partition.buffers, [at(0, 0, 80), at(1, 80, 80), at(0, 160, 40)]);
    assert_eq!(result.metrics.bytes_out, 200);
}

#[test]
fn what_becomes_ready_during_a_write_waits_for_it() {
    let mut bench =
        Bench::start(vec![gate(0, &[TM2])], vec![output(3, 1)], |context: TaskContext| async move {
            while let Some(buffer) = context.next_buffer().await {
                context.emit(0, 0, |out| out.extend(&buffer.bytes));
            }
            Ok(())
        });
    let text = "x".repeat(64);
    bench.effects();
    bench.buffers(TM2, 0, 0, &[(0, &text)], false);
    let create = bench.operations();
    assert_eq!(create.len(), 1);
    bench.buffers(TM2, 0, 1, &[(0, &text)], false);
    bench.buffers(TM2, 0, 2, &[(0, &text), (0, "tail")], true);
    assert_eq!(bench.operations(), []);
    bench.disk(create[0].0, Ok(crate::disk::DiskOutput::Done));
    assert_eq!(appended(bench.complete_one()), 3 * 64 + 4);
    assert!(bench.ended().unwrap().is_ok());
}

#[test]
fn an_empty_partition_needs_no_file() {
    let mut bench = Bench::start(vec![], vec![output(3, 2)], |_| async { Ok(()) });
    let partition = bench.result().partitions.remove(0);
    assert_eq!((partition.buffers.len(), partition.subpartitions), (0, 2));
}

#[test]
fn a_body_waits_for_room_while_too_much_is_unwritten() {
    let mut bench = Bench::start(vec![], vec![output(3, 1)], |context: TaskContext| async move {
        for _ in 0..10 {
            context.room().await;
            context.emit(0, 0, |out| out.extend([0; 64]));
        }
        Ok(())
    });
    assert_eq!(bench.complete_one().kind(), "create");
    assert_eq!(appended(bench.complete_one()), 5 * 64, "one buffer above the limit of four");
    assert_eq!(appended(bench.complete_one()), 5 * 64);
    assert!(bench.ended().unwrap().is_ok());
}

#[test]
fn a_failed_write_fails_the_task() {
    let mut bench =
        Bench::start(vec![gate(0, &[TM2])], vec![output(3, 1)], |context: TaskContext| async move {
            context.emit(0, 0, |out| out.extend([0; 64]));
            context.next_buffer().await;
            Ok(())
        });
    let (op, action) = bench.operations().remove(0);
    let error = DiskError {
        kind: DiskErrorKind::Full,
        operation: action.kind().to_owned(),
        volume: Volume::Local,
        path: action.path().to_owned(),
        message: "no space".to_owned(),
    };
    bench.disk(op, Err(error));
    let failure = bench.failure();
    assert!(failure.message.contains("no space"), "{failure:?}");
    assert_eq!(failure.missing, None);
}
