//! What people without a secret may send: anything. It goes nowhere.

use std::io::Write;
use std::sync::{Arc, Mutex};

use beamtalk_workspace::gate::{SILENCED, read_strange_bytes};
use futures_util::SinkExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio_tungstenite::tungstenite::Message;

use crate::support::{House, house, soon};

/// What nobody may find anywhere.
const MARK: &str = "canary4Z7qT1";

/// Everything a stranger can put it into.
async fn shout(house: &House) {
    let port = house.port();
    for first in [
        format!(r#"{{"op":"eval","id":"1","code":"{MARK}"}}"#),
        format!(r#"{{"type":"auth","cookie":"{MARK}","client":"{MARK}","resume":"{MARK}"}}"#),
        format!(r#"{{"type":"auth","token":"btk_{MARK}"}}"#),
        MARK.to_owned(),
    ] {
        let mut client = house.client().await;
        client.expect("auth-required").await;
        // The request that follows is not waited for, as if the first had been accepted.
        client.say(&first).await;
        let eval = format!(r#"{{"op":"eval","id":"2","code":"{MARK}"}}"#);
        drop(client.socket.send(Message::text(eval)).await);
        let (said, _) = client.rest().await;
        assert!(!format!("{said:?}").contains(MARK), "nothing is echoed");
    }
    let bearer = format!("Bearer {MARK}");
    let mut client = house.client_with(&[("authorization", &bearer)]).await.unwrap();
    drop(client.rest().await);
    let origin = format!("http://{MARK}.example");
    for headers in [
        vec![("host", MARK)],
        vec![("origin", origin.as_str())],
        vec![("cookie", MARK), ("user-agent", MARK), ("referer", MARK)],
    ] {
        let answer = house.http(&format!("GET /{MARK}"), &headers, MARK).await;
        assert!(!answer.contains(MARK), "{answer}");
    }
    let answer = house.http("POST /login", &[], &format!("token={MARK}")).await;
    assert!(!answer.contains(MARK));
    house.raw(&format!("{MARK}\r\n\r\n")).await;
    house
        .raw(&format!(
            "GET / HTTP/1.1\r\nhost: localhost:{port}\r\n{MARK}\r\n\r\n"
        ))
        .await;
}

/// A log that keeps everything, at the finest level there is.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn unauthenticated_bytes_not_in_logs() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(format!("trace,{SILENCED}"))
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    tracing::trace!("the log works");
    let house = house().await;
    shout(&house).await;
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("the log works"));
    assert!(!log.contains(MARK), "{log}");
    let trail = house.trail.lines().join("\n");
    assert!(trail.contains("AuthFail"));
    assert!(!trail.contains(MARK), "{trail}");
}

#[tokio::test]
async fn unauthenticated_eval_has_no_effect() {
    let mut house = house().await;
    shout(&house).await;
    assert!(house.admitted.try_recv().is_err(), "nobody was let in");
    assert!(house.calls.try_recv().is_err());
    assert_eq!(house.gate.counts().connected, 0);
}

/// Random bytes, the same in every run.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Bytes of any length, half of them such as the formats are made of.
    fn bytes(&mut self, most: u64) -> Vec<u8> {
        const WORDS: [&[u8]; 8] = [
            b"{",
            b"}",
            b"\"type\":",
            b"\"auth\"",
            b"\0\0\0\x02",
            b"[",
            b"\xff",
            b"\\u00",
        ];
        let mut bytes = Vec::new();
        for _ in 0..self.next() % most {
            match self.next() % 16 {
                word @ 0..=7 => bytes.extend_from_slice(WORDS[word as usize]),
                _ => bytes.push(self.next() as u8),
            }
        }
        bytes
    }
}

#[test]
fn no_bytes_break_the_readers() {
    let mut noise = Noise(0x9e37_79b9_7f4a_7c15);
    for _ in 0..200_000 {
        read_strange_bytes(&noise.bytes(24));
    }
}

#[tokio::test]
async fn garbage_on_the_sockets_harms_nobody() {
    let mut house = house().await;
    let (mut owner, admitted) = house.owner().await;
    let mut noise = Noise(0x2545_f491_4f6c_dd1d);
    for round in 0..60 {
        let bytes = noise.bytes(400);
        let mut control = UnixStream::connect(house.socket()).await.unwrap();
        drop(control.write_all(&bytes).await);
        let mut stream = TcpStream::connect(house.gate.address).await.unwrap();
        if round % 2 == 0 {
            let port = house.port();
            let upgrade = format!(
                "GET /ws HTTP/1.1\r\nhost: localhost:{port}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
                 sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            );
            stream.write_all(upgrade.as_bytes()).await.unwrap();
            let mut answer = [0; 12];
            soon(stream.read_exact(&mut answer)).await.unwrap();
            assert_eq!(&answer, b"HTTP/1.1 101");
        }
        drop(stream.write_all(&bytes).await);
    }
    admitted.outgoing.send("{}".into()).await.unwrap();
    owner.json().await;
    house.owner().await;
}
