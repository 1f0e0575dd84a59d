//! A release: the application with everything it runs on, in one directory that needs no Erlang.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use beamtalk_etf::{Term, read};
use beamtalk_node::{Erlang, Runtime, Worker};

use super::graph::native_output;
use super::package::{is_left_out, source_time};
use super::{Built, Package, Plan, path_term};
use crate::error::{At, Result};
use crate::fault::{Blame, Fault};
use crate::files;

/// The programs of the emulator that a node needs.
const EMULATOR: &[&str] = &["beam.smp", "erlexec", "erl_child_setup", "inet_gethost", "heart"];

/// What a boot of the emulator loads first; the one that reads no file of the user.
const BOOT: &str = "bin/no_dot_erlang.boot";

const START: &str = include_str!("release/start.sh");
const FLAGS: &str = include_str!("release/vm.args");

/// Refuse before anything is built what cannot be released.
pub fn check(package: &Package) -> Result<(), Fault> {
    let manifest = package.project.manifest.as_ref();
    match manifest {
        Some(manifest) if manifest.supervisor.is_some() => Ok(()),
        _ => Err(
            Fault::usage("no_application", "build --release needs [application] with a supervisor in beamtalk.toml")
                .with_hint("write [application] with supervisor = \"MyAppSup\"; a program that ends is packed with --escript"),
        ),
    }
}

/// What comes from the installed Erlang.
struct Installed {
    root: PathBuf,
    /// Version of the emulator.
    version: String,
    /// Name, version and directory of each application.
    applications: Vec<(String, String, PathBuf)>,
}

/// Make the release of a built application; its directory relative to the project.
pub fn make(built: &Built, root: &Path) -> Result<String> {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(source_time()?);
    let plan = built.plans.last().expect("a package was built");
    let name = plan
        .name
        .as_deref()
        .expect("only a package with a manifest is released");
    let releases = root.join("_build/prod/rel");
    create(&releases)?;
    let place = tempfile::Builder::new()
        .prefix(".release-")
        .tempdir_in(&releases)
        .at("cannot write to", &releases)?;
    let new = place.path().join("new");
    let runtime = Runtime::prepare()?;
    let runtime_code: Vec<PathBuf> = files::find(&runtime.ebin(), &["beam", "app"])?
        .into_iter()
        .filter(|path| {
            !path
                .file_stem()
                .and_then(|stem| stem.to_str())
                .is_some_and(is_left_out)
        })
        .collect();
    let installed = installed(built, &runtime, &runtime_code)?;
    copy_erlang(&new, &installed)?;
    let library = new
        .join("lib")
        .join(format!("beamtalk-{}", env!("CARGO_PKG_VERSION")));
    copy_all(&runtime_code, &library.join("ebin"))?;
    copy(&runtime.image(), &library.join("image"))?;
    for plan in &built.plans {
        copy_package(&new, plan)?;
    }
    write_start(&new, name, &plan.version, &installed, built)?;
    settle(&new, time)?;
    let target = releases.join(name);
    if target.exists() {
        fs::rename(&target, place.path().join("old")).at("cannot replace", &target)?;
    }
    fs::rename(&new, &target).at("cannot create", &target)?;
    Ok(files::shown(&target, root))
}

/// Ask a node what of OTP the program calls.
fn installed(built: &Built, runtime: &Runtime, runtime_code: &[PathBuf]) -> Result<Installed> {
    let mut code: Vec<PathBuf> = runtime_code.to_vec();
    for plan in &built.plans {
        let native = native_output(&plan.output);
        for directory in [plan.output.clone(), native] {
            if directory.is_dir() {
                code.extend(files::find(&directory, &["beam"])?);
            }
        }
    }
    code.retain(|path| files::has_extension(path, &["beam"]));
    let named = built.plans.iter().flat_map(|plan| &plan.native_applications);
    let mut worker = Worker::start(&Erlang::find()?, runtime, None)?;
    worker.send(&Term::tuple([
        Term::atom("release"),
        Term::list(code.iter().map(|path| path_term(path))),
        Term::list(named.map(|name| Term::atom(name.as_str()))),
    ]))?;
    let reply = worker.receive()?;
    let Some(("release", [outcome])) = read::tagged(&reply) else {
        return Err(beamtalk_node::Error::unexpected(&reply).into());
    };
    match read::tagged(outcome) {
        Some(("ok", [Term::Tuple(parts)])) => match parts.as_slice() {
            [root, version, Term::List(rows)] => Ok(Installed {
                root: PathBuf::from(read::text(root)),
                version: read::text(version),
                applications: rows.iter().filter_map(application).collect(),
            }),
            _ => Err(beamtalk_node::Error::unexpected(&reply).into()),
        },
        Some(("error", [text])) => Err(Fault {
            blame: Blame::Environment,
            kind: "application_missing",
            message: read::text(text),
            hint: Some("install it, or take it out of [native] applications".to_owned()),
        }
        .into()),
        _ => Err(beamtalk_node::Error::unexpected(&reply).into()),
    }
}

fn application(row: &Term) -> Option<(String, String, PathBuf)> {
    let Term::Tuple(parts) = row else { return None };
    match parts.as_slice() {
        [name, version, directory] => Some((
            read::text(name),
            read::text(version),
            PathBuf::from(read::text(directory)),
        )),
        _ => None,
    }
}

fn copy_erlang(new: &Path, installed: &Installed) -> Result<()> {
    let emulator = format!("erts-{}/bin", installed.version);
    for program in EMULATOR {
        let from = installed.root.join(&emulator).join(program);
        // Not every build of Erlang has all of them.
        if from.is_file() {
            copy(&from, &new.join(&emulator).join(program))?;
        }
    }
    for (name, version, directory) in &installed.applications {
        for part in ["ebin", "priv"] {
            let from = directory.join(part);
            if from.is_dir() {
                copy_tree(
                    &from,
                    &new.join("lib").join(format!("{name}-{version}")).join(part),
                )?;
            }
        }
    }
    Ok(())
}

/// Classes, native code and description of one package.
fn copy_package(new: &Path, plan: &Plan) -> Result<()> {
    let Some(name) = &plan.name else { return Ok(()) };
    let target = new
        .join("lib")
        .join(format!("{name}-{}", plan.version))
        .join("ebin");
    let modules = plan.module_names.iter().map(|module| format!("{module}.beam"));
    for file in modules.chain([format!("{name}.app")]) {
        copy(&plan.output.join(&file), &target.join(&file))?;
    }
    let native = native_output(&plan.output);
    if native.is_dir() {
        copy_all(&files::find(&native, &["beam"])?, &target)?;
    }
    Ok(())
}

fn write_start(new: &Path, name: &str, version: &str, installed: &Installed, built: &Built) -> Result<()> {
    let release = new.join("releases").join(version);
    create(&release)?;
    copy(&installed.root.join(BOOT), &release.join("start.boot"))?;
    let packages: Vec<String> = built
        .plans
        .iter()
        .filter_map(|plan| Some(format!("'{}'", plan.name.as_ref()?)))
        .collect();
    let settings = format!(
        "%% The packages in the order in which they are loaded.\n[{{beamtalk, [{{packages, [{}]}}]}}].\n",
        packages.join(", ")
    );
    let applications: Vec<String> = installed
        .applications
        .iter()
        .map(|(name, version, _)| format!("  {{'{name}', \"{version}\"}}"))
        .collect();
    let description = format!(
        "{{release, {{\"{name}\", \"{version}\"}}, {{erts, \"{}\"}}, [\n{}]}}.\n",
        installed.version,
        applications.join(",\n")
    );
    files::write_atomic(&release.join("sys.config"), settings.as_bytes())?;
    files::write_atomic(&release.join("vm.args"), FLAGS.as_bytes())?;
    files::write_atomic(&release.join(format!("{name}.rel")), description.as_bytes())?;
    let start = START
        .replace("{name}", name)
        .replace("{version}", version)
        .replace("{erts}", &installed.version);
    let program = new.join("bin").join(name);
    create(&new.join("bin"))?;
    files::write_atomic(&program, start.as_bytes())?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).at("cannot make executable", &program)
}

fn create(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory).at("cannot create", directory)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    create(to.parent().unwrap_or(Path::new(".")))?;
    fs::copy(from, to).map(drop).at("cannot copy to", to)
}

fn copy_all(paths: &[PathBuf], directory: &Path) -> Result<()> {
    for path in paths {
        if let Some(name) = path.file_name() {
            copy(path, &directory.join(name))?;
        }
    }
    Ok(())
}

fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    let entries = fs::read_dir(from).at("cannot read", from)?;
    for entry in entries {
        let entry = entry.at("cannot read", from)?;
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            copy(&entry.path(), &target)?;
        }
    }
    Ok(())
}

/// Give every file the same time and a mode that depends on nothing but whether it is a program.
fn settle(path: &Path, time: SystemTime) -> Result<()> {
    let metadata = fs::symlink_metadata(path).at("cannot read", path)?;
    let is_program = metadata.is_dir() || metadata.permissions().mode() & 0o100 != 0;
    let mode = if is_program { 0o755 } else { 0o644 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).at("cannot change", path)?;
    if metadata.is_dir() {
        let entries = fs::read_dir(path).at("cannot read", path)?;
        for entry in entries {
            settle(&entry?.path(), time)?;
        }
    }
    fs::File::open(path)
        .and_then(|file| file.set_modified(time))
        .at("cannot set the time of", path)
}
