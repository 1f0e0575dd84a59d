//! `beamtalk project-image`: build a project and describe the outcome to the daemon, as one JSON object.

use std::path::PathBuf;

use beamtalk_workspace::{LoadedPackage, PackageUse, ProjectImage, SourceText, TextOrigin};

use super::build::policy;
use crate::build::{self, Package, Scope};
use crate::exit::Exit;
use crate::findings::severity::Warnings;
use crate::lock::Locking;
use crate::project::Project;
use crate::source;
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
    let built = build::build(terminal, &package, scope, &policy(&package, Warnings::Shown), 0)?;
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
    for plan in &built.plans {
        image.paths.push(plan.output.clone());
        image.paths.push(build::graph::native_output(&plan.output));
        let modules = plan.module_names.iter();
        image
            .modules
            .extend(modules.map(|name| plan.output.join(format!("{name}.beam"))));
        image
            .applications
            .extend(plan.native_applications.iter().cloned());
    }
    for package in package.in_order() {
        let root = &package.project.root;
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
        for path in package.sources()? {
            let module_path = build::plan::module_path(&path, root);
            let text = source::Text::read(&path, root)?;
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
