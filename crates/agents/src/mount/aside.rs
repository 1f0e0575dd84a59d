//! What editors put beside the file they save: swap files, backups, temporary names. They live in the memory of the
//! mount, are found by their name and listed nowhere, and never become methods by themselves.

use std::collections::BTreeMap;
use std::time::SystemTime;

/// Bytes of all of them together.
const ROOM: usize = 64 << 20;

#[derive(Clone, Debug)]
pub(super) struct Aside {
    pub(super) bytes: Vec<u8>,
    pub(super) mode: u16,
    pub(super) changed: SystemTime,
}

/// All of them, by path.
#[derive(Default)]
pub(super) struct Shelf {
    files: BTreeMap<String, Aside>,
}

impl Shelf {
    pub(super) fn get(&self, path: &str) -> Option<&Aside> {
        self.files.get(path)
    }

    pub(super) fn get_mut(&mut self, path: &str) -> Option<&mut Aside> {
        self.files.get_mut(path)
    }

    pub(super) fn take(&mut self, path: &str) -> Option<Aside> {
        self.files.remove(path)
    }

    /// Keep a file; false when there is no room for it.
    pub(super) fn put(&mut self, path: &str, bytes: Vec<u8>, mode: u16) -> bool {
        let others: usize = self
            .files
            .iter()
            .filter(|(known, _)| *known != path)
            .map(|(_, aside)| aside.bytes.len())
            .sum();
        if others + bytes.len() > ROOM {
            return false;
        }
        let aside = Aside {
            bytes,
            mode,
            changed: SystemTime::now(),
        };
        self.files.insert(path.to_owned(), aside);
        true
    }
}

/// Whether files can be put aside in a directory: where methods are.
pub(super) fn takes_asides(directory: &str) -> bool {
    let mut parts = directory.split('/');
    let (first, class, side, more) = (parts.next(), parts.next(), parts.next(), parts.next());
    first == Some("classes") && class.is_some() && side.is_none_or(|side| side == ".class") && more.is_none()
}

/// Whether a name is one that programs give to files which are no methods, although a method could be called so.
pub(super) fn is_temporary(name: &str) -> bool {
    let random = |prefix: &str, length: usize| {
        name.strip_prefix(prefix).is_some_and(|rest| {
            rest.len() == length && rest.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        })
    };
    // `sed -i`, `mktemp`, Python's `tempfile`.
    random("sed", 6) || random("tmp", 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_beside_methods_and_within_bounds() {
        for (directory, takes) in [
            ("classes/Lamp", true),
            ("classes/Lamp/.class", true),
            ("classes", false),
            ("classes/Lamp/.class/x", false),
            ("agents/abc", false),
            ("", false),
        ] {
            assert_eq!(takes_asides(directory), takes, "{directory}");
        }
        assert!(is_temporary("sedAb3x9Q") && is_temporary("tmpk2j_x1ab"));
        assert!(!is_temporary("sedate") && !is_temporary("press"));
        let mut shelf = Shelf::default();
        assert!(shelf.put("a", vec![0; ROOM], 0o600));
        assert!(!shelf.put("b", vec![0], 0o600));
        assert!(shelf.put("a", vec![1], 0o600));
        assert_eq!(shelf.take("a").map(|aside| aside.bytes), Some(vec![1]));
    }
}
