//! From one task through a shuffle to the next, with a disk in memory and messages that overtake
//! one another.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;

use crate::actor::{Actor, Boot, Effect, Event, Outbox, Time};
use crate::config::{Configuration, MemorySize};
use crate::disk::{DiskOp, DiskOutput, Volume};
use crate::ids::{ActorId, Address, IntermediateDataSetId, SessionId};
use crate::message::{IndexRange, InputGateDescriptor, RegisterPartitions, ShuffleDescriptor, TaskResult};
use crate::shuffle::ShuffleService;
use crate::task::TaskContext;

use super::bench::{Bench, TM1, attempt, output};

type Files = BTreeMap<String, Vec<u8>>;

fn carry_out(files: &mut Files, action: DiskOp) -> DiskOutput {
    match action {
        DiskOp::CreateNew { path } => assert!(files.insert(path, Vec::new()).is_none()),
        DiskOp::Append { path, bytes } => files.get_mut(&path).unwrap().extend(&bytes),
        DiskOp::ReadRange { path, offset, length } => {
            let range = offset as usize..(offset + length) as usize;
            return DiskOutput::Data(Bytes::copy_from_slice(&files[&path][range]));
        }
        DiskOp::Close { .. } => {}
        other => panic!("{other:?}"),
    }
    DiskOutput::Done
}

/// A task that deals `records` two-byte records to four subpartitions.
fn produce(records: u16, files: &mut Files) -> TaskResult {
    let mut bench = Bench::start(vec![], vec![output(3, 4)], move |context: TaskContext| async move {
        for record in 0..records {
            context.room().await;
            context.emit(0, u32::from(record % 7 % 4), |out| out.extend(record.to_be_bytes()));
        }
        Ok(())
    });
    loop {
        let effects = bench.effects();
        for effect in effects {
            match effect {
                Effect::Disk { op, action, .. } => {
                    let output = carry_out(files, action);
                    bench.disk(op, Ok(output));
                }
                Effect::Send { message: crate::message::Message::TaskEnded(ended), .. } => {
                    return ended.result.unwrap();
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

/// Reads subpartitions 1 and 2; what is under way is delivered in an order drawn from `seed`.
fn consume(produced: &TaskResult, files: &mut Files, mut seed: u64) -> Vec<u16> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let partition = output(3, 4).partition;
    let gate = InputGateDescriptor {
        data_set: IntermediateDataSetId(3),
        partitions: Arc::new(vec![ShuffleDescriptor { partition, location: TM1 }]),
        subpartitions: IndexRange::new(1, 2),
    };
    let mut bench = Bench::start(vec![gate], vec![], move |context: TaskContext| {
        let noted = Arc::clone(&noted);
        async move {
            while let Some(buffer) = context.next_buffer().await {
                let records = buffer.bytes.chunks(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
                noted.lock().unwrap().extend(records);
            }
            Ok(())
        }
    });
    let config = Configuration { segment_size: MemorySize(64), ..Configuration::default() };
    let boot = Boot { process: TM1, session: SessionId(1), config, volumes: vec![Volume::Local] };
    let mut shuffle = ShuffleService::new(&boot);
    let reader = Address::new(TM1, ActorId::Task(attempt()));
    let mut out = Outbox::new();
    let attempt = produced.partitions[0].partition.producer;
    let register = RegisterPartitions { attempt, partitions: produced.partitions.clone() };
    let from = Address::executor(TM1);
    shuffle.handle(Time(0), Event::Message { from, message: register.into() }, &mut out);
    assert_eq!(out.take().len(), 1, "the executor is told");

    let mut under_way: Vec<(bool, Event)> = Vec::new();
    loop {
        for (to_shuffle, effect) in bench
            .effects()
            .into_iter()
            .map(|effect| (true, effect))
            .chain(out.take().into_iter().map(|effect| (false, effect)))
        {
            match effect {
                Effect::Send { message: crate::message::Message::TaskEnded(ended), .. } => {
                    ended.result.unwrap();
                    return seen.lock().unwrap().clone();
                }
                Effect::Send { message, .. } => {
                    let from = if to_shuffle { reader } else { Address::shuffle(TM1) };
                    under_way.push((to_shuffle, Event::Message { from, message }));
                }
                Effect::Disk { op, action, .. } => {
                    let result = Ok(carry_out(files, action));
                    under_way.push((true, Event::Disk { op, result }));
                }
                Effect::SetTimer { .. } | Effect::CancelTimer { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        assert!(!under_way.is_empty(), "the reader waits for nothing");
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (to_shuffle, event) = under_way.remove((seed >> 33) as usize % under_way.len());
        if to_shuffle {
            shuffle.handle(Time(0), event, &mut out);
        } else {
            bench.event(event);
        }
    }
}

#[test]
fn a_reader_sees_its_subpartitions_in_order_whatever_overtakes_what() {
    for records in [0, 3, 100, 3000] {
        let mut files = Files::new();
        let produced = produce(records, &mut files);
        let dealt = |subpartition| (0..records).filter(move |record| record % 7 % 4 == subpartition);
        let expected: Vec<u16> = dealt(1).chain(dealt(2)).collect();
        for seed in 0..20 {
            assert_eq!(consume(&produced, &mut files, seed), expected, "{records} records, seed {seed}");
        }
    }
}
