//! `beamtalk agents`: sessions in tmux, everything through the file tree.

mod approvals;
mod attach;
mod context;
mod daemon;
mod hook;
mod mail;
mod mount;
mod service;
mod sessions;
mod tokens;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use crate::exit::{Exit, usage_line};
use context::{Client, Failure, say};

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

impl Arguments {
    /// Whether the command enters namespaces, which a process with several threads cannot.
    pub(crate) fn is_launcher(&self) -> bool {
        matches!(self.command, Command::Run { .. } | Command::Probe)
    }
}

#[derive(Args, Clone)]
struct Common {
    /// The name space directory of the daemon.
    #[arg(long, value_name = "DIR", global = true)]
    namespace: Option<PathBuf>,
    /// Print results and errors as JSON.
    #[arg(long, global = true)]
    json: bool,
    /// A file with a capability token.
    #[arg(long, value_name = "FILE", global = true)]
    token_file: Option<PathBuf>,
    /// How long to wait, in seconds.
    #[arg(long, value_name = "SECONDS", global = true, value_parser = seconds)]
    timeout: Option<Duration>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number: Result<f64, _> = text.parse();
    number
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        // Longer than any wait, and short enough to be added to the time of day.
        .map(|duration| duration.min(Duration::from_secs(1 << 32)))
        .ok_or_else(|| "not a number of seconds".to_owned())
}

#[derive(Clone, Copy, ValueEnum)]
enum Auth {
    Peer,
    Secret,
}

#[derive(Args, Clone)]
struct ServeArguments {
    /// The workspace to serve, by id or project path.
    #[arg(long, value_name = "W")]
    workspace: Option<String>,
    /// Serve without a workspace.
    #[arg(long, conflicts_with = "workspace")]
    no_workspace: bool,
    /// How connections prove who they are.
    #[arg(long, value_name = "MODE")]
    auth: Option<Auth>,
    /// Leave sessions that ran before a reboot stopped.
    #[arg(long)]
    no_resume: bool,
    /// Started by `start`: log to a file.
    #[arg(long, hide = true)]
    background: bool,
}

#[derive(Args)]
struct NewArguments {
    backend: String,
    /// The working directory; the home directory without one.
    directory: Option<String>,
    #[arg(long, value_name = "P")]
    sandbox: Option<String>,
    #[arg(long, value_name = "M")]
    model: Option<String>,
    /// low, standard or high.
    #[arg(long, value_name = "L")]
    level: Option<String>,
    #[arg(long, value_name = "A")]
    alias: Option<String>,
    #[arg(long, value_name = "R")]
    role: Option<String>,
    /// Text put before prompts; `@FILE` reads it from a file.
    #[arg(long, value_name = "T")]
    context: Option<String>,
    /// Work in a copy of the repository, on a branch of its own.
    #[arg(long, value_name = "BRANCH", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    worktree: Option<String>,
    /// Where the branch begins; the current branch without it (with --worktree).
    #[arg(long, value_name = "REF", requires = "worktree")]
    base: Option<String>,
    /// Wait until the session is ready.
    #[arg(long)]
    wait: bool,
    /// Do not start the daemon.
    #[arg(long)]
    no_start: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Run the daemon in the foreground.
    #[command(alias = "fgstart")]
    Serve(ServeArguments),
    /// Start the daemon in the background.
    Start(ServeArguments),
    /// Stop the daemon, or a session.
    Stop {
        id: Option<String>,
        /// Kill all sessions first.
        #[arg(long)]
        kill_sessions: bool,
    },
    /// Tell whether the daemon runs.
    Status,
    /// Create a session and print its id.
    New(NewArguments),
    /// Create a session with a role and an alias made from both.
    Spawn {
        backend: String,
        role: String,
        directory: Option<String>,
        #[arg(long)]
        no_start: bool,
    },
    /// List the sessions.
    List,
    /// Show the record of a session.
    Show { id: String },
    /// Send a prompt.
    Prompt {
        id: String,
        /// The text; standard input without it or with `-`.
        #[arg(allow_hyphen_values = true)]
        text: Option<String>,
        /// Wait for the end of the turn and print its output.
        #[arg(long)]
        wait: bool,
        /// Refuse when the session is busy, instead of queueing the prompt.
        #[arg(long)]
        now: bool,
    },
    /// Print the captured output.
    Output {
        id: String,
        #[arg(long)]
        follow: bool,
        /// The bytes as printed.
        #[arg(long)]
        raw: bool,
        #[arg(long, value_name = "BYTES")]
        tail: Option<u64>,
    },
    /// Print the chat log.
    Log {
        id: String,
        #[arg(long)]
        follow: bool,
    },
    /// Print the visible screen.
    Screen { id: String },
    /// Wait for a state and print it.
    Wait {
        id: String,
        #[arg(long = "for", value_name = "STATE,…")]
        states: Option<String>,
    },
    /// Print or set the state.
    State { id: String, state: Option<String> },
    /// Set the alias; `-` clears it.
    Alias {
        id: String,
        #[arg(allow_hyphen_values = true)]
        name: String,
    },
    /// Print or set the context.
    Context {
        id: String,
        /// The text; `@FILE` reads it from a file.
        #[arg(allow_hyphen_values = true)]
        text: Option<String>,
        #[arg(long)]
        clear: bool,
    },
    /// Give a role.
    Role { id: String, name: String },
    /// Print or set the access list, from `@FILE`.
    Acl { id: String, file: Option<String> },
    /// Stop if needed and start again.
    Restart { id: String },
    /// Remove the copies of repositories that ended sessions left without changes, and list the others.
    Prune,
    /// Destroy sessions.
    Kill {
        #[arg(required = true)]
        ids: Vec<String>,
    },
    /// Press C-c.
    Interrupt { id: String },
    /// Write words to the session's ctl file.
    Ctl {
        id: String,
        #[arg(required = true)]
        words: Vec<String>,
    },
    /// Attach the terminal to a session.
    Attach {
        id: String,
        #[arg(long)]
        read_only: bool,
        /// Open another terminal window.
        #[arg(long)]
        window: bool,
    },
    /// Messages between sessions and you.
    #[command(subcommand)]
    Mail(mail::MailCommand),
    /// Print events as JSON lines.
    Events {
        #[arg(long, value_name = "SEQ")]
        since: Option<u64>,
        #[arg(long = "type", value_name = "T,…")]
        types: Option<String>,
        #[arg(long, value_name = "S")]
        source: Option<String>,
        /// Only what is kept, without waiting for more.
        #[arg(long)]
        no_follow: bool,
    },
    /// List the backends.
    Backends,
    /// List the roles.
    Roles,
    /// List the skills.
    Skills,
    /// List the tools.
    Tools,
    /// Adopt living windows not known to the daemon.
    Recover,
    /// Questions that wait for a person: list them, or answer one.
    Approvals {
        #[command(subcommand)]
        command: Option<approvals::ApprovalCommand>,
    },
    /// Capability tokens.
    #[command(subcommand)]
    Token(tokens::TokenCommand),
    /// Print the audit log.
    Audit {
        #[arg(long)]
        follow: bool,
    },
    /// Report an event of an agent, or install its hooks.
    Hook {
        event: Option<String>,
        /// The working directory, or the backend for `install`.
        argument: Option<String>,
    },
    /// Mount the tree as a directory.
    Mount {
        directory: PathBuf,
        /// By the kernel's own 9P client, which needs root.
        #[arg(long)]
        kernel: bool,
        /// Stay in the foreground.
        #[arg(long)]
        foreground: bool,
    },
    /// Unmount the tree.
    Umount { directory: PathBuf },
    /// Serve the sessions to a browser on this machine and print the address.
    Web {
        /// The port; any free one by default.
        #[arg(long, value_name = "N", default_value_t = 0)]
        port: u16,
    },
    /// The interactive terminal client.
    Assist {
        #[arg(long)]
        no_start: bool,
    },
    /// Print or install the systemd user unit.
    Unit {
        #[arg(long)]
        install: bool,
    },
    /// Check everything the daemon needs.
    Doctor,
    /// Print shell functions for `eval`.
    Helpers,
    #[command(hide = true)]
    Run { id: String },
    #[command(hide = true)]
    Tap { id: String },
    #[command(hide = true)]
    Tick { id: String },
    #[command(hide = true)]
    Drive { backend: String },
    #[command(hide = true)]
    Probe,
}

/// The executable also answers to `anvilsrv` and `Assist`.
pub(crate) fn by_name(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let arguments: Vec<OsString> = arguments.collect();
    let name = arguments.first().map(PathBuf::from);
    let name = name
        .as_ref()
        .and_then(|path| path.file_name())
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let inserted: &[&str] = match name {
        "anvilsrv" => &["agents"],
        "Assist" => &["agents", "assist"],
        _ => return arguments,
    };
    let mut all = vec![OsString::from("beamtalk")];
    all.extend(inserted.iter().map(OsString::from));
    all.extend(arguments.into_iter().skip(1));
    all
}

/// Wrong usage as JSON, if these are arguments of `agents` that ask for it.
pub(crate) fn usage_as_json(arguments: &[OsString], error: &clap::Error) -> Option<String> {
    let mut words = arguments.iter().skip(1).filter_map(|word| word.to_str());
    let asked = words.next() == Some("agents")
        && words
            .take_while(|word| *word != "--")
            .any(|word| word == "--json");
    let line = usage_line(error);
    asked.then(|| serde_json::json!({"error": {"code": Exit::Usage.code(), "message": line}}).to_string())
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<Exit> {
    let json = arguments.common.json;
    match dispatch(arguments) {
        Ok(exit) => Ok(exit),
        Err(failure) if failure.is_broken_pipe() => Ok(Exit::Success),
        Err(failure) => {
            if json {
                let error =
                    serde_json::json!({"error": {"code": failure.code(), "message": failure.message()}});
                writeln!(std::io::stdout(), "{error}")?;
            } else if !failure.message().is_empty() {
                writeln!(std::io::stderr(), "beamtalk agents: {}", failure.message())?;
            }
            Ok(Exit::Code(failure.code()))
        }
    }
}

fn dispatch(arguments: Arguments) -> Result<Exit, Failure> {
    let client = Client::new(&arguments.common);
    match arguments.command {
        Command::Serve(options) => daemon::serve(&client, &options),
        Command::Start(options) => daemon::start(&client, &options),
        Command::Stop {
            id: None,
            kill_sessions,
        } => daemon::stop(&client, kill_sessions),
        Command::Stop { id: Some(id), .. } => sessions::ctl(&client, &id, "stop"),
        Command::Status => daemon::status(&client),
        Command::New(options) => sessions::new(&client, options),
        Command::Spawn {
            backend,
            role,
            directory,
            no_start,
        } => sessions::spawn(&client, &backend, &role, directory, no_start),
        Command::List => sessions::list(&client),
        Command::Show { id } => sessions::show(&client, &id),
        Command::Prompt { id, text, wait, now } => sessions::prompt(&client, &id, text, wait, now),
        Command::Output {
            id,
            follow,
            raw,
            tail,
        } => sessions::output(&client, &id, follow, raw, tail),
        Command::Log { id, follow } => sessions::log(&client, &id, follow),
        Command::Screen { id } => sessions::print_file(&client, &id, "screen"),
        Command::Wait { id, states } => sessions::wait(&client, &id, states),
        Command::State { id, state } => sessions::state(&client, &id, state),
        Command::Alias { id, name } => sessions::write_file(&client, &id, "alias", &name),
        Command::Context { id, text, clear } => sessions::context(&client, &id, text, clear),
        Command::Role { id, name } => sessions::write_file(&client, &id, "role", &name),
        Command::Acl { id, file } => sessions::acl(&client, &id, file),
        Command::Restart { id } => sessions::ctl(&client, &id, "restart"),
        Command::Prune => sessions::prune(&client),
        Command::Kill { ids } => sessions::kill(&client, &ids),
        Command::Interrupt { id } => sessions::ctl(&client, &id, "interrupt"),
        Command::Ctl { id, words } => sessions::ctl(&client, &id, &sessions::command_line(&words)),
        Command::Attach {
            id,
            read_only,
            window,
        } => attach::attach(&client, &id, read_only, window),
        Command::Mail(command) => mail::run(&client, command),
        Command::Events {
            since,
            types,
            source,
            no_follow,
        } => sessions::events(&client, since, types.as_deref(), source.as_deref(), no_follow),
        Command::Backends => sessions::backends(&client),
        Command::Roles => sessions::shelf(&client, "roles"),
        Command::Skills => sessions::shelf(&client, "skills"),
        Command::Tools => sessions::shelf(&client, "tools"),
        Command::Recover => sessions::recover(&client),
        Command::Approvals { command } => approvals::run(&client, command),
        Command::Token(command) => tokens::run(&client, command),
        Command::Audit { follow } => tokens::audit(&client, follow),
        Command::Hook { event, argument } => hook::run(&client, event, argument),
        Command::Mount {
            directory,
            kernel,
            foreground,
        } => mount::mount(&client, &directory, kernel, foreground),
        Command::Umount { directory } => mount::umount(&client, &directory),
        Command::Web { port } => web(client, port),
        Command::Assist { no_start } => daemon::assist(&client, no_start),
        Command::Unit { install } => service::unit(&client, install),
        Command::Doctor => service::doctor(&client),
        Command::Helpers => service::helpers(&client),
        Command::Run { id } => daemon::run_session(&client, &id),
        Command::Tap { id } => daemon::tap(&client, &id),
        Command::Tick { id } => daemon::tick(&client, &id),
        Command::Drive { backend } => daemon::drive(&backend),
        Command::Probe => daemon::probe(),
    }
}

/// `agents web`: the page, at an address that is told.
fn web(client: Client, port: u16) -> Result<Exit, Failure> {
    let is_json = client.json;
    beamtalk_agents::serve_page(client.into_reach(), port, |url, port| {
        if is_json {
            say(&serde_json::json!({"url": url, "port": port}).to_string())
        } else {
            say(url)
        }
    })?;
    Ok(Exit::Success)
}
