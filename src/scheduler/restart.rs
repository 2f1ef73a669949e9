//! Whether a job may go on after a failure, and after what pause (Flink's RestartBackoffTimeStrategy
//! and its four implementations). It counts failures and nothing else; what runs again is decided
//! elsewhere. A new leader begins to count anew.

use std::collections::VecDeque;
use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64;

use crate::actor::Time;
use crate::config::{Attempts, Configuration, Decimal, RestartStrategy};
use crate::ids::FencingToken;

/// A pause before jitter grows no longer than this, more than 100 years, so that its jitter can be
/// computed.
const BACKOFF_MAX: Duration = Duration::from_nanos(u64::MAX / 4);

/// Counts a job's failures under one leader.
#[derive(Clone, Debug)]
pub struct RestartBackoff(Strategy);

#[derive(Clone, Debug)]
enum Strategy {
    None,
    FixedDelay {
        left: u32,
        delay: Duration,
    },
    FailureRate {
        /// The last failures, one more than may be within the interval.
        failures: VecDeque<Time>,
        max: usize,
        interval: Duration,
        delay: Duration,
    },
    ExponentialDelay(ExponentialDelay),
}

#[derive(Clone, Debug)]
struct ExponentialDelay {
    initial: Duration,
    max: Duration,
    multiplier: Decimal,
    threshold: Duration,
    jitter: Decimal,
    attempts: Attempts,
    token: FencingToken,
    /// Restarts since the pause was last the first one.
    restarts: u32,
    /// The next pause, before jitter and bounds.
    backoff: Duration,
    /// When the last restart begins or began.
    next: Option<Time>,
}

impl RestartBackoff {
    pub fn new(config: &Configuration, token: FencingToken) -> Self {
        Self(match config.restart_strategy {
            RestartStrategy::None => Strategy::None,
            RestartStrategy::FixedDelay => {
                Strategy::FixedDelay { left: config.restart_attempts, delay: config.restart_delay }
            }
            RestartStrategy::FailureRate => Strategy::FailureRate {
                failures: VecDeque::new(),
                max: config.failure_rate_max as usize,
                interval: config.failure_rate_interval,
                delay: config.failure_rate_delay,
            },
            RestartStrategy::ExponentialDelay => Strategy::ExponentialDelay(ExponentialDelay {
                initial: config.exponential_initial,
                max: config.exponential_max,
                multiplier: config.exponential_multiplier,
                threshold: config.exponential_reset,
                jitter: config.exponential_jitter,
                attempts: config.exponential_attempts,
                token,
                restarts: 0,
                backoff: config.exponential_initial,
                next: None,
            }),
        })
    }

    /// Something failed: the pause before the job goes on, or `None` if it must not. With a fixed
    /// delay or a failure rate every failure counts, also one during a pause; with an exponential
    /// delay those during a pause belong to the failure that it follows.
    pub fn failed(&mut self, now: Time) -> Option<Duration> {
        match &mut self.0 {
            Strategy::None => None,
            Strategy::FixedDelay { left, delay } => {
                *left = left.checked_sub(1)?;
                Some(*delay)
            }
            Strategy::FailureRate { failures, max, interval, delay } => {
                failures.push_back(now);
                if failures.len() <= *max {
                    return Some(*delay);
                }
                let earliest = failures.pop_front()?;
                (now.since(earliest) > *interval).then_some(*delay)
            }
            Strategy::ExponentialDelay(exponential) => exponential.failed(now),
        }
    }
}

impl ExponentialDelay {
    fn failed(&mut self, now: Time) -> Option<Duration> {
        match self.next {
            Some(next) if now <= next => return self.may_restart().then(|| next.since(now)),
            Some(next) if now.since(next) < self.threshold => {}
            _ => {
                self.restarts = 0;
                self.backoff = self.initial;
            }
        }
        self.restarts = self.restarts.saturating_add(1);
        let pause = self.jittered().min(self.max).max(self.initial);
        self.backoff = self.multiplier.of(self.backoff).min(BACKOFF_MAX);
        self.next = Some(now + pause);
        self.may_restart().then_some(pause)
    }

    fn may_restart(&self) -> bool {
        match self.attempts {
            Attempts::Infinite => true,
            Attempts::AtMost(attempts) => self.restarts <= attempts,
        }
    }

    /// The pause, longer or shorter by up to the jitter factor's part of it. By how much follows from
    /// the leader and the restart, so that jobs that failed together do not start together and the
    /// same job does the same again.
    fn jittered(&self) -> Duration {
        let part = self.jitter.of(self.backoff);
        let mut bytes = [0; 12];
        bytes[..8].copy_from_slice(&self.token.0.to_le_bytes());
        bytes[8..].copy_from_slice(&self.restarts.to_le_bytes());
        let within = (u128::from(xxh3_64(&bytes)) * (part.as_nanos() * 2 + 1)) >> 64;
        let shift = Duration::from_nanos(u64::try_from(within).unwrap_or(u64::MAX));
        self.backoff.saturating_sub(part).saturating_add(shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Time {
        Time(millis * 1_000_000)
    }

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn backoff_under(token: u64, options: &[(&str, &str)]) -> RestartBackoff {
        let mut config = Configuration::default();
        for (key, value) in options {
            config.set(&format!("restart-strategy.{key}"), value).unwrap();
        }
        RestartBackoff::new(&config, FencingToken(token))
    }

    fn backoff(options: &[(&str, &str)]) -> RestartBackoff {
        backoff_under(1, options)
    }

    #[test]
    fn without_a_strategy_no_failure_is_survived() {
        assert_eq!(backoff(&[]).failed(at(0)), None);
    }

    #[test]
    fn a_fixed_delay_counts_every_failure_also_during_the_pause() {
        let mut backoff =
            backoff(&[("type", "fixed-delay"), ("fixed-delay.attempts", "3"), ("fixed-delay.delay", "10 s")]);
        assert_eq!(backoff.failed(at(0)), Some(ms(10_000)));
        assert_eq!(backoff.failed(at(1)), Some(ms(10_000)));
        assert_eq!(backoff.failed(at(9_999_999)), Some(ms(10_000)));
        assert_eq!(backoff.failed(at(99_999_999)), None);
        assert_eq!(backoff.failed(at(999_999_999)), None);
    }

    #[test]
    fn a_failure_rate_allows_so_many_failures_in_any_interval() {
        let mut backoff = backoff(&[
            ("type", "failure-rate"),
            ("failure-rate.max-failures-per-interval", "2"),
            ("failure-rate.failure-rate-interval", "1 s"),
            ("failure-rate.delay", "50 ms"),
        ]);
        // The failure two before was 1,001 ms ago each time, at last 1,000 ms.
        for (time, pause) in [
            (0, Some(ms(50))),
            (600, Some(ms(50))),
            (1_001, Some(ms(50))),
            (1_601, Some(ms(50))),
            (2_002, Some(ms(50))),
            (2_601, None),
        ] {
            assert_eq!(backoff.failed(at(time)), pause, "at {time} ms");
        }
        // An interval is over only after its last moment.
        assert_eq!(backoff.failed(at(3_002)), None);
        assert_eq!(backoff.failed(at(3_602)), Some(ms(50)));
    }

    fn exponential(more: &[(&str, &str)]) -> RestartBackoff {
        let options = [
            ("type", "exponential-delay"),
            ("exponential-delay.initial-backoff", "1 s"),
            ("exponential-delay.max-backoff", "3 s"),
            ("exponential-delay.backoff-multiplier", "1.5"),
            ("exponential-delay.reset-backoff-threshold", "10 s"),
            ("exponential-delay.jitter-factor", "0"),
        ];
        backoff(&[&options, more].concat())
    }

    #[test]
    fn an_exponential_delay_grows_to_its_bound_and_begins_anew_after_a_calm() {
        let mut backoff = exponential(&[]);
        assert_eq!(backoff.failed(at(0)), Some(ms(1_000))); // until 1 s
        assert_eq!(backoff.failed(at(1_001)), Some(ms(1_500))); // until 2.501 s
        assert_eq!(backoff.failed(at(3_000)), Some(ms(2_250))); // until 5.25 s
        assert_eq!(backoff.failed(at(6_000)), Some(ms(3_000))); // 3.375 s is too long; until 9 s
        assert_eq!(backoff.failed(at(18_999)), Some(ms(3_000))); // 9.999 s after 9 s; until 21.999 s
        assert_eq!(backoff.failed(at(31_999)), Some(ms(1_000))); // 10 s after it
    }

    #[test]
    fn failures_during_an_exponential_delay_belong_to_the_one_before() {
        let mut backoff = exponential(&[("exponential-delay.attempts-before-reset-backoff", "2")]);
        assert_eq!(backoff.failed(at(0)), Some(ms(1_000)));
        assert_eq!(backoff.failed(at(400)), Some(ms(600)));
        assert_eq!(backoff.failed(at(1_000)), Some(ms(0)));
        assert_eq!(backoff.failed(at(1_001)), Some(ms(1_500)));
        assert_eq!(backoff.failed(at(2_600)), None, "the third since the beginning");
        assert_eq!(backoff.failed(at(2_700)), None);
    }

    #[test]
    fn the_count_of_an_exponential_delay_begins_anew_with_its_pause() {
        let mut backoff = exponential(&[("exponential-delay.attempts-before-reset-backoff", "1")]);
        assert_eq!(backoff.failed(at(0)), Some(ms(1_000)));
        assert_eq!(backoff.failed(at(11_000)), Some(ms(1_000)));
        assert_eq!(backoff.failed(at(12_001)), None);
    }

    #[test]
    fn jitter_follows_from_leader_and_restart_and_stays_within_its_part() {
        let jitter = [("exponential-delay.jitter-factor", "0.5"), ("exponential-delay.max-backoff", "1 h")];
        let options = [
            ("type", "exponential-delay"),
            ("exponential-delay.initial-backoff", "1 s"),
            ("exponential-delay.backoff-multiplier", "2"),
        ];
        let pauses = |token| {
            let mut backoff = backoff_under(token, &[&options[..], &jitter].concat());
            let mut now = at(0);
            let mut pauses = Vec::new();
            for _ in 0..8 {
                let pause = backoff.failed(now).unwrap();
                now = now + pause + Duration::from_nanos(1);
                pauses.push(pause.as_nanos());
            }
            pauses
        };
        assert_eq!(pauses(1), pauses(1));
        assert_ne!(pauses(1), pauses(2));
        for (restart, pause) in (0..).zip(pauses(1)) {
            let calm = 1_000_000_000 << restart;
            let least = (calm / 2).max(1_000_000_000);
            assert!((least..=calm * 3 / 2).contains(&pause), "restart {restart}: {pause} ns");
        }
        assert!(pauses(3).iter().zip(0..).any(|(&pause, restart)| pause < 1_000_000_000 << restart));
    }

    #[test]
    fn no_length_of_life_is_too_much() {
        let mut backoff = exponential(&[
            ("exponential-delay.backoff-multiplier", "1000"),
            ("exponential-delay.jitter-factor", "1"),
        ]);
        let mut now = at(0);
        for _ in 0..1_000 {
            let pause = backoff.failed(now).unwrap();
            assert!(pause <= Duration::from_secs(3));
            now = now + pause + Duration::from_nanos(1);
        }
        assert!(backoff.failed(Time(u64::MAX)).is_some());
    }
}
