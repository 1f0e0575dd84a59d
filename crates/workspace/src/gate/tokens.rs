//! Access tokens for other machines: named, expiring, revocable, and kept as hashes only.
//!
//! Pure: the daemon and the command line both change a [`Tokens`] and write it back.

use serde::{Deserialize, Serialize};
use subtle::{Choice, ConditionallySelectable};

use beamtalk_storage::{StorageError, sha256_hex};
use beamtalk_wire::Role;

use super::secret::{Comparer, Credential};

/// What a token starts with.
const PREFIX: &str = "btk_";
const NAME_LENGTH: usize = 64;

/// What is known of a token; the token itself is known to its bearer only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenRecord {
    pub name: String,
    pub role: Role,
    /// Unix seconds, as all times here.
    pub created: u64,
    #[serde(default)]
    pub expires: Option<u64>,
    #[serde(default)]
    pub last_used: Option<u64>,
    /// SHA-256 of the token, in lower-case hexadecimal.
    pub sha256: String,
    /// It is for AI clients, under this policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp: Option<String>,
}

impl TokenRecord {
    pub fn is_live(&self, now: u64) -> bool {
        self.expires.is_none_or(|expires| now < expires)
    }

    fn hash(&self) -> Option<[u8; 32]> {
        let digits = self.sha256.as_bytes();
        if digits.len() != 64 {
            return None;
        }
        let mut hash = [0; 32];
        for (byte, pair) in hash.iter_mut().zip(digits.chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(hash)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("token name must be 1 to 64 letters, numbers, '-' or '_'")]
    Name,
    #[error("there is a token '{0}' already; revoke it first")]
    Exists(String),
    #[error("there is no token '{0}'")]
    Unknown(String),
    #[error("'{0}' is no time span; write for example 90m, 12h, 30d or 8w")]
    Span(String),
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error("the token file is damaged: {0}")]
    Damaged(String),
}

/// The tokens of one workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tokens(Vec<TokenRecord>);

impl Tokens {
    /// Read the content of `tokens.json`.
    pub fn parse(bytes: &[u8]) -> Result<Self, TokenError> {
        let damaged = |reason: String| TokenError::Damaged(reason);
        let records: Vec<TokenRecord> =
            serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))?;
        match records.iter().find(|record| record.hash().is_none()) {
            Some(record) => Err(damaged(format!("the hash of '{}' is not one", record.name))),
            None => Ok(Self(records)),
        }
    }

    /// The content of `tokens.json`.
    pub fn to_json(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec_pretty(&self.0).unwrap_or_default();
        text.push(b'\n');
        text
    }

    pub fn records(&self) -> &[TokenRecord] {
        &self.0
    }

    pub fn live(&self, now: u64) -> impl Iterator<Item = &TokenRecord> {
        self.0.iter().filter(move |record| record.is_live(now))
    }

    /// Make a token; the answer is the only time it is seen.
    pub fn create(
        &mut self,
        name: &str,
        role: Role,
        lifetime: Option<u64>,
        now: u64,
    ) -> Result<Credential, TokenError> {
        self.create_for(name, (role, None), lifetime, now)
    }

    /// Make a token that may be one for AI clients alone, under a policy.
    pub fn create_for(
        &mut self,
        name: &str,
        (role, mcp): (Role, Option<String>),
        lifetime: Option<u64>,
        now: u64,
    ) -> Result<Credential, TokenError> {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if name.is_empty() || name.len() > NAME_LENGTH || !name.bytes().all(is_name) {
            return Err(TokenError::Name);
        }
        if self.live(now).any(|record| record.name == name) {
            return Err(TokenError::Exists(name.to_owned()));
        }
        let token = Credential::random(PREFIX)?;
        self.0.retain(|record| record.name != name);
        self.0.push(TokenRecord {
            name: name.to_owned(),
            role,
            created: now,
            expires: lifetime.map(|lifetime| now.saturating_add(lifetime)),
            last_used: None,
            sha256: sha256_hex(token.bytes()),
            mcp,
        });
        Ok(token)
    }

    pub fn revoke(&mut self, name: &str) -> Result<(), TokenError> {
        let before = self.0.len();
        self.0.retain(|record| record.name != name);
        if self.0.len() == before {
            return Err(TokenError::Unknown(name.to_owned()));
        }
        Ok(())
    }

    pub fn revoke_all(&mut self) {
        self.0.clear();
    }

    /// The live token that was presented. Every live token is compared, whatever the outcome.
    pub(crate) fn find(
        &mut self,
        presented: &Credential,
        comparer: &Comparer,
        now: u64,
    ) -> Option<&mut TokenRecord> {
        let presented = comparer.mark_of_hash(presented.bytes());
        let mut found = 0_u64;
        for (place, record) in (1..).zip(&self.0) {
            let expected = comparer.mark(&record.hash().unwrap_or_default());
            let is_live = Choice::from(u8::from(record.is_live(now)));
            found = u64::conditional_select(&found, &place, expected.matches(&presented) & is_live);
        }
        let place = usize::try_from(found).ok()?.checked_sub(1)?;
        self.0.get_mut(place)
    }
}

/// Read `90m`, `12h`, `30d`, `8w` or `45s` as seconds.
pub fn parse_span(text: &str) -> Result<u64, TokenError> {
    let wrong = || TokenError::Span(text.to_owned());
    let unit = match text.as_bytes().last() {
        Some(b's') => 1,
        Some(b'm') => 60,
        Some(b'h') => 3_600,
        Some(b'd') => 86_400,
        Some(b'w') => 604_800,
        _ => return Err(wrong()),
    };
    let count = &text[..text.len() - 1];
    if !count.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    let seconds = count
        .parse::<u64>()
        .ok()
        .and_then(|count| count.checked_mul(unit));
    seconds.filter(|seconds| *seconds > 0).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_found_while_they_live() {
        let comparer = Comparer::new().unwrap();
        let mut tokens = Tokens::default();
        let laptop = tokens.create("laptop", Role::Owner, Some(100), 1_000).unwrap();
        let phone = tokens.create("phone", Role::Observer, None, 1_000).unwrap();
        assert!(laptop.expose().starts_with("btk_"));
        let mut name = |token: &Credential, now| {
            tokens
                .find(token, &comparer, now)
                .map(|record| record.name.clone())
        };
        assert_eq!(name(&laptop, 1_099).as_deref(), Some("laptop"));
        assert_eq!(name(&laptop, 1_100), None);
        assert_eq!(name(&phone, 9_999).as_deref(), Some("phone"));
        assert_eq!(name(&Credential::new("btk_"), 1_000), None);
        assert_eq!(name(&Credential::new(""), 1_000), None);
        tokens.revoke("phone").unwrap();
        assert!(tokens.find(&phone, &comparer, 1_000).is_none());
        assert!(matches!(tokens.revoke("phone"), Err(TokenError::Unknown(_))));
    }

    #[test]
    fn tokens_file_has_no_token() {
        let mut tokens = Tokens::default();
        let token = tokens.create("laptop", Role::Owner, None, 7).unwrap();
        let json = String::from_utf8(tokens.to_json()).unwrap();
        assert!(!json.contains(token.expose()));
        assert!(!json.contains(&token.expose()[4..]));
        assert_eq!(Tokens::parse(json.as_bytes()).unwrap(), tokens);
        // Nor does the hash serve as a token.
        let hash = Credential::new(tokens.records()[0].sha256.clone());
        assert!(tokens.find(&hash, &Comparer::new().unwrap(), 7).is_none());
    }

    #[test]
    fn names_are_plain_and_unique_among_the_living() {
        let mut tokens = Tokens::default();
        for name in ["", "a b", "../x", "é", &"x".repeat(65)] {
            assert!(matches!(
                tokens.create(name, Role::Owner, None, 0),
                Err(TokenError::Name)
            ));
        }
        tokens.create("ci", Role::Owner, Some(5), 0).unwrap();
        assert!(matches!(
            tokens.create("ci", Role::Owner, None, 4),
            Err(TokenError::Exists(name)) if name == "ci"
        ));
        tokens.create("ci", Role::Observer, None, 5).unwrap();
        assert_eq!(tokens.records().len(), 1);
    }

    #[test]
    fn damaged_files_are_refused() {
        for text in [
            "",
            "{}",
            r#"[{"name":"x","role":"owner","created":1,"sha256":"12"}]"#,
            r#"[{"name":"x","role":"king","created":1,"sha256":""}]"#,
        ] {
            assert!(
                matches!(Tokens::parse(text.as_bytes()), Err(TokenError::Damaged(_))),
                "{text}"
            );
        }
    }

    #[test]
    fn spans() {
        for (text, seconds) in [
            ("45s", 45),
            ("90m", 5_400),
            ("12h", 43_200),
            ("30d", 2_592_000),
            ("8w", 4_838_400),
        ] {
            assert_eq!(parse_span(text).unwrap(), seconds);
        }
        for text in [
            "",
            "30",
            "d",
            "0d",
            "-1d",
            "+1d",
            "1.5h",
            "99999999999999999999d",
            "30 d",
            "3é",
        ] {
            assert!(matches!(parse_span(text), Err(TokenError::Span(_))), "{text}");
        }
    }
}
