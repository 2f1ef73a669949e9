//! Lines of files as rows that know their places: which split of the source, and which line of it.

use crate::api::{FunctionError, Out};
use crate::connectors::{FileSourceSplit, Source, SourceReaderContext, TextLineSource};
use crate::coordinator::SplitAssignment;
use crate::disk::DirectoryEntry;

use super::lineage::{Keeps, RecordId};
use super::row::Row;

#[derive(Debug)]
pub(super) struct TextRows {
    /// Which source of the plan, from 0.
    pub number: u32,
    pub keys: u32,
    pub keeps: Keeps,
    pub lines: TextLineSource,
}

impl Source for TextRows {
    type Record = Row;
    /// Its number among all of the source.
    type Split = (u32, FileSourceSplit);

    fn splits(&self) -> Vec<Self::Split> {
        Vec::new()
    }

    fn paths(&self) -> Vec<String> {
        self.lines.paths()
    }

    fn splits_of(&self, files: &[DirectoryEntry]) -> Vec<Self::Split> {
        (0..).zip(self.lines.splits_of(files)).collect()
    }

    fn assignment(&self) -> SplitAssignment {
        self.lines.assignment()
    }

    async fn read(
        &self,
        (split, range): Self::Split,
        context: &SourceReaderContext,
        out: &Out<Row>,
    ) -> Result<(), FunctionError> {
        let mut offset = 0;
        let row = async |line: String| {
            let id = RecordId { source: self.number, split, offset };
            offset += 1;
            out.collect(Row::of_line(id, &line, self.keys, self.keeps)).await;
        };
        self.lines.for_each(&range, context, row).await
    }
}
