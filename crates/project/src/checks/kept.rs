//! The results of the last run, in one file beside the build cache.
//!
//! The form is our own: thousands of files are read back in a few milliseconds, mostly lists of numbers. A file that is
//! damaged, cut short or of another form is as good as none.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};
use std::path::Path;

use beamtalk_compiler::reads::{ClassOutline, Key, Outline};
use beamtalk_storage::{Disk, mode_of, replace_file};
use ecow::EcoString;

use super::Stamp;
use crate::findings::Finding;

/// Changes with what is written.
const FORM: &[u8] = b"beamtalk checks 1\n";

/// What was found out about a file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Record {
    pub(super) stamp: Stamp,
    pub(super) hash: String,
    pub(super) outline: Outline,
    /// None for files that are only declared, and for those that must be looked at again.
    pub(super) checked: Option<Checked>,
}

impl Record {
    pub(super) fn new(stamp: Stamp) -> Self {
        Self {
            stamp,
            hash: String::new(),
            outline: Outline::default(),
            checked: None,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Checked {
    pub(super) reads: Vec<Key>,
    pub(super) findings: Vec<Finding>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Kept {
    /// Everything that is the same for all files.
    pub(super) environment: String,
    /// The names that are written with their package.
    pub(super) shared: String,
    /// When it was written, in nanoseconds.
    pub(super) written: u64,
    pub(super) files: BTreeMap<String, Record>,
}

impl Checked {
    pub(super) fn rests_on(&self, changed: &[Key]) -> bool {
        changed.iter().any(|key| self.reads.binary_search(key).is_ok())
    }
}

impl Kept {
    pub(super) fn read(path: &Path) -> Self {
        let bytes = std::fs::read(path).unwrap_or_default();
        decode(&bytes).unwrap_or_default()
    }

    /// Who may not write looks at everything again the next time.
    pub(super) fn write(&self, path: &Path) {
        let is_there = path
            .parent()
            .is_some_and(|parent| std::fs::create_dir_all(parent).is_ok());
        if is_there {
            drop(replace_file(path, &self.encode(), mode_of(path), Disk::Later));
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Writer(FORM.to_vec());
        out.text(&self.environment);
        out.text(&self.shared);
        out.number(self.written);
        out.number(self.files.len() as u64);
        for (path, record) in &self.files {
            out.text(path);
            out.record(record);
        }
        let sum = sum(&out.0);
        out.number(sum);
        out.0
    }
}

fn sum(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

fn decode(bytes: &[u8]) -> Option<Kept> {
    // The sum of everything before it stands at the end.
    let (content, end) = bytes.split_at_checked(bytes.len().checked_sub(8)?)?;
    if Reader(end).number()? != sum(content) {
        return None;
    }
    let mut from = Reader(content.strip_prefix(FORM)?);
    let mut kept = Kept {
        environment: from.text()?.to_owned(),
        shared: from.text()?.to_owned(),
        written: from.number()?,
        files: BTreeMap::new(),
    };
    let mut files = Vec::new();
    for _ in 0..from.number()? {
        files.push((from.text()?.to_owned(), from.record()?));
    }
    // They are in order already.
    kept.files = files.into_iter().collect();
    Some(kept)
}

struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
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

    fn record(&mut self, record: &Record) {
        self.number(record.stamp.length);
        self.number(record.stamp.changed);
        self.text(&record.hash);
        let outline = &record.outline;
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
        self.all(&outline.gives, |out, (key, print)| {
            out.number(key.0);
            out.number(*print);
        });
        self.all(&outline.selectors, |out, key| out.number(key.0));
        self.all(&outline.modules, |out, name| out.text(name));
        self.number(record.checked.is_some().into());
        if let Some(checked) = &record.checked {
            self.all(&checked.reads, |out, key| out.number(key.0));
            let findings = serde_json::to_string(&checked.findings).expect("findings are texts and numbers");
            self.text(if checked.findings.is_empty() {
                ""
            } else {
                &findings
            });
        }
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

    fn text(&mut self) -> Option<&'a str> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }

    fn all<T>(&mut self, mut each: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = usize::try_from(self.number()?).ok()?;
        // Every item takes at least eight bytes: a length that lies asks for no more memory than the file has.
        let mut all = Vec::with_capacity(count.min(self.0.len() / 8));
        for _ in 0..count {
            all.push(each(self)?);
        }
        Some(all)
    }

    fn keys(&mut self) -> Option<Vec<Key>> {
        self.all(|from| Some(Key(from.number()?)))
    }

    fn record(&mut self) -> Option<Record> {
        let stamp = Stamp {
            length: self.number()?,
            changed: self.number()?,
        };
        let hash = self.text()?.to_owned();
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
        let outline = Outline {
            names,
            classes: has_classes.then_some(classes),
            gives: self.all(|from| Some((Key(from.number()?), from.number()?)))?,
            selectors: self.keys()?,
            modules: self.all(|from| from.text().map(EcoString::from))?,
        };
        let is_checked = self.flag()?;
        let checked = if is_checked {
            let reads = self.keys()?;
            let findings = match self.text()? {
                "" => Vec::new(),
                text => serde_json::from_str(text).ok()?,
            };
            Some(Checked { reads, findings })
        } else {
            None
        };
        Some(Record {
            stamp,
            hash,
            outline,
            checked,
        })
    }
}
