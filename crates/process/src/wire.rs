//! What supervisor, guard and keepers say to each other, as bytes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::Duration;

use rustix::process::Signal;

use crate::child::{Spec, Stdin, Stop};

/// Asks the guard for a start; the descriptors come with it.
pub(crate) const START: u8 = b'+';
/// Tells the guard to kill everybody now.
pub(crate) const KILL: u8 = b'k';

/// A keeper's report: what, and a number.
pub(crate) type Record = [u8; 5];
/// A command to a keeper: the gentle signal and the grace in milliseconds.
pub(crate) type Command = [u8; 8];

/// What a keeper has to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// The program runs; its number.
    Started(u32),
    /// The program cannot be started; the number of the error.
    Refused(i32),
    /// The working directory is the reason.
    NoDirectory(i32),
    /// The program ended and nobody else is left; the status as the system gives it.
    EndedAlone(i32),
    /// The program ended and left others.
    EndedLeaving(i32),
    /// Nobody is left.
    Gone,
    /// This process does not end.
    Stuck(u32),
    /// The stop has failed; the stuck were named before.
    StopFailed,
    /// The keeper died; the guard has ended what it kept.
    Lost,
}

impl Word {
    pub(crate) fn encode(self) -> Record {
        let (kind, number) = match self {
            Self::Started(id) => (b'p', id.to_le_bytes()),
            Self::Refused(error) => (b'f', error.to_le_bytes()),
            Self::NoDirectory(error) => (b'd', error.to_le_bytes()),
            Self::EndedAlone(status) => (b'x', status.to_le_bytes()),
            Self::EndedLeaving(status) => (b'y', status.to_le_bytes()),
            Self::Gone => (b'g', [0; 4]),
            Self::Stuck(id) => (b's', id.to_le_bytes()),
            Self::StopFailed => (b'q', [0; 4]),
            Self::Lost => (b'l', [0; 4]),
        };
        let [a, b, c, d] = number;
        [kind, a, b, c, d]
    }

    pub(crate) fn decode([kind, a, b, c, d]: Record) -> Option<Self> {
        let number = [a, b, c, d];
        Some(match kind {
            b'p' => Self::Started(u32::from_le_bytes(number)),
            b'f' => Self::Refused(i32::from_le_bytes(number)),
            b'd' => Self::NoDirectory(i32::from_le_bytes(number)),
            b'x' => Self::EndedAlone(i32::from_le_bytes(number)),
            b'y' => Self::EndedLeaving(i32::from_le_bytes(number)),
            b'g' => Self::Gone,
            b's' => Self::Stuck(u32::from_le_bytes(number)),
            b'q' => Self::StopFailed,
            b'l' => Self::Lost,
            _ => return None,
        })
    }
}

pub(crate) fn encode_stop(stop: Stop) -> Command {
    let grace = u32::try_from(stop.grace.as_millis()).unwrap_or(u32::MAX);
    let signal = stop.signal.as_raw().unsigned_abs();
    (u64::from(signal) << 32 | u64::from(grace)).to_le_bytes()
}

pub(crate) fn decode_stop(command: Command) -> Stop {
    let number = u64::from_le_bytes(command);
    let signal = i32::try_from(number >> 32).ok().and_then(Signal::from_named_raw);
    Stop {
        signal: signal.unwrap_or(Signal::TERM),
        grace: Duration::from_millis(number & u64::from(u32::MAX)),
    }
}

/// A spec behind its length. How the standard streams are made is the sender's business.
pub(crate) fn encode_spec(spec: &Spec) -> Vec<u8> {
    let mut body = Vec::new();
    let text = |bytes: &[u8], body: &mut Vec<u8>| {
        body.extend_from_slice(&length(bytes.len()));
        body.extend_from_slice(bytes);
    };
    text(spec.program.as_os_str().as_bytes(), &mut body);
    text(spec.name.as_bytes(), &mut body);
    text(spec.directory.as_os_str().as_bytes(), &mut body);
    body.extend_from_slice(&length(spec.arguments.len()));
    for argument in &spec.arguments {
        text(argument.as_bytes(), &mut body);
    }
    body.extend_from_slice(&length(spec.environment.len()));
    for (key, value) in &spec.environment {
        text(key.as_bytes(), &mut body);
        body.push(u8::from(value.is_some()));
        text(value.as_ref().map_or(&[], |value| value.as_bytes()), &mut body);
    }
    let mut all = length(body.len()).to_vec();
    all.append(&mut body);
    all
}

fn length(count: usize) -> [u8; 4] {
    u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes()
}

/// The spec in `body`; none when it was cut or is not one.
pub(crate) fn decode_spec(body: &[u8]) -> Option<Spec> {
    let mut rest = body;
    let program = take_text(&mut rest)?.into();
    let name = take_text(&mut rest)?;
    let directory = take_text(&mut rest)?.into();
    let arguments = (0..take_number(&mut rest)?)
        .map(|_| take_text(&mut rest))
        .collect::<Option<Vec<_>>>()?;
    let mut environment = BTreeMap::new();
    for _ in 0..take_number(&mut rest)? {
        let key = take_text(&mut rest)?;
        let (&is_set, tail) = rest.split_first()?;
        rest = tail;
        let value = take_text(&mut rest)?;
        environment.insert(key, (is_set == 1).then_some(value));
    }
    rest.is_empty().then_some(Spec {
        program,
        name,
        arguments,
        directory,
        environment,
        stdin: Stdin::Null,
    })
}

fn take_number(rest: &mut &[u8]) -> Option<u32> {
    let (number, tail) = rest.split_first_chunk::<4>()?;
    *rest = tail;
    Some(u32::from_le_bytes(*number))
}

fn take_text(rest: &mut &[u8]) -> Option<OsString> {
    let length = usize::try_from(take_number(rest)?).ok()?;
    let (text, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    Some(OsString::from_vec(text.to_vec()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts() -> impl Strategy<Value = OsString> {
        proptest::collection::vec(any::<u8>(), 0..12).prop_map(OsString::from_vec)
    }

    proptest! {
        #[test]
        fn a_spec_arrives_as_it_was_sent(
            words in proptest::collection::vec(texts(), 3..9),
            environment in proptest::collection::btree_map(texts(), proptest::option::of(texts()), 0..5),
        ) {
            let spec = Spec {
                program: words[0].clone().into(),
                name: words[1].clone(),
                directory: words[2].clone().into(),
                arguments: words[3..].to_vec(),
                environment,
                stdin: Stdin::Null,
            };
            let bytes = encode_spec(&spec);
            let found = decode_spec(&bytes[4..]).unwrap();
            prop_assert_eq!(format!("{found:?}"), format!("{spec:?}"));
            for cut in 4..bytes.len() - 1 {
                prop_assert!(decode_spec(&bytes[4..cut]).is_none());
            }
        }

        #[test]
        fn any_bytes_are_a_spec_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Some(spec) = decode_spec(&bytes) {
                prop_assert!(spec.arguments.len() < bytes.len());
            }
        }

        #[test]
        fn any_record_is_a_word_or_none(bytes in any::<[u8; 5]>()) {
            if let Some(word) = Word::decode(bytes) {
                prop_assert_eq!(Word::decode(word.encode()), Some(word));
            }
        }
    }

    #[test]
    fn a_stop_arrives_as_it_was_sent() {
        for signal in [Signal::TERM, Signal::INT, Signal::QUIT, Signal::HUP, Signal::KILL] {
            let stop = Stop {
                signal,
                grace: Duration::from_millis(1234),
            };
            assert_eq!(decode_stop(encode_stop(stop)), stop);
        }
    }
}
