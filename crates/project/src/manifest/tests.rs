use super::{Dependency, Manifest, Reference, Source};
use crate::findings::Level;
use crate::findings::severity::Setting;

const FULL: &str = r#"
[package]
name = "orbit"
version = "0.3.0"
description = "Orbit calculator"
licenses = ["Apache-2.0"]
strict-deps = true

[dependencies]
vectors = { path = "../vectors" }
units = { git = "https://example.org/units.git", tag = "v1.2.0" }

[application]
supervisor = "OrbitAppSup"

[native]
applications = ["crypto"]

[diagnostics]
dnu = "hint"

[workspace]
no-subprocess = true
eval-max-heap-mb = 256
"#;

fn fault(text: &str) -> String {
    let fault = Manifest::parse(text, "beamtalk.toml").unwrap_err();
    match fault.hint {
        Some(hint) => format!("{} ({hint})", fault.message),
        None => fault.message,
    }
}

fn package(rest: &str) -> String {
    format!("[package]\nname = \"a\"\nversion = \"1.0.0\"\n{rest}")
}

#[test]
fn every_table_is_read() {
    let manifest = Manifest::parse(FULL, "beamtalk.toml").unwrap();
    assert_eq!(
        (manifest.name.as_str(), manifest.version.as_str()),
        ("orbit", "0.3.0")
    );
    assert!(manifest.has_strict_dependencies);
    assert_eq!(
        manifest.dependencies,
        [
            Dependency {
                name: "vectors".to_owned(),
                source: Source::Path("../vectors".to_owned())
            },
            Dependency {
                name: "units".to_owned(),
                source: Source::Git {
                    url: "https://example.org/units.git".to_owned(),
                    reference: Reference::Tag("v1.2.0".to_owned()),
                },
            },
        ]
    );
    assert_eq!(manifest.supervisor.as_deref(), Some("OrbitAppSup"));
    assert_eq!(manifest.native_applications, ["crypto"]);
    assert_eq!(
        manifest.diagnostics.get("dnu"),
        Some(&Setting::Level(Level::Hint))
    );
}

#[test]
fn faults_name_the_line_and_the_repair() {
    let faults = [
        "",
        "[package]\nversion = \"1.0.0\"",
        "[package]\nname = \"a\"",
        "[package]\nname = \"A\"\nversion = \"1.0.0\"",
        "[package]\nname = \"crypto\"\nversion = \"1.0.0\"",
        "[package]\nname = \"a\"\nversion = \"1.0\"",
        "[package]\nname = \"a\"\nversion = \"01.0.0\"",
        "[package]\nname = 3\nversion = \"1.0.0\"",
        "[package]\nname = \"a\"\nverson = \"1.0.0\"",
        "[package]\nname = \"a\nversion = \"1.0.0\"",
        &package("[dependncies]\n"),
        &package("[dependencies]\nunits = \"1.2\"\n"),
        &package("[dependencies]\nunits = { path = \"..\", git = \"x\" }\n"),
        &package("[dependencies]\nunits = { git = \"x\" }\n"),
        &package("[dependencies]\nunits = { git = \"x\", tag = \"a\", branch = \"b\" }\n"),
        &package("[dependencies]\nunits = { git = \"--upload-pack=x\", tag = \"a\" }\n"),
        &package("[diagnostics]\ndnu = \"loud\"\n"),
        &package("[diagnostics]\ndun = \"hint\"\n"),
        &package("[workspace]\nallow-all = true\n"),
        &package("[workspace]\neval-timeout = \"1\"\n"),
        &package("[application]\n"),
        &package("[application]\nsupervisor = \"app'\"\n"),
        &package("[application]\nsupervisor = true\n"),
        &package("[native]\napplications = \"crypto\"\n"),
        &package("[native]\napplications = [\"a b\"]\n"),
        &package("strict-deps = \"yes\"\n"),
        &package("licenses = \"MIT\"\n"),
        &package("dependencies = 3\n"),
        &package("[dependencies]\nunits = 3\n"),
        &package("[dependencies.units]\npath = \"x\"\nrev = \"x\"\n"),
        &package("[dependencies.units]\ngit = \"https://x\"\ntag = \"v1\"\nbanch = \"x\"\n"),
        &package("[dependencies]\nunits = { git = \"ext::sh -c x\", tag = \"a\" }\n"),
        &package("[dependencies]\nunits = { git = \"https://x\", tag = \"\" }\n"),
        &package("name = \"b\"\n"),
    ]
    .map(fault);
    insta::assert_snapshot!(faults.join("\n"));
}

#[test]
fn only_three_protocols_are_fetched() {
    let refusal = |url: &str| {
        Source::Git {
            url: url.to_owned(),
            reference: Reference::Tag("v1".to_owned()),
        }
        .refusal()
    };
    for url in [
        "https://example.org/units.git",
        "https://[::1]/units.git",
        "ssh://git@example.org/units.git",
        "git@example.org:units.git",
        "git@[::1]:units.git",
        "file:///srv/units.git",
        "/srv/units.git",
    ] {
        assert_eq!(refusal(url), None, "{url}");
    }
    for url in [
        "http://example.org/units.git",
        "git://example.org/units.git",
        "ext::sh -c 'touch hacked'",
        "ext::sh -c 'wget https://example.org'",
        "ext://x",
        "fd::17",
        "https::x",
        "--upload-pack=touch hacked",
        "-u",
        "units.git",
        "../units.git",
        "",
        "https://example.org/\nhost=evil",
    ] {
        assert!(refusal(url).is_some(), "{url}");
    }
}

#[test]
fn the_name_of_a_dependency_is_no_path() {
    let text = package("[dependencies]\n\"../../x\" = { path = \"x\" }\n");
    assert!(
        fault(&text).starts_with("beamtalk.toml:5: '../../x' is not a package name"),
        "{}",
        fault(&text)
    );
}
