//! A `.beam` file: its exports and, where it carries them, its abstract forms. The bytes are not trusted.

use std::io::Read;

use beamtalk_compiler::ffi::{self, Function};
use beamtalk_etf::{Limits, Term, decode, read};
use ecow::EcoString;
use flate2::read::{GzDecoder, ZlibDecoder};

/// No module of sane size has more.
pub(super) const MAX_BYTES: u64 = 64 * 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("not a BEAM file")]
    NotBeam,
    #[error("the file ends inside a chunk")]
    Truncated,
    #[error("its debug information cannot be read: {0}")]
    Term(#[from] beamtalk_etf::DecodeError),
    #[error("it is larger than {MAX_BYTES} bytes")]
    TooLarge,
}

/// The exported functions.
pub(super) fn read(module: &str, bytes: &[u8]) -> Result<Vec<Function>, Fault> {
    let unpacked;
    let bytes = if bytes.starts_with(&[0x1f, 0x8b]) {
        unpacked = limited(GzDecoder::new(bytes))?;
        &unpacked
    } else {
        bytes
    };
    let chunks = Chunks::new(bytes)?;
    let mut atoms = Vec::new();
    let mut exports = Vec::new();
    let mut forms = None;
    for chunk in chunks {
        let (name, data) = chunk?;
        match name {
            b"AtU8" => atoms = read_atoms(data)?,
            b"ExpT" => exports = read_exports(data)?,
            b"Dbgi" => forms = abstract_code(term(data)?),
            _ => {}
        }
    }
    // An atom is named by its place in the table, counted from one.
    let exports: Vec<(EcoString, usize)> = exports
        .into_iter()
        .filter_map(|(atom, arity)| Some((atoms.get(atom.checked_sub(1)?)?.clone(), arity)))
        .collect();
    Ok(ffi::functions(module, &exports, forms.as_ref()))
}

fn limited(from: impl Read) -> Result<Vec<u8>, Fault> {
    let mut out = Vec::new();
    let count = from.take(MAX_BYTES + 1).read_to_end(&mut out)?;
    if count as u64 > MAX_BYTES {
        Err(Fault::TooLarge)
    } else {
        Ok(out)
    }
}

/// A term in a chunk, which may be compressed.
fn term(data: &[u8]) -> Result<Term, Fault> {
    match data {
        [131, 80, _, _, _, _, packed @ ..] => {
            let mut bytes = vec![131];
            bytes.extend(limited(ZlibDecoder::new(packed))?);
            Ok(decode(&bytes, Limits::default())?)
        }
        _ => Ok(decode(data, Limits::default())?),
    }
}

/// `{debug_info_v1, erl_abstract_code, {Forms, Options}}`; anything else tells no types.
fn abstract_code(term: Term) -> Option<Term> {
    let ("debug_info_v1", [Term::Atom(backend), data]) = read::tagged(&term)? else {
        return None;
    };
    match data {
        Term::Tuple(parts) if backend == "erl_abstract_code" => parts
            .first()
            .filter(|forms| matches!(forms, Term::List(_)))
            .cloned(),
        _ => None,
    }
}

/// `FOR1`, a length, `BEAM`, then chunks: four letters, a length, the data, filled up to four bytes.
struct Chunks<'a> {
    rest: &'a [u8],
}

impl<'a> Chunks<'a> {
    fn new(bytes: &'a [u8]) -> Result<Self, Fault> {
        match bytes {
            [
                b'F',
                b'O',
                b'R',
                b'1',
                _,
                _,
                _,
                _,
                b'B',
                b'E',
                b'A',
                b'M',
                rest @ ..,
            ] => Ok(Self { rest }),
            _ => Err(Fault::NotBeam),
        }
    }
}

impl<'a> Iterator for Chunks<'a> {
    type Item = Result<(&'a [u8; 4], &'a [u8]), Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        let (name, rest) = self.rest.split_first_chunk::<4>()?;
        self.rest = &[];
        let Some((length, rest)) = rest.split_first_chunk::<4>() else {
            return Some(Err(Fault::Truncated));
        };
        let length = u32::from_be_bytes(*length) as usize;
        let Some(data) = rest.get(..length) else {
            return Some(Err(Fault::Truncated));
        };
        self.rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some(Ok((name, data)))
    }
}

fn number(data: &[u8], at: usize) -> Result<u32, Fault> {
    let bytes = data.get(at..).and_then(|rest| rest.first_chunk::<4>());
    bytes
        .map(|bytes| u32::from_be_bytes(*bytes))
        .ok_or(Fault::Truncated)
}

/// How many, then each with its length. Newer releases write the count below zero and lengths in a compact form.
fn read_atoms(data: &[u8]) -> Result<Vec<EcoString>, Fault> {
    let count = number(data, 0)?.cast_signed();
    let is_compact = count < 0;
    let mut rest = data.get(4..).unwrap_or(&[]);
    let mut atoms = Vec::new();
    for _ in 0..count.unsigned_abs() {
        let (&first, tail) = rest.split_first().ok_or(Fault::Truncated)?;
        let (length, tail) = match first {
            _ if !is_compact => (usize::from(first), tail),
            // The upper four bits are the value, or three of them are and another byte follows.
            _ if first & 0b1000 == 0 => (usize::from(first >> 4), tail),
            _ => {
                let (&low, tail) = tail.split_first().ok_or(Fault::Truncated)?;
                ((usize::from(first >> 5) << 8) | usize::from(low), tail)
            }
        };
        let text = tail.get(..length).ok_or(Fault::Truncated)?;
        atoms.push(String::from_utf8_lossy(text).into_owned().into());
        rest = tail.get(length..).unwrap_or(&[]);
    }
    Ok(atoms)
}

/// How many, then for each the place of its name, its arity and its label.
fn read_exports(data: &[u8]) -> Result<Vec<(usize, usize)>, Fault> {
    let count = number(data, 0)? as usize;
    let mut exports = Vec::new();
    for index in 0..count {
        let at = index.saturating_mul(12).saturating_add(4);
        exports.push((number(data, at)? as usize, number(data, at + 4)? as usize));
    }
    Ok(exports)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::read;

    proptest! {
        #[test]
        fn bytes_of_any_kind_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = read("any", &bytes);
            let mut file = b"FOR1\0\0\0\0BEAM".to_vec();
            file.extend(&bytes);
            let _ = read("any", &file);
        }

        #[test]
        fn a_chunk_of_any_kind_is_answered(
            name in prop_oneof![Just(*b"AtU8"), Just(*b"ExpT"), Just(*b"Dbgi")],
            data in proptest::collection::vec(any::<u8>(), 0..200),
            claimed in any::<u32>(),
        ) {
            let mut file = b"FOR1\0\0\0\0BEAM".to_vec();
            file.extend(name);
            file.extend((data.len() as u32).to_be_bytes());
            file.extend(&data);
            prop_assert!(read("any", &file).is_ok() || read("any", &file).is_err());
            let mut file = b"FOR1\0\0\0\0BEAM".to_vec();
            file.extend(name);
            file.extend(claimed.to_be_bytes());
            file.extend(&data);
            prop_assert!(read("any", &file).is_err() || claimed as usize <= data.len());
        }
    }
}
