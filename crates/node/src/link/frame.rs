//! Frames of the pipe: four bytes of length, then one term.

use beamtalk_etf::{Limits, Term};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::{Answer, NodeMessage};

/// Largest frame either side accepts.
pub(super) const FRAME_LIMIT: usize = 16 * 1024 * 1024;

const LIMITS: Limits = Limits {
    depth: 512,
    elements: 1_000_000,
    bytes: FRAME_LIMIT,
};

/// A frame of the node, sorted by who wants it.
#[derive(Debug, PartialEq)]
pub(super) enum Incoming {
    Answer(u64, Answer),
    Message(NodeMessage),
}

/// The bytes of a frame, or the error of a request that is too large.
pub(super) fn encode(term: &Term) -> Result<Vec<u8>, Term> {
    let body = beamtalk_etf::encode(term);
    let length = body.len();
    match u32::try_from(length) {
        Ok(header) if length <= FRAME_LIMIT => {
            let mut frame = Vec::with_capacity(length + 4);
            frame.extend_from_slice(&header.to_be_bytes());
            frame.extend_from_slice(&body);
            Ok(frame)
        }
        Ok(_) | Err(_) => Err(refusal(
            "message_too_large",
            &format!("a request of {length} bytes is over the limit of {FRAME_LIMIT}"),
        )),
    }
}

/// An error as the node would send it.
pub(super) fn refusal(kind: &str, message: &str) -> Term {
    Term::Map(vec![
        (Term::binary("kind"), Term::binary(kind)),
        (Term::binary("message"), Term::binary(message)),
    ])
}

/// The next frame; `None` at the end of the pipe.
pub(super) async fn read<P: AsyncRead + Unpin>(pipe: &mut P, buffer: &mut Vec<u8>) -> Option<Incoming> {
    let length = pipe.read_u32().await.ok()? as usize;
    if length > FRAME_LIMIT {
        let mut skipped = pipe.take(length as u64);
        tokio::io::copy(&mut skipped, &mut tokio::io::sink()).await.ok()?;
        return Some(damaged(format!(
            "a frame of {length} bytes is over the limit of {FRAME_LIMIT}"
        )));
    }
    buffer.clear();
    // The length is a claim: memory is taken as the bytes arrive.
    let read = pipe.take(length as u64).read_to_end(buffer).await.ok()?;
    if read < length {
        return None;
    }
    let incoming = match beamtalk_etf::decode(buffer, LIMITS) {
        Ok(term) => sort(term).unwrap_or_else(|| damaged("a term that is no message".to_owned())),
        Err(error) => damaged(error.to_string()),
    };
    if buffer.capacity() > (1 << 20) {
        *buffer = Vec::new();
    }
    Some(incoming)
}

fn damaged(reason: String) -> Incoming {
    Incoming::Message(NodeMessage::DamagedFrame(reason))
}

fn sort(term: Term) -> Option<Incoming> {
    let Term::Tuple(parts) = term else { return None };
    let mut parts = parts.into_iter();
    let Some(Term::Atom(tag)) = parts.next() else {
        return None;
    };
    let rest: Vec<Term> = parts.collect();
    match (tag.as_str(), rest.len()) {
        ("res" | "err" | "out" | "need_input", 2) => answer(&tag, rest),
        ("event", 3) => {
            let [channel, name, data] = <[Term; 3]>::try_from(rest).ok()?;
            Some(Incoming::Message(NodeMessage::Event {
                channel: text(channel)?,
                name: text(name)?,
                data,
            }))
        }
        ("ask", 4) => {
            let [number, session, op, args] = <[Term; 4]>::try_from(rest).ok()?;
            let Term::Integer(number) = number else {
                return None;
            };
            Some(Incoming::Message(NodeMessage::Ask {
                number,
                session: match session {
                    Term::Binary(_) => text(session),
                    _ => None,
                },
                op: text(op)?,
                args,
            }))
        }
        _ => None,
    }
}

fn answer(tag: &str, rest: Vec<Term>) -> Option<Incoming> {
    let [id, content] = <[Term; 2]>::try_from(rest).ok()?;
    let Term::Integer(id) = id else { return None };
    let id = u64::try_from(id).ok()?;
    let answer = match (tag, content) {
        ("res", content) => Answer::Done(content),
        ("err", content) => Answer::Failed(content),
        ("out", Term::Binary(bytes)) => Answer::Out(bytes),
        (_, Term::Binary(bytes)) => Answer::NeedInput(String::from_utf8_lossy(&bytes).into_owned()),
        _ => return None,
    };
    Some(Incoming::Answer(id, answer))
}

/// Names come as binaries or atoms.
fn text(term: Term) -> Option<String> {
    match term {
        Term::Binary(bytes) => String::from_utf8(bytes).ok(),
        Term::Atom(name) => Some(name.to_string()),
        Term::Integer(_)
        | Term::BigInteger(_)
        | Term::Float(_)
        | Term::Tuple(_)
        | Term::List(_)
        | Term::ImproperList(..)
        | Term::Map(_) => None,
    }
}
