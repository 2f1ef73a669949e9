//! Faults of the disk, for all files of one purpose on every volume, or on those that one process
//! uses: `disk fail job_event`, `disk fail partition of task-manager-1`. Every operation that begins
//! after such a fault meets it, until the disk is healed.

use std::fmt;
use std::str::FromStr;

use revenant::actor::Purpose;
use revenant::ids::ProcessId;

use super::duration::Span;
use super::forms::Form;

/// Whose files a disk fault can be about, the sources' last.
pub const PURPOSES: [Purpose; 6] = [
    Purpose::JobEvent,
    Purpose::HighAvailability,
    Purpose::Partition,
    Purpose::Spill,
    Purpose::Sink,
    Purpose::Source,
];

/// How such faults are written; a purpose is job_event, high_availability, partition, spill, sink or source.
pub const FORMS: &[Form] = &[
    Form::healed(
        "disk fail <purpose>",
        "every operation on files of the purpose fails; of an append, a drawn part reaches the disk",
        "disk heal <purpose>",
    ),
    Form::once(
        "disk fail <purpose> on append#3",
        "the third append (or create, sync, sync-directory, close, read, list, rename, delete) from now on fails, once; \
         it counts as fired when it does",
    ),
    Form::healed(
        "disk full <purpose>",
        "there is no room to create a file or to append to one",
        "disk heal <purpose>",
    ),
    Form::healed(
        "disk slow <purpose> by 1 min",
        "every operation takes so much longer",
        "disk heal <purpose>",
    ),
    Form::heal("disk heal <purpose>", "all is well again"),
    Form::once(
        "disk corrupt <purpose> at 100",
        "flips a bit of the durable byte at this offset, in the newest file that has it",
    ),
    Form::healed(
        "disk fail <purpose> of <process>",
        "as without the last two words, for what this process does; every fault of a disk can be so",
        "disk heal <purpose> of <process>",
    ),
    Form::heal("disk heal <purpose> of <process>", "all is well again for this process"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskFault {
    pub purpose: Purpose,
    /// Whose operations it meets; of everybody, if none is named.
    pub process: Option<ProcessId>,
    pub kind: DiskFaultKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFaultKind {
    /// Every operation fails. Of an append, a drawn part reaches the disk.
    Fail,
    /// The operation of this kind that is number `occurrence` (from 1) fails, once.
    FailOnce { operation: &'static str, occurrence: u32 },
    /// Creating and appending fail for want of space, as with [`Self::Fail`]; the rest works.
    Full,
    /// Every operation takes so much longer.
    Slow(Span),
    /// All is well again.
    Heal,
    /// Flips a bit of the durable byte at this offset, in the newest file that has it.
    Corrupt { offset: u64 },
}

/// What an operation is called in a fault, as [`revenant::disk::DiskOp::kind`] does.
pub const OPERATIONS: [&str; 9] =
    ["create", "append", "sync", "sync-directory", "close", "read", "list", "rename", "delete"];

impl fmt::Display for DiskFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let purpose = self.purpose.name();
        match self.kind {
            DiskFaultKind::Fail => write!(f, "disk fail {purpose}"),
            DiskFaultKind::FailOnce { operation, occurrence } => {
                write!(f, "disk fail {purpose} on {operation}#{occurrence}")
            }
            DiskFaultKind::Full => write!(f, "disk full {purpose}"),
            DiskFaultKind::Slow(by) => write!(f, "disk slow {purpose} by {by}"),
            DiskFaultKind::Heal => write!(f, "disk heal {purpose}"),
            DiskFaultKind::Corrupt { offset } => write!(f, "disk corrupt {purpose} at {offset}"),
        }?;
        self.process.map_or(Ok(()), |process| write!(f, " of {process}"))
    }
}

impl FromStr for DiskFault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            format!(
                "'{text}' is not a fault of the disk: {why}; expected one of {}",
                super::forms::listed(FORMS.iter())
            )
        };
        let rest = text.strip_prefix("disk ").ok_or_else(|| wrong("it does not begin with 'disk'"))?.trim();
        let (rest, process) = match rest.rsplit_once(" of ") {
            Some((rest, process)) => (rest.trim(), Some(process.trim().parse()?)),
            None => (rest, None),
        };
        let (what, rest) = rest.split_once(' ').ok_or_else(|| wrong("no purpose is named"))?;
        let with = |word: &str| {
            rest.split_once(word).ok_or_else(|| wrong(&format!("'{what}' needs '{}'", word.trim())))
        };
        let (purpose, kind) = match what {
            "fail" => match rest.split_once(" on ") {
                Some((purpose, operation)) => (purpose, once(operation.trim()).map_err(|why| wrong(&why))?),
                None => (rest, DiskFaultKind::Fail),
            },
            "full" => (rest, DiskFaultKind::Full),
            "heal" => (rest, DiskFaultKind::Heal),
            "slow" => {
                let (purpose, by) = with(" by ")?;
                (purpose, DiskFaultKind::Slow(by.parse()?))
            }
            "corrupt" => {
                let (purpose, offset) = with(" at ")?;
                let offset = offset.trim().parse();
                let offset = offset.map_err(|_| wrong("the offset is not a number of bytes"))?;
                (purpose, DiskFaultKind::Corrupt { offset })
            }
            _ => return Err(wrong(&format!("a disk cannot '{what}'"))),
        };
        let purpose = purpose.trim();
        let known = PURPOSES.into_iter().find(|known| known.name() == purpose);
        let purpose = known.ok_or_else(|| {
            let names = PURPOSES.map(Purpose::name).join(", ");
            format!("there are no files for '{purpose}': expected one of {names}")
        })?;
        Ok(Self { purpose, process, kind })
    }
}

/// `append#3`.
fn once(text: &str) -> Result<DiskFaultKind, String> {
    let (name, occurrence) = text.split_once('#').ok_or_else(|| format!("'{text}' has no '#<number>'"))?;
    let operation = OPERATIONS.into_iter().find(|operation| *operation == name);
    let operation = operation.ok_or_else(|| {
        format!("there is no operation '{name}': expected one of {}", OPERATIONS.join(", "))
    })?;
    let occurrence = occurrence.parse().ok().filter(|&number| number > 0);
    let occurrence = occurrence.ok_or_else(|| "operations are numbered from 1".to_owned())?;
    Ok(DiskFaultKind::FailOnce { operation, occurrence })
}

#[cfg(test)]
mod tests {
    use super::super::forms::read_back;
    use super::*;

    #[test]
    fn a_fault_reads_back_what_it_displays() {
        read_back::<DiskFault>(&[
            "disk heal high_availability",
            "disk fail job_event on sync-directory#3",
            "disk slow partition by 2 s of task-manager-1",
            "disk fail spill on append#1 of task-manager-3",
        ]);
    }

    #[test]
    fn a_wrong_fault_says_what_would_be_right() {
        for (text, why) in [
            ("disk", "does not begin with 'disk'"),
            ("disk fail", "no purpose is named"),
            ("disk burn job_event", "a disk cannot 'burn'"),
            ("disk fail job-event", "expected one of job_event, high_availability"),
            ("disk slow job_event", "'slow' needs 'by'"),
            ("disk slow job_event by noon", "for example '250 ms'"),
            ("disk corrupt job_event at start", "not a number of bytes"),
            (
                "disk fail job_event on write#1",
                "there is no operation 'write': expected one of create, append",
            ),
            ("disk fail job_event on sync#0", "numbered from 1"),
            ("disk fail job_event on sync", "has no '#<number>'"),
            ("disk fail job_event of jobmanager", "unknown process 'jobmanager'"),
        ] {
            let error = text.parse::<DiskFault>().unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
