//! Compiles `runtime/` with `erlc` and `lib/` with our own compiler, makes the boot image, and packs all of it
//! into one blob that the crate embeds.

#![expect(
    clippy::disallowed_methods,
    reason = "a build script makes files with the programs of the release"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use beamtalk_compiler::{ClassTable, Origin, SourceFile};
use beamtalk_syntax::diagnostic::Severity;
use beamtalk_syntax::span::LineIndex;
use ecow::EcoString;
use sha2::{Digest, Sha256};

fn main() {
    if let Err(message) = build() {
        for line in message.lines() {
            println!("cargo::error={line}");
        }
    }
}

fn build() -> Result<(), String> {
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("../..");
    let out = PathBuf::from(variable("OUT_DIR")?);
    let runtime = root.join("runtime/src");
    let library = root.join("lib");
    for path in [&runtime, &library] {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    println!("cargo::rerun-if-env-changed=BEAMTALK_ERL");
    let ebin = fresh_directory(&out.join("ebin"))?;
    let forms = fresh_directory(&out.join("forms"))?;
    let image = out.join("image");
    let erl = std::env::var("BEAMTALK_ERL").unwrap_or_else(|_| "erl".to_owned());
    compile_runtime(&erl, &runtime, &ebin)?;
    let sources = read_library(&library)?;
    compile_library(&sources, &forms)?;
    make_image(&erl, &forms, &ebin, &image)?;
    pack(&out, &ebin, &image, &sources)
}

fn variable(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|_| format!("{name} is not set"))
}

fn fresh_directory(path: &Path) -> Result<PathBuf, String> {
    drop(fs::remove_dir_all(path));
    fs::create_dir_all(path).map_err(|error| format!("cannot create {}: {error}", path.display()))?;
    Ok(path.to_owned())
}

fn files(directory: &Path, extension: &str) -> Result<Vec<PathBuf>, String> {
    let entries =
        fs::read_dir(directory).map_err(|error| format!("cannot read {}: {error}", directory.display()))?;
    let mut found: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    found.sort();
    Ok(found)
}

fn run(command: &mut Command, what: &str) -> Result<(), String> {
    let output = command.output().map_err(|error| {
        format!("{what}: {error}; Erlang/OTP 25 or newer is needed to build, `make setup` installs it")
    })?;
    if output.status.success() {
        return Ok(());
    }
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Err(format!("{what} failed:\n{text}"))
}

/// The compiler driver stands beside `erl`.
fn compile_runtime(erl: &str, runtime: &Path, ebin: &Path) -> Result<(), String> {
    let erlc = Path::new(erl).with_file_name("erlc");
    let mut command = Command::new(erlc);
    command
        .args(["-Werror", "+deterministic", "-o"])
        .arg(ebin)
        .args(files(runtime, "erl")?);
    run(&mut command, "compiling runtime/")?;
    let application =
        fs::read(runtime.join("beamtalk.app.src")).map_err(|error| format!("beamtalk.app.src: {error}"))?;
    fs::write(ebin.join("beamtalk.app"), application).map_err(|error| format!("beamtalk.app: {error}"))?;
    Ok(())
}

/// File name and text of every class of the library.
fn read_library(library: &Path) -> Result<BTreeMap<String, String>, String> {
    let mut sources = BTreeMap::new();
    for path in files(library, "bt")? {
        let text =
            fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        sources.insert(name.to_owned(), text);
    }
    Ok(sources)
}

fn compile_library(sources: &BTreeMap<String, String>, forms: &Path) -> Result<(), String> {
    let mut faults = Vec::new();
    let mut table = ClassTable::empty();
    let parsed: Vec<SourceFile> = sources
        .iter()
        .map(|(name, text)| {
            let parse = beamtalk_syntax::parse_file(text);
            describe_errors(name, text, &parse.diagnostics, &mut faults);
            SourceFile {
                path: EcoString::from(name.as_str()),
                text: EcoString::from(text.as_str()),
                unit: parse.unit,
                package: Some(EcoString::from("stdlib")),
                module: EcoString::from(beamtalk_compiler::module_name(Some("stdlib"), name)),
                origin: Origin::Library,
            }
        })
        .collect();
    for file in &parsed {
        table.declare(file);
    }
    for file in &parsed {
        let compiled = beamtalk_compiler::compile_file(file, &table);
        describe_errors(&file.path, &file.text, &compiled.diagnostics, &mut faults);
        for module in compiled.modules {
            let path = forms.join(format!("{}.etf", module.name));
            fs::write(&path, &module.forms)
                .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        }
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(faults.join("\n"))
    }
}

fn describe_errors(
    name: &str,
    text: &str,
    diagnostics: &[beamtalk_syntax::diagnostic::Diagnostic],
    faults: &mut Vec<String>,
) {
    let index = LineIndex::new(text);
    for diagnostic in diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error)
    {
        let place = index.position(text, diagnostic.span.start);
        faults.push(format!(
            "lib/{name}:{}:{}: error[{}]: {}",
            place.line, place.column, diagnostic.code, diagnostic.message
        ));
    }
}

fn make_image(erl: &str, forms: &Path, ebin: &Path, image: &Path) -> Result<(), String> {
    let mut command = Command::new(erl);
    command
        .env("ERL_CRASH_DUMP_SECONDS", "0")
        .args(["-noshell", "-noinput", "-boot", "no_dot_erlang", "-pa"])
        .arg(ebin)
        .args(["-s", "beamtalk_boot", "library", "-extra"])
        .arg(forms)
        .arg(ebin)
        .arg(image);
    run(&mut command, "compiling lib/")
}

/// Records of (path, content), each as two little-endian lengths and the bytes.
fn pack(out: &Path, ebin: &Path, image: &Path, sources: &BTreeMap<String, String>) -> Result<(), String> {
    let mut blob = Vec::new();
    let mut add = |path: &str, content: &[u8]| {
        blob.extend((path.len() as u32).to_le_bytes());
        blob.extend((content.len() as u32).to_le_bytes());
        blob.extend(path.as_bytes());
        blob.extend(content);
    };
    for path in files(ebin, "beam")?.into_iter().chain(files(ebin, "app")?) {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let content = fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        add(&format!("ebin/{name}"), &content);
    }
    let content = fs::read(image).map_err(|error| format!("cannot read {}: {error}", image.display()))?;
    add("image", &content);
    for (name, text) in sources {
        add(&format!("lib/{name}"), text.as_bytes());
    }
    let digest = Sha256::digest(&blob);
    let hash: String = digest
        .iter()
        .take(8)
        .fold(String::new(), |hash, byte| hash + &format!("{byte:02x}"));
    println!("cargo::rustc-env=BEAMTALK_BLOB_HASH={hash}");
    fs::write(out.join("runtime.blob"), blob).map_err(|error| format!("cannot write the blob: {error}"))
}
