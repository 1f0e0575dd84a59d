//! Watching resources: who wants to know of which changes, and at what pace they are told.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use beamtalk_wire::{
    ActorsEvent, Channel, ClassesEvent, Event, ObjectEvent, TranscriptEvent, WorkspaceEvent,
};
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, broadcast};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::capabilities::SUBSCRIPTION_ID;
use crate::dispatch::{self, text};
use crate::host::Host;
use crate::message::Fault;
use crate::session::{Call, Outgoing, Session};

/// Names in a watch, and watches of a client.
const WATCHED: usize = 64;
const WATCHES: usize = 8;
/// Between two reports of the same change.
const PACE: Duration = Duration::from_millis(250);
/// Between two reports that the list changed.
const LIST_PACE: Duration = Duration::from_secs(1);
/// Between two looks at what need not be known at once.
const SLOW_LOOK: Duration = Duration::from_secs(10);

/// Between two looks for a workspace that went away or is not there yet.
const REACH: Duration = Duration::from_secs(1);

/// Who wants to know what changed without an event of the workspace.
#[derive(Default)]
pub(crate) struct OwnChanges(RefCell<Vec<Rc<Pending>>>);

impl OwnChanges {
    /// Something of the server's own changed.
    pub(crate) fn changed(&self, uri: &str) {
        for pending in self.0.borrow().iter() {
            pending.uris.borrow_mut().insert(uri.to_owned());
            pending.woken.notify_one();
        }
    }
}

/// Who follows for an old client.
#[derive(Default)]
pub(crate) struct Watches {
    /// The names an old client subscribed to.
    subscribed: Rc<RefCell<BTreeSet<String>>>,
    seen: Rc<RefCell<Seen>>,
    follower: RefCell<Option<AbortHandle>>,
    /// The watches of a modern client, and where they are told.
    open: Rc<RefCell<Vec<(Value, Outgoing)>>>,
}

#[derive(Default)]
struct Pending {
    uris: RefCell<BTreeSet<String>>,
    is_list: RefCell<bool>,
    woken: Notify,
}

/// A watch is open as long as this is kept.
struct OpenWatch {
    all: Rc<RefCell<Vec<(Value, Outgoing)>>>,
    id: Value,
}

impl Drop for OpenWatch {
    fn drop(&mut self) {
        self.all.borrow_mut().retain(|(id, _)| *id != self.id);
    }
}

impl Watches {
    fn open(&self, id: &Value, outgoing: Outgoing) -> OpenWatch {
        self.open.borrow_mut().push((id.clone(), outgoing));
        OpenWatch {
            all: self.open.clone(),
            id: id.clone(),
        }
    }

    /// Tell who watches that it is over.
    pub(crate) fn finish(&self) {
        for (id, outgoing) in self.open.borrow_mut().drain(..) {
            let result = json!({"_meta": { SUBSCRIPTION_ID: id }});
            outgoing.answer(&id, dispatch::shaped(result, true));
            outgoing.notify("notifications/cancelled", json!({ "requestId": id }));
        }
    }

    pub(crate) fn end(&self) {
        if let Some(follower) = self.follower.borrow_mut().take() {
            follower.abort();
        }
    }
}

/// What an event says changed: names, beginnings of names, and whether the list did.
fn changes(event: &Event) -> (Vec<String>, Vec<String>, bool) {
    let names = |names: &[&str]| {
        names
            .iter()
            .map(|name| format!("beamtalk://{name}"))
            .collect::<Vec<_>>()
    };
    match event {
        Event::Classes(told) => {
            let (class, is_list) = match told {
                ClassesEvent::Loaded { class, .. } | ClassesEvent::Removed { class, .. } => (class, true),
                ClassesEvent::Changed { class, .. } => (class, false),
                ClassesEvent::Dropped { .. } | ClassesEvent::Gap { .. } => {
                    return (names(&["classes"]), names(&["class/", "method/"]), true);
                }
            };
            let mut changed = names(&["classes", "changes"]);
            changed.push(format!("beamtalk://class/{class}"));
            changed.push(format!("beamtalk://class/{class}/definition"));
            changed.push(format!("beamtalk://doc/class/{class}"));
            let beginnings = vec![
                format!("beamtalk://method/{class}/"),
                "beamtalk://changes/".to_owned(),
            ];
            (changed, beginnings, is_list)
        }
        Event::Actors(ActorsEvent::Stopped { pid, .. }) => (
            vec!["beamtalk://actors".to_owned(), actor_uri(pid)],
            Vec::new(),
            false,
        ),
        Event::Actors(_) => (names(&["actors"]), Vec::new(), false),
        Event::Object(ObjectEvent::Changed { actor, .. }) => (vec![actor_uri(actor)], Vec::new(), false),
        Event::Transcript(TranscriptEvent::Text { .. }) => (names(&["transcript"]), Vec::new(), false),
        Event::Approvals(_) => (names(&["approvals"]), Vec::new(), false),
        Event::Workspace(WorkspaceEvent::FlushCompleted { .. }) => {
            (names(&["changes"]), names(&["changes/"]), false)
        }
        Event::Workspace(WorkspaceEvent::NodeExited { .. } | WorkspaceEvent::NodeStarted { .. }) => {
            (names(&["status", "actors", "classes"]), Vec::new(), true)
        }
        _ => (Vec::new(), Vec::new(), false),
    }
}

fn actor_uri(pid: &str) -> String {
    format!("beamtalk://actor/{}", pid.trim_matches(['<', '>']))
}

/// A name in one form: pids without brackets.
fn plain(uri: &str) -> String {
    match uri.strip_prefix("beamtalk://actor/") {
        Some(pid) => {
            let pid = pid
                .replace("%3C", "")
                .replace("%3E", "")
                .replace("%3c", "")
                .replace("%3e", "");
            actor_uri(&pid)
        }
        None => uri.to_owned(),
    }
}

/// Have the host listen to what tells of these names.
async fn listen_for<H: Host>(host: &H, uris: &BTreeSet<String>) {
    let mut channels = vec![Channel::Classes, Channel::Workspace];
    if uris.iter().any(|uri| uri.starts_with("beamtalk://actor")) {
        channels.push(Channel::Actors);
    }
    if uris.contains("beamtalk://transcript") {
        channels.push(Channel::Transcript);
    }
    if uris.contains("beamtalk://approvals") {
        channels.push(Channel::Approvals);
    }
    let pid = |uri: &String| plain(uri).strip_prefix("beamtalk://actor/").map(str::to_owned);
    let actors: Vec<String> = uris.iter().filter_map(pid).collect();
    host.watch(&channels, &actors).await;
}

/// How often something is looked at that nobody tells of; `None` for what is told.
fn look_every(uri: &str) -> Option<Duration> {
    let path = uri.strip_prefix("beamtalk://")?;
    let is_looked_at = path == "agents" || path.starts_with("agent/") || path.starts_with("loop/");
    match path {
        "audit/summary" => Some(SLOW_LOOK),
        _ => is_looked_at.then_some(PACE),
    }
}

/// What is looked at, with what was seen last and when it is looked at again.
type Seen = BTreeMap<String, (Option<String>, Instant)>;

/// What is there before anybody is told that it is watched; what changes from then on is told.
async fn first_look<H: Host>(session: &Rc<Session<H>>, uris: &BTreeSet<String>) -> Seen {
    let mut seen = Seen::new();
    for uri in uris {
        if let Some(every) = look_every(uri) {
            let found = crate::resources::content(session, uri).await.ok().flatten();
            let found = found.map(|content| content.text);
            seen.insert(uri.clone(), (found, Instant::now() + every));
        }
    }
    seen
}

/// Look at what nobody tells of, and note what changed.
async fn look<H: Host>(
    session: Rc<Session<H>>,
    wanted: Rc<RefCell<BTreeSet<String>>>,
    seen: Rc<RefCell<Seen>>,
    pending: Rc<Pending>,
) {
    let mut next_reach = Instant::now() + REACH;
    loop {
        if Instant::now() >= next_reach {
            next_reach = Instant::now() + REACH;
            if session.host.watch(&[], &[]).await {
                // What happened while nobody listened is not known.
                pending.uris.borrow_mut().extend(wanted.borrow().iter().cloned());
                pending.woken.notify_one();
            }
        }
        let uris: Vec<(String, Duration)> = wanted
            .borrow()
            .iter()
            .filter_map(|uri| Some((uri.clone(), look_every(uri)?)))
            .collect();
        seen.borrow_mut()
            .retain(|uri, _| uris.iter().any(|(wanted, _)| wanted == uri));
        for (uri, every) in uris {
            let next = seen.borrow().get(&uri).map(|(_, next)| *next);
            let is_due = next.is_none_or(|next| next <= Instant::now());
            if !is_due {
                continue;
            }
            let found = crate::resources::content(&session, &uri).await.ok().flatten();
            let found = found.map(|content| content.text);
            let next = Instant::now() + every;
            let before = seen.borrow_mut().insert(uri.clone(), (found.clone(), next));
            if before.is_some_and(|(before, _)| before != found) {
                pending.uris.borrow_mut().insert(uri);
                pending.woken.notify_one();
            }
        }
        tokio::time::sleep(PACE).await;
    }
}

/// A task that ends with what it works for.
struct Looking(AbortHandle);

impl Drop for Looking {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Report changes at a pace, until the task is ended.
async fn follow<H: Host>(
    session: Rc<Session<H>>,
    wanted: Rc<RefCell<BTreeSet<String>>>,
    seen: Rc<RefCell<Seen>>,
    is_list_wanted: bool,
    subscription: Option<Value>,
    mut events: broadcast::Receiver<Event>,
) {
    let pending = Rc::new(Pending::default());
    session.common.own_changes.0.borrow_mut().push(pending.clone());
    let _own = Own {
        session: session.clone(),
        pending: pending.clone(),
    };
    let looking = look(session.clone(), wanted.clone(), seen, pending.clone());
    let _looking = Looking(tokio::task::spawn_local(looking).abort_handle());
    let is_wanted = |uri: &String| wanted.borrow().iter().any(|wanted| plain(wanted) == *uri);
    let note = |event: &Event| {
        let (names, beginnings, is_list) = changes(event);
        let mut uris = pending.uris.borrow_mut();
        uris.extend(names.into_iter().filter(is_wanted));
        for beginning in beginnings {
            uris.extend(
                wanted
                    .borrow()
                    .iter()
                    .filter(|uri| uri.starts_with(&beginning))
                    .cloned(),
            );
        }
        *pending.is_list.borrow_mut() |= is_list && is_list_wanted;
        !uris.is_empty() || *pending.is_list.borrow()
    };
    let mut list_told = None;
    loop {
        tokio::select! {
            event = events.recv() => match event {
                Ok(event) => if !note(&event) { continue },
                Err(broadcast::error::RecvError::Lagged(_)) => {
                    // What was missed may have changed anything.
                    pending.uris.borrow_mut().extend(wanted.borrow().iter().cloned());
                }
                Err(broadcast::error::RecvError::Closed) => return,
            },
            () = pending.woken.notified() => {}
        }
        let uris = std::mem::take(&mut *pending.uris.borrow_mut());
        for uri in uris {
            let shown = wanted
                .borrow()
                .iter()
                .find(|wanted| plain(wanted) == plain(&uri))
                .cloned();
            if let Some(uri) = shown {
                tell(
                    &session,
                    "notifications/resources/updated",
                    json!({ "uri": uri }),
                    subscription.as_ref(),
                );
            }
        }
        let is_list_due = list_told.is_none_or(|at: Instant| at.elapsed() >= LIST_PACE);
        if *pending.is_list.borrow() && !is_list_due {
            // It is told when its time has come.
            let (pending, at) = (
                pending.clone(),
                list_told.unwrap_or_else(Instant::now) + LIST_PACE,
            );
            tokio::task::spawn_local(async move {
                tokio::time::sleep_until(at).await;
                pending.woken.notify_one();
            });
        } else if pending.is_list.replace(false) {
            list_told = Some(Instant::now());
            tell(
                &session,
                "notifications/resources/list_changed",
                json!({}),
                subscription.as_ref(),
            );
        }
        // What changes meanwhile is told together afterwards.
        let rest = tokio::time::sleep(PACE);
        let mut rest = std::pin::pin!(rest);
        loop {
            tokio::select! {
                () = &mut rest => break,
                event = events.recv() => match event {
                    Ok(event) => if note(&event) { pending.woken.notify_one() },
                    Err(broadcast::error::RecvError::Lagged(_)) => {
                        pending.uris.borrow_mut().extend(wanted.borrow().iter().cloned());
                        pending.woken.notify_one();
                    }
                    Err(broadcast::error::RecvError::Closed) => return,
                },
            }
        }
    }
}

fn tell<H: Host>(session: &Session<H>, method: &str, mut params: Value, subscription: Option<&Value>) {
    if let Some(id) = subscription {
        params["_meta"] = json!({ SUBSCRIPTION_ID: id });
    }
    session.outgoing.notify(method, params);
}

/// What is followed no more wants no changes.
struct Own<H: Host> {
    session: Rc<Session<H>>,
    pending: Rc<Pending>,
}

impl<H: Host> Drop for Own<H> {
    fn drop(&mut self) {
        let mut all = self.session.common.own_changes.0.borrow_mut();
        all.retain(|one| !Rc::ptr_eq(one, &self.pending));
    }
}

/// A watch counts as long as it lasts.
struct Counted(Rc<Cell<usize>>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

/// `subscriptions/listen`: acknowledge, then report until the client ends it.
pub(crate) async fn listen<H: Host>(session: &Rc<Session<H>>, call: &Call) -> Result<Value, Fault> {
    let Some(Value::Object(filter)) = call.params.get("notifications") else {
        return Err(Fault::params("params.notifications must be an object"));
    };
    // With the extension they are left out of the acknowledgement; the client asks for its tasks.
    if filter.contains_key("taskIds") && !call.client.has_tasks {
        let required = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
        return Err(Fault::capability(
            "tasks are not watched without their extension",
            required,
        ));
    }
    let open = session.common.open_watches.clone();
    // What is too much is left out of the acknowledgement.
    let room = if open.get() < WATCHES { WATCHED } else { 0 };
    open.set(open.get() + 1);
    let _counted = Counted(open);
    let is_list_wanted = room > 0 && filter.get("resourcesListChanged") == Some(&Value::Bool(true));
    let uris: BTreeSet<String> = match filter.get("resourceSubscriptions") {
        None | Some(Value::Null) => BTreeSet::new(),
        Some(Value::Array(uris)) => {
            let texts = uris.iter().filter_map(Value::as_str);
            let texts = texts.filter(|uri| crate::resources::can_be(uri)).take(room);
            texts.map(str::to_owned).collect()
        }
        Some(_) => {
            return Err(Fault::params(
                "params.notifications.resourceSubscriptions must be a list",
            ));
        }
    };
    let events = session.host.events();
    listen_for(&*session.host, &uris).await;
    let seen = first_look(session, &uris).await;
    let mut granted = json!({ "resourceSubscriptions": uris });
    if is_list_wanted {
        granted["resourcesListChanged"] = true.into();
    }
    let params = json!({ "notifications": granted });
    tell(
        session,
        "notifications/subscriptions/acknowledged",
        params,
        Some(&call.id),
    );
    let wanted = Rc::new(RefCell::new(uris));
    let _open = session.watches.open(&call.id, session.outgoing.clone());
    let subscription = Some(call.id.clone());
    let seen = Rc::new(RefCell::new(seen));
    follow(
        session.clone(),
        wanted,
        seen,
        is_list_wanted,
        subscription,
        events,
    )
    .await;
    Ok(json!({"_meta": { SUBSCRIPTION_ID: call.id }}))
}

/// `resources/subscribe` of an old client.
pub(crate) async fn subscribe<H: Host>(
    session: &Rc<Session<H>>,
    params: &Map<String, Value>,
) -> Result<Value, Fault> {
    let uri = text(params, "uri")?;
    let Ok(Some(known)) = crate::resources::content(session, uri).await else {
        return Err(Fault::missing_resource(uri, false));
    };
    let wanted = {
        let mut subscribed = session.watches.subscribed.borrow_mut();
        if subscribed.len() >= WATCHED && !subscribed.contains(uri) {
            return Err(Fault::params(format!("{WATCHED} resources are watched already")));
        }
        if subscribed.insert(uri.to_owned())
            && let Some(every) = look_every(uri)
        {
            let seen = (Some(known.text), Instant::now() + every);
            session.watches.seen.borrow_mut().insert(uri.to_owned(), seen);
        }
        subscribed.clone()
    };
    listen_for(&*session.host, &wanted).await;
    Ok(json!({}))
}

/// An old client is told of changes of the list without asking, and of what it subscribes to.
pub(crate) fn begin<H: Host>(session: &Rc<Session<H>>) {
    let watches = &session.watches;
    let mut follower = watches.follower.borrow_mut();
    if follower.is_none() {
        let (session, subscribed) = (session.clone(), watches.subscribed.clone());
        let seen = watches.seen.clone();
        let task = async move {
            let events = session.host.events();
            listen_for(&*session.host, &BTreeSet::new()).await;
            follow(session.clone(), subscribed, seen, true, None, events).await;
        };
        *follower = Some(tokio::task::spawn_local(task).abort_handle());
    }
}

pub(crate) fn unsubscribe<H: Host>(
    session: &Session<H>,
    params: &Map<String, Value>,
) -> Result<Value, Fault> {
    let uri = text(params, "uri")?;
    session.watches.subscribed.borrow_mut().remove(uri);
    Ok(json!({}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::Line;
    use crate::strange::Nowhere;
    use tokio::task::LocalSet;

    /// What changes right after a watch is acknowledged is told, also where it is only looked at now and then.
    #[tokio::test]
    async fn nothing_is_missed_after_the_acknowledgement() {
        const LISTEN: &str = r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},"notifications":{"resourceSubscriptions":["beamtalk://loop/state/page"]}}}"#;
        let run = async {
            let host = Rc::new(Nowhere::new());
            *host.state.borrow_mut() = Some(json!({"page": "/a"}));
            let (outgoing, mut lines) = Outgoing::new(host.secrets());
            let session = Session::new(host.clone(), Rc::default(), outgoing);
            session.receive(Line::Text(LISTEN.as_bytes().to_vec()));
            let first = lines.recv().await.expect("an acknowledgement");
            assert!(
                first.contains("notifications/subscriptions/acknowledged"),
                "{first}"
            );
            *host.state.borrow_mut() = Some(json!({"page": "/b"}));
            let told = tokio::time::timeout(Duration::from_secs(20), lines.recv()).await;
            let told = told.expect("an update").expect("a line");
            assert!(
                told.contains("notifications/resources/updated") && told.contains("loop/state/page"),
                "{told}"
            );
            session.cancel_all().await;
        };
        LocalSet::new().run_until(run).await;
    }
}
