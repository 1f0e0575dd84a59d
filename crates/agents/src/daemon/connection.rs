//! One connection: authentication, attach, and the caller everything is done for.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use beamtalk_ninep::{Answer, AuthFile, Fault, Hangup, Node, Peer, Qid, QidKind, Refusal, Session};
use beamtalk_storage::random_hex;

use super::{Entrance, Hub};
use crate::access::{Level, Who};
use crate::audit::Entry;
use crate::config::AuthMode;
use crate::error::refusal;
use crate::session::record::Record;
use crate::tree::{self, Caller};

const FAILURES: u32 = 3;

/// Said to a process that looks like an agent's at the owner's door.
const CONFINED: &str = "refused: this process cannot gain privileges, like an agent's; use a token";

/// Who a connection is, and what it showed for it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity {
    level: Level,
    who: Who,
    /// A token narrowed it to reading.
    read_only: bool,
    proof: Option<Who>,
}

/// What somebody is who came through `entrance` and proved `(level, who)`. At the door of a session
/// everybody is that session, and a proof can only take away; `own_token` asks for one that is its own.
fn narrow(entrance: &Entrance, (level, who): (Level, Who), own_token: bool) -> Option<Identity> {
    let proof = Some(who.clone());
    let Entrance::Session(id) = entrance else {
        return Some(Identity {
            level,
            who,
            read_only: false,
            proof,
        });
    };
    let own = match &level {
        Level::Session(named) => named == id,
        Level::Control => true,
        Level::Read => false,
    };
    (own || !own_token).then(|| Identity {
        read_only: level == Level::Read,
        level: Level::Session(id.clone()),
        who: Who::Session(id.clone()),
        proof,
    })
}

pub(super) struct Connection {
    pub(super) hub: Arc<Hub>,
    pub(super) number: u64,
    pub(super) peer: Peer,
    pub(super) entrance: Entrance,
    /// The process there can gain privileges no more: an agent, or somebody who looks like one.
    pub(super) confined: bool,
    pub(super) hangup: Hangup,
    /// How often a proof was wrong.
    pub(super) failures: Arc<AtomicU32>,
}

impl Connection {
    fn entry(&self, op: &str) -> Entry {
        Entry::new(op)
            .with("conn", self.number)
            .with("pid", self.peer.pid)
            .with("uid", self.peer.uid)
    }

    fn is_root(&self) -> bool {
        self.peer.uid == 0 && rustix::process::geteuid().as_raw() != 0
    }

    /// Whether this door asks for a proof that it is the session who knocks: where its directory is
    /// not mounted for the session alone, others can reach it.
    fn asks_for_token(&self) -> bool {
        match &self.entrance {
            Entrance::Owner => false,
            Entrance::Session(id) => match self.hub.session(id) {
                Ok(session) => session.with_record(Record::lacks_mounts),
                Err(_) => true,
            },
        }
    }

    /// What a connection without proof is.
    fn by_entrance(&self) -> Result<Identity, Refusal> {
        if self.hub.mode() == AuthMode::Secret || self.asks_for_token() {
            return Err(Refusal::AUTHENTICATION_REQUIRED);
        }
        if self.confined {
            return Err(refusal(CONFINED));
        }
        let (level, who) = match &self.entrance {
            Entrance::Session(id) => (Level::Session(id.clone()), Who::Session(id.clone())),
            Entrance::Owner if self.is_root() => (Level::Control, Who::Root),
            Entrance::Owner => (Level::Control, Who::Owner),
        };
        Ok(Identity {
            level,
            who,
            read_only: false,
            proof: None,
        })
    }

    fn decide(
        &self,
        auth: Option<&Arc<dyn AuthFile>>,
        uname: &str,
        aname: &str,
    ) -> Result<(Identity, String), Refusal> {
        if let Some(auth) = auth {
            let auth = auth.as_any().downcast_ref::<Auth>().ok_or(Refusal::INTERNAL)?;
            if auth.uname != uname || auth.aname != aname {
                return Err(refusal("auth mismatch"));
            }
            let proven = auth.proven.lock().unwrap_or_else(PoisonError::into_inner).clone();
            return proven
                .map(|proven| (proven, aname.to_owned()))
                .ok_or_else(|| refusal("authentication required"));
        }
        if self.hub.config().auth.aname_token
            && let Some(token) = aname.strip_prefix("token=")
        {
            let proven = self.hub.secrets.token(token);
            let identity = proven.and_then(|proven| narrow(&self.entrance, proven, self.asks_for_token()));
            return identity
                .map(|identity| (identity, String::new()))
                .ok_or_else(|| refusal("authentication failed"));
        }
        Ok((self.by_entrance()?, aname.to_owned()))
    }
}

impl Session for Connection {
    fn auth(&self, uname: &str, aname: &str, _: Option<u32>) -> Result<Arc<dyn AuthFile>, Refusal> {
        let asks = self.hub.mode() == AuthMode::Secret || self.confined || self.asks_for_token();
        if !asks && uname != "token" {
            return Err(Refusal::NO_AUTH_REQUIRED);
        }
        Ok(Arc::new(Auth {
            hub: Arc::clone(&self.hub),
            number: self.number,
            peer: self.peer,
            entrance: self.entrance.clone(),
            own_token: self.asks_for_token(),
            hangup: self.hangup.clone(),
            failures: Arc::clone(&self.failures),
            uname: uname.to_owned(),
            aname: aname.to_owned(),
            nonce: random_hex::<32>().map_err(|_| Refusal::INTERNAL)?,
            qid: self.hub.qid_path(&format!(
                "auth {} {}",
                self.number,
                random_hex::<4>().unwrap_or_default()
            )),
            proven: Mutex::new(None),
        }))
    }

    fn attach(
        &self,
        auth: Option<Arc<dyn AuthFile>>,
        uname: &str,
        aname: &str,
        n_uname: Option<u32>,
    ) -> Result<Arc<dyn Node>, Refusal> {
        let owner = rustix::process::geteuid().as_raw();
        let outcome = match n_uname {
            Some(uid) if self.peer.uid == 0 && uid != 0 && uid != owner => Err(Refusal::PERMISSION_DENIED),
            _ => self.decide(auth.as_ref(), uname, aname),
        };
        let entry = self.entry("attach").with("uname", uname);
        let (identity, aname) = match outcome {
            Ok(decided) => decided,
            Err(refused) => {
                self.hub
                    .audit
                    .write(entry.with("result", refused.text.to_string()))?;
                return Err(refused);
            }
        };
        let entry = entry
            .with("who", identity.who.word())
            .with("level", identity.level.word())
            .with("root", self.peer.uid == 0);
        self.hub.audit.write(entry.with("result", "ok"))?;
        if let Some(guest) = self
            .hub
            .guests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_mut(&self.number)
        {
            guest.who = Some(identity.who.clone());
            guest.proof.clone_from(&identity.proof);
        }
        let caller = Caller {
            level: identity.level,
            who: identity.who,
            read_only: identity.read_only,
            connection: self.number,
            peer: self.peer,
            root: self.is_root(),
        };
        tree::root(&self.hub, caller, &aname)
    }

    fn fault(&self, fault: Fault) {
        // A fault ends or annoys one connection; the record is all there is to do.
        drop(
            self.hub
                .audit
                .write(self.entry("fault").with("result", fault.word())),
        );
    }
}

/// The conversation that proves who somebody is.
struct Auth {
    hub: Arc<Hub>,
    number: u64,
    peer: Peer,
    entrance: Entrance,
    own_token: bool,
    hangup: Hangup,
    failures: Arc<AtomicU32>,
    uname: String,
    aname: String,
    nonce: String,
    qid: u64,
    proven: Mutex<Option<Identity>>,
}

impl AuthFile for Auth {
    fn qid(&self) -> Qid {
        Qid {
            kind: QidKind::AUTH,
            version: 0,
            path: self.qid,
        }
    }

    fn read(&self, _offset: u64, _count: u32) -> Result<Vec<u8>, Refusal> {
        let proven = self.proven.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(match &*proven {
            None => format!("beamtalk-auth 1 {}\n", self.nonce),
            Some(identity) if identity.read_only => "ok read\n".to_owned(),
            Some(identity) => format!("ok {}\n", identity.level.word()),
        }
        .into_bytes())
    }

    fn write(&self, data: &[u8]) -> Answer<()> {
        let text = String::from_utf8_lossy(data).trim().to_owned();
        let proven = match text.split_once(' ') {
            Some(("secret", answer)) => self
                .hub
                .secrets
                .proves_secret(&self.nonce, &self.uname, &self.aname, answer)
                .then_some((Level::Control, Who::Owner)),
            Some(("token", token)) if self.uname == "token" => self.hub.secrets.token(token),
            _ => None,
        };
        let proven = proven.and_then(|proven| narrow(&self.entrance, proven, self.own_token));
        let entry = Entry::new("auth")
            .with("conn", self.number)
            .with("pid", self.peer.pid)
            .with("uid", self.peer.uid);
        let mut failed_before = 0;
        let outcome = match proven {
            Some(proven) => {
                let entry = entry
                    .with("who", proven.who.word())
                    .with("level", proven.level.word())
                    .with("result", "ok");
                *self.proven.lock().unwrap_or_else(PoisonError::into_inner) = Some(proven);
                self.hub.audit.write(entry)
            }
            None => {
                let failures = self.failures.fetch_add(1, Ordering::Relaxed) + 1;
                if let Some(pid) = self.peer.pid {
                    let mut known = self.hub.failures.lock().unwrap_or_else(PoisonError::into_inner);
                    // A list that grows with every caller would be an attack of its own.
                    if known.len() > 1024 {
                        known.clear();
                    }
                    let count = known.entry(pid).or_insert(0);
                    failed_before = *count;
                    *count += 1;
                }
                if failures >= FAILURES {
                    self.hangup.now();
                }
                self.hub
                    .audit
                    .write(entry.with("result", "denied"))
                    .and(Err(refusal("authentication failed")))
            }
        };
        Box::pin(async move {
            if failed_before >= FAILURES {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            outcome
        })
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::{Entrance, Identity, Level, Who, narrow};

    fn session(id: &str) -> (Level, Who) {
        (Level::Session(id.to_owned()), Who::Session(id.to_owned()))
    }

    #[test]
    fn at_the_door_of_a_session_a_proof_only_takes_away() {
        let door = Entrance::Session("aaaaaaaa".to_owned());
        let owner = (Level::Control, Who::Owner);
        let viewer = (Level::Read, Who::Token("viewer".to_owned()));
        for proven in [
            owner.clone(),
            session("aaaaaaaa"),
            session("bbbbbbbb"),
            viewer.clone(),
        ] {
            let Identity {
                level,
                who,
                read_only,
                ..
            } = narrow(&door, proven.clone(), false).unwrap();
            assert_eq!((level, who), session("aaaaaaaa"), "{proven:?}");
            assert_eq!(read_only, proven == viewer);
        }
        // A door that others can reach is opened by its own token only.
        assert_eq!(narrow(&door, session("bbbbbbbb"), true), None);
        assert_eq!(narrow(&door, viewer, true), None);
        assert!(narrow(&door, session("aaaaaaaa"), true).is_some());
        let level = narrow(&Entrance::Owner, owner, false).unwrap().level;
        assert_eq!(level, Level::Control);
    }
}
