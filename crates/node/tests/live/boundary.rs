//! What a node must not have or do: secrets, listeners, distribution, flags from outside.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::image::Image;

/// Run one of the tests below in a process with other environment variables.
fn with_environment(test: &str, variables: &[(&str, &str)]) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", test])
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn erl_flags_ignored() {
    with_environment(
        "boundary::node_without_flags",
        &[
            ("ERL_FLAGS", "-sname intruder -setcookie guessed"),
            ("ERL_AFLAGS", "-sname intruder"),
            ("ERL_ZFLAGS", "-sname intruder"),
            ("ERL_LIBS", "/nowhere"),
        ],
    );
}

#[tokio::test]
#[ignore = "run by erl_flags_ignored, with flags in its environment"]
async fn node_without_flags() {
    assert!(
        std::env::var_os("ERL_FLAGS").is_some(),
        "the flags are in this environment"
    );
    let mut image = Image::start().await;
    assert_eq!(image.eval("Erlang erlang is_alive").await.shown(), "false");
    let environment = fs::read(format!("/proc/{}/environ", image.link.pid())).unwrap();
    let environment = String::from_utf8_lossy(&environment);
    for name in ["ERL_FLAGS=", "ERL_AFLAGS=", "ERL_ZFLAGS=", "ERL_LIBS="] {
        assert!(
            !environment.split('\0').any(|entry| entry.starts_with(name)),
            "{name}"
        );
    }
}

#[test]
fn secrets_in_the_environment_stay_outside() {
    with_environment(
        "boundary::node_without_secrets",
        &[
            ("BEAMTALK_SOME_TOKEN", "hush-1"),
            ("BEAMTALK_COOKIE", "hush-2"),
            ("BEAMTALK_TEST_SECRET", "hush-3"),
            ("BEAMTALK_PLAIN", "heard"),
        ],
    );
}

#[tokio::test]
#[ignore = "run by secrets_in_the_environment_stay_outside, with secrets in its environment"]
async fn node_without_secrets() {
    assert!(
        std::env::var_os("BEAMTALK_COOKIE").is_some(),
        "the secrets are in this environment"
    );
    let mut image = Image::start().await;
    assert_eq!(
        image.eval("System getEnv: \"BEAMTALK_PLAIN\"").await.shown(),
        "\"heard\""
    );
    let environment = fs::read(format!("/proc/{}/environ", image.link.pid())).unwrap();
    assert!(!String::from_utf8_lossy(&environment).contains("hush"));
    let inside = image.eval("Erlang os getenv").await.shown();
    assert!(!inside.contains("hush"), "{inside}");
}

/// Inodes of all sockets of the internet protocols on this machine.
fn internet_sockets() -> BTreeSet<String> {
    ["tcp", "tcp6", "udp", "udp6", "raw", "raw6"]
        .iter()
        .filter_map(|table| fs::read_to_string(format!("/proc/net/{table}")).ok())
        .flat_map(|text| {
            let inodes = text
                .lines()
                .skip(1)
                .filter_map(|line| line.split_whitespace().nth(9));
            inodes
                .map(|inode| format!("socket:[{inode}]"))
                .collect::<Vec<_>>()
        })
        .collect()
}

#[tokio::test]
async fn node_opens_no_port() {
    let mut image = Image::start().await;
    image.eval("Timer sleep: 50").await;
    let open: BTreeSet<String> = fs::read_dir(format!("/proc/{}/fd", image.link.pid()))
        .unwrap()
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .map(|target| target.to_string_lossy().into_owned())
        .collect();
    assert!(open.iter().any(|target| target.starts_with("pipe:")), "{open:?}");
    let common: Vec<_> = open.intersection(&internet_sockets()).cloned().collect();
    assert!(common.is_empty(), "{common:?}");
}

fn processes_named(name: &str) -> BTreeSet<String> {
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .filter(|id| fs::read_to_string(format!("/proc/{id}/comm")).is_ok_and(|found| found.trim() == name))
        .collect()
}

#[tokio::test]
async fn no_epmd_started() {
    let before = processes_named("epmd");
    let mut image = Image::start().await;
    image.run("1").await;
    assert_eq!(processes_named("epmd"), before);
}

#[tokio::test]
async fn files_of_the_node_are_the_users_own() {
    let mut image = Image::start().await;
    image.run("1").await;
    let status = fs::read_to_string(format!("/proc/{}/status", image.link.pid())).unwrap();
    assert!(status.lines().any(|line| line == "Umask:\t0077"), "{status}");
}

#[tokio::test]
async fn the_command_line_tells_nothing() {
    let mut image = Image::start().await;
    image.run("1").await;
    let line = fs::read(format!("/proc/{}/cmdline", image.link.pid())).unwrap();
    let line = String::from_utf8_lossy(&line);
    for flag in ["-name", "-sname", "-setcookie"] {
        assert!(!line.split('\0').any(|argument| argument == flag), "{line}");
    }
}
