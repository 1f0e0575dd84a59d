//! Documents and sources as texts, news that are more than a queue holds, and what an error keeps.

use std::os::unix::fs::{PermissionsExt, symlink};

use beamtalk_client::{Connection, Greeting};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::home::{block_on, request};
use crate::looking::{ask, kept};
use crate::project::{Client, exists, read, started, write};

fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Nothing outside the project, nothing hidden or built, and nothing but documents and sources is read or written, by
/// whatever path: upwards, absolute, through links, or with names of our own.
#[test]
fn only_documents_of_the_project_are_reached() {
    let home = started("reached", &[]);
    let outside = home.project().parent().expect("a parent").join("secret.md");
    std::fs::write(&outside, "secret").expect("a file");
    write(&home, ".env.md", "hidden");
    write(&home, ".git/note.md", "hidden");
    write(&home, "_build/note.md", "made");
    write(&home, "docs/keys.txt", "keys");
    write(&home, "docs/real.md", "real");
    symlink(&outside, home.project().join("docs/link.md")).expect("a link");
    symlink("../../secret.md", home.project().join("docs/up.md")).expect("a link");
    symlink("nowhere.md", home.project().join("docs/dangling.md")).expect("a link");
    symlink("../beamtalk.toml", home.project().join("docs/settings.md")).expect("a link");
    symlink(outside.parent().expect("a parent"), home.project().join("away")).expect("a link");
    symlink("real.md", home.project().join("docs/alias.md")).expect("a link");
    let bad = [
        "../secret.md",
        "../../etc/passwd",
        "docs/../../secret.md",
        "/etc/passwd",
        outside.to_str().expect("text"),
        ".env.md",
        ".git/note.md",
        "_build/note.md",
        "docs/keys.txt",
        "docs/link.md",
        "docs/up.md",
        "docs/dangling.md",
        "docs/settings.md",
        "away/secret.md",
        "beamtalk:tours",
        "beamtalk:",
        "",
        "a\0b.md",
    ];
    block_on(async {
        let client = Client::of(&home).await;
        for path in bad {
            assert_eq!(
                client.refused("doc-read", json!({"path": path})).await,
                "target_outside_project",
                "{path}"
            );
            let write = json!({"path": path, "text": "x", "base_sha256": sha256("secret")});
            assert_eq!(
                client.refused("doc-write", write).await,
                "target_outside_project",
                "{path}"
            );
        }
        for path in ["beamtalk:tour", "beamtalk.toml", "src/x.erl"] {
            let write = json!({"path": path, "text": "x"});
            assert_eq!(
                client.refused("doc-write", write).await,
                "target_outside_project",
                "{path}"
            );
        }
        assert_eq!(
            client.good("doc-read", json!({"path": "docs/alias.md"})).await["text"],
            "real"
        );
        assert_eq!(
            client.refused("doc-read", json!({"path": "docs/none.md"})).await,
            "file_not_found"
        );
        assert_eq!(
            client
                .refused("doc-read", json!({"path": "docs/none.md/x.md"}))
                .await,
            "file_not_found"
        );
        write(&home, "docs/large.md", &"x".repeat((1 << 20) + 1));
        std::fs::write(home.project().join("docs/binary.md"), [0xff, 0xfe]).expect("a file");
        std::fs::create_dir(home.project().join("docs/folder.md")).expect("a folder");
        for path in ["docs/large.md", "docs/binary.md", "docs/folder.md"] {
            assert_eq!(
                client.refused("doc-read", json!({"path": path})).await,
                "read_error",
                "{path}"
            );
        }
        let tour = client.good("doc-read", json!({"path": "beamtalk:tour"})).await;
        assert!(
            tour["text"]
                .as_str()
                .is_some_and(|text| text.contains("beamtalk"))
        );
        assert_eq!(tour["writable"], false);
    });
    assert_eq!(std::fs::read_to_string(&outside).expect("text"), "secret");
    assert_eq!(read(&home, "_build/note.md"), "made");
}

/// A document is written for exactly what was read, keeps its mode, is recorded, and is listed by path and title.
#[test]
fn a_document_is_written_for_what_was_read() {
    let home = started("written", &[]);
    let text = "# The guide\n\n```beamtalk\n1 + 2 // => 3\n```\n";
    block_on(async {
        let client = Client::of(&home).await;
        let made = client
            .good("doc-write", json!({"path": "docs/deep/guide.md", "text": text}))
            .await;
        assert_eq!(made["sha256"], sha256(text));
        assert_eq!((&made["classes"], &made["errors"]), (&json!([]), &json!([])));
        assert_eq!(read(&home, "docs/deep/guide.md"), text);
        let again = client
            .ask(
                "doc-write",
                json!({"path": "docs/deep/guide.md", "text": "x", "base_sha256": null}),
            )
            .await;
        assert_eq!(again["error"]["kind"], "file_changed");
        assert_eq!(again["error"]["details"]["text"], text);
        let path = home.project().join("docs/deep/guide.md");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).expect("a mode");
        write(&home, "docs/deep/guide.md", "outside\n");
        let stale = client
            .ask(
                "doc-write",
                json!({"path": "docs/deep/guide.md", "text": "mine", "base_sha256": sha256(text)}),
            )
            .await;
        assert_eq!(stale["error"]["kind"], "file_changed");
        assert_eq!(
            stale["error"]["details"],
            json!({"text": "outside\n", "sha256": sha256("outside\n")})
        );
        assert_eq!(read(&home, "docs/deep/guide.md"), "outside\n");
        let now = client
            .good("doc-read", json!({"path": "docs/deep/guide.md"}))
            .await;
        assert_eq!(
            (&now["writable"], &now["sha256"]),
            (&json!(true), &json!(sha256("outside\n")))
        );
        let mine = json!({"path": "docs/deep/guide.md", "text": text, "base_sha256": now["sha256"]});
        client.good("doc-write", mine).await;
        let mode = path.metadata().expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        std::fs::remove_file(&path).expect("removed");
        let gone = client
            .ask(
                "doc-write",
                json!({"path": "docs/deep/guide.md", "text": "x", "base_sha256": sha256(text)}),
            )
            .await;
        assert_eq!(gone["error"]["details"], json!({"text": null, "sha256": null}));
        write(&home, "docs/deep/guide.md", text);
        for find in ["deep/GUIDE", "the guide"] {
            let list = client.good("doc-list", json!({"find": find})).await;
            let document = &list["documents"][0];
            assert_eq!(
                (
                    &document["path"],
                    &document["title"],
                    &document["cells"],
                    &document["bytes"]
                ),
                (
                    &json!("docs/deep/guide.md"),
                    &json!("The guide"),
                    &json!(1),
                    &json!(text.len())
                )
            );
        }
        let list = client.good("doc-list", json!({"limit": 2})).await;
        assert_eq!(list["documents"].as_array().map(Vec::len), Some(2));
        let audit = client.good("audit", json!({"type": ["doc"]})).await;
        assert_eq!(audit["records"][0]["path"], "docs/deep/guide.md");
        assert_eq!(
            audit["records"].as_array().map(Vec::len),
            Some(2),
            "only what was written"
        );
    });
}

/// A source that is written is loaded; one that does not compile is written all the same and leaves the image alone; one
/// with pending changes is not written.
#[test]
fn a_source_is_written_and_loaded() {
    let home = started("sources", &[]);
    block_on(async {
        let client = Client::of(&home).await;
        let before = read(&home, "src/lamp.bt");
        let write = |from: &str, text: &str| json!({"path": "src/lamp.bt", "text": text, "base_sha256": sha256(from)});
        let changed = before.replace("last => 99", "last => 77");
        let answer = client.good("doc-write", write(&before, &changed)).await;
        assert_eq!(answer["classes"], json!(["Lamp"]));
        assert_eq!(client.text("Lamp spawn last").await, "77");
        assert_eq!(client.pending().await, Vec::<String>::new());
        let broken = changed.replace("last => 77", "last => (");
        let answer = client.good("doc-write", write(&changed, &broken)).await;
        assert_eq!(answer["errors"].as_array().map(Vec::len), Some(1), "{answer:?}");
        assert_eq!(read(&home, "src/lamp.bt"), broken);
        assert_eq!(client.text("Lamp spawn last").await, "77");
        client.good("doc-write", write(&broken, &changed)).await;
        client.save("Lamp", "last", "last => 1").await;
        client.save("Lamp", "isOn", "isOn => true").await;
        let refused = client.ask("doc-write", write(&changed, &before)).await;
        assert_eq!(refused["error"]["kind"], "pending_changes");
        assert_eq!(
            refused["error"]["message"],
            "flush or revert 2 changes of Lamp first"
        );
        assert_eq!(read(&home, "src/lamp.bt"), changed);
        client
            .good(
                "doc-write",
                json!({"path": "src/Fresh.bt", "text": "Value subclass: Fresh\n\n  one => 1\n"}),
            )
            .await;
        assert_eq!(client.text("Fresh new one").await, "1");
    });
}

/// An observer reads documents and sources, and neither settings nor native code; it writes nothing.
#[test]
fn an_observer_reads_documents_only() {
    let home = started("observes", &[]);
    write(&home, "src/native.erl", "-module(native).\n");
    let created = home.run(&["workspace", "token", "create", "viewer", "--role", "observer"]);
    let text = String::from_utf8_lossy(&created.stdout).into_owned();
    let token = text
        .split_whitespace()
        .find(|word| word.starts_with("btk_"))
        .expect("a token");
    block_on(async {
        let greeting = Greeting {
            client: "ide",
            resume: None,
        };
        let (observer, _events) = Connection::open(&home.endpoint(), "token", token, greeting)
            .await
            .expect("a connection");
        let kind = |answer: &serde_json::Map<String, Value>| answer["error"]["kind"].clone();
        assert!(request(&observer, "doc-read", json!({"path": "src/lamp.bt"})).await["text"].is_string());
        for path in ["beamtalk.toml", "src/native.erl"] {
            assert_eq!(
                kind(&request(&observer, "doc-read", json!({"path": path})).await),
                "forbidden",
                "{path}"
            );
        }
        let list = request(&observer, "doc-list", json!({})).await;
        let listed = list["documents"].to_string();
        assert!(
            listed.contains("src/lamp.bt") && !listed.contains(".toml") && !listed.contains(".erl"),
            "{listed}"
        );
        let answer = request(&observer, "doc-write", json!({"path": "docs/x.md", "text": "x"})).await;
        assert_eq!(kind(&answer), "forbidden");
    });
    assert!(!exists(&home, "docs/x.md"));
}

/// Whoever asks from a number gets everything after it, in order and once, however much more that is than a queue holds,
/// and what is told meanwhile follows.
#[test]
fn more_news_than_a_queue_holds_are_all_told() {
    let home = started("flood", &[]);
    let (mut raw, _) = kept(&home, "new");
    let write = "1 to: 6000 do: [:i | Transcript show: i printString; cr]";
    ask(&mut raw, &json!({"op": "eval", "id": "e", "code": write}));
    raw.send(&json!({"op": "eval", "id": "f", "code": write}).to_string());
    let since = json!({"op": "subscribe", "id": "s", "channels": ["transcript"], "since": {"transcript": 0}});
    let (_, events) = ask(&mut raw, &since);
    let is_dropped = |event: &Value| event["event"] == "dropped";
    assert!(!events.iter().any(is_dropped), "it was told as fast as it read");
    let mut numbers: Vec<u64> = events.iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert!(numbers.len() >= 12_000, "{} before the answer", numbers.len());
    while numbers.len() < 24_000 {
        let message = raw.message();
        if is_dropped(&message) {
            // Told live it may be too slow, and asks again for what it missed.
            let last = numbers.last().copied();
            raw.send(&json!({"op": "subscribe", "id": "t", "channels": ["transcript"], "since": {"transcript": last}}).to_string());
        }
        let number = message["seq"].as_u64();
        // What was on its way before that comes again.
        numbers.extend(number.filter(|number| *number == numbers.len() as u64 + 1));
    }
    assert_eq!(numbers, (1..=24_000).collect::<Vec<u64>>());
}

/// An error of an evaluation keeps its exception, and what the message that failed was sent to and with; all of it can
/// be looked at. Who did not ask for that gets no references.
#[test]
fn an_error_keeps_what_failed() {
    let home = started("keeps", &[]);
    block_on(async {
        let client = Client::of(&home).await;
        client.text("lamp := Lamp spawn").await;
        for (code, receiver, arguments) in [
            (
                "3 frobnicate: \"with\" and: #(1, 2)",
                "3",
                vec!["\"with\"", "#(1, 2)"],
            ),
            ("lamp togle", "Actor(Lamp", vec![]),
            ("#(1, 2) frobnicate", "#(1, 2)", vec![]),
            ("3 perform: #between:and: withArguments: #(1)", "3", vec!["1"]),
        ] {
            let plain = client.ask("eval", json!({"code": code})).await;
            assert!(!plain["error"].to_string().contains("\"ref\""), "{plain:?}");
            let failed = client.ask("eval", json!({"code": code, "hold": true})).await;
            let error = &failed["error"];
            let shown = client.good("inspect", json!({"ref": error["ref"]})).await;
            assert!(
                shown["class"]
                    .as_str()
                    .is_some_and(|class| class.ends_with("Error") || class == "Exception"),
                "{shown:?}"
            );
            let frame = &error["stack"][0];
            let text = client.good("inspect", json!({"ref": frame["receiver"]})).await["text"].clone();
            assert!(
                text.as_str().is_some_and(|text| text.starts_with(receiver)),
                "{code}: {text}"
            );
            let mut told = Vec::new();
            for reference in frame["arguments"].as_array().into_iter().flatten() {
                told.push(client.good("inspect", json!({"ref": reference})).await["text"].clone());
            }
            assert_eq!(told, arguments, "{code}");
        }
    });
}
