//! `beamtalk deps`: the dependencies of a project, in its manifest and its lock file.

use std::path::{Component, Path, PathBuf};

use beamtalk_project::build::Package;
use beamtalk_project::build::graph::{Moving, Provenance};
use beamtalk_project::lock::{Lock, Locking};
use beamtalk_project::manifest::{self, Dependency, Manifest, Reference, Source, edit};
use beamtalk_project::{Network, Project, files};

use crate::exit::{Exit, Fault};
use crate::lock::LockArguments;
use crate::terminal::Terminal;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Add a dependency to beamtalk.toml and fetch it.
    Add(AddArguments),
    /// Remove a dependency from beamtalk.toml.
    Remove {
        /// The package.
        name: String,
    },
    /// Show all packages that the project depends on.
    List {
        #[command(flatten)]
        lock: LockArguments,
    },
    /// Move branches and tags to where they are now.
    Update {
        /// Only this package.
        name: Option<String>,
    },
}

#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("source").required(true).args(["path", "git"]))]
#[command(group = clap::ArgGroup::new("reference").args(["tag", "branch", "rev"]).conflicts_with("path"))]
struct AddArguments {
    /// The package's own name.
    name: String,
    /// A directory with the package.
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,
    /// A git repository with the package.
    #[arg(long, value_name = "URL", requires = "reference", allow_hyphen_values = true)]
    git: Option<String>,
    /// The tag to use.
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// The branch to use.
    #[arg(long, value_name = "BRANCH")]
    branch: Option<String>,
    /// The commit to use.
    #[arg(long, value_name = "REV")]
    rev: Option<String>,
}

pub(crate) fn run(terminal: &mut Terminal, arguments: Arguments) -> anyhow::Result<Exit> {
    let project = Project::require(Path::new("."))?;
    match arguments.action {
        Action::Add(arguments) => add(terminal, &project, arguments),
        Action::Remove { name } => remove(terminal, &project, &name),
        Action::List { lock } => list(terminal, project, lock.into()),
        Action::Update { name } => update(terminal, project, name.as_deref()),
    }
}

fn add(terminal: &mut Terminal, project: &Project, arguments: AddArguments) -> anyhow::Result<Exit> {
    let here = std::env::current_dir()?;
    let dependency = dependency(project, &here, arguments)?;
    let name = dependency.name.as_str();
    let package = change(terminal, project, Moving::One(name), |text| {
        edit::add_dependency(text, &dependency)
    })?;
    let added = package
        .dependencies()
        .iter()
        .find(|package| package.name() == Some(name));
    let line = added.map(describe).unwrap_or_default();
    if terminal.is_json() {
        terminal.print(serde_json::json!({"added": added.map(|package| to_json(package, project))}))?;
    } else {
        terminal.status(format_args!("Added {line}"));
    }
    Ok(Exit::Success)
}

/// The dependency that the arguments ask for.
fn dependency(project: &Project, here: &Path, arguments: AddArguments) -> Result<Dependency, Fault> {
    let name = arguments.name;
    if !manifest::is_package_name(&name) {
        return Err(Fault::usage("bad_name", manifest::not_a_name(&name)));
    }
    if manifest::is_reserved(&name) {
        return Err(Fault::usage(
            "reserved_name",
            format!("the name '{name}' is reserved"),
        ));
    }
    if project.name() == Some(name.as_str()) {
        return Err(Fault::usage(
            "dependency_cycle",
            format!("'{name}' is this package itself"),
        ));
    }
    let known = project
        .manifest
        .iter()
        .flat_map(|manifest| &manifest.dependencies);
    if known.into_iter().any(|known| known.name == name) {
        let message = format!("'{name}' is a dependency already");
        let hint =
            format!("`beamtalk deps update {name}` moves it; remove it first to take it from another place");
        return Err(Fault::failure("dependency_exists", message).with_hint(hint));
    }
    let reference = [
        arguments.tag.map(Reference::Tag),
        arguments.branch.map(Reference::Branch),
        arguments.rev.map(Reference::Revision),
    ]
    .into_iter()
    .flatten()
    .next();
    let source = match (arguments.path, arguments.git, reference) {
        (Some(path), _, _) => Source::Path(from_root(&project.root, here, &path)),
        (None, Some(url), Some(reference)) => Source::Git { url, reference },
        (None, _, _) => {
            return Err(Fault::usage(
                "bad_dependency",
                "say --path, or --git with --tag, --branch or --rev",
            ));
        }
    };
    match source.refusal() {
        Some(refusal) => Err(Fault::usage("bad_dependency", refusal).with_hint(manifest::GIT_HINT)),
        None => Ok(Dependency { name, source }),
    }
}

/// A path of the command line, as the manifest writes it: relative to the project.
fn from_root(root: &Path, here: &Path, path: &Path) -> String {
    let below = match here.strip_prefix(root) {
        Ok(below) if !path.is_absolute() => below,
        _ => Path::new(""),
    };
    let mut parts: Vec<Component<'_>> = Vec::new();
    let joined = below.join(path);
    for part in joined.components() {
        match (part, parts.last()) {
            (Component::ParentDir, Some(Component::Normal(_))) => {
                parts.pop();
            }
            (Component::CurDir, _) => {}
            _ => parts.push(part),
        }
    }
    let path: PathBuf = parts.into_iter().collect();
    if path.as_os_str().is_empty() {
        ".".to_owned()
    } else {
        path.display().to_string()
    }
}

fn remove(terminal: &mut Terminal, project: &Project, name: &str) -> anyhow::Result<Exit> {
    let mut known = project
        .manifest
        .iter()
        .flat_map(|manifest| &manifest.dependencies);
    if !known.any(|known| known.name == name) {
        return Err(unknown(name).into());
    }
    change(terminal, project, Moving::Nothing, |text| {
        edit::remove_dependency(text, name)
    })?;
    if terminal.is_json() {
        terminal.print(serde_json::json!({"removed": name}))?;
    } else {
        terminal.status(format_args!("Removed {name}"));
    }
    Ok(Exit::Success)
}

/// Change the manifest, once everything it then asks for is there.
fn change(
    terminal: &mut Terminal,
    project: &Project,
    moving: Moving<'_>,
    edit: impl Fn(&str) -> String,
) -> anyhow::Result<Package> {
    let path = project.root.join(manifest::FILE_NAME);
    let text = edit(&files::read_source(&path)?);
    let changed = Project {
        root: project.root.clone(),
        manifest: Some(Manifest::parse(&text, &path.display().to_string())?),
    };
    let package = Package::resolve_moving(terminal, changed, Locking::Follow, moving)?;
    files::write_atomic(&path, text.as_bytes())?;
    Ok(package)
}

fn list(terminal: &mut Terminal, project: Project, locking: Locking) -> anyhow::Result<Exit> {
    let package = Package::resolve(terminal, project, locking)?;
    let mut packages: Vec<&Package> = package.dependencies().iter().collect();
    packages.sort_by_key(|package| package.name());
    if terminal.is_json() {
        let rows: Vec<_> = packages
            .iter()
            .map(|dependency| to_json(dependency, &package.project))
            .collect();
        terminal.print(serde_json::json!(rows))?;
    } else {
        for package in packages {
            terminal.print(describe(package))?;
        }
    }
    Ok(Exit::Success)
}

fn update(terminal: &mut Terminal, project: Project, name: Option<&str>) -> anyhow::Result<Exit> {
    if terminal.network == Network::Refused {
        return Err(Fault::usage("offline", "deps update needs the network, but --offline is given").into());
    }
    let before = Lock::read(&project.root)?;
    let moving = name.map_or(Moving::Everything, Moving::One);
    let root = project.root.clone();
    // A package that nobody uses is told before anything moves.
    let known = project
        .manifest
        .iter()
        .flat_map(|manifest| &manifest.dependencies);
    if let Some(name) = name
        && before.pin(name).is_none()
        && !known.into_iter().any(|known| known.name == name)
    {
        return Err(unknown(name).into());
    }
    Package::resolve_moving(terminal, project, Locking::Follow, moving)?;
    let after = Lock::read(&root)?;
    let mut moved = Vec::new();
    for pin in after.pins() {
        let old = before.pin(&pin.name);
        if old != Some(pin) {
            let from = old.map_or("new", |old| short(&old.sha));
            let reference = pin.reference.replacen(':', " ", 1);
            moved.push(serde_json::json!({"name": pin.name, "from": old.map(|old| &old.sha), "to": pin.sha}));
            terminal.status(format_args!(
                "{} {reference}: {from} -> {}",
                pin.name,
                short(&pin.sha)
            ));
        }
    }
    if terminal.is_json() {
        terminal.print(serde_json::json!({ "moved": moved }))?;
    } else if moved.is_empty() {
        terminal.status("Everything is up to date");
    }
    Ok(Exit::Success)
}

fn unknown(name: &str) -> Fault {
    Fault::failure("dependency_missing", format!("'{name}' is not a dependency"))
        .with_hint("`beamtalk deps list` shows all")
}

/// `units 1.2.0 (git https://example.org/units.git tag v1.2.0 @ 4be1f00)`.
fn describe(package: &Package) -> String {
    let name = package.name().unwrap_or_default();
    let version = version(package);
    match &package.provenance {
        Some(Provenance {
            source,
            sha: Some(sha),
            ..
        }) => format!("{name} {version} ({source} @ {})", short(sha)),
        Some(Provenance { source, .. }) => format!("{name} {version} ({source})"),
        None => format!("{name} {version}"),
    }
}

fn to_json(package: &Package, project: &Project) -> serde_json::Value {
    let is_direct = project
        .manifest
        .iter()
        .flat_map(|manifest| &manifest.dependencies)
        .any(|direct| Some(direct.name.as_str()) == package.name());
    let mut row = serde_json::json!({
        "name": package.name(),
        "version": version(package),
        "direct": is_direct,
    });
    if let Some(provenance) = &package.provenance {
        match &provenance.source {
            Source::Path(path) => row["path"] = path.as_str().into(),
            Source::Git { url, reference } => {
                row["git"] = url.as_str().into();
                let (kind, name) = reference.parts();
                row[kind] = name.into();
                row["sha"] = provenance.sha.clone().into();
            }
        }
    }
    row
}

fn version(package: &Package) -> &str {
    package
        .project
        .manifest
        .as_ref()
        .map_or("", |manifest| manifest.version.as_str())
}

fn short(sha: &str) -> &str {
    sha.get(..7).unwrap_or(sha)
}

#[cfg(test)]
mod tests {
    use super::from_root;
    use std::path::Path;

    #[test]
    fn paths_are_written_relative_to_the_project() {
        let write =
            |here: &str, path: &str| from_root(Path::new("/p/orbit"), Path::new(here), Path::new(path));
        assert_eq!(write("/p/orbit", "../vectors"), "../vectors");
        assert_eq!(write("/p/orbit", "./lib/vectors/"), "lib/vectors");
        assert_eq!(write("/p/orbit/src", "../../vectors"), "../vectors");
        assert_eq!(write("/p/orbit/src/util", "../x"), "src/x");
        assert_eq!(write("/p/orbit/src", "/srv/vectors"), "/srv/vectors");
    }
}
