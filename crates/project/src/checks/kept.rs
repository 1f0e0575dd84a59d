//! The results of the last run, in a file beside the build cache, and in a second one what little changed since that was
//! written: after a change of one file nobody writes thousands of records again.
//!
//! The form is our own: of thousands of files only what a run needs of them is read back, and what is still true is
//! written again as it stands. A file that is damaged, cut short or of another form is as good as none; so is a second
//! one that does not belong to the first.

use std::borrow::Cow;
use std::hash::Hasher;
use std::path::{Path, PathBuf};

use beamtalk_compiler::reads::{ClassOutline, Key, Outline};
use beamtalk_storage::{Disk, mode_of, replace_file};
use ecow::EcoString;
use rustc_hash::{FxHashMap, FxHasher};

use super::Stamp;
use crate::files;
use crate::findings::Finding;

/// Changes with what is written.
const FORM: &[u8] = b"beamtalk checks 3\n";
/// The second file is written as long as it has at most one record in so many.
const FEW: usize = 16;

/// What was found out about a file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Record<'a> {
    pub(super) stamp: Stamp,
    pub(super) hash: Cow<'a, str>,
    /// What it shows to others, without what it adds to keys.
    shows: Cow<'a, [u8]>,
    gives: Cow<'a, [u8]>,
    /// What its findings rest on, and the findings. None for files that are only declared, and for those that must be
    /// looked at again.
    checked: Option<Cow<'a, [u8]>>,
    /// The first file has it as it is.
    is_settled: bool,
}

impl Record<'_> {
    pub(super) fn new(stamp: Stamp, hash: String, outline: &Outline) -> Self {
        let (mut shows, mut gives) = (Writer::default(), Writer::default());
        shows.outline(outline);
        gives.all(&outline.gives, |out, (key, print)| {
            out.number(key.0);
            out.number(*print);
        });
        Self {
            stamp,
            hash: hash.into(),
            shows: shows.0.into(),
            gives: gives.0.into(),
            checked: None,
            is_settled: false,
        }
    }

    /// How the file looks from outside now.
    pub(super) fn set_stamp(&mut self, stamp: Stamp) {
        self.is_settled &= self.stamp == stamp;
        self.stamp = stamp;
    }

    /// What it shows to others; what it adds to keys is left out.
    pub(super) fn shows(&self) -> Outline {
        Reader(&self.shows).outline().unwrap_or_default()
    }

    pub(super) fn outline(&self) -> Outline {
        let gives = Reader(&self.gives).all(|from| Some((Key(from.number()?), from.number()?)));
        Outline {
            gives: gives.unwrap_or_default(),
            ..self.shows()
        }
    }

    pub(super) fn is_checked(&self) -> bool {
        self.checked.is_some()
    }

    /// Whether its findings may be different after these changes.
    pub(super) fn rests_on(&self, changed: &[Key]) -> bool {
        let reads = self.checked.as_deref().and_then(|bytes| Reader(bytes).block());
        let Some(reads) = reads else { return false };
        let at = |index: usize| {
            let bytes = reads.get(index * 8..)?.first_chunk()?;
            Some(u64::from_le_bytes(*bytes))
        };
        changed.iter().any(|key| {
            let (mut low, mut high) = (0, reads.len() / 8);
            while low < high {
                let middle = usize::midpoint(low, high);
                match at(middle) {
                    Some(found) if found == key.0 => return true,
                    Some(found) if found < key.0 => low = middle + 1,
                    _ => high = middle,
                }
            }
            false
        })
    }

    pub(super) fn forget_findings(&mut self) {
        self.is_settled &= self.checked.is_none();
        self.checked = None;
    }

    /// These were found; they rest on these keys, which are in ascending order.
    pub(super) fn found(&mut self, reads: &[Key], findings: &[Finding]) {
        let mut out = Writer::default();
        out.number(reads.len() as u64 * 8);
        reads.iter().for_each(|key| out.number(key.0));
        if !findings.is_empty() {
            let findings = serde_json::to_string(findings).expect("findings are texts and numbers");
            out.0.extend_from_slice(findings.as_bytes());
        }
        self.checked = Some(out.0.into());
        self.is_settled = false;
    }

    pub(super) fn findings(&self) -> Vec<Finding> {
        let mut from = Reader(self.checked.as_deref().unwrap_or_default());
        match from.block() {
            Some(_) if !from.0.is_empty() => serde_json::from_slice(from.0).unwrap_or_default(),
            _ => Vec::new(),
        }
    }
}

/// The bytes of both files.
#[derive(Default)]
pub(super) struct Bytes {
    first: Vec<u8>,
    second: Vec<u8>,
}

impl Bytes {
    pub(super) fn read(place: &Path) -> Self {
        Self {
            first: files::read_kept(place).unwrap_or_default(),
            second: files::read_kept(&second(place)).unwrap_or_default(),
        }
    }
}

/// Where the second file is.
fn second(place: &Path) -> PathBuf {
    place.with_extension("later")
}

/// What is kept of all files, as far as the bytes go.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Kept<'a> {
    /// There is a first file, with this sum.
    is_there: bool,
    sum: u64,
    /// In the second file, that of the first.
    base: Option<u64>,
    /// Files that the first one has and that are gone since.
    gone: Vec<&'a str>,
    /// Everything that is the same for all files.
    pub(super) environment: &'a str,
    /// The names that are written with their package.
    pub(super) shared: &'a str,
    /// When it was written, in nanoseconds.
    pub(super) written: u64,
    pub(super) files: FxHashMap<&'a str, Record<'a>>,
}

impl<'a> Kept<'a> {
    pub(super) fn of(bytes: &'a Bytes) -> Self {
        let first = decode(&bytes.first).filter(|first| first.base.is_none());
        let Some(mut kept) = first else {
            return Self::default();
        };
        if let Some(later) = decode(&bytes.second).filter(|later| later.base == Some(kept.sum)) {
            for name in &later.gone {
                kept.files.remove(name);
            }
            kept.files.extend(later.files);
            (kept.environment, kept.shared, kept.written) = (later.environment, later.shared, later.written);
            kept.gone = later.gone;
        }
        kept
    }

    /// What is kept from now on, if these are all files there are.
    pub(super) fn followed_by(
        &self,
        environment: String,
        shared: String,
        written: u64,
        files: Vec<(Cow<'a, str>, Record<'a>)>,
    ) -> New<'a> {
        let mut gone = self.gone.clone();
        gone.extend(self.files.keys());
        New {
            base: self.is_there.then_some(self.sum),
            gone,
            environment,
            shared,
            written,
            files,
        }
    }
}

/// What is there to keep.
pub(super) struct New<'a> {
    /// The sum of the first file, if there is one.
    base: Option<u64>,
    gone: Vec<&'a str>,
    environment: String,
    shared: String,
    written: u64,
    files: Vec<(Cow<'a, str>, Record<'a>)>,
}

impl New<'_> {
    /// Who may not write looks at everything again the next time.
    pub(super) fn write(&self, place: &Path) {
        let is_there = place
            .parent()
            .is_some_and(|parent| std::fs::create_dir_all(parent).is_ok());
        if !is_there {
            return;
        }
        let put = |path: &Path, bytes: &[u8]| drop(replace_file(path, bytes, mode_of(path), Disk::Later));
        let moved = self.files.iter().filter(|(_, record)| !record.is_settled);
        let is_little = moved.count() + self.gone.len() <= self.files.len() / FEW;
        match self.base.filter(|_| is_little) {
            Some(base) => put(&second(place), &self.encode(Some(base))),
            None => {
                put(place, &self.encode(None));
                // One that stays belongs to another first file.
                drop(std::fs::remove_file(second(place)));
            }
        }
    }

    /// The first file, or the second one with what the first does not have.
    fn encode(&self, base: Option<u64>) -> Vec<u8> {
        let is_meant = |record: &Record<'_>| base.is_none() || !record.is_settled;
        let files: Vec<&(Cow<'_, str>, Record<'_>)> =
            self.files.iter().filter(|(_, record)| is_meant(record)).collect();
        let size = |(path, record): &&(Cow<'_, str>, Record<'_>)| {
            let checked = record.checked.as_deref().unwrap_or_default();
            path.len() + record.shows.len() + record.gives.len() + checked.len() + 256
        };
        let mut out = Writer(Vec::with_capacity(files.iter().map(size).sum()));
        out.0.extend_from_slice(FORM);
        out.number(base.is_some().into());
        out.number(base.unwrap_or_default());
        out.text(&self.environment);
        out.text(&self.shared);
        out.number(self.written);
        let gone = if base.is_some() { self.gone.as_slice() } else { &[] };
        out.all(gone, |out, name| out.text(name));
        out.number(files.len() as u64);
        for (path, record) in files {
            out.text(path);
            out.number(record.stamp.length);
            out.number(record.stamp.changed);
            out.text(&record.hash);
            out.block(&record.shows);
            out.block(&record.gives);
            out.number(record.checked.is_some().into());
            out.block(record.checked.as_deref().unwrap_or_default());
        }
        let sum = sum(&out.0);
        out.number(sum);
        out.0
    }
}

fn sum(bytes: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(bytes);
    hasher.finish()
}

fn decode(bytes: &[u8]) -> Option<Kept<'_>> {
    // The sum of everything before it stands at the end.
    let (content, end) = bytes.split_at_checked(bytes.len().checked_sub(8)?)?;
    let own = Reader(end).number()?;
    if own != sum(content) {
        return None;
    }
    let mut from = Reader(content.strip_prefix(FORM)?);
    let (is_second, base) = (from.flag()?, from.number()?);
    let mut kept = Kept {
        is_there: true,
        sum: own,
        base: is_second.then_some(base),
        environment: from.text()?,
        shared: from.text()?,
        written: from.number()?,
        gone: from.all(Reader::text)?,
        files: FxHashMap::default(),
    };
    let count = from.count()?;
    kept.files.reserve(count);
    for _ in 0..count {
        let path = from.text()?;
        let record = Record {
            stamp: Stamp {
                length: from.number()?,
                changed: from.number()?,
            },
            hash: from.text()?.into(),
            shows: from.block()?.into(),
            gives: from.block()?.into(),
            checked: {
                let (is_checked, checked) = (from.flag()?, from.block()?);
                is_checked.then_some(checked.into())
            },
            is_settled: !is_second,
        };
        kept.files.insert(path, record);
    }
    Some(kept)
}

#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn block(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn text(&mut self, text: &str) {
        self.block(text.as_bytes());
    }

    fn maybe(&mut self, text: Option<&str>) {
        self.number(text.is_some().into());
        self.text(text.unwrap_or_default());
    }

    fn all<T>(&mut self, items: &[T], mut each: impl FnMut(&mut Self, &T)) {
        self.number(items.len() as u64);
        for item in items {
            each(self, item);
        }
    }

    fn outline(&mut self, outline: &Outline) {
        self.all(&outline.names, |out, (name, is_internal)| {
            out.text(name);
            out.number((*is_internal).into());
        });
        self.number(outline.classes.is_some().into());
        self.all(outline.classes.as_deref().unwrap_or_default(), |out, class| {
            out.text(&class.name);
            out.maybe(class.superclass.as_deref());
            out.number(class.item as u64);
        });
        self.all(&outline.selectors, |out, key| out.number(key.0));
        self.all(&outline.modules, |out, name| out.text(name));
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn flag(&mut self) -> Option<bool> {
        Some(self.number()? != 0)
    }

    fn block(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (block, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(block)
    }

    fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.block()?).ok()
    }

    /// How many items follow. Every item takes at least eight bytes: a count that lies asks for no more memory than the
    /// file has.
    fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.number()?).ok()?;
        (count <= self.0.len() / 8).then_some(count)
    }

    fn all<T>(&mut self, mut each: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.count()?;
        let mut all = Vec::with_capacity(count);
        for _ in 0..count {
            all.push(each(self)?);
        }
        Some(all)
    }

    /// All but what it adds to keys.
    fn outline(&mut self) -> Option<Outline> {
        let names = self.all(|from| Some((EcoString::from(from.text()?), from.flag()?)))?;
        let has_classes = self.flag()?;
        let classes = self.all(|from| {
            let name = from.text()?.into();
            let (has_superclass, superclass) = (from.flag()?, from.text()?);
            Some(ClassOutline {
                name,
                superclass: has_superclass.then(|| superclass.into()),
                item: usize::try_from(from.number()?).ok()?,
            })
        })?;
        Some(Outline {
            names,
            classes: has_classes.then_some(classes),
            gives: Vec::new(),
            selectors: self.all(|from| Some(Key(from.number()?)))?,
            modules: self.all(|from| from.text().map(EcoString::from))?,
        })
    }
}
