//! What is wrong with the disk for files of one purpose, for all processes or for one, and what that
//! does to an operation: it fails after its time, or takes longer.

use std::time::Duration;

use revenant::actor::Purpose;
use revenant::disk::{DiskError, DiskErrorKind, DiskOp, DiskResult, Volume};
use revenant::ids::ProcessId;

use super::{DisksState, Happening, Operation, owner};
use crate::draw;
use crate::scenario::{DiskFault, DiskFaultKind};
use crate::trace::TraceKind;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Condition {
    error: Option<DiskErrorKind>,
    /// Added to what an operation takes.
    pub(super) slower: Duration,
}

impl Condition {
    pub(super) const fn error_of(self, action: &DiskOp) -> Option<DiskErrorKind> {
        match self.error {
            Some(DiskErrorKind::Full)
                if !matches!(action, DiskOp::CreateNew { .. } | DiskOp::Append { .. }) =>
            {
                None
            }
            error => error,
        }
    }
}

/// A fault that strikes one operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Armed {
    fault: usize,
    purpose: Purpose,
    process: Option<ProcessId>,
    operation: &'static str,
    /// How many such operations are still to come, with the one that it strikes.
    left: u32,
}

impl DisksState {
    /// What is wrong for files of a purpose that a process uses.
    pub(super) fn condition(&self, purpose: Purpose, process: ProcessId) -> Condition {
        let of = |process| self.conditions.get(&(purpose, process)).copied().unwrap_or_default();
        let (all, own): (Condition, Condition) = (of(None), of(Some(process)));
        Condition { error: all.error.or(own.error), slower: all.slower + own.slower }
    }

    /// Lets a fault wait for an operation.
    pub fn arm(&mut self, fault: usize, what: DiskFault) {
        let DiskFault { purpose, process, kind: DiskFaultKind::FailOnce { operation, occurrence } } = what
        else {
            return;
        };
        self.armed.push(Armed { fault, purpose, process, operation, left: occurrence });
    }

    /// The faults that have struck an operation since this was asked, and of which process.
    pub fn take_struck(&mut self) -> Vec<(usize, ProcessId)> {
        std::mem::take(&mut self.struck)
    }

    pub(super) fn strike(
        &mut self,
        purpose: Purpose,
        process: ProcessId,
        action: &DiskOp,
    ) -> Option<DiskErrorKind> {
        let mut fails = None;
        let struck = &mut self.struck;
        self.armed.retain_mut(|armed| {
            let meets = armed.purpose == purpose
                && armed.operation == action.kind()
                && armed.process.is_none_or(|meant| meant == process);
            armed.left -= u32::from(meets);
            if armed.left == 0 {
                fails = Some(DiskErrorKind::Other);
                struck.push((armed.fault, process));
            }
            armed.left > 0
        });
        fails
    }

    /// Carries out a fault; `None` if there is no such byte to corrupt. What happened to a file of the
    /// job event store is for the trace.
    pub fn fault(&mut self, fault: DiskFault) -> Option<Option<TraceKind>> {
        let DiskFault { purpose, process, kind } = fault;
        let condition = self.conditions.entry((purpose, process)).or_default();
        match kind {
            DiskFaultKind::Fail => condition.error = Some(DiskErrorKind::Other),
            DiskFaultKind::FailOnce { .. } => {}
            DiskFaultKind::Full => condition.error = Some(DiskErrorKind::Full),
            DiskFaultKind::Slow(by) => condition.slower = by.0,
            DiskFaultKind::Heal => *condition = Condition::default(),
            DiskFaultKind::Corrupt { offset } => {
                let fits = |owner: &Option<ProcessId>| process.is_none() || *owner == process;
                let volumes = self.volumes.iter_mut().filter(|((_, owner), _)| fits(owner));
                let (volume, path) = volumes.rev().find_map(|(&(volume, _), image)| {
                    image.corrupt(purpose, offset).map(|path| (volume, path))
                })?;
                let is_log = purpose == Purpose::JobEvent;
                return Some(is_log.then_some(TraceKind::LogCorrupted { volume, path, offset }));
            }
        }
        Some(None)
    }

    /// The operation fails. Of an append, a drawn part has reached the disk; of a sync, nothing will.
    pub(super) fn refuse(
        &mut self,
        mut operation: Operation,
        kind: DiskErrorKind,
    ) -> (DiskResult, Vec<Happening>) {
        let mut happenings = Vec::new();
        if let DiskOp::Append { bytes, .. } = &mut operation.action {
            let whole = bytes.clone();
            let key = (operation.process, operation.actor);
            let draw = self.draws.draw(draw::Purpose::FailedAppend, key);
            bytes.truncate(draw.up_to(bytes.len() as u64) as usize);
            if !bytes.is_empty() {
                happenings.extend(self.apply(&operation).1);
            }
            if let DiskOp::Append { bytes, .. } = &mut operation.action {
                *bytes = whole;
            }
        }
        let Operation { process, actor, volume, action, .. } = operation;
        if let Some(image) = self.volumes.get_mut(&(volume, owner(volume, process))) {
            image.fail(&action);
        }
        let message = match kind {
            DiskErrorKind::Full => "no space is left on the device",
            _ => "input/output error",
        };
        let error = error(&action, volume, kind, message.to_owned());
        happenings.push((Some(actor), TraceKind::DiskRefused { error: error.clone() }));
        (Err(error), happenings)
    }
}

pub(super) fn error(action: &DiskOp, volume: Volume, kind: DiskErrorKind, message: String) -> DiskError {
    let (operation, path) = (action.kind().to_owned(), action.path().to_owned());
    DiskError { kind, operation, volume, path, message }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use bytes::Bytes;
    use revenant::actor::Time;
    use revenant::disk::DiskOutput;
    use revenant::ids::Address;

    use super::*;
    use crate::scenario::Disk;

    fn path() -> String {
        "a".to_owned()
    }

    fn append() -> DiskOp {
        DiskOp::Append { path: path(), bytes: Bytes::from_static(b"abcd") }
    }

    fn disks(seed: u64) -> DisksState {
        let mut disks = DisksState::new(seed, Disk::default());
        do_for(&mut disks, Purpose::JobEvent, DiskOp::CreateNew { path: path() }).0.unwrap();
        disks
    }

    fn do_for(disks: &mut DisksState, purpose: Purpose, action: DiskOp) -> (DiskResult, Time) {
        let (ticket, at, _) = disks.begin(Time(0), Address::WRITER, Volume::Ha, purpose, action);
        (disks.complete(ticket).unwrap().0, at)
    }

    fn perform(disks: &mut DisksState, action: DiskOp) -> DiskResult {
        do_for(disks, Purpose::JobEvent, action).0
    }

    fn fault(disks: &mut DisksState, text: &str) -> bool {
        disks.fault(text.parse().unwrap()).is_some()
    }

    #[test]
    fn a_failing_disk_fails_what_begins_after_it_for_its_purpose_until_it_is_healed() {
        let mut disks = disks(1);
        let before = disks.begin(Time(0), Address::WRITER, Volume::Ha, Purpose::JobEvent, append());
        assert!(fault(&mut disks, "disk fail job_event"));
        assert!(disks.complete(before.0).unwrap().0.is_ok(), "it began before");
        let error = perform(&mut disks, DiskOp::Sync { path: path() }).unwrap_err();
        assert_eq!(error.to_string(), "sync of ha:a failed: input/output error");
        let (other, _) = do_for(&mut disks, Purpose::Sink, DiskOp::CreateNew { path: "b".to_owned() });
        assert!(other.is_ok());
        assert!(fault(&mut disks, "disk heal job_event"));
        assert!(perform(&mut disks, DiskOp::Sync { path: path() }).is_ok());
    }

    #[test]
    fn of_an_append_that_fails_any_part_may_have_reached_the_disk() {
        let left: BTreeSet<usize> = (0..60)
            .map(|seed| {
                let mut disks = disks(seed);
                fault(&mut disks, "disk fail job_event");
                perform(&mut disks, append()).unwrap_err();
                fault(&mut disks, "disk heal job_event");
                let read = DiskOp::ReadRange { path: path(), offset: 0, length: 9 };
                let Ok(DiskOutput::Data(bytes)) = perform(&mut disks, read) else { panic!() };
                assert!(b"abcd".starts_with(&bytes));
                bytes.len()
            })
            .collect();
        assert_eq!(left, (0..=4).collect());
    }

    #[test]
    fn a_full_disk_takes_nothing_new_but_syncs_and_reads() {
        let mut disks = disks(1);
        fault(&mut disks, "disk full job_event");
        let error = perform(&mut disks, DiskOp::CreateNew { path: "b".to_owned() }).unwrap_err();
        assert_eq!(error.kind, DiskErrorKind::Full);
        assert!(perform(&mut disks, append()).is_err());
        assert!(perform(&mut disks, DiskOp::Sync { path: path() }).is_ok());
    }

    #[test]
    fn a_slow_disk_takes_longer_by_as_much_as_is_said() {
        let mut disks = disks(1);
        fault(&mut disks, "disk slow job_event by 1 min");
        let (result, at) = do_for(&mut disks, Purpose::JobEvent, append());
        assert!(result.is_ok() && at > Time(60_000_000_000) && at < Time(60_100_000_000), "{at}");
    }

    #[test]
    fn a_durable_byte_of_the_newest_file_that_has_it_is_corrupted_and_no_other() {
        let mut disks = disks(1);
        perform(&mut disks, append()).unwrap();
        assert!(!fault(&mut disks, "disk corrupt job_event at 3"), "it is not durable");
        perform(&mut disks, DiskOp::Sync { path: path() }).unwrap();
        perform(&mut disks, DiskOp::CreateNew { path: "b".to_owned() }).unwrap();
        assert!(fault(&mut disks, "disk corrupt job_event at 3"));
        assert!(!fault(&mut disks, "disk corrupt job_event at 4"));
        assert!(!fault(&mut disks, "disk corrupt sink at 3"));
        let read = DiskOp::ReadRange { path: path(), offset: 0, length: 9 };
        assert_eq!(perform(&mut disks, read), Ok(DiskOutput::Data(Bytes::from_static(b"abce"))));
    }

    #[test]
    fn the_operation_of_that_number_fails_once() {
        let mut disks = disks(1);
        disks.arm(7, "disk fail job_event on append#2".parse().unwrap());
        assert!(perform(&mut disks, append()).is_ok());
        assert!(perform(&mut disks, DiskOp::Sync { path: path() }).is_ok());
        assert_eq!(disks.take_struck(), []);
        assert!(do_for(&mut disks, Purpose::Sink, append()).0.is_ok(), "it is for another purpose");
        assert!(perform(&mut disks, append()).is_err());
        assert_eq!(disks.take_struck(), [(7, ProcessId::JOB_MANAGER)]);
        assert!(perform(&mut disks, append()).is_ok());
    }

    #[test]
    fn a_fault_of_one_process_meets_nobody_else() {
        let mut disks = disks(1);
        assert!(fault(&mut disks, "disk fail job_event of task-manager-1"));
        assert!(perform(&mut disks, append()).is_ok());
        assert!(fault(&mut disks, "disk slow job_event by 1 min of job-manager"));
        assert!(do_for(&mut disks, Purpose::JobEvent, append()).1 > Time(60_000_000_000));
        assert!(fault(&mut disks, "disk fail job_event of job-manager"));
        assert!(perform(&mut disks, append()).is_err());
        assert!(fault(&mut disks, "disk heal job_event of job-manager"));
        assert!(perform(&mut disks, append()).is_ok());
        disks.arm(3, "disk fail job_event on append#1 of task-manager-1".parse().unwrap());
        assert!(perform(&mut disks, append()).is_ok());
        disks.arm(4, "disk fail job_event on append#1 of job-manager".parse().unwrap());
        assert!(perform(&mut disks, append()).is_err());
        assert_eq!(disks.take_struck(), [(4, ProcessId::JOB_MANAGER)]);
    }

    #[test]
    fn an_operation_that_a_fault_refuses_is_told() {
        let mut disks = disks(1);
        fault(&mut disks, "disk full job_event");
        let (ticket, ..) = disks.begin(
            Time(0),
            Address::WRITER,
            Volume::Ha,
            Purpose::JobEvent,
            DiskOp::CreateNew { path: "b".to_owned() },
        );
        let (result, happenings) = disks.complete(ticket).unwrap();
        let error = result.unwrap_err();
        assert_eq!(happenings, [(Some(Address::WRITER.actor), TraceKind::DiskRefused { error })]);
    }
}
