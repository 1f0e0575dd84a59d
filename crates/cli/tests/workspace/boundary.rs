//! The boundary as a whole: what listens, where the cookie is, who may do what. The gate's own rules are tested beside
//! the gate.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use crate::home::{Home, block_on, eval, files_below, kind, request};
use crate::raw::Raw;
use beamtalk_client::{Connection, Greeting};
use beamtalk_wire::{Access, Op};
use serde_json::json;

/// Local addresses of the listening sockets of these processes, IPv4 and IPv6, in the kernel's notation.
fn listeners(processes: &BTreeSet<u32>) -> Vec<String> {
    let mut sockets = BTreeSet::new();
    for pid in processes {
        for entry in std::fs::read_dir(format!("/proc/{pid}/fd"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let target = std::fs::read_link(entry.path()).unwrap_or_default();
            let target = target.display().to_string();
            if let Some(inode) = target
                .strip_prefix("socket:[")
                .and_then(|rest| rest.strip_suffix(']'))
            {
                sockets.insert(inode.to_owned());
            }
        }
    }
    let mut found = Vec::new();
    for table in ["tcp", "tcp6", "udp", "udp6", "sctp"] {
        let text = std::fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default();
        for line in text.lines().skip(1) {
            let columns: Vec<&str> = line.split_whitespace().collect();
            let (Some(local), Some(state), Some(inode)) = (columns.get(1), columns.get(3), columns.get(9))
            else {
                continue;
            };
            let is_listening = *state == "0A" || table.starts_with("udp");
            if is_listening && sockets.contains(*inode) {
                found.push(format!("{table} {local}"));
            }
        }
    }
    found
}

#[test]
fn listens_on_loopback_only() {
    let home = Home::new("listen");
    let info = home.start(&[]);
    block_on(async {
        let connection = home.connect().await;
        eval(&connection, "1 + 2").await;
    });
    let port = info["port"].as_u64().unwrap();
    assert_eq!(listeners(&home.processes()), [format!("tcp 0100007F:{port:04X}")]);
}

#[test]
fn node_opens_no_port_and_no_epmd_is_started() {
    let home = Home::new("epmd");
    let mut command = home.command(&["workspace", "start"]);
    command
        .env("ERL_FLAGS", "-sname spy -setcookie spy")
        .env("ERL_AFLAGS", "-sname spy");
    assert!(command.output().unwrap().status.success());
    let node = u32::try_from(home.info()["node_pid"].as_u64().unwrap()).unwrap();
    assert_eq!(listeners(&BTreeSet::from([node])), Vec::<String>::new());
    block_on(async {
        let connection = home.connect().await;
        assert_eq!(
            eval(&connection, "Erlang erlang node").await["value"],
            "nonode@nohost"
        );
        assert_eq!(
            eval(&connection, "Erlang erlang get_cookie").await["value"],
            "nocookie"
        );
    });
    for process in home.processes() {
        let name = std::fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        assert_ne!(name.trim(), "epmd");
    }
}

#[test]
fn secret_sweep() {
    let home = Home::new("sweep");
    let mut output = Vec::new();
    let mut keep = |words: &[&str]| {
        let run = home.run(words);
        output.extend(run.stdout);
        output.extend(run.stderr);
    };
    keep(&["workspace", "start"]);
    keep(&["repl", "-e", "1 + 2", "-e", "3 frobnicate", "-e", "OS env"]);
    keep(&["-vv", "repl", "-e", "1 + 2"]);
    keep(&["workspace", "status"]);
    keep(&["--json", "workspace", "status"]);
    keep(&["doctor"]);
    let cookie = home.cookie();
    block_on(async {
        let connection = home.connect().await;
        for op in Op::ALL.iter().filter(|op| op.access() == Access::Read) {
            let answer = request(
                &connection,
                op.name(),
                json!({"class": "Integer", "symbol": "Integer", "code": "1 + 2",
                "side": "instance", "selector": "+", "kind": "senders", "channels": ["workspace"]}),
            )
            .await;
            output.extend(serde_json::to_vec(&answer).unwrap());
        }
        // Code in the image sees its environment and arguments; the cookie is in neither.
        let answer = eval(&connection, "Erlang os getenv").await;
        output.extend(serde_json::to_vec(&answer).unwrap());
    });
    assert!(!contains(&output, &cookie), "in the output of a client");
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        for file in ["cmdline", "environ"] {
            let bytes = std::fs::read(process.path().join(file)).unwrap_or_default();
            assert!(
                !contains(&bytes, &cookie),
                "{}",
                process.path().join(file).display()
            );
        }
    }
    for file in files_below(&home.state()) {
        if file.file_name().is_some_and(|name| name == "cookie") {
            continue;
        }
        let bytes = std::fs::read(&file).unwrap_or_default();
        assert!(!contains(&bytes, &cookie), "{}", file.display());
    }
    let daemon = home.info()["pid"].as_u64().unwrap();
    let limits = std::fs::read_to_string(format!("/proc/{daemon}/limits")).unwrap();
    let core = limits
        .lines()
        .find(|line| line.starts_with("Max core file size"))
        .unwrap();
    assert_eq!(core.split_whitespace().nth(4), Some("0"), "no core dump holds it");
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn socket_modes() {
    let home = Home::new("modes");
    // The daemon inherits the most generous mask there is.
    let script = format!(
        "umask 000; exec '{}' workspace start",
        env!("CARGO_BIN_EXE_beamtalk")
    );
    let mut command = std::process::Command::new("/bin/sh");
    command
        .args(["-c", &script])
        .current_dir(home.project())
        .env("BEAMTALK_HOME", home.state());
    assert!(command.output().unwrap().status.success());
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let socket = home.info()["socket"].as_str().unwrap().to_owned();
    let socket = std::path::Path::new(&socket);
    assert_eq!(mode(socket), 0o600);
    assert_eq!(mode(socket.parent().unwrap()), 0o700);
    let workspace = home.workspace();
    assert_eq!(mode(&workspace), 0o700);
    assert_eq!(mode(&home.state()), 0o700);
    for (file, wanted) in [
        ("cookie", 0o600),
        ("audit.log", 0o600),
        ("workspace.log", 0o600),
        ("startup.log", 0o600),
        ("metadata.json", 0o644),
        ("node.info", 0o644),
    ] {
        assert_eq!(mode(&workspace.join(file)), wanted, "{file}");
    }
}

#[test]
fn unauthenticated_eval_has_no_effect() {
    let home = Home::new("stranger");
    home.start(&["--audit-text"]);
    let witness = home.project().join("witness");
    let code = format!("File writeAll: \"{}\" contents: \"owned\"", witness.display());
    for first in [
        json!({"op": "eval", "id": "1", "code": code}).to_string(),
        json!({"type": "auth", "cookie": "x", "op": "eval", "id": "1", "code": code}).to_string(),
        json!({"type": "auth", "token": "btk_x", "code": code}).to_string(),
        code,
    ] {
        let mut stranger = Raw::stranger(&home);
        stranger.send(&first);
        let rest = stranger.rest();
        let rest = String::from_utf8_lossy(&rest).into_owned();
        assert!(rest.contains("auth_error"), "{rest}");
        assert!(
            !rest.contains("beamtalk/"),
            "no version before authentication: {rest}"
        );
    }
    assert!(!witness.exists());
    for file in files_below(&home.state()) {
        let bytes = std::fs::read(&file).unwrap_or_default();
        assert!(!contains(&bytes, "witness"), "{}", file.display());
    }
    block_on(async {
        let connection = home.connect().await;
        assert_eq!(eval(&connection, "2 + 3").await["value"], 5);
    });
}

#[test]
fn two_sessions_isolated() {
    let home = Home::new("sessions");
    home.start(&[]);
    block_on(async {
        let (one, two) = (home.connect().await, home.connect().await);
        eval(&one, "x := 1").await;
        assert!(eval(&two, "x").await.contains_key("error"));
        eval(&two, "x := 2").await;
        assert_eq!(eval(&one, "x").await["value"], 1);
        let seen = request(&two, "bindings", json!({"session": one.session})).await;
        assert_eq!(seen["bindings"]["x"]["text"], "1");
        assert_eq!(
            seen["session"],
            one.session.as_str(),
            "the session that was asked about"
        );
        let refused = request(&two, "clear", json!({"session": one.session})).await;
        assert!(matches!(
            kind(&refused),
            "cross_session_mutation_unsupported" | "none"
        ));
        assert_eq!(eval(&one, "x").await["value"], 1, "nobody else clears it");
        // Classes and actors are shared.
        eval(&one, "Object subclass: Shared\n  class answer => 42").await;
        assert_eq!(eval(&two, "Shared answer").await["value"], 42);
    });
}

#[test]
fn two_workspaces_isolated() {
    let one = Home::new("first");
    let two = Home::new("second");
    one.start(&[]);
    two.start(&[]);
    block_on(async {
        let connection = one.connect().await;
        eval(&connection, "Object subclass: OnlyHere\n  class answer => 42").await;
        let other = two.connect().await;
        assert!(eval(&other, "OnlyHere answer").await.contains_key("error"));
        let greeting = Greeting {
            client: "repl",
            resume: None,
        };
        let wrong = Connection::open(&two.endpoint(), "cookie", &one.cookie(), greeting).await;
        assert!(wrong.is_err(), "the cookie of another workspace opens nothing");
    });
}

#[test]
fn a_session_is_resumed_with_its_variables() {
    let home = Home::new("resume");
    home.start(&[]);
    block_on(async {
        let first = home.connect().await;
        eval(&first, "x := 41").await;
        let id = first.session.clone();
        drop(first);
        tokio::time::sleep(Duration::from_millis(200)).await;
        let greeting = Greeting {
            client: "repl",
            resume: Some(&id),
        };
        let (again, _events) = Connection::open(&home.endpoint(), "cookie", &home.cookie(), greeting)
            .await
            .unwrap();
        assert!(again.resumed);
        assert_eq!(eval(&again, "x + 1").await["value"], 42);
    });
}

#[test]
fn observer_matrix() {
    let home = Home::new("observer");
    home.start(&[]);
    let created = home.run(&["workspace", "token", "create", "viewer", "--role", "observer"]);
    assert!(
        created.status.success(),
        "{}",
        String::from_utf8_lossy(&created.stderr)
    );
    let text = String::from_utf8_lossy(&created.stdout).into_owned();
    let token = text
        .split_whitespace()
        .find(|word| word.starts_with("btk_"))
        .unwrap()
        .to_owned();
    block_on(async {
        let greeting = Greeting {
            client: "ide",
            resume: None,
        };
        let (observer, _events) = Connection::open(&home.endpoint(), "token", &token, greeting)
            .await
            .unwrap();
        assert_eq!(observer.role, "observer");
        for op in Op::ALL {
            let answer = request(
                &observer,
                op.name(),
                json!({"code": "1", "channels": ["workspace"]}),
            )
            .await;
            let is_refused = kind(&answer) == "forbidden";
            let is_allowed = op.access() == Access::Read && !op.is_owners();
            assert_eq!(is_refused, !is_allowed, "{}", op.name());
        }
        let logs = request(&observer, "subscribe", json!({"channels": ["logs"]})).await;
        assert_eq!(kind(&logs), "forbidden");
        let system = request(&observer, "supervision-tree", json!({"scope": "system"})).await;
        assert_eq!(kind(&system), "forbidden");
    });
    let tokens = std::fs::read(home.workspace().join("tokens.json")).unwrap();
    assert!(!contains(&tokens, &token), "only its hash is kept");
}

/// The token of an observer.
fn observer_token(home: &Home) -> String {
    let created = home.run(&["workspace", "token", "create", "viewer", "--role", "observer"]);
    let text = String::from_utf8_lossy(&created.stdout).into_owned();
    let mut words = text.split_whitespace();
    let token = words.find(|word| word.starts_with("btk_"));
    token.expect("a token is printed").to_owned()
}

#[test]
fn an_observer_reads_no_other_sessions_variables() {
    let secret = "xyzzy-in-a-variable";
    let reads = [
        ("bindings", json!({})),
        ("inspect", json!({"binding": "plan"})),
        ("inspect", json!({"binding": "plan", "path": [], "page": 1})),
        ("complete", json!({"code": "pla"})),
        ("hover", json!({"code": "plan"})),
        ("info", json!({"symbol": "plan"})),
        ("diagnostics", json!({"code": "plan"})),
        ("show-codegen", json!({"code": "plan"})),
    ];
    for flags in [&[][..], &["--observers-see-bindings"]] {
        let home = Home::new("peek");
        home.start(flags);
        let token = observer_token(&home);
        block_on(async {
            let owner = home.connect().await;
            let code = format!("plan := \"{secret}\"");
            assert_eq!(kind(&eval(&owner, &code).await), "none");
            let greeting = Greeting {
                client: "ide",
                resume: Some(&owner.session),
            };
            let (observer, _events) = Connection::open(&home.endpoint(), "token", &token, greeting)
                .await
                .unwrap();
            assert_ne!(observer.session, owner.session);
            if flags.is_empty() {
                // Every op that reads, asked about the owner's session, and asked without a word about sessions.
                for op in Op::ALL.iter().filter(|op| op.access() == Access::Read) {
                    let fields = json!({"session": owner.session, "code": "plan", "binding": "plan", "symbol": "plan",
                        "channels": ["bindings"]});
                    let answer = request(&observer, op.name(), fields).await;
                    assert_eq!(kind(&answer), "forbidden", "{}", op.name());
                }
                for (op, mut fields) in reads.clone() {
                    for session in [None, Some(owner.session.clone())] {
                        fields["session"] = session.into();
                        let answer = request(&observer, op, fields.clone()).await;
                        let text = format!("{answer:?}");
                        assert!(
                            !text.contains(secret) && !text.contains("\"text\": String(\"plan"),
                            "{op} {text}"
                        );
                    }
                }
                // Its own session, and what the workspace shares, stay open to it.
                let own = json!({"session": observer.session});
                assert_eq!(kind(&request(&observer, "bindings", own).await), "none");
                eval(&owner, "Workspace bind: 7 as: #shared").await;
                let shared = request(&observer, "complete", json!({"code": "shar"})).await;
                assert!(format!("{shared:?}").contains("shared"), "{shared:?}");
            } else {
                let seen = request(&observer, "bindings", json!({"session": owner.session})).await;
                assert!(format!("{seen:?}").contains(secret), "{seen:?}");
                let refused = request(&observer, "eval", json!({"code": "1"})).await;
                assert_eq!(kind(&refused), "forbidden");
            }
        });
    }
}

#[test]
fn the_trail_names_who_resumed_a_session() {
    let home = Home::new("resumed");
    home.start(&[]);
    let created = home.run(&["workspace", "token", "create", "laptop"]);
    let token = String::from_utf8_lossy(&created.stdout).trim().to_owned();
    block_on(async {
        let owner = home.connect().await;
        eval(&owner, "x := 1").await;
        let session = owner.session.clone();
        drop(owner);
        // Until the end of the first connection is seen, a second one gets a session of its own.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        let laptop = loop {
            let greeting = Greeting {
                client: "attach",
                resume: Some(&session),
            };
            let opened = Connection::open(&home.endpoint(), "token", &token, greeting).await;
            let (laptop, _events) = opened.unwrap();
            if laptop.resumed {
                break laptop;
            }
            assert!(std::time::Instant::now() < deadline, "the session can be resumed");
        };
        eval(&laptop, "x + 1").await;
        let audit = home.run(&[
            "--json",
            "workspace",
            "audit",
            "--type",
            "eval",
            "--session",
            &session,
        ]);
        let text = String::from_utf8_lossy(&audit.stdout).into_owned();
        let records: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let auths: Vec<&str> = records
            .iter()
            .filter_map(|record| record["auth"].as_str())
            .collect();
        assert_eq!(auths, ["cookie", "token:laptop"]);
    });
}

#[test]
fn every_op_is_described() {
    let home = Home::new("describe");
    home.start(&[]);
    block_on(async {
        let connection = home.connect().await;
        let answer = request(&connection, "describe", json!({})).await;
        for op in Op::ALL {
            let about = &answer["ops"][op.name()];
            assert_eq!(about["class"], op.access().letter(), "{}", op.name());
        }
        assert_eq!(
            kind(&request(&connection, "no-such-op", json!({})).await),
            "unknown_op"
        );
    });
}

#[test]
fn capabilities_are_refused_and_the_workspace_goes_on() {
    let home = Home::new("caps");
    home.start(&["--no-subprocess", "--no-http", "--read-only-fs", "--no-ffi"]);
    block_on(async {
        let connection = home.connect().await;
        let refused = eval(&connection, "OS run: \"true\"").await;
        assert!(
            format!("{refused:?}").contains("capability_disabled"),
            "{refused:?}"
        );
        let refused = eval(&connection, "(File writeAll: \"x\" contents: \"y\") error kind").await;
        assert!(
            format!("{refused:?}").contains("capability_disabled"),
            "{refused:?}"
        );
        let refused = eval(&connection, "Erlang erlang node").await;
        let text = format!("{refused:?}");
        assert!(
            text.contains("E0501") || text.contains("capability_disabled"),
            "{text}"
        );
        assert_eq!(eval(&connection, "2 + 3").await["value"], 5);
    });
    assert!(!home.project().join("x").exists());
}

#[test]
fn programs_that_fail_are_in_the_trail() {
    let home = Home::new("trail");
    home.start(&[]);
    block_on(async {
        let connection = home.connect().await;
        let fields = json!({"class": "Integer", "selector": "nothingOfTheKind", "args": []});
        let answer = request(&connection, "run-entry", fields).await;
        assert_ne!(kind(&answer), "none");
    });
    let trail = home
        .run(&["workspace", "audit", "--json", "--type", "run"])
        .stdout;
    let record: serde_json::Value = serde_json::from_slice(&trail).unwrap();
    assert_eq!(record["target"], "Integer nothingOfTheKind");
    assert_eq!(record["outcome"], "error");
}
