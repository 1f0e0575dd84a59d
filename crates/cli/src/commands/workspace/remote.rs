//! `workspace remote`: names for workspaces of other machines, for `workspace attach NAME`.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::json;

use super::attach::{TlsFlags, read_secret, read_standard_input};
use crate::exit::{Exit, Fault};
use crate::terminal::Terminal;
use crate::workspace_link::open_state;
use beamtalk_client::remotes::{Address, Remote, Remotes, absolute};

#[derive(Subcommand)]
pub(super) enum RemoteCommand {
    /// Save where a workspace is, and the files that open it, under a name.
    Add(AddArguments),
    /// List the saved names; no secret is shown.
    List,
    /// Forget a name.
    Remove {
        /// The name.
        remote: String,
    },
}

#[derive(clap::Args)]
pub(super) struct AddArguments {
    /// The name for `workspace attach`.
    remote: String,
    /// HOST, HOST:PORT, wss://HOST:PORT, or ws://HOST:PORT without TLS.
    address: String,
    /// The file with the access token, of mode 0600; `-` reads standard input and keeps the token.
    #[arg(long, value_name = "FILE")]
    token_file: PathBuf,
    #[command(flatten)]
    tls: TlsFlags,
    /// Replace what was saved under the name.
    #[arg(long)]
    replace: bool,
}

pub(super) fn run(terminal: &mut Terminal, command: &RemoteCommand) -> anyhow::Result<Exit> {
    match command {
        RemoteCommand::Add(arguments) => add(terminal, arguments),
        RemoteCommand::List => list(terminal),
        RemoteCommand::Remove { remote } => remove(terminal, remote),
    }
}

fn add(terminal: &mut Terminal, arguments: &AddArguments) -> anyhow::Result<Exit> {
    let name = &arguments.remote;
    Remotes::check_name(name)?;
    let has_certificates = arguments.tls.has_certificates();
    let address = Address::read(&arguments.address, has_certificates)?;
    let state = open_state(terminal)?;
    let remotes = Remotes::create(&state)?;
    let id = beamtalk_storage::WorkspaceId::named(name).map_err(Fault::from)?;
    if state.workspace(&id).map_err(Fault::from)?.is_some() {
        let message = format!("there is a workspace '{name}' on this machine");
        let fault = Fault::usage("exists", message);
        return Err(fault
            .with_hint("choose another name, so that attach knows which one is meant")
            .into());
    }
    if !arguments.replace && remotes.find(name)?.is_some() {
        let fault = Fault::usage("exists", format!("'{name}' is saved already"));
        return Err(fault.with_hint("--replace saves it anew").into());
    }
    // What cannot be used later is told now.
    for file in [&arguments.tls.ca, &arguments.tls.cert].into_iter().flatten() {
        std::fs::File::open(file).map_err(|cause| cannot_read(file, &cause))?;
    }
    if let Some(key) = &arguments.tls.key {
        read_secret(key)?;
    }
    let place = |file: &Option<PathBuf>| file.as_deref().map(absolute).transpose();
    let (ca, cert, key) = (
        place(&arguments.tls.ca)?,
        place(&arguments.tls.cert)?,
        place(&arguments.tls.key)?,
    );
    let token_file = if arguments.token_file == Path::new("-") {
        let token = read_standard_input()?;
        if token.trim().is_empty() {
            return Err(Fault::usage("no_token", "standard input has no token").into());
        }
        remotes.keep_token(name, &token)?
    } else {
        read_secret(&arguments.token_file)?;
        absolute(&arguments.token_file)?
    };
    let remote = Remote {
        url: address.to_string(),
        token_file,
        ca,
        cert,
        key,
    };
    remotes.save(name, &remote)?;
    if terminal.is_json() {
        terminal.print(shown(name, &remote))?;
    } else {
        terminal.status(format_args!(
            "Saved {name} as {}; beamtalk workspace attach {name} opens it.",
            remote.url
        ));
    }
    Ok(Exit::Success)
}

fn cannot_read(file: &Path, cause: &std::io::Error) -> Fault {
    Fault::usage("no_file", format!("cannot read {}: {cause}", file.display()))
}

fn shown(name: &str, remote: &Remote) -> serde_json::Value {
    json!({
        "name": name, "url": remote.url, "token_file": remote.token_file,
        "ca": remote.ca, "cert": remote.cert, "key": remote.key,
    })
}

fn list(terminal: &mut Terminal) -> anyhow::Result<Exit> {
    let remotes = Remotes::open(&open_state(terminal)?)?;
    let mut rows = Vec::new();
    for name in remotes.names()? {
        match remotes.find(&name) {
            Ok(Some(remote)) => rows.push((name, remote)),
            Ok(None) => {}
            // One that is damaged does not hide the others.
            Err(fault) => terminal.error(format_args!("warning: {}", fault.message)),
        }
    }
    if terminal.is_json() {
        let rows: Vec<_> = rows.iter().map(|(name, remote)| shown(name, remote)).collect();
        terminal.print(json!(rows))?;
    } else if rows.is_empty() {
        terminal.status(
            "no saved names; beamtalk workspace remote add NAME HOST:PORT --token-file FILE saves one",
        );
    } else {
        for (name, remote) in rows {
            let token = remote.token_file.display();
            terminal.print(format_args!("{name:<20} {:<36} token in {token}", remote.url))?;
        }
    }
    Ok(Exit::Success)
}

fn remove(terminal: &mut Terminal, name: &str) -> anyhow::Result<Exit> {
    Remotes::check_name(name)?;
    let remotes = Remotes::open(&open_state(terminal)?)?;
    if !remotes.remove(name)? {
        return Err(
            Fault::usage("no_remote", format!("no workspace is saved under '{name}'"))
                .with_hint("beamtalk workspace remote list shows those that are")
                .into(),
        );
    }
    if terminal.is_json() {
        terminal.print(json!({"removed": name}))?;
    } else {
        terminal.status(format_args!("Forgot {name}."));
    }
    Ok(Exit::Success)
}
