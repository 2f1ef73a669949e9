//! The arguments of a job: asked for by name, checked when they are asked for, and refused when
//! nobody asked.

use std::cell::RefCell;
use std::fmt::Display;
use std::str::FromStr;

use crate::config::nearest;

use super::JobError;

/// What a job function was given.
///
/// ```
/// use revenant::api::{JobError, JobParameters};
///
/// let given = JobParameters::new(vec![("to".to_owned(), "5".to_owned())]);
/// assert_eq!(given.get("to", 10, "a whole number from 1", |&to: &i64| to >= 1)?, 5);
/// assert_eq!(given.get("from", 1, "a whole number", |_: &i64| true)?, 1);
/// assert_eq!(given.get_optional("splits", "a whole number from 1", |&splits: &u32| splits >= 1)?, None);
///
/// let error = given.get("to", 10, "a whole number from 6", |&to: &i64| to >= 6).unwrap_err();
/// assert_eq!(error.to_string(), "argument 'to': '5' is not a whole number from 6, for example '10'");
/// # Ok::<(), JobError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct JobParameters {
    arguments: Vec<(String, String)>,
    asked: RefCell<Vec<ArgumentInfo>>,
}

/// An argument that a job takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentInfo {
    pub name: String,
    /// `None` if the job decides when it is not given.
    pub default: Option<String>,
    /// What values it takes.
    pub expected: String,
}

impl JobParameters {
    pub fn new(arguments: Vec<(String, String)>) -> Self {
        Self { arguments, asked: RefCell::default() }
    }

    /// The argument `name`, or `default` if it is not given. `expected` says which values `accept`
    /// takes, for people.
    pub fn get<T: FromStr + Display>(
        &self,
        name: &str,
        default: T,
        expected: &str,
        accept: impl FnOnce(&T) -> bool,
    ) -> Result<T, JobError> {
        let text = default.to_string();
        Ok(self.take(name, Some(text), expected, accept)?.unwrap_or(default))
    }

    /// The argument `name`, if it is given.
    pub fn get_optional<T: FromStr>(
        &self,
        name: &str,
        expected: &str,
        accept: impl FnOnce(&T) -> bool,
    ) -> Result<Option<T>, JobError> {
        self.take(name, None, expected, accept)
    }

    fn take<T: FromStr>(
        &self,
        name: &str,
        default: Option<String>,
        expected: &str,
        accept: impl FnOnce(&T) -> bool,
    ) -> Result<Option<T>, JobError> {
        let info = ArgumentInfo { name: name.to_owned(), default, expected: expected.to_owned() };
        let example =
            info.default.as_ref().map_or_else(String::new, |text| format!(", for example '{text}'"));
        self.asked.borrow_mut().push(info);
        let Some((_, value)) = self.arguments.iter().find(|(given, _)| given == name) else {
            return Ok(None);
        };
        match value.parse().ok().filter(accept) {
            Some(parsed) => Ok(Some(parsed)),
            None => Err(JobError(format!("argument '{name}': '{value}' is not {expected}{example}"))),
        }
    }

    /// Arguments that were given twice, or that the job did not ask for.
    pub(super) fn refuse_unknown(&self) -> Result<(), JobError> {
        let asked = self.asked.borrow();
        for (i, (name, _)) in self.arguments.iter().enumerate() {
            if self.arguments[..i].iter().any(|(earlier, _)| earlier == name) {
                return Err(JobError(format!("argument '{name}' is given twice")));
            }
            if asked.iter().all(|info| info.name != *name) {
                let names = || asked.iter().map(|info| info.name.as_str());
                let meant = nearest(name, names())
                    .map_or_else(String::new, |near| format!(", did you mean '{near}'?"));
                let known: Vec<&str> = names().collect();
                let takes = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return Err(JobError(format!("unknown argument '{name}'{meant}; the job takes: {takes}")));
            }
        }
        Ok(())
    }

    pub(super) fn into_asked(self) -> Vec<ArgumentInfo> {
        self.asked.into_inner()
    }
}
