//! The daemon's own commands, and the internal ones tmux runs.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use beamtalk_agents::client::{Kept, status_value, terminate};
use beamtalk_agents::{
    AuthMode, DaemonOptions, Instance, Keeper, Kernel, LinkTarget, NAME, Places, connect,
    drive as run_driver, end_servers, probe_instance, run_session as become_session, start_logging,
};
use beamtalk_project::manifest::FILE_NAME as PROJECT_FILE;
use beamtalk_storage::{StateDirectory, WorkspaceId, find_project_root};

use super::attach::tmux_command;
use super::context::{Client, Ending, Failure, emit, say};
use super::{Auth, ServeArguments};
use crate::exit::Exit;

const START_LIMIT: Duration = Duration::from_secs(5);

/// The workspace whose image is served. One that is named must be there: running it is another's task, but a wrong name
/// would never be served.
fn workspace(options: &ServeArguments) -> Result<Option<LinkTarget>, Failure> {
    if options.no_workspace {
        return Ok(None);
    }
    let refused = |cause: beamtalk_storage::StorageError| Failure::plain(cause.to_string());
    let state = StateDirectory::open(None).map_err(refused)?;
    let of_root = |root: &Path| {
        let root = find_project_root(root, state.path())?;
        WorkspaceId::for_root(&root)
    };
    let Some(name) = &options.workspace else {
        let here = std::env::current_dir()?;
        // Where no project can be, there is nothing to serve.
        let id = of_root(&here).ok();
        return Ok(id.map(|id| LinkTarget { state, id }));
    };
    let path = Path::new(name);
    let id = if path.components().count() > 1 || name.starts_with('.') || path.is_absolute() {
        let root = std::fs::canonicalize(path).map_err(|_| no_workspace(name))?;
        let id = of_root(&root).map_err(refused)?;
        if root.join(PROJECT_FILE).is_file() {
            return Ok(Some(LinkTarget { state, id }));
        }
        id
    } else {
        WorkspaceId::named(name).map_err(|_| no_workspace(name))?
    };
    let found = state.workspace(&id).map_err(refused)?;
    let is_there = match found {
        Some(directory) => directory.metadata().map_err(refused)?.is_some(),
        None => false,
    };
    if is_there {
        Ok(Some(LinkTarget { state, id }))
    } else {
        Err(no_workspace(name))
    }
}

fn no_workspace(name: &str) -> Failure {
    Failure::plain(format!(
        "there is no workspace '{name}': name one that `beamtalk workspace list` shows, or the directory of a project"
    ))
}

pub(super) fn serve(client: &Client, options: &ServeArguments) -> Result<Exit, Failure> {
    let workspace = workspace(options)?;
    let namespace = client.namespace();
    if options.background {
        // Not a group leader: `start` has just made this process.
        rustix::process::setsid().ok();
        std::env::set_current_dir("/")?;
        start_logging(Some(&Places::of(&namespace).state.join("daemon.log")))?;
    } else {
        start_logging(None)?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let auth = options.auth.map(|auth| match auth {
        Auth::Peer => AuthMode::Peer,
        Auth::Secret => AuthMode::Secret,
    });
    let ready: fn() = if options.background { leave_terminal } else { || {} };
    let daemon = DaemonOptions {
        namespace,
        auth,
        no_resume: options.no_resume,
        workspace,
        rules: crate::commands::mcp::door_rules,
        warn: |line| {
            // Nobody may be listening.
            writeln!(std::io::stderr(), "{line}").ok();
        },
        ready,
    };
    let served = runtime.block_on(beamtalk_agents::serve(daemon));
    // Whatever still reads or writes a file is not waited for.
    runtime.shutdown_background();
    served?;
    Ok(Exit::Success)
}

/// From here on nobody reads our standard error.
pub(super) fn leave_terminal() {
    if let Ok(null) = std::fs::File::open("/dev/null") {
        rustix::stdio::dup2_stderr(&null).ok();
    }
}

pub(super) fn start(client: &Client, options: &ServeArguments) -> Result<Exit, Failure> {
    launch(client, options)?;
    if client.json {
        return client.done();
    }
    say(&format!("{NAME} started successfully"))?;
    Ok(Exit::Success)
}

/// Start the daemon in the background and wait until it answers.
#[expect(clippy::disallowed_methods, reason = "the daemon outlives this process")]
fn launch(client: &Client, options: &ServeArguments) -> Result<(), Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["agents", "serve", "--background"]);
    if let Some(namespace) = client.namespace_option() {
        command.arg("--namespace").arg(namespace);
    }
    if let Some(workspace) = &options.workspace {
        command.args(["--workspace", workspace]);
    }
    if options.no_workspace {
        command.arg("--no-workspace");
    }
    if options.no_resume {
        command.arg("--no-resume");
    }
    match options.auth {
        Some(Auth::Peer) => command.args(["--auth", "peer"]),
        Some(Auth::Secret) => command.args(["--auth", "secret"]),
        None => &mut command,
    };
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let stderr = child.stderr.take();
    // Ends when the daemon is ready and lets go of its standard error, or when it dies.
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        if let Some(mut stderr) = stderr {
            // Text that cannot be read is not shown.
            stderr.read_to_string(&mut text).ok();
        }
        text
    });
    let limit = Instant::now() + START_LIMIT;
    while !reader.is_finished() && Instant::now() < limit {
        std::thread::sleep(Duration::from_millis(5));
    }
    if !reader.is_finished() {
        return Err(Failure::plain(format!(
            "{NAME} did not answer within {} s",
            START_LIMIT.as_secs()
        )));
    }
    let said = reader.join().unwrap_or_default();
    // Another one may have been started at the same time: only ours is what was asked for.
    let own = Instance::Running {
        pid: child.id().to_string(),
    };
    if probe_instance(&client.namespace()) == own
        && let Ok((stream, _)) = connect(&[client.namespace()], "agent")
    {
        let dialect = beamtalk_ninep::Dialect::Plan9;
        let msize = beamtalk_ninep::MSIZE;
        beamtalk_ninep::Client::with_patience(stream, dialect, msize, false, Some(START_LIMIT))?;
        std::io::stderr().write_all(said.as_bytes())?;
        return Ok(());
    }
    let status = child.wait()?;
    let (text, ending) = match status.code() {
        Some(7) => (said, Ending::AlreadyRunning),
        _ => (said, Ending::Failed),
    };
    let mut lines: Vec<&str> = text.lines().collect();
    let last = lines.pop().unwrap_or_default();
    for line in lines {
        writeln!(std::io::stderr(), "{line}")?;
    }
    Err(Failure::new(
        ending,
        last.strip_prefix("beamtalk agents: ").unwrap_or(last),
    ))
}

/// Start the daemon unless it runs or must not be started. A session sees only the socket of its
/// daemon, and one started in its sandbox would be of no use.
pub(super) fn ensure_started(client: &Client, no_start: bool) -> Result<(), Failure> {
    let in_session = std::env::var_os("AGENT_ID").is_some_and(|id| !id.is_empty());
    let running = matches!(
        probe_instance(&client.living_namespace()),
        Instance::Running { .. }
    );
    if running || no_start || in_session {
        return Ok(());
    }
    let options = ServeArguments {
        workspace: None,
        no_workspace: false,
        no_resume: false,
        auth: None,
        background: false,
    };
    match launch(client, &options) {
        Err(failure) if failure.code() == Ending::AlreadyRunning as u8 => Ok(()),
        outcome => outcome,
    }
}

pub(super) fn status(client: &Client) -> Result<Exit, Failure> {
    if client.json {
        let (value, instance) = status_value(client);
        client.print(&value)?;
        return Ok(if matches!(instance, Instance::Running { .. }) {
            Exit::Success
        } else {
            Exit::Failure
        });
    }
    match probe_instance(&client.living_namespace()) {
        Instance::Running { pid } => {
            say(&format!("{NAME} is running (PID {pid})"))?;
            let kept = Kept::of(&Places::of(&client.living_namespace()));
            if kept.worktrees > 0 {
                let megabytes = kept.bytes as f64 / 1e6;
                say(&format!("worktrees: {}, {megabytes:.1} MB", kept.worktrees))?;
            }
            for (id, reason) in kept.not_resumed {
                say(&format!("not resumed: {id}: {reason}"))?;
            }
            Ok(Exit::Success)
        }
        instance => {
            say(not_running(&instance))?;
            Ok(Exit::Failure)
        }
    }
}

pub(super) fn stop(client: &Client, kill_sessions: bool) -> Result<Exit, Failure> {
    let namespace = client.living_namespace();
    let instance = probe_instance(&namespace);
    let Instance::Running { pid } = &instance else {
        instance.clean_up(&namespace);
        let line = not_running(&instance);
        if client.json {
            return Err(Failure::plain(line));
        }
        say(line)?;
        return Ok(Exit::Failure);
    };
    if kill_sessions {
        let tree = client.tree()?;
        for line in tree.read_text("list")?.lines() {
            let id = line.split('\t').next().unwrap_or_default();
            match tree.write(&format!("{id}/ctl"), b"kill").map_err(Failure::from) {
                // Gone meanwhile is what was asked for.
                Err(failure) if failure.ending() != Ending::NoSession => return Err(failure),
                _ => {}
            }
        }
    }
    terminate(&namespace, &instance, || {
        if !client.json {
            say(&format!("Stopping {NAME} (PID {pid})"))?;
        }
        Ok(())
    })?;
    if kill_sessions {
        // Without sessions the private tmux server has nothing left to hold.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()?;
        runtime.block_on(end_servers(&Places::of(&namespace)));
    }
    client.done()
}

pub(super) fn assist(client: &Client, no_start: bool) -> Result<Exit, Failure> {
    beamtalk_agents::assist(client, client, no_start)?;
    Ok(Exit::Success)
}

impl Keeper for Client {
    fn start(&self) -> Result<(), Failure> {
        ensure_started(self, false)
    }

    /// Without a word, if it runs.
    fn stop(&self) -> Result<(), Failure> {
        let namespace = self.living_namespace();
        let instance = probe_instance(&namespace);
        terminate(&namespace, &instance, || Ok(()))
    }

    fn attach(&self, session: &str) -> Result<ExitStatus, Failure> {
        Ok(tmux_command(self, session, false)?.status()?)
    }
}

fn not_running(instance: &Instance) -> &'static str {
    match instance {
        Instance::Stale => "anvilsrv is not running (stale PID file)",
        _ => "anvilsrv is not running",
    }
}

pub(super) fn run_session(client: &Client, id: &str) -> Result<Exit, Failure> {
    match become_session(&Places::of(&client.namespace()), id) {
        Ok(status) => Ok(Exit::Code(status)),
        Err(error) => Err(Failure::plain(error.to_string())),
    }
}

pub(super) fn tap(client: &Client, id: &str) -> Result<Exit, Failure> {
    beamtalk_agents::tap(&Places::of(&client.namespace()), id)?;
    Ok(Exit::Success)
}

pub(super) fn tick(client: &Client, id: &str) -> Result<Exit, Failure> {
    beamtalk_agents::tick(&Places::of(&client.namespace()), id)?;
    Ok(Exit::Success)
}

pub(super) fn drive(backend: &str) -> Result<Exit, Failure> {
    Ok(match run_driver(backend)? {
        0 => Exit::Success,
        status => Exit::Code(status),
    })
}

pub(super) fn probe() -> Result<Exit, Failure> {
    emit(Kernel::try_namespaces().as_bytes())?;
    Ok(Exit::Success)
}
