//! What the jobs over LINEITEM have in common: their arguments, their rows, CSV.

use revenant::config::JobArguments;

use super::table::{Row, Table};

/// The filtered table.
#[derive(Debug)]
pub struct LineItems {
    pub table: Table,
    quantity_below: i64,
    /// Directory of the output.
    pub output: String,
}

impl LineItems {
    pub fn of(job: &JobArguments) -> Result<Self, String> {
        Ok(Self {
            table: Table::generate(argument(job, "scale-factor", 0.01)?, argument(job, "splits", 4)?),
            quantity_below: argument(job, "quantity-below", 24)?,
            output: argument(job, "output", job.name.clone())?,
        })
    }

    /// Whether the job's filter lets the row through.
    pub fn keeps(&self, row: &Row) -> bool {
        row.quantity < self.quantity_below
    }

    /// What the subtasks of the source send on, by subtask.
    pub fn read(&self, splits: &[Vec<u32>]) -> Result<Vec<Vec<&Row>>, String> {
        let of_subtask = |splits: &Vec<u32>| {
            let mut rows = self.table.of_splits(splits)?;
            rows.retain(|row| self.keeps(row));
            Ok(rows)
        };
        splits.iter().map(of_subtask).collect()
    }
}

pub fn argument<T: std::str::FromStr>(job: &JobArguments, name: &str, default: T) -> Result<T, String> {
    let Some((_, value)) = job.arguments.iter().find(|(known, _)| known == name) else { return Ok(default) };
    value.parse().map_err(|_| format!("argument '{name}' of {}: '{value}' cannot be read", job.name))
}

/// Name of the CSV file of a subtask.
pub fn part(directory: &str, subtask: usize) -> String {
    format!("{directory}/part-{subtask:05}.csv")
}

/// A CSV file whose fields need no quotes.
pub fn csv(header: &str, lines: impl IntoIterator<Item = impl AsRef<str>>) -> Vec<u8> {
    let mut file = format!("{header}\n").into_bytes();
    for line in lines {
        file.extend_from_slice(line.as_ref().as_bytes());
        file.push(b'\n');
    }
    file
}
