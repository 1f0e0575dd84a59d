//! What an editor would get in a directory, and why something is missing: the answer of `beamtalk lsp --check`.

use std::path::Path;

use beamtalk_project::Project;
use beamtalk_project::specs::Specs;
use beamtalk_syntax::diagnostic::Severity;
use serde::Serialize;

use crate::capabilities;
use crate::client::Settings;
use crate::library::Library;
use crate::live::Workspaces;
use crate::position::Encoding;
use crate::state::canonical;
use crate::world::{Access, World};

#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub features: Vec<Feature>,
    /// An editor gets at least what files alone give.
    #[serde(skip)]
    pub is_usable: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct Feature {
    pub name: &'static str,
    pub is_there: bool,
    pub detail: String,
}

/// How many files there are, and how many of them are understood in parts only.
fn files(world: &World, own: usize) -> String {
    let is_broken = |text: &str| {
        let found = beamtalk_syntax::parse_file(text).diagnostics;
        found.iter().any(|one| one.severity == Severity::Error)
    };
    let mine = world.files.values().filter(|file| file.access == Access::Own);
    match mine.filter(|file| is_broken(file.text())).count() {
        0 => format!("{own} of the project"),
        broken => format!("{own} of the project, {broken} with syntax errors, of which the rest is known"),
    }
}

pub fn check(directory: &Path, workspaces: &dyn Workspaces) -> Report {
    let directory = canonical(directory);
    let mut features = Vec::new();
    let mut add = |name: &'static str, is_there: bool, detail: String| {
        features.push(Feature {
            name,
            is_there,
            detail,
        });
    };
    let library = Library::get();
    add(
        "library",
        !library.files.is_empty(),
        format!(
            "{} files, opened read-only as beamtalk-stdlib:",
            library.files.len()
        ),
    );
    let mut is_readable = true;
    let root = match Project::find(&directory) {
        Ok(Some(project)) => {
            let name = project.name().unwrap_or("without a name").to_owned();
            add("project", true, format!("{name} in {}", project.root.display()));
            Some(project.root)
        }
        Ok(None) => {
            let text =
                "no beamtalk.toml here or above: each file is looked at alone, with the library".to_owned();
            add("project", false, text);
            None
        }
        Err(fault) => {
            is_readable = false;
            add("project", false, fault.to_string());
            None
        }
    };
    let root = root.unwrap_or(directory);
    let world = World::read(&root, Settings::default().max_files);
    let count = |access: Access| world.files.values().filter(|file| file.access == access).count();
    let own = count(Access::Own);
    add("files", own > 0, files(&world, own));
    match &world.problem {
        _ if !is_readable => add(
            "dependencies",
            false,
            "not known until the manifest can be read".to_owned(),
        ),
        None => add(
            "dependencies",
            true,
            format!("{} files", count(Access::Dependency)),
        ),
        Some(problem) => add(
            "dependencies",
            false,
            format!("{problem} (`beamtalk deps` fetches what is missing)"),
        ),
    }
    match workspaces.find(&root) {
        Ok(Some(reach)) => add(
            "workspace",
            true,
            format!(
                "runs at port {}: live actors, unflushed changes, loading on save",
                reach.endpoint.port
            ),
        ),
        Ok(None) => {
            let text =
                "none runs, so there are no live actors and saving loads nothing; `beamtalk repl` starts one";
            add("workspace", false, text.to_owned());
        }
        Err(cause) => add("workspace", false, cause),
    }
    let erlang = Specs::installed(Vec::new()).find("lists");
    let text = match erlang.as_deref().and_then(Path::parent) {
        Some(place) => format!("calls are checked against its types, as in {}", place.display()),
        None => "not found, or without its modules: calls of Erlang are not checked".to_owned(),
    };
    add("erlang", erlang.is_some(), text);
    let offered = capabilities::of_server(Encoding::Utf8);
    let mut requests: Vec<String> = offered
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(name, _)| name.strip_suffix("Provider").map(str::to_owned))
        .collect();
    requests.sort();
    add("requests", true, requests.join(", "));
    let is_usable = features
        .iter()
        .filter(|feature| matches!(feature.name, "library" | "requests"))
        .all(|feature| feature.is_there);
    Report { features, is_usable }
}
