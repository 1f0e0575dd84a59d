//! Cookie, tokens, login pages and the audit trail: what is shown, what is kept, what is refused.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::desk::{Desk, done};

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut todo = vec![directory.to_owned()];
    while let Some(directory) = todo.pop() {
        for entry in fs::read_dir(directory).unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                todo.push(entry.path());
            }
            found.push(entry.path());
        }
    }
    found
}

#[test]
fn a_symlinked_cookie_is_refused_and_rotation_repairs_it() {
    let desk = Desk::new("link");
    desk.run(&["workspace", "start"]).expect(0);
    desk.run(&["workspace", "stop"]).expect(0);
    let cookie = desk.workspace().join("cookie");
    let real = desk.project().join("stolen");
    fs::rename(&cookie, &real).unwrap();
    symlink(&real, &cookie).unwrap();
    let refused = desk.run(&["workspace", "start"]).expect(5);
    assert!(refused.err.contains("symbolic link"), "{refused:?}");
    assert!(
        refused.err.contains("beamtalk workspace rotate-cookie"),
        "{refused:?}"
    );
    desk.run(&["doctor"]).expect(1);
    let old = fs::read_to_string(&real).unwrap();
    desk.run(&["workspace", "rotate-cookie"]).expect(0);
    assert!(fs::symlink_metadata(&cookie).unwrap().is_file());
    assert_eq!(
        fs::read_to_string(&real).unwrap(),
        old,
        "nothing was written through the link"
    );
    desk.run(&["workspace", "start"]).expect(0);
}

#[test]
fn a_cookie_others_can_read_is_refused_until_the_doctor_closes_it() {
    let desk = Desk::new("open");
    desk.run(&["workspace", "start"]).expect(0);
    desk.run(&["workspace", "stop"]).expect(0);
    let cookie = desk.workspace().join("cookie");
    fs::set_permissions(&cookie, fs::Permissions::from_mode(0o644)).unwrap();
    desk.run(&["workspace", "start"]).expect(5);
    let told = desk.run(&["doctor"]).expect(1).out;
    assert!(told.contains("beamtalk workspace rotate-cookie"), "{told}");
    desk.run(&["doctor", "--fix"]).expect(0);
    assert_eq!(mode(&cookie), 0o600);
}

#[test]
fn other_uid_cannot_read_cookie() {
    let desk = Desk::new("uid");
    desk.run(&["workspace", "start"]).expect(0);
    let cookie = desk.workspace().join("cookie");
    assert_eq!(mode(&cookie), 0o600);
    assert_eq!(mode(&desk.state()), 0o700);
    // Another user can be tried out by root only.
    if rustix::process::geteuid().is_root() {
        const NOBODY: u32 = 65_534;
        let socket = desk.info()["socket"].as_str().unwrap().to_owned();
        for path in [cookie.to_str().unwrap(), &socket] {
            let mut reader = Command::new("cat");
            let tried = done(reader.arg(path).uid(NOBODY).gid(NOBODY));
            assert_ne!(tried.code, 0, "{tried:?}");
            assert!(
                tried.out.is_empty() && tried.err.contains("Permission denied"),
                "{tried:?}"
            );
        }
    }
}

#[test]
fn modes_do_not_depend_on_the_umask() {
    let desk = Desk::new("umask");
    let binary = env!("CARGO_BIN_EXE_beamtalk");
    let mut shell = Command::new("sh");
    shell
        .args([
            "-c",
            &format!("umask 000; '{binary}' eval 1 && '{binary}' workspace token create x"),
        ])
        .current_dir(desk.project())
        .env("BEAMTALK_HOME", desk.state())
        .stdin(Stdio::null());
    done(&mut shell).expect(0);
    for path in below(&desk.state()) {
        // The unpacked runtime is no secret.
        if path.starts_with(desk.state().join("runtime")) {
            continue;
        }
        let name = path.file_name().unwrap().to_str().unwrap();
        let expected = match name {
            "metadata.json" | "node.info" | "port" => 0o644,
            _ if path.is_dir() => 0o700,
            _ => 0o600,
        };
        assert_eq!(mode(&path), expected, "{}", path.display());
    }
    assert_eq!(mode(&desk.state()), 0o700);
}

#[test]
fn rotation_works_running_and_stopped() {
    let desk = Desk::new("rotate");
    desk.run(&["workspace", "start"]).expect(0);
    let first = desk.cookie();
    let old = desk.project().join("old");
    fs::write(&old, &first).unwrap();
    fs::set_permissions(&old, fs::Permissions::from_mode(0o600)).unwrap();
    let port = desk.info()["port"].to_string();
    let attach = [
        "workspace",
        "attach",
        "--port",
        &port,
        "--cookie-file",
        old.to_str().unwrap(),
    ];
    assert_eq!(desk.run_with_input(&attach, "1 + 2\n").expect(0).out, "3\n");
    let said = desk.run(&["workspace", "rotate-cookie"]).expect(0);
    assert!(
        said.out.starts_with("Cookie rotated. 0 connections closed.\n"),
        "{said:?}"
    );
    let second = desk.cookie();
    assert_ne!(first, second);
    assert!(!said.out.contains(&second) && !said.err.contains(&second));
    desk.run_with_input(&attach, "1 + 2\n").expect(4);
    // Commands of the owner read the file again.
    assert_eq!(desk.run(&["eval", "1 + 2"]).expect(0).out, "3\n");
    desk.run(&["workspace", "stop"]).expect(0);
    desk.run(&["workspace", "rotate-cookie"]).expect(0);
    assert_ne!(desk.cookie(), second);
    desk.run(&["workspace", "audit", "verify"]).expect(0);
}

#[test]
fn tokens_are_made_listed_and_revoked() {
    let desk = Desk::new("token");
    // Before the first start, because a reachable start needs one.
    let early = desk.run(&["workspace", "token", "create", "early"]).expect(0);
    desk.run(&["workspace", "start"]).expect(0);
    let made = desk
        .run(&[
            "workspace",
            "token",
            "create",
            "laptop",
            "--role",
            "observer",
            "--expires",
            "30d",
        ])
        .expect(0);
    let token = made.out.trim();
    assert!(token.starts_with("btk_") && token.len() == 47, "{made:?}");
    desk.run(&["workspace", "token", "create", "laptop"]).expect(2);
    desk.run(&["workspace", "token", "create", "x", "--expires", "soon"])
        .expect(2);
    desk.run(&["workspace", "token", "create", "x", "--role", "root"])
        .expect(2);
    let list = desk.run(&["workspace", "token", "list"]).expect(0).out;
    assert!(list.contains("laptop") && list.contains("observer") && list.contains("early"));
    assert!(!list.contains(token));
    let rows = desk.run(&["--json", "workspace", "token", "list"]).expect(0).out;
    assert!(!rows.contains("sha256") && !rows.contains(token), "{rows}");
    for path in below(&desk.state()) {
        let content = fs::read(&path).unwrap_or_default();
        let text = String::from_utf8_lossy(&content);
        assert!(
            !text.contains(token) && !text.contains(early.out.trim()),
            "{}",
            path.display()
        );
    }
    let url = format!("ws://127.0.0.1:{}", desk.info()["port"]);
    let attach = ["workspace", "attach", &url, "--token-file", "-"];
    desk.run(&["workspace", "attach", &url]).expect(2);
    // The observer comes in and may not evaluate.
    let file = desk.project().join("t");
    fs::write(&file, token).unwrap();
    let with_file = [
        "workspace",
        "attach",
        &url,
        "--token-file",
        file.to_str().unwrap(),
    ];
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    desk.run_with_input(&with_file, "1 + 2\n").expect(5);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let observed = desk.run_with_input(&with_file, "1 + 2\n");
    assert_ne!(observed.code, 0, "{observed:?}");
    assert!(!observed.out.contains('3'), "{observed:?}");
    desk.run(&["workspace", "token", "revoke", "laptop"]).expect(0);
    desk.run_with_input(&with_file, "1 + 2\n").expect(4);
    desk.run_with_input(&attach, "btk_wrong").expect(4);
    desk.run(&["workspace", "token", "revoke", "laptop"]).expect(2);
    desk.run(&["workspace", "stop"]).expect(0);
    desk.run(&["workspace", "token", "revoke", "early"]).expect(0);
    desk.run(&["workspace", "token", "revoke", "early"]).expect(2);
}

#[test]
fn the_trail_is_read_running_and_stopped_and_a_gap_is_found() {
    let desk = Desk::new("audit");
    desk.run(&["eval", "2 + 3"]).expect(0);
    desk.run(&["eval", "nonsense"]).expect(1);
    let all = desk.run(&["workspace", "audit"]).expect(0).out;
    assert!(all.contains(" start ") && all.contains("auth_ok"), "{all}");
    let words = ["--json", "workspace", "audit", "--type", "eval", "--since", "2h"];
    let evals = desk.run(&words).expect(0).out;
    let first: serde_json::Value = serde_json::from_str(evals.lines().next().unwrap()).unwrap();
    assert_eq!(
        first["sha256"],
        "777e6971be9f36a99a2731f434d1bbaf8534ebd1be7cb2857573eefc50b43ed2"
    );
    assert!(!all.contains("2 + 3"), "texts are kept only when asked for");
    let session = first["session"].as_str().unwrap();
    let own = desk
        .run(&["workspace", "audit", "--session", session])
        .expect(0)
        .out;
    assert!(own.lines().count() >= 1 && own.lines().all(|line| line.contains(session)));
    desk.run(&["workspace", "audit", "--since", "yesterday"])
        .expect(2);
    let help = desk.run(&["workspace", "audit", "--help"]).expect(0).out;
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        help.contains("Code in the image acts as the same user and could alter the file"),
        "{help}"
    );

    desk.run(&["workspace", "stop"]).expect(0);
    desk.run(&["workspace", "audit", "verify"]).expect(0);
    let path = desk.workspace().join("audit.log");
    let text = fs::read_to_string(&path).unwrap();
    let cut: Vec<&str> = text
        .lines()
        .enumerate()
        .filter(|(n, _)| *n != 2)
        .map(|(_, l)| l)
        .collect();
    fs::write(&path, cut.join("\n") + "\n").unwrap();
    let found = desk.run(&["workspace", "audit", "verify"]).expect(1);
    assert!(found.err.contains("record 4 comes where 3 should"), "{found:?}");
}

#[test]
fn logs_and_transcript_are_shown() {
    let desk = Desk::new("logs");
    desk.run(&["workspace", "logs"]).expect(3);
    desk.run(&[
        "eval",
        "Transcript show: \"one\"; cr. Transcript show: \"two\"; cr. Logger warn: \"careful\"",
    ])
    .expect(0);
    let transcript = desk.run(&["workspace", "transcript"]).expect(0).out;
    assert!(transcript.contains("one\ntwo\n"), "{transcript}");
    let path = desk.run(&["workspace", "logs", "--path"]).expect(0).out;
    assert_eq!(
        path.trim(),
        desk.workspace().join("workspace.log").to_str().unwrap()
    );
    let has = |words: &[&str]| desk.run(words).expect(0).out.contains("careful");
    assert!(has(&["workspace", "logs"]));
    assert!(!has(&["workspace", "logs", "--level", "error"]));
    desk.run(&["workspace", "stop"]).expect(0);
    assert!(has(&["--json", "workspace", "logs", "-n", "1000"]));
    desk.run(&["workspace", "transcript"]).expect(3);
}

#[test]
fn no_token_in_argv() {
    let desk = Desk::new("web");
    let tools = desk.project().join("bin");
    fs::create_dir(&tools).unwrap();
    let seen = desk.project().join("seen");
    let opener = tools.join("xdg-open");
    let script = format!(
        "#!/bin/sh\n{{ tr '\\0' '\\n' < /proc/$$/cmdline; tr '\\0' '\\n' < /proc/$$/environ; \
         tr '\\0' '\\n' < /proc/$PPID/cmdline; }} > '{}'\n",
        seen.display()
    );
    fs::write(&opener, script).unwrap();
    fs::set_permissions(&opener, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    done(desk.command(&["web"]).env("PATH", path)).expect(0);
    let pages: Vec<PathBuf> = below(&desk.state().join("sessions"))
        .into_iter()
        .filter(|path| path.extension().is_some_and(|kind| kind == "html"))
        .collect();
    assert_eq!(pages.len(), 1);
    assert_eq!(mode(&pages[0]), 0o600);
    let page = fs::read_to_string(&pages[0]).unwrap();
    let (_, rest) = page.split_once("value=\"").unwrap();
    let (token, _) = rest.split_once('"').unwrap();
    assert_eq!(token.len(), 43);
    let (_, rest) = page.split_once("action=\"http://").unwrap();
    let (host, _) = rest.split_once("/login\"").unwrap();
    let seen = fs::read_to_string(&seen).unwrap();
    assert!(
        seen.contains(pages[0].to_str().unwrap()) && !seen.contains(token),
        "{seen}"
    );
    // Used up, the page goes.
    let port = desk.info()["port"].to_string();
    let answer = post_login(host, token);
    assert!(answer.starts_with("HTTP/1.1 303"), "{answer}");
    assert!(!pages[0].exists());
    assert!(post_login(host, token).starts_with("HTTP/1.1 403"));
    let url = desk.run(&["web", "--print-url"]).expect(0).out;
    assert!(
        url.starts_with(&format!("http://{host}/#login=")) && host.ends_with(&format!(".localhost:{port}")),
        "{url}"
    );
}

fn post_login(host: &str, token: &str) -> String {
    use std::io::{Read, Write};
    let (_, port) = host.rsplit_once(':').unwrap();
    let mut stream = std::net::TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    let body = format!("token={token}");
    write!(
        stream,
        "POST /login HTTP/1.1\r\nHost: {host}\r\nOrigin: null\r\nConnection: close\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
