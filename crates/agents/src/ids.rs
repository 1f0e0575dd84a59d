//! Random names and times.

use std::time::{SystemTime, UNIX_EPOCH};

use sha2::{Digest, Sha256};

/// `count` random bytes as hex digits.
pub fn random_hex(count: usize) -> std::io::Result<String> {
    Ok(hex(&random(count)?))
}

pub(crate) fn random(count: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; count];
    getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(bytes)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A UUID of version 7: names sort by time.
pub(crate) fn uuid_v7() -> std::io::Result<String> {
    let mut bytes = (milliseconds() << 16).to_be_bytes().to_vec();
    bytes.truncate(6);
    bytes.extend(random(10)?);
    if let Some(byte) = bytes.get_mut(6) {
        *byte = (*byte & 0x0f) | 0x70;
    }
    if let Some(byte) = bytes.get_mut(8) {
        *byte = (*byte & 0x3f) | 0x80;
    }
    let text = hex(&bytes);
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    Ok(format!(
        "{}-{}-{}-{}-{}",
        part(0, 8),
        part(8, 12),
        part(12, 16),
        part(16, 20),
        part(20, 32)
    ))
}

pub(crate) fn milliseconds() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |passed| passed.as_millis() as u64)
}

/// The alias `spawn` gives: 8 digits of the directory's hash and the role.
pub fn directory_alias(directory: &str, role: &str) -> String {
    let digest = hex(&Sha256::digest(directory.as_bytes()));
    format!("{}-{role}", digest.get(..8).unwrap_or_default())
}

/// Unix seconds now.
pub fn unix_seconds() -> u64 {
    milliseconds() / 1000
}

/// Year, month, day of a day number since 1970.
fn civil(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

/// Year, month, day, hour, minute, second in UTC.
pub fn timestamp(seconds: u64) -> (i64, i64, i64, u64, u64, u64) {
    let (year, month, day) = civil((seconds / 86_400) as i64);
    let rest = seconds % 86_400;
    (year, month, day, rest / 3600, rest / 60 % 60, rest % 60)
}

/// `2026-01-01T00:01:05.120Z`.
pub(crate) fn rfc3339(milliseconds: u64) -> String {
    let (year, month, day, hour, minute, second) = timestamp(milliseconds / 1000);
    format!(
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z",
        milliseconds % 1000
    )
}

/// `20260101`.
pub(crate) fn date(seconds: u64) -> String {
    let (year, month, day, ..) = timestamp(seconds);
    format!("{year:04}{month:02}{day:02}")
}

#[cfg(test)]
mod tests {
    use super::{date, rfc3339, uuid_v7};

    #[test]
    fn times_are_written_in_utc() {
        assert_eq!(rfc3339(1_767_225_665_120), "2026-01-01T00:01:05.120Z");
        assert_eq!(date(951_782_400), "20000229");
    }

    #[test]
    fn uuids_are_of_version_7_and_sort_by_time() {
        let first = uuid_v7().expect("random bytes");
        assert_eq!(first.len(), 36);
        assert_eq!(first.as_bytes().get(14), Some(&b'7'));
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(first < uuid_v7().expect("random bytes"));
    }
}
