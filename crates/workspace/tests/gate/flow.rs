//! Authenticated connections: frames, queues, limits, and how they end.

use std::time::Duration;

use beamtalk_wire::{Channel, Role, limits};
use beamtalk_workspace::gate::{Connections, Credential, Pace};
use futures_util::SinkExt;
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use crate::support::{COOKIE, Heard, house, house_with, soon, until};

#[tokio::test]
async fn frames_over_the_limit_and_binary_frames_end_the_connection() {
    let mut house = house().await;
    for (message, code) in [
        (Message::text("x".repeat(limits::INBOUND_FRAME + 1)), 1009),
        (Message::text("x".repeat(8 * limits::INBOUND_FRAME)), 1009),
        (Message::binary(b"{}".to_vec()), 1003),
    ] {
        let (mut client, mut admitted) = house.owner().await;
        drop(client.socket.send(message).await);
        assert_eq!(client.hear().await, Heard::Closed(code));
        assert_eq!(soon(admitted.incoming.recv()).await, None);
    }
    let (mut client, mut admitted) = house.owner().await;
    client.say(&"x".repeat(limits::INBOUND_FRAME)).await;
    assert_eq!(
        soon(admitted.incoming.recv()).await.unwrap().len(),
        limits::INBOUND_FRAME
    );
}

#[tokio::test]
async fn the_daemon_can_close() {
    let mut house = house().await;
    let (mut client, mut admitted) = house.owner().await;
    admitted.outgoing.send("{\"last\":1}".into()).await.unwrap();
    admitted.outgoing.close(1001, "stopping");
    assert!(admitted.outgoing.is_closed());
    assert_eq!(client.json().await, json!({"last": 1}));
    assert_eq!(client.hear().await, Heard::Closed(1001));
    assert_eq!(soon(admitted.incoming.recv()).await, None);
    assert!(admitted.outgoing.send("{}".into()).await.is_err());
    drop(client);
    soon(admitted.outgoing.closed()).await;
    assert_eq!(house.gate.counts().connected, 0);
}

#[tokio::test]
async fn rotation_closes_all_and_accepts_the_new_cookie_only() {
    let mut house = house().await;
    let (mut one, _a) = house.owner().await;
    let (mut two, _b) = house.owner().await;
    let cookie = Credential::new("N".repeat(43));
    assert_eq!(house.gate.rotate(&cookie, Connections::Close), 2);
    assert_eq!(one.hear().await, Heard::Closed(4001));
    assert_eq!(two.hear().await, Heard::Closed(4001));
    let mut old = house.client().await;
    old.expect("auth-required").await;
    old.cookie(COOKIE).await;
    assert_eq!(old.json().await["message"], "Invalid cookie");
    let mut new = house.client().await;
    new.expect("auth-required").await;
    new.cookie(cookie.expose()).await;
    new.expect("auth_ok").await;
    house.next().await;
    assert_eq!(house.gate.rotate(&Credential::new("M"), Connections::Keep), 0);
    until(|| house.gate.counts().connected == 1).await;
}

#[tokio::test]
async fn revoked_token_closes_connection() {
    let mut house = house().await;
    let token = house
        .gate
        .create_token("laptop", (Role::Observer, None), None)
        .unwrap();
    house
        .gate
        .create_token("phone", (Role::Owner, None), None)
        .unwrap();
    let mut client = house.client().await;
    client.expect("auth-required").await;
    client.token(token.expose()).await;
    assert_eq!(client.expect("auth_ok").await["role"], "observer");
    let admitted = house.next().await;
    assert_eq!(admitted.role, Role::Observer);
    let (mut owner, _kept) = house.owner().await;
    assert!(house.gate.tokens()[0].last_used.is_some());
    assert!(!house.file.text().contains(token.expose()));
    assert_eq!(house.gate.revoke_token("laptop").unwrap(), 1);
    assert_eq!(client.hear().await, Heard::Closed(4001));
    assert!(house.gate.revoke_token("laptop").is_err());
    let mut again = house.client().await;
    again.expect("auth-required").await;
    again.token(token.expose()).await;
    assert_eq!(again.json().await["message"], "Invalid cookie");
    assert!(house.file.text().contains("phone") && !house.file.text().contains("laptop"));
    owner.say("{}").await;
}

#[tokio::test]
async fn an_expired_token_ends_its_connection() {
    let mut house = house().await;
    let token = house
        .gate
        .create_token("short", (Role::Owner, None), Some(Duration::from_secs(1)))
        .unwrap();
    let mut client = house.client().await;
    client.expect("auth-required").await;
    client.token(token.expose()).await;
    client.expect("auth_ok").await;
    house.next().await;
    assert_eq!(client.hear().await, Heard::Closed(4001));
}

#[tokio::test]
async fn at_most_128_authenticated_connections() {
    let mut house = house().await;
    let mut clients = Vec::new();
    for _ in 0..limits::AUTHENTICATED_CONNECTIONS {
        clients.push(house.owner().await);
    }
    let mut more = house.client().await;
    more.expect("auth-required").await;
    more.cookie(COOKIE).await;
    let (said, end) = more.rest().await;
    assert_eq!(said[0]["message"], "Too many connections");
    assert_eq!(end, Heard::Closed(1013));
    clients.pop();
    until(|| house.gate.counts().connected < limits::AUTHENTICATED_CONNECTIONS).await;
    house.owner().await;
}

/// Whoever was given a token may take many connections, but neither all nor those of the owner.
#[tokio::test]
async fn tokens_leave_seats_for_the_owner_and_for_each_other() {
    let mut house = house().await;
    let mut clients = Vec::new();
    let mut taken = Vec::new();
    for name in ["one", "two", "three"] {
        let token = house
            .gate
            .create_token(name, (Role::Observer, None), None)
            .unwrap();
        let mut count = 0;
        loop {
            let mut client = house.client().await;
            client.expect("auth-required").await;
            client.token(token.expose()).await;
            let said = client.json().await;
            if said["type"] != "auth_ok" {
                assert_eq!(said["message"], "Too many connections", "{said}");
                break;
            }
            count += 1;
            clients.push((client, house.next().await));
        }
        taken.push(count);
    }
    assert_eq!(taken, [64, 32, 0]);
    for _ in 0..32 {
        clients.push(house.owner().await);
    }
    assert_eq!(house.gate.counts().connected, limits::AUTHENTICATED_CONNECTIONS);
}

#[tokio::test]
async fn flood_does_not_block_owner() {
    let mut house = house().await;
    let mut flood = Vec::new();
    for _ in 0..1_000 {
        flood.push(tokio::net::TcpStream::connect(house.gate.address).await.unwrap());
    }
    let (_client, _admitted) = house.owner().await;
    assert!(house.gate.counts().waiting <= limits::UNAUTHENTICATED_CONNECTIONS);
    // An authenticated connection is never turned out to make room.
    for _ in 0..200 {
        flood.push(tokio::net::TcpStream::connect(house.gate.address).await.unwrap());
    }
    house.owner().await;
    assert_eq!(house.gate.counts().connected, 2);
}

#[tokio::test]
async fn slow_reader_does_not_block() {
    let pace = Pace {
        stall: Duration::from_millis(500),
        ..Pace::default()
    };
    let mut house = house_with(pace, |_| {}).await;
    let (mut slow, stuck) = house.owner().await;
    let (mut other, free) = house.owner().await;
    // Answers wait, events are dropped, and neither holds up anybody else.
    let writer = stuck.outgoing.clone();
    let blocked = tokio::spawn(async move {
        let chunk = "x".repeat(limits::OUTBOUND_FRAME);
        while writer.send(chunk.clone()).await.is_ok() {}
    });
    for number in 0..5_000 {
        stuck
            .outgoing
            .push_event(Channel::Transcript, format!("{{\"n\":{number}}}"));
        if number % 1_000 == 0 {
            free.outgoing.send(format!("{{\"n\":{number}}}")).await.unwrap();
            assert_eq!(other.json().await, json!({ "n": number }));
        }
    }
    assert!(stuck.outgoing.dropped() > 0);
    soon(blocked).await.unwrap();
    soon(stuck.outgoing.closed()).await;
    assert!(house.trail.has("code: 1013"));
    drop(slow.rest().await);
    free.outgoing.send("{}".into()).await.unwrap();
    assert_eq!(other.json().await, json!({}));
}

#[tokio::test]
async fn a_dead_client_is_noticed() {
    let pace = Pace {
        ping: Duration::from_millis(100),
        dead: Duration::from_millis(300),
        ..Pace::default()
    };
    let mut house = house_with(pace, |_| {}).await;
    // A client that reads answers pings by itself; one that does not is dead.
    let (_silent, dead) = house.owner().await;
    let (mut alive, living) = house.owner().await;
    let reader = tokio::spawn(async move { alive.rest().await });
    soon(dead.outgoing.closed()).await;
    assert!(!living.outgoing.is_closed());
    living.outgoing.close(1000, "");
    assert_eq!(reader.await.unwrap().1, Heard::Closed(1000));
}

/// A machine that was too busy to run the daemon, or that slept, has not heard anybody, and nobody is dead for it.
#[tokio::test]
async fn a_daemon_that_did_not_run_takes_nobody_for_dead() {
    let pace = Pace {
        ping: Duration::from_millis(50),
        dead: Duration::from_millis(200),
        ..Pace::default()
    };
    let mut house = house_with(pace, |_| {}).await;
    let (mut alive, living) = house.owner().await;
    let reader = tokio::spawn(async move { alive.rest().await });
    for _ in 0..5 {
        // Everything in this test runs in one thread: now it stands still, and the next ping is due long since.
        std::thread::sleep(Duration::from_millis(400));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(!living.outgoing.is_closed());
    living.outgoing.close(1000, "");
    assert_eq!(reader.await.unwrap().1, Heard::Closed(1000));
}

/// Whoever says more than is taken at the moment is not read, which is no silence of theirs.
#[tokio::test]
async fn a_client_whose_requests_wait_is_not_dead() {
    let pace = Pace {
        ping: Duration::from_millis(20),
        dead: Duration::from_millis(60),
        ..Pace::default()
    };
    let mut house = house_with(pace, |_| {}).await;
    let (mut eager, mut admitted) = house.owner().await;
    let (_silent, dead) = house.owner().await;
    let said = 200;
    for number in 0..said {
        eager.say(&format!("{{\"n\":{number}}}")).await;
    }
    soon(dead.outgoing.closed()).await;
    // From here on what it says is taken.
    let reader = tokio::spawn(async move { eager.rest().await });
    for number in 0..said {
        let text = soon(admitted.incoming.recv()).await.expect("what was said");
        assert_eq!(text, format!("{{\"n\":{number}}}"));
    }
    assert!(!admitted.outgoing.is_closed());
    admitted.outgoing.close(1000, "");
    assert_eq!(reader.await.unwrap().1, Heard::Closed(1000));
}
