//! Bytes to terms. The bytes are not trusted: nothing is allocated by a length that is merely
//! claimed, nesting is limited, and every fault is an error value.

use num_bigint::{BigInt, Sign};

use crate::Term;

/// What a reader accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest input.
    pub bytes: usize,
    /// Deepest nesting of tuples, lists and maps.
    pub depth: usize,
    /// Most terms in all: the elements of every tuple, list and map, and what holds them.
    pub elements: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 256 * 1024 * 1024,
            depth: 256,
            elements: usize::MAX,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("a term of {length} bytes is over the limit of {limit}")]
    TooLong { length: usize, limit: usize },
    #[error("a term nested deeper than {limit} levels")]
    TooDeep { limit: usize },
    #[error("more than {limit} terms in one")]
    TooMany { limit: usize },
    #[error("the term ends before its last byte (at {at})")]
    Truncated { at: usize },
    #[error("{count} bytes follow the term")]
    Trailing { count: usize },
    #[error("not in external term format: version byte {found}")]
    Version { found: u8 },
    #[error("term of kind {tag} at byte {at} is not supported")]
    Tag { tag: u8, at: usize },
    #[error("atom at byte {at} is not UTF-8")]
    Atom { at: usize },
    #[error("float at byte {at} is not a finite number")]
    Float { at: usize },
}

/// Read one term, version byte included, that fills the bytes exactly.
pub fn decode(bytes: &[u8], limits: Limits) -> Result<Term, DecodeError> {
    if bytes.len() > limits.bytes {
        return Err(DecodeError::TooLong {
            length: bytes.len(),
            limit: limits.bytes,
        });
    }
    let mut reader = Reader {
        bytes,
        at: 0,
        seen: 0,
        limits,
    };
    let version = reader.byte()?;
    if version != 131 {
        return Err(DecodeError::Version { found: version });
    }
    let term = reader.term(0)?;
    match bytes.len() - reader.at {
        0 => Ok(term),
        count => Err(DecodeError::Trailing { count }),
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    seen: usize,
    limits: Limits,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let end = self
            .at
            .checked_add(count)
            .ok_or(DecodeError::Truncated { at: self.at })?;
        let taken = self
            .bytes
            .get(self.at..end)
            .ok_or(DecodeError::Truncated { at: self.at })?;
        self.at = end;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let at = self.at;
        self.take(N)?
            .try_into()
            .map_err(|_| DecodeError::Truncated { at })
    }

    fn byte(&mut self) -> Result<u8, DecodeError> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    fn short(&mut self) -> Result<usize, DecodeError> {
        Ok(usize::from(u16::from_be_bytes(self.array()?)))
    }

    fn long(&mut self) -> Result<usize, DecodeError> {
        Ok(u32::from_be_bytes(self.array()?) as usize)
    }

    fn term(&mut self, depth: usize) -> Result<Term, DecodeError> {
        if depth > self.limits.depth {
            return Err(DecodeError::TooDeep {
                limit: self.limits.depth,
            });
        }
        self.count(1)?;
        let at = self.at;
        match self.byte()? {
            97 => Ok(Term::Integer(i64::from(self.byte()?))),
            98 => Ok(Term::Integer(i64::from(i32::from_be_bytes(self.array()?)))),
            70 => {
                let value = f64::from_be_bytes(self.array()?);
                if value.is_finite() {
                    Ok(Term::Float(value))
                } else {
                    Err(DecodeError::Float { at })
                }
            }
            104 => {
                let count = usize::from(self.byte()?);
                Ok(Term::Tuple(self.terms(count, depth)?))
            }
            105 => {
                let count = self.long()?;
                Ok(Term::Tuple(self.terms(count, depth)?))
            }
            106 => Ok(Term::nil()),
            107 => {
                let count = self.short()?;
                let bytes = self.take(count)?;
                self.count(count)?;
                Ok(Term::list(
                    bytes.iter().map(|byte| Term::Integer(i64::from(*byte))),
                ))
            }
            108 => self.list(depth),
            109 => {
                let count = self.long()?;
                Ok(Term::Binary(self.take(count)?.to_vec()))
            }
            110 => {
                let count = usize::from(self.byte()?);
                self.big(count)
            }
            111 => {
                let count = self.long()?;
                self.big(count)
            }
            116 => self.map(depth),
            118 => {
                let count = self.short()?;
                self.utf8_atom(count, at)
            }
            119 => {
                let count = usize::from(self.byte()?);
                self.utf8_atom(count, at)
            }
            100 => {
                let count = self.short()?;
                self.latin_atom(count)
            }
            115 => {
                let count = usize::from(self.byte()?);
                self.latin_atom(count)
            }
            tag => Err(DecodeError::Tag { tag, at }),
        }
    }

    fn count(&mut self, terms: usize) -> Result<(), DecodeError> {
        self.seen = self.seen.saturating_add(terms);
        if self.seen > self.limits.elements {
            return Err(DecodeError::TooMany {
                limit: self.limits.elements,
            });
        }
        Ok(())
    }

    /// A run of terms; the room reserved is bounded by the bytes that are really there.
    fn terms(&mut self, count: usize, depth: usize) -> Result<Vec<Term>, DecodeError> {
        if count > self.bytes.len() - self.at {
            return Err(DecodeError::Truncated { at: self.at });
        }
        let mut terms = Vec::with_capacity(count.min(1024));
        for _ in 0..count {
            terms.push(self.term(depth + 1)?);
        }
        Ok(terms)
    }

    fn list(&mut self, depth: usize) -> Result<Term, DecodeError> {
        let count = self.long()?;
        let mut elements = self.terms(count, depth)?;
        match self.term(depth + 1)? {
            Term::List(rest) => {
                elements.extend(rest);
                Ok(Term::List(elements))
            }
            tail if elements.is_empty() => Ok(tail),
            Term::ImproperList(rest, tail) => {
                elements.extend(rest);
                Ok(Term::ImproperList(elements, tail))
            }
            tail => Ok(Term::ImproperList(elements, Box::new(tail))),
        }
    }

    fn map(&mut self, depth: usize) -> Result<Term, DecodeError> {
        let count = self.long()?;
        if count > (self.bytes.len() - self.at) / 2 {
            return Err(DecodeError::Truncated { at: self.at });
        }
        let mut pairs = Vec::with_capacity(count.min(1024));
        for _ in 0..count {
            pairs.push((self.term(depth + 1)?, self.term(depth + 1)?));
        }
        Ok(Term::Map(pairs))
    }

    fn big(&mut self, count: usize) -> Result<Term, DecodeError> {
        let sign = if self.byte()? == 0 {
            Sign::Plus
        } else {
            Sign::Minus
        };
        let value = BigInt::from_bytes_le(sign, self.take(count)?);
        Ok(i64::try_from(&value).map_or(Term::BigInteger(value), Term::Integer))
    }

    fn utf8_atom(&mut self, count: usize, at: usize) -> Result<Term, DecodeError> {
        let name = std::str::from_utf8(self.take(count)?).map_err(|_| DecodeError::Atom { at })?;
        Ok(Term::atom(name))
    }

    fn latin_atom(&mut self, count: usize) -> Result<Term, DecodeError> {
        let name: String = self.take(count)?.iter().map(|byte| char::from(*byte)).collect();
        Ok(Term::atom(name))
    }
}

#[cfg(test)]
mod tests;
