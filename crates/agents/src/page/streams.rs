//! Followed files as server-sent events.

use std::os::unix::net::UnixStream;

use beamtalk_http::EventStream;
use hyper::Method;
use hyper::body::Bytes;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::routes::Asked;
use crate::{Client, Failure};

/// Pieces that may wait for a slow browser; the daemon's own rules hold for what it misses.
const WAITING: usize = 16;

/// The connection to the daemon of one stream. Dropped with that of the browser, it ends the thread that waits there.
pub(super) struct Hangup {
    socket: UnixStream,
    _turn: Option<OwnedSemaphorePermit>,
}

impl Drop for Hangup {
    fn drop(&mut self) {
        // A socket that is closed already needs no end.
        drop(self.socket.shutdown(std::net::Shutdown::Both));
    }
}

pub(super) enum Stream {
    Events { since: Option<u64> },
    Output { session: String, tail: Option<u64> },
}

/// The stream a request asks for, if it does.
pub(super) fn wanted(asked: &Asked) -> Option<Stream> {
    let number = |key: &str| {
        asked
            .query
            .split('&')
            .find_map(|pair| pair.strip_prefix(key)?.strip_prefix('=')?.parse().ok())
    };
    if asked.method != Method::GET {
        return None;
    }
    if asked.path == "/api/events" {
        return Some(Stream::Events {
            since: asked.last_event.or_else(|| number("since")),
        });
    }
    let session = asked
        .path
        .strip_prefix("/api/session/")?
        .strip_suffix("/stream")?;
    Some(Stream::Output {
        session: session.to_owned(),
        tail: number("tail"),
    })
}

/// Open the file and leave a thread that hands on what comes.
pub(super) fn follow(
    client: &Client,
    stream: &Stream,
    turn: Option<OwnedSemaphorePermit>,
) -> Result<EventStream<Hangup>, Failure> {
    // A connection of its own: its end is the end of the stream.
    let (tree, socket) = client.tree_and_socket()?;
    let (path, command) = match stream {
        Stream::Events { since } => ("events".to_owned(), since.map(|seq| format!("since {seq}"))),
        Stream::Output { session, tail } => {
            let id = client.resolve(&tree, session)?;
            (
                format!("{id}/output.follow"),
                tail.map(|bytes| format!("tail {bytes}")),
            )
        }
    };
    let mut file = tree.open(&path, if command.is_some() { 2 } else { 0 })?;
    if let Some(command) = command {
        file.write_at(0, command.as_bytes())?;
    }
    let (sender, pieces) = mpsc::channel(WAITING);
    let is_events = matches!(stream, Stream::Events { .. });
    std::thread::Builder::new()
        .name("follow".to_owned())
        .spawn(move || {
            let mut lines = Lines::default();
            // Tells the browser at once that it is connected.
            let mut text = ": open\n\n".to_owned();
            loop {
                if !text.is_empty() && sender.blocking_send(Bytes::from(text)).is_err() {
                    return;
                }
                text = match file.read_next(None) {
                    Ok(piece) if piece.is_empty() => break,
                    Ok(piece) if is_events => lines.events(piece.as_ref()),
                    Ok(piece) => format!("data: {}\n\n", beamtalk_storage::base64(piece.as_ref())),
                    Err(beamtalk_ninep::Error::Refused(refused)) if refused.text == "output trimmed" => {
                        "event: trimmed\ndata: \n\n".to_owned()
                    }
                    Err(_) => break,
                };
            }
            // The browser may be gone already.
            drop(sender.blocking_send(Bytes::from_static(b"event: end\ndata: \n\n")));
            drop(tree);
        })?;
    Ok(EventStream::new(pieces, Hangup { socket, _turn: turn }))
}

/// Whole lines out of pieces that may end anywhere.
#[derive(Default)]
struct Lines {
    rest: Vec<u8>,
}

impl Lines {
    fn events(&mut self, piece: &[u8]) -> String {
        self.rest.extend_from_slice(piece);
        let mut text = String::new();
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end();
            let seq = serde_json::from_str::<serde_json::Value>(line)
                .ok()
                .and_then(|event| event.get("seq")?.as_u64());
            if let Some(seq) = seq {
                text.push_str(&format!("id: {seq}\n"));
            }
            text.push_str(&format!("data: {line}\n\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::Lines;

    #[test]
    fn events_keep_their_numbers_and_wait_for_their_end() {
        let mut lines = Lines::default();
        assert_eq!(lines.events(b"{\"seq\":7,\"a\""), "");
        assert_eq!(
            lines.events(b":1}\n{\"x\":2}\n"),
            "id: 7\ndata: {\"seq\":7,\"a\":1}\n\ndata: {\"x\":2}\n\n"
        );
    }
}
