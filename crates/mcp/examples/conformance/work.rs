//! The suite's tools that become tasks.

use serde_json::{Map, Value, json};

use crate::pause;
use crate::world::Job;

/// Those that are nothing but tasks.
pub(crate) const ALWAYS: [&str; 5] = [
    "failing_job",
    "protocol_error_job",
    "confirm_delete",
    "multi_input",
    "test_tool_with_task",
];

pub(crate) fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}], "isError": false})
}

/// A form with one field.
pub(crate) fn form(message: &str, field: &str, kind: &str) -> Value {
    let schema = json!({"type": "object", "properties": {field: {"type": kind}}, "required": [field]});
    json!({"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}})
}

pub(crate) fn asked<const N: usize>(requests: [(&str, Value); N]) -> Map<String, Value> {
    requests
        .map(|(key, request)| (key.to_owned(), request))
        .into_iter()
        .collect()
}

/// The result of a computation that takes its time.
pub(crate) async fn compute(arguments: &Value) -> Value {
    let seconds = arguments["seconds"].as_f64().unwrap_or(1.0);
    pause((seconds * 1_000.0) as u64).await;
    text(&format!(
        "computed {}",
        arguments["label"].as_str().unwrap_or("it")
    ))
}

/// Do the work of a job: its result, or what went wrong with the server itself.
pub(crate) async fn work(job: &Job, order: &str) -> Result<Value, String> {
    let order: Value = serde_json::from_str(order).map_err(|cause| cause.to_string())?;
    let arguments = &order["arguments"];
    Ok(match order["tool"].as_str().unwrap_or_default() {
        "slow_compute" => compute(arguments).await,
        "failing_job" => {
            json!({"content": [{"type": "text", "text": "the job failed"}], "isError": true})
        }
        "confirm_delete" => {
            let file = arguments["filename"].as_str().unwrap_or("it");
            let question = form(&format!("Delete {file}?"), "confirm", "boolean");
            let said = job.ask(asked([("confirm", question)])).await;
            text(&format!("{file}: {}", said["confirm"]["action"]))
        }
        "multi_input" => {
            let questions = [
                ("first", form("First?", "answer", "string")),
                ("second", form("Second?", "answer", "string")),
            ];
            let said = job.ask(asked(questions)).await;
            text(&format!("{} and {}", said["first"], said["second"]))
        }
        "test_tool_with_task" => {
            pause(100).await;
            let name = order["inputs"]["user_name"]["content"]["name"].as_str();
            text(&format!("Hello, {}!", name.unwrap_or("nobody")))
        }
        _ => return Err("the work ended without a result".to_owned()),
    })
}
