//! The control socket: the kernel vouches for the user at the other end.
//!
//! Requests of a connection are answered one after the other; an answer may have several frames.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use beamtalk_wire::{ErrorBody, ErrorKind};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;

use super::failures::{Failure, Peer, Reason};
use super::framing::{FrameFault, Frames, encode_frame};
use super::server::Shared;

/// Frames of an answer that wait for the client.
const ANSWERS: usize = 64;
/// Bytes read at once.
const READ: usize = 64 * 1024;

/// A request on the control socket.
pub struct ControlCall {
    pub peer_uid: u32,
    pub request: Value,
    pub answer: Answer,
}

/// Where the answer to one call goes, as one frame or several; dropping it ends the answer.
#[derive(Clone, Debug)]
pub struct Answer(mpsc::Sender<Value>);

impl Answer {
    /// Send one frame; false when the client has gone.
    pub async fn send(&self, frame: Value) -> bool {
        self.0.send(frame).await.is_ok()
    }

    /// Wait until the client has gone.
    pub async fn closed(&self) {
        self.0.closed().await;
    }
}

/// Make the socket: reachable by nobody else at any moment, since its directory is private and it
/// gets its name only once its mode is set.
#[expect(clippy::disallowed_methods, reason = "the gate listens")]
pub(crate) fn bind(path: &Path) -> io::Result<UnixListener> {
    let refuse = |reason: &str| Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    let Some(directory) = path.parent() else {
        return refuse("it has no directory");
    };
    let status = rustix::fs::lstat(directory)?;
    if status.st_uid != rustix::process::geteuid().as_raw() {
        return refuse("its directory belongs to another user");
    }
    if rustix::fs::FileType::from_raw_mode(status.st_mode) != rustix::fs::FileType::Directory
        || status.st_mode & 0o077 != 0
    {
        return refuse("its directory is not private (mode 0700)");
    }
    // Not longer than the name itself, whose length the system limits.
    let draft = path.with_extension("new");
    drop(std::fs::remove_file(&draft));
    let listener = UnixListener::bind(&draft)?;
    std::fs::set_permissions(&draft, std::fs::Permissions::from_mode(0o600))?;
    std::fs::rename(&draft, path)?;
    Ok(listener)
}

pub(crate) async fn serve(listener: UnixListener, shared: Arc<Shared>, calls: mpsc::Sender<ControlCall>) {
    let own = rustix::process::geteuid().as_raw();
    let mut open = tokio::task::JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            shared.breathe().await;
            continue;
        };
        while open.try_join_next().is_some() {}
        match stream.peer_cred() {
            Ok(peer) if peer.uid() == own => {
                open.spawn(converse(stream, own, calls.clone()));
            }
            peer => shared.record_failure(Failure {
                peer: Peer::Unix {
                    uid: peer.map_or(u32::MAX, |peer| peer.uid()),
                },
                reason: Reason::PeerUid,
                bytes: 0,
                count: 1,
            }),
        }
    }
}

/// Answer the requests of one connection, one after the other.
async fn converse(stream: UnixStream, peer_uid: u32, calls: mpsc::Sender<ControlCall>) {
    let (reader, writer) = stream.into_split();
    let (requests, arrived) = mpsc::channel(1);
    let reading = async {
        read_all(reader, requests).await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = answer_all(arrived, writer, peer_uid, calls) => {}
        () = reading => {}
    }
}

async fn read_all(mut reader: OwnedReadHalf, requests: mpsc::Sender<Result<Value, FrameFault>>) {
    let mut frames = Frames::default();
    let mut buffer = vec![0; READ];
    loop {
        let request = frames.next_request().transpose();
        let is_fault = matches!(request, Some(Err(_)));
        if let Some(request) = request {
            if requests.send(request).await.is_err() || is_fault {
                return;
            }
            continue;
        }
        match reader.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(count) => frames.push(&buffer[..count]),
        }
    }
}

async fn answer_all(
    mut arrived: mpsc::Receiver<Result<Value, FrameFault>>,
    mut writer: OwnedWriteHalf,
    peer_uid: u32,
    calls: mpsc::Sender<ControlCall>,
) {
    let mut next = arrived.recv().await;
    while let Some(request) = next.take() {
        let request = match request {
            Ok(request) => request,
            Err(fault) => {
                drop(write(&mut writer, &json!({"error": fault.body()})).await);
                return;
            }
        };
        let (answer, mut answers) = mpsc::channel(ANSWERS);
        let call = ControlCall {
            peer_uid,
            request,
            answer: Answer(answer),
        };
        if calls.send(call).await.is_err() {
            return;
        }
        loop {
            tokio::select! {
                frame = answers.recv() => match frame {
                    Some(frame) => if write(&mut writer, &frame).await.is_err() {
                        return;
                    },
                    None => break,
                },
                request = arrived.recv(), if next.is_none() => match request {
                    // A client that hangs up wants no more of the answer.
                    None => return,
                    request => next = request,
                },
            }
        }
        if next.is_none() {
            next = arrived.recv().await;
        }
    }
}

async fn write(writer: &mut OwnedWriteHalf, frame: &Value) -> io::Result<()> {
    let too_long = || json!({"error": ErrorBody::new(ErrorKind::MessageTooLarge, "the answer is too long for one frame")});
    let bytes = encode_frame(frame).or_else(|| encode_frame(&too_long()));
    writer.write_all(&bytes.unwrap_or_default()).await
}
