//! Texts that clients keep with the workspace: layouts, scratch texts, settings. A file each, closed to others.

use std::collections::BTreeMap;

use beamtalk_storage::{Directory, PRIVATE_FILE, StorageError};
use beamtalk_wire::answers::DeskItem;

const ITEMS: usize = 256;
const ITEM_BYTES: usize = 1 << 20;
const BYTES: usize = 32 << 20;
const NAME_LENGTH: usize = 120;

pub(crate) struct Desk {
    directory: Directory,
    items: BTreeMap<String, DeskItem>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum DeskError {
    #[error("'{0}' is no name of an item: 1 to {NAME_LENGTH} of a–z, digits, '/', '_', '.' and '-'")]
    Name(String),
    #[error("an item has at most {ITEM_BYTES} bytes")]
    TooLong,
    #[error("the desk is full: {ITEMS} items and {BYTES} bytes are kept")]
    Full,
    #[error("it was changed meanwhile")]
    Changed(Option<DeskItem>),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// `/` is no part of a file's name, and `+` no part of an item's.
fn file_name(name: &str) -> String {
    name.replace('/', "+")
}

fn is_name(name: &str) -> bool {
    let is_letter = |one: u8| matches!(one, b'a'..=b'z' | b'0'..=b'9' | b'/' | b'_' | b'.' | b'-');
    (1..=NAME_LENGTH).contains(&name.len()) && name.bytes().all(is_letter) && !name.starts_with('.')
}

impl Desk {
    pub(crate) fn open(directory: Directory) -> Result<Self, StorageError> {
        let mut items = BTreeMap::new();
        for file in directory.names()? {
            let name = file.replace('+', "/");
            let read = directory.read(&file)?.unwrap_or_default();
            // A file that somebody damaged is as good as none.
            if let (true, Ok(item)) = (is_name(&name), serde_json::from_slice(&read)) {
                items.insert(name, item);
            }
        }
        Ok(Self { directory, items })
    }

    pub(crate) fn read(&self, names: Option<&[String]>) -> BTreeMap<String, DeskItem> {
        let is_meant = |name: &String| names.is_none_or(|names| names.contains(name));
        let meant = self.items.iter().filter(|(name, _)| is_meant(name));
        meant.map(|(name, item)| (name.clone(), item.clone())).collect()
    }

    /// Keep a text that was made of `version`; the answer is its own version.
    pub(crate) fn write(
        &mut self,
        name: &str,
        text: Option<&str>,
        version: u64,
        at: u64,
    ) -> Result<u64, DeskError> {
        if !is_name(name) {
            return Err(DeskError::Name(name.chars().take(NAME_LENGTH).collect()));
        }
        let old = self.items.get(name);
        if old.map_or(0, |item| item.version) != version {
            return Err(DeskError::Changed(old.cloned()));
        }
        let Some(text) = text else {
            self.directory.remove(&file_name(name))?;
            self.items.remove(name);
            return Ok(0);
        };
        if text.len() > ITEM_BYTES {
            return Err(DeskError::TooLong);
        }
        let others = self.items.iter().filter(|(one, _)| *one != name);
        let (count, bytes) = others.fold((0, 0), |(count, bytes), (_, item)| {
            (count + 1, bytes + item.text.len())
        });
        if count >= ITEMS || bytes + text.len() > BYTES {
            return Err(DeskError::Full);
        }
        let item = DeskItem {
            text: text.to_owned(),
            version: version + 1,
            at,
        };
        let written = serde_json::to_vec(&item).unwrap_or_default();
        self.directory
            .write_atomically(&file_name(name), &written, PRIVATE_FILE)?;
        self.items.insert(name.to_owned(), item);
        Ok(version + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(path: &std::path::Path) -> Directory {
        Directory::open_existing(path).expect("a directory")
    }

    #[test]
    fn items_stay_and_a_second_writer_is_told() {
        let place = tempfile::tempdir().expect("a directory");
        let mut desk = Desk::open(directory(place.path())).expect("opens");
        assert_eq!(
            desk.write("scratch/main", Some("1 + 2"), 0, 7).expect("written"),
            1
        );
        assert!(
            matches!(desk.write("scratch/main", Some("x"), 0, 8), Err(DeskError::Changed(Some(item))) if item.text == "1 + 2")
        );
        assert_eq!(desk.write("scratch/main", Some("3"), 1, 9).expect("written"), 2);
        let again = Desk::open(directory(place.path())).expect("opens");
        let read = again.read(Some(&["scratch/main".to_owned()]));
        assert_eq!(
            (read["scratch/main"].text.as_str(), read["scratch/main"].version),
            ("3", 2)
        );
        let mut again = again;
        again.write("scratch/main", None, 2, 10).expect("removed");
        assert!(
            Desk::open(directory(place.path()))
                .expect("opens")
                .read(None)
                .is_empty()
        );
    }

    #[test]
    fn names_lead_nowhere_else() {
        let place = tempfile::tempdir().expect("a directory");
        let mut desk = Desk::open(directory(place.path())).expect("opens");
        for name in ["", "../x", ".x", "a b", "A", "a+b", "ä", "a\0", &"x".repeat(121)] {
            assert!(
                matches!(desk.write(name, Some(""), 0, 0), Err(DeskError::Name(_))),
                "{name}"
            );
        }
        assert!(matches!(
            desk.write("x", Some(&"x".repeat(ITEM_BYTES + 1)), 0, 0),
            Err(DeskError::TooLong)
        ));
        for number in 0..ITEMS {
            desk.write(&format!("i/{number}"), Some(""), 0, 0).expect("room");
        }
        assert!(matches!(
            desk.write("one-more", Some(""), 0, 0),
            Err(DeskError::Full)
        ));
    }
}
