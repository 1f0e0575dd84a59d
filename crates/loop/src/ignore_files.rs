//! `.gitignore` and `.ignore`: which paths below root they exclude.
//!
//! The rules of git: later lines win over earlier ones, deeper files over higher ones, `.ignore`
//! over `.gitignore`; `!` takes back; a trailing `/` means directories; a slash elsewhere ties the
//! pattern to the directory of its file. What lies in an excluded directory stays excluded.

use std::collections::BTreeMap;
use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};

/// Longer files are not read to their end: nobody writes such by hand.
const FILE_LIMIT: u64 = 1024 * 1024;

struct Line {
    matcher: GlobMatcher,
    takes_back: bool,
    directories_only: bool,
}

/// The files of a tree, read as they are needed.
pub(crate) struct IgnoreFiles<'a> {
    root: &'a Path,
    /// By directory, relative to root, which is the empty text.
    lines: BTreeMap<String, Vec<Line>>,
}

impl<'a> IgnoreFiles<'a> {
    pub(crate) fn new(root: &'a Path) -> Self {
        Self {
            root,
            lines: BTreeMap::new(),
        }
    }

    /// Whether a file, relative to root, is excluded.
    pub(crate) fn excludes(&mut self, path: &str) -> bool {
        let ends = path
            .match_indices('/')
            .map(|(slash, _)| slash)
            .chain([path.len()]);
        // From the top down: nothing below an excluded directory is looked at.
        ends.into_iter().any(|end| {
            let part = path.get(..end).unwrap_or(path);
            self.judge(part, end < path.len())
        })
    }

    fn judge(&mut self, path: &str, is_directory: bool) -> bool {
        let mut directory = crate::pattern::parent(path);
        loop {
            let inside = match directory {
                "" => path,
                _ => path.get(directory.len() + 1..).unwrap_or(path),
            };
            let lines = self.read(directory).iter().rev();
            for line in lines {
                if (is_directory || !line.directories_only) && line.matcher.is_match(inside) {
                    return !line.takes_back;
                }
            }
            if directory.is_empty() {
                return false;
            }
            directory = crate::pattern::parent(directory);
        }
    }

    fn read(&mut self, directory: &str) -> &[Line] {
        let root = self.root;
        self.lines.entry(directory.to_owned()).or_insert_with(|| {
            [".gitignore", ".ignore"]
                .iter()
                .filter_map(|name| {
                    crate::files::read_start(&root.join(directory).join(name), FILE_LIMIT).ok()
                })
                .flat_map(|bytes| parse(&bytes))
                .collect()
        })
    }
}

fn parse(bytes: &[u8]) -> Vec<Line> {
    let text = String::from_utf8_lossy(bytes);
    text.lines().filter_map(parse_line).collect()
}

/// A line that is a pattern; what is no glob excludes nothing.
fn parse_line(line: &str) -> Option<Line> {
    let mut text = line.strip_suffix('\r').unwrap_or(line);
    if text.starts_with('#') {
        return None;
    }
    // Blanks at the end do not count, unless the last is written with a backslash.
    while text.ends_with(' ') && !text.ends_with("\\ ") {
        text = text.strip_suffix(' ').unwrap_or(text);
    }
    let takes_back = text.starts_with('!');
    text = text.strip_prefix('!').unwrap_or(text);
    let directories_only = text.ends_with('/');
    text = text.strip_suffix('/').unwrap_or(text);
    let is_tied = text.contains('/');
    text = text.strip_prefix('/').unwrap_or(text);
    if text.is_empty() {
        return None;
    }
    let glob = if is_tied {
        text.to_owned()
    } else {
        format!("**/{text}")
    };
    let matcher = GlobBuilder::new(&glob)
        .literal_separator(true)
        .backslash_escape(true)
        .build()
        .ok()?
        .compile_matcher();
    Some(Line {
        matcher,
        takes_back,
        directories_only,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = directory.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        directory
    }

    #[test]
    fn the_rules_of_git_hold() {
        let root = tree(&[
            (
                ".gitignore",
                "# generated\n*.o\nbuild/\n/top\ndocs/*.html\n!docs/keep.html\na/**/z\nspace\\ \n\\#odd\n!important.o\n",
            ),
            ("sub/.gitignore", "!back.o\n*.tmp\n"),
            ("sub/.ignore", "local\n"),
        ]);
        let mut files = IgnoreFiles::new(root.path());
        let table = [
            ("x.o", true),
            ("deep/er/x.o", true),
            ("x.c", false),
            ("build/a/b", true),
            ("sub/build/x", true),
            ("build", false),
            ("top", true),
            ("sub/top", false),
            ("docs/a.html", true),
            ("docs/b/a.html", false),
            ("docs/keep.html", false),
            ("a/z", true),
            ("a/b/c/z", true),
            ("space ", true),
            ("#odd", true),
            ("important.o", false),
            ("sub/back.o", false),
            ("sub/other.o", true),
            ("sub/x.tmp", true),
            ("x.tmp", false),
            ("sub/local", true),
            ("sub/deep/local", true),
            ("local", false),
        ];
        for (path, expected) in table {
            assert_eq!(files.excludes(path), expected, "{path}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200), path in "[a-z/.]{1,20}") {
            let lines = parse(&bytes);
            prop_assert!(lines.len() <= bytes.len());
            for line in lines {
                // Whatever it says about a path, it says it.
                let _ = line.matcher.is_match(&path);
            }
        }
    }
}
