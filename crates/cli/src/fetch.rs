//! Git dependencies: a mirror for each URL below the state directory, a pinned checkout for each package.
//!
//! Fetching runs the system's `git` without prompts, hooks or submodules and with few protocols; it
//! runs no code of the dependency.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use beamtalk_storage::StateDirectory;
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, value};

use crate::exit::{Exit, Fault};
use crate::files;
use crate::manifest::{Dependency, Reference, Source};
use crate::terminal::Network;

const LOCK_FILE: &str = "beamtalk.lock";

/// The directory of a git dependency at its pinned commit, fetched if it is not there.
pub(crate) fn checkout(root: &Path, dependency: &Dependency, network: Network) -> anyhow::Result<PathBuf> {
    let Source::Git { url, reference } = &dependency.source else {
        anyhow::bail!("'{}' is not a git dependency", dependency.name);
    };
    let mut lock = Lock::read(root)?;
    let pinned = lock.find(&dependency.name, url, reference);
    let directory = |sha: &str| {
        let short: String = sha.chars().take(12).collect();
        root.join("_build/deps")
            .join(&dependency.name)
            .join(format!("source-{short}"))
    };
    if let Some(sha) = &pinned
        && directory(sha).is_dir()
    {
        return Ok(directory(sha));
    }
    if network == Network::Refused {
        let message = format!(
            "dependency '{}' must be fetched from {url}, but --offline is given",
            dependency.name
        );
        return Err(Fault::failure("offline", message).into());
    }
    let mirror = update_mirror(url)?;
    let found = resolve(&mirror, reference).with_context(|| {
        format!(
            "dependency '{}': no {} in {url}",
            dependency.name,
            reference.shown()
        )
    })?;
    let sha = match pinned {
        Some(pinned) if matches!(reference, Reference::Branch(_)) => pinned,
        Some(pinned) if pinned != found => {
            let message = format!(
                "dependency '{}': {} is now {found}, but {LOCK_FILE} pins {pinned}",
                dependency.name,
                reference.shown()
            );
            return Err(Fault::failure("lock_mismatch", message).into());
        }
        _ => found,
    };
    let target = directory(&sha);
    std::fs::create_dir_all(target.parent().unwrap_or(root))?;
    git(
        Path::new("."),
        &[
            "clone",
            "--quiet",
            "--no-checkout",
            "--shared",
            &utf8(&mirror)?,
            &utf8(&target)?,
        ],
    )?;
    git(&target, &["checkout", "--quiet", "--detach", &sha])?;
    lock.pin(&dependency.name, url, reference, &sha);
    lock.write(root)?;
    Ok(target)
}

impl Reference {
    /// As the lock file and messages write it.
    fn shown(&self) -> String {
        match self {
            Reference::Tag(name) => format!("tag:{name}"),
            Reference::Branch(name) => format!("branch:{name}"),
            Reference::Revision(name) => format!("rev:{name}"),
        }
    }
}

fn update_mirror(url: &str) -> anyhow::Result<PathBuf> {
    let cache = StateDirectory::open(None)?.directory("cache")?.path_of("git");
    std::fs::create_dir_all(&cache)?;
    let mirror = cache.join(files::hash(url.as_bytes()).chars().take(16).collect::<String>());
    if mirror.is_dir() {
        git(
            &mirror,
            &[
                "fetch",
                "--quiet",
                "--prune",
                "--tags",
                "--",
                url,
                "+refs/*:refs/*",
            ],
        )?;
    } else {
        git(
            &cache,
            &["clone", "--quiet", "--mirror", "--", url, &utf8(&mirror)?],
        )?;
    }
    Ok(mirror)
}

fn resolve(mirror: &Path, reference: &Reference) -> anyhow::Result<String> {
    let name = match reference {
        Reference::Tag(name) => format!("refs/tags/{name}^{{commit}}"),
        Reference::Branch(name) => format!("refs/heads/{name}^{{commit}}"),
        Reference::Revision(name) => format!("{name}^{{commit}}"),
    };
    git(
        mirror,
        &["rev-parse", "--verify", "--quiet", "--end-of-options", &name],
    )
}

fn git(directory: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("git")
        .args([
            "-c",
            "core.hooksPath=/dev/null",
            "-c",
            "submodule.recurse=false",
            "-c",
            "advice.detachedHead=false",
        ])
        .args(arguments)
        .current_dir(directory)
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_ALLOW_PROTOCOL", "https:ssh:file")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdin(std::process::Stdio::null())
        .output()
        .map_err(|cause| Fault {
            exit: Exit::Environment,
            kind: "git_missing",
            message: format!("cannot run git: {cause}"),
            hint: Some("install git to use git dependencies".to_owned()),
        })?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Fault::failure("git_failed", format!("git: {message}")).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn utf8(path: &Path) -> anyhow::Result<String> {
    path.to_str()
        .map(str::to_owned)
        .with_context(|| format!("{} is not UTF-8", path.display()))
}

/// `beamtalk.lock`.
struct Lock {
    document: DocumentMut,
}

impl Lock {
    fn read(root: &Path) -> anyhow::Result<Self> {
        let path = root.join(LOCK_FILE);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        let document = text
            .parse()
            .map_err(|error| Fault::usage("bad_lock", format!("{}: {error}", path.display())))?;
        Ok(Self { document })
    }

    fn packages(&self) -> Option<&ArrayOfTables> {
        self.document.get("package").and_then(Item::as_array_of_tables)
    }

    fn find(&self, name: &str, url: &str, reference: &Reference) -> Option<String> {
        let has =
            |table: &Table, key: &str, wanted: &str| table.get(key).and_then(Item::as_str) == Some(wanted);
        let entry = self.packages()?.iter().find(|table| {
            has(table, "name", name) && has(table, "url", url) && has(table, "reference", &reference.shown())
        })?;
        entry.get("sha").and_then(Item::as_str).map(str::to_owned)
    }

    fn pin(&mut self, name: &str, url: &str, reference: &Reference, sha: &str) {
        let mut entry = Table::new();
        entry.insert("name", value(name));
        entry.insert("url", value(url));
        entry.insert("reference", value(reference.shown()));
        entry.insert("sha", value(sha));
        let mut tables = self.packages().cloned().unwrap_or_default();
        tables.retain(|table| table.get("name").and_then(Item::as_str) != Some(name));
        tables.push(entry);
        self.document.insert("package", Item::ArrayOfTables(tables));
    }

    fn write(&self, root: &Path) -> anyhow::Result<()> {
        let body = self.document.to_string();
        let body = body
            .trim_start_matches("# This file is generated by beamtalk. Do not edit.")
            .trim_start();
        let text = format!("# This file is generated by beamtalk. Do not edit.\n{body}");
        files::write_atomic(&root.join(LOCK_FILE), text.as_bytes())
    }
}
