//! The port mapper of distributed nodes: started when none answers, ended with the last node that used it.
//!
//! It is one program for all nodes of a machine, so it outlives the workspace that started it. A file in the state
//! directory remembers that it is ours to end.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use beamtalk_storage::{PRIVATE_FILE, StateDirectory};

/// Its number is known to every node.
const DEFAULT_PORT: u16 = 4369;
const RECORD: &str = "epmd.port";
/// How long a new one may take to answer, and an old one to notice that the last node has gone.
const START_TIME: Duration = Duration::from_secs(5);
const END_TIME: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(20);

/// The port nodes look for it, by the variable Erlang has for that.
pub(crate) fn port() -> u16 {
    std::env::var("ERL_EPMD_PORT")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(DEFAULT_PORT)
}

fn connect() -> io::Result<TcpStream> {
    let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port());
    TcpStream::connect_timeout(&address, Duration::from_secs(1))
}

/// Start one on this address, unless one answers.
pub(crate) async fn ensure(program: &Path, address: IpAddr, state: &StateDirectory) -> io::Result<()> {
    if connect().is_ok() {
        return Ok(());
    }
    let mut command = Command::new(program);
    command.args(["-daemon", "-port", &port().to_string()]);
    // Without an address it listens on all of them.
    if !address.is_unspecified() {
        command.args(["-address", &address.to_string()]);
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    let deadline = Instant::now() + START_TIME;
    while let Err(cause) = connect() {
        if Instant::now() >= deadline {
            return Err(cause);
        }
        tokio::time::sleep(PAUSE).await;
    }
    let record = state
        .root()
        .write_atomically(RECORD, port().to_string().as_bytes(), PRIVATE_FILE);
    record.map_err(io::Error::other)
}

/// End the one a workspace of this user started, if no node uses it any more.
pub(crate) async fn leave(state: &StateDirectory) {
    let record = state.root().read(RECORD).ok().flatten();
    if record.as_deref() != Some(port().to_string().as_bytes()) {
        return;
    }
    let deadline = Instant::now() + END_TIME;
    loop {
        match ask_to_end() {
            Ok(false) if Instant::now() < deadline => tokio::time::sleep(PAUSE).await,
            // Other nodes use it; the last of them ends it.
            Ok(false) => return,
            Ok(true) | Err(_) => break,
        }
    }
    if let Err(error) = state.root().remove(RECORD) {
        tracing::error!("{error}");
    }
}

/// The request to end, which it refuses while nodes are registered.
fn ask_to_end() -> io::Result<bool> {
    let mut stream = connect()?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    stream.write_all(&[0, 1, b'k'])?;
    let mut answer = [0; 2];
    stream.read_exact(&mut answer)?;
    Ok(answer == *b"OK")
}
