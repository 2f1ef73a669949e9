//! `lineitem-by-ship-date`: filter, by hash of the order, map, rebalance, stable sort of each subtask
//! by ship date, one CSV file for each subtask.

use std::collections::BTreeMap;

use bytes::Bytes;
use revenant::ids::IntermediateDataSetId;

use super::exchange::DataSet;
use super::line_items::{LineItems, csv, part};
use super::rows::Rows;
use super::table::Row;
use super::{Files, ReferenceJob, Shape, Witness, in_order};

const HEADER: &str = "orderkey,linenumber,shipdate,quantity,extendedprice_hundredths,revenue_ten_thousandths";

const EXCHANGES: [IntermediateDataSetId; 2] = [IntermediateDataSetId(0), IntermediateDataSetId(1)];

#[derive(Debug)]
pub struct ByShipDate {
    items: LineItems,
    shape: Shape,
    whole: Rows,
}

impl ByShipDate {
    pub fn new(items: LineItems, shape: &Shape) -> Result<Self, String> {
        if shape.cuts.len() != EXCHANGES.len() {
            return Err("the job does not have two exchanges".to_owned());
        }
        let mut whole = Rows::default();
        for row in items.table.rows().filter(|row| items.keeps(row)) {
            whole.add(format!("{}\n", line(row)).as_bytes());
        }
        Ok(Self { items, shape: shape.clone(), whole })
    }
}

impl ReferenceJob for ByShipDate {
    fn outputs(&self, witness: &Witness) -> Result<Files, String> {
        let [source, map, sort] = witness.vertices.as_slice() else {
            return Err("the job does not have three vertices".to_owned());
        };
        let [to_map, to_sort] = EXCHANGES;
        let read = self.items.read(&source.splits)?;
        let cut = self.shape.subpartitions(to_map, read.len() as u32);
        let mapped = DataSet::by_hash(&read, cut, |row: &&Row| row.orderkey)?.read_all(&map.inputs, 0)?;
        let cut = self.shape.subpartitions(to_sort, mapped.len() as u32);
        let partitions = DataSet::round_robin(&mapped, cut)?.read_all(&sort.inputs, 0)?;
        let file = |(subtask, mut rows): (usize, Vec<&Row>)| {
            rows.sort_by(|a, b| a.shipdate.cmp(&b.shipdate));
            (part(&self.items.output, subtask), csv(HEADER, rows.into_iter().map(line)))
        };
        Ok(partitions.into_iter().enumerate().map(file).collect())
    }

    fn whole(&self, files: &BTreeMap<String, Bytes>) -> Result<(), String> {
        let found = Rows::of_csv(files);
        if found == self.whole {
            return Ok(());
        }
        let (found, expected) = (found.count, self.whole.count);
        Err(format!("the output is not that of the whole table ({found} rows, {expected} expected)"))
    }

    fn in_order(&self, files: &BTreeMap<String, Bytes>) -> Result<(), String> {
        in_order(files.iter(), |line| line.split(',').nth(2)?.parse::<i64>().ok())
    }
}

fn line(row: &Row) -> String {
    let Row { orderkey, linenumber, shipdate, quantity, extendedprice, discount } = row;
    let revenue = extendedprice * (100 - discount);
    format!("{orderkey},{linenumber},{shipdate},{quantity},{extendedprice},{revenue}")
}

#[cfg(test)]
mod tests {
    use revenant::config::JobArguments;
    use revenant::message::IndexRange;

    use super::*;
    use crate::reference::{Cut, VertexWitness};

    fn job() -> ByShipDate {
        let arguments =
            vec![("scale-factor".to_owned(), "0.001".to_owned()), ("splits".to_owned(), "3".to_owned())];
        let job = JobArguments { name: "lineitem-by-ship-date".to_owned(), arguments };
        let cuts = vec![Cut::AllToAll(4), Cut::AllToAll(2)];
        let shape = Shape { splits: vec![Some(3), None, None], cuts };
        ByShipDate::new(LineItems::of(&job).unwrap(), &shape).unwrap()
    }

    /// Two source subtasks, two maps, two sorts.
    fn witness(splits: [&[u32]; 2]) -> Witness {
        let ranges = |ranges: [(u32, u32); 2]| {
            ranges.map(|(from, to)| vec![(IndexRange::new(0, 1), IndexRange::new(from, to))]).to_vec()
        };
        let inner = |inputs| VertexWitness { inputs, splits: vec![vec![], vec![]] };
        let source = VertexWitness { inputs: vec![vec![]; 2], splits: splits.map(<[u32]>::to_vec).to_vec() };
        Witness { vertices: vec![source, inner(ranges([(0, 1), (2, 3)])), inner(ranges([(0, 0), (1, 1)]))] }
    }

    fn bytes(files: Files) -> BTreeMap<String, Bytes> {
        files.into_iter().map(|(path, bytes)| (path, Bytes::from(bytes))).collect()
    }

    #[test]
    fn any_witness_that_consumes_every_split_once_gives_the_whole_table() {
        let job = job();
        for splits in [[&[0_u32, 1][..], &[2]], [&[2], &[1, 0]], [&[], &[0, 1, 2]]] {
            let files = bytes(job.outputs(&witness(splits)).unwrap());
            assert_eq!(files.len(), 2);
            job.whole(&files).unwrap();
        }
        for splits in [[&[0_u32][..], &[2]], [&[2, 1], &[1, 0]]] {
            let files = bytes(job.outputs(&witness(splits)).unwrap());
            job.whole(&files).unwrap_err();
        }
    }

    #[test]
    fn each_file_is_sorted_by_ship_date_and_ties_keep_their_order_of_arrival() {
        let files = job().outputs(&witness([&[0, 1], &[2]])).unwrap();
        let other = job().outputs(&witness([&[2, 1], &[0]])).unwrap();
        let mut ties_differ = false;
        for (path, file) in &files {
            let text = String::from_utf8(file.clone()).unwrap();
            let mut lines = text.lines();
            assert_eq!(lines.next(), Some(HEADER));
            let dates: Vec<&str> = lines.map(|line| line.split(',').nth(2).unwrap()).collect();
            assert!(dates.len() > 1000);
            assert!(dates.is_sorted());
            ties_differ |= other[path] != *file;
        }
        assert!(ties_differ, "the order of the splits should show among equal dates");
    }

    #[test]
    fn a_line_is_exact() {
        let row = Row {
            orderkey: 1,
            linenumber: 2,
            quantity: 17,
            extendedprice: 2_116_823,
            discount: 4,
            shipdate: "1996-03-13".to_owned(),
        };
        assert_eq!(line(&row), "1,2,1996-03-13,17,2116823,203215008");
    }
}
