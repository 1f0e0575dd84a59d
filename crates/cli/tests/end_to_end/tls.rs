//! `beamtalk tls`: an authority, certificates, and who can read the keys.

use std::os::unix::fs::PermissionsExt;

use crate::support::Place;

#[test]
fn an_authority_and_its_certificates() {
    let place = Place::new();
    place
        .run(&["tls", "issue", "client", "--name", "ada"])
        .expect_code(1);
    place.run(&["tls", "init"]).expect_code(0);
    let again = place.run(&["tls", "init"]).expect_code(1);
    assert!(again.stderr.contains("--force"), "{}", again.stderr);
    place.run(&["tls", "init", "--force"]).expect_code(0);
    place
        .run(&[
            "tls",
            "issue",
            "server",
            "--workspace",
            "orbit",
            "--host",
            "not a host",
        ])
        .expect_code(2);
    let hosts = ["--host", "dev.example", "--host", "10.0.0.7"];
    let mut issue = vec!["tls", "issue", "server", "--workspace", "orbit"];
    issue.extend(hosts);
    place.run(&issue).expect_code(0);
    place
        .run(&["tls", "issue", "client", "--workspace", "orbit", "--name", "ada"])
        .expect_code(0);
    let listed = place.run(&["tls", "list", "--json"]).expect_code(0);
    let listed: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
    let kinds: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["kind"])
        .collect();
    assert_eq!(kinds, ["ca", "server", "client"]);
    assert_eq!(listed[1]["hosts"], serde_json::json!(["dev.example", "10.0.0.7"]));
    assert_eq!(listed[2]["name"], "ada");
    let mode = |path: &serde_json::Value| {
        let path = path.as_str().unwrap();
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    };
    for row in listed.as_array().unwrap() {
        let key = row["path"].as_str().unwrap().replace(".pem", "-key.pem");
        assert_eq!(mode(&row["path"]), 0o644);
        assert_eq!(mode(&key.into()), 0o600);
    }
}
