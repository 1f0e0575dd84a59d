//! `beamtalk generate native`: the Erlang module behind a `native:` class, ready to be filled in.

use std::path::Path;

use anyhow::Context;
use beamtalk_compiler::Origin;
use beamtalk_project::build::plan;
use beamtalk_project::generate::skeleton;
use beamtalk_project::source::{self, Text};
use beamtalk_project::{Project, files};

use crate::exit::{Exit, Fault};
use crate::terminal::Terminal;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The class, which has `native: module` in its header.
    class: String,
    /// Replace a module that is there already.
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(terminal: &mut Terminal, arguments: &Arguments) -> anyhow::Result<Exit> {
    let project = Project::require(Path::new("."))?;
    let mut table = source::library_table();
    let mut files = Vec::new();
    for path in project.sources()? {
        let module_path = plan::module_path(&path, &project.root);
        let parsed = Text::read(&path, &project.root)?.parse(project.name(), &module_path, Origin::Package);
        table.declare(&parsed.file);
        files.push(parsed);
    }
    let (module, text) = skeleton(&files, &table, &arguments.class)?;
    let directory = project.root.join("native");
    let path = directory.join(format!("{module}.erl"));
    let shown = files::shown(&path, &project.root);
    if path.exists() && !arguments.force {
        return Err(Fault::usage("exists", format!("{shown} exists already"))
            .with_hint("--force replaces it")
            .into());
    }
    std::fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
    files::write_atomic(&path, text.as_bytes())?;
    if terminal.is_json() {
        terminal.print(serde_json::json!({"class": arguments.class, "module": module, "file": shown}))?;
    } else {
        terminal.print(shown)?;
    }
    Ok(Exit::Success)
}
