//! What the clock of a machine shows, and when it will show a given time. Never decides what happens
//! then.

use revenant::actor::Time;

use crate::scenario::{ClockError, ClockFaultKind, Drift, Skew};

/// What a clock that is ever wrong shows at the start of a run, so that it can go back.
const NOON: i128 = 43_200_000_000_000;
const MILLION: i128 = 1_000_000;

/// A clock: true until something is wrong with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// What a true clock shows at the start of the run, in nanoseconds.
    origin: i128,
    /// Since when it goes as it does, in true time.
    since: Time,
    /// What it showed then.
    shown: i128,
    /// Millionths by which it is fast.
    drift: i128,
}

impl Clock {
    /// A clock that this scenario tells to be wrong, now or later.
    pub fn of(error: ClockError) -> Self {
        let ClockError { skew: Skew(skew), drift: Drift(drift) } = error;
        Self { origin: NOON, since: Time(0), shown: NOON + i128::from(skew), drift: i128::from(drift) }
    }

    /// What it shows at a true time at which it goes as it does now.
    pub fn shows(&self, at: Time) -> Time {
        Time(u64::try_from(self.exact(at)).unwrap_or_default())
    }

    fn exact(&self, at: Time) -> i128 {
        let passed = i128::from(at.0.saturating_sub(self.since.0));
        self.shown + passed * (MILLION + self.drift) / MILLION
    }

    /// The first true time from `now` on at which it shows `local` or more.
    pub fn reaches(&self, local: Time, now: Time) -> Time {
        let missing = i128::from(local.0) - self.shown;
        let rate = MILLION + self.drift;
        let passed = (missing.max(0) * MILLION + rate - 1) / rate;
        let at = i128::from(self.since.0) + passed;
        Time(u64::try_from(at).unwrap_or(u64::MAX)).max(now)
    }

    pub fn change(&mut self, now: Time, what: ClockFaultKind) {
        let shown = self.exact(now);
        self.since = now;
        match what {
            ClockFaultKind::Jump(Skew(by)) => self.shown = (shown + i128::from(by)).max(0),
            ClockFaultKind::Drift(Drift(ppm)) => {
                self.shown = shown;
                self.drift = i128::from(ppm);
            }
            ClockFaultKind::Heal => {
                self.shown = self.origin + i128::from(now.0);
                self.drift = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn wrong(skew: i64, drift: i32) -> Clock {
        Clock::of(ClockError { skew: Skew(skew), drift: Drift(drift) })
    }

    #[test]
    fn a_clock_that_nothing_is_wrong_with_shows_the_time() {
        let clock = Clock::default();
        for at in [0, 1, 7 * S, u64::MAX / 4] {
            assert_eq!((clock.shows(Time(at)), clock.reaches(Time(at), Time(0))), (Time(at), Time(at)));
        }
        assert_eq!(clock.reaches(Time(3), Time(9)), Time(9));
    }

    #[test]
    fn a_timer_fires_when_the_clock_shows_its_time_and_not_before() {
        for drift in [-500_000, -333, -1, 0, 1, 777, 500_000] {
            let mut clock = wrong(-5, drift);
            clock.change(Time(12_345), ClockFaultKind::Jump(Skew(99)));
            let now = clock.shows(Time(20_000));
            for wait in [0, 1, 2, 3, 1_000, S, 60 * S + 1] {
                let local = Time(now.0 + wait);
                let at = clock.reaches(local, Time(20_000));
                assert!(clock.shows(at) >= local, "{drift} {wait}");
                assert!(at == Time(20_000) || clock.shows(Time(at.0 - 1)) < local, "{drift} {wait}");
            }
        }
    }

    #[test]
    fn it_jumps_both_ways_drifts_and_is_healed() {
        let mut clock = wrong(0, 0);
        let noon = clock.shows(Time(0)).0;
        clock.change(Time(10 * S), ClockFaultKind::Jump(Skew(-4 * S.cast_signed())));
        assert_eq!(clock.shows(Time(10 * S)).0, noon + 6 * S);
        assert_eq!(clock.reaches(Time(noon + 10 * S), Time(10 * S)), Time(14 * S));
        clock.change(Time(12 * S), ClockFaultKind::Drift(Drift(500_000)));
        assert_eq!(clock.shows(Time(14 * S)).0, noon + 11 * S);
        clock.change(Time(14 * S), ClockFaultKind::Jump(Skew(9 * S.cast_signed())));
        assert_eq!(
            clock.reaches(Time(noon + 12 * S), Time(14 * S)),
            Time(14 * S),
            "what it jumped over is due"
        );
        clock.change(Time(20 * S), ClockFaultKind::Heal);
        assert_eq!(clock.shows(Time(21 * S)).0, noon + 21 * S);
    }
}
