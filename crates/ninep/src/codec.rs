//! Bytes to fields and back. Every read is bounded by the bytes at hand; nothing is allocated by
//! a length that was merely announced.

use crate::message::{Dialect, Names, NumericUser, Payload};
use crate::stat::{Qid, Stat};

/// Why a message could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeFault {
    /// Fields and length disagree, or a string is not text.
    Malformed,
    /// No such message in this dialect.
    Unknown,
}

/// The bytes not yet read.
pub struct Cursor<'a> {
    rest: &'a [u8],
    pub dialect: Dialect,
}

impl<'a> Cursor<'a> {
    pub fn new(rest: &'a [u8], dialect: Dialect) -> Self {
        Cursor { rest, dialect }
    }

    pub fn take(&mut self, count: usize) -> Result<&'a [u8], DecodeFault> {
        let (head, tail) = self.rest.split_at_checked(count).ok_or(DecodeFault::Malformed)?;
        self.rest = tail;
        Ok(head)
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub fn end(&self) -> Result<(), DecodeFault> {
        if self.is_empty() {
            Ok(())
        } else {
            Err(DecodeFault::Malformed)
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeFault> {
        self.take(N)?.try_into().map_err(|_| DecodeFault::Malformed)
    }
}

/// A value inside a message.
pub trait Field: Sized {
    fn get(cursor: &mut Cursor<'_>) -> Result<Self, DecodeFault>;
    fn put(&self, dialect: Dialect, out: &mut Vec<u8>);
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        impl Field for $type {
            fn get(cursor: &mut Cursor<'_>) -> Result<Self, DecodeFault> {
                Ok(<$type>::from_le_bytes(cursor.array()?))
            }
            fn put(&self, _: Dialect, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}
integers!(u8 u16 u32 u64);

impl Field for String {
    fn get(cursor: &mut Cursor<'_>) -> Result<Self, DecodeFault> {
        let length = u16::get(cursor)?;
        let bytes = cursor.take(usize::from(length))?;
        let text = std::str::from_utf8(bytes).map_err(|_| DecodeFault::Malformed)?;
        if text.contains('\0') {
            return Err(DecodeFault::Malformed);
        }
        Ok(text.to_owned())
    }

    fn put(&self, dialect: Dialect, out: &mut Vec<u8>) {
        let text = cut(self, usize::from(u16::MAX));
        (text.len() as u16).put(dialect, out);
        out.extend_from_slice(text.as_bytes());
    }
}

/// The longest prefix of at most `limit` bytes that ends at a character boundary.
pub(crate) fn cut(text: &str, limit: usize) -> &str {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

impl Field for Names {
    fn get(cursor: &mut Cursor<'_>) -> Result<Self, DecodeFault> {
        let count = u16::get(cursor)?;
        let mut names = Vec::new();
        for _ in 0..count {
            names.push(String::get(cursor)?);
        }
        Ok(Names(names))
    }

    fn put(&self, dialect: Dialect, out: &mut Vec<u8>) {
        (self.0.len() as u16).put(dialect, out);
        for name in &self.0 {
            name.put(dialect, out);
        }
    }
}

impl Field for Vec<Qid> {
    fn get(cursor: &mut Cursor<'_>) -> Result<Self, DecodeFault> {
        let count = u16::get(cursor)?;
        let mut qids = Vec::new();
        for _ in 0..count {
            qids.push(Qid::get(cursor)?);
        }
        Ok(qids)
    }

    fn put(&self, dialect: Dialect, out: &mut Vec<u8>) {
        (self.len() as u16).put(dialect, out);
        for qid in self {
            qid.put(dialect, out);
        }
    }
}

impl Field for Payload {
    fn get(cursor: &mut Cursor<'_>) -> Result<Self, DecodeFault> {
        let count = u32::get(cursor)?;
        Ok(Payload::from(cursor.take(count as usize)?.to_vec()))
    }

    fn put(&self, dialect: Dialect, out: &mut Vec<u8>) {
        (self.len() as u32).put(dialect, out);
        out.extend_from_slice(self.as_ref());
    }
}

impl Field for NumericUser {
    fn get(cursor: &mut Cursor<'_>) -> Result<Self, DecodeFault> {
        if cursor.dialect == Dialect::Linux {
            Ok(NumericUser(u32::get(cursor)?))
        } else {
            Ok(NumericUser::NONE)
        }
    }

    fn put(&self, dialect: Dialect, out: &mut Vec<u8>) {
        if dialect == Dialect::Linux {
            self.0.put(dialect, out);
        }
    }
}

/// `datasync` of `Tfsync`, which older clients leave out.
impl Field for Option<u32> {
    fn get(cursor: &mut Cursor<'_>) -> Result<Self, DecodeFault> {
        if cursor.is_empty() {
            Ok(None)
        } else {
            u32::get(cursor).map(Some)
        }
    }

    fn put(&self, dialect: Dialect, out: &mut Vec<u8>) {
        if let Some(value) = self {
            value.put(dialect, out);
        }
    }
}

impl Field for Qid {
    fn get(cursor: &mut Cursor<'_>) -> Result<Self, DecodeFault> {
        Ok(Qid {
            kind: u8::get(cursor)?,
            version: u32::get(cursor)?,
            path: u64::get(cursor)?,
        })
    }

    fn put(&self, dialect: Dialect, out: &mut Vec<u8>) {
        self.kind.put(dialect, out);
        self.version.put(dialect, out);
        self.path.put(dialect, out);
    }
}

/// A stat as `Rstat` and `Twstat` carry it: both counts present.
impl Field for Stat {
    fn get(cursor: &mut Cursor<'_>) -> Result<Self, DecodeFault> {
        let outer = u16::get(cursor)?;
        let bytes = cursor.take(usize::from(outer))?;
        let mut inner = Cursor::new(bytes, cursor.dialect);
        let stat = Stat::get_entry(&mut inner)?;
        inner.end()?;
        Ok(stat)
    }

    fn put(&self, dialect: Dialect, out: &mut Vec<u8>) {
        let entry = self.entry();
        (entry.len() as u16).put(dialect, out);
        out.extend_from_slice(&entry);
    }
}

/// The size field at the start of `bytes`, once four bytes are there.
pub fn frame_size(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk::<4>().map(|size| u32::from_le_bytes(*size))
}
