//! The network: one message that is lost, late or comes twice, ways that are closed or slow for a while, and
//! connections that are reset.

use std::collections::BTreeMap;
use std::time::Duration;

use revenant::actor::Time;

use super::{Draft, Kind, Stream, at, kind};
use crate::scenario::{Action, Fault, MessageFault, MessageTrigger, NetworkFault, Route, Span, Trigger};
use crate::trace::Delivered;

pub const KINDS: &[Kind] = &[
    kind("drop message", 3, |draws, draft| message(draws, draft, |_| MessageFault::Drop)),
    kind("delay message", 2, |draws, draft| message(draws, draft, |draws| MessageFault::Delay(late(draws)))),
    kind("overtake message", 3, |draws, draft| {
        message(draws, draft, |draws| MessageFault::Overtake(late(draws)))
    }),
    kind("duplicate message", 3, |draws, draft| {
        message(draws, draft, |draws| MessageFault::Duplicate(late(draws)))
    }),
    kind("crash at message", 3, crash_at_message),
    kind("reset", 2, reset),
    kind("partition", 3, |draws, draft| stands(draws, draft, NetworkFault::Partition)),
    kind("cut", 3, |draws, draft| stands(draws, draft, NetworkFault::Cut)),
    kind("slow", 2, |draws, draft| {
        let by = late(draws);
        stands(draws, draft, |route| NetworkFault::Slow(route, by))
    }),
    kind("drop kind", 3, drop_kind),
];

fn late(draws: &mut Stream) -> Span {
    Span(Duration::from_millis(draws.one_of(&[1, 50, 1000, 15_000, 90_000])))
}

/// A message behind all faults so far, as a trigger. Those that got lost before are not counted: then it
/// is a later one, or none.
fn trigger(draws: &mut Stream, draft: &Draft) -> Option<(MessageTrigger, Route)> {
    let remote = |sent: &Delivered| sent.from.process != sent.process;
    let messages: Vec<&Delivered> = draft.run.detail.messages.iter().filter(|sent| remote(sent)).collect();
    let mut kinds: BTreeMap<&'static str, u32> = BTreeMap::new();
    for sent in messages.iter().filter(|sent| sent.time > draft.from && sent.time < draft.until) {
        *kinds.entry(sent.message.kind()).or_default() += 1;
    }
    // Of each kind as often, however many there are.
    let kinds: Vec<(&'static str, u32)> = kinds.into_iter().collect();
    let &(kind, behind) = draws.any(&kinds)?;
    let exact = draws.one_in(2);
    let of_kind = messages.iter().filter(|sent| sent.message.kind() == kind);
    let before = of_kind.clone().filter(|sent| sent.time <= draft.from).count();
    let chosen = *of_kind.clone().nth(before + draws.below(u64::from(behind)) as usize)?;
    let way = Route { from: Some(chosen.from.process), to: Some(chosen.process) };
    let route = if exact { way } else { Route::default() };
    let is_counted = |sent: &Delivered| route == Route::default() || on(way, sent);
    let occurrence = of_kind.take_while(|sent| !std::ptr::eq(**sent, chosen)).filter(|sent| is_counted(sent));
    let occurrence = occurrence.count() as u32 + 1;
    Some((MessageTrigger { kind, occurrence, route }, way))
}

fn on(way: Route, sent: &Delivered) -> bool {
    way == Route { from: Some(sent.from.process), to: Some(sent.process) }
}

fn message(draws: &mut Stream, draft: &Draft, what: fn(&mut Stream) -> MessageFault) -> Option<Vec<Fault>> {
    let (trigger, _) = trigger(draws, draft)?;
    let action = Action::Network(NetworkFault::Message(what(draws)));
    Some(vec![Fault { at: Trigger::Message(trigger), action, restart_after: None }])
}

/// One of the two between which it goes.
fn crash_at_message(draws: &mut Stream, draft: &Draft) -> Option<Vec<Fault>> {
    let (trigger, way) = trigger(draws, draft)?;
    let process = draws.one_of(&[way.from?, way.to?]);
    let action = Action::Crash { process, machine: draws.one_in(2) };
    Some(vec![Fault { at: Trigger::Message(trigger), action, restart_after: super::crash::restart(draws) }])
}

/// Between the two of a message that just left.
fn reset(draws: &mut Stream, draft: &Draft) -> Option<Vec<Fault>> {
    let (trigger, way) = trigger(draws, draft)?;
    let ends = draws.one_of(&[way, way.back(), Route { from: way.from, to: None }]);
    let action = Action::Network(NetworkFault::Reset(ends));
    Some(vec![Fault { at: Trigger::Message(trigger), action, restart_after: None }])
}

/// Two processes, or all and one.
fn route(draws: &mut Stream, draft: &Draft) -> Option<Route> {
    let one = draws.one_of(&draft.processes());
    let other = draws.one_of(&draft.processes());
    let all = draws.one_in(4);
    let route = Route { from: Some(one), to: if all { None } else { Some(other) } };
    let route = draws.one_of(&[route, route.back()]);
    (route.from != route.to).then_some(route)
}

fn for_a_while(
    draws: &mut Stream,
    draft: &Draft,
    begin: Time,
    fault: NetworkFault,
    heal: NetworkFault,
) -> Vec<Fault> {
    let for_so_long = Duration::from_millis(draws.one_of(&[1, 100, 3_000, 30_000, 200_000]));
    let stays = draws.one_in(3) && draft.is_hostile();
    let mut faults = vec![at(begin, Action::Network(fault))];
    if !stays {
        faults.push(at(begin + for_so_long, Action::Network(heal)));
    }
    faults
}

fn stands(draws: &mut Stream, draft: &Draft, what: impl Fn(Route) -> NetworkFault) -> Option<Vec<Fault>> {
    let route = route(draws, draft)?;
    let begin = draft.time(draws)?;
    Some(for_a_while(draws, draft, begin, what(route), NetworkFault::Heal(route)))
}

/// Every message of a kind that occurs behind all faults so far.
fn drop_kind(draws: &mut Stream, draft: &Draft) -> Option<Vec<Fault>> {
    let begin = draft.time(draws)?;
    let mut kinds: Vec<&'static str> = Vec::new();
    for sent in &draft.run.detail.messages {
        let kind = sent.message.kind();
        if sent.time > begin
            && sent.time < draft.until
            && sent.from.process != sent.process
            && !kinds.contains(&kind)
        {
            kinds.push(kind);
        }
    }
    let &kind = draws.any(&kinds)?;
    let fault = NetworkFault::DropKind(kind, Route::default());
    Some(for_a_while(draws, draft, begin, fault, NetworkFault::HealAll))
}
