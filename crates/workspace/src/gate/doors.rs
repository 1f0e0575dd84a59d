//! Which `Host` and `Origin` a request may name.
//!
//! The check of `Host` defeats DNS rebinding (a foreign name that resolves to this machine), the
//! check of `Origin` defeats web pages of others that open a WebSocket here. Both are decisions over
//! data; the server asks before it looks at anything else in a request.

use std::net::{IpAddr, SocketAddr};

/// Whether the listener speaks TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

impl Scheme {
    fn prefix(self) -> &'static str {
        match self {
            Self::Http => "http://",
            Self::Https => "https://",
        }
    }

    fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// The names this listener goes by, beside those in its certificate.
#[derive(Clone, Debug)]
pub(crate) struct Doors {
    pub(crate) address: SocketAddr,
    pub(crate) scheme: Scheme,
    /// Browser logins of this machine live under `<label>.localhost`.
    pub(crate) label: String,
    pub(crate) allow_hosts: Vec<String>,
    pub(crate) allow_origins: Vec<String>,
}

/// The plain names of this machine.
const LOOPBACK: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// How a request got here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival<'a> {
    /// The address of this machine that the client connected to.
    pub(crate) local: IpAddr,
    /// Names in the certificate shown to it. Whoever rebinds a name of theirs to this machine has no certificate for
    /// it here, so these names are as good as an address.
    pub(crate) certificate_names: &'a [String],
}

/// Whether a request may come from a page without an origin, such as a local file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NullOrigin {
    Refused,
    Accepted,
}

/// What an accepted request said of its origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// None named, so it is no browser.
    Absent,
    /// A page without an origin.
    Null,
    /// One of ours.
    Own,
}

/// The header that was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Foreign {
    Host,
    Origin,
}

impl Doors {
    /// Judge all `Host` and `Origin` headers of a request.
    pub(crate) fn judge(
        &self,
        arrival: Arrival<'_>,
        hosts: &[&[u8]],
        origins: &[&[u8]],
        null: NullOrigin,
    ) -> Result<Origin, Foreign> {
        // A request target with an authority names a host too; all names must be ours.
        if hosts.is_empty() || !hosts.iter().all(|host| self.is_own_host(arrival, host)) {
            return Err(Foreign::Host);
        }
        match origins {
            [] => Ok(Origin::Absent),
            [b"null"] if null == NullOrigin::Accepted => Ok(Origin::Null),
            [origin] if self.is_own_origin(arrival, origin) => Ok(Origin::Own),
            _ => Err(Foreign::Origin),
        }
    }

    fn is_own_host(&self, arrival: Arrival<'_>, host: &[u8]) -> bool {
        let Ok(host) = std::str::from_utf8(host) else {
            return false;
        };
        let host = host.to_ascii_lowercase();
        let mut own: Vec<String> = LOOPBACK.map(str::to_owned).into();
        own.push(format!("{}.localhost", self.label));
        if self.address.ip().is_unspecified() {
            // The address the connection arrived at is the only one of this machine that its
            // client can have meant.
            own.push(bracketed(arrival.local.to_canonical()));
        } else {
            own.push(bracketed(self.address.ip()));
        }
        if self.scheme == Scheme::Https {
            let names = arrival.certificate_names.iter();
            own.extend(names.map(|name| name.to_ascii_lowercase()));
        }
        let allowed = self.allow_hosts.iter().map(|name| name.to_ascii_lowercase());
        let with_port = |name: &str| host == format!("{name}:{}", self.address.port());
        let is_default_port = self.address.port() == self.scheme.default_port();
        own.iter()
            .any(|name| with_port(name) || is_default_port && host == *name)
            || allowed.into_iter().any(|name| host == name || with_port(&name))
    }

    /// Whether a browser may log in under an accepted host. Cookies ignore ports: under a plain name of this machine
    /// every other server on it would be sent the login.
    pub(crate) fn is_login_host(&self, host: &[u8]) -> bool {
        let host = String::from_utf8_lossy(host).to_ascii_lowercase();
        let name = host
            .strip_suffix(&format!(":{}", self.address.port()))
            .unwrap_or(&host);
        let is_plain = LOOPBACK.contains(&name)
            || name
                .trim_matches(['[', ']'])
                .parse::<IpAddr>()
                .is_ok_and(|address| address.is_loopback());
        !is_plain
    }

    fn is_own_origin(&self, arrival: Arrival<'_>, origin: &[u8]) -> bool {
        let Ok(origin) = std::str::from_utf8(origin) else {
            return false;
        };
        self.allow_origins.iter().any(|allowed| allowed == origin)
            || origin
                .strip_prefix(self.scheme.prefix())
                .is_some_and(|host| self.is_own_host(arrival, host.as_bytes()))
    }

    /// Keeps a browser from sending its login cookie without TLS where there is TLS.
    pub(crate) fn cookie_suffix(&self) -> &'static str {
        match self.scheme {
            Scheme::Http => "",
            Scheme::Https => "; Secure",
        }
    }

    /// Where a page of ours opens its WebSocket, given the `Host` it was fetched from. Behind a proxy that ends TLS,
    /// the page's own origin says that the way there is encrypted.
    pub(crate) fn socket_origin(&self, host: &str) -> String {
        let is_behind_tls = self
            .allow_origins
            .iter()
            .any(|origin| origin.strip_prefix("https://") == Some(host));
        match self.scheme {
            Scheme::Http if !is_behind_tls => format!("ws://{host}"),
            Scheme::Http | Scheme::Https => format!("wss://{host}"),
        }
    }
}

fn bracketed(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

#[cfg(test)]
mod tests;
