//! Ways in: commands of the owner come in whatever is bound, and a workspace elsewhere is reached by name.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::desk::{Desk, Done, done};

/// A token of the desk's workspace in a file of mode 0600.
fn token_file(desk: &Desk, name: &str) -> (PathBuf, String) {
    let token = desk.run(&["workspace", "token", "create", name]).expect(0).out;
    let file = desk.project().join(format!("{name}.token"));
    private_file(&file, &token);
    (file, token.trim().to_owned())
}

fn private_file(path: &PathBuf, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

fn refusals(desk: &Desk) -> String {
    desk.run(&["workspace", "audit", "--type", "auth_fail"])
        .expect(0)
        .out
}

/// Every kind of command of the owner, at a workspace that runs.
fn all_commands_come_in(desk: &Desk, flags: &[&str]) {
    assert_eq!(desk.run(&["eval", "3 + 4"]).expect(0).out, "7\n", "{flags:?}");
    let attached = desk
        .run_with_input(&["workspace", "attach"], "Lamp color\n")
        .expect(0);
    assert!(attached.out.contains("red"), "{flags:?} {attached:?}");
    desk.run(&["workspace", "transcript"]).expect(0);
    desk.run(&["run", "--connect", "Lamp", "color"]).expect(0);
    let url = desk.run(&["web", "--print-url"]).expect(0).out;
    let local = desk.run(&["--json", "workspace", "status"]).expect(0).json()["local"].clone();
    // Under a name of its own, at the local address.
    let (_, port) = local.as_str().unwrap().rsplit_once(':').unwrap();
    assert!(
        url.starts_with("http://w") && url.contains(&format!(".localhost:{port}/#login=")),
        "{flags:?} {url} {local}"
    );
    assert_eq!(refusals(desk), "", "{flags:?}");
}

#[test]
fn the_owner_comes_in_whatever_is_bound() {
    let desk = Desk::new("bound");
    desk.run(&["workspace", "token", "create", "laptop"]).expect(0);
    for flags in [
        &["--bind", "127.0.0.2"][..],
        &["--bind", "::1"],
        &["--remote", "--insecure-no-tls"],
        &["--bind", "::", "--confirm-network", "--insecure-no-tls"],
    ] {
        let mut words = vec!["workspace", "start"];
        words.extend(flags);
        desk.run(&words).expect(0);
        all_commands_come_in(&desk, flags);
        desk.run(&["workspace", "stop", "--force"]).expect(0);
    }
}

#[test]
fn the_owner_comes_in_under_tls_and_without_a_certificate_of_theirs() {
    let desk = Desk::new("undertls");
    desk.run(&["tls", "init"]).expect(0);
    // A certificate that names another host than the one commands of this machine would use.
    desk.run(&["tls", "issue", "server", "--host", "orbit.example.org"])
        .expect(0);
    desk.run(&["workspace", "token", "create", "laptop"]).expect(0);
    for flags in [
        &["--tls"][..],
        &["--tls", "--tls-client-auth"],
        &["--remote", "--tls", "--tls-client-auth"],
    ] {
        let mut words = vec!["workspace", "start"];
        words.extend(flags);
        desk.run(&words).expect(0);
        all_commands_come_in(&desk, flags);
        let info = desk.info();
        assert_ne!(info["local"], Value::Null);
        let status = desk.run(&["workspace", "status"]).expect(0).out;
        assert!(status.contains(info["local"].as_str().unwrap()), "{status}");
        desk.run(&["workspace", "stop", "--force"]).expect(0);
    }
}

/// A network of its own with one address that is not loopback; `None` where that takes rights we lack.
struct Network {
    name: String,
}

const ADDRESS: &str = "10.77.0.7";

impl Network {
    fn new(name: &str) -> Option<Self> {
        let network = Self {
            name: format!("bt-{name}-{}", std::process::id()),
        };
        let ip = |words: &[&str]| done(Command::new("ip").args(words)).code == 0;
        let name = network.name.as_str();
        let is_made = ip(&["netns", "add", name])
            && ip(&["-n", name, "link", "set", "lo", "up"])
            && ip(&["-n", name, "addr", "add", &format!("{ADDRESS}/32"), "dev", "lo"]);
        if !is_made {
            return None;
        }
        Some(network)
    }

    /// The same command inside the network.
    fn run(&self, command: &Command) -> Done {
        let mut inside = Command::new("ip");
        inside
            .args(["netns", "exec", &self.name])
            .arg(command.get_program())
            .args(command.get_args())
            .stdin(std::process::Stdio::null());
        if let Some(directory) = command.get_current_dir() {
            inside.current_dir(directory);
        }
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => inside.env(name, value),
                None => inside.env_remove(name),
            };
        }
        done(&mut inside)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        drop(done(Command::new("ip").args(["netns", "del", &self.name])));
    }
}

#[test]
fn a_repl_on_the_overlay_lets_its_owner_in() {
    let Some(network) = Network::new("overlay") else {
        println!("skipped: a network namespace needs root and iproute2");
        return;
    };
    let desk = Desk::new("overlay");
    let tools = desk.project().join("tools");
    fs::create_dir(&tools).unwrap();
    let tailscale = tools.join("tailscale");
    fs::write(&tailscale, format!("#!/bin/sh\necho {ADDRESS}\n")).unwrap();
    fs::set_permissions(&tailscale, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    let run = |words: &[&str]| {
        let mut command = desk.command(words);
        network.run(command.env("PATH", &path))
    };
    // The overlay encrypts and knows its members: a token is all that is asked for.
    let refused = run(&["repl", "--bind", "tailscale", "-e", "1"]).expect(2);
    assert!(refused.err.contains("token create"), "{refused:?}");
    let (file, token) = token_file(&desk, "laptop");
    let started = run(&["repl", "--bind", "tailscale", "-e", "3 + 4"]).expect(0);
    assert_eq!(started.out, "7\n");
    assert!(
        started.err.contains(&format!("bound to {ADDRESS}:")),
        "{started:?}"
    );
    assert_eq!(run(&["eval", "Lamp color"]).expect(0).out, "\"red\"\n");
    assert_eq!(refusals(&desk), "");

    // From the network the cookie opens nothing, and the token does.
    let info = desk.info();
    let port = info["port"].to_string();
    let url = format!("ws://{ADDRESS}:{port}");
    let cookie = desk.project().join("cookie");
    private_file(&cookie, &desk.cookie());
    let refused = run(&[
        "workspace",
        "attach",
        &url,
        "--token-file",
        cookie.to_str().unwrap(),
    ])
    .expect(4);
    assert!(!refused.err.contains(&desk.cookie()), "{refused:?}");
    let attached = run(&[
        "workspace",
        "attach",
        &url,
        "--token-file",
        file.to_str().unwrap(),
    ])
    .expect(0);
    assert!(
        attached.err.contains("not encrypted") && !attached.err.contains(&token),
        "{attached:?}"
    );
    run(&["workspace", "stop"]).expect(0);
}

#[test]
fn a_workspace_is_reached_by_the_name_of_its_host() {
    let desk = Desk::new("byname");
    desk.run(&["tls", "init"]).expect(0);
    desk.run(&["tls", "issue", "server", "--host", "localhost"])
        .expect(0);
    let (file, token) = token_file(&desk, "laptop");
    let file = file.to_str().unwrap();
    desk.run(&["workspace", "start", "--tls"]).expect(0);
    let info = desk.info();
    let (port, local) = (
        info["port"].to_string(),
        info["local"].as_str().unwrap().to_owned(),
    );
    let authority = desk.state().join("tls/ca.pem");
    let authority = authority.to_str().unwrap();

    // A host and a port; without TLS where the way never leaves this machine.
    let plain = local.replace("127.0.0.1", "localhost");
    let words = ["workspace", "attach", &plain, "--token-file", file];
    assert_eq!(desk.run_with_input(&words, "3 + 4\n").expect(0).out, "7\n");
    let url = format!("wss://localhost:{port}");
    let words = [
        "workspace",
        "attach",
        &url,
        "--token-file",
        file,
        "--ca",
        authority,
    ];
    assert_eq!(desk.run_with_input(&words, "3 + 4\n").expect(0).out, "7\n");
    // The certificate does not name the address, and nothing else is trusted.
    let wrong = format!("wss://127.0.0.1:{port}");
    let words = [
        "workspace",
        "attach",
        &wrong,
        "--token-file",
        file,
        "--ca",
        authority,
    ];
    desk.run_with_input(&words, "1\n").expect(3);

    // Saved under a name, wherever the command is given; a relative path stays the same file.
    let add = [
        "workspace",
        "remote",
        "add",
        "office",
        &url,
        "--token-file",
        "laptop.token",
        "--ca",
        authority,
    ];
    desk.run(&add).expect(0);
    desk.run(&add).expect(2);
    let attach = |words: &[&str], input: &str| {
        let mut command = desk.command(words);
        command
            .current_dir(std::env::temp_dir())
            .stdin(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    };
    assert_eq!(
        attach(&["workspace", "attach", "office"], "3 + 4\n"),
        (Some(0), "7\n".to_owned())
    );
    let listed = desk.run(&["workspace", "remote", "list"]).expect(0).out;
    assert!(
        listed.contains("office") && listed.contains(&url) && !listed.contains(&token),
        "{listed}"
    );
    let listed = desk
        .run(&["--json", "workspace", "remote", "list"])
        .expect(0)
        .json();
    assert_eq!(listed[0]["ca"], authority);
    let saved = desk.state().join("remotes/office.json");
    assert_eq!(fs::metadata(&saved).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!fs::read_to_string(&saved).unwrap().contains(&token));

    // A token that is piped in is kept in a file of its own.
    let add = [
        "workspace",
        "remote",
        "add",
        "home",
        &url,
        "--token-file",
        "-",
        "--ca",
        authority,
    ];
    let added = desk.run_with_input(&add, &format!("{token}\n")).expect(0);
    assert!(!added.out.contains(&token) && !added.err.contains(&token));
    let kept = desk.state().join("remotes/home.token");
    assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(
        attach(&["workspace", "attach", "home"], "3 + 4\n"),
        (Some(0), "7\n".to_owned())
    );
    desk.run(&["workspace", "remote", "remove", "home"]).expect(0);
    assert!(!kept.exists());
    desk.run(&["workspace", "remote", "remove", "home"]).expect(2);
}

#[test]
fn names_that_lead_nowhere_say_so() {
    let desk = Desk::new("nowhere");
    let lost = desk.run(&["workspace", "attach", "my-server"]).expect(3);
    assert!(
        lost.err
            .contains("neither a workspace of this machine nor a saved name"),
        "{lost:?}"
    );
    assert!(lost.err.contains("workspace remote add my-server"), "{lost:?}");
    let lost = desk.run(&["workspace", "attach", "my-server:4000"]).expect(2);
    assert!(lost.err.contains("--token-file"), "{lost:?}");
    let token = desk.project().join("token");
    private_file(&token, "btk_x\n");
    let token = token.to_str().unwrap();
    let lost = desk
        .run(&[
            "workspace",
            "attach",
            "no-such-host.invalid",
            "--token-file",
            token,
        ])
        .expect(3);
    assert!(lost.err.contains("no-such-host.invalid:443"), "{lost:?}");
    for words in [
        &["a/b", "localhost:1"][..],
        &["x", "http://localhost:1"],
        &["x", "localhost:1/?token=btk_x"],
    ] {
        let mut all = vec!["workspace", "remote", "add"];
        all.extend(words);
        all.extend(["--token-file", token]);
        desk.run(&all).expect(2);
    }
    let add = |name: &str, more: &[&str]| {
        let mut all = vec![
            "workspace",
            "remote",
            "add",
            name,
            "localhost:1",
            "--token-file",
            token,
        ];
        all.extend(more);
        desk.run(&all)
    };
    add("x", &["--ca", "nowhere.pem"]).expect(2);
    fs::set_permissions(token, fs::Permissions::from_mode(0o644)).unwrap();
    add("x", &[]).expect(5);
    fs::set_permissions(token, fs::Permissions::from_mode(0o600)).unwrap();
    // A workspace of this machine keeps its name, and is what its name means.
    desk.run(&["workspace", "create", "near", "--background"])
        .expect(0);
    let refused = add("near", &[]).expect(2);
    assert!(refused.err.contains("on this machine"), "{refused:?}");
    let attached = desk
        .run_with_input(&["workspace", "attach", "near"], "3 + 4\n")
        .expect(0);
    assert_eq!(attached.out, "7\n");
    add("far", &[]).expect(0);
    desk.run(&["workspace", "attach", "far"]).expect(3);
}

/// A name of this machine that is not `localhost`, if it has one that leads here.
fn own_name() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    let name = name.trim().to_owned();
    let is_known = std::net::ToSocketAddrs::to_socket_addrs(&(name.as_str(), 1)).is_ok();
    (is_known && name != "localhost").then_some(name)
}

#[test]
fn a_name_the_workspace_does_not_have_is_told_with_what_to_do() {
    let Some(name) = own_name() else {
        println!("skipped: this machine has no name of its own");
        return;
    };
    let desk = Desk::new("unnamed");
    let (file, _) = token_file(&desk, "laptop");
    let attach = || {
        let target = format!("ws://{name}:{}", desk.info()["port"]);
        let words = [
            "workspace",
            "attach",
            &target,
            "--token-file",
            file.to_str().unwrap(),
        ];
        desk.run_with_input(&words, "3 + 4\n")
    };
    desk.run(&["workspace", "start", "--remote", "--insecure-no-tls"])
        .expect(0);
    let refused = attach().expect(3);
    let hint = format!("--allow-host {name}");
    assert!(
        refused.err.contains("does not go by the name") && refused.err.contains(&hint),
        "{refused:?}"
    );
    desk.run(&["workspace", "stop", "--force"]).expect(0);
    let flags = ["--remote", "--insecure-no-tls", "--allow-host", &name];
    let mut words = vec!["workspace", "start"];
    words.extend(flags);
    desk.run(&words).expect(0);
    assert_eq!(attach().expect(0).out, "7\n");
}
