//! `workspace attach`: a terminal session in a workspace that runs, on this machine or another.

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

use beamtalk_client::{Connection, Endpoint, Greeting, TlsTrust};
use beamtalk_storage::{SessionName, StorageError, read_secret_file};

use crate::commands::repl::{palette, screen};
use crate::exit::{Exit, Fault};
use crate::repl::batch::{self, Source};
use crate::repl::greeting::{About, Arrival};
use crate::repl::history::History;
use crate::repl::interactive;
use crate::repl::link::{Dial, Dialed, Link};
use crate::terminal::Terminal;
use crate::workspace_link::{Place, connect, connection_fault, not_running, refused};

/// The longest secret that is sent; a longer file is none.
const LONGEST_SECRET: u64 = 4096;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// A workspace, or ws://HOST:PORT or wss://HOST:PORT; that of the current directory if not given.
    target: Option<String>,
    /// A workspace of this machine by its port.
    #[arg(long, value_name = "N", requires = "cookie_file", conflicts_with = "target")]
    port: Option<u16>,
    /// The cookie of that workspace.
    #[arg(long, value_name = "FILE", requires = "port")]
    cookie_file: Option<PathBuf>,
    /// An access token for the workspace at the URL; `-` reads standard input.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Trust this certificate authority besides those of the system.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// The certificate of this client.
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// The key of that certificate.
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
}

pub(super) fn run(terminal: &mut Terminal, arguments: Arguments) -> anyhow::Result<Exit> {
    if let (Some(port), Some(file)) = (arguments.port, arguments.cookie_file) {
        let endpoint = Endpoint {
            host: "127.0.0.1".to_owned(),
            port,
            tls: arguments.ca.map(|ca| TlsTrust {
                ca: Some(ca),
                certificate: None,
            }),
        };
        let dial = FarDial {
            endpoint,
            field: "cookie",
            secret: SecretSource::File(file),
        };
        return session(terminal, dial, &format!("port {port}"), port);
    }
    if let Some(url) = arguments
        .target
        .as_deref()
        .filter(|target| target.contains("://"))
    {
        let (is_tls, host, port) = parse_url(url)?;
        let Some(file) = arguments.token_file else {
            let message = "a workspace behind a URL needs --token-file";
            return Err(Fault::usage("no_token", message)
                .with_hint(
                    "there: beamtalk workspace token create NAME; keep what it prints in a file of mode 0600",
                )
                .into());
        };
        if !is_tls && !matches!(host.as_str(), "127.0.0.1" | "localhost" | "::1") {
            terminal.error("warning: ws:// is not encrypted; whoever can read the network sees the token");
        }
        let trust = TlsTrust {
            ca: arguments.ca,
            certificate: arguments.cert.zip(arguments.key),
        };
        let dial = FarDial {
            endpoint: Endpoint {
                host,
                port,
                tls: is_tls.then_some(trust),
            },
            field: "token",
            secret: SecretSource::new(file)?,
        };
        return session(terminal, dial, url, port);
    }
    let place = Place::find(terminal, arguments.target.as_deref())?;
    let info = place
        .running()?
        .ok_or_else(|| not_running(format!("workspace '{}' is not running", place.id)))?;
    let name = SessionName::parse(&info.session).map_err(refused)?;
    let run = place.state.create_run_directory(&name).map_err(refused)?;
    let about = About {
        workspace: place.id.to_string(),
        discovered_from: (!place.is_named).then(|| place.root.display().to_string()),
        port: info.port,
        ..About::default()
    };
    let link = Link::open(Box::new(NearDial(place)))?;
    at_terminal(terminal, link, &about, Some(run.directory().clone()))
}

fn session(terminal: &mut Terminal, dial: FarDial, workspace: &str, port: u16) -> anyhow::Result<Exit> {
    let about = About {
        workspace: workspace.to_owned(),
        port,
        ..About::default()
    };
    let link = Link::open(Box::new(dial))?;
    at_terminal(terminal, link, &about, None)
}

fn at_terminal(
    terminal: &mut Terminal,
    link: Link,
    about: &About,
    history: Option<beamtalk_storage::Directory>,
) -> anyhow::Result<Exit> {
    if terminal.is_json() || !std::io::stdin().is_terminal() {
        return batch::run(link, screen(terminal), Source::Stream, None, Arrival::Attached);
    }
    let history = History::open(history).map_err(refused)?;
    interactive::run(
        terminal,
        palette(terminal),
        link,
        about,
        Arrival::Attached,
        history,
    )
}

/// Reaches a workspace of this user, where its records say it is.
struct NearDial(Place);

impl Dial for NearDial {
    fn dial<'a>(&'a self, resume: Option<&'a str>) -> Dialed<'a> {
        Box::pin(async move {
            let Self(place) = self;
            let info = place
                .running()?
                .ok_or_else(|| not_running(format!("workspace '{}' is not running", place.id)))?;
            connect(place, &info, greeting(resume)).await
        })
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
            Connection::open(&self.endpoint, self.field, secret.trim(), greeting(resume))
                .await
                .map_err(|error| connection_fault(&error).into())
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
        let mut text = String::new();
        std::io::stdin().take(LONGEST_SECRET).read_to_string(&mut text)?;
        Ok(Self::Given(text))
    }

    fn read(&self) -> anyhow::Result<String> {
        match self {
            Self::Given(text) => Ok(text.clone()),
            Self::File(file) => Ok(read_secret(file)?),
        }
    }
}

/// A file with a secret must be the user's alone.
fn read_secret(path: &Path) -> Result<String, Fault> {
    let bytes = read_secret_file(path).map_err(|error| Fault {
        exit: Exit::Environment,
        kind: "storage",
        hint: matches!(error, StorageError::Secret { .. }).then(|| format!("chmod 600 {}", path.display())),
        message: format!("{:#}", anyhow::Error::from(error)),
    })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether TLS is wanted, host and port.
fn parse_url(url: &str) -> Result<(bool, String, u16), Fault> {
    let wrong = || {
        Fault::usage("bad_url", format!("'{url}' is no address of a workspace"))
            .with_hint("write wss://HOST:PORT, or ws://HOST:PORT without TLS")
    };
    let (is_tls, rest) = match url.split_once("://") {
        Some(("wss", rest)) => (true, rest),
        Some(("ws", rest)) => (false, rest),
        _ => return Err(wrong()),
    };
    // Nothing else belongs in it, a secret least of all.
    let authority = rest.strip_suffix("/ws").unwrap_or(rest).trim_end_matches('/');
    let (host, port) = authority.rsplit_once(':').ok_or_else(wrong)?;
    let host = match host.strip_prefix('[') {
        Some(address) => address.strip_suffix(']').ok_or_else(wrong)?,
        None => host,
    };
    if host.is_empty() || host.contains(['/', '@', '?', '#', '[', ']']) {
        return Err(wrong());
    }
    Ok((is_tls, host.to_owned(), port.parse().map_err(|_| wrong())?))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::{parse_url, read_secret};

    #[test]
    fn addresses_have_a_scheme_a_host_and_a_port() {
        let parsed = |url| parse_url(url).ok();
        assert_eq!(
            parsed("wss://example.org:4000"),
            Some((true, "example.org".to_owned(), 4000))
        );
        assert_eq!(
            parsed("ws://127.0.0.1:1/ws"),
            Some((false, "127.0.0.1".to_owned(), 1))
        );
        assert_eq!(parsed("wss://[::1]:2/"), Some((true, "::1".to_owned(), 2)));
        for wrong in [
            "http://example.org:1",
            "wss://example.org",
            "wss://token@example.org:1",
            "wss://:1",
            "wss://example.org:99999",
            "wss://example.org:1/?token=x",
        ] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }

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
