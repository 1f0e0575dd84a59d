//! A WebSocket client that sends whatever a test wants.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::home::Home;

pub(crate) struct Raw(TcpStream);

/// A frame of the server.
#[derive(Debug, PartialEq)]
pub(crate) enum Frame {
    Message(Value),
    Closed(u16),
}

impl Raw {
    /// An authenticated connection.
    pub(crate) fn open(home: &Home) -> Self {
        let mut raw = Self::stranger(home);
        raw.next();
        raw.send(
            &json!({"type": "auth", "cookie": home.cookie(), "client": "repl", "protocol": "1.0"})
                .to_string(),
        );
        raw.next();
        raw.next();
        raw
    }

    /// A connection of somebody who has not said anything yet.
    pub(crate) fn stranger(home: &Home) -> Self {
        let port = home.endpoint().port;
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .expect("a limit");
        let mut raw = Self(stream);
        let upgrade = format!(
            "GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        );
        raw.0.write_all(upgrade.as_bytes()).expect("sent");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.extend(raw.bytes(1));
        }
        raw
    }

    /// Everything the server still sends.
    pub(crate) fn rest(mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        drop(self.0.read_to_end(&mut rest));
        rest
    }

    /// One text frame, masked with zeros.
    pub(crate) fn send(&mut self, text: &str) {
        let mut frame = vec![0x81];
        match text.len() {
            length @ 0..126 => frame.push(0x80 | u8::try_from(length).expect("small")),
            length @ 126..65536 => {
                frame.push(0xfe);
                frame.extend(u16::try_from(length).expect("small").to_be_bytes());
            }
            length => {
                frame.push(0xff);
                frame.extend((length as u64).to_be_bytes());
            }
        }
        frame.extend([0; 4]);
        frame.extend(text.as_bytes());
        // The server may close before it has read everything.
        let _ = self.0.write_all(&frame);
    }

    pub(crate) fn next(&mut self) -> Frame {
        loop {
            let head = self.bytes(2);
            let length = match head[1] & 0x7f {
                126 => usize::from(u16::from_be_bytes(self.bytes(2).try_into().expect("two"))),
                127 => usize::try_from(u64::from_be_bytes(self.bytes(8).try_into().expect("eight")))
                    .expect("a length"),
                length => usize::from(length),
            };
            let payload = self.bytes(length);
            match head[0] & 0x0f {
                1 => return Frame::Message(serde_json::from_slice(&payload).expect("JSON")),
                8 => return Frame::Closed(u16::from_be_bytes([payload[0], payload[1]])),
                _ => {}
            }
        }
    }

    /// The next message.
    pub(crate) fn message(&mut self) -> Value {
        match self.next() {
            Frame::Message(message) => message,
            Frame::Closed(code) => panic!("closed with {code}"),
        }
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.0.read_exact(&mut bytes).expect("a frame in time");
        bytes
    }
}
