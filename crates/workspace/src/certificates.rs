//! Certificates for remote access: a small authority of the user's own, and what it signs.
//!
//! Pure but for random numbers: texts in PEM form go in and out, and the caller keeps them.

use std::net::IpAddr;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};
use zeroize::Zeroizing;

const DAY: u64 = 86_400;
const AUTHORITY_DAYS: u64 = 3_653;
const CERTIFICATE_DAYS: u64 = 825;
/// Clocks differ a little; a certificate is valid from an hour before it was made.
const SKEW: u64 = 3_600;

/// A certificate and its private key, both as PEM.
pub struct Pair {
    pub certificate: String,
    pub key: Zeroizing<String>,
}

/// Whom a certificate is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A workspace, reached by these names and addresses.
    Server {
        workspace: String,
        hosts: Vec<String>,
    },
    Client {
        name: String,
    },
    /// A node that connects to others of its cluster, from these hosts.
    Node {
        name: String,
        hosts: Vec<String>,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    #[error("such a certificate needs at least one --host")]
    NoHost,
    #[error("'{0}' is neither a host name nor an address")]
    Host(String),
    #[error("a certificate name must have 1 to 64 printable characters")]
    Name,
    #[error("the certificate authority cannot be read")]
    Authority(#[source] rcgen::Error),
    #[error("the certificate cannot be made")]
    Make(#[from] rcgen::Error),
    #[error("this is no certificate in PEM form")]
    Unreadable,
}

/// What a certificate says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    pub name: String,
    pub hosts: Vec<String>,
    /// Unix seconds.
    pub expires: u64,
    pub is_authority: bool,
}

/// Make an authority.
pub fn make_authority(now: u64) -> Result<Pair, CertificateError> {
    let mut parameters = parameters("Beamtalk workspace CA", now, AUTHORITY_DAYS)?;
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let certificate = parameters.self_signed(&key)?;
    Ok(pair(&certificate, &key))
}

/// Make a certificate and have the authority sign it.
pub fn issue(authority: &Pair, subject: &Subject, now: u64) -> Result<Pair, CertificateError> {
    let authority_key = KeyPair::from_pem(&authority.key).map_err(CertificateError::Authority)?;
    let issuer = Issuer::from_ca_cert_pem(&authority.certificate, authority_key)
        .map_err(CertificateError::Authority)?;
    let (mut parameters, usage) = match subject {
        Subject::Server { workspace, hosts } => {
            let mut parameters = parameters(workspace, now, CERTIFICATE_DAYS)?;
            parameters.subject_alt_names = alternative_names(hosts)?;
            (parameters, ExtendedKeyUsagePurpose::ServerAuth)
        }
        Subject::Client { name } => (
            parameters(name, now, CERTIFICATE_DAYS)?,
            ExtendedKeyUsagePurpose::ClientAuth,
        ),
        Subject::Node { name, hosts } => {
            let mut parameters = parameters(name, now, CERTIFICATE_DAYS)?;
            parameters.subject_alt_names = alternative_names(hosts)?;
            (parameters, ExtendedKeyUsagePurpose::ClientAuth)
        }
    };
    parameters.is_ca = IsCa::ExplicitNoCa;
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    parameters.extended_key_usages = vec![usage];
    parameters.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let certificate = parameters.signed_by(&key, &issuer)?;
    Ok(pair(&certificate, &key))
}

fn pair(certificate: &rcgen::Certificate, key: &KeyPair) -> Pair {
    Pair {
        certificate: certificate.pem(),
        key: Zeroizing::new(key.serialize_pem()),
    }
}

fn parameters(name: &str, now: u64, days: u64) -> Result<CertificateParams, CertificateError> {
    let is_printable = name.chars().all(|letter| !letter.is_control());
    if name.is_empty() || name.chars().count() > 64 || !is_printable {
        return Err(CertificateError::Name);
    }
    let mut parameters = CertificateParams::default();
    let at = |seconds: u64| rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds);
    parameters.not_before = at(now.saturating_sub(SKEW));
    parameters.not_after = at(now + days * DAY);
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, name);
    Ok(parameters)
}

fn alternative_names(hosts: &[String]) -> Result<Vec<rcgen::SanType>, CertificateError> {
    if hosts.is_empty() {
        return Err(CertificateError::NoHost);
    }
    let wrong = |host: &String| CertificateError::Host(host.clone());
    hosts
        .iter()
        .map(|host| match host.parse::<IpAddr>() {
            Ok(address) => Ok(rcgen::SanType::IpAddress(address)),
            Err(_) if is_host_name(host) => {
                let name = host.as_str().try_into().map_err(|_| wrong(host))?;
                Ok(rcgen::SanType::DnsName(name))
            }
            Err(_) => Err(wrong(host)),
        })
        .collect()
}

fn is_host_name(host: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    host.len() <= 253 && host.strip_prefix("*.").unwrap_or(host).split('.').all(is_label)
}

/// Read what the first certificate of a PEM text says.
pub fn read(pem: &[u8]) -> Result<Summary, CertificateError> {
    let der = CertificateDer::from_pem_slice(pem).map_err(|_| CertificateError::Unreadable)?;
    let (_, certificate) = X509Certificate::from_der(&der).map_err(|_| CertificateError::Unreadable)?;
    let name = certificate
        .subject()
        .iter_common_name()
        .find_map(|name| name.as_str().ok());
    Ok(Summary {
        name: name.unwrap_or_default().to_owned(),
        hosts: names_of(&der),
        expires: u64::try_from(certificate.validity().not_after.timestamp()).unwrap_or(0),
        is_authority: certificate.is_ca(),
    })
}

/// The host names and addresses in a certificate; addresses as they stand in a URL. Patterns are
/// left out: a name with a star is no name a client can give.
pub(crate) fn names_of(certificate: &CertificateDer<'_>) -> Vec<String> {
    let Ok((_, certificate)) = X509Certificate::from_der(certificate) else {
        return Vec::new();
    };
    let Ok(Some(names)) = certificate.subject_alternative_name() else {
        return Vec::new();
    };
    names
        .value
        .general_names
        .iter()
        .filter_map(|name| match name {
            GeneralName::DNSName(name) if !name.contains('*') => Some((*name).to_owned()),
            GeneralName::IPAddress(bytes) => match bytes.len() {
                4 => <[u8; 4]>::try_from(*bytes)
                    .ok()
                    .map(|bytes| IpAddr::from(bytes).to_string()),
                16 => <[u8; 16]>::try_from(*bytes)
                    .ok()
                    .map(|bytes| format!("[{}]", IpAddr::from(bytes))),
                _ => None,
            },
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_767_225_600;

    #[test]
    fn an_authority_signs_servers_and_clients() {
        let authority = make_authority(NOW).unwrap();
        let summary = read(authority.certificate.as_bytes()).unwrap();
        assert!(summary.is_authority);
        assert_eq!(summary.expires, NOW + 3_653 * DAY);
        assert!(authority.key.contains("PRIVATE KEY"));
        let subject = Subject::Server {
            workspace: "orbit".into(),
            hosts: vec!["dev.example".into(), "10.0.0.7".into(), "fd00::7".into()],
        };
        let server = issue(&authority, &subject, NOW).unwrap();
        let summary = read(server.certificate.as_bytes()).unwrap();
        assert_eq!(
            summary,
            Summary {
                name: "orbit".into(),
                hosts: vec!["dev.example".into(), "10.0.0.7".into(), "[fd00::7]".into()],
                expires: NOW + 825 * DAY,
                is_authority: false,
            }
        );
        let client = issue(&authority, &Subject::Client { name: "ada".into() }, NOW).unwrap();
        assert_eq!(read(client.certificate.as_bytes()).unwrap().name, "ada");
        assert!(!client.certificate.contains("PRIVATE"));
        let node = Subject::Node {
            name: "a@10.0.0.7".into(),
            hosts: vec!["10.0.0.7".into()],
        };
        let node = issue(&authority, &node, NOW).unwrap();
        assert_eq!(read(node.certificate.as_bytes()).unwrap().hosts, ["10.0.0.7"]);
    }

    #[test]
    fn hosts_and_names_are_checked() {
        let authority = make_authority(NOW).unwrap();
        for host in [
            "",
            "a b",
            "-a.example",
            "a..b",
            "https://a.example",
            "a.example:80",
            "é.example",
        ] {
            let subject = Subject::Server {
                workspace: "orbit".into(),
                hosts: vec![host.into()],
            };
            assert!(
                matches!(issue(&authority, &subject, NOW), Err(CertificateError::Host(_))),
                "{host}"
            );
        }
        let subject = Subject::Server {
            workspace: "orbit".into(),
            hosts: vec![],
        };
        assert!(matches!(
            issue(&authority, &subject, NOW),
            Err(CertificateError::NoHost)
        ));
        for name in ["", "a\nb", &"x".repeat(65)] {
            let subject = Subject::Client { name: name.into() };
            assert!(matches!(
                issue(&authority, &subject, NOW),
                Err(CertificateError::Name)
            ));
        }
    }

    #[test]
    fn damaged_certificates_are_not_read() {
        for text in [
            "",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ] {
            assert!(read(text.as_bytes()).is_err());
        }
    }
}
