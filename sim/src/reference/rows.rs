//! A multiset of rows by its digest: equal multisets have equal digests in whatever order they come.

use std::collections::BTreeMap;

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_128;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    pub count: u64,
    sum: u128,
}

impl Rows {
    pub fn add(&mut self, row: &[u8]) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(xxh3_128(row));
    }

    /// The rows of CSV files, each without its header.
    pub fn of_csv(files: &BTreeMap<String, Bytes>) -> Self {
        let mut rows = Self::default();
        for file in files.values() {
            let body = file.iter().position(|&byte| byte == b'\n').map_or(&[][..], |end| &file[end + 1..]);
            body.split_inclusive(|&byte| byte == b'\n').for_each(|line| rows.add(line));
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(files: &[&'static str]) -> Rows {
        let names = (0..).map(|n: u32| n.to_string());
        Rows::of_csv(&names.zip(files.iter().map(|file| Bytes::from_static(file.as_bytes()))).collect())
    }

    #[test]
    fn order_and_files_do_not_matter_but_every_row_does() {
        let expected = rows(&["h\na\nb\nb\n", "h\n"]);
        assert_eq!(expected.count, 3);
        assert_eq!(rows(&["h\nb\n", "h\nb\na\n"]), expected);
        for other in ["h\na\nb\n", "h\na\na\nb\n", "h\na\nb\nc\n", "h\na\nb\nb"] {
            assert_ne!(rows(&[other]), expected, "{other:?}");
        }
    }
}
