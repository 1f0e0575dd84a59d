//! `beamtalk doc`: HTML from documentation comments.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use anyhow::Context;
use beamtalk_project::build::Package;
use beamtalk_project::files;
use beamtalk_project::findings::{self, Counts, Policy};
use beamtalk_project::lock::Locking;
use beamtalk_project::site::{Kind, Site, entries};
use beamtalk_project::source::Text;
use beamtalk_syntax::diagnostic::Severity;

use super::check::readable;
use crate::exit::{Exit, Fault};
use crate::terminal::Terminal;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A project directory, a directory or a `.bt` file.
    #[arg(default_value = ".")]
    path: PathBuf,
    /// Where the pages go; relative to the project.
    #[arg(long, value_name = "DIR", default_value = "docs/api")]
    output: PathBuf,
    /// Add the standard library, the README and the pages in `docs/`.
    #[arg(long)]
    site: bool,
}

/// The list of pages of the last run, so that pages of classes that are gone go too.
const LIST: &str = ".beamtalk-doc";

pub(crate) fn run(terminal: &mut Terminal, arguments: &Arguments) -> anyhow::Result<Exit> {
    let package = readable(terminal, &arguments.path, Locking::Follow)?;
    let mut site = Site {
        title: package.name().unwrap_or("API").to_owned(),
        ..Site::default()
    };
    library(&mut site, arguments.site);
    let of_library = site.documented.len();
    let mut counts = Counts::default();
    for package in package.in_order() {
        add_package(terminal, &mut site, package, &mut counts)?;
    }
    // A directory without any class is somewhere else than one meant.
    if site.documented.len() == of_library && counts.errors == 0 {
        let root = package.project.root.display();
        return Err(Fault::usage(
            "no_classes",
            format!("there are no classes to document in {root}"),
        )
        .with_hint("run it in a project, or name one: beamtalk doc PATH")
        .into());
    }
    if arguments.site {
        site.guide = guide(&package.project.root)?;
    }
    let output = package.project.root.join(&arguments.output);
    let pages = site.pages();
    write(&output, &pages)?;
    let shown = files::shown(&output, &package.project.root);
    if terminal.is_json() {
        let classes: Vec<&String> = site.documented.iter().collect();
        terminal.print(serde_json::json!({"output": shown, "pages": pages.len(), "documented": classes}))?;
    } else if !terminal.is_quiet {
        terminal.print(format_args!("{} pages in {shown}/", pages.len()))?;
    }
    if counts.errors > 0 {
        return Err(Fault::failure("syntax_error", "files with syntax errors are not documented").into());
    }
    Ok(Exit::Success)
}

/// The standard library: always known, shown only in a whole site.
fn library(site: &mut Site, is_shown: bool) {
    for (name, text) in beamtalk_node::library_sources() {
        let path = format!("lib/{name}");
        let unit = beamtalk_syntax::parse_file(text).unit;
        for entry in entries("", &path, text, &unit) {
            site.add(entry, is_shown);
        }
        if is_shown {
            site.sources.insert(path, text.to_owned());
        }
    }
}

fn add_package(
    terminal: &mut Terminal,
    site: &mut Site,
    package: &Package,
    counts: &mut Counts,
) -> anyhow::Result<()> {
    let mut extensions = Vec::new();
    let name = package.name().unwrap_or("Classes");
    for path in package.sources()? {
        let text = Text::read(&path, &package.project.root)?;
        let parsed = text.parse(package.name(), "", beamtalk_compiler::Origin::Package);
        let is_broken = parsed
            .diagnostics
            .iter()
            .any(|diagnostic| diagnostic.severity == Severity::Error);
        if is_broken && !package.is_dependency {
            findings::report(terminal, &parsed.findings(&[]), &Policy::default(), counts)?;
            continue;
        }
        let file = parsed.file;
        for entry in entries(name, &file.path, &file.text, &file.unit) {
            match entry.kind {
                Kind::Extensions if package.is_dependency => {}
                Kind::Extensions => extensions.push(entry),
                Kind::Class | Kind::Protocol | Kind::Alias => site.add(entry, !package.is_dependency),
            }
        }
        if !package.is_dependency {
            site.sources.insert(file.path.to_string(), file.text.to_string());
        }
    }
    extensions
        .into_iter()
        .for_each(|extension| site.extend(extension));
    Ok(())
}

/// README and the Markdown files directly in `docs/`.
fn guide(root: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let mut pages = BTreeMap::new();
    let mut read = |name: String, path: &Path| -> anyhow::Result<()> {
        let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        pages.insert(name, String::from_utf8_lossy(&bytes).into_owned());
        Ok(())
    };
    let readme = root.join("README.md");
    if readme.is_file() {
        read("index".to_owned(), &readme)?;
    }
    let directory = root.join("docs");
    if directory.is_dir() {
        for path in files::find(&directory, &["md"])? {
            let is_direct = path.parent() == Some(&directory);
            if let (true, Some(stem)) = (is_direct, path.file_stem().and_then(|stem| stem.to_str())) {
                read(stem.to_owned(), &path)?;
            }
        }
    }
    Ok(pages)
}

fn write(output: &Path, pages: &BTreeMap<String, String>) -> anyhow::Result<()> {
    let old = std::fs::read_to_string(output.join(LIST)).unwrap_or_default();
    for (path, content) in pages {
        let path = output.join(path);
        let directory = path.parent().unwrap_or(output);
        std::fs::create_dir_all(directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
        if std::fs::read(&path).ok().as_deref() != Some(content.as_bytes()) {
            files::write_atomic(&path, content.as_bytes())?;
        }
    }
    for name in old.lines().filter(|name| !pages.contains_key(*name)) {
        let is_below = Path::new(name)
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        if is_below && files::has_extension(Path::new(name), &["html"]) {
            // Already gone is as good as removed.
            drop(std::fs::remove_file(output.join(name)));
        }
    }
    let list: Vec<&str> = pages.keys().map(String::as_str).collect();
    files::write_atomic(&output.join(LIST), format!("{}\n", list.join("\n")).as_bytes())?;
    Ok(())
}
