//! `agents tap <id>` appends what a window prints to the session's segments; `agents tick <id>`
//! wakes the daemon. Both only touch files of the session, so they work while no daemon runs.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use crate::files;
use crate::output::{SEGMENT, segment_path, segments};
use crate::places::Places;
use crate::session::launch::Launch;

const READY: &str = "tap.ready";
pub(crate) const TICK: &str = "tick";

/// The launch the current tap serves.
pub(crate) fn ready_number(session: &Path) -> Option<u64> {
    let bytes = files::read_limited(&session.join(READY), 32).ok()?;
    String::from_utf8(bytes).ok()?.trim().parse().ok()
}

/// Copy standard input into the segments until it ends.
pub fn tap(places: &Places, id: &str) -> io::Result<()> {
    let session = places.session(id);
    let directory = session.join("output");
    files::make_directory(&directory)?;
    let launch: Launch =
        serde_json::from_slice(&files::read_limited(&session.join("launch.json"), 1 << 20)?)?;
    let mut index = segments(&directory).last().copied().unwrap_or(0);
    let mut file = files::appender(&segment_path(&directory, index))?;
    let mut length = file.metadata()?.len();
    files::replace_quickly(&session.join(READY), launch.number.to_string().as_bytes())?;
    // The raw descriptor, so that no byte waits in a buffer of ours.
    let mut input = File::from(rustix::io::dup(io::stdin())?);
    let mut buffer = vec![0; 65536];
    loop {
        let count = match input.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let mut rest = buffer.get(..count).unwrap_or_default();
        while !rest.is_empty() {
            if length >= SEGMENT {
                index += 1;
                file = files::appender(&segment_path(&directory, index))?;
                length = file.metadata()?.len();
            }
            let room = usize::try_from(SEGMENT.saturating_sub(length))
                .unwrap_or(rest.len())
                .min(rest.len());
            let (now, later) = rest.split_at(room);
            file.write_all(now)?;
            length += now.len() as u64;
            rest = later;
        }
    }
}

/// Tell the daemon that something happened to the window of `id`.
pub fn tick(places: &Places, id: &str) -> io::Result<()> {
    let session = places.session(id);
    if session.is_dir() {
        files::replace_quickly(&session.join(TICK), b"")
    } else {
        Ok(())
    }
}
