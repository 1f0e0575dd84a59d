//! Frames of the control socket: a length of four bytes, big-endian, and one JSON object.

use beamtalk_wire::{ErrorBody, limits::CONTROL_FRAME};
use serde_json::Value;

#[derive(Debug, thiserror::Error)]
pub enum FrameFault {
    #[error("a frame of {0} bytes is over the limit of {CONTROL_FRAME}")]
    TooLong(u32),
    #[error("a frame is not a JSON object")]
    NotAnObject,
}

impl FrameFault {
    pub(crate) fn body(&self) -> ErrorBody {
        let kind = match self {
            Self::TooLong(_) => "message_too_large",
            Self::NotAnObject => "invalid_request",
        };
        ErrorBody::new(kind, self.to_string())
    }
}

/// Cuts a stream of bytes into requests. It holds no more than was received.
#[derive(Debug, Default)]
pub struct Frames(Vec<u8>);

impl Frames {
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// The next whole request; `None` when more bytes are needed.
    pub fn next_request(&mut self) -> Result<Option<Value>, FrameFault> {
        let Some((header, rest)) = self.0.split_first_chunk::<4>() else {
            return Ok(None);
        };
        let announced = u32::from_be_bytes(*header);
        let length = announced as usize;
        if length > CONTROL_FRAME {
            return Err(FrameFault::TooLong(announced));
        }
        let Some(body) = rest.get(..length) else {
            return Ok(None);
        };
        let request = serde_json::from_slice(body)
            .ok()
            .filter(Value::is_object)
            .ok_or(FrameFault::NotAnObject)?;
        self.0.drain(..4 + length);
        Ok(Some(request))
    }
}

/// One frame as bytes; `None` when it would be over the limit.
pub fn encode_frame(frame: &Value) -> Option<Vec<u8>> {
    let body = frame.to_string();
    let length = u32::try_from(body.len())
        .ok()
        .filter(|length| *length as usize <= CONTROL_FRAME)?;
    let mut bytes = Vec::with_capacity(body.len() + 4);
    bytes.extend(length.to_be_bytes());
    bytes.extend(body.into_bytes());
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn frames(bytes: &[u8]) -> Frames {
        let mut frames = Frames::default();
        frames.push(bytes);
        frames
    }

    #[test]
    fn faults() {
        let long = u32::try_from(CONTROL_FRAME).unwrap() + 1;
        assert!(matches!(
            frames(&long.to_be_bytes()).next_request(),
            Err(FrameFault::TooLong(_))
        ));
        for body in [&b"[]"[..], b"1", b"", b"{", b"{}x", b"\xff\xff", b"\"hello\""] {
            let mut bytes = u32::try_from(body.len()).unwrap().to_be_bytes().to_vec();
            bytes.extend(body);
            assert!(matches!(
                frames(&bytes).next_request(),
                Err(FrameFault::NotAnObject)
            ));
        }
        assert!(encode_frame(&Value::String("x".repeat(CONTROL_FRAME))).is_none());
    }

    proptest! {
        #[test]
        fn requests_arrive_however_they_are_cut(names in proptest::collection::vec(".{0,20}", 0..8), size in 1..50_usize) {
            let requests: Vec<_> = names.iter().map(|name| json!({"op": name})).collect();
            let bytes: Vec<u8> = requests.iter().flat_map(|request| encode_frame(request).unwrap()).collect();
            let (mut frames, mut found) = (Frames::default(), Vec::new());
            for piece in bytes.chunks(size) {
                frames.push(piece);
                while let Some(request) = frames.next_request().unwrap() {
                    found.push(request);
                }
            }
            prop_assert_eq!(found, requests);
        }
    }
}
