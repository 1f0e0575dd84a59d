//! `beamtalk new`: a project that builds, runs and passes its tests.

use std::path::Path;

use anyhow::Context;
use beamtalk_project::files;
use beamtalk_project::manifest::{is_package_name, is_reserved};

use crate::exit::{Exit, Fault};
use crate::terminal::Terminal;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The package name, and the directory to make.
    name: String,
    /// An application with a supervisor and a `Main` class.
    #[arg(long)]
    app: bool,
}

/// Path and content of the files of every project; `{name}` and `{class}` are replaced.
const COMMON: &[(&str, &str)] = &[
    ("beamtalk.toml", include_str!("new/beamtalk.toml")),
    ("AGENTS.md", include_str!("new/AGENTS.md")),
    (".gitignore", "/_build/\n"),
    (".mcp.json", include_str!("new/mcp.json")),
];

const LIBRARY: &[(&str, &str)] = &[
    ("README.md", include_str!("new/README.library.md")),
    ("Justfile", include_str!("new/Justfile")),
    ("src/{class}.bt", include_str!("new/Library.bt")),
    ("test/{class}Test.bt", include_str!("new/LibraryTest.bt")),
];

const APPLICATION: &[(&str, &str)] = &[
    ("README.md", include_str!("new/README.app.md")),
    ("Justfile", include_str!("new/Justfile.app")),
    ("src/Main.bt", include_str!("new/Main.bt")),
    ("src/{class}Supervisor.bt", include_str!("new/Supervisor.bt")),
    ("src/{class}Counter.bt", include_str!("new/Counter.bt")),
    ("test/{class}CounterTest.bt", include_str!("new/CounterTest.bt")),
];

pub(crate) fn run(terminal: &mut Terminal, arguments: &Arguments) -> anyhow::Result<Exit> {
    let name = arguments.name.as_str();
    if !is_package_name(name) {
        let message = format!("'{name}' is not a package name");
        let hint = "lower-case letters, digits and _, starting with a letter, at most 64";
        return Err(Fault::usage("bad_name", message).with_hint(hint).into());
    }
    if is_reserved(name) {
        return Err(Fault::usage("reserved_name", format!("the name '{name}' is reserved")).into());
    }
    let root = Path::new(name);
    if root.exists() {
        return Err(Fault::usage("exists", format!("{name} exists already")).into());
    }
    let class = class_name(name);
    let specific = if arguments.app { APPLICATION } else { LIBRARY };
    for (path, content) in COMMON.iter().chain(specific) {
        let fill = |text: &str| text.replace("{name}", name).replace("{class}", &class);
        let path = root.join(fill(path));
        let directory = path.parent().unwrap_or(root);
        std::fs::create_dir_all(directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
        let mut content = fill(content);
        if arguments.app && path.ends_with("beamtalk.toml") {
            content.push_str(&fill("\n[application]\nsupervisor = \"{class}Supervisor\"\n"));
        }
        files::write_atomic(&path, content.as_bytes())?;
    }
    let kind = if arguments.app { "application" } else { "library" };
    if terminal.is_json() {
        terminal.print(serde_json::json!({"name": name, "kind": kind, "path": root}))?;
    } else {
        terminal.status(format_args!("Created {kind} {name}"));
    }
    Ok(Exit::Success)
}

/// `orbit_calc` → `OrbitCalc`.
fn class_name(package: &str) -> String {
    package
        .split('_')
        .flat_map(|word| {
            let mut letters = word.chars();
            letters
                .next()
                .into_iter()
                .flat_map(char::to_uppercase)
                .chain(letters)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::class_name;

    #[test]
    fn package_names_become_class_names() {
        assert_eq!(class_name("orbit"), "Orbit");
        assert_eq!(class_name("orbit_calc2"), "OrbitCalc2");
    }
}
