//! A workspace that does not keep to what it should, and a client that does not look.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio_tungstenite::tungstenite::Message;

use super::{Connection, EVENT_BYTES, Endpoint, Error, Events, Greeting, REPLY_BYTES, Reply};

/// A connection to something that greets like a workspace, waits for one request and sends `frames`.
async fn connected(frames: impl Iterator<Item = Value> + Send + 'static) -> (Connection, Events) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
        let text = |value: Value| Message::text(value.to_string());
        socket.send(text(json!({"op": "auth-required"}))).await.unwrap();
        socket.next().await.unwrap().unwrap();
        socket.send(text(json!({"type": "auth_ok"}))).await.unwrap();
        socket.send(text(json!({"op": "session-started"}))).await.unwrap();
        socket.next().await.unwrap().unwrap();
        for frame in frames {
            // The client may hang up.
            if socket.send(text(frame)).await.is_err() {
                return;
            }
        }
        while let Some(Ok(_)) = socket.next().await {}
    });
    let endpoint = Endpoint {
        host: "127.0.0.1".to_owned(),
        port,
        tls: None,
    };
    Connection::open(&endpoint, "cookie", "c", Greeting::default())
        .await
        .unwrap()
}

#[tokio::test]
async fn output_nobody_takes_ends_the_connection_before_it_fills_the_memory() {
    let piece = "x".repeat(1 << 20);
    let pieces = (0..400).map(move |_| json!({"id": "r1", "out": piece}));
    let (connection, _events) = connected(pieces).await;
    let mut pending = connection.request("eval", Map::new()).unwrap();
    while !connection.is_lost() {
        tokio::task::yield_now().await;
    }
    let mut taken = 0;
    let end = loop {
        match pending.next().await {
            Ok(Reply::Output(text)) => taken += text.len(),
            other => break other,
        }
    };
    assert!(matches!(end, Err(Error::Lost)), "{end:?}");
    assert!(taken > 0 && taken <= REPLY_BYTES, "{taken}");
    assert!(matches!(connection.request("eval", Map::new()), Err(Error::Lost)));
}

#[tokio::test]
async fn output_that_is_taken_or_given_up_may_be_any_amount() {
    let piece = "x".repeat(1 << 20);
    let pieces = (0..2 * (REPLY_BYTES >> 20)).map(move |_| json!({"id": "r1", "out": piece}));
    let ends = ["r1", "r2"].map(|id| json!({"id": id, "status": ["done"]}));
    let (connection, _events) = connected(pieces.chain(ends)).await;
    let mut taken = connection.request("eval", Map::new()).unwrap();
    let other = connection.request("eval", Map::new()).unwrap();
    let mut bytes = 0;
    while let Reply::Output(text) = taken.next().await.unwrap() {
        bytes += text.len();
    }
    assert!(bytes > REPLY_BYTES, "{bytes}");
    other.done().await.unwrap();
}

#[tokio::test]
async fn events_nobody_takes_are_dropped_and_answers_are_not() {
    let text = "x".repeat(1 << 20);
    let events = (0..100).map(move |_| json!({"event": text}));
    let answer = json!({"id": "r1", "status": ["done"]});
    let (connection, mut events) = connected(events.chain([answer])).await;
    let done = connection.request("health", Map::new()).unwrap().done().await;
    assert_eq!(done.unwrap()["id"], "r1");
    let mut kept = 0;
    while events.try_recv().is_ok() {
        kept += 1 << 20;
    }
    assert!(kept > 0 && kept <= EVENT_BYTES, "{kept}");
}
