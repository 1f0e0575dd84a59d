//! A request as a client sends it: the envelope, and the request in it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::requests::Wanted;
use crate::{ErrorBody, ErrorKind, Op, Operation, Request};

/// A request with what belongs to every one.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub id: String,
    /// Whose session it is about, if not the caller's.
    pub session: Option<String>,
    /// When it wants to be answered, counted from its arrival.
    pub timeout_ms: Option<u64>,
    /// What the client wants to be reminded of with the answer.
    pub about: Option<String>,
    pub op: Op,
    /// What is asked, or why it cannot be read. Who may not ask is told that first.
    pub request: Result<Request, ErrorBody>,
}

/// Why a frame is no request, with its `id` if that could be read.
#[derive(Clone, Debug, PartialEq)]
pub struct BadRequest {
    pub id: Option<String>,
    pub error: ErrorBody,
}

/// Longest `id`, in characters.
const ID_LENGTH: usize = 64;
/// Longest `about`, in bytes.
const ABOUT_LENGTH: usize = 1024;

/// The fields of every request, whatever they are.
#[derive(Deserialize)]
struct Envelope {
    id: Option<Value>,
    op: Option<Value>,
    session: Option<Value>,
    timeout_ms: Option<Value>,
    about: Option<Value>,
}

/// A request as it is sent.
#[derive(Serialize)]
struct Sent<'a, O> {
    op: &'static str,
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    #[serde(flatten)]
    request: &'a O,
}

impl Call {
    pub fn parse(text: &str) -> Result<Self, BadRequest> {
        let bad = |id: Option<&String>, message: String| BadRequest {
            id: id.cloned(),
            error: ErrorBody::new(ErrorKind::InvalidRequest, message),
        };
        let no_object =
            |cause: serde_json::Error| bad(None, format!("a request is one JSON object: {cause}"));
        if !text.trim_start().starts_with('{') {
            // A list would do for a struct.
            serde_json::from_str::<Map<String, Value>>(text).map_err(no_object)?;
        }
        let envelope: Envelope = serde_json::from_str(text).map_err(no_object)?;
        let id = match envelope.id {
            Some(Value::String(id)) if (1..=ID_LENGTH).contains(&id.chars().count()) => id,
            _ => {
                let message = format!("'id' must be a string of 1 to {ID_LENGTH} characters");
                return Err(bad(None, message));
            }
        };
        let Some(Value::String(name)) = envelope.op else {
            return Err(bad(Some(&id), "'op' must be a string".to_owned()));
        };
        let session = match envelope.session {
            None | Some(Value::Null) => None,
            Some(Value::String(session)) => Some(session),
            Some(_) => return Err(bad(Some(&id), "'session' must be a string".to_owned())),
        };
        let about = match envelope.about {
            None | Some(Value::Null) => None,
            Some(Value::String(about)) if about.len() <= ABOUT_LENGTH => Some(about),
            Some(_) => {
                let message = format!("'about' must be a string of at most {ABOUT_LENGTH} bytes");
                return Err(bad(Some(&id), message));
            }
        };
        let Some(op) = Op::from_name(&name) else {
            let shown: String = name.chars().take(ID_LENGTH).collect();
            let error = ErrorBody::new(ErrorKind::UnknownOp, format!("there is no op '{shown}'"))
                .hint("the op 'describe' lists them");
            return Err(BadRequest { id: Some(id), error });
        };
        let timeout = envelope.timeout_ms.filter(|timeout| !timeout.is_null());
        let timeout_ms = timeout.as_ref().and_then(Value::as_u64);
        let request = match (timeout, timeout_ms) {
            (Some(_), None) => Err(op.invalid("timeout_ms", u64::WANTED)),
            _ => Request::parse(op, text),
        };
        Ok(Self {
            id,
            session,
            timeout_ms,
            about,
            op,
            request,
        })
    }

    /// A request as text.
    pub fn text<O: Operation>(
        id: &str,
        session: Option<&str>,
        request: &O,
    ) -> Result<String, serde_json::Error> {
        serde_json::to_string(&Sent {
            op: O::OP.name(),
            id,
            session,
            request,
        })
    }
}

impl Request {
    /// The request in an object, whose operation is known.
    pub fn parse(op: Op, text: &str) -> Result<Self, ErrorBody> {
        Self::read(op, text).map_err(|cause| op.fault(text, &cause))
    }

    /// Its fields as text.
    pub fn text(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }
}

impl Op {
    /// What is wrong with a request that does not fit, by its first field that is wrong.
    fn fault(self, text: &str, cause: &serde_json::Error) -> ErrorBody {
        let given: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
        for field in self.fields() {
            match given.get(field.name()) {
                None | Some(Value::Null) if field.is_optional => {}
                None | Some(Value::Null) => return self.missing(field.name()),
                Some(value) if (field.fits)(value) => {}
                Some(_) => return self.invalid(field.name(), field.wanted),
            }
        }
        ErrorBody::new(
            ErrorKind::InvalidRequest,
            format!("'{}' cannot be read: {cause}", self.name()),
        )
    }

    pub fn missing(self, field: &str) -> ErrorBody {
        ErrorBody::new(
            ErrorKind::MissingParameter,
            format!("'{}' needs the field '{field}'", self.name()),
        )
    }

    pub fn invalid(self, field: &str, wanted: &str) -> ErrorBody {
        ErrorBody::new(
            ErrorKind::InvalidParameter,
            format!("the field '{field}' of '{}' must be {wanted}", self.name()),
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Side;
    use crate::requests::Eval;

    fn kind(text: &str) -> ErrorKind {
        Call::parse(text).expect_err(text).error.kind
    }

    fn refused(text: &str) -> ErrorBody {
        Call::parse(text).expect(text).request.expect_err(text)
    }

    #[test]
    fn requests_are_read() {
        let call =
            Call::parse(r#"{"op":"eval","id":"e1","code":"1 + 2","timeout_ms":5,"file":null,"extra":[]}"#)
                .expect("good");
        let eval = Eval {
            code: "1 + 2".to_owned(),
            timeout_ms: Some(5),
            ..Eval::default()
        };
        assert_eq!((call.op, call.id.as_str()), (Op::Eval, "e1"));
        assert_eq!(call.request, Ok(eval.clone().into()));
        let again = Call::text("e2", Some("s-1"), &eval).expect("text");
        assert_eq!(
            again,
            r#"{"op":"eval","id":"e2","session":"s-1","code":"1 + 2","timeout_ms":5}"#
        );
    }

    #[test]
    fn the_first_field_that_is_wrong_is_named() {
        let missing = refused(r#"{"op":"eval","id":"a"}"#);
        assert_eq!(missing, Op::Eval.missing("code"));
        let null = refused(r#"{"op":"eval","id":"a","code":null}"#);
        assert_eq!(null, missing);
        let wrong = refused(r#"{"op":"eval","id":"a","code":"1","timeout_ms":-1}"#);
        assert_eq!(
            wrong.message,
            "the field 'timeout_ms' of 'eval' must be a whole number that is not negative"
        );
        let side = refused(r#"{"op":"remove-method","id":"a","class":"A","selector":"a","side":"left"}"#);
        assert_eq!(side, Op::RemoveMethod.invalid("side", "instance or class"));
        let waits = refused(r#"{"op":"stdin","id":"a","for":7}"#);
        assert_eq!(waits, Op::Stdin.invalid("for", "a string"));
        let twice = refused(r#"{"op":"eval","id":"a","code":"1","code":"2"}"#);
        assert_eq!(twice.kind, ErrorKind::InvalidRequest);
    }

    #[test]
    fn a_side_may_be_left_out() {
        let call = Call::parse(r#"{"op":"browse-protocols","id":"a","class":"Lamp","side":"class"}"#);
        let Ok(Request::BrowseProtocols(request)) = call.expect("good").request else {
            panic!("another request");
        };
        assert_eq!(request.side, Some(Side::Class));
    }

    #[test]
    fn what_is_no_request_is_named() {
        for text in [
            "",
            "1",
            "[]",
            r#"["a","eval",null]"#,
            "nonsense",
            r#"{"id":"a"}"#,
            r#"{"op":"eval"}"#,
            r#"{"op":"eval","id":7}"#,
            r#"{"op":"eval","id":""}"#,
            r#"{"op":1,"id":"a"}"#,
            r#"{"op":"eval","id":"a","session":1}"#,
        ] {
            assert_eq!(kind(text), ErrorKind::InvalidRequest, "{text}");
        }
        let bad = Call::parse(r#"{"op":"frob","id":"a"}"#).expect_err("unknown");
        assert_eq!(
            (bad.error.kind, bad.id.as_deref()),
            (ErrorKind::UnknownOp, Some("a"))
        );
        let long = format!(r#"{{"op":"eval","id":"{}"}}"#, "x".repeat(65));
        assert_eq!(kind(&long), ErrorKind::InvalidRequest);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,200}") {
            drop(Call::parse(&text));
        }

        #[test]
        fn deep_nesting_is_refused(depth in 200_usize..5_000) {
            let text = format!(r#"{{"op":"eval","id":"a","code":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
            prop_assert!(Call::parse(&text).expect("an envelope").request.is_err());
        }
    }
}
