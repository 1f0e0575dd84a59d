//! Assist, the interactive terminal client: sessions, a preview, mail. It works only through the
//! tree; `model` decides what keys do, `view` draws, `remote` does the file operations.

mod model;
mod remote;
mod view;

use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyEventKind};

use super::attach::tmux_command;
use super::context::{Client, Failure};
use super::daemon::ensure_started;
use crate::exit::Exit;
use model::{Action, Model};
use remote::Remote;

const LOOK: Duration = Duration::from_millis(100);
const RECONNECT: Duration = Duration::from_secs(1);

pub(super) fn run(client: &Client, no_start: bool) -> Result<Exit, Failure> {
    ensure_started(client, no_start)?;
    let mut terminal = ratatui::try_init()?;
    let outcome = interact(client, &mut terminal);
    ratatui::restore();
    outcome
}

fn interact(client: &Client, terminal: &mut ratatui::DefaultTerminal) -> Result<Exit, Failure> {
    let mut remote = Remote::new(client);
    let mut model = Model::default();
    let mut looked: Option<Instant> = None;
    loop {
        let due = looked.is_none_or(|at| at.elapsed() >= RECONNECT);
        if due || remote.has_news() {
            looked = Some(Instant::now());
            remote.refresh(&mut model);
        }
        terminal.draw(|frame| view::draw(frame, &model))?;
        if !event::poll(LOOK)? {
            continue;
        }
        let Event::Key(key) = event::read()? else { continue };
        if key.kind != KeyEventKind::Press {
            continue;
        }
        match model.press(key) {
            Action::None => {}
            Action::Quit => return Ok(Exit::Success),
            Action::Attach(id) => {
                ratatui::restore();
                let shown = tmux_command(client, &id, false).and_then(|mut command| Ok(command.status()?));
                *terminal = ratatui::try_init()?;
                terminal.clear()?;
                if let Err(failure) = shown {
                    failure.message().clone_into(&mut model.status);
                }
            }
            action => {
                remote.perform(&mut model, action);
                looked = None;
            }
        }
    }
}
