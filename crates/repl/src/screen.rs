//! The two streams a session writes.

use std::io::{self, Write};

use serde_json::{Map, Value};

use crate::paint::Palette;
use crate::render::Rendered;

/// For whom a session writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    Text,
    /// Text without greeting.
    Quiet,
    /// One object per input, for programs.
    Json,
}

/// The streams, and what is on them.
#[derive(Debug)]
pub struct Screen {
    pub(crate) palette: Palette,
    output: Output,
    /// Output of the running evaluation, for the object.
    collected: String,
    /// The cursor stands after output without a line end.
    is_mid_line: bool,
}

impl Screen {
    pub fn new(palette: Palette, output: Output) -> Self {
        Self {
            palette,
            output,
            collected: String::new(),
            is_mid_line: false,
        }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.output == Output::Json
    }

    /// Something about the session, for who wants to know.
    pub(crate) fn status(&self, text: &str) {
        if self.output == Output::Text {
            say(text);
        }
    }

    /// Output of an evaluation, as it comes.
    pub(crate) fn output(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        if self.is_json() {
            self.collected.push_str(text);
            return Ok(());
        }
        self.is_mid_line = !text.ends_with('\n');
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// The user ended the line by typing.
    pub(crate) fn line_was_ended(&mut self) {
        self.is_mid_line = false;
    }

    /// What is shown after the output.
    pub(crate) fn show(&mut self, rendered: &Rendered) -> io::Result<()> {
        self.end_line()?;
        // Closed, it leaves nobody to tell.
        drop(io::stderr().lock().write_all(rendered.err.as_bytes()));
        let mut out = io::stdout().lock();
        out.write_all(rendered.out.as_bytes())?;
        out.flush()
    }

    pub(crate) fn complain(&mut self, text: &str) -> io::Result<()> {
        self.end_line()?;
        say(text);
        Ok(())
    }

    fn end_line(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.is_mid_line) {
            io::stdout().lock().write_all(b"\n")?;
        }
        Ok(())
    }

    /// An answer as one line, with the output that came before it and how the command will end if it failed.
    pub(crate) fn object(&mut self, mut message: Map<String, Value>, exit: Option<u8>) -> io::Result<()> {
        if !self.collected.is_empty() {
            message.insert("out".to_owned(), std::mem::take(&mut self.collected).into());
        }
        if let Some(exit) = exit {
            message.insert("exit".to_owned(), exit.into());
        }
        let mut out = io::stdout().lock();
        writeln!(out, "{}", Value::Object(message))?;
        out.flush()
    }
}

/// A line on standard error. Closed, it leaves nobody to tell.
pub(crate) fn say(text: &str) {
    drop(writeln!(io::stderr().lock(), "{text}"));
}
