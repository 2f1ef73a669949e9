//! The timers of one actor.

use std::collections::{BTreeMap, BTreeSet};

use crate::actor::{Time, TimerId};

#[derive(Debug, Default)]
pub struct Timers {
    set: BTreeMap<TimerId, Time>,
    order: BTreeSet<(Time, TimerId)>,
}

impl Timers {
    /// Setting a timer that is already set moves it.
    pub fn set(&mut self, timer: TimerId, at: Time) {
        self.cancel(timer);
        self.set.insert(timer, at);
        self.order.insert((at, timer));
    }

    pub fn cancel(&mut self, timer: TimerId) {
        if let Some(at) = self.set.remove(&timer) {
            self.order.remove(&(at, timer));
        }
    }

    pub fn next(&self) -> Option<Time> {
        self.order.first().map(|&(at, _)| at)
    }

    /// Takes the earliest timer that is due.
    pub fn pop_due(&mut self, now: Time) -> Option<TimerId> {
        let &(at, timer) = self.order.first()?;
        if at > now {
            return None;
        }
        self.cancel(timer);
        Some(timer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_fire_in_the_order_of_their_times_and_once() {
        let mut timers = Timers::default();
        timers.set(TimerId(1), Time(30));
        timers.set(TimerId(2), Time(20));
        timers.set(TimerId(3), Time(10));
        timers.cancel(TimerId(3));
        timers.set(TimerId(1), Time(5));
        assert_eq!(timers.next(), Some(Time(5)));
        assert_eq!(timers.pop_due(Time(4)), None);
        assert_eq!(timers.pop_due(Time(20)), Some(TimerId(1)));
        assert_eq!(timers.pop_due(Time(20)), Some(TimerId(2)));
        assert_eq!(timers.pop_due(Time(99)), None);
    }
}
