//! The line editor: prompt, colours while typing, completion, earlier inputs.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::config::{BellStyle, Config};
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::{History as _, MemHistory};
use rustyline::validate::Validator;
use rustyline::{ColorMode, CompletionType, Context, Editor, ExternalPrinter, Helper};
use serde_json::{Map, Value};

use super::history::History;
use super::link::Asker;
use super::notices::{Notices, Printer};
use super::paint::Palette;
use super::render::{objects, text};
use super::session::{Ask, Line};
use super::table::{self, Argument};

const PROMPT: &str = "> ";
const CONTINUATION: &str = "..> ";
/// How long completion may take; then nothing is offered.
const COMPLETION_TIME: Duration = Duration::from_millis(500);

/// What typing came to.
#[derive(Debug)]
pub(crate) enum Typed {
    Input(String),
    /// Ctrl-C: what was typed is dropped.
    Cancelled,
    /// Ctrl-D on an empty line.
    End,
}

/// The editor, shared by the loop that reads inputs and by those who ask the user something.
pub(crate) struct Console {
    editor: Editor<Assistant, MemHistory>,
    history: History,
    notices: Option<Arc<Notices>>,
}

/// What the session has to offer to the editor.
pub(crate) struct Assistant {
    palette: Palette,
    asker: Rc<RefCell<Option<Asker>>>,
    /// Lines typed before this one, with their line ends.
    before: RefCell<String>,
    /// An answer is typed, not code.
    is_plain: Cell<bool>,
}

impl Console {
    pub(crate) fn new(palette: Palette, history: (History, Vec<String>)) -> anyhow::Result<Self> {
        let config = Config::builder()
            .max_history_size(10_000)?
            .history_ignore_space(true)
            .history_ignore_dups(true)?
            .completion_type(CompletionType::List)
            .completion_show_all_if_ambiguous(true)
            .bell_style(BellStyle::None)
            .color_mode(match palette {
                Palette::Plain => ColorMode::Disabled,
                Palette::Colored => ColorMode::Forced,
            })
            .build();
        let earlier = MemHistory::with_config(&config);
        let mut editor = Editor::with_history(config, earlier)?;
        let (history, entries) = history;
        for entry in entries {
            editor.history_mut().add_owned(entry)?;
        }
        editor.set_helper(Some(Assistant {
            palette,
            asker: Rc::new(RefCell::new(None)),
            before: RefCell::new(String::new()),
            is_plain: Cell::new(false),
        }));
        Ok(Self {
            editor,
            history,
            notices: None,
        })
    }

    /// A printer for lines above the prompt; `None` for a terminal that cannot do that, such as `TERM=dumb`.
    pub(crate) fn printer(&mut self) -> Option<Printer> {
        let mut printer = self.editor.create_external_printer().ok()?;
        Some(Box::new(move |line| drop(printer.print(line))))
    }

    pub(crate) fn attach(&mut self, notices: Arc<Notices>, asker: Option<Asker>) {
        self.notices = Some(notices);
        if let Some(assistant) = self.editor.helper() {
            assistant.asker.replace(asker);
        }
    }

    /// Read one complete input.
    pub(crate) fn read(&mut self) -> anyhow::Result<Typed> {
        let mut input = String::new();
        loop {
            let prompt = if input.is_empty() { PROMPT } else { CONTINUATION };
            if let Some(assistant) = self.editor.helper() {
                let mut before = assistant.before.borrow_mut();
                before.clone_from(&input);
                if !before.is_empty() {
                    before.push('\n');
                }
            }
            match self.read_line(prompt)? {
                Typed::Input(line) => {
                    if input.is_empty() && line.trim().is_empty() {
                        continue;
                    }
                    let is_first = input.is_empty();
                    if !is_first {
                        input.push('\n');
                    }
                    input.push_str(&line);
                    let is_command = is_first && line.trim_start().starts_with(':');
                    if is_command || !beamtalk_syntax::is_incomplete(&input) {
                        self.record(&input)?;
                        return Ok(Typed::Input(input));
                    }
                }
                Typed::End if !input.is_empty() => {
                    // What is there is taken as it is; the compiler says what is missing.
                    self.record(&input)?;
                    return Ok(Typed::Input(input));
                }
                other => return Ok(other),
            }
        }
    }

    fn record(&mut self, input: &str) -> anyhow::Result<()> {
        let entry = input.trim_end();
        if self.history.add(entry)? {
            self.editor.add_history_entry(entry)?;
        }
        Ok(())
    }

    fn read_line(&mut self, prompt: &str) -> anyhow::Result<Typed> {
        let set_at_prompt = |notices: &Option<Arc<Notices>>, at_prompt| {
            if let Some(notices) = notices {
                notices.set_at_prompt(at_prompt);
            }
        };
        set_at_prompt(&self.notices, true);
        let read = self.editor.readline(prompt);
        set_at_prompt(&self.notices, false);
        match read {
            Ok(line) => Ok(Typed::Input(line)),
            Err(ReadlineError::Eof) => Ok(Typed::End),
            Err(ReadlineError::Interrupted) => Ok(Typed::Cancelled),
            Err(error) => Err(error.into()),
        }
    }
}

impl Ask for Console {
    fn ask(&mut self, prompt: &str) -> anyhow::Result<Line> {
        if let Some(assistant) = self.editor.helper() {
            assistant.is_plain.set(true);
        }
        let read = self.read_line(prompt);
        if let Some(assistant) = self.editor.helper() {
            assistant.is_plain.set(false);
        }
        Ok(match read? {
            Typed::Input(line) => Line::Text(line),
            Typed::End => Line::End,
            Typed::Cancelled => Line::Cancelled,
        })
    }
}

impl Assistant {
    /// Ask the workspace what may stand at the end of `code`. The place is an offset into `code`.
    fn ask(&self, code: &str) -> Option<(usize, Vec<Pair>)> {
        let asker = self.asker.borrow();
        let mut fields = Map::new();
        fields.insert("code".to_owned(), code.into());
        fields.insert("cursor".to_owned(), code.len().into());
        let answer = asker.as_ref()?.ask("complete", fields, COMPLETION_TIME)?;
        let start = answer
            .get("start")
            .and_then(Value::as_u64)
            .and_then(|start| usize::try_from(start).ok())
            .filter(|start| code.is_char_boundary(*start))?;
        Some((start, objects(&answer, "completions").map(candidate).collect()))
    }

    fn complete_code(&self, line: &str, from: usize, at: usize) -> (usize, Vec<Pair>) {
        let before = self.before.borrow();
        let typed = line.get(from..at).unwrap_or_default();
        let code = format!("{before}{typed}");
        match self.ask(&code) {
            // A word never reaches back over a line end.
            Some((start, candidates)) if start >= before.len() => (from + start - before.len(), candidates),
            _ => (at, Vec::new()),
        }
    }

    fn complete_command(&self, line: &str, at: usize) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = line.get(..at).unwrap_or_default();
        let blanks = typed.len() - typed.trim_start().len();
        let Some((name, _)) = typed.trim_start().split_once(char::is_whitespace) else {
            let start = blanks + 1;
            let prefix = typed.get(start..).unwrap_or_default();
            return Ok((start, table::completions(prefix).into_iter().map(pair).collect()));
        };
        let Some(entry) = table::find(name.trim_start_matches(':')) else {
            return Ok((at, Vec::new()));
        };
        let from = blanks + name.len() + 1;
        match entry.argument {
            Argument::Class
            | Argument::OptionalClass
            | Argument::Expression
            | Argument::Topic
            | Argument::Filter => Ok(self.complete_code(line, from, at)),
            Argument::Path => FilenameCompleter::new().complete_path(line, at),
            Argument::None | Argument::Word => Ok((at, Vec::new())),
        }
    }
}

fn pair(text: &str) -> Pair {
    Pair {
        display: text.to_owned(),
        replacement: text.to_owned(),
    }
}

fn candidate(completion: &Map<String, Value>) -> Pair {
    pair(text(completion, "text"))
}

impl Completer for Assistant {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        if self.is_plain.get() {
            return Ok((at, Vec::new()));
        }
        if self.before.borrow().is_empty() && line.trim_start().starts_with(':') {
            return self.complete_command(line, at);
        }
        Ok(self.complete_code(line, 0, at))
    }
}

impl Highlighter for Assistant {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        if self.is_plain.get() || line.trim_start().starts_with(':') {
            return Cow::Borrowed(line);
        }
        Cow::Owned(self.palette.code_after(&self.before.borrow(), line))
    }

    fn highlight_char(&self, _: &str, _: usize, kind: CmdKind) -> bool {
        self.palette == Palette::Colored && kind != CmdKind::MoveCursor
    }
}

impl Hinter for Assistant {
    type Hint = String;
}

impl Validator for Assistant {}

impl Helper for Assistant {}
