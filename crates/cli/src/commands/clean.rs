//! `beamtalk clean`: remove what was built, and nothing outside `_build/`.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use beamtalk_project::{Project, files};

use crate::exit::{Exit, Fault};
use crate::terminal::Terminal;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Remove only fetched and built dependencies.
    #[arg(long, conflicts_with = "all")]
    deps: bool,
    /// Remove the whole of `_build/`, dependencies too.
    #[arg(long)]
    all: bool,
    /// Show what would be removed.
    #[arg(long)]
    dry_run: bool,
}

/// What of `_build/` goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    Own,
    Dependencies,
    Everything,
}

pub(crate) fn run(terminal: &mut Terminal, arguments: &Arguments) -> anyhow::Result<Exit> {
    let extent = match (arguments.deps, arguments.all) {
        (true, _) => Extent::Dependencies,
        (_, true) => Extent::Everything,
        _ => Extent::Own,
    };
    let project = Project::require(Path::new("."))?;
    let paths = doomed(&project.root, extent)?;
    for path in &paths {
        if !arguments.dry_run {
            remove(path)?;
        }
        if !terminal.is_json() {
            let verb = if arguments.dry_run {
                "Would remove"
            } else {
                "Removed"
            };
            terminal.print(format_args!("{verb} {}", files::shown(path, &project.root)))?;
        }
    }
    if terminal.is_json() {
        let shown: Vec<String> = paths
            .iter()
            .map(|path| files::shown(path, &project.root))
            .collect();
        let key = if arguments.dry_run {
            "would_remove"
        } else {
            "removed"
        };
        terminal.print(serde_json::json!({ key: shown }))?;
    } else if paths.is_empty() {
        terminal.status("Nothing to remove");
    }
    Ok(Exit::Success)
}

/// The entries of `_build/` to remove. A `_build` that leads elsewhere is refused: it is not ours to empty.
fn doomed(root: &Path, extent: Extent) -> anyhow::Result<Vec<PathBuf>> {
    let build = root.join("_build");
    let metadata = match std::fs::symlink_metadata(&build) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", build.display())),
    };
    if !metadata.is_dir() {
        let message = format!("{} is not a directory", build.display());
        return Err(Fault::usage("not_a_directory", message)
            .with_hint("clean removes only what is really below _build/; remove the link yourself")
            .into());
    }
    let entries = std::fs::read_dir(&build).with_context(|| format!("cannot read {}", build.display()))?;
    let mut paths = Vec::new();
    for entry in entries {
        let entry = entry.with_context(|| format!("cannot read {}", build.display()))?;
        let is_dependencies = entry.file_name() == "deps";
        let goes = match extent {
            Extent::Own => !is_dependencies,
            Extent::Dependencies => is_dependencies,
            Extent::Everything => true,
        };
        if goes {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

/// A link is removed itself; what it leads to stays.
fn remove(path: &Path) -> anyhow::Result<()> {
    let removed = match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => std::fs::remove_dir_all(path),
        Ok(_) => std::fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}
