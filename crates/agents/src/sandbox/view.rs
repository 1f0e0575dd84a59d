//! From a launch to the steps of its root: links are followed here, once, and nowhere else.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use super::layout::{Claim, Grant, Hidden, Step, layout};
use crate::config::Access;
use crate::session::launch::Launch;

/// More links than this in one path are a circle.
const LINKS: usize = 40;

/// What a session is to see.
#[derive(Debug, Default)]
pub(crate) struct View {
    pub(crate) steps: Vec<Step>,
    /// Symbolic links on the way to granted paths, and where they point.
    pub(crate) links: BTreeMap<PathBuf, PathBuf>,
    /// Those of the steps that show something which cannot be changed.
    pub(crate) fixed: BTreeSet<PathBuf>,
    /// Where the door is put.
    pub(crate) door_at: PathBuf,
}

/// Follow `path` to what it stands for, noting the links on the way; `None` if it leads nowhere.
fn follow(path: &Path, links: &mut BTreeMap<PathBuf, PathBuf>) -> Option<PathBuf> {
    let mut real = PathBuf::from("/");
    let mut rest: Vec<PathBuf> = vec![path.to_owned()];
    let mut followed = 0;
    while let Some(next) = rest.pop() {
        let mut parts = next.components();
        let Some(part) = parts.next() else { continue };
        let after = parts.as_path().to_owned();
        if after != Path::new("") {
            rest.push(after);
        }
        match part {
            Component::RootDir | Component::Prefix(_) => real = PathBuf::from("/"),
            Component::CurDir => {}
            Component::ParentDir => {
                real.pop();
            }
            Component::Normal(name) => {
                let at = real.join(name);
                match std::fs::read_link(&at) {
                    Ok(target) => {
                        followed += 1;
                        if followed > LINKS {
                            return None;
                        }
                        rest.push(target.clone());
                        links.insert(at, target);
                    }
                    Err(_) => real = at,
                }
            }
        }
    }
    std::fs::symlink_metadata(&real).ok().map(|_| real)
}

/// The hidden places as they really lie.
fn hidden(launch: &Launch) -> Vec<Hidden> {
    let place = |path: &PathBuf, unless_named: bool| {
        let path = std::fs::canonicalize(path).ok()?;
        Some(Hidden { path, unless_named })
    };
    let state = launch.hidden.iter().filter_map(|path| place(path, false));
    let stores = launch.stores.iter().filter_map(|path| place(path, true));
    // Where both say something about one path, the stricter counts.
    stores.chain(state).collect()
}

/// The first symbolic link on the way to a hidden place that lies in one of the `writable`
/// directories. Nothing can be mounted over a link: who may replace it chooses what the owner's
/// programs find there, whatever covers the place it led to.
fn loose_link(launch: &Launch, hidden: &[Hidden], writable: &[PathBuf]) -> Option<PathBuf> {
    let mut links = BTreeMap::new();
    for path in launch.hidden.iter().chain(&launch.stores) {
        follow(path, &mut links);
    }
    links.into_keys().find(|link| {
        link.parent().is_some_and(|directory| {
            writable.iter().any(|path| directory.starts_with(path))
                && !hidden.iter().any(|place| directory.starts_with(&place.path))
        })
    })
}

/// The granted paths below which something may be written, as they really lie.
fn writable(launch: &Launch) -> Vec<PathBuf> {
    let granted = launch.paths.iter().filter(|(_, access)| **access >= Access::Rw);
    granted
        .filter_map(|(path, _)| std::fs::canonicalize(path).ok())
        .collect()
}

/// Writable paths become mounts of their own where what is around them is fixed; which steps are.
fn fix(steps: &mut Vec<Step>, writable: &[PathBuf]) -> BTreeSet<PathBuf> {
    let is_writable = |path: &Path| writable.iter().any(|around| path.starts_with(around));
    for path in writable {
        let around = steps.iter().rfind(|step| path.starts_with(step.path()));
        if let Some(Step::Show(around)) = around
            && !is_writable(around)
        {
            steps.push(Step::Show(path.clone()));
            steps.sort_by(|one, other| one.path().cmp(other.path()));
        }
    }
    let shown = steps.iter().filter_map(|step| match step {
        Step::Show(path) => Some(path),
        Step::Hide(_) => None,
    });
    shown.filter(|path| !is_writable(path)).cloned().collect()
}

/// What `launch` shows; why it cannot be shown otherwise.
pub(crate) fn view(launch: &Launch, terminal: Option<&Path>) -> Result<View, String> {
    let mut view = View::default();
    let mut grants = Vec::new();
    let writable: Vec<&String> = launch
        .paths
        .iter()
        .filter_map(|(path, access)| (*access >= Access::Rw).then_some(path))
        .collect();
    for path in launch.paths.keys().map(PathBuf::from) {
        // A process namespace has a `/proc` of its own.
        if launch.pid && path.starts_with("/proc") {
            continue;
        }
        let mut links = BTreeMap::new();
        let Some(real) = follow(&path, &mut links) else {
            continue;
        };
        let text = path.display().to_string();
        let in_place = launch.in_place.contains(&text);
        // Who writes in a directory must not be able to choose what lies behind it.
        let planted = links
            .keys()
            .filter_map(|link| link.parent())
            .any(|directory| writable.iter().any(|path| directory.starts_with(path)));
        if (in_place || planted) && !real.starts_with(&launch.place) {
            return Err(format!(
                "path {text} leads out of the working directory {}",
                launch.place.display()
            ));
        }
        let claim = if path == launch.tmp || launch.worktree.as_ref() == Some(&path) {
            Claim::Own
        } else if in_place || !launch.stores.iter().any(|store| path.starts_with(store)) {
            Claim::Place
        } else {
            Claim::Named
        };
        view.links.append(&mut links);
        grants.push(Grant { path: real, claim });
    }
    if let Some(path) = terminal {
        let claim = Claim::Named;
        grants.extend(follow(path, &mut view.links).map(|path| Grant { path, claim }));
    }
    // Names by which the session knows its directory and its door.
    follow(Path::new(&launch.cwd), &mut view.links);
    let door_at = follow(&launch.namespace, &mut view.links);
    view.door_at = door_at.unwrap_or_else(|| launch.namespace.clone());
    let hidden = hidden(launch);
    view.steps = layout(&grants, &hidden)
        .map_err(|path| format!("path {} is not shown to any session", path.display()))?;
    let mut writable = self::writable(launch);
    if let Some(link) = loose_link(launch, &hidden, &writable) {
        return Err(format!(
            "path {} would expose a protected place: it is a symbolic link the session could replace; \
             put the directory itself there, or start the session in another directory",
            link.display()
        ));
    }
    writable.extend(terminal.and_then(|path| std::fs::canonicalize(path).ok()));
    view.fixed = fix(&mut view.steps, &writable);
    Ok(view)
}

/// The granted path that lies around or in a hidden place.
pub(crate) fn exposed(launch: &Launch) -> Option<String> {
    let hidden = hidden(launch);
    if let Some(link) = loose_link(launch, &hidden, &writable(launch)) {
        return Some(link.display().to_string());
    }
    launch.paths.keys().find_map(|path| {
        let real = std::fs::canonicalize(path).ok()?;
        let named = !launch.in_place.contains(path);
        let shows = |place: &Hidden| {
            place.path.starts_with(&real)
                || (real.starts_with(&place.path)
                    && !(named && place.unless_named)
                    && Path::new(path) != launch.tmp
                    && launch.worktree.as_deref() != Some(Path::new(path)))
        };
        hidden.iter().any(shows).then(|| path.clone())
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::fs::symlink;

    use super::follow;

    #[test]
    fn links_are_followed_and_noted() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join("usr/bin")).unwrap();
        symlink("usr/bin", base.join("bin")).unwrap();
        symlink("../bin/../bin", base.join("usr/again")).unwrap();
        let mut links = BTreeMap::new();
        assert_eq!(
            follow(&base.join("usr/again/."), &mut links),
            Some(base.join("usr/bin"))
        );
        assert_eq!(links.len(), 2, "{links:?}");
        symlink("circle", base.join("circle")).unwrap();
        assert_eq!(follow(&base.join("circle"), &mut links), None);
        assert_eq!(follow(&base.join("nowhere"), &mut links), None);
    }
}
