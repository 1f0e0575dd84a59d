//! Assist, the interactive terminal client: sessions, a preview, mail. It works only through the
//! tree; `model` decides what keys do, `view` draws, `remote` does the file operations.

mod editor;
mod model;
mod remote;
mod view;

use std::io::IsTerminal;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, DisableBracketedPaste, EnableBracketedPaste, Event, KeyEventKind};
use ratatui::crossterm::execute;

use crate::{Client, Failure};
use model::{Action, Model};
use remote::Remote;

const LOOK: Duration = Duration::from_millis(100);
const RECONNECT: Duration = Duration::from_secs(1);

/// Who starts and stops the daemon, and shows a session in its terminal.
pub trait Keeper {
    fn start(&self) -> Result<(), Failure>;
    fn stop(&self) -> Result<(), Failure>;
    fn attach(&self, session: &str) -> Result<ExitStatus, Failure>;
}

/// Show the sessions until the user leaves; the daemon is started first unless that is not wanted.
pub fn assist(client: &Client, keeper: &dyn Keeper, no_start: bool) -> Result<(), Failure> {
    if !(std::io::stdin().is_terminal() && std::io::stdout().is_terminal()) {
        return Err(Failure::plain("assist needs a terminal"));
    }
    if !no_start {
        keeper.start()?;
    }
    let mut terminal = take_terminal()?;
    let outcome = interact(client, keeper, &mut terminal);
    give_terminal_back();
    outcome
}

fn take_terminal() -> std::io::Result<DefaultTerminal> {
    let terminal = ratatui::try_init()?;
    // Without it pasted lines are typed ones, which is less but enough.
    execute!(std::io::stdout(), EnableBracketedPaste).ok();
    Ok(terminal)
}

fn give_terminal_back() {
    execute!(std::io::stdout(), DisableBracketedPaste).ok();
    ratatui::restore();
}

fn interact(client: &Client, keeper: &dyn Keeper, terminal: &mut DefaultTerminal) -> Result<(), Failure> {
    let mut remote = Remote::new(client, keeper);
    let mut model = Model::default();
    let mut looked: Option<Instant> = None;
    let mut is_drawn = false;
    loop {
        let due = looked.is_none_or(|at| at.elapsed() >= RECONNECT);
        if due || remote.has_news() {
            looked = Some(Instant::now());
            remote.refresh(&mut model);
            is_drawn = false;
        }
        if !is_drawn {
            terminal.draw(|frame| view::draw(frame, &mut model))?;
            is_drawn = true;
        }
        if !event::poll(LOOK)? {
            continue;
        }
        is_drawn = false;
        let key = match event::read()? {
            Event::Key(key) if key.kind == KeyEventKind::Press => key,
            Event::Paste(text) => {
                model.paste(&text);
                continue;
            }
            _ => continue,
        };
        match model.press(key) {
            Action::None => {}
            Action::Quit => return Ok(()),
            Action::Attach(id) => {
                give_terminal_back();
                let shown = keeper.attach(&id);
                *terminal = take_terminal()?;
                terminal.clear()?;
                model.status = match shown {
                    Err(failure) => failure.message().to_owned(),
                    Ok(status) if !status.success() => format!("tmux: {status}"),
                    Ok(_) => String::new(),
                };
                looked = None;
            }
            action => {
                remote.perform(&mut model, action);
                looked = None;
            }
        }
    }
}
