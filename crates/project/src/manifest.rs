//! `beamtalk.toml`: reading it strictly. Every fault names the file, the line and what to write.

pub mod edit;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use beamtalk_syntax::nearest;
use toml_edit::{Document, Item, Table, TableLike};

use crate::error::{At, Result};
use crate::fault::Fault;
use crate::files;
use crate::findings::CATEGORIES;
use crate::findings::severity::Setting;

pub const FILE_NAME: &str = "beamtalk.toml";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    pub name: String,
    pub version: String,
    pub description: Option<String>,
    pub has_strict_dependencies: bool,
    pub dependencies: Vec<Dependency>,
    pub supervisor: Option<String>,
    pub native_applications: Vec<String>,
    pub diagnostics: BTreeMap<String, Setting>,
    pub mcp: McpRules,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    pub name: String,
    pub source: Source,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    Path(String),
    Git { url: String, reference: Reference },
}

pub const GIT_HINT: &str =
    "git dependencies come over https, ssh or file: https://…, ssh://…, user@host:…, file:///…";

impl std::fmt::Display for Source {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Source::Path(path) => write!(formatter, "path {path}"),
            Source::Git { url, reference } => {
                let (kind, name) = reference.parts();
                write!(formatter, "git {url} {kind} {name}")
            }
        }
    }
}

impl Source {
    /// Why nothing may be fetched from here, if that is so.
    pub fn refusal(&self) -> Option<String> {
        let Source::Git { url, reference } = self else {
            return None;
        };
        let (kind, name) = reference.parts();
        if url.contains(char::is_control) || name.contains(char::is_control) {
            return Some("the URL or the reference has a control character".to_owned());
        }
        if name.is_empty() || name.starts_with('-') {
            return Some(format!("'{name}' is not a {kind}"));
        }
        // `helper::address` makes git run a program of that name.
        let before = |separator: &str| {
            url.split_once(separator).map(|(word, _)| word).filter(|word| {
                word.chars()
                    .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
            })
        };
        // `user@host:path` is ssh, a path from the root is a file.
        let is_remote = || url.split_once(':').is_some_and(|(host, _)| !host.contains('/'));
        if url.starts_with('-') {
            return Some(format!("'{url}' is not a git URL"));
        }
        match (before("::"), before("://")) {
            (Some(helper), _) => Some(format!("the protocol '{helper}' is refused")),
            (None, Some("https" | "ssh" | "file")) => None,
            (None, Some(protocol)) => Some(format!("the protocol '{protocol}' is refused")),
            (None, None) if url.starts_with('/') || is_remote() => None,
            (None, None) => Some(format!("'{url}' is not a git URL")),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    Tag(String),
    Branch(String),
    Revision(String),
}

impl Reference {
    /// The key of the manifest, and what it says.
    pub fn parts(&self) -> (&'static str, &str) {
        match self {
            Reference::Tag(name) => ("tag", name),
            Reference::Branch(name) => ("branch", name),
            Reference::Revision(name) => ("rev", name),
        }
    }

    /// As the lock file and messages write it.
    pub fn shown(&self) -> String {
        let (kind, name) = self.parts();
        format!("{kind}:{name}")
    }
}

/// Names a package may not take: ours, and applications of OTP.
const RESERVED: &[&str] = &[
    "beamtalk",
    "stdlib",
    "kernel",
    "runtime",
    "workspace",
    "compiler",
    "asn1",
    "common_test",
    "crypto",
    "debugger",
    "dialyzer",
    "diameter",
    "edoc",
    "eldap",
    "erl_docgen",
    "erl_interface",
    "erts",
    "et",
    "eunit",
    "ftp",
    "inets",
    "jinterface",
    "megaco",
    "mnesia",
    "observer",
    "odbc",
    "os_mon",
    "parsetools",
    "public_key",
    "reltool",
    "runtime_tools",
    "sasl",
    "snmp",
    "ssh",
    "ssl",
    "syntax_tools",
    "tftp",
    "tools",
    "wx",
    "xmerl",
];

const PACKAGE_KEYS: &[&str] = &["name", "version", "description", "licenses", "strict-deps"];
const TABLES: &[&str] = &[
    "package",
    "dependencies",
    "application",
    "native",
    "diagnostics",
    "workspace",
    "mcp",
];
const DEPENDENCY_KEYS: &[&str] = &["path", "git", "tag", "branch", "rev"];
const WORKSPACE_KEYS: &[&str] = &[
    "no-subprocess",
    "no-ffi",
    "no-http",
    "read-only-fs",
    "eval-max-heap-mb",
    "eval-timeout",
];

/// What a project says about AI clients; it can only narrow what the user allows.
const MCP_KEYS: &[&str] = &[
    "policy",
    "toolsets",
    "loop",
    "deny-tools",
    "deny-paths",
    "approval",
    "approval-timeout",
];
/// What only the user may say.
const USERS_MCP_KEYS: &[&str] = &[
    "max-policy",
    "allow-outside-project",
    "eval-ceiling",
    "start",
    "http",
    "session-idle",
];

/// `[mcp]` of a manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct McpRules {
    pub policy: Option<String>,
    pub toolsets: Option<String>,
    pub loop_right: Option<String>,
    pub deny_tools: Vec<String>,
    pub deny_paths: Vec<String>,
    pub approval: Option<String>,
    pub approval_timeout_s: Option<u64>,
}

impl Manifest {
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = files::read_own(path).at("cannot read", path)?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let before = error.as_bytes().iter().take(error.utf8_error().valid_up_to());
            let line = before.filter(|byte| **byte == b'\n').count() + 1;
            Fault::usage(
                "bad_manifest",
                format!("{}:{line}: not UTF-8 text", path.display()),
            )
        })?;
        Ok(Self::parse(&text, &path.display().to_string())?)
    }

    /// Parse the text of a manifest; `path` is only for messages.
    pub fn parse(text: &str, path: &str) -> Result<Self, Fault> {
        let reader = Reader { text, path };
        let document = Document::parse(text).map_err(|error| {
            let message = error
                .message()
                .lines()
                .next()
                .unwrap_or("not valid TOML")
                .to_owned();
            reader.fault(error.span(), message)
        })?;
        reader.manifest(document.as_table())
    }
}

struct Reader<'a> {
    text: &'a str,
    path: &'a str,
}

impl Reader<'_> {
    fn fault(&self, span: Option<Range<usize>>, message: impl std::fmt::Display) -> Fault {
        let start = span.map_or(0, |span| span.start).min(self.text.len());
        let line = self
            .text
            .as_bytes()
            .iter()
            .take(start)
            .filter(|byte| **byte == b'\n')
            .count()
            + 1;
        Fault::usage("bad_manifest", format!("{}:{line}: {message}", self.path))
    }

    fn manifest(&self, root: &Table) -> Result<Manifest, Fault> {
        self.check_keys(root, TABLES, "table")?;
        let mut manifest = Manifest::default();
        let package = self.table(root, "package")?.ok_or_else(|| {
            self.fault(None, "the table [package] is missing")
                .with_hint("write [package] with name and version")
        })?;
        self.package(package, root, &mut manifest)?;
        if let Some(table) = self.table(root, "dependencies")? {
            for (name, item) in table.iter() {
                manifest.dependencies.push(self.dependency(table, name, item)?);
            }
        }
        if let Some(table) = self.table(root, "application")? {
            self.check_keys(table, &["supervisor"], "key")?;
            let supervisor = self.string(table, "supervisor")?.ok_or_else(|| {
                let place = root.get("application").and_then(Item::span);
                self.fault(place, "[application] has no supervisor")
                    .with_hint("write supervisor = \"MyAppSup\", the class that starts the application")
            })?;
            if !is_class_name(&supervisor) {
                let message = format!("'{supervisor}' is not a class name");
                return Err(self.fault(key_span(table, "supervisor"), message));
            }
            manifest.supervisor = Some(supervisor);
        }
        if let Some(table) = self.table(root, "native")? {
            self.check_keys(table, &["applications"], "key")?;
            manifest.native_applications = self.strings(table, "applications")?;
            if let Some(odd) = manifest
                .native_applications
                .iter()
                .find(|name| !is_package_name(name))
            {
                let message = format!("'{odd}' is not the name of an OTP application");
                return Err(self.fault(key_span(table, "applications"), message));
            }
        }
        if let Some(table) = self.table(root, "diagnostics")? {
            for (name, item) in table.iter() {
                let setting = self.setting(table, name, item)?;
                manifest.diagnostics.insert(name.to_owned(), setting);
            }
        }
        if let Some(table) = self.table(root, "workspace")? {
            self.check_workspace(table)?;
        }
        if let Some(table) = self.table(root, "mcp")? {
            manifest.mcp = self.mcp(table)?;
        }
        Ok(manifest)
    }

    fn mcp(&self, table: &dyn TableLike) -> Result<McpRules, Fault> {
        if let Some((key, _)) = table.iter().find(|(key, _)| USERS_MCP_KEYS.contains(key)) {
            let message = format!("'{key}' is for the user's config.toml, not for a project");
            return Err(self.fault(key_span(table, key), message));
        }
        self.check_keys(table, MCP_KEYS, "key")?;
        Ok(McpRules {
            policy: self.string(table, "policy")?,
            toolsets: self.string(table, "toolsets")?,
            loop_right: self.string(table, "loop")?,
            deny_tools: self.strings(table, "deny-tools")?,
            deny_paths: self.strings(table, "deny-paths")?,
            approval: self.string(table, "approval")?,
            approval_timeout_s: match table.get("approval-timeout") {
                None => None,
                Some(item) => {
                    let number = item.as_integer().and_then(|number| u64::try_from(number).ok());
                    Some(number.ok_or_else(|| {
                        let message = "'approval-timeout' must be a whole number of seconds";
                        self.fault(key_span(table, "approval-timeout"), message)
                    })?)
                }
            },
        })
    }

    /// What a project may narrow. The daemon reads the values when it starts; here they are checked.
    fn check_workspace(&self, table: &dyn TableLike) -> Result<(), Fault> {
        self.check_keys(table, WORKSPACE_KEYS, "key")?;
        for (key, item) in table.iter() {
            if key.starts_with("eval-") {
                if item.as_integer().is_none_or(|number| number < 0) {
                    let message = format!("'{key}' must be a whole number, 0 or more");
                    return Err(self.fault(key_span(table, key), message));
                }
            } else {
                self.boolean(table, key)?;
            }
        }
        Ok(())
    }

    fn package(&self, package: &dyn TableLike, root: &Table, manifest: &mut Manifest) -> Result<(), Fault> {
        self.check_keys(package, PACKAGE_KEYS, "key")?;
        let place = root.get("package").and_then(Item::span);
        let name = self.string(package, "name")?;
        manifest.name = name.ok_or_else(|| self.fault(place.clone(), "[package] has no name"))?;
        let name_span = key_span(package, "name");
        if !is_package_name(&manifest.name) {
            return Err(self.fault(name_span, not_a_name(&manifest.name)));
        }
        if RESERVED.contains(&manifest.name.as_str()) {
            return Err(self.fault(
                name_span,
                format!("the package name '{}' is reserved", manifest.name),
            ));
        }
        let version = self.string(package, "version")?;
        manifest.version = version.ok_or_else(|| self.fault(place, "[package] has no version"))?;
        if !is_version(&manifest.version) {
            let message = format!(
                "'{}' is not a version: major.minor.patch, such as 0.1.0",
                manifest.version
            );
            return Err(self.fault(key_span(package, "version"), message));
        }
        manifest.description = self.string(package, "description")?;
        self.strings(package, "licenses")?;
        manifest.has_strict_dependencies = self.boolean(package, "strict-deps")?.unwrap_or(false);
        Ok(())
    }

    fn dependency(&self, table: &dyn TableLike, name: &str, item: &Item) -> Result<Dependency, Fault> {
        let place = || key_span(table, name);
        if !is_package_name(name) {
            return Err(self.fault(place(), not_a_name(name)));
        }
        if item.is_str() {
            let message = format!("dependency '{name}' must say where it comes from");
            let hint = format!(
                "{name} = {{ git = \"https://…\", tag = \"v1.0.0\" }}, or {name} = {{ path = \"../{name}\" }}"
            );
            return Err(self.fault(place(), message).with_hint(hint));
        }
        let entry = item.as_table_like().ok_or_else(|| {
            self.fault(
                place(),
                format!("dependency '{name}' must be a table with path or git"),
            )
        })?;
        self.check_keys(entry, DEPENDENCY_KEYS, "key")?;
        let path = self.string(entry, "path")?;
        let git = self.string(entry, "git")?;
        let references: Vec<Reference> = [
            self.string(entry, "tag")?.map(Reference::Tag),
            self.string(entry, "branch")?.map(Reference::Branch),
            self.string(entry, "rev")?.map(Reference::Revision),
        ]
        .into_iter()
        .flatten()
        .collect();
        let source = match (path, git, references.as_slice()) {
            (Some(path), None, []) => Source::Path(path),
            (Some(_), None, _) => {
                return Err(self.fault(
                    place(),
                    format!("dependency '{name}' has a path: tag, branch and rev belong to git"),
                ));
            }
            (None, Some(url), [reference]) => {
                let source = Source::Git {
                    url,
                    reference: reference.clone(),
                };
                if let Some(refusal) = source.refusal() {
                    return Err(self
                        .fault(place(), format!("dependency '{name}': {refusal}"))
                        .with_hint(GIT_HINT));
                }
                source
            }
            (None, Some(_), _) => {
                return Err(self.fault(
                    place(),
                    format!("dependency '{name}' needs exactly one of tag, branch, rev"),
                ));
            }
            (Some(_), Some(_), _) | (None, None, _) => {
                return Err(self.fault(
                    place(),
                    format!("dependency '{name}' needs exactly one of path, git"),
                ));
            }
        };
        Ok(Dependency {
            name: name.to_owned(),
            source,
        })
    }

    fn setting(&self, table: &dyn TableLike, name: &str, item: &Item) -> Result<Setting, Fault> {
        if !CATEGORIES.contains(&name) {
            return Err(self.unknown(table, name, CATEGORIES, "category"));
        }
        item.as_str().and_then(Setting::parse).ok_or_else(|| {
            let message = format!("'{name}' must be one of {}", Setting::NAMES.join(", "));
            self.fault(key_span(table, name), message)
        })
    }

    fn check_keys(&self, table: &dyn TableLike, known: &[&str], what: &str) -> Result<(), Fault> {
        match table.iter().find(|(key, _)| !known.contains(key)) {
            Some((key, _)) => Err(self.unknown(table, key, known, what)),
            None => Ok(()),
        }
    }

    fn unknown(&self, table: &dyn TableLike, key: &str, known: &[&str], what: &str) -> Fault {
        let fault = self.fault(key_span(table, key), format!("unknown {what} '{key}'"));
        match nearest(key, known.iter().copied(), 1).first() {
            Some(close) => fault.with_hint(format!("did you mean '{close}'?")),
            None => fault.with_hint(format!("known: {}", known.join(", "))),
        }
    }

    fn table<'b>(&self, table: &'b Table, key: &str) -> Result<Option<&'b dyn TableLike>, Fault> {
        match table.get(key) {
            None => Ok(None),
            Some(item) => match item.as_table_like() {
                Some(found) => Ok(Some(found)),
                None => Err(self.fault(key_span(table, key), format!("'{key}' must be a table: [{key}]"))),
            },
        }
    }

    fn string(&self, table: &dyn TableLike, key: &str) -> Result<Option<String>, Fault> {
        match table.get(key) {
            None => Ok(None),
            Some(item) => match item.as_str() {
                Some(text) => Ok(Some(text.to_owned())),
                None => Err(self.fault(key_span(table, key), format!("'{key}' must be a string"))),
            },
        }
    }

    fn boolean(&self, table: &dyn TableLike, key: &str) -> Result<Option<bool>, Fault> {
        match table.get(key) {
            None => Ok(None),
            Some(item) => match item.as_bool() {
                Some(value) => Ok(Some(value)),
                None => Err(self.fault(key_span(table, key), format!("'{key}' must be true or false"))),
            },
        }
    }

    fn strings(&self, table: &dyn TableLike, key: &str) -> Result<Vec<String>, Fault> {
        let fault = || self.fault(key_span(table, key), format!("'{key}' must be a list of strings"));
        match table.get(key) {
            None => Ok(Vec::new()),
            Some(item) => item
                .as_array()
                .ok_or_else(fault)?
                .iter()
                .map(|value| value.as_str().map(str::to_owned).ok_or_else(fault))
                .collect(),
        }
    }
}

fn key_span(table: &dyn TableLike, key: &str) -> Option<Range<usize>> {
    table
        .get_key_value(key)
        .and_then(|(key, item)| key.span().or_else(|| item.span()))
}

pub fn not_a_name(name: &str) -> String {
    format!(
        "'{name}' is not a package name: lower-case letters, digits and _, starting with a letter, at most 64"
    )
}

/// `Name`, or `package@Name` for a class of a dependency.
fn is_class_name(name: &str) -> bool {
    let (package, class) = name
        .split_once('@')
        .map_or((None, name), |(package, class)| (Some(package), class));
    package.is_none_or(is_package_name)
        && class.len() <= 255
        && class.starts_with(char::is_uppercase)
        && class.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// `^[a-z][a-z0-9_]{0,63}$`.
pub fn is_package_name(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

pub fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// `major.minor.patch` without leading zeros.
pub fn is_version(version: &str) -> bool {
    let parts: Vec<&str> = version.split('.').collect();
    parts.len() == 3
        && parts.iter().all(|part| {
            !part.is_empty()
                && part.len() <= 9
                && part.chars().all(|c| c.is_ascii_digit())
                && (part.len() == 1 || !part.starts_with('0'))
        })
}

#[cfg(test)]
mod tests;
