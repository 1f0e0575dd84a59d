//! Commands that look at code and at the workspace: sources, places, the editor, the busiest actors.

use std::io::{Read, Write};
use std::time::Instant;

use beamtalk_wire::Operation;
use beamtalk_wire::answers::{EvalAnswer, Symbol};
use beamtalk_wire::requests::{
    BrowseClass, BrowseMethodSource, Describe, Health, Methods, NavKind, NavQuery, NavSymbols, SaveMethod,
    SymbolScope, TopOrder,
};
use serde_json::json;

use crate::answers::browse::{self, Subject, bare_selector};
use crate::answers::status::{self, Here};
use crate::error::Result;
use crate::pager;
use crate::render::{self, Rendered};
use crate::session::{Ask, Layout, Line, Mode, Outcome, Session, Trouble};
use crate::top::{self, Press, Taken};

/// The text of a subject with its place; or what came of asking for it.
struct Found {
    text: String,
    place: String,
    /// The comment above a method, which a patch cannot have.
    documentation: String,
}

impl Session {
    pub(super) fn source(&mut self, words: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        let Some(subject) = Subject::parse(words) else {
            return self.refuse("usage", "Usage: :source Class [class] [selector]");
        };
        if self.screen.is_json()
            && let Some(selector) = subject.selector.clone()
        {
            let request = method_request(&subject, &selector);
            return self.simple(ask, &request, |_, _| Rendered::default());
        }
        let found = match self.text_of(&subject, ask)? {
            Ok(found) => found,
            Err(outcome) => return Ok(outcome),
        };
        let text = found.documentation + &found.text;
        let shown = browse::source(&subject.title(), &found.place, &text, self.screen.palette);
        self.screen.show(&shown)?;
        Ok(Outcome::Done)
    }

    /// The text a class or method runs as. An error is shown here.
    fn text_of(&mut self, subject: &Subject, ask: &mut dyn Ask) -> Result<Result<Found, Outcome>, Trouble> {
        let methods = match self.wanted(
            &Methods {
                class: subject.class.clone(),
            },
            ask,
        )? {
            Ok(answer) => answer.methods,
            Err(outcome) => return Ok(Err(outcome)),
        };
        let symbol = self.place_of(&subject.class, ask)?;
        let file = symbol.as_ref().and_then(|symbol| symbol.source_file.clone());
        let place = |line| browse::place(file.as_deref(), line);
        if let Some(selector) = &subject.selector {
            let request = method_request(subject, selector);
            let method = match self.wanted(&request, ask)? {
                Ok(method) => method,
                Err(outcome) => return Ok(Err(outcome)),
            };
            let Some(source) = &method.source else {
                let why = format!(
                    "{} has no source: the compiler or Erlang made it",
                    subject.title()
                );
                return self.refuse("no_source", &why).map(Err);
            };
            return Ok(Ok(Found {
                place: place(browse::line_of(&methods, subject)),
                text: browse::bare_source(source).to_owned(),
                documentation: browse::documentation("", method.doc.as_deref()),
            }));
        }
        let request = BrowseClass {
            class: subject.class.clone(),
        };
        let class = match self.wanted(&request, ask)? {
            Ok(class) => class,
            Err(outcome) => return Ok(Err(outcome)),
        };
        // As they stand in the file; what has no line there comes last.
        let written = class
            .methods
            .iter()
            .filter(|method| method.source_status == "indexed");
        let mut order: Vec<_> = written.collect();
        order.sort_by_key(|method| (method.line.is_none(), method.line));
        let members: Vec<String> = order.into_iter().filter_map(browse::member).collect();
        Ok(Ok(Found {
            text: browse::class_text(class.comment.as_deref(), &class.definition, &members),
            place: place(symbol.as_ref().and_then(|symbol| symbol.line)),
            documentation: String::new(),
        }))
    }

    /// Where a class stands; nothing when that is not known.
    fn place_of(&mut self, class: &str, ask: &mut dyn Ask) -> Result<Option<Symbol>, Trouble> {
        let symbols = NavSymbols {
            scope: Some(SymbolScope::All),
        };
        let answer = self.call(&symbols, ask)?;
        let name = class.rsplit('@').next().unwrap_or(class);
        let classes = answer.body.map(|answer| answer.classes).unwrap_or_default();
        Ok(classes.into_iter().find(|symbol| symbol.name == name))
    }

    /// The answer to a question; its error is shown and becomes the outcome.
    fn wanted<O: Operation>(
        &mut self,
        request: &O,
        ask: &mut dyn Ask,
    ) -> Result<Result<O::Answer, Outcome>, Trouble> {
        let answer = self.call(request, ask)?;
        if answer.body.is_err() {
            return self.finish(answer, "", |_, _| Rendered::default()).map(Err);
        }
        answer.body.map(Ok).map_err(|_| Trouble::Lost)
    }

    pub(super) fn navigate(
        &mut self,
        kind: NavKind,
        words: &str,
        ask: &mut dyn Ask,
    ) -> Result<Outcome, Trouble> {
        let subject = bare_selector(words);
        if subject.contains(char::is_whitespace) {
            let (name, wanted) = match kind {
                NavKind::Senders => ("senders", "selector"),
                NavKind::Implementors => ("implementors", "selector"),
                NavKind::References => ("references", "Class"),
            };
            return self.refuse("usage", &format!("Usage: :{name} {wanted}"));
        }
        let mut query = NavQuery {
            kind,
            ..NavQuery::default()
        };
        let what = match kind {
            NavKind::Senders => format!("senders of {subject}"),
            NavKind::Implementors => format!("implementors of {subject}"),
            NavKind::References => format!("references to {subject}"),
        };
        match kind {
            NavKind::References => query.class = Some(subject.to_owned()),
            NavKind::Senders | NavKind::Implementors => query.selector = Some(subject.to_owned()),
        }
        self.simple(ask, &query, |answer, palette| {
            browse::sites(&what, &answer.sites, palette)
        })
    }

    pub(super) fn status(&mut self, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        let described = match self.wanted(&Describe {}, ask)? {
            Ok(described) => described,
            Err(outcome) => return Ok(outcome),
        };
        let here = Here {
            session: self.link.session(),
            address: self.link.address(),
        };
        let mut answer = self.call(&Health::default(), ask)?;
        answer
            .message
            .insert("address".to_owned(), here.address.clone().into());
        for (name, value) in [
            ("capabilities", json!(described.capabilities)),
            ("limits", json!(described.limits)),
            ("versions", json!(described.versions)),
        ] {
            answer.message.insert(name.to_owned(), value);
        }
        self.finish(answer, "", |health, palette| {
            status::status(&here, health, &described, palette)
        })
    }

    pub(super) fn print(&mut self, words: &str) -> Result<Outcome, Trouble> {
        self.layout = match words {
            "all" => Layout::All,
            "short" => Layout::Short,
            _ => return self.refuse("usage", "Usage: :print all|short"),
        };
        Ok(Outcome::Done)
    }

    /// At a terminal a view that lives until a key leaves it; elsewhere its first table.
    pub(super) fn top(&mut self, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        if self.mode == Mode::Batch {
            let request = top::request(TopOrder::Queue, pager::window().1);
            return self.simple(ask, &request, |answer, palette| {
                let lines = top::table(answer, TopOrder::Queue, usize::from(pager::window().0), palette);
                Rendered::out(lines.join("\n"))
            });
        }
        let mut ended = Ok(Outcome::Done);
        let mut nobody = Nobody;
        ask.lend_terminal(&mut || ended = self.watch(&mut nobody))?;
        ended
    }

    fn watch(&mut self, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        let mut order = TopOrder::Queue;
        let taken = Taken::take()?;
        loop {
            let (columns, rows) = pager::window();
            let started = Instant::now();
            let answer = self.call(&top::request(order, rows), ask)?;
            let Ok(body) = &answer.body else {
                drop(taken);
                return self.finish(answer, "", |_, _| Rendered::default());
            };
            let lines = top::table(body, order, usize::from(columns), self.screen.palette);
            top::draw(&lines, rows)?;
            match top::key(started.elapsed())?.map(top::press) {
                Some(Press::Leave) => return Ok(Outcome::Done),
                Some(Press::Sort(wanted)) => order = wanted,
                Some(Press::Nothing) | None => {}
            }
        }
    }

    pub(super) fn edit(&mut self, words: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        let Some(subject) = Subject::parse(words) else {
            return self.refuse("usage", "Usage: :edit Class [class] [selector]");
        };
        if self.mode == Mode::Batch {
            return self.refuse("usage", ":edit needs a terminal");
        }
        let found = match self.text_of(&subject, ask)? {
            Ok(found) => found,
            Err(outcome) => return Ok(outcome),
        };
        let before = format!("{}\n", found.text.trim_end());
        let name = subject
            .title()
            .replace(|letter: char| !letter.is_alphanumeric(), "-");
        let mut file = tempfile::Builder::new()
            .prefix(&format!("{name}-"))
            .suffix(".bt")
            .tempfile()?;
        file.write_all(before.as_bytes())?;
        loop {
            if let Err(why) = run_editor(file.path(), ask)? {
                let kept = file.path().display().to_string();
                drop(file.keep());
                return self.refuse("editor", &format!("{why}; the text is in {kept}"));
            }
            // Some editors put another file in the place of this one.
            let mut after = String::new();
            let read = std::fs::File::open(file.path()).and_then(|mut file| file.read_to_string(&mut after));
            if let Err(error) = read {
                let why = format!("what the editor left cannot be read ({error}); nothing was changed");
                return self.refuse("editor", &why);
            }
            if after.trim_end() == before.trim_end() {
                self.screen.show(&Rendered::out("Unchanged"))?;
                return Ok(Outcome::Done);
            }
            let is_mine = match self.text_of(&subject, ask)? {
                Ok(now) if now.text != found.text => {
                    let question = format!("{} was changed meanwhile. Replace it?", subject.title());
                    Self::confirm(ask, &question)?
                }
                Ok(_) | Err(_) => true,
            };
            if is_mine && self.save(&subject, after.trim_end(), ask)? == Outcome::Done {
                return Ok(Outcome::Done);
            }
            let again = ask.ask("Edit again? Y/n ")?;
            self.screen.line_was_ended();
            if !matches!(&again, Line::Text(text) if matches!(text.trim(), "" | "y" | "Y" | "yes")) {
                let kept = file.path().display().to_string();
                drop(file.keep());
                return self.refuse(
                    "not_saved",
                    &format!("Nothing was changed; the text is in {kept}"),
                );
            }
        }
    }

    /// Install an edited text as if it were typed.
    fn save(&mut self, subject: &Subject, text: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        let Some(selector) = &subject.selector else {
            let answer = self.call(&self.evaluation(text), ask)?;
            return self.finish_evaluation(answer, text, |answer: &EvalAnswer, palette| {
                render::evaluation(answer, palette)
            });
        };
        let save = SaveMethod {
            class: subject.class.clone(),
            selector: selector.clone(),
            source: text.to_owned(),
            side: Some(subject.side),
            base_sha256: None,
        };
        let answer = self.call(&save, ask)?;
        self.finish(answer, text, |answer, palette| {
            let mut rendered = Rendered::default();
            if let Some(new) = &answer.entry {
                let title = palette.code(&new.entry.title());
                rendered.line(&format!("{title} {}", palette.aside(&render::note(&new.entry))));
            }
            crate::answers::findings(&mut rendered, &answer.findings);
            rendered
        })
    }
}

/// Nobody can be asked while something else has the terminal.
struct Nobody;

impl Ask for Nobody {
    fn ask(&mut self, _: &str) -> Result<Line> {
        Ok(Line::End)
    }
}

fn method_request(subject: &Subject, selector: &str) -> BrowseMethodSource {
    BrowseMethodSource {
        class: subject.class.clone(),
        selector: selector.to_owned(),
        side: Some(subject.side),
    }
}

/// The user's editor on a file, with the terminal. Why it did not end well, if so.
fn run_editor(file: &std::path::Path, ask: &mut dyn Ask) -> Result<Result<(), String>> {
    let named = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let editor = named("VISUAL")
        .or_else(|| named("EDITOR"))
        .unwrap_or_else(|| "vi".to_owned());
    let mut ended = Err("the editor was not started".to_owned());
    ask.lend_terminal(&mut || {
        ended = match beamtalk_process::with_terminal(&editor, file) {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("`{editor}` ended with {status}")),
            Err(error) => Err(format!("`{editor}` does not start: {error}")),
        };
    })?;
    Ok(ended)
}
