//! Secrets: random from the operating system, cleared from memory, never printed.

use std::fmt;
use std::io;

use zeroize::Zeroizing;

use crate::StorageError;
use crate::encoding::{base64url, hex};

const RANDOM_BYTES: usize = 32;
/// Characters of 32 bytes in base64url without padding.
const TEXT_LENGTH: usize = 43;

/// A secret of 256 bits as text; its content appears nowhere but through [`Secret::expose`].
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// A fresh one from the system's generator.
    pub fn random() -> Result<Self, StorageError> {
        let bytes = Zeroizing::new(random_bytes::<RANDOM_BYTES>()?);
        Ok(Self(Zeroizing::new(base64url(bytes.as_slice()))))
    }

    /// The content of a secret file: 43 characters of base64url and perhaps a newline.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let text = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let is_secret = text.len() == TEXT_LENGTH
            && text
                .iter()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        let text = std::str::from_utf8(text).ok().filter(|_| is_secret)?;
        Some(Self(Zeroizing::new(text.to_owned())))
    }

    /// The secret itself, for comparing and sending; never for output.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// What the file of the secret holds.
    pub(crate) fn file_content(&self) -> Zeroizing<Vec<u8>> {
        // Reserved at once, so that no half-written copy stays behind in a moved buffer.
        let mut bytes = Zeroizing::new(Vec::with_capacity(self.0.len() + 1));
        bytes.extend_from_slice(self.0.as_bytes());
        bytes.push(b'\n');
        bytes
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(***)")
    }
}

/// Bytes from the system's generator.
pub fn random_bytes<const N: usize>() -> Result<[u8; N], StorageError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| {
        let cause = error.raw_os_error().map(io::Error::from_raw_os_error);
        StorageError::Random(cause.unwrap_or_else(|| io::ErrorKind::Unsupported.into()))
    })?;
    Ok(bytes)
}

/// Random lower-case hexadecimal digits, two per byte.
pub fn random_hex<const N: usize>() -> Result<String, StorageError> {
    Ok(hex(&random_bytes::<N>()?))
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn a_secret_has_43_characters_and_does_not_print_itself() {
        let secret = Secret::random().unwrap();
        assert_eq!(secret.expose().len(), 43);
        assert_ne!(secret.expose(), Secret::random().unwrap().expose());
        assert!(!format!("{secret:?}").contains(secret.expose()));
        assert_eq!(
            Secret::parse(&secret.file_content()).unwrap().expose(),
            secret.expose()
        );
        assert!(Secret::parse(b"").is_none());
        assert!(Secret::parse(&[b'!'; 43]).is_none());
    }
}
