//! Workspaces of other machines: where they are, and the names they are saved under.
//!
//! A name is a file in `remotes/` of the state directory, which only the user can read. It says where the token is and
//! never holds it; a token that came over standard input gets a file of its own beside.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use beamtalk_storage::{Directory, PRIVATE_FILE, StateDirectory, WorkspaceId};
use serde::{Deserialize, Serialize};

use crate::Fault;

const DIRECTORY: &str = "remotes";

/// Where a workspace listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub is_tls: bool,
    pub host: String,
    pub port: u16,
}

impl Address {
    /// An address as it was written. Whoever names certificates wants TLS, on this machine too.
    pub fn read(text: &str, has_certificates: bool) -> Result<Self, Fault> {
        if has_certificates && !text.contains("://") {
            return format!("wss://{text}").parse();
        }
        text.parse()
    }

    /// Nobody can read along on the way there.
    pub fn is_on_this_machine(&self) -> bool {
        is_loopback(&self.host)
    }
}

fn is_loopback(host: &str) -> bool {
    let is_address = |host: &str| {
        host.parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
    };
    host.eq_ignore_ascii_case("localhost") || is_address(host)
}

impl std::fmt::Display for Address {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = if self.is_tls { "wss" } else { "ws" };
        if self.host.contains(':') {
            write!(formatter, "{scheme}://[{}]:{}", self.host, self.port)
        } else {
            write!(formatter, "{scheme}://{}:{}", self.host, self.port)
        }
    }
}

impl FromStr for Address {
    type Err = Fault;

    /// `wss://HOST[:PORT]`, `ws://HOST[:PORT]`, or `HOST[:PORT]`, which is encrypted unless it is this machine.
    fn from_str(text: &str) -> Result<Self, Fault> {
        let wrong = || {
            Fault::usage("bad_url", format!("'{text}' is no address of a workspace")).with_hint(
                "write HOST or HOST:PORT, or ws://HOST:PORT for one without TLS; an IPv6 address in []",
            )
        };
        let (scheme, rest) = match text.split_once("://") {
            Some(("wss", rest)) => (Some(true), rest),
            Some(("ws", rest)) => (Some(false), rest),
            Some(_) => return Err(wrong()),
            None => (None, text),
        };
        // Nothing else belongs in it, a secret least of all.
        let authority = rest.strip_suffix("/ws").unwrap_or(rest).trim_end_matches('/');
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => {
                let (host, rest) = rest.split_once(']').ok_or_else(wrong)?;
                let port = match rest {
                    "" => None,
                    rest => Some(rest.strip_prefix(':').ok_or_else(wrong)?),
                };
                host.parse::<std::net::Ipv6Addr>().map_err(|_| wrong())?;
                (host, port)
            }
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        let is_host = |letter: char| letter.is_alphanumeric() || matches!(letter, '.' | '-' | '_' | ':');
        if host.is_empty() || host.starts_with('-') || !host.chars().all(is_host) {
            return Err(wrong());
        }
        let is_tls = scheme.unwrap_or_else(|| !is_loopback(host));
        let port = match port {
            Some(port) => port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?,
            None if is_tls => 443,
            None => 80,
        };
        Ok(Self {
            is_tls,
            host: host.to_owned(),
            port,
        })
    }
}

/// What is saved under a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remote {
    pub url: String,
    pub token_file: PathBuf,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
}

/// Every saved name of this user.
pub struct Remotes {
    /// `None` when none was ever saved: looking for one makes nothing.
    directory: Option<Directory>,
}

impl Remotes {
    pub fn open(state: &StateDirectory) -> Result<Self, Fault> {
        let found = state.root().open_directory(DIRECTORY)?;
        Ok(Self {
            directory: found.map(|(directory, _)| directory),
        })
    }

    /// The same, to save into.
    pub fn create(state: &StateDirectory) -> Result<Self, Fault> {
        let directory = state.directory(DIRECTORY)?;
        Ok(Self {
            directory: Some(directory),
        })
    }

    fn directory(&self) -> Result<&Directory, Fault> {
        let missing = || Fault::failure("no_remotes", "no workspace is saved");
        self.directory.as_ref().ok_or_else(missing)
    }

    /// Names are those a workspace may have, so that one command takes both.
    pub fn check_name(name: &str) -> Result<(), Fault> {
        WorkspaceId::named(name).map(drop).map_err(|_| {
            Fault::usage(
                "bad_name",
                format!("'{name}' is no name: 1 to 64 letters, digits, '-' or '_'"),
            )
        })
    }

    pub fn find(&self, name: &str) -> Result<Option<Remote>, Fault> {
        let Some(directory) = &self.directory else {
            return Ok(None);
        };
        let file = file_name(name);
        let Some(bytes) = directory.read(&file)? else {
            return Ok(None);
        };
        let path = directory.path_of(&file).display().to_string();
        serde_json::from_slice(&bytes).map(Some).map_err(|cause| {
            Fault::usage("bad_remote", format!("{path} is damaged: {cause}")).with_hint(format!(
                "beamtalk workspace remote remove {name}, then add it again"
            ))
        })
    }

    pub fn save(&self, name: &str, remote: &Remote) -> Result<(), Fault> {
        let mut text = serde_json::to_vec_pretty(remote).expect("paths and texts are plain data");
        text.push(b'\n');
        let directory = self.directory()?;
        let written = directory.write_atomically(&file_name(name), &text, PRIVATE_FILE);
        Ok(written?)
    }

    /// Keep a token that has no file of its own; answers where it is.
    pub fn keep_token(&self, name: &str, token: &str) -> Result<PathBuf, Fault> {
        let file = token_name(name);
        let text = format!("{}\n", token.trim());
        let directory = self.directory()?;
        directory.write_secret(&file, text.as_bytes())?;
        Ok(directory.path_of(&file))
    }

    /// Forget a name, and the token kept for it; files of the user stay. Says if there was one.
    pub fn remove(&self, name: &str) -> Result<bool, Fault> {
        let Some(directory) = &self.directory else {
            return Ok(false);
        };
        directory.remove(&token_name(name))?;
        Ok(directory.remove(&file_name(name))?)
    }

    pub fn names(&self) -> Result<Vec<String>, Fault> {
        let Some(directory) = &self.directory else {
            return Ok(Vec::new());
        };
        let files = directory.names()?;
        let names = files.iter().filter_map(|file| file.strip_suffix(".json"));
        Ok(names.map(str::to_owned).collect())
    }
}

fn file_name(name: &str) -> String {
    format!("{name}.json")
}

fn token_name(name: &str) -> String {
    format!("{name}.token")
}

/// A path that means the same wherever a later command is run.
pub fn absolute(path: &Path) -> Result<PathBuf, Fault> {
    std::path::absolute(path)
        .map_err(|cause| Fault::usage("bad_path", format!("{}: {cause}", path.display())))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn parsed(text: &str) -> Option<String> {
        text.parse::<Address>().ok().map(|address| address.to_string())
    }

    #[test]
    fn addresses_have_a_host_and_are_encrypted_unless_they_say_otherwise() {
        for (text, address) in [
            ("wss://example.org:4000", "wss://example.org:4000"),
            ("wss://example.org", "wss://example.org:443"),
            ("ws://127.0.0.1:1/ws", "ws://127.0.0.1:1"),
            ("wss://[::1]:2/", "wss://[::1]:2"),
            ("my-server", "wss://my-server:443"),
            ("my-server:4000", "wss://my-server:4000"),
            ("localhost:4000", "ws://localhost:4000"),
            ("127.0.0.2:4000", "ws://127.0.0.2:4000"),
            ("[fd00::1]:4000", "wss://[fd00::1]:4000"),
            ("ws://my-server:4000", "ws://my-server:4000"),
        ] {
            assert_eq!(parsed(text).as_deref(), Some(address), "{text}");
        }
        for wrong in [
            "",
            "http://example.org:1",
            "wss://token@example.org:1",
            "wss://:1",
            "wss://example.org:99999",
            "example.org:0",
            "wss://example.org:1/?token=x",
            "fd00::1",
            "[fd00::1",
            "[my-server]:1",
            "my server",
            "my-server:",
            "-oProxy",
        ] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_name_is_a_private_file_without_a_secret() {
        let home = tempfile::tempdir().unwrap();
        let state = StateDirectory::open(Some(home.path().join("h"))).unwrap();
        assert_eq!(Remotes::open(&state).unwrap().find("office").unwrap(), None);
        assert!(!state.path().join("remotes").exists(), "looking makes nothing");
        let remotes = Remotes::create(&state).unwrap();
        let remote = Remote {
            url: "wss://example.org:4000".to_owned(),
            token_file: remotes.keep_token("office", "btk_secret\n").unwrap(),
            ca: Some(PathBuf::from("/a/ca.pem")),
            cert: None,
            key: None,
        };
        remotes.save("office", &remote).unwrap();
        assert_eq!(remotes.find("office").unwrap(), Some(remote));
        assert_eq!(remotes.find("home").unwrap(), None);
        assert_eq!(remotes.names().unwrap(), ["office"]);
        for file in ["office.json", "office.token"] {
            let path = state.path().join("remotes").join(file);
            let mode = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
            let text = std::fs::read_to_string(&path).unwrap();
            assert_eq!(text.contains("btk_secret"), file == "office.token");
        }
        assert!(remotes.remove("office").unwrap());
        assert!(!remotes.remove("office").unwrap());
        assert!(
            std::fs::read_dir(state.path().join("remotes"))
                .unwrap()
                .next()
                .is_none()
        );
        for name in ["", "a/b", "..", "a b", "shell-1"] {
            assert!(Remotes::check_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn certificates_mean_tls() {
        let shown = |text, has| Address::read(text, has).map(|address| address.to_string()).ok();
        assert_eq!(
            shown("127.0.0.2:4000", true).as_deref(),
            Some("wss://127.0.0.2:4000")
        );
        assert_eq!(
            shown("127.0.0.2:4000", false).as_deref(),
            Some("ws://127.0.0.2:4000")
        );
        assert_eq!(
            shown("ws://localhost:4000", true).as_deref(),
            Some("ws://localhost:4000")
        );
    }
}
