//! Distribution, when it is asked for: under which name, on which address, with which files.
//!
//! What is decided here is data; the node starts distribution itself, on a request over the pipe.

pub(crate) mod ports;

use std::net::{IpAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use beamtalk_etf::Term;
use beamtalk_node::DistributionFlags;
use beamtalk_storage::Secret;
use serde_json::{Value, json};

use crate::exposure::Refusal;
use crate::gate::{ExposureRefusal, TlsFiles, is_loopback};
use crate::options::StartOptions;
use crate::terms;

/// The ports distribution listens on, one for each node of this machine.
pub(crate) const PORTS: (u16, u16) = (9100, 9199);

/// `NAME@HOST`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeName {
    name: String,
    host: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no name of a node: NAME@HOST, with letters, digits, '-' and '_' in the name and a host name or an address as host"
)]
pub struct BadNodeName(String);

impl std::str::FromStr for NodeName {
    type Err = BadNodeName;

    fn from_str(text: &str) -> Result<Self, BadNodeName> {
        let bad = || BadNodeName(text.chars().take(128).collect());
        let (name, host) = text.split_once('@').ok_or_else(bad)?;
        let is_word = |text: &str, more: &str| {
            (1..=128).contains(&text.len())
                && text
                    .chars()
                    .all(|letter| letter.is_ascii_alphanumeric() || more.contains(letter))
        };
        if is_word(name, "-_") && is_word(host, "-_.:") {
            Ok(Self {
                name: name.to_owned(),
                host: host.to_owned(),
            })
        } else {
            Err(bad())
        }
    }
}

impl std::fmt::Display for NodeName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}@{}", self.name, self.host)
    }
}

/// `NAME@HOST:PORT`: a node of another machine, and where it listens.
pub fn check_peer(text: &str) -> Result<String, BadNodeName> {
    let bad = || BadNodeName(text.chars().take(128).collect());
    let (name, port) = text.rsplit_once(':').ok_or_else(bad)?;
    let name: NodeName = name.parse().map_err(|_: BadNodeName| bad())?;
    let port: u16 = port.parse().ok().filter(|port| *port > 0).ok_or_else(bad)?;
    Ok(format!("{name}:{port}"))
}

impl NodeName {
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Erlang keeps hosts with and without a dot apart.
    fn domain(&self) -> &'static str {
        if self.host.contains(['.', ':']) {
            "long"
        } else {
            "short"
        }
    }

    /// Where this host is; IPv4 before IPv6.
    fn address(&self) -> Result<IpAddr, Refusal> {
        let failed = |reason: String| Refusal::NoHost {
            host: self.host.clone(),
            reason,
        };
        let found = (self.host.as_str(), 0_u16).to_socket_addrs();
        let mut found: Vec<IpAddr> = found
            .map_err(|cause| failed(cause.to_string()))?
            .map(|address| address.ip())
            .collect();
        found.sort_by_key(IpAddr::is_ipv6);
        let first = found.first().copied();
        first.ok_or_else(|| failed("it has no address".to_owned()))
    }
}

/// What the node needs to become one of several.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) name: NodeName,
    pub(crate) address: IpAddr,
    /// What other nodes are served with, and who must have signed their certificates.
    pub(crate) tls: TlsFiles,
    /// Certificate and key towards other nodes; the certificate names this node's host.
    pub(crate) client: (PathBuf, PathBuf),
    /// Nodes of other machines, as `NAME@HOST:PORT`.
    pub(crate) peers: Vec<String>,
}

/// Decide whether the node is to be distributed, and where. An address given with `--bind` counts for
/// distribution too; without one it is that of the host in the name, and a host that others can reach must be meant.
pub(crate) fn address_of(
    options: &StartOptions,
    bound: IpAddr,
) -> Result<Option<(NodeName, IpAddr)>, Refusal> {
    let Some(text) = &options.cluster else {
        return Ok(None);
    };
    let name: NodeName = text.parse()?;
    let address = if options.bind.is_some() {
        bound
    } else {
        name.address()?
    };
    if options.bind.is_none() && !is_loopback(address) && !options.confirm_network {
        return Err(ExposureRefusal::Unconfirmed(address).into());
    }
    Ok(Some((name, address)))
}

impl Cluster {
    /// The flags the node is booted with; they start nothing.
    pub(crate) fn flags(&self, options_file: PathBuf, ports: PathBuf) -> DistributionFlags {
        DistributionFlags {
            family: if self.address.is_ipv6() { "inet6" } else { "inet" },
            options_file,
            ports,
            first_port: PORTS.0,
            peers: self.peers.clone(),
        }
    }

    /// The options of TLS, as the node reads them from a file.
    pub(crate) fn options_text(&self) -> String {
        let authority = quoted(self.tls.client_ca.as_deref().unwrap_or(Path::new("")));
        let common = |certificate: &Path, key: &Path| {
            format!(
                "{{certfile,{}}},{{keyfile,{}}},{{cacertfile,{authority}}},{{verify,verify_peer}},{{versions,['tlsv1.3']}}",
                quoted(certificate),
                quoted(key),
            )
        };
        let server = common(&self.tls.certificate, &self.tls.key);
        let client = common(&self.client.0, &self.client.1);
        format!(
            "[{{server,[{server},{{fail_if_no_peer_cert,true}}]}},\n \
             {{client,[{client},{{customize_hostname_check,[{{match_fun,fun beamtalk_cluster:is_host/2}}]}}]}}].\n"
        )
    }

    /// The request that starts distribution. It carries the secret: it goes through the pipe and nowhere else.
    pub(crate) fn request(&self, cookie: &Secret) -> Term {
        terms::map([
            ("name", Term::binary(self.name.to_string())),
            ("domain", Term::binary(self.name.domain())),
            ("cookie", Term::binary(cookie.expose())),
            ("address", Term::binary(self.address.to_string())),
            ("first_port", Term::Integer(PORTS.0.into())),
            ("last_port", Term::Integer(PORTS.1.into())),
        ])
    }

    /// For `workspace status`.
    pub(crate) fn describe(&self, port: &Value) -> Value {
        json!({"node": self.name.to_string(), "address": self.address, "port": port, "tls": true})
    }
}

/// A path as an Erlang string.
fn quoted(path: &Path) -> String {
    let mut text = String::from("\"");
    for letter in path.to_string_lossy().chars() {
        if matches!(letter, '"' | '\\') {
            text.push('\\');
        }
        text.push(letter);
    }
    text.push('"');
    text
}

/// What a start says when others can reach the node.
pub(crate) fn exposure_warning(address: IpAddr, port: &Value) -> Option<String> {
    (!is_loopback(address)).then(|| {
        let address = match address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        format!(
            "⚠️  Distribution bound to {address}:{port} — accepting remote connections.\n    Ensure network access is restricted."
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(cluster: &str) -> StartOptions {
        StartOptions {
            cluster: Some(cluster.to_owned()),
            ..StartOptions::default()
        }
    }

    const LOOPBACK: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn names() {
        for text in ["lamp@127.0.0.1", "a-b_1@localhost", "x@::1", "x@host.example.org"] {
            assert_eq!(text.parse::<NodeName>().unwrap().to_string(), text);
        }
        for text in [
            "", "lamp", "@host", "lamp@", "a b@host", "a@b@c", "a@h'", "ä@host", "a@h/x",
        ] {
            assert!(text.parse::<NodeName>().is_err(), "{text}");
        }
        for peer in ["a@10.0.0.7:9100", "a@::1:9100"] {
            assert_eq!(check_peer(peer).unwrap(), peer);
        }
        for peer in ["a@10.0.0.7", "a:9100", "a@b:0", "a@b:99999", "a@b:-1"] {
            assert!(check_peer(peer).is_err(), "{peer}");
        }
        assert_eq!("a@localhost".parse::<NodeName>().unwrap().domain(), "short");
        assert_eq!("a@127.0.0.1".parse::<NodeName>().unwrap().domain(), "long");
    }

    #[test]
    fn loopback_is_the_default_and_another_address_must_be_meant() {
        let address =
            |options: &StartOptions, bound| address_of(options, bound).map(|found| found.unwrap().1);
        assert_eq!(address(&options("a@127.0.0.1"), LOOPBACK).unwrap(), LOOPBACK);
        assert!(address(&options("a@localhost"), LOOPBACK).unwrap().is_loopback());
        let mut open = options("a@10.0.0.7");
        let refusal = address(&open, LOOPBACK).unwrap_err().to_string();
        assert!(refusal.contains("--confirm-network"), "{refusal}");
        open.confirm_network = true;
        assert_eq!(address(&open, LOOPBACK).unwrap().to_string(), "10.0.0.7");
        // What is bound to is what was said.
        open.bind = Some("127.0.0.1".to_owned());
        assert_eq!(address(&open, LOOPBACK).unwrap(), LOOPBACK);
        assert_eq!(address_of(&StartOptions::default(), LOOPBACK).unwrap(), None);
    }

    #[test]
    fn paths_are_erlang_strings() {
        assert_eq!(quoted(Path::new(r#"/a"b\c"#)), r#""/a\"b\\c""#);
    }

    #[test]
    fn warnings_only_where_there_is_something_to_warn_of() {
        assert_eq!(exposure_warning(LOOPBACK, &json!(9100)), None);
        let warning = exposure_warning("10.0.0.7".parse().unwrap(), &json!(9100)).unwrap();
        assert!(
            warning.contains("10.0.0.7:9100 — accepting remote connections"),
            "{warning}"
        );
    }
}
