//! HTTP: pages, `Host` and `Origin`, the browser's login, and the limits on requests.

use std::time::Duration;

use beamtalk_wire::{ClientKind, Role};
use beamtalk_workspace::gate::{AuthKind, Connections, Credential, LoginName, Pace};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{COOKIE, Client, Heard, House, ID, house, house_with, quick, soon};

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).unwrap_or("0").parse().unwrap()
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap().1
}

fn header<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    let (head, _) = answer.split_once("\r\n\r\n")?;
    head.lines()
        .filter_map(|line| line.split_once(": "))
        .find(|(found, _)| found.eq_ignore_ascii_case(name))
        .map(|(_, value)| value)
}

/// What a page says first.
const HELLO: &str = r#"{"type":"hello","client":"browser"}"#;

/// The name that browsers log in under.
fn own_host(house: &House) -> String {
    format!("{}:{}", house.gate.login_host, house.port())
}

/// Post a form to `/login` as a page without an origin does.
async fn post_login(house: &House, form: &str) -> String {
    let host = own_host(house);
    house
        .http("POST /login", &[("origin", "null"), ("host", &host)], form)
        .await
}

#[tokio::test]
async fn routes() {
    let house = house().await;
    for (line, expected, text) in [
        ("GET /", 200, "<!doctype html><title>Beamtalk</title>"),
        ("GET /assets/main.js", 200, "export {};"),
        ("GET /assets/other.js", 404, ""),
        ("GET /assets/../main.js", 404, ""),
        ("GET /assets/%2e%2e/main.js", 404, ""),
        ("GET /cookie", 404, ""),
        ("GET /login", 404, ""),
        ("GET /ws", 404, ""),
        ("POST /ws", 404, ""),
        ("POST /", 404, ""),
        ("PUT /login", 404, ""),
        ("OPTIONS /", 404, ""),
        ("DELETE /assets/main.js", 404, ""),
    ] {
        let answer = house.http(line, &[], "").await;
        assert_eq!((status(&answer), body(&answer)), (expected, text), "{line}");
        assert_eq!(header(&answer, "access-control-allow-origin"), None);
    }
}

#[tokio::test]
async fn csp_present() {
    let house = house().await;
    let mut nonces = std::collections::BTreeSet::new();
    for line in ["GET /", "GET /assets/main.js", "GET /"] {
        let answer = house.http(line, &[], "").await;
        let policy = header(&answer, "content-security-policy").unwrap();
        let (_, rest) = policy.split_once("'nonce-").unwrap();
        let (nonce, _) = rest.split_once('\'').unwrap();
        assert_eq!(nonce.len(), 32);
        assert!(nonces.insert(nonce.to_owned()), "a nonce is used once");
        assert_eq!(
            policy,
            format!(
                "default-src 'none'; script-src 'self'; style-src-elem 'self' 'nonce-{nonce}'; \
                 style-src-attr 'unsafe-inline'; img-src 'self' data:; font-src 'self'; \
                 connect-src 'self' ws://localhost:{}; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; \
                 require-trusted-types-for 'script'; trusted-types 'none'",
                house.port()
            )
        );
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            ("cache-control", "no-store"),
            (
                "permissions-policy",
                "camera=(), microphone=(), geolocation=(), usb=(), payment=()",
            ),
        ] {
            assert_eq!(header(&answer, name), Some(value));
        }
        assert!(!answer.contains(COOKIE));
    }
}

/// A request as a page of a foreign site sends it when its name resolves to this machine.
#[tokio::test]
async fn foreign_host_403() {
    let house = house().await;
    let port = house.port();
    for host in [
        format!("evil.example:{port}"),
        "evil.example".into(),
        format!("127.0.0.1.evil.example:{port}"),
        "localhost".into(),
        String::new(),
    ] {
        for line in ["GET /", "GET /ws", "POST /login", "GET /missing"] {
            let answer = house.http(line, &[("host", &host)], "").await;
            assert_eq!((status(&answer), body(&answer)), (403, ""), "{host} {line}");
        }
        if !host.is_empty() {
            assert_eq!(house.client_with(&[("host", &host)]).await.err(), Some(403));
        }
    }
    let target = format!(
        "GET http://evil.example:{port}/ HTTP/1.1\r\nhost: localhost:{port}\r\nconnection: close\r\n\r\n"
    );
    assert_eq!(status(&house.raw(&target).await), 403);
    let twice = format!(
        "GET / HTTP/1.1\r\nhost: localhost:{port}\r\nhost: evil.example\r\nconnection: close\r\n\r\n"
    );
    assert!(matches!(status(&house.raw(&twice).await), 400 | 403));
    assert!(house.trail.has("Host"));
}

#[tokio::test]
async fn foreign_origin_403() {
    let mut house = house().await;
    let own = format!("http://127.0.0.1:{}", house.port());
    let bearer = format!("Bearer {COOKIE}");
    for origin in [
        "http://evil.example",
        "http://localhost:3000",
        "https://localhost",
    ] {
        // Not even with the right secret.
        let headers = [("origin", origin), ("authorization", bearer.as_str())];
        assert_eq!(house.client_with(&headers).await.err(), Some(403), "{origin}");
        let answer = house.http("GET /", &[("origin", origin)], "").await;
        assert_eq!((status(&answer), body(&answer)), (403, ""));
    }
    let mut client = house.client_with(&[("origin", &own)]).await.unwrap();
    client.expect("auth-required").await;
    client.cookie(COOKIE).await;
    client.expect("auth_ok").await;
    house.next().await;
}

#[tokio::test]
async fn null_origin_403() {
    let house = house().await;
    let null = [("origin", "null")];
    assert_eq!(house.client_with(&null).await.err(), Some(403));
    assert_eq!(status(&house.http("GET /", &null, "").await), 403);
    assert_eq!(status(&house.http("POST /logout", &null, "").await), 403);
    let (token, _) = house.gate.login_token(Role::Owner, LoginName::Own).unwrap();
    let form = format!("token={}", token.expose());
    assert_eq!(status(&post_login(&house, &form).await), 303);
}

#[tokio::test]
async fn allowed_hosts_and_origins() {
    let house = house_with(Pace::default(), |config| {
        config.allow_hosts = vec!["dev.example".into()];
        config.allow_origins = vec!["https://dev.example".into()];
    })
    .await;
    let headers = [("host", "dev.example"), ("origin", "https://dev.example")];
    house.client_with(&headers).await.unwrap();
    assert_eq!(status(&house.http("GET /", &headers, "").await), 200);
    // Forwarding headers change nothing.
    let forged = [
        ("host", "evil.example"),
        ("x-forwarded-host", "dev.example"),
        ("forwarded", "host=dev.example"),
    ];
    assert_eq!(status(&house.http("GET /", &forged, "").await), 403);
}

async fn log_in(house: &House) -> String {
    let (token, _) = house.gate.login_token(Role::Owner, LoginName::Own).unwrap();
    let answer = post_login(house, &format!("token={}", token.expose())).await;
    assert_eq!(status(&answer), 303);
    header(&answer, "set-cookie").unwrap().to_owned()
}

/// A page with the cookie of this answer, once it has said hello.
async fn greeted(house: &House, answer: &str) -> Client {
    let set = header(answer, "set-cookie").unwrap();
    let (pair, _) = set.split_once("; ").unwrap();
    let own = format!("http://{}", own_host(house));
    let headers = [("origin", own.as_str()), ("cookie", pair)];
    let mut client = house.client_with(&headers).await.unwrap();
    client.say(HELLO).await;
    client
}

#[tokio::test]
async fn a_browser_logs_in_and_out() {
    let mut house = house().await;
    let set = log_in(&house).await;
    let (pair, attributes) = set.split_once("; ").unwrap();
    assert_eq!(attributes, "HttpOnly; SameSite=Strict; Path=/; Max-Age=43200");
    let value = pair.strip_prefix(&format!("bt_{ID}=")).unwrap();
    assert_eq!(value.len(), 43);
    assert_ne!(value, COOKIE);
    let own = format!("http://127.0.0.1:{}", house.port());
    let headers = [("origin", own.as_str()), ("cookie", pair)];
    let mut client = house.client_with(&headers).await.unwrap();
    client.say(HELLO).await;
    client.expect("auth_ok").await;
    let admitted = house.next().await;
    assert_eq!(
        (&admitted.auth, admitted.client),
        (&AuthKind::Browser, ClientKind::Browser)
    );
    // Without an origin it is no browser, and the login does not count.
    let mut other = house.client_with(&[("cookie", pair)]).await.unwrap();
    other.expect("auth-required").await;
    let answer = house.http("POST /logout", &headers, "").await;
    assert_eq!(status(&answer), 303);
    assert!(header(&answer, "set-cookie").unwrap().contains("Max-Age=0"));
    assert_eq!(client.hear().await, Heard::Closed(4001));
    assert_eq!(client.set_cookie, None);
    let mut again = house.client_with(&headers).await.unwrap();
    assert!(again.set_cookie.as_ref().unwrap().contains("Max-Age=0"));
    again.say(HELLO).await;
    let (said, end) = again.rest().await;
    assert_eq!(said, [json!({"type": "auth_error", "message": "Invalid cookie"})]);
    assert_eq!(end, Heard::Closed(1008));
}

#[tokio::test]
async fn a_page_may_take_its_time_to_say_hello() {
    let mut house = house().await;
    let set = log_in(&house).await;
    let (pair, _) = set.split_once("; ").unwrap();
    let own = format!("http://127.0.0.1:{}", house.port());
    let headers = [("origin", own.as_str()), ("cookie", pair)];
    let mut client = house.client_with(&headers).await.unwrap();
    // Longer than others have: a busy machine, a slow line.
    tokio::time::sleep(Pace::default().hello * 2).await;
    client
        .say(r#"{"type":"hello","client":"browser","protocol":"1.1","keep":true,"resume":"s-7"}"#)
        .await;
    client.expect("auth_ok").await;
    let admitted = house.next().await;
    assert!(admitted.keeps);
    assert_eq!(admitted.resume.as_deref(), Some("s-7"));
}

#[tokio::test]
async fn login_token_single_use() {
    let house = house().await;
    let (token, lifetime) = house.gate.login_token(Role::Owner, LoginName::Own).unwrap();
    assert_eq!(lifetime, Duration::from_mins(1));
    let form = format!("token={}", token.expose());
    // Under a plain name of this machine it opens nothing, and is not used up.
    for host in ["127.0.0.1", "localhost"] {
        let host = format!("{host}:{}", house.port());
        let answer = house.http("POST /login", &[("host", &host)], &form).await;
        assert_eq!((status(&answer), body(&answer)), (403, ""), "{host}");
    }
    assert_eq!(status(&post_login(&house, &form).await), 303);
    for form in [
        form.as_str(),
        "token=",
        "",
        "token=nonsense",
        &format!("token={COOKIE}"),
    ] {
        let answer = post_login(&house, form).await;
        assert_eq!((status(&answer), body(&answer)), (403, ""), "{form}");
    }
}

#[tokio::test]
async fn a_plain_host_is_used_only_when_it_was_asked_for() {
    let house = house().await;
    let (token, _) = house.gate.login_token(Role::Owner, LoginName::Plain).unwrap();
    let form = format!("token={}", token.expose());
    assert_eq!(status(&house.http("POST /login", &[], &form).await), 303);
}

#[tokio::test]
async fn an_observer_logs_in_as_one() {
    let mut house = house().await;
    let (token, _) = house.gate.login_token(Role::Observer, LoginName::Own).unwrap();
    let answer = post_login(&house, &format!("token={}", token.expose())).await;
    let mut client = greeted(&house, &answer).await;
    assert_eq!(client.expect("auth_ok").await["role"], "observer");
    assert_eq!(house.next().await.role, Role::Observer);
}

#[tokio::test]
async fn an_access_token_logs_in_and_ends_with_its_login() {
    let mut house = house().await;
    let token = house
        .gate
        .create_token("tablet", (Role::Observer, None), None)
        .unwrap();
    let form = format!("token={}", token.expose());
    let answer = post_login(&house, &form).await;
    assert_eq!(status(&answer), 303);
    assert!(!header(&answer, "set-cookie").unwrap().contains(token.expose()));
    let mut client = greeted(&house, &answer).await;
    client.expect("auth_ok").await;
    let admitted = house.next().await;
    assert_eq!(
        (&admitted.auth, admitted.role),
        (&AuthKind::Token("tablet".into()), Role::Observer)
    );
    house.gate.revoke_token("tablet").unwrap();
    assert_eq!(client.hear().await, Heard::Closed(4001));
    let mut again = greeted(&house, &answer).await;
    again.expect("auth_error").await;
    // Under a plain name not even a right token logs in.
    let token = house
        .gate
        .create_token("other", (Role::Owner, None), None)
        .unwrap();
    let form = format!("token={}", token.expose());
    assert_eq!(status(&house.http("POST /login", &[], &form).await), 403);
}

#[tokio::test]
async fn login_token_expires() {
    let pace = Pace {
        login_token: Duration::from_millis(100),
        ..Pace::default()
    };
    let house = house_with(pace, |_| {}).await;
    let (token, _) = house.gate.login_token(Role::Owner, LoginName::Own).unwrap();
    tokio::time::sleep(Duration::from_millis(150)).await;
    let answer = post_login(&house, &format!("token={}", token.expose())).await;
    assert_eq!((status(&answer), body(&answer)), (403, ""));
}

#[tokio::test]
async fn rotation_ends_logins_and_invitations() {
    let house = house().await;
    let set = log_in(&house).await;
    let (pair, _) = set.split_once("; ").unwrap();
    let (token, _) = house.gate.login_token(Role::Owner, LoginName::Own).unwrap();
    house.gate.rotate(&Credential::new("N"), Connections::Keep);
    let own = format!("http://127.0.0.1:{}", house.port());
    let mut client = house
        .client_with(&[("origin", &own), ("cookie", pair)])
        .await
        .unwrap();
    client.say(HELLO).await;
    client.expect("auth_error").await;
    let answer = post_login(&house, &format!("token={}", token.expose())).await;
    assert_eq!(status(&answer), 403);
}

#[tokio::test]
async fn heads_and_bodies_are_limited() {
    let house = house_with(quick(), |_| {}).await;
    let long = "x".repeat(17 * 1024);
    let answer = house.http("GET /", &[("x-long", &long)], "").await;
    assert_eq!(status(&answer), 431);
    let fits = "x".repeat(15 * 1024);
    assert_eq!(status(&house.http("GET /", &[("x-long", &fits)], "").await), 200);
    let body = format!("token={}", "x".repeat(5 * 1024));
    assert_eq!(status(&house.http("POST /login", &[], &body).await), 413);
    // A body that does not come.
    let port = house.port();
    let head = format!(
        "POST /login HTTP/1.1\r\nhost: localhost:{port}\r\nconnection: close\r\ncontent-length: 20\r\n\r\ntok"
    );
    assert_eq!(status(&house.raw(&head).await), 403);
    // A head that drips in never gets an answer.
    let mut stream = tokio::net::TcpStream::connect(house.gate.address).await.unwrap();
    for byte in b"GET / HTTP/1.1\r\nhost: localhost" {
        if stream.write_all(&[*byte]).await.is_err() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    let mut answer = Vec::new();
    drop(soon(stream.read_to_end(&mut answer)).await);
    assert!(!answer.starts_with(b"HTTP/1.1 200"));
}
