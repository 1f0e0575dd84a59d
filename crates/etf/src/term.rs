//! Terms as data.

use ecow::EcoString;
use num_bigint::BigInt;

/// An Erlang term, as far as it can cross a pipe: no pids, funs or references.
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    Atom(EcoString),
    Integer(i64),
    /// Outside the range of `i64`.
    BigInteger(BigInt),
    Float(f64),
    Binary(Vec<u8>),
    Tuple(Vec<Term>),
    List(Vec<Term>),
    /// At least one element, and a tail that is not a list.
    ImproperList(Vec<Term>, Box<Term>),
    Map(Vec<(Term, Term)>),
}

impl Term {
    pub fn atom(name: impl Into<EcoString>) -> Self {
        Self::Atom(name.into())
    }

    pub fn binary(text: impl AsRef<[u8]>) -> Self {
        Self::Binary(text.as_ref().to_vec())
    }

    pub fn nil() -> Self {
        Self::List(Vec::new())
    }

    /// An Erlang string: a list of code points.
    pub fn string(text: &str) -> Self {
        Self::List(
            text.chars()
                .map(|c| Self::Integer(i64::from(u32::from(c))))
                .collect(),
        )
    }

    pub fn tuple(elements: impl IntoIterator<Item = Term>) -> Self {
        Self::Tuple(elements.into_iter().collect())
    }

    pub fn list(elements: impl IntoIterator<Item = Term>) -> Self {
        Self::List(elements.into_iter().collect())
    }
}

impl From<i64> for Term {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}
