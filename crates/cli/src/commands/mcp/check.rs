//! `beamtalk mcp --check`: a second copy of this program with the same flags, asked over pipes as a client would, in
//! both eras. It changes nothing and starts no workspace.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use beamtalk_client::Place;
use serde_json::{Value, json};

use beamtalk_mcp::{Approval, Policy, Settings, Way};

use super::Arguments;
use super::rules::{Asked, Rules};
use crate::config::Config;
use crate::exit::{Exit, Fault};
use crate::terminal::Terminal;

/// How long an answer may take.
const ANSWER_TIME: Duration = Duration::from_secs(20);

/// How one thing stands.
struct Finding {
    mark: Mark,
    what: &'static str,
    detail: String,
    repair: Option<&'static str>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Good,
    Odd,
    Bad,
}

impl Mark {
    fn sign(self) -> &'static str {
        match self {
            Self::Good => "✅",
            Self::Odd => "⚠️",
            Self::Bad => "❌",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Odd => "warning",
            Self::Bad => "failed",
        }
    }
}

/// The tools as a client sees them.
pub(super) fn tools(terminal: &Terminal, arguments: &Arguments) -> anyhow::Result<Vec<Value>> {
    let mut client = Client::start(arguments, terminal)?;
    let seen = client.ask("tools/list", json!({}), true);
    let mut seen = seen.map_err(|fault| Fault::failure("no_tools", fault))?;
    match seen["tools"].take() {
        Value::Array(tools) => Ok(tools),
        _ => Err(Fault::failure("no_tools", "there is no list".to_owned()).into()),
    }
}

/// Look at the server with its rules and its workspace; inside of a session nothing is known of them.
pub(super) fn run(
    terminal: &mut Terminal,
    arguments: &Arguments,
    known: Option<(&Rules, &Place)>,
) -> anyhow::Result<Exit> {
    let mut findings = Vec::new();
    let settings = known.map(|(rules, _)| &rules.settings);
    match Client::start(arguments, terminal) {
        Ok(mut client) => look(&mut client, settings, &mut findings),
        Err(cause) => findings.push(Finding {
            mark: Mark::Bad,
            what: "start",
            detail: cause.to_string(),
            repair: Some("is the binary still where it was?"),
        }),
    }
    findings.extend(known.map(|(rules, _)| policy(rules)));
    findings.extend(known.and_then(|(_, place)| http(place)));
    let is_good = findings.iter().all(|finding| finding.mark != Mark::Bad);
    if terminal.is_json() {
        let one = |finding: &Finding| json!({"check": finding.what, "state": finding.mark.word(), "detail": finding.detail, "repair": finding.repair});
        let checks: Vec<Value> = findings.iter().map(one).collect();
        terminal.print(json!({"ok": is_good, "checks": checks}))?;
    } else {
        for finding in &findings {
            terminal.print(format_args!(
                "{} {}: {}",
                finding.mark.sign(),
                finding.what,
                finding.detail
            ))?;
            if let Some(repair) = finding.repair {
                terminal.print(format_args!("   {repair}"))?;
            }
        }
    }
    Ok(if is_good { Exit::Success } else { Exit::Failure })
}

/// The route of the running workspace, which holds to the settings that it read when it started.
fn http(place: &Place) -> Option<Finding> {
    let what = "HTTP";
    let found = match super::check_http::look(place)? {
        Ok(found) => found,
        Err(detail) => {
            return Some(Finding {
                mark: Mark::Bad,
                what,
                detail,
                repair: Some("this is a fault of Beamtalk; please report it"),
            });
        }
    };
    let asked = Asked {
        way: Way::Http,
        ..Asked::default()
    };
    let config = Config::of(&place.state).ok();
    let rules = config.and_then(|config| Rules::new(&asked, &config.mcp, &place.root).ok());
    let is_old = rules.is_none_or(|rules| rules.settings.told() != found.settings);
    Some(Finding {
        mark: if is_old { Mark::Odd } else { Mark::Good },
        what,
        detail: format!(
            "http://{}/mcp; policy {}, as the workspace read it when it started; foreign hosts, origins and wrong tokens are refused",
            found.address,
            found.settings["policy"].as_str().unwrap_or("unknown")
        ),
        repair: Some("the settings are others by now: start the workspace again for them to hold")
            .filter(|_| is_old),
    })
}

fn policy(rules: &Rules) -> Finding {
    let settings = &rules.settings;
    let by = settings
        .narrowed_by
        .map_or_else(String::new, |by| format!(", narrowed by {by}"));
    Finding {
        mark: if rules.notices.is_empty() {
            Mark::Good
        } else {
            Mark::Odd
        },
        what: "policy",
        detail: format!("{}{by}", settings.policy),
        repair: Some("max-policy in [mcp] of config.toml says what is allowed")
            .filter(|_| !rules.notices.is_empty()),
    }
}

fn look(client: &mut Client, settings: Option<&Settings>, findings: &mut Vec<Finding>) {
    let mut add = |what: &'static str, outcome: Result<String, String>, repair: &'static str| {
        let (mark, detail, repair) = match outcome {
            Ok(detail) => (Mark::Good, detail, None),
            Err(detail) if is_denied(&detail) => {
                let denied = "the settings deny it".to_owned();
                (
                    Mark::Odd,
                    denied,
                    Some("[mcp] of config.toml or beamtalk.toml: deny-tools, policy"),
                )
            }
            Err(detail) => (Mark::Bad, detail, Some(repair)),
        };
        findings.push(Finding {
            mark,
            what,
            detail,
            repair,
        });
    };
    let report = "this is a fault of Beamtalk; please report it";
    add("opening, 2026-07-28", client.discover(), report);
    add("opening, 2025-11-25", client.initialize(), report);
    add("tools", client.tools(), report);
    add("tools as an old client sees them", client.same_tools(), report);
    add(
        "search_docs",
        client.good("search_docs", json!({"query": "language"})),
        report,
    );
    let old = client.call_as("describe", &json!({}), false).map(|_| ());
    let described = old.and_then(|()| client.call("describe", json!({})));
    // What it says is also a resource, which is there where the tool is denied.
    let status = client.status();
    let is_running = status
        .as_ref()
        .is_ok_and(|seen| seen["workspace"]["running"] == true);
    let is_held = match (settings, &status) {
        (Some(settings), _) => settings.policy == Policy::ReadOnly || settings.approval == Approval::Execute,
        (None, Ok(seen)) => {
            let note = seen["evaluate_note"].as_str().unwrap_or_default();
            seen["policy"] == Policy::ReadOnly.name() || note.contains("waits for a person")
        }
        (None, Err(_)) => true,
    };
    add(
        "describe",
        described.map(|seen| format!("policy {}", seen["policy"])),
        report,
    );
    if is_running && is_held {
        add(
            "evaluate",
            Ok("not tried: nothing runs here without a person's yes".to_owned()),
            report,
        );
    } else if is_running {
        add(
            "evaluate",
            client.twice(),
            "beamtalk workspace status tells how the workspace does",
        );
    } else {
        findings.push(Finding {
            mark: Mark::Odd,
            what: "workspace",
            detail: "none runs for this project".to_owned(),
            repair: Some("beamtalk workspace start; or --start, and the first call does it"),
        });
    }
}

/// Whether a call failed because the settings do not allow it.
fn is_denied(error: &str) -> bool {
    let error: Value = serde_json::from_str(error).unwrap_or_default();
    error["error"]["kind"] == "policy_denied"
}

/// What is wrong with the schemas of a tool.
fn fault_of(tool: &Value) -> Option<String> {
    let name = &tool["name"];
    for side in ["inputSchema", "outputSchema"] {
        let schema = &tool[side];
        if schema["type"] != "object" || schema["additionalProperties"] != false {
            return Some(format!("{name} has no closed {side}"));
        }
        let known = schema["properties"].as_object()?;
        let required = schema["required"].as_array().into_iter().flatten();
        let mut names = required.filter_map(Value::as_str);
        if let Some(missing) = names.find(|name| !known.contains_key(*name)) {
            return Some(format!("{name} requires '{missing}', which it does not have"));
        }
    }
    None
}

/// The other end of the pipes.
struct Client {
    child: Child,
    input: ChildStdin,
    lines: mpsc::Receiver<Value>,
    next: u64,
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Client {
    #[expect(
        clippy::disallowed_methods,
        reason = "the copy is this program and ends with it"
    )]
    fn start(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("mcp");
        for (flag, value) in [
            ("--workspace", &terminal.workspace),
            ("--policy", &arguments.policy),
            ("--toolsets", &arguments.toolsets),
            (
                "--eval-ceiling",
                &arguments.eval_ceiling.map(|seconds| seconds.to_string()),
            ),
        ] {
            if let Some(value) = value {
                command.arg(flag).arg(value);
            }
        }
        if arguments.allow_outside_project {
            command.arg("--allow-outside-project");
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            anyhow::bail!("the copy has no pipes");
        };
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let value = serde_json::from_str(&line).unwrap_or(Value::Null);
                if sender.send(value).is_err() {
                    break;
                }
            }
        });
        Ok(Self {
            child,
            input,
            lines,
            next: 1,
        })
    }

    fn ask(&mut self, method: &str, mut params: Value, is_modern: bool) -> Result<Value, String> {
        let id = self.next;
        self.next += 1;
        if is_modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": {"name": "beamtalk mcp --check", "version": env!("CARGO_PKG_VERSION")},
            });
        }
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(self.input, "{request}").map_err(|cause| cause.to_string())?;
        let answer = self
            .lines
            .recv_timeout(ANSWER_TIME)
            .map_err(|_| format!("no answer to {method}"))?;
        match (answer["id"] == id, answer.get("result")) {
            (true, Some(result)) => Ok(result.clone()),
            (true, None) => Err(format!("{method}: {}", answer["error"]["message"])),
            (false, _) => Err(format!("{method} got another's answer")),
        }
    }

    fn discover(&mut self) -> Result<String, String> {
        let seen = self.ask("server/discover", json!({}), true)?;
        if seen["resultType"] == "complete" {
            Ok(format!("versions {}", seen["supportedVersions"]))
        } else {
            Err("the answer has another shape".to_owned())
        }
    }

    fn initialize(&mut self) -> Result<String, String> {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "check", "version": "1"}});
        let seen = self.ask("initialize", params, false)?;
        match seen["protocolVersion"].as_str() {
            Some("2025-11-25") => Ok("agreed".to_owned()),
            _ => Err(format!("agreed on {}", seen["protocolVersion"])),
        }
    }

    fn tools(&mut self) -> Result<String, String> {
        let seen = self.ask("tools/list", json!({}), true)?;
        let tools = seen["tools"].as_array().ok_or("there is no list")?;
        let bytes = seen.to_string().len();
        if bytes > 128 * 1024 {
            return Err(format!("the list is {bytes} bytes long"));
        }
        match tools.iter().find_map(fault_of) {
            Some(fault) => Err(fault),
            None => Ok(format!("{} tools, {bytes} bytes", tools.len())),
        }
    }

    /// An old client sees the same tools.
    fn same_tools(&mut self) -> Result<String, String> {
        let modern = self.ask("tools/list", json!({}), true)?;
        let old = self.ask("tools/list", json!({}), false)?;
        if old["tools"] == modern["tools"] && old.get("ttlMs").is_none() {
            Ok("the same".to_owned())
        } else {
            Err("the list has another shape".to_owned())
        }
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, String> {
        self.call_as(tool, &arguments, true)
    }

    fn call_as(&mut self, tool: &str, arguments: &Value, is_modern: bool) -> Result<Value, String> {
        let params = json!({"name": tool, "arguments": arguments});
        let seen = self.ask("tools/call", params, is_modern)?;
        if seen["isError"] == true {
            return Err(seen["content"][0]["text"]
                .as_str()
                .unwrap_or("an error")
                .to_owned());
        }
        Ok(seen["structuredContent"].clone())
    }

    fn status(&mut self) -> Result<Value, String> {
        let seen = self.ask("resources/read", json!({"uri": "beamtalk://status"}), true)?;
        let text = seen["contents"][0]["text"].as_str().unwrap_or_default();
        serde_json::from_str(text).map_err(|cause| cause.to_string())
    }

    fn good(&mut self, tool: &str, arguments: Value) -> Result<String, String> {
        self.call(tool, arguments).map(|_| "answers".to_owned())
    }

    /// Variables of a handle are there the second time.
    fn twice(&mut self) -> Result<String, String> {
        let first = self.call("evaluate", json!({"code": "x := 2 + 3", "session": "new"}))?;
        let session = first["session"].as_str().ok_or("there is no handle")?.to_owned();
        let second = self.call("evaluate", json!({"code": "x", "session": session}))?;
        drop(self.call("close_session", json!({"session": session})));
        if second["value"] == 5 {
            Ok("2 + 3 is 5, twice".to_owned())
        } else {
            Err(format!("2 + 3 is {}", second["value"]))
        }
    }
}
