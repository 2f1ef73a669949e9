//! How records travel from producers to consumers: dealt to subpartitions by hash or round robin,
//! read by ranges in the order (partition, subpartition). Written from the description of the
//! engine's exchanges, not from their code.

use revenant::message::IndexRange;
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

/// Records by partition (the producer's subtask) and subpartition, in the order of production.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSet<T> {
    partitions: Vec<Vec<Vec<T>>>,
}

impl<T: Clone> DataSet<T> {
    /// By the hash of the key's postcard encoding.
    pub fn by_hash<K: Serialize>(
        producers: &[Vec<T>],
        subpartitions: u32,
        key_of: impl Fn(&T) -> K,
    ) -> Result<Self, String> {
        Self::deal(producers, subpartitions, |_, _, record| {
            let key = postcard::to_stdvec(&key_of(record)).map_err(|error| format!("a key: {error}"))?;
            Ok(xxh3_64(&key) % u64::from(subpartitions))
        })
    }

    /// One subpartition in each partition: of a forward edge, and of a broadcast, where each consumer
    /// reads it.
    pub fn single(producers: &[Vec<T>]) -> Self {
        Self { partitions: producers.iter().map(|records| vec![records.clone()]).collect() }
    }

    /// Rebalance and rescale: round robin; each producer begins at its own index. The two differ in
    /// the number of subpartitions and in who reads them.
    pub fn round_robin(producers: &[Vec<T>], subpartitions: u32) -> Result<Self, String> {
        Self::deal(producers, subpartitions, |producer, nth, _| {
            Ok((producer as u64 + nth as u64) % u64::from(subpartitions))
        })
    }

    /// By the hash of the producer's number and the record's, as little-endian `u64`s.
    pub fn shuffled(producers: &[Vec<T>], subpartitions: u32) -> Result<Self, String> {
        Self::deal(producers, subpartitions, |producer, nth, _| {
            let place = [producer as u64, nth as u64].map(u64::to_le_bytes).concat();
            Ok(xxh3_64(&place) % u64::from(subpartitions))
        })
    }

    /// By a number that a record has, modulo the number of subpartitions.
    pub fn by(
        producers: &[Vec<T>],
        subpartitions: u32,
        number_of: impl Fn(&T) -> u64,
    ) -> Result<Self, String> {
        Self::deal(producers, subpartitions, |_, _, record| Ok(number_of(record) % u64::from(subpartitions)))
    }

    fn deal(
        producers: &[Vec<T>],
        subpartitions: u32,
        choose: impl Fn(usize, usize, &T) -> Result<u64, String>,
    ) -> Result<Self, String> {
        let mut partitions = vec![vec![Vec::new(); subpartitions as usize]; producers.len()];
        for (producer, (records, partition)) in producers.iter().zip(&mut partitions).enumerate() {
            for (nth, record) in records.iter().enumerate() {
                partition[choose(producer, nth, record)? as usize].push(record.clone());
            }
        }
        Ok(Self { partitions })
    }

    /// What a consumer with these ranges gets.
    pub fn read(&self, (partitions, subpartitions): (IndexRange, IndexRange)) -> Result<Vec<T>, String> {
        let mut records = Vec::new();
        for partition in partitions.indices() {
            for subpartition in subpartitions.indices() {
                let found =
                    self.partitions.get(partition as usize).and_then(|all| all.get(subpartition as usize));
                let found =
                    found.ok_or_else(|| format!("there is no subpartition {partition}/{subpartition}"))?;
                records.extend_from_slice(found);
            }
        }
        Ok(records)
    }

    /// What each subtask gets that reads this gate with these ranges.
    pub fn read_all(
        &self,
        inputs: &[Vec<(IndexRange, IndexRange)>],
        gate: usize,
    ) -> Result<Vec<Vec<T>>, String> {
        inputs
            .iter()
            .map(|gates| self.read(*gates.get(gate).ok_or("a subtask has no input ranges")?))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rebalance_deals_in_turn_from_the_producers_own_index() {
        let data = DataSet::round_robin(&[vec![1, 2, 3, 4], vec![5, 6]], 3).unwrap();
        assert_eq!(data.partitions, [[vec![1, 4], vec![2], vec![3]], [vec![], vec![5], vec![6]]]);
    }

    /// The hashes were worked out by another implementation of XXH3.
    #[test]
    fn a_shuffle_deals_by_the_places_of_records_alone() {
        let records: Vec<i32> = (0..8).collect();
        let data = DataSet::shuffled(&[records.clone(), records], 3).unwrap();
        assert_eq!(data.partitions[0], [vec![1, 2, 3], vec![4, 6], vec![0, 5, 7]]);
        assert_eq!(data.partitions[1], [vec![2, 4, 5, 6], vec![0, 3], vec![1, 7]]);
    }

    #[test]
    fn what_goes_by_a_number_goes_to_its_remainder() {
        let data = DataSet::by(&[vec![5, 3, 4]], 3, |number: &u64| *number).unwrap();
        assert_eq!(data.partitions, [[vec![3], vec![4], vec![5]]]);
    }

    #[test]
    fn a_single_subpartition_has_all_records_of_its_producer() {
        let data = DataSet::single(&[vec![1, 2], vec![], vec![3]]);
        assert_eq!(data.partitions, [[vec![1, 2]], [vec![]], [vec![3]]]);
        let (own, all) = (IndexRange::new(2, 2), IndexRange::new(0, 2));
        let only = IndexRange::new(0, 0);
        let inputs = [vec![(only, only), (own, only)], vec![(only, only), (all, only)]];
        assert_eq!(data.read_all(&inputs, 1).unwrap(), [vec![3], vec![1, 2, 3]]);
        assert!(data.read_all(&inputs, 2).is_err());
    }

    #[test]
    fn a_key_is_always_in_one_subpartition_and_all_of_them_are_used() {
        let records: Vec<i64> = (0..100).chain(0..100).collect();
        let data = DataSet::by_hash(&[records], 4, |record| *record).unwrap();
        let mut count = 0;
        for subpartition in &data.partitions[0] {
            let (first, second) = subpartition.split_at(subpartition.len() / 2);
            assert_eq!(first, second);
            assert!(!first.is_empty());
            count += subpartition.len();
        }
        assert_eq!(count, 200);
    }

    #[test]
    fn a_consumer_reads_partition_by_partition_and_in_each_subpartition_by_subpartition() {
        let data = DataSet::round_robin(&[vec![1, 2, 3], vec![4, 5, 6]], 3).unwrap();
        let read =
            |p: (u32, u32), s: (u32, u32)| data.read((IndexRange::new(p.0, p.1), IndexRange::new(s.0, s.1)));
        assert_eq!(read((0, 1), (1, 2)).unwrap(), [2, 3, 4, 5]);
        assert!(read((0, 2), (0, 0)).is_err());
        assert!(read((0, 0), (0, 3)).is_err());
    }
}
