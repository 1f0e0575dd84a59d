//! `beamtalk generate stubs`: a typed class for each Erlang module, made from the types its `.beam` file carries.
//!
//! The class is a native one: its methods call the functions of the module. Copied into `src/` it gives completion,
//! documentation and checks for the module.

use std::path::{Path, PathBuf};

use anyhow::Context;
use beamtalk_node::Erlang;
use beamtalk_project::build::graph;
use beamtalk_project::generate::{is_word, stub};
use beamtalk_project::specs::Specs;
use beamtalk_project::{Project, files};

use crate::exit::{Exit, Fault};
use crate::terminal::Terminal;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Erlang modules: of OTP, or of the project's `native/`.
    #[arg(required = true, value_name = "MODULE")]
    modules: Vec<String>,
    /// A further directory of `.beam` files.
    #[arg(long, value_name = "D")]
    native_dir: Option<PathBuf>,
    /// Where the classes are written.
    #[arg(short, value_name = "DIR", default_value = "stubs")]
    output: PathBuf,
}

pub(crate) fn run(terminal: &mut Terminal, arguments: &Arguments) -> anyhow::Result<Exit> {
    for module in &arguments.modules {
        if !is_word(module) {
            return Err(Fault::usage("bad_module", format!("'{module}' is not a module name")).into());
        }
    }
    let directories = directories(arguments)?;
    let erlang = Erlang::find()?;
    let specs = Specs::new(directories, Some(&erlang));
    // All modules are read before the first file is written.
    let mut stubs = Vec::new();
    for module in &arguments.modules {
        let functions = match specs.find(module) {
            Some(path) => specs.functions(module, &path).map_err(|fault| fault.to_string()),
            None => Err("no .beam file is on the code path".to_owned()),
        };
        let functions = functions.map_err(|text| {
            Fault::failure("module_not_found", format!("module '{module}': {text}")).with_hint(
                "build the project first, or name the directory of the .beam file with --native-dir",
            )
        })?;
        stubs.push((module, stub(module, &functions)?));
    }
    let output = &arguments.output;
    std::fs::create_dir_all(output).with_context(|| format!("cannot create {}", output.display()))?;
    let mut written = Vec::new();
    for (module, text) in stubs {
        let path = output.join(format!("{module}.bt"));
        files::write_atomic(&path, text.as_bytes())?;
        if !terminal.is_json() {
            terminal.print(path.display())?;
        }
        written.push(path);
    }
    if terminal.is_json() {
        terminal.print(serde_json::json!({ "files": written }))?;
    }
    Ok(Exit::Success)
}

/// Where `.beam` files are looked for before OTP's own.
fn directories(arguments: &Arguments) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    if let Some(directory) = &arguments.native_dir {
        if !directory.is_dir() {
            let message = format!("{} is not a directory", directory.display());
            return Err(Fault::usage("path_missing", message).into());
        }
        found.push(directory.clone());
    }
    if let Some(project) = Project::find(Path::new("."))? {
        found.push(graph::native_output(&project.output()));
    }
    Ok(found)
}
