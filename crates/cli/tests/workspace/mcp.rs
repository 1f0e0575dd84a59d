//! `beamtalk mcp` as a client sees it: lines into the real binary, lines out of it.

#[path = "mcp/approvals.rs"]
mod approvals;
#[path = "mcp/deaths.rs"]
mod deaths;
#[path = "mcp/guards.rs"]
mod guards;
#[path = "mcp/http.rs"]
mod http;
#[path = "mcp/policies.rs"]
mod policies;
#[path = "mcp/protocol.rs"]
mod protocol;
#[path = "mcp/sources.rs"]
mod sources;
#[path = "mcp/streams.rs"]
mod streams;
#[path = "mcp/tasks.rs"]
mod tasks;
#[path = "mcp/told.rs"]
mod told;
#[path = "mcp/tools.rs"]
mod tools;
#[path = "mcp/trial.rs"]
mod trial;
#[path = "mcp/watching.rs"]
mod watching;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::home::Home;

const LIMIT: Duration = Duration::from_mins(1);

/// A server, and what it said.
pub(crate) struct Mcp {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    next: u64,
    capabilities: Value,
}

impl Drop for Mcp {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Mcp {
    pub(crate) fn start(home: &Home, flags: &[&str]) -> Self {
        let mut words = vec!["mcp"];
        words.extend(flags);
        let mut child = home
            .command(&words)
            // The agents of whoever runs the tests are none of ours.
            .env("NAMESPACE", home.state().join("ns"))
            .env_remove("AGENT_ID")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the server");
        let output = child.stdout.take().expect("a pipe");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self {
            input: child.stdin.take(),
            child,
            lines,
            next: 1,
            capabilities: json!({}),
        }
    }

    /// One whose client can put questions to a person.
    pub(crate) fn that_can_ask(home: &Home, flags: &[&str]) -> Self {
        let mut mcp = Self::start(home, flags);
        mcp.capabilities = json!({"elicitation": {"form": {}}});
        mcp
    }

    pub(crate) fn line(&mut self, text: &str) {
        let input = self.input.as_mut().expect("an open pipe");
        writeln!(input, "{text}").expect("written");
    }

    fn meta(&self) -> Value {
        json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
        })
    }

    /// Send a modern request; answers its id.
    pub(crate) fn send(&mut self, method: &str, mut params: Value) -> u64 {
        let meta = params["_meta"].clone();
        params["_meta"] = self.meta();
        for (key, value) in meta.as_object().into_iter().flatten() {
            params["_meta"][key] = value.clone();
        }
        self.send_plain(method, params)
    }

    /// Send a request as it is.
    pub(crate) fn send_plain(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        self.line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        id
    }

    pub(crate) fn raw(&self) -> String {
        self.lines.recv_timeout(LIMIT).expect("a line in time")
    }

    pub(crate) fn message(&self) -> Value {
        serde_json::from_str(&self.raw()).expect("JSON")
    }

    /// Whether nothing comes for a while.
    pub(crate) fn is_silent(&self, time: Duration) -> bool {
        matches!(self.lines.recv_timeout(time), Err(RecvTimeoutError::Timeout))
    }

    /// The answer to a modern request.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        let answer = self.message();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    pub(crate) fn legacy(&mut self, method: &str, params: Value) -> Value {
        let id = self.send_plain(method, params);
        // An old client is told unasked what changed.
        let answer = loop {
            let message = self.message();
            if message.get("method").is_none() {
                break message;
            }
        };
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    pub(crate) fn initialize(&mut self, version: &str) -> Value {
        let capabilities = self.capabilities.clone();
        let params = json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": {"name": "t", "version": "1"}});
        self.legacy("initialize", params)["result"].clone()
    }

    /// The whole result of a call.
    pub(crate) fn result(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        assert!(answer["result"].is_object(), "{tool}: {answer}");
        answer["result"].clone()
    }

    /// What a call gives that goes well.
    pub(crate) fn good(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.result(tool, arguments);
        assert_eq!(result["isError"], false, "{tool}: {result}");
        let text = result["content"][0]["text"].as_str().expect("a text");
        let parsed: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(parsed, result["structuredContent"], "{tool}");
        parsed
    }

    /// The error of a call that does not.
    pub(crate) fn bad(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.result(tool, arguments);
        assert_eq!(result["isError"], true, "{tool}: {result}");
        assert!(result.get("structuredContent").is_none());
        let text = result["content"][0]["text"].as_str().expect("a text");
        serde_json::from_str::<Value>(text).expect("JSON")["error"].clone()
    }

    /// Close the input and wait; answers the exit code and standard error.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        drop(self.input.take());
        let status = self.child.wait().expect("an end");
        let mut text = String::new();
        if let Some(mut errors) = self.child.stderr.take() {
            drop(std::io::Read::read_to_string(&mut errors, &mut text));
        }
        (status.code(), text)
    }

    /// Ask it to end; answers the exit code.
    pub(crate) fn terminate(mut self) -> Option<i32> {
        crate::home::terminate(self.child.id());
        self.child.wait().expect("an end").code()
    }

    pub(crate) fn kill(mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The user's own settings.
pub(crate) fn configure(home: &Home, text: &str) {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    std::fs::create_dir_all(home.state()).expect("a directory");
    std::fs::set_permissions(home.state(), std::fs::Permissions::from_mode(0o700)).expect("closed");
    let file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(home.state().join("config.toml"));
    file.expect("a file").write_all(text.as_bytes()).expect("written");
}
