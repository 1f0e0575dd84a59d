//! Browsers that logged in, and the one-time tokens they log in with.
//!
//! All in memory: a restart or a rotation of the cookie ends every login.

use std::time::{Duration, Instant};

use beamtalk_storage::StorageError;
use beamtalk_wire::Role;

use super::AuthKind;
use super::secret::{Comparer, Credential, Mark};

/// More logins than this push out the oldest; nobody has that many browsers.
const LOGINS: usize = 64;
/// More pending one-time tokens than this push out the oldest.
const PENDING: usize = 64;

/// Names a login in this process, so that its connections can be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LoginId(u64);

/// Under which names of this machine a one-time token may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginName {
    /// Only the one nobody can guess.
    Own,
    /// Also `127.0.0.1` and its kin, for a browser that does not resolve the other.
    Plain,
}

/// Who is behind a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) role: Role,
    pub(crate) auth: AuthKind,
}

impl Holder {
    /// Somebody at this machine.
    pub(crate) fn local(role: Role) -> Self {
        let auth = AuthKind::Browser;
        Self { role, auth }
    }
}

struct Entry {
    id: LoginId,
    holder: Holder,
    name: LoginName,
    mark: Mark,
    until: Instant,
}

/// The logins of one daemon.
#[derive(Default)]
pub(crate) struct Logins {
    pending: Vec<Entry>,
    open: Vec<Entry>,
    next: u64,
}

impl Logins {
    /// Make a one-time token.
    pub(crate) fn invite(
        &mut self,
        comparer: &Comparer,
        (role, name): (Role, LoginName),
        lifetime: Duration,
        now: Instant,
    ) -> Result<Credential, StorageError> {
        let (secret, mut entry) = self.entry(comparer, Holder::local(role), now + lifetime)?;
        entry.name = name;
        push(&mut self.pending, entry, PENDING, now);
        Ok(secret)
    }

    /// Use a one-time token up: the answer is the login cookie of a browser.
    pub(crate) fn redeem(
        &mut self,
        token: &Credential,
        comparer: &Comparer,
        name: LoginName,
        (lifetime, now): (Duration, Instant),
    ) -> Result<Option<Credential>, StorageError> {
        let Some(place) = find(&self.pending, token, comparer, now) else {
            return Ok(None);
        };
        if name == LoginName::Plain && self.pending[place].name == LoginName::Own {
            return Ok(None);
        }
        let invited = self.pending.remove(place);
        self.open(invited.holder, comparer, now + lifetime, now).map(Some)
    }

    /// The login cookie of somebody who showed another secret.
    pub(crate) fn open(
        &mut self,
        holder: Holder,
        comparer: &Comparer,
        until: Instant,
        now: Instant,
    ) -> Result<Credential, StorageError> {
        let (secret, entry) = self.entry(comparer, holder, until)?;
        push(&mut self.open, entry, LOGINS, now);
        Ok(secret)
    }

    /// The login a cookie belongs to, whose it is, and until when.
    pub(crate) fn find(
        &self,
        cookie: &Credential,
        comparer: &Comparer,
        now: Instant,
    ) -> Option<(LoginId, Holder, Instant)> {
        let entry = &self.open[find(&self.open, cookie, comparer, now)?];
        Some((entry.id, entry.holder.clone(), entry.until))
    }

    /// End all logins that were made with a secret.
    pub(crate) fn end_of(&mut self, is_meant: impl Fn(&AuthKind) -> bool) {
        self.open.retain(|entry| !is_meant(&entry.holder.auth));
    }

    pub(crate) fn end(&mut self, id: LoginId) {
        self.open.retain(|entry| entry.id != id);
    }

    /// Forget everything.
    pub(crate) fn clear(&mut self) {
        self.pending.clear();
        self.open.clear();
    }

    fn entry(
        &mut self,
        comparer: &Comparer,
        holder: Holder,
        until: Instant,
    ) -> Result<(Credential, Entry), StorageError> {
        let secret = Credential::random("")?;
        self.next += 1;
        let entry = Entry {
            id: LoginId(self.next),
            holder,
            name: LoginName::Own,
            mark: comparer.mark(secret.bytes()),
            until,
        };
        Ok((secret, entry))
    }
}

fn push(entries: &mut Vec<Entry>, entry: Entry, most: usize, now: Instant) {
    entries.retain(|entry| now < entry.until);
    if entries.len() == most {
        entries.remove(0);
    }
    entries.push(entry);
}

/// Compares with every entry, whatever the outcome.
fn find(entries: &[Entry], presented: &Credential, comparer: &Comparer, now: Instant) -> Option<usize> {
    let presented = comparer.mark(presented.bytes());
    let mut found = None;
    for (place, entry) in entries.iter().enumerate() {
        if bool::from(entry.mark.matches(&presented)) && now < entry.until {
            found = Some(place);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);
    const HOUR: Duration = Duration::from_hours(1);
    const OWN: (Role, LoginName) = (Role::Owner, LoginName::Own);

    #[test]
    fn a_token_for_the_own_name_opens_nothing_under_a_plain_one() {
        let (comparer, now) = (Comparer::new().unwrap(), Instant::now());
        let mut logins = Logins::default();
        let token = logins.invite(&comparer, OWN, MINUTE, now).unwrap();
        let plain = (HOUR, now);
        assert!(
            logins
                .redeem(&token, &comparer, LoginName::Plain, plain)
                .unwrap()
                .is_none()
        );
        assert!(
            logins
                .redeem(&token, &comparer, LoginName::Own, plain)
                .unwrap()
                .is_some()
        );
        let asked = (Role::Observer, LoginName::Plain);
        let token = logins.invite(&comparer, asked, MINUTE, now).unwrap();
        let cookie = logins
            .redeem(&token, &comparer, LoginName::Plain, plain)
            .unwrap()
            .unwrap();
        let (_, holder, _) = logins.find(&cookie, &comparer, now).unwrap();
        assert_eq!(holder, Holder::local(Role::Observer));
    }

    #[test]
    fn login_token_single_use() {
        let (comparer, now) = (Comparer::new().unwrap(), Instant::now());
        let mut logins = Logins::default();
        let token = logins.invite(&comparer, OWN, MINUTE, now).unwrap();
        let cookie = logins
            .redeem(&token, &comparer, LoginName::Own, (HOUR, now))
            .unwrap()
            .unwrap();
        assert_ne!(cookie, token);
        assert!(
            logins
                .redeem(&token, &comparer, LoginName::Own, (HOUR, now))
                .unwrap()
                .is_none()
        );
        assert!(logins.find(&cookie, &comparer, now).is_some());
        assert!(logins.find(&token, &comparer, now).is_none());
    }

    #[test]
    fn login_token_expires() {
        let (comparer, now) = (Comparer::new().unwrap(), Instant::now());
        let mut logins = Logins::default();
        let token = logins.invite(&comparer, OWN, MINUTE, now).unwrap();
        assert!(
            logins
                .redeem(&token, &comparer, LoginName::Own, (HOUR, now + MINUTE))
                .unwrap()
                .is_none()
        );
        let token = logins.invite(&comparer, OWN, MINUTE, now).unwrap();
        let cookie = logins
            .redeem(&token, &comparer, LoginName::Own, (HOUR, now))
            .unwrap()
            .unwrap();
        assert!(logins.find(&cookie, &comparer, now + HOUR).is_none());
    }

    #[test]
    fn logins_end() {
        let (comparer, now) = (Comparer::new().unwrap(), Instant::now());
        let mut logins = Logins::default();
        let log_in = |logins: &mut Logins| {
            let token = logins.invite(&comparer, OWN, MINUTE, now).unwrap();
            logins
                .redeem(&token, &comparer, LoginName::Own, (HOUR, now))
                .unwrap()
                .unwrap()
        };
        let (one, two) = (log_in(&mut logins), log_in(&mut logins));
        let (id, _, _) = logins.find(&one, &comparer, now).unwrap();
        logins.end(id);
        assert!(logins.find(&one, &comparer, now).is_none());
        assert!(logins.find(&two, &comparer, now).is_some());
        logins.clear();
        assert!(logins.find(&two, &comparer, now).is_none());
    }

    #[test]
    fn the_number_of_invitations_is_bounded() {
        let (comparer, now) = (Comparer::new().unwrap(), Instant::now());
        let mut logins = Logins::default();
        for _ in 0..1_000 {
            logins.invite(&comparer, OWN, MINUTE, now).unwrap();
        }
        assert_eq!(logins.pending.len(), PENDING);
    }
}
