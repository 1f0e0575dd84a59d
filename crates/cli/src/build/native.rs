//! Native Erlang of a package: `native/*.erl`, compiled by the node with its warnings shown.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context;
use beamtalk_etf::Term;
use beamtalk_node::Worker;

use super::graph::native_output;
use super::{Plan, Scope, path_term};
use crate::exit::Fault;
use crate::files;
use crate::terminal::Terminal;
use crate::wire;

const INDEX: &str = ".beamtalk-native.json";

/// The files below `native/` that must be compiled again: all of them when any header or the file
/// itself changed.
pub(crate) fn changed(directory: &Path, output: &Path, scope: Scope) -> anyhow::Result<Vec<PathBuf>> {
    let now = hashes(directory)?;
    let is_current =
        scope == Scope::Changed && std::fs::read(output.join(INDEX)).ok() == serde_json::to_vec(&now).ok();
    if is_current {
        return Ok(Vec::new());
    }
    sources(directory)
}

fn sources(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = files::find(directory, &["erl"])?;
    found.retain(|path| path.parent() == Some(directory));
    Ok(found)
}

fn hashes(directory: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    files::find(directory, &["erl", "hrl"])?
        .iter()
        .map(|path| {
            let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
            Ok((files::shown(path, directory), files::hash(&bytes)))
        })
        .collect()
}

/// Compile the native files of a plan.
pub(crate) fn compile(terminal: &mut Terminal, worker: &mut Worker, plan: &Plan) -> anyhow::Result<()> {
    if plan.native.is_empty() {
        return Ok(());
    }
    let directory = plan.root.join("native");
    let output = native_output(&plan.output);
    let include = output.with_file_name("include");
    std::fs::create_dir_all(&output).with_context(|| format!("cannot create {}", output.display()))?;
    std::fs::create_dir_all(&include).with_context(|| format!("cannot create {}", include.display()))?;
    files::write_atomic(
        &include.join("beamtalk_classes.hrl"),
        class_header(plan).as_bytes(),
    )?;
    let includes = [directory.join("include"), include];
    let request = Term::tuple([
        Term::atom("native"),
        Term::list(plan.native.iter().map(|path| path_term(path))),
        path_term(&output),
        Term::list(includes.iter().map(|path| path_term(path))),
    ]);
    worker.send(&request)?;
    let reply = worker.receive()?;
    let (is_ok, lines) = match wire::tagged(&reply) {
        Some(("native", [Term::Atom(outcome), lines])) => (outcome == "ok", wire::texts(lines)),
        _ => return Err(wire::unexpected(&reply)),
    };
    for line in lines {
        terminal.error(line.trim_end());
    }
    if !is_ok {
        return Err(Fault::failure("compile_error", "native Erlang code does not compile").into());
    }
    files::write_atomic(&output.join(INDEX), &serde_json::to_vec(&hashes(&directory)?)?)
}

/// Macros that name the module of each class, so that native code spells none itself.
fn class_header(plan: &Plan) -> String {
    let mut header = String::from("%% Made by beamtalk build: the module of each class.\n");
    for module in &plan.modules {
        if let Some(class) = &module.class {
            // Writing to a String cannot fail.
            let _ = writeln!(header, "-define('BT_{class}', '{}').", module.name);
        }
    }
    header
}
