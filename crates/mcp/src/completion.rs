//! Completion of arguments from names that live.

use std::rc::Rc;

use beamtalk_wire::requests;
use serde_json::{Map, Value, json};

use crate::host::{Host, LoopCommand, TreeAct};
use crate::message::Fault;
use crate::session::Session;
use crate::settings::LoopRight;
use crate::{prompts, resources};

/// Values that are offered.
const OFFERED: usize = 100;

pub(crate) async fn complete<H: Host>(
    session: &Rc<Session<H>>,
    params: &Map<String, Value>,
) -> Result<Value, Fault> {
    let reference = params.get("ref").unwrap_or(&Value::Null);
    match reference["type"].as_str() {
        Some("ref/prompt") => {
            let name = reference["name"].as_str().unwrap_or_default();
            if !prompts::names().any(|known| known == name) {
                return Err(Fault::params("params.ref names no prompt"));
            }
        }
        Some("ref/resource") if reference["uri"].is_string() => {}
        _ => return Err(Fault::params("params.ref must be a ref/prompt or a ref/resource")),
    }
    let argument = params.get("argument").unwrap_or(&Value::Null);
    let (Some(name), Some(value)) = (argument["name"].as_str(), argument["value"].as_str()) else {
        return Err(Fault::params("params.argument needs 'name' and 'value', strings"));
    };
    let context = params.get("context").map(|context| &context["arguments"]);
    let class = context.and_then(|known| known["class"].as_str());
    let mut all = candidates(session, name, class).await;
    all.sort_unstable();
    all.dedup();
    let found = closest(all, value);
    let total = found.len();
    let values: Vec<String> = found.into_iter().take(OFFERED).collect();
    Ok(json!({"completion": {"values": values, "total": total, "hasMore": total > OFFERED}}))
}

/// Names that begin so; if there are none, those that are close.
fn closest(all: Vec<String>, value: &str) -> Vec<String> {
    let lowered = value.to_lowercase();
    let begin: Vec<String> = all
        .iter()
        .filter(|name| name.to_lowercase().starts_with(&lowered))
        .cloned()
        .collect();
    if !begin.is_empty() {
        return begin;
    }
    let mut close: Vec<(usize, String)> = all
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&name.to_lowercase(), &lowered), name))
        .filter(|(distance, _)| *distance <= 2)
        .collect();
    close.sort_unstable();
    close.into_iter().map(|(_, name)| name).collect()
}

async fn candidates<H: Host>(session: &Session<H>, argument: &str, class: Option<&str>) -> Vec<String> {
    let host = &*session.host;
    match argument {
        "topic" => return host.doc_topics().into_iter().map(|(topic, _)| topic).collect(),
        "side" => return vec!["instance".to_owned(), "class".to_owned()],
        "process" | "name" | "key" if session.settings.loop_right < LoopRight::Observe => return Vec::new(),
        _ if !host.is_connected() => return Vec::new(),
        _ => {}
    }
    match argument {
        "class" | "scope" => resources::class_names(host).await,
        "selector" => {
            let Some(class) = class else {
                return Vec::new();
            };
            let request = requests::Methods {
                class: class.to_owned(),
            };
            let methods = host.ask(&request).await.map(|asked| asked.answer.methods);
            let methods = methods.unwrap_or_default();
            methods.into_iter().map(|method| method.selector).collect()
        }
        "actor" | "pid" => {
            let actors = host.ask(&requests::Actors::default()).await;
            let actors = actors.map(|asked| asked.answer.actors).unwrap_or_default();
            actors
                .into_iter()
                .flat_map(|actor| [Some(actor.pid), actor.name])
                .flatten()
                .collect()
        }
        "seq" => {
            let changes = host.ask(&requests::Changes::default()).await;
            let entries = changes.map(|asked| asked.answer.entries).unwrap_or_default();
            entries.iter().map(|view| view.entry.seq.to_string()).collect()
        }
        "test" => {
            let tests = host.ask(&requests::ListTests {}).await;
            let tests = tests.map(|asked| asked.answer.tests).unwrap_or_default();
            let names = |test: beamtalk_wire::answers::TestClass| {
                let class = test.class;
                test.methods
                    .into_iter()
                    .map(move |method| format!("{class}>>{method}"))
            };
            tests.into_iter().flat_map(names).collect()
        }
        "process" | "name" => {
            let status = host.loop_command(LoopCommand::Status).await.unwrap_or_default();
            let processes = status["processes"].as_array().into_iter().flatten();
            let names = processes.filter_map(|process| process["name"].as_str());
            names.map(str::to_owned).collect()
        }
        "key" => match host.loop_command(LoopCommand::State { key: None }).await {
            Ok(Value::Object(state)) => state.into_iter().map(|(key, _)| key).collect(),
            _ => Vec::new(),
        },
        "id" => {
            let listed = host.tree(TreeAct::Read("agents/list.json".to_owned())).await;
            let all: Vec<Value> = serde_json::from_str(&listed.unwrap_or_default()).unwrap_or_default();
            let ids = all.iter().filter_map(|one| one["id"].as_str());
            ids.map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}
