//! The WebSocket handshake: every way in, and every way to be turned away.

use std::time::{Duration, Instant};

use beamtalk_wire::{ClientKind, Role};
use beamtalk_workspace::gate::AuthKind;
use futures_util::SinkExt;
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use crate::support::{COOKIE, Heard, house, house_with, quick, soon};

const WRONG: &str = "A3Zk1q8vTn0cXwRr5yLsJdHb2mGfQaUe7iOoKxVtWzE";

#[tokio::test]
async fn the_cookie_in_the_first_message() {
    let mut house = house().await;
    let mut client = house.client().await;
    assert_eq!(client.json().await, json!({"op": "auth-required"}));
    let auth =
        json!({"type": "auth", "cookie": COOKIE, "client": "repl", "protocol": "1.0", "resume": "s-7f2a"});
    client.say(&auth.to_string()).await;
    assert_eq!(
        client.json().await,
        json!({"type": "auth_ok", "protocol": "1.0", "server": "beamtalk/0.1.0", "role": "owner"})
    );
    let mut admitted = house.next().await;
    assert_eq!(
        (
            admitted.role,
            &admitted.auth,
            admitted.client,
            admitted.resume.as_deref()
        ),
        (Role::Owner, &AuthKind::Cookie, ClientKind::Repl, Some("s-7f2a"))
    );
    client.say("{\"op\":\"health\",\"id\":\"1\"}").await;
    assert_eq!(
        soon(admitted.incoming.recv()).await.unwrap(),
        "{\"op\":\"health\",\"id\":\"1\"}"
    );
    admitted.outgoing.send("{\"id\":\"1\"}".into()).await.unwrap();
    assert_eq!(client.json().await, json!({"id": "1"}));
    assert!(house.trail.has("AuthOk"));
    drop(client);
    assert_eq!(soon(admitted.incoming.recv()).await, None);
    soon(admitted.outgoing.closed()).await;
    assert!(house.trail.has("Disconnect"));
}

#[tokio::test]
async fn wrong_cookie_refused() {
    let house = house().await;
    let shortened = &COOKIE[..42];
    let extended = format!("{COOKIE}A");
    for cookie in [WRONG, "", shortened, &extended] {
        let mut client = house.client().await;
        client.expect("auth-required").await;
        client.cookie(cookie).await;
        let (said, end) = client.rest().await;
        assert_eq!(said, [json!({"type": "auth_error", "message": "Invalid cookie"})]);
        assert_eq!(end, Heard::Closed(1008));
    }
    assert_eq!(house.gate.counts().connected, 0);
    assert!(house.trail.has("Invalid"));
}

#[tokio::test]
async fn anything_else_first_is_refused() {
    let house = house().await;
    for text in [
        "hello",
        "{}",
        "[1]",
        r#"{"op":"eval","id":"1","code":"1"}"#,
        r#"{"type":"hello"}"#,
    ] {
        let mut client = house.client().await;
        client.expect("auth-required").await;
        client.say(text).await;
        let (said, end) = client.rest().await;
        assert_eq!(
            said,
            [json!({"type": "auth_error", "message": "First message must be auth"})]
        );
        assert_eq!(end, Heard::Closed(1008));
    }
}

#[tokio::test]
async fn a_large_or_binary_first_message_is_refused_without_a_word() {
    let house = house().await;
    let large = |length: usize| {
        let empty = json!({"type": "auth", "cookie": ""}).to_string();
        json!({"type": "auth", "cookie": "x".repeat(length - empty.len())}).to_string()
    };
    let messages = [
        Message::text(large(4_097)),
        Message::text(large(9_000)),
        Message::text(large(900_000)),
        Message::text(large(3_000_000)),
        Message::binary(b"abc".to_vec()),
        Message::binary(vec![0; 100_000]),
    ];
    for message in messages {
        let mut client = house.client().await;
        client.expect("auth-required").await;
        // The gate may hang up before it has read everything.
        drop(client.socket.send(message).await);
        let (said, end) = client.rest().await;
        assert_eq!((said, end), (vec![], Heard::Closed(1009)));
    }
    let mut client = house.client().await;
    client.expect("auth-required").await;
    client.say(&large(4_096)).await;
    let (said, _) = client.rest().await;
    assert_eq!(said[0]["message"], "Invalid cookie");
}

#[tokio::test]
async fn idle_connection_closed() {
    let house = house_with(quick(), |_| {}).await;
    let mut client = house.client().await;
    client.expect("auth-required").await;
    let (said, end) = client.rest().await;
    assert_eq!(
        said,
        [json!({"type": "auth_error", "message": "Authentication timeout"})]
    );
    assert_eq!(end, Heard::Closed(1008));
    // Pings do not keep a stranger alive.
    let mut client = house.client().await;
    client.expect("auth-required").await;
    let began = Instant::now();
    for _ in 0..20 {
        drop(client.socket.send(Message::Ping(Vec::new().into())).await);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(!matches!(client.hear().await, Heard::Gone), "it was told why");
    assert!(began.elapsed() < Duration::from_secs(3));
    // Nor does a connection that never speaks, or never finishes its request.
    for request in ["", "GET /ws HTTP/1.1\r\nhost: "] {
        let answer = soon(house.raw(request)).await;
        assert!(!answer.contains("101"), "{answer}");
    }
}

#[tokio::test]
async fn a_foreign_protocol_version_is_named() {
    let mut house = house().await;
    for version in ["2.0", "0.9", "one"] {
        let mut client = house.client().await;
        client.expect("auth-required").await;
        client
            .say(&json!({"type": "auth", "cookie": COOKIE, "protocol": version}).to_string())
            .await;
        let (said, end) = client.rest().await;
        assert_eq!(
            said,
            [json!({"type": "auth_error", "message": "Protocol not supported", "supported": ["1.1"]})]
        );
        assert_eq!(end, Heard::Closed(1002));
    }
    assert_eq!(house.gate.counts().connected, 0);
    let mut client = house.client().await;
    client.expect("auth-required").await;
    client
        .say(&json!({"type": "auth", "cookie": COOKIE, "protocol": "1.9"}).to_string())
        .await;
    assert_eq!(client.expect("auth_ok").await["protocol"], "1.1");
    assert_eq!(house.next().await.protocol, "1.1");
    // A stranger does not learn which versions there are.
    let mut client = house.client().await;
    client.expect("auth-required").await;
    client
        .say(&json!({"type": "auth", "cookie": WRONG, "protocol": "2.0"}).to_string())
        .await;
    assert_eq!(client.json().await["message"], "Invalid cookie");
}

#[tokio::test]
async fn the_secret_in_a_header() {
    let mut house = house().await;
    let token = house
        .gate
        .create_token("laptop", (Role::Observer, None), None)
        .unwrap();
    for (secret, auth) in [
        (COOKIE, AuthKind::Cookie),
        (token.expose(), AuthKind::Token("laptop".into())),
    ] {
        let bearer = format!("Bearer {secret}");
        let protocols = format!("beamtalk.v1, beamtalk.auth.{secret}");
        for header in [
            ("authorization", bearer.as_str()),
            ("sec-websocket-protocol", &protocols),
        ] {
            let mut client = house.client_with(&[header]).await.unwrap();
            let selected = (header.0 == "sec-websocket-protocol").then_some("beamtalk.v1");
            assert_eq!(client.protocol.as_deref(), selected);
            client
                .say(r#"{"type":"hello","client":"ide","resume":"s-1"}"#)
                .await;
            client.expect("auth_ok").await;
            let admitted = house.next().await;
            assert_eq!((&admitted.auth, admitted.client), (&auth, ClientKind::Ide));
            assert_eq!(admitted.resume.as_deref(), Some("s-1"));
        }
    }
}

#[tokio::test]
async fn a_client_need_not_say_hello() {
    let mut house = house().await;
    let bearer = format!("Bearer {COOKIE}");
    let headers = [("authorization", bearer.as_str())];
    // It may wait,
    let mut client = house.client_with(&headers).await.unwrap();
    client.expect("auth_ok").await;
    assert_eq!(house.next().await.client, ClientKind::Unknown);
    // or ask at once.
    let mut client = house.client_with(&headers).await.unwrap();
    client.say(r#"{"op":"health","id":"1"}"#).await;
    client.expect("auth_ok").await;
    let mut admitted = house.next().await;
    assert_eq!(
        soon(admitted.incoming.recv()).await.unwrap(),
        r#"{"op":"health","id":"1"}"#
    );
}

#[tokio::test]
async fn a_wrong_secret_in_a_header_is_refused() {
    let house = house().await;
    let both = format!("beamtalk.auth.{COOKIE}, beamtalk.auth.{COOKIE}");
    for (header, message) in [
        (("authorization", "Bearer nonsense"), "Invalid cookie"),
        (("authorization", "Bearer"), "Invalid cookie"),
        (("authorization", "Basic abc"), "First message must be auth"),
        (
            ("sec-websocket-protocol", "beamtalk.v1, beamtalk.auth.nonsense"),
            "Invalid cookie",
        ),
        (
            ("sec-websocket-protocol", both.as_str()),
            "First message must be auth",
        ),
    ] {
        // A client that asked for protocols refuses a connection in which none was selected.
        let mut headers = vec![header];
        if header.1 == both {
            headers[0].1 = "beamtalk.v1, beamtalk.auth.a, beamtalk.auth.b";
        }
        let mut client = house.client_with(&headers).await.unwrap();
        let (said, end) = client.rest().await;
        assert_eq!(said, [json!({"type": "auth_error", "message": message})]);
        assert_eq!(end, Heard::Closed(1008));
    }
}

#[tokio::test]
async fn failure_is_delayed() {
    let house = house().await;
    for round in 0..22 {
        let mut client = house.client().await;
        client.expect("auth-required").await;
        let began = Instant::now();
        client.cookie(WRONG).await;
        client.json().await;
        let took = began.elapsed();
        let least = if round < 20 { 250 } else { 1_000 };
        assert!(
            took >= Duration::from_millis(least),
            "attempt {round} took {took:?}"
        );
    }
    let fails = |house: &crate::support::House| {
        house
            .trail
            .lines()
            .iter()
            .filter(|line| line.contains("AuthFail"))
            .count()
    };
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert!(
        fails(&house) < 23,
        "records of many failures are merged: {}",
        fails(&house)
    );
}

#[tokio::test]
async fn right_cookie_never_delayed() {
    let mut house = house().await;
    let mut strangers = Vec::new();
    for _ in 0..30 {
        let mut client = house.client().await;
        client.expect("auth-required").await;
        client.cookie(WRONG).await;
        // Not waiting for the answer: all of them fail side by side.
        strangers.push(client);
    }
    let failing = async {
        for stranger in &mut strangers {
            stranger.rest().await;
        }
    };
    // The delays of the failures add up to many seconds; the owner comes in before they have passed.
    tokio::select! {
        biased;
        _ = house.owner() => {}
        () = failing => panic!("every stranger was answered before the owner"),
    }
}
