//! The files of the image as a worker was told them, with what it found in them. A file is looked at again when its text
//! changed or something that its findings rest on, as `check` does between its runs.

use std::collections::BTreeMap;

use beamtalk_compiler::reads::{Checked, Key, Outline, check_noting};
use beamtalk_compiler::{ClassTable, SourceFile};
use beamtalk_syntax::ast::Item;
use beamtalk_syntax::diagnostic::Diagnostic;
use rustc_hash::FxHashSet;

use super::job::{FileName, SourceText, TextOrigin};
use super::worker::parse;

/// What is known of the findings of a file.
#[derive(Debug, Default)]
enum Found {
    #[default]
    Nothing,
    /// It was looked at, and rests on something that changed.
    Stale,
    Fresh(Looked),
}

/// What a look at a file came to.
#[derive(Clone, Debug, Default)]
pub(super) struct Looked {
    /// Its class; a file of extensions only stands for itself.
    pub(super) owner: String,
    checked: Checked,
}

impl Looked {
    pub(super) fn diagnostics(&self) -> &[Diagnostic] {
        &self.checked.diagnostics
    }

    fn at(text: &SourceText, table: &ClassTable) -> Self {
        let (file, parsed) = parse(text);
        let mut checked = check_noting(&file, table);
        checked.diagnostics.splice(0..0, parsed);
        let class = file.unit.items.iter().find_map(|item| match item {
            Item::Class(class) => Some(class.name.text.to_string()),
            _ => None,
        });
        Self {
            owner: class.unwrap_or_else(|| text.path.clone()),
            checked,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Held {
    files: BTreeMap<(Option<String>, String), (SourceText, Found)>,
    /// Names mean different things in different packages; keys do not tell them apart.
    are_names_shared: bool,
    /// Somebody asked for findings since the files were told.
    is_looked_at: bool,
    /// How many files were looked at, for tests.
    pub(super) looks: usize,
}

impl Held {
    pub(super) fn forget(&mut self) {
        self.files.clear();
        self.is_looked_at = false;
    }

    pub(super) fn set_shared(&mut self, are_names_shared: bool) {
        self.are_names_shared = are_names_shared;
    }

    /// The image has this text now.
    pub(super) fn put(&mut self, text: &SourceText, file: &SourceFile) {
        if self.is_looked_at {
            let changed = self.changed(text, file);
            self.mark(&changed);
        }
        if text.origin != TextOrigin::Session {
            self.files.insert(key(text), (text.clone(), Found::Nothing));
        }
    }

    /// What is different for others when a text comes in the place of what is known.
    fn changed(&self, text: &SourceText, file: &SourceFile) -> Vec<Key> {
        let before = self
            .files
            .get(&key(text))
            .filter(|_| text.origin != TextOrigin::Session);
        let before = before.map_or_else(Outline::default, |(old, _)| Outline::of(&parse(old).0));
        before.changed(&Outline::of(file))
    }

    fn mark(&mut self, changed: &[Key]) {
        for (_, found) in self.files.values_mut() {
            if let Found::Fresh(looked) = found
                && !changed.is_empty()
                && (self.are_names_shared || looked.checked.rests_on(changed))
            {
                *found = Found::Stale;
            }
        }
    }

    /// What is wrong with these files and with those that were looked at before and rest on what changed since, as if
    /// some texts were installed.
    pub(super) fn look(
        &mut self,
        table: &ClassTable,
        names: &[FileName],
        installed: &[SourceText],
    ) -> Vec<(&SourceText, Looked)> {
        self.is_looked_at = true;
        let mut table = table.clone();
        let mut changed = Vec::new();
        for text in installed {
            let (file, _) = parse(text);
            changed.extend(self.changed(text, &file));
            table.take(file);
        }
        changed.sort_unstable();
        changed.dedup();
        let named: FxHashSet<(Option<&str>, &str)> = names
            .iter()
            .map(|name| (name.package.as_deref(), name.path.as_str()))
            .collect();
        let given: Vec<(Option<String>, String)> = installed.iter().map(key).collect();
        let mut all = Vec::new();
        for (key, (text, found)) in &mut self.files {
            let is_named = named.contains(&(key.0.as_deref(), key.1.as_str()));
            let is_reached = match found {
                Found::Nothing => false,
                Found::Stale => true,
                Found::Fresh(looked) => {
                    !changed.is_empty() && (self.are_names_shared || looked.checked.rests_on(&changed))
                }
            };
            if given.contains(key) || !(is_named || is_reached) {
                continue;
            }
            let looked = match found {
                Found::Fresh(looked) if !is_reached => looked.clone(),
                _ => {
                    self.looks += 1;
                    Looked::at(text, &table)
                }
            };
            if installed.is_empty() {
                *found = Found::Fresh(looked.clone());
            }
            all.push((&*text, looked));
        }
        all
    }
}

fn key(text: &SourceText) -> (Option<String>, String) {
    (text.package.clone(), text.path.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(name: &str, text: &str) -> SourceText {
        SourceText {
            path: format!("src/{name}.bt"),
            text: text.to_owned(),
            package: Some("demo".to_owned()),
            module: format!("bt@demo@{name}"),
            origin: TextOrigin::Package,
        }
    }

    struct Image {
        table: ClassTable,
        held: Held,
        names: Vec<FileName>,
    }

    impl Image {
        fn put(&mut self, text: &SourceText) {
            let (file, _) = parse(text);
            self.table.declare(&file);
            self.held.put(text, &file);
            let name = FileName {
                package: text.package.clone(),
                path: text.path.clone(),
                moment: 0,
            };
            if !self.names.iter().any(|known| known.path == name.path) {
                self.names.push(name);
            }
        }

        /// How many files are looked at, and all that is found in them.
        fn look(&mut self, is_named: impl Fn(&str) -> bool) -> (usize, Vec<String>) {
            let before = self.held.looks;
            let names: Vec<FileName> = self
                .names
                .iter()
                .filter(|name| is_named(&name.path))
                .cloned()
                .collect();
            let found = self.held.look(&self.table, &names, &[]);
            let messages = found.iter().flat_map(|(_, looked)| looked.diagnostics());
            let messages = messages.map(|found| found.message.to_string()).collect();
            (self.held.looks - before, messages)
        }
    }

    fn image() -> Image {
        let mut image = Image {
            table: super::super::worker::library(),
            held: Held::default(),
            names: Vec::new(),
        };
        image.put(&text(
            "Lamp",
            "Value subclass: Lamp\n  watts -> Integer => 3\n  label -> String => \"\"\n",
        ));
        image.put(&text(
            "User",
            "Object subclass: User\n  class a: l :: Lamp -> Integer => l watts\n",
        ));
        image.put(&text(
            "Other",
            "Object subclass: Other\n  class b: l :: Lamp -> String => l label\n",
        ));
        image.put(&text("Alone", "Object subclass: Alone\n  class c => 3 + 4\n"));
        image
    }

    /// After a change only the files that rest on it are looked at, whoever is asked for; the findings are those of a
    /// look at everything.
    #[test]
    fn only_what_rests_on_a_change_is_looked_at_again() {
        let mut image = image();
        assert_eq!(image.look(|_| true), (4, vec![]));
        assert_eq!(image.look(|_| true), (0, vec![]));
        image.put(&text(
            "Lamp",
            "Value subclass: Lamp\n  watts -> String => \"3\"\n  label -> String => \"\"\n",
        ));
        let (looks, found) = image.look(|path| path.contains("Lamp"));
        assert_eq!(looks, 2, "its own file and the one that sends it");
        assert!(found.len() == 1 && found[0].contains("Integer"), "{found:?}");
        assert_eq!(image.look(|_| true).0, 0);
        // A body behind a promise concerns nobody else.
        image.put(&text(
            "Lamp",
            "Value subclass: Lamp\n  watts -> String => \"4\"\n  label -> String => \"\"\n",
        ));
        assert_eq!(image.look(|_| true).0, 1);
    }

    /// A text that is not installed is looked at as if it were, and leaves nothing behind.
    #[test]
    fn a_text_can_be_tried() {
        let mut image = image();
        image.look(|_| true);
        let tried = text(
            "Lamp",
            "Value subclass: Lamp\n  watts -> String => \"3\"\n  label -> String => \"\"\n",
        );
        let found = image.held.look(&image.table, &[], std::slice::from_ref(&tried));
        let owners: Vec<&str> = found.iter().map(|(_, looked)| looked.owner.as_str()).collect();
        assert_eq!(owners, ["User"]);
        assert!(!found[0].1.diagnostics().is_empty());
        assert_eq!(image.look(|_| true), (0, vec![]));
    }
}
