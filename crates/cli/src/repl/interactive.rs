//! A session at a terminal.

use std::sync::Arc;

use serde_json::Map;

use super::answers::actor_lines;
use super::editor::{Console, Typed};
use super::greeting::{self, About, LISTED_ACTORS};
use super::history::History;
use super::link::Link;
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
    is_attached: bool,
    history: (History, Vec<String>),
) -> anyhow::Result<Exit> {
    let mut console = Console::new(palette, history)?;
    let notices = Arc::new(Notices::start(console.printer())?);
    let actors = if is_attached {
        link.ask("actors", Map::new())
            .map(|answer| actor_lines(&answer, LISTED_ACTORS))
            .unwrap_or_default()
    } else {
        Vec::new()
    };
    terminal.status(greeting::text(about, &link.session(), &actors));
    let link = link.keep(notices.clone())?;
    // From here on Ctrl-C is ours, at the prompt and during an evaluation.
    drop(link.interrupts()?);
    console.attach(notices, link.asker());
    let mut session = Session::new(link, Screen::new(palette, false), Mode::Terminal);
    let exit = loop {
        if session.is_down() {
            break Exit::NotRunning;
        }
        match console.read()? {
            Typed::Input(input) => {
                if let Outcome::Leave(exit) = session.handle(&input, &mut console)? {
                    break exit;
                }
            }
            // A keeper that gave up wakes the prompt in this way too.
            Typed::Cancelled if session.is_down() => break Exit::NotRunning,
            Typed::Cancelled => terminal.error("Cancelled"),
            Typed::End => break Exit::Success,
        }
    };
    session.close();
    Ok(exit)
}
