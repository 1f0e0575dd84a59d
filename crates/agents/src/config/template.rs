//! `{NAME}` in paths, commands and values.

use std::collections::BTreeMap;

use beamtalk_ninep::Refusal;

use crate::error::refusal;
use crate::places::{Places, home, variable};

/// The names a session's configuration can use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Templates {
    known: BTreeMap<String, String>,
}

impl Templates {
    pub(crate) fn new(places: &Places, id: &str, cwd: &str, model: Option<&str>) -> Self {
        let home = home().display().to_string();
        let or = |name: &str, otherwise: String| variable(name).unwrap_or(otherwise);
        let uid = rustix::process::geteuid().as_raw();
        let mut known = BTreeMap::from([
            ("CWD".to_owned(), cwd.to_owned()),
            (
                "SESSION_TMP".to_owned(),
                places.session(id).join("tmp").display().to_string(),
            ),
            ("SESSION_ID".to_owned(), id.to_owned()),
            ("NAMESPACE".to_owned(), places.namespace.display().to_string()),
            ("TMPDIR".to_owned(), or("TMPDIR", "/tmp".to_owned())),
            (
                "XDG_CONFIG_HOME".to_owned(),
                or("XDG_CONFIG_HOME", format!("{home}/.config")),
            ),
            (
                "XDG_DATA_HOME".to_owned(),
                or("XDG_DATA_HOME", format!("{home}/.local/share")),
            ),
            (
                "XDG_CACHE_HOME".to_owned(),
                or("XDG_CACHE_HOME", format!("{home}/.cache")),
            ),
            (
                "XDG_STATE_HOME".to_owned(),
                or("XDG_STATE_HOME", format!("{home}/.local/state")),
            ),
            (
                "XDG_RUNTIME_DIR".to_owned(),
                or("XDG_RUNTIME_DIR", format!("/run/user/{uid}")),
            ),
            ("HOME".to_owned(), home),
        ]);
        if let Some(model) = model {
            known.insert("MODEL".to_owned(), model.to_owned());
        }
        Templates { known }
    }

    pub(crate) fn set(&mut self, name: &str, value: String) {
        self.known.insert(name.to_owned(), value);
    }

    fn lookup(&self, name: &str) -> Option<String> {
        self.known.get(name).cloned().or_else(|| std::env::var(name).ok())
    }

    /// Fill in every `{NAME}`; the name that is missing is the error.
    pub(crate) fn fill(&self, text: &str) -> Result<String, String> {
        let mut out = String::new();
        let mut rest = text;
        while let Some(start) = rest.find('{') {
            let (before, after) = rest.split_at(start);
            out.push_str(before);
            let name = after
                .get(1..)
                .and_then(|tail| tail.split_once('}'))
                .map(|(name, _)| name);
            match name.filter(|name| is_name(name)) {
                Some(name) => {
                    out.push_str(&self.lookup(name).ok_or_else(|| name.to_owned())?);
                    rest = after.get(name.len() + 2..).unwrap_or_default();
                }
                None => {
                    out.push('{');
                    rest = after.get(1..).unwrap_or_default();
                }
            }
        }
        out.push_str(rest);
        Ok(out)
    }

    /// Fill in a command word or value.
    pub(crate) fn require(&self, text: &str) -> Result<String, Refusal> {
        self.fill(text)
            .map_err(|name| refusal(format!("undefined template {{{name}}}")))
    }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
        && name
            .bytes()
            .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
}
