//! The shared secret, capability tokens and the proof of knowing them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use beamtalk_ninep::Refusal;
use beamtalk_storage::time::now_seconds;
use beamtalk_storage::{base64url, parse_hex, random_bytes, random_hex, sha256_hex};
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

use crate::access::{Level, Who};
use crate::error::refusal;
use crate::{door, files};

/// The longest name of a token.
const NAME_BYTES: usize = 64;

pub(crate) fn new_token() -> std::io::Result<String> {
    Ok(format!("bt9_{}", base64url(&random_bytes::<32>()?)))
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Token {
    level: String,
    #[serde(default)]
    session: Option<String>,
    sha256: String,
    #[serde(default)]
    expires: Option<u64>,
    #[serde(default)]
    last_use: Option<u64>,
}

#[derive(Default)]
struct Known {
    named: BTreeMap<String, Token>,
    /// Digests of the tokens of living sessions, by session.
    sessions: BTreeMap<String, String>,
}

/// Everything a caller can prove.
pub(crate) struct Secrets {
    file: PathBuf,
    secret: Vec<u8>,
    known: Mutex<Known>,
    limit: usize,
}

impl Secrets {
    /// Load, making the secret at the first start.
    pub(crate) fn load(state: &Path, limit: usize) -> std::io::Result<Self> {
        let path = state.join("secret");
        let text = match files::read_limited(&path, 256) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).trim().to_owned(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let text = random_hex::<32>()?;
                files::replace(&path, format!("{text}\n").as_bytes())?;
                text
            }
            Err(error) => return Err(error),
        };
        let secret = parse_hex(&text)
            .filter(|bytes| bytes.len() == 32)
            .ok_or_else(|| {
                std::io::Error::new(
                    std::io::ErrorKind::InvalidData,
                    format!("{}: not 64 hex digits", path.display()),
                )
            })?;
        let file = state.join("tokens.json");
        let named = match files::read_limited(&file, 1 << 20) {
            Ok(bytes) => serde_json::from_slice(&bytes)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(error),
        };
        Ok(Secrets {
            file,
            secret,
            known: Mutex::new(Known {
                named,
                sessions: BTreeMap::new(),
            }),
            limit,
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn save(&self, known: &Known) -> Result<(), Refusal> {
        let bytes = serde_json::to_vec_pretty(&known.named).map_err(|_| Refusal::INTERNAL)?;
        files::replace(&self.file, &bytes).map_err(|_| Refusal::INTERNAL)
    }

    /// Whether `answer` proves knowledge of the secret.
    pub(crate) fn proves_secret(&self, nonce: &str, uname: &str, aname: &str, answer: &str) -> bool {
        let expected = door::secret_answer(&self.secret, nonce, uname, aname);
        bool::from(expected.as_bytes().ct_eq(answer.as_bytes()))
    }

    /// What a token stands for.
    pub(crate) fn token(&self, token: &str) -> Option<(Level, Who)> {
        let wanted = sha256_hex(token.as_bytes());
        let same = |known: &str| bool::from(known.as_bytes().ct_eq(wanted.as_bytes()));
        let mut known = self.lock();
        if let Some((id, _)) = known.sessions.iter().find(|(_, sha)| same(sha)) {
            return Some((Level::Session(id.clone()), Who::Session(id.clone())));
        }
        let now = now_seconds();
        let (name, token) = known
            .named
            .iter_mut()
            .find(|(_, t)| same(&t.sha256) && t.expires.is_none_or(|end| end > now))?;
        token.last_use = Some(now);
        let level = match (token.level.as_str(), &token.session) {
            ("control", _) => Level::Control,
            ("session", Some(id)) => Level::Session(id.clone()),
            _ => Level::Read,
        };
        Some((level, Who::Token(name.clone())))
    }

    pub(crate) fn set_session_token(&self, id: &str, token: &str) {
        self.lock()
            .sessions
            .insert(id.to_owned(), sha256_hex(token.as_bytes()));
    }

    pub(crate) fn drop_session_token(&self, id: &str) {
        self.lock().sessions.remove(id);
    }

    pub(crate) fn mint(
        &self,
        name: &str,
        level: &str,
        session: Option<String>,
        ttl: Option<u64>,
    ) -> Result<String, Refusal> {
        // A name stands in listings and access lists, as one word.
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
        if name.is_empty() || name.len() > NAME_BYTES || !name.bytes().all(is_word) {
            return Err(refusal("invalid token name: must match [A-Za-z0-9_.-]+"));
        }
        let token = new_token().map_err(|_| Refusal::INTERNAL)?;
        let mut known = self.lock();
        let now = now_seconds();
        known
            .named
            .retain(|_, token| token.expires.is_none_or(|expires| expires > now));
        if known.named.contains_key(name) {
            return Err(refusal(format!("invalid token name: {name} exists")));
        }
        if known.named.len() >= self.limit {
            return Err(refusal("too many tokens"));
        }
        let expires = ttl.map(|ttl| now.saturating_add(ttl));
        let entry = Token {
            level: level.to_owned(),
            session,
            sha256: sha256_hex(token.as_bytes()),
            expires,
            last_use: None,
        };
        known.named.insert(name.to_owned(), entry);
        self.save(&known)?;
        Ok(token)
    }

    pub(crate) fn revoke(&self, name: &str) -> Result<(), Refusal> {
        let mut known = self.lock();
        if known.named.remove(name).is_none() {
            return Err(refusal("not found"));
        }
        self.save(&known)
    }

    pub(crate) fn list(&self) -> String {
        let moment = |seconds: Option<u64>| seconds.map_or("-".to_owned(), |seconds| seconds.to_string());
        self.lock()
            .named
            .iter()
            .map(|(name, token)| {
                let level = match &token.session {
                    Some(id) => format!("session:{id}"),
                    None => token.level.clone(),
                };
                format!(
                    "{name}\t{level}\t{}\t{}\n",
                    moment(token.expires),
                    moment(token.last_use)
                )
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Secrets;

    #[test]
    fn names_of_tokens_are_words_and_free_again_when_they_expire() {
        let base = tempfile::tempdir().unwrap();
        let secrets = Secrets::load(base.path(), 2).unwrap();
        for name in ["", "a b", "a\tb", "*", "ü", &"x".repeat(65)] {
            let refused = secrets.mint(name, "read", None, None).unwrap_err();
            assert_eq!(refused.text, "invalid token name: must match [A-Za-z0-9_.-]+");
        }
        secrets.mint("old", "read", None, Some(0)).unwrap();
        secrets.mint("old", "read", None, Some(0)).unwrap();
        secrets.mint("one", "read", None, None).unwrap();
        assert!(secrets.mint("one", "read", None, None).is_err());
        secrets.mint("two.x-y_z", "read", None, None).unwrap();
        assert_eq!(
            secrets.mint("three", "read", None, None).unwrap_err().text,
            "too many tokens"
        );
    }
}
