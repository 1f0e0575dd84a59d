//! The protocol on the wire: traces, exact bytes, abuse, and a client none of us wrote.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "memory/tree.rs"]
mod tree;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use beamtalk_ninep::{Client, Dialect, Error, Limits, Payload, Reply, Request, parse_request};

fn unhex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
        .collect()
}

/// One frame, or nothing when the server closed.
fn frame(stream: &mut UnixStream) -> Option<Vec<u8>> {
    let mut size = [0; 4];
    stream.read_exact(&mut size).ok()?;
    let mut rest = vec![0; u32::from_le_bytes(size) as usize - 4];
    stream.read_exact(&mut rest).ok()?;
    Some([size.to_vec(), rest].concat())
}

fn decode(frame: &[u8], dialect: Dialect) -> (u16, Reply) {
    let tag = u16::from_le_bytes([frame[5], frame[6]]);
    (tag, Reply::decode(frame[4], &frame[7..], dialect).unwrap())
}

/// `*` in the expectation stands for one field or more.
fn matches(line: &str, pattern: &str) -> bool {
    let mut rest = line;
    let parts: Vec<&str> = pattern.split('*').collect();
    for (index, part) in parts.iter().enumerate() {
        match rest.find(part) {
            Some(0) => rest = &rest[part.len()..],
            Some(at) if index > 0 => rest = &rest[at + part.len()..],
            _ => return false,
        }
    }
    rest.is_empty() || pattern.ends_with('*')
}

/// Play a trace: `T` lines are sent, a group of `R` lines is expected in any order, `hex` sends
/// bytes, `feed` feeds the stream, `release` ends the slow write, `closed` expects the end.
fn play(path: &Path) {
    let text = std::fs::read_to_string(path).unwrap();
    let (mut stream, shared) = tree::connection(Limits::default());
    let mut dialect = Dialect::Plan9;
    let mut lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .peekable();
    while let Some(line) = lines.next() {
        let at = format!("{}: {line}", path.display());
        if line.starts_with('T') {
            let (tag, request) = parse_request(line).unwrap_or_else(|| panic!("{at}"));
            let sent_as = if matches!(request, Request::Version { .. }) {
                Dialect::Plan9
            } else {
                dialect
            };
            if let Request::Version { version, .. } = &request {
                dialect = if version == "9P2000.L" {
                    Dialect::Linux
                } else {
                    Dialect::Plan9
                };
            }
            let mut bytes = Vec::new();
            request.encode(tag, sent_as, &mut bytes);
            stream.write_all(&bytes).unwrap();
        } else if let Some(hex) = line.strip_prefix("hex ") {
            stream.write_all(&unhex(hex)).unwrap();
        } else if let Some(bytes) = line.strip_prefix("feed ") {
            shared.stream.lock().unwrap().extend_from_slice(bytes.as_bytes());
            shared.fed.notify_waiters();
        } else if line == "release" {
            shared.release.notify_one();
        } else if line == "closed" {
            assert_eq!(frame(&mut stream), None, "{at}");
        } else {
            let mut group = vec![line];
            while let Some(more) = lines.next_if(|line| line.starts_with('R')) {
                group.push(more);
            }
            while !group.is_empty() {
                let bytes =
                    frame(&mut stream).unwrap_or_else(|| panic!("{at}: closed, still expected {group:?}"));
                let shown_as = if bytes[4] == 101 { Dialect::Plan9 } else { dialect };
                let (tag, reply) = decode(&bytes, shown_as);
                let shown = reply.show(tag);
                let found = group.iter().position(|pattern| matches(&shown, pattern));
                let found = found.unwrap_or_else(|| panic!("{at}\nexpected {group:?}\ngot {shown}"));
                group.remove(found);
            }
        }
    }
}

#[test]
fn traces_play_as_written() {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/ninep");
    let mut played = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "trace") {
            play(&path);
            played += 1;
        }
    }
    assert!(played >= 6, "only {played} traces found");
}

#[test]
fn bytes_of_the_guide() {
    let version = "13000000 64 ffff 00200000 0600 395032303030";
    for (before, sent, expected) in [
        (None, version, version.replacen(" 64 ", " 65 ", 1)),
        (
            None,
            "15000000 64 ffff 00200000 0800 3950323030302e4c",
            "15000000 65 ffff 00200000 0800 3950323030302e4c".to_owned(),
        ),
        (
            None,
            "0f000000 64 ffff 00200000 0200 3951",
            "14000000 65 ffff 00200000 0700 756e6b6e6f776e".to_owned(),
        ),
        (
            Some(version),
            "09000000 6c 0100 6300",
            "07000000 6d 0100".to_owned(),
        ),
        (
            Some(version),
            "0b000000 78 0200 2a000000",
            "10000000 6b 0200 0700 62616420666964".to_owned(),
        ),
        (
            Some(version),
            "0b000000 32 0300 00000000",
            "16000000 6b 0300 0d00 6e6f7420737570706f72746564".to_owned(),
        ),
    ] {
        let (mut stream, _) = tree::connection(Limits::default());
        if let Some(first) = before {
            stream.write_all(&unhex(first)).unwrap();
            frame(&mut stream).unwrap();
        }
        stream.write_all(&unhex(sent)).unwrap();
        assert_eq!(frame(&mut stream).unwrap(), unhex(&expected), "{sent}");
    }
    let (mut stream, shared) = tree::connection(Limits::default());
    stream.write_all(&unhex(version)).unwrap();
    frame(&mut stream).unwrap();
    stream.write_all(&unhex("05000000 78 0200")).unwrap();
    assert_eq!(frame(&mut stream), None);
    assert_eq!(*shared.faults.lock().unwrap(), ["bad size"]);
}

fn client(limits: Limits) -> (Client, std::sync::Arc<tree::Shared>) {
    let (stream, shared) = tree::connection(limits);
    (Client::new(stream, Dialect::Plan9, 8192, false).unwrap(), shared)
}

fn refused<T: std::fmt::Debug>(outcome: Result<T, Error>) -> String {
    match outcome.unwrap_err() {
        Error::Refused(refusal) => refusal.text.into_owned(),
        other => panic!("{other}"),
    }
}

#[test]
fn fids_are_limited_and_every_one_can_be_used_up() {
    let (client, _) = client(Limits {
        fids: 8,
        ..Limits::default()
    });
    let root = client.attach(None, "me", "").unwrap();
    let walked: Vec<u32> = (0..7).map(|_| root.walk("text").unwrap()).collect();
    assert_eq!(refused(root.walk("text")), "too many fids");
    for fid in walked {
        client.call(&Request::Clunk { fid }).unwrap();
    }
    root.walk("text").unwrap();
}

#[test]
fn outstanding_requests_are_limited() {
    let (client, shared) = client(Limits {
        requests: 4,
        ..Limits::default()
    });
    let root = client.attach(None, "me", "").unwrap();
    let file = root.open("stream", 0).unwrap();
    let pending: Vec<_> = (0..4).map(|_| file.start_read().unwrap()).collect();
    assert_eq!(
        refused(client.call(&Request::Stat { fid: file.fid() })),
        "too many requests"
    );
    for request in pending {
        request.flush().unwrap();
    }
    shared.stream.lock().unwrap().extend_from_slice(b"still here");
    let Reply::Read { data } = file
        .start_read()
        .unwrap()
        .wait(Some(Duration::from_secs(20)))
        .unwrap()
    else {
        panic!("no read")
    };
    assert_eq!(data.as_ref(), b"still here");
}

/// Ask for much and read nothing, until the server has had enough.
fn is_found_slow(limits: Limits, reads: u16) {
    let (mut stream, shared) = tree::connection(limits);
    *shared.text.lock().unwrap() = vec![b'x'; 100_000];
    let mut bytes = Vec::new();
    Request::Version {
        msize: 131_096,
        version: "9P2000".to_owned(),
    }
    .encode(0xffff, Dialect::Plan9, &mut bytes);
    for line in [
        "Tattach tag 1 fid 0 uname me",
        "Twalk tag 1 fid 0 newfid 1 wname [text]",
        "Topen tag 1 fid 1",
    ] {
        let (tag, request) = parse_request(line).unwrap();
        request.encode(tag, Dialect::Plan9, &mut bytes);
    }
    for tag in 10..10 + reads {
        Request::Read {
            fid: 1,
            offset: 0,
            count: 100_000,
        }
        .encode(tag, Dialect::Plan9, &mut bytes);
    }
    stream.write_all(&bytes).unwrap();
    let limit = std::time::Instant::now() + Duration::from_secs(20);
    while !shared.faults.lock().unwrap().contains(&"slow reader") {
        assert!(
            std::time::Instant::now() < limit,
            "the slow reader was never noticed"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_peer_that_does_not_read_is_closed() {
    let limits = Limits {
        queue: 1 << 20,
        ..Limits::default()
    };
    is_found_slow(limits, 190);
}

#[test]
fn a_peer_that_stalls_is_closed_in_time() {
    let limits = Limits {
        stall: Duration::from_millis(100),
        ..Limits::default()
    };
    is_found_slow(limits, 30);
}

#[test]
fn a_silent_peer_is_closed() {
    let (mut stream, _) = tree::connection(Limits {
        version_wait: Duration::from_millis(50),
        ..Limits::default()
    });
    let (_, reply) = decode(&frame(&mut stream).unwrap(), Dialect::Plan9);
    assert_eq!(
        reply,
        Reply::Error {
            ename: "version not negotiated".to_owned()
        }
    );
    assert_eq!(frame(&mut stream), None);
}

#[test]
fn a_panic_stays_with_its_request() {
    let (client, _) = client(Limits::default());
    let root = client.attach(None, "me", "").unwrap();
    assert_eq!(refused(root.read("panic")), "internal error");
    assert_eq!(root.read("text").unwrap(), b"hello, world\n");
}

#[test]
fn many_threads_share_one_client() {
    let (client, _) = client(Limits::default());
    let root = client.attach(None, "me", "").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..50 {
                    assert_eq!(root.read("text").unwrap(), b"hello, world\n");
                }
            });
        }
    });
}

#[test]
fn a_time_out_gives_the_request_up_and_loses_nothing() {
    let (client, shared) = client(Limits::default());
    let root = client.attach(None, "me", "").unwrap();
    let mut file = root.open("stream", 0).unwrap();
    assert!(matches!(
        file.read_next(Some(Duration::from_millis(30))),
        Err(Error::TimedOut)
    ));
    shared.stream.lock().unwrap().extend_from_slice(b"later");
    shared.fed.notify_waiters();
    assert_eq!(
        file.read_next(Some(Duration::from_secs(20))).unwrap().as_ref(),
        b"later"
    );
}

#[test]
fn a_client_none_of_us_wrote_works() {
    let (stream, shared) = tree::connection(Limits::default());
    let client = ninep_client::sync::client::Client::new_from_unix_stream("me", "", stream).unwrap();
    assert_eq!(client.read_str("text").unwrap(), "hello, world\n");
    // It keeps the fid of a path it has opened for reading.
    client.clunk_path("text").unwrap();
    assert_eq!(client.write_str("text", 0, "bonjour").unwrap(), 7);
    assert_eq!(shared.text.lock().unwrap().as_slice(), b"bonjour");
    assert!(client.read_str("missing").is_err());
    // Last, because it opens the fid of the root itself.
    let names: Vec<String> = client
        .read_dir("")
        .unwrap()
        .iter()
        .map(|stat| stat.name.clone())
        .collect();
    assert_eq!(names, ["dir", "panic", "slow", "stream", "text"]);
}

#[test]
fn random_bytes_never_end_the_server() {
    // A fixed sequence, so that a failure can be seen again.
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    for _ in 0..60 {
        let (mut stream, _) = tree::connection(Limits::default());
        let mut bytes = Vec::new();
        Request::Version {
            msize: 8192,
            version: "9P2000.L".to_owned(),
        }
        .encode(0xffff, Dialect::Plan9, &mut bytes);
        Request::Attach {
            fid: 0,
            afid: u32::MAX,
            uname: String::new(),
            aname: String::new(),
            n_uname: beamtalk_ninep::NumericUser::NONE,
        }
        .encode(1, Dialect::Linux, &mut bytes);
        for _ in 0..40 {
            let length = (next() % 40) as usize;
            let mut body: Vec<u8> = (0..length).map(|_| (next() % 6) as u8).collect();
            let kind = (next() % 130) as u8;
            bytes.extend_from_slice(&(7 + length as u32).to_le_bytes());
            bytes.extend_from_slice(&[kind, (next() % 250) as u8, 0]);
            bytes.append(&mut body);
        }
        stream.write_all(&bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answers = Vec::new();
        stream.read_to_end(&mut answers).unwrap();
        assert!(answers.len() > 20, "the server stopped answering");
    }
}

#[test]
fn payloads_are_cut_without_copying() {
    let payload = Payload::from(b"0123456789".to_vec());
    assert_eq!(payload.clone().skip(3).cut(4).as_ref(), b"3456");
    assert_eq!(payload.clone().skip(30).as_ref(), b"");
    assert_eq!(payload.cut(100).len(), 10);
}
