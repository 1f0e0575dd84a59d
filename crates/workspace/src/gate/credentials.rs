//! Who may come in: one decision over everything the gate knows.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use beamtalk_storage::StorageError;
use beamtalk_storage::time::now_seconds;
use beamtalk_wire::Role;

use super::failures::Reason;
use super::logins::{Holder, LoginId, LoginName, Logins};
use super::opening::Offer;
use super::secret::{Comparer, Credential, Mark};
use super::tokens::Tokens;
use super::{AuthKind, Credentials, TokenStore};

/// The last use of a token is written down when it is older than this.
const LAST_USE: u64 = 60;

/// What the gate compares secrets with.
pub(crate) struct Keys {
    pub(crate) comparer: Comparer,
    cookie: Mark,
    pub(crate) tokens: Tokens,
    pub(crate) logins: Logins,
    pub(crate) store: Arc<dyn TokenStore>,
}

/// Where a connection comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Both ends on this machine, over the loopback interface.
    Loopback,
    Network,
}

impl Place {
    pub(crate) fn of(peer: SocketAddr, local: SocketAddr) -> Self {
        if peer.ip().to_canonical().is_loopback() && local.ip().to_canonical().is_loopback() {
            Self::Loopback
        } else {
            Self::Network
        }
    }
}

/// What a secret opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pass {
    pub(crate) role: Role,
    pub(crate) auth: AuthKind,
    /// The browser login it came from.
    pub(crate) login: Option<LoginId>,
    /// When it stops being valid.
    pub(crate) until: Option<Instant>,
    /// It opens `/mcp` under this policy, and nothing else.
    pub(crate) mcp: Option<String>,
}

impl Keys {
    pub(crate) fn new(credentials: Credentials) -> Result<Self, StorageError> {
        let comparer = Comparer::new()?;
        Ok(Self {
            cookie: comparer.mark(credentials.cookie.bytes()),
            comparer,
            tokens: credentials.tokens,
            logins: Logins::default(),
            store: credentials.store,
        })
    }

    /// Accept another cookie from now on, and no login made under the old one.
    pub(crate) fn rotate(&mut self, cookie: &Credential) {
        self.cookie = self.comparer.mark(cookie.bytes());
        self.logins.clear();
    }

    /// Judge a secret. From the network only tokens count.
    pub(crate) fn judge(&mut self, offer: &Offer, place: Place) -> Result<Pass, Reason> {
        let pass = self.judge_any(offer, place)?;
        // A token for AI clients is none here, or its policy would be no limit.
        if pass.mcp.is_some() {
            Err(Reason::Role)
        } else {
            Ok(pass)
        }
    }

    /// Judge a secret that may also be one for AI clients.
    pub(crate) fn judge_any(&mut self, offer: &Offer, place: Place) -> Result<Pass, Reason> {
        let owner = |auth, login, until| Pass {
            role: Role::Owner,
            auth,
            login,
            until,
            mcp: None,
        };
        let local = |pass: Pass| match place {
            Place::Loopback => Ok(pass),
            Place::Network => Err(Reason::Role),
        };
        match offer {
            Offer::Cookie(secret) if self.is_cookie(secret) => local(owner(AuthKind::Cookie, None, None)),
            Offer::Token(secret) => self.token(secret).ok_or(Reason::Invalid),
            Offer::Either(secret) => {
                // Both are compared, whatever the first says.
                let (is_cookie, token) = (self.is_cookie(secret), self.token(secret));
                match token {
                    Some(pass) => Ok(pass),
                    None if is_cookie => local(owner(AuthKind::Cookie, None, None)),
                    None => Err(Reason::Invalid),
                }
            }
            Offer::Login(secret) => match self.logins.find(secret, &self.comparer, Instant::now()) {
                Some((login, holder, until)) => {
                    let is_token = matches!(holder.auth, AuthKind::Token(_));
                    let pass = Pass {
                        role: holder.role,
                        auth: holder.auth,
                        login: Some(login),
                        until: Some(until),
                        mcp: None,
                    };
                    // One made with a token counts wherever the token does.
                    if is_token { Ok(pass) } else { local(pass) }
                }
                None => Err(Reason::Invalid),
            },
            Offer::Cookie(_) => Err(Reason::Invalid),
        }
    }

    /// A browser shows a one-time token, or an access token: the answer is its login cookie.
    pub(crate) fn log_in(
        &mut self,
        secret: &Credential,
        place: Place,
        name: LoginName,
        lifetime: Duration,
    ) -> Option<Credential> {
        let now = Instant::now();
        // Both are compared, whatever the first says.
        let pass = self.token(secret);
        // One-time tokens are for this machine; from the network only access tokens count.
        let invited = match place {
            Place::Loopback => self.logins.redeem(secret, &self.comparer, name, (lifetime, now)),
            Place::Network => Ok(None),
        };
        let made = match pass {
            Some(Pass {
                role,
                auth,
                until,
                mcp: None,
                ..
            }) if name == LoginName::Own => {
                let end = now + lifetime;
                let until = until.map_or(end, |until| until.min(end));
                let holder = Holder { role, auth };
                self.logins.open(holder, &self.comparer, until, now).map(Some)
            }
            _ => invited,
        };
        made.ok().flatten()
    }

    fn is_cookie(&self, secret: &Credential) -> bool {
        self.cookie.matches(&self.comparer.mark(secret.bytes())).into()
    }

    fn token(&mut self, secret: &Credential) -> Option<Pass> {
        let now = now_seconds();
        let record = self.tokens.find(secret, &self.comparer, now)?;
        let is_news = record
            .last_used
            .is_none_or(|last| now.saturating_sub(last) >= LAST_USE);
        if is_news {
            record.last_used = Some(now);
        }
        let pass = Pass {
            role: record.role,
            auth: AuthKind::Token(record.name.clone()),
            login: None,
            mcp: record.mcp.clone(),
            until: record.expires.and_then(|expires| {
                Instant::now().checked_add(Duration::from_secs(expires.saturating_sub(now)))
            }),
        };
        // A last use that cannot be written is no reason to refuse a right token.
        if is_news && let Err(error) = self.store.save(&self.tokens.to_json()) {
            tracing::warn!(%error, "cannot write the last use of a token");
        }
        Some(pass)
    }
}
