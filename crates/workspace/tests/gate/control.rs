//! The control socket.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::support::{House, house, soon};

async fn send(stream: &mut UnixStream, request: &Value) {
    let body = request.to_string();
    let length = u32::try_from(body.len()).unwrap();
    stream.write_all(&length.to_be_bytes()).await.unwrap();
    stream.write_all(body.as_bytes()).await.unwrap();
}

async fn receive(stream: &mut UnixStream) -> Option<Value> {
    let length = soon(stream.read_u32()).await.ok()?;
    let mut body = vec![0; length as usize];
    stream.read_exact(&mut body).await.unwrap();
    Some(serde_json::from_slice(&body).unwrap())
}

async fn connect(house: &House) -> UnixStream {
    UnixStream::connect(house.socket()).await.unwrap()
}

#[tokio::test]
async fn calls_are_answered_in_order_and_in_several_frames() {
    let mut house = house().await;
    let mut stream = connect(&house).await;
    send(&mut stream, &json!({"op": "log-tail", "follow": true})).await;
    send(&mut stream, &json!({"op": "hello"})).await;
    let call = soon(house.calls.recv()).await.unwrap();
    assert_eq!(call.request, json!({"op": "log-tail", "follow": true}));
    assert_eq!(call.peer_uid, rustix::process::geteuid().as_raw());
    for number in 0..3 {
        assert!(call.answer.send(json!({ "line": number })).await);
        assert_eq!(receive(&mut stream).await.unwrap(), json!({ "line": number }));
    }
    drop(call);
    let call = soon(house.calls.recv()).await.unwrap();
    assert_eq!(call.request, json!({"op": "hello"}));
    call.answer.send(json!({"nonce": "q3T0"})).await;
    assert_eq!(receive(&mut stream).await.unwrap(), json!({"nonce": "q3T0"}));
}

#[tokio::test]
async fn a_client_that_hangs_up_ends_its_answer() {
    let mut house = house().await;
    let mut stream = connect(&house).await;
    send(&mut stream, &json!({"op": "audit-tail", "follow": true})).await;
    let call = soon(house.calls.recv()).await.unwrap();
    drop(stream);
    soon(call.answer.closed()).await;
    assert!(!call.answer.send(json!({})).await);
}

#[tokio::test]
async fn bad_frames_are_answered_and_end_the_connection() {
    let house = house().await;
    let mut long = connect(&house).await;
    long.write_all(&(16 * 1024 * 1024 + 1_u32).to_be_bytes())
        .await
        .unwrap();
    assert_eq!(
        receive(&mut long).await.unwrap()["error"]["kind"],
        "message_too_large"
    );
    assert_eq!(receive(&mut long).await, None);
    let mut list = connect(&house).await;
    send(&mut list, &json!([1, 2])).await;
    assert_eq!(
        receive(&mut list).await.unwrap()["error"]["kind"],
        "invalid_request"
    );
    assert_eq!(receive(&mut list).await, None);
}

#[tokio::test]
async fn socket_modes() {
    let house = house().await;
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&house.socket()), 0o600);
    assert_eq!(mode(house.directory.path()), 0o700);
    let names: Vec<_> = std::fs::read_dir(house.directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["daemon.sock"], "nothing is left beside the socket");
}

#[tokio::test]
async fn a_socket_in_an_open_directory_is_not_made() {
    use beamtalk_workspace::gate::{GateError, Pace};
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let opened = crate::support::try_house(Pace::default(), |config| {
        config.control_socket = directory.path().join("daemon.sock");
    })
    .await;
    assert!(matches!(opened, Err(GateError::Control { .. })));
}

#[tokio::test]
async fn peer_uid_checked() {
    if !rustix::process::geteuid().is_root() {
        // Only root can become somebody else.
        return;
    }
    let mut house = house().await;
    // The modes would stop a stranger; here they let one through, so that only the check is left.
    std::fs::set_permissions(house.directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::set_permissions(house.socket(), std::fs::Permissions::from_mode(0o666)).unwrap();
    let path = house.socket();
    let read = tokio::task::spawn_blocking(move || {
        std::thread::spawn(move || {
            use std::io::{Read, Write};
            let nobody = rustix::process::Uid::from_raw(65_534);
            // Of this thread only.
            rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
            let mut stream = std::os::unix::net::UnixStream::connect(path).unwrap();
            drop(stream.write_all(b"\x00\x00\x00\x0e{\"op\":\"hello\"}"));
            let mut answer = Vec::new();
            drop(stream.read_to_end(&mut answer));
            answer
        })
        .join()
        .unwrap()
    })
    .await
    .unwrap();
    assert_eq!(read, b"", "the stranger is told nothing");
    assert!(house.calls.try_recv().is_err());
    assert!(house.trail.has("uid: 65534"));
    assert!(house.trail.has("PeerUid"));
}
