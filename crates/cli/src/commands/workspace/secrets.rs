//! The cookie and the access tokens of a workspace, running or stopped.

use beamtalk_client::{Place, control_answer};
use beamtalk_storage::{Metadata, WorkspaceDirectory, WorkspaceLock, time};
use beamtalk_wire::Role;
use beamtalk_workspace::audit::{Audit, AuditOptions, AuditSize, Event, Who};
use beamtalk_workspace::gate::{TokenError, TokenRecord, Tokens, parse_span};
use clap::Subcommand;
use serde_json::{Value, json};

use crate::exit::{Exit, Fault};
use crate::terminal::Terminal;
use crate::workspace_link::find_place;

#[derive(Subcommand)]
pub(super) enum TokenCommand {
    /// Make a token; it is printed once and kept nowhere.
    Create {
        /// What it is called, such as the device it is for.
        token: String,
        /// An owner may run code; an observer may only look.
        #[arg(long, default_value = "owner", value_parser = ["owner", "observer"])]
        role: String,
        /// For AI clients alone, under this policy: it opens /mcp and nothing else.
        #[arg(long, value_name = "POLICY", value_parser = ["read-only", "edit", "full"])]
        mcp: Option<String>,
        /// How long it is accepted, such as 12h, 30d or 8w; for ever if not given.
        #[arg(long, value_name = "SPAN")]
        expires: Option<String>,
    },
    /// List the tokens; what is shown opens nothing.
    List,
    /// Accept a token no more and close its connections.
    Revoke {
        /// What it is called.
        token: String,
    },
}

pub(super) fn rotate_cookie(
    terminal: &mut Terminal,
    name: Option<&str>,
    keep_connections: bool,
) -> anyhow::Result<Exit> {
    let place = find_place(terminal, name)?;
    let directory = place.require_directory()?;
    let closed = match place.control()? {
        Some((mut control, _)) => {
            let request = json!({"op": "rotate-cookie", "keep_connections": keep_connections});
            control_answer(control.call(&request)?)?["closed"]
                .as_u64()
                .unwrap_or(0)
        }
        None => {
            let _lock = stopped(&place, &directory)?;
            directory.rotate_cookie().map_err(Fault::from)?;
            record(
                &directory,
                Event::Rotate {
                    action: "cookie".to_owned(),
                },
            )?;
            0
        }
    };
    if terminal.is_json() {
        terminal.print(json!({"closed": closed}))?;
        return Ok(Exit::Success);
    }
    let connections = if closed == 1 { "connection" } else { "connections" };
    terminal.print(format_args!(
        "Cookie rotated. {closed} {connections} closed.\n\
         Code already loaded into the workspace keeps running. If the old cookie may have been used by\n\
         someone else, run: beamtalk workspace restart --clean"
    ))?;
    Ok(Exit::Success)
}

pub(super) fn token(terminal: &mut Terminal, command: &TokenCommand) -> anyhow::Result<Exit> {
    match command {
        TokenCommand::Create {
            token,
            role,
            mcp,
            expires,
        } => create(terminal, token, (role, mcp.as_deref()), expires.as_deref()),
        TokenCommand::List => list(terminal),
        TokenCommand::Revoke { token } => revoke(terminal, token),
    }
}

fn create(
    terminal: &mut Terminal,
    name: &str,
    (role, mcp): (&str, Option<&str>),
    expires: Option<&str>,
) -> anyhow::Result<Exit> {
    let lifetime = expires
        .map(parse_span)
        .transpose()
        .map_err(|error| wrong(&error))?;
    let place = find_place(terminal, None)?;
    let secret = if let Some((mut control, _)) = place.control()? {
        let request =
            json!({"op": "token-create", "name": name, "role": role, "mcp": mcp, "expires": expires});
        let answer = control_answer(control.call(&request)?)?;
        answer["token"].as_str().unwrap_or_default().to_owned()
    } else {
        // A workspace may get its token before its first start, which needs one to be reachable.
        let directory = place.state.create_workspace(&place.id).map_err(Fault::from)?;
        let _lock = stopped(&place, &directory)?;
        if directory.metadata().map_err(Fault::from)?.is_none() {
            let root = place.root.display().to_string();
            let metadata = Metadata::new(&place.id, &root, time::now_seconds());
            directory.write_metadata(&metadata).map_err(Fault::from)?;
        }
        let mut tokens = read(&directory)?;
        let role = if role == "observer" {
            Role::Observer
        } else {
            Role::Owner
        };
        let secret = tokens
            .create_for(
                name,
                (role, mcp.map(str::to_owned)),
                lifetime,
                time::now_seconds(),
            )
            .map_err(|error| wrong(&error))?;
        directory.write_tokens(&tokens.to_json()).map_err(Fault::from)?;
        record_token(&directory, "create", name)?;
        secret.expose().to_owned()
    };
    if terminal.is_json() {
        terminal.print(json!({"name": name, "role": role, "token": secret}))?;
        return Ok(Exit::Success);
    }
    let opens = match (mcp, role) {
        (Some("read-only"), _) => "It opens /mcp, to look.",
        (Some(_), _) => "It opens /mcp, where clients run code as you.",
        (None, "observer") => "It opens the workspace, to look.",
        (None, _) => "An owner token runs any code as you.",
    };
    terminal.status(format!(
        "Keep this token like an SSH private key; it is shown once. {opens}"
    ));
    terminal.print(secret)?;
    Ok(Exit::Success)
}

fn list(terminal: &mut Terminal) -> anyhow::Result<Exit> {
    let place = find_place(terminal, None)?;
    let records: Vec<TokenRecord> = match place.control()? {
        Some((mut control, _)) => {
            let mut answer = control_answer(control.call(&json!({"op": "token-list"}))?)?;
            serde_json::from_value(answer["tokens"].take())?
        }
        None => read(&place.require_directory()?)?.records().to_vec(),
    };
    if terminal.is_json() {
        let rows: Vec<Value> = records
            .iter()
            .map(|token| {
                json!({
                    "name": token.name, "role": token.role, "mcp": token.mcp, "created": token.created,
                    "expires": token.expires, "last_used": token.last_used,
                })
            })
            .collect();
        terminal.print(Value::from(rows))?;
        return Ok(Exit::Success);
    }
    if records.is_empty() {
        terminal.status("There are no tokens.");
    }
    let now = time::now_seconds();
    let day = |seconds: Option<u64>, none: &str| match seconds {
        Some(seconds) => time::timestamp(seconds * 1000)[..16].replace('T', " "),
        None => none.to_owned(),
    };
    for token in records {
        let expiry = match token.expires {
            Some(_) if !token.is_live(now) => "expired".to_owned(),
            expires => day(expires, "never expires"),
        };
        let opens = match &token.mcp {
            Some(policy) => format!("mcp {policy}"),
            None => token.role.name().to_owned(),
        };
        terminal.print(format_args!(
            "{:<20} {:<13} {:<16} last used {}",
            token.name,
            opens,
            expiry,
            day(token.last_used, "never")
        ))?;
    }
    Ok(Exit::Success)
}

fn revoke(terminal: &mut Terminal, name: &str) -> anyhow::Result<Exit> {
    let place = find_place(terminal, None)?;
    let closed = if let Some((mut control, _)) = place.control()? {
        let answer = control_answer(control.call(&json!({"op": "token-revoke", "name": name}))?)?;
        answer["closed"].as_u64().unwrap_or(0)
    } else {
        let directory = place.require_directory()?;
        let _lock = stopped(&place, &directory)?;
        let mut tokens = read(&directory)?;
        tokens.revoke(name).map_err(|error| wrong(&error))?;
        directory.write_tokens(&tokens.to_json()).map_err(Fault::from)?;
        record_token(&directory, "revoke", name)?;
        0
    };
    if terminal.is_json() {
        terminal.print(json!({"name": name, "closed": closed}))?;
    } else {
        terminal.print(format_args!(
            "Token {name} revoked. Connections closed: {closed}."
        ))?;
    }
    Ok(Exit::Success)
}

/// The lock that keeps a daemon from starting while its secrets are changed.
fn stopped(place: &Place, directory: &WorkspaceDirectory) -> anyhow::Result<WorkspaceLock> {
    directory.lock().map_err(Fault::from)?.ok_or_else(|| {
        let message = format!("workspace '{}' is starting or stopping", place.id);
        Fault::failure("busy", message)
            .with_hint("try again in a moment")
            .into()
    })
}

fn read(directory: &WorkspaceDirectory) -> anyhow::Result<Tokens> {
    match directory.tokens().map_err(Fault::from)? {
        Some(bytes) => Ok(Tokens::parse(&bytes).map_err(|error| wrong(&error))?),
        None => Ok(Tokens::default()),
    }
}

fn wrong(error: &TokenError) -> Fault {
    Fault::usage("bad_token", error.to_string())
}

fn record_token(directory: &WorkspaceDirectory, action: &str, name: &str) -> anyhow::Result<()> {
    record(
        directory,
        Event::Token {
            action: action.to_owned(),
            name: name.to_owned(),
        },
    )
}

/// The trail has no gap where a stopped workspace was changed.
fn record(directory: &WorkspaceDirectory, event: Event) -> anyhow::Result<()> {
    let options = AuditOptions {
        text: false,
        required: false,
    };
    let audit = Audit::open(directory, AuditSize::default(), options)?;
    let uid = rustix::process::geteuid().as_raw();
    audit.record(event.by(Who {
        peer: Some(format!("unix:uid={uid}")),
        auth: Some("uid".to_owned()),
        ..Who::default()
    }))?;
    Ok(())
}
