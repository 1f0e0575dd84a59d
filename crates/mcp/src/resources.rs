//! Resources: what can be read by its name. Reading runs no code of the user.

use std::rc::Rc;

use beamtalk_wire::escape;
use beamtalk_wire::{AuthorKind, Entry, Side, requests};
use serde_json::{Map, Value, json};

use crate::dispatch::text;
use crate::fit::{self, fit};
use crate::host::{Host, HostError, LoopCommand, TreeAct, failure};
use crate::message::Fault;
use crate::session::Session;
use crate::settings::LoopRight;
use crate::tools::{self, Context};

/// Classes on a page of the list.
const PAGE: usize = 100;
/// Lines of the Transcript.
const TRANSCRIPT_LINES: u64 = 1_000;
/// The longest text.
const TEXT_BYTES: usize = 256 * 1024;
const DOC_TIME_MS: u64 = 3_600_000;

const JSON: &str = "application/json";
const CODE: &str = "text/x-beamtalk";
const DIFF: &str = "text/x-diff";
const MARKDOWN: &str = "text/markdown";

/// Those that are always there: name after `beamtalk://`, title, type, description.
const FIXED: &[(&str, &str, &str, &str)] = &[
    ("status", "Status", JSON, "What holds here; as the tool describe."),
    (
        "classes",
        "Classes",
        JSON,
        "All classes of the project with superclass and file.",
    ),
    ("actors", "Actors", JSON, "Living actors."),
    (
        "changes",
        "Changes",
        JSON,
        "Changes that are in memory and not in files.",
    ),
    (
        "changes/pending",
        "Pending diff",
        DIFF,
        "What a flush would write.",
    ),
    (
        "transcript",
        "Transcript",
        "text/plain",
        "The last lines that code wrote to the Transcript.",
    ),
    (
        "tests/last",
        "Last tests",
        JSON,
        "The results of the last run of the tool test.",
    ),
    ("loop/status", "Loop", JSON, "What the development loop does."),
    (
        "audit/summary",
        "Own calls",
        JSON,
        "Your calls of the last day, counted by tool and outcome; no texts.",
    ),
    ("agents", "Agents", JSON, "Sessions of agents."),
    (
        "approvals",
        "Approvals",
        JSON,
        "Calls of yours that wait for a person.",
    ),
];

/// Template, name, type, description.
const TEMPLATES: &[(&str, &str, &str, &str)] = &[
    ("class/{class}", "Class", CODE, "Source of a class as it runs."),
    (
        "class/{class}/definition",
        "Class definition",
        CODE,
        "Head and state of a class.",
    ),
    (
        "method/{class}/{side}/{selector}",
        "Method",
        CODE,
        "One method; the selector is percent-encoded.",
    ),
    ("actor/{pid}", "Actor", JSON, "Class and fields of an actor."),
    ("changes/{seq}", "Change", DIFF, "The diff of one change."),
    (
        "loop/process/{name}/output",
        "Output of a process",
        "text/plain",
        "The last lines of a process of the loop.",
    ),
    (
        "loop/state/{key}",
        "State of the loop",
        JSON,
        "One key of the loop's state.",
    ),
    (
        "agent/{id}/output",
        "Agent output",
        "text/plain",
        "What an agent session wrote.",
    ),
    (
        "agent/{id}/log",
        "Agent log",
        "text/plain",
        "What was said to and by an agent.",
    ),
    (
        "agent/{id}/diff",
        "Agent diff",
        DIFF,
        "Changes in an agent's worktree.",
    ),
    (
        "doc/{topic}",
        "Documentation",
        MARKDOWN,
        "A page of the built-in guide, a class of the library, or an error code.",
    ),
    (
        "doc/class/{class}",
        "Class documentation",
        MARKDOWN,
        "Documentation of a class that runs.",
    ),
];

pub(crate) fn templates() -> Value {
    let one = |(template, name, kind, about): &(&str, &str, &str, &str)| {
        json!({
            "uriTemplate": format!("beamtalk://{template}"),
            "name": name.to_lowercase().replace(' ', "-"),
            "title": name,
            "description": about,
            "mimeType": kind,
        })
    };
    json!({"resourceTemplates": TEMPLATES.iter().map(one).collect::<Vec<_>>()})
}

/// Whether something may be there under a name.
pub(crate) fn can_be(uri: &str) -> bool {
    let Some(path) = uri.strip_prefix("beamtalk://") else {
        return crate::views::read(uri).is_some();
    };
    let parts: Vec<&str> = path.split('/').collect();
    let fits = |template: &str| {
        let wanted: Vec<&str> = template.split('/').collect();
        wanted.len() == parts.len()
            && wanted
                .iter()
                .zip(&parts)
                .all(|(wanted, part)| wanted == part || (wanted.starts_with('{') && !part.is_empty()))
    };
    FIXED.iter().chain(TEMPLATES).any(|(template, ..)| fits(template))
}

/// Names of classes of the project, if there is a workspace.
pub(crate) async fn class_names<H: Host>(host: &H) -> Vec<String> {
    if !host.is_connected() {
        return Vec::new();
    }
    let request = requests::ListClasses {
        filter: Some("user".to_owned()),
    };
    let classes = host.ask(&request).await.map(|asked| asked.answer.class_list);
    let mut names: Vec<String> = classes
        .unwrap_or_default()
        .into_iter()
        .map(|class| class.name)
        .collect();
    names.sort_unstable();
    names
}

pub(crate) async fn list<H: Host>(session: &Session<H>, params: &Map<String, Value>) -> Result<Value, Fault> {
    let after = match params.get("cursor") {
        None | Some(Value::Null) => None,
        Some(Value::String(cursor)) => Some(
            cursor
                .strip_prefix("class:")
                .ok_or_else(|| Fault::params("there is no such cursor"))?,
        ),
        Some(_) => return Err(Fault::params("params.cursor must be a string")),
    };
    let mut resources = Vec::new();
    if after.is_none() {
        for (path, title, kind, about) in FIXED {
            resources.push(json!({
                "uri": format!("beamtalk://{path}"),
                "name": path,
                "title": title,
                "description": about,
                "mimeType": kind,
            }));
        }
        resources.extend(crate::views::listed());
        for (topic, about) in session.host.doc_topics() {
            resources.push(json!({
                "uri": format!("beamtalk://doc/{topic}"),
                "name": format!("doc/{topic}"),
                "title": topic,
                "description": about,
                "mimeType": MARKDOWN,
            }));
        }
    }
    let names = class_names(&*session.host).await;
    let rest: Vec<&String> = names
        .iter()
        .filter(|name| after.is_none_or(|after| name.as_str() > after))
        .collect();
    for name in rest.iter().take(PAGE) {
        resources.push(json!({
            "uri": format!("beamtalk://class/{name}"),
            "name": format!("class/{name}"),
            "title": name,
            "mimeType": CODE,
        }));
    }
    let mut result = json!({ "resources": resources });
    if rest.len() > PAGE
        && let Some(last) = rest.get(PAGE - 1)
    {
        result["nextCursor"] = format!("class:{last}").into();
    }
    Ok(result)
}

/// What is behind a name.
pub(crate) struct Content {
    pub(crate) kind: &'static str,
    pub(crate) text: String,
    /// It is the same for everybody and for a while.
    is_built_in: bool,
}

fn live(kind: &'static str, text: impl AsRef<str>) -> Content {
    Content {
        kind,
        text: escape(text.as_ref()),
        is_built_in: false,
    }
}

fn encoded(value: Value) -> Content {
    let value = crate::data::AnyData::new(value);
    live(JSON, serde_json::to_string(&value).unwrap_or_default())
}

pub(crate) async fn read<H: Host>(
    session: &Rc<Session<H>>,
    params: &Map<String, Value>,
    is_modern: bool,
) -> Result<Value, Fault> {
    let uri = text(params, "uri")?;
    let missing = || Fault::missing_resource(&escape(&uri.chars().take(256).collect::<String>()), is_modern);
    if let Some(view) = crate::views::read(uri) {
        return Ok(json!({"contents": [view], "ttlMs": DOC_TIME_MS, "cacheScope": "public"}));
    }
    let content = content(session, uri).await.map_err(|error| {
        let mut fault = missing();
        fault.message = format!("{}: {}", fault.message, escape(&error.message));
        fault
    })?;
    let content = content.ok_or_else(missing)?;
    let text = if content.kind == JSON {
        cut_json(content.text)
    } else {
        cut(content.text)
    };
    let (time, scope) = if content.is_built_in {
        (DOC_TIME_MS, "public")
    } else {
        (0, "private")
    };
    Ok(json!({
        "contents": [{"uri": uri, "mimeType": content.kind, "text": text}],
        "ttlMs": time,
        "cacheScope": scope,
    }))
}

/// The newest part of a text that is too long.
fn cut(text: String) -> String {
    if text.len() <= TEXT_BYTES {
        return text;
    }
    let start = text.ceil_char_boundary(text.len() - TEXT_BYTES);
    let (_, rest) = text.split_at(start);
    format!("[{start} bytes at the start were left out]\n{rest}")
}

/// JSON that is JSON still: of tests those go first that passed, then long texts and the ends of long lists are cut.
fn cut_json(text: String) -> String {
    if text.len() <= TEXT_BYTES {
        return text;
    }
    let Ok(mut value) = serde_json::from_str::<Value>(&text) else {
        return cut(text);
    };
    if let Some(tests) = value.get_mut("tests").and_then(Value::as_array_mut) {
        tests.retain(|test| matches!(test["status"].as_str(), Some("fail" | "error")));
    }
    match &mut value {
        Value::Object(fields) => {
            fields.insert("truncated".to_owned(), true.into());
            fit(fields, TEXT_BYTES);
        }
        other => drop(fit::cut(other, TEXT_BYTES)),
    }
    value.to_string()
}

/// What a name stands for; `None` where there is nothing of that name.
pub(crate) async fn content<H: Host>(
    session: &Rc<Session<H>>,
    uri: &str,
) -> Result<Option<Content>, HostError> {
    let host = &*session.host;
    let Some(path) = uri.strip_prefix("beamtalk://") else {
        return Ok(None);
    };
    let parts: Option<Vec<String>> = path.split('/').map(decode).collect();
    let Some(parts) = parts else {
        return Ok(None);
    };
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let found = match parts.as_slice() {
        ["status"] => encoded(describe(session).await?),
        ["classes"] => {
            let rows = host.ask(&requests::BrowseClasses {}).await?.answer.rows;
            let package = project_package(host).await;
            let rows = rows.iter().filter(|row| row.source_file.is_some()).map(|row| {
                // A class with a file of the project can be written to it.
                let is_flushable = row.source_file.as_deref().is_some_and(|file| !file.starts_with('/'));
                json!({
                    "name": row.name, "superclass": row.superclass, "file": row.source_file, "origin": row.origin,
                    "package": package.as_ref().filter(|_| is_flushable), "flushable": is_flushable,
                })
            });
            encoded(rows.collect())
        }
        ["class", class] => live(CODE, tools::class_source(host, class).await?),
        ["class", class, "definition"] => live(CODE, tools::head_source(host, class).await? + "\n"),
        ["method", class, side @ ("instance" | "class"), selector] => {
            let side = if *side == "class" {
                Side::Class
            } else {
                Side::Instance
            };
            match tools::method(host, class, selector, side).await?.source {
                Some(source) => live(CODE, source),
                None => return Ok(None),
            }
        }
        ["actors"] => {
            let actors = host.ask(&requests::Actors::default()).await?.answer.actors;
            let one = |actor: beamtalk_wire::answers::Actor| json!({"pid": actor.pid, "class": actor.class, "name": actor.name, "spawned_at": actor.spawned_at});
            encoded(actors.into_iter().map(one).collect())
        }
        ["actor", pid] => encoded(tools::actor_value(host, pid).await?),
        ["changes"] => {
            tools::require_node(host).await?;
            let changes = host.ask(&requests::Changes::default()).await?.answer;
            encoded(json!(tools::change_values(&changes)))
        }
        ["changes", "pending"] => live(DIFF, tools::pending_diff(host, |_| true).await?),
        // Parts of prompts; they are read by name and not listed.
        ["changes", "pending", "agent"] => {
            let is_agents = |entry: &Entry| entry.author_kind == AuthorKind::Agent;
            live(DIFF, tools::pending_diff(host, is_agents).await?)
        }
        ["changes", "pending", "class", class] => {
            let is_meant = |entry: &Entry| entry.class == *class;
            live(DIFF, tools::pending_diff(host, is_meant).await?)
        }
        ["changes", seq] => match seq.parse() {
            Ok(seq) => live(DIFF, host.ask(&requests::Diff { seq }).await?.answer.diff),
            Err(_) => return Ok(None),
        },
        ["transcript"] => {
            let last = tools::last_lines(host, TRANSCRIPT_LINES, TEXT_BYTES).await?;
            let mark = if last.is_cut {
                "[earlier lines were left out]\n"
            } else {
                ""
            };
            live("text/plain", format!("{mark}{}", last.text))
        }
        ["tests", "last"] => {
            let last = session.common.last_tests.borrow().clone();
            encoded(last.unwrap_or(Value::Null))
        }
        ["loop", "status"] => {
            if session.settings.loop_right < LoopRight::Observe {
                return Err(failure("loop_forbidden", "the right 'observe' is missing"));
            }
            encoded(host.loop_command(LoopCommand::Status).await?)
        }
        ["doc", "class", class] => {
            let request = requests::Docs {
                class: Some((*class).to_owned()),
                ..requests::Docs::default()
            };
            live(MARKDOWN, host.ask(&request).await?.answer.docs)
        }
        ["loop", "process", name, "output"] if session.settings.loop_right >= LoopRight::Observe => {
            let command = LoopCommand::Output {
                process: (*name).to_owned(),
                lines: 1_000,
            };
            let said = host.loop_command(command).await?;
            live("text/plain", said.as_str().unwrap_or_default())
        }
        ["loop", "state", key] if session.settings.loop_right >= LoopRight::Observe => {
            let wanted = Some((*key).to_owned());
            let found = host.loop_command(LoopCommand::State { key: wanted }).await?;
            if found.get(*key).is_none() {
                return Ok(None);
            }
            encoded(crate::named_secrets::masked_value(found))
        }
        ["audit", "summary"] => {
            let counts = host.ask(&requests::AuditSummary {}).await?.answer.counts;
            encoded(json!({ "counts": counts }))
        }
        ["approvals"] => {
            let found = tool_result(session, "list_approvals").await?;
            encoded(found)
        }
        ["traces", "class", class] => {
            let request = requests::GetTraces {
                class: Some((*class).to_owned()),
                limit: Some(100),
                ..requests::GetTraces::default()
            };
            encoded(json!(host.ask(&request).await?.answer.traces))
        }
        ["stats", "class", class] => {
            let mut stats = host.ask(&requests::ActorStats::default()).await?.answer.stats;
            stats.retain(|row| row.class.as_deref() == Some(class));
            encoded(json!(stats))
        }
        ["traces", rest @ ..] if rest.len() <= 1 => {
            let request = requests::GetTraces {
                actor: rest.first().map(|pid| (*pid).to_owned()),
                limit: Some(100),
                ..requests::GetTraces::default()
            };
            encoded(json!(host.ask(&request).await?.answer.traces))
        }
        ["stats"] => encoded(json!(
            host.ask(&requests::ActorStats::default()).await?.answer.stats
        )),
        ["findings"] => encoded(tool_result(session, "recheck_image").await?),
        ["agents"] => encoded(tool_result(session, "list_sessions").await?),
        ["agent", id, file @ ("output" | "log" | "diff")] if !id.contains('/') && !id.starts_with('.') => {
            let kind = if *file == "diff" { DIFF } else { "text/plain" };
            live(
                kind,
                host.tree(TreeAct::Read(format!("agents/{id}/{file}"))).await?,
            )
        }
        ["doc", topic] => match host.doc(topic, None) {
            Some(page) => Content {
                is_built_in: true,
                ..live(MARKDOWN, page)
            },
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    Ok(Some(found))
}

/// A part of a name as it stands in one.
pub(crate) fn encode(part: &str) -> String {
    let mut text = String::with_capacity(part.len());
    for byte in part.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

/// The resource that has the whole of what a call gives, if there is one.
pub(crate) fn whole(tool: &str, given: &Map<String, Value>) -> Option<String> {
    let word = |name: &str| given.get(name).and_then(Value::as_str).map(encode);
    let path = match tool {
        "list_classes" => "classes".to_owned(),
        "list_actors" => "actors".to_owned(),
        "read_transcript" => "transcript".to_owned(),
        "test" => "tests/last".to_owned(),
        "list_changes" => "changes".to_owned(),
        "loop_status" => "loop/status".to_owned(),
        "list_sessions" => "agents".to_owned(),
        "read_source" => match (word("class")?, word("selector")) {
            (class, None) => format!("class/{class}"),
            (class, Some(selector)) => {
                let side = word("side").unwrap_or_else(|| "instance".to_owned());
                format!("method/{class}/{side}/{selector}")
            }
        },
        "docs" => format!("doc/class/{}", word("class")?),
        "inspect" => format!("actor/{}", word("actor")?),
        "diff_change" => match given.get("seq").and_then(Value::as_u64) {
            Some(seq) => format!("changes/{seq}"),
            None => "changes/pending".to_owned(),
        },
        "loop_output" => format!("loop/process/{}/output", word("process")?),
        "read_output" => format!("agent/{}/output", word("session_id")?),
        "session_diff" => format!("agent/{}/diff", word("session_id")?),
        _ => return None,
    };
    Some(format!("beamtalk://{path}"))
}

/// The name of the project's own package.
async fn project_package<H: Host>(host: &H) -> Option<String> {
    let health = host
        .ask(&requests::Health { brief: Some(true) })
        .await
        .ok()?
        .answer;
    health.project.map(|project| project.name)
}

async fn describe<H: Host>(session: &Rc<Session<H>>) -> Result<Value, HostError> {
    tool_result(session, "describe").await
}

/// What a tool that reads and takes nothing gives.
async fn tool_result<H: Host>(session: &Rc<Session<H>>, tool: &str) -> Result<Value, HostError> {
    let (client, progress) = <(crate::capabilities::Client, crate::Progress)>::default();
    let context = Context::of(session, crate::capabilities::Era::Modern, &client, &progress);
    match tools::call(tool, &context, &Map::new()).await {
        Ok(described) => Ok(Value::Object(described)),
        Err(tools::Failure::Error(error)) => Err(error),
        Err(tools::Failure::Ask(_) | tools::Failure::Hold(_)) => {
            Err(failure("internal_error", "describe asks nobody"))
        }
    }
}

/// A part of a name without its percent signs.
fn decode(part: &str) -> Option<String> {
    let bytes = part.as_bytes();
    let mut text = Vec::with_capacity(bytes.len());
    let mut place = 0;
    while let Some(byte) = bytes.get(place) {
        if *byte == b'%' {
            let digits = std::str::from_utf8(bytes.get(place + 1..place + 3)?).ok()?;
            text.push(u8::from_str_radix(digits, 16).ok()?);
            place += 3;
        } else {
            text.push(*byte);
            place += 1;
        }
    }
    String::from_utf8(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_nothing_is_known() {
        for uri in [
            "beamtalk://status",
            "beamtalk://class/Lamp",
            "beamtalk://method/Lamp/instance/at%3Aput%3A",
            "beamtalk://doc/language",
            "beamtalk://changes/pending",
        ] {
            assert!(can_be(uri), "{uri}");
        }
        for uri in [
            "file:///etc/passwd",
            "beamtalk://",
            "beamtalk://class/",
            "beamtalk://nope",
            "beamtalk://class/Lamp/other",
            "Lamp",
        ] {
            assert!(!can_be(uri), "{uri}");
        }
    }

    #[test]
    fn names_are_decoded() {
        assert_eq!(decode("at%3Aput%3A").as_deref(), Some("at:put:"));
        assert_eq!(decode("a%2Fb").as_deref(), Some("a/b"));
        assert_eq!(decode("%zz"), None);
        assert_eq!(decode("%f"), None);
        assert_eq!(decode("%ff"), None);
    }

    #[test]
    fn json_stays_json_and_keeps_what_failed() {
        let test = |n: u32, status: &str| json!({"name": format!("t{n}"), "status": status, "output": "q\"".repeat(900)});
        let tests: Vec<Value> = (0..200)
            .map(|n| test(n, if n % 2 == 0 { "pass" } else { "fail" }))
            .collect();
        let text = json!({"total": 200, "tests": tests}).to_string();
        assert!(text.len() > TEXT_BYTES);
        let shown = cut_json(text);
        assert!(shown.len() <= TEXT_BYTES);
        let shown: Value = serde_json::from_str(&shown).expect("JSON");
        assert_eq!(
            (&shown["total"], &shown["truncated"]),
            (&json!(200), &json!(true))
        );
        assert_eq!(shown["tests"][0]["name"], "t1");
        let list: Vec<Value> = (0..90_000).map(Value::from).collect();
        let shown: Value = serde_json::from_str(&cut_json(json!(list).to_string())).expect("JSON");
        assert_eq!(shown[0], 0);
    }

    #[test]
    fn the_old_end_of_a_long_text_is_cut() {
        let text = format!("{}END", "ä".repeat(TEXT_BYTES));
        let shown = cut(text);
        assert!(shown.starts_with('[') && shown.ends_with("END") && shown.len() < TEXT_BYTES + 100);
    }
}
