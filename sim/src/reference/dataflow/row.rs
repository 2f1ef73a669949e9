//! A row, and what becomes of one: written anew from the words that describe the job.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::reference::lineage::{Lineage, RecordId, first};

/// In the order of the output's columns.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Row {
    pub source: u32,
    pub split: u32,
    pub offset: u32,
    pub key: i64,
    pub value: i64,
    /// How many rows of sources it stands for.
    pub rows: u64,
    pub lineage: Lineage,
}

pub const HEADER: &str = "source,split,offset,key,value,rows,lineage";

impl Row {
    /// What stands at a place of a source. Lineages are kept as `none` is.
    pub fn at(id: RecordId, keys: u32, none: &Lineage) -> Self {
        let bits = id.hash();
        let (key, value) = ((bits % u64::from(keys)).cast_signed(), (first(bits) % 1000).cast_signed());
        Self::new(id, key, value, 1, none)
    }

    /// The row of a record of a source.
    pub fn new(id: RecordId, key: i64, value: i64, rows: u64, none: &Lineage) -> Self {
        let RecordId { source, split, offset } = id;
        Self { source, split, offset, key, value, rows, lineage: Lineage::of(id, none) }
    }

    /// That of the record that begins its life with this row.
    pub fn id(&self) -> RecordId {
        let Self { source, split, offset, .. } = *self;
        RecordId { source, split, offset }
    }

    /// Of the CSV file.
    pub fn line(&self) -> String {
        let Self { source, split, offset, key, value, rows, lineage } = self;
        format!("{source},{split},{offset},{key},{value},{rows},{lineage}")
    }

    /// Of the file of JSON Lines.
    pub fn json(&self) -> String {
        let Self { source, split, offset, key, value, rows, lineage } = self;
        format!(
            "{{\"source\":{source},\"split\":{split},\"offset\":{offset},\"key\":{key},\"value\":{value},\"rows\":{rows},\
             \"lineage\":\"{lineage}\"}}"
        )
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
        keys.entry(key).or_default().push(row.clone());
    }
    Ok(keys.into_values().collect())
}

/// Each row of the second input with the first input's values of its key.
pub fn joined(first: &[Row], second: &[Row]) -> Vec<Row> {
    let mut of_key: BTreeMap<i64, (i64, Lineage)> = BTreeMap::new();
    for row in first {
        match of_key.get_mut(&row.key) {
            None => drop(of_key.insert(row.key, (row.value, row.lineage.clone()))),
            Some((sum, lineage)) => {
                *sum = sum.wrapping_add(row.value);
                lineage.add(&row.lineage);
            }
        }
    }
    let plus = |row: &Row| {
        let mut row = row.clone();
        if let Some((sum, lineage)) = of_key.get(&row.key) {
            row.value = row.value.wrapping_add(*sum);
            row.lineage.add(lineage);
        }
        row
    };
    second.iter().map(plus).collect()
}

/// One row a key, keys in the order of their first rows.
pub fn grouped(rows: &[Row]) -> Vec<Row> {
    let mut groups: Vec<Row> = Vec::new();
    for row in rows {
        let Some(group) = groups.iter_mut().find(|group| group.key == row.key) else {
            groups.push(row.clone());
            continue;
        };
        if row.id() < group.id() {
            (group.source, group.split, group.offset) = (row.source, row.split, row.offset);
        }
        group.value = group.value.wrapping_add(row.value);
        group.rows = group.rows.wrapping_add(row.rows);
        group.lineage.add(&row.lineage);
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
    places.into_iter().map(|place| rows[place].clone()).collect()
}

pub fn counted(rows: &[Row], none: &Lineage) -> Row {
    let sources = rows.iter().fold(0_u64, |sum, row| sum.wrapping_add(row.rows));
    let lineage = Lineage::sum(none, rows.iter().map(|row| &row.lineage));
    let value = rows.len().cast_signed() as i64;
    Row { source: 0, split: 0, offset: 0, key: 0, value, rows: sources, lineage }
}

pub fn reduced(rows: &[Row], none: &Lineage) -> Option<Row> {
    let (first, others) = rows.split_first()?;
    let value = others.iter().fold(first.value, |value, row| value.wrapping_mul(31).wrapping_add(row.value));
    let Row { rows: sources, lineage, .. } = counted(rows, none);
    Some(Row { value, rows: sources, lineage, ..first.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Lineage = Lineage::Ids(Vec::new());

    fn row(offset: u32, key: i64, value: i64) -> Row {
        Row::new(RecordId { source: 0, split: 0, offset }, key, value, 1, &NONE)
    }

    /// With this lineage.
    fn of(lineage: &str, row: Row) -> Row {
        Row { lineage: lineage.to_owned().try_into().unwrap(), ..row }
    }

    /// Worked out outside of this program.
    #[test]
    fn rows_follow_from_their_places() {
        let at =
            |source, split, offset, keys| Row::at(RecordId { source, split, offset }, keys, &NONE).line();
        assert_eq!(at(0, 0, 0, 3), "0,0,0,0,433,1,0.0.0");
        assert_eq!(at(0, 1, 1, 16), "0,1,1,2,368,1,0.1.1");
        assert_eq!(at(1, 2, 3, 3), "1,2,3,2,80,1,1.2.3");
    }

    #[test]
    fn rows_are_mapped_and_filtered_by_their_values() {
        assert_eq!(mapped(row(0, 4, 10)), row(0, 4, 34));
        assert!(kept(&row(0, 0, 1)) && kept(&row(0, 0, -1)) && !kept(&row(0, 0, -3)) && !kept(&row(0, 0, 0)));
    }

    #[test]
    fn a_join_gives_every_row_of_the_second_input_what_the_first_has_of_its_key() {
        let (first, second) = ([row(0, 1, 10), row(1, 2, 20), row(2, 1, 5)], [row(3, 1, 1), row(4, 3, 1)]);
        assert_eq!(joined(&first, &second), [of("0.0.0+0.0.2+0.0.3", row(3, 1, 16)), row(4, 3, 1)]);
    }

    #[test]
    fn a_group_stands_where_its_key_first_came_and_has_the_smallest_identity() {
        let rows = [row(5, 2, 1), row(4, 1, 10), row(3, 2, 100)];
        let group = Row { rows: 2, ..of("0.0.3+0.0.5", row(3, 2, 101)) };
        assert_eq!(grouped(&rows), [group, row(4, 1, 10)]);
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
        let rows = [row(5, 2, 1), Row { rows: 4, ..of("0.0.4*3+1.0.0", row(4, 1, 10)) }];
        assert_eq!(counted(&rows, &NONE).line(), "0,0,0,0,2,5,0.0.4*3+0.0.5+1.0.0");
        assert_eq!(counted(&[], &NONE).line(), "0,0,0,0,0,0,");
        assert_eq!(reduced(&rows, &NONE).unwrap().line(), "0,0,5,2,41,5,0.0.4*3+0.0.5+1.0.0");
        assert_eq!(reduced(&[], &NONE), None);
    }
}
