//! Whatever standard input and output are, every request is answered once and the server ends with its input.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::fs::OFlags;
use serde_json::{Value, json};

use crate::home::Home;

/// Enough answers that no pipe holds them.
const REQUESTS: u64 = 30;

fn requests() -> String {
    let one = |id: u64| {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/list", "params": {"_meta": meta}}).to_string()
            + "\n"
    };
    (0..REQUESTS).map(one).collect()
}

fn server(home: &Home, input: impl Into<Stdio>, output: impl Into<Stdio>) -> Child {
    let mut command = home.command(&["mcp"]);
    command
        .env_remove("AGENT_ID")
        .stdin(input)
        .stdout(output)
        .stderr(Stdio::piped());
    command.spawn().expect("the server")
}

/// All requests are answered in these lines, and the server is content.
fn expect_answers(mut server: Child, output: impl Read) {
    let mut ids: Vec<u64> = BufReader::new(output)
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(&line.expect("text")).expect("JSON")["id"]
                .as_u64()
                .expect("an id")
        })
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..REQUESTS).collect::<Vec<u64>>());
    assert_eq!(server.wait().expect("an end").code(), Some(0));
    let mut said = String::new();
    server
        .stderr
        .take()
        .expect("a pipe")
        .read_to_string(&mut said)
        .expect("text");
    assert_eq!(said, "");
}

#[test]
fn a_file_is_read_and_a_file_is_written() {
    let home = Home::new("mcp-files");
    let (input, output) = (home.project().join("in"), home.project().join("out"));
    std::fs::write(&input, requests()).expect("a file");
    let mut server = server(
        &home,
        File::open(&input).expect("a file"),
        File::create(&output).expect("a file"),
    );
    server.wait().expect("an end");
    expect_answers(server, File::open(&output).expect("a file"));
}

/// Some who start programs switch their ends of pipes to ones that never wait.
#[test]
fn pipes_that_never_wait_lose_nothing() {
    let home = Home::new("mcp-flags");
    let ends = || {
        let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).expect("a pipe");
        (read, File::from(write))
    };
    let ((input, mut requested), (answers, output)) = (ends(), ends());
    for end in [&input, &OwnedFd::from(output.try_clone().expect("an end"))] {
        let flags = rustix::fs::fcntl_getfl(end).expect("flags");
        rustix::fs::fcntl_setfl(end, flags | OFlags::NONBLOCK).expect("flags");
    }
    let server = server(&home, input, output);
    requested.write_all(requests().as_bytes()).expect("written");
    // By now the pipe is full and nobody reads.
    std::thread::sleep(Duration::from_millis(500));
    drop(requested);
    expect_answers(server, File::from(answers));
}

#[test]
fn a_socket_and_requests_in_pieces_are_taken() {
    let home = Home::new("mcp-socket");
    let (mut ours, theirs) = UnixStream::pair().expect("a socket");
    let server = server(
        &home,
        OwnedFd::from(theirs.try_clone().expect("an end")),
        OwnedFd::from(theirs),
    );
    let mut answers = ours.try_clone().expect("an end");
    let writer = std::thread::spawn(move || {
        for piece in requests().as_bytes().chunks(7) {
            ours.write_all(piece).expect("written");
        }
        ours.shutdown(std::net::Shutdown::Write).expect("an end");
    });
    expect_answers(server, &mut answers);
    writer.join().expect("written");
}
