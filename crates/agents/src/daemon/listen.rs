//! The socket: bound under another name, never visible with a wider mode.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use beamtalk_ninep::{Hangup, Limits, Owner, Peer};
use rustix::fs::{AtFlags, Mode};
use tokio::net::{UnixListener, UnixStream};

use super::connection::Connection;
use super::hub::Guest;
use super::{DOOR, Hub};
use crate::audit::Entry;
use crate::error::Fatal;
use crate::namespace::Namespace;
use crate::places::variable;

const SOCKET: &str = "agent";
const TEMPORARY: &str = "agent.tmp";

/// Bind in the directory that sessions see, then give the same socket its public name.
pub(super) fn bind(namespace: &Namespace) -> Result<UnixListener, Fatal> {
    let door: PathBuf = namespace.path.join(DOOR);
    match rustix::fs::mkdirat(&namespace.directory, DOOR, Mode::from_raw_mode(0o700)) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(error) => return Err(std::io::Error::from(error).into()),
    }
    let inner = |name: &str| format!("{DOOR}/{name}");
    let io = |error: rustix::io::Errno| Fatal::Io(error.into());
    // What a crashed daemon left behind.
    for name in [inner(TEMPORARY), TEMPORARY.to_owned()] {
        rustix::fs::unlinkat(&namespace.directory, name.as_str(), AtFlags::empty()).ok();
    }
    let old_mask = rustix::process::umask(Mode::from_raw_mode(0o177));
    let bound = std::os::unix::net::UnixListener::bind(door.join(TEMPORARY));
    rustix::process::umask(old_mask);
    let listener = bound?;
    listener.set_nonblocking(true)?;
    std::fs::set_permissions(door.join(TEMPORARY), std::fs::Permissions::from_mode(0o600))?;
    let directory = &namespace.directory;
    rustix::fs::renameat(
        directory,
        inner(TEMPORARY).as_str(),
        directory,
        inner(SOCKET).as_str(),
    )
    .map_err(io)?;
    rustix::fs::linkat(
        directory,
        inner(SOCKET).as_str(),
        directory,
        TEMPORARY,
        AtFlags::empty(),
    )
    .map_err(io)?;
    rustix::fs::renameat(directory, TEMPORARY, directory, SOCKET).map_err(io)?;
    Ok(UnixListener::from_std(listener)?)
}

pub(super) fn unbind(namespace: &Namespace) {
    for name in [SOCKET.to_owned(), format!("{DOOR}/{SOCKET}")] {
        // Gone already is what we want.
        rustix::fs::unlinkat(&namespace.directory, name.as_str(), AtFlags::empty()).ok();
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

pub(super) async fn accept(listener: UnixListener, hub: Arc<Hub>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => admit(stream, &hub),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Look at the credentials before a byte is read.
fn admit(stream: UnixStream, hub: &Arc<Hub>) {
    let owner = rustix::process::geteuid().as_raw();
    let number = hub.guest_number();
    let Ok(credentials) = stream.peer_cred() else {
        return;
    };
    let peer = Peer {
        uid: credentials.uid(),
        pid: credentials.pid(),
    };
    let entry = |result: &str| {
        let entry = Entry::new("connect")
            .with("conn", number)
            .with("pid", peer.pid)
            .with("uid", peer.uid);
        let entry = entry.with("who", if peer.uid == 0 { "root" } else { "owner" });
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
    let full = hub.guests.lock().unwrap_or_else(PoisonError::into_inner).len() >= limits.connections;
    if full {
        drop(entry("too many connections"));
        return;
    }
    if entry("ok").is_err() {
        return;
    }
    let hangup = Hangup::default();
    let guest = Guest {
        hangup: hangup.clone(),
        who: None,
    };
    hub.guests
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(number, guest);
    let session = Arc::new(Connection::new(Arc::clone(hub), number, peer, hangup.clone()));
    let limits = Limits {
        fids: limits.fids,
        requests: limits.requests,
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
