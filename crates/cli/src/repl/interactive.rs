//! A session at a terminal.

use std::sync::Arc;

use beamtalk_wire::requests::Actors;

use super::answers::actor_lines;
use super::editor::{Console, Typed};
use super::greeting::{self, About, Arrival, LISTED_ACTORS};
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
    let actors = if arrival == Arrival::Attached {
        link.ask(&Actors::default())
            .map(|answer| actor_lines(&answer.actors, LISTED_ACTORS))
            .unwrap_or_default()
    } else {
        Vec::new()
    };
    let state = link.ask(&link::state());
    terminal.status(greeting::text(about, &link.session(), &actors));
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
        if !console.has_draft() {
            session.ask_about_waiting(&mut console)?;
        }
        match console.read()? {
            Typed::Input(input) => {
                match session.handle(&input, &mut console)? {
                    // Told at the top.
                    Outcome::Leave(_) if session.is_down() => {}
                    Outcome::Leave(exit) => break exit,
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
