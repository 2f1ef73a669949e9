//! Faults of the network between processes: of one message, which a trigger names, or standing ones
//! between two processes until they are healed.

use std::fmt;
use std::str::FromStr;

use revenant::config::nearest;
use revenant::ids::ProcessId;
use revenant::message::Message;

use super::duration::Span;
use super::forms::{Form, listed};

/// How such faults are written.
pub const FORMS: &[Form] = &[
    Form::once("drop", "the message of the trigger is lost"),
    Form::once(
        "delay by 5 s",
        "the message of the trigger is late, and with it all that follows it on its connection",
    ),
    Form::once(
        "overtake by 5 s",
        "the message of the trigger alone is late: what is sent after it arrives before it",
    ),
    Form::once("duplicate after 10 ms", "the message of the trigger arrives once more, so much later"),
    Form::healed(
        "partition <process> from <other>",
        "no message between the two is sent or arrives, in either direction; either can be `any`, as in all \
         faults between two",
        "heal <process> from <other>",
    ),
    Form::healed(
        "cut <process> to <other>",
        "no message from the one to the other is sent or arrives; the way back works",
        "heal <process> from <other>",
    ),
    Form::healed(
        "slow <process> to <other> by 50 ms",
        "every message from the one to the other takes so much longer, in order",
        "heal <process> from <other>",
    ),
    Form::healed(
        "drop <kind> from <process> to <other>",
        "every message of this kind is lost; without `from` or `to`, whoever sends or gets it",
        "heal <process> from <other>",
    ),
    Form::once(
        "reset <process> to <other>",
        "what is under way between the two, in both directions, is lost; it counts as fired if there was something",
    ),
    Form::heal(
        "heal <process> from <other>",
        "ends every standing fault between the two, in both directions; one that names `any` is ended by `any`",
    ),
    Form::heal("heal network", "ends every standing fault of the network, but no rates"),
];

/// Senders and receivers of messages; without one, whoever sends or gets it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Route {
    pub from: Option<ProcessId>,
    pub to: Option<ProcessId>,
}

/// A message on its way to another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flight {
    pub kind: &'static str,
    pub from: ProcessId,
    pub to: ProcessId,
}

/// The message of this kind on this route that is number `occurrence` (from 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageTrigger {
    pub kind: &'static str,
    pub occurrence: u32,
    pub route: Route,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkFault {
    /// Befalls the message of the trigger.
    Message(MessageFault),
    /// No message between the two, both ways.
    Partition(Route),
    /// No message one way.
    Cut(Route),
    /// Every message takes so much longer.
    Slow(Route, Span),
    /// Every message of the kind is lost.
    DropKind(&'static str, Route),
    /// What is under way between the two is lost, both ways.
    Reset(Route),
    /// Ends every standing fault between the two, both ways.
    Heal(Route),
    /// Ends every standing fault.
    HealAll,
}

/// What befalls one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageFault {
    Drop,
    /// It is late, and all that follows it on its connection waits.
    Delay(Span),
    /// It alone is late.
    Overtake(Span),
    /// It arrives once more, so much later.
    Duplicate(Span),
}

impl Route {
    pub fn takes(self, flight: Flight) -> bool {
        self.from.is_none_or(|from| from == flight.from) && self.to.is_none_or(|to| to == flight.to)
    }

    pub const fn back(self) -> Self {
        Self { from: self.to, to: self.from }
    }

    /// Whether all messages of `other` are between these two.
    pub fn covers(self, other: Self) -> bool {
        let covers = |this: Self| {
            let end = |this: Option<ProcessId>, other: Option<ProcessId>| this.is_none() || this == other;
            end(this.from, other.from) && end(this.to, other.to)
        };
        covers(self) || covers(self.back())
    }

    pub fn processes(self) -> impl Iterator<Item = ProcessId> {
        self.from.into_iter().chain(self.to)
    }

    fn new(from: &str, to: &str) -> Result<Self, String> {
        let (from, to) = (end(from)?, end(to)?);
        match (from, to) {
            (Some(one), Some(other)) if one == other => Err(format!(
                "{one} and {other} are one process: only messages between two processes go over the network"
            )),
            _ => Ok(Self { from, to }),
        }
    }
}

/// A process, or `any`.
fn end(text: &str) -> Result<Option<ProcessId>, String> {
    match text.trim() {
        "any" => Ok(None),
        process => process.parse().map(Some).map_err(|error| format!("{error}, or any")),
    }
}

fn name(end: Option<ProcessId>) -> String {
    end.map_or_else(|| "any".to_owned(), |process| process.to_string())
}

/// ` from A to B`, without the ends that are anybody.
impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.from.map_or(Ok(()), |from| write!(f, " from {from}"))?;
        self.to.map_or(Ok(()), |to| write!(f, " to {to}"))
    }
}

/// What stands before ` from A to B`, and that route; either end may be left out.
fn with_route(text: &str) -> Result<(&str, Route), String> {
    let (rest, to) = text.split_once(" to ").unwrap_or((text, "any"));
    let (rest, from) = rest.split_once(" from ").unwrap_or((rest, "any"));
    Ok((rest.trim(), Route::new(from, to)?))
}

fn kind(text: &str) -> Result<&'static str, String> {
    let known = Message::KINDS.iter().copied();
    known.clone().find(|kind| *kind == text).ok_or_else(|| match nearest(text, known) {
        Some(near) => format!("there is no message '{text}', did you mean '{near}'?"),
        None => format!("there is no message '{text}': expected one of {}", Message::KINDS.join(", ")),
    })
}

impl fmt::Display for MessageTrigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "message {}#{}{}", self.kind, self.occurrence, self.route)
    }
}

impl MessageTrigger {
    /// What follows the word `message`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (message, route) = with_route(text)?;
        let wrong = |why: &str| {
            format!("'message {text}' {why}; expected for example 'message SubmitTask#3 from job-manager'")
        };
        let (name, occurrence) = message.split_once('#').ok_or_else(|| wrong("has no '#<number>'"))?;
        let kind = kind(name)?;
        let occurrence = occurrence.parse().ok().filter(|&number| number > 0);
        let occurrence = occurrence.ok_or_else(|| wrong("has no number: messages are numbered from 1"))?;
        Ok(Self { kind, occurrence, route })
    }

    pub fn takes(&self, flight: Flight) -> bool {
        self.kind == flight.kind && self.route.takes(flight)
    }
}

impl fmt::Display for MessageFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drop => f.write_str("drop"),
            Self::Delay(by) => write!(f, "delay by {by}"),
            Self::Overtake(by) => write!(f, "overtake by {by}"),
            Self::Duplicate(after) => write!(f, "duplicate after {after}"),
        }
    }
}

impl fmt::Display for NetworkFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let between = |f: &mut fmt::Formatter<'_>, what: &str, route: &Route, word: &str| {
            write!(f, "{what} {} {word} {}", name(route.from), name(route.to))
        };
        match self {
            Self::Message(fault) => fault.fmt(f),
            Self::Partition(route) => between(f, "partition", route, "from"),
            Self::Cut(route) => between(f, "cut", route, "to"),
            Self::Slow(route, by) => {
                between(f, "slow", route, "to")?;
                write!(f, " by {by}")
            }
            Self::DropKind(kind, route) => write!(f, "drop {kind}{route}"),
            Self::Reset(route) => between(f, "reset", route, "to"),
            Self::Heal(route) => between(f, "heal", route, "from"),
            Self::HealAll => f.write_str("heal network"),
        }
    }
}

impl NetworkFault {
    pub const fn is_heal(self) -> bool {
        matches!(self, Self::Heal(_) | Self::HealAll)
    }

    /// The processes that it is about.
    pub const fn route(self) -> Option<Route> {
        match self {
            Self::Message(_) | Self::HealAll => None,
            Self::Partition(route)
            | Self::Cut(route)
            | Self::Slow(route, _)
            | Self::DropKind(_, route)
            | Self::Reset(route)
            | Self::Heal(route) => Some(route),
        }
    }

    pub const fn stands(self) -> bool {
        matches!(self, Self::Partition(_) | Self::Cut(_) | Self::Slow(..) | Self::DropKind(..))
    }

    /// Whether this heal ends that fault.
    pub fn heals(self, other: Self) -> bool {
        let ends = match self {
            Self::HealAll => true,
            Self::Heal(route) => other.route().is_some_and(|other| route.covers(other)),
            _ => false,
        };
        ends && other.stands()
    }

    /// The fault that the text says, if it begins as one does.
    pub(super) fn parse(text: &str) -> Option<Result<Self, String>> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        if !["drop", "delay", "overtake", "duplicate", "partition", "cut", "slow", "reset", "heal"]
            .contains(&word)
        {
            return None;
        }
        Some(Self::parse_rest(text, word, rest.trim()))
    }

    fn parse_rest(text: &str, word: &str, rest: &str) -> Result<Self, String> {
        let wrong = || {
            let forms = FORMS.iter().filter(|form| form.text.starts_with(word));
            format!("'{text}' is not a fault of the network; expected {}", listed(forms))
        };
        let two = |rest: &str, between: &str| {
            let (from, to) = rest.split_once(between).ok_or_else(wrong)?;
            Route::new(from, to)
        };
        let span = |after: &str| {
            let span = rest.strip_prefix(after).ok_or_else(wrong)?;
            Span::from_str(span)
        };
        Ok(match word {
            "drop" if rest.is_empty() => Self::Message(MessageFault::Drop),
            "drop" => {
                let (name, route) = with_route(rest)?;
                Self::DropKind(kind(name)?, route)
            }
            "delay" => Self::Message(MessageFault::Delay(span("by ")?)),
            "overtake" => Self::Message(MessageFault::Overtake(span("by ")?)),
            "duplicate" => Self::Message(MessageFault::Duplicate(span("after ")?)),
            "partition" => Self::Partition(two(rest, " from ")?),
            "cut" => Self::Cut(two(rest, " to ")?),
            "slow" => {
                let (route, by) = rest.rsplit_once(" by ").ok_or_else(wrong)?;
                Self::Slow(two(route, " to ")?, by.parse()?)
            }
            "reset" => Self::Reset(two(rest, " to ")?),
            _ if rest == "network" => Self::HealAll,
            _ => Self::Heal(two(rest, " from ")?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::forms::read_back;
    use super::*;
    use crate::scenario::{Action, Trigger};

    #[test]
    fn a_fault_reads_back_what_it_displays() {
        read_back::<Action>(&[
            "partition any from high-availability",
            "cut task-manager-2 to any",
            "reset job-manager to shuffle-service-1",
            "drop Buffers to task-manager-1",
            "drop Buffers",
        ]);
        assert!(NetworkFault::parse("crash job-manager").is_none());
        read_back::<Trigger>(&[
            "message SubmitTask#3 from job-manager to task-manager-1",
            "message Buffers#1",
        ]);
    }

    #[test]
    fn a_wrong_fault_or_trigger_says_what_would_be_right() {
        for (text, why) in [
            ("partition job-manager", "expected 'partition <process> from <other>'"),
            ("cut job-manager from client", "expected 'cut <process> to <other>'"),
            ("slow job-manager to client", "expected 'slow <process> to <other> by 50 ms'"),
            ("slow job-manager to client by 5 parsecs", "'250 ms'"),
            ("delay 5 s", "expected 'delay by 5 s'"),
            ("duplicate by 5 s", "expected 'duplicate after 10 ms'"),
            ("heal job-manager", "expected 'heal <process> from <other>', 'heal network'"),
            ("drop SubmitTsk from any", "did you mean 'SubmitTask'?"),
            ("drop xyz", "expected one of Contend, "),
            ("cut jobmanager to client", "unknown process 'jobmanager'"),
            ("cut jobmanager to client", ", or any"),
            ("reset client to client", "only messages between two processes"),
        ] {
            let error = NetworkFault::parse(text).unwrap_or_else(|| panic!("{text}")).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        for (text, why) in [
            ("message SubmitTask", "has no '#<number>'"),
            ("message SubmitTask#0", "numbered from 1"),
            ("message SubmitTsk#1", "did you mean 'SubmitTask'?"),
            ("message SubmitTask#1 from client to client", "only messages between two processes"),
        ] {
            let error = text.parse::<Trigger>().unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_heal_ends_what_stands_between_the_two_both_ways_and_no_more() {
        let fault = |text: &str| NetworkFault::parse(text).unwrap().unwrap();
        let heal = fault("heal job-manager from task-manager-1");
        for ended in [
            "partition task-manager-1 from job-manager",
            "cut job-manager to task-manager-1",
            "slow task-manager-1 to job-manager by 1 s",
            "drop SubmitTask from job-manager to task-manager-1",
        ] {
            assert!(heal.heals(fault(ended)), "{ended}");
            assert!(fault("heal network").heals(fault(ended)), "{ended}");
            assert!(fault("heal any from task-manager-1").heals(fault(ended)), "{ended}");
        }
        for stays in ["partition any from job-manager", "cut job-manager to client", "drop SubmitTask"] {
            assert!(!heal.heals(fault(stays)), "{stays}");
        }
        assert!(!fault("heal network").heals(fault("reset client to job-manager")));
    }
}
