//! The server of an agent's session, inside of it: bytes are copied to the file `mcp` of its door; what may be done is
//! decided outside.

use std::io::{Read, Write};

use beamtalk_ninep::{Attachment, File};

use crate::enter;

/// Bytes that are copied at a time.
const PIECE: usize = 32 * 1024;

/// The file of the session that this process is in, if it is in one that has a door.
pub fn own_door() -> Option<(Attachment, File)> {
    let id = std::env::var("AGENT_ID").ok().filter(|id| !id.is_empty())?;
    let tree = enter().ok()?;
    let file = tree.open(&format!("agents/{id}/mcp"), 2).ok()?;
    Some((tree, file))
}

/// Copy bytes both ways until one side ends, after the first line for the server; answers whether the door held.
pub fn copy((_tree, file): &(Attachment, File), first: Option<String>) -> bool {
    let to_server = file.writer();
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        let mut piece = vec![0; PIECE];
        if let Some(line) = first
            && to_server.write_at(0, line.as_bytes()).is_err()
        {
            return;
        }
        loop {
            let count = input.read(&mut piece).unwrap_or(0);
            // A write of nothing is the end of the input.
            let read = piece.get(..count).unwrap_or_default();
            if to_server.write_at(0, read).is_err() || count == 0 {
                return;
            }
        }
    });
    let mut from_server = file.writer();
    let mut output = std::io::stdout().lock();
    loop {
        let piece = match from_server.read_next(None) {
            Ok(piece) if !piece.is_empty() => piece,
            Ok(_) => return true,
            Err(_) => return false,
        };
        if output
            .write_all(piece.as_ref())
            .and_then(|()| output.flush())
            .is_err()
        {
            return true;
        }
    }
}
