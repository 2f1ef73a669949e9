//! `lineitem-totals`: totals of the filtered table, twice: summed up from each subtask's `aggregate`
//! and from each subtask's `reduce`. Sums do not depend on the witness but for what was consumed.

use std::collections::BTreeMap;

use bytes::Bytes;
use revenant::ids::JobVertexId;

use super::line_items::{LineItems, csv, part};
use super::table::Row;
use super::{Counting, Files, ReferenceJob, Witness};

const HEADER: &str = "rows,quantity,extendedprice_hundredths,discount_hundredths";

#[derive(Debug)]
pub struct TotalsOfTable {
    items: LineItems,
    /// Output of the whole table.
    whole: Files,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Totals {
    rows: i64,
    quantity: i64,
    extendedprice: i64,
    discount: i64,
}

impl Totals {
    fn of<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Self {
        rows.into_iter().fold(Self::default(), |sum, row| Self {
            rows: sum.rows + 1,
            quantity: sum.quantity + row.quantity,
            extendedprice: sum.extendedprice + row.extendedprice,
            discount: sum.discount + row.discount,
        })
    }

    /// Both files; without any row an aggregate says zero and a reduce says nothing (FLIP-380).
    fn files(self, output: &str) -> Files {
        let line = format!("{},{},{},{}", self.rows, self.quantity, self.extendedprice, self.discount);
        let reduced = (self.rows > 0).then_some(&line);
        Files::from([
            (part(&format!("{output}/aggregate"), 0), csv(HEADER, [&line])),
            (part(&format!("{output}/reduce"), 0), csv(HEADER, reduced)),
        ])
    }
}

impl TotalsOfTable {
    pub fn new(items: LineItems) -> Self {
        let whole = Totals::of(items.table.rows().filter(|row| items.keeps(row))).files(&items.output);
        Self { items, whole }
    }
}

impl ReferenceJob for TotalsOfTable {
    fn outputs(&self, witness: &Witness) -> Result<Files, String> {
        let source = witness.vertices.first().ok_or("the job has no vertices")?;
        let read = self.items.read(&source.splits)?;
        Ok(Totals::of(read.into_iter().flatten()).files(&self.items.output))
    }

    fn whole(&self, files: &BTreeMap<String, Bytes>) -> Result<(), String> {
        match self.whole.iter().find(|(path, bytes)| files.get(*path).is_none_or(|file| file != *bytes)) {
            Some((path, _)) => Err(format!("{path} does not have the totals of the whole table")),
            None => Ok(()),
        }
    }

    /// The first vertex after the source is the `aggregate`: without rows it says zero.
    fn counting(&self, vertex: JobVertexId) -> Counting {
        Counting { of_nothing: vertex == JobVertexId(1), ..Counting::default() }
    }
}

#[cfg(test)]
mod tests {
    use revenant::config::JobArguments;

    use super::*;
    use crate::reference::VertexWitness;

    fn job(quantity_below: &str) -> TotalsOfTable {
        let arguments = [("scale-factor", "0.001"), ("splits", "3"), ("quantity-below", quantity_below)];
        let arguments = arguments.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let job = JobArguments { name: "lineitem-totals".to_owned(), arguments };
        TotalsOfTable::new(LineItems::of(&job).unwrap())
    }

    fn outputs(job: &TotalsOfTable, splits: &[u32]) -> BTreeMap<String, Bytes> {
        let source = VertexWitness { inputs: vec![vec![]], splits: vec![splits.to_vec()] };
        let files = job.outputs(&Witness { vertices: vec![source] }).unwrap();
        files.into_iter().map(|(path, bytes)| (path, Bytes::from(bytes))).collect()
    }

    #[test]
    fn every_split_once_gives_the_totals_of_the_table_and_nothing_else_does() {
        let job = job("24");
        job.whole(&outputs(&job, &[2, 0, 1])).unwrap();
        job.whole(&outputs(&job, &[2, 0])).unwrap_err();
        job.whole(&outputs(&job, &[2, 0, 1, 1])).unwrap_err();
        let files = outputs(&job, &[0, 1, 2]);
        assert_eq!(
            files["lineitem-totals/aggregate/part-00000.csv"],
            files["lineitem-totals/reduce/part-00000.csv"]
        );
    }

    #[test]
    fn without_rows_aggregate_says_zero_and_reduce_nothing() {
        let files = outputs(&job("1"), &[0, 1, 2]);
        assert_eq!(
            files["lineitem-totals/aggregate/part-00000.csv"],
            format!("{HEADER}\n0,0,0,0\n").as_bytes()
        );
        assert_eq!(files["lineitem-totals/reduce/part-00000.csv"], format!("{HEADER}\n").as_bytes());
    }
}
