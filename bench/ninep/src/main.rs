//! The figures of the file server, against a bare Unix socket in the same run.
//!
//! Everything is measured on the real daemon, started with its own namespace and tmux server.

#![expect(clippy::disallowed_methods, reason = "a benchmark starts what it measures")]

mod bare;
mod daemon;
mod image;
mod wire;

use std::io::Write;
use std::time::{Duration, Instant};

use daemon::Daemon;
use wire::Wire;

const SMALL_READS: u32 = 50_000;
const IN_FLIGHT_READS: u32 = 400_000;
const STREAMED: u64 = 1 << 30;
const IDLE: Duration = Duration::from_secs(20);

struct Row {
    work: &'static str,
    ours: String,
    bare: String,
    ratio: String,
    wanted: &'static str,
    met: bool,
}

impl Row {
    /// Of work that has no bare side.
    fn alone(work: &'static str, ours: String, wanted: &'static str, met: bool) -> Self {
        Self {
            work,
            ours,
            bare: "-".to_owned(),
            ratio: "-".to_owned(),
            wanted,
            met,
        }
    }
}

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().collect();
    if let [_, work, socket] = words.as_slice() {
        return bare::serve(work, socket);
    }
    let mut out = std::io::stdout();
    writeln!(
        out,
        "| work | ours | bare socket | ratio | wanted | met |\n|---|---|---|---|---|---|"
    )?;
    image::measure()?;
    if words.get(1).is_some_and(|word| word == "image") {
        return Ok(());
    }
    let daemon = Daemon::start()?;
    print(&small_reads(&daemon)?)?;
    print(&[in_flight(&daemon)?])?;
    print(&[streamed(&daemon)?])?;
    print(&[listed(&daemon)?])?;
    print(&[readers(&daemon)?])?;
    drop(daemon);
    print(&[idle()?])
}

/// Told as soon as it is known: the whole run takes minutes.
fn print(rows: &[Row]) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    for row in rows {
        let met = if row.met { "yes" } else { "NO" };
        writeln!(
            out,
            "| {} | {} | {} | {} | {} | {met} |",
            row.work, row.ours, row.bare, row.ratio, row.wanted
        )?;
    }
    Ok(())
}

fn small_reads(daemon: &Daemon) -> anyhow::Result<[Row; 2]> {
    let mut wire = Wire::attach(&daemon.socket())?;
    let fid = wire.open(&format!("agents/{}/state", daemon.first()), 0)?;
    // The better of three, for both: the machine may be busy.
    let (mut ours, mut bare, mut threads) = (Duration::MAX, Duration::MAX, Duration::MAX);
    for _ in 0..3 {
        let began = Instant::now();
        for _ in 0..SMALL_READS {
            wire.read(fid, 0, 64)?;
        }
        ours = ours.min(began.elapsed());
        bare = bare.min(bare::ping_pong(SMALL_READS)?);
        threads = threads.min(bare::ping_pong_in_process(SMALL_READS)?);
    }
    let each = |time: Duration| time.as_secs_f64() * 1e6 / f64::from(SMALL_READS);
    let row = |work: &'static str, bare: Duration| {
        let ratio = ours.as_secs_f64() / bare.as_secs_f64();
        Row {
            work,
            ours: format!("{:.1} µs", each(ours)),
            bare: format!("{:.1} µs", each(bare)),
            ratio: format!("{ratio:.2}"),
            wanted: "within 2×",
            met: ratio <= 2.0,
        }
    };
    Ok([
        row("small read, one at a time; bare: two processes", bare),
        row("small read, one at a time; bare: two threads", threads),
    ])
}

fn in_flight(daemon: &Daemon) -> anyhow::Result<Row> {
    let mut wire = Wire::attach(&daemon.socket())?;
    let fid = wire.open(&format!("agents/{}/state", daemon.first()), 0)?;
    let mut best = 0.0_f64;
    for _ in 0..3 {
        let began = Instant::now();
        wire.pipeline(fid, 64, 64, IN_FLIGHT_READS)?;
        best = best.max(f64::from(IN_FLIGHT_READS) / began.elapsed().as_secs_f64());
    }
    Ok(Row::alone(
        "64 reads in flight",
        format!("{best:.0} /s"),
        "100,000 /s",
        best >= 100_000.0,
    ))
}

fn streamed(daemon: &Daemon) -> anyhow::Result<Row> {
    let mut wire = Wire::attach(&daemon.socket())?;
    let fid = wire.open(&format!("agents/{}/output", daemon.first()), 0)?;
    let (mut ours, mut bare) = (0.0_f64, 0.0_f64);
    for _ in 0..2 {
        let began = Instant::now();
        let bytes = wire.stream(fid, daemon::OUTPUT_BYTES, STREAMED)?;
        ours = ours.max(bytes as f64 / began.elapsed().as_secs_f64());
        bare = bare.max(bare::stream(STREAMED)?);
    }
    let ratio = ours / bare;
    Ok(Row {
        work: "1 GB through a file",
        ours: format!("{:.2} GB/s", ours / 1e9),
        bare: format!("{:.2} GB/s", bare / 1e9),
        ratio: format!("{ratio:.2}"),
        wanted: "1 GB/s or half of bare",
        met: ours >= 1e9 || ratio >= 0.5,
    })
}

fn listed(daemon: &Daemon) -> anyhow::Result<Row> {
    let mut wire = Wire::attach(&daemon.socket())?;
    let began = Instant::now();
    let names = wire.list("agents")?;
    let sessions: Vec<&String> = names
        .iter()
        .filter(|name| name.len() == 8 && daemon.has(name))
        .collect();
    for id in &sessions {
        let fid = wire.open(&format!("agents/{id}/state"), 0)?;
        anyhow::ensure!(wire.read(fid, 0, 64)? == b"stopped\n", "unexpected state");
        wire.clunk(fid)?;
    }
    let took = began.elapsed();
    anyhow::ensure!(
        sessions.len() == daemon::SESSIONS,
        "{} sessions listed",
        sessions.len()
    );
    Ok(Row::alone(
        "500 sessions' state files listed and read",
        format!("{:.1} ms", took.as_secs_f64() * 1e3),
        "under 1 s",
        took < Duration::from_secs(1),
    ))
}

fn readers(daemon: &Daemon) -> anyhow::Result<Row> {
    const CONNECTIONS: usize = 20;
    const EACH: usize = 50;
    let mut wires = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut wire = Wire::attach(&daemon.socket())?;
        for _ in 0..EACH {
            let fid = wire.open("agents/events", 0)?;
            wire.start_read(fid, 4096)?;
        }
        // Answered only after all reads above have been received.
        wire.list("agents/roles")?;
        wires.push(wire);
    }
    let mut control = Wire::attach(&daemon.socket())?;
    let fid = control.open(&format!("agents/{}/alias", daemon.first()), 1)?;
    let began = Instant::now();
    control.write(fid, b"bench")?;
    for wire in &mut wires {
        for _ in 0..EACH {
            wire.await_read()?;
        }
    }
    let took = began.elapsed();
    Ok(Row::alone(
        "1,000 readers on events, one event",
        format!("{:.1} ms", took.as_secs_f64() * 1e3),
        "100 ms",
        took < Duration::from_millis(100),
    ))
}

fn idle() -> anyhow::Result<Row> {
    let daemon = Daemon::with_live_sessions(20)?;
    let before = daemon.cpu()?;
    std::thread::sleep(IDLE);
    let used = daemon.cpu()?.saturating_sub(before);
    let percent = used.as_secs_f64() / IDLE.as_secs_f64() * 100.0;
    let resident = daemon.resident_megabytes()?;
    Ok(Row::alone(
        "idle daemon, 20 sessions",
        format!("{percent:.3} % of a core, {resident:.1} MB"),
        "0.1 %, 15 MB",
        percent <= 0.1 && resident <= 15.0,
    ))
}
