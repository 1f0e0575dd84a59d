//! Paths that a client names: joined to the project, followed to where they lead, and refused where that is outside or
//! something that is nobody's business.

use std::path::{Component, Path, PathBuf};

use beamtalk_wire::{ErrorBody, ErrorKind};
use beamtalk_workspace::sources_below;
use globset::{Glob, GlobSet, GlobSetBuilder};

/// Directories of the project that are not for clients.
const CLOSED: [&str; 2] = ["_build", ".git"];
/// Endings of files with keys.
const SECRET_ENDINGS: [&str; 2] = ["key", "pem"];

pub(crate) struct Paths {
    root: PathBuf,
    /// The state directory, with its secrets.
    state: PathBuf,
    denied: GlobSet,
    allow_outside: bool,
}

fn denied(path: &str, why: &str) -> Box<ErrorBody> {
    let shown = beamtalk_wire::escape(&path.chars().take(200).collect::<String>());
    let error = ErrorBody::new(ErrorKind::from("path_denied"), format!("'{shown}' {why}"));
    Box::new(error.hint("name a file of the project, relative to its root"))
}

impl Paths {
    pub(crate) fn new(root: &Path, state: &Path, patterns: &[String], allow_outside: bool) -> Self {
        let mut set = GlobSetBuilder::new();
        for pattern in patterns {
            if let Ok(glob) = Glob::new(pattern) {
                set.add(glob);
            }
        }
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        Self {
            root: real(root),
            state: real(state),
            denied: set.build().unwrap_or_default(),
            allow_outside,
        }
    }

    /// Where a path leads, relative to the project if it is inside.
    pub(crate) fn inside(&self, path: &str) -> Result<String, Box<ErrorBody>> {
        if path.is_empty() || path.contains('\0') {
            return Err(denied(path, "is no path"));
        }
        let place = self.resolve(path)?;
        if place.starts_with(&self.state) {
            return Err(denied(path, "is in Beamtalk's own state directory"));
        }
        let Ok(relative) = place.strip_prefix(&self.root) else {
            if self.allow_outside {
                return Ok(place.display().to_string());
            }
            return Err(denied(path, "is outside the project"));
        };
        let is_closed = relative
            .components()
            .any(|part| CLOSED.iter().any(|closed| part.as_os_str() == *closed));
        let name = relative
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let ending = relative.extension().and_then(|ending| ending.to_str());
        let is_secret =
            name.starts_with(".env") || ending.is_some_and(|ending| SECRET_ENDINGS.contains(&ending));
        if is_closed || is_secret || self.denied.is_match(relative) {
            return Err(denied(path, "is closed to clients"));
        }
        let text = relative.to_str().ok_or_else(|| denied(path, "is not UTF-8"))?;
        Ok(if text.is_empty() { "." } else { text }.to_owned())
    }

    /// The sources below a directory that may not be named, relative to the project.
    pub(crate) fn closed_below(&self, directory: &str) -> Vec<String> {
        // Where these cannot be read, the workspace reads none of them either.
        let sources = sources_below(&self.root.join(directory)).unwrap_or_default();
        let names = sources
            .iter()
            .filter_map(|source| source.strip_prefix(&self.root).ok());
        let names = names.map(|name| name.to_string_lossy().into_owned());
        names.filter(|name| self.inside(name).is_err()).collect()
    }

    /// The real place: links are followed as far as there is something; what follows must go down.
    fn resolve(&self, path: &str) -> Result<PathBuf, Box<ErrorBody>> {
        let mut place = self.root.clone();
        let mut is_there = true;
        for part in Path::new(path).components() {
            match part {
                Component::Prefix(_) | Component::RootDir => place = PathBuf::from("/"),
                Component::CurDir => {}
                Component::ParentDir if !is_there => {
                    return Err(denied(path, "leads through what does not exist"));
                }
                Component::ParentDir => {
                    place.pop();
                }
                Component::Normal(name) => {
                    place.push(name);
                    if is_there {
                        match place.canonicalize() {
                            Ok(real) => place = real,
                            // A link that leads nowhere could lead anywhere later.
                            Err(_) if place.symlink_metadata().is_ok() => {
                                return Err(denied(path, "is a link that leads nowhere"));
                            }
                            Err(_) => is_there = false,
                        }
                    }
                }
            }
        }
        Ok(place)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests set up what they look at")]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_project_can_be_named() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("project");
        let state = root.join("state");
        for sub in ["src", ".git", "state", "_build"] {
            std::fs::create_dir_all(root.join(sub)).unwrap();
        }
        std::fs::write(directory.path().join("x.bt"), "").unwrap();
        std::fs::write(root.join("src/a.bt"), "").unwrap();
        std::os::unix::fs::symlink(directory.path(), root.join("out")).unwrap();
        std::os::unix::fs::symlink("src", root.join("in")).unwrap();
        std::os::unix::fs::symlink("nowhere", root.join("dead")).unwrap();
        let paths = Paths::new(&root, &state, &["private/**".to_owned()], false);
        for (path, found) in [
            ("src/a.bt", Some("src/a.bt")),
            ("./src/../src/a.bt", Some("src/a.bt")),
            ("in/a.bt", Some("src/a.bt")),
            ("src/new/B.bt", Some("src/new/B.bt")),
            (".", Some(".")),
            ("../x.bt", None),
            ("out/x.bt", None),
            ("src/none/../../../x.bt", None),
            ("/etc/passwd", None),
            (".git/config", None),
            ("_build/a", None),
            ("state/cookie", None),
            ("dead", None),
            ("dead/a.bt", None),
            ("server.pem", None),
            (".env", None),
            ("private/a.bt", None),
            ("", None),
        ] {
            assert_eq!(paths.inside(path).ok().as_deref(), found, "{path}");
        }
        let absolute = root.join("src/a.bt");
        assert_eq!(
            paths.inside(absolute.to_str().unwrap()).ok().as_deref(),
            Some("src/a.bt")
        );
        let wide = Paths::new(&root, &state, &[], true);
        assert!(wide.inside("../x.bt").is_ok());
        assert!(wide.inside("state/cookie").is_err());
    }
}
