//! Which names a file has. Whoever looks for a name through the project walks only the files that have it.

use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash, Hasher};

use beamtalk_syntax::ast::Unit;

use super::names::{self, Meaning};

/// A name to look for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Word<'a> {
    /// Of a class, protocol or alias, without its package.
    Class(&'a str),
    Slot(&'a str),
    Selector(&'a str),
}

impl Word<'_> {
    fn hash(self) -> u32 {
        let mut hasher = DefaultHasher::new();
        Hash::hash(&self, &mut hasher);
        hasher.finish() as u32
    }
}

/// The names of a file, as hashes in ascending order: two that share one cost a needless walk and never a missed one.
#[derive(Debug)]
pub(crate) struct Words(Box<[u32]>);

impl Words {
    pub(crate) fn of(unit: &Unit) -> Self {
        let seen = RefCell::new(Vec::new());
        names::those(unit, &|meaning| {
            let word = match meaning {
                Meaning::Class(name) => Word::Class(plain(name)),
                Meaning::Slot { name } => Word::Slot(name),
                // Its first part stands for all of it.
                Meaning::Message {
                    selector, part: 0, ..
                }
                | Meaning::Method { selector, part: 0 } => Word::Selector(selector),
                _ => return false,
            };
            seen.borrow_mut().push(word.hash());
            false
        });
        let mut hashes = seen.into_inner();
        hashes.sort_unstable();
        hashes.dedup();
        Self(hashes.into_boxed_slice())
    }

    pub(crate) fn has(&self, word: Word<'_>) -> bool {
        self.0.binary_search(&word.hash()).is_ok()
    }
}

/// The name of a class without its package.
pub(crate) fn plain(name: &str) -> &str {
    name.rsplit('@').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::{Word, Words};

    /// Every use and declaration of a class, slot or selector is found by its name, and nothing by a part of one.
    #[test]
    fn a_file_has_the_names_it_uses_and_declares() {
        let text = "Actor subclass: Lamp\n  state: on :: List(Watt) = #()\n  dim: by :: pkg@Level with: x => self.on at: by put: x; size\n\nInteger >> lamps => [:each | each match: [v :: Tube -> v glow]]\n";
        let words = Words::of(&beamtalk_syntax::parse_file(text).unit);
        for class in ["Actor", "Lamp", "List", "Watt", "Level", "Integer", "Tube"] {
            assert!(words.has(Word::Class(class)), "{class}");
        }
        for selector in ["dim:with:", "at:put:", "size", "lamps", "glow"] {
            assert!(words.has(Word::Selector(selector)), "{selector}");
        }
        assert!(words.has(Word::Slot("on")));
        for absent in ["at:", "put:", "dim:", "on", "Lamp", "each"] {
            assert!(!words.has(Word::Selector(absent)), "{absent}");
        }
        assert!(!words.has(Word::Slot("size")) && !words.has(Word::Class("Lam")));
    }
}
