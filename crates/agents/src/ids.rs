//! Names made of random bytes, of hashes and of dates.

use beamtalk_storage::time::{Civil, now_millis};
use beamtalk_storage::{hex, random_bytes, sha256_hex};

/// A UUID of version 7: names sort by time.
pub(crate) fn uuid_v7() -> std::io::Result<String> {
    let mut bytes: [u8; 16] = random_bytes()?;
    bytes[..6].copy_from_slice(&now_millis().to_be_bytes()[2..]);
    bytes[6] = (bytes[6] & 0x0f) | 0x70;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let text = hex(&bytes);
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &text[part]);
    Ok(parts.join("-"))
}

/// The alias `spawn` gives: 8 digits of the directory's hash and the role.
pub fn directory_alias(directory: &str, role: &str) -> String {
    format!("{}-{role}", &sha256_hex(directory.as_bytes())[..8])
}

/// `20260101`.
pub(crate) fn date(seconds: u64) -> String {
    let Civil { year, month, day, .. } = Civil::of(seconds);
    format!("{year:04}{month:02}{day:02}")
}

#[cfg(test)]
mod tests {
    use super::{date, uuid_v7};

    #[test]
    fn dates_are_written_in_utc() {
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
