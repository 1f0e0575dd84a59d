//! What goes into the settings of a client. Tokens never do: the name of a variable stands for one.

use std::net::SocketAddr;
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

/// The snippet for a client, with the path of this binary and what it is started with.
pub(crate) fn snippet(client: &str, program: &Path, started_with: &[String]) -> Result<String, Fault> {
    let program = program.display().to_string();
    let pretty = |value: Value| serde_json::to_string_pretty(&value).unwrap_or_default();
    let in_project = |directory: String| {
        let project = ["--project".to_owned(), directory];
        json!([started_with, project.as_slice()].concat())
    };
    let server = json!({"type": "stdio", "command": program, "args": started_with});
    let bare = json!({"command": program, "args": started_with});
    Ok(match client {
        "claude-code" | "cursor" => pretty(json!({"mcpServers": {"beamtalk": server}})),
        "gemini" => pretty(json!({"mcpServers": {"beamtalk": bare}})),
        "claude-desktop" => {
            let directory = std::env::current_dir().unwrap_or_default().display().to_string();
            let args = in_project(directory);
            pretty(json!({"mcpServers": {"beamtalk": {"command": program, "args": args}}}))
        }
        "vscode" => {
            let args = in_project("${workspaceFolder}".to_owned());
            pretty(json!({"servers": {"beamtalk": {"type": "stdio", "command": program, "args": args}}}))
        }
        "codex" => format!(
            "[mcp_servers.beamtalk]\ncommand = {}\nargs = {}",
            Value::from(program),
            json!(started_with)
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

/// The variable that holds a token; its name is written, never what it holds.
const TOKEN: &str = "BEAMTALK_MCP_TOKEN";

/// The snippet for a client that speaks HTTP.
pub(crate) fn http_snippet(client: &str, address: SocketAddr) -> Option<String> {
    let url = format!("http://{address}/mcp");
    let pretty = |value: Value| serde_json::to_string_pretty(&value).ok();
    let bearer = |token: &str| json!({"Authorization": format!("Bearer {token}")});
    let variable = bearer(&format!("${{{TOKEN}}}"));
    match client {
        "claude-code" => {
            pretty(json!({"mcpServers": {"beamtalk": {"type": "http", "url": url, "headers": variable}}}))
        }
        "cursor" => {
            let headers = bearer(&format!("${{env:{TOKEN}}}"));
            pretty(json!({"mcpServers": {"beamtalk": {"url": url, "headers": headers}}}))
        }
        "gemini" => pretty(json!({"mcpServers": {"beamtalk": {"httpUrl": url, "headers": variable}}})),
        "vscode" => {
            let headers = bearer("${input:beamtalk-token}");
            let input = json!({"type": "promptString", "id": "beamtalk-token", "description": "Token of Beamtalk", "password": true});
            let server = json!({"type": "http", "url": url, "headers": headers});
            pretty(json!({"inputs": [input], "servers": {"beamtalk": server}}))
        }
        "codex" => Some(format!(
            "[mcp_servers.beamtalk]\nurl = {}\nbearer_token_env_var = \"{TOKEN}\"",
            Value::from(url)
        )),
        // These start programs.
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_has_a_snippet_that_starts_this_binary() {
        for client in NAMES {
            let words = ["mcp", "--start", "--policy", "read-only"].map(str::to_owned);
            let text = snippet(client, Path::new("/opt/b in/beamtalk"), &words).unwrap();
            for word in ["/opt/b in/beamtalk", "--start", "read-only"] {
                assert!(text.contains(word), "{text}");
            }
            if client != "codex" {
                assert!(serde_json::from_str::<Value>(&text).is_ok(), "{text}");
            }
        }
    }

    #[test]
    fn snippets_for_http_name_a_variable_and_hold_no_token() {
        let address = "127.0.0.1:8080".parse().expect("an address");
        for client in ["claude-code", "vscode", "codex", "cursor", "gemini"] {
            let text = http_snippet(client, address).expect(client);
            assert!(text.contains("http://127.0.0.1:8080/mcp"), "{text}");
            assert!(
                text.contains(TOKEN) || text.contains("\"password\": true"),
                "{text}"
            );
            assert!(!text.contains("btk_"), "{text}");
        }
        assert_eq!(http_snippet("zed", address), None);
    }
}
