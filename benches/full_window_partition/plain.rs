//! The same work in plain loops, as one would write them by hand: what an engine costs beyond it is
//! the ratio to these.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::ops::Range;
use std::path::Path;

use crate::operators::{BLOCK, Operator};
use crate::records::{Digest, Measured, decode, encode};

/// What is written and read at once.
const PIECE: usize = 256 << 10;

/// What the operator makes of typed records, as a digest.
fn fold<T: Measured>(operator: Operator, records: impl Iterator<Item = T>) -> i64 {
    let mut digest = Digest::default();
    match operator {
        Operator::MapPartition => {
            let mut records = records;
            while let Some(mut block) = records.next() {
                for record in records.by_ref().take(BLOCK - 1) {
                    block = block.merged(record);
                }
                digest.add(&block);
            }
        }
        Operator::SortPartition | Operator::SpillingSortPartition => {
            let mut records: Vec<T> = records.collect();
            records.sort_by_key(T::key);
            for record in &records {
                digest.add(record);
            }
        }
        Operator::Aggregate | Operator::Reduce => {
            if let Some(record) = records.reduce(T::merged) {
                digest.add(&record);
            }
        }
    }
    digest.value()
}

/// Over records that are there.
pub fn typed<T: Measured>(operator: Operator, records: Vec<T>) -> i64 {
    fold(operator, records.into_iter())
}

/// Over encoded records. A sort that spills writes its runs below `directory`.
pub fn encoded<T: Measured>(operator: Operator, mut bytes: &[u8], memory: usize, directory: &Path) -> i64 {
    if operator == Operator::SpillingSortPartition {
        return run_and_merge::<T>(bytes, memory, directory);
    }
    let next = || {
        (!bytes.is_empty()).then(|| {
            let (record, rest) = decode(bytes);
            bytes = rest;
            record
        })
    };
    fold::<T>(operator, std::iter::from_fn(next))
}

/// From the first encoding to the last fold, over a file.
pub fn stage<T: Measured>(
    operator: Operator,
    numbers: Range<u64>,
    memory: usize,
    directory: &Path,
) -> std::io::Result<i64> {
    let path = directory.join("partition");
    let mut file = File::create_new(&path)?;
    let mut bytes = Vec::with_capacity(2 * PIECE);
    for number in numbers {
        encode(&T::new(number), &mut bytes);
        if bytes.len() >= PIECE {
            file.write_all(&bytes)?;
            bytes.clear();
        }
    }
    file.write_all(&bytes)?;
    drop(file);
    let result = if operator == Operator::SpillingSortPartition {
        let bytes = std::fs::read(&path)?;
        run_and_merge::<T>(&bytes, memory, directory)
    } else {
        fold::<T>(operator, FileRecords::open(&path)?)
    };
    std::fs::remove_file(&path)?;
    Ok(result)
}

/// The records of a file, decoded from large pieces of it.
struct FileRecords<T> {
    file: File,
    bytes: Vec<u8>,
    at: usize,
    ended: bool,
    record: std::marker::PhantomData<T>,
}

impl<T> FileRecords<T> {
    fn open(path: &Path) -> std::io::Result<Self> {
        let (file, bytes) = (File::open(path)?, Vec::new());
        Ok(Self { file, bytes, at: 0, ended: false, record: std::marker::PhantomData })
    }
}

/// More than any record of a benchmark is long.
const RECORD_MAX: usize = 64;

impl<T: Measured> Iterator for FileRecords<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        if self.bytes.len() - self.at < RECORD_MAX && !self.ended {
            self.bytes.drain(..self.at);
            self.at = 0;
            let read = (&mut self.file).take(PIECE as u64).read_to_end(&mut self.bytes).expect("a file");
            self.ended = read == 0;
        }
        if self.at == self.bytes.len() {
            return None;
        }
        let (record, rest) = decode(&self.bytes[self.at..]);
        self.at = self.bytes.len() - rest.len();
        Some(record)
    }
}

/// A record in memory, with the place of its encoding.
struct Entry {
    key: i64,
    start: u32,
    length: u32,
}

/// Sorts encoded records by runs of `memory` bytes.
fn run_and_merge<T: Measured>(mut bytes: &[u8], memory: usize, directory: &Path) -> i64 {
    let mut runs = Vec::new();
    let (mut arena, mut entries) = (Vec::new(), Vec::new());
    while !bytes.is_empty() {
        let (record, rest) = decode::<T>(bytes);
        let length = bytes.len() - rest.len();
        if arena.len() + (entries.len() + 1) * size_of::<Entry>() + length > memory {
            runs.push(write_run(&mut arena, &mut entries, runs.len(), directory).expect("a run is written"));
        }
        entries.push(Entry { key: record.key(), start: arena.len() as u32, length: length as u32 });
        arena.extend_from_slice(&bytes[..length]);
        bytes = rest;
    }
    runs.push(write_run(&mut arena, &mut entries, runs.len(), directory).expect("a run is written"));
    drop((arena, entries));
    merge::<T>(&runs)
}

fn write_run(
    arena: &mut Vec<u8>,
    entries: &mut Vec<Entry>,
    number: usize,
    directory: &Path,
) -> std::io::Result<std::path::PathBuf> {
    entries.sort_unstable_by_key(|entry| (entry.key, entry.start));
    let path = directory.join(format!("run-{number}"));
    let mut file = BufWriter::with_capacity(PIECE, File::create_new(&path)?);
    for entry in &*entries {
        file.write_all(&entry.length.to_le_bytes())?;
        file.write_all(&arena[entry.start as usize..(entry.start + entry.length) as usize])?;
    }
    file.flush()?;
    arena.clear();
    entries.clear();
    Ok(path)
}

fn merge<T: Measured>(runs: &[std::path::PathBuf]) -> i64 {
    let mut files: Vec<BufReader<File>> = runs
        .iter()
        .map(|path| BufReader::with_capacity(PIECE, File::open(path).expect("a run is there")))
        .collect();
    let mut encoding = Vec::new();
    let mut next = |run: usize| -> Option<T> {
        let mut length = [0; 4];
        files[run].read_exact(&mut length).ok()?;
        encoding.resize(u32::from_le_bytes(length) as usize, 0);
        files[run].read_exact(&mut encoding).expect("a run is whole");
        Some(decode(&encoding).0)
    };
    let mut records: Vec<Option<T>> = (0..runs.len()).map(&mut next).collect();
    let key = |record: &Option<T>| record.as_ref().map(T::key);
    let mut heads: BinaryHeap<Reverse<(i64, usize)>> =
        records.iter().enumerate().filter_map(|(run, record)| Some(Reverse((key(record)?, run)))).collect();
    let mut digest = Digest::default();
    while let Some(mut head) = heads.peek_mut() {
        let run = head.0.1;
        if let Some(record) = std::mem::replace(&mut records[run], next(run)) {
            digest.add(&record);
        }
        match key(&records[run]) {
            Some(key) => head.0.0 = key,
            None => drop(std::collections::binary_heap::PeekMut::pop(head)),
        }
    }
    for path in runs {
        std::fs::remove_file(path).expect("a run is there");
    }
    digest.value()
}
