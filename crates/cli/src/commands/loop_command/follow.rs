//! `beamtalk loop status --follow`: the table again whenever it changes.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};

use beamtalk_loop::control::{Answer, Ask};
use beamtalk_loop::core::Status;
use beamtalk_storage::time::{now_seconds, parse_seconds};

use super::status::table;
use super::{Located, no_loop};
use crate::exit::Exit;

pub(super) fn follow(place: &Located, json: bool) -> anyhow::Result<Exit> {
    let Some(mut client) = place.connect() else {
        return no_loop();
    };
    let terminal = std::io::stdout().is_terminal();
    let mut shown = BTreeSet::new();
    let mut answer = Some(client.ask(&Ask::Follow)?);
    while let Some(Answer::Status(status)) = answer {
        let mut out = std::io::stdout().lock();
        if json {
            writeln!(out, "{}", serde_json::to_string(&status)?)?;
        } else if terminal {
            // Home, then each line cleared to its end, then everything below.
            write!(out, "\x1b[H")?;
            for line in table(&status, now_seconds()) {
                writeln!(out, "{line}\x1b[K")?;
            }
            write!(out, "\x1b[J")?;
        } else {
            for line in changed_rows(&status, &mut shown) {
                writeln!(out, "{line}")?;
            }
        }
        out.flush()?;
        // A loop that ends closes the connection, maybe in the middle of a line.
        answer = client.receive().unwrap_or(None);
    }
    Ok(Exit::Success)
}

/// The rows that say something new. Time passing is nothing new, so rows are compared as they
/// would be at the moment the loop began.
fn changed_rows(status: &Status, shown: &mut BTreeSet<String>) -> Vec<String> {
    let began = parse_seconds(&status.since).unwrap_or(0);
    let timeless = table(status, began);
    let rows = table(status, now_seconds());
    let fresh = timeless
        .iter()
        .zip(rows)
        .filter(|(timeless, _)| !shown.contains(*timeless));
    let fresh = fresh.map(|(_, row)| row).collect();
    *shown = timeless.into_iter().collect();
    fresh
}
