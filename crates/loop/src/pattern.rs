//! Watch patterns: what they match, where to look for matches, and where not to.
//!
//! Pure: a path here is a `/`-separated text relative to root.

use globset::{GlobBuilder, GlobMatcher};

use crate::config::Config;

/// Directories that hold the records of version control.
const VERSION_CONTROL: [&str; 4] = [".git", ".hg", ".jj", ".svn"];

/// One compiled pattern.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    shape: Shape,
    /// Literal leading segments: where looking for matches begins.
    lead: String,
    /// The text every match begins with.
    prefix: String,
}

#[derive(Clone, Debug)]
enum Shape {
    /// Everything below root.
    Everything,
    /// Everything below `lead`.
    Below,
    /// Exactly `lead`.
    Exactly,
    /// A glob; `deep` when it can match at any depth below `lead`, `covers` when it is `X/**`
    /// and so takes in everything below what this second glob matches.
    Glob {
        glob: GlobMatcher,
        deep: bool,
        covers: Option<GlobMatcher>,
    },
    /// Leaves root, so it never matches.
    Nothing,
}

impl Pattern {
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        let mut text = text;
        while let Some(rest) = text.strip_prefix("./") {
            text = rest;
        }
        if text.is_empty() || text == "." {
            return Ok(Self {
                shape: Shape::Everything,
                lead: String::new(),
                prefix: String::new(),
            });
        }
        let special = text.find(['*', '?', '[', '{', '\\']);
        let leaves_root = text.starts_with('/') || text.split('/').any(|segment| segment == "..");
        let Some(special) = special else {
            let below = text.ends_with('/');
            let lead = text.trim_end_matches('/').to_owned();
            let shape = match (leaves_root, below) {
                (true, _) => Shape::Nothing,
                (false, true) => Shape::Below,
                (false, false) => Shape::Exactly,
            };
            let prefix = if below { format!("{lead}/") } else { lead.clone() };
            return Ok(Self { shape, lead, prefix });
        };
        let glob = compile(text)?;
        if leaves_root {
            return Ok(Self {
                shape: Shape::Nothing,
                lead: String::new(),
                prefix: String::new(),
            });
        }
        let (prefix, rest) = text.split_at(special);
        let lead = prefix.rfind('/').map_or("", |slash| &prefix[..slash]);
        let deep = rest.contains(['*', '?', '/']) || rest.contains("[!") || rest.contains("[^");
        let covers = text.strip_suffix("/**").map(compile).transpose()?;
        Ok(Self {
            shape: Shape::Glob { glob, deep, covers },
            lead: lead.to_owned(),
            prefix: prefix.to_owned(),
        })
    }

    pub(crate) fn is_match(&self, path: &str) -> bool {
        let matched = match &self.shape {
            Shape::Everything => true,
            Shape::Below => is_below(path, &self.lead),
            Shape::Exactly => path == self.lead,
            Shape::Glob { glob, .. } => path.starts_with(&self.prefix) && glob.is_match(path),
            Shape::Nothing => false,
        };
        matched && self.enters_version_control(path)
    }

    /// Whether a file somewhere below `directory` (root is the empty text) could match.
    pub(crate) fn can_match_below(&self, directory: &str) -> bool {
        match &self.shape {
            Shape::Nothing => return false,
            Shape::Everything => {}
            Shape::Exactly => return parent(&self.lead) == directory,
            Shape::Below => {
                if !(directory == self.lead || is_below(directory, &self.lead)) {
                    return false;
                }
            }
            Shape::Glob { deep: false, .. } => return directory == self.lead,
            Shape::Glob { .. } => {
                let inside = directory == self.lead || is_below(directory, &self.lead);
                let prefix_fits = directory.starts_with(&self.prefix)
                    || self.prefix.is_empty()
                    || is_below(&self.prefix, directory)
                    || directory.is_empty();
                if !(self.lead.is_empty() || inside) || !prefix_fits {
                    return false;
                }
            }
        }
        self.enters_version_control(&format!("{directory}/x"))
    }

    /// As an ignore pattern: whether everything below `directory` is ignored.
    fn covers(&self, directory: &str) -> bool {
        match &self.shape {
            Shape::Everything => true,
            Shape::Below => directory == self.lead || is_below(directory, &self.lead),
            Shape::Exactly => directory == self.lead,
            Shape::Glob { glob, covers, .. } => {
                glob.is_match(directory) || covers.as_ref().is_some_and(|glob| glob.is_match(directory))
            }
            Shape::Nothing => false,
        }
    }

    /// A path below a version-control directory counts only when the pattern says so literally.
    fn enters_version_control(&self, path: &str) -> bool {
        let mut end = 0;
        for segment in path.split('/') {
            end += segment.len();
            if end == path.len() {
                break;
            }
            if VERSION_CONTROL.contains(&segment) {
                let directory = &path[..end];
                if !(self.lead == directory || is_below(&self.lead, directory)) {
                    return false;
                }
            }
            end += 1;
        }
        true
    }

    /// The path, when the pattern is one literal path.
    pub(crate) fn literal(&self) -> Option<&str> {
        matches!(self.shape, Shape::Exactly).then_some(self.lead.as_str())
    }

    fn target(&self) -> Option<Target> {
        let recursive = match &self.shape {
            Shape::Everything | Shape::Below => true,
            Shape::Exactly => false,
            Shape::Glob { deep, .. } => *deep,
            Shape::Nothing => return None,
        };
        Some(Target {
            path: self.lead.clone(),
            recursive,
            file: matches!(self.shape, Shape::Exactly),
        })
    }
}

fn compile(text: &str) -> Result<GlobMatcher, String> {
    GlobBuilder::new(text)
        .literal_separator(false)
        .backslash_escape(true)
        .empty_alternates(true)
        .build()
        .map(|glob| glob.compile_matcher())
        .map_err(|error| error.kind().to_string())
}

/// Whether `path` lies strictly below `directory`; everything but root lies below root.
pub(crate) fn is_below(path: &str, directory: &str) -> bool {
    if directory.is_empty() {
        return !path.is_empty();
    }
    path.strip_prefix(directory)
        .is_some_and(|rest| rest.starts_with('/'))
}

/// The directory that holds `path`; root is the empty text.
pub(crate) fn parent(path: &str) -> &str {
    path.rfind('/').map_or("", |slash| &path[..slash])
}

/// A place the loop watches.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Target {
    /// Relative to root; root itself is the empty text.
    pub(crate) path: String,
    pub(crate) recursive: bool,
    /// The target is one file, seen through its directory.
    pub(crate) file: bool,
}

struct Group {
    workflow: String,
    patterns: Vec<Pattern>,
    ignore: Vec<Pattern>,
}

impl Group {
    fn wants(&self, path: &str) -> bool {
        self.patterns.iter().any(|pattern| pattern.is_match(path)) && !is_ignored(&self.ignore, path)
    }
}

/// All groups of a config, compiled.
pub(crate) struct Groups {
    groups: Vec<(String, Group)>,
    ignore: Vec<Pattern>,
}

impl Groups {
    /// Compile the groups of a validated config; what does not compile is left out.
    pub(crate) fn new(config: &Config) -> Self {
        let compile = |texts: &[String]| texts.iter().filter_map(|text| Pattern::new(text).ok()).collect();
        let groups = config
            .watch
            .iter()
            .map(|(name, group)| {
                let compiled = Group {
                    workflow: group.workflow.clone(),
                    patterns: compile(&group.paths),
                    ignore: compile(&group.ignore),
                };
                (name.clone(), compiled)
            })
            .collect();
        Self {
            groups,
            ignore: compile(&config.ignore),
        }
    }

    /// Whether any group wants to hear of `path`.
    pub(crate) fn is_match(&self, path: &str) -> bool {
        !is_ignored(&self.ignore, path) && self.groups.iter().any(|(_, group)| group.wants(path))
    }

    /// The groups that want `path`, with their workflows, in name order.
    pub(crate) fn matching(&self, path: &str) -> Vec<(&str, &str)> {
        if is_ignored(&self.ignore, path) {
            return Vec::new();
        }
        let wanting = self.groups.iter().filter(|(_, group)| group.wants(path));
        wanting
            .map(|(name, group)| (name.as_str(), group.workflow.as_str()))
            .collect()
    }

    /// Whether a directory can hold matches, at any depth.
    pub(crate) fn can_match_below(&self, directory: &str) -> bool {
        !self.ignore.iter().any(|pattern| pattern.covers(directory))
            && self.groups.iter().any(|(_, group)| {
                group
                    .patterns
                    .iter()
                    .any(|pattern| pattern.can_match_below(directory))
                    && !group.ignore.iter().any(|pattern| pattern.covers(directory))
            })
    }

    /// The places to watch: each once, none below a recursive one.
    pub(crate) fn targets(&self) -> Vec<Target> {
        let mut all: Vec<Target> = self
            .groups
            .iter()
            .flat_map(|(_, group)| group.patterns.iter().filter_map(Pattern::target))
            .collect();
        all.sort();
        all.dedup();
        let kept = |target: &Target| {
            !all.iter().any(|other| {
                other.recursive
                    && (is_below(&target.path, &other.path)
                        || (other.path == target.path && !target.recursive))
            })
        };
        all.iter().filter(|target| kept(target)).cloned().collect()
    }
}

/// A path is ignored when a pattern matches it or covers a directory above it.
fn is_ignored(patterns: &[Pattern], path: &str) -> bool {
    patterns.iter().any(|pattern| {
        pattern.is_match(path)
            || path
                .match_indices('/')
                .any(|(slash, _)| pattern.covers(&path[..slash]))
    })
}

#[cfg(test)]
mod tests;
