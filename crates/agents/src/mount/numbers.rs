//! Numbers for paths, as long as the kernel knows them, and what the kernel keeps of their files.
//!
//! The kernel keeps the bytes of a file for all who have it open, and takes its length from what it was told of it last.
//! So it may keep them only while both are of the same content that is being opened: otherwise, and as long as somebody
//! writes, each open file is read from us alone. A number by which somebody reads what is kept stays with that content;
//! what is at the path from then on, or is going to be written there, has another.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};

use fuser::INodeNo;

use super::files::{Errno, Seen};

/// A content, as long as somebody has it; told apart from all others by where it is.
type Content = Weak<Vec<u8>>;

struct Numbered {
    path: String,
    /// How often the kernel will give it back.
    count: u64,
    /// The content whose length the kernel was told last, and all that it was told.
    told: Content,
    shown: Option<Seen>,
    /// The content that the kernel may have kept.
    kept: Content,
    /// Files open by which it may keep that content.
    keepers: BTreeSet<u64>,
    writers: BTreeSet<u64>,
    /// Those who are about to be.
    coming: usize,
}

impl Numbered {
    fn new(path: &str, count: u64) -> Self {
        Numbered {
            path: path.to_owned(),
            count,
            told: Weak::new(),
            shown: None,
            kept: Weak::new(),
            keepers: BTreeSet::new(),
            writers: BTreeSet::new(),
            coming: 0,
        }
    }

    /// Whether somebody reads by what the kernel keeps.
    fn is_fixed(&self) -> bool {
        !self.keepers.is_empty()
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

    /// The number of a path where something was seen, which the kernel will give back.
    pub(super) fn number(&mut self, path: &str, seen: &Seen) -> INodeNo {
        let known = self.by_path.get(path).copied().filter(|number| {
            let is_of = |one: &Numbered| {
                let is_same = seen
                    .content
                    .as_ref()
                    .is_some_and(|content| is(&one.kept, content));
                !one.is_fixed() || is_same
            };
            self.by_number.get(number).is_none_or(is_of)
        });
        let number = match known {
            Some(number) => number,
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
        self.tell(INodeNo(number), seen);
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

    /// The kernel is being told of a file.
    pub(super) fn tell(&mut self, number: INodeNo, seen: &Seen) {
        if let Some(one) = self.by_number.get_mut(&number.0) {
            one.told = seen.content.as_ref().map_or_else(Weak::new, Arc::downgrade);
            one.shown = Some(Seen {
                content: None,
                ..seen.clone()
            });
        }
    }

    /// What a number stays with, if it does.
    pub(super) fn fixed(&self, number: INodeNo) -> Option<Seen> {
        let one = self.by_number.get(&number.0).filter(|one| one.is_fixed())?;
        one.shown.clone()
    }

    /// The file of a number is going to be written. Where the number stays with what it was, the system looks the path up
    /// once more, and finds another.
    pub(super) fn before_writing(&mut self, number: INodeNo) -> Result<(), Errno> {
        let Some(one) = self.by_number.get(&number.0).filter(|one| one.is_fixed()) else {
            return Ok(());
        };
        if self.by_path.get(&one.path) == Some(&number.0) {
            self.by_path.remove(&one.path);
        }
        Err(Errno(libc::ESTALE))
    }

    /// Somebody opens the file of a number to write it; followed by one of the next two.
    pub(super) fn begin_writing(&mut self, number: INodeNo) -> Result<(), Errno> {
        self.before_writing(number)?;
        if let Some(one) = self.by_number.get_mut(&number.0) {
            one.coming += 1;
        }
        Ok(())
    }

    pub(super) fn could_not_write(&mut self, number: INodeNo) {
        if let Some(one) = self.by_number.get_mut(&number.0) {
            one.coming = one.coming.saturating_sub(1);
        }
    }

    /// The kernel makes up the length of a file by itself.
    pub(super) fn untell(&mut self, number: INodeNo) {
        if let Some(one) = self.by_number.get_mut(&number.0) {
            one.told = Weak::new();
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
        let is_written = one.coming > 0 || !one.writers.is_empty();
        if !is(&one.told, content) || is_in_use || is_written {
            return Reading::Direct;
        }
        one.keepers.insert(handle);
        one.kept = Arc::downgrade(content);
        if is_kept { Reading::Kept } else { Reading::Anew }
    }

    /// A file is opened to be written: the kernel makes up its length by itself.
    pub(super) fn open_to_write(&mut self, number: INodeNo, handle: u64) {
        if let Some(one) = self.by_number.get_mut(&number.0) {
            one.coming = one.coming.saturating_sub(1);
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

    const PATH: &str = "classes/Lamp/press";

    fn content(text: &str) -> Seen {
        let bytes = text.as_bytes().to_vec();
        Seen {
            is_directory: false,
            length: bytes.len() as u64,
            content: Some(Arc::new(bytes)),
            ..Seen::directory()
        }
    }

    fn bytes(seen: &Seen) -> &Arc<Vec<u8>> {
        seen.content.as_ref().unwrap()
    }

    #[test]
    fn bytes_are_kept_only_with_the_length_that_was_told() {
        let mut numbers = Numbers::new();
        let (old, new) = (content("old"), content("longer"));
        let file = numbers.number(PATH, &old);
        assert_eq!(
            numbers.open_to_read(file, 1, bytes(&new)),
            Reading::Direct,
            "not told"
        );
        assert_eq!(numbers.open_to_read(file, 2, bytes(&old)), Reading::Anew);
        assert_eq!(numbers.open_to_read(file, 3, bytes(&old)), Reading::Kept);
        assert_eq!(numbers.number(PATH, &old), file);
        // What is there now is another file for the kernel; who has the old one open goes on with it.
        let other = numbers.number(PATH, &new);
        assert_ne!(other, file);
        assert_eq!(numbers.fixed(file).map(|seen| seen.length), Some(3));
        assert_eq!(numbers.open_to_read(other, 4, bytes(&new)), Reading::Anew);
        for handle in [2, 3] {
            numbers.close(file, handle);
        }
        assert!(numbers.fixed(file).is_none());
        numbers.give_back(file.0, 9);
        assert_eq!(numbers.number(PATH, &new), other);
        // The same bytes at another place are another content.
        numbers.close(other, 4);
        assert_eq!(
            numbers.open_to_read(other, 5, bytes(&content("longer"))),
            Reading::Direct
        );
    }

    #[test]
    fn nothing_is_kept_while_somebody_writes() {
        let mut numbers = Numbers::new();
        let text = content("press => 1");
        let file = numbers.number(PATH, &text);
        assert_eq!(numbers.open_to_read(file, 1, bytes(&text)), Reading::Anew);
        assert_eq!(numbers.begin_writing(file), Err(Errno(libc::ESTALE)));
        let written = numbers.number(PATH, &text);
        assert_ne!(written, file);
        assert_eq!(numbers.begin_writing(written), Ok(()));
        assert_eq!(numbers.open_to_read(written, 3, bytes(&text)), Reading::Direct);
        numbers.open_to_write(written, 2);
        numbers.tell(written, &text);
        assert_eq!(numbers.open_to_read(written, 3, bytes(&text)), Reading::Direct);
        numbers.close(written, 2);
        assert_eq!(
            numbers.open_to_read(written, 4, bytes(&text)),
            Reading::Direct,
            "its length changed"
        );
        numbers.tell(written, &text);
        assert_eq!(numbers.open_to_read(written, 5, bytes(&text)), Reading::Anew);
        numbers.close(written, 5);
        numbers.rename(PATH, "classes/Lamp/push");
        assert_eq!(numbers.open_to_read(written, 6, bytes(&text)), Reading::Direct);
    }
}
