//! Commands: what a person asks of the workspace through the editor. Each takes one object and answers one.

use std::path::{Path, PathBuf};

use beamtalk_wire::answers::ChangeSidesAnswer;
use beamtalk_wire::requests::{
    ChangeSides, Changes, Eval, Flush, From, Inspect, LoadFile, OneOrMore, PrecheckMethod, RecheckImage,
    RemoveMethod, Revert, SaveClass, Step, Take, Test, WantedKind,
};
use beamtalk_wire::{EntryView, Side};
use gen_lsp_types::{ExecuteCommandParams, Uri};
use serde_json::{Value, json};

use crate::analysis::find;
use crate::fault::Fault;
use crate::live::PATIENT;
use crate::state::{Snapshot, key, range_in};
use crate::uri;

pub(crate) const COMMANDS: &[&str] = &[
    "beamtalk.status",
    "beamtalk.evaluate",
    "beamtalk.actors",
    "beamtalk.inspect",
    "beamtalk.tests",
    "beamtalk.runTest",
    "beamtalk.load",
    "beamtalk.flush",
    "beamtalk.flush.class",
    "beamtalk.flush.file",
    "beamtalk.flush.kind",
    "beamtalk.revert",
    "beamtalk.take",
    "beamtalk.showDiff",
    "beamtalk.saveClass",
    "beamtalk.removeMethod",
    "beamtalk.precheckMethod",
    "beamtalk.recheckImage",
    "beamtalk.showReferences",
];

/// What a command is given.
struct Given<'a> {
    snapshot: &'a Snapshot,
    argument: Value,
    root: PathBuf,
}

pub(crate) fn handle(snapshot: &Snapshot, params: ExecuteCommandParams) -> Result<Value, Fault> {
    let argument = params.arguments.unwrap_or_default().into_iter().next();
    let argument = argument.unwrap_or_else(|| json!({}));
    let given = Given {
        root: root(snapshot, &argument),
        snapshot,
        argument,
    };
    match params.command.as_str() {
        "beamtalk.status" => Ok(status(snapshot, &given.root)),
        "beamtalk.evaluate" => given.evaluate(),
        "beamtalk.actors" => Ok(given.actors()),
        "beamtalk.inspect" => given.inspect(),
        "beamtalk.tests" => given.tests(),
        "beamtalk.runTest" => given.run_tests(),
        "beamtalk.load" => given.load(),
        "beamtalk.flush" | "beamtalk.flush.class" | "beamtalk.flush.file" | "beamtalk.flush.kind" => {
            given.flush(&params.command)
        }
        "beamtalk.revert" => given.revert(),
        "beamtalk.take" => given.take(),
        "beamtalk.showDiff" => given.diff(),
        "beamtalk.saveClass" => {
            let request = SaveClass {
                source: given.text("source")?,
                path: given.text("path")?,
            };
            given.ask(&request)
        }
        "beamtalk.removeMethod" => {
            let request = RemoveMethod {
                class: given.text("class")?,
                selector: given.text("selector")?,
                side: Some(given.side()),
            };
            given.ask(&request)
        }
        "beamtalk.precheckMethod" => {
            let request = PrecheckMethod {
                class: given.text("class")?,
                selector: given.text("selector")?,
                source: given.text("source")?,
                side: Some(given.side()),
            };
            given.ask(&request)
        }
        "beamtalk.recheckImage" => given.ask(&RecheckImage {}),
        // A client that can show places does so itself; for any other they are the answer.
        "beamtalk.showReferences" => Ok(given.argument["locations"].clone()),
        other => Err(Fault::InvalidParams(format!("there is no command '{other}'"))),
    }
}

/// The project a command is about: that of its document, else the first.
fn root(snapshot: &Snapshot, argument: &Value) -> PathBuf {
    let state = &snapshot.state;
    let named = argument["uri"].as_str().map(|uri| {
        let key = key(uri);
        let open = state.documents.get(&key).map(|document| document.root.clone());
        open.unwrap_or_else(|| state.root_of(&key))
    });
    let live = || state.images.keys().next().cloned();
    let first = || state.worlds.keys().next().cloned();
    named.or_else(live).or_else(first).unwrap_or_default()
}

/// How the workspace is, for a status bar.
pub(crate) fn status(snapshot: &Snapshot, root: &Path) -> Value {
    let images = &snapshot.state.images;
    let image = images.get(root).or_else(|| images.values().next());
    match image {
        None => json!({"state": "none"}),
        Some(image) => json!({
            "state": "running",
            "id": image.id,
            "classes": image.classes.len(),
            "actors": image.actors.values().map(Vec::len).sum::<usize>(),
            "unflushed": image.unflushed().count(),
            "conflicts": image.conflicts.len(),
        }),
    }
}

impl Given<'_> {
    fn text(&self, field: &str) -> Result<String, Fault> {
        let found = self.argument[field].as_str().map(str::to_owned);
        found.ok_or_else(|| Fault::InvalidParams(format!("the command needs the text '{field}'")))
    }

    fn flag(&self, field: &str) -> bool {
        self.argument[field] == true
    }

    fn side(&self) -> Side {
        if self.argument["side"] == "class" {
            Side::Class
        } else {
            Side::Instance
        }
    }

    /// The file of the document, as the workspace names it: relative to the project.
    fn file(&self) -> Result<String, Fault> {
        if let Some(file) = self.argument["file"].as_str() {
            return Ok(file.to_owned());
        }
        let uri = self.text("uri")?;
        let path =
            uri::to_path(&key(&uri)).ok_or_else(|| Fault::InvalidParams(format!("'{uri}' names no file")))?;
        let below = path.strip_prefix(&self.root).unwrap_or(&path);
        Ok(below.display().to_string())
    }

    fn ask<O: beamtalk_wire::Operation>(&self, request: &O) -> Result<Value, Fault> {
        let answer = self.snapshot.state.links.ask(&self.root, request, PATIENT)?;
        serde_json::to_value(answer).map_err(|cause| Fault::Internal(cause.to_string()))
    }

    fn evaluate(&self) -> Result<Value, Fault> {
        let request = Eval {
            code: self.text("text")?,
            ..Eval::default()
        };
        let reply = self.snapshot.state.links.evaluate(&self.root, &request)?;
        let message = reply.message;
        let error = message.get("error").filter(|error| !error.is_null());
        Ok(match error {
            Some(error) => json!({
                "ok": false,
                "output": reply.output,
                "error": {"kind": error["kind"], "message": error["message"]},
            }),
            None => json!({"ok": true, "output": reply.output, "value": message.get("text")}),
        })
    }

    fn actors(&self) -> Value {
        let Some(image) = self.snapshot.state.images.get(&self.root) else {
            return json!({"actors": []});
        };
        let mut actors = Vec::new();
        for (class, pids) in &image.actors {
            let place = self.declared(class);
            for pid in pids {
                let mut actor = json!({"id": pid, "class": class});
                if let Some((uri, range)) = &place {
                    actor["uri"] = json!(uri);
                    actor["range"] = json!(range);
                }
                actors.push(actor);
            }
        }
        json!({ "actors": actors })
    }

    fn declared(&self, class: &str) -> Option<(Uri, gen_lsp_types::Range)> {
        let world = self.snapshot.state.worlds.get(&self.root)?;
        world.files.values().find_map(|file| {
            let found = find::named(file, class).next()?;
            let range = range_in(file, found, self.snapshot.state.encoding);
            Some((file.uri.clone(), range))
        })
    }

    /// Look into an actor or, with a path, into what it holds: an id is `pid` or `pid/field/3`.
    fn inspect(&self) -> Result<Value, Fault> {
        let id = self.text("id").or_else(|_| self.text("text"))?;
        let mut steps = id.split('/');
        let subject = steps.next().unwrap_or_default().to_owned();
        let path: Vec<Step> = steps
            .map(|step| {
                step.parse()
                    .map_or_else(|_| Step::Name(step.to_owned()), Step::Number)
            })
            .collect();
        let is_actor = subject.contains('.') || subject.starts_with('<');
        let request = Inspect {
            actor: is_actor.then(|| subject.clone()),
            binding: (!is_actor).then(|| subject.clone()),
            path: Some(path),
            ..Inspect::default()
        };
        let answer = self.snapshot.state.links.ask(&self.root, &request, PATIENT)?;
        let parts: Vec<Value> = answer
            .fields
            .iter()
            .map(|field| {
                let step = match &field.name {
                    Step::Name(name) => name.clone(),
                    Step::Number(number) => number.to_string(),
                };
                let mut part = json!({"name": field.label, "value": field.text});
                if field.drillable {
                    part["id"] = format!("{id}/{step}").into();
                }
                part
            })
            .collect();
        Ok(json!({
            "title": id,
            "class": answer.class,
            "value": answer.text.unwrap_or_default(),
            "parts": parts,
        }))
    }

    /// The tests of a document, or of all projects.
    fn tests(&self) -> Result<Value, Fault> {
        let wanted = self.argument["uri"].as_str().map(key);
        let mut tests = Vec::new();
        for world in self.snapshot.state.worlds.values() {
            for (name, file) in &world.files {
                self.snapshot.go_on()?;
                if wanted.as_ref().is_some_and(|wanted| wanted != name) {
                    continue;
                }
                for found in find::methods(file).filter(|found| !found.method.is_class) {
                    let selector = &found.method.head.selector;
                    let is_test = selector.starts_with("test") && !selector.ends_with(':');
                    if !is_test || !world.table.inherits_from(found.class, "TestCase") {
                        continue;
                    }
                    tests.push(json!({
                        "id": format!("{}>>{selector}", found.class),
                        "class": found.class.as_str(),
                        "selector": selector.as_str(),
                        "uri": file.uri,
                        "range": range_in(file, found.method.span, self.snapshot.state.encoding),
                    }));
                }
            }
        }
        Ok(json!({ "tests": tests }))
    }

    /// By `ids` of the form `Class>>selector`, or by `class` and `selector`.
    fn run_tests(&self) -> Result<Value, Fault> {
        let mut ids: Vec<String> = self.argument["ids"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|id| id.as_str().map(str::to_owned))
            .collect();
        if ids.is_empty() {
            let class = self.text("class")?;
            let selector = self.argument["selector"].as_str();
            ids.push(selector.map_or(class.clone(), |selector| format!("{class}>>{selector}")));
        }
        let mut results = Vec::new();
        for id in ids {
            self.snapshot.go_on()?;
            let (class, method) = match id.split_once(">>") {
                Some((class, method)) => (class.to_owned(), Some(method.to_owned())),
                None => (id.clone(), None),
            };
            self.load_test(&class)?;
            let request = Test {
                class: Some(class),
                method,
                ..Test::default()
            };
            let answer = self.snapshot.state.links.ask(&self.root, &request, PATIENT)?;
            for outcome in answer.results.tests {
                results.push(json!({
                    "id": format!("{}>>{}", outcome.class, outcome.name),
                    "outcome": match outcome.status.as_str() {
                        "pass" => "passed",
                        "skip" => "skipped",
                        "error" => "errored",
                        _ => "failed",
                    },
                    "message": outcome.error.map(|error| error.message).or(outcome.reason),
                    "ms": outcome.duration * 1000.0,
                }));
            }
        }
        Ok(json!({ "results": results }))
    }

    /// Tests are no part of a running program: the file of a class that is not there yet is loaded first.
    fn load_test(&self, class: &str) -> Result<(), Fault> {
        let images = &self.snapshot.state.images;
        let is_loaded = images
            .get(&self.root)
            .is_some_and(|image| image.classes.iter().any(|row| row.name == class));
        let Some(path) = self
            .declared(class)
            .and_then(|(uri, _)| uri::to_path(&key(&uri.0)))
        else {
            return Ok(());
        };
        if is_loaded {
            return Ok(());
        }
        let file = path.strip_prefix(&self.root).unwrap_or(&path);
        let answer = load(self.snapshot, &self.root, &file.display().to_string())?;
        match answer.errors.first() {
            Some(error) => Err(Fault::Failed(error.message.clone())),
            None => Ok(()),
        }
    }

    fn load(&self) -> Result<Value, Fault> {
        let answer = load(self.snapshot, &self.root, &self.file()?)?;
        Ok(json!({"loaded": answer.classes, "errors": answer.errors, "conflicts": answer.conflicts}))
    }

    fn flush(&self, command: &str) -> Result<Value, Fault> {
        let mut request = Flush {
            confirm_destructive: Some(self.flag("confirmDestructive")),
            ..Flush::default()
        };
        match command {
            "beamtalk.flush.class" => request.class = Some(self.text("class")?),
            "beamtalk.flush.file" => request.file = Some(self.file()?),
            "beamtalk.flush.kind" => {
                let kind: WantedKind = serde_json::from_value(self.argument["kind"].clone())
                    .map_err(|cause| Fault::InvalidParams(cause.to_string()))?;
                request.kind = Some(OneOrMore::One(kind));
            }
            _ => {}
        }
        let answer = self.snapshot.state.links.ask(&self.root, &request, PATIENT)?;
        let destructive: Vec<String> = answer
            .skipped
            .iter()
            .filter(|skip| skip.reason == "destructive")
            .map(beamtalk_wire::answers::Skip::subject)
            .collect();
        let files: Vec<&String> = answer.files.iter().map(|file| &file.file).collect();
        let mut result = json!({
            "flushed": files, "conflicts": answer.conflicts, "merged": answer.merged,
        });
        if !destructive.is_empty() {
            result["needsConfirmation"] = json!(destructive);
        }
        Ok(result)
    }

    /// Undo the unflushed changes of a file, the latest first.
    fn revert(&self) -> Result<Value, Fault> {
        let file = self.file()?;
        let links = &self.snapshot.state.links;
        let found = links.ask(&self.root, &Changes::default(), PATIENT)?;
        let is_meant = |one: &&EntryView| {
            one.active && !one.shadowed && one.entry.source_file.as_deref() == Some(file.as_str())
        };
        let mut entries: Vec<&EntryView> = found.entries.iter().filter(is_meant).collect();
        entries.sort_by_key(|one| std::cmp::Reverse(one.entry.seq));
        let mut reverted = Vec::new();
        for one in entries {
            links.ask(&self.root, &Revert { seq: one.entry.seq }, PATIENT)?;
            reverted.push(match &one.entry.selector {
                Some(selector) => format!("{}>>{selector}", one.entry.class),
                None => one.entry.class.clone(),
            });
        }
        Ok(json!({ "reverted": reverted }))
    }

    /// Decide a conflict for the image or the disk, as it was shown.
    fn take(&self) -> Result<Value, Fault> {
        let from = match self.argument["from"].as_str() {
            Some("image") => From::Image,
            Some("disk") => From::Disk,
            _ => {
                let text = "'from' is either 'image' or 'disk'".to_owned();
                return Err(Fault::InvalidParams(text));
            }
        };
        let request = Take {
            from,
            file: Some(self.file()?),
            disk_sha256: self.argument["diskSha256"].as_str().map(str::to_owned),
            ..Take::default()
        };
        self.ask(&request)
    }

    /// What the disk and the image have of a file, as a difference; the server then has the editor show it.
    fn diff(&self) -> Result<Value, Fault> {
        let file = self.file()?;
        let sides = sides(self.snapshot, &self.root, &file)?;
        Ok(json!({
            "diff": difference(&file, &sides),
            "disk": sides.disk,
            "image": sides.image,
            "base": sides.base,
            "diskSha256": sides.disk_sha256,
            "show": uri::of_difference(&self.root, &file),
        }))
    }
}

/// Base, image and disk of a file.
pub(crate) fn sides(snapshot: &Snapshot, root: &Path, file: &str) -> Result<ChangeSidesAnswer, Fault> {
    let request = ChangeSides {
        file: Some(file.to_owned()),
        ..ChangeSides::default()
    };
    snapshot.state.links.ask(root, &request, PATIENT)
}

pub(crate) fn difference(file: &str, sides: &ChangeSidesAnswer) -> String {
    let (disk, image) = (sides.disk.as_deref(), sides.image.as_deref());
    let names = [&*format!("disk/{file}"), &*format!("image/{file}")];
    beamtalk_syntax::diff::unified(names, disk.unwrap_or_default(), image.unwrap_or_default())
}

/// Hot-load a file of the project.
pub(crate) fn load(
    snapshot: &Snapshot,
    root: &Path,
    file: &str,
) -> Result<beamtalk_wire::answers::LoadAnswer, Fault> {
    let request = LoadFile {
        except: None,
        path: file.to_owned(),
    };
    snapshot.state.links.ask(root, &request, PATIENT)
}
