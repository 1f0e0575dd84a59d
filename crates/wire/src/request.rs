//! A request as a client sends it.

use serde_json::{Map, Value};

use crate::{ErrorBody, Op};

#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    pub op: Op,
    pub id: String,
    pub session: Option<String>,
    /// Everything else the message has; unknown fields are ignored by the operation.
    pub fields: Map<String, Value>,
}

/// Why a frame is no request, with its `id` if that could be read.
#[derive(Clone, Debug, PartialEq)]
pub struct BadRequest {
    pub id: Option<String>,
    pub error: ErrorBody,
}

/// Longest `id`, in characters.
const ID_LENGTH: usize = 64;

impl Request {
    pub fn parse(text: &str) -> Result<Self, BadRequest> {
        let bad = |id: Option<String>, kind: &str, message: String| BadRequest {
            id,
            error: ErrorBody::new(kind, message),
        };
        let mut fields: Map<String, Value> = serde_json::from_str(text).map_err(|cause| {
            bad(
                None,
                "invalid_request",
                format!("a request is one JSON object: {cause}"),
            )
        })?;
        let id = match fields.remove("id") {
            Some(Value::String(id)) if (1..=ID_LENGTH).contains(&id.chars().count()) => id,
            _ => {
                return Err(bad(
                    None,
                    "invalid_request",
                    format!("'id' must be a string of 1 to {ID_LENGTH} characters"),
                ));
            }
        };
        let Some(Value::String(name)) = fields.remove("op") else {
            return Err(bad(
                Some(id),
                "invalid_request",
                "'op' must be a string".to_owned(),
            ));
        };
        let session = match fields.remove("session") {
            None | Some(Value::Null) => None,
            Some(Value::String(session)) => Some(session),
            Some(_) => {
                return Err(bad(
                    Some(id),
                    "invalid_request",
                    "'session' must be a string".to_owned(),
                ));
            }
        };
        let Some(op) = Op::from_name(&name) else {
            let shown: String = name.chars().take(64).collect();
            let mut bad = bad(Some(id), "unknown_op", format!("there is no op '{shown}'"));
            bad.error = bad.error.hint("the op 'describe' lists them");
            return Err(bad);
        };
        Ok(Self {
            op,
            id,
            session,
            fields,
        })
    }

    /// A required text.
    pub fn text(&self, field: &str) -> Result<&str, ErrorBody> {
        self.optional_text(field)?.ok_or_else(|| {
            ErrorBody::new(
                "missing_parameter",
                format!("'{}' needs the field '{field}'", self.op.name()),
            )
        })
    }

    pub fn optional_text(&self, field: &str) -> Result<Option<&str>, ErrorBody> {
        match self.fields.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.invalid(field, "a string")),
        }
    }

    pub fn flag(&self, field: &str) -> Result<bool, ErrorBody> {
        match self.fields.get(field) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(self.invalid(field, "true or false")),
        }
    }

    pub fn number(&self, field: &str) -> Result<Option<u64>, ErrorBody> {
        match self.fields.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_u64() {
                Some(number) => Ok(Some(number)),
                None => Err(self.invalid(field, "a whole number that is not negative")),
            },
        }
    }

    pub fn texts(&self, field: &str) -> Result<Vec<String>, ErrorBody> {
        let Some(value) = self.fields.get(field) else {
            return Ok(Vec::new());
        };
        let elements = value
            .as_array()
            .ok_or_else(|| self.invalid(field, "a list of strings"))?;
        elements
            .iter()
            .map(|element| {
                element
                    .as_str()
                    .map(str::to_owned)
                    .ok_or_else(|| self.invalid(field, "a list of strings"))
            })
            .collect()
    }

    pub fn invalid(&self, field: &str, wanted: &str) -> ErrorBody {
        ErrorBody::new(
            "invalid_parameter",
            format!("the field '{field}' of '{}' must be {wanted}", self.op.name()),
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kind(text: &str) -> String {
        Request::parse(text).expect_err(text).error.kind
    }

    #[test]
    fn requests_are_read() {
        let request = Request::parse(r#"{"op":"eval","id":"e1","code":"1 + 2","timeout_ms":5,"extra":[]}"#)
            .expect("good");
        assert_eq!((request.op, request.id.as_str()), (Op::Eval, "e1"));
        assert_eq!(request.text("code"), Ok("1 + 2"));
        assert_eq!(request.number("timeout_ms"), Ok(Some(5)));
        assert_eq!(
            request.text("file").expect_err("absent").kind,
            "missing_parameter"
        );
        assert_eq!(
            request.number("code").expect_err("text").kind,
            "invalid_parameter"
        );
    }

    #[test]
    fn what_is_no_request_is_named() {
        for text in [
            "",
            "1",
            "[]",
            "nonsense",
            r#"{"id":"a"}"#,
            r#"{"op":"eval"}"#,
            r#"{"op":"eval","id":7}"#,
            r#"{"op":"eval","id":""}"#,
            r#"{"op":1,"id":"a"}"#,
            r#"{"op":"eval","id":"a","session":1}"#,
        ] {
            assert_eq!(kind(text), "invalid_request", "{text}");
        }
        let bad = Request::parse(r#"{"op":"frob","id":"a"}"#).expect_err("unknown");
        assert_eq!(
            (bad.error.kind.as_str(), bad.id.as_deref()),
            ("unknown_op", Some("a"))
        );
        let long = format!(r#"{{"op":"eval","id":"{}"}}"#, "x".repeat(65));
        assert_eq!(kind(&long), "invalid_request");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,200}") {
            drop(Request::parse(&text));
        }

        #[test]
        fn deep_nesting_is_refused(depth in 200_usize..5_000) {
            let text = format!(r#"{{"op":"eval","id":"a","code":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
            prop_assert_eq!(kind(&text), "invalid_request");
        }
    }
}
