//! `workspace transcript`: what was written to the Transcript, and what is being written.

use std::time::Duration;

use beamtalk_wire::requests::{Eval, Subscribe};
use beamtalk_wire::{Channel, Event, TranscriptEvent};
use serde::Deserialize;
use serde_json::{Value, json};

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
        let recent = Eval {
            code: "Transcript recent".to_owned(),
            ..Eval::default()
        };
        let answer = connection.ask(&recent).await.map_err(Fault::from)?;
        let entries = answer.value.as_ref().and_then(Value::as_array);
        let entries = entries.map_or(&[][..], Vec::as_slice);
        for entry in entries
            .iter()
            .skip(entries.len().saturating_sub(arguments.recent))
        {
            show(terminal, entry.as_str().unwrap_or_default())?;
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
