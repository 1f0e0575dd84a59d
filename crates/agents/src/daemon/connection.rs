//! One connection: authentication, attach, and the caller everything is done for.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use beamtalk_ninep::{Answer, AuthFile, Fault, Hangup, Node, Peer, Qid, QidKind, Refusal, Session};

use super::Hub;
use crate::access::{Level, Who};
use crate::audit::Entry;
use crate::config::AuthMode;
use crate::error::refusal;
use crate::ids::random_hex;
use crate::tree::{self, Caller};

const FAILURES: u32 = 3;

pub(super) struct Connection {
    hub: Arc<Hub>,
    number: u64,
    peer: Peer,
    hangup: Hangup,
    failures: Arc<AtomicU32>,
}

impl Connection {
    pub(super) fn new(hub: Arc<Hub>, number: u64, peer: Peer, hangup: Hangup) -> Self {
        Connection {
            hub,
            number,
            peer,
            hangup,
            failures: Arc::new(AtomicU32::new(0)),
        }
    }

    fn entry(&self, op: &str) -> Entry {
        Entry::new(op)
            .with("conn", self.number)
            .with("pid", self.peer.pid)
            .with("uid", self.peer.uid)
    }

    fn is_root(&self) -> bool {
        self.peer.uid == 0 && rustix::process::geteuid().as_raw() != 0
    }

    /// What a connection without proof may do.
    fn by_credentials(&self) -> (Level, Who) {
        if let Some(id) = self.peer.pid.and_then(|pid| self.hub.origin(pid)) {
            return (Level::Session(id.clone()), Who::Session(id));
        }
        (
            Level::Control,
            if self.is_root() { Who::Root } else { Who::Owner },
        )
    }

    fn decide(
        &self,
        auth: Option<&Arc<dyn AuthFile>>,
        uname: &str,
        aname: &str,
    ) -> Result<((Level, Who), String), Refusal> {
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
            let proven = self
                .hub
                .secrets
                .token(token)
                .ok_or_else(|| refusal("authentication failed"))?;
            return Ok((proven, String::new()));
        }
        if self.hub.mode() == AuthMode::Secret {
            return Err(Refusal::AUTHENTICATION_REQUIRED);
        }
        Ok((self.by_credentials(), aname.to_owned()))
    }
}

impl Session for Connection {
    fn auth(&self, uname: &str, aname: &str, _: Option<u32>) -> Result<Arc<dyn AuthFile>, Refusal> {
        if self.hub.mode() == AuthMode::Peer && uname != "token" {
            return Err(Refusal::NO_AUTH_REQUIRED);
        }
        Ok(Arc::new(Auth {
            hub: Arc::clone(&self.hub),
            number: self.number,
            peer: self.peer,
            hangup: self.hangup.clone(),
            failures: Arc::clone(&self.failures),
            uname: uname.to_owned(),
            aname: aname.to_owned(),
            nonce: random_hex(32).map_err(|_| Refusal::INTERNAL)?,
            qid: self.hub.qid_path(&format!(
                "auth {} {}",
                self.number,
                random_hex(4).unwrap_or_default()
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
        let ((level, who), aname) = match outcome {
            Ok(decided) => decided,
            Err(refused) => {
                self.hub
                    .audit
                    .write(entry.with("result", refused.text.to_string()))?;
                return Err(refused);
            }
        };
        let entry = entry
            .with("who", who.word())
            .with("level", level.word())
            .with("root", self.peer.uid == 0);
        self.hub.audit.write(entry.with("result", "ok"))?;
        if let Some(guest) = self
            .hub
            .guests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_mut(&self.number)
        {
            guest.who = Some(who.clone());
        }
        let caller = Caller {
            level,
            who,
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
    hangup: Hangup,
    failures: Arc<AtomicU32>,
    uname: String,
    aname: String,
    nonce: String,
    qid: u64,
    proven: Mutex<Option<(Level, Who)>>,
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
            Some((level, _)) => format!("ok {}\n", level.word()),
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
        let entry = Entry::new("auth")
            .with("conn", self.number)
            .with("pid", self.peer.pid)
            .with("uid", self.peer.uid);
        let mut failed_before = 0;
        let outcome = match proven {
            Some(proven) => {
                let entry = entry
                    .with("who", proven.1.word())
                    .with("level", proven.0.word())
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
