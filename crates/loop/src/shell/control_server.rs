//! The serving side of the control socket.

use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{broadcast, oneshot, watch};

use super::Inbound;
use crate::control::{Answer, Ask, socket_path};
use crate::events::gate::{BODY_LIMIT, Caller, Rejection};
use crate::events::server::{Desk, Waits};

/// The longest question, in bytes: the largest value, fully escaped, and its frame.
const LINE_LIMIT: u64 = (BODY_LIMIT as u64) * 6 + 4096;

/// How many clients are served at once. All of them are the user's own.
const CONNECTIONS: usize = 128;

/// How long a client may take for its first question.
const PATIENCE: Duration = Duration::from_secs(10);

/// A client that is served.
struct Served {
    task: tokio::task::AbortHandle,
    /// Whether it has asked something and is owed an answer.
    is_owed: Arc<AtomicBool>,
}

/// Make room for one more: the oldest that waits for nothing goes, or else the oldest.
fn make_room(served: &mut Vec<Served>) {
    served.retain(|client| !client.task.is_finished());
    if served.len() >= CONNECTIONS {
        let idle = served
            .iter()
            .position(|client| !client.is_owed.load(Ordering::Relaxed));
        served.remove(idle.unwrap_or(0)).task.abort();
    }
}

/// Bind the control socket, private to the user. The lock is held, so an old socket is stale.
#[expect(clippy::disallowed_methods, reason = "the control socket of the loop")]
pub(crate) fn bind(state_file: &Path) -> std::io::Result<UnixListener> {
    let path = socket_path(state_file);
    if let Some(directory) = path.parent()
        && Some(directory) != state_file.parent()
    {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
        let found = std::fs::symlink_metadata(directory)?;
        if !found.is_dir() || found.uid() != rustix::process::getuid().as_raw() {
            return Err(std::io::Error::other("the directory belongs to somebody else"));
        }
    }
    drop(std::fs::remove_file(&path));
    // The mode must be right from the first moment.
    let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
    let listener = UnixListener::bind(&path);
    rustix::process::umask(before);
    listener
}

pub(crate) fn unbind(state_file: &Path) {
    drop(std::fs::remove_file(socket_path(state_file)));
}

/// Serve until dropped. `revision` changes whenever the status does.
pub(crate) async fn run(listener: UnixListener, desk: Desk, revision: watch::Receiver<u64>) {
    let mut open = tokio::task::JoinSet::new();
    let mut served = Vec::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            continue;
        };
        while open.try_join_next().is_some() {}
        let same_user = stream
            .peer_cred()
            .is_ok_and(|peer| peer.uid() == rustix::process::getuid().as_raw());
        if same_user {
            make_room(&mut served);
            let is_owed = Arc::new(AtomicBool::new(false));
            let talk = converse(stream, desk.clone(), revision.clone(), Arc::clone(&is_owed));
            let task = open.spawn(talk);
            served.push(Served { task, is_owed });
        }
    }
}

async fn converse(stream: UnixStream, desk: Desk, revision: watch::Receiver<u64>, is_owed: Arc<AtomicBool>) {
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read);
    let first = tokio::time::timeout(PATIENCE, read_line(&mut lines)).await;
    let mut next = first.ok().flatten();
    while let Some(line) = next {
        is_owed.store(true, Ordering::Relaxed);
        let answered = match serde_json::from_slice::<Ask>(&line) {
            Ok(ask) => {
                let is_endless = matches!(ask, Ask::Follow | Ask::Logs { follow: true, .. });
                tokio::select! {
                    answered = answer(ask, &desk, &revision, &mut write) => answered,
                    // Nobody reads any more, and there may be nothing to say for long.
                    () = left(&mut lines), if is_endless => return,
                }
            }
            Err(_) => say(&mut write, &Answer::Error("not understood".into())).await,
        };
        if answered.is_err() {
            return;
        }
        is_owed.store(false, Ordering::Relaxed);
        next = read_line(&mut lines).await;
    }
}

/// Resolves when the client has gone.
async fn left(lines: &mut BufReader<OwnedReadHalf>) {
    if lines.fill_buf().await.is_ok_and(|bytes| !bytes.is_empty()) {
        // It has more to ask, which waits its turn.
        std::future::pending::<()>().await;
    }
}

async fn read_line(lines: &mut BufReader<OwnedReadHalf>) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    let count = lines.take(LINE_LIMIT).read_until(b'\n', &mut line).await.ok()?;
    (count > 0 && line.ends_with(b"\n")).then_some(line)
}

async fn say(write: &mut OwnedWriteHalf, answer: &Answer) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    write.write_all(&line).await
}

async fn answer(
    ask: Ask,
    desk: &Desk,
    revision: &watch::Receiver<u64>,
    write: &mut OwnedWriteHalf,
) -> std::io::Result<()> {
    let gone = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
    match ask {
        Ask::Status => say(write, &status(desk).await.ok_or_else(gone)?).await,
        Ask::Follow => {
            let mut revision = revision.clone();
            loop {
                revision.borrow_and_update();
                say(write, &status(desk).await.ok_or_else(gone)?).await?;
                revision.changed().await.map_err(|_| gone())?;
            }
        }
        Ask::State { key } => {
            let (reply, values) = oneshot::channel();
            desk.inbox
                .send(Inbound::State { key, reply })
                .await
                .map_err(|_| gone())?;
            say(write, &Answer::State(values.await.map_err(|_| gone())?)).await
        }
        Ask::Process { process, operation } => {
            let (reply, done) = oneshot::channel();
            let asked = Inbound::Operate {
                process,
                operation,
                reply,
            };
            desk.inbox.send(asked).await.map_err(|_| gone())?;
            let answer = match done.await.map_err(|_| gone())? {
                Ok(()) => Answer::Done,
                Err(text) => Answer::Error(text),
            };
            say(write, &answer).await
        }
        Ask::Logs {
            process,
            tail,
            follow,
        } => logs(desk, &process, tail, follow, write).await,
        Ask::Why { workflow } => why(desk, workflow, write).await,
        Ask::Graph { dot } => {
            let config = desk.config();
            let text = if dot {
                crate::graph_text::graph_dot(&config)
            } else {
                crate::graph_text::graph_text(&config)
            };
            say(write, &Answer::Text(text)).await
        }
        Ask::Stop => {
            desk.inbox.send(Inbound::Stop).await.map_err(|_| gone())?;
            say(write, &Answer::Stopping).await
        }
        Ask::Trigger { event, value, wait } => {
            trigger(
                desk,
                &event,
                &value,
                if wait { Waits::Yes } else { Waits::No },
                write,
            )
            .await
        }
    }
}

async fn logs(
    desk: &Desk,
    process: &str,
    tail: usize,
    follow: bool,
    write: &mut OwnedWriteHalf,
) -> std::io::Result<()> {
    if !desk.config().process.contains_key(process) {
        let text = format!("no process named '{process}'");
        return say(write, &Answer::Error(text)).await;
    }
    let (lines, mut news) = desk.tails.read(process, tail);
    for said in lines {
        say(write, &Answer::Log(said)).await?;
    }
    say(write, &Answer::Lines).await?;
    if !follow {
        return Ok(());
    }
    loop {
        let answer = match news.recv().await {
            Ok(said) => Answer::Log(said),
            Err(broadcast::error::RecvError::Lagged(count)) => Answer::Skipped(count),
            Err(broadcast::error::RecvError::Closed) => return Ok(()),
        };
        say(write, &answer).await?;
    }
}

async fn why(desk: &Desk, workflow: Option<String>, write: &mut OwnedWriteHalf) -> std::io::Result<()> {
    if let Some(name) = &workflow
        && !desk.config().workflow.contains_key(name)
    {
        return say(write, &Answer::Error(format!("no workflow named '{name}'"))).await;
    }
    let Some(Answer::Status(status)) = status(desk).await else {
        return Err(std::io::ErrorKind::BrokenPipe.into());
    };
    let mut runs = status.runs;
    runs.retain(|run| workflow.as_ref().is_none_or(|name| run.workflow == *name));
    say(write, &Answer::Runs(runs)).await
}

async fn status(desk: &Desk) -> Option<Answer> {
    let (reply, status) = oneshot::channel();
    desk.inbox.send(Inbound::Status { reply }).await.ok()?;
    status.await.ok().map(|status| Answer::Status(Box::new(status)))
}

async fn trigger(
    desk: &Desk,
    event: &str,
    value: &str,
    waits: Waits,
    write: &mut OwnedWriteHalf,
) -> std::io::Result<()> {
    let declared = desk.gate().is_declared(event);
    let caller = Caller {
        event: declared.then(|| event.to_owned()),
        by: "cli".into(),
    };
    let refused = if !declared {
        Some(Rejection::NotFound)
    } else if !desk.gate().take(event, Instant::now()) {
        Some(Rejection::Rate)
    } else if value.len() > BODY_LIMIT {
        Some(Rejection::TooLarge)
    } else {
        None
    };
    if let Some(rejection) = refused {
        desk.record(&caller, "cli", Some(value), Err(rejection));
        desk.refuse(&caller, rejection).await;
        return say(write, &Answer::Error(rejection.kind().into())).await;
    }
    match desk.post(event, value, waits).await {
        Err(rejection) => {
            desk.record(&caller, "cli", Some(value), Err(rejection));
            say(write, &Answer::Error(rejection.kind().into())).await
        }
        Ok(posted) => {
            desk.record(&caller, "cli", Some(value), Ok(posted.changed));
            say(
                write,
                &Answer::Accepted {
                    changed: posted.changed,
                },
            )
            .await?;
            if let Some(finished) = posted.finished.filter(|_| posted.changed) {
                let error = finished
                    .await
                    .unwrap_or_else(|_| Err("the loop ended".into()))
                    .err();
                say(write, &Answer::Finished { error }).await?;
            }
            Ok(())
        }
    }
}
