//! The files of the project as tools see them; no workspace is needed.

use std::path::Path;

use beamtalk_mcp::{PackageClass, PackageRow};
use beamtalk_project::build::Package;
use beamtalk_project::lock::Locking;
use beamtalk_syntax::ast::Item;

use crate::commands::check::readable;
use crate::terminal::Terminal;

/// What the library is called among the packages.
const LIBRARY: &str = "stdlib";

fn row(package: &Package) -> PackageRow {
    let manifest = package.project.manifest.as_ref();
    let source = package.provenance.as_ref().map(|from| from.source.to_string());
    PackageRow {
        name: package.name().unwrap_or_default().to_owned(),
        version: manifest.map_or_else(String::new, |manifest| manifest.version.clone()),
        source: source.unwrap_or_else(|| "project".to_owned()),
        dependencies: manifest
            .iter()
            .flat_map(|manifest| &manifest.dependencies)
            .map(|dependency| dependency.name.clone())
            .collect(),
    }
}

/// The project itself, what it depends on by name, the library.
pub(super) fn packages(terminal: &mut Terminal, root: &Path) -> anyhow::Result<Vec<PackageRow>> {
    let package = readable(terminal, root, Locking::Follow)?;
    let mut below: Vec<PackageRow> = package.dependencies().iter().map(row).collect();
    below.sort_by(|one, other| one.name.cmp(&other.name));
    let library = PackageRow {
        name: LIBRARY.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        source: "built in".to_owned(),
        dependencies: Vec::new(),
    };
    Ok(std::iter::once(row(&package))
        .chain(below)
        .chain(std::iter::once(library))
        .collect())
}

fn classes_of(text: &str, found: &mut Vec<PackageClass>) {
    for item in beamtalk_syntax::parse_file(text).unit.items {
        if let Item::Class(class) = item {
            found.push((
                class.name.text.to_string(),
                class
                    .superclass
                    .map(|superclass| superclass.name.text.to_string()),
                class.doc.map(|doc| doc.to_string()),
            ));
        }
    }
}

/// The classes in the files of a package.
pub(super) fn package_classes(
    terminal: &mut Terminal,
    root: &Path,
    name: &str,
) -> anyhow::Result<Option<Vec<PackageClass>>> {
    let mut found = Vec::new();
    if name == LIBRARY {
        for (_, text) in beamtalk_node::library_sources() {
            classes_of(text, &mut found);
        }
        return Ok(Some(found));
    }
    let package = readable(terminal, root, Locking::Follow)?;
    let mut all = package.in_order();
    let Some(wanted) = all.find(|package| package.name() == Some(name)) else {
        return Ok(None);
    };
    for path in wanted.sources()? {
        classes_of(&std::fs::read_to_string(&path)?, &mut found);
    }
    Ok(Some(found))
}
