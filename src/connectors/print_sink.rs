//! A sink of lines for people: each subtask's file becomes `print/<name>/part-<subtask>`, with one line
//! for each record. The client prints them when the job has finished, so that what a job that failed
//! or a subtask that ran again would have printed is never seen.

use std::fmt::Debug;
use std::io::Write;

use crate::api::Record;
use crate::operators::OperatorContext;
use crate::task::BodyError;

use super::part_file::{PartFile, check_name};
use super::{Sink, SinkWriter};

/// Where printed lines lie on the output volume.
pub const PRINT_DIRECTORY: &str = "print";

/// Begins the directory of a sink without a name: no name does.
const UNNAMED: char = '_';

/// Prints records as they are for debugging (Flink's PrintSink, which prints what `toString` gives).
///
/// What `DataStream::print_with` writes to:
///
/// ```
/// # use revenant::connectors::PrintSink;
/// # use revenant::runtime::run;
/// let result = run(|env| {
///     env.from_collection("numbers", [1, 2]).sink_to(PrintSink::new("numbers"));
///     Ok(())
/// })?;
/// assert_eq!(result.printed(), ["numbers> 1", "numbers> 2"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct PrintSink {
    name: String,
    named: bool,
}

impl PrintSink {
    /// Lines begin with `name`, of letters, digits, `-` and `_`: Flink's sink identifier.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), named: true }
    }

    /// Lines begin with no name. No two such sinks of a job have the same number, and their lines come
    /// in its order.
    pub fn unnamed(number: usize) -> Self {
        Self { name: format!("{UNNAMED}{number:05}"), named: false }
    }

    fn directory(&self) -> String {
        format!("{PRINT_DIRECTORY}/{}", self.name)
    }
}

impl<T: Record + Debug> Sink<T> for PrintSink {
    type Writer = PrintWriter;

    fn name(&self) -> String {
        if self.named { format!("print {}", self.name) } else { "print".to_owned() }
    }

    fn target(&self) -> Result<String, String> {
        if self.named {
            check_name(&self.name, "printed lines")?;
        }
        Ok(self.directory())
    }

    fn writer(&self, context: &OperatorContext) -> PrintWriter {
        PrintWriter { file: PartFile::new(context, &self.directory(), "") }
    }
}

/// Writes the lines of one subtask.
pub struct PrintWriter {
    file: PartFile,
}

impl<T: Record + Debug> SinkWriter<T> for PrintWriter {
    fn write(&mut self, record: T) -> Result<usize, BodyError> {
        let context = self.file.context().clone();
        self.file.add(|bytes| {
            writeln!(bytes, "{record:?}")
                .map_err(|error| context.error(format_args!("a record cannot be printed: {error}")))
        })
    }

    async fn flush(&mut self) -> Result<(), BodyError> {
        self.file.flush().await
    }

    async fn finish(&mut self) -> Result<(), BodyError> {
        self.file.finish().await
    }
}

/// In which order the directories of print sinks are shown: those without a name first.
pub fn print_order(directory: &str) -> (bool, &str) {
    (!directory.starts_with(UNNAMED), directory)
}

/// What a line of a subtask begins with, as Flink has it: the name, if there is one, and the subtask,
/// counted from 1, if there are more.
pub fn print_prefix(directory: &str, subtask: usize, subtasks: usize) -> String {
    let name = if directory.starts_with(UNNAMED) { "" } else { directory };
    match (name, subtasks) {
        ("", 0 | 1) => String::new(),
        (name, 0 | 1) => format!("{name}> "),
        ("", _) => format!("{}> ", subtask + 1),
        (name, _) => format!("{name}:{}> ", subtask + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_begin_as_flinks_do() {
        assert_eq!(print_prefix("_00003", 0, 1), "");
        assert_eq!(print_prefix("_00003", 1, 2), "2> ");
        assert_eq!(print_prefix("sums", 0, 1), "sums> ");
        assert_eq!(print_prefix("sums", 1, 2), "sums:2> ");
    }

    #[test]
    fn sinks_without_a_name_come_first_in_the_order_of_their_numbers() {
        let name = |number| PrintSink::unnamed(number).name;
        let (second, tenth) = (name(2), name(10));
        let mut all = ["sums", "Sums", "7", &tenth, &second];
        all.sort_by_key(|directory| print_order(directory));
        assert_eq!(all, [&second, &tenth, "7", "Sums", "sums"]);
    }

    #[test]
    fn a_name_that_is_no_directory_of_its_own_is_refused() {
        for name in ["", "..", "a/b", "_1", "-a", "ä", "a b"] {
            let error = Sink::<u8>::target(&PrintSink::new(name)).unwrap_err();
            assert!(error.contains(&format!("'{name}' is not a name for printed lines")), "{error}");
        }
        assert_eq!(Sink::<u8>::target(&PrintSink::new("a-1_b")), Ok("print/a-1_b".to_owned()));
    }
}
