//! Inputs from the command line or from a stream: no prompt, one failure ends it.

use super::greeting::{self, Arrival};
use super::input::{Inputs, StandardInput};
use super::link::{self, Link};
use super::screen::Screen;
use super::session::{Ask, Line, Mode, Outcome, Session};
use crate::exit::Exit;

use std::io::Write;
use std::time::Duration;

/// Where the inputs come from.
pub(crate) enum Source {
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
    fn ask(&mut self, prompt: &str) -> anyhow::Result<Line> {
        drop(std::io::stderr().lock().write_all(prompt.as_bytes()));
        let line = self.inputs()?.next_line()?;
        Ok(line.map_or(Line::End, Line::Text))
    }
}

/// Evaluate all inputs in order until one fails.
pub(crate) fn run(
    link: Link,
    screen: Screen,
    mut source: Source,
    time_limit: Option<Duration>,
    arrival: Arrival,
) -> anyhow::Result<Exit> {
    if arrival == Arrival::Attached && !screen.is_json {
        let state = link.ask(&link::state());
        for line in greeting::state_lines(state.as_ref()) {
            // Closed, it leaves nobody to tell.
            drop(writeln!(std::io::stderr().lock(), "{line}"));
        }
    }
    let mut session = Session::new(link, screen, Mode::Batch).with_time_limit(time_limit);
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
