//! The way in for clients: find the socket, check who serves it, prove who we are.

use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use beamtalk_ninep::{Attachment, Client, Dialect, Error, MSIZE};
use beamtalk_storage::{hex, hmac_sha256, parse_hex};

use crate::namespace;
use crate::places::{Places, user_name, variable};

/// How long the daemon may take for one file operation.
const PATIENCE: Duration = Duration::from_secs(30);

/// The longest path of a socket.
const SOCKET_PATH: usize = 107;

/// Why a client cannot talk to the daemon.
#[derive(Debug, thiserror::Error)]
pub enum Door {
    #[error("cannot connect to {path}: {reason}")]
    Unreachable { path: String, reason: String },
    #[error("server at {path} belongs to uid {uid}")]
    Foreign { path: String, uid: u32 },
    #[error("{0}")]
    Protocol(#[from] Error),
    #[error("auth: {0}")]
    Auth(Error),
    #[error("attach: {0}")]
    Attach(Error),
}

/// Into the whole tree, as any program of this user finds it.
pub fn enter() -> Result<Attachment, Door> {
    enter_somewhere().map(|(tree, _)| tree)
}

/// The same, with the name space that was entered.
pub(crate) fn enter_somewhere() -> Result<(Attachment, PathBuf), Door> {
    let (stream, namespace) = connect(&namespace::candidates(), "agent")?;
    let proof = Proof::AsNeeded;
    let tree = Door::enter(stream, Some(&namespace), &proof, "", false, Some(PATIENCE))?;
    Ok((tree, namespace))
}

/// Connect to the first candidate that answers; the server must be ours or root's.
pub fn connect(candidates: &[PathBuf], socket: &str) -> Result<(UnixStream, PathBuf), Door> {
    let mut last = None;
    for namespace in candidates {
        let path = namespace.join(socket);
        if let Err(uid) = namespace::check_for_client(namespace) {
            let path = path.display().to_string();
            last = Some(Door::Foreign { path, uid });
            continue;
        }
        match connect_to(&path, Trust::OwnOrRoot) {
            Ok(stream) => return Ok((stream, namespace.clone())),
            Err(unreachable @ Door::Unreachable { .. }) => last = Some(unreachable),
            Err(other) => return Err(other),
        }
    }
    Err(last.unwrap_or(Door::Unreachable {
        path: socket.to_owned(),
        reason: "no name space".to_owned(),
    }))
}

/// Whose servers are talked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Where the socket was looked for, somebody else may have put one.
    OwnOrRoot,
    /// The address was given: root may look after the servers of others.
    Named,
}

/// Connect to one socket.
pub fn connect_to(path: &Path, trust: Trust) -> Result<UnixStream, Door> {
    let own = rustix::process::geteuid().as_raw();
    let any = own == 0 && trust == Trust::Named;
    let shown = path.display().to_string();
    let connected = open(path).and_then(|stream| Ok((crate::sys::peer_uid(&stream)?, stream)));
    match connected {
        Ok((uid, stream)) if uid == own || uid == 0 || any => Ok(stream),
        Ok((uid, _)) => Err(Door::Foreign { path: shown, uid }),
        Err(error) => {
            let text = error.to_string();
            let reason = text.split(" (os error").next().unwrap_or_default().to_owned();
            Err(Door::Unreachable { path: shown, reason })
        }
    }
}

/// Connect; a path that is too long for a socket is reached through its directory.
fn open(path: &Path) -> std::io::Result<UnixStream> {
    match (
        path.as_os_str().len() > SOCKET_PATH,
        path.parent(),
        path.file_name(),
    ) {
        (true, Some(parent), Some(name)) => {
            let directory = std::fs::File::open(parent)?;
            let short = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string());
            UnixStream::connect(short.join(name))
        }
        _ => UnixStream::connect(path),
    }
}

/// How a client proves itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// Attach without authentication.
    Nothing,
    Token(String),
    /// Plainly first, with the secret file if the server asks for it.
    AsNeeded,
}

impl Proof {
    /// The token of `file` or `$AGENT_TOKEN`, else as needed.
    pub fn from_environment(file: Option<&Path>) -> std::io::Result<Self> {
        match file {
            Some(path) => match std::fs::read_to_string(path) {
                Ok(text) => Ok(Proof::Token(text.trim().to_owned())),
                Err(error) => Err(std::io::Error::new(
                    error.kind(),
                    format!("token file {}: {error}", path.display()),
                )),
            },
            None => Ok(variable("AGENT_TOKEN").map_or(Proof::AsNeeded, Proof::Token)),
        }
    }
}

impl Door {
    /// Agree on a version, authenticate, attach; no call takes longer than `patience`.
    pub fn enter(
        stream: UnixStream,
        namespace: Option<&Path>,
        proof: &Proof,
        aname: &str,
        trace: bool,
        patience: Option<Duration>,
    ) -> Result<Attachment, Door> {
        let client = Client::with_patience(stream, Dialect::Plan9, MSIZE, trace, patience)?;
        let user = variable("USER").unwrap_or_else(user_name);
        if let Proof::Token(token) = proof {
            let auth = client.auth("token", aname).map_err(Door::Auth)?;
            auth.write_at(0, format!("token {token}\n").as_bytes())
                .map_err(Door::Auth)?;
            return client.attach(Some(&auth), "token", aname).map_err(Door::Attach);
        }
        match client.attach(None, &user, aname) {
            Err(Error::Refused(refused)) if asks_for_proof(&refused.text) && *proof == Proof::AsNeeded => {
                let secret = namespace
                    .and_then(|namespace| std::fs::read_to_string(Places::of(namespace).secret()).ok())
                    .and_then(|text| parse_hex(text.trim()))
                    .ok_or(Door::Attach(Error::Refused(refused)))?;
                let mut auth = client.auth(&user, aname).map_err(Door::Auth)?;
                let greeting = auth.read_next(patience).map_err(Door::Auth)?;
                let greeting = String::from_utf8_lossy(greeting.as_ref()).into_owned();
                let nonce = greeting
                    .trim()
                    .strip_prefix("beamtalk-auth 1 ")
                    .unwrap_or_default()
                    .to_owned();
                let answer = secret_answer(&secret, &nonce, &user, aname);
                auth.write_at(0, format!("secret {answer}\n").as_bytes())
                    .map_err(Door::Auth)?;
                client.attach(Some(&auth), &user, aname).map_err(Door::Attach)
            }
            outcome => outcome.map_err(Door::Attach),
        }
    }

    /// Whether the failure is one of rights rather than of reach.
    pub fn is_denial(&self) -> bool {
        matches!(
            self,
            Door::Foreign { .. } | Door::Auth(Error::Refused(_)) | Door::Attach(Error::Refused(_))
        )
    }
}

/// Whether a refused attach may succeed with a proof: where one is asked of everybody, and where the
/// caller looks like an agent, which has no way to the secret.
fn asks_for_proof(text: &str) -> bool {
    text == "authentication required" || text.starts_with("refused: this process cannot gain privileges")
}

/// The answer to a nonce.
pub(crate) fn secret_answer(secret: &[u8], nonce: &str, uname: &str, aname: &str) -> String {
    hex(&hmac_sha256(
        secret,
        format!("beamtalk-auth 1|{nonce}|{uname}|{aname}").as_bytes(),
    ))
}
