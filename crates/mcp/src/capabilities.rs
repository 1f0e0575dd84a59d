//! What a client says it can do, and which era a request belongs to.

use serde_json::{Map, Value, json};

use crate::message::{Fault, MODERN, VERSIONS};

pub(crate) const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub(crate) const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
pub(crate) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
pub(crate) const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// The extensions that are spoken.
pub(crate) const TASKS: &str = "io.modelcontextprotocol/tasks";
pub(crate) const VIEWS: &str = "io.modelcontextprotocol/ui";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// How a client is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    Modern,
    /// With the version that was agreed on.
    Legacy(&'static str),
}

impl Era {
    pub(crate) fn is_modern(self) -> bool {
        self == Self::Modern
    }
}

/// What was declared, as far as it concerns us.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Client {
    pub(crate) can_be_asked: bool,
    /// Long work may be handed out as a task.
    pub(crate) has_tasks: bool,
    /// Its own word for itself; for display only.
    pub(crate) name: String,
}

impl Client {
    pub(crate) fn read(capabilities: &Value, info: Option<&Value>) -> Self {
        // An empty object means forms.
        let elicitation = &capabilities["elicitation"];
        let forms = elicitation
            .as_object()
            .is_some_and(|modes| modes.is_empty() || modes.contains_key("form"));
        let text = |field: &str| info.and_then(|info| info[field].as_str()).unwrap_or_default();
        let name = format!("{} {}", text("name"), text("version"));
        Self {
            can_be_asked: forms,
            has_tasks: capabilities["extensions"][TASKS].is_object(),
            name: beamtalk_wire::escape(&name.trim().chars().take(64).collect::<String>()),
        }
    }
}

/// The era of a request by what its `_meta` says; `None` if it says nothing.
pub(crate) fn modern(params: &Map<String, Value>) -> Result<Option<Client>, Fault> {
    let meta = params.get("_meta");
    let Some(requested) = meta.and_then(|meta| meta.get(PROTOCOL_VERSION)) else {
        return Ok(None);
    };
    match requested.as_str() {
        Some(MODERN) => {}
        Some(version) if VERSIONS.contains(&version) => {
            let message = format!("version {version} is opened by 'initialize', not by _meta");
            return Err(Fault::version(message, requested));
        }
        _ => {
            let shown = requested.as_str().unwrap_or("that");
            let shown: String = shown.chars().take(32).collect();
            let message = format!("version {} is not spoken here", beamtalk_wire::escape(&shown));
            return Err(Fault::version(message, requested));
        }
    }
    let meta = meta.unwrap_or(&Value::Null);
    let capabilities = &meta[CLIENT_CAPABILITIES];
    if !capabilities.is_object() {
        let message = format!("params._meta needs \"{CLIENT_CAPABILITIES}\", an object");
        return Err(Fault::params(message));
    }
    if let Some(level) = meta.get(LOG_LEVEL) {
        let known = [
            "debug",
            "info",
            "notice",
            "warning",
            "error",
            "critical",
            "alert",
            "emergency",
        ];
        if !level.as_str().is_some_and(|level| known.contains(&level)) {
            return Err(Fault::params(format!("\"{LOG_LEVEL}\" is no level of a log")));
        }
    }
    Ok(Some(Client::read(capabilities, meta.get(CLIENT_INFO))))
}

/// What this server can do.
pub(crate) fn own(is_modern: bool) -> Value {
    let mut extensions = json!({ VIEWS: {} });
    if is_modern {
        extensions[TASKS] = json!({});
    }
    json!({
        "tools": {},
        "prompts": {},
        "completions": {},
        "resources": {"subscribe": true, "listChanged": true},
        "extensions": extensions,
    })
}

pub(crate) fn server_info() -> Value {
    json!({"name": "beamtalk", "title": "Beamtalk workspace", "version": env!("CARGO_PKG_VERSION")})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(meta: Value) -> Result<Option<Client>, i64> {
        let params = json!({ "_meta": meta });
        modern(params.as_object().expect("an object")).map_err(|fault| fault.code)
    }

    #[test]
    fn a_request_says_its_version_and_capabilities() {
        let empty = json!({});
        assert_eq!(read(json!({})), Ok(None));
        assert!(
            read(json!({PROTOCOL_VERSION: MODERN, CLIENT_CAPABILITIES: empty}))
                .is_ok_and(|found| found.is_some())
        );
        assert_eq!(read(json!({PROTOCOL_VERSION: MODERN})), Err(-32602));
        assert_eq!(
            read(json!({PROTOCOL_VERSION: "1900-01-01", CLIENT_CAPABILITIES: empty})),
            Err(-32022)
        );
        assert_eq!(
            read(json!({PROTOCOL_VERSION: "2025-11-25", CLIENT_CAPABILITIES: empty})),
            Err(-32022)
        );
        assert_eq!(
            read(json!({PROTOCOL_VERSION: 5, CLIENT_CAPABILITIES: empty})),
            Err(-32022)
        );
        let loud = json!({PROTOCOL_VERSION: MODERN, CLIENT_CAPABILITIES: {}, LOG_LEVEL: "loud"});
        assert_eq!(read(loud), Err(-32602));
    }

    #[test]
    fn forms_are_meant_by_an_empty_object() {
        let can = |capabilities: Value| Client::read(&capabilities, None).can_be_asked;
        assert!(can(json!({"elicitation": {}})));
        assert!(can(json!({"elicitation": {"form": {}}})));
        assert!(!can(json!({"elicitation": {"url": {}}})));
        assert!(!can(json!({})));
    }
}
