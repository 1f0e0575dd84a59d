//! Which directory a command means by "the project".

use std::path::{Path, PathBuf};

use crate::StorageError;

/// The nearest directory upwards that holds `beamtalk.toml`, a directory `.beamtalk`, or `.git`;
/// the starting directory itself if none does. The answer is canonical.
///
/// The state directory is not a marker: usually it is `~/.beamtalk`, and every directory below the
/// home directory would belong to it.
pub fn find_project_root(start: &Path, state_directory: &Path) -> Result<PathBuf, StorageError> {
    let start = start
        .canonicalize()
        .map_err(StorageError::file("find the project of", start))?;
    let state_directory = state_directory.canonicalize().ok();
    let is_marked = |directory: &Path| {
        let local = directory.join(".beamtalk");
        directory.join("beamtalk.toml").is_file()
            || directory.join(".git").exists()
            || (local.is_dir() && (state_directory.is_none() || local.canonicalize().ok() != state_directory))
    };
    let root = start.ancestors().find(|directory| is_marked(directory));
    Ok(root.unwrap_or(&start).to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::find_project_root;

    #[test]
    fn the_nearest_marker_wins_and_the_state_directory_is_none() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let state = home.join(".beamtalk");
        let deep = home.join("orbit/src/deep");
        fs::create_dir_all(&deep).unwrap();
        fs::create_dir(&state).unwrap();
        assert_eq!(find_project_root(&deep, &state).unwrap(), deep);
        // The same directory under another name is still the state directory.
        let alias = home.join("alias");
        std::os::unix::fs::symlink(&state, &alias).unwrap();
        assert_eq!(find_project_root(&deep, &alias).unwrap(), deep);

        fs::write(home.join("orbit/.git"), "gitdir: elsewhere").unwrap();
        assert_eq!(find_project_root(&deep, &state).unwrap(), home.join("orbit"));
        fs::create_dir(home.join("orbit/src/.beamtalk")).unwrap();
        assert_eq!(find_project_root(&deep, &state).unwrap(), home.join("orbit/src"));
        fs::write(deep.join("beamtalk.toml"), "").unwrap();
        assert_eq!(find_project_root(&deep, &state).unwrap(), deep);
    }

    #[test]
    fn links_on_the_way_are_resolved() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        fs::create_dir_all(home.join("real/.git")).unwrap();
        std::os::unix::fs::symlink(home.join("real"), home.join("link")).unwrap();
        assert_eq!(
            find_project_root(&home.join("link"), &home.join("none")).unwrap(),
            home.join("real")
        );
    }
}
