//! `beamtalk check`: all diagnostics, no output files.

use std::path::PathBuf;

use beamtalk_compiler::Origin;

use super::build::{package, policy};
use crate::build::plan;
use crate::exit::Exit;
use crate::files;
use crate::findings::severity::Warnings;
use crate::findings::{self, Counts, FileFindings};
use crate::lock::LockArguments;
use crate::source::{self, Text};
use crate::terminal::Terminal;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A project directory or a `.bt` file.
    #[arg(default_value = ".")]
    path: PathBuf,
    /// Warnings and hints fail the check.
    #[arg(long)]
    warnings_as_errors: bool,
    #[command(flatten)]
    lock: LockArguments,
}

pub(crate) fn run(terminal: &mut Terminal, arguments: &Arguments) -> anyhow::Result<Exit> {
    let package = package(terminal, &arguments.path, arguments.lock.into())?;
    let warnings = if arguments.warnings_as_errors {
        Warnings::AsErrors
    } else {
        Warnings::Shown
    };
    let policy = policy(&package, warnings);
    let mut table = source::library_table();
    let mut findings: Vec<FileFindings> = Vec::new();
    for package in package.in_order() {
        let root = &package.project.root;
        let mut paths: Vec<(PathBuf, Origin)> = package
            .sources()?
            .into_iter()
            .map(|path| (path, Origin::Package))
            .collect();
        let tests = root.join("test");
        if !package.is_dependency && package.project.manifest.is_some() && tests.is_dir() {
            paths.extend(
                files::find(&tests, &["bt"])?
                    .into_iter()
                    .map(|path| (path, Origin::Test)),
            );
        }
        let mut parsed = Vec::new();
        for (path, origin) in paths {
            let text = Text::read(&path, root)?;
            let module_path = plan::module_path(&path, root);
            let file = text.parse(package.name(), &module_path, origin);
            table.declare(&file.file);
            parsed.push(file);
        }
        if !package.is_dependency {
            let table = &table;
            findings = source::parallel(&parsed, |file| {
                file.findings(&beamtalk_compiler::compile_file(&file.file, table).diagnostics)
            });
        }
    }
    let mut counts = Counts::default();
    for file in &findings {
        findings::report(terminal, file, &policy, &mut counts)?;
    }
    if terminal.is_json() {
        terminal
            .print(serde_json::json!({"summary": {"files": findings.len(), "findings": counts.to_json()}}))?;
    } else if !counts.is_empty() {
        terminal.status(counts.table());
    }
    if counts.errors > 0 {
        if terminal.is_json() {
            return Ok(Exit::Failure);
        }
        return Err(crate::build::compile_failed(&counts).into());
    }
    terminal.status(format_args!("Checked {} files", findings.len()));
    Ok(Exit::Success)
}
