//! Wall-clock times as text: RFC 3339, UTC.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

const DAY: u64 = 86_400;

/// Microseconds since 1970.
pub fn now_micros() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_micros() as u64)
}

/// Milliseconds since 1970.
pub fn now_millis() -> u64 {
    now_micros() / 1000
}

/// Seconds since 1970.
pub fn now_seconds() -> u64 {
    now_millis() / 1000
}

/// A second on the calendar, in UTC; shown as `2026-01-05T09:14:07`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    pub year: u64,
    pub month: u64,
    pub day: u64,
    pub hour: u64,
    pub minute: u64,
    pub second: u64,
}

impl Civil {
    /// The second, counted from 1970.
    pub fn of(seconds: u64) -> Self {
        let (year, month, day) = civil_date(seconds / DAY);
        let in_day = seconds % DAY;
        Self {
            year,
            month,
            day,
            hour: in_day / 3600,
            minute: in_day / 60 % 60,
            second: in_day % 60,
        }
    }
}

impl fmt::Display for Civil {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = (self.year, self.month, self.day);
        let (hour, minute, second) = (self.hour, self.minute, self.second);
        write!(
            formatter,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"
        )
    }
}

/// The time as text, such as `2026-01-05T09:14:07.221Z`.
pub fn timestamp(millis: u64) -> String {
    format!("{}.{:03}Z", Civil::of(millis / 1000), millis % 1000)
}

/// The time as text, such as `2031-04-02T09:14:07.120451Z`.
pub fn timestamp_micros(micros: u64) -> String {
    format!("{}.{:06}Z", Civil::of(micros / 1_000_000), micros % 1_000_000)
}

/// The seconds since 1970 a time as text says.
pub fn parse_seconds(text: &str) -> Option<u64> {
    parse_timestamp(text).map(|millis| millis / 1000)
}

/// Milliseconds since 1970 of a text such as [`timestamp`] gives; time of day, seconds, fraction
/// and `Z` may be missing.
pub fn parse_timestamp(text: &str) -> Option<u64> {
    let text = text.strip_suffix(['Z', 'z']).unwrap_or(text);
    let (date, time) = text.split_once(['T', 't', ' ']).unwrap_or((text, "00:00"));
    let [year, month, day] = numbers(date, '-')?;
    let (clock, fraction) = time.split_once('.').unwrap_or((time, ""));
    let [hour, minute, second] = numbers(clock, ':').or_else(|| {
        let [hour, minute] = numbers(clock, ':')?;
        Some([hour, minute, 0])
    })?;
    let is_date = year >= 1970 && (1..=12).contains(&month) && day >= 1 && day <= month_length(year, month);
    // A leap second is the first moment of the next minute.
    if !is_date
        || hour > 23
        || minute > 59
        || second > 60
        || !fraction.bytes().all(|byte| byte.is_ascii_digit())
    {
        return None;
    }
    let millis: u64 = format!("{fraction:0<3.3}").parse().ok()?;
    Some(((days_before(year, month) + day - 1) * DAY + hour * 3600 + minute * 60 + second) * 1000 + millis)
}

fn numbers<const N: usize>(text: &str, separator: char) -> Option<[u64; N]> {
    let number = |part: &str| {
        let is_number = (1..=4).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| part.parse().ok()).flatten()
    };
    let parts: Option<Vec<u64>> = text.split(separator).map(number).collect();
    parts?.try_into().ok()
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn month_length(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970 to the first of a month.
fn days_before(year: u64, month: u64) -> u64 {
    let leap_days = |year: u64| year / 4 - year / 100 + year / 400;
    let years = (year - 1970) * 365 + leap_days(year - 1) - leap_days(1969);
    years + (1..month).map(|month| month_length(year, month)).sum::<u64>()
}

/// Year, month and day of a day counted from 1970.
fn civil_date(days: u64) -> (u64, u64, u64) {
    // Never too late by much: a year has at least 365 days, so the guess is at or after the year.
    let mut year = 1970 + days / 365;
    while days_before(year, 1) > days {
        year -= 1;
    }
    let mut month = 12;
    while days_before(year, month) > days {
        month -= 1;
    }
    (year, month, days - days_before(year, month) + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{DAY, days_before, parse_seconds, parse_timestamp, timestamp, timestamp_micros};

    #[test]
    fn known_times_are_written_and_read() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_767_604_447_221, "2026-01-05T09:14:07.221Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
        ] {
            assert_eq!(timestamp(millis), text);
            assert_eq!(parse_timestamp(text), Some(millis));
        }
        let micros = timestamp_micros(951_782_400_000_001);
        assert_eq!(micros, "2000-02-29T00:00:00.000001Z");
        assert_eq!(parse_seconds(&micros), Some(951_782_400));
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in ".{0,30}") {
            prop_assert!(parse_seconds(&text).is_none_or(|seconds| seconds < 400_000_000_000));
        }
    }

    #[test]
    fn every_day_of_six_centuries_comes_back() {
        for day in 0..220_000 {
            let millis = day * DAY * 1000 + 12_345;
            assert_eq!(parse_timestamp(&timestamp(millis)), Some(millis));
        }
        assert_eq!(days_before(1970, 1), 0);
    }

    #[test]
    fn short_forms_are_read_and_nonsense_is_not() {
        assert_eq!(parse_timestamp("1970-01-02"), Some(86_400_000));
        assert_eq!(parse_timestamp("1970-01-01T00:01"), Some(60_000));
        assert_eq!(parse_timestamp("1970-01-01 00:00:01.5"), Some(1500));
        for text in [
            "",
            "yesterday",
            "2026-13-01",
            "2026-02-30",
            "2026-01-01T24:00",
            "1970-01-01T00:00:00.x",
        ] {
            assert_eq!(parse_timestamp(text), None, "{text}");
        }
    }
}
