//! Wall-clock times as text: RFC 3339, UTC, microseconds.

use std::time::{SystemTime, UNIX_EPOCH};

/// Microseconds since 1970.
pub fn now_micros() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_micros() as u64)
}

/// The time as text, such as `2031-04-02T09:14:07.120451Z`.
pub fn timestamp(micros: u64) -> String {
    let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
    let (days, in_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (in_day / 3600, in_day / 60 % 60, in_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:06}Z")
}

/// The seconds since 1970 a text of [`timestamp`] says.
pub fn parse_seconds(text: &str) -> Option<u64> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<u64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if year < 1970 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let years: u64 = (1970..year).map(year_length).sum();
    let months: u64 = (1..month).map(|month| month_length(year, month)).sum();
    Some((years + months + day - 1) * 86_400 + hour * 3600 + minute * 60 + second)
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn year_length(year: u64) -> u64 {
    if is_leap(year) { 366 } else { 365 }
}

fn month_length(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Year, month and day of a day counted from 1970.
fn date(mut days: u64) -> (u64, u64, u64) {
    let mut year = 1970;
    while days >= year_length(year) {
        days -= year_length(year);
        year += 1;
    }
    let mut month = 1;
    while days >= month_length(year, month) {
        days -= month_length(year, month);
        month += 1;
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_moments_read_right() {
        assert_eq!(timestamp(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(timestamp(951_782_400_000_001), "2000-02-29T00:00:00.000001Z");
        assert_eq!(timestamp(1_767_225_599_999_999), "2025-12-31T23:59:59.999999Z");
    }

    proptest! {
        #[test]
        fn reading_back_gives_the_second(seconds in 0u64..7_000_000_000) {
            prop_assert_eq!(parse_seconds(&timestamp(seconds * 1_000_000)), Some(seconds));
        }

        #[test]
        fn any_text_is_survived(text in ".{0,30}") {
            prop_assert!(parse_seconds(&text).is_none_or(|seconds| seconds < 400_000_000_000));
        }
    }
}
