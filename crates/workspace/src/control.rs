//! The control socket's operations: administration by processes of the same user.

mod tail;

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use beamtalk_storage::{RunDirectory, StorageError};
use beamtalk_wire::{ClientKind, ErrorBody, ErrorKind, PROTOCOL, Role, WorkspaceEvent};
use serde_json::{Map, Value, json};

use crate::audit::{Audit, Event, Who};
use crate::compile::job::{Job, SourceText, TextOrigin};
use crate::gate::{
    AuditSink, AuthKind, Connections, ControlCall, Credential, GateEvent, LoginName, Peer, parse_span,
};
use crate::workspace::{Workspace, audit_failed};
use tail::Tail;

/// Serve calls until the gate closes.
pub(crate) async fn serve(workspace: Rc<Workspace>, mut calls: tokio::sync::mpsc::Receiver<ControlCall>) {
    while let Some(call) = calls.recv().await {
        tokio::task::spawn_local(answer(workspace.clone(), call));
    }
}

async fn answer(workspace: Rc<Workspace>, call: ControlCall) {
    if let Some(tail) = Tail::of(&workspace, &call.request) {
        tail.send(&call).await;
        return;
    }
    if call.request["op"] == "loop-run" {
        crate::hosted_loop::attend(&workspace, &call).await;
        return;
    }
    let answer = match perform(&workspace, &call.request, call.peer_uid).await {
        Ok(answer) => answer,
        Err(error) => json!({"error": error}),
    };
    // Whoever left does not need the answer.
    call.answer.send(answer).await;
}

async fn perform(workspace: &Rc<Workspace>, request: &Value, uid: u32) -> Result<Value, ErrorBody> {
    let text = |field: &str| request[field].as_str();
    let need = |field: &str| {
        text(field).ok_or_else(|| {
            ErrorBody::new(
                ErrorKind::MissingParameter,
                format!("the field '{field}' is missing"),
            )
        })
    };
    let who = || Who {
        peer: Some(format!("unix:uid={uid}")),
        auth: Some("uid".to_owned()),
        ..Who::default()
    };
    let record = |event: Event| {
        if let Err(cause) = workspace.audit.record(event.by(who())) {
            tracing::error!("{cause}");
        }
    };
    // What gives a right is recorded first, where that is required; what takes one away never waits for a disk.
    let begin = |op: &str, target: Option<&str>| {
        let event = || {
            let begin = Event::Begin {
                op: op.to_owned(),
                target: target.map(str::to_owned),
                source: None,
            };
            begin.by(who())
        };
        let begun = workspace.audit.begin(event).map(drop);
        begun.map_err(|cause| audit_failed(&cause))
    };
    match need("op")? {
        "hello" => {
            let info = workspace.info.borrow();
            Ok(json!({
                "workspace_id": info.workspace_id, "nonce": info.nonce,
                "version": info.version, "protocol": PROTOCOL, "stopping": workspace.is_stopping(),
            }))
        }
        "status" => Ok(Value::Object(status(workspace).await)),
        "compile" | "check" => compile(workspace, request).await,
        "login-token" => {
            let gate = workspace.gate.borrow();
            let gate = gate.as_ref().ok_or_else(stopping)?;
            let role = role(text("role"))?;
            let name = if request["plain_host"] == true {
                LoginName::Plain
            } else {
                LoginName::Own
            };
            begin("login-token", Some(role.name()))?;
            let (token, seconds) = gate.login_token(role, name).map_err(internal)?;
            remove_login_pages_after(workspace, seconds);
            record(Event::Login {
                action: "created".to_owned(),
            });
            let local = workspace.info.borrow().local_address();
            let host = match name {
                LoginName::Own => format!("{}:{}", gate.login_host, local.port()),
                LoginName::Plain => local.to_string(),
            };
            Ok(json!({
                "token": token.expose(), "expires_in_s": seconds.as_secs(), "port": local.port(),
                "site": format!("http://{host}"),
            }))
        }
        "rotate-cookie" => {
            let keep = request["keep_connections"] == true;
            let cookie = workspace
                .directory
                .rotate_cookie()
                .map_err(|error| storage(&error))?;
            let gate = workspace.gate.borrow();
            let gate = gate.as_ref().ok_or_else(stopping)?;
            workspace.publish(&beamtalk_wire::Event::Workspace(WorkspaceEvent::Rotated {}));
            let connections = if keep {
                Connections::Keep
            } else {
                Connections::Close
            };
            let closed = gate.rotate(&Credential::from(&cookie), connections);
            workspace.end_handles("owner");
            record(Event::Rotate {
                action: "cookie".to_owned(),
            });
            Ok(json!({"closed": closed}))
        }
        "token-create" => {
            let name = need("name")?;
            let role = role(text("role"))?;
            let mcp = text("mcp").map(str::to_owned);
            if let Some(word) = &mcp {
                word.parse::<beamtalk_mcp::Policy>().map_err(invalid)?;
            }
            let lifetime = text("expires").map(parse_span).transpose().map_err(invalid)?;
            let gate = workspace.gate.borrow();
            let gate = gate.as_ref().ok_or_else(stopping)?;
            begin("token-create", Some(name))?;
            let token = gate
                .create_token(name, (role, mcp), lifetime.map(Duration::from_secs))
                .map_err(invalid)?;
            record(Event::Token {
                action: "create".to_owned(),
                name: name.to_owned(),
            });
            Ok(json!({"token": token.expose()}))
        }
        "token-list" => {
            let gate = workspace.gate.borrow();
            let tokens = gate.as_ref().ok_or_else(stopping)?.tokens();
            Ok(json!({"tokens": tokens}))
        }
        "token-revoke" => {
            let name = need("name")?;
            let gate = workspace.gate.borrow();
            let closed = gate
                .as_ref()
                .ok_or_else(stopping)?
                .revoke_token(name)
                .map_err(invalid)?;
            workspace.end_handles(&format!("token:{name}"));
            record(Event::Token {
                action: "revoke".to_owned(),
                name: name.to_owned(),
            });
            Ok(json!({"closed": closed}))
        }
        "loop-stop" => Ok(json!({"stopping": workspace.hosted_loop.stop("ctrl-c")})),
        "stop" | "restart" => {
            let reason = if request["op"] == "stop" {
                "stop"
            } else {
                "restart"
            };
            workspace.stop(request["force"] == true, reason);
            Ok(json!({"pid": std::process::id()}))
        }
        other => {
            let shown: String = other.chars().take(64).collect();
            Err(ErrorBody::new(
                ErrorKind::UnknownOp,
                format!("the control socket has no op '{shown}'"),
            ))
        }
    }
}

/// A page that nobody opened goes when its token does; one that was made later has its own time.
fn remove_login_pages_after(workspace: &Rc<Workspace>, lifetime: Duration) {
    let number = workspace.login_pages.get() + 1;
    workspace.login_pages.set(number);
    let workspace = Rc::downgrade(workspace);
    tokio::task::spawn_local(async move {
        tokio::time::sleep(lifetime).await;
        if let Some(workspace) = workspace.upgrade()
            && workspace.login_pages.get() == number
        {
            remove_login_pages(&workspace.run);
        }
    });
}

/// The role in a request; the owner if it names none.
fn role(name: Option<&str>) -> Result<Role, ErrorBody> {
    match name {
        None | Some("owner") => Ok(Role::Owner),
        Some("observer") => Ok(Role::Observer),
        Some(_) => Err(ErrorBody::new(
            ErrorKind::InvalidParameter,
            "'role' is owner or observer",
        )),
    }
}

fn stopping() -> ErrorBody {
    ErrorBody::new(ErrorKind::ShuttingDown, "the workspace is stopping")
}

fn internal(cause: impl std::fmt::Display) -> ErrorBody {
    ErrorBody::new(ErrorKind::InternalError, cause.to_string())
}

fn storage(error: &StorageError) -> ErrorBody {
    let mut body = ErrorBody::new(ErrorKind::WriteFailed, error.to_string());
    body.hint = error.repair();
    body
}

fn invalid(cause: impl std::fmt::Display) -> ErrorBody {
    ErrorBody::new(ErrorKind::InvalidParameter, cause.to_string())
}

/// Everything `workspace status --json` prints.
async fn status(workspace: &Rc<Workspace>) -> Map<String, Value> {
    let mut fields = beamtalk_wire::object(&crate::ops::health(workspace, false).await);
    let info = workspace.info.borrow();
    let options = &workspace.options;
    let more = json!({
        "state": if workspace.is_stopping() { "stopping" } else { "running" },
        "project_path": workspace.root,
        "pid": info.pid,
        "node_pid": workspace.image.pid(),
        "port": info.port,
        "bind": info.bind_addr,
        "local": info.local_address(),
        "home": workspace.directory.state().path(),
        "tls": info.tls,
        "cluster": *workspace.cluster_status.borrow(),
        "session": info.session,
        "socket": info.socket,
        "started_at": info.started_at,
        "protocol": info.protocol,
        "version": info.version,
        "capabilities": info.capabilities,
        "limits": options.limits(),
        "observers_see_bindings": options.observers_see_bindings,
        "clients": workspace.sessions.describe(),
    });
    if let Value::Object(more) = more {
        fields.extend(more);
    }
    fields
}

/// Files compiled or checked with the daemon's workers.
async fn compile(workspace: &Rc<Workspace>, request: &Value) -> Result<Value, ErrorBody> {
    let bad = || {
        ErrorBody::new(
            ErrorKind::InvalidParameter,
            "'files' is a list of {path, text, package, module}",
        )
    };
    let files = request["files"].as_array().ok_or_else(bad)?;
    let mut texts = Vec::new();
    for file in files {
        let text = |field: &str| file[field].as_str().map(str::to_owned);
        let path = text("path").ok_or_else(bad)?;
        let package = text("package");
        let module =
            text("module").unwrap_or_else(|| beamtalk_compiler::module_name(package.as_deref(), &path));
        texts.push(SourceText {
            text: text("text").ok_or_else(bad)?,
            path,
            package,
            module,
            origin: TextOrigin::Package,
        });
    }
    let compiled = workspace.compiler.run(Job::Files { files: texts }).await?;
    let modules: Vec<Value> = if request["op"] == "compile" {
        let modules = compiled.outcome.modules.iter();
        modules
            .map(|module| {
                let forms = beamtalk_storage::base64url(compiled.bytes(module.forms));
                json!({"name": module.name, "class": module.class, "forms": forms})
            })
            .collect()
    } else {
        Vec::new()
    };
    Ok(json!({"modules": modules, "diagnostics": compiled.outcome.diagnostics}))
}

/// Writes what the gate sees into the audit trail.
pub(crate) struct GateAudit {
    audit: Arc<Audit>,
    run: RunDirectory,
}

impl GateAudit {
    pub(crate) fn new(audit: Arc<Audit>, run: RunDirectory) -> Self {
        Self { audit, run }
    }
}

impl AuditSink for GateAudit {
    fn record(&self, event: GateEvent<'_>) {
        let entry = match event {
            GateEvent::AuthOk {
                peer,
                client,
                auth,
                role,
            } => Event::AuthOk {
                role: role.name().to_owned(),
            }
            .by(who(&peer, Some(client), Some(auth))),
            GateEvent::AuthFail(failure) => Event::AuthFail {
                reason: failure.reason.name().to_owned(),
                bytes: failure.bytes,
                count: failure.count,
            }
            .by(who(&failure.peer, None, None)),
            GateEvent::Connect { peer, client, auth } => {
                Event::Connect {}.by(who(&peer, Some(client), Some(auth)))
            }
            GateEvent::Disconnect {
                peer,
                client,
                auth,
                code,
                duration,
            } => Event::Disconnect {
                code,
                duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
            }
            .by(who(&peer, Some(client), Some(auth))),
            GateEvent::Login { peer, action } => {
                if action == "login" {
                    remove_login_pages(&self.run);
                }
                let event = Event::Login {
                    action: action.to_owned(),
                };
                event.by(who(&peer, None, None))
            }
        };
        if let Err(error) = self.audit.record(entry) {
            tracing::error!("{error}");
        }
    }
}

/// A page that logs a browser in is of no use any more.
fn remove_login_pages(run: &RunDirectory) {
    if let Err(error) = run.remove_login_pages() {
        tracing::error!("{error}");
    }
}

fn who(peer: &Peer, client: Option<ClientKind>, auth: Option<&AuthKind>) -> Who {
    Who {
        peer: Some(peer.to_string()),
        client: client.map(|client| client.name().to_owned()),
        session: None,
        auth: auth.map(ToString::to_string),
    }
}
