//! Native Erlang of a package: `native/*.erl`, compiled by the node with its warnings shown.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use beamtalk_etf::{Term, read};
use beamtalk_node::Worker;

use super::graph::{Package, native_output};
use super::{Plan, Scope, path_term};
use crate::error::{At, Result};
use crate::fault::Fault;
use crate::files;
use crate::progress::Progress;

const INDEX: &str = ".beamtalk-native.json";

/// Find the files of a package that must be compiled again: all of them when any of them, a header, a class or Erlang
/// changed.
pub fn plan(package: &Package, plan: &mut Plan, scope: Scope, erlang: &str) -> Result<()> {
    let Some(directory) = package.native_directory() else {
        return Ok(());
    };
    let mut now = hashes(&directory)?;
    now.insert(
        "<classes>".to_owned(),
        files::hash(class_header(&plan.classes).as_bytes()),
    );
    now.insert("<erlang>".to_owned(), erlang.to_owned());
    plan.native_index = serde_json::to_vec(&now).expect("a map of texts");
    let old = files::read_kept(&native_output(&plan.output).join(INDEX));
    if scope == Scope::Everything || old.as_ref() != Some(&plan.native_index) {
        plan.native = sources(&directory)?;
    }
    Ok(())
}

/// Two packages with a module of one name cannot be loaded together.
pub fn check_names(plans: &[Plan]) -> Result<()> {
    let mut seen: BTreeMap<OsString, &Plan> = BTreeMap::new();
    for plan in plans {
        for path in sources(&plan.root.join("native"))? {
            let stem = path.file_stem().unwrap_or_default().to_owned();
            if let Some(other) = seen.insert(stem.clone(), plan) {
                let name = |plan: &Plan| plan.name.clone().unwrap_or_default();
                let message = format!(
                    "the native module '{}' is in '{}' and in '{}'",
                    stem.display(),
                    name(other),
                    name(plan)
                );
                return Err(Fault::failure("module_conflict", message)
                    .with_hint("start the names of native modules with the package's name")
                    .into());
            }
        }
    }
    Ok(())
}

/// Remove modules whose source is gone.
pub fn remove_stale(plan: &Plan) -> Result<()> {
    let output = native_output(&plan.output);
    if !output.is_dir() {
        return Ok(());
    }
    let known: Vec<OsString> = sources(&plan.root.join("native"))?
        .iter()
        .filter_map(|path| path.file_stem().map(OsString::from))
        .collect();
    for beam in files::find(&output, &["beam"])? {
        if !beam
            .file_stem()
            .is_some_and(|stem| known.iter().any(|known| known == stem))
        {
            std::fs::remove_file(&beam).at("cannot remove", &beam)?;
        }
    }
    Ok(())
}

fn sources(directory: &Path) -> Result<Vec<PathBuf>> {
    if !directory.is_dir() {
        return Ok(Vec::new());
    }
    let mut found = files::find(directory, &["erl"])?;
    found.retain(|path| path.parent() == Some(directory));
    Ok(found)
}

fn hashes(directory: &Path) -> Result<BTreeMap<String, String>> {
    files::find(directory, &["erl", "hrl"])?
        .iter()
        .map(|path| {
            let bytes = beamtalk_storage::read_written(path).at("cannot read", path)?;
            Ok((files::shown(path, directory), files::hash(&bytes)))
        })
        .collect()
}

/// Compile the native files of a plan.
pub fn compile(progress: &mut dyn Progress, worker: &mut Worker, plan: &Plan) -> Result<()> {
    if plan.native.is_empty() {
        return Ok(());
    }
    let directory = plan.root.join("native");
    let output = native_output(&plan.output);
    let include = output.with_file_name("include");
    std::fs::create_dir_all(&output).at("cannot create", &output)?;
    std::fs::create_dir_all(&include).at("cannot create", &include)?;
    files::write_atomic(
        &include.join("beamtalk_classes.hrl"),
        class_header(&plan.classes).as_bytes(),
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
    let (is_ok, lines) = match read::tagged(&reply) {
        Some(("native", [Term::Atom(outcome), lines])) => (outcome == "ok", read::texts(lines)),
        _ => return Err(beamtalk_node::Error::unexpected(&reply).into()),
    };
    for line in lines {
        progress.error(line.trim_end());
    }
    if !is_ok {
        return Err(Fault::failure("compile_error", "native Erlang code does not compile").into());
    }
    files::write_atomic(&output.join(INDEX), &plan.native_index)
}

/// Macros that name the module of each class, so that native code spells none itself.
fn class_header(classes: &BTreeMap<String, String>) -> String {
    let mut header = String::from("%% Made by beamtalk build: the module of each class.\n");
    for (class, module) in classes {
        // Writing to a String cannot fail.
        let _ = writeln!(header, "-define('BT_{class}', '{module}').");
    }
    header
}
