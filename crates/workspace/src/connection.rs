//! One admitted connection: its session, its requests, its end.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use beamtalk_wire::{
    Access, Call, ClientKind, ErrorBody, ErrorKind, Event, Flag, Head, Op, Role, WorkspaceEvent, limits,
};
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;

use crate::gate::Admitted;
use crate::ops::{self, Caller, Deadline, Sink};
use crate::sessions::{Newcomer, Session};
use crate::workspace::{Guest, Watch, Workspace};

/// How long a newcomer waits for the node; one that is slower makes the session later.
const ENTRY: Duration = Duration::from_secs(1);

/// The requests of a connection that are not answered, by their ids.
type Open = RefCell<BTreeMap<String, Op>>;

/// Serve a connection until it ends.
pub(crate) async fn serve(workspace: Rc<Workspace>, admitted: Admitted) {
    let Admitted {
        peer,
        role,
        auth,
        client,
        resume,
        taken,
        keeps,
        mut incoming,
        outgoing,
        ..
    } = admitted;
    let connection = workspace.next_connection.get();
    workspace.next_connection.set(connection + 1);
    let newcomer = Newcomer {
        client,
        role,
        auth: auth.to_string(),
        peer: peer.to_string(),
        connection,
        keeps,
        taken,
    };
    let Ok((session, resumed)) = workspace.sessions.enter(resume.as_deref(), newcomer) else {
        outgoing.close(1011, "no session");
        return;
    };
    // A node that is down now makes the session later.
    let resumed = resumed && session.node_start.get() == workspace.image.start_number();
    drop(tokio::time::timeout(ENTRY, workspace.enter_node(&session)).await);
    let mut greeting = json!({"op": "session-started", "session": session.id, "resumed": resumed});
    if let Some(kept) = &session.kept {
        greeting["last"] = kept.borrow().last().into();
    }
    workspace.connections.borrow_mut().insert(
        connection,
        Guest {
            outgoing: outgoing.clone(),
            session: session.clone(),
            watch: Watch::default(),
        },
    );
    tokio::task::spawn_local(tell_state(workspace.clone(), outgoing.clone()));
    let open = Rc::new(Open::default());
    let reading = Rc::new(Mutex::new(()));
    if outgoing.send(greeting.to_string()).await.is_ok() {
        session.attach(&outgoing);
        // What another connection has taken over is told there what was begun: nothing more is begun here.
        while let Some(text) = incoming.recv().await
            && !session.is_of_another(connection)
        {
            let caller = Caller {
                session: session.clone(),
                role,
                connection: Some(connection),
            };
            match admit(&workspace, &session, &open, &text) {
                Ok(call) => {
                    let sink = sink(&session, &call, &outgoing);
                    let task = answer(
                        workspace.clone(),
                        caller,
                        call,
                        sink,
                        outgoing.clone(),
                        (open.clone(), reading.clone()),
                    );
                    tokio::task::spawn_local(task);
                }
                Err(refusal) => {
                    if outgoing.send(refusal).await.is_err() {
                        break;
                    }
                }
            }
        }
    }
    workspace.connections.borrow_mut().remove(&connection);
    // Nobody comes back to an AI client's evaluation; its handle would be busy until the limit.
    if client == ClientKind::Mcp {
        let caller = Caller {
            session: session.clone(),
            role,
            connection: Some(connection),
        };
        let left = |(id, op): (&String, &Op)| ops::runs_code(*op).then(|| id.clone());
        let ids: Vec<String> = open.borrow().iter().filter_map(left).collect();
        for id in ids {
            tokio::task::spawn_local(ops::give_up(workspace.clone(), caller.clone(), id));
        }
    }
    session.leave(connection);
    workspace.tell_node_channels();
}

/// Where the frames of a request go. Those that a session keeps are begun here.
fn sink(session: &Rc<Session>, call: &Call, outgoing: &crate::gate::Outgoing) -> Sink {
    match &session.kept {
        Some(kept) if call.op.access() != Access::Read => {
            kept.borrow_mut().begin(&call.id, call.about.as_deref());
            Sink::Kept {
                session: session.clone(),
                id: call.id.clone(),
            }
        }
        _ => Sink::Client {
            outgoing: outgoing.clone(),
            id: call.id.clone(),
            session: session.id.clone(),
        },
    }
}

/// Tell a client that came in where image and disk are apart.
async fn tell_state(workspace: Rc<Workspace>, outgoing: crate::gate::Outgoing) {
    let tell = |event: WorkspaceEvent| {
        let event = Event::Workspace(event);
        outgoing.push_event(event.channel(), event.text());
    };
    let count = ops::waiting(&workspace) as u64;
    if count > 0 {
        tell(WorkspaceEvent::ChangesWaiting { count });
    }
    let files = workspace.files_changed_on_disk().await;
    if !files.is_empty() {
        tell(WorkspaceEvent::DiskChanged { files });
    }
}

/// The request in a frame, or the answer that refuses it.
fn admit(workspace: &Workspace, session: &Session, open: &Open, text: &str) -> Result<Call, String> {
    let refuse =
        |id: Option<&str>, error: ErrorBody| ops::text_of(&Head::failure(id, Some(&session.id), error));
    let call = Call::parse(text).map_err(|bad| refuse(bad.id.as_deref(), bad.error))?;
    if workspace.is_stopping() {
        let error = ErrorBody::new(ErrorKind::ShuttingDown, "the workspace is stopping");
        return Err(refuse(Some(&call.id), error));
    }
    let mut open = open.borrow_mut();
    if open.len() >= limits::OPEN_REQUESTS {
        let error = ErrorBody::new(
            ErrorKind::Busy,
            format!("{} requests are open", limits::OPEN_REQUESTS),
        )
        .hint("wait for answers before sending more");
        return Err(refuse(Some(&call.id), error));
    }
    if open.contains_key(&call.id) {
        let error = ErrorBody::new(
            ErrorKind::DuplicateId,
            format!("request '{}' is still open", call.id),
        );
        return Err(refuse(Some(&call.id), error));
    }
    open.insert(call.id.clone(), call.op);
    Ok(call)
}

async fn answer(
    workspace: Rc<Workspace>,
    caller: Caller,
    call: Call,
    sink: Sink,
    outgoing: crate::gate::Outgoing,
    (open, reading): (Rc<Open>, Rc<Mutex<()>>),
) {
    // The one the request was about.
    let session = call.session.clone();
    let session = session.unwrap_or_else(|| caller.session.id.clone());
    let (outcome, rest) = if matches!(call.op, Op::ApprovalAsk | Op::TreeFollow) {
        // It takes as long as a person does, or for ever; who left withdraws it.
        tokio::select! {
            outcome = ops::perform(&workspace, &caller, &call, &sink) => (outcome, None),
            () = outgoing.closed() => return,
        }
    } else if call.op.is_question() {
        let stoppable = workspace.stops.enter(caller.connection, &call.id);
        tokio::select! {
            outcome = question(&workspace, &caller, &call, &sink, &reading) => (outcome, None),
            () = stoppable.stopped() => (Err(crate::stops::interrupted()), None),
            // Work for a client that left ends with the future.
            () = outgoing.closed() => return,
        }
    } else {
        change(&workspace, &caller, &call, &sink).await
    };
    let is_closing = call.op == Op::Close && outcome.is_ok();
    let mut text = match outcome {
        Ok(reply) => {
            // `clone` answers the session it made.
            let session = Some(session.as_str()).filter(|_| call.op != Op::Clone);
            reply.text(&call.id, session)
        }
        Err(error) => ops::text_of(&Head::failure(Some(&call.id), Some(&session), error)),
    };
    match rest {
        None => drop(open.borrow_mut().remove(&call.id)),
        // It keeps its place among the open requests for as long as it goes on.
        Some(rest) => {
            let id = call.id.clone();
            tokio::task::spawn_local(async move {
                drop(rest.await);
                open.borrow_mut().remove(&id);
            });
        }
    }
    if text.len() > limits::OUTBOUND_FRAME {
        text = cut(&call, &session, &text);
    }
    match &sink {
        Sink::Kept { session, id } => session.deliver(id, &text, true).await,
        // A client that left does not need its answer.
        Sink::Client { .. } | Sink::Nowhere | Sink::Text(_) => drop(outgoing.send(text).await),
    }
    if is_closing {
        outgoing.close(1000, "session closed");
    }
}

/// What is still being done after the answer to it was sent.
type Rest = tokio::task::JoinHandle<Result<ops::Reply, ErrorBody>>;

/// Something is done. Who does not want to wait for its end is told so; it is not stopped halfway, and the trail tells
/// how it ended.
async fn change(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    call: &Call,
    sink: &Sink,
) -> (Result<ops::Reply, ErrorBody>, Option<Rest>) {
    let Some(deadline) = Deadline::of_change(call) else {
        return (ops::perform(workspace, caller, call, sink).await, None);
    };
    let (workspace, caller, sink) = (workspace.clone(), caller.clone(), sink.clone());
    let asked = call.clone();
    let mut work =
        tokio::task::spawn_local(async move { ops::perform(&workspace, &caller, &asked, &sink).await });
    let name = call.op.name();
    match deadline.within(&mut work).await {
        Some(Ok(outcome)) => (outcome, None),
        Some(Err(_)) => {
            let message = format!("'{name}' ended without an answer");
            (Err(ErrorBody::new(ErrorKind::InternalError, message)), None)
        }
        None => {
            let error = deadline.error(&format!("'{name}' was not done"));
            let hint = "it goes on; the audit trail will tell how it ended";
            (Err(error.hint(hint)), Some(work))
        }
    }
}

/// A question that others work on: one at a time for each connection, few for all observers, and not for long.
async fn question(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    call: &Call,
    sink: &Sink,
    reading: &Mutex<()>,
) -> Result<ops::Reply, ErrorBody> {
    let work = async {
        let _turn = reading.lock().await;
        let _place = match caller.role {
            Role::Observer => workspace.observing.acquire().await.ok(),
            Role::Owner => None,
        };
        ops::perform(workspace, caller, call, sink).await
    };
    let deadline = Deadline::of(call);
    match tokio::time::timeout(limits::READ_TIME, deadline.within(work)).await {
        Ok(Some(outcome)) => outcome,
        Ok(None) => Err(deadline.error(&format!("'{}' was not answered", call.op.name()))),
        Err(_) => Err(ErrorBody::new(
            ErrorKind::ReadLimit,
            format!("the question took more than {} s", limits::READ_TIME.as_secs()),
        )
        .hint("ask for less at a time")
        .detail("limit", "time")),
    }
}

/// An answer that is too long keeps its short fields and says so. Where a field is long that every such answer has, it is
/// an error: nobody could read the rest.
fn cut(call: &Call, session: &str, text: &str) -> String {
    let mut fields: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
    fields.retain(|key, value| key != "status" && value.to_string().len() <= limits::EVAL_TEXT);
    if !call.op.is_answer(&fields) {
        let message = format!(
            "the answer to '{}' has {} bytes, more than the {} of a message",
            call.op.name(),
            text.len(),
            limits::OUTBOUND_FRAME
        );
        let hint = match call.op.access() {
            Access::Read => "ask for less at a time",
            Access::Execute | Access::Administer => "it was done; ask for what it did in smaller parts",
        };
        let error = ErrorBody::new(ErrorKind::MessageTooLarge, message).hint(hint);
        return ops::text_of(&Head::failure(Some(&call.id), Some(session), error));
    }
    let head = Head::done(&call.id, Some(session), &[Flag::Truncated], Vec::new());
    fields.extend(beamtalk_wire::object(&head));
    Value::Object(fields).to_string()
}
