//! What the compiler has to know about the image: the source texts of its classes, newest last.

use beamtalk_syntax::ast::Item;
use rustc_hash::{FxHashMap, FxHashSet};

use super::job::{Knowledge, PackageUse, SourceText, TextOrigin};
use crate::changes::class_source;

/// The texts by what they define, each with the moment it was told.
#[derive(Debug, Default)]
pub struct Known {
    texts: FxHashMap<String, (u64, SourceText)>,
    packages: Vec<PackageUse>,
    /// Counts declarations.
    moment: u64,
    /// Counts removals; a worker that knows of fewer starts again from the library.
    generation: u64,
}

/// What one worker has been told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    moment: u64,
    generation: u64,
}

impl Known {
    /// The packages among which names are resolved from now on.
    pub fn set_packages(&mut self, packages: &[PackageUse]) {
        if self.packages != packages {
            self.packages = packages.to_vec();
            self.generation += 1;
        }
    }

    pub fn declare(&mut self, texts: Vec<SourceText>) {
        for text in texts {
            self.moment += 1;
            self.texts.insert(key(&text), (self.moment, text));
        }
    }

    /// Forget the texts for which `is_gone` holds.
    pub fn forget(&mut self, is_gone: impl Fn(&SourceText) -> bool) {
        let before = self.texts.len();
        self.texts.retain(|_, (_, text)| !is_gone(text));
        if self.texts.len() != before {
            self.generation += 1;
        }
    }

    pub fn clear(&mut self) {
        self.texts.clear();
        self.generation += 1;
    }

    /// The text of a file of a package, or of one that belongs to none.
    pub fn file(&self, package: Option<&str>, path: &str) -> Option<&SourceText> {
        self.texts.get(&file_key(package, path)).map(|(_, text)| text)
    }

    /// The latest definition of a class that was made in a session.
    pub(crate) fn session_class(&self, class: &str) -> Option<String> {
        let sessions = self
            .texts
            .values()
            .filter(|(_, text)| text.origin == TextOrigin::Session && text.text.contains(class));
        let found = sessions.filter_map(|(moment, text)| {
            let items = beamtalk_syntax::parse_input(&text.text).unit.items;
            let source = items.iter().find_map(|item| match item {
                Item::Class(found) if found.name.text == class => {
                    Some(class_source(&text.text, found).to_owned())
                }
                _ => None,
            });
            Some((*moment, source?))
        });
        found.max_by_key(|(moment, _)| *moment).map(|(_, source)| source)
    }

    /// The files of the project for which `is_wanted` holds, in the order of their paths.
    pub fn files(&self, is_wanted: impl Fn(&SourceText) -> bool) -> Vec<SourceText> {
        let is_file = |text: &SourceText| text.origin != TextOrigin::Session && is_wanted(text);
        let texts = self.texts.values().map(|(_, text)| text);
        let mut files: Vec<SourceText> = texts.filter(|text| is_file(text)).cloned().collect();
        files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        files
    }

    /// The texts of sessions that define a class or a method no later text defines again, oldest first. Findings about
    /// them are told under that name.
    pub(crate) fn session_texts(&self) -> Vec<SourceText> {
        let mut texts: Vec<&(u64, SourceText)> = self
            .texts
            .values()
            .filter(|(_, text)| text.origin == TextOrigin::Session)
            .collect();
        texts.sort_unstable_by_key(|(moment, _)| std::cmp::Reverse(*moment));
        let mut seen: FxHashSet<String> = FxHashSet::default();
        let mut current: Vec<SourceText> = Vec::new();
        for (_, text) in texts {
            let items = beamtalk_syntax::parse_input(&text.text).unit.items;
            let names = items.iter().filter_map(defined_name).collect::<Vec<_>>();
            let is_code = |item: &&Item| matches!(item, Item::Class(_) | Item::Extension(_));
            let mut own = items.iter().filter(is_code).filter_map(defined_name);
            let found = own.find(|name| !seen.contains(name));
            seen.extend(names);
            if let Some(path) = found {
                current.push(SourceText { path, ..text.clone() });
            }
        }
        current.reverse();
        current
    }

    /// What a worker lacks, oldest first, and what it will know then.
    pub(crate) fn since(&self, told: Told) -> (Knowledge, Told) {
        let reset = told.generation != self.generation;
        let from = if reset { 0 } else { told.moment };
        let mut missing: Vec<&(u64, SourceText)> =
            self.texts.values().filter(|(moment, _)| *moment > from).collect();
        missing.sort_unstable_by_key(|(moment, _)| *moment);
        let knowledge = Knowledge {
            reset,
            declare: missing.into_iter().map(|(_, text)| text.clone()).collect(),
            packages: self.packages.clone(),
            no_ffi: false,
        };
        let now = Told {
            moment: self.moment,
            generation: self.generation,
        };
        (knowledge, now)
    }
}

/// What tells a definition from others.
fn defined_name(item: &Item) -> Option<String> {
    match item {
        Item::Class(class) => Some(class.name.text.to_string()),
        Item::Protocol(protocol) => Some(protocol.name.text.to_string()),
        Item::TypeAlias(alias) => Some(alias.name.text.to_string()),
        Item::Extension(extension) => {
            let side = if extension.method.is_class { " class" } else { "" };
            let (target, selector) = (&extension.target.name.text, &extension.method.head.selector);
            Some(format!("{target}{side}>>{selector}"))
        }
        Item::Statement(_) => None,
    }
}

fn file_key(package: Option<&str>, path: &str) -> String {
    format!("{}:{path}", package.unwrap_or_default())
}

/// A file is known by its path in its package. An input of a session is known by its first line that is not blank: the next
/// definition of the same class or method replaces it.
fn key(text: &SourceText) -> String {
    match text.origin {
        TextOrigin::Package | TextOrigin::Test => file_key(text.package.as_deref(), &text.path),
        TextOrigin::Session => {
            let head = text.text.lines().find(|line| {
                let line = line.trim();
                !line.is_empty() && !line.starts_with("//")
            });
            let head = head.unwrap_or_default();
            let head = head.split("=>").next().unwrap_or_default();
            format!("session {}", head.trim())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(text: &str) -> SourceText {
        SourceText {
            path: "session".to_owned(),
            text: text.to_owned(),
            package: None,
            module: "bt@session".to_owned(),
            origin: TextOrigin::Session,
        }
    }

    #[test]
    fn a_worker_is_told_only_what_it_lacks() {
        let mut known = Known::default();
        known.declare(vec![session("Object subclass: A\n  x => 1")]);
        let (first, told) = known.since(Told::default());
        assert_eq!((first.reset, first.declare.len()), (false, 1));
        assert_eq!(known.since(told).0.declare, []);
        known.declare(vec![session("Object subclass: A\n  x => 2")]);
        let (second, told) = known.since(told);
        assert_eq!(second.declare, [session("Object subclass: A\n  x => 2")]);
        assert_eq!(
            known.since(Told::default()).0.declare.len(),
            1,
            "replaced, not added"
        );
        assert_eq!(
            known.session_class("A").as_deref(),
            Some("Object subclass: A\n  x => 2")
        );
        assert_eq!(known.session_class("B"), None);
        known.clear();
        assert!(known.since(told).0.reset);
    }

    #[test]
    fn packages_may_have_files_of_the_same_path() {
        let file = |package: &str, text: &str| SourceText {
            path: "src/a.bt".to_owned(),
            package: Some(package.to_owned()),
            origin: TextOrigin::Package,
            ..session(text)
        };
        let mut known = Known::default();
        known.declare(vec![file("one", "1"), file("two", "2")]);
        let text = |package| {
            known
                .file(Some(package), "src/a.bt")
                .map(|text| text.text.as_str())
        };
        assert_eq!(
            (text("one"), text("two"), text("three")),
            (Some("1"), Some("2"), None)
        );
    }

    #[test]
    fn repeated_definitions_of_a_method_are_one() {
        let mut known = Known::default();
        for n in 0..100 {
            known.declare(vec![session(&format!("A >> x => {n}"))]);
        }
        assert_eq!(known.since(Told::default()).0.declare, [session("A >> x => 99")]);
    }
}
