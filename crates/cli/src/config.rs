//! `$H/config.toml`: the user's defaults. Flags and variables win over it; what it does not know is an error.

use std::ops::Range;
use std::path::PathBuf;

use beamtalk_mcp::{Approval, LoopRight, Policy, Settings};
use beamtalk_storage::StateDirectory;
use beamtalk_syntax::nearest;
use beamtalk_workspace::{NodeName, StartOptions, check_peer};
use toml_edit::{Document, Item, Table, TableLike};

use crate::exit::Fault;

const FILE_NAME: &str = "config.toml";

/// What the file says, over what is built in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) start: StartOptions,
    /// `[repl] ephemeral`.
    pub(crate) is_ephemeral: bool,
    pub(crate) mcp: McpConfig,
}

/// `[mcp]`: what AI clients may do, as far as the user says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct McpConfig {
    pub(crate) policy: Option<String>,
    pub(crate) max_policy: Option<String>,
    pub(crate) toolsets: Option<String>,
    pub(crate) loop_right: Option<String>,
    pub(crate) deny_tools: Vec<String>,
    pub(crate) deny_paths: Vec<String>,
    pub(crate) starts: bool,
    pub(crate) allows_outside: bool,
    pub(crate) eval_ceiling_s: Option<u64>,
    pub(crate) approval: Option<String>,
    pub(crate) approval_timeout_s: Option<u64>,
    pub(crate) session_idle_s: Option<u64>,
}

/// The keys of each table.
const TABLES: &[(&str, &[&str])] = &[
    (
        "workspace",
        &[
            "port",
            "bind",
            "confirm-network",
            "remote",
            "tls",
            "tls-client-auth",
            "cert",
            "key",
            "insecure-no-tls",
            "allow-host",
            "allow-origin",
            "cluster",
            "cluster-peer",
            "observers-see-bindings",
            "persistent",
            "idle-timeout",
            "keep_transcript",
            "no-load",
            "no-subprocess",
            "no-ffi",
            "no-http",
            "read-only-fs",
            "log-level",
        ],
    ),
    (
        "limits",
        &[
            "eval-max-heap-mb",
            "eval-timeout",
            "compiler-mem-mb",
            "compiler-timeout",
            "compiler-pool",
            "session-grace",
            "start-timeout",
            "transcript",
            "changes",
            "log-max-mb",
            "log-files",
            "audit-max-mb",
            "audit-files",
        ],
    ),
    ("audit", &["audit-text", "audit-required"]),
    ("repl", &["ephemeral"]),
    (
        "mcp",
        &[
            "policy",
            "max-policy",
            "toolsets",
            "loop",
            "deny-tools",
            "deny-paths",
            "start",
            "allow-outside-project",
            "eval-ceiling",
            "http",
            "approval",
            "approval-timeout",
            "session-idle",
        ],
    ),
];

impl Config {
    /// The configuration of this user; without a file, what is built in.
    pub(crate) fn of(state: &StateDirectory) -> Result<Self, Fault> {
        let Some(bytes) = state.root().read(FILE_NAME).map_err(Fault::from)? else {
            return Ok(Self::default());
        };
        let path = state.root().path_of(FILE_NAME).display().to_string();
        match String::from_utf8(bytes) {
            Ok(text) => Self::parse(&text, &path),
            Err(_) => Err(Fault::usage("bad_config", format!("{path}: not UTF-8"))),
        }
    }

    fn parse(text: &str, path: &str) -> Result<Self, Fault> {
        let reader = Reader { text, path };
        let document = Document::parse(text).map_err(|error| {
            let message = error.message().lines().next().unwrap_or("not valid TOML");
            reader.fault(error.span(), message)
        })?;
        reader.config(document.as_table())
    }
}

struct Reader<'a> {
    text: &'a str,
    path: &'a str,
}

impl Reader<'_> {
    fn config(&self, root: &Table) -> Result<Config, Fault> {
        let mut config = Config::default();
        let names: Vec<&str> = TABLES.iter().map(|(name, _)| *name).collect();
        for (name, item) in root {
            let Some((_, known)) = TABLES.iter().find(|(table, _)| *table == name) else {
                return Err(self.unknown(root, name, &names, "table"));
            };
            let Some(table) = item.as_table_like() else {
                let message = format!("'{name}' must be a table: [{name}]");
                return Err(self.fault(key_span(root, name), message));
            };
            for (key, item) in table.iter() {
                if !known.contains(&key) {
                    return Err(self.unknown(table, key, known, "key"));
                }
                let value = Value {
                    reader: self,
                    table,
                    key,
                    item,
                };
                set(&mut config, &value)?;
            }
        }
        Ok(config)
    }

    fn fault(&self, span: Option<Range<usize>>, message: impl std::fmt::Display) -> Fault {
        let start = span.map_or(0, |span| span.start);
        let before = self.text.as_bytes().iter().take(start);
        let line = before.filter(|byte| **byte == b'\n').count() + 1;
        Fault::usage("bad_config", format!("{}:{line}: {message}", self.path))
    }

    fn unknown(&self, table: &dyn TableLike, key: &str, known: &[&str], what: &str) -> Fault {
        let fault = self.fault(key_span(table, key), format!("unknown {what} '{key}'"));
        match nearest(key, known.iter().copied(), 1).first() {
            Some(close) => fault.with_hint(format!("did you mean '{close}'?")),
            None => fault.with_hint(format!("known: {}", known.join(", "))),
        }
    }
}

/// One entry of the file.
struct Value<'a> {
    reader: &'a Reader<'a>,
    table: &'a dyn TableLike,
    key: &'a str,
    item: &'a Item,
}

impl Value<'_> {
    fn wrong(&self, wanted: &str) -> Fault {
        let message = format!("'{}' must be {wanted}", self.key);
        self.reader.fault(key_span(self.table, self.key), message)
    }

    fn boolean(&self) -> Result<bool, Fault> {
        self.item.as_bool().ok_or_else(|| self.wrong("true or false"))
    }

    fn number(&self) -> Result<u64, Fault> {
        let number = self.item.as_integer().and_then(|number| number.try_into().ok());
        number.ok_or_else(|| self.wrong("a whole number, 0 or more"))
    }

    /// A number that must not be large.
    fn size<N: TryFrom<u64>>(&self) -> Result<N, Fault> {
        let number = Some(self.number()?).filter(|number| *number <= 1_000_000);
        number
            .and_then(|number| N::try_from(number).ok())
            .ok_or_else(|| self.wrong("at most 1000000"))
    }

    fn text(&self) -> Result<String, Fault> {
        let text = self.item.as_str().map(str::to_owned);
        text.ok_or_else(|| self.wrong("a string"))
    }

    fn one_of(&self, names: &[&str]) -> Result<String, Fault> {
        let text = self.item.as_str().filter(|text| names.contains(text));
        text.map(str::to_owned)
            .ok_or_else(|| self.wrong(&format!("one of {}", names.join(", "))))
    }

    /// A flag that may be repeated is a list; one value may stand alone.
    fn texts(&self) -> Result<Vec<String>, Fault> {
        if let Some(text) = self.item.as_str() {
            return Ok(vec![text.to_owned()]);
        }
        let wrong = || self.wrong("a string or a list of strings");
        let values = self.item.as_array().ok_or_else(wrong)?.iter();
        values
            .map(|value| value.as_str().map(str::to_owned).ok_or_else(wrong))
            .collect()
    }
}

fn set(config: &mut Config, value: &Value<'_>) -> Result<(), Fault> {
    let start = &mut config.start;
    match value.key {
        "port" => {
            let port = value.number()?.try_into();
            start.port = port.map_err(|_| value.wrong("a port, at most 65535"))?;
        }
        "bind" => start.bind = Some(value.text()?),
        "confirm-network" => start.confirm_network |= value.boolean()?,
        "remote" if !value.boolean()? => {}
        "remote" if value.table.contains_key("bind") => {
            return Err(value.wrong("left out where 'bind' is given"));
        }
        "remote" => {
            start.bind = Some("0.0.0.0".to_owned());
            start.confirm_network = true;
        }
        "tls" => start.tls = value.boolean()?,
        "tls-client-auth" => start.tls_client_auth = value.boolean()?,
        "cert" => start.certificate = Some(PathBuf::from(value.text()?)),
        "key" => start.key = Some(PathBuf::from(value.text()?)),
        "insecure-no-tls" => start.insecure_no_tls = value.boolean()?,
        "allow-host" => start.allow_hosts = value.texts()?,
        "allow-origin" => start.allow_origins = value.texts()?,
        "cluster" => {
            let name = value.text()?.parse::<NodeName>();
            start.cluster = Some(name.map_err(|_| value.wrong("NAME@HOST"))?.to_string());
        }
        "cluster-peer" => {
            let peers = value.texts()?.into_iter().map(|peer| check_peer(&peer));
            let peers: Result<Vec<String>, _> = peers.collect();
            start.cluster_peers = peers.map_err(|_| value.wrong("made of NAME@HOST:PORT"))?;
        }
        "observers-see-bindings" => start.observers_see_bindings = value.boolean()?,
        "persistent" => start.persistent = value.boolean()?,
        "idle-timeout" => start.idle_timeout_s = value.number()?,
        "keep_transcript" => start.transcript_in_memory = value.one_of(&["disk", "memory"])? == "memory",
        "no-load" => start.no_load = value.boolean()?,
        "no-subprocess" => start.no_subprocess = value.boolean()?,
        "no-ffi" => start.no_ffi = value.boolean()?,
        "no-http" => start.no_http = value.boolean()?,
        "read-only-fs" => start.read_only_fs = value.boolean()?,
        "log-level" => start.log_level = value.one_of(&beamtalk_wire::LOG_LEVELS)?,
        "eval-max-heap-mb" => start.eval_max_heap_mb = value.number()?,
        "node-max-memory-mb" => start.node_max_memory_mb = Some(value.number()?),
        "max-processes" => start.max_processes = value.number()?.max(1),
        "eval-timeout" => start.eval_timeout_s = value.number()?,
        "compiler-mem-mb" => start.compiler_memory_mb = value.number()?,
        "compiler-timeout" => start.compiler_timeout_s = value.number()?,
        "session-grace" => start.session_grace_s = value.number()?,
        "start-timeout" => start.start_timeout_s = value.number()?,
        "transcript" => start.transcript = value.number()?,
        "compiler-pool" => start.compiler_pool = value.size()?,
        "changes" => start.changes = value.size()?,
        "log-max-mb" => start.log_max_mb = value.number()?.max(1),
        "log-files" => start.log_files = value.size()?,
        "audit-max-mb" => start.audit_max_mb = value.number()?.max(1),
        "audit-files" => start.audit_files = value.size()?,
        "audit-text" => start.audit_text = value.boolean()?,
        "audit-required" => start.audit_required = value.boolean()?,
        "ephemeral" => config.is_ephemeral = value.boolean()?,
        "policy" => config.mcp.policy = Some(value.one_of(Policy::WORDS)?),
        "max-policy" => config.mcp.max_policy = Some(value.one_of(Policy::WORDS)?),
        "toolsets" => {
            let list = value.texts()?.join(",");
            Settings::parse_toolsets(&list).map_err(|cause| value.wrong(&format!("toolsets: {cause}")))?;
            config.mcp.toolsets = Some(list);
        }
        "loop" => config.mcp.loop_right = Some(value.one_of(LoopRight::WORDS)?),
        "deny-tools" => config.mcp.deny_tools = value.texts()?,
        "deny-paths" => config.mcp.deny_paths = value.texts()?,
        "start" => config.mcp.starts = value.boolean()?,
        "allow-outside-project" => config.mcp.allows_outside = value.boolean()?,
        "http" => start.mcp_http = value.boolean()?,
        "approval" => config.mcp.approval = Some(value.one_of(Approval::WORDS)?),
        "approval-timeout" => config.mcp.approval_timeout_s = Some(value.number()?),
        "session-idle" => {
            start.handle_idle_s = value.number()?.max(1);
            config.mcp.session_idle_s = Some(start.handle_idle_s);
        }
        "eval-ceiling" => config.mcp.eval_ceiling_s = Some(value.number()?),
        _ => {}
    }
    Ok(())
}

fn key_span(table: &dyn TableLike, key: &str) -> Option<Range<usize>> {
    table
        .get_key_value(key)
        .and_then(|(key, item)| key.span().or_else(|| item.span()))
}

#[cfg(test)]
mod tests {
    use super::{Config, TABLES};

    fn refusal(text: &str) -> (String, Option<String>) {
        let fault = Config::parse(text, "/h/config.toml").unwrap_err();
        assert_eq!(fault.exit.code(), 2);
        (fault.message, fault.hint)
    }

    #[test]
    fn the_file_changes_what_is_built_in() {
        let text = "[workspace]\nport = 4000\nallow-host = [\"a\", \"b\"]\nno-http = true\n\
                    [limits]\neval-max-heap-mb = 256\nstart-timeout = 5\n[audit]\naudit-required = true\n\
                    [repl]\nephemeral = true\n[mcp]\npolicy = \"edit\"\n";
        let config = Config::parse(text, "x").unwrap();
        assert_eq!(config.start.port, 4000);
        assert_eq!(config.start.allow_hosts, ["a", "b"]);
        assert_eq!(config.start.eval_max_heap_mb, 256);
        assert_eq!(config.start.start_timeout_s, 5);
        assert!(config.start.no_http && config.start.audit_required && config.is_ephemeral);
        assert!(!config.start.no_ffi);
        assert_eq!(Config::parse("", "x").unwrap(), Config::default());
    }

    #[test]
    fn unknown_names_are_errors_with_their_line() {
        let (message, hint) = refusal("[workspace]\nport = 1\nno_http = true\n");
        assert_eq!(message, "/h/config.toml:3: unknown key 'no_http'");
        assert_eq!(hint.as_deref(), Some("did you mean 'no-http'?"));
        let (message, _) = refusal("\n[limit]\neval-timeout = 1\n");
        assert_eq!(message, "/h/config.toml:2: unknown table 'limit'");
        // A key of another table is unknown here.
        let (message, _) = refusal("[audit]\nport = 1\n");
        assert_eq!(message, "/h/config.toml:2: unknown key 'port'");
        let (message, _) = refusal("workspace = 1\n");
        assert_eq!(
            message,
            "/h/config.toml:1: 'workspace' must be a table: [workspace]"
        );
    }

    #[test]
    fn values_of_the_wrong_kind_are_errors_with_their_line() {
        for (text, message) in [
            (
                "[workspace]\nport = 70000\n",
                "'port' must be a port, at most 65535",
            ),
            ("[workspace]\ntls = 1\n", "'tls' must be true or false"),
            (
                "[limits]\neval-timeout = -1\n",
                "'eval-timeout' must be a whole number, 0 or more",
            ),
            (
                "[mcp]\npolicy = \"all\"\n",
                "'policy' must be one of read-only, edit, full",
            ),
            (
                "[workspace]\nremote = true\nbind = \"10.0.0.7\"\n",
                "'remote' must be left out where 'bind' is given",
            ),
        ] {
            assert_eq!(refusal(text).0, format!("/h/config.toml:2: {message}"));
        }
        assert!(refusal("[workspace\n").0.starts_with("/h/config.toml:1: "));
    }

    #[test]
    fn every_key_is_documented() {
        let page = include_str!("../../../docs/config.md");
        for (table, keys) in TABLES {
            assert!(page.contains(&format!("`[{table}]`")), "{table}");
            for key in *keys {
                assert!(page.contains(&format!("`{key}`")), "{key}");
            }
        }
    }
}
