//! A session at a terminal.

use std::sync::Arc;

use beamtalk_wire::requests::{Health, TopActors};

use super::editor::{Console, Typed};
use super::greeting::{self, About, Arrival};
use super::history::History;
use super::link::{self, Link};
use super::notices::Notices;
use super::paint::Palette;
use super::screen::Screen;
use super::session::{Mode, Outcome, Session};
use crate::exit::Exit;
use crate::terminal::Terminal;

/// Greet, then read and evaluate until the user leaves.
pub(crate) fn run(
    terminal: &mut Terminal,
    palette: Palette,
    link: Link,
    about: &About,
    arrival: Arrival,
    history: (History, Vec<String>),
) -> anyhow::Result<Exit> {
    let mut console = Console::new(palette, history)?;
    let notices = Arc::new(Notices::start(console.printer())?);
    let project = link
        .ask(&Health { brief: Some(true) })
        .and_then(|health| health.project);
    let running = match arrival {
        Arrival::Attached => link.ask(&TopActors {
            limit: Some(0),
            ..TopActors::default()
        }),
        Arrival::Started => None,
    };
    let state = link.ask(&link::state());
    terminal.status(greeting::text(about, project.as_ref(), running.as_ref()));
    if arrival == Arrival::Attached {
        greeting::state_lines(state.as_ref())
            .iter()
            .for_each(|line| terminal.status(line));
    }
    let link = link.keep(notices.clone())?;
    // From here on Ctrl-C is ours, at the prompt and during an evaluation.
    drop(link.interrupts()?);
    console.attach(notices, link.asker());
    let mut session = Session::new(link, Screen::new(palette, false), Mode::Terminal);
    let exit = loop {
        if session.is_down() {
            console.keep_draft()?;
            // Said here and not as a notice: an editor that is about to return prints no more of those.
            terminal.error("The workspace cannot be reached.");
            break Exit::NotRunning;
        }
        // Keys meant for an input that is being typed must not answer a question: it waits for an empty line.
        let ahead = if console.has_draft() {
            session.hear_news();
            None
        } else {
            session.ask_about_waiting(&mut console)?
        };
        let typed = match ahead {
            Some(line) => match console.accept(&line)? {
                Some(input) => Typed::Input(input),
                None => continue,
            },
            None => console.read()?,
        };
        match typed {
            Typed::Input(input) => {
                match session.handle(&input, &mut console)? {
                    // Told at the top.
                    Outcome::Leave(_) if session.is_down() => {}
                    Outcome::Leave(exit) => break exit,
                    Outcome::Failed(Exit::Forced) => console.drop_queue(),
                    Outcome::Done | Outcome::Failed(_) => {}
                }
            }
            // The loop looks what is the matter.
            Typed::Woken => {}
            Typed::Cancelled => terminal.error("Cancelled"),
            Typed::End => break Exit::Success,
        }
    };
    session.close();
    Ok(exit)
}
