//! A session at a terminal.

use std::sync::Arc;

use beamtalk_client::Exit;
use beamtalk_wire::requests::{Health, TopActors};

use crate::Opening;
use crate::editor::{Console, Typed};
use crate::error::Result;
use crate::greeting::{self, About, Arrival};
use crate::history::History;
use crate::link;
use crate::notices::Notices;
use crate::screen::say;
use crate::session::{Mode, Outcome, Session};

impl Opening {
    /// Greet, then read and evaluate until the user leaves.
    pub fn interact(mut self, about: &About, history: (History, Vec<String>)) -> Result<Exit> {
        let mut console = Console::new(self.screen.palette, self.manual, history)?;
        let notices = Arc::new(Notices::start(console.printer())?);
        let project = self
            .link
            .ask(&Health { brief: Some(true) })
            .and_then(|health| health.project);
        let running = match self.arrival {
            Arrival::Attached => self.link.ask(&TopActors {
                limit: Some(0),
                ..TopActors::default()
            }),
            Arrival::Started => None,
        };
        let state = self.link.ask(&link::state());
        self.screen
            .status(&greeting::text(about, project.as_ref(), running.as_ref()));
        if self.arrival == Arrival::Attached {
            for line in greeting::state_lines(state.as_ref()) {
                self.screen.status(&line);
            }
        }
        self.link = self.link.keep(notices.clone())?;
        // From here on Ctrl-C is ours, at the prompt and during an evaluation.
        drop(self.link.interrupts()?);
        console.attach(notices, self.link.asker());
        let mut session = Session::new(self, Mode::Terminal);
        let mut name = session.name();
        let exit = loop {
            if session.is_down() {
                console.keep_draft()?;
                // Said here and not as a notice: an editor that is about to return prints no more of those.
                say("The workspace cannot be reached.");
                break Exit::NotRunning;
            }
            // What was pasted counts on what the lines before it left.
            if session.is_another(&mut name) {
                drop_pasted(&mut console);
            }
            // Keys meant for an input that is being typed must not answer a question: it waits for an empty line.
            let ahead = if console.has_draft() {
                None
            } else {
                session.ask_about_waiting(&mut console)?
            };
            let typed = match ahead {
                Some(Typed::Input(line)) => match console.accept(&line)? {
                    Some(input) => Typed::Input(input),
                    None => continue,
                },
                Some(other) => other,
                None => console.read()?,
            };
            match typed {
                Typed::Input(input) => {
                    match session.handle(&input, &mut console)? {
                        // Told at the top.
                        Outcome::Leave(_) if session.is_down() => {}
                        Outcome::Leave(exit) => break exit,
                        Outcome::Failed(Exit::Forced) => {
                            console.drop_queue();
                        }
                        // Its connection broke, and what became of it is not known.
                        Outcome::Failed(Exit::NotRunning) => drop_pasted(&mut console),
                        Outcome::Done | Outcome::Failed(_) => {}
                    }
                }
                // The loop looks what is the matter.
                Typed::Woken => {}
                Typed::Cancelled => {
                    console.drop_queue();
                    say("Cancelled");
                }
                Typed::End => break Exit::Success,
            }
        };
        session.close();
        Ok(exit)
    }
}

/// Nothing of what was pasted and not evaluated yet is evaluated.
fn drop_pasted(console: &mut Console) {
    match console.drop_queue() {
        0 => {}
        1 => say("1 pasted input was not evaluated"),
        count => say(&format!("{count} pasted inputs were not evaluated")),
    }
}
