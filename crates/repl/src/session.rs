//! One session: inputs in, evaluations and commands out.

use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use beamtalk_client::{Answer, Error, Exit, Fault, Pending, Reply};
use beamtalk_wire::answers::EvalAnswer;
use beamtalk_wire::requests::{Eval, Interrupt, Stdin};
use beamtalk_wire::{ErrorBody, ErrorKind, Flag, Head, Operation};
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::signal::unix::Signal;

use crate::Opening;
use crate::editor::Typed;
use crate::error::Result;
use crate::harmless;
use crate::inspect::View;
use crate::link::{Link, Turn, Wait};
use crate::manual::Manual;
use crate::pager::window;
use crate::paint::Palette;
use crate::render::{self, Rendered};
use crate::screen::Screen;
use crate::table::{self, Parsed};

/// A second Ctrl-C within this time does not wait any longer.
const PATIENCE: Duration = Duration::from_secs(2);

/// A line the user is asked for.
#[derive(Debug)]
pub(crate) enum Line {
    Text(String),
    /// Ctrl-D, or the end of the file.
    End,
    /// Ctrl-C.
    Cancelled,
}

/// Whoever can be asked for a line: the editor, or the rest of standard input.
pub(crate) trait Ask {
    fn ask(&mut self, prompt: &str) -> Result<Line>;

    /// Let something else have the terminal, as it was before the session: nothing is printed meanwhile.
    fn lend_terminal(&mut self, _use_it: &mut dyn FnMut()) -> Result<()> {
        Err(std::io::Error::new(std::io::ErrorKind::Unsupported, "there is no terminal").into())
    }
}

/// How results are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Everything, in one line.
    All,
    /// For the columns there are, cut to what can be looked at.
    Short,
}

/// What an input came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// It failed; a command that cannot go on ends with this.
    Failed(Exit),
    Leave(Exit),
}

/// Why a request has no answer.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The connection broke; whether the workspace did what was asked is not known.
    Lost,
    /// The user does not wait any longer.
    Abandoned,
    /// It was not sent; the text says why.
    Refused(String),
    Other(crate::Error),
}

impl<E: Into<crate::Error>> From<E> for Trouble {
    fn from(error: E) -> Self {
        Self::Other(error.into())
    }
}

/// Whether somebody sits at the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Terminal,
    Batch,
}

pub(crate) struct Session {
    pub(super) link: Link,
    pub(super) screen: Screen,
    pub(super) manual: &'static dyn Manual,
    pub(super) mode: Mode,
    /// The longest an evaluation may take.
    pub(super) time_limit: Option<Duration>,
    pub(super) last_error: Option<ErrorBody>,
    pub(super) last_path: Option<String>,
    pub(super) view: Option<View>,
    pub(super) layout: Layout,
    /// Changes that the user was asked about.
    pub(super) asked: BTreeSet<u64>,
    /// Files in conflict, as `:diff` showed them: name and hash.
    pub(super) shown_disks: BTreeMap<String, String>,
    /// Calls that wait, as they were shown: name and hash.
    pub(super) shown_approvals: BTreeMap<String, String>,
    was_interrupted: bool,
}

impl Session {
    pub(crate) fn new(opening: Opening, mode: Mode) -> Self {
        Self {
            link: opening.link,
            screen: opening.screen,
            manual: opening.manual,
            mode,
            time_limit: opening.time_limit,
            last_error: None,
            last_path: None,
            view: None,
            layout: match mode {
                Mode::Terminal => Layout::Short,
                Mode::Batch => Layout::All,
            },
            asked: BTreeSet::new(),
            shown_disks: BTreeMap::new(),
            shown_approvals: BTreeMap::new(),
            was_interrupted: false,
        }
    }

    /// Evaluate an input or perform a command.
    pub(crate) fn handle(&mut self, input: &str, ask: &mut dyn Ask) -> Result<Outcome> {
        self.was_interrupted = false;
        let done = match table::parse(input) {
            Some(Parsed::Command(command, words)) => self.perform(command, words, ask),
            Some(Parsed::Refused(why)) => self.refuse("usage", &why),
            None => self.evaluate(input, ask),
        };
        match done {
            Ok(Outcome::Done) if self.was_interrupted && self.mode == Mode::Batch => {
                Ok(Outcome::Failed(Exit::Forced))
            }
            Ok(outcome) => Ok(outcome),
            Err(Trouble::Abandoned) => Ok(Outcome::Failed(Exit::Forced)),
            Err(Trouble::Lost) if self.mode == Mode::Batch => Err(lost().into()),
            Err(Trouble::Lost) => {
                let mut interrupts = self.link.interrupts()?;
                Ok(match self.link.wait_for_connection(&mut interrupts) {
                    Wait::Connected | Wait::Interrupted => Outcome::Failed(Exit::NotRunning),
                    Wait::Down => Outcome::Leave(Exit::NotRunning),
                })
            }
            Err(Trouble::Refused(why)) => match self.refuse("usage", &why) {
                Ok(outcome) => Ok(outcome),
                Err(_) => Ok(Outcome::Failed(Exit::Failure)),
            },
            Err(Trouble::Other(error)) => Err(error),
        }
    }

    fn evaluate(&mut self, input: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        let mut answer = self.call(&self.evaluation(input), ask)?;
        // The limit that came with the request is the one of the command line.
        if let Err(error) = &mut answer.body
            && error.details.get("of").is_some_and(|of| of == "request")
        {
            error.hint = Some("raise it with --timeout".to_owned());
            answer.message.insert("error".to_owned(), json!(error));
        }
        self.finish_evaluation(answer, input, render::evaluation)
    }

    /// The request that evaluates this code.
    pub(super) fn evaluation(&self, code: &str) -> Eval {
        let milliseconds = |limit: Duration| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        Eval {
            code: code.to_owned(),
            timeout_ms: self.time_limit.map(milliseconds),
            width: self.width(),
            ..Eval::default()
        }
    }

    /// For how many columns a value is laid out. Programs get the `printString`.
    pub(super) fn width(&self) -> Option<u64> {
        match self.layout {
            _ if self.screen.is_json() => None,
            Layout::All => Some(0),
            Layout::Short => Some(u64::from(window().0)),
        }
    }

    /// Show the answer to an evaluation. A program that ended ends the session.
    pub(super) fn finish_evaluation(
        &mut self,
        answer: Answer<EvalAnswer>,
        input: &str,
        show: impl FnOnce(&EvalAnswer, Palette) -> Rendered,
    ) -> Result<Outcome, Trouble> {
        let ended = answer.body.as_ref().ok().and_then(|answer| answer.exit_code);
        let outcome = self.finish(answer, input, show)?;
        Ok(match ended {
            Some(status) => Outcome::Leave(Exit::Program(u8::try_from(status).unwrap_or(u8::MAX))),
            None => outcome,
        })
    }

    /// Show an answer, or its error, and judge it. `input` is the code that may have the error.
    pub(super) fn finish<A: DeserializeOwned>(
        &mut self,
        answer: Answer<A>,
        input: &str,
        show: impl FnOnce(&A, Palette) -> Rendered,
    ) -> Result<Outcome, Trouble> {
        let answer = self.for_eyes(answer);
        let exit = answer.body.as_ref().err().map(exit_of);
        if self.screen.is_json() {
            self.screen.object(answer.message, exit.map(Exit::code))?;
        } else {
            let rendered = match &answer.body {
                Err(error) => Rendered {
                    err: render::failure(error, input, self.screen.palette),
                    out: String::new(),
                },
                Ok(body) => {
                    let mut rendered =
                        render::warnings(&answer.head.warnings).and(&show(body, self.screen.palette));
                    if answer.head.status.contains(&Flag::Truncated) {
                        rendered.complaint("⚠ the value is longer than can be shown; it was cut");
                    }
                    rendered
                }
            };
            self.screen.show(&rendered)?;
        }
        if let Err(error) = answer.body {
            self.last_error = Some(error);
        }
        Ok(exit.map_or(Outcome::Done, Outcome::Failed))
    }

    /// What is shown on a terminal does nothing to it, whatever values and messages contain.
    fn for_eyes<A: DeserializeOwned>(&self, answer: Answer<A>) -> Answer<A> {
        let is_seen =
            !self.screen.is_json() && (self.mode == Mode::Terminal || std::io::stdout().is_terminal());
        if is_seen && answer.message.values().any(harmless::steers) {
            let message = answer.message.into_iter();
            Answer::read(
                message
                    .map(|(key, value)| (key, harmless::value(value)))
                    .collect(),
            )
        } else {
            answer
        }
    }

    /// Send a request and wait for its answer, passing on what happens meanwhile.
    pub(super) fn call<O: Operation>(
        &mut self,
        request: &O,
        ask: &mut dyn Ask,
    ) -> Result<Answer<O::Answer>, Trouble> {
        match self.call_until(request, ask, None)? {
            Some(answer) => Ok(answer),
            None => Err(Trouble::Abandoned),
        }
    }

    /// The same within a time; `None` when there is no answer by then.
    pub(super) fn call_within<O: Operation>(
        &mut self,
        request: &O,
        ask: &mut dyn Ask,
        limit: Duration,
    ) -> Result<Option<Answer<O::Answer>>, Trouble> {
        self.call_until(request, ask, Some(Instant::now() + limit))
    }

    fn call_until<O: Operation>(
        &mut self,
        request: &O,
        ask: &mut dyn Ask,
        mut deadline: Option<Instant>,
    ) -> Result<Option<Answer<O::Answer>>, Trouble> {
        let mut interrupts = self.link.interrupts()?;
        let mut pending = self.send(request, &mut interrupts)?;
        let mut last_interrupt: Option<Instant> = None;
        loop {
            match self.link.next(&mut pending, &mut interrupts, deadline) {
                None if last_interrupt.is_some() => return Err(Trouble::Abandoned),
                None => return Ok(None),
                Some(Turn::Lost) => return Err(Trouble::Lost),
                Some(Turn::Reply(Reply::Done(message))) => return Ok(Some(Answer::read(message))),
                Some(Turn::Reply(Reply::Output(text))) => self.screen.output(&text)?,
                Some(Turn::Reply(Reply::NeedsInput(prompt))) => self.feed(&pending.id, &prompt, ask)?,
                Some(Turn::Interrupt) => {
                    if last_interrupt.is_some_and(|at| at.elapsed() < PATIENCE) {
                        return Err(Trouble::Abandoned);
                    }
                    last_interrupt = Some(Instant::now());
                    if self.mode == Mode::Batch {
                        // Nobody is there to press Ctrl-C a second time.
                        deadline = Some(Instant::now() + PATIENCE);
                    }
                    self.interrupt(&pending.id)?;
                }
            }
        }
    }

    /// Send a request. Without a connection nothing of it has left, so at a terminal it waits for the next one.
    fn send<O: Operation>(&self, request: &O, interrupts: &mut Signal) -> Result<Pending, Trouble> {
        loop {
            match self.link.send(request) {
                Ok(sent) => return Ok(sent),
                Err(Error::Lost) if self.mode == Mode::Terminal => {
                    match self.link.wait_for_connection(interrupts) {
                        Wait::Connected => {}
                        Wait::Down => return Err(Trouble::Lost),
                        Wait::Interrupted => return Err(Trouble::Abandoned),
                    }
                }
                Err(Error::Lost) => return Err(Trouble::Lost),
                Err(error) => return Err(Trouble::Refused(error.to_string())),
            }
        }
    }

    fn interrupt(&mut self, id: &str) -> Result<(), Trouble> {
        self.was_interrupted = true;
        let asked = self.link.send(&Interrupt {
            r#for: Some(id.to_owned()),
            handle: None,
        });
        asked.map(drop).map_err(|_| Trouble::Lost)
    }

    /// Code reads standard input: ask the user for a line.
    fn feed(&mut self, id: &str, prompt: &str, ask: &mut dyn Ask) -> Result<(), Trouble> {
        let line = ask.ask(prompt)?;
        self.screen.line_was_ended();
        let mut input = Stdin {
            r#for: id.to_owned(),
            ..Stdin::default()
        };
        match line {
            Line::Text(text) => input.value = Some(format!("{text}\n")),
            Line::End => input.eof = Some(true),
            Line::Cancelled => return self.interrupt(id),
        }
        // When the reader has given up meanwhile, there is nothing to tell.
        let sent = self.link.send(&input);
        sent.map(drop).map_err(|_| Trouble::Lost)
    }

    /// Something was asked for wrongly.
    pub(super) fn refuse(&mut self, kind: &str, why: &str) -> Result<Outcome, Trouble> {
        let exit = Exit::Failure;
        if self.screen.is_json() {
            let refusal = Head::failure(None, None, ErrorBody::new(kind, why));
            self.screen
                .object(beamtalk_wire::object(&refusal), Some(exit.code()))?;
        } else {
            self.screen.complain(why)?;
        }
        Ok(Outcome::Failed(exit))
    }

    /// Ask a question whose answer is no unless it is yes.
    pub(super) fn confirm(ask: &mut dyn Ask, question: &str) -> Result<bool, Trouble> {
        let line = ask.ask(&format!("{question} y/N "))?;
        Ok(matches!(line, Line::Text(text) if matches!(text.trim(), "y" | "Y" | "yes")))
    }

    /// In a session that is new, ask what to do about changes that wait. Answers a line that was meant for the prompt.
    pub(crate) fn ask_about_waiting(&mut self, ask: &mut dyn Ask) -> Result<Option<Typed>> {
        if !self.link.take_news() {
            return Ok(None);
        }
        match self.decide_about_waiting(ask) {
            // The keeper tells of a lost connection, and comes back with news.
            Ok(line) => Ok(line.map(Typed::Input)),
            Err(Trouble::Abandoned) => Ok(Some(Typed::Cancelled)),
            Err(Trouble::Lost | Trouble::Refused(_)) => Ok(None),
            Err(Trouble::Other(error)) => Err(error),
        }
    }

    /// The workspace's name for it.
    pub(crate) fn name(&self) -> String {
        self.link.session()
    }

    /// Whether it is another one in the workspace than the one of this name, whose variables are gone; the name follows.
    pub(crate) fn is_another(&self, name: &mut String) -> bool {
        let now = self.name();
        let is_another = !now.is_empty() && now != *name;
        if is_another {
            *name = now;
        }
        is_another
    }

    /// Has the connection been given up?
    pub(crate) fn is_down(&self) -> bool {
        self.link.is_down()
    }

    pub(crate) fn close(self) {
        self.link.close();
    }
}

/// How a command ends that fails with this error.
fn exit_of(error: &ErrorBody) -> Exit {
    match error.kind {
        ErrorKind::EvalLimit | ErrorKind::Timeout if error.details.get("limit") == Some(&json!("time")) => {
            Exit::TimeLimit
        }
        ErrorKind::Interrupted => Exit::Forced,
        ErrorKind::ShuttingDown => Exit::NotRunning,
        _ => Exit::Failure,
    }
}

pub(super) fn lost() -> Fault {
    Fault::new(
        Exit::NotRunning,
        "not_reachable",
        "the connection to the workspace is lost",
    )
}
