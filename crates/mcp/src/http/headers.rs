//! The headers of a request: what kind of body it has, and that they say the same as the body.

use serde_json::{Map, Value};

use crate::capabilities;
use crate::message::Fault;

/// A request as the host hands it over. Names of headers are in lower case.
#[derive(Debug, Default)]
pub struct HttpRequest {
    pub method: String,
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Vec<u8>,
}

impl HttpRequest {
    fn all(&self, name: &str) -> Vec<&[u8]> {
        let is_meant = |header: &&(String, Vec<u8>)| header.0 == name;
        let values = self.headers.iter().filter(is_meant);
        values.map(|(_, value)| value.as_slice()).collect()
    }

    /// The one value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        match self.all(name).as_slice() {
            [value] => std::str::from_utf8(value).ok().map(str::trim),
            _ => None,
        }
    }
}

/// Whether body and answers have types that both sides speak: 415 or 406 if not.
pub fn admits(request: &HttpRequest) -> Result<(), (u16, &'static str)> {
    let kind = request.header("content-type").unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        return Err((415, "Content-Type must be application/json"));
    }
    let accepted: Vec<String> = request
        .all("accept")
        .into_iter()
        .flat_map(|value| value.split(|byte| *byte == b','))
        .map(|value| String::from_utf8_lossy(value).to_lowercase())
        .map(|value| value.split(';').next().unwrap_or_default().trim().to_owned())
        .collect();
    let takes = |kind: &str, any: &str| {
        accepted
            .iter()
            .any(|accepted| accepted == kind || accepted == any || accepted == "*/*")
    };
    if takes("application/json", "application/*") && takes("text/event-stream", "text/*") {
        Ok(())
    } else {
        Err((406, "Accept must admit application/json and text/event-stream"))
    }
}

/// Each header that stands for something in the body is there once and says the same.
pub(crate) fn check(request: &HttpRequest, method: &str, params: &Map<String, Value>) -> Result<(), Fault> {
    let version = params
        .get("_meta")
        .and_then(|meta| meta[capabilities::PROTOCOL_VERSION].as_str());
    same(request, "MCP-Protocol-Version", version)?;
    same(request, "Mcp-Method", Some(method))?;
    let field = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return Ok(()),
    };
    // What is no text in the body is refused by what is asked for.
    match params.get(field).and_then(Value::as_str) {
        Some(name) => same(request, "Mcp-Name", Some(name)),
        None => Ok(()),
    }
}

fn same(request: &HttpRequest, name: &str, wanted: Option<&str>) -> Result<(), Fault> {
    let lower = name.to_ascii_lowercase();
    let given = request.header(&lower).and_then(decode);
    match (given, wanted) {
        (Some(given), Some(wanted)) if given == wanted => Ok(()),
        (None, _) => Err(Fault::header(format!("the header {name} must be there once"))),
        // A body without a version is told what it lacks.
        (Some(_), None) => Ok(()),
        (Some(_), Some(_)) => Err(Fault::header(format!(
            "the header {name} does not say what the body says"
        ))),
    }
}

/// A value as it is meant: `=?base64?…?=` stands for what cannot be in a header.
fn decode(value: &str) -> Option<String> {
    let Some(coded) = value
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="))
    else {
        return Some(value.to_owned());
    };
    String::from_utf8(base64(coded)?).ok()
}

fn base64(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    if digits.len() % 4 == 1 || text.len() - digits.len() > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    let (mut held, mut bits) = (0_u32, 0_u32);
    for digit in digits.bytes() {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        held = (held << 6) | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from((held >> bits) & 0xff).unwrap_or(0));
            held &= (1 << bits) - 1;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn request(headers: &[(&str, &str)]) -> HttpRequest {
        HttpRequest {
            method: "POST".to_owned(),
            headers: headers
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()))
                .collect(),
            body: Vec::new(),
        }
    }

    #[test]
    fn bodies_and_answers_have_known_types() {
        let both = "application/json, text/event-stream";
        let status = |headers: &[(&str, &str)]| admits(&request(headers)).map_err(|(status, _)| status);
        let admitted = |kind: &str, accept: &str| status(&[("content-type", kind), ("accept", accept)]);
        assert_eq!(admitted("application/json; charset=utf-8", both), Ok(()));
        assert_eq!(admitted("Application/JSON", "*/*"), Ok(()));
        assert_eq!(admitted("text/plain", both), Err(415));
        assert_eq!(admitted("application/json", "application/json"), Err(406));
        assert_eq!(status(&[("content-type", "application/json")]), Err(406));
    }

    #[test]
    fn headers_say_what_the_body_says() {
        let params =
            json!({"name": "evaluate", "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}});
        let params = params.as_object().expect("an object");
        let check = |name: &[(&str, &str)]| {
            let mut headers = vec![
                ("mcp-protocol-version", "2026-07-28"),
                ("mcp-method", "tools/call"),
            ];
            headers.extend(name);
            check(&request(&headers), "tools/call", params).map_err(|fault| fault.code)
        };
        assert_eq!(check(&[("mcp-name", "evaluate")]), Ok(()));
        assert_eq!(check(&[("mcp-name", "=?base64?ZXZhbHVhdGU=?=")]), Ok(()));
        assert_eq!(check(&[("mcp-name", "test")]), Err(-32020));
        assert_eq!(check(&[]), Err(-32020));
        assert_eq!(
            check(&[("mcp-name", "evaluate"), ("mcp-name", "evaluate")]),
            Err(-32020)
        );
        assert_eq!(check(&[("mcp-name", "=?base64?*?=")]), Err(-32020));
    }

    #[test]
    fn base64_is_read_or_refused() {
        assert_eq!(base64("aGVsbG8="), Some(b"hello".to_vec()));
        assert_eq!(base64("w6Q="), Some("ä".as_bytes().to_vec()));
        assert_eq!(base64(""), Some(Vec::new()));
        for wrong in ["a", "a===", "a b=", "=aGk"] {
            assert_eq!(base64(wrong), None, "{wrong}");
        }
    }
}
