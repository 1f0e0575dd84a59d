//! JSON-RPC messages: what a line is, and the errors of the protocol.

use serde_json::{Map, Value, json};

use crate::passing_id::PassingId;

/// The longest line, and how deeply it may be nested.
pub const LINE_LIMIT: usize = 1024 * 1024;
const DEPTH_LIMIT: usize = 64;

/// The versions that are spoken, the newest first.
pub const VERSIONS: [&str; 3] = [MODERN, "2025-11-25", "2025-06-18"];
pub(crate) const MODERN: &str = "2026-07-28";

/// An error of the protocol: one that the model cannot mend.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fault {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
}

impl Fault {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    pub(crate) fn parse(message: impl Into<String>) -> Self {
        Self::new(-32700, message)
    }

    pub(crate) fn request(message: impl Into<String>) -> Self {
        Self::new(-32600, message)
    }

    pub(crate) fn method(name: &str) -> Self {
        Self::new(-32601, format!("Method not found: {name}"))
    }

    pub(crate) fn params(message: impl Into<String>) -> Self {
        Self::new(-32602, message)
    }

    /// A fault of ours; what it was about is told, and nothing of what was sent.
    pub(crate) fn internal(method: &str) -> Self {
        let report = format!(
            "beamtalk {}: '{}' ended without an answer",
            env!("CARGO_PKG_VERSION"),
            beamtalk_wire::escape(&method.chars().take(64).collect::<String>())
        );
        Self::new(-32603, "a fault in Beamtalk; the next call works").with(json!({ "report": report }))
    }

    pub(crate) fn missing_resource(uri: &str, is_modern: bool) -> Self {
        let code = if is_modern { -32602 } else { -32002 };
        Self::new(code, format!("Resource not found: {uri}")).with(json!({"uri": uri}))
    }

    pub(crate) fn header(message: impl Into<String>) -> Self {
        Self::new(-32020, message)
    }

    pub(crate) fn capability(message: impl Into<String>, required: Value) -> Self {
        Self::new(-32021, message).with(json!({"requiredCapabilities": required}))
    }

    pub(crate) fn version(message: impl Into<String>, requested: &Value) -> Self {
        Self::new(-32022, message).with(json!({"supported": VERSIONS, "requested": requested}))
    }

    pub(crate) fn with(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    pub(crate) fn text(&self, id: Option<&Value>) -> String {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        let mut message = json!({"jsonrpc": "2.0", "error": error});
        if let Some(id) = id {
            message["id"] = id.clone();
        }
        message.to_string()
    }
}

/// What a client sent.
#[derive(Debug, PartialEq)]
pub(crate) enum Message {
    Request {
        id: Value,
        method: String,
        params: Map<String, Value>,
    },
    Notification {
        method: String,
        params: Map<String, Value>,
    },
    /// An answer to something we asked.
    Response { id: Value, result: Result<Value, Value> },
}

/// Why it is none, with its id if it has one.
#[derive(Debug, PartialEq)]
pub(crate) struct Bad {
    pub(crate) id: Option<Value>,
    pub(crate) fault: Fault,
}

impl From<Fault> for Bad {
    fn from(fault: Fault) -> Self {
        Self { id: None, fault }
    }
}

impl Message {
    pub(crate) fn parse(text: &[u8]) -> Result<Self, Bad> {
        // Whoever asked so waits for an answer under the id that stands there.
        let broken = |message: String| Bad {
            id: PassingId::of(text),
            fault: Fault::parse(message),
        };
        if is_too_deep(text) {
            return Err(broken(format!(
                "the message is nested deeper than {DEPTH_LIMIT} levels"
            )));
        }
        let value: Value = serde_json::from_slice(text)
            .map_err(|cause| broken(format!("the message is not valid JSON: {cause}")))?;
        let mut fields = match value {
            Value::Object(fields) => fields,
            Value::Array(_) => {
                return Err(Fault::request("batches are not taken; send one message per line").into());
            }
            _ => return Err(Fault::request("a message is a JSON object").into()),
        };
        let id = match fields.remove("id") {
            None => None,
            Some(id @ Value::String(_)) => Some(id),
            Some(Value::Number(id)) if id.is_i64() || id.is_u64() => Some(Value::Number(id)),
            Some(_) => return Err(Fault::request("'id' must be a string or an integer").into()),
        };
        let bad = |fault: Fault| Bad {
            id: id.clone(),
            fault,
        };
        if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Err(bad(Fault::request("'jsonrpc' must be \"2.0\"")));
        }
        let method = match fields.remove("method") {
            Some(Value::String(method)) => method,
            Some(_) => return Err(bad(Fault::request("'method' must be a string"))),
            None => {
                let result = match (fields.remove("result"), fields.remove("error")) {
                    (Some(result), None) => Ok(result),
                    (None, Some(error)) => Err(error),
                    _ => return Err(bad(Fault::request("'method' is missing"))),
                };
                return match id {
                    Some(id) => Ok(Self::Response { id, result }),
                    None => Err(Fault::request("an answer needs an 'id'").into()),
                };
            }
        };
        let params = match fields.remove("params") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(params)) => params,
            Some(_) if id.is_none() => Map::new(),
            Some(_) => return Err(bad(Fault::params("'params' must be an object"))),
        };
        Ok(match id {
            Some(id) => Self::Request { id, method, params },
            None => Self::Notification { method, params },
        })
    }
}

fn is_too_deep(text: &[u8]) -> bool {
    let (mut depth, mut deepest, mut is_text, mut is_escaped) = (0_usize, 0, false, false);
    for byte in text {
        match (is_text, byte) {
            (true, _) if is_escaped => is_escaped = false,
            (true, b'\\') => is_escaped = true,
            (_, b'"') => is_text = !is_text,
            (false, b'[' | b'{') => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            (false, b']' | b'}') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest > DEPTH_LIMIT
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn code(text: &str) -> (i64, Option<Value>) {
        let bad = Message::parse(text.as_bytes()).expect_err(text);
        (bad.fault.code, bad.id)
    }

    #[test]
    fn requests_notifications_and_answers_are_told_apart() {
        let request = Message::parse(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
        assert!(matches!(request, Ok(Message::Request { method, .. }) if method == "ping"));
        let told = Message::parse(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        assert!(matches!(told, Ok(Message::Notification { .. })));
        let answer = Message::parse(br#"{"jsonrpc":"2.0","id":"q1","result":{}}"#);
        assert!(matches!(answer, Ok(Message::Response { result: Ok(_), .. })));
    }

    #[test]
    fn what_is_no_message_has_its_code_and_id() {
        let cases = [
            ("{nonsense", -32700, Value::Null),
            ("7", -32600, Value::Null),
            ("[]", -32600, Value::Null),
            (r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#, -32600, Value::Null),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#, -32600, Value::Null),
            (r#"{"jsonrpc":"2.0","id":3}"#, -32600, json!(3)),
            (r#"{"jsonrpc":"1.0","id":3,"method":"a"}"#, -32600, json!(3)),
            (
                r#"{"jsonrpc":"2.0","id":4,"method":"a","params":[]}"#,
                -32602,
                json!(4),
            ),
            (r#"{"jsonrpc":"2.0","id":4,"method":7}"#, -32600, json!(4)),
        ];
        for (text, wanted, id) in cases {
            let id = Some(id).filter(|id| !id.is_null());
            assert_eq!(code(text), (wanted, id), "{text}");
        }
        let deep = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{{"a":{}{}}}}}"#,
            "[".repeat(200),
            "]".repeat(200)
        );
        assert_eq!(code(&deep), (-32700, Some(json!(1))));
        for odd in [&b"\\ud800"[..], b"\xff\xfe", b"\\x", b"\x01"] {
            for (before, after) in [
                (r#"{"id":"a","method":"m","params":{"code":""#, r#""}}"#),
                (r#"{"method":"m","params":{"code":""#, r#""},"id":"a"}"#),
            ] {
                let text = [before.as_bytes(), odd, after.as_bytes()].concat();
                let bad = Message::parse(&text).expect_err("broken");
                assert_eq!((bad.fault.code, bad.id), (-32700, Some(json!("a"))));
            }
        }
        let brackets = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}\""}}"#, "[".repeat(200));
        assert!(Message::parse(brackets.as_bytes()).is_ok(), "text is not nesting");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            drop(Message::parse(&bytes));
        }

        #[test]
        fn a_message_is_a_message_however_it_is_broken(cut in 0_usize..75, byte in any::<u8>()) {
            let mut text = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"evaluate"}}"#.to_vec();
            if let Some(place) = text.get_mut(cut) {
                *place = byte;
            }
            drop(Message::parse(&text));
            text.truncate(cut);
            prop_assert!(Message::parse(&text).is_err());
        }
    }
}
