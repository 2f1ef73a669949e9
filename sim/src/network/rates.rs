//! Faults by rate: each message may be lost, late or repeated, as is drawn for it.
//!
//! Each rate has draws of its own, by sender, receiver and kind, so that leaving one out moves no other.

use std::time::Duration;

use revenant::actor::Time;
use revenant::ids::Address;

use crate::draw::{Draw, Draws, Purpose};
use crate::scenario::{DurationRange, Network, Rate, Span};

#[derive(Debug)]
struct Dice {
    /// The key in the scenario.
    key: &'static str,
    purpose: Purpose,
    rate: Rate,
    /// How much later, or how much later once more.
    range: DurationRange,
    struck: bool,
}

#[derive(Debug)]
pub struct Rates {
    /// Nothing is drawn from this time on.
    until: Time,
    drop: Dice,
    duplicate: Dice,
    delay: Dice,
    overtake: Dice,
}

/// What was drawn for a message.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Struck {
    pub drop: bool,
    pub duplicate: Option<Duration>,
    pub delay: Option<Duration>,
    pub overtake: Option<Duration>,
}

impl Dice {
    fn throw(&mut self, draws: &mut Draws, key: (Address, Address, &'static str)) -> Option<Duration> {
        if self.rate == Rate::default() {
            return None;
        }
        let draw = draws.draw(self.purpose, key);
        if draw.up_to(u64::from(Rate::ALWAYS.0) - 1) >= u64::from(self.rate.0) {
            return None;
        }
        self.struck = true;
        Some(Draw { value: draw.order, order: 0 }.within(self.range))
    }
}

impl Rates {
    pub fn new(network: &Network) -> Self {
        let dice = |key, purpose, rate, range| Dice { key, purpose, rate, range, struck: false };
        let none = DurationRange { min: Duration::ZERO, max: Duration::ZERO };
        Self {
            until: network.rates_until.map_or(Time(u64::MAX), |Span(until)| Time(0) + until),
            drop: dice("drop-rate", Purpose::DropRate, network.drop_rate, none),
            duplicate: dice(
                "duplicate-rate",
                Purpose::DuplicateRate,
                network.duplicate_rate,
                network.duplicate_after,
            ),
            delay: dice("delay-rate", Purpose::DelayRate, network.delay_rate, network.delay_by),
            overtake: dice(
                "overtake-rate",
                Purpose::OvertakeRate,
                network.overtake_rate,
                network.overtake_by,
            ),
        }
    }

    pub fn throw(&mut self, now: Time, draws: &mut Draws, key: (Address, Address, &'static str)) -> Struck {
        if now >= self.until {
            return Struck::default();
        }
        Struck {
            drop: self.drop.throw(draws, key).is_some(),
            duplicate: self.duplicate.throw(draws, key),
            delay: self.delay.throw(draws, key),
            overtake: self.overtake.throw(draws, key),
        }
    }

    /// The keys of rates that never struck.
    pub fn idle(&self) -> Vec<&'static str> {
        let all = [&self.drop, &self.duplicate, &self.delay, &self.overtake];
        let idle = all.into_iter().filter(|dice| dice.rate != Rate::default() && !dice.struck);
        idle.map(|dice| dice.key).collect()
    }
}

#[cfg(test)]
mod tests {
    use revenant::ids::ProcessId;

    use super::*;

    const KEY: (Address, Address, &str) =
        (Address::MASTER, Address::executor(ProcessId::TaskManager(1)), "SubmitTask");

    fn network(text: &str) -> Network {
        toml::from_str(text).unwrap()
    }

    fn thrown(text: &str) -> Vec<Struck> {
        let (mut rates, mut draws) = (Rates::new(&network(text)), Draws::new(5));
        (0..1000).map(|n| rates.throw(Time(n), &mut draws, KEY)).collect()
    }

    #[test]
    fn a_rate_strikes_about_as_often_as_it_says_and_within_its_range() {
        let all = thrown("delay-rate = 0.25\ndelay-by = '1 s..2 s'");
        let struck: Vec<Duration> = all.iter().filter_map(|struck| struck.delay).collect();
        assert!((200..300).contains(&struck.len()), "{}", struck.len());
        let range = Duration::from_secs(1)..=Duration::from_secs(2);
        assert!(struck.iter().all(|by| range.contains(by)));
        assert!(thrown("drop-rate = 1").iter().all(|struck| struck.drop));
    }

    #[test]
    fn a_rate_that_is_left_out_moves_no_other() {
        let both = thrown("drop-rate = 0.1\novertake-rate = 0.1");
        let alone = thrown("overtake-rate = 0.1");
        let overtakes = |all: &[Struck]| all.iter().map(|struck| struck.overtake).collect::<Vec<_>>();
        assert_eq!(overtakes(&both), overtakes(&alone));
        assert_ne!(both, alone);
    }

    #[test]
    fn rates_end_and_one_that_never_struck_is_idle() {
        let text = "drop-rate = 1\nduplicate-rate = 0.000001\nrates-until = '500 ns'";
        let all = thrown(text);
        assert_eq!(all.iter().filter(|struck| struck.drop).count(), 500);
        let (mut rates, mut draws) = (Rates::new(&network(text)), Draws::new(5));
        assert_eq!(rates.idle(), ["drop-rate", "duplicate-rate"]);
        rates.throw(Time(0), &mut draws, KEY);
        assert_eq!(rates.idle(), ["duplicate-rate"]);
    }
}
