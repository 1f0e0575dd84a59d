//! Changes that are in the log and not in the image: installed again when the node had ended, and on request when the
//! workspace was started anew.

use std::rc::Rc;

use beamtalk_syntax::definitions::{Key, Outline};
use beamtalk_wire::answers::{HeldBack, NotInstalled, RestoreAnswer};
use beamtalk_wire::requests::Restore;
use beamtalk_wire::{ErrorBody, ErrorKind, Event, WorkspaceEvent};

use super::changes::{change_image, failed, image_text};
use super::put::put_again;
use crate::changes::{Entry, Kind, Settled, State};
use crate::compile::job::SourceText;
use crate::image::Phase;
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
    pub(crate) fn failures(&self) -> Vec<NotInstalled> {
        let failure = |(seq, error): &(u64, ErrorBody)| NotInstalled {
            seq: *seq,
            error: error.clone(),
        };
        self.failed.iter().map(failure).collect()
    }
}

/// What a request names.
enum Wanted<'a> {
    Seq(u64),
    Class(&'a str),
    All,
}

impl<'a> Wanted<'a> {
    fn of(request: &'a Restore) -> Result<Self, ErrorBody> {
        match (request.seq, &request.class, request.all == Some(true)) {
            (Some(seq), None, false) => Ok(Self::Seq(seq)),
            (None, Some(class), false) => Ok(Self::Class(class)),
            (None, None, true) => Ok(Self::All),
            _ => Err(ErrorBody::new(
                ErrorKind::InvalidParameter,
                "exactly one of 'seq', 'class' and 'all' is wanted",
            )),
        }
    }
}

/// The node ended, and with it everything that is in no file: until it is installed again it waits. If the node ended
/// soon after changes had been installed in it again, they may be why; then it starts without them.
pub(crate) fn after_node_exit(workspace: &Workspace, is_soon: bool) -> Result<(), ErrorBody> {
    workspace.not_installed.borrow_mut().clear();
    let pending = workspace.changes.borrow_mut().node_ended().map_err(failed)?;
    let mut missing = workspace.missing.borrow_mut();
    if is_soon {
        missing.clear();
    } else {
        // A node that did not get as far as to have them installed left some of before.
        missing.extend(pending);
    }
    Ok(())
}

/// The node was started anew: install what was pending, before anybody evaluates.
pub(crate) async fn reinstall(workspace: &Rc<Workspace>) -> Installed {
    let missing: Vec<u64> = workspace.missing.borrow().iter().copied().collect();
    let installed = match install_missing(workspace, &missing).await {
        Ok(installed) => installed,
        Err(error) => {
            tracing::error!("pending changes are not installed again: {}", error.message);
            return Installed::default();
        }
    };
    for (seq, error) in &installed.failed {
        tracing::warn!("change {seq} is not installed again: {}", error.message);
    }
    let failed = installed.failed.iter();
    *workspace.not_installed.borrow_mut() = failed.map(|(seq, error)| (*seq, error.clone())).collect();
    installed
}

async fn install_missing(workspace: &Rc<Workspace>, missing: &[u64]) -> Result<Installed, ErrorBody> {
    if missing.is_empty() {
        return Ok(Installed::default());
    }
    let views = workspace.changes.borrow().waiting().map_err(failed)?;
    let entries = views.into_iter().map(|view| view.entry);
    let entries: Vec<Entry> = entries.filter(|entry| missing.contains(&entry.seq)).collect();
    let changes = with_sources(workspace, entries)?;
    let installed = install_all(workspace, changes).await;
    if workspace.image.phase() != Phase::Starting {
        // The node is gone again: nothing of it counts.
        return Ok(Installed::default());
    }
    // What was given up meanwhile stays so.
    let is_left = |entry: &Entry| entry.is_waiting() && missing.contains(&entry.seq);
    let still_waiting: Vec<u64> = workspace
        .changes
        .borrow()
        .select(is_left)
        .iter()
        .map(|entry| entry.seq)
        .collect();
    workspace
        .changes
        .borrow_mut()
        .reopen(&still_waiting, State::Pending)
        .map_err(failed)?;
    workspace.missing.borrow_mut().clear();
    Ok(installed)
}

fn with_sources(workspace: &Workspace, entries: Vec<Entry>) -> Result<Vec<Change>, ErrorBody> {
    let log = workspace.changes.borrow();
    let with_source = |entry: Entry| {
        let source = log.source(&entry).map_err(failed)?;
        Ok((entry, source))
    };
    entries.into_iter().map(with_source).collect()
}

/// How many changes wait.
pub(crate) fn waiting(workspace: &Workspace) -> usize {
    let waiting = workspace.changes.borrow().waiting().unwrap_or_default();
    // Those that the next node gets by itself wait for nobody.
    let missing = workspace.missing.borrow();
    waiting
        .iter()
        .filter(|view| !missing.contains(&view.entry.seq))
        .count()
}

/// Install changes of an earlier run on request.
pub(super) async fn restore(
    workspace: &Rc<Workspace>,
    request: &Restore,
) -> Result<RestoreAnswer, ErrorBody> {
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
        log.settle(&replaced, Settled::Replaced).map_err(failed)?;
        log.reopen(&seqs, State::Pending).map_err(failed)?;
        let mut not_installed = workspace.not_installed.borrow_mut();
        not_installed.retain(|seq, _| !seqs.contains(seq) && !replaced.contains(seq));
    }
    let entries = {
        let log = workspace.changes.borrow();
        let found = installed.seqs.iter().filter_map(|seq| log.entry(*seq).ok());
        found.cloned().collect()
    };
    tell_waiting(workspace);
    Ok(RestoreAnswer {
        entries,
        failed: installed.failures(),
        conflicts,
    })
}

/// Tell everybody how many changes wait now.
pub(crate) fn tell_waiting(workspace: &Workspace) {
    let count = waiting(workspace) as u64;
    workspace.publish(&Event::Workspace(WorkspaceEvent::ChangesWaiting { count }));
}

/// The entries that are meant, and those left out because the image has something newer of the same definition.
fn choose(workspace: &Workspace, wanted: &Wanted) -> Result<(Vec<Entry>, Vec<HeldBack>), ErrorBody> {
    let log = workspace.changes.borrow();
    if let Wanted::Seq(seq) = wanted {
        let entry = log.entry(*seq).map_err(failed)?;
        let is_missing = workspace.not_installed.borrow().contains_key(seq);
        let is_aside = matches!(entry.settled, Some(Settled::Discarded | Settled::Replaced));
        if entry.is_waiting() || is_aside || is_missing {
            return Ok((vec![entry.clone()], Vec::new()));
        }
        let why = if entry.is_pending() {
            "is in the image"
        } else {
            "is settled"
        };
        let message = format!("change {seq} ({}) {why}", entry.title());
        return Err(ErrorBody::new(ErrorKind::InvalidParameter, message)
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
            Some(newer) => conflicts.push(HeldBack {
                seq: entry.seq,
                class: entry.class.clone(),
                selector: entry.selector.clone(),
                side: entry.side,
                file: entry.source_file.clone(),
                reason: "pending".to_owned(),
                detail: format!("change {} is pending", newer.seq),
            }),
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
            match install_one(workspace, &entry, source.clone()).await {
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

/// Make one change to the image, as it was made before. A class that was defined anew changes what it changed then:
/// a method that its file got since stays.
async fn install_one(
    workspace: &Rc<Workspace>,
    entry: &Entry,
    source: Option<String>,
) -> Result<(), ErrorBody> {
    if source.is_none() && !matches!(entry.kind, Kind::RemoveMethod | Kind::RemoveClass) {
        let message = format!(
            "the text of change {} ({}) is not known",
            entry.seq,
            entry.title()
        );
        return Err(ErrorBody::new(ErrorKind::NoSource, message));
    }
    check_namesake(workspace, entry)?;
    let file = entry.source_file.as_deref().filter(|_| entry.flushable);
    if let (Kind::NewClass, false, Some(file)) = (entry.kind, entry.is_whole_file, file)
        && image_text(workspace, file).is_some()
    {
        let wanted = workspace.changes.borrow().wanted_of(entry).map_err(failed)?;
        let changes: Vec<(Key, Option<String>)> = wanted
            .into_iter()
            .map(|wanted| (wanted.key, wanted.source))
            .collect();
        return change_image(workspace, file, &changes).await.map(drop);
    }
    put_again(workspace, entry, source).await
}

/// A change of a class that was in no file does not go into the class of that name that a file has by now.
fn check_namesake(workspace: &Workspace, entry: &Entry) -> Result<(), ErrorBody> {
    if entry.source_file.is_some() || entry.not_flushable_reason.as_deref() != Some("dynamic") {
        return Ok(());
    }
    let has_class = |text: &SourceText| Outline::of_file(&text.text).class(&entry.class).is_some();
    let files = workspace.compiler.known.borrow().files(has_class);
    let Some(file) = files.first() else {
        return Ok(());
    };
    let Entry { class, seq, .. } = entry;
    let message = format!(
        "{} was made to a {class} that was in no file, and now {} has the class of that name",
        entry.title(),
        file.path
    );
    Err(ErrorBody::new(ErrorKind::ReloadFailed, message).hint(format!(
        ":discard {seq} forgets it; what is typed anew changes the class of the file"
    )))
}
