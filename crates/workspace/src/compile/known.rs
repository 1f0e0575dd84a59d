//! The table of definitions: what the image has, what it loaded, and from which file.
//!
//! A file is known by its path in its package, with the text that the image runs and its base: the text as it was loaded or
//! last flushed, which changes of the image are compared with. What a session defined without a file is known by what it
//! defines. Compiler workers are told the texts of the image, each once.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use beamtalk_syntax::definitions::{self, Key, Member, Outline, Subject};

use super::job::{FileName, HomeText, Knowledge, PackageUse, SourceText, TextOrigin};

#[derive(Debug, Default)]
pub struct Known {
    files: BTreeMap<String, KnownFile>,
    /// Definitions of sessions that are in no file, each with the moment it was told.
    session: BTreeMap<Subject, (u64, SourceText)>,
    packages: Vec<PackageUse>,
    /// Counts declarations.
    moment: u64,
    /// Counts removals; a worker that knows of fewer starts again from the library.
    generation: u64,
    /// Methods that belong to files which lack them now, once somebody asked: every job needs them, and few changes of
    /// files make others of them.
    homes: OnceCell<Vec<HomeText>>,
}

#[derive(Debug, Default)]
struct KnownFile {
    /// As the image has it, with the moment it was told; `None` when nothing of it is in the image.
    image: Option<(u64, SourceText)>,
    /// As it was loaded or last flushed; `None` for a file that was never written.
    base: Option<String>,
}

impl KnownFile {
    /// Forget a class, and say whether there was something to forget.
    fn forget_class(&mut self, class: &str) -> bool {
        let Some((_, text)) = &mut self.image else {
            return false;
        };
        let outline = Outline::of_file(&text.text);
        if outline.class(class).is_none() {
            return false;
        }
        if outline.has_more_than(class) {
            text.text = definitions::remove_class(&text.text, class);
        } else {
            self.image = None;
        }
        true
    }
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

    /// The image has these texts now.
    pub fn declare(&mut self, texts: Vec<SourceText>) {
        self.homes.take();
        for text in texts {
            self.moment += 1;
            if text.origin == TextOrigin::Session {
                if let Some(subject) = definitions::subject(&text.text) {
                    self.session.insert(subject, (self.moment, text));
                }
            } else {
                let file = self.files.entry(key(&text)).or_default();
                // A definition that a file has is no longer the session's. Where sessions have none, files need not be read.
                let own: Vec<Subject> = if self.session.is_empty() {
                    Vec::new()
                } else {
                    let outline = Outline::of_file(&text.text);
                    let keys = outline.keys();
                    keys.map(|key| Subject::Definition(key.clone())).collect()
                };
                file.image = Some((self.moment, text));
                self.forget_session(|subject| own.contains(subject));
            }
        }
    }

    /// The image loaded these files: they are their own base.
    pub fn load(&mut self, texts: Vec<SourceText>) {
        for text in &texts {
            self.files.entry(key(text)).or_default().base = Some(text.text.clone());
        }
        self.declare(texts);
    }

    /// Forget a class: its text, and methods of it that stand elsewhere.
    pub fn forget_class(&mut self, class: &str) {
        self.homes.take();
        for file in self.files.values_mut() {
            self.generation += u64::from(file.forget_class(class));
        }
        self.forget_session(|subject| matches!(subject, Subject::Definition(key) if key.class == class));
    }

    /// A file that is gone has no longer what another file has now.
    pub fn leave_to_others(&mut self, is_gone: impl Fn(&SourceText) -> bool) {
        let (gone, there): (Vec<_>, Vec<_>) = self
            .files
            .iter()
            .filter_map(|(key, file)| Some((key.clone(), &file.image.as_ref()?.1)))
            .partition(|(_, text)| is_gone(text));
        let classes = |(_, text): &(String, &SourceText)| -> Vec<String> {
            let outline = Outline::of_file(&text.text);
            outline
                .classes()
                .map(|class| class.name.text.to_string())
                .collect()
        };
        let there: BTreeSet<String> = there.iter().flat_map(classes).collect();
        let gone: Vec<(String, Vec<String>)> = gone.iter().map(|one| (one.0.clone(), classes(one))).collect();
        self.homes.take();
        for (key, classes) in gone {
            let Some(file) = self.files.get_mut(&key) else {
                continue;
            };
            for class in classes.iter().filter(|class| there.contains(*class)) {
                self.generation += u64::from(file.forget_class(class));
            }
        }
    }

    /// Forget a method that a session defined.
    pub fn forget_method(&mut self, key: &Key) {
        self.forget_session(|subject| *subject == Subject::Definition(key.clone()));
    }

    fn forget_session(&mut self, is_gone: impl Fn(&Subject) -> bool) {
        let before = self.session.len();
        self.session.retain(|subject, _| !is_gone(subject));
        if self.session.len() != before {
            self.generation += 1;
        }
    }

    /// The image is gone.
    pub fn clear(&mut self) {
        self.homes.take();
        self.files.clear();
        self.session.clear();
        self.generation += 1;
    }

    /// The text of a file of a package, or of one that belongs to none, as the image has it.
    pub fn file(&self, package: Option<&str>, path: &str) -> Option<&SourceText> {
        let file = self.files.get(&file_key(package, path))?;
        file.image.as_ref().map(|(_, text)| text)
    }

    /// The text of a file as it was loaded or last flushed.
    pub fn base(&self, package: Option<&str>, path: &str) -> Option<&str> {
        self.files.get(&file_key(package, path))?.base.as_deref()
    }

    /// What was flushed is the base from now on.
    pub fn set_base(&mut self, package: Option<&str>, path: &str, base: Option<String>) {
        self.homes.take();
        self.files.entry(file_key(package, path)).or_default().base = base;
    }

    /// The bases of the files of a package and of those that belong to none, by path.
    pub fn bases(&self, package: Option<&str>) -> BTreeMap<String, String> {
        let mut bases = BTreeMap::new();
        for prefix in [None, package] {
            let prefix = file_key(prefix, "");
            let own = self.files.iter().filter_map(|(key, file)| {
                let path = key.strip_prefix(&prefix)?;
                Some((path.to_owned(), file.base.clone()?))
            });
            bases.extend(own);
        }
        bases
    }

    /// The latest definition of a class that was made in a session.
    pub(crate) fn session_class(&self, class: &str) -> Option<String> {
        let subject = Subject::Definition(Key::header(class));
        self.session.get(&subject).map(|(_, text)| text.text.clone())
    }

    /// The files for which `is_wanted` holds as the image has them, in the order of their paths.
    pub fn files(&self, is_wanted: impl Fn(&SourceText) -> bool) -> Vec<FileName> {
        let texts = self.files.values().filter_map(|file| file.image.as_ref());
        let names = texts
            .filter(|(_, text)| is_wanted(text))
            .map(|(moment, text)| FileName {
                package: text.package.clone(),
                path: text.path.clone(),
                moment: *moment,
            });
        let mut files: Vec<FileName> = names.collect();
        files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        files
    }

    /// The classes and methods of sessions that are in no file, oldest first. Findings about them are told under their
    /// names.
    pub(crate) fn session_texts(&self) -> Vec<SourceText> {
        let code = self.session.iter().filter_map(|(subject, told)| match subject {
            Subject::Definition(key) => Some((key, told)),
            Subject::Protocol(_) | Subject::TypeName(_) => None,
        });
        let mut code: Vec<(&Key, &(u64, SourceText))> = code.collect();
        code.sort_unstable_by_key(|(_, (moment, _))| *moment);
        let named = code.into_iter().map(|(key, (_, text))| SourceText {
            path: shown(key),
            ..text.clone()
        });
        named.collect()
    }

    /// Methods that extend classes in the base of a file and are not in the image: put again, they belong there.
    fn find_homes(&self) -> Vec<HomeText> {
        let changed = self.files.values().filter_map(|file| {
            let ((_, image), base) = (file.image.as_ref()?, file.base.as_deref()?);
            (image.text != base).then_some((image, base))
        });
        let mut homes = Vec::new();
        for (image, base) in changed {
            let (before, now) = (Outline::of_file(base), Outline::of_file(&image.text));
            for key in before.keys() {
                let Member::Method { is_class, selector } = &key.member else {
                    continue;
                };
                if before.class(&key.class).is_none() && now.text_of(key).is_none() {
                    homes.push(HomeText {
                        class: key.class.to_string(),
                        is_class_side: *is_class,
                        selector: selector.to_string(),
                        file: image.clone(),
                    });
                }
            }
        }
        homes
    }

    /// What a worker lacks, oldest first, and what it will know then.
    pub(crate) fn since(&self, told: Told) -> (Knowledge, Told) {
        let reset = told.generation != self.generation;
        let from = if reset { 0 } else { told.moment };
        let files = self.files.values().filter_map(|file| file.image.as_ref());
        let all = files.chain(self.session.values());
        // Usually nothing is new, and a project may have thousands of files.
        let all = (from < self.moment).then_some(all).into_iter().flatten();
        let mut missing: Vec<&(u64, SourceText)> = all.filter(|(moment, _)| *moment > from).collect();
        missing.sort_unstable_by_key(|(moment, _)| *moment);
        let knowledge = Knowledge {
            reset,
            declare: missing.into_iter().map(|(_, text)| text.clone()).collect(),
            packages: self.packages.clone(),
            no_ffi: false,
            homes: self.homes.get_or_init(|| self.find_homes()).clone(),
        };
        (knowledge, self.now())
    }

    /// What a worker knows that was told everything.
    pub(crate) fn now(&self) -> Told {
        Told {
            moment: self.moment,
            generation: self.generation,
        }
    }
}

/// A definition as findings name it.
fn shown(key: &Key) -> String {
    match &key.member {
        Member::Header => key.class.to_string(),
        Member::Method { is_class, selector } => {
            let side = if *is_class { " class" } else { "" };
            format!("{}{side}>>{selector}", key.class)
        }
    }
}

fn file_key(package: Option<&str>, path: &str) -> String {
    format!("{}:{path}", package.unwrap_or_default())
}

fn key(text: &SourceText) -> String {
    file_key(text.package.as_deref(), &text.path)
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

    fn file(path: &str, text: &str) -> SourceText {
        SourceText {
            path: path.to_owned(),
            origin: TextOrigin::Package,
            ..session(text)
        }
    }

    /// A class that stands in another file now is not that of the file it was in; one that stands nowhere is still in the image.
    #[test]
    fn a_file_that_is_gone_leaves_its_classes_to_others() {
        let mut known = Known::default();
        let class = |name: &str| format!("Object subclass: {name}\n  x => 1\n");
        known.load(vec![
            file("old.bt", &(class("A") + "\n" + &class("B"))),
            file("gone.bt", &class("A")),
            file("new.bt", &class("A")),
        ]);
        known.leave_to_others(|text| text.path != "new.bt");
        let texts = |path: &str| known.file(None, path).map(|text| text.text.clone());
        assert_eq!(texts("gone.bt"), None);
        assert_eq!(texts("new.bt"), Some(class("A")));
        let old = texts("old.bt").unwrap();
        assert!(
            old.contains("subclass: B") && !old.contains("subclass: A"),
            "{old}"
        );
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

    /// A method that was taken out of a file belongs to it until the file is written without it.
    #[test]
    fn a_method_taken_out_of_its_file_has_a_home_until_the_file_is_flushed() {
        let file = |text: &str| SourceText {
            path: "src/more.bt".to_owned(),
            origin: TextOrigin::Package,
            ..session(text)
        };
        let mut known = Known::default();
        let homes = |known: &Known| known.since(Told::default()).0.homes.len();
        known.load(vec![file(
            "Integer >> half => self / 2\nInteger >> third => self / 3\n",
        )]);
        assert_eq!(homes(&known), 0);
        known.declare(vec![file("Integer >> third => self / 3\n")]);
        assert_eq!(homes(&known), 1);
        known.set_base(
            None,
            "src/more.bt",
            Some("Integer >> third => self / 3\n".to_owned()),
        );
        assert_eq!(homes(&known), 0);
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

    #[test]
    fn definitions_made_together_are_known_apart() {
        let mut known = Known::default();
        let both = "Object subclass: A\n  x => 1\n\nObject subclass: B\n  y => 2\n";
        let texts = definitions::split(both, |_| true);
        known.declare(texts.iter().map(|text| session(text)).collect());
        known.declare(vec![session("Object subclass: A\n  x => 3")]);
        assert!(
            known
                .session_class("B")
                .is_some_and(|text| text.contains("y => 2"))
        );
        assert_eq!(known.since(Told::default()).0.declare.len(), 2);
        known.forget_class("A");
        assert_eq!(known.session_class("A"), None);
        assert!(known.session_class("B").is_some());
    }

    #[test]
    fn a_base_moves_by_loading_and_flushing_only() {
        let file = |text: &str| SourceText {
            path: "src/a.bt".to_owned(),
            package: Some("one".to_owned()),
            origin: TextOrigin::Package,
            ..session(text)
        };
        let mut known = Known::default();
        known.load(vec![file("Object subclass: A\n  x => 1\n")]);
        known.declare(vec![file("Object subclass: A\n  x => 2\n")]);
        assert_eq!(
            known.base(Some("one"), "src/a.bt"),
            Some("Object subclass: A\n  x => 1\n")
        );
        assert_eq!(known.bases(Some("one")).len(), 1);
        known.forget_class("A");
        assert!(known.file(Some("one"), "src/a.bt").is_none());
        assert!(known.base(Some("one"), "src/a.bt").is_some());
        known.set_base(Some("one"), "src/a.bt", None);
        assert_eq!(known.bases(Some("one")).len(), 0);
    }
}
