//! The tools, resources and prompts that the suite calls by name.

use beamtalk_mcp::{Fixture, Given, Giving, Seen};
use serde_json::{Map, Value, json};

use crate::pause;
use crate::work::{ALWAYS, asked, compute, form, text};

/// One red dot, and a sound without a sample.
const DOT: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const SOUND: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";
const TASKS: &str = "io.modelcontextprotocol/tasks";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// Tools without arguments that give the same every time.
const PLAIN: [&str; 6] = [
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_error_handling",
];
/// Tools that take their time, tell, or ask.
const OTHERS: [&str; 21] = [
    "test_tool_with_logging",
    "test_tool_with_progress",
    "test_sampling",
    "test_elicitation",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state",
    "test_input_required_result_capabilities",
    "test_missing_capability",
    "test_streaming_elicitation",
    "test_logging_tool",
    "test_trigger_tool_change",
    "test_trigger_prompt_change",
    "greet",
    "slow_compute",
];

pub(crate) struct Answers;

impl Fixture for Answers {
    fn answer(&self, seen: Seen) -> Giving<Given> {
        Box::pin(answer(seen))
    }

    fn capabilities(&self) -> Map<String, Value> {
        Map::from_iter([("logging".to_owned(), json!({}))])
    }
}

async fn answer(seen: Seen) -> Given {
    let name = seen
        .params
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let uri = seen.params.get("uri").and_then(Value::as_str).unwrap_or_default();
    match seen.method.as_str() {
        "tools/list" => Given::Result(json!({"tools": tools()})),
        "tools/call" => call(name.to_owned(), seen).await,
        "resources/list" => Given::Result(json!({"resources": [
            {"uri": "test://static-text", "name": "text", "mimeType": "text/plain"},
            {"uri": "test://static-binary", "name": "binary", "mimeType": "image/png"},
            {"uri": "test://watched-resource", "name": "watched", "mimeType": "text/plain"},
        ]})),
        "resources/templates/list" => Given::Result(json!({"resourceTemplates": [
            {"uriTemplate": "test://template/{id}/data", "name": "template", "mimeType": "application/json"},
        ]})),
        "resources/read" => read(uri),
        "resources/subscribe" | "resources/unsubscribe" if uri.starts_with("test://") => {
            Given::Result(json!({}))
        }
        "prompts/list" => Given::Result(json!({"prompts": prompts()})),
        "prompts/get" => prompt(name, &seen),
        "completion/complete" => {
            Given::Result(json!({"completion": {"values": [], "total": 0, "hasMore": false}}))
        }
        "logging/setLevel" if !seen.is_modern => Given::Result(json!({})),
        _ => Given::NotMine,
    }
}

fn tools() -> Vec<Value> {
    let one = |name: &&str| {
        let properties = match *name {
            "test_sampling" => json!({"prompt": {"type": "string"}}),
            "test_elicitation" => json!({"message": {"type": "string"}}),
            "greet" => json!({"name": {"type": "string"}}),
            "slow_compute" => json!({"seconds": {"type": "number"}, "label": {"type": "string"}}),
            "confirm_delete" => json!({"filename": {"type": "string"}}),
            _ => json!({}),
        };
        json!({
            "name": name,
            "description": "A tool of the conformance suite.",
            "inputSchema": {"type": "object", "properties": properties},
        })
    };
    PLAIN.iter().chain(&OTHERS).chain(&ALWAYS).map(one).collect()
}

fn content(parts: Value) -> Given {
    Given::Result(json!({"content": parts, "isError": false}))
}

fn resource(uri: &str, kind: &str, text: &str) -> Value {
    json!({"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": text}})
}

fn plain(name: &str) -> Given {
    let image = json!({"type": "image", "data": DOT, "mimeType": "image/png"});
    match name {
        "test_simple_text" => Given::Result(text("This is a simple text response for testing.")),
        "test_image_content" => content(json!([image])),
        "test_audio_content" => content(json!([{"type": "audio", "data": SOUND, "mimeType": "audio/wav"}])),
        "test_embedded_resource" => content(json!([resource(
            "test://embedded-resource",
            "text/plain",
            "This is an embedded resource content."
        )])),
        "test_multiple_content_types" => content(json!([
            {"type": "text", "text": "Multiple content types test:"},
            image,
            resource("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#),
        ])),
        _ => Given::Result(json!({
            "content": [{"type": "text", "text": "This tool intentionally returns an error for testing"}],
            "isError": true,
        })),
    }
}

fn fault(code: i64, message: &str, data: Value) -> Given {
    Given::Fault {
        code,
        message: message.to_owned(),
        data: Some(data),
    }
}

fn lacks(capability: Value) -> Given {
    fault(
        -32021,
        "the client lacks a capability",
        json!({ "requiredCapabilities": capability }),
    )
}

async fn call(name: String, seen: Seen) -> Given {
    let name = name.as_str();
    let none = Value::Null;
    let meta = seen.params.get("_meta").unwrap_or(&none);
    let declared = &meta[CAPABILITIES];
    let has_tasks = declared["extensions"][TASKS].is_object();
    let arguments = seen.params.get("arguments").unwrap_or(&none);
    let order = || {
        let order = json!({"tool": name, "arguments": arguments, "inputs": seen.inputs});
        Given::Task(order.to_string())
    };
    match name {
        _ if PLAIN.contains(&name) => plain(name),
        "test_tool_with_task" if has_tasks && !seen.inputs.contains_key("user_name") => {
            Given::Ask(asked([(
                "user_name",
                form("What is your name?", "name", "string"),
            )]))
        }
        _ if ALWAYS.contains(&name) && has_tasks => order(),
        _ if ALWAYS.contains(&name) => lacks(json!({"extensions": { TASKS: {} }})),
        "slow_compute" if has_tasks => order(),
        "slow_compute" => Given::Result(compute(arguments).await),
        "greet" => Given::Result(text(&format!(
            "Hello, {}!",
            arguments["name"].as_str().unwrap_or("nobody")
        ))),
        "test_missing_capability" if !declared["sampling"].is_object() => lacks(json!({"sampling": {}})),
        "test_streaming_elicitation" => {
            Given::Ask(asked([("name", form("What is your name?", "name", "string"))]))
        }
        "test_tool_with_progress" => {
            for progress in [0, 50, 100] {
                if let Some(token) = meta.get("progressToken") {
                    let params = json!({"progressToken": token, "progress": progress, "total": 100});
                    seen.client.tell("notifications/progress", params);
                }
                pause(50).await;
            }
            Given::Result(text("done"))
        }
        "test_tool_with_logging" | "test_logging_tool" => {
            if !seen.is_modern || meta.get(LOG_LEVEL).is_some() {
                for said in [
                    "Tool execution started",
                    "Tool processing data",
                    "Tool execution completed",
                ] {
                    let params = json!({"level": "info", "data": said});
                    seen.client.tell("notifications/message", params);
                    pause(50).await;
                }
            }
            Given::Result(text("done"))
        }
        // Nothing hangs on this one, so that it takes an answer to a question that it did not put.
        "test_input_required_result_elicitation" if seen.inputs.is_empty() => {
            rounds(name, declared, &seen.unbound)
        }
        _ if name.starts_with("test_input_required_result_") => rounds(name, declared, &seen.inputs),
        "test_sampling"
        | "test_elicitation"
        | "test_elicitation_sep1034_defaults"
        | "test_elicitation_sep1330_enums" => ask_old(name, arguments, &seen).await,
        "test_missing_capability" | "test_trigger_tool_change" | "test_trigger_prompt_change" => {
            Given::Result(text("done"))
        }
        _ => Given::NotMine,
    }
}

fn sampling(question: &str, most: u64) -> Value {
    let message = json!({"role": "user", "content": {"type": "text", "text": question}});
    json!({"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": most}})
}

/// What is asked next, or the result when all is answered.
fn rounds(name: &str, declared: &Value, inputs: &Map<String, Value>) -> Given {
    let roots = json!({"method": "roots/list", "params": {}});
    let wanted = match name.trim_start_matches("test_input_required_result_") {
        "elicitation" => asked([("user_name", form("What is your name?", "name", "string"))]),
        "sampling" => asked([(
            "capital_question",
            sampling("What is the capital of France?", 100),
        )]),
        "list_roots" => asked([("client_roots", roots)]),
        "request_state" | "tampered_state" => asked([("confirm", form("Please confirm", "ok", "boolean"))]),
        "multiple_inputs" => asked([
            ("user_name", form("What is your name?", "name", "string")),
            ("greeting", sampling("Generate a greeting", 50)),
            ("client_roots", roots),
        ]),
        "multi_round" if !inputs.contains_key("step1") => {
            asked([("step1", form("Step 1: What is your name?", "name", "string"))])
        }
        "multi_round" => asked([(
            "step2",
            form("Step 2: What is your favorite color?", "color", "string"),
        )]),
        "capabilities" => {
            let mut all = asked([("greeting", sampling("Generate a greeting", 50))]);
            if declared["elicitation"].is_object() {
                all.extend(asked([(
                    "user_name",
                    form("What is your name?", "name", "string"),
                )]));
            }
            all
        }
        _ => return Given::NotMine,
    };
    let is_answered = |key: &String| inputs.get(key).is_some_and(Value::is_object);
    if wanted.keys().all(is_answered) {
        return Given::Result(text(&format!("state-ok {}", json!(inputs))));
    }
    Given::Ask(wanted)
}

/// Tools that ask an old client while its call is open.
async fn ask_old(name: &str, arguments: &Value, seen: &Seen) -> Given {
    let (method, params, word) = match name {
        "test_sampling" => {
            let asked = sampling(arguments["prompt"].as_str().unwrap_or_default(), 100);
            ("sampling/createMessage", asked["params"].clone(), "LLM response")
        }
        "test_elicitation" => {
            let field = |about: &str| json!({"type": "string", "description": about});
            let schema = json!({
                "type": "object",
                "properties": {"username": field("User's response"), "email": field("User's email address")},
                "required": ["username", "email"],
            });
            let message = &arguments["message"];
            let params = json!({"message": message, "requestedSchema": schema});
            ("elicitation/create", params, "User response")
        }
        "test_elicitation_sep1034_defaults" => {
            let schema = json!({"type": "object", "properties": {
                "name": {"type": "string", "default": "John Doe"},
                "age": {"type": "integer", "default": 30},
                "score": {"type": "number", "default": 95.5},
                "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
                "verified": {"type": "boolean", "default": true},
            }, "required": []});
            let params = json!({"message": "Please look at the defaults", "requestedSchema": schema});
            ("elicitation/create", params, "Elicitation completed")
        }
        _ => {
            let named = |names: [&str; 3], word: &str| -> Vec<Value> {
                let numbers = ["First", "Second", "Third"];
                let all = names.iter().zip(numbers);
                all.map(|(value, number)| json!({"const": value, "title": format!("{number} {word}")}))
                    .collect()
            };
            let options = json!(["option1", "option2", "option3"]);
            let values = ["value1", "value2", "value3"];
            let schema = json!({"type": "object", "properties": {
                "untitledSingle": {"type": "string", "enum": options},
                "titledSingle": {"type": "string", "oneOf": named(values, "Option")},
                "legacyEnum": {
                    "type": "string", "enum": ["opt1", "opt2", "opt3"],
                    "enumNames": ["Option One", "Option Two", "Option Three"],
                },
                "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
                "titledMulti": {"type": "array", "items": {"anyOf": named(values, "Choice")}},
            }, "required": []});
            let params = json!({"message": "Please choose", "requestedSchema": schema});
            ("elicitation/create", params, "Elicitation completed")
        }
    };
    match seen.client.ask(method, params).await {
        Some(answer) if method == "elicitation/create" => Given::Result(text(&format!(
            "{word}: action={}, content={}",
            answer["action"].as_str().unwrap_or_default(),
            answer["content"]
        ))),
        Some(answer) => Given::Result(text(&format!("{word}: {}", answer["content"]["text"]))),
        None => {
            Given::Result(json!({"content": [{"type": "text", "text": "nobody answered"}], "isError": true}))
        }
    }
}

fn read(uri: &str) -> Given {
    let found = match uri {
        "test://static-text" => {
            json!({"uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource."})
        }
        "test://static-binary" => json!({"uri": uri, "mimeType": "image/png", "blob": DOT}),
        "test://watched-resource" => json!({"uri": uri, "mimeType": "text/plain", "text": "watched"}),
        _ => {
            let inner = uri.strip_prefix("test://template/");
            let Some(id) = inner.and_then(|rest| rest.strip_suffix("/data")) else {
                return Given::NotMine;
            };
            let text = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            json!({"uri": uri, "mimeType": "application/json", "text": text.to_string()})
        }
    };
    Given::Result(json!({ "contents": [found] }))
}

fn prompts() -> Value {
    let argument = |name: &str| json!({"name": name, "description": "An argument.", "required": true});
    json!([
        {"name": "test_simple_prompt", "description": "A simple prompt."},
        {"name": "test_prompt_with_arguments", "description": "With arguments.", "arguments": [argument("arg1"), argument("arg2")]},
        {"name": "test_prompt_with_embedded_resource", "description": "With a resource.", "arguments": [argument("resourceUri")]},
        {"name": "test_prompt_with_image", "description": "With an image."},
        {"name": "test_input_required_result_prompt", "description": "Asks first."},
    ])
}

fn prompt(name: &str, seen: &Seen) -> Given {
    let none = Value::Null;
    let arguments = seen.params.get("arguments").unwrap_or(&none);
    let word = |name: &str| arguments[name].as_str().unwrap_or_default();
    let says = |content: Value| json!({"role": "user", "content": content});
    let words = |text: &str| says(json!({"type": "text", "text": text}));
    let messages = match name {
        "test_simple_prompt" => vec![words("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => vec![words(&format!(
            "Prompt with arguments: arg1='{}', arg2='{}'",
            word("arg1"),
            word("arg2")
        ))],
        "test_prompt_with_embedded_resource" => vec![
            says(resource(
                word("resourceUri"),
                "text/plain",
                "Embedded resource content for testing.",
            )),
            words("Please process the embedded resource above."),
        ],
        "test_prompt_with_image" => vec![
            says(json!({"type": "image", "data": DOT, "mimeType": "image/png"})),
            words("Please analyze the image above."),
        ],
        "test_input_required_result_prompt" => match seen.inputs.get("user_context") {
            Some(said) => vec![words(&format!("In this context: {}", said["content"]["context"]))],
            None => {
                let question = form("What context should the prompt use?", "context", "string");
                return Given::Ask(asked([("user_context", question)]));
            }
        },
        _ => return Given::NotMine,
    };
    Given::Result(json!({"description": name, "messages": messages}))
}
