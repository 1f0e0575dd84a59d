//! The sockets: bound under another name, never visible with a wider mode.

use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use beamtalk_ninep::{Dialect, Hangup, Limits, Owner, Peer, Refusal, Reply};
use rustix::fs::{AtFlags, Mode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

use super::Hub;
use super::connection::Connection;
use super::hub::Guest;
use crate::audit::Entry;
use crate::places::variable;
use crate::sys;

pub(super) const SOCKET: &str = "agent";
const OTHER_NAME: &str = "anvillm";
const TEMPORARY: &str = "agent.tmp";

/// The door a connection came through: the one thing that says who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entrance {
    Owner,
    Session(String),
}

/// Listen in `directory`. A socket that is there already is replaced, so that whoever sees the
/// directory sees the new one.
#[expect(clippy::disallowed_methods, reason = "the socket on which the tree is served")]
pub(super) fn bind(directory: impl AsFd) -> std::io::Result<UnixListener> {
    // Through the descriptor: short whatever the path, and free of links.
    let temporary = format!("/proc/self/fd/{}/{TEMPORARY}", directory.as_fd().as_raw_fd());
    // What a crashed daemon left behind.
    rustix::fs::unlinkat(&directory, TEMPORARY, AtFlags::empty()).ok();
    let old_mask = rustix::process::umask(Mode::from_raw_mode(0o177));
    let bound = std::os::unix::net::UnixListener::bind(&temporary);
    rustix::process::umask(old_mask);
    let listener = bound?;
    listener.set_nonblocking(true)?;
    std::fs::set_permissions(&temporary, std::fs::Permissions::from_mode(0o600))?;
    rustix::fs::renameat(&directory, TEMPORARY, &directory, SOCKET)?;
    // The same socket by the name that clients written for another server know.
    rustix::fs::unlinkat(&directory, OTHER_NAME, AtFlags::empty()).ok();
    rustix::fs::linkat(&directory, SOCKET, &directory, OTHER_NAME, AtFlags::empty())?;
    UnixListener::from_std(listener)
}

pub(super) fn unbind(directory: impl AsFd) {
    // Gone already is what we want.
    for name in [SOCKET, OTHER_NAME] {
        rustix::fs::unlinkat(&directory, name, AtFlags::empty()).ok();
    }
}

/// `READY=1` for the service manager.
pub(super) fn notify_ready() {
    let Some(target) = variable("NOTIFY_SOCKET") else {
        return;
    };
    let sent = UnixDatagram::unbound().and_then(|socket| match target.strip_prefix('@') {
        Some(name) => {
            use std::os::linux::net::SocketAddrExt;
            let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
            socket.send_to_addr(b"READY=1", &address)
        }
        None => socket.send_to(b"READY=1", &target),
    });
    if let Err(error) = sent {
        tracing::warn!(%error, "the service manager was not told");
    }
}

pub(super) async fn accept(listener: UnixListener, hub: Arc<Hub>, entrance: Entrance) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => admit(stream, &hub, &entrance),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Whether the process on the other side can gain privileges no more, as the backends of sessions
/// cannot. One that is gone could have been anybody.
fn is_confined(stream: &UnixStream, peer: Peer, owner: u32) -> bool {
    // A daemon that is confined itself cannot tell; root may look after everybody.
    if peer.uid != owner || sys::is_confined(std::process::id()) == Some(true) {
        return false;
    }
    let Some(pid) = peer
        .pid
        .and_then(|pid| u32::try_from(pid).ok())
        .filter(|pid| *pid > 0)
    else {
        return true;
    };
    let process = match sys::peer_process(stream) {
        Ok(process) => Some(process),
        // Kernels before 6.5 do not tell.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOPROTOOPT | libc::EINVAL)) => None,
        Err(_) => return true,
    };
    let confined = sys::is_confined(pid);
    // Looked at after the number: while it lives the number is its own.
    let gone = process.is_some_and(|process| sys::has_ended(&process));
    gone || confined != Some(false)
}

/// Those that are told why they cannot come in, at a time; and how long they may take to say something.
static TURNED_AWAY: tokio::sync::Semaphore = tokio::sync::Semaphore::const_new(64);
const GREETING: Duration = Duration::from_millis(100);

/// Answer the first message with an error. Who comes when even for that there is no place is not answered.
async fn turn_away(mut stream: UnixStream) {
    let Ok(_place) = TURNED_AWAY.try_acquire() else {
        return;
    };
    let mut greeting = [0; 64];
    let heard = tokio::time::timeout(GREETING, stream.read(&mut greeting)).await;
    if matches!(heard, Ok(Ok(count)) if count > 0) {
        let refused = Reply::Error {
            ename: Refusal::TOO_MANY_REQUESTS.text.into_owned(),
        };
        let mut frame = Vec::new();
        refused.encode(beamtalk_ninep::NOTAG, Dialect::Plan9, &mut frame);
        // Who does not listen is gone all the same.
        drop(stream.write_all(&frame).await);
    }
}

/// Look at the credentials before a byte is read.
fn admit(stream: UnixStream, hub: &Arc<Hub>, entrance: &Entrance) {
    let owner = rustix::process::geteuid().as_raw();
    let number = hub.guest_number();
    let Ok(credentials) = stream.peer_cred() else {
        return;
    };
    let peer = Peer {
        uid: credentials.uid(),
        pid: credentials.pid(),
    };
    let who = match entrance {
        Entrance::Session(id) => format!("session:{id}"),
        Entrance::Owner if peer.uid == 0 => "root".to_owned(),
        Entrance::Owner => "owner".to_owned(),
    };
    let entry = |result: &str| {
        let entry = Entry::new("connect")
            .with("conn", number)
            .with("pid", peer.pid)
            .with("uid", peer.uid)
            .with("who", who.clone());
        hub.audit.write(
            if peer.uid == 0 && owner != 0 {
                entry.with("root", true)
            } else {
                entry
            }
            .with("result", result),
        )
    };
    if peer.uid != owner && peer.uid != 0 {
        // The refusal matters more than its record.
        drop(entry("denied"));
        tracing::warn!(
            uid = peer.uid,
            pid = peer.pid,
            "connection of another user refused"
        );
        return;
    }
    let limits = hub.config().limits.clone();
    let (places, requests) = match entrance {
        Entrance::Owner => (limits.connections, limits.requests),
        Entrance::Session(_) => (limits.door_connections, limits.door_requests),
    };
    // Every door has places of its own: nobody takes those of the owner.
    let taken = hub
        .guests
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .values()
        .filter(|guest| guest.entrance == *entrance)
        .count();
    if taken >= places {
        drop(entry("too many connections"));
        tokio::spawn(turn_away(stream));
        return;
    }
    if entry("ok").is_err() {
        return;
    }
    let confined = *entrance == Entrance::Owner && is_confined(&stream, peer, owner);
    let hangup = Hangup::default();
    let guest = Guest {
        hangup: hangup.clone(),
        entrance: entrance.clone(),
        who: None,
        proof: None,
    };
    hub.guests
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(number, guest);
    let session = Arc::new(Connection {
        hub: Arc::clone(hub),
        number,
        peer,
        entrance: entrance.clone(),
        confined,
        hangup: hangup.clone(),
        failures: Arc::default(),
    });
    let limits = Limits {
        fids: limits.fids,
        requests,
        queue: limits.reply_queue_bytes,
        stall: Duration::from_millis(limits.stall_ms),
        ..Limits::default()
    };
    let owner = Owner {
        uid: owner,
        gid: rustix::process::getegid().as_raw(),
    };
    let hub = Arc::clone(hub);
    tokio::spawn(async move {
        beamtalk_ninep::serve(stream, session, owner, limits, hangup).await;
        hub.guests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&number);
    });
}
