//! Secrets that come in, and how they are compared.
//!
//! Nothing here keeps an expected secret: a [`Comparer`] holds a key of this process, and what is
//! expected is kept as its HMAC under that key. A presented secret is turned into the same form, so
//! the comparison takes the same time whatever was presented and however long it was.

use beamtalk_storage::{Secret, StorageError, hmac_sha256, random_bytes};
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq};
use zeroize::Zeroizing;

/// A secret somebody presented, whatever it is worth, or one that was just made; cleared when dropped and never printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credential(Zeroizing<Vec<u8>>);

impl Credential {
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(Zeroizing::new(bytes.into()))
    }

    /// 256 bits from the system, as 43 letters after `prefix`.
    pub fn random(prefix: &str) -> Result<Self, StorageError> {
        let secret = Secret::random()?;
        let mut text = Zeroizing::new(Vec::with_capacity(prefix.len() + secret.expose().len()));
        text.extend_from_slice(prefix.as_bytes());
        text.extend_from_slice(secret.expose().as_bytes());
        Ok(Self(text))
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The secret as text, for the one place that hands it out.
    pub fn expose(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Credential(***)")
    }
}

impl From<&Secret> for Credential {
    fn from(secret: &Secret) -> Self {
        Self::new(secret.expose())
    }
}

/// What is expected, under the key of one process; worthless outside it.
#[derive(Clone)]
pub(crate) struct Mark([u8; 32]);

/// Compares secrets under a random key of this process.
pub(crate) struct Comparer(Zeroizing<[u8; 32]>);

impl Comparer {
    pub(crate) fn new() -> Result<Self, StorageError> {
        Ok(Self(Zeroizing::new(random_bytes()?)))
    }

    pub(crate) fn mark(&self, secret: &[u8]) -> Mark {
        Mark(hmac_sha256(&*self.0, secret))
    }

    /// The mark of a token, made of its hash, since only that is on disk.
    pub(crate) fn mark_of_hash(&self, presented: &[u8]) -> Mark {
        self.mark(&Sha256::digest(presented))
    }
}

impl Mark {
    pub(crate) fn matches(&self, other: &Self) -> Choice {
        self.0.ct_eq(&other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_secrets_have_256_bits_and_differ() {
        let (one, two) = (
            Credential::random("btk_").unwrap(),
            Credential::random("btk_").unwrap(),
        );
        assert_eq!(one.expose().len(), 4 + 43);
        assert_ne!(one, two);
    }

    #[test]
    fn compare_is_length_independent() {
        // There is no branch on length: secrets of any length, prefixes and extensions of the
        // expected one among them, go through the same two HMACs and one comparison of 32 bytes.
        let comparer = Comparer::new().unwrap();
        let expected = comparer.mark(b"expected");
        for presented in [
            &b""[..],
            b"e",
            b"expecte",
            b"expected\0",
            b"expectedexpected",
            &[b'x'; 4096],
        ] {
            assert!(!bool::from(expected.matches(&comparer.mark(presented))));
        }
        assert!(bool::from(expected.matches(&comparer.mark(b"expected"))));
    }

    #[test]
    fn marks_of_two_processes_differ() {
        let (one, two) = (Comparer::new().unwrap(), Comparer::new().unwrap());
        assert!(!bool::from(one.mark(b"same").matches(&two.mark(b"same"))));
    }

    #[test]
    fn secrets_are_not_printed() {
        assert!(!format!("{:?}", Credential::new("hunter2")).contains("hunter2"));
    }
}
