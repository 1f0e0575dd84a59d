//! Roles, skills and tools: files with a heading, found along search paths.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::files;
use crate::places::variable;

/// A file of the library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub description: String,
    pub text: String,
    /// The directory or file it was found in.
    pub source: String,
}

/// All roles, skills and tools.
#[derive(Clone, Debug, Default)]
pub struct Library {
    pub roles: BTreeMap<String, Item>,
    pub skills: BTreeMap<String, Item>,
    pub tools: BTreeMap<String, Item>,
}

#[derive(Deserialize)]
struct FrontMatter {
    name: Option<String>,
    description: Option<String>,
}

const SHIPPED_ROLES: &[(&str, &str)] = &[
    ("author", include_str!("../../roles/author.md")),
    ("conductor", include_str!("../../roles/conductor.md")),
    ("developer", include_str!("../../roles/developer.md")),
    ("devops", include_str!("../../roles/devops.md")),
    ("pkgmgr", include_str!("../../roles/pkgmgr.md")),
    ("researcher", include_str!("../../roles/researcher.md")),
    ("reviewer", include_str!("../../roles/reviewer.md")),
    ("solo-developer", include_str!("../../roles/solo-developer.md")),
    (
        "technical-editor",
        include_str!("../../roles/technical-editor.md"),
    ),
    ("tester", include_str!("../../roles/tester.md")),
];

fn front_matter(text: &str) -> Option<FrontMatter> {
    let rest = text.strip_prefix("---\n")?;
    let (head, _) = rest.split_once("\n---")?;
    serde_saphyr::from_str(head).ok()
}

fn search_path(name: &str, otherwise: Vec<PathBuf>) -> Vec<PathBuf> {
    match variable(name) {
        Some(list) => std::env::split_paths(&list).collect(),
        None => otherwise,
    }
}

/// Where other tools keep their skills, below a home or a project.
const OTHERS: [&str; 2] = [".claude/skills", ".kiro/skills"];
const ROLES: &str = "BEAMTALK_ROLES_DIR";
const SKILLS: &str = "BEAMTALK_SKILLS_DIR";
/// The longest file of a library.
const LIMIT: u64 = 1 << 20;

/// A file that is no link: what lies in a project may have been put there by a session.
fn read(path: &Path) -> Option<String> {
    let bytes = files::read_limited(path, LIMIT).ok()?;
    String::from_utf8(bytes).ok()
}

impl Library {
    /// What is the user's own: in the configuration, and where the user's other tools keep theirs.
    pub(super) fn load(config: &Path) -> Self {
        let mut library = Library::default();
        library.add_roles(&search_path(ROLES, vec![config.join("roles")]));
        for (name, text) in SHIPPED_ROLES {
            add_role(&mut library.roles, name, text, "beamtalk");
        }
        let home = crate::places::home();
        let mut skills = vec![config.join("skills")];
        skills.extend(OTHERS.map(|other| home.join(other)));
        library.add_skills(&search_path(SKILLS, skills));
        for directory in search_path("BEAMTALK_TOOLS_DIR", vec![config.join("tools")]) {
            for file in files::names(&directory) {
                if let Some(name) = file.strip_suffix(".sh")
                    && let Ok(text) = std::fs::read_to_string(directory.join(&file))
                    && let Some(description) = tool_heading(&text)
                {
                    library.tools.entry(name.to_owned()).or_insert(Item {
                        description,
                        text,
                        source: directory.display().to_string(),
                    });
                }
            }
        }
        library
    }

    /// The same with what a project has beside it. What the user has, a checkout cannot replace.
    #[must_use]
    pub fn of_project(&self, root: &Path) -> Self {
        let mut library = self.clone();
        if variable(ROLES).is_none() {
            library.add_roles(&[root.join(".agents/roles")]);
        }
        if variable(SKILLS).is_none() {
            let mut skills = vec![root.join(".agents/skills")];
            skills.extend(OTHERS.map(|other| root.join(other)));
            library.add_skills(&skills);
        }
        library
    }

    fn add_roles(&mut self, directories: &[PathBuf]) {
        for directory in directories {
            for file in files::names(directory) {
                let path = directory.join(&file);
                if let Some(name) = file.strip_suffix(".md")
                    && let Some(text) = read(&path)
                {
                    add_role(&mut self.roles, name, &text, &path.display().to_string());
                }
            }
        }
    }

    fn add_skills(&mut self, directories: &[PathBuf]) {
        for directory in directories {
            for name in files::names(directory) {
                let path = directory.join(&name).join("SKILL.md");
                let Some(text) = read(&path) else { continue };
                // It becomes the name of a file.
                let is_name =
                    |name: &String| !name.is_empty() && !name.contains('/') && !name.starts_with('.');
                if let Some(FrontMatter {
                    name: Some(name),
                    description: Some(description),
                }) = front_matter(&text)
                    && is_name(&name)
                {
                    let source = path.display().to_string();
                    self.skills.entry(name).or_insert(Item {
                        description,
                        text,
                        source,
                    });
                }
            }
        }
    }
}

fn add_role(roles: &mut BTreeMap<String, Item>, name: &str, text: &str, source: &str) {
    if let Some(FrontMatter {
        description: Some(description),
        ..
    }) = front_matter(text)
    {
        roles.entry(name.to_owned()).or_insert(Item {
            description,
            text: text.to_owned(),
            source: source.to_owned(),
        });
    }
}

/// Read a text as a role, a skill and a tool.
pub(super) fn read_strange_text(text: &str) {
    drop(front_matter(text));
    add_role(&mut BTreeMap::new(), "strange", text, "");
    drop(tool_heading(text));
}

/// The description of a tool that has both heading lines.
fn tool_heading(text: &str) -> Option<String> {
    let comments = || text.lines().take_while(|line| line.starts_with('#'));
    let find = |key: &str| comments().find_map(|line| line.trim_start_matches(['#', ' ']).strip_prefix(key));
    find("capabilities:")?;
    find("description:").map(|text| text.trim().to_owned())
}
