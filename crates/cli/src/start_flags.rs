//! The flags with which a workspace is started, and what they become.

use std::path::PathBuf;

use beamtalk_workspace::{BadNodeName, NodeName, StartOptions, check_peer};
use clap::{Args, Parser};

use crate::exit::Fault;
use beamtalk_wire::LOG_LEVELS;

#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StartFlags {
    /// Listen on this port instead of a free one.
    #[arg(long, env = "BEAMTALK_REPL_PORT", value_name = "N")]
    port: Option<u16>,
    /// Listen on this address, or on `tailscale`.
    #[arg(long, value_name = "ADDR", conflicts_with = "remote")]
    bind: Option<String>,
    /// An address that others can reach is meant.
    #[arg(long)]
    confirm_network: bool,
    /// The same as `--bind 0.0.0.0 --confirm-network`.
    #[arg(long)]
    remote: bool,
    /// Serve TLS with the workspace's certificate.
    #[arg(long)]
    tls: bool,
    /// Ask clients for a certificate of the workspace's CA.
    #[arg(long)]
    tls_client_auth: bool,
    /// Serve TLS with this certificate.
    #[arg(long, value_name = "FILE")]
    cert: Option<PathBuf>,
    /// The key of the certificate.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Allow a reachable address without TLS.
    #[arg(long)]
    insecure_no_tls: bool,
    /// Accept this name in `Host`; may be repeated.
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// Accept pages of this origin; may be repeated.
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// Make the node one of a cluster, under this name.
    #[arg(long, env = "BEAMTALK_NODE_NAME", value_name = "NAME@HOST", value_parser = node_name)]
    cluster: Option<String>,
    /// A node of another machine and its port, which this one may connect to; may be repeated.
    #[arg(long, value_name = "NAME@HOST:PORT", value_parser = check_peer)]
    cluster_peer: Vec<String>,
    /// Let observers read the variables of other sessions.
    #[arg(long)]
    observers_see_bindings: bool,
    /// Never stop by itself.
    #[arg(long)]
    persistent: bool,
    /// Stop after this many idle seconds.
    #[arg(long, env = "BEAMTALK_WORKSPACE_TIMEOUT", value_name = "S")]
    idle_timeout: Option<u64>,
    /// Start without building and loading the project.
    #[arg(long)]
    no_load: bool,
    /// Switch off starting programs.
    #[arg(long)]
    no_subprocess: bool,
    /// Switch off calling Erlang from user code.
    #[arg(long)]
    no_ffi: bool,
    /// Switch off the HTTP client.
    #[arg(long)]
    no_http: bool,
    /// Switch off writing files.
    #[arg(long)]
    read_only_fs: bool,
    /// Serve AI clients by HTTP, at /mcp; they need the cookie or a token.
    #[arg(long)]
    mcp_http: bool,
    /// Heap of an evaluation; 0 is no limit.
    #[arg(long, value_name = "MB")]
    eval_max_heap_mb: Option<u64>,
    /// Memory of the whole node; 0 is no limit. Half of the machine's if not given.
    #[arg(long, value_name = "MB")]
    node_max_memory_mb: Option<u64>,
    /// Processes that code in the image may have.
    #[arg(long, value_name = "N")]
    max_processes: Option<u64>,
    /// Time of an evaluation; 0 is no limit.
    #[arg(long, value_name = "S")]
    eval_timeout: Option<u64>,
    /// Write the text of evaluations into the audit trail.
    #[arg(long)]
    audit_text: bool,
    /// Refuse what cannot be audited.
    #[arg(long)]
    audit_required: bool,
    /// Level of the node's log.
    #[arg(long, value_name = "LEVEL", value_parser = LOG_LEVELS)]
    log_level: Option<String>,
}

/// The flags by themselves, for commands that have none of them.
#[derive(clap::Parser)]
struct Alone {
    #[command(flatten)]
    flags: StartFlags,
}

impl StartFlags {
    /// What the variables say, for a command that starts a workspace and takes no flags for it.
    pub(crate) fn of_environment() -> Result<Self, Fault> {
        match Alone::try_parse_from(["beamtalk"]) {
            Ok(alone) => Ok(alone.flags),
            Err(error) => Err(Fault::usage("bad_variable", crate::exit::usage_line(&error))),
        }
    }

    /// The options of a start: flags over the defaults of the user's configuration.
    pub(crate) fn options(&self, defaults: StartOptions) -> Result<StartOptions, Fault> {
        let mut options = defaults;
        let cover = |place: &mut bool, flag: bool| *place |= flag;
        if let Some(port) = self.port {
            options.port = port;
        }
        if self.remote {
            options.bind = Some("0.0.0.0".to_owned());
            options.confirm_network = true;
        } else if self.bind.is_some() {
            options.bind.clone_from(&self.bind);
        }
        cover(&mut options.confirm_network, self.confirm_network);
        cover(&mut options.tls, self.tls);
        cover(&mut options.tls_client_auth, self.tls_client_auth);
        if self.cert.is_some() || self.key.is_some() {
            options.certificate.clone_from(&self.cert);
            options.key.clone_from(&self.key);
        }
        cover(&mut options.insecure_no_tls, self.insecure_no_tls);
        add(&mut options.allow_hosts, &self.allow_host);
        add(&mut options.allow_origins, &self.allow_origin);
        if self.cluster.is_some() {
            options.cluster.clone_from(&self.cluster);
        }
        add(&mut options.cluster_peers, &self.cluster_peer);
        cover(&mut options.observers_see_bindings, self.observers_see_bindings);
        cover(&mut options.persistent, self.persistent);
        if let Some(seconds) = self.idle_timeout {
            options.idle_timeout_s = seconds;
        }
        cover(&mut options.no_load, self.no_load);
        cover(&mut options.no_subprocess, self.no_subprocess);
        cover(&mut options.no_ffi, self.no_ffi);
        cover(&mut options.no_http, self.no_http);
        cover(&mut options.read_only_fs, self.read_only_fs);
        cover(&mut options.mcp_http, self.mcp_http);
        if let Some(megabytes) = self.eval_max_heap_mb {
            options.eval_max_heap_mb = megabytes;
        }
        if let Some(megabytes) = self.node_max_memory_mb {
            options.node_max_memory_mb = Some(megabytes);
        }
        if let Some(processes) = self.max_processes {
            options.max_processes = processes;
        }
        if let Some(seconds) = self.eval_timeout {
            options.eval_timeout_s = seconds;
        }
        cover(&mut options.audit_text, self.audit_text);
        cover(&mut options.audit_required, self.audit_required);
        if let Some(level) = &self.log_level {
            options.log_level.clone_from(level);
        }
        options.compiler_memory_mb =
            from_environment("BEAMTALK_COMPILER_MEM_MB", options.compiler_memory_mb)?;
        options.compiler_timeout_s =
            from_environment("BEAMTALK_COMPILER_TIMEOUT", options.compiler_timeout_s)?;
        check(&options)?;
        Ok(options)
    }
}

/// The name as it was given, if it is one.
fn node_name(text: &str) -> Result<String, BadNodeName> {
    Ok(text.parse::<NodeName>()?.to_string())
}

fn add(names: &mut Vec<String>, more: &[String]) {
    for name in more {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
}

/// Settings that make no sense together, whether they come from flags or from the file.
fn check(options: &StartOptions) -> Result<(), Fault> {
    let refusal = if options.certificate.is_some() && options.key.is_none() {
        "--cert needs --key: a certificate serves only with its key"
    } else if options.key.is_some() && options.certificate.is_none() {
        "--key needs --cert: a key serves only with its certificate"
    } else if options.tls_client_auth && !options.tls {
        "--tls-client-auth needs --tls: certificates of clients are part of TLS"
    } else {
        return Ok(());
    };
    Err(Fault::usage("refused_flags", refusal))
}

fn from_environment(name: &str, default: u64) -> Result<u64, Fault> {
    match std::env::var(name) {
        Err(_) => Ok(default),
        Ok(text) => text.parse().map_err(|_| {
            Fault::usage(
                "bad_variable",
                format!("{name} must be a whole number, not '{text}'"),
            )
        }),
    }
}
