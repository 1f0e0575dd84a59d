//! Taking over what a former daemon left: records on disk, windows in tmux.

use std::collections::BTreeMap;
use std::sync::Arc;

use beamtalk_storage::time::now_seconds;
use serde_json::json;

use super::Hub;
use crate::mail::USER;
use crate::places::Places;
use crate::session::core::State;
use crate::session::launch::Launch;
use crate::session::record::Record;
use crate::session::task::{Start, Task};
use crate::tmux::Window;
use crate::{files, sys};

const DAY: u64 = 24 * 3600;
/// What a session left behind, and what is known about it.
const KEEP_DIRECTORY: u64 = DAY;
const KEEP_RECORD: u64 = 7 * DAY;

/// Adopt every session not known yet; the ids adopted. Without a tmux server the machine was started anew: what ran is
/// started again, unless it is to rest.
pub(crate) async fn recover(hub: &Arc<Hub>, resumes: bool) -> Vec<String> {
    let mut windows: BTreeMap<String, Window> = BTreeMap::new();
    let mut has_server = false;
    // The server may live on with old settings; without one this fails and there is nothing to adopt.
    if let Ok(found) = hub.tmux.windows().await {
        has_server = true;
        if let Err(error) = hub.tmux.prepare().await {
            tracing::warn!(%error, "tmux cannot be prepared");
        }
        windows = found
            .into_iter()
            .map(|window| (window.session_id.clone(), window))
            .collect();
    }
    let mut adopted = Vec::new();
    for id in files::names(&hub.places.state.join("sessions")) {
        if id.starts_with('.') || hub.session(&id).is_ok() {
            continue;
        }
        let window = windows.remove(&id);
        let record = read_record(hub, &id).or_else(|| window.as_ref().map(record_of));
        // Neither a record nor a window: nobody will ever ask for it again.
        let Some(record) = record.filter(|record| record.state() != State::Exited) else {
            if is_id(&id) {
                put_aside(hub, &id);
            }
            continue;
        };
        let start = match window {
            None if !has_server && is_alive(&record) && resumes => Start::Resume,
            None if !has_server && is_alive(&record) => Start::Rest,
            window => Start::Adopt(window.map(Box::new)),
        };
        if adopt(hub, record, start) {
            adopted.push(id);
        }
    }
    for (id, window) in windows {
        let known = hub.session(&id).is_ok() || !is_id(&id) || window.dead;
        let record = record_of(&window);
        if !known && adopt(hub, record, Start::Adopt(Some(Box::new(window)))) {
            adopted.push(id);
        }
    }
    for message in hub.mail.recover(|who| who == USER || hub.session(who).is_ok()) {
        let data = json!({"message": message.without_body(), "error": "receiver does not exist"});
        hub.events.emit(&message.from, "Undeliverable", data);
    }
    hub.remove_lost_doors();
    adopted
}

fn is_id(text: &str) -> bool {
    text.len() == 8
        && text
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

fn read_record(hub: &Hub, id: &str) -> Option<Record> {
    let bytes = files::read_limited(&hub.places.session(id).join("session.json"), 1 << 20).ok()?;
    match serde_json::from_slice::<Record>(&bytes) {
        Ok(record) if record.id == id => Some(record),
        Ok(_) => None,
        Err(error) => {
            tracing::warn!(%error, session = id, "record cannot be read");
            None
        }
    }
}

/// What the window says about itself.
fn record_of(window: &Window) -> Record {
    let options = &window.options;
    let filled = |text: &String| (!text.is_empty()).then(|| text.clone());
    let mut record = Record::new(&window.session_id, &options.backend, &options.cwd, now_seconds());
    State::Idle.word().clone_into(&mut record.state);
    record.alias = filled(&options.alias);
    record.role = filled(&options.role);
    record.model = filled(&options.model);
    record.sandbox = filled(&options.sandbox).unwrap_or_else(|| "default".to_owned());
    record
}

/// Whether a session was not at rest when it was last heard of.
fn is_alive(record: &Record) -> bool {
    matches!(
        record.state(),
        State::Starting | State::Idle | State::Running | State::Waiting
    )
}

fn adopt(hub: &Arc<Hub>, record: Record, start: Start) -> bool {
    let id = record.id.clone();
    let config = hub.config();
    let backend = match config.backend(&record.backend) {
        Ok(backend) => backend.clone(),
        Err(refused) => {
            tracing::warn!(session = %id, backend = %record.backend, reason = %refused, "not adopted");
            hub.not_resumed(&id, &refused.text);
            return false;
        }
    };
    if record.lacks_mounts() && sys::is_confined(std::process::id()) == Some(true) {
        hub.ask_everybody();
    }
    // The token of the running process stays valid.
    if let Some(token) = files::read_limited(&hub.places.session(&id).join("launch.json"), 1 << 20)
        .ok()
        .and_then(|bytes| serde_json::from_slice::<Launch>(&bytes).ok())
        .and_then(|launch| launch.environment.get("AGENT_TOKEN").cloned())
    {
        hub.secrets.set_session_token(&id, &token);
    }
    match hub.open_session(record) {
        Ok((shared, queue)) => {
            if let Err(error) = hub.open_door(&id) {
                tracing::error!(%error, session = %id, "the session cannot come in");
            }
            hub.add(&shared);
            Task::spawn(Arc::clone(hub), shared, backend, queue, start);
            true
        }
        Err(error) => {
            tracing::error!(%error, session = %id, "not adopted");
            hub.not_resumed(&id, &error.to_string());
            false
        }
    }
}

/// Keep what is left of a session where the ended ones are.
fn put_aside(hub: &Hub, id: &str) {
    if let Err(error) = std::fs::rename(hub.places.session(id), hub.places.exited().join(id)) {
        tracing::warn!(%error, session = id, "an ended session cannot be put aside");
    }
}

/// Remove what ended sessions left: their directories after a day, their records after a week.
pub(crate) fn forget_old(places: &Places) {
    let exited = places.exited();
    for name in files::names(&exited) {
        let path = exited.join(&name);
        let age = path
            .symlink_metadata()
            .and_then(|meta| meta.modified())
            .ok()
            .and_then(|at| at.elapsed().ok())
            .map_or(0, |age| age.as_secs());
        let removed = if path.is_dir() && age > KEEP_DIRECTORY {
            let record = exited.join(format!("{name}.json"));
            let kept = std::fs::rename(path.join("session.json"), &record);
            match kept {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
                _ => files::remove_tree(&path),
            }
        } else if !path.is_dir() && age > KEEP_RECORD {
            std::fs::remove_file(&path)
        } else {
            Ok(())
        };
        if let Err(error) = removed {
            tracing::warn!(%error, path = %path.display(), "an ended session cannot be removed");
        }
    }
}
