//! How a task ends, once.

use bytes::Bytes;

use crate::actor::{Event, Purpose};
use crate::disk::{DiskOp, DiskOutput, Volume};
use crate::message::Committable;
use crate::task::{BodyError, TaskContext};

use super::bench::{Bench, TM2, gate, output};

#[test]
fn b49_a_panic_fails_the_task_with_vertex_subtask_attempt_and_message() {
    let mut bench = Bench::start(vec![], vec![], |_| async { panic!("key {} is odd", 3) });
    assert_eq!(bench.failure().message, "Vertex 1 (subtask 0, attempt v1.0.e1a1): panicked: key 3 is odd");
}

#[test]
fn an_error_of_an_operator_fails_the_task() {
    let mut bench = Bench::start(vec![], vec![], |_| async {
        Err(BodyError { operator: "parse".to_owned(), message: "not a number".to_owned() })
    });
    assert!(bench.failure().message.ends_with("operator 'parse': not a number"));
}

#[test]
fn a_graph_with_another_fingerprint_is_refused() {
    let mut bench = Bench::start_with_fingerprint(8, vec![], vec![], |_| async { Ok(()) });
    let message = bench.failure().message;
    assert!(message.contains("start all processes from the same program"), "{message}");
}

#[test]
fn a_misuse_of_an_output_fails_the_task() {
    let mut bench = Bench::start(vec![], vec![output(3, 1)], |context: TaskContext| async move {
        context.emit(0, 1, |out| out.push(0));
        Ok(())
    });
    assert!(bench.failure().message.contains("index out of bounds"));
}

#[test]
fn a_failed_task_ends_only_when_its_writes_are_complete() {
    let mut bench =
        Bench::start(vec![gate(0, &[TM2])], vec![output(3, 1)], |context: TaskContext| async move {
            context.emit(0, 0, |out| out.extend([0; 64]));
            context.next_buffer().await;
            panic!("now")
        });
    let (create, _) = bench.operations().remove(0);
    bench.buffers(TM2, 0, 0, &[(0, "a")], true);
    assert!(bench.ended().is_none(), "a file that appears later could not be deleted");
    bench.disk(create, Ok(DiskOutput::Done));
    assert!(bench.ended().unwrap().is_err());
}

#[test]
fn a_task_that_ended_is_inert() {
    let mut bench = Bench::start(vec![gate(0, &[TM2])], vec![], |context: TaskContext| async move {
        context.next_buffer().await;
        Ok(())
    });
    bench.buffers(TM2, 0, 0, &[(0, "a")], false);
    assert!(bench.ended().unwrap().is_ok());
    bench.buffers(TM2, 0, 1, &[(7, "b")], false);
    bench.timer(1000);
    bench.event(Event::Start);
    assert_eq!(bench.effects(), []);
}

#[test]
fn a_sink_writes_files_and_leaves_committables() {
    let committable = Committable { pending: ".pending/a".to_owned(), target: "a".to_owned() };
    let wanted = committable.clone();
    let mut bench = Bench::start(vec![], vec![], move |context: TaskContext| {
        let wanted = wanted.clone();
        async move {
            let fails = |error: crate::disk::DiskError| BodyError {
                operator: "sink".to_owned(),
                message: error.to_string(),
            };
            context.create(Volume::Output, Purpose::Sink, &wanted.pending).await.map_err(fails)?;
            let bytes =
                context.read(Volume::Output, Purpose::Sink, &wanted.pending, 0, 9).await.map_err(fails)?;
            context.append(Volume::Output, Purpose::Sink, "log", bytes).await.map_err(fails)?;
            context.add_committable(wanted);
            context.count_records_in(2);
            Ok(())
        }
    });
    assert_eq!(bench.complete_one(), DiskOp::CreateNew { path: ".pending/a".to_owned() });
    let (read, _) = bench.operations().remove(0);
    bench.disk(read, Ok(DiskOutput::Data(Bytes::from_static(b"read"))));
    let append = DiskOp::Append { path: "log".to_owned(), bytes: Bytes::from_static(b"read") };
    assert_eq!(bench.complete_one(), append);
    let result = bench.result();
    assert_eq!((result.committables, result.metrics.records_in), (vec![committable], 2));
}

#[test]
fn an_absurd_number_of_subpartitions_is_refused() {
    let mut bench = Bench::start(vec![], vec![output(3, u32::MAX)], |_| async { Ok(()) });
    assert!(bench.failure().message.contains("4294967295 subpartitions, more than 32768"));
}

#[test]
fn a_stopped_body_may_panic_in_a_destructor() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("at the end, too")
        }
    }
    let bench = Bench::start(vec![gate(0, &[TM2])], vec![], |context: TaskContext| async move {
        let _bomb = Bomb;
        context.next_buffer().await;
        Ok(())
    });
    drop(bench);
}
