//! The MCP server inside the daemon: requests that came through the gate, and work that goes on without its client.
//!
//! What answers them is given by whoever starts the daemon; it joins the workspace by a [`Link`], a connection without a
//! network, as whoever asks.

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::pin::Pin;
use std::rc::{Rc, Weak};

use beamtalk_mcp::{HttpAnswer, Progress};
use beamtalk_wire::{ClientKind, PROTOCOL};
use tokio::sync::mpsc;

use crate::connection;
use crate::gate::{Admitted, McpVisit, Next, Outgoing, Principal};
use crate::options::StartOptions;
use crate::workspace::Workspace;

/// Frames that wait in each direction.
const FRAMES: usize = 64;

pub type Answering<T> = Pin<Box<dyn Future<Output = T>>>;

/// What answers AI clients.
pub trait McpService {
    /// Answer a request; `gone` ends when nobody waits for it any more.
    fn answer(
        &self,
        principal: Principal,
        request: beamtalk_mcp::HttpRequest,
        gone: Answering<()>,
    ) -> Answering<HttpAnswer>;

    /// Do the work of a task; the result of its call as JSON.
    fn work(
        &self,
        principal: Principal,
        order: String,
        task: String,
        progress: Rc<Progress>,
    ) -> Answering<Result<String, String>>;
}

/// What the service knows of the daemon it is in.
pub struct Inside {
    pub link: Link,
    pub options: StartOptions,
    pub root: PathBuf,
    pub id: String,
}

/// Makes the service; why there is none is told to the person.
pub type MakeService = Box<dyn FnOnce(Inside) -> Result<Rc<dyn McpService>, String>>;

/// The way into the workspace for those who are in its process.
#[derive(Clone)]
pub struct Link(Weak<Workspace>);

impl Link {
    pub(crate) fn new(workspace: &Rc<Workspace>) -> Self {
        Self(Rc::downgrade(workspace))
    }

    /// A connection as somebody who was let in: where requests go, and where frames come from. `None` at the end.
    pub fn open(&self, principal: &Principal) -> Option<(mpsc::Sender<String>, mpsc::Receiver<String>)> {
        let workspace = self.0.upgrade()?;
        let (requests, incoming) = mpsc::channel(FRAMES);
        let (frames, received) = mpsc::channel(FRAMES);
        let outgoing = Outgoing::default();
        let admitted = Admitted {
            peer: SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0),
            role: principal.role,
            auth: principal.auth.clone(),
            client: ClientKind::Mcp,
            protocol: PROTOCOL.to_owned(),
            resume: None,
            keeps: false,
            taken: Vec::new(),
            incoming,
            outgoing: outgoing.clone(),
        };
        tokio::task::spawn_local(connection::serve(workspace, admitted));
        tokio::task::spawn_local(async move {
            loop {
                let next = tokio::select! {
                    next = outgoing.next() => next,
                    () = frames.closed() => break,
                };
                let is_sent = match next {
                    Next::Send(text) => frames.send(text).await.is_ok(),
                    Next::Close(_) => false,
                };
                if !is_sent {
                    break;
                }
            }
            outgoing.end(1000);
        });
        Some((requests, received))
    }
}

/// Answer what comes through the gate.
pub(crate) async fn serve(workspace: Rc<Workspace>, mut visits: mpsc::Receiver<McpVisit>) {
    while let Some(visit) = visits.recv().await {
        let McpVisit {
            principal,
            request,
            mut answer,
        } = visit;
        let Some(service) = workspace.mcp.borrow().clone() else {
            continue;
        };
        tokio::task::spawn_local(async move {
            let (gone, left) = tokio::sync::oneshot::channel::<()>();
            let gone_by = Box::pin(async move { drop(left.await) });
            let mut work = service.answer(principal, request, gone_by);
            let mut gone = Some(gone);
            let found = loop {
                tokio::select! {
                    found = &mut work => break found,
                    () = answer.closed(), if gone.is_some() => drop(gone.take()),
                }
            };
            drop(answer.send(found));
        });
    }
}
