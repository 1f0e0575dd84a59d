//! The agents' events as announcements of the image.

use std::time::Duration;

use beamtalk_etf::Term;
use beamtalk_ninep::{Attachment, Error};
use serde::Deserialize;
use serde_json::Value;

use super::{AgentsDoor, DoorFault};
use crate::news::{Item, News, symbol};

/// How long to wait before the daemon is looked for again.
const PAUSE: Duration = Duration::from_secs(2);
/// As much of an answer as an announcement carries.
const OUTPUT_LIMIT: usize = 1 << 20;
/// The events the image hears of.
const TYPES: &str = "type StateChange,SessionCreated,SessionRemoved,TurnEnd,Crash,BotRecv,UserRecv\n";

#[derive(Deserialize)]
struct Event {
    source: String,
    r#type: String,
    #[serde(default)]
    data: Value,
}

/// Hand on events for as long as the daemon lives; runs in a thread of its own.
pub(crate) fn follow(door: &AgentsDoor, news: &News) {
    loop {
        // Nobody there, or nobody any more: both are seen again in a moment.
        if let Ok(tree) = door() {
            drop(pass_on(&tree, door, news));
        }
        std::thread::sleep(PAUSE);
    }
}

fn pass_on(tree: &Attachment, door: &AgentsDoor, news: &News) -> Result<(), Error> {
    let mut events = tree.open("agents/events", 2)?;
    events.write_at(0, TYPES.as_bytes())?;
    // Answers are read over a connection of their own, so that events wait for nothing else.
    let answers = match door() {
        Ok(answers) => answers,
        Err(DoorFault::Unreachable(_) | DoorFault::Denied(_)) => return Ok(()),
    };
    let mut pending = Vec::new();
    loop {
        let piece = events.read_next(None)?;
        if piece.is_empty() {
            return Ok(());
        }
        pending.extend_from_slice(piece.as_ref());
        while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = pending.drain(..=end).collect();
            if let Ok(event) = serde_json::from_slice::<Event>(&line)
                && let Some(item) = item(&event, |id| output(&answers, id))
            {
                news.put(item);
            }
        }
    }
}

fn output(tree: &Attachment, id: &str) -> String {
    let bytes = tree.read(&format!("agents/{id}/out")).unwrap_or_default();
    let start = bytes.len().saturating_sub(OUTPUT_LIMIT);
    String::from_utf8_lossy(bytes.get(start..).unwrap_or_default()).into_owned()
}

fn item(event: &Event, output: impl FnOnce(&str) -> String) -> Option<Item> {
    let agent = ("agentId", Term::binary(&event.source));
    let text = |field: &str| event.data[field].as_str().unwrap_or_default();
    Some(match event.r#type.as_str() {
        "StateChange" => Item::new(
            "AgentStateChanged",
            [
                agent,
                ("oldState", symbol(text("old_state"))),
                ("newState", symbol(text("new_state"))),
            ],
        ),
        "SessionCreated" => Item::new("AgentCreated", [agent]),
        "SessionRemoved" => Item::new("AgentRemoved", [agent]),
        "Crash" => Item::new("AgentCrashed", [agent]),
        "TurnEnd" => {
            let turn = Term::Integer(event.data["turn"].as_i64().unwrap_or_default());
            let output = Term::binary(output(&event.source));
            Item::new("AgentTurnEnded", [agent, ("turn", turn), ("output", output)])
        }
        "BotRecv" | "UserRecv" => Item::new(
            "AgentMailReceived",
            [agent, ("messageId", Term::binary(text("id")))],
        ),
        _ => return None,
    })
}
