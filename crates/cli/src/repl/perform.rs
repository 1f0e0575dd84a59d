//! The commands: each one or a few operations, and how their answers are shown.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::answers::changes::{self, Filter};
use super::answers::{self, names};
use super::inspect::{self, Root, Step, View};
use super::link::channels;
use super::render::{self, Rendered, error_of, list, objects, text};
use super::session::{Ask, Line, Mode, Outcome, Session, Trouble, fields};
use super::table::{self, Command, split_word};
use crate::exit::Exit;

/// How long an actor may take to stop by itself.
const GRACE: Duration = Duration::from_secs(5);
/// Where the value of an inspected expression is kept.
const INSPECTED: &str = "inspected";

/// What a flush may do to files.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Files {
    Kept,
    Deleted,
}

impl Session {
    pub(super) fn perform(
        &mut self,
        command: Command,
        words: &str,
        ask: &mut dyn Ask,
    ) -> Result<Outcome, Trouble> {
        match command {
            Command::Help => self.help(words, ask),
            Command::Exit => Ok(Outcome::Leave(Exit::Success)),
            Command::Load => self.load(words, ask),
            Command::Reload => self.reload(words, ask),
            Command::Sync => self.simple(ask, "load-project", Map::new(), |answer, _| {
                answers::loaded(answer)
            }),
            Command::Unload => self.simple(ask, "unload", fields([("class", words)]), |_, _| {
                Rendered::out(format!("Unloaded {words}"))
            }),
            Command::Bindings => self.simple(ask, "bindings", Map::new(), answers::bindings),
            Command::Clear => self.simple(ask, "clear", Map::new(), |_, _| Rendered::out("Cleared")),
            Command::Actors => self.simple(ask, "actors", Map::new(), |answer, _| answers::actors(answer)),
            Command::Inspect => self.inspect(words, ask),
            Command::Kill => self.kill(words, ask),
            Command::Sessions => {
                let own = self.link.session();
                self.simple(ask, "sessions", Map::new(), |answer, _| {
                    answers::sessions(answer, &own)
                })
            }
            Command::Test => self.test(words, ask),
            Command::ShowCodegen => self.show_codegen(words, ask),
            Command::Trace => self.trace(words, ask),
            Command::Time => self.time(words, ask),
            Command::Interrupt => self.simple(ask, "interrupt", Map::new(), |answer, _| {
                Rendered::out(if answer.get("value") == Some(&Value::Bool(true)) {
                    "Interrupted"
                } else {
                    "Nothing is running"
                })
            }),
            Command::Changes => self.changes(words, ask),
            Command::Dirty => self.simple(ask, "dirty", Map::new(), |answer, _| changes::dirty(answer)),
            Command::Diff => self.diff(words, ask),
            Command::Flush => self.flush(words, Files::Kept, ask),
            Command::FlushDestructive => self.flush(words, Files::Deleted, ask),
            Command::Take => self.take(words, ask),
            Command::Discard => self.discard(words, ask),
            Command::Revert => self.revert(words, ask),
            Command::Restore => self.restore(words, ask),
            Command::RemoveMethod => self.remove_method(words, ask),
            Command::RemoveClass => self.remove_class(words, ask),
            Command::Recheck => match words {
                "image" => self.simple(ask, "recheck-image", Map::new(), |answer, _| {
                    answers::rechecked(answer)
                }),
                _ => self.refuse("usage", "Usage: :recheck image"),
            },
            Command::Transcript => self.transcript(words, ask),
            Command::Error => self.error(),
            Command::Reconnect => self.reconnect(),
        }
    }

    /// One operation whose answer is shown.
    fn simple(
        &mut self,
        ask: &mut dyn Ask,
        op: &str,
        fields: Map<String, Value>,
        show: impl FnOnce(&Map<String, Value>, super::paint::Palette) -> Rendered,
    ) -> Result<Outcome, Trouble> {
        let answer = self.call(op, fields, ask)?;
        self.finish(answer, "", show)
    }

    fn help(&mut self, topic: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        let words: Vec<&str> = topic.split_whitespace().collect();
        let fields = match *words.as_slice() {
            [] => {
                self.screen.show(&Rendered::out(table::overview()))?;
                return Ok(Outcome::Done);
            }
            ["Erlang", module] => fields([("erlang_module", module)]),
            ["Erlang", module, function] => fields([("erlang_module", module), ("selector", function)]),
            [class, "class"] => fields([("class", class), ("side", "class")]),
            [class, "class", selector] => {
                fields([("class", class), ("side", "class"), ("selector", selector)])
            }
            [class] => fields([("class", class)]),
            [class, selector] => fields([("class", class), ("selector", selector)]),
            _ => return self.refuse("usage", "Usage: :help [topic]"),
        };
        self.simple(ask, "docs", fields, |answer, _| {
            Rendered::out(text(answer, "docs"))
        })
    }

    /// The daemon stands in the project, the user perhaps somewhere else.
    fn load(&mut self, path: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        let path = path.trim_matches('"');
        let here = std::fs::canonicalize(Path::new(path));
        let path = here.map_or_else(|_| path.to_owned(), |found| found.display().to_string());
        self.last_path = Some(path.clone());
        self.load_path(&path, ask)
    }

    fn load_path(&mut self, path: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        let answer = self.call("load-file", fields([("path", path)]), ask)?;
        let has_errors = answers::has_load_errors(&answer);
        let outcome = self.finish(answer, "", |answer, _| answers::loaded(answer))?;
        Ok(failed_if(has_errors, outcome))
    }

    fn reload(&mut self, class: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        if !class.is_empty() {
            return self.simple(ask, "reload", fields([("class", class)]), |answer, _| {
                answers::reloaded(answer)
            });
        }
        match self.last_path.clone() {
            Some(path) => self.load_path(&path, ask),
            None => self.refuse("usage", "Nothing was loaded yet. Usage: :reload [Class]"),
        }
    }

    fn inspect(&mut self, words: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        let view = match inspect::step(self.view.as_ref(), words) {
            Step::Look(view) => view,
            Step::Refused(why) => return self.refuse("inspect_failed", &why),
            Step::Evaluate => match self.inspected_value(words, ask)? {
                Ok(view) => view,
                Err(outcome) => return Ok(outcome),
            },
        };
        self.look(view, ask)
    }

    fn look(&mut self, mut view: View, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        let answer = self.call("inspect", view.request(), ask)?;
        let outcome = self.finish(answer, "", |answer, palette| view.show(answer, palette))?;
        if outcome == Outcome::Done {
            self.view = Some(view);
        }
        Ok(outcome)
    }

    /// Where the value of an expression can be looked at: a variable is one already, an actor has its pid, everything
    /// else is bound to a variable first.
    fn inspected_value(&mut self, code: &str, ask: &mut dyn Ask) -> Result<Result<View, Outcome>, Trouble> {
        if is_variable(code) {
            return Ok(Ok(View::new(Root::Binding(code.to_owned()))));
        }
        let code = format!("{INSPECTED} := ({code})");
        let answer = self.call("eval", self.evaluation_fields(&code), ask)?;
        if error_of(&answer).is_some() {
            return self.finish(answer, &code, |_, _| Rendered::default()).map(Err);
        }
        let root = match inspect::actor_pid(text(&answer, "text")) {
            Some(pid) => Root::Actor(pid.to_owned()),
            None => Root::Binding(INSPECTED.to_owned()),
        };
        Ok(Ok(View::new(root)))
    }

    fn kill(&mut self, pid: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        let shown = answers::pid(pid);
        let mut asked = fields([("actor", pid)]);
        asked.insert("graceful".to_owned(), true.into());
        if let Some(answer) = self.call_within("kill", asked.clone(), ask, GRACE)?
            && error_of(&answer).is_none_or(|error| error.kind != "timeout")
        {
            return self.finish(answer, "", |_, _| Rendered::out(format!("Stopped {shown}")));
        }
        asked.insert("graceful".to_owned(), false.into());
        self.simple(ask, "kill", asked, |_, _| {
            Rendered::out(format!("Killed {shown}"))
        })
    }

    fn test(&mut self, class: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        let loaded = self.call("load-tests", Map::new(), ask)?;
        // A workspace without a project has no test files, and may have test classes.
        let has_project = error_of(&loaded).is_none_or(|error| error.kind != "file_not_found");
        if has_project && (error_of(&loaded).is_some() || answers::has_load_errors(&loaded)) {
            let outcome = self.finish(loaded, "", |answer, _| answers::loaded(answer))?;
            return Ok(failed_if(true, outcome));
        }
        let answer = if class.is_empty() {
            self.call("test-all", Map::new(), ask)?
        } else {
            self.call("test", fields([("class", class)]), ask)?
        };
        let has_failed = list(&answer, "status").iter().any(|flag| flag == "test-error");
        let outcome = self.finish(answer, "", |answer, _| answers::tests(answer))?;
        Ok(failed_if(has_failed, outcome))
    }

    fn show_codegen(&mut self, words: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        let (form, code) = match split_word(words) {
            ("core", code) if !code.is_empty() => ("core", code),
            _ => ("erlang", words),
        };
        self.simple(
            ask,
            "show-codegen",
            fields([("code", code), ("form", form)]),
            |answer, _| {
                let shown = match text(answer, "erlang") {
                    "" => text(answer, "core_erlang"),
                    erlang => erlang,
                };
                Rendered::out(shown)
            },
        )
    }

    fn trace(&mut self, code: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        let mut fields = self.evaluation_fields(code);
        fields.insert("trace".to_owned(), true.into());
        let answer = self.call("eval", fields, ask)?;
        self.finish(answer, code, answers::steps)
    }

    fn time(&mut self, code: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        let started = Instant::now();
        let answer = self.call("eval", self.evaluation_fields(code), ask)?;
        let milliseconds = started.elapsed().as_secs_f64() * 1000.0;
        self.finish(answer, code, |answer, palette| {
            let mut rendered = render::evaluation(answer, palette);
            rendered.line(&format!("{milliseconds:.1} ms"));
            rendered
        })
    }

    /// The differences of all entries, or of those of one class.
    fn diff(&mut self, class: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        let answer = self.call("changes", Map::new(), ask)?;
        if error_of(&answer).is_some() {
            return self.finish(answer, "", |_, _| Rendered::default());
        }
        let numbers: Vec<u64> = objects(&answer, "entries")
            .filter(|entry| class.is_empty() || text(entry, "class") == class)
            .filter_map(|entry| entry.get("seq").and_then(Value::as_u64))
            .collect();
        if numbers.is_empty() {
            self.screen.show(&Rendered::out("Nothing differs from disk"))?;
        }
        for number in numbers {
            let outcome = self.simple(ask, "diff", sequence(number), |answer, _| {
                Rendered::out(text(answer, "diff"))
            })?;
            if outcome != Outcome::Done {
                return Ok(outcome);
            }
        }
        Ok(Outcome::Done)
    }

    fn flush(&mut self, words: &str, files: Files, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        let Some(filter) = Filter::parse(words) else {
            return self.refuse(
                "usage",
                "A filter is a class, a kind such as #'new-class', or #{#file => \"path\"}",
            );
        };
        let mut fields = filter.fields();
        if files == Files::Deleted {
            if !Self::confirm(ask, "This may delete files. Go on?")? {
                return self.refuse("not_confirmed", "Nothing was flushed");
            }
            fields.insert("confirm_destructive".to_owned(), true.into());
        }
        let answer = self.call("flush", fields, ask)?;
        let has_conflicts = changes::has_conflicts(&answer);
        let outcome = self.finish(answer, "", |answer, _| changes::flushed(answer))?;
        Ok(failed_if(has_conflicts, outcome))
    }

    fn changes(&mut self, words: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        let mut fields = Map::new();
        match words {
            "" => {}
            "all" => drop(fields.insert("all".to_owned(), true.into())),
            _ => return self.refuse("usage", "Usage: :changes [all]"),
        }
        self.simple(ask, "changes", fields, |answer, _| changes::entries(answer))
    }

    /// Settle a conflict. Without a class the only one there is; where there are more they are listed.
    fn take(&mut self, words: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        const USAGE: &str = "Usage: :take image|disk [Class [selector]]";
        let words: Vec<&str> = words.split_whitespace().collect();
        let asked = match *words.as_slice() {
            [from @ ("image" | "disk")] => {
                let answer = self.call("changes", Map::new(), ask)?;
                if error_of(&answer).is_some() {
                    return self.finish(answer, "", |_, _| Rendered::default());
                }
                let files: Vec<String> = objects(&answer, "conflicts")
                    .map(|conflict| text(conflict, "file").to_owned())
                    .collect();
                match files.as_slice() {
                    [file] => fields([("from", from), ("file", file.as_str())]),
                    [] => return self.refuse("no_conflict", "Image and disk are not in conflict"),
                    _ => {
                        let mut shown = Rendered::default();
                        changes::conflict_lines(&mut shown, &answer);
                        self.screen.show(&shown)?;
                        return self.refuse("usage", "Several files are in conflict: name a class");
                    }
                }
            }
            [from @ ("image" | "disk"), class] => fields([("from", from), ("class", class)]),
            [from @ ("image" | "disk"), class, selector] => fields([
                ("from", from),
                ("class", class),
                ("selector", selector),
                ("side", "instance"),
            ]),
            [from @ ("image" | "disk"), class, "class", selector] => fields([
                ("from", from),
                ("class", class),
                ("selector", selector),
                ("side", "class"),
            ]),
            _ => return self.refuse("usage", USAGE),
        };
        let answer = self.call("take", asked, ask)?;
        self.finish(answer, "", |answer, _| changes::taken(answer))
    }

    fn discard(&mut self, words: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        let asked = match words.parse::<u64>() {
            Ok(number) => sequence(number),
            Err(_) if words == "all" => [("all".to_owned(), true.into())].into_iter().collect(),
            Err(_) => fields([("class", words)]),
        };
        let question = "Set these changes aside and load what is on disk?";
        if !Self::confirm(ask, question)? {
            return self.refuse("not_confirmed", "Nothing was discarded");
        }
        self.simple(ask, "discard", asked, |answer, _| changes::discarded(answer))
    }

    fn revert(&mut self, words: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        let Ok(number) = words.parse::<u64>() else {
            return self.refuse("usage", "Usage: :revert SEQ (`:changes` lists the numbers)");
        };
        self.simple(ask, "revert", sequence(number), |answer, _| {
            let subject = answer
                .get("entry")
                .and_then(Value::as_object)
                .map(changes::subject);
            Rendered::out(format!("Reverted {}", subject.unwrap_or_default()).trim_end())
        })
    }

    fn restore(&mut self, words: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        let answer = self.call("restore", changes::chosen(words), ask)?;
        let is_partial = changes::has_conflicts(&answer) || !list(&answer, "failed").is_empty();
        let outcome = self.finish(answer, "", |answer, _| changes::restored(answer))?;
        Ok(failed_if(is_partial, outcome))
    }

    /// Changes of an earlier run wait: ask once what to do about them.
    pub(super) fn decide_about_waiting(&mut self, ask: &mut dyn Ask) -> Result<(), Trouble> {
        let answer = self.call("changes", Map::new(), ask)?;
        let seq = |entry: &Map<String, Value>| entry.get("seq").and_then(Value::as_u64);
        let entries: Vec<&Map<String, Value>> = objects(&answer, "waiting")
            .filter(|entry| seq(entry).is_some_and(|seq| !self.asked.contains(&seq)))
            .collect();
        if entries.is_empty() {
            return Ok(());
        }
        let mut rendered = Rendered::default();
        for entry in &entries {
            rendered.complaint(&changes::waiting_line(entry));
        }
        let waiting: Vec<u64> = entries.into_iter().filter_map(seq).collect();
        self.asked.extend(&waiting);
        self.screen.show(&rendered)?;
        loop {
            let line = ask.ask("install, later, discard? ")?;
            self.screen.line_was_ended();
            let words = match &line {
                Line::Text(text) => text.trim(),
                Line::End | Line::Cancelled => "",
            };
            return match words {
                "" | "later" | "l" => Ok(()),
                "install" | "i" => {
                    // Should they ever wait again, that is another question.
                    self.asked.retain(|seq| !waiting.contains(seq));
                    self.restore("all", ask).map(drop)
                }
                // One by one: what is pending by now is not meant.
                "discard" | "d" => {
                    for seq in waiting {
                        self.simple(ask, "discard", sequence(seq), |answer, _| {
                            changes::discarded(answer)
                        })?;
                    }
                    Ok(())
                }
                _ => continue,
            };
        }
    }

    fn remove_method(&mut self, words: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        let words: Vec<&str> = words.split_whitespace().collect();
        let (class, side, selector) = match *words.as_slice() {
            [class, selector] => (class, "instance", selector),
            [class, "class", selector] => (class, "class", selector),
            _ => return self.refuse("usage", "Usage: :remove-method Class [class] selector"),
        };
        let selector = selector.trim_start_matches('#').trim_matches('\'');
        let asked = fields([("class", class), ("side", side), ("selector", selector)]);
        self.simple(ask, "remove-method", asked, |answer, _| {
            removed(answer, &format!("{class}>>{selector}"))
        })
    }

    fn remove_class(&mut self, class: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        let question = format!("Remove {class} from the image? Its file stays.");
        if !Self::confirm(ask, &question)? {
            return self.refuse("not_confirmed", "Nothing was removed");
        }
        self.simple(ask, "remove-class", fields([("class", class)]), |answer, _| {
            removed(answer, class)
        })
    }

    fn transcript(&mut self, words: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        let (op, is_on) = match words {
            "on" => ("subscribe", true),
            "off" => ("unsubscribe", false),
            _ => return self.refuse("usage", "Usage: :transcript on|off"),
        };
        let outcome = self.simple(ask, op, channels(), |_, _| Rendered::default())?;
        if outcome == Outcome::Done {
            self.link.want_transcript(is_on);
        }
        Ok(outcome)
    }

    fn error(&mut self) -> Result<Outcome, Trouble> {
        let shown = match &self.last_error {
            Some(error) => render::full_failure(error, self.screen.palette),
            None => "No error yet".to_owned(),
        };
        self.screen.show(&Rendered::out(shown))?;
        Ok(Outcome::Done)
    }

    fn reconnect(&mut self) -> Result<Outcome, Trouble> {
        if self.mode == Mode::Batch {
            return self.refuse("usage", ":reconnect needs a terminal");
        }
        if self.link.reconnect() {
            Ok(Outcome::Done)
        } else {
            Ok(Outcome::Leave(Exit::NotRunning))
        }
    }
}

fn removed(answer: &Map<String, Value>, what: &str) -> Rendered {
    let mut rendered = Rendered::default();
    render::warnings(&mut rendered, answer);
    let stopped = names(answer, "stopped_actors");
    let actors = if stopped.is_empty() {
        String::new()
    } else {
        format!(" ({} stopped)", answers::count(stopped.len() as u64, "actor"))
    };
    rendered.line(&format!("Removed {what}{actors}"));
    rendered
}

fn sequence(number: u64) -> Map<String, Value> {
    [("seq".to_owned(), number.into())].into_iter().collect()
}

fn failed_if(failed: bool, outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Done if failed => Outcome::Failed(Exit::Failure),
        other => other,
    }
}

fn is_variable(code: &str) -> bool {
    code.starts_with(|first: char| first.is_lowercase() || first == '_')
        && code
            .chars()
            .all(|character| character.is_alphanumeric() || character == '_')
        && !matches!(code, "nil" | "true" | "false" | "self" | "super")
}
