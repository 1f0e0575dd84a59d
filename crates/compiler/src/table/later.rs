//! Classes whose text is read when somebody asks for them.

use std::fmt;
use std::sync::{Arc, OnceLock};

use beamtalk_syntax::ast::Item;
use ecow::EcoString;

use super::{ClassEntry, ClassTable, Origin, class_entry, is_protected};
use crate::SourceFile;
use crate::reads::{ClassOutline, Key, Outline};

/// A text that is parsed when it is needed.
pub struct Later {
    path: EcoString,
    package: Option<EcoString>,
    origin: Origin,
    parse: Box<dyn Fn() -> SourceFile + Send + Sync>,
    /// With its names resolved.
    file: OnceLock<Arc<SourceFile>>,
}

impl Later {
    /// `parse` answers the file of this path, package and origin.
    pub fn new(
        path: EcoString,
        package: Option<EcoString>,
        origin: Origin,
        parse: impl Fn() -> SourceFile + Send + Sync + 'static,
    ) -> Self {
        Self {
            path,
            package,
            origin,
            parse: Box::new(parse),
            file: OnceLock::new(),
        }
    }

    fn file(&self, table: &ClassTable) -> &Arc<SourceFile> {
        self.file.get_or_init(|| {
            // What is wrong with its names is told when the file is compiled.
            let (file, _) = crate::packages::resolve_own((self.parse)(), table);
            Arc::new(file)
        })
    }
}

impl fmt::Debug for Later {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Later({})", self.path)
    }
}

/// A class in the table, with as much of it as is known without its tree.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) key: Key,
    pub(super) superclass: Option<EcoString>,
    pub(super) origin: Origin,
    pub(super) package: Option<EcoString>,
    pub(super) path: EcoString,
    entry: OnceLock<Option<Arc<ClassEntry>>>,
    /// Where the tree comes from: the file, and the number of the item.
    later: Option<(Arc<Later>, usize)>,
}

impl Slot {
    pub(super) fn ready(entry: ClassEntry) -> Self {
        Self {
            key: entry.key,
            superclass: entry.superclass.clone(),
            origin: entry.origin,
            package: entry.package.clone(),
            path: entry.path.clone(),
            entry: OnceLock::from(Some(Arc::new(entry))),
            later: None,
        }
    }

    /// The whole class. None when its file is no longer what it was outlined from.
    pub(super) fn entry(&self, table: &ClassTable) -> Option<&ClassEntry> {
        let read = || {
            let (later, item) = self.later.as_ref()?;
            let source = later.file(&table.without_reads());
            match source.unit.items.get(*item)? {
                Item::Class(class) => Some(Arc::new(class_entry(source, *item, class))),
                _ => None,
            }
        };
        self.entry.get_or_init(read).as_deref()
    }
}

impl ClassTable {
    /// The same table, with nobody who wants to know what is asked.
    fn without_reads(&self) -> Self {
        Self {
            tables: Arc::clone(&self.tables),
            reads: None,
        }
    }

    /// Add the classes of a file that declares nothing else; its text is parsed when one of them is asked for. Answers
    /// whether that could be done; if not, nothing was added. The names in it must mean the same in every package.
    pub fn declare_later(&mut self, outline: &Outline, later: &Arc<Later>) -> bool {
        let Some(classes) = &outline.classes else {
            return false;
        };
        let is_refused = |class: &ClassOutline| is_protected(&self.tables, later.origin, &class.name);
        if classes.iter().any(is_refused) {
            return false;
        }
        let tables = Arc::make_mut(&mut self.tables);
        tables.subclasses = OnceLock::new();
        for class in classes {
            let slot = Slot {
                key: Key::class(&class.name),
                superclass: class.superclass.clone(),
                origin: later.origin,
                package: later.package.clone(),
                path: later.path.clone(),
                entry: OnceLock::new(),
                later: Some((Arc::clone(later), class.item)),
            };
            tables.classes.insert(class.name.clone(), slot);
        }
        for key in &outline.selectors {
            *tables.user_selectors.entry(*key).or_default() += 1;
        }
        true
    }
}
