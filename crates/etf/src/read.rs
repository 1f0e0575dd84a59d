//! Reading a term whose shape is known to whoever asked for it.

use crate::Term;

/// `{tag, …}` as its tag and the rest; a bare atom has no rest.
pub fn tagged(term: &Term) -> Option<(&str, &[Term])> {
    match term {
        Term::Tuple(elements) => match elements.split_first() {
            Some((Term::Atom(tag), rest)) => Some((tag, rest)),
            _ => None,
        },
        Term::Atom(tag) => Some((tag, &[])),
        _ => None,
    }
}

/// A text the node sent as a binary; anything else is empty.
pub fn text(term: &Term) -> String {
    match term {
        Term::Binary(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Term::Atom(name) => name.to_string(),
        _ => String::new(),
    }
}

/// A binary or `nil`.
pub fn optional_text(term: &Term) -> Option<String> {
    match term {
        Term::Binary(_) => Some(text(term)),
        _ => None,
    }
}

pub fn texts(term: &Term) -> Vec<String> {
    match term {
        Term::List(elements) => elements.iter().map(text).collect(),
        _ => Vec::new(),
    }
}

/// The value of an atom key in a map.
pub fn field<'a>(term: &'a Term, key: &str) -> Option<&'a Term> {
    match term {
        Term::Map(pairs) => pairs.iter().find_map(|(name, value)| match name {
            Term::Atom(name) if name == key => Some(value),
            _ => None,
        }),
        _ => None,
    }
}
