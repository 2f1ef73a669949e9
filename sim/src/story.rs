//! A run told line by line: what happened in which process, what its actors decided, and the
//! messages that carry the protocol between JobManager, TaskManagers and high availability. It
//! leaves out data, splits, progress and heartbeats, and decides nothing about what is right.

use std::fmt::{self, Display, Write as _};

use revenant::message::{IndexRange, Message};
use revenant::note::Note;

use crate::trace::{Delivered, RunOutcome, TraceEvent, TraceKind};

/// The story of a run that was watched with [`crate::run::RunOptions::keep_messages`]; without it,
/// there are no messages in it.
pub fn story(outcome: &RunOutcome) -> String {
    let mut text = String::new();
    let mut messages = outcome.detail.messages.iter().peekable();
    for position in 0..=outcome.trace.len() {
        while let Some(delivered) = messages.next_if(|delivered| delivered.position == position) {
            if let Some(line) = message(&delivered.message) {
                let Delivered { time, from, process, incarnation, actor, .. } = delivered;
                let to = format!("{process}/{incarnation}:{actor}");
                let _ = writeln!(text, "{time}  {to:<25}  <- {from}: {line}");
            }
        }
        if let Some(event) = outcome.trace.get(position)
            && let Some(line) = happening(&event.what)
        {
            let TraceEvent { time, process, incarnation, actor, .. } = event;
            let actor = actor.map_or_else(String::new, |actor| format!(":{actor}"));
            let of = format!("{process}/{incarnation}{actor}");
            let _ = writeln!(text, "{time}  {of:<25}  {line}");
        }
    }
    text
}

fn happening(what: &TraceKind) -> Option<String> {
    Some(match what {
        TraceKind::Note(note) => self::note(note)?,
        TraceKind::Started => "STARTED".to_owned(),
        TraceKind::Crashed { point, machine } => {
            let what = if *machine { "MACHINE CRASHED" } else { "CRASHED" };
            point.as_ref().map_or_else(|| what.to_owned(), |point| format!("{what} at {point}"))
        }
        TraceKind::Exited { failure: None } => "EXITED".to_owned(),
        TraceKind::Exited { failure: Some(failure) } => format!("EXITED: {failure}"),
        TraceKind::Paused => "STANDS STILL".to_owned(),
        TraceKind::Resumed => "GOES ON".to_owned(),
        TraceKind::DiskRemembered => "its disk is remembered as it is".to_owned(),
        TraceKind::DiskRestored => "HAS AN OLD DISK".to_owned(),
        TraceKind::ClockChanged { fault, .. } => fault.as_ref()?.to_string(),
        TraceKind::CancelReached => "IS TOLD TO CANCEL THE JOB".to_owned(),
        TraceKind::FaultFired { .. } => return None,
        TraceKind::LogAppended { path, bytes, .. } => format!("{} bytes appended to {path}", bytes.len()),
        TraceKind::LogSynced { path, length, .. } => format!("{path} is durable up to {length} bytes"),
        TraceKind::HaFault(fault) => fault.to_string(),
        TraceKind::DiskRefused { error } => error.to_string(),
        TraceKind::LogZeroed { path, from, to, .. } => format!("bytes {from} to {to} of {path} are zeros"),
        TraceKind::DiskFault(fault) => fault.to_string(),
        TraceKind::NetworkFault(fault) => fault.to_string(),
        TraceKind::Message(touched) => touched.to_string(),
        TraceKind::LogCorrupted { path, offset, .. } => format!("{path} is corrupted at offset {offset}"),
        TraceKind::LogDeleted { path, .. } => format!("{path} is deleted"),
        TraceKind::LogAfterCrash { path, length, .. } => format!("{path} is left with {length} bytes"),
    })
}

fn note(note: &Note) -> Option<String> {
    Some(match note {
        Note::LeadershipAcquired { token } => format!("leads with token {token}"),
        Note::JobStatusChanged { status, .. } => format!("job is {status:?}"),
        Note::Replayed { events, finished, damage, .. } => {
            let damage = damage.as_ref().map_or_else(String::new, |damage| format!(", damaged: {damage}"));
            format!("replayed {events} events; finished: {}{damage}", List(finished))
        }
        Note::Recovered { kept, reset, .. } => {
            format!("recovered; stays finished: {}; runs again: {}", List(kept), List(reset))
        }
        Note::VertexInitialized { vertex, parallelism, inputs, .. } => {
            let ranges = |edges: &Vec<(IndexRange, IndexRange)>| {
                let edges: Vec<String> = edges
                    .iter()
                    .map(|(partitions, subpartitions)| {
                        format!("subpartitions {} of partitions {}", span(*subpartitions), span(*partitions))
                    })
                    .collect();
                edges.join(" and ")
            };
            let inputs: Vec<String> = inputs.iter().map(ranges).filter(|text| !text.is_empty()).collect();
            let reads = if inputs.is_empty() { "splits".to_owned() } else { inputs.join("; ") };
            format!("{vertex} has parallelism {parallelism}, reads {reads}")
        }
        Note::Deployed { attempt, location } => format!("{attempt} is deployed on {location}"),
        Note::SplitAssigned { .. }
        | Note::TaskStarted { .. }
        | Note::TaskMetrics { .. }
        | Note::PartitionsClaimed { .. }
        | Note::Progress { .. }
        | Note::ResultRead { .. } => return None,
        Note::FinishAccepted { attempt, splits, .. } if splits.is_empty() => {
            format!("{attempt} counts as finished")
        }
        Note::FinishAccepted { attempt, splits, .. } => {
            format!("{attempt} counts as finished, with splits {splits:?}")
        }
        Note::AttemptFailed { attempt, reason } => format!("{attempt} failed: {reason}"),
        Note::GlobalFailure { reason, .. } => format!("all runs again: {reason}"),
        Note::SubtaskReset { subtask } => format!("{subtask} will run again"),
        Note::TaskManagerRegistered { process } => format!("{process} is registered"),
        Note::TaskManagerLost { process, reason } => format!("{process} is lost: {reason}"),
        Note::CommitDecided { decision } => {
            format!("commit of {} files is decided", decision.committables.len())
        }
        Note::JobEnded { outcome } => format!("job ended: {outcome:?}"),
        Note::EventBuffered { sequence, finished, .. } => {
            let of = finished.map_or_else(String::new, |attempt| format!(" (finish of {attempt})"));
            format!("event {sequence} is in the write buffer{of}")
        }
        Note::EventsDurable { sequence, .. } => format!("events up to {sequence} are durable"),
        Note::TaskEnded { attempt, failure: None } => format!("{attempt} ended"),
        Note::TaskEnded { attempt, failure: Some(failure) } => format!("{attempt} ended: {failure}"),
        Note::PartitionFinished { partition, bytes } => format!("keeps {partition}, {bytes} bytes"),
        Note::PartitionReleased { partition } => format!("released {partition}"),
        Note::RetentionExpired { partitions } => format!("gives up {}", List(partitions)),
        Note::JobManagerLost { token } => format!("lost the JobManager of token {token}"),
        Note::Warning { text } => format!("warning: {text}"),
    })
}

fn message(message: &Message) -> Option<String> {
    let kind = message.kind();
    Some(match message {
        Message::Contend(_)
        | Message::LeadershipGranted(_)
        | Message::RecordJob(_)
        | Message::JobRecorded(_)
        | Message::RegisterTaskManager(_)
        | Message::RegistrationSuccess(_)
        | Message::GetAndRetainPartitionWithMetrics(_)
        | Message::DecideCommit(_)
        | Message::CommitDecided(_)
        | Message::RecordJobResult(_)
        | Message::JobResultRecorded(_)
        | Message::ClearJobEvents(_)
        | Message::JobEventsCleared(_)
        | Message::JobTerminated(_) => kind.to_owned(),
        Message::LeaderChanged(changed) => {
            let leader = changed.leader.as_ref().map_or_else(
                || "no leader".to_owned(),
                |leader| format!("{} with token {}", leader.process, leader.token),
            );
            format!("{kind}: {leader}")
        }
        Message::OpenJobEventStore(open) => format!("{kind} of epoch {}", open.token),
        Message::JobEventStoreOpened(opened) => {
            format!("{kind} with {} earlier events", opened.replay.events.len())
        }
        Message::PartitionReport(report) => {
            let partitions: Vec<_> = report.partitions.iter().map(|kept| kept.partition).collect();
            format!("{kind}: {}", List(&partitions))
        }
        Message::SubmitTask(submit) => format!("{kind} {}", submit.task.attempt),
        Message::ReleasePartitions(release) => format!("{kind}: {}", List(&release.partitions)),
        Message::UpdateTaskExecutionState(update) => format!("{kind} of {}", update.attempt),
        _ => return None,
    })
}

fn span(range: IndexRange) -> String {
    format!("{}..={}", range.start, range.end)
}

struct List<'a, T>(&'a [T]);

impl<T: Display> Display for List<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        for (position, item) in self.0.iter().enumerate() {
            write!(f, "{}{item}", if position == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}
