//! Names across packages: which class a name means in a file, and whether the file may use it.
//!
//! Names are resolved once, on the tree, before anything else looks at it. A name that several packages declare is
//! written `package@Name` from then on, in the table and in the running system, so that both classes can live side by
//! side; only the package that is built keeps the plain name for a class of its own.

mod walk;

use std::borrow::Cow;
use std::collections::BTreeSet;

use beamtalk_syntax::ast::{ClassRef, Item, Name};
use beamtalk_syntax::diagnostic::{Category, Diagnostic, Severity};
use beamtalk_syntax::span::Span;
use ecow::{EcoString, eco_format};

use crate::reads::Key;
use crate::table::ClassTable;
use crate::{SourceFile, codes};

/// The packages of a program, dependencies first, the one that is built last.
#[derive(Clone, Debug, Default)]
pub struct Packages {
    all: Vec<Names>,
    /// Names that more than one package declares.
    shared: BTreeSet<EcoString>,
}

#[derive(Clone, Debug)]
struct Names {
    package: EcoString,
    uses: Vec<EcoString>,
    dependencies: Dependencies,
    public: BTreeSet<EcoString>,
    internal: BTreeSet<EcoString>,
}

/// How a package looks at classes that a dependency of a dependency brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dependencies {
    /// A warning.
    Lenient,
    /// An error: `strict-deps = true`.
    Strict,
}

impl Names {
    fn declares(&self, name: &str) -> bool {
        self.public.contains(name) || self.internal.contains(name)
    }
}

impl Packages {
    /// Add a package that uses others, which must be there already.
    pub fn add<'a>(
        &mut self,
        package: &str,
        uses: impl Iterator<Item = &'a str>,
        dependencies: Dependencies,
    ) {
        self.all.push(Names {
            package: package.into(),
            uses: uses.map(EcoString::from).collect(),
            dependencies,
            public: BTreeSet::new(),
            internal: BTreeSet::new(),
        });
    }

    /// Note what a file of one of the packages declares, whether or not its names are resolved already.
    pub fn declare(&mut self, file: &SourceFile) {
        let names = file.unit.items.iter().filter_map(|item| match item {
            Item::Class(class) => Some((&class.name.text, class.modifiers.is_internal)),
            Item::Protocol(protocol) => Some((&protocol.name.text, false)),
            Item::TypeAlias(alias) => Some((&alias.name.text, alias.is_internal)),
            Item::Extension(_) | Item::Statement(_) => None,
        });
        self.declare_names(file.package.as_deref(), names);
    }

    /// The same for a file that is known by its names only, each with whether it is internal.
    pub fn declare_names<'a>(
        &mut self,
        package: Option<&str>,
        names: impl Iterator<Item = (&'a EcoString, bool)>,
    ) {
        for (name, is_internal) in names {
            let name = &name
                .split_once('@')
                .map_or(name.clone(), |(_, plain)| plain.into());
            let is_own = |names: &Names| package == Some(names.package.as_str());
            // A session declares names of its own, beside all packages.
            if !self.all.iter().any(is_own) {
                return;
            }
            if self
                .all
                .iter()
                .any(|names| !is_own(names) && names.declares(name))
            {
                self.shared.insert(name.clone());
            }
            if let Some(own) = self.all.iter_mut().find(|names| is_own(names)) {
                let side = if is_internal {
                    &mut own.internal
                } else {
                    &mut own.public
                };
                side.insert(name.clone());
            }
        }
    }

    /// The names that are written with their package; a build that was made with others is out of date.
    pub fn shared_names(&self) -> impl Iterator<Item = &str> {
        self.shared.iter().map(EcoString::as_str)
    }

    fn find(&self, package: &str) -> Option<&Names> {
        self.all.iter().find(|names| names.package == package)
    }

    /// What a class of a package is called in the table and in the running system.
    fn canonical(&self, owner: &Names, name: &EcoString) -> EcoString {
        let is_built = self
            .all
            .last()
            .is_some_and(|built| built.package == owner.package);
        if self.shared.contains(name) && !is_built {
            eco_format!("{}@{name}", owner.package)
        } else {
            name.clone()
        }
    }

    /// The packages below one, nearest first, each with the package that uses it.
    fn below<'a>(&'a self, viewer: &'a Names) -> Vec<(&'a Names, &'a Names)> {
        let mut found: Vec<(&Names, &Names)> = Vec::new();
        let mut waiting = vec![viewer];
        let mut at = 0;
        while let Some(user) = waiting.get(at).copied() {
            for names in user.uses.iter().filter_map(|name| self.find(name)) {
                if !found.iter().any(|(known, _)| known.package == names.package) {
                    found.push((names, user));
                    waiting.push(names);
                }
            }
            at += 1;
        }
        found
    }
}

/// A file with every class name resolved, and what was wrong with them.
pub(crate) fn resolve<'a>(
    file: &'a SourceFile,
    table: &ClassTable,
) -> (Cow<'a, SourceFile>, Vec<Diagnostic>) {
    if table.packages().is_none() {
        return (Cow::Borrowed(file), Vec::new());
    }
    let (file, diagnostics) = resolve_own(file.clone(), table);
    (Cow::Owned(file), diagnostics)
}

/// The same for a file that nobody else has.
pub(crate) fn resolve_own(mut file: SourceFile, table: &ClassTable) -> (SourceFile, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    let Some(packages) = table.packages() else {
        return (file, diagnostics);
    };
    // A session and a script look from the package that is built, and are told less strictly.
    let own = file.package.as_deref().and_then(|package| packages.find(package));
    let view = View {
        packages,
        table,
        viewer: own.or(packages.all.last()),
        is_package: own.is_some(),
    };
    view.unit(&mut file.unit, &mut diagnostics);
    (file, diagnostics)
}

/// One file's view of all names.
struct View<'a> {
    packages: &'a Packages,
    table: &'a ClassTable,
    viewer: Option<&'a Names>,
    /// The file belongs to a package.
    is_package: bool,
}

impl View<'_> {
    /// The name that a declaration of this file gives.
    fn declared(&self, name: &EcoString) -> EcoString {
        match self.viewer {
            Some(own) if self.is_package => self.packages.canonical(own, name),
            _ => name.clone(),
        }
    }

    /// A class of the package hides one of the same name that comes with a dependency.
    fn hiding(&self, name: &EcoString, span: Span) -> Option<Diagnostic> {
        let own = self.viewer.filter(|_| self.is_package)?;
        self.table.note(|| Key::name(name));
        let hidden = own
            .uses
            .iter()
            .filter_map(|package| self.packages.find(package))
            .find(|names| names.public.contains(name))?;
        let message = eco_format!("class '{name}' hides the one of package '{}'", hidden.package);
        let finding = Diagnostic::warning(codes::HIDDEN_CLASS, span, message)
            .with_category(Category::ShadowedClass)
            .with_hint(eco_format!("write {}@{name} for the other", hidden.package));
        Some(finding)
    }

    fn class(&self, class: &mut ClassRef, diagnostics: &mut Vec<Diagnostic>) {
        let finding = match class.package.take() {
            Some(package) => self.qualified(class, &package.text),
            None => self.bare(class),
        };
        diagnostics.extend(finding);
    }

    /// A name that is written without a package always.
    fn plain(&self, name: &mut Name, diagnostics: &mut Vec<Diagnostic>) {
        let mut class = ClassRef {
            package: None,
            span: name.span,
            name: name.clone(),
        };
        self.class(&mut class, diagnostics);
        *name = class.name;
    }

    fn bare(&self, class: &mut ClassRef) -> Option<Diagnostic> {
        let viewer = self.viewer?;
        let name = class.name.text.clone();
        self.table.note(|| Key::name(&name));
        if viewer.declares(&name) {
            class.name.text = self.packages.canonical(viewer, &name);
            return None;
        }
        if self.table.is_library_class(&name) || (!self.is_package && self.table.is_session_class(&name)) {
            return None;
        }
        let below = self.packages.below(viewer);
        let is_direct = |names: &Names| viewer.uses.contains(&names.package);
        let exporting = |direct: bool| {
            let public = below.iter().filter(|(names, _)| names.public.contains(&name));
            public
                .filter(|(names, _)| is_direct(names) == direct)
                .copied()
                .collect::<Vec<_>>()
        };
        let mut candidates = exporting(true);
        if candidates.is_empty() {
            candidates = exporting(false);
        }
        let Some((last, user)) = candidates.last().copied() else {
            return self.internal(class, below.iter().map(|(names, _)| *names));
        };
        class.name.text = self.packages.canonical(last, &name);
        if candidates.len() > 1 {
            let owners: Vec<EcoString> = candidates
                .iter()
                .map(|(names, _)| names.package.clone())
                .collect();
            return Some(self.ambiguous(&name, class.span, &owners));
        }
        self.indirect(last, user, &name, class.span)
    }

    fn qualified(&self, class: &mut ClassRef, package: &EcoString) -> Option<Diagnostic> {
        let name = class.name.text.clone();
        self.table.note(|| Key::name(&name));
        if package == "stdlib" {
            return None;
        }
        let viewer = self.viewer;
        let own = viewer.filter(|viewer| viewer.package == *package);
        let found = own.map(|own| (own, own)).or_else(|| {
            let below = self.packages.below(viewer?);
            below.into_iter().find(|(names, _)| names.package == *package)
        });
        let Some((owner, user)) = found else {
            let message =
                eco_format!("Unknown package '{package}' in qualified reference '{package}@{name}'");
            let hint = eco_format!("add '{package}' to [dependencies] in beamtalk.toml");
            class.package = Some(Name {
                text: package.clone(),
                span: class.span,
            });
            return Some(Diagnostic::error(codes::UNKNOWN_PACKAGE, class.span, message).with_hint(hint));
        };
        if own.is_some() || owner.public.contains(&name) {
            class.name.text = self.packages.canonical(owner, &name);
            return self.indirect(owner, user, &name, class.span);
        }
        let refusal = self.internal(class, std::iter::once(owner));
        if refusal.is_none() {
            // Nobody has it: the name says where it was looked for.
            class.name.text = eco_format!("{package}@{name}");
        }
        refusal
    }

    /// A class that another package keeps to itself.
    fn internal<'a>(
        &self,
        class: &mut ClassRef,
        owners: impl Iterator<Item = &'a Names>,
    ) -> Option<Diagnostic> {
        let name = class.name.text.clone();
        let owner = owners.into_iter().find(|names| names.internal.contains(&name))?;
        class.name.text = self.packages.canonical(owner, &name);
        let user = self.viewer.filter(|_| self.is_package)?;
        let message = eco_format!(
            "Class '{name}' is internal to package '{}' and cannot be referenced from '{}'",
            owner.package,
            user.package
        );
        Some(
            Diagnostic::error(codes::INTERNAL_CLASS, class.span, message).with_category(Category::Visibility),
        )
    }

    fn ambiguous(&self, name: &str, span: Span, owners: &[EcoString]) -> Diagnostic {
        let quoted: Vec<String> = owners.iter().map(|owner| format!("'{owner}'")).collect();
        let message = eco_format!(
            "Class name '{name}' is exported by multiple dependencies: {}",
            quoted.join(" and ")
        );
        let first = owners.first().map_or("", EcoString::as_str);
        let severity = if self.is_package {
            Severity::Error
        } else {
            Severity::Warning
        };
        Diagnostic::new(codes::AMBIGUOUS_CLASS, severity, span, message)
            .with_category(Category::Dependency)
            .with_hint(eco_format!(
                "write {first}@{name}, or the same with another package"
            ))
    }

    /// A class of a package that the manifest does not name.
    fn indirect(&self, owner: &Names, user: &Names, name: &str, span: Span) -> Option<Diagnostic> {
        let viewer = self.viewer.filter(|_| self.is_package)?;
        if viewer.package == owner.package || viewer.uses.contains(&owner.package) {
            return None;
        }
        let severity = match viewer.dependencies {
            Dependencies::Lenient => Severity::Warning,
            Dependencies::Strict => Severity::Error,
        };
        let message = eco_format!(
            "class '{name}' comes from '{}', a dependency of '{}'",
            owner.package,
            user.package
        );
        let finding = Diagnostic::new(codes::INDIRECT_CLASS, severity, span, message)
            .with_category(Category::Dependency)
            .with_hint(eco_format!(
                "add '{}' to [dependencies] in beamtalk.toml",
                owner.package
            ));
        Some(finding)
    }
}
