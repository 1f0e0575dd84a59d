//! Which address to listen on, and what must be said before that may be one of the network's.
//!
//! A pure decision over flags; the daemon asks before it binds anything.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// What `--bind` named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bind {
    Address(IpAddr),
    /// An address of the overlay network, which encrypts and knows its members.
    Tailscale(IpAddr),
}

/// The flags and settings that bear on exposure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExposureFlags {
    pub bind: Option<Bind>,
    pub remote: bool,
    pub confirm_network: bool,
    pub tls: bool,
    pub tls_client_auth: bool,
    pub insecure_no_tls: bool,
    /// Whether `--cert` and `--key` were given.
    pub certificate: bool,
    pub key: bool,
}

/// What the flags come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exposure {
    pub address: IpAddr,
    pub tls: bool,
    pub client_auth: bool,
}

/// Why the flags are refused; the command ends with exit code 2.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExposureRefusal {
    #[error(
        "{0} is not a loopback address: the network could reach this workspace. Add --confirm-network if that is meant, or use --bind tailscale."
    )]
    Unconfirmed(IpAddr),
    #[error(
        "{0} is not a loopback address: without TLS the network could read along. Add --tls, use --bind tailscale, or accept that with --insecure-no-tls."
    )]
    Plaintext(IpAddr),
    #[error(
        "{0} is not a loopback address: only access tokens are accepted there, and this workspace has none. Make one with: beamtalk workspace token create NAME"
    )]
    NoToken(IpAddr),
    #[error("--remote and --bind cannot be used together")]
    RemoteAndBind,
    #[error("--cert needs --key")]
    CertificateWithoutKey,
    #[error("--key needs --cert")]
    KeyWithoutCertificate,
    #[error("--tls-client-auth needs --tls")]
    ClientAuthWithoutTls,
    #[error("'{0}' is neither an address nor 'tailscale'")]
    Address(String),
    #[error("tailscale gave no address: {0}")]
    Tailscale(String),
}

/// Decide what to listen on, given how many live access tokens there are.
pub fn exposure(flags: &ExposureFlags, live_tokens: usize) -> Result<Exposure, ExposureRefusal> {
    match (flags.remote, flags.bind) {
        (true, Some(_)) => return Err(ExposureRefusal::RemoteAndBind),
        _ if flags.certificate && !flags.key => return Err(ExposureRefusal::CertificateWithoutKey),
        _ if flags.key && !flags.certificate => return Err(ExposureRefusal::KeyWithoutCertificate),
        _ if flags.tls_client_auth && !flags.tls => return Err(ExposureRefusal::ClientAuthWithoutTls),
        _ => {}
    }
    let wanted = if flags.remote {
        Bind::Address(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
    } else {
        flags
            .bind
            .unwrap_or(Bind::Address(IpAddr::V4(Ipv4Addr::LOCALHOST)))
    };
    let (address, is_overlay) = match wanted {
        Bind::Address(address) => (address, false),
        Bind::Tailscale(address) => (address, true),
    };
    if !is_loopback(address) {
        if !(flags.confirm_network || flags.remote || is_overlay) {
            return Err(ExposureRefusal::Unconfirmed(address));
        }
        if !(flags.tls || flags.insecure_no_tls || is_overlay) {
            return Err(ExposureRefusal::Plaintext(address));
        }
        if live_tokens == 0 {
            return Err(ExposureRefusal::NoToken(address));
        }
    }
    Ok(Exposure {
        address,
        tls: flags.tls,
        client_auth: flags.tls_client_auth,
    })
}

/// The text every start with an exposed listener shows and logs; `None` for loopback.
pub fn exposure_warning(address: SocketAddr) -> Option<String> {
    (!is_loopback(address.ip())).then(|| {
        format!(
            "⚠️  REPL server bound to {address} — accepting remote connections.\n    Ensure network access is restricted."
        )
    })
}

/// Read the value of `--bind`. For `tailscale` the program of that name is asked.
pub fn parse_bind(text: &str) -> Result<Bind, ExposureRefusal> {
    if text == "tailscale" {
        return tailscale_address().map(Bind::Tailscale);
    }
    text.parse()
        .map(Bind::Address)
        .map_err(|_| ExposureRefusal::Address(text.to_owned()))
}

pub(crate) fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[expect(clippy::disallowed_methods, reason = "tailscale, asked")]
fn tailscale_address() -> Result<IpAddr, ExposureRefusal> {
    let failed = |reason: String| ExposureRefusal::Tailscale(reason);
    let output = std::process::Command::new("tailscale")
        .args(["ip", "-4"])
        .stdin(std::process::Stdio::null())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        let told = String::from_utf8_lossy(&output.stderr);
        return Err(failed(
            told.lines()
                .next()
                .unwrap_or("it failed without a reason")
                .to_owned(),
        ));
    }
    first_address(&String::from_utf8_lossy(&output.stdout))
        .ok_or_else(|| failed("its answer is no address".to_owned()))
}

fn first_address(output: &str) -> Option<IpAddr> {
    output.lines().next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network() -> ExposureFlags {
        ExposureFlags {
            bind: Some(parse_bind("10.0.0.7").unwrap()),
            ..ExposureFlags::default()
        }
    }

    fn message(flags: &ExposureFlags, tokens: usize) -> String {
        exposure(flags, tokens).unwrap_err().to_string()
    }

    #[test]
    fn loopback_needs_nothing() {
        for bind in [
            None,
            Some("127.0.0.1"),
            Some("127.8.9.1"),
            Some("::1"),
            Some("::ffff:127.0.0.1"),
        ] {
            let flags = ExposureFlags {
                bind: bind.map(|bind| parse_bind(bind).unwrap()),
                ..ExposureFlags::default()
            };
            let exposed = exposure(&flags, 0).unwrap();
            assert_eq!(exposure_warning(SocketAddr::new(exposed.address, 9)), None);
        }
        assert_eq!(
            exposure(&ExposureFlags::default(), 0).unwrap().address,
            IpAddr::from([127, 0, 0, 1])
        );
    }

    #[test]
    fn bind_requires_confirmation() {
        assert_eq!(
            message(&network(), 1),
            "10.0.0.7 is not a loopback address: the network could reach this workspace. Add --confirm-network if that is meant, or use --bind tailscale."
        );
        for address in [
            "0.0.0.0",
            "::",
            "192.168.0.1",
            "fd00::1",
            "::ffff:10.0.0.7",
            "8.8.8.8",
        ] {
            let flags = ExposureFlags {
                bind: Some(parse_bind(address).unwrap()),
                tls: true,
                ..ExposureFlags::default()
            };
            assert!(
                matches!(exposure(&flags, 1), Err(ExposureRefusal::Unconfirmed(_))),
                "{address}"
            );
        }
    }

    #[test]
    fn bind_requires_tls() {
        let mut flags = ExposureFlags {
            confirm_network: true,
            ..network()
        };
        assert!(message(&flags, 1).starts_with("10.0.0.7 is not a loopback address: without TLS"));
        flags.insecure_no_tls = true;
        assert!(!exposure(&flags, 1).unwrap().tls);
        flags = ExposureFlags {
            insecure_no_tls: false,
            tls: true,
            ..flags
        };
        assert!(exposure(&flags, 1).unwrap().tls);
        let remote = ExposureFlags {
            remote: true,
            ..ExposureFlags::default()
        };
        assert!(matches!(exposure(&remote, 1), Err(ExposureRefusal::Plaintext(_))));
    }

    #[test]
    fn bind_requires_token() {
        let flags = ExposureFlags {
            confirm_network: true,
            tls: true,
            ..network()
        };
        assert!(message(&flags, 0).ends_with("Make one with: beamtalk workspace token create NAME"));
        assert!(exposure(&flags, 1).is_ok());
        let overlay = ExposureFlags {
            bind: Some(Bind::Tailscale("100.101.102.103".parse().unwrap())),
            ..ExposureFlags::default()
        };
        assert!(matches!(exposure(&overlay, 0), Err(ExposureRefusal::NoToken(_))));
        assert!(!exposure(&overlay, 1).unwrap().tls);
    }

    #[test]
    fn bind_prints_warning() {
        assert_eq!(
            exposure_warning("0.0.0.0:41873".parse().unwrap()).unwrap(),
            "⚠️  REPL server bound to 0.0.0.0:41873 — accepting remote connections.\n    Ensure network access is restricted."
        );
    }

    #[test]
    fn flags_that_contradict_each_other() {
        let with = |change: fn(&mut ExposureFlags)| {
            let mut flags = ExposureFlags::default();
            change(&mut flags);
            message(&flags, 1)
        };
        assert_eq!(
            with(|flags| {
                flags.remote = true;
                flags.bind = Some(Bind::Address(IpAddr::from([127, 0, 0, 1])));
            }),
            "--remote and --bind cannot be used together"
        );
        assert_eq!(with(|flags| flags.certificate = true), "--cert needs --key");
        assert_eq!(with(|flags| flags.key = true), "--key needs --cert");
        assert_eq!(
            with(|flags| flags.tls_client_auth = true),
            "--tls-client-auth needs --tls"
        );
    }

    #[test]
    fn addresses() {
        for text in ["", "localhost", "10.0.0", "10.0.0.7:80", "Tailscale", "[::1]"] {
            assert_eq!(parse_bind(text), Err(ExposureRefusal::Address(text.into())));
        }
        assert_eq!(
            first_address("100.101.102.103\nfd7a::1\n"),
            Some(IpAddr::from([100, 101, 102, 103]))
        );
        assert_eq!(first_address(""), None);
        assert_eq!(first_address("not logged in\n"), None);
    }
}
