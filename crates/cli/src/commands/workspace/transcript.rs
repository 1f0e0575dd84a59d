//! `workspace transcript`: what was written to the Transcript, and what is being written.

use std::time::Duration;

use beamtalk_client::Connection;
use beamtalk_wire::requests::{Subscribe, Transcript};
use beamtalk_wire::{Channel, Event, TranscriptEvent};
use serde::Deserialize;
use serde_json::json;

use crate::exit::{Exit, Fault};
use crate::terminal::Terminal;
use crate::workspace_link::{attached, find_place};

#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    which: super::Which,
    /// How many of the last entries.
    #[arg(long, value_name = "N", default_value_t = 50)]
    recent: usize,
    /// Go on with what is written from now on.
    #[arg(short, long)]
    follow: bool,
}

pub(super) fn run(terminal: &mut Terminal, arguments: &Arguments) -> anyhow::Result<Exit> {
    let place = find_place(terminal, arguments.which.name.as_deref())?;
    let info = place.running()?.ok_or_else(|| place.is_not_running())?;
    attached(&place, &info, async |connection, mut events| {
        if arguments.follow {
            let subscribe = Subscribe {
                channels: vec![Channel::Transcript],
                ..Subscribe::default()
            };
            connection.ask(&subscribe).await.map_err(Fault::from)?;
        }
        for text in recent(&connection, arguments.recent).await?.iter().rev() {
            show(terminal, text)?;
        }
        if arguments.follow {
            while let Some(event) = events.recv().await {
                if let Ok(Event::Transcript(TranscriptEvent::Text { text, .. })) = Event::deserialize(&event)
                {
                    show(terminal, &text)?;
                }
            }
            return Err(Fault::not_running("the workspace ended").into());
        }
        // Say goodbye: what the workspace closes then ends the events.
        drop(connection);
        let farewell = async { while events.recv().await.is_some() {} };
        drop(tokio::time::timeout(Duration::from_secs(1), farewell).await);
        Ok(Exit::Success)
    })
}

/// So many of the last entries, the newest first; they come in as many answers as they need.
async fn recent(connection: &Connection, count: usize) -> anyhow::Result<Vec<String>> {
    let mut texts = Vec::new();
    let mut before = None;
    while texts.len() < count {
        let request = Transcript {
            before,
            limit: u64::try_from(count - texts.len()).ok(),
            ..Transcript::default()
        };
        let page = connection.ask(&request).await.map_err(Fault::from)?;
        before = page.entries.first().map(|entry| entry.seq);
        texts.extend(page.entries.into_iter().rev().map(|entry| entry.text));
        if before.is_none_or(|seq| seq <= page.first) {
            break;
        }
    }
    Ok(texts)
}

fn show(terminal: &mut Terminal, text: &str) -> anyhow::Result<()> {
    if terminal.is_json() {
        terminal.print(json!({"text": text}))?;
    } else {
        use std::io::Write;
        let mut out = std::io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()?;
    }
    Ok(())
}
