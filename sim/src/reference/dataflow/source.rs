//! The rows of each split of a source, read from the words of the plan and from the scenario's files:
//! CSV, JSON and lines by readers of this file's own, which know as much of them as rows need.

use super::plan::{Format, Origin};
use super::row::Row;
use crate::reference::lineage::{Lineage, RecordId};
use crate::scenario::Input;

/// By split. `number` is the source's; lineages are kept as `none` is.
pub fn splits(
    number: u32,
    origin: &Origin,
    inputs: &[Input],
    none: &Lineage,
) -> Result<Vec<Vec<Row>>, String> {
    match origin {
        Origin::Made { splits, keys, in_sequence, .. } => {
            let mut before = 0;
            let rows = |(split, &count): (u32, &u32)| {
                let (split, from) = if *in_sequence { (0, before) } else { (split, 0) };
                before += count;
                let id = |offset| RecordId { source: number, split, offset };
                (from..from + count).map(|offset| Row::at(id(offset), *keys, none)).collect()
            };
            Ok((0..).zip(splits).map(rows).collect())
        }
        Origin::Files { format, path, split_bytes, keys } => {
            let mut splits = Vec::new();
            for file in Input::below(inputs, path) {
                let mut reader = Reader { number, format: *format, keys: *keys, none, splits: &mut splits };
                let read = reader.read(&file.content(), *split_bytes);
                read.map_err(|error| format!("{}: {error}", file.path))?;
            }
            Ok(splits)
        }
    }
}

/// Reads the files of a source one after the other.
struct Reader<'a> {
    number: u32,
    format: Format,
    keys: u32,
    none: &'a Lineage,
    splits: &'a mut Vec<Vec<Row>>,
}

impl Reader<'_> {
    /// A line is of the split in which its first byte is.
    fn read(&mut self, text: &str, split_bytes: usize) -> Result<(), String> {
        let before = self.splits.len();
        self.splits.resize_with(before + text.len().div_ceil(split_bytes), Vec::new);
        let mut offset = 0;
        let mut columns: Option<Vec<String>> = None;
        for raw in text.split_inclusive('\n') {
            let split = before + offset / split_bytes;
            let line = if offset == 0 { raw.strip_prefix('\u{feff}').unwrap_or(raw) } else { raw };
            offset += raw.len();
            let line = line.strip_suffix('\n').unwrap_or(line);
            let line = line.strip_suffix('\r').unwrap_or(line);
            let row = match self.format {
                Format::Text => self.of_text(split, line),
                Format::Csv => match &columns {
                    None => {
                        columns = Some(fields(line)?);
                        continue;
                    }
                    Some(_) if line.is_empty() => continue,
                    Some(columns) => record(columns.iter().cloned().zip(fields(line)?), self.none)?,
                },
                Format::JsonLines if line.trim().is_empty() => continue,
                Format::JsonLines => record(members(line)?.into_iter(), self.none)?,
            };
            self.splits[split].push(row);
        }
        Ok(())
    }

    /// The next line of a split.
    fn of_text(&self, split: usize, line: &str) -> Row {
        let mut value: i64 = 0;
        for &byte in line.as_bytes() {
            value = value.wrapping_mul(31).wrapping_add(byte.into());
        }
        let key = line.len().cast_signed() as i64 % i64::from(self.keys);
        let offset = self.splits[split].len() as u32;
        let id = RecordId { source: self.number, split: split as u32, offset };
        Row::new(id, key, value, 1, self.none)
    }
}

/// The fields of a line of CSV without line breaks in them.
fn fields(line: &str) -> Result<Vec<String>, String> {
    let mut fields = Vec::new();
    let mut rest = line;
    loop {
        let field;
        (field, rest) = if let Some(mut quoted) = rest.strip_prefix('"') {
            let mut field = String::new();
            loop {
                let (text, behind) = quoted.split_once('"').ok_or("a quote is not closed")?;
                field.push_str(text);
                quoted = behind;
                let Some(behind) = quoted.strip_prefix('"') else { break };
                field.push('"');
                quoted = behind;
            }
            (field, quoted)
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            (rest[..end].to_owned(), &rest[end..])
        };
        fields.push(field);
        match rest.strip_prefix(',') {
            Some(next) => rest = next,
            None if rest.is_empty() => return Ok(fields),
            None => return Err(format!("'{rest}' stands behind a quote")),
        }
    }
}

/// The members of a JSON object of numbers and plain texts.
pub fn members(line: &str) -> Result<Vec<(String, String)>, String> {
    let inner = line.trim().strip_prefix('{').and_then(|line| line.strip_suffix('}'));
    let inner = inner.ok_or_else(|| format!("'{line}' is no object"))?;
    let text = |text: &str| text.trim().trim_matches('"').to_owned();
    let member = |member: &str| {
        let (name, value) = member.split_once(':').ok_or_else(|| format!("'{member}' is no member"))?;
        Ok((text(name), text(value)))
    };
    inner.split(',').map(member).collect()
}

/// The row that a record of a file begins with.
fn record(fields: impl Iterator<Item = (String, String)>, none: &Lineage) -> Result<Row, String> {
    let row = named(fields)?;
    Ok(Row { lineage: Lineage::of(row.id(), none), ..row })
}

/// The row with these fields; others are left out.
pub fn named(fields: impl Iterator<Item = (String, String)>) -> Result<Row, String> {
    let mut row = [None; 6];
    let mut lineage = Lineage::Ids(Vec::new());
    for (name, value) in fields {
        let names = ["source", "split", "offset", "key", "value", "rows"];
        if let Some(column) = names.iter().position(|known| *known == name) {
            row[column] = Some(value.parse::<i64>().map_err(|_| format!("'{value}' is no {name}"))?);
        } else if name == "lineage" {
            lineage = Lineage::try_from(value)?;
        }
    }
    let [Some(source), Some(split), Some(offset), Some(key), Some(value), Some(rows)] = row else {
        return Err("a field is missing".to_owned());
    };
    let small = |number: i64| u32::try_from(number).map_err(|_| format!("{number} is no small number"));
    let rows = u64::try_from(rows).map_err(|_| format!("{rows} is no number of rows"))?;
    let (source, split, offset) = (small(source)?, small(split)?, small(offset)?);
    Ok(Row { source, split, offset, key, value, rows, lineage })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(splits: &[Vec<Row>]) -> Vec<Vec<String>> {
        splits.iter().map(|rows| rows.iter().map(Row::line).collect()).collect()
    }

    const NONE: Lineage = Lineage::Ids(Vec::new());

    /// Of a file behind one of a split.
    fn read(format: Format, text: &str, split_bytes: usize) -> Result<Vec<Vec<String>>, String> {
        let mut splits = vec![Vec::new()];
        Reader { number: 1, format, keys: 5, none: &NONE, splits: &mut splits }.read(text, split_bytes)?;
        Ok(lines(&splits[1..]))
    }

    #[test]
    fn csv_has_columns_in_any_order_quotes_and_line_ends_of_both_kinds() {
        let text = "\u{feff}note,rows,value,key,offset,split,source\r\n\"a, \"\"b\"\"\",1,-5,\"4\",3,2,1\n\nx,9,8,7,6,5,4";
        let (first, second) = ("1,2,3,4,-5,1,1.2.3", "4,5,6,7,8,9,4.5.6");
        assert_eq!(read(Format::Csv, text, 1000).unwrap(), [[first, second]]);
        assert_eq!(read(Format::Csv, text, 60).unwrap(), [[first], [second]]);
        assert_eq!(read(Format::Csv, "", 60).unwrap(), [[""; 0]; 0]);
        for wrong in ["source\n1", "a\n\"1", "a\n\"1\"2"] {
            assert!(read(Format::Csv, wrong, 60).is_err(), "{wrong}");
        }
    }

    #[test]
    fn json_has_members_in_any_order_and_lines_of_blanks() {
        let text =
            " {\"rows\" : 1,\"value\":-5,\"key\":4,\"offset\":3,\"split\":2,\"source\":1,\"x\":\"y\"}\n \n";
        assert_eq!(read(Format::JsonLines, text, 1000).unwrap(), [["1,2,3,4,-5,1,1.2.3"]]);
        assert!(read(Format::JsonLines, "[1]", 60).is_err());
    }

    #[test]
    fn a_line_of_text_is_a_row_by_its_bytes_that_knows_its_place() {
        let rows = read(Format::Text, "ab\r\n\nabcdef", 3).unwrap();
        let second = vec!["1,2,0,0,0,1,1.2.0".to_owned(), "1,2,1,1,2870581347,1,1.2.1".to_owned()];
        assert_eq!(rows, [vec!["1,1,0,2,3105,1,1.1.0".to_owned()], second, vec![], vec![]]);
    }

    #[test]
    fn a_sequence_is_one_split_cut_into_pieces() {
        let made = |in_sequence| {
            let origin = Origin::Made { splits: vec![2, 1], keys: 3, in_sequence, counted: false };
            lines(&splits(0, &origin, &[], &NONE).unwrap())
        };
        let at = |split, offset| Row::at(RecordId { source: 0, split, offset }, 3, &NONE).line();
        assert_eq!(made(true), [vec![at(0, 0), at(0, 1)], vec![at(0, 2)]]);
        assert_eq!(made(false), [vec![at(0, 0), at(0, 1)], vec![at(1, 0)]]);
    }
}
