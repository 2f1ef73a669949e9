//! Crash points and how they are written.
//!
//! By number: `job-manager/1:master@57.1` dies in the 57th event of that actor of the first
//! incarnation, after 1 of the event's counting effects has left (see
//! [`revenant::actor::Effect::counts`]). By name: `job-manager/1:job_event.sync#3.before` dies
//! before the third effect of that name leaves in that incarnation, `.after` right after it.

use std::fmt;
use std::str::FromStr;

use revenant::config::nearest;
use revenant::ids::{ActorId, ExecutionAttemptId, ExecutionVertexId, FencingToken, JobVertexId, ProcessId};
use revenant::message::Message;

use crate::scenario::{OPERATIONS, PURPOSES};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CrashPoint {
    pub process: ProcessId,
    /// From 1.
    pub incarnation: u32,
    pub at: PointAt,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PointAt {
    /// Event `event` (from 1) of the actor, after `effect` of its counting effects.
    Number { actor: ActorId, event: u64, effect: u32 },
    /// The effect of this name that is number `occurrence` (from 1).
    Name { name: String, occurrence: u32, after: bool },
}

impl CrashPoint {
    /// Whether a process of this kind has the actor, or there is an effect of this name; an error says what there
    /// is. Whether such an effect occurs there, only a run knows.
    pub fn check(&self) -> Result<(), String> {
        let actor = match &self.at {
            PointAt::Number { actor, .. } => *actor,
            PointAt::Name { name, .. } => return check_effect(name),
        };
        let (fits, has) = match self.process {
            ProcessId::JobManager(_) => {
                (matches!(actor, ActorId::Master | ActorId::Writer), "master and writer")
            }
            ProcessId::TaskManager(_) => (
                matches!(actor, ActorId::Executor | ActorId::Shuffle | ActorId::Task(_)),
                "executor, shuffle and task-<attempt>",
            ),
            ProcessId::HighAvailability => (actor == ActorId::HighAvailability, "ha"),
            ProcessId::Client => (actor == ActorId::Client, "client"),
            ProcessId::ShuffleService(_) => {
                (matches!(actor, ActorId::ShuffleWorker | ActorId::Shuffle), "shuffle-worker and shuffle")
            }
        };
        if fits { Ok(()) } else { Err(format!("{} has no actor {actor}: it has {has}", self.process)) }
    }
}

/// Whether there are effects of this name: messages by their kind, operations of disks, and what starts and ends
/// actors.
fn check_effect(name: &str) -> Result<(), String> {
    const OTHERS: [&str; 3] = ["spawn", "stop", "exit"];
    let of_disks = PURPOSES.iter().flat_map(|purpose| {
        OPERATIONS.iter().map(move |operation| format!("{}.{operation}", purpose.name()))
    });
    let known: Vec<String> =
        Message::KINDS.iter().chain(&OTHERS).map(|name| (*name).to_owned()).chain(of_disks).collect();
    if known.iter().any(|known| known == name) {
        return Ok(());
    }
    Err(match nearest(name, known.iter().map(String::as_str)) {
        Some(near) => format!("there is no effect '{name}', did you mean '{near}'?"),
        None => format!(
            "there is no effect '{name}': expected a message as 'SubmitTask', an operation of a disk as \
             'job_event.sync', or one of {}; `cargo sim points` lists those of a run",
            OTHERS.join(", ")
        ),
    })
}

impl fmt::Display for CrashPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}:", self.process, self.incarnation)?;
        match &self.at {
            PointAt::Number { actor, event, effect } => write!(f, "{actor}@{event}.{effect}"),
            PointAt::Name { name, occurrence, after } => {
                write!(f, "{name}#{occurrence}.{}", if *after { "after" } else { "before" })
            }
        }
    }
}

impl FromStr for CrashPoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            format!(
                "'{text}' is not a crash point: {why}; expected for example \
                 'job-manager/1:master@57.1' (event 57, after 1 effect) or \
                 'job-manager/1:job_event.sync#3.before'"
            )
        };
        let (incarnation, at) = text.split_once(':').ok_or_else(|| wrong("there is no ':'"))?;
        let (process, incarnation) = parse_incarnation(incarnation).map_err(|why| wrong(&why))?;
        let at = if let Some((actor, numbers)) = at.split_once('@') {
            let actor = parse_actor(actor).ok_or_else(|| {
                wrong(&format!(
                    "unknown actor '{actor}' (master, writer, executor, shuffle, shuffle-worker, ha, client or task-<attempt>)"
                ))
            })?;
            let (event, effect) =
                numbers.split_once('.').ok_or_else(|| wrong("the event has no '.<effect>'"))?;
            let event = event.parse().ok().filter(|&n| n > 0);
            let effect = effect.parse().ok();
            let (Some(event), Some(effect)) = (event, effect) else {
                return Err(wrong("events are numbered from 1 and effects from 0"));
            };
            PointAt::Number { actor, event, effect }
        } else {
            let (name, occurrence) =
                at.split_once('#').ok_or_else(|| wrong("there is neither '@' nor '#'"))?;
            let (occurrence, side) =
                occurrence.split_once('.').ok_or_else(|| wrong("it ends without .before or .after"))?;
            let after = match side {
                "before" => false,
                "after" => true,
                _ => return Err(wrong("it ends without .before or .after")),
            };
            let occurrence = occurrence.parse().ok().filter(|&n| n > 0);
            let occurrence = occurrence.ok_or_else(|| wrong("occurrences are numbered from 1"))?;
            if name.is_empty() {
                return Err(wrong("the effect has no name"));
            }
            PointAt::Name { name: name.to_owned(), occurrence, after }
        };
        Ok(Self { process, incarnation, at })
    }
}

/// `job-manager/1`.
pub fn parse_incarnation(text: &str) -> Result<(ProcessId, u32), String> {
    let (process, incarnation) =
        text.split_once('/').ok_or_else(|| format!("'{text}' has no '/<incarnation>'"))?;
    let incarnation = incarnation.parse().ok().filter(|&n| n > 0);
    let incarnation = incarnation.ok_or_else(|| "incarnations are numbered from 1".to_owned())?;
    Ok((process.parse()?, incarnation))
}

/// Reads what [`ActorId`] displays.
pub fn parse_actor(text: &str) -> Option<ActorId> {
    Some(match text {
        "master" => ActorId::Master,
        "writer" => ActorId::Writer,
        "executor" => ActorId::Executor,
        "shuffle" => ActorId::Shuffle,
        "shuffle-worker" => ActorId::ShuffleWorker,
        "ha" => ActorId::HighAvailability,
        "client" => ActorId::Client,
        _ => {
            let (vertex, rest) = text.strip_prefix("task-v")?.split_once('.')?;
            let (subtask, rest) = rest.split_once(".e")?;
            let (epoch, number) = rest.split_once('a')?;
            ActorId::Task(ExecutionAttemptId {
                subtask: ExecutionVertexId::new(JobVertexId(vertex.parse().ok()?), subtask.parse().ok()?),
                epoch: FencingToken(epoch.parse().ok()?),
                number: number.parse().ok()?,
            })
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_reads_back_what_it_displays() {
        for text in [
            "job-manager/1:master@57.1",
            "job-manager/2:job_event.sync#3.before",
            "job-manager/2:SubmitTask#12.after",
            "task-manager-3/1:task-v1.0.e2a7@1.0",
            "high-availability/1:ha@3.0",
            "client/1:client@1.0",
            "task-manager-1/4:shuffle@9.2",
            "shuffle-service-2/1:shuffle-worker@3.1",
        ] {
            assert_eq!(text.parse::<CrashPoint>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_misspelt_point_says_what_is_wrong() {
        for (text, why) in [
            ("job-manager:master@57.1", "'job-manager' has no '/<incarnation>'"),
            ("job-manager/0:master@57.1", "incarnations are numbered from 1"),
            ("jobmanager/1:master@57.1", "unknown process 'jobmanager'"),
            ("job-manager/1:mster@57.1", "unknown actor 'mster'"),
            ("job-manager/1:master@0.1", "events are numbered from 1"),
            ("job-manager/1:master@5", "no '.<effect>'"),
            ("job-manager/1:sync", "neither '@' nor '#'"),
            ("job-manager/1:sync#1.during", "without .before or .after"),
            ("job-manager/1:#1.after", "no name"),
            ("everything", "no ':'"),
        ] {
            let error = text.parse::<CrashPoint>().unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
