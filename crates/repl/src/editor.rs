//! The line editor: prompt, colours while typing, completion, earlier inputs.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::Write;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use beamtalk_wire::Side;
use beamtalk_wire::requests::{BrowseClasses, Complete, Methods, NavSymbols, SymbolScope};
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::config::{BellStyle, Config};
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::{Hint, Hinter};
use rustyline::history::{History as _, MemHistory, SearchDirection};
use rustyline::validate::Validator;
use rustyline::{ColorMode, CompletionType, Context, Editor, ExternalPrinter, Helper};
use unicode_width::UnicodeWidthChar;

use crate::error::Result;
use crate::help;
use crate::history::History;
use crate::keys::{self, Shared, lock};
use crate::link::Asker;
use crate::manual::Manual;
use crate::notices::{Notices, Printer, Prompt};
use crate::pager::window;
use crate::paint::Palette;
use crate::pending::{Key, Pending, Step};
use crate::quiet::{Quiet, Signals};
use crate::session::{Ask, Line};
use crate::table::{self, Argument};

const PROMPT: &str = "> ";
const CONTINUATION: &str = "..> ";
/// Columns between the stops of a tab.
const TAB: usize = 8;
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
    /// The session has something to say first; what was typed comes back with the next reading.
    Woken,
}

/// The editor, shared by the loop that reads inputs and by those who ask the user something.
pub(crate) struct Console {
    editor: Editor<Assistant, MemHistory>,
    history: History,
    notices: Option<Arc<Notices>>,
    keys: Shared,
    /// An input that was being typed when the session was woken, with the place of the cursor in its line.
    draft: Option<(Pending, usize)>,
    /// Inputs that came at once and are still to be evaluated.
    queue: VecDeque<String>,
    quiet: Option<Quiet>,
}

/// What the session has to offer to the editor.
pub(crate) struct Assistant {
    palette: Palette,
    manual: &'static dyn Manual,
    asker: Rc<RefCell<Option<Asker>>>,
    notices: RefCell<Option<Arc<Notices>>>,
    /// Lines typed before this one, with their line ends.
    before: RefCell<String>,
    /// Lines after this one, with their prompts: as text, and painted.
    after: RefCell<(String, String)>,
    keys: Shared,
    /// An answer is typed, not code.
    is_plain: Cell<bool>,
}

/// The lines after the one that is edited, shown and never inserted.
pub(crate) struct Following(String);

impl Hint for Following {
    fn display(&self) -> &str {
        &self.0
    }

    fn completion(&self) -> Option<&str> {
        None
    }
}

impl Console {
    pub(crate) fn new(
        palette: Palette,
        manual: &'static dyn Manual,
        history: (History, Vec<String>),
    ) -> Result<Self> {
        let config = Config::builder()
            .max_history_size(10_000)?
            .history_ignore_space(true)
            .history_ignore_dups(true)?
            .completion_type(CompletionType::List)
            .completion_show_all_if_ambiguous(true)
            .bell_style(BellStyle::None)
            // What is painted is ours to decide, and so is what is drawn of several lines.
            .color_mode(ColorMode::Forced)
            .build();
        let earlier = MemHistory::with_config(&config);
        let mut editor = Editor::with_history(config, earlier)?;
        let (history, entries) = history;
        for entry in entries {
            editor.history_mut().add_owned(entry)?;
        }
        let keys = Shared::default();
        keys::bind(&mut editor, &keys);
        editor.set_helper(Some(Assistant {
            palette,
            manual,
            asker: Rc::new(RefCell::new(None)),
            notices: RefCell::default(),
            before: RefCell::new(String::new()),
            after: RefCell::default(),
            keys: keys.clone(),
            is_plain: Cell::new(false),
        }));
        Ok(Self {
            editor,
            history,
            notices: None,
            keys,
            draft: None,
            queue: VecDeque::new(),
            quiet: Quiet::begin(),
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
            assistant.notices.replace(self.notices.clone());
        }
    }

    /// Take a line as if it were typed at the prompt: an input, or the beginning of one.
    pub(crate) fn accept(&mut self, line: &str) -> Result<Option<String>> {
        let mut pending = Pending::new("");
        match pending.press(Key::Enter, line, line.len()) {
            Step::Edit(column) => {
                self.draft = Some((pending, column));
                Ok(None)
            }
            // What was pasted may be several inputs.
            _ => {
                let (inputs, begun) = pending.split();
                self.draft = begun.map(|begun| {
                    let next = Pending::begun(&begun);
                    let column = next.line().len();
                    (next, column)
                });
                Ok(match self.submit(inputs)? {
                    Typed::Input(input) => Some(input),
                    _ => None,
                })
            }
        }
    }

    /// Read one complete input. The editor edits one line; keys that lead out of it come back here, and the input is
    /// drawn again around the line that is edited next.
    pub(crate) fn read(&mut self) -> Result<Typed> {
        self.hush(Signals::Typed);
        let typed = self.read_input();
        self.hush(Signals::Sent);
        typed
    }

    fn hush(&self, signals: Signals) {
        if let Some(quiet) = &self.quiet {
            quiet.hush(signals);
        }
    }

    fn read_input(&mut self) -> Result<Typed> {
        if let Some(input) = self.queue.pop_front() {
            return Ok(Typed::Input(input));
        }
        self.take_in_history()?;
        let (mut pending, mut column) = self.draft.take().unwrap_or_else(|| (Pending::new(""), 0));
        // Which of the earlier inputs is shown, and what was typed before it.
        let mut recalled = self.editor.history().len();
        let mut draft = String::new();
        // Rows of the screen between the start of the input and the line that is edited.
        let mut above = self.draw(0, pending.before())?;
        loop {
            self.prepare(&pending, column);
            let prompt = prompt(pending.at());
            let typed = self.read_line(prompt, pending.line().split_at(column))?;
            let (key, text, position) = match typed {
                Typed::Input(text) => {
                    let pressed = lock(&self.keys).take_pressed();
                    let (key, position) = pressed.unwrap_or((Key::Enter, text.len()));
                    (key, text, position)
                }
                Typed::Cancelled => match lock(&self.keys).take_pasted() {
                    Some((text, position)) => (Key::Paste, text, position),
                    None => return Ok(Typed::Cancelled),
                },
                Typed::Woken => {
                    let (text, position) = lock(&self.keys).seen();
                    if let Step::Edit(column) = pending.press(Key::Paste, &text, position) {
                        self.draft = Some((pending, column));
                    }
                    return Ok(Typed::Woken);
                }
                Typed::End if pending.lines().len() == 1 => return Ok(Typed::End),
                // What is there is taken as it is; the compiler says what is missing.
                Typed::End => {
                    let (mut inputs, begun) = pending.split();
                    inputs.extend(begun);
                    return self.submit(inputs);
                }
            };
            let drawn = match key {
                // Nothing of it was drawn yet.
                Key::Paste => 1,
                _ => rows(prompt, &text),
            };
            let edited = pending.at();
            let step = pending.press(key, &text, position);
            let is_same = |pending: &Pending| {
                let line = pending.lines().get(edited);
                line == Some(&text) || line.is_some_and(String::is_empty) && text.trim().is_empty()
            };
            let next = match step {
                Step::Submit => {
                    // Lines after the edited one were taken away with the cursor in it.
                    if edited + 1 < pending.lines().len() {
                        self.draw(above + drawn, pending.lines())?;
                    }
                    let (inputs, begun) = pending.split();
                    if let Some(begun) = begun {
                        let next = Pending::begun(&begun);
                        let column = next.line().len();
                        self.draft = Some((next, column));
                    }
                    if inputs.is_empty() {
                        (pending, column, above) = (Pending::new(""), 0, 0);
                        continue;
                    }
                    return self.submit(inputs);
                }
                Step::Edit(column) => column,
                Step::Earlier | Step::Later => {
                    let is_draft = recalled == self.editor.history().len();
                    let wanted = match step {
                        Step::Earlier => recalled.checked_sub(1),
                        _ => (!is_draft).then(|| recalled + 1),
                    };
                    if let Some(wanted) = wanted {
                        if is_draft {
                            draft = pending.text();
                        }
                        recalled = wanted;
                        pending = Pending::new(&self.earlier(recalled).unwrap_or_else(|| draft.clone()));
                        pending.line().len()
                    } else if pending.line() == text {
                        position
                    } else {
                        pending.line().len()
                    }
                }
            };
            column = next;
            if pending.at() == edited + 1 && is_same(&pending) {
                above += drawn;
            } else {
                above = self.draw(above + drawn, pending.before())?;
            }
        }
    }

    /// Hand out the first of these inputs now and the others when they are asked for.
    fn submit(&mut self, inputs: Vec<String>) -> Result<Typed> {
        for input in &inputs {
            self.record(input)?;
        }
        self.queue.extend(inputs);
        Ok(self.queue.pop_front().map_or(Typed::Woken, Typed::Input))
    }

    /// What came at once is stopped as a whole.
    pub(crate) fn drop_queue(&mut self) -> usize {
        std::mem::take(&mut self.queue).len()
    }

    /// Whether something is being typed.
    pub(crate) fn has_draft(&self) -> bool {
        let draft = self.draft.as_ref();
        draft.is_some_and(|(pending, _)| !pending.text().trim().is_empty())
    }

    /// Keep what was being typed among the earlier inputs: the session ends without it.
    pub(crate) fn keep_draft(&mut self) -> Result<()> {
        match self.draft.take() {
            Some((pending, _)) if !pending.text().trim().is_empty() => self.record(&pending.text()),
            _ => Ok(()),
        }
    }

    /// An earlier input.
    fn earlier(&self, number: usize) -> Option<String> {
        let found = self.editor.history().get(number, SearchDirection::Forward);
        Some(found.ok()??.entry.into_owned())
    }

    /// Tell everybody which line is edited next, and what stands around it.
    fn prepare(&mut self, pending: &Pending, column: usize) {
        let line = (pending.line(), column);
        lock(&self.keys).reset(pending.at() == 0, pending.after().is_empty(), line);
        let Some(assistant) = self.editor.helper() else {
            return;
        };
        let before: String = pending.before().iter().map(|line| format!("{line}\n")).collect();
        assistant.before.replace(before);
        let lines = |paint: &dyn Fn(&str) -> String| -> String {
            let lines = pending.after().iter();
            lines
                .map(|line| format!("\n{CONTINUATION}{}", paint(line)))
                .collect()
        };
        let after = (lines(&str::to_owned), lines(&|line| assistant.palette.code(line)));
        assistant.after.replace(after);
    }

    /// Go back so many rows and draw these lines; answers how many rows they take.
    fn draw(&self, back: usize, lines: &[String]) -> Result<usize> {
        let palette = self
            .editor
            .helper()
            .map_or(Palette::Plain, |helper| helper.palette);
        let mut screen = if back == 0 {
            String::new()
        } else {
            format!("\x1b[{back}A\r\x1b[J")
        };
        let mut height = 0;
        let mut before = String::new();
        for (number, line) in lines.iter().enumerate() {
            screen.push_str(prompt(number));
            screen.push_str(&palette.code_after(&before, line));
            screen.push('\n');
            height += rows(prompt(number), line);
            before.push_str(line);
            before.push('\n');
        }
        let mut out = std::io::stdout().lock();
        out.write_all(screen.as_bytes())?;
        out.flush()?;
        Ok(height)
    }

    fn record(&mut self, input: &str) -> Result<()> {
        let entry = input.trim_end();
        let is_new = self.history.add(entry)?;
        // What others recorded before it stands before it.
        self.take_in_history()?;
        if is_new {
            self.editor.add_history_entry(entry)?;
        }
        Ok(())
    }

    fn take_in_history(&mut self) -> Result<()> {
        for entry in self.history.news()? {
            self.editor.add_history_entry(entry)?;
        }
        Ok(())
    }

    fn read_line(&mut self, prompt: &str, initial: (&str, &str)) -> Result<Typed> {
        let set_prompt = |notices: &Option<Arc<Notices>>, prompt| {
            if let Some(notices) = notices {
                notices.set_prompt(prompt);
            }
        };
        let begins = match self.editor.helper() {
            Some(assistant) if !assistant.is_plain.get() => {
                assistant.prompt(&[initial.0, initial.1].concat())
            }
            _ => Prompt::Idle,
        };
        set_prompt(&self.notices, begins);
        let read = self.editor.readline_with_initial(prompt, initial);
        set_prompt(&self.notices, Prompt::Away);
        let is_woken = self.notices.as_ref().is_some_and(|notices| notices.take_call());
        match read {
            Err(ReadlineError::Interrupted) if is_woken => Ok(Typed::Woken),
            Ok(line) => Ok(Typed::Input(line)),
            Err(ReadlineError::Eof) => Ok(Typed::End),
            Err(ReadlineError::Interrupted) => Ok(Typed::Cancelled),
            Err(error) => Err(error.into()),
        }
    }
}

impl Ask for Console {
    fn ask(&mut self, prompt: &str) -> Result<Line> {
        if let Some(assistant) = self.editor.helper() {
            assistant.is_plain.set(true);
        }
        lock(&self.keys).is_active = false;
        let read = self.read_line(prompt, ("", ""));
        if let Some(assistant) = self.editor.helper() {
            assistant.is_plain.set(false);
        }
        Ok(match read? {
            Typed::Input(line) => Line::Text(line),
            Typed::End => Line::End,
            Typed::Cancelled | Typed::Woken => Line::Cancelled,
        })
    }

    fn lend_terminal(&mut self, use_it: &mut dyn FnMut()) -> Result<()> {
        if let Some(notices) = &self.notices {
            notices.hold(true);
        }
        match &self.quiet {
            Some(quiet) => quiet.lend(use_it),
            None => use_it(),
        }
        if let Some(notices) = &self.notices {
            notices.hold(false);
        }
        Ok(())
    }
}

impl Assistant {
    /// Whether anything is typed, in this line or in those around it.
    fn prompt(&self, line: &str) -> Prompt {
        let keys = lock(&self.keys);
        if keys.is_first && keys.is_last && line.trim().is_empty() {
            Prompt::Idle
        } else {
            Prompt::Typing
        }
    }

    /// Ask the workspace what may stand at the end of `code`. The place is an offset into `code`.
    fn ask(&self, code: &str) -> Option<(usize, Vec<Pair>)> {
        let asker = self.asker.borrow();
        let request = Complete {
            code: code.to_owned(),
            cursor: Some(code.len() as u64),
            handle: None,
        };
        let answer = asker.as_ref()?.ask(&request, COMPLETION_TIME)?;
        let start = usize::try_from(answer.start).ok();
        let start = start.filter(|start| code.is_char_boundary(*start))?;
        let candidates = answer.completions.iter().map(|found| pair(&found.text));
        Some((start, candidates.collect()))
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

    /// A class, then the word `class` or a method of the side that is named.
    fn complete_method(&self, line: &str, from: usize, at: usize) -> (usize, Vec<Pair>) {
        let typed = line.get(from..at).unwrap_or_default();
        let words: Vec<&str> = typed.split(' ').filter(|word| !word.is_empty()).collect();
        let is_new_word = typed.is_empty() || typed.ends_with(' ');
        let prefix = if is_new_word {
            ""
        } else {
            words.last().copied().unwrap_or_default()
        };
        let before = words
            .get(..words.len() - usize::from(!is_new_word))
            .unwrap_or_default();
        let (class, side) = match *before {
            [] => return self.complete_code(line, from, at),
            [class] => (class, Side::Instance),
            [class, "class"] => (class, Side::Class),
            _ => return (at, Vec::new()),
        };
        let request = Methods {
            class: class.to_owned(),
        };
        let asker = self.asker.borrow();
        let answer = asker
            .as_ref()
            .and_then(|asker| asker.ask(&request, COMPLETION_TIME));
        let methods = answer.map(|answer| answer.methods).unwrap_or_default();
        let own = methods.iter().filter(|method| method.side == side);
        let mut found: Vec<&str> = own.map(|method| method.selector.as_str()).collect();
        if side == Side::Instance {
            found.push("class");
        }
        (at - prefix.len(), begin_with(found, prefix))
    }

    /// What `:help` knows: a page, a command, a class; then a method that its objects understand, own or inherited.
    fn complete_topic(&self, line: &str, from: usize, at: usize) -> (usize, Vec<Pair>) {
        let typed = line.get(from..at).unwrap_or_default();
        let prefix = typed.rsplit(' ').next().unwrap_or_default();
        let start = at - prefix.len();
        let before: Vec<&str> = typed.split_whitespace().collect();
        let before = before
            .get(..before.len() - usize::from(!prefix.is_empty()))
            .unwrap_or_default();
        let (class, side) = match *before {
            [] => {
                let mut found = help::topics(prefix, self.manual);
                if prefix.starts_with(char::is_uppercase) {
                    let (_, classes) = self.complete_code(line, from, at);
                    found.extend(classes.into_iter().map(|pair| pair.replacement));
                }
                let found: Vec<&str> = found.iter().map(String::as_str).collect();
                return (start, begin_with(found, prefix));
            }
            ["Erlang", ..] => return self.complete_code(line, from, at),
            [class] => (help::class_of(class, self.manual), Side::Instance),
            [class, "class"] => (help::class_of(class, self.manual), Side::Class),
            _ => return (at, Vec::new()),
        };
        let asker = self.asker.borrow();
        let Some(asker) = asker.as_ref() else {
            return (at, Vec::new());
        };
        let all = NavSymbols {
            scope: Some(SymbolScope::All),
        };
        let (Some(symbols), Some(classes)) = (
            asker.ask(&all, COMPLETION_TIME),
            asker.ask(&BrowseClasses {}, COMPLETION_TIME),
        ) else {
            return (at, Vec::new());
        };
        let mut found = help::selectors(&symbols, &classes, class, side);
        if side == Side::Instance {
            found.push("class");
        }
        (start, begin_with(found, prefix))
    }

    fn complete_selector(&self, line: &str, from: usize, at: usize) -> (usize, Vec<Pair>) {
        let prefix = line.get(from..at).unwrap_or_default().trim_start();
        // Each and every selector is no help.
        if prefix.is_empty() {
            return (at, Vec::new());
        }
        let request = NavSymbols {
            scope: Some(SymbolScope::All),
        };
        let asker = self.asker.borrow();
        let answer = asker
            .as_ref()
            .and_then(|asker| asker.ask(&request, COMPLETION_TIME));
        let classes = answer.map(|answer| answer.classes).unwrap_or_default();
        let methods = classes.iter().flat_map(|class| &class.methods);
        let found = methods.map(|method| method.selector.as_str()).collect();
        (at - prefix.len(), begin_with(found, prefix))
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
            Argument::Class | Argument::OptionalClass | Argument::Expression | Argument::Filter => {
                Ok(self.complete_code(line, from, at))
            }
            Argument::Topic => Ok(self.complete_topic(line, from, at)),
            Argument::Method => Ok(self.complete_method(line, from, at)),
            Argument::Selector => Ok(self.complete_selector(line, from, at)),
            Argument::Word => {
                let start = typed.rfind(char::is_whitespace).map_or(from, |blank| blank + 1);
                let prefix = typed.get(start..).unwrap_or_default();
                let words = table::words(entry.usage).into_iter();
                let words = words.filter(|word| word.starts_with(prefix)).map(pair).collect();
                Ok((start, words))
            }
            Argument::Path => FilenameCompleter::new().complete_path(line, at),
            Argument::None => Ok((at, Vec::new())),
        }
    }
}

fn prompt(line: usize) -> &'static str {
    if line == 0 { PROMPT } else { CONTINUATION }
}

/// How many rows of the screen a text takes after its prompt.
fn rows(prompt: &str, text: &str) -> usize {
    rows_of(prompt, text, usize::from(window().0))
}

fn rows_of(prompt: &str, text: &str, columns: usize) -> usize {
    let lines = text.split('\n').enumerate();
    lines
        .map(|(number, line)| {
            let start = if number == 0 { prompt.len() } else { 0 };
            let width = line.chars().fold(start, |width, letter| match letter {
                '\t' => (width / TAB + 1) * TAB,
                letter => width + letter.width().unwrap_or(0),
            });
            width / columns + 1
        })
        .sum()
}

fn begin_with(mut words: Vec<&str>, prefix: &str) -> Vec<Pair> {
    words.retain(|word| word.starts_with(prefix));
    words.sort_unstable();
    words.dedup();
    words.into_iter().map(pair).collect()
}

fn pair(text: &str) -> Pair {
    Pair {
        display: text.to_owned(),
        replacement: text.to_owned(),
    }
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
        // Everything there is is no help, and asking whether to show it takes the next key.
        let is_begun = line.get(..at).is_some_and(|typed| !typed.trim().is_empty());
        if !is_begun {
            return Ok((at, Vec::new()));
        }
        Ok(self.complete_code(line, 0, at))
    }
}

impl Highlighter for Assistant {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        // Several lines are told apart and drawn then, once: what has left the screen cannot be drawn over.
        if lock(&self.keys).is_pasted() {
            return Cow::Borrowed("");
        }
        if self.is_plain.get() || line.trim_start().starts_with(':') {
            return Cow::Borrowed(line);
        }
        Cow::Owned(self.palette.code_after(&self.before.borrow(), line))
    }

    fn highlight_hint<'h>(&self, _: &'h str) -> Cow<'h, str> {
        Cow::Owned(self.after.borrow().1.clone())
    }

    fn highlight_char(&self, _: &str, _: usize, kind: CmdKind) -> bool {
        self.palette == Palette::Colored && kind != CmdKind::MoveCursor
    }
}

impl Hinter for Assistant {
    type Hint = Following;

    fn hint(&self, line: &str, at: usize, _: &Context<'_>) -> Option<Following> {
        if self.is_plain.get() {
            return None;
        }
        if let Some(notices) = &*self.notices.borrow() {
            notices.set_prompt(self.prompt(line));
        }
        if lock(&self.keys).look_at(line, at) {
            // The editor comes back as if it were interrupted, and the lines are told apart.
            let own = rustix::process::getpid();
            let _ = rustix::process::kill_process(own, rustix::process::Signal::INT);
            return None;
        }
        Some(Following(self.after.borrow().0.clone()))
    }
}

impl Validator for Assistant {}

impl Helper for Assistant {}

#[cfg(test)]
mod tests {
    use super::rows_of;

    #[test]
    fn rows_are_counted_as_the_editor_draws_them() {
        assert_eq!(rows_of("> ", "", 10), 1);
        assert_eq!(rows_of("> ", "1234567", 10), 1);
        // A full row has the cursor on the next one.
        assert_eq!(rows_of("> ", "12345678", 10), 2);
        assert_eq!(rows_of("> ", "日本語日本", 10), 2);
        assert_eq!(rows_of("> ", "\tx", 10), 1);
        assert_eq!(rows_of("> ", "a\nb\n12345678901", 10), 4);
    }
}
