//! What goes into the settings of a client. Tokens never do: the name of a variable stands for one.

use std::path::Path;

use serde_json::{Value, json};

use crate::exit::Fault;

pub(crate) const NAMES: [&str; 7] = [
    "claude-code",
    "claude-desktop",
    "vscode",
    "codex",
    "cursor",
    "gemini",
    "zed",
];

/// The snippet for a client, with the path of this binary.
pub(crate) fn snippet(client: &str, program: &Path) -> Result<String, Fault> {
    let program = program.display().to_string();
    let pretty = |value: Value| serde_json::to_string_pretty(&value).unwrap_or_default();
    let server = json!({"type": "stdio", "command": program, "args": ["mcp", "--start"]});
    let bare = json!({"command": program, "args": ["mcp", "--start"]});
    Ok(match client {
        "claude-code" | "cursor" => pretty(json!({"mcpServers": {"beamtalk": server}})),
        "gemini" => pretty(json!({"mcpServers": {"beamtalk": bare}})),
        "claude-desktop" => {
            let directory = std::env::current_dir().unwrap_or_default().display().to_string();
            let args = json!(["mcp", "--start", "--project", directory]);
            pretty(json!({"mcpServers": {"beamtalk": {"command": program, "args": args}}}))
        }
        "vscode" => {
            let args = json!(["mcp", "--start", "--project", "${workspaceFolder}"]);
            pretty(json!({"servers": {"beamtalk": {"type": "stdio", "command": program, "args": args}}}))
        }
        "codex" => format!(
            "[mcp_servers.beamtalk]\ncommand = {}\nargs = [\"mcp\", \"--start\"]",
            Value::from(program)
        ),
        "zed" => pretty(json!({"context_servers": {"beamtalk": bare}})),
        other => {
            return Err(Fault::usage(
                "unknown_client",
                format!("no client is called '{other}'"),
            ));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_has_a_snippet_that_starts_this_binary() {
        for client in NAMES {
            let text = snippet(client, Path::new("/opt/b in/beamtalk")).unwrap();
            assert!(
                text.contains("/opt/b in/beamtalk") && text.contains("--start"),
                "{text}"
            );
            if client != "codex" {
                assert!(serde_json::from_str::<Value>(&text).is_ok(), "{text}");
            }
        }
    }
}
