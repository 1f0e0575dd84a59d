//! Messages over standard input and output: `Content-Length: N`, an empty line, N bytes of JSON.
//!
//! A message that is no JSON, or no message, is answered with an error and forgotten; only a broken frame ends the
//! connection, since nobody knows where the next one would begin.

use std::io::{self, BufRead, Read, Write};
use std::thread;

use crossbeam_channel::{Receiver, Sender};
use lsp_server::{Connection, ErrorCode, Message};
use serde_json::{Value, json};

/// A text of 50 MB, each byte escaped, is still a message.
const MAX_MESSAGE: usize = 512 * 1024 * 1024;
const MAX_HEADER: u64 = 4096;

/// What goes to the client: a message, or an answer to something that was none.
enum Outgoing {
    Message(Box<Message>),
    Refusal(Value),
}

/// The connection of a client on standard input and output. It ends when the input does.
pub struct Stdio {
    pub connection: Connection,
    writer: thread::JoinHandle<()>,
}

impl Stdio {
    /// Wait until everything is written that was sent.
    pub fn finish(self) {
        drop(self.connection);
        drop(self.writer.join());
    }
}

pub fn stdio() -> io::Result<Stdio> {
    let (to_server, incoming) = crossbeam_channel::unbounded();
    let (sender, from_server) = crossbeam_channel::unbounded();
    let (refuse, refusals) = crossbeam_channel::unbounded();
    thread::Builder::new()
        .name("lsp-reader".to_owned())
        .spawn(move || read_all(&mut io::stdin().lock(), &to_server, &refuse))?;
    let writer = thread::Builder::new()
        .name("lsp-writer".to_owned())
        .spawn(move || write_all(&mut io::stdout(), &from_server, &refusals))?;
    Ok(Stdio {
        connection: Connection {
            sender,
            receiver: incoming,
        },
        writer,
    })
}

fn read_all(input: &mut impl BufRead, messages: &Sender<Message>, refuse: &Sender<Value>) {
    while let Ok(Some(body)) = read_frame(input) {
        let message = match parse(&body) {
            Ok(message) => message,
            Err(refusal) => {
                if refuse.send(refusal).is_err() {
                    return;
                }
                continue;
            }
        };
        let is_exit =
            matches!(&message, Message::Notification(notification) if notification.method == "exit");
        if messages.send(message).is_err() || is_exit {
            return;
        }
    }
}

/// A message, or the answer to what is none.
fn parse(body: &[u8]) -> Result<Message, Value> {
    let refusal = |id: Value, code: ErrorCode, message: String| json!({"jsonrpc": "2.0", "id": id, "error": {"code": code as i32, "message": message}});
    let value: Value = serde_json::from_slice(body)
        .map_err(|cause| refusal(Value::Null, ErrorCode::ParseError, format!("not JSON: {cause}")))?;
    let id = value.get("id").filter(|id| id.is_number() || id.is_string());
    let id = id.cloned().unwrap_or(Value::Null);
    serde_json::from_value(value).map_err(|_| {
        let text = "neither a request, a notification nor a response".to_owned();
        refusal(id, ErrorCode::InvalidRequest, text)
    })
}

/// The body of the next message; none at the end of the input.
fn read_frame(input: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut length = None;
    loop {
        let mut line = Vec::new();
        if input.by_ref().take(MAX_HEADER).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim();
        if line.is_empty() {
            if length.is_some() {
                break;
            }
            continue;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse::<usize>().ok();
        }
    }
    let length = length
        .filter(|length| *length <= MAX_MESSAGE)
        .ok_or(io::ErrorKind::InvalidData)?;
    // What the header promises is believed as it arrives, not before.
    let mut body = Vec::with_capacity(length.min(1024 * 1024));
    input.by_ref().take(length as u64).read_to_end(&mut body)?;
    if body.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(body))
}

fn write_all(output: &mut impl Write, messages: &Receiver<Message>, refusals: &Receiver<Value>) {
    loop {
        let next = crossbeam_channel::select! {
            recv(messages) -> message => message.map(|message| Outgoing::Message(Box::new(message))),
            recv(refusals) -> refusal => match refusal {
                Ok(refusal) => Ok(Outgoing::Refusal(refusal)),
                // The reader has ended; what the server still has to say is said.
                Err(_) => messages.recv().map(|message| Outgoing::Message(Box::new(message))),
            },
        };
        let written = match next {
            Ok(Outgoing::Message(message)) => message.write(output),
            Ok(Outgoing::Refusal(value)) => write_value(output, &value),
            Err(_) => return,
        };
        if written.is_err() {
            return;
        }
    }
}

fn write_value(output: &mut impl Write, value: &Value) -> io::Result<()> {
    let text = value.to_string();
    write!(output, "Content-Length: {}\r\n\r\n{text}", text.len())?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(body: &str) -> String {
        format!("Content-Length: {}\r\n\r\n{body}", body.len())
    }

    fn read(text: &str) -> (Vec<Message>, Vec<Value>) {
        let (messages, received) = crossbeam_channel::unbounded();
        let (refuse, refused) = crossbeam_channel::unbounded();
        read_all(&mut text.as_bytes(), &messages, &refuse);
        drop((messages, refuse));
        (received.iter().collect(), refused.iter().collect())
    }

    #[test]
    fn what_is_no_message_is_refused_and_the_next_one_is_read() {
        let text = [
            frame("{"),
            frame(r#"{"id":7,"nothing":1}"#),
            frame(r#"{"id":8,"method":"shutdown"}"#),
        ]
        .concat();
        let (messages, refusals) = read(&text);
        assert_eq!(messages.len(), 1);
        assert_eq!(refusals.len(), 2);
        assert_eq!(refusals[0]["error"]["code"], -32700);
        assert_eq!(refusals[1]["error"]["code"], -32600);
        assert_eq!(refusals[1]["id"], 7);
    }

    #[test]
    fn a_frame_without_a_length_or_with_a_huge_one_ends_the_connection() {
        for text in [
            "Content-Length: 99999999999999\r\n\r\n{}",
            "Content-Length: x\r\n\r\n{}",
            "Content-Length: 10\r\n\r\n{}",
        ] {
            assert_eq!(read(text).0.len(), 0, "{text}");
        }
    }

    #[test]
    fn nothing_after_exit_is_read() {
        let exit = frame(r#"{"method":"exit"}"#);
        let (messages, _) = read(&format!("{exit}{exit}"));
        assert_eq!(messages.len(), 1);
    }
}
