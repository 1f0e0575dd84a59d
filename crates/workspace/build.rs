//! Makes the table of the browser workspace's files that the binary carries: what `web/build.mjs` made, or a page that says it
//! is missing.

#![expect(clippy::disallowed_methods, reason = "a build script makes files")]

use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let built = here.join("../../web/dist");
    println!("cargo::rerun-if-env-changed=BEAMTALK_WEB");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", built.display());
    let is_wanted = std::env::var_os("BEAMTALK_WEB").is_none_or(|wanted| wanted != "none");
    let root = if is_wanted && built.join("index.html").is_file() {
        built
    } else {
        here.join("src/gate/notice")
    };
    if let Err(error) = embed(&root) {
        println!(
            "cargo::error=the browser workspace in {}: {error}",
            root.display()
        );
    }
}

/// `files.rs`: an array of name and bytes of each file below the root.
fn embed(root: &Path) -> std::io::Result<()> {
    let root = root.canonicalize()?;
    let mut files = Vec::new();
    collect(&root, &mut files)?;
    files.sort();
    let rows = files.iter().filter_map(|file| {
        let name = file.strip_prefix(&root).ok()?.to_str()?;
        Some(format!("    ({name:?}, include_bytes!({:?})),\n", file.to_str()?))
    });
    let table = format!("&[\n{}]\n", rows.collect::<String>());
    let out = std::env::var_os("OUT_DIR").ok_or_else(|| std::io::Error::other("OUT_DIR is not set"))?;
    fs::write(PathBuf::from(out).join("files.rs"), table)
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
