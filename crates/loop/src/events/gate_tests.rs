use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::config::{RemoteBind, check};

fn gate(more: &str) -> Gate {
    let text = format!(
        "{more}\nwatch.w.paths = [\"go\"]\nworkflow.w.steps = [{{ action = \"notify_reload\" }}]\n\
         event.a = {{ state_key = \"a\", workflow = \"w\" }}\nevent.b = {{ state_key = \"b\", workflow = \"w\" }}"
    );
    Gate::new(
        &check(Path::new("/tmp/devloop.toml"), &text, RemoteBind::Refuse)
            .valid()
            .unwrap(),
    )
    .unwrap()
}

fn local() -> SocketAddr {
    "127.0.0.1:7000".parse().unwrap()
}

fn head(authorization: &[u8]) -> Head<'_> {
    Head {
        method: "POST",
        path: "/events/a",
        hosts: vec![b"127.0.0.1:7000"],
        authorizations: vec![authorization],
        content_types: vec![b"application/json"],
        ..Head::default()
    }
}

fn outcome(gate: &mut Gate, head: &Head<'_>) -> Result<String, Rejection> {
    gate.admit(head, local(), Instant::now())
        .map(|caller| caller.by)
        .map_err(|(rejection, _)| rejection)
}

#[test]
fn checks_happen_in_order_and_the_first_failure_answers() {
    let mut gate = gate("");
    let bearer = format!("bEaReR {}", gate.run_token().reveal());
    let good = head(bearer.as_bytes());
    assert_eq!(outcome(&mut gate, &good), Ok("run".into()));
    // Each row breaks one thing more, from the last check to the first.
    let mut broken = good.clone();
    broken.content_length = Some(65_537);
    assert_eq!(outcome(&mut gate, &broken), Err(Rejection::TooLarge));
    broken.content_types = vec![b"text/plain"];
    assert_eq!(outcome(&mut gate, &broken), Err(Rejection::MediaType));
    broken.path = "/events/nope";
    assert_eq!(outcome(&mut gate, &broken), Err(Rejection::NotFound));
    broken.authorizations = vec![b"Bearer x"];
    assert_eq!(outcome(&mut gate, &broken), Err(Rejection::Token));
    broken.method = "GET";
    assert_eq!(outcome(&mut gate, &broken), Err(Rejection::Method));
    broken.path = "/";
    assert_eq!(outcome(&mut gate, &broken), Err(Rejection::NotFound));
    broken.hosts = vec![b"evil.example"];
    assert_eq!(outcome(&mut gate, &broken), Err(Rejection::Origin));
}

#[test]
fn hosts_that_do_not_mean_this_listener_are_refused() {
    let table: [(&[&[u8]], &str, bool); 12] = [
        (&[b"127.0.0.1:7000"], "127.0.0.1:7000", true),
        (&[b"localhost:7000"], "127.0.0.1:7000", true),
        (&[b"LocalHost:7000"], "127.0.0.1:7000", true),
        (&[b"[::1]:7000"], "[::1]:7000", true),
        (&[b"127.0.0.1:7001"], "127.0.0.1:7000", false),
        (&[b"127.0.0.1"], "127.0.0.1:7000", false),
        (&[b"rebind.example:7000"], "127.0.0.1:7000", false),
        (&[], "127.0.0.1:7000", false),
        (&[b"127.0.0.1:7000", b"evil:7000"], "127.0.0.1:7000", false),
        (&[b"192.168.0.9:7000"], "0.0.0.0:7000", true),
        (&[b"localhost:7000"], "0.0.0.0:7000", false),
        (&[b"\xff"], "127.0.0.1:7000", false),
    ];
    for (hosts, local, expected) in table {
        assert_eq!(
            is_host_allowed(hosts, local.parse().unwrap()),
            expected,
            "{hosts:?} at {local}"
        );
    }
}

#[test]
fn web_pages_are_refused_unless_listed() {
    let mut gate = gate("event_server.allow_origins = [\"http://localhost:3000\"]");
    let bearer = format!("Bearer {}", gate.run_token().reveal());
    let mut request = head(bearer.as_bytes());
    for (origin, site, expected) in [
        (None, None, true),
        (None, Some("none"), true),
        (None, Some("same-origin"), true),
        (None, Some("cross-site"), false),
        (None, Some("same-site"), false),
        (Some("http://localhost:3000"), None, true),
        (Some("http://localhost:3000"), Some("cross-site"), false),
        (Some("http://localhost:3001"), None, false),
        (Some("null"), None, false),
        (Some("HTTP://LOCALHOST:3000"), None, false),
    ] {
        request.origins = origin.iter().map(|text: &&str| text.as_bytes()).collect();
        request.fetch_sites = site.iter().map(|text: &&str| text.as_bytes()).collect();
        assert_eq!(
            outcome(&mut gate, &request).is_ok(),
            expected,
            "{origin:?} {site:?}"
        );
    }
}

#[test]
fn scoped_tokens_open_only_their_events_and_only_while_valid() {
    let mut gate = gate("");
    let token = gate.issue("process p".into(), &["b".to_owned()]).unwrap();
    let bearer = format!("Bearer {}", token.reveal());
    let mut request = head(bearer.as_bytes());
    assert_eq!(outcome(&mut gate, &request), Err(Rejection::Scope));
    request.path = "/events/b";
    assert_eq!(outcome(&mut gate, &request), Ok("process p".into()));
    gate.revoke(&token);
    assert_eq!(outcome(&mut gate, &request), Err(Rejection::Token));
    assert_ne!(gate.run_token().reveal(), token.reveal());
    assert_eq!(token.reveal().len(), 64);
    assert_eq!(format!("{token:?}"), "Token(redacted)");
}

#[test]
fn two_authorizations_are_none() {
    let mut gate = gate("");
    let bearer = format!("Bearer {}", gate.run_token().reveal());
    let mut request = head(bearer.as_bytes());
    request.authorizations.push(b"Bearer other");
    assert_eq!(outcome(&mut gate, &request), Err(Rejection::Token));
}

#[test]
fn the_rate_allows_a_burst_of_twice_itself() {
    let mut bucket = Bucket::new(5);
    let start = Instant::now();
    assert_eq!((0..20).filter(|_| bucket.take(start)).count(), 10);
    assert!(!bucket.take(start + Duration::from_millis(100)));
    assert!(bucket.take(start + Duration::from_millis(400)));
    assert_eq!(
        (0..20)
            .filter(|_| bucket.take(start + Duration::from_mins(1)))
            .count(),
        10
    );
}

#[test]
fn names_are_decoded_once() {
    let table = [
        ("/events/a%2Db", Some("a-b")),
        ("/events/a%252Db", Some("a%2Db")),
        ("/events/%ZZ", None),
        ("/events/%+f", None),
        ("/events/%4", None),
        ("/events/%ff", None),
        ("/events/", None),
        ("/events/a/b", None),
        ("/events", None),
        ("/x", None),
    ];
    for (path, expected) in table {
        assert_eq!(event_in(path).as_deref(), expected, "{path}");
    }
}

#[test]
fn bodies_are_judged_by_shape() {
    let table: [(&[u8], Result<&str, Rejection>); 8] = [
        (b"{\"value\":\"/a\"}", Ok("/a")),
        (b"{\"value\":\"x\",\"more\":1}", Ok("x")),
        (b"{\"value\":1}", Err(Rejection::Shape)),
        (b"{}", Err(Rejection::Shape)),
        (b"[]", Err(Rejection::Shape)),
        (b"{", Err(Rejection::Json)),
        (b"", Err(Rejection::Json)),
        (b"\xff", Err(Rejection::Json)),
    ];
    for (body, expected) in table {
        assert_eq!(value_in(body), expected.map(str::to_owned));
    }
    assert_eq!(value_in("[".repeat(60_000).as_bytes()), Err(Rejection::Json));
}

#[test]
fn only_json_is_taken() {
    let table: [(&[u8], bool); 6] = [
        (b"application/json", true),
        (b"Application/JSON; charset=utf-8", true),
        (b"application/vnd.x+json", true),
        (b"application/+json", false),
        (b"text/json", false),
        (b"", false),
    ];
    for (given, expected) in table {
        assert_eq!(is_json(&[given]), expected, "{}", String::from_utf8_lossy(given));
    }
    assert!(!is_json(&[]));
}

proptest! {
    #[test]
    fn no_head_without_the_token_is_admitted(
        method in "[A-Z]{0,7}", path in ".{0,30}", host in ".{0,30}",
        authorization in proptest::collection::vec(any::<u8>(), 0..80),
    ) {
        let mut gate = gate("");
        let request = Head {
            method: &method,
            path: &path,
            hosts: vec![host.as_bytes()],
            authorizations: vec![&authorization],
            ..Head::default()
        };
        prop_assert!(outcome(&mut gate, &request).is_err());
    }

    #[test]
    fn any_body_is_a_value_or_a_rejection(body in proptest::collection::vec(any::<u8>(), 0..100)) {
        if let Ok(value) = value_in(&body) {
            prop_assert!(value.len() <= body.len());
        }
    }
}
