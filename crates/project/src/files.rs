//! Files: atomic writing, and finding sources below a directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use beamtalk_storage::{Disk, mode_of, read_regular, read_written, replace_file};

use crate::error::{At, Error, Result};

/// SHA-256 in hexadecimal.
pub use beamtalk_storage::sha256_hex as hash;

/// Replace a file's content so that nobody ever sees half of it; keeps the mode of the old file.
pub fn write_atomic(path: &Path, content: &[u8]) -> Result<()> {
    Ok(replace_file(path, content, mode_of(path), Disk::Wait)?)
}

/// No cache grows this long.
const MAX_KEPT: u64 = 256 * 1024 * 1024;

/// The bytes of a file that an earlier run made and that can be made again. Whatever else stands in its place is as
/// good as none.
pub fn read_kept(path: &Path) -> Option<Vec<u8>> {
    read_regular(path, MAX_KEPT).ok()
}

/// No manifest and no lock file is this long.
const MAX_OWN: u64 = 16 * 1024 * 1024;

/// The bytes of a file that describes a package.
pub fn read_own(path: &Path) -> io::Result<Vec<u8>> {
    read_regular(path, MAX_OWN)
}

/// All files below a directory whose extension is one of these, sorted by path. Hidden directories,
/// `_build` and links to directories are not followed.
pub fn find(directory: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    collect(directory, extensions, &mut found).at("cannot read directory", directory)?;
    Ok(found)
}

fn collect(directory: &Path, extensions: &[&str], found: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_hidden = name.as_encoded_bytes().starts_with(b".");
        if !is_hidden {
            entries.push((name, entry.file_type()?));
        }
    }
    // By name within each directory is by path: comparing whole paths takes longer than reading them.
    entries.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    for (name, kind) in entries {
        if kind.is_dir() {
            if name != "_build" {
                collect(&directory.join(name), extensions, found)?;
            }
        } else if has_extension(Path::new(&name), extensions) {
            let path = directory.join(name);
            if kind.is_file() || path.is_file() {
                found.push(path);
            }
        }
    }
    Ok(())
}

pub fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.extension()
        .is_some_and(|extension| extensions.iter().any(|wanted| extension == *wanted))
}

/// The text of a source file.
pub fn read_source(path: &Path) -> Result<String> {
    let bytes = read_written(path).at("cannot read", path)?;
    String::from_utf8(bytes).map_err(|_| Error::NotText {
        path: path.to_owned(),
    })
}

/// A path as shown to people: relative to the directory where it can be, with `/`.
pub fn shown(path: &Path, base: &Path) -> String {
    let (bytes, front) = (
        path.as_os_str().as_encoded_bytes(),
        base.as_os_str().as_encoded_bytes(),
    );
    // Walking the parts of thousands of paths takes longer than looking at their first bytes.
    let rest = bytes.strip_prefix(front).and_then(|rest| rest.strip_prefix(b"/"));
    if let Some(Ok(rest)) = rest.map(str::from_utf8)
        && !front.is_empty()
        && !rest.starts_with('/')
    {
        return rest.to_owned();
    }
    path.strip_prefix(base).unwrap_or(path).display().to_string()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{find, shown};

    /// A path is shown as its parts behind those of the base, and whole where it does not lie below.
    #[test]
    fn paths_are_shown_from_their_base() {
        for (path, base) in [
            ("/p/src/A.bt", "/p"),
            ("/p/src/A.bt", "/p/"),
            ("/p/src/A.bt", "/"),
            ("/p/src/A.bt", ""),
            ("/p/src/A.bt", "/p/s"),
            ("/p/src/A.bt", "/q"),
            ("/p//src/A.bt", "/p"),
            ("src/A.bt", "src"),
            ("src/A.bt", ""),
        ] {
            let (path, base) = (Path::new(path), Path::new(base));
            let plain = path.strip_prefix(base).unwrap_or(path).display().to_string();
            assert_eq!(
                Path::new(&shown(path, base)),
                Path::new(&plain),
                "{path:?} in {base:?}"
            );
        }
    }

    /// Files are found in the order of their paths, part by part, without what is hidden or built.
    #[test]
    fn files_are_found_in_the_order_of_their_paths() {
        let place = tempfile::tempdir().unwrap();
        for name in [
            "b.bt",
            "a/z.bt",
            "a/b/c.bt",
            "a.bt",
            "a-b/c.bt",
            "_build/x.bt",
            ".git/x.bt",
            "a/n.txt",
        ] {
            let path = place.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            super::write_atomic(&path, b"").unwrap();
        }
        let found = find(place.path(), &["bt"]).unwrap();
        let mut sorted = found.clone();
        sorted.sort();
        assert_eq!(found, sorted);
        assert_eq!(found.len(), 5);
    }
}
