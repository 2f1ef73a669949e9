//! How option values are read from text.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::disk::Volume;

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MemorySize(pub u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RestartStrategy {
    None,
    FixedDelay,
    FailureRate,
    ExponentialDelay,
}

/// Where finished partitions are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ShuffleServiceKind {
    TaskManager,
    External,
}

impl fmt::Display for ShuffleServiceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TaskManager => "task-manager",
            Self::External => "external",
        })
    }
}

/// A number with up to six decimals, kept exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Decimal {
    millionths: u64,
}

impl Decimal {
    pub fn value(self) -> f64 {
        self.millionths as f64 / 1e6
    }

    /// So many times the duration, cut to whole nanoseconds; the longest that fits in 64 bits of them
    /// if it is longer.
    pub fn of(self, duration: Duration) -> Duration {
        let product = duration.as_nanos().saturating_mul(u128::from(self.millionths)) / 1_000_000;
        Duration::from_nanos(u64::try_from(product).unwrap_or(u64::MAX))
    }
}

/// How often something may be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Attempts {
    Infinite,
    AtMost(u32),
}

pub(super) trait OptionValue: Sized {
    fn parse(text: &str) -> Option<Self>;
}

impl OptionValue for bool {
    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl OptionValue for u32 {
    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl OptionValue for String {
    fn parse(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }
}

impl OptionValue for RestartStrategy {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "none" | "off" | "disable" => Some(Self::None),
            "fixed-delay" | "fixeddelay" => Some(Self::FixedDelay),
            "failure-rate" | "failurerate" => Some(Self::FailureRate),
            "exponential-delay" | "exponentialdelay" => Some(Self::ExponentialDelay),
            _ => None,
        }
    }
}

impl OptionValue for ShuffleServiceKind {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "task-manager" => Some(Self::TaskManager),
            "external" => Some(Self::External),
            _ => None,
        }
    }
}

impl OptionValue for Decimal {
    fn parse(text: &str) -> Option<Self> {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        if decimals.is_empty() || decimals.len() > 6 || !decimals.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let decimals: u64 = format!("{decimals:0<6}").parse().ok()?;
        let whole: u64 = whole.parse().ok()?;
        Some(Self { millionths: whole.checked_mul(1_000_000)?.checked_add(decimals)? })
    }
}

impl OptionValue for Attempts {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "infinite" => Some(Self::Infinite),
            count => count.parse().ok().map(Self::AtMost),
        }
    }
}

impl OptionValue for Volume {
    fn parse(text: &str) -> Option<Self> {
        [Self::Local, Self::Scratch, Self::Ha, Self::Output, Self::Input]
            .into_iter()
            .find(|volume| volume.to_string() == text)
    }
}

impl OptionValue for Duration {
    fn parse(text: &str) -> Option<Self> {
        let nanos = quantity(
            text,
            &[
                (&["ns", "nano", "nanos"], 1),
                (&["us", "µs", "micro", "micros"], 1_000),
                (&["ms", "milli", "millis"], 1_000_000),
                (&["s", "sec", "second", "seconds"], 1_000_000_000),
                (&["min", "m", "minute", "minutes"], 60_000_000_000),
                (&["h", "hour", "hours"], 3_600_000_000_000),
                (&["d", "day", "days"], 86_400_000_000_000),
            ],
        )?;
        Some(Self::from_nanos(nanos))
    }
}

impl OptionValue for MemorySize {
    /// A number alone is one of bytes, as in Flink.
    fn parse(text: &str) -> Option<Self> {
        let alone = text.trim();
        if !alone.is_empty() && alone.bytes().all(|byte| byte.is_ascii_digit()) {
            return alone.parse().ok().map(Self);
        }
        quantity(
            text,
            &[
                (&["b", "bytes"], 1),
                (&["kb", "k", "kibibytes"], 1 << 10),
                (&["mb", "m", "mebibytes"], 1 << 20),
                (&["gb", "g", "gibibytes"], 1 << 30),
            ],
        )
        .map(Self)
    }
}

/// Reads a duration as options do: a whole number and a unit, such as `10 s` or `250ms`.
pub fn parse_duration(text: &str) -> Option<Duration> {
    <Duration as OptionValue>::parse(text)
}

/// A whole number and a unit, with or without a space between.
fn quantity(text: &str, units: &[(&[&str], u64)]) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = (&text[..digits], text[digits..].trim().to_ascii_lowercase());
    let factor = units.iter().find(|(names, _)| names.contains(&unit.as_str()))?.1;
    number.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_need_a_whole_number_and_a_known_unit() {
        assert_eq!(parse_duration("10 s"), Some(Duration::from_secs(10)));
        assert_eq!(parse_duration("250ms"), Some(Duration::from_millis(250)));
        assert_eq!(parse_duration("3 min"), Some(Duration::from_mins(3)));
        assert_eq!(parse_duration("0 s"), Some(Duration::ZERO));
        for wrong in ["", "s", "1.5 s", "-1 s", "10", "10 furlongs", "99999999999999999999 s", "9999999999 d"]
        {
            assert_eq!(parse_duration(wrong), None, "{wrong}");
        }
        assert_eq!(MemorySize::parse("32 kb"), Some(MemorySize(32 << 10)));
        assert_eq!(MemorySize::parse("7b"), Some(MemorySize(7)));
        assert_eq!(MemorySize::parse(" 700 "), Some(MemorySize(700)));
        for wrong in ["1 s", "", " ", "+7", "7.0", "99999999999999999999"] {
            assert_eq!(MemorySize::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_decimal_is_a_plain_number_and_attempts_may_be_infinite() {
        for (text, value) in [("1.5", 1.5), ("0.1", 0.1), ("2", 2.0), ("0.000001", 0.000_001)] {
            assert_eq!(
                Decimal::parse(text).map(|number| number.value().to_bits()),
                Some(f64::to_bits(value))
            );
        }
        for wrong in ["", ".5", "1.", "-1", "1e3", "0.0000001", "NaN", "1.+5", "99999999999999999999"] {
            assert_eq!(Decimal::parse(wrong), None, "{wrong}");
        }
        assert_eq!(
            Decimal::parse("1.5").map(|number| number.of(Duration::from_nanos(3))),
            Some(Duration::from_nanos(4))
        );
        assert_eq!(Attempts::parse("infinite"), Some(Attempts::Infinite));
        assert_eq!(Attempts::parse("3"), Some(Attempts::AtMost(3)));
        assert_eq!(Attempts::parse("-1"), None);
    }
}
