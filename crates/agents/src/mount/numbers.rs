//! Numbers for paths, as long as the kernel knows them, and what the kernel keeps of their files.
//!
//! The kernel keeps the bytes of a file for all who have it open, and takes its length from what it was told of it last.
//! So it may keep them only while both are of the same content that is being opened: otherwise, and as long as somebody
//! writes, each open file is read from us alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};

use fuser::INodeNo;

use super::files::Errno;

/// A content, as long as somebody has it; told apart from all others by where it is.
type Content = Weak<Vec<u8>>;

struct Numbered {
    path: String,
    /// How often the kernel will give it back.
    count: u64,
    /// The content whose length the kernel was told last.
    told: Content,
    /// The content that the kernel may have kept.
    kept: Content,
    /// Files open by which it may keep that content.
    keepers: BTreeSet<u64>,
    writers: BTreeSet<u64>,
}

impl Numbered {
    fn new(path: &str, count: u64) -> Self {
        Numbered {
            path: path.to_owned(),
            count,
            told: Weak::new(),
            kept: Weak::new(),
            keepers: BTreeSet::new(),
            writers: BTreeSet::new(),
        }
    }
}

/// How the kernel is to read a file that is being opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// From us, and nothing is kept.
    Direct,
    /// What it has kept is something else.
    Anew,
    /// What it has kept is still so.
    Kept,
}

pub(super) struct Numbers {
    by_number: BTreeMap<u64, Numbered>,
    by_path: BTreeMap<String, u64>,
    next: u64,
}

fn is(known: &Content, content: &Arc<Vec<u8>>) -> bool {
    known.ptr_eq(&Arc::downgrade(content))
}

impl Numbers {
    pub(super) fn new() -> Self {
        Numbers {
            by_number: [(1, Numbered::new("", 1))].into(),
            by_path: [(String::new(), 1)].into(),
            next: 2,
        }
    }

    pub(super) fn path(&self, number: INodeNo) -> Result<String, Errno> {
        let known = self.by_number.get(&number.0);
        known.map(|one| one.path.clone()).ok_or(Errno(libc::ESTALE))
    }

    /// The number of a path that is only listed. The kernel will not give it back, so none is taken.
    pub(super) fn listed(&self, path: &str) -> INodeNo {
        use std::hash::{DefaultHasher, Hash, Hasher};
        INodeNo(self.by_path.get(path).copied().unwrap_or_else(|| {
            let mut hasher = DefaultHasher::new();
            path.hash(&mut hasher);
            hasher.finish() | 1 << 63
        }))
    }

    /// The number of a path, which the kernel will give back.
    pub(super) fn number(&mut self, path: &str) -> INodeNo {
        let number = match self.by_path.get(path) {
            Some(number) => *number,
            None => {
                let number = self.next;
                self.next += 1;
                self.by_path.insert(path.to_owned(), number);
                self.by_number.insert(number, Numbered::new(path, 0));
                number
            }
        };
        if let Some(one) = self.by_number.get_mut(&number) {
            one.count += 1;
        }
        INodeNo(number)
    }

    /// The kernel takes the file called `from` for the one called `to` from now on.
    pub(super) fn rename(&mut self, from: &str, to: &str) {
        if let Some(number) = self.by_path.remove(from) {
            self.by_path.insert(to.to_owned(), number);
            if let Some(one) = self.by_number.get_mut(&number) {
                to.clone_into(&mut one.path);
                one.told = Weak::new();
            }
        }
    }

    pub(super) fn give_back(&mut self, number: u64, times: u64) {
        let Some(one) = self.by_number.get_mut(&number) else {
            return;
        };
        one.count = one.count.saturating_sub(times);
        if one.count == 0 && number != 1 {
            let path = one.path.clone();
            // Its path may have another number by now.
            if self.by_path.get(&path) == Some(&number) {
                self.by_path.remove(&path);
            }
            self.by_number.remove(&number);
        }
    }

    /// The kernel is being told the length of a file: that of a content, or of one that is not known.
    pub(super) fn tell(&mut self, number: INodeNo, content: Option<&Arc<Vec<u8>>>) {
        if let Some(one) = self.by_number.get_mut(&number.0) {
            one.told = content.map_or_else(Weak::new, Arc::downgrade);
        }
    }

    /// A file is opened to be read, and this is what is in it.
    pub(super) fn open_to_read(&mut self, number: INodeNo, handle: u64, content: &Arc<Vec<u8>>) -> Reading {
        let Some(one) = self.by_number.get_mut(&number.0) else {
            return Reading::Direct;
        };
        let is_kept = is(&one.kept, content);
        // Whoever has another content open would fill in that.
        let is_in_use = !one.keepers.is_empty() && !is_kept;
        if !is(&one.told, content) || is_in_use || !one.writers.is_empty() {
            return Reading::Direct;
        }
        one.keepers.insert(handle);
        one.kept = Arc::downgrade(content);
        if is_kept { Reading::Kept } else { Reading::Anew }
    }

    /// A file is opened to be written: the kernel makes up its length by itself.
    pub(super) fn open_to_write(&mut self, number: INodeNo, handle: u64) {
        if let Some(one) = self.by_number.get_mut(&number.0) {
            one.writers.insert(handle);
            one.told = Weak::new();
        }
    }

    pub(super) fn close(&mut self, number: INodeNo, handle: u64) {
        if let Some(one) = self.by_number.get_mut(&number.0) {
            one.keepers.remove(&handle);
            if one.writers.remove(&handle) {
                one.told = Weak::new();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(text: &str) -> Arc<Vec<u8>> {
        Arc::new(text.as_bytes().to_vec())
    }

    #[test]
    fn bytes_are_kept_only_with_the_length_that_was_told() {
        let mut numbers = Numbers::new();
        let file = numbers.number("classes/Lamp/press");
        let (old, new) = (content("old"), content("longer"));
        assert_eq!(
            numbers.open_to_read(file, 1, &old),
            Reading::Direct,
            "not told yet"
        );
        numbers.tell(file, Some(&old));
        assert_eq!(numbers.open_to_read(file, 2, &old), Reading::Anew);
        assert_eq!(numbers.open_to_read(file, 3, &old), Reading::Kept);
        assert_eq!(
            numbers.open_to_read(file, 4, &new),
            Reading::Direct,
            "its length was not told"
        );
        numbers.tell(file, Some(&new));
        assert_eq!(
            numbers.open_to_read(file, 5, &new),
            Reading::Direct,
            "the old is open"
        );
        for handle in [2, 3] {
            numbers.close(file, handle);
        }
        assert_eq!(numbers.open_to_read(file, 6, &new), Reading::Anew);
        // The same bytes at another place are another content.
        drop((old, new));
        assert_eq!(numbers.open_to_read(file, 7, &content("longer")), Reading::Direct);
    }

    #[test]
    fn nothing_is_kept_while_somebody_writes() {
        let mut numbers = Numbers::new();
        let file = numbers.number("classes/Lamp/press");
        let text = content("press => 1");
        numbers.tell(file, Some(&text));
        numbers.open_to_write(file, 1);
        numbers.tell(file, Some(&text));
        assert_eq!(numbers.open_to_read(file, 2, &text), Reading::Direct);
        numbers.close(file, 1);
        assert_eq!(
            numbers.open_to_read(file, 3, &text),
            Reading::Direct,
            "the writer changed the length"
        );
        numbers.tell(file, Some(&text));
        assert_eq!(numbers.open_to_read(file, 4, &text), Reading::Anew);
        numbers.rename("classes/Lamp/press", "classes/Lamp/push");
        assert_eq!(numbers.open_to_read(file, 5, &text), Reading::Direct);
    }
}
