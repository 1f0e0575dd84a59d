//! Configuration from YAML: `global.yaml`, backends, sandbox profiles, roles, skills and tools.
//!
//! A file that does not parse is an error naming file, line and key, and stops only what needs it.

mod backend;
mod layers;
mod library;
mod template;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use beamtalk_ninep::Refusal;
use serde::Deserialize;
use serde::de::DeserializeOwned;

pub use backend::Backend;
pub(crate) use backend::{
    ContextRule, Deliver, IdleMode, KeyStep, LoopRight, Ready, RestartPolicy, Slash, WorkspaceRight,
};
pub use layers::Layers;
pub(crate) use layers::{Access, Layer, Network, Wanted};
pub(crate) use library::Item;
pub use library::Library;
pub(crate) use template::Templates;

use crate::error::{Fatal, refusal};
use crate::files;

/// How connections prove who they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AuthMode {
    #[default]
    Peer,
    Secret,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AuthKeys {
    pub(crate) mode: AuthMode,
    pub(crate) aname_token: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AuditKeys {
    pub(crate) reads: bool,
    pub(crate) text: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct MailKeys {
    pub(crate) nudge_text: String,
}

impl Default for MailKeys {
    fn default() -> Self {
        MailKeys {
            nudge_text: "New mail is waiting. Read your inbox and act on it.".to_owned(),
        }
    }
}

/// The program that shows a notice on most desktops; its last option keeps what follows from being one.
const USUAL_NOTICE: &[&str] = &["notify-send", "--app-name=Beamtalk", "--"];

/// How the person is told that something waits.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct NotifyKeys {
    command: Option<Words>,
}

/// A command as one line or as its words.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Words {
    Line(String),
    List(Vec<String>),
}

impl NotifyKeys {
    /// The program and its first arguments; none when it is switched off.
    pub(crate) fn words(&self) -> Vec<String> {
        match &self.command {
            None => USUAL_NOTICE.iter().map(|word| (*word).to_owned()).collect(),
            Some(Words::Line(line)) => beamtalk_wire::split_words(line).unwrap_or_default(),
            Some(Words::List(words)) => words.clone(),
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct OutputKeys {
    pub(crate) max_bytes: u64,
}

impl Default for OutputKeys {
    fn default() -> Self {
        OutputKeys { max_bytes: 64 << 20 }
    }
}

/// The numbers that can be changed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LimitKeys {
    pub(crate) connections: usize,
    pub(crate) fids: usize,
    pub(crate) requests: usize,
    pub(crate) door_connections: usize,
    pub(crate) door_requests: usize,
    pub(crate) ctl_bytes: usize,
    pub(crate) document_bytes: usize,
    pub(crate) prompt_bytes: usize,
    pub(crate) context_bytes: usize,
    pub(crate) message_bytes: usize,
    pub(crate) inbox: usize,
    pub(crate) completed: usize,
    pub(crate) sessions: usize,
    pub(crate) event_lag: u64,
    pub(crate) events_kept: usize,
    pub(crate) chat_bytes: u64,
    pub(crate) reply_queue_bytes: usize,
    pub(crate) stall_ms: u64,
    pub(crate) alias_bytes: usize,
    pub(crate) tokens: usize,
    pub(crate) acl_lines: usize,
    /// How long a question waits for a person.
    pub(crate) approval_seconds: u64,
}

impl Default for LimitKeys {
    fn default() -> Self {
        LimitKeys {
            connections: 256,
            fids: 4096,
            requests: 1024,
            door_connections: 16,
            door_requests: 64,
            ctl_bytes: 8 << 10,
            document_bytes: 1 << 20,
            prompt_bytes: 256 << 10,
            context_bytes: 256 << 10,
            message_bytes: 256 << 10,
            inbox: 1000,
            completed: 1000,
            sessions: 64,
            event_lag: 1024,
            events_kept: 10_000,
            chat_bytes: 2 << 20,
            reply_queue_bytes: 8 << 20,
            stall_ms: 30_000,
            alias_bytes: 64,
            tokens: 256,
            acl_lines: crate::access::ACL_LINES,
            approval_seconds: 600,
        }
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct GlobalFile {
    auth: AuthKeys,
    audit: AuditKeys,
    mail: MailKeys,
    notify: NotifyKeys,
    output: OutputKeys,
    limits: LimitKeys,
    general: layers::General,
    filesystem: layers::Filesystem,
    network: Network,
    env: Vec<String>,
    namespaces: layers::Namespaces,
    advanced: layers::Advanced,
}

/// The configuration as read at one time.
#[derive(Clone, Debug)]
pub struct Config {
    directory: PathBuf,
    pub(crate) auth: AuthKeys,
    pub(crate) audit: AuditKeys,
    pub(crate) mail: MailKeys,
    pub(crate) notify: NotifyKeys,
    pub(crate) output: OutputKeys,
    pub(crate) limits: LimitKeys,
    global: Layer,
    global_text_layer: bool,
    backends: BTreeMap<String, Result<Backend, String>>,
    pub library: Library,
}

/// Parse YAML, naming the file in the error.
pub(crate) fn parse<T: DeserializeOwned>(file: &Path, text: &str) -> Result<T, String> {
    serde_saphyr::from_str(text).map_err(|error| {
        // The first line says where and why; a picture of the source follows.
        let text = error.to_string();
        let reason = text.lines().next().unwrap_or_default();
        let reason = reason.strip_prefix("error: ").unwrap_or(reason);
        format!("{}: {reason}", file.display())
    })
}

/// Read a text as every file of the configuration that people write; for tests with random texts.
#[doc(hidden)]
pub fn read_strange_config(text: &str) {
    let path = Path::new("strange.yaml");
    drop(Backend::parse(path, "strange", text));
    drop(parse::<GlobalFile>(path, text));
    drop(parse::<Layer>(path, text));
    library::read_strange_text(text);
}

/// Text as it fits into one line of a listing.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

const PRESETS: &[(&str, &str)] = &[
    ("claude", include_str!("../presets/claude.yaml")),
    ("codex", include_str!("../presets/codex.yaml")),
    ("echo", include_str!("../presets/echo.yaml")),
    ("kiro-cli", include_str!("../presets/kiro-cli.yaml")),
    ("ollama", include_str!("../presets/ollama.yaml")),
    ("shell", include_str!("../presets/shell.yaml")),
];

impl Config {
    /// Read everything under `directory`; only `global.yaml` can make this fail.
    pub fn load(directory: &Path) -> Result<Self, Fatal> {
        let path = directory.join("global.yaml");
        let (global, present): (GlobalFile, bool) = match std::fs::read_to_string(&path) {
            Ok(text) => {
                let file = parse(&path, &text).map_err(|reason| Fatal::Config {
                    file: "configuration".to_owned(),
                    reason,
                })?;
                (file, true)
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => (GlobalFile::default(), false),
            Err(source) => return Err(Fatal::File { path, source }),
        };
        let layer = Layer {
            general: global.general,
            filesystem: global.filesystem,
            network: global.network,
            env: global.env,
            namespaces: global.namespaces,
            advanced: global.advanced,
        };
        Ok(Config {
            directory: directory.to_owned(),
            auth: global.auth,
            audit: global.audit,
            mail: global.mail,
            notify: global.notify,
            output: global.output,
            limits: global.limits,
            global: layer,
            global_text_layer: present,
            backends: load_backends(&directory.join("backends")),
            library: Library::load(directory),
        })
    }

    pub(crate) fn backend(&self, name: &str) -> Result<&Backend, Refusal> {
        match self.backends.get(name) {
            None => Err(refusal("backend not found")),
            Some(Ok(backend)) => Ok(backend),
            Some(Err(reason)) => Err(refusal(format!("invalid backend: {reason}"))),
        }
    }

    /// `name⇥status⇥description` per backend.
    pub fn backend_lines(&self) -> String {
        self.backends
            .iter()
            .map(|(name, backend)| match backend {
                Ok(backend) => {
                    let status = if backend.is_ready() { "ready" } else { "missing" };
                    format!("{name}\t{status}\t{}\n", one_line(&backend.description))
                }
                Err(reason) => format!("{name}\tmissing\t{}\n", one_line(reason)),
            })
            .collect()
    }

    /// What a person should know before sessions of a backend run; nothing for those that are kept in their sandbox.
    pub fn notice_about(&self, backend: &str) -> Option<String> {
        let found = self.backend(backend).ok()?;
        (found.workspace == WorkspaceRight::Write).then(|| {
            format!(
                "sessions of {backend} run code in the workspace with your rights, outside of their sandbox (workspace: write)"
            )
        })
    }

    /// Such notices of all backends, for `doctor`.
    pub fn notices(&self) -> Vec<String> {
        let names = self.backends.keys();
        names.filter_map(|name| self.notice_about(name)).collect()
    }

    /// What does not parse, for `doctor`.
    pub fn problems(&self) -> Vec<String> {
        let backends = self.backends.values();
        let backends = backends.filter_map(|backend| backend.as_ref().err().cloned());
        let directory = self.directory.join("sandbox");
        let profiles = files::names(&directory).into_iter().filter_map(|name| {
            let path = directory.join(name);
            let is_profile = path.extension().is_some_and(|kind| kind == "yaml");
            let text = is_profile.then(|| std::fs::read_to_string(&path))?.ok()?;
            parse::<Layer>(&path, &text).err()
        });
        backends.chain(profiles).collect()
    }

    /// The merged sandbox of a backend and a profile.
    pub(crate) fn sandbox(&self, backend: &Backend, profile: &str) -> Result<Wanted, Refusal> {
        let valid = !profile.is_empty()
            && profile.len() <= 64
            && profile
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        let missing = || refusal(format!("sandbox \"{profile}\" not found"));
        if !valid {
            return Err(missing());
        }
        let path = self.directory.join("sandbox").join(format!("{profile}.yaml"));
        let profile_layer = match std::fs::read_to_string(&path) {
            Ok(text) => parse::<Layer>(&path, &text)
                .map_err(|reason| refusal(format!("invalid sandbox: {reason}")))?,
            Err(_) => Layer::shipped_profile(profile).ok_or_else(missing)?,
        };
        // The user's global layer adds to the defaults; most permissive wins.
        let mut layers = Layers::new(vec![Layer::defaults()]);
        if self.global_text_layer {
            layers.push(self.global.clone());
        }
        layers.push(backend.layer.clone());
        layers.push(profile_layer);
        Ok(layers.merge(backend.best_effort.unwrap_or(self.global.general.best_effort)))
    }
}

fn load_backends(directory: &Path) -> BTreeMap<String, Result<Backend, String>> {
    let mut all = BTreeMap::new();
    for (name, text) in PRESETS {
        all.insert(
            (*name).to_owned(),
            Backend::parse(Path::new(&format!("{name}.yaml")), name, text),
        );
    }
    for file in crate::files::names(directory) {
        let Some(name) = file.strip_suffix(".yaml") else {
            continue;
        };
        let path = directory.join(&file);
        let backend = match std::fs::read_to_string(&path) {
            Ok(text) if backend::is_backend_name(name) => Backend::parse(&path, name, &text),
            Ok(_) => Err(format!(
                "{}: the name must match [a-z][a-z0-9_-]{{0,31}}",
                path.display()
            )),
            Err(error) => Err(format!("{}: {error}", path.display())),
        };
        all.insert(name.to_owned(), backend);
    }
    all
}

#[cfg(test)]
mod tests;
