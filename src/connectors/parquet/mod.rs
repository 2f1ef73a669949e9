//! Parquet: files of columns, in row groups that can each be read alone. The crate that reads and writes
//! them waits for no disk: whatever it is to read is fetched before, and what it wrote is handed on.

mod fetch;
mod sink;
mod source;
#[cfg(test)]
mod tests;

pub use fetch::ParquetFileError;
pub use sink::{ParquetSink, ParquetWriter};
pub use source::ParquetSource;
