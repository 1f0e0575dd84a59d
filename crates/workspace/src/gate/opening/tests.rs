use hyper::header::{HeaderName, HeaderValue};
use proptest::prelude::*;

use super::*;

const LOGIN: &str = "bt_d0dc08b498b6";

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(
            HeaderName::from_static(name),
            HeaderValue::from_str(value).unwrap(),
        );
    }
    headers
}

type Case<'a> = (&'a [(&'static str, &'a str)], Result<Option<Offer>, Ambiguous>);

fn either(secret: &str) -> Offer {
    Offer::Either(Credential::new(secret))
}

#[test]
fn first_messages() {
    let (offer, greeting) = read_auth(
        r#"{"type":"auth","cookie":"k","client":"repl","protocol":"1.0","resume":"s-7f2a","more":[{}]}"#,
    )
    .unwrap();
    assert_eq!(offer, Offer::Cookie(Credential::new("k")));
    assert_eq!(
        greeting,
        Greeting {
            client: ClientKind::Repl,
            protocol: Some("1.0".into()),
            resume: Some("s-7f2a".into()),
            keeps: false,
            taken: Vec::new(),
            gathers: false,
            agent: None,
        }
    );
    let (offer, greeting) = read_auth(r#"{"type":"auth","token":"t"}"#).unwrap();
    assert_eq!(offer, Offer::Token(Credential::new("t")));
    assert_eq!(greeting, Greeting::of(ClientKind::Unknown));
}

#[test]
fn what_is_no_auth() {
    for text in [
        "",
        "null",
        "[]",
        "{}",
        "{",
        r#""auth""#,
        r#"{"type":"auth"}"#,
        r#"{"type":"auth","cookie":null}"#,
        r#"{"type":"auth","cookie":5}"#,
        r#"{"type":"auth","cookie":["k"]}"#,
        r#"{"type":"auth","cookie":"k","token":"t"}"#,
        r#"{"type":"auth","cookie":"k","cookie":"l"}"#,
        r#"{"type":"hello","cookie":"k"}"#,
        r#"{"type":"AUTH","cookie":"k"}"#,
        r#"{"cookie":"k"}"#,
        r#"{"op":"eval","id":"1","code":"1"}"#,
        r#"{"type":"auth","cookie":"k"} {}"#,
    ] {
        assert!(read_auth(text).is_none(), "{text}");
    }
    assert!(read_auth(&format!("{}{}", "[".repeat(4000), "]".repeat(90))).is_none());
}

#[test]
fn a_resume_longer_than_ours_is_ignored() {
    let hello = format!(r#"{{"type":"hello","resume":"{}"}}"#, "s".repeat(65));
    assert_eq!(read_hello(&hello).unwrap().resume, None);
}

#[test]
fn hellos() {
    assert_eq!(
        read_hello(r#"{"type":"hello","client":"mcp"}"#),
        Some(Greeting::of(ClientKind::Mcp))
    );
    assert_eq!(read_hello(r#"{"op":"eval","id":"e1","code":"3"}"#), None);
    assert_eq!(read_hello(r#"{"type":"auth","cookie":"k"}"#), None);
}

#[test]
fn secrets_in_headers() {
    let cases: &[Case] = &[
        (&[], Ok(None)),
        (&[("authorization", "Bearer k")], Ok(Some(either("k")))),
        (&[("authorization", "bearer   k ")], Ok(Some(either("k")))),
        (&[("authorization", "Bearer")], Ok(Some(either("")))),
        (&[("authorization", "Basic abc")], Err(Ambiguous)),
        (
            &[("authorization", "Bearer k"), ("authorization", "Bearer l")],
            Err(Ambiguous),
        ),
        (
            &[("sec-websocket-protocol", "beamtalk.v1, beamtalk.auth.k")],
            Ok(Some(either("k"))),
        ),
        (
            &[
                ("sec-websocket-protocol", "beamtalk.v1"),
                ("sec-websocket-protocol", "beamtalk.auth.k"),
            ],
            Ok(Some(either("k"))),
        ),
        (&[("sec-websocket-protocol", "beamtalk.v1")], Ok(None)),
        (
            &[("sec-websocket-protocol", "beamtalk.auth.k, beamtalk.auth.k")],
            Err(Ambiguous),
        ),
        (
            &[
                ("authorization", "Bearer k"),
                ("sec-websocket-protocol", "beamtalk.auth.k"),
            ],
            Err(Ambiguous),
        ),
        (
            &[("cookie", "a=b; bt_d0dc08b498b6=c; d=e")],
            Ok(Some(Offer::Login(Credential::new("c")))),
        ),
        (&[("cookie", "bt_other=c; xbt_d0dc08b498b6=c")], Ok(None)),
        (
            &[("cookie", "bt_d0dc08b498b6=c"), ("authorization", "Bearer k")],
            Ok(Some(either("k"))),
        ),
    ];
    for (pairs, expected) in cases {
        assert_eq!(&read_headers(&headers(pairs), LOGIN), expected, "{pairs:?}");
    }
}

#[test]
fn only_the_protocol_without_a_secret_is_selected() {
    assert!(offers_subprotocol(&headers(&[(
        "sec-websocket-protocol",
        "beamtalk.auth.k,beamtalk.v1"
    )])));
    assert!(!offers_subprotocol(&headers(&[(
        "sec-websocket-protocol",
        "beamtalk.auth.k"
    )])));
}

#[test]
fn tokens_in_forms() {
    for (body, token) in [
        ("token=abc", Some("abc")),
        ("x=1&token=abc&y", Some("abc")),
        ("token=", Some("")),
        ("token", None),
        ("tokens=abc", None),
        ("", None),
    ] {
        assert_eq!(
            token_in_form(body.as_bytes()),
            token.map(Credential::new),
            "{body}"
        );
    }
}

proptest! {
    #[test]
    fn any_first_message_is_read(text in ".{0,200}") {
        prop_assert!(read_auth(&text).is_none());
        prop_assert!(read_hello(&text).is_none());
    }

    #[test]
    fn a_cookie_is_read_as_it_was_written(cookie in ".{0,60}", client in ".{0,20}") {
        let text = serde_json::json!({"type": "auth", "cookie": cookie, "client": client}).to_string();
        let (offer, greeting) = read_auth(&text).unwrap();
        prop_assert_eq!(offer, Offer::Cookie(Credential::new(cookie)));
        prop_assert_eq!(greeting.client, ClientKind::from_name(&client));
    }

    #[test]
    fn any_headers_are_read(
        values in proptest::collection::vec((0..3_usize, proptest::collection::vec(32..127_u8, 0..60)), 0..6)
    ) {
        let names = ["authorization", "cookie", "sec-websocket-protocol"];
        let mut headers = HeaderMap::new();
        for (name, value) in &values {
            headers.append(HeaderName::from_static(names[*name]), HeaderValue::from_bytes(value).unwrap());
        }
        drop(read_headers(&headers, LOGIN));
        offers_subprotocol(&headers);
    }
}
