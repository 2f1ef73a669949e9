//! Sinks whose results come back to who runs the job.

use std::fmt::Debug;

use crate::connectors::{CollectSink, PrintSink};

use super::{DataStream, DataStreamSink, Record};

impl<T: Record> DataStream<T> {
    /// Keeps all records for who runs the job, who asks for them by `name`: letters, digits, `-` and
    /// `_`. They come in the order of the subtasks, those of a subtask in the order in which it had
    /// them.
    ///
    /// ```
    /// use revenant::connectors::NumberSequenceSource;
    ///
    /// let result = revenant::runtime::run(|env| {
    ///     let numbers = env.from_source("numbers", NumberSequenceSource::new(1, 6, 2));
    ///     numbers.map(|number| number * number).collect("squares");
    ///     Ok(())
    /// })?;
    /// let mut squares = result.collected::<i64>("squares")?;
    /// squares.sort_unstable(); // Which subtask reads which numbers is not said.
    /// assert_eq!(squares, [1, 4, 9, 16, 25]);
    /// # Ok::<(), revenant::runtime::JobExecutionError>(())
    /// ```
    pub fn collect(&self, name: &str) -> DataStreamSink {
        self.sink_to(CollectSink::new(name))
    }
}

impl<T: Record + Debug> DataStream<T> {
    /// Prints each record as a line, once the job has finished. A line begins with the subtask that
    /// had the record, counted from 1, if there is more than one.
    ///
    /// ```
    /// use revenant::connectors::NumberSequenceSource;
    ///
    /// let result = revenant::runtime::run(|env| {
    ///     let numbers = env.from_source("numbers", NumberSequenceSource::new(1, 4, 1));
    ///     numbers.print();
    ///     numbers.map(|number| (number, number % 2 == 0)).filter(|(_, even)| *even).print_with("even");
    ///     Ok(())
    /// })?;
    /// assert_eq!(result.printed(), ["1", "2", "3", "even> (2, true)"]);
    /// # Ok::<(), revenant::runtime::JobExecutionError>(())
    /// ```
    pub fn print(&self) -> DataStreamSink {
        self.sink_to(PrintSink::unnamed(self.operator_count()))
    }

    /// As [`Self::print`], with lines that begin with `name`: letters, digits, `-` and `_`.
    ///
    /// ```
    /// # use revenant::runtime::run;
    /// let result = run(|env| {
    ///     env.from_collection("words", ["to", "be"].map(String::from)).print_with("words");
    ///     Ok(())
    /// })?;
    /// assert_eq!(result.printed(), [r#"words> "to""#, r#"words> "be""#]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn print_with(&self, name: &str) -> DataStreamSink {
        self.sink_to(PrintSink::new(name))
    }
}
