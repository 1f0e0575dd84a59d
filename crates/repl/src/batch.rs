//! Inputs from the command line or from a stream: no prompt, one failure ends it.

use std::io::Write;

use beamtalk_client::Exit;

use crate::Opening;
use crate::error::Result;
use crate::greeting::{self, Arrival};
use crate::input::{Inputs, StandardInput};
use crate::link;
use crate::screen::say;
use crate::session::{Ask, Line, Mode, Outcome, Session};

/// Where the inputs come from.
pub enum Source {
    Expressions(std::vec::IntoIter<String>),
    Stream,
}

/// Standard input, opened when somebody reads it.
#[derive(Default)]
struct Stream {
    inputs: Option<Inputs<StandardInput>>,
}

impl Stream {
    fn inputs(&mut self) -> std::io::Result<&mut Inputs<StandardInput>> {
        match &mut self.inputs {
            Some(inputs) => Ok(inputs),
            none => Ok(none.insert(Inputs::new(StandardInput::open()?))),
        }
    }
}

impl Ask for Stream {
    fn ask(&mut self, prompt: &str) -> Result<Line> {
        drop(std::io::stderr().lock().write_all(prompt.as_bytes()));
        let line = self.inputs()?.next_line()?;
        Ok(line.map_or(Line::End, Line::Text))
    }
}

impl Opening {
    /// Evaluate all inputs in order until one fails.
    pub fn evaluate(self, mut source: Source) -> Result<Exit> {
        if self.arrival == Arrival::Attached && !self.screen.is_json() {
            let state = self.link.ask(&link::state());
            for line in greeting::state_lines(state.as_ref()) {
                say(&line);
            }
        }
        let mut session = Session::new(self, Mode::Batch);
        let mut stream = Stream::default();
        let exit = loop {
            let input = match &mut source {
                Source::Expressions(expressions) => expressions.next(),
                Source::Stream => stream.inputs()?.next_input()?,
            };
            let Some(input) = input else {
                break Exit::Success;
            };
            match session.handle(&input, &mut stream)? {
                Outcome::Done => {}
                Outcome::Failed(exit) | Outcome::Leave(exit) => break exit,
            }
        };
        session.close();
        Ok(exit)
    }
}
