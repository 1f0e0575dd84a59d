//! Recorded conversations, replayed against the real binary: what a client sends and gets stays the same.
//!
//! A transcript has one JSON object a line. `send` is sent as it is (a string: as that text); `receive` is what comes next
//! for its `id`; `event` is one that comes at some time. When recording, what is sent `later` is answered after what is sent
//! next, and what is sent `apart` is answered alone. `save` names values of the answer that later lines use as `$name`.
//! `UPDATE=1` asks again and writes down what is answered.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use regex::Regex;
use serde_json::{Map, Value, json};

use crate::home::Home;
use crate::project::{started, write};
use crate::raw::{Frame, Raw};

const TESTS: &str = "TestCase subclass: LampTest
  testGood => self assert: true
  testBad => self assert: 1 equals: 2
";

/// A list that is longer than this is the library's: its first element stands for all.
const LONG: usize = 30;
/// Longer texts are cut.
const LONG_TEXT: usize = 500;
/// How long an event may take.
const EVENT: Duration = Duration::from_secs(10);

macro_rules! transcripts {
    ($($name:ident),*) => {
        $(#[test]
        fn $name() {
            replay(stringify!($name));
        })*
    };
}

transcripts!(
    evaluation,
    handles,
    approvals,
    code,
    loading,
    classes,
    actors,
    testing,
    editing,
    changes,
    observation,
    refusals,
    events,
    browser,
    views,
    stopping
);

fn replay(name: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/protocol/{name}.jsonl"));
    let text = std::fs::read_to_string(&path).expect("a transcript");
    let lines: Vec<Map<String, Value>> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line"))
        .collect();
    let home = started(&format!("tr-{name}"), &[]);
    write(&home, "test/lamp_test.bt", TESTS);
    let mut talk = Talk::new(&home);
    if std::env::var_os("UPDATE").is_some() {
        let recorded = talk.record(&lines);
        std::fs::write(&path, recorded).expect("written");
        return;
    }
    for (number, line) in lines.iter().enumerate() {
        let at = format!("{name}.jsonl:{}", number + 1);
        if let Some(sent) = line.get("send") {
            talk.send(sent, line.get("save"));
        } else if let Some(expected) = line.get("receive") {
            let got = talk.receive(expected["id"].as_str());
            let got = talk.stable(&got, "");
            assert_eq!(&got, expected, "{at}");
        } else if let Some(expected) = line.get("event") {
            let found = talk.event(|event| event == expected);
            assert!(
                found.is_some(),
                "{at}: no event {expected}, but {:?}",
                talk.events
            );
        }
    }
}

/// One connection.
struct Talk {
    raw: Raw,
    home: String,
    cookie: String,
    waiting: VecDeque<Value>,
    events: Vec<Value>,
    saved: BTreeMap<String, String>,
    wanted: Map<String, Value>,
    patterns: [(Regex, &'static str); 6],
}

impl Talk {
    fn new(home: &Home) -> Self {
        let pattern = |text: &str| Regex::new(text).expect("a pattern");
        Self {
            raw: Raw::stranger(home),
            home: home.project().parent().expect("a home").display().to_string(),
            cookie: home.cookie(),
            waiting: VecDeque::new(),
            events: Vec::new(),
            saved: BTreeMap::new(),
            wanted: Map::new(),
            patterns: [
                (pattern(r"\bs-[0-9a-f]{8,}\b"), "s-00000000"),
                (
                    pattern(r"\d{4}-\d\d-\d\dT\d\d:?\d\d:?\d\d(\.\d+)?Z"),
                    "2000-01-01T00:00:00Z",
                ),
                (
                    pattern(r"\b(ev|rq|tk)_[A-Za-z0-9_-]{22}"),
                    "${1}_0000000000000000000000",
                ),
                (pattern(r"\bap-[0-9a-f]{8}\b"), "ap-00000000"),
                (pattern(r"limit of \d+ ms"), "limit of 100 ms"),
                (pattern(r"(^|[^0-9.])0\.\d+\.\d+\b"), "${1}0.1.0"),
            ],
        }
    }

    fn send(&mut self, sent: &Value, save: Option<&Value>) {
        self.wanted = save.and_then(Value::as_object).cloned().unwrap_or_default();
        let mut text = match sent {
            Value::String(text) => text.clone(),
            sent => sent.to_string(),
        };
        text = text.replace("$cookie", &self.cookie);
        for (name, value) in &self.saved {
            text = text.replace(&format!("${name}"), value);
        }
        self.raw.send(&text);
    }

    /// One more message, where it belongs.
    fn pull(&mut self) -> bool {
        let Frame::Message(message) = self.raw.next() else {
            return false;
        };
        if message["type"] == "push" {
            let event = self.stable(&message, "");
            self.events.push(event);
        } else {
            self.waiting.push_back(message);
        }
        true
    }

    /// The next message of a request, pieces of output joined.
    fn receive(&mut self, id: Option<&str>) -> Value {
        let mut output = String::new();
        loop {
            let own = |message: &Value| message["id"].as_str() == id;
            match self.waiting.iter().position(own) {
                None => assert!(self.pull(), "closed"),
                Some(at) => {
                    let message = self.waiting.get(at).cloned().unwrap_or_default();
                    if let Some(text) = message["out"].as_str() {
                        output.push_str(text);
                        self.waiting.remove(at);
                    } else if output.is_empty() {
                        self.waiting.remove(at);
                        self.save(&message);
                        return message;
                    } else {
                        return json!({"id": id, "session": message["session"], "out": output});
                    }
                }
            }
        }
    }

    fn save(&mut self, answer: &Value) {
        for (name, pointer) in std::mem::take(&mut self.wanted) {
            let found = answer.pointer(pointer.as_str().expect("a pointer"));
            let text = match found {
                Some(Value::String(text)) => text.clone(),
                found => found.map(Value::to_string).unwrap_or_default(),
            };
            self.saved.insert(name, text);
        }
    }

    /// An event that came, or comes.
    fn event(&mut self, is_meant: impl Fn(&Value) -> bool) -> Option<Value> {
        let deadline = Instant::now() + EVENT;
        loop {
            if let Some(at) = self.events.iter().position(&is_meant) {
                return Some(self.events.remove(at));
            }
            if Instant::now() > deadline {
                return None;
            }
            // Something is always answered, so that this does not wait for ever.
            self.raw.send(r#"{"op":"dirty","id":"tick"}"#);
            while !self.waiting.iter().any(|message| message["id"] == "tick") {
                self.pull();
            }
            self.waiting.retain(|message| message["id"] != "tick");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// What every run has in common.
    fn stable(&self, value: &Value, key: &str) -> Value {
        match value {
            Value::Object(fields) => fields
                .iter()
                .map(|(inner, value)| {
                    let key = if key == "memory" { key } else { inner };
                    (inner.clone(), self.stable(value, key))
                })
                .collect::<Map<_, _>>()
                .into(),
            Value::Array(elements) => {
                let kept = if elements.len() > LONG { 1 } else { elements.len() };
                elements
                    .iter()
                    .take(kept)
                    .map(|one| self.stable(one, ""))
                    .collect()
            }
            Value::Number(number) if is_measured(key) && number.is_f64() => json!(0.0),
            Value::Number(number) if is_measured(key) || is_clock(number) => 0.into(),
            Value::String(text) => match key {
                "nonce" | "workspace_id" | "peer" | "erlang" | "core_erlang" => "…".into(),
                _ => self.stable_text(text).into(),
            },
            other => other.clone(),
        }
    }

    fn stable_text(&self, text: &str) -> String {
        let mut text = text.replace(&self.home, "/home");
        text = text.replace(env!("CARGO_PKG_VERSION"), "0.0.0");
        if text.chars().count() > LONG_TEXT {
            text = text.chars().take(LONG_TEXT).chain(['…']).collect();
        }
        for (pattern, stable) in &self.patterns {
            text = pattern.replace_all(&text, *stable).into_owned();
        }
        text
    }

    /// Ask again, and write down what is answered.
    fn record(&mut self, lines: &[Map<String, Value>]) -> String {
        let mut recorded = String::new();
        let mut write = |line: Value| recorded.push_str(&format!("{line}\n"));
        let greeting = self.receive(None);
        write(json!({ "receive": self.stable(&greeting, "") }));
        let mut open: Vec<Option<String>> = Vec::new();
        for line in lines {
            if let Some(sent) = line.get("send") {
                write(Value::Object(line.clone()));
                self.send(sent, line.get("save"));
                let parsed: Option<Value> = match sent {
                    Value::String(text) => serde_json::from_str(text).ok(),
                    sent => Some(sent.clone()),
                };
                let id = parsed.and_then(|sent| sent["id"].as_str().map(str::to_owned));
                // What has no good id is answered without one.
                open.push(id.filter(|id| (1..=64).contains(&id.len())));
                if line.get("later").is_some() {
                    continue;
                }
                // What was asked before may need more than this to be answered.
                let earlier = line.get("apart").map_or(0, |_| open.len() - 1);
                let left = open.split_off(earlier).into_iter().rev();
                for id in left {
                    loop {
                        let message = self.receive(id.as_deref());
                        write(json!({ "receive": self.stable(&message, "") }));
                        let has = |flag: &str| {
                            let flags = message["status"].as_array();
                            flags.is_some_and(|flags| flags.iter().any(|one| one == flag))
                        };
                        if has("need-input") {
                            open.push(id);
                            break;
                        }
                        if has("done") || message["op"] == "session-started" {
                            break;
                        }
                    }
                }
            } else if let Some(wanted) = line.get("event") {
                let is_meant = |event: &Value| {
                    event["channel"] == wanted["channel"] && event["event"] == wanted["event"]
                };
                let found = self.event(is_meant);
                write(json!({ "event": found.unwrap_or_else(|| panic!("no event {wanted}")) }));
            }
        }
        recorded
    }
}

/// Numbers that are measured.
fn is_measured(key: &str) -> bool {
    key.ends_with("_ns")
        || key.ends_with("_ms")
        || matches!(
            key,
            "uptime_s" | "duration" | "memory" | "reductions" | "processes" | "run_queue"
        )
}

/// Seconds or milliseconds since 1970.
fn is_clock(number: &serde_json::Number) -> bool {
    number.as_u64().is_some_and(|number| {
        (1_500_000_000..3_000_000_000).contains(&number)
            || (1_500_000_000_000..3_000_000_000_000).contains(&number)
    })
}
