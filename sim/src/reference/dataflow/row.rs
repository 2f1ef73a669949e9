//! A row, and what becomes of one: written anew from the words that describe the job.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// In the order of the output's columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Row {
    pub source: u32,
    pub split: u32,
    pub offset: u32,
    pub key: i64,
    pub value: i64,
    /// How many rows of sources it stands for.
    pub rows: u64,
}

pub const HEADER: &str = "source,split,offset,key,value,rows";

/// The generator of Steele, Lea and Flood.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        for (shift, factor) in [(30, 0xbf58_476d_1ce4_e5b9), (27, 0x94d0_49bb_1331_11eb)] {
            bits ^= bits >> shift;
            bits = bits.wrapping_mul(factor);
        }
        bits ^ (bits >> 31)
    }
}

/// The first number of the generator with this seed.
fn first(seed: u64) -> u64 {
    SplitMix64(seed).next()
}

impl Row {
    /// What stands at a place of a source.
    pub fn at(source: u32, split: u32, offset: u32, keys: u32) -> Self {
        let place = (u64::from(split) << 32) + u64::from(offset);
        let bits = first(first(source.into()) ^ place);
        Self {
            source,
            split,
            offset,
            key: (bits % u64::from(keys)).cast_signed(),
            value: (first(bits) % 1000).cast_signed(),
            rows: 1,
        }
    }

    /// Of the CSV file.
    pub fn line(&self) -> String {
        let Self { source, split, offset, key, value, rows } = self;
        format!("{source},{split},{offset},{key},{value},{rows}")
    }

    /// Of the file of JSON Lines.
    pub fn json(&self) -> String {
        let Self { source, split, offset, key, value, rows } = self;
        format!(
            "{{\"source\":{source},\"split\":{split},\"offset\":{offset},\"key\":{key},\"value\":{value},\"rows\":{rows}}}"
        )
    }

    fn identity(&self) -> (u32, u32, u32) {
        (self.source, self.split, self.offset)
    }
}

pub fn mapped(row: Row) -> Row {
    Row { value: row.value.wrapping_mul(3).wrapping_add(row.key), ..row }
}

pub fn kept(row: &Row) -> bool {
    row.value.rem_euclid(3) > 0
}

pub fn skewed(row: Row) -> Row {
    Row { key: if row.value.rem_euclid(4) > 0 { 0 } else { row.key }, ..row }
}

/// The rows of each key, in the order of their arrival; the keys in the order of their postcard
/// encodings, byte by byte.
pub fn by_key(rows: &[Row]) -> Result<Vec<Vec<Row>>, String> {
    let mut keys: BTreeMap<Vec<u8>, Vec<Row>> = BTreeMap::new();
    for row in rows {
        let key = postcard::to_stdvec(&row.key).map_err(|error| format!("a key: {error}"))?;
        keys.entry(key).or_default().push(*row);
    }
    Ok(keys.into_values().collect())
}

/// Each row of the second input with the first input's values of its key.
pub fn joined(first: &[Row], second: &[Row]) -> Vec<Row> {
    let plus = |row: &Row| {
        let matches = first.iter().filter(|other| other.key == row.key);
        Row { value: matches.fold(row.value, |sum, other| sum.wrapping_add(other.value)), ..*row }
    };
    second.iter().map(plus).collect()
}

/// One row a key, keys in the order of their first rows.
pub fn grouped(rows: &[Row]) -> Vec<Row> {
    let mut groups: Vec<Row> = Vec::new();
    for row in rows {
        let Some(group) = groups.iter_mut().find(|group| group.key == row.key) else {
            groups.push(*row);
            continue;
        };
        if row.identity() < group.identity() {
            (group.source, group.split, group.offset) = row.identity();
        }
        group.value = group.value.wrapping_add(row.value);
        group.rows = group.rows.wrapping_add(row.rows);
    }
    groups
}

pub fn sorted(rows: &[Row], by_value: bool, descending: bool) -> Vec<Row> {
    let mut places: Vec<usize> = (0..rows.len()).collect();
    // The place breaks ties, so no two are equal.
    places.sort_unstable_by_key(|&place| {
        let key = i128::from(if by_value { rows[place].value } else { rows[place].key });
        (if descending { -key } else { key }, place)
    });
    places.into_iter().map(|place| rows[place]).collect()
}

pub fn counted(rows: &[Row]) -> Row {
    let sources = rows.iter().fold(0_u64, |sum, row| sum.wrapping_add(row.rows));
    Row { source: 0, split: 0, offset: 0, key: 0, value: rows.len().cast_signed() as i64, rows: sources }
}

pub fn reduced(rows: &[Row]) -> Option<Row> {
    let (first, others) = rows.split_first()?;
    let value = others.iter().fold(first.value, |value, row| value.wrapping_mul(31).wrapping_add(row.value));
    Some(Row { value, rows: counted(rows).rows, ..*first })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(offset: u32, key: i64, value: i64) -> Row {
        Row { source: 0, split: 0, offset, key, value, rows: 1 }
    }

    /// Worked out outside of this program.
    #[test]
    fn rows_follow_from_their_places() {
        assert_eq!(Row::at(0, 0, 0, 3).line(), "0,0,0,0,433,1");
        assert_eq!(Row::at(0, 1, 1, 16).line(), "0,1,1,2,368,1");
        assert_eq!(Row::at(1, 2, 3, 3).line(), "1,2,3,2,80,1");
    }

    #[test]
    fn rows_are_mapped_and_filtered_by_their_values() {
        assert_eq!(mapped(row(0, 4, 10)), row(0, 4, 34));
        assert!(kept(&row(0, 0, 1)) && kept(&row(0, 0, -1)) && !kept(&row(0, 0, -3)) && !kept(&row(0, 0, 0)));
    }

    #[test]
    fn a_join_gives_every_row_of_the_second_input_what_the_first_has_of_its_key() {
        let (first, second) = ([row(0, 1, 10), row(1, 2, 20), row(2, 1, 5)], [row(3, 1, 1), row(4, 3, 1)]);
        assert_eq!(joined(&first, &second), [row(3, 1, 16), row(4, 3, 1)]);
    }

    #[test]
    fn a_group_stands_where_its_key_first_came_and_has_the_smallest_identity() {
        let rows = [row(5, 2, 1), row(4, 1, 10), row(3, 2, 100)];
        assert_eq!(grouped(&rows), [Row { rows: 2, ..row(3, 2, 101) }, row(4, 1, 10)]);
    }

    #[test]
    fn a_sort_keeps_the_order_within_a_key_in_both_directions() {
        let rows = [row(9, 2, 0), row(3, 1, 0), row(5, 2, 0), row(1, 1, 0)];
        let offsets = |rows: Vec<Row>| rows.iter().map(|row| row.offset).collect::<Vec<_>>();
        assert_eq!(offsets(sorted(&rows, false, false)), [3, 1, 9, 5]);
        assert_eq!(offsets(sorted(&rows, false, true)), [9, 5, 3, 1]);
        let rows = [row(9, 2, 7), row(3, 1, 7), row(5, 2, 8)];
        assert_eq!(offsets(sorted(&rows, true, true)), [5, 9, 3]);
    }

    #[test]
    fn keys_come_in_the_order_of_their_encodings_with_their_rows_as_they_came() {
        // Postcard makes 1 of -1, 2 of 1, 3 of -2 and two bytes, the first above 127, of 64.
        let rows = [row(0, 64, 0), row(1, 1, 0), row(2, -2, 0), row(3, -1, 0), row(4, 1, 0)];
        let offsets = |rows: Vec<Row>| rows.iter().map(|row| row.offset).collect::<Vec<_>>();
        let keys: Vec<Vec<u32>> = by_key(&rows).unwrap().into_iter().map(offsets).collect();
        assert_eq!(keys, [vec![3], vec![1, 4], vec![2], vec![0]]);
    }

    #[test]
    fn a_skewed_row_has_key_0_unless_4_divides_its_value() {
        assert_eq!([row(0, 5, 8), row(0, 5, 9)].map(skewed), [row(0, 5, 8), row(0, 0, 9)]);
    }

    #[test]
    fn a_count_and_a_reduce_stand_for_all_their_rows() {
        let rows = [row(5, 2, 1), Row { rows: 4, ..row(4, 1, 10) }];
        assert_eq!(counted(&rows).line(), "0,0,0,0,2,5");
        assert_eq!(counted(&[]).line(), "0,0,0,0,0,0");
        assert_eq!(reduced(&rows).unwrap().line(), "0,0,5,2,41,5");
        assert_eq!(reduced(&[]), None);
    }
}
