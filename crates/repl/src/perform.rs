//! The commands: each one or a few operations, and how their answers are shown.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::approvals;
use beamtalk_wire::answers::{LoadAnswer, TestAnswer};
use beamtalk_wire::requests::{
    Actors, ApprovalAnswer, Approvals, Bindings, ChangeSides, Changes, Clear, CodeForm, Diff, Dirty, Eval,
    From, Interrupt, Kill, LoadFile, LoadProject, LoadTests, NavKind, RecheckImage, Reload, RemoveClass,
    RemoveMethod, Revert, Sessions, ShowCodegen, Subscribe, Take, Test, TestAll, Unload, Unsubscribe,
};
use beamtalk_wire::{Channel, EntryView, ErrorKind, Flag, Operation, Side};

use crate::answers;
use crate::answers::changes::{self, Filter};
use crate::inspect::{self, Root, Step, View};
use crate::pager::window;
use crate::render::{self, Rendered};
use crate::session::{Ask, Line, Mode, Outcome, Session, Trouble};
use crate::table::{Command, split_word};
use beamtalk_client::Exit;

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
            Command::Sync => self.simple(ask, &LoadProject::default(), |answer, _| answers::loaded(answer)),
            Command::Unload => {
                let unload = Unload {
                    class: words.to_owned(),
                    force: None,
                };
                self.simple(ask, &unload, |_, _| Rendered::out(format!("Unloaded {words}")))
            }
            Command::Bindings => self.simple(ask, &Bindings::default(), answers::bindings),
            Command::Clear => self.simple(ask, &Clear {}, |_, _| Rendered::out("Cleared")),
            Command::Actors => self.simple(ask, &Actors::default(), |answer, _| {
                answers::actors(&answer.actors)
            }),
            Command::Inspect => self.inspect(words, ask),
            Command::Kill => self.kill(words, ask),
            Command::Sessions => {
                let own = self.link.session();
                self.simple(ask, &Sessions {}, |answer, _| answers::sessions(answer, &own))
            }
            Command::Test => self.test(words, ask),
            Command::ShowCodegen => self.show_codegen(words, ask),
            Command::Trace => self.trace(words, ask),
            Command::Time => self.time(words, ask),
            Command::Interrupt => self.simple(ask, &Interrupt::default(), |answer, _| {
                Rendered::out(if answer.value {
                    "Interrupted"
                } else {
                    "Nothing is running"
                })
            }),
            Command::Changes => self.changes(words, ask),
            Command::Approvals => self.approvals(words, ask),
            Command::Dirty => self.simple(ask, &Dirty {}, |answer, _| changes::dirty(answer)),
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
                "image" => self.simple(ask, &RecheckImage {}, |answer, _| answers::rechecked(answer)),
                _ => self.refuse("usage", "Usage: :recheck image"),
            },
            Command::Transcript => self.transcript(words, ask),
            Command::Error => self.error(),
            Command::Source => self.source(words, ask),
            Command::Senders => self.navigate(NavKind::Senders, words, ask),
            Command::Implementors => self.navigate(NavKind::Implementors, words, ask),
            Command::References => self.navigate(NavKind::References, words, ask),
            Command::Edit => self.edit(words, ask),
            Command::Top => self.top(ask),
            Command::Status => self.status(ask),
            Command::Print => self.print(words),
            Command::Reconnect => self.reconnect(),
        }
    }

    /// One operation whose answer is shown.
    pub(super) fn simple<O: Operation>(
        &mut self,
        ask: &mut dyn Ask,
        request: &O,
        show: impl FnOnce(&O::Answer, super::paint::Palette) -> Rendered,
    ) -> Result<Outcome, Trouble> {
        let answer = self.call(request, ask)?;
        self.finish(answer, "", show)
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
        let file = LoadFile {
            except: None,
            path: path.to_owned(),
        };
        let answer = self.call(&file, ask)?;
        let has_errors = answer.body.as_ref().is_ok_and(has_errors);
        let outcome = self.finish(answer, "", |answer, _| answers::loaded(answer))?;
        Ok(failed_if(has_errors, outcome))
    }

    fn reload(&mut self, class: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        if !class.is_empty() {
            let class = class.to_owned();
            return self.simple(ask, &Reload { class }, |answer, _| answers::reloaded(answer));
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
        let answer = self.call(&view.request(), ask)?;
        let columns = usize::from(window().0);
        let outcome = self.finish(answer, "", |answer, palette| view.show(answer, columns, palette))?;
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
        let answer = self.call(&self.evaluation(&code), ask)?;
        let Ok(value) = &answer.body else {
            return self.finish(answer, &code, |_, _| Rendered::default()).map(Err);
        };
        let root = match inspect::actor_pid(&value.text) {
            Some(pid) => Root::Actor(pid.to_owned()),
            None => Root::Binding(INSPECTED.to_owned()),
        };
        Ok(Ok(View::new(root)))
    }

    fn kill(&mut self, pid: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        let shown = answers::pid(pid);
        let mut kill = Kill {
            actor: pid.to_owned(),
            graceful: Some(true),
        };
        if let Some(answer) = self.call_within(&kill, ask, GRACE)?
            && answer
                .body
                .as_ref()
                .err()
                .is_none_or(|error| error.kind != ErrorKind::Timeout)
        {
            return self.finish(answer, "", |_, _| Rendered::out(format!("Stopped {shown}")));
        }
        kill.graceful = Some(false);
        self.simple(ask, &kill, |_, _| Rendered::out(format!("Killed {shown}")))
    }

    fn test(&mut self, class: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        let loaded = self.call(&LoadTests {}, ask)?;
        // A workspace without a project has no test files, and may have test classes.
        let is_loaded = match &loaded.body {
            Ok(answer) => !has_errors(answer),
            Err(error) => error.kind == ErrorKind::FileNotFound,
        };
        if !is_loaded {
            let outcome = self.finish(loaded, "", |answer, _| answers::loaded(answer))?;
            return Ok(failed_if(true, outcome));
        }
        let answer = if class.is_empty() {
            self.call(&TestAll::default(), ask)?
        } else {
            let test = Test {
                class: Some(class.to_owned()),
                ..Test::default()
            };
            self.call(&test, ask)?
        };
        let has_failed = answer.head.status.contains(&Flag::TestError);
        let show = |answer: &TestAnswer, _| answers::tests(&answer.results);
        let outcome = self.finish(answer, "", show)?;
        Ok(failed_if(has_failed, outcome))
    }

    fn show_codegen(&mut self, words: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        let (form, code) = match split_word(words) {
            ("core", code) if !code.is_empty() => (CodeForm::Core, code),
            _ => (CodeForm::Erlang, words),
        };
        let of = ShowCodegen {
            code: Some(code.to_owned()),
            form: Some(form),
            ..ShowCodegen::default()
        };
        self.simple(ask, &of, |answer, _| {
            let shown = answer.erlang.as_ref().or(answer.core_erlang.as_ref());
            Rendered::out(shown.map_or("", String::as_str))
        })
    }

    fn trace(&mut self, code: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        let traced = Eval {
            trace: Some(true),
            // A line for each statement.
            width: self.width().map(|_| 0),
            ..self.evaluation(code)
        };
        let answer = self.call(&traced, ask)?;
        self.finish_evaluation(answer, code, answers::steps)
    }

    fn time(&mut self, code: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        let started = Instant::now();
        let answer = self.call(&self.evaluation(code), ask)?;
        let milliseconds = started.elapsed().as_secs_f64() * 1000.0;
        self.finish_evaluation(answer, code, |answer, palette| {
            let mut rendered = render::evaluation(answer, palette);
            rendered.line(&format!("{milliseconds:.1} ms"));
            rendered
        })
    }

    /// The differences of all entries, or of those of one class.
    fn diff(&mut self, class: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        let answer = self.call(&Changes::default(), ask)?;
        let Ok(changes) = &answer.body else {
            return self.finish(answer, "", |_, _| Rendered::default());
        };
        let entries = changes.entries.iter().map(|view| &view.entry);
        let numbers: Vec<u64> = entries
            .filter(|entry| class.is_empty() || entry.class == class)
            .map(|entry| entry.seq)
            .collect();
        if numbers.is_empty() {
            let none = if class.is_empty() {
                "Nothing differs from disk".to_owned()
            } else {
                format!("No changes of {class}")
            };
            self.screen.show(&Rendered::out(none))?;
        }
        let shown = |seqs: &[u64]| seqs.iter().any(|seq| numbers.contains(seq));
        let conflicts = changes.conflicts.iter().filter(|conflict| shown(&conflict.seqs));
        let files: Vec<String> = conflicts.map(|conflict| conflict.file.clone()).collect();
        for file in files {
            let sides = ChangeSides {
                file: Some(file.clone()),
                ..ChangeSides::default()
            };
            if let Ok(sides) = self.call(&sides, ask)?.body {
                self.shown_disks
                    .extend(sides.disk_sha256.map(|hash| (file, hash)));
            }
        }
        for seq in numbers {
            let outcome = self.simple(ask, &Diff { seq }, |answer, _| {
                Rendered::out(answer.diff.as_str())
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
        let mut flush = filter.request();
        if files == Files::Deleted {
            let answer = self.call(&Changes::default(), ask)?;
            let Ok(changes) = &answer.body else {
                return self.finish(answer, "", |_, _| Rendered::default());
            };
            self.screen.show(&changes::deletions(&changes.entries, &flush))?;
            // The yes is for what is there now.
            flush.seqs = Some(changes.entries.iter().map(|view| view.entry.seq).collect());
            if !Self::confirm(ask, "This may delete source text. Go on?")? {
                return self.refuse("not_confirmed", "Nothing was flushed");
            }
            flush.confirm_destructive = Some(true);
        }
        let answer = self.call(&flush, ask)?;
        let has_conflicts = answer
            .body
            .as_ref()
            .is_ok_and(|answer| !answer.conflicts.is_empty());
        let outcome = self.finish(answer, "", |answer, _| changes::flushed(answer))?;
        Ok(failed_if(has_conflicts, outcome))
    }

    fn changes(&mut self, words: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        let mut asked = Changes::default();
        match words {
            "" => {}
            "all" => asked.all = Some(true),
            _ => return self.refuse("usage", "Usage: :changes [all]"),
        }
        self.simple(ask, &asked, |answer, _| changes::entries(answer))
    }

    /// Settle a conflict. Without a class the only one there is; where there are more they are listed.
    fn take(&mut self, words: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        const USAGE: &str = "Usage: :take image|disk [Class [selector]]";
        let words: Vec<&str> = words.split_whitespace().collect();
        let (from, place) = match *words.as_slice() {
            ["image", ref place @ ..] => (From::Image, place),
            ["disk", ref place @ ..] => (From::Disk, place),
            _ => return self.refuse("usage", USAGE),
        };
        let mut take = Take {
            from,
            ..Take::default()
        };
        match *place {
            [] => {
                let answer = self.call(&Changes::default(), ask)?;
                let Ok(changes) = &answer.body else {
                    return self.finish(answer, "", |_, _| Rendered::default());
                };
                match changes.conflicts.as_slice() {
                    [conflict] => take.file = Some(conflict.file.clone()),
                    [] => return self.refuse("no_conflict", "Image and disk are not in conflict"),
                    several => {
                        let mut shown = Rendered::default();
                        changes::conflict_lines(&mut shown, several);
                        self.screen.show(&shown)?;
                        return self.refuse("usage", "Several files are in conflict: name a class");
                    }
                }
            }
            [class] => take.class = Some(class.to_owned()),
            [class, selector] | [class, "class", selector] => {
                take.class = Some(class.to_owned());
                take.selector = Some(selector.to_owned());
                take.side = Some(if place.len() == 2 {
                    Side::Instance
                } else {
                    Side::Class
                });
            }
            _ => return self.refuse("usage", USAGE),
        }
        // Whoever looked at the file decides about what was shown.
        let file = match &take.file {
            Some(file) => Some(file.clone()),
            None if self.shown_disks.is_empty() => None,
            None => {
                let sides = ChangeSides {
                    class: take.class.clone(),
                    selector: take.selector.clone(),
                    side: take.side,
                    ..ChangeSides::default()
                };
                self.call(&sides, ask)?.body.ok().and_then(|sides| sides.file)
            }
        };
        take.disk_sha256 = file.as_ref().and_then(|file| self.shown_disks.get(file).cloned());
        let outcome = self.simple(ask, &take, |answer, _| changes::taken(answer))?;
        if let (Outcome::Done, Some(file)) = (outcome, file) {
            self.shown_disks.remove(&file);
        }
        Ok(outcome)
    }

    fn discard(&mut self, words: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        let question = "Set these changes aside and load what is on disk?";
        let meant = changes::discard(words);
        let mut each = Vec::new();
        if meant.seq.is_none() {
            let answer = self.call(&Changes::default(), ask)?;
            let Ok(changes) = &answer.body else {
                return self.finish(answer, "", |_, _| Rendered::default());
            };
            let is_meant = |view: &&EntryView| {
                meant
                    .class
                    .as_ref()
                    .is_none_or(|class| view.entry.class == *class)
            };
            let all = changes.entries.iter().chain(&changes.waiting);
            let entries: Vec<_> = all.filter(is_meant).map(|view| &view.entry).collect();
            let mut rendered = Rendered::default();
            for entry in &entries {
                rendered.complaint(&changes::waiting_line(entry));
            }
            self.screen.show(&rendered)?;
            each.extend(entries.iter().map(|entry| entry.seq));
        }
        if !Self::confirm(ask, question)? {
            return self.refuse("not_confirmed", "Nothing was discarded");
        }
        if each.len() < 2 {
            return self.simple(ask, &meant, |answer, _| changes::discarded(answer));
        }
        // One by one, the last one first: what others changed meanwhile was not shown and is not meant.
        each.sort_unstable();
        let mut worst = Outcome::Done;
        for seq in each.into_iter().rev() {
            let discard = changes::discard(&seq.to_string());
            let outcome = self.simple(ask, &discard, |answer, _| changes::discarded(answer))?;
            worst = if outcome == Outcome::Done { worst } else { outcome };
        }
        Ok(worst)
    }

    fn revert(&mut self, words: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        let Ok(seq) = words.parse::<u64>() else {
            return self.refuse("usage", "Usage: :revert SEQ (`:changes` lists the numbers)");
        };
        self.simple(ask, &Revert { seq }, |answer, _| {
            let subject = answer.entry.as_ref().map(|new| changes::subject(&new.entry));
            Rendered::out(format!("Reverted {}", subject.unwrap_or_default()).trim_end())
        })
    }

    fn restore(&mut self, words: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        let answer = self.call(&changes::restore(words), ask)?;
        let is_partial = answer
            .body
            .as_ref()
            .is_ok_and(|answer| !answer.conflicts.is_empty() || !answer.failed.is_empty());
        let outcome = self.finish(answer, "", |answer, _| changes::restored(answer))?;
        Ok(failed_if(is_partial, outcome))
    }

    /// Changes of an earlier run wait: ask once what to do about them.
    /// Answers a line that was meant for the prompt: somebody typed ahead.
    pub(super) fn decide_about_waiting(&mut self, ask: &mut dyn Ask) -> Result<Option<String>, Trouble> {
        let Ok(mut answer) = self.call(&Changes::default(), ask)?.body else {
            return Ok(None);
        };
        let is_new = |view: &EntryView| !self.asked.contains(&view.entry.seq);
        answer.waiting.retain(is_new);
        if answer.waiting.is_empty() {
            return Ok(None);
        }
        let mut rendered = Rendered::default();
        for view in &answer.waiting {
            rendered.complaint(&changes::waiting_line(&view.entry));
        }
        let waiting: Vec<u64> = answer.waiting.iter().map(|view| view.entry.seq).collect();
        self.asked.extend(&waiting);
        self.screen.show(&rendered)?;
        let line = ask.ask("install, later, discard? ")?;
        self.screen.line_was_ended();
        let text = match &line {
            Line::Text(text) => text.as_str(),
            Line::Cancelled => return Err(Trouble::Abandoned),
            Line::End => "",
        };
        // One by one: what was not shown, or is pending by now, is not meant.
        // Whole words only: `i` and `d` may be variables, and what is no answer was not meant as one.
        match text.trim() {
            "" | "later" => Ok(None),
            "install" => {
                // Should they ever wait again, that is another question.
                self.asked.retain(|seq| !waiting.contains(seq));
                for seq in waiting {
                    self.restore(&seq.to_string(), ask)?;
                }
                Ok(None)
            }
            "discard" => {
                // What somebody else installed meanwhile does not wait any more.
                let now = self.call(&Changes::default(), ask)?.body;
                let now = now.map(|now| now.waiting).unwrap_or_default();
                let still = |seq: &u64| now.iter().any(|view| view.entry.seq == *seq);
                for seq in waiting.into_iter().filter(still) {
                    let discard = changes::discard(&seq.to_string());
                    self.simple(ask, &discard, |answer, _| changes::discarded(answer))?;
                }
                Ok(None)
            }
            _ => Ok(Some(text.to_owned())),
        }
    }

    fn remove_method(&mut self, words: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        let words: Vec<&str> = words.split_whitespace().collect();
        let (class, side, selector) = match *words.as_slice() {
            [class, selector] => (class, Side::Instance, selector),
            [class, "class", selector] => (class, Side::Class, selector),
            _ => return self.refuse("usage", "Usage: :remove-method Class [class] selector"),
        };
        let selector = selector.trim_start_matches('#').trim_matches('\'');
        let remove = RemoveMethod {
            class: class.to_owned(),
            selector: selector.to_owned(),
            side: Some(side),
        };
        self.simple(ask, &remove, |_, _| {
            Rendered::out(format!("Removed {class}>>{selector}"))
        })
    }

    /// List calls that wait, or answer one: a yes is for what was shown here.
    fn approvals(&mut self, words: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        let (answer, id) = words.split_once(' ').unwrap_or((words, ""));
        if words.is_empty() {
            let asked = self.call(&Approvals::default(), ask)?;
            if let Ok(answer) = &asked.body {
                let hash = |one: &beamtalk_wire::answers::Approval| (one.id.clone(), one.sha256.clone());
                self.shown_approvals = answer.approvals.iter().map(hash).collect();
            }
            return self.finish(asked, "", |answer, _| {
                Rendered::out(approvals::list(&answer.approvals))
            });
        }
        if !matches!(answer, "approve" | "always" | "reject") || id.is_empty() {
            return self.refuse("usage", "Usage: :approvals [approve|always|reject ID]");
        }
        let sha256 = self.shown_approvals.get(id.trim()).cloned();
        if sha256.is_none() && answer != "reject" {
            return self.refuse("not_shown", "Look at it first: :approvals");
        }
        let said = ApprovalAnswer {
            r#for: id.trim().to_owned(),
            answer: answer.to_owned(),
            text: None,
            sha256,
        };
        let done = match answer {
            "reject" => "Rejected",
            "always" => "Approved, now and always",
            _ => "Approved",
        };
        self.simple(ask, &said, |_, _| Rendered::out(done.to_owned()))
    }

    fn remove_class(&mut self, class: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        let question = format!("Remove {class} from the image? Its file stays.");
        if !Self::confirm(ask, &question)? {
            return self.refuse("not_confirmed", "Nothing was removed");
        }
        let remove = RemoveClass {
            class: class.to_owned(),
        };
        self.simple(ask, &remove, |_, _| Rendered::out(format!("Removed {class}")))
    }

    fn transcript(&mut self, words: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        let channels = vec![Channel::Transcript];
        let outcome = match words {
            "on" => {
                let subscribe = Subscribe {
                    channels,
                    ..Subscribe::default()
                };
                self.simple(ask, &subscribe, |_, _| Rendered::default())?
            }
            "off" => self.simple(ask, &Unsubscribe { channels }, |_, _| Rendered::default())?,
            _ => return self.refuse("usage", "Usage: :transcript on|off"),
        };
        if outcome == Outcome::Done {
            self.link.want_transcript(words == "on");
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

fn has_errors(answer: &LoadAnswer) -> bool {
    !answer.errors.is_empty()
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
