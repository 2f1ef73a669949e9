//! How option values are read from text.

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
            "none" => Some(Self::None),
            "fixed-delay" => Some(Self::FixedDelay),
            _ => None,
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
    fn parse(text: &str) -> Option<Self> {
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
        assert_eq!(MemorySize::parse("1 s"), None);
    }
}
