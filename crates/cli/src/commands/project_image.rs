//! `beamtalk project-image`: build a project and describe the outcome to the daemon, as one JSON object.

use std::path::PathBuf;

use beamtalk_project::build::{self, Package, Scope};
use beamtalk_project::findings::severity::Warnings;
use beamtalk_project::lock::Locking;
use beamtalk_project::{Project, source};
use beamtalk_workspace::{LoadedPackage, PackageUse, ProjectImage, SourceText, TextOrigin};

use super::build::policy;
use crate::exit::Exit;
use crate::terminal::Terminal;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    path: PathBuf,
    /// Build everything again.
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(terminal: &mut Terminal, arguments: &Arguments) -> anyhow::Result<Exit> {
    let project = Project::require(&arguments.path)?;
    let root = project.root.clone();
    let manifest = project.manifest.clone();
    let package = Package::resolve(terminal, project, Locking::Follow)?;
    let scope = if arguments.force {
        Scope::Everything
    } else {
        Scope::Changed
    };
    let policy = policy(&package, Warnings::Shown);
    // What the image is told to have been made from must be what it was made from, or an edit in between would be
    // taken for its base and written over: a build under which files changed is made again. So is one whose modules
    // somebody took away (`clean` in another terminal), or the project would be missing without a word.
    let mut round = 0;
    let (built, faults, texts) = loop {
        let before = texts(&package)?;
        let (built, faults) = build::build_what_compiles(terminal, &package, scope, &policy)?;
        round += 1;
        let is_complete = !faults.is_empty() || modules(&built.plans).all(|path| path.is_file());
        if is_complete && same(&before, &texts(&package)?) {
            break (built, faults, before);
        }
        if round == ROUNDS {
            anyhow::bail!("files keep changing while they are built; try again when they rest");
        }
    };
    for fault in faults {
        terminal.print(serde_json::json!({"code": "", "severity": "error", "message": fault}))?;
    }
    let mut image = ProjectImage {
        name: manifest.as_ref().map(|manifest| manifest.name.clone()),
        version: manifest
            .as_ref()
            .map(|manifest| manifest.version.clone())
            .unwrap_or_default(),
        root,
        supervisor: manifest.and_then(|manifest| manifest.supervisor),
        ..ProjectImage::default()
    };
    // What Erlang's compiler refused has none.
    image
        .modules
        .extend(modules(&built.plans).filter(|path| path.is_file()));
    for plan in &built.plans {
        image.paths.push(plan.output.clone());
        image.paths.push(build::graph::native_output(&plan.output));
        image
            .applications
            .extend(plan.native_applications.iter().cloned());
    }
    for ((package, plan), texts) in package.in_order().zip(&built.plans).zip(texts) {
        let root = &package.project.root;
        let is_left_out = |shown: &str| {
            plan.broken.contains(shown) || plan.doubles.iter().any(|double| double.path == shown)
        };
        if let Some(name) = package.name() {
            let manifest = package.project.manifest.as_ref();
            let dependencies = manifest.map(|manifest| manifest.dependencies.as_slice());
            let about = LoadedPackage {
                root: root.clone(),
                version: manifest
                    .map(|manifest| manifest.version.clone())
                    .unwrap_or_default(),
                dependencies: dependencies
                    .unwrap_or_default()
                    .iter()
                    .map(|dependency| dependency.name.clone())
                    .collect(),
            };
            image.packages.insert(name.to_owned(), about);
        }
        if let Some(manifest) = &package.project.manifest {
            let uses = manifest.dependencies.iter();
            image.uses.push(PackageUse {
                name: manifest.name.clone(),
                uses: uses.map(|dependency| dependency.name.clone()).collect(),
                is_strict: manifest.has_strict_dependencies,
            });
        }
        for (path, text) in texts {
            let module_path = build::plan::module_path(&path, root);
            if is_left_out(&text.shown) || text.fault().is_some() {
                image.broken.push(path);
                continue;
            }
            image.sources.push(SourceText {
                path: text.shown,
                text: text.content,
                package: package.name().map(str::to_owned),
                module: beamtalk_compiler::module_name(package.name(), &module_path),
                origin: TextOrigin::Package,
            });
        }
    }
    terminal.print(serde_json::json!({ "image": image }))?;
    Ok(Exit::Success)
}

/// How often a build is made again because files changed under it.
const ROUNDS: usize = 20;

/// The compiled modules, dependencies first.
fn modules(plans: &[build::plan::Plan]) -> impl Iterator<Item = PathBuf> {
    plans.iter().flat_map(|plan| {
        let names = plan.module_names.iter();
        names.map(|name| plan.output.join(format!("{name}.beam")))
    })
}

type Texts = Vec<Vec<(PathBuf, source::Text)>>;

/// The sources of every package as they are now.
fn texts(package: &Package) -> anyhow::Result<Texts> {
    let texts = package.in_order().map(|each| {
        let paths = each.sources()?.into_iter();
        Ok(paths
            .map(|path| {
                let text = source::Text::find(&path, &each.project.root);
                (path, text)
            })
            .collect())
    });
    texts.collect()
}

fn same(one: &Texts, other: &Texts) -> bool {
    let told = |(path, text): &(PathBuf, source::Text)| (path.clone(), text.hash.clone());
    one.iter()
        .flatten()
        .map(told)
        .eq(other.iter().flatten().map(told))
}
