//! `beamtalk lint`: everything `check` finds, and what is correct but better written otherwise.

use std::path::{Path, PathBuf};

use beamtalk_compiler::lint::{Native, fix, lint_file, lint_native};
use beamtalk_project::build::Package;
use beamtalk_project::files;
use beamtalk_project::findings::severity::Warnings;
use beamtalk_project::findings::{self, Counts, FileFindings, Finding, Policy, json};
use beamtalk_project::lock::Locking;
use beamtalk_project::source::{self, Parsed, Text};
use beamtalk_syntax::diagnostic::{Diagnostic, Severity};
use beamtalk_syntax::span::LineIndex;

use super::build::policy;
use super::check::{Sources, below, read, readable, refuse_nothing, summarise};
use crate::exit::{Exit, Fault};
use crate::terminal::Terminal;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A project directory, a directory or a `.bt` file.
    #[arg(default_value = ".")]
    path: PathBuf,
    /// Remove needless `^`, parentheses and unused `@expect`.
    #[arg(long)]
    fix: bool,
}

/// A fix may make another one possible: parentheses in parentheses.
const ROUNDS: usize = 8;

pub(crate) fn run(terminal: &mut Terminal, arguments: &Arguments) -> anyhow::Result<Exit> {
    let package = readable(terminal, &arguments.path, Locking::Follow)?;
    if arguments.fix {
        fix_all(terminal, &package, &arguments.path)?;
    }
    let (all, policy) = look(&package, &arguments.path)?;
    let mut counts = Counts::default();
    for file in &all {
        findings::report(terminal, file, &policy, &mut counts)?;
    }
    summarise(terminal, &counts, all.len())?;
    let remaining = counts.errors + counts.warnings + counts.lints;
    if remaining > 0 {
        let plural = if remaining == 1 { "" } else { "s" };
        return Err(Fault::failure("lint_findings", format!("{remaining} finding{plural}")).into());
    }
    terminal.status(format_args!("Linted {} files", all.len()));
    Ok(Exit::Success)
}

/// What is found in the files of a package below a path, and what the project makes of it.
fn look(package: &Package, path: &Path) -> anyhow::Result<(Vec<FileFindings>, Policy)> {
    let policy = Policy {
        shows_lint: true,
        ..policy(package, Warnings::Shown)
    };
    let sources = read(package, path)?;
    let mut all = source::parallel(&sources.files, |file| file.findings(&diagnostics(file, &sources)));
    all.extend(native(package, path)?);
    refuse_nothing(package, path, all.len())?;
    Ok((all, policy))
}

/// The same as one line of JSON for each finding.
pub(crate) fn lines(terminal: &mut Terminal, path: &Path) -> anyhow::Result<Vec<String>> {
    let package = readable(terminal, path, Locking::Follow)?;
    let (all, policy) = look(&package, path)?;
    let mut lines = Vec::new();
    for file in &all {
        let index = LineIndex::new(&file.text);
        for finding in file.findings.iter().filter_map(|finding| policy.apply(finding)) {
            lines.push(json::render(&index, &file.path, &file.text, &finding));
        }
    }
    Ok(lines)
}

/// What compiler and linter say. A text that does not parse is not judged by rules about its tree.
fn diagnostics(file: &Parsed, sources: &Sources) -> Vec<Diagnostic> {
    let is_broken = file
        .diagnostics
        .iter()
        .any(|diagnostic| diagnostic.severity == Severity::Error);
    if is_broken {
        beamtalk_compiler::check_file(&file.file, &sources.table)
    } else {
        lint_file(&file.file, &sources.table)
    }
}

fn fix_all(terminal: &mut Terminal, package: &Package, path: &Path) -> anyhow::Result<()> {
    let mut fixed = 0;
    for _ in 0..ROUNDS {
        let sources = read(package, path)?;
        let changes = source::parallel(&sources.files, |file| {
            fix(&file.file.text, &diagnostics(file, &sources)).map(|change| (file.path.clone(), change))
        });
        let mut is_done = true;
        for (path, (text, count)) in changes.into_iter().flatten() {
            files::write_atomic(&path, text.as_bytes())?;
            fixed += count;
            is_done = false;
        }
        if is_done {
            break;
        }
    }
    let plural = if fixed == 1 { "" } else { "s" };
    terminal.status(format_args!("Fixed {fixed} finding{plural}"));
    Ok(())
}

/// The Erlang files of a package.
fn native(package: &Package, path: &Path) -> anyhow::Result<Vec<FileFindings>> {
    let root = &package.project.root;
    let directory = root.join("native");
    if package.project.manifest.is_none() || !directory.is_dir() {
        return Ok(Vec::new());
    }
    let below = below(package, path)?.unwrap_or_else(|| root.clone());
    let paths = files::find(&directory, &["erl", "hrl"])?;
    paths
        .into_iter()
        .filter(|path| path.starts_with(&below))
        .map(|path| {
            let text = Text::read(&path, root)?;
            let module = path
                .file_stem()
                .and_then(|stem| stem.to_str())
                .unwrap_or_default();
            let is_module = path.parent() == Some(&directory) && files::has_extension(&path, &["erl"]);
            let found = lint_native(&Native {
                text: &text.content,
                module,
                package: package.name().filter(|_| is_module),
            });
            Ok(FileFindings {
                path: text.shown.clone(),
                findings: found.iter().map(Finding::from).collect(),
                text: text.content,
            })
        })
        .collect()
}
