//! Taking declarations out again, for whoever follows texts while they are edited.

use std::sync::Arc;

use beamtalk_syntax::ast::Item;

use super::{ClassTable, Origin, Tables, is_protected, is_same_file};
use crate::SourceFile;
use crate::reads::Key;

impl ClassTable {
    /// Remove what a file declared, as [`ClassTable::keep`] answered it. A name that another file declares too is gone
    /// as well: whoever withdraws a file declares such others again.
    pub fn withdraw(&mut self, file: &SourceFile) {
        let tables = Arc::make_mut(&mut self.tables);
        tables.subclasses = std::sync::OnceLock::new();
        for item in &file.unit.items {
            match item {
                Item::Class(class) => {
                    let name = &class.name.text;
                    if is_protected(tables, file.origin, name) {
                        continue;
                    }
                    let is_own =
                        |known: &super::Slot| known.path == file.path && known.package == file.package;
                    if tables.classes.get(name).is_some_and(is_own) {
                        tables.classes.remove(name);
                    }
                    for method in class.methods.iter().filter(|method| !method.is_class) {
                        forget(tables, file, &method.head.selector);
                    }
                }
                Item::Protocol(protocol) => {
                    let name = &protocol.name.text;
                    if tables
                        .protocols
                        .get(name)
                        .is_some_and(|known| known.path == file.path)
                    {
                        tables.protocols.remove(name);
                    }
                }
                Item::TypeAlias(alias) => {
                    let name = &alias.name.text;
                    if tables
                        .aliases
                        .get(name)
                        .is_some_and(|known| known.path == file.path && known.package == file.package)
                    {
                        tables.aliases.remove(name);
                    }
                }
                Item::Extension(extension) if !extension.method.is_class => {
                    forget(tables, file, &extension.method.head.selector);
                }
                Item::Extension(_) | Item::Statement(_) => {}
            }
        }
        tables.extensions.retain(|_, entries| {
            entries.retain(|entry| !is_same_file(&entry.source, file));
            !entries.is_empty()
        });
    }
}

/// One definition less of a selector outside the library.
fn forget(tables: &mut Tables, file: &SourceFile, selector: &str) {
    if file.origin == Origin::Library {
        return;
    }
    let key = Key::user(selector);
    if let Some(count) = tables.user_selectors.get_mut(&key) {
        *count -= 1;
        if *count == 0 {
            tables.user_selectors.remove(&key);
        }
    }
}
