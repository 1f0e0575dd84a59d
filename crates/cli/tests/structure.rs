//! The shape of the repository: which crate may use which, and how large files get.

#![expect(
    clippy::disallowed_methods,
    reason = "tests start the binary and make its files"
)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Every crate there is or will be, and which of ours it may depend on.
const LAYERS: &[(&str, &[&str])] = &[
    ("syntax", &[]),
    ("etf", &[]),
    ("wire", &[]),
    // The helper of a node speaks terms.
    ("process", &["etf"]),
    ("storage", &[]),
    ("http", &[]),
    ("ninep", &[]),
    ("compiler", &["syntax", "etf"]),
    // The compiler only in the build script, for the embedded library; storage because the runtime
    // is unpacked below the state directory.
    ("node", &["etf", "process", "storage", "compiler", "syntax"]),
    (
        "project",
        &["compiler", "syntax", "node", "process", "storage", "etf"],
    ),
    ("testing", &["project", "compiler", "syntax", "node", "etf"]),
    ("loop", &["process", "storage", "http"]),
    // What the system says about a process decides whether a record is stale.
    ("storage", &["process"]),
    ("client", &["wire", "storage"]),
    ("mcp", &["wire", "http"]),
    (
        "agents",
        &["ninep", "process", "storage", "http", "client", "wire", "mcp"],
    ),
    (
        "workspace",
        &[
            "wire", "node", "process", "compiler", "syntax", "etf", "project", "loop", "mcp", "ninep",
            "storage", "http",
        ],
    ),
    // Its history is a file of the state directory; an editor and a pager are programs.
    ("repl", &["client", "wire", "syntax", "storage", "process"]),
    // What a project consists of and what its manifest makes of findings is decided in one place.
    ("lsp", &["client", "wire", "compiler", "syntax", "project"]),
    // In `editors`: the grammar knows nothing of ours; its tests hold it to our parser.
    ("tree-sitter-beamtalk", &[]),
];

/// Folders beside `crates`; each has one kind of thing in it.
const FOLDERS: &[&str] = &[
    "bench", "crates", "docs", "editors", "examples", "fuzz", "lib", "runtime", "tests", "web",
];

/// A file past this many lines must be split.
const LARGEST: usize = 1_200;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

#[test]
fn crates_use_only_the_layers_below_them() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let allowed: BTreeMap<&str, &[&str]> = LAYERS.iter().copied().collect();
    let mut faults = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap().trim_start_matches("beamtalk-");
        // The binary and the benchmarks may use everything.
        if name == "cli" || name.starts_with("bench-") {
            continue;
        }
        if !allowed.contains_key(name) {
            faults.push(format!("no row says what crates/{name} is for"));
        }
        for dependency in package["dependencies"].as_array().unwrap() {
            let is_test = dependency["kind"] == "dev";
            let Some(used) = dependency["name"].as_str().unwrap().strip_prefix("beamtalk-") else {
                continue;
            };
            if !is_test && !allowed.get(name).is_some_and(|allowed| allowed.contains(&used)) {
                faults.push(format!("{name} must not use {used}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn folders(directory: &Path) -> Vec<String> {
    std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .filter(|name| !name.starts_with(['.', '_']) && name != "target")
        .collect()
}

#[test]
fn every_folder_has_a_role() {
    for name in folders(&root()) {
        assert!(FOLDERS.contains(&name.as_str()), "no row says what {name} is for");
    }
}

/// One place for versions and lints; a package is named after its folder.
#[test]
fn manifests_of_crates_leave_versions_and_lints_to_the_root() {
    for name in folders(&root().join("crates")) {
        let path = root().join("crates").join(&name).join("Cargo.toml");
        let manifest = std::fs::read_to_string(path).unwrap();
        assert!(
            manifest.contains(&format!("name = \"beamtalk-{name}\"\n")),
            "{name}"
        );
        assert!(manifest.contains("[lints]\nworkspace = true"), "{name}");
        let versions: Vec<&str> = manifest
            .lines()
            .filter(|line| {
                line.contains("version = \"") || line.contains(" = \"0") || line.contains(" = \"1")
            })
            .collect();
        assert!(versions.is_empty(), "{name}: {versions:?}");
    }
}

/// Clippy reads one file and does not merge: what the workspace forbids, every other file forbids too.
#[test]
fn every_clippy_file_repeats_the_walls_of_the_workspace() {
    let read = |path: PathBuf| std::fs::read_to_string(path).ok();
    let common = read(root().join("clippy.toml")).unwrap();
    let rules: Vec<&str> = common
        .lines()
        .filter(|line| !line.starts_with(['#', 'd', ']']))
        .collect();
    assert!(rules.len() > 10);
    let mut own = 0;
    for name in folders(&root().join("crates")) {
        let Some(text) = read(root().join("crates").join(&name).join("clippy.toml")) else {
            continue;
        };
        own += 1;
        for rule in &rules {
            assert!(
                text.lines().any(|line| line == *rule),
                "crates/{name}/clippy.toml lacks {rule}"
            );
        }
    }
    assert_eq!(own, 4, "syntax, compiler, etf and wire are pure");
}

/// An advisory may be ignored for a time, with a reason; then somebody looks again.
#[test]
fn ignored_advisories_are_looked_at_again() {
    let text = std::fs::read_to_string(root().join("deny.toml")).unwrap();
    let today = std::process::Command::new("date")
        .arg("+%Y-%m-%d")
        .output()
        .unwrap();
    let today = String::from_utf8(today.stdout).unwrap();
    for line in text.lines().filter(|line| line.contains("RUSTSEC-")) {
        let (_, date) = line
            .split_once("FIX-BY: ")
            .unwrap_or_else(|| panic!("no date: {line}"));
        let date: String = date.chars().take(10).collect();
        assert!(date.as_str() >= today.trim(), "its time is over: {line}");
    }
}

#[test]
fn the_compiler_is_in_the_node_crate_only_for_building() {
    let manifest = std::fs::read_to_string(root().join("crates/node/Cargo.toml")).unwrap();
    let (_, dependencies) = manifest.split_once("[dependencies]").unwrap();
    let (dependencies, _) = dependencies.split_once("\n[").unwrap();
    assert!(!dependencies.contains("beamtalk-compiler"));
}

/// `docs/security.md` promises a test for each threat; here the promise is kept.
#[test]
fn every_threat_names_tests_that_exist() {
    let page = std::fs::read_to_string(root().join("docs/security.md")).unwrap();
    let is_threat = |line: &str| {
        line.strip_prefix("| T")
            .or_else(|| line.strip_prefix("| A"))
            .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
    };
    let rows: Vec<&str> = page.lines().filter(|line| is_threat(line)).collect();
    assert!(
        rows.len() >= 25,
        "the table of threats is short: {} rows",
        rows.len()
    );
    let mut faults = Vec::new();
    for row in rows {
        let (_, tests) = row.trim_end_matches(" |").rsplit_once(" | ").unwrap();
        let groups: Vec<&str> = tests.split("; ").collect();
        for group in groups {
            // `path`: `test`, `test`
            let mut names = group.split('`').skip(1).step_by(2);
            let path = names.next().unwrap_or_default();
            let text = std::fs::read_to_string(root().join(path)).unwrap_or_default();
            let names: Vec<&str> = names.collect();
            if names.is_empty() {
                faults.push(format!("{group}: no test is named"));
            }
            for name in names {
                let is_there = if path.strip_suffix(".erl").is_some() {
                    text.contains(&format!("\n{name}("))
                } else {
                    is_rust_test(&text, name)
                };
                if !is_there {
                    faults.push(format!("{path} has no test {name}"));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// A function with `#[test]`, or one of a property, right above it.
fn is_rust_test(text: &str, name: &str) -> bool {
    let Some(at) = text.find(&format!("fn {name}(")) else {
        return false;
    };
    let before: Vec<&str> = text[..at].lines().rev().take(8).collect();
    before
        .iter()
        .any(|line| line.contains("#[test]") || line.contains("#[tokio::test") || line.contains("proptest!"))
}

/// Whoever reads only one of these learns what the cookie is for.
#[test]
fn every_first_page_says_what_the_cookie_protects() {
    for path in ["README.md", "docs/tour.md", "docs/security.md"] {
        let text = std::fs::read_to_string(root().join(path)).unwrap();
        let text = text
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .to_lowercase();
        for part in [
            "your account's full rights",
            "other local users",
            "code you run yourself",
            "ssh private key",
        ] {
            assert!(text.contains(part), "{path} does not say: {part}");
        }
    }
}

#[test]
fn no_file_grows_past_the_limit() {
    let mut sizes = Vec::new();
    for directory in ["crates", "runtime", "lib"] {
        collect(&root().join(directory), &mut sizes);
    }
    sizes.sort_unstable();
    for (lines, path) in sizes.iter().rev().take(10) {
        println!("{lines:>6} {}", path.display());
    }
    let large: Vec<_> = sizes.iter().filter(|(lines, _)| *lines > LARGEST).collect();
    assert!(large.is_empty(), "split these: {large:?}");
}

fn collect(directory: &Path, sizes: &mut Vec<(usize, PathBuf)>) {
    for entry in std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
    {
        let path = entry.path();
        if path.is_dir() {
            if !path.ends_with("target") && !path.ends_with("fixtures") {
                collect(&path, sizes);
            }
        } else if path
            .extension()
            .is_some_and(|kind| kind == "rs" || kind == "erl" || kind == "bt")
        {
            let lines = std::fs::read_to_string(&path).unwrap_or_default().lines().count();
            sizes.push((lines, path.strip_prefix(root()).unwrap_or(&path).to_owned()));
        }
    }
}
