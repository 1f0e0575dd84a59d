//! What the owner does to an open gate: rotate the cookie, make and revoke tokens, invite a browser.

use std::time::{Duration, Instant};

use beamtalk_storage::time::now_seconds;
use beamtalk_wire::Role;

use super::server::{Connected, State};
use super::{AuthKind, Credential, Gate, GateError, LoginName, TokenRecord, Tokens};

/// The close code of connections whose secret is no longer accepted.
pub(crate) const CREDENTIALS_GONE: u16 = 4001;

/// Whether clients stay connected when the cookie changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connections {
    Keep,
    Close,
}

impl Gate {
    /// Accept `cookie` instead of the old one from now on. Logins and invitations end; the answer
    /// is how many connections were closed.
    pub fn rotate(&self, cookie: &Credential, connections: Connections) -> usize {
        let mut state = self.shared.state();
        state.keys.rotate(cookie);
        match connections {
            Connections::Keep => 0,
            Connections::Close => sever(&state, "credentials rotated", |_| true),
        }
    }

    /// Make a token; it is seen only here.
    pub fn create_token(
        &self,
        name: &str,
        role: (Role, Option<String>),
        lifetime: Option<Duration>,
    ) -> Result<Credential, GateError> {
        let mut state = self.shared.state();
        let mut tokens = state.keys.tokens.clone();
        let lifetime = lifetime.map(|lifetime| lifetime.as_secs());
        let token = tokens.create_for(name, role, lifetime, now_seconds())?;
        save(&state, &tokens)?;
        state.keys.tokens = tokens;
        Ok(token)
    }

    pub fn tokens(&self) -> Vec<TokenRecord> {
        self.shared.state().keys.tokens.records().to_vec()
    }

    /// Accept a token no more; the answer is how many of its connections were closed. The token is
    /// refused from now on even when an error says that the file still has it.
    pub fn revoke_token(&self, name: &str) -> Result<usize, GateError> {
        let mut state = self.shared.state();
        state.keys.tokens.revoke(name)?;
        let auth = AuthKind::Token(name.to_owned());
        state.keys.logins.end_of(|one| *one == auth);
        let closed = sever(&state, "token revoked", |one| one.pass.auth == auth);
        let tokens = state.keys.tokens.clone();
        save(&state, &tokens)?;
        Ok(closed)
    }

    /// Accept no token any more.
    pub fn revoke_all_tokens(&self) -> Result<usize, GateError> {
        let mut state = self.shared.state();
        state.keys.tokens.revoke_all();
        state.keys.logins.end_of(|one| matches!(one, AuthKind::Token(_)));
        let closed = sever(&state, "token revoked", |one| {
            matches!(one.pass.auth, AuthKind::Token(_))
        });
        save(&state, &Tokens::default())?;
        Ok(closed)
    }

    /// Make a one-time token a browser can log in with, and how long it may be used.
    pub fn login_token(&self, role: Role, name: LoginName) -> Result<(Credential, Duration), GateError> {
        let lifetime = self.shared.config.pace.login_token;
        let State { keys, .. } = &mut *self.shared.state();
        let token = keys
            .logins
            .invite(&keys.comparer, (role, name), lifetime, Instant::now())?;
        Ok((token, lifetime))
    }
}

fn sever(state: &State, reason: &str, is_meant: impl Fn(&Connected) -> bool) -> usize {
    state
        .connected
        .iter()
        .filter(|connection| is_meant(connection))
        .map(|connection| connection.outgoing.sever(CREDENTIALS_GONE, reason))
        .count()
}

fn save(state: &State, tokens: &Tokens) -> Result<(), GateError> {
    Ok(state.keys.store.save(&tokens.to_json())?)
}
