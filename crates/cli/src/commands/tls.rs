//! `beamtalk tls`: a certificate authority of the user's own, and the certificates it signs.

use beamtalk_storage::{Directory, StateDirectory, WorkspaceId, time};
use beamtalk_workspace::certificate_files::{self, AUTHORITY, CLIENT, IssueError, NODE, PairNames, SERVER};
use beamtalk_workspace::certificates::{self, CertificateError, Subject, Summary};
use serde_json::json;

use crate::exit::{Exit, Fault};
use crate::terminal::Terminal;
use crate::workspace_link::find_place;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Make the certificate authority.
    Init {
        /// Replace the one there is; what it signed is worth nothing then.
        #[arg(long)]
        force: bool,
    },
    /// Make a certificate for a workspace or for a client of it.
    Issue {
        #[command(subcommand)]
        subject: Issue,
    },
    /// Show the authority and every certificate.
    List,
}

#[derive(clap::Subcommand)]
enum Issue {
    /// For a workspace that serves TLS; `--workspace` names it.
    Server {
        /// A name or address it is reached by; may be repeated.
        #[arg(long = "host", value_name = "DNS-OR-IP", required = true)]
        hosts: Vec<String>,
    },
    /// For a node of a cluster that connects to others; `--workspace` names its workspace.
    Node {
        /// The host in the node's name; may be repeated.
        #[arg(long = "host", value_name = "DNS-OR-IP", required = true)]
        hosts: Vec<String>,
    },
    /// For a client of a workspace that asks clients for certificates.
    Client {
        /// Whom the certificate is for.
        #[arg(long, value_name = "N")]
        name: String,
    },
}

pub(crate) fn run(terminal: &mut Terminal, arguments: &Arguments) -> anyhow::Result<Exit> {
    match &arguments.command {
        Command::Init { force } => init(terminal, *force),
        Command::Issue { subject } => issue(terminal, subject),
        Command::List => list(terminal),
    }
}

fn init(terminal: &mut Terminal, force: bool) -> anyhow::Result<Exit> {
    let tls = certificate_files::directory(&StateDirectory::open(None)?)?;
    let is_there = tls.open(AUTHORITY.0)?.is_some() || tls.open(AUTHORITY.1)?.is_some();
    if is_there && !force {
        return Err(Fault::failure(
            "exists",
            format!(
                "there is a certificate authority in {} already",
                tls.path().display()
            ),
        )
        .with_hint("--force replaces it; every certificate it signed must be issued again then")
        .into());
    }
    let pair = certificates::make_authority(time::now_seconds()).map_err(refused)?;
    certificate_files::write(&tls, AUTHORITY, &pair)?;
    report(terminal, &tls, AUTHORITY)
}

fn issue(terminal: &mut Terminal, subject: &Issue) -> anyhow::Result<Exit> {
    let place = find_place(terminal, None)?;
    let subject = match subject {
        Issue::Server { hosts } => Subject::Server {
            workspace: place.id.to_string(),
            hosts: hosts.clone(),
        },
        Issue::Client { name } => Subject::Client { name: name.clone() },
        Issue::Node { hosts } => Subject::Node {
            name: place.id.to_string(),
            hosts: hosts.clone(),
        },
    };
    match certificate_files::issue(&place.state, &place.id, &subject) {
        Ok((own, names)) => report(terminal, &own, names),
        Err(error @ IssueError::NoAuthority) => Err(Fault::failure("no_authority", error.to_string())
            .with_hint("beamtalk tls init makes one")
            .into()),
        Err(IssueError::Certificate(error)) => Err(refused(error)),
        Err(IssueError::Storage(error)) => Err(error.into()),
    }
}

fn list(terminal: &mut Terminal) -> anyhow::Result<Exit> {
    let state = StateDirectory::open(None)?;
    let tls = certificate_files::directory(&state)?;
    let mut rows = Vec::new();
    rows.extend(row("ca", None, &tls, AUTHORITY.0)?);
    let workspaces = certificate_files::all_workspaces(&state)?;
    for name in workspaces.names()? {
        // Only what this command made is shown.
        let Ok(id) = WorkspaceId::named(&name) else {
            continue;
        };
        let own = certificate_files::of_workspace(&state, &id)?;
        rows.extend(row("server", Some(&id), &own, SERVER.0)?);
        rows.extend(row("client", Some(&id), &own, CLIENT.0)?);
        rows.extend(row("node", Some(&id), &own, NODE.0)?);
    }
    if terminal.is_json() {
        let rows: Vec<_> = rows.iter().map(Row::json).collect();
        terminal.print(json!(rows))?;
    } else if rows.is_empty() {
        terminal.status("no certificates; beamtalk tls init makes an authority");
    } else {
        for row in &rows {
            terminal.print(row)?;
        }
    }
    Ok(Exit::Success)
}

/// One certificate in a list.
struct Row {
    kind: &'static str,
    workspace: Option<String>,
    path: String,
    /// `None` when the file cannot be read as a certificate.
    summary: Option<Summary>,
}

fn row(
    kind: &'static str,
    workspace: Option<&WorkspaceId>,
    directory: &Directory,
    name: &str,
) -> anyhow::Result<Option<Row>> {
    Ok(directory.read(name)?.map(|bytes| Row {
        kind,
        workspace: workspace.map(ToString::to_string),
        path: directory.path_of(name).display().to_string(),
        summary: certificates::read(&bytes).ok(),
    }))
}

impl Row {
    fn json(&self) -> serde_json::Value {
        json!({
            "kind": self.kind,
            "workspace": self.workspace,
            "path": self.path,
            "name": self.summary.as_ref().map(|summary| &summary.name),
            "hosts": self.summary.as_ref().map(|summary| &summary.hosts),
            "expires": self.summary.as_ref().map(|summary| date(summary.expires)),
        })
    }
}

impl std::fmt::Display for Row {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let workspace = self.workspace.as_deref().unwrap_or("-");
        write!(formatter, "{:<8}{workspace:<16}", self.kind)?;
        match &self.summary {
            Some(summary) => {
                write!(formatter, "until {}  {}", date(summary.expires), summary.name)?;
                if !summary.hosts.is_empty() {
                    write!(formatter, " ({})", summary.hosts.join(", "))?;
                }
                Ok(())
            }
            None => write!(formatter, "not readable: {}", self.path),
        }
    }
}

fn date(seconds: u64) -> String {
    let mut text = time::timestamp(seconds.saturating_mul(1_000));
    text.truncate("2026-01-05".len());
    text
}

fn report(
    terminal: &mut Terminal,
    directory: &Directory,
    (certificate, key): PairNames,
) -> anyhow::Result<Exit> {
    let (certificate, key) = (directory.path_of(certificate), directory.path_of(key));
    if terminal.is_json() {
        terminal.print(json!({"certificate": certificate, "key": key}))?;
    } else {
        terminal.print(format_args!("certificate: {}", certificate.display()))?;
        terminal.print(format_args!("key: {}", key.display()))?;
    }
    Ok(Exit::Success)
}

fn refused(error: CertificateError) -> anyhow::Error {
    match error {
        CertificateError::NoHost | CertificateError::Host(_) | CertificateError::Name => {
            Fault::usage("bad_name", error.to_string()).into()
        }
        CertificateError::Authority(_) | CertificateError::Make(_) | CertificateError::Unreadable => {
            error.into()
        }
    }
}
