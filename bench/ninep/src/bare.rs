//! The same work on a bare Unix socket: the floor nobody can go below. Like the daemon, the other
//! side is a process of its own.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::Context;

/// As many bytes as a small read sends.
const MESSAGE: usize = 23;
const PIECE: usize = 131_072;

/// The other side: echo small messages, or push bytes until the peer is gone.
pub(crate) fn serve(work: &str, socket: &str) -> anyhow::Result<()> {
    let (mut stream, _) = UnixListener::bind(socket)?.accept()?;
    if work == "echo" {
        let mut buffer = [0; MESSAGE];
        while stream.read_exact(&mut buffer).is_ok() && stream.write_all(&buffer).is_ok() {}
    } else {
        let piece = vec![7; PIECE];
        while stream.write_all(&piece).is_ok() {}
    }
    Ok(())
}

fn start(work: &str) -> anyhow::Result<(UnixStream, Child, tempfile::TempDir)> {
    let directory = tempfile::tempdir()?;
    let socket = directory.path().join("bare");
    let child = Command::new(std::env::current_exe()?)
        .arg(work)
        .arg(&socket)
        .spawn()?;
    let limit = Instant::now() + Duration::from_secs(5);
    while Instant::now() < limit {
        if let Ok(stream) = UnixStream::connect(&socket) {
            return Ok((stream, child, directory));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    None.context("the bare side did not start")
}

fn echoed(mut stream: UnixStream, rounds: u32) -> anyhow::Result<Duration> {
    let mut buffer = [7; MESSAGE];
    let began = Instant::now();
    for _ in 0..rounds {
        stream.write_all(&buffer)?;
        stream.read_exact(&mut buffer)?;
    }
    Ok(began.elapsed())
}

/// Echo `rounds` small messages, one at a time.
pub(crate) fn ping_pong(rounds: u32) -> anyhow::Result<Duration> {
    let (stream, mut child, _directory) = start("echo")?;
    let took = echoed(stream, rounds)?;
    child.wait()?;
    Ok(took)
}

/// The same with a thread of this process on the other side.
pub(crate) fn ping_pong_in_process(rounds: u32) -> anyhow::Result<Duration> {
    let (stream, mut other) = UnixStream::pair()?;
    let echo = std::thread::spawn(move || {
        let mut buffer = [0; MESSAGE];
        while other.read_exact(&mut buffer).is_ok() && other.write_all(&buffer).is_ok() {}
    });
    let took = echoed(stream, rounds)?;
    anyhow::ensure!(echo.join().is_ok(), "the other side failed");
    Ok(took)
}

/// Bytes per second of `total` bytes pushed through.
pub(crate) fn stream(total: u64) -> anyhow::Result<f64> {
    let (mut stream, mut child, _directory) = start("push")?;
    let mut buffer = vec![0; PIECE];
    let began = Instant::now();
    let mut seen = 0;
    while seen < total {
        let count = stream.read(&mut buffer)?;
        anyhow::ensure!(count > 0, "the source ended early");
        seen += count as u64;
    }
    let speed = seen as f64 / began.elapsed().as_secs_f64();
    drop(stream);
    child.wait()?;
    Ok(speed)
}
