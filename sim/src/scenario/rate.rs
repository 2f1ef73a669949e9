//! Rates: how many of all things a fault strikes, from 0 to 1.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// In millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Rate(pub u32);

impl Rate {
    pub const ALWAYS: Self = Self(1_000_000);

    pub fn is_never(&self) -> bool {
        *self == Self::default()
    }
}

impl TryFrom<f64> for Rate {
    type Error = String;

    fn try_from(rate: f64) -> Result<Self, String> {
        let millionths = (rate * f64::from(Self::ALWAYS.0)).round();
        if !(0.0..=1.0).contains(&rate) || (rate > 0.0 && millionths < 1.0) {
            return Err(format!(
                "{rate} is not a rate: expected a number from 0 (never) to 1 (always), for example 0.01; the \
                 smallest above 0 is 0.000001"
            ));
        }
        #[allow(clippy::cast_sign_loss, reason = "it is from 0 to 1")]
        Ok(Self(millionths as u32))
    }
}

impl From<Rate> for f64 {
    fn from(rate: Rate) -> Self {
        Self::from(rate.0) / Self::from(Rate::ALWAYS.0)
    }
}

impl JsonSchema for Rate {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Rate".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "number", "title": "a number from 0 to 1", "minimum": 0, "maximum": 1, "examples": ["0.01"]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_exact_to_a_millionth_and_nothing_outside_0_to_1() {
        for (rate, millionths) in [(0.0, 0), (0.000_001, 1), (0.01, 10_000), (1.0, 1_000_000)] {
            assert_eq!(Rate::try_from(rate), Ok(Rate(millionths)));
            assert_eq!(f64::from(Rate(millionths)).to_bits(), rate.to_bits());
        }
        for wrong in [-0.1, 1.1, 0.000_000_1, f64::NAN, f64::INFINITY] {
            assert!(Rate::try_from(wrong).unwrap_err().contains("from 0 (never) to 1 (always)"));
        }
    }
}
