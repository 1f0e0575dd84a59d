//! `test --watch`: which files changed, and which tests that may concern.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use beamtalk_project::{Project, files};

use super::units::{Unit, Work};

/// How often the files are looked at, and how long they must rest before a run.
const INTERVAL: Duration = Duration::from_millis(150);

const WATCHED: &[&str] = &["bt", "btscript", "erl", "hrl", "toml", "md"];

/// Size and time of every file that can change the outcome of a test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot(BTreeMap<PathBuf, (u64, Option<SystemTime>)>);

impl Snapshot {
    /// What is there now. A directory that cannot be read is as one without files.
    pub fn take(root: &Path, paths: &[PathBuf]) -> Self {
        let directories = std::iter::once(root).chain(paths.iter().map(PathBuf::as_path));
        let mut found = BTreeMap::new();
        for directory in directories {
            let below = if directory.is_dir() {
                files::find(directory, WATCHED).unwrap_or_default()
            } else {
                vec![directory.to_owned()]
            };
            for path in below {
                if let Ok(metadata) = std::fs::metadata(&path) {
                    let path = std::fs::canonicalize(&path).unwrap_or(path);
                    found.insert(path, (metadata.len(), metadata.modified().ok()));
                }
            }
        }
        Self(found)
    }

    /// Files that came, went or changed since.
    pub fn changed_since(&self, before: &Self) -> BTreeSet<PathBuf> {
        let paths = self.0.keys().chain(before.0.keys());
        paths
            .filter(|path| self.0.get(*path) != before.0.get(*path))
            .cloned()
            .collect()
    }
}

/// Wait until something differs from `before` and has come to rest.
pub fn wait(root: &Path, paths: &[PathBuf], before: &Snapshot) -> Snapshot {
    let mut last = before.clone();
    loop {
        std::thread::sleep(INTERVAL);
        let now = Snapshot::take(root, paths);
        if now != *before && now == last {
            return now;
        }
        last = now;
    }
}

/// The units that the changed files may concern: their own file, or one they use, directly or through others.
pub fn affected(project: &Project, units: &[Unit], changed: &BTreeSet<PathBuf>) -> BTreeSet<usize> {
    let sources: BTreeMap<PathBuf, String> = files::find(&project.root, &["bt", "btscript"])
        .unwrap_or_default()
        .into_iter()
        .map(|path| {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            (path, text)
        })
        .collect();
    let reached = reach(&sources, changed);
    let is_affected = |unit: &Unit| {
        let native = |path: &PathBuf| changed.contains(path);
        reached.contains(&project.root.join(&unit.file))
            || matches!(&unit.work, Work::Native { path } if native(path))
    };
    let places = units.iter().enumerate();
    places
        .filter(|(_, unit)| is_affected(unit))
        .map(|(at, _)| at)
        .collect()
}

/// The changed files and all that mention a class of one of them, again and again.
fn reach(sources: &BTreeMap<PathBuf, String>, changed: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
    let words: BTreeMap<&PathBuf, BTreeSet<&str>> = sources
        .iter()
        .map(|(path, text)| (path, class_names(text)))
        .collect();
    let mut reached = changed.clone();
    let mut fresh: Vec<PathBuf> = changed.iter().cloned().collect();
    while let Some(path) = fresh.pop() {
        // A file that is gone defined the class it was named after.
        let stem = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .unwrap_or_default();
        let mut declared = sources.get(&path).map(|text| declared(text)).unwrap_or_default();
        declared.insert(stem.split('+').next().unwrap_or(stem).to_owned());
        for (user, used) in &words {
            let mentions = declared.iter().any(|name| used.contains(name.as_str()));
            if mentions && reached.insert((*user).clone()) {
                fresh.push((*user).clone());
            }
        }
    }
    reached
}

/// Classes that a file defines or extends.
fn declared(text: &str) -> BTreeSet<String> {
    use beamtalk_syntax::ast::Item;
    let unit = beamtalk_syntax::parse_file(text).unit;
    unit.items
        .iter()
        .filter_map(|item| match item {
            Item::Class(class) => Some(class.name.text.to_string()),
            Item::Protocol(protocol) => Some(protocol.name.text.to_string()),
            Item::TypeAlias(alias) => Some(alias.name.text.to_string()),
            Item::Extension(extension) => Some(extension.target.name.text.to_string()),
            Item::Statement(_) => None,
        })
        .collect()
}

/// Words that can name a class.
fn class_names(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| word.starts_with(|c: char| c.is_ascii_uppercase()))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::PathBuf;

    use super::reach;

    #[test]
    fn a_change_reaches_users_of_users() {
        let sources: BTreeMap<PathBuf, String> = [
            ("src/A.bt", "Value subclass: A\n  one => 1\n"),
            ("src/B.bt", "A subclass: B\n"),
            ("src/C.bt", "Value subclass: C\n  two => 2\n"),
            ("test/BTest.bt", "TestCase subclass: BTest\n  testB => B new\n"),
            ("test/CTest.bt", "TestCase subclass: CTest\n  testC => C new\n"),
        ]
        .into_iter()
        .map(|(path, text)| (PathBuf::from(path), text.to_owned()))
        .collect();
        let of = |path: &str| {
            let reached = reach(&sources, &BTreeSet::from([PathBuf::from(path)]));
            let shown = reached.iter().map(|path| path.display().to_string());
            shown.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(of("src/A.bt"), "src/A.bt src/B.bt test/BTest.bt");
        assert_eq!(of("src/C.bt"), "src/C.bt test/CTest.bt");
        assert_eq!(of("test/CTest.bt"), "test/CTest.bt");
        // Gone, but still mentioned.
        let mut without = sources.clone();
        without.remove(&PathBuf::from("src/C.bt"));
        let reached = reach(&without, &BTreeSet::from([PathBuf::from("src/C.bt")]));
        assert!(reached.contains(&PathBuf::from("test/CTest.bt")));
    }
}
