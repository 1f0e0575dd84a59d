//! Terms to bytes.

use num_bigint::{BigInt, Sign};

use crate::Term;

const VERSION: u8 = 131;
const SMALL_INTEGER: u8 = 97;
const INTEGER: u8 = 98;
const NEW_FLOAT: u8 = 70;
const SMALL_TUPLE: u8 = 104;
const LARGE_TUPLE: u8 = 105;
const NIL: u8 = 106;
const STRING: u8 = 107;
const LIST: u8 = 108;
const BINARY: u8 = 109;
const SMALL_BIG: u8 = 110;
const LARGE_BIG: u8 = 111;
const MAP: u8 = 116;
const ATOM_UTF8: u8 = 118;
const SMALL_ATOM_UTF8: u8 = 119;

/// The external format of a term, version byte included.
pub fn encode(term: &Term) -> Vec<u8> {
    let mut out = vec![VERSION];
    write(&mut out, term);
    out
}

fn write(out: &mut Vec<u8>, term: &Term) {
    match term {
        Term::Atom(name) => write_atom(out, name),
        Term::Integer(value) => write_integer(out, *value),
        Term::BigInteger(value) => write_big(out, value),
        Term::Float(value) => {
            out.push(NEW_FLOAT);
            out.extend(value.to_be_bytes());
        }
        Term::Binary(bytes) => {
            out.push(BINARY);
            write_length(out, bytes.len());
            out.extend(bytes);
        }
        Term::Tuple(elements) => {
            if let Ok(length) = u8::try_from(elements.len()) {
                out.extend([SMALL_TUPLE, length]);
            } else {
                out.push(LARGE_TUPLE);
                write_length(out, elements.len());
            }
            elements.iter().for_each(|element| write(out, element));
        }
        Term::List(elements) => write_list(out, elements, None),
        Term::ImproperList(elements, tail) => write_list(out, elements, Some(tail)),
        Term::Map(pairs) => {
            out.push(MAP);
            write_length(out, pairs.len());
            for (key, value) in pairs {
                write(out, key);
                write(out, value);
            }
        }
    }
}

fn write_length(out: &mut Vec<u8>, length: usize) {
    out.extend((length as u32).to_be_bytes());
}

fn write_atom(out: &mut Vec<u8>, name: &str) {
    if let Ok(length) = u8::try_from(name.len()) {
        out.extend([SMALL_ATOM_UTF8, length]);
    } else {
        out.push(ATOM_UTF8);
        out.extend((name.len() as u16).to_be_bytes());
    }
    out.extend(name.as_bytes());
}

fn write_integer(out: &mut Vec<u8>, value: i64) {
    if let Ok(byte) = u8::try_from(value) {
        out.extend([SMALL_INTEGER, byte]);
    } else if let Ok(word) = i32::try_from(value) {
        out.push(INTEGER);
        out.extend(word.to_be_bytes());
    } else {
        write_big(out, &BigInt::from(value));
    }
}

fn write_big(out: &mut Vec<u8>, value: &BigInt) {
    let (sign, digits) = value.to_bytes_le();
    if let Ok(length) = u8::try_from(digits.len()) {
        out.extend([SMALL_BIG, length]);
    } else {
        out.push(LARGE_BIG);
        write_length(out, digits.len());
    }
    out.push(u8::from(sign == Sign::Minus));
    out.extend(digits);
}

/// Lists of bytes take the compact string form, which is how Erlang itself writes them.
fn write_list(out: &mut Vec<u8>, elements: &[Term], tail: Option<&Term>) {
    if elements.is_empty() && tail.is_none() {
        out.push(NIL);
        return;
    }
    if tail.is_none()
        && u16::try_from(elements.len()).is_ok()
        && let Some(bytes) = all_bytes(elements)
    {
        out.push(STRING);
        out.extend((bytes.len() as u16).to_be_bytes());
        out.extend(bytes);
        return;
    }
    out.push(LIST);
    write_length(out, elements.len());
    elements.iter().for_each(|element| write(out, element));
    match tail {
        Some(tail) => write(out, tail),
        None => out.push(NIL),
    }
}

fn all_bytes(elements: &[Term]) -> Option<Vec<u8>> {
    elements
        .iter()
        .map(|element| match element {
            Term::Integer(value) => u8::try_from(*value).ok(),
            Term::Atom(_)
            | Term::BigInteger(_)
            | Term::Float(_)
            | Term::Binary(_)
            | Term::Tuple(_)
            | Term::List(_)
            | Term::ImproperList(..)
            | Term::Map(_) => None,
        })
        .collect()
}
