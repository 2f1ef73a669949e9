//! A calendar date without a time zone.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Days since 1970-01-01 in the Gregorian calendar. Written `yyyy-mm-dd` where people read it (CSV,
/// messages) and as the number of days in binary records.
///
/// ```
/// use revenant::connectors::Date;
///
/// let day: Date = "1996-02-29".parse()?;
/// assert_eq!(Some(day), Date::from_ymd(1996, 2, 29));
/// assert_eq!(Date(day.0 + 1).to_string(), "1996-03-01");
/// assert!("1995-02-29".parse::<Date>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date(pub i32);

impl Date {
    /// `None` if there is no such day.
    pub fn from_ymd(year: i32, month: u32, day: u32) -> Option<Self> {
        if !(1..=12).contains(&month) || !(1..=31).contains(&day) || !(-9999..=9999).contains(&year) {
            return None;
        }
        // Years begin in March here, so that the leap day is the last day of the year.
        let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
        let day_of_year = (153 * month.cast_signed() + 2) / 5 + day.cast_signed() - 1;
        let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        let date = Self(era * DAYS_PER_ERA + day_of_era - DAYS_TO_EPOCH);
        // A day that the month does not have would come out as one of the next month.
        (date.ymd().2 == day).then_some(date)
    }

    /// Year, month from 1, day from 1.
    pub fn ymd(self) -> (i32, u32, u32) {
        let days = i64::from(self.0) + i64::from(DAYS_TO_EPOCH);
        let (era, day_of_era) = (
            days.div_euclid(i64::from(DAYS_PER_ERA)) as i32,
            days.rem_euclid(i64::from(DAYS_PER_ERA)) as i32,
        );
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month + 2) / 5 + 1;
        let year = year_of_era + era * 400 + i32::from(month >= 10);
        let month = if month < 10 { month + 3 } else { month - 9 };
        (year, month.cast_unsigned(), day.cast_unsigned())
    }
}

/// Days in 400 years, after which the calendar repeats.
const DAYS_PER_ERA: i32 = 146_097;
/// Days from 0000-03-01 to 1970-01-01.
const DAYS_TO_EPOCH: i32 = 719_468;

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.ymd();
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

impl FromStr for Date {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.splitn(3, '-');
        let mut part = |digits: usize| {
            parts.next().filter(|part| part.len() == digits && part.bytes().all(|b| b.is_ascii_digit()))
        };
        let mut date =
            || Self::from_ymd(part(4)?.parse().ok()?, part(2)?.parse().ok()?, part(2)?.parse().ok()?);
        date().ok_or_else(|| format!("'{text}' is no date, for example 1996-03-13"))
    }
}

impl Serialize for Date {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            self.0.serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for Date {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
        } else {
            i32::deserialize(deserializer).map(Self)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_days_have_their_numbers() {
        for (text, days) in [
            ("1970-01-01", 0),
            ("1969-12-31", -1),
            ("1992-01-01", 8035),
            ("1996-02-29", 9555),
            ("1996-03-13", 9568),
            ("2000-03-01", 11_017),
            ("1600-01-01", -135_140),
        ] {
            assert_eq!(text.parse(), Ok(Date(days)), "{text}");
            assert_eq!(Date(days).to_string(), text);
        }
    }

    #[test]
    fn every_day_of_eight_centuries_survives_being_written_and_read() {
        for days in -146_097..146_097 {
            let (year, month, day) = Date(days).ymd();
            assert_eq!(Date::from_ymd(year, month, day), Some(Date(days)));
        }
    }

    #[test]
    fn days_that_do_not_exist_are_refused() {
        for text in
            ["1995-02-29", "1900-02-29", "1996-13-01", "1996-00-10", "1996-4-31", "1996-04-31", "", "x"]
        {
            assert!(text.parse::<Date>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_date_is_a_number_in_binary_records() {
        let bytes = postcard::to_stdvec(&Date(1)).unwrap();
        assert_eq!(bytes, postcard::to_stdvec(&1_i32).unwrap());
        assert_eq!(postcard::from_bytes::<Date>(&bytes).unwrap(), Date(1));
    }
}
