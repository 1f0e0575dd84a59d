//! The same work on a bare Unix socket: the floor nobody can go below.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// As many bytes as a small read sends.
const MESSAGE: usize = 23;
const PIECE: usize = 131_072;

/// Echo `rounds` small messages, one at a time.
pub(crate) fn ping_pong(rounds: u32) -> anyhow::Result<Duration> {
    let (mut here, mut there) = UnixStream::pair()?;
    let echo = std::thread::spawn(move || {
        let mut buffer = [0; MESSAGE];
        while there.read_exact(&mut buffer).is_ok() && there.write_all(&buffer).is_ok() {}
    });
    let mut buffer = [7; MESSAGE];
    let began = Instant::now();
    for _ in 0..rounds {
        here.write_all(&buffer)?;
        here.read_exact(&mut buffer)?;
    }
    let took = began.elapsed();
    drop(here);
    anyhow::ensure!(echo.join().is_ok(), "the echo failed");
    Ok(took)
}

/// Bytes per second of `total` bytes pushed through.
pub(crate) fn stream(total: u64) -> anyhow::Result<f64> {
    let (mut here, mut there) = UnixStream::pair()?;
    let source = std::thread::spawn(move || {
        let piece = vec![7; PIECE];
        let mut left = total;
        while left > 0 && there.write_all(&piece).is_ok() {
            left = left.saturating_sub(PIECE as u64);
        }
    });
    let mut buffer = vec![0; PIECE];
    let began = Instant::now();
    let mut seen = 0;
    while seen < total {
        let count = here.read(&mut buffer)?;
        anyhow::ensure!(count > 0, "the source ended early");
        seen += count as u64;
    }
    let speed = seen as f64 / began.elapsed().as_secs_f64();
    anyhow::ensure!(source.join().is_ok(), "the source failed");
    Ok(speed)
}
