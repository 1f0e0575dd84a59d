//! Changes that are in the log and not in the image: installed again when the node had ended, and on request when the
//! workspace was started anew.

use std::rc::Rc;

use beamtalk_etf::Term;
use beamtalk_wire::{Channel, ErrorBody, Op, Request};
use serde_json::{Value, json};

use super::edit::{compile_method, failed};
use super::evaluate::refuse_errors;
use super::load::{install, new_source};
use super::{Answer, load};
use crate::changes::{Entry, Kind, Side, State};
use crate::compile::job::Job;
use crate::terms;
use crate::workspace::Workspace;

/// A change with its text; a removal has none.
type Change = (Entry, Option<String>);

/// What came of installing changes.
#[derive(Default)]
pub(crate) struct Installed {
    pub(crate) seqs: Vec<u64>,
    pub(crate) failed: Vec<(u64, ErrorBody)>,
}

impl Installed {
    /// The failures as clients see them.
    pub(crate) fn failures(&self) -> Value {
        let failures = self.failed.iter();
        failures
            .map(|(seq, error)| json!({"seq": seq, "error": error}))
            .collect()
    }
}

/// What a request names.
enum Wanted<'a> {
    Seq(u64),
    Class(&'a str),
    All,
}

impl<'a> Wanted<'a> {
    fn of(request: &'a Request) -> Result<Self, ErrorBody> {
        let seq = request.number("seq")?;
        let class = request.optional_text("class")?;
        match (seq, class, request.flag("all")?) {
            (Some(seq), None, false) => Ok(Self::Seq(seq)),
            (None, Some(class), false) => Ok(Self::Class(class)),
            (None, None, true) => Ok(Self::All),
            _ => Err(ErrorBody::new(
                "invalid_parameter",
                "exactly one of 'seq', 'class' and 'all' is wanted",
            )),
        }
    }
}

/// The node was started anew: install what is pending, before anybody evaluates.
pub(crate) async fn reinstall(workspace: &Rc<Workspace>) -> Installed {
    let pending = match pending(workspace) {
        Ok(pending) => pending,
        Err(error) => {
            tracing::error!("pending changes cannot be read: {}", error.message);
            return Installed::default();
        }
    };
    let installed = install_all(workspace, pending).await;
    for (seq, error) in &installed.failed {
        tracing::warn!("change {seq} is not installed again: {}", error.message);
    }
    let failed = installed.failed.iter();
    *workspace.not_installed.borrow_mut() = failed.map(|(seq, error)| (*seq, error.clone())).collect();
    installed
}

/// What is pending and not replaced by something later.
fn pending(workspace: &Workspace) -> Result<Vec<Change>, ErrorBody> {
    let log = workspace.changes.borrow();
    let views = log.all().map_err(failed)?.into_iter();
    let entries = views.filter(|view| view.active && !view.shadowed && view.entry.is_durable());
    with_sources(workspace, entries.map(|view| view.entry).collect())
}

fn with_sources(workspace: &Workspace, entries: Vec<Entry>) -> Result<Vec<Change>, ErrorBody> {
    let log = workspace.changes.borrow();
    let with_source = |entry: Entry| {
        let source = log.source(&entry).map_err(failed)?;
        Ok((entry, source))
    };
    entries.into_iter().map(with_source).collect()
}

/// The node ended. What was only tried is gone. If it ended soon after changes had been installed again, they may be
/// why: it starts without them, and they wait.
pub(crate) fn after_node_exit(workspace: &Workspace, is_soon: bool) -> Result<(), ErrorBody> {
    workspace.not_installed.borrow_mut().clear();
    workspace.changes.borrow_mut().node_ended().map_err(failed)?;
    if !is_soon {
        return Ok(());
    }
    let all = workspace.changes.borrow().all().map_err(failed)?;
    let pending = all.iter().filter(|view| view.active && view.entry.is_durable());
    let seqs: Vec<u64> = pending.map(|view| view.entry.seq).collect();
    let mut log = workspace.changes.borrow_mut();
    log.reopen(&seqs, State::Waiting).map_err(failed)
}

/// How many changes wait.
pub(crate) fn waiting(workspace: &Workspace) -> usize {
    let waiting = workspace.changes.borrow().waiting();
    waiting.map_or(0, |waiting| waiting.len())
}

/// Entries in the answer of `changes` that the image does not have say why.
pub(super) fn mark_failures(workspace: &Workspace, answer: &mut Answer) {
    let not_installed = workspace.not_installed.borrow();
    let entries = answer.fields.get_mut("entries").and_then(Value::as_array_mut);
    for entry in entries.into_iter().flatten() {
        let error = entry["seq"].as_u64().and_then(|seq| not_installed.get(&seq));
        if let Some(error) = error {
            entry["not_installed"] = json!(error);
        }
    }
}

/// Install changes of an earlier run on request.
pub(super) async fn restore(workspace: &Rc<Workspace>, request: &Request) -> Result<Answer, ErrorBody> {
    let (chosen, conflicts) = choose(workspace, &Wanted::of(request)?)?;
    let changes = with_sources(workspace, chosen)?;
    let installed = install_all(workspace, changes).await;
    let mut seqs = installed.seqs.clone();
    {
        let mut log = workspace.changes.borrow_mut();
        let all = log.all().map_err(failed)?;
        let is_restored = |entry: &Entry| installed.seqs.contains(&entry.seq);
        let restored = || {
            all.iter()
                .map(|view| &view.entry)
                .filter(|entry| is_restored(entry))
        };
        // What a restored change replaced before comes along; what is pending in its place is not in the image now.
        let mut replaced = Vec::new();
        for view in &all {
            let entry = &view.entry;
            if entry.is_waiting() && restored().any(|later| later.shadows(entry)) {
                seqs.push(entry.seq);
            } else if entry.is_pending() && !is_restored(entry) && restored().any(|one| one.overlaps(entry)) {
                replaced.push(entry.seq);
            }
        }
        log.replace(&replaced).map_err(failed)?;
        log.reopen(&seqs, State::Pending).map_err(failed)?;
        let mut not_installed = workspace.not_installed.borrow_mut();
        not_installed.retain(|seq, _| !seqs.contains(seq) && !replaced.contains(seq));
    }
    let entries: Vec<Value> = {
        let log = workspace.changes.borrow();
        let found = installed.seqs.iter().filter_map(|seq| log.entry(*seq).ok());
        found.map(|entry| json!(entry)).collect()
    };
    tell_waiting(workspace);
    Ok(json!({"entries": entries, "failed": installed.failures(), "conflicts": conflicts}).into())
}

/// Tell everybody how many changes wait now.
pub(crate) fn tell_waiting(workspace: &Workspace) {
    let count = waiting(workspace);
    workspace.publish(Channel::Workspace, "changes_waiting", &json!({"count": count}));
}

/// The entries that are meant, and those left out because the image has something newer of the same definition.
fn choose(workspace: &Workspace, wanted: &Wanted) -> Result<(Vec<Entry>, Vec<Value>), ErrorBody> {
    let log = workspace.changes.borrow();
    if let Wanted::Seq(seq) = wanted {
        let entry = log.entry(*seq).map_err(failed)?;
        let is_missing = workspace.not_installed.borrow().contains_key(seq);
        if entry.is_waiting() || entry.is_discarded() || is_missing {
            return Ok((vec![entry.clone()], Vec::new()));
        }
        let why = if entry.is_pending() {
            "is in the image"
        } else {
            "is settled"
        };
        let message = format!("change {seq} ({}) {why}", entry.title());
        return Err(ErrorBody::new("invalid_parameter", message)
            .hint("changes that wait are listed by 'changes', as 'waiting'"));
    }
    let all = log.all().map_err(failed)?;
    let is_meant = |entry: &Entry| match wanted {
        Wanted::Class(class) => entry.class == *class,
        Wanted::Seq(_) | Wanted::All => true,
    };
    let mut chosen = Vec::new();
    let mut conflicts = Vec::new();
    for view in all.iter().filter(|view| view.orphan && !view.shadowed) {
        let entry = &view.entry;
        if !is_meant(entry) {
            continue;
        }
        let newer = all
            .iter()
            .map(|other| &other.entry)
            .find(|other| other.is_pending() && other.overlaps(entry));
        match newer {
            None => chosen.push(entry.clone()),
            Some(newer) => conflicts.push(json!({
                "seq": entry.seq, "class": entry.class, "selector": entry.selector, "side": entry.side,
                "file": entry.source_file, "reason": "pending", "detail": format!("change {} is pending", newer.seq),
            })),
        }
    }
    Ok((chosen, conflicts))
}

/// Install changes in the order in which they were made. One may need another that was made again later, so those
/// that fail are tried as long as that brings one more in.
async fn install_all(workspace: &Rc<Workspace>, changes: Vec<Change>) -> Installed {
    let mut installed = Installed::default();
    let mut left = changes;
    loop {
        let before = left.len();
        let mut again = Vec::new();
        installed.failed.clear();
        for (entry, source) in left {
            match install_one(workspace, &entry, source.as_deref()).await {
                Ok(()) => installed.seqs.push(entry.seq),
                Err(error) => {
                    installed.failed.push((entry.seq, error));
                    again.push((entry, source));
                }
            }
        }
        left = again;
        if left.is_empty() || left.len() == before {
            return installed;
        }
    }
}

/// Make one change to the image, as it was made before.
async fn install_one(
    workspace: &Rc<Workspace>,
    entry: &Entry,
    source: Option<&str>,
) -> Result<(), ErrorBody> {
    let class = entry.class.as_str();
    let side = entry.side.unwrap_or_default();
    let job = match (entry.kind, &entry.selector, source) {
        (Kind::Instance | Kind::Class, Some(selector), Some(source)) => {
            let fields = json!({"class": class, "selector": selector, "side": side, "source": source});
            let Value::Object(fields) = fields else {
                return Ok(());
            };
            let request = Request {
                op: Op::SaveMethod,
                id: "restore".to_owned(),
                session: None,
                fields,
            };
            let compiled = compile_method(workspace, &request).await?;
            refuse_errors(&compiled)?;
            install(workspace, &compiled).await?;
            return Ok(());
        }
        (Kind::NewClass, _, Some(source)) => match entry.source_file.as_deref() {
            Some(file) if entry.is_whole_file() => Job::Files {
                files: vec![new_source(workspace, file, source)],
            },
            _ => Job::Input {
                code: source.to_owned(),
                bound: Vec::new(),
                file: None,
                trace: false,
            },
        },
        (Kind::RemoveMethod, Some(selector), _) => {
            drop_method(workspace, class, side, selector).await?;
            Job::RemoveMethod {
                class: class.to_owned(),
                is_class_side: side == Side::Class,
                selector: selector.clone(),
            }
        }
        (Kind::RemoveClass, _, _) => {
            if load::class_info(workspace, class).await.is_ok() {
                let arguments = terms::map([("class", Term::binary(class))]);
                workspace.image.call("", "remove-class", arguments).await?;
            }
            workspace.forget_class(class);
            return Ok(());
        }
        (Kind::Instance | Kind::Class | Kind::RemoveMethod | Kind::NewClass | Kind::Unknown, _, _) => {
            let message = format!(
                "the text of change {} ({}) is not known",
                entry.seq,
                entry.title()
            );
            return Err(ErrorBody::new("no_source", message));
        }
    };
    let compiled = workspace.compiler.run(job).await?;
    refuse_errors(&compiled)?;
    if compiled.outcome.expression.is_some() {
        let message = format!("change {} is not a definition", entry.seq);
        return Err(ErrorBody::new("no_source", message));
    }
    if !compiled.outcome.modules.is_empty() {
        install(workspace, &compiled).await?;
    }
    Ok(())
}

/// A method that is gone already is what is wanted.
async fn drop_method(
    workspace: &Rc<Workspace>,
    class: &str,
    side: Side,
    selector: &str,
) -> Result<(), ErrorBody> {
    let arguments = terms::map([
        ("class", Term::binary(class)),
        ("selector", Term::binary(selector)),
        (
            "side",
            Term::binary(if side == Side::Class { "class" } else { "instance" }),
        ),
    ]);
    match workspace.image.call("", "remove-method", arguments).await {
        Err(error) if error.kind != "selector_not_found" => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}
