//! Paths that a client names: joined to the project, followed to where they lead, and refused where that is outside or
//! something that is nobody's business.

use std::path::{Component, Path, PathBuf};

use beamtalk_mcp::{NarrowedBy, Settings};
use beamtalk_wire::{ErrorBody, ErrorKind};
use beamtalk_workspace::sources_below;
use globset::{Glob, GlobSet, GlobSetBuilder};

/// Directories of the project that are not for clients, and files and directories of credentials.
const CLOSED: [&str; 11] = [
    "_build",
    ".git",
    ".ssh",
    ".aws",
    ".gnupg",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".htpasswd",
    ".pgpass",
];
/// Keys of this name, with whatever ending but that of the public half.
const KEYS: [&str; 4] = ["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"];
const PUBLIC: &str = "pub";
/// Endings of files with keys.
const SECRET_ENDINGS: [&str; 10] = [
    "key", "pem", "p8", "p12", "pfx", "gpg", "kdbx", "jks", "keystore", "ppk",
];

pub(crate) struct Paths {
    root: PathBuf,
    /// The state directory, with its secrets.
    state: PathBuf,
    denied: GlobSet,
    /// What the project alone denies.
    of_project: GlobSet,
    allow_outside: bool,
}

/// Whether a name says that it is closed, in capitals or not.
fn is_closed(name: &str) -> bool {
    let name = name.to_lowercase();
    let (stem, ending) = name.rsplit_once('.').unwrap_or((&name, ""));
    CLOSED.contains(&&*name)
        || name.starts_with(".env")
        || KEYS.contains(&&*name)
        || (ending != PUBLIC && KEYS.contains(&stem))
        || SECRET_ENDINGS.contains(&ending)
}

fn globs<'a>(patterns: impl Iterator<Item = &'a String>) -> GlobSet {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        if let Ok(glob) = Glob::new(pattern) {
            set.add(glob);
        }
    }
    set.build().unwrap_or_default()
}

fn denied(path: &str, why: &str) -> Box<ErrorBody> {
    let shown = beamtalk_wire::escape(&path.chars().take(200).collect::<String>());
    let error = ErrorBody::new(ErrorKind::from("path_denied"), format!("'{shown}' {why}"));
    Box::new(error.hint("name a file of the project, relative to its root"))
}

impl Paths {
    pub(crate) fn new(root: &Path, state: &Path, settings: &Settings) -> Self {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let is_of_project = |pattern: &&String| settings.paths_denied_by_project.contains(pattern);
        Self {
            root: real(root),
            state: real(state),
            denied: globs(settings.deny_paths.iter()),
            of_project: globs(settings.deny_paths.iter().filter(is_of_project)),
            allow_outside: settings.allow_outside,
        }
    }

    /// A directory, as `inside` has it, by its whole path.
    pub(crate) fn directory(&self, path: &str) -> Result<String, Box<ErrorBody>> {
        let place = self.root.join(self.inside(path)?);
        let place = place.components().collect::<PathBuf>();
        let text = place.to_str().ok_or_else(|| denied(path, "is not UTF-8"))?;
        Ok(text.to_owned())
    }

    /// A file with source, or a directory, as `inside` has it.
    pub(crate) fn source(&self, path: &str) -> Result<String, Box<ErrorBody>> {
        let place = self.inside(path)?;
        if Path::new(&place).extension().is_some_and(|ending| ending == "bt")
            || self.root.join(&place).is_dir()
        {
            Ok(place)
        } else {
            Err(denied(path, "is neither a .bt file nor a directory"))
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
        let mut names = relative
            .components()
            .map(|part| part.as_os_str().to_string_lossy());
        let is_closed = names.any(|name| is_closed(&name));
        if is_closed || self.denied.is_match(relative) {
            let error = denied(path, "is closed to clients");
            let is_of_project = !is_closed && self.of_project.is_match(relative);
            return Err(if is_of_project {
                Box::new(error.detail("by", NarrowedBy::Project.name()))
            } else {
                error
            });
        }
        let text = relative.to_str().ok_or_else(|| denied(path, "is not UTF-8"))?;
        Ok(if text.is_empty() { "." } else { text }.to_owned())
    }

    /// The file that defines a class, if it may be named.
    pub(crate) fn file_defining(&self, class: &str) -> Option<String> {
        let defines = |text: &str| {
            text.split("subclass:").skip(1).any(|rest| {
                let rest = rest.trim_start().strip_prefix(class);
                rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_'))
            })
        };
        let below = |directory: &str| sources_below(&self.root.join(directory)).unwrap_or_default();
        let sources = ["src", "test"].map(below).concat();
        let mut named = sources.iter().filter_map(|source| {
            let name = self
                .inside(source.strip_prefix(&self.root).ok()?.to_str()?)
                .ok()?;
            Some((source, name))
        });
        named
            .find(|(source, _)| std::fs::read_to_string(source).is_ok_and(|text| defines(&text)))
            .map(|(_, name)| name)
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
        let settings = Settings {
            deny_paths: vec!["private/**".to_owned(), "own/**".to_owned()],
            paths_denied_by_project: vec!["private/**".to_owned()],
            ..Settings::default()
        };
        let paths = Paths::new(&root, &state, &settings);
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
            (".ENV.local", None),
            ("keys/SERVER.Pem", None),
            ("id_rsa", None),
            ("sub/id_ed25519", None),
            ("id_ed25519.bak", None),
            ("id_ed25519.pub", Some("id_ed25519.pub")),
            (".ssh/config", None),
            (".AWS/credentials", None),
            (".gnupg", None),
            (".netrc", None),
            (".npmrc", None),
            (".pypirc", None),
            (".git-credentials", None),
            ("a.p12", None),
            ("a.pfx", None),
            ("a.gpg", None),
            ("a.kdbx", None),
            ("monkey", Some("monkey")),
            (".gitignore", Some(".gitignore")),
            ("private/a.bt", None),
            ("", None),
        ] {
            assert_eq!(paths.inside(path).ok().as_deref(), found, "{path}");
        }
        std::fs::create_dir_all(root.join("private")).unwrap();
        std::fs::write(root.join("src/a.bt"), "Object subclass: Lamp\n").unwrap();
        std::fs::write(root.join("private/b.bt"), "Object subclass: Hidden\n").unwrap();
        assert_eq!(paths.file_defining("Lamp").as_deref(), Some("src/a.bt"));
        assert_eq!(
            (paths.file_defining("Lam"), paths.file_defining("Hidden")),
            (None, None)
        );
        let absolute = root.join("src/a.bt");
        assert_eq!(
            paths.inside(absolute.to_str().unwrap()).ok().as_deref(),
            Some("src/a.bt")
        );
        let by = |path: &str| paths.inside(path).unwrap_err().details.get("by").cloned();
        assert_eq!(by("private/a.bt"), Some("project".into()));
        assert_eq!((by("own/a.bt"), by("id_rsa")), (None, None));
        let whole = |path: &str| paths.directory(path).ok();
        let real = root.canonicalize().unwrap().display().to_string();
        assert_eq!(whole("."), Some(real.clone()));
        assert_eq!(whole("in"), Some(format!("{real}/src")));
        assert_eq!((whole("/"), whole(".git")), (None, None));
        std::os::unix::fs::symlink("../notes.txt", root.join("src/b.bt")).unwrap();
        std::fs::write(root.join("notes.txt"), "").unwrap();
        for (path, is_source) in [
            ("src", true),
            ("src/a.bt", true),
            ("src/none.bt", true),
            ("notes.txt", false),
            ("src/b.bt", false),
            ("none", false),
        ] {
            assert_eq!(paths.source(path).is_ok(), is_source, "{path}");
        }
        let wide = Settings {
            allow_outside: true,
            ..Settings::default()
        };
        let wide = Paths::new(&root, &state, &wide);
        assert!(wide.inside("../x.bt").is_ok());
        assert!(wide.inside("state/cookie").is_err());
    }
}
