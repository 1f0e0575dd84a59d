use proptest::prelude::*;

use super::*;

const LOOPBACK: Arrival<'_> = Arrival {
    local: IpAddr::V4(std::net::Ipv4Addr::LOCALHOST),
    certificate_names: &[],
};

fn doors(bind: &str, scheme: Scheme) -> Doors {
    Doors {
        address: bind.parse().unwrap(),
        scheme,
        label: "wlabel".into(),
        allow_hosts: vec!["dev.example".into(), "proxy.example:8443".into()],
        allow_origins: vec!["https://dev.example".into()],
    }
}

fn host(doors: &Doors, local: &str, host: &str) -> bool {
    let arrival = Arrival {
        local: local.parse().unwrap(),
        certificate_names: &["Orbit.example".into()],
    };
    doors
        .judge(arrival, &[host.as_bytes()], &[], NullOrigin::Refused)
        .is_ok()
}

#[test]
fn hosts_of_a_loopback_listener() {
    let doors = doors("127.0.0.1:41873", Scheme::Http);
    for (name, accepted) in [
        ("127.0.0.1:41873", true),
        ("localhost:41873", true),
        ("LocalHost:41873", true),
        ("[::1]:41873", true),
        ("dev.example", true),
        ("dev.example:41873", true),
        ("proxy.example:8443", true),
        ("127.0.0.1", false),
        ("localhost", false),
        ("localhost:41874", false),
        ("localhost:41873.evil.example", false),
        ("127.0.0.2:41873", false),
        ("127.1:41873", false),
        ("0.0.0.0:41873", false),
        ("2130706433:41873", false),
        ("evil.example:41873", false),
        ("evil.example", false),
        ("orbit.example:41873", false),
        ("localhost.:41873", false),
        ("localhost:041873", false),
        ("user@localhost:41873", false),
        ("dev.example:80", false),
        ("proxy.example", false),
        ("::1:41873", false),
        (" localhost:41873", false),
        ("", false),
    ] {
        assert_eq!(host(&doors, "127.0.0.1", name), accepted, "{name}");
    }
}

#[test]
fn hosts_of_a_bound_address() {
    let doors = doors("10.0.0.7:9000", Scheme::Https);
    for (name, accepted) in [
        ("10.0.0.7:9000", true),
        ("localhost:9000", true),
        ("orbit.example:9000", true),
        ("10.0.0.8:9000", false),
        ("evil.example:9000", false),
        ("orbit.example:9001", false),
    ] {
        assert_eq!(host(&doors, "10.0.0.7", name), accepted, "{name}");
    }
}

#[test]
fn hosts_of_a_wildcard_listener() {
    for bind in ["0.0.0.0:9000", "[::]:9000"] {
        let doors = doors(bind, Scheme::Https);
        for (local, name, accepted) in [
            ("192.168.1.5", "192.168.1.5:9000", true),
            ("::ffff:192.168.1.5", "192.168.1.5:9000", true),
            ("fd00::5", "[fd00::5]:9000", true),
            ("192.168.1.5", "orbit.example:9000", true),
            ("192.168.1.5", "192.168.1.6:9000", false),
            ("192.168.1.5", "0.0.0.0:9000", false),
            ("192.168.1.5", "evil.example:9000", false),
        ] {
            assert_eq!(host(&doors, local, name), accepted, "{bind} {local} {name}");
        }
    }
}

#[test]
fn a_page_behind_a_proxy_with_tls_opens_an_encrypted_socket() {
    let plain = doors("127.0.0.1:41873", Scheme::Http);
    assert_eq!(plain.socket_origin("dev.example"), "wss://dev.example");
    assert_eq!(plain.socket_origin("localhost:41873"), "ws://localhost:41873");
    let own = doors("127.0.0.1:41873", Scheme::Https);
    assert_eq!(own.socket_origin("localhost:41873"), "wss://localhost:41873");
}

#[test]
fn the_default_port_of_the_scheme_may_be_left_out() {
    assert!(host(
        &doors("127.0.0.1:80", Scheme::Http),
        "127.0.0.1",
        "localhost"
    ));
    assert!(host(
        &doors("127.0.0.1:443", Scheme::Https),
        "127.0.0.1",
        "localhost"
    ));
    assert!(!host(
        &doors("127.0.0.1:443", Scheme::Http),
        "127.0.0.1",
        "localhost"
    ));
}

#[test]
fn every_host_must_be_ours_and_there_must_be_one() {
    let doors = doors("127.0.0.1:9000", Scheme::Http);
    let judge = |hosts: &[&[u8]]| doors.judge(LOOPBACK, hosts, &[], NullOrigin::Refused);
    assert_eq!(judge(&[]), Err(Foreign::Host));
    assert_eq!(
        judge(&[b"localhost:9000", b"evil.example:9000"]),
        Err(Foreign::Host)
    );
    assert_eq!(judge(&[b"localhost:9000", b"127.0.0.1:9000"]), Ok(Origin::Absent));
    assert_eq!(judge(&[b"local\xffhost:9000"]), Err(Foreign::Host));
}

#[test]
fn origins() {
    let plain = doors("127.0.0.1:41873", Scheme::Http);
    let tls = doors("127.0.0.1:41873", Scheme::Https);
    for (origin, over_http, over_tls) in [
        ("http://127.0.0.1:41873", true, false),
        ("http://localhost:41873", true, false),
        ("https://localhost:41873", false, true),
        ("https://dev.example", true, true),
        ("http://dev.example", true, false),
        ("https://dev.example.evil.example", false, false),
        ("HTTPS://dev.example:9", false, false),
        ("http://localhost:3000", false, false),
        ("http://localhost", false, false),
        ("http://evil.example", false, false),
        ("http://evil.example:41873", false, false),
        ("http://localhost:41873/", false, false),
        ("http://user@localhost:41873", false, false),
        ("file://", false, false),
        ("null", false, false),
        ("Null", false, false),
        ("", false, false),
    ] {
        for (doors, accepted) in [(&plain, over_http), (&tls, over_tls)] {
            let judged = doors.judge(
                LOOPBACK,
                &[b"localhost:41873"],
                &[origin.as_bytes()],
                NullOrigin::Refused,
            );
            let expected = if accepted {
                Ok(Origin::Own)
            } else {
                Err(Foreign::Origin)
            };
            assert_eq!(judged, expected, "{origin} {:?}", doors.scheme);
        }
    }
}

#[test]
fn the_null_origin_is_for_logging_in_only() {
    let doors = doors("127.0.0.1:9000", Scheme::Http);
    let judge = |origins: &[&[u8]], null| doors.judge(LOOPBACK, &[b"localhost:9000"], origins, null);
    assert_eq!(judge(&[b"null"], NullOrigin::Accepted), Ok(Origin::Null));
    assert_eq!(judge(&[b"null"], NullOrigin::Refused), Err(Foreign::Origin));
    assert_eq!(
        judge(&[b"null", b"null"], NullOrigin::Accepted),
        Err(Foreign::Origin)
    );
    assert_eq!(
        judge(&[b"http://evil.example"], NullOrigin::Accepted),
        Err(Foreign::Origin)
    );
}

proptest! {
    #[test]
    fn nothing_but_our_names_is_accepted(name in "[ -~]{0,40}") {
        let doors = doors("127.0.0.1:9000", Scheme::Http);
        let ours = ["127.0.0.1:9000", "localhost:9000", "[::1]:9000", "dev.example", "dev.example:9000", "proxy.example:8443", "proxy.example:8443:9000"];
        prop_assert_eq!(host(&doors, "127.0.0.1", &name), ours.contains(&name.to_ascii_lowercase().as_str()));
    }

    #[test]
    fn any_bytes_are_judged(host: Vec<u8>, origin: Vec<u8>) {
        let doors = doors("127.0.0.1:9000", Scheme::Http);
        prop_assert!(doors.judge(LOOPBACK, &[&host], &[&origin], NullOrigin::Accepted).is_err());
    }
}
