//! Standard output of the commands. A reader that has seen enough (`| head`) ends the program
//! quietly; any other failure to write, as of a full disk, is an error. Never panics.

use std::fmt;
use std::io::{self, ErrorKind, Write as _};
use std::process::ExitCode;

/// Why a command ends before its time.
#[derive(Debug)]
pub enum Stop {
    /// What was wrong with the command line, the scenario or the machine; the exit status is 2.
    Error(String),
    /// Nobody reads what the command would say.
    Unread,
}

impl From<String> for Stop {
    fn from(message: String) -> Self {
        Self::Error(message)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::BrokenPipe => Self::Unread,
            _ => Self::Error(format!("standard output cannot be written: {error}")),
        }
    }
}

/// Writes to standard output.
pub fn write(text: fmt::Arguments<'_>) -> Result<(), Stop> {
    Ok(io::stdout().lock().write_fmt(text)?)
}

/// Writes a line to standard output; ends the function with what went wrong.
macro_rules! say {
    () => { $crate::cli::out::write(format_args!("\n"))? };
    ($($text:tt)*) => { $crate::cli::out::write(format_args!("{}\n", format_args!($($text)*)))? };
}
pub(super) use say;

/// The exit status of a command; says what went wrong.
pub fn status(outcome: Result<ExitCode, Stop>) -> ExitCode {
    match outcome.and_then(|code| Ok(io::stdout().flush().map(|()| code)?)) {
        Ok(code) => code,
        Err(Stop::Unread) => ExitCode::SUCCESS,
        Err(Stop::Error(message)) => {
            // Without standard error nobody can be told.
            let _ = writeln!(io::stderr(), "error: {message}");
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_pipe_is_quiet_and_a_full_disk_is_not() {
        assert!(matches!(io::Error::from(ErrorKind::BrokenPipe).into(), Stop::Unread));
        let Stop::Error(message) = io::Error::from(ErrorKind::StorageFull).into() else { panic!() };
        assert!(message.starts_with("standard output cannot be written: "), "{message}");
    }
}
