//! What the sinks of a plan leave: which files, the bytes of each, and the rows that such a file has.
//! Knows the formats from their descriptions; a file is only read as rows if it is written exactly as
//! a sink writes them.

use super::row::{HEADER, Row};
use super::source;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SinkKind {
    Csv,
    JsonLines,
    Collect,
    Print,
}

/// What stands at the beginning of a file of collected records.
const ROW_TYPE: &str = "revenant::jobs::dataflow::row::Row";

/// Before the columns of a printed row, and behind them.
const PRINTED: (&str, &str) = ("Row { ", " }");

impl SinkKind {
    pub fn of(word: Option<&str>) -> Result<Self, String> {
        match word {
            None | Some("csv") => Ok(Self::Csv),
            Some("json-lines") => Ok(Self::JsonLines),
            Some("collect") => Ok(Self::Collect),
            Some("print") => Ok(Self::Print),
            Some(kind) => Err(format!("'{kind}' is not known")),
        }
    }

    /// Where the files of the sink with this name are, with a `/` behind.
    pub fn directory(self, name: &str) -> String {
        match self {
            Self::Csv | Self::JsonLines => format!("{name}/"),
            Self::Collect => format!("collect/{name}/"),
            Self::Print => format!("print/{name}/"),
        }
    }

    pub fn path(self, name: &str, subtask: usize) -> String {
        let extension = match self {
            Self::Csv => ".csv",
            Self::JsonLines => ".jsonl",
            Self::Collect | Self::Print => "",
        };
        format!("{}part-{subtask:05}{extension}", self.directory(name))
    }

    /// The file of a subtask that got these rows.
    pub fn file(self, rows: &[Row]) -> Result<Vec<u8>, String> {
        let text = |line: fn(&Row) -> String| rows.iter().map(|row| line(row) + "\n").collect::<String>();
        Ok(match self {
            Self::Csv => format!("{HEADER}\n{}", text(Row::line)).into_bytes(),
            Self::JsonLines => text(Row::json).into_bytes(),
            Self::Print => text(printed).into_bytes(),
            Self::Collect => {
                let mut file = Vec::new();
                frame(&mut file, ROW_TYPE.as_bytes());
                for row in rows {
                    let row = postcard::to_stdvec(row).map_err(|error| format!("a row: {error}"))?;
                    frame(&mut file, &row);
                }
                file
            }
        })
    }

    /// The rows of a file.
    pub fn rows(self, file: &[u8]) -> Result<Vec<Row>, String> {
        if self == Self::Collect {
            return collected(file);
        }
        let text = str::from_utf8(file).map_err(|error| error.to_string())?;
        let mut lines = text.split_terminator('\n');
        if self == Self::Csv && lines.next() != Some(HEADER) {
            return Err(format!("its first line is not '{HEADER}'"));
        }
        let row = |line: &str| {
            let row = match self {
                Self::JsonLines => source::members(line).and_then(|all| source::named(all.into_iter())),
                Self::Print => row_of_printed(line),
                _ => row_of_line(line),
            };
            let row = row.map_err(|error| format!("'{line}' is no row: {error}"))?;
            let written = match self {
                Self::JsonLines => row.json(),
                Self::Print => printed(&row),
                _ => row.line(),
            };
            if written == line { Ok(row) } else { Err(format!("'{line}' is not written as rows are")) }
        };
        lines.map(row).collect()
    }
}

fn row_of_line(line: &str) -> Result<Row, String> {
    let names = HEADER.split(',').map(ToOwned::to_owned);
    source::named(names.zip(line.split(',').map(ToOwned::to_owned)))
}

/// As Rust shows a struct for debugging.
fn printed(row: &Row) -> String {
    let line = row.line();
    let columns = HEADER.split(',').zip(line.split(','));
    let columns: Vec<String> = columns.map(|(name, value)| format!("{name}: {value}")).collect();
    format!("{}{}{}", PRINTED.0, columns.join(", "), PRINTED.1)
}

fn row_of_printed(line: &str) -> Result<Row, String> {
    let columns = line.strip_prefix(PRINTED.0).and_then(|line| line.strip_suffix(PRINTED.1));
    let columns = columns.ok_or("it is not printed as a row is")?.split(", ");
    let columns = columns.filter_map(|column| column.split_once(": "));
    source::named(columns.map(|(name, value)| (name.to_owned(), value.to_owned())))
}

/// Four bytes of length, the lowest first, and so many bytes.
fn frame(file: &mut Vec<u8>, content: &[u8]) {
    file.extend_from_slice(&(content.len() as u32).to_le_bytes());
    file.extend_from_slice(content);
}

fn collected(file: &[u8]) -> Result<Vec<Row>, String> {
    let mut rest = file;
    let mut next = || {
        let (length, behind) = rest.split_first_chunk::<4>()?;
        let (frame, behind) = behind.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        rest = behind;
        Some(frame)
    };
    if next() != Some(ROW_TYPE.as_bytes()) {
        return Err(format!("it does not begin with {ROW_TYPE}"));
    }
    let mut rows: Vec<Row> = Vec::new();
    while let Some(frame) = next() {
        let row = postcard::take_from_bytes(frame).ok().filter(|(_, behind)| behind.is_empty());
        rows.push(row.ok_or_else(|| format!("record {} is no row", rows.len()))?.0);
    }
    if rest.is_empty() { Ok(rows) } else { Err(format!("{} bytes at its end are no record", rest.len())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::Lineage;

    fn rows() -> [Row; 2] {
        let lineage = |text: &str| Lineage::try_from(text.to_owned()).unwrap();
        [
            Row {
                source: 1,
                split: 2,
                offset: 3,
                key: 4,
                value: -5,
                rows: 300,
                lineage: lineage("1.2.3+2.0.0*7"),
            },
            Row { source: 0, split: 0, offset: 0, key: 0, value: 0, rows: 0, lineage: lineage("") },
        ]
    }

    #[test]
    fn every_kind_has_files_of_its_own_and_reads_what_it_writes() {
        let written = |kind: SinkKind| {
            let file = kind.file(&rows()).unwrap();
            assert_eq!(kind.rows(&file).unwrap(), rows());
            assert_eq!(kind.rows(&kind.file(&[]).unwrap()).unwrap(), []);
            (kind.path("o", 7), file)
        };
        let text = |(path, file): (String, Vec<u8>)| (path, String::from_utf8(file).unwrap());
        let csv = "source,split,offset,key,value,rows,lineage\n1,2,3,4,-5,300,1.2.3+2.0.0*7\n0,0,0,0,0,0,\n";
        assert_eq!(text(written(SinkKind::Csv)), ("o/part-00007.csv".to_owned(), csv.to_owned()));
        let (path, json) = text(written(SinkKind::JsonLines));
        let first =
            r#"{"source":1,"split":2,"offset":3,"key":4,"value":-5,"rows":300,"lineage":"1.2.3+2.0.0*7"}"#;
        assert_eq!((path.as_str(), json.lines().next()), ("o/part-00007.jsonl", Some(first)));
        let (path, lines) = text(written(SinkKind::Print));
        let first =
            "Row { source: 1, split: 2, offset: 3, key: 4, value: -5, rows: 300, lineage: 1.2.3+2.0.0*7 }";
        assert_eq!((path.as_str(), lines.lines().next()), ("print/o/part-00007", Some(first)));
        let (path, file) = written(SinkKind::Collect);
        assert_eq!(path, "collect/o/part-00007");
        // Zigzag makes 8 of 4 and 9 of -5; 300 has two bytes.
        let name = b"\x22\0\0\0revenant::jobs::dataflow::row::Row";
        let rows = b"\x15\0\0\0\x01\x02\x03\x08\x09\xac\x02\x0d1.2.3+2.0.0*7\x07\0\0\0\0\0\0\0\0\0\0";
        assert_eq!(file, [&name[..], rows].concat());
    }

    #[test]
    fn a_file_that_no_sink_writes_is_not_read() {
        let refused = |kind: SinkKind, file: &[u8]| kind.rows(file).unwrap_err();
        assert!(refused(SinkKind::Csv, b"1,2,3,4,5,6\n").starts_with("its first line is not"));
        let csv = |line: &str| refused(SinkKind::Csv, format!("{HEADER}\n{line}\n").as_bytes());
        assert_eq!(csv("none"), "'none' is no row: 'none' is no source");
        assert_eq!(csv("1,2,3,4,5,6"), "'1,2,3,4,5,6' is not written as rows are");
        assert_eq!(csv("1,2,3,4,5,6,7"), "'1,2,3,4,5,6,7' is no row: '7' is no lineage");
        assert_eq!(csv("1,2,3,4,5"), "'1,2,3,4,5' is no row: a field is missing");
        assert_eq!(csv("1,2,3,4,5,06,"), "'1,2,3,4,5,06,' is not written as rows are");
        assert!(refused(SinkKind::JsonLines, b"{}\n").contains("is no row"));
        assert!(refused(SinkKind::Print, b"1,2,3,4,5,6\n").ends_with("it is not printed as a row is"));
        assert_eq!(refused(SinkKind::Collect, b"\0\0\0\0"), format!("it does not begin with {ROW_TYPE}"));
        let file = SinkKind::Collect.file(&rows()).unwrap();
        assert_eq!(refused(SinkKind::Collect, &file[..file.len() - 1]), "10 bytes at its end are no record");
        let mut longer = SinkKind::Collect.file(&[]).unwrap();
        frame(&mut longer, &[1, 2, 3, 8, 9, 1, 0, 0]);
        assert_eq!(refused(SinkKind::Collect, &longer), "record 0 is no row");
    }
}
