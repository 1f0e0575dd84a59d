//! `workspace attach`: a terminal session in a workspace that runs, on this machine or another.

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

use beamtalk_client::{Connection, Endpoint, Greeting, Place, TlsTrust};
use beamtalk_repl::{About, Arrival, Dial, Dialed, History, Source};
use beamtalk_storage::{StorageError, WorkspaceId, read_secret_file};

use crate::commands::repl::opening;
use crate::exit::{Exit, Fault, ended};
use crate::terminal::Terminal;
use crate::workspace_link::{find_place, open_state};
use beamtalk_client::remotes::{Address, Remote, Remotes};

/// The longest secret that is sent; a longer file is none.
const LONGEST_SECRET: u64 = 4096;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// A workspace of this machine, a name saved with `workspace remote add`, HOST[:PORT], or ws://HOST:PORT without
    /// TLS; the workspace of the current directory if not given.
    target: Option<String>,
    /// A workspace of this machine by its port.
    #[arg(long, value_name = "N", requires = "cookie_file", conflicts_with = "target")]
    port: Option<u16>,
    /// The cookie of that workspace.
    #[arg(long, value_name = "FILE", requires = "port")]
    cookie_file: Option<PathBuf>,
    /// An access token for a workspace of another machine; `-` reads standard input.
    #[arg(long, value_name = "FILE", requires = "target")]
    token_file: Option<PathBuf>,
    #[command(flatten)]
    tls: TlsFlags,
}

// Whom to trust, and who this client is: a comment of its own would become that of the commands.
#[derive(Clone, clap::Args)]
pub(super) struct TlsFlags {
    /// Trust this certificate authority besides those of the system.
    #[arg(long, value_name = "FILE")]
    pub(super) ca: Option<PathBuf>,
    /// The certificate of this client.
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(super) cert: Option<PathBuf>,
    /// The key of that certificate.
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(super) key: Option<PathBuf>,
}

impl TlsFlags {
    /// Whoever names certificates wants TLS.
    pub(super) fn has_certificates(&self) -> bool {
        self.ca.is_some() || self.cert.is_some()
    }
}

pub(super) fn run(terminal: &mut Terminal, arguments: Arguments) -> anyhow::Result<Exit> {
    if let (Some(port), Some(file)) = (arguments.port, arguments.cookie_file.clone()) {
        let endpoint = Endpoint {
            host: "127.0.0.1".to_owned(),
            port,
            tls: arguments.tls.ca.clone().map(|ca| TlsTrust {
                ca: Some(ca),
                certificate: None,
            }),
        };
        let dial = FarDial {
            endpoint,
            field: "cookie",
            secret: SecretSource::File(file),
        };
        return session(terminal, dial, &format!("port {port}"));
    }
    let target = arguments.target.clone();
    match find(terminal, &arguments)? {
        Target::Here => here(terminal, target.as_deref()),
        Target::Elsewhere(remote) => {
            let address: Address = remote.url.parse()?;
            if !address.is_tls && !address.is_on_this_machine() {
                let warning = "ws:// is not encrypted; whoever can read the network sees the token";
                terminal.error(format_args!("warning: {warning}"));
            }
            let trust = TlsTrust {
                ca: remote.ca,
                certificate: remote.cert.zip(remote.key),
            };
            let name = target.unwrap_or_else(|| remote.url.clone());
            let port = address.port;
            let dial = FarDial {
                endpoint: Endpoint {
                    host: address.host,
                    port,
                    tls: address.is_tls.then_some(trust),
                },
                field: "token",
                secret: SecretSource::new(remote.token_file)?,
            };
            session(terminal, dial, &name)
        }
    }
}

/// What the command means.
enum Target {
    /// A workspace of this machine.
    Here,
    Elsewhere(Remote),
}

/// A workspace of this machine comes before a saved name, and that before the name of a host. A token opens none of
/// this machine, so whoever gives one means another.
fn find(terminal: &mut Terminal, arguments: &Arguments) -> anyhow::Result<Target> {
    let Some(target) = arguments.target.as_deref() else {
        return Ok(Target::Here);
    };
    if let Ok(id) = WorkspaceId::named(target) {
        let state = open_state(terminal)?;
        let saved = Remotes::open(&state)?.find(target)?;
        let is_here = state.workspace(&id).map_err(Fault::from)?.is_some();
        match saved {
            Some(saved) if is_here && arguments.token_file.is_none() => {
                terminal.error(format_args!(
                    "warning: '{target}' is a workspace of this machine and a saved name; {} opens the other one",
                    saved.url
                ));
                return Ok(Target::Here);
            }
            Some(saved) => {
                let given = |flag: &Option<PathBuf>, saved| flag.clone().or(saved);
                return Ok(Target::Elsewhere(Remote {
                    url: saved.url,
                    token_file: arguments.token_file.clone().unwrap_or(saved.token_file),
                    ca: given(&arguments.tls.ca, saved.ca),
                    cert: given(&arguments.tls.cert, saved.cert),
                    key: given(&arguments.tls.key, saved.key),
                }));
            }
            None if is_here && arguments.token_file.is_none() => return Ok(Target::Here),
            None if arguments.token_file.is_none() => {
                let message = format!("'{target}' is neither a workspace of this machine nor a saved name");
                return Err(Fault::not_running(message)
                    .with_hint(format!(
                        "for a host: beamtalk workspace attach {target}:PORT --token-file FILE, or save it with: \
                         beamtalk workspace remote add {target} {target}:PORT --token-file FILE"
                    ))
                    .into());
            }
            None => {}
        }
    }
    let address = Address::read(target, arguments.tls.has_certificates())?;
    let Some(token_file) = arguments.token_file.clone() else {
        let message = "a workspace of another machine needs --token-file";
        return Err(Fault::usage("no_token", message)
            .with_hint(
                "there: beamtalk workspace token create NAME; keep what it prints in a file of mode 0600",
            )
            .into());
    };
    Ok(Target::Elsewhere(Remote {
        url: address.to_string(),
        token_file,
        ca: arguments.tls.ca.clone(),
        cert: arguments.tls.cert.clone(),
        key: arguments.tls.key.clone(),
    }))
}

fn here(terminal: &mut Terminal, name: Option<&str>) -> anyhow::Result<Exit> {
    let place = find_place(terminal, name)?;
    if place.running()?.is_none() {
        return Err(place.is_not_running().into());
    }
    let kept = place.require_directory()?;
    let about = About {
        workspace: place.id.to_string(),
        discovered_from: (!place.is_named).then(|| place.root.display().to_string()),
        ..About::default()
    };
    let dial = Box::new(NearDial(place));
    at_terminal(terminal, dial, &about, Some(kept.directory().clone()))
}

fn session(terminal: &mut Terminal, dial: FarDial, workspace: &str) -> anyhow::Result<Exit> {
    let about = About {
        workspace: workspace.to_owned(),
        ..About::default()
    };
    at_terminal(terminal, Box::new(dial), &about, None)
}

fn at_terminal(
    terminal: &Terminal,
    dial: Box<dyn Dial>,
    about: &About,
    history: Option<beamtalk_storage::Directory>,
) -> anyhow::Result<Exit> {
    let opening = opening(terminal, dial, Arrival::Attached)?;
    if terminal.is_json() || !std::io::stdin().is_terminal() {
        return opening.evaluate(Source::Stream).map_err(ended);
    }
    let history = History::open(history).map_err(Fault::from)?;
    opening.interact(about, history).map_err(ended)
}

/// Reaches a workspace of this user, where its records say it is.
struct NearDial(Place);

impl Dial for NearDial {
    fn dial<'a>(&'a self, resume: Option<&'a str>) -> Dialed<'a> {
        Box::pin(self.0.dial(greeting(resume)))
    }
}

/// Reaches a workspace that has no record here.
struct FarDial {
    endpoint: Endpoint,
    /// What the secret is: `cookie` or `token`.
    field: &'static str,
    secret: SecretSource,
}

impl Dial for FarDial {
    fn dial<'a>(&'a self, resume: Option<&'a str>) -> Dialed<'a> {
        Box::pin(async move {
            let secret = self.secret.read()?;
            let greeting = greeting(resume);
            Ok(Connection::open(&self.endpoint, self.field, secret.trim(), greeting).await?)
        })
    }
}

fn greeting(resume: Option<&str>) -> Greeting<'_> {
    Greeting {
        client: "attach",
        resume,
    }
}

/// Where a secret comes from. A file is read at each connection, so that a new one in it is used.
enum SecretSource {
    File(PathBuf),
    /// Came over standard input, which can be read once.
    Given(String),
}

impl SecretSource {
    fn new(file: PathBuf) -> anyhow::Result<Self> {
        if file != Path::new("-") {
            return Ok(Self::File(file));
        }
        Ok(Self::Given(read_standard_input()?))
    }

    fn read(&self) -> Result<String, Fault> {
        match self {
            Self::Given(text) => Ok(text.clone()),
            Self::File(file) => read_secret(file),
        }
    }
}

/// A secret that was piped in.
pub(super) fn read_standard_input() -> anyhow::Result<String> {
    let mut text = String::new();
    std::io::stdin().take(LONGEST_SECRET).read_to_string(&mut text)?;
    Ok(text)
}

/// A file with a secret must be the user's alone.
pub(super) fn read_secret(path: &Path) -> Result<String, Fault> {
    let bytes = read_secret_file(path).map_err(|error| Fault {
        exit: Exit::Environment,
        kind: "storage",
        hint: matches!(error, StorageError::Secret { .. }).then(|| format!("chmod 600 {}", path.display())),
        message: format!("{:#}", anyhow::Error::from(error)),
    })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::read_secret;

    #[test]
    fn a_token_file_that_others_can_read_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("token");
        fs::write(&file, "btk_x\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(read_secret(&file).unwrap_err().exit.code(), 5);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(read_secret(&file).unwrap(), "btk_x\n");
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(read_secret(&link).is_err());
        assert!(read_secret(directory.path()).is_err());
    }
}
