//! CSV: each line is a row, its fields in quotes or not as in RFC 4180.

use std::fmt;
use std::marker::PhantomData;

use csv::{DeserializeErrorKind, ErrorKind, StringRecord};
use csv_core::ReadRecordResult;
use memchr::memchr_iter;

use super::{LineFormat, LineParser, LineSource};
use crate::api::Record;
use crate::connectors::header::field_names;

/// A line is a row that reads as a `T`; empty lines have none.
pub struct CsvFormat<T> {
    header: bool,
    delimiter: u8,
    record: PhantomData<fn() -> T>,
}

/// Rows of type `T` from CSV files. With a header, the first line of each file, fields are found by the
/// names of their columns, and columns that the row type does not have are left out; without one, fields
/// are those of the row type in its order. A field with a line break in it cannot be read, since files
/// are cut into splits at line ends: it is a bad line.
///
/// ```
/// # use revenant::api::Program;
/// # use revenant::connectors::{BadLines, CsvSource};
/// # use revenant::runtime::MiniCluster;
/// #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
/// struct City {
///     name: String,
///     people: u32,
/// }
///
/// let input = std::env::temp_dir().join(format!("revenant-csv-{}", std::process::id()));
/// std::fs::create_dir_all(&input)?;
/// std::fs::write(input.join("cities.csv"), "people;state;name\n126000;BW;Ulm\nmany;NRW;Bonn\n")?;
/// let cities = |bad_lines| {
///     let program = Program::new().register("cities", "Reads cities.", move |env, _| {
///         let source = CsvSource::<City>::new(["cities.csv"]).delimiter(b';').bad_lines(bad_lines);
///         env.from_source("cities", source).collect("cities");
///         Ok(())
///     });
///     MiniCluster::new(program).input(&input).run("cities")
/// };
/// let result = cities(BadLines::SkipAndCount)?;
/// assert_eq!(result.collected::<City>("cities")?, [City { name: "Ulm".to_owned(), people: 126_000 }]);
/// assert_eq!(result.accumulators().get("cities.bad-lines"), Some(&1));
///
/// let error = cities(BadLines::Fail).err().expect("'many' is no number").to_string();
/// assert!(error.contains("cities.csv:3"), "{error}");
/// assert!(error.contains("column 1 ('people'): 'many' is not a whole number"), "{error}");
/// # std::fs::remove_dir_all(&input)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type CsvSource<T> = LineSource<CsvFormat<T>>;

impl<T: Record> CsvSource<T> {
    /// Files with a header and commas.
    /// `paths` are files and directories below the input directory, one as `["visits"]`; `[""]` is all of
    /// it. There are no patterns: a directory is read whole, but for hidden files.
    pub fn new<P: Into<String>>(paths: impl IntoIterator<Item = P>) -> Self {
        Self::with_format(paths, CsvFormat { header: true, delimiter: b',', record: PhantomData })
    }

    #[must_use]
    pub fn without_header(mut self) -> Self {
        self.format.header = false;
        self
    }

    /// What stands between fields, in place of a comma.
    #[must_use]
    pub fn delimiter(mut self, delimiter: u8) -> Self {
        self.format.delimiter = delimiter;
        self
    }
}

impl<T> Clone for CsvFormat<T> {
    fn clone(&self) -> Self {
        Self { header: self.header, delimiter: self.delimiter, record: PhantomData }
    }
}

impl<T> fmt::Debug for CsvFormat<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CsvFormat")
            .field("header", &self.header)
            .field("delimiter", &char::from(self.delimiter))
            .finish_non_exhaustive()
    }
}

impl<T: Record> LineFormat for CsvFormat<T> {
    type Record = T;

    fn has_header(&self) -> bool {
        self.header
    }

    fn parser(&self, header: Option<&[u8]>) -> Result<impl LineParser<T>, String> {
        let mut fields = Fields::new(self.delimiter);
        let mut row = StringRecord::new();
        let names = match header {
            Some(header) => {
                fields.read(header, &mut row)?;
                Some(row.clone())
            }
            None => None,
        };
        let of_type = field_names::<T>();
        let columns = names.as_ref().map(StringRecord::len).or(of_type.map(<[_]>::len));
        Ok(move |line: &[u8]| {
            if line.is_empty() {
                return Ok(None);
            }
            fields.read(line, &mut row)?;
            if let Some(columns) = columns
                && columns != row.len()
            {
                let what = if names.is_some() { "the header" } else { "a row" };
                return Err(format!("the line has {} fields, and {what} has {columns}", row.len()));
            }
            let name = |column: usize| match (&names, of_type) {
                (Some(names), _) => names.get(column),
                (None, names) => names.and_then(|names| names.get(column).copied()),
            };
            row.deserialize(names.as_ref()).map(Some).map_err(|error| {
                let reaches = |columns: usize| {
                    let mut begun = row.clone();
                    begun.truncate(columns);
                    let end = begun.deserialize::<T>(names.as_ref()).err();
                    end.is_some_and(|end| end.to_string() == error.to_string())
                };
                describe(&error, &row, name, reaches)
            })
        })
    }
}

/// Cuts lines into fields.
struct Fields {
    reader: csv_core::Reader,
    /// All fields of a line, one behind the other.
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Fields {
    fn new(delimiter: u8) -> Self {
        let reader = csv_core::ReaderBuilder::new().delimiter(delimiter).build();
        Self { reader, bytes: vec![0; 256], ends: vec![0; 16] }
    }

    fn read(&mut self, line: &[u8], row: &mut StringRecord) -> Result<(), String> {
        // A quote inside quotes is doubled, so whole rows have an even number of them.
        if memchr_iter(b'"', line).count() % 2 == 1 {
            return Err(
                "a quote is opened and not closed before the end of the line; fields with line breaks \
                        in them cannot be read, and a quote in a field is written twice, the field in quotes"
                    .to_owned(),
            );
        }
        self.reader.reset();
        let (mut read, mut written, mut count) = (0, 0, 0);
        loop {
            let (result, input, output, ends) =
                self.reader.read_record(&line[read..], &mut self.bytes[written..], &mut self.ends[count..]);
            (read, written, count) = (read + input, written + output, count + ends);
            match result {
                ReadRecordResult::InputEmpty => {} // The next call, with nothing, is the end of the line.
                ReadRecordResult::OutputFull => self.bytes.resize(self.bytes.len() * 2, 0),
                ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2, 0),
                ReadRecordResult::Record | ReadRecordResult::End => break,
            }
        }
        row.clear();
        let mut start = 0;
        for (&end, column) in self.ends[..count].iter().zip(1..) {
            let field = str::from_utf8(&self.bytes[start..end]);
            row.push_field(field.map_err(|error| format!("column {column} is not UTF-8: {error}"))?);
            start = end;
        }
        Ok(())
    }
}

/// Says which column is wrong, what it has, and what was expected. An error that comes from the type of a
/// field does not say its column: it is the last of the shortest row that `reaches` the same error.
fn describe<'a>(
    error: &csv::Error,
    row: &StringRecord,
    name: impl Fn(usize) -> Option<&'a str>,
    reaches: impl Fn(usize) -> bool,
) -> String {
    let ErrorKind::Deserialize { err, .. } = error.kind() else { return error.to_string() };
    let expected = match err.kind() {
        DeserializeErrorKind::ParseInt(error) => {
            format!("is not a whole number of this column's type: {error}")
        }
        DeserializeErrorKind::ParseFloat(error) => format!("is not a number: {error}"),
        DeserializeErrorKind::ParseBool(_) => "is not 'true' or 'false'".to_owned(),
        other => other.to_string(),
    };
    let column = match err.field() {
        Some(column) => usize::try_from(column).ok(),
        None if expected.starts_with("missing field") => None,
        None => (0..row.len()).find(|&column| reaches(column + 1)),
    };
    let Some(column) = column else { return expected };
    let place = match name(column) {
        Some(name) => format!("column {} ('{name}')", column + 1),
        None => format!("column {}", column + 1),
    };
    match (err.kind(), row.get(column)) {
        (
            DeserializeErrorKind::ParseInt(_)
            | DeserializeErrorKind::ParseFloat(_)
            | DeserializeErrorKind::ParseBool(_),
            Some(found),
        ) => format!("{place}: '{found}' {expected}"),
        _ => format!("{place}: {expected}"),
    }
}
