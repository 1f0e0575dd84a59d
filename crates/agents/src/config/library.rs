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

fn search_path(name: &str, otherwise: PathBuf) -> Vec<PathBuf> {
    match variable(name) {
        Some(list) => std::env::split_paths(&list).collect(),
        None => vec![otherwise],
    }
}

impl Library {
    pub(super) fn load(config: &Path) -> Self {
        let mut library = Library::default();
        for directory in search_path("BEAMTALK_ROLES_DIR", config.join("roles")) {
            for file in files::names(&directory) {
                if let Some(name) = file.strip_suffix(".md")
                    && let Ok(text) = std::fs::read_to_string(directory.join(&file))
                {
                    add_role(&mut library.roles, name, &text);
                }
            }
        }
        for (name, text) in SHIPPED_ROLES {
            add_role(&mut library.roles, name, text);
        }
        for directory in search_path("BEAMTALK_SKILLS_DIR", config.join("skills")) {
            for name in files::names(&directory) {
                let Ok(text) = std::fs::read_to_string(directory.join(&name).join("SKILL.md")) else {
                    continue;
                };
                if let Some(FrontMatter {
                    name: Some(name),
                    description: Some(description),
                }) = front_matter(&text)
                {
                    library.skills.entry(name).or_insert(Item { description, text });
                }
            }
        }
        for directory in search_path("BEAMTALK_TOOLS_DIR", config.join("tools")) {
            for file in files::names(&directory) {
                if let Some(name) = file.strip_suffix(".sh")
                    && let Ok(text) = std::fs::read_to_string(directory.join(&file))
                    && let Some(description) = tool_heading(&text)
                {
                    library
                        .tools
                        .entry(name.to_owned())
                        .or_insert(Item { description, text });
                }
            }
        }
        library
    }
}

fn add_role(roles: &mut BTreeMap<String, Item>, name: &str, text: &str) {
    if let Some(FrontMatter {
        description: Some(description),
        ..
    }) = front_matter(text)
    {
        roles.entry(name.to_owned()).or_insert(Item {
            description,
            text: text.to_owned(),
        });
    }
}

/// Read a text as a role, a skill and a tool.
pub(super) fn read_strange_text(text: &str) {
    drop(front_matter(text));
    add_role(&mut BTreeMap::new(), "strange", text);
    drop(tool_heading(text));
}

/// The description of a tool that has both heading lines.
fn tool_heading(text: &str) -> Option<String> {
    let comments = || text.lines().take_while(|line| line.starts_with('#'));
    let find = |key: &str| comments().find_map(|line| line.trim_start_matches(['#', ' ']).strip_prefix(key));
    find("capabilities:")?;
    find("description:").map(|text| text.trim().to_owned())
}
