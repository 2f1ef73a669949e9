//! Durations as scenarios write them: `200 us`, `12.5s`, and ranges `200 us..2 ms`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

const UNITS: [(&str, u64); 6] = [
    ("h", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// A duration with a text form; the text form is the shortest that is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Span(pub Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos() as u64;
        let (name, factor) = UNITS
            .into_iter()
            .find(|(_, factor)| nanos >= *factor && nanos.is_multiple_of(*factor))
            .unwrap_or(("s", 1_000_000_000));
        write!(f, "{} {name}", nanos / factor)
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not a duration, for example '250 ms' or '12.5s'");
        let trimmed = text.trim();
        let unit = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
        let (number, unit) = (&trimmed[..unit], trimmed[unit..].trim());
        let (_, factor) = UNITS.into_iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        let whole: u64 = whole.parse().map_err(|_| wrong())?;
        if fraction.is_empty() || fraction.len() > 9 {
            return Err(wrong());
        }
        let digits: u64 = fraction.parse().map_err(|_| wrong())?;
        let part = u128::from(digits) * u128::from(factor) / 10u128.pow(fraction.len() as u32);
        let nanos = whole.checked_mul(factor).and_then(|nanos| nanos.checked_add(part as u64));
        Ok(Self(Duration::from_nanos(nanos.ok_or_else(wrong)?)))
    }
}

/// From `min` to `max`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DurationRange {
    pub min: Duration,
    pub max: Duration,
}

impl fmt::Display for DurationRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.min == self.max {
            return Span(self.min).fmt(f);
        }
        write!(f, "{}..{}", Span(self.min), Span(self.max))
    }
}

impl FromStr for DurationRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (min, max) = text.split_once("..").unwrap_or((text, text));
        let (Span(min), Span(max)) = (min.parse()?, max.parse()?);
        if min > max {
            return Err(format!("'{text}' is not a range: the shorter duration comes first"));
        }
        if max > Duration::from_hours(1) {
            return Err(format!("'{text}' is too long: at most '1 h'"));
        }
        Ok(Self { min, max })
    }
}

/// When a crashed process starts again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum RestartAfter {
    After(Duration),
    Never,
}

impl fmt::Display for RestartAfter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::After(duration) => Span(*duration).fmt(f),
            Self::Never => f.write_str("never"),
        }
    }
}

impl FromStr for RestartAfter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "never" {
            return Ok(Self::Never);
        }
        text.parse()
            .map(|Span(duration)| Self::After(duration))
            .map_err(|error| format!("{error}, or 'never'"))
    }
}

/// Serde, and what editors are told, by way of the text form.
macro_rules! text_form {
    ($($type:ident: $what:expr, $example:literal);* $(;)?) => { $(
        impl TryFrom<String> for $type {
            type Error = String;

            fn try_from(text: String) -> Result<Self, String> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(value: $type) -> Self {
                value.to_string()
            }
        }

        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "title": $what, "examples": [$example] })
            }
        }
    )* };
}
pub(super) use text_form;

text_form! {
    Span: "a duration", "250 ms";
    DurationRange: "a duration, or a range of them", "200 us..2 ms";
    RestartAfter: "a duration, or never", "1 s";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_exact_and_read_back_what_they_display() {
        for (text, nanos, shown) in [
            ("12.5s", 12_500_000_000, "12500 ms"),
            ("200 us", 200_000, "200 us"),
            ("20 min", 1_200_000_000_000, "20 min"),
            ("0 s", 0, "0 s"),
            ("1.000000001 s", 1_000_000_001, "1000000001 ns"),
        ] {
            let span: Span = text.parse().unwrap();
            assert_eq!(span.0.as_nanos(), nanos, "{text}");
            assert_eq!(span.to_string(), shown);
            assert_eq!(shown.parse::<Span>().unwrap(), span);
        }
        for wrong in ["", "5", "s", "1. s", ".5 s", "-1 s", "1.0000000001 s", "1 parsec", "1..2 s", "é s"] {
            assert!(wrong.parse::<Span>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_range_goes_from_short_to_long() {
        let range: DurationRange = "200 us..2 ms".parse().unwrap();
        assert_eq!(range.to_string(), "200 us..2 ms");
        assert_eq!("1 ms".parse::<DurationRange>().unwrap().to_string(), "1 ms");
        assert!("2 ms..1 ms".parse::<DurationRange>().unwrap_err().contains("comes first"));
        assert!("1 ms..2 h".parse::<DurationRange>().is_err());
    }
}
