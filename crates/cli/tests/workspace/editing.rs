//! Live editing, through the real binary: the image changes at once, files change when asked, and nothing else does.

use crate::home::{Home, block_on, kill, kind};
use crate::project::{Client, LAMP, exists, read, started, write};
use serde_json::{Value, json};

const NOTHING: [&str; 0] = [];

#[test]
fn the_project_is_loaded_and_loaded_again_as_far_as_it_changed() {
    let home = started("load", &[]);
    block_on(async {
        let client = Client::of(&home).await;
        assert_eq!(client.value("Lamp sourceFile").await, "src/lamp.bt");
        assert_eq!(client.value("Room size").await, 4, "classes of a dependency");
        let answer = client.good("load-project", json!({})).await;
        assert_eq!(answer["summary"], "Reloaded 0 of 5 files (5 unchanged)");
        client.text("lamp := Lamp spawn").await;
        write(
            &home,
            "src/room.bt",
            "Object subclass: Room\n  class light => 5\n",
        );
        let answer = client.good("load-project", json!({})).await;
        assert_eq!(answer["summary"], "Reloaded 1 of 5 files (4 unchanged)");
        assert_eq!(answer["classes"], json!(["Room"]));
        assert_eq!(client.value("Room light").await, 5);
        let answer = client.good("load-project", json!({"force": true})).await;
        assert_eq!(answer["summary"], "Reloaded 5 of 5 files");
        // What does not build is listed, and its old code stays; the others come in.
        write(
            &home,
            "src/room.bt",
            "Object subclass: Room\n  class light => ((\n",
        );
        write(&home, "src/lamp.bt", &LAMP.replace("=>   self.on", "=> 7"));
        let answer = client.good("load-project", json!({})).await;
        assert_eq!(answer["errors"][0]["path"], "src/room.bt");
        assert_eq!(answer["errors"][0]["line"], 2);
        assert_eq!(
            (client.value("Room light").await, client.value("lamp isOn").await),
            (json!(5), json!(7))
        );
        assert_eq!(
            client.refused("load-project", json!({"path": "src"})).await,
            "file_not_found"
        );
    });
}

#[test]
fn a_project_that_does_not_build_does_not_keep_the_workspace_from_starting() {
    let home = Home::new("broken");
    write(
        &home,
        "beamtalk.toml",
        "[package]\nname = \"orbit\"\nversion = \"0.3.0\"\n",
    );
    write(&home, "src/lamp.bt", "Object subclass: Lamp\n  class a => ((\n");
    home.start(&[]);
    block_on(async {
        let client = Client::of(&home).await;
        assert_eq!(client.error("Lamp a").await, "class_not_found");
        write(&home, "src/lamp.bt", "Object subclass: Lamp\n  class a => 3\n");
        let summary = client.value("(Workspace sync) at: #summary").await;
        assert_eq!(summary, "Reloaded 1 of 1 files");
        assert_eq!(client.value("Lamp a").await, 3);
    });
}

#[test]
fn a_changed_method_is_live_at_once_and_flush_writes_it_and_nothing_else() {
    let home = started("method", &[]);
    block_on(async {
        let client = Client::of(&home).await;
        client.text("lamp := Lamp spawn").await;
        client.text("Lamp >> isOn => 7").await;
        assert_eq!(client.value("lamp isOn").await, 7, "a running actor");
        assert_eq!(client.pending().await, ["Lamp isOn"]);
        let dirty = client.good("dirty", json!({})).await;
        assert_eq!(dirty["dirty"], json!({"Lamp": ["isOn"]}));
        let diff = client.good("diff", json!({"seq": 1})).await;
        let diff = diff["diff"].as_str().expect("a text");
        assert!(
            diff.contains("-  isOn   =>   self.on") && diff.contains("+  isOn => 7"),
            "{diff}"
        );
        client.save("Lamp", "last", "last => 100").await;
        client.save("Lamp", "fresh", "fresh =>\n  self.count").await;
        let make = json!({"class": "Lamp", "selector": "make", "side": "class", "source": "make => 3"});
        client.good("save-method", make).await;
        assert_eq!(
            (client.value("lamp last").await, client.value("Lamp make").await),
            (json!(100), json!(3))
        );
        assert_eq!(read(&home, "src/lamp.bt"), LAMP, "the file only on request");
        let report = client.good("flush", json!({})).await;
        assert_eq!(
            (&report["flushed"], &report["files"]),
            (&json!(4), &json!([{"file": "src/lamp.bt", "kind": "changed"}]))
        );
        let expected = LAMP
            .replace("isOn   =>   self.on", "isOn => 7")
            .replace("class   make => Lamp spawn", "class   make => 3")
            .replace("last => 99\n", "last => 100\n\n  fresh =>\n    self.count\n");
        assert_eq!(read(&home, "src/lamp.bt"), expected);
        assert_eq!(client.pending().await, NOTHING);
        // Taking one out.
        client
            .good("remove-method", json!({"class": "Lamp", "selector": "last"}))
            .await;
        assert_eq!(client.error("lamp last").await, "does_not_understand");
        client.good("flush", json!({})).await;
        assert_eq!(
            read(&home, "src/lamp.bt"),
            expected.replace("  last => 100\n\n", "")
        );
        let nope = json!({"class": "Lamp", "selector": "nope"});
        assert_eq!(client.refused("remove-method", nope).await, "selector_not_found");
        // A load of what was flushed changes nothing that can be seen.
        client.good("load-project", json!({})).await;
        assert_eq!(client.value("lamp isOn").await, 7);
    });
}

#[test]
fn what_does_not_compile_changes_nothing_anywhere() {
    let home = started("failed", &[]);
    block_on(async {
        let client = Client::of(&home).await;
        client.text("lamp := Lamp spawn").await;
        for code in [
            "Lamp >> isOn => ((",
            "Lamp compile: #isOn source: \"isOn => ((\"",
            "Lamp compile: #other source: \"isOn => 3\"",
            "Actor subclass: Lamp\n  state: on = ((",
            "Workspace newClass: \"Object subclass: Fan\n  class a => ((\" at: \"src/fan.bt\"",
        ] {
            assert_eq!(client.error(code).await, "compile_failed", "{code}");
        }
        let save = json!({"class": "Lamp", "selector": "isOn", "source": "isOn => undefinedThing"});
        assert_eq!(client.refused("save-method", save).await, "compile_failed");
        let unknown = json!({"class": "Nope", "selector": "a", "source": "a => 1"});
        assert_eq!(client.refused("save-method", unknown).await, "class_not_found");
        write(&home, "src/lamp.bt", "Actor subclass: Lamp\n  state: on = ((\n");
        assert_eq!(
            client.refused("reload", json!({"class": "Lamp"})).await,
            "compile_failed"
        );
        assert_eq!(client.value("lamp isOn").await, false);
        assert_eq!(client.value("Lamp spawn last").await, 99);
        assert_eq!(client.pending().await, NOTHING);
        assert!(!exists(&home, "src/fan.bt"));
    });
}

#[test]
fn conflicts_are_found_and_the_entries_stay() {
    let home = started("conflict", &[]);
    block_on(async {
        let client = Client::of(&home).await;
        let reason = |report: &serde_json::Map<String, Value>| report["conflicts"][0]["reason"].clone();
        client.save("Lamp", "isOn", "isOn => 7").await;
        let edited = format!("// moved down\n{LAMP}").replace("=>   self.on\n", "=> self.on not\n");
        write(&home, "src/lamp.bt", &edited);
        let report = client.good("flush", json!({})).await;
        assert_eq!(
            (reason(&report), &report["flushed"]),
            (json!("external_edit"), &json!(0))
        );
        assert_eq!(read(&home, "src/lamp.bt"), edited);
        assert_eq!(client.pending().await, ["Lamp isOn"]);
        client.good("flush", json!({"force_file": "src/lamp.bt"})).await;
        let spliced = edited.replace("isOn   => self.on not", "isOn => 7");
        assert_eq!(read(&home, "src/lamp.bt"), spliced);
        // Gone, and back.
        client.save("Lamp", "isOn", "isOn => 8").await;
        std::fs::remove_file(home.project().join("src/lamp.bt")).expect("removed");
        let report = client.good("flush", json!({})).await;
        assert_eq!(reason(&report), "file_missing");
        write(&home, "src/lamp.bt", &spliced);
        client.good("flush", json!({})).await;
        assert_eq!(
            read(&home, "src/lamp.bt"),
            spliced.replace("isOn => 7", "isOn => 8")
        );
        // Writing at once meets the same.
        client.save("Lamp", "isOn", "isOn => 8.5").await;
        write(&home, "src/lamp.bt", &spliced);
        client.text("Workspace autoflush: true").await;
        let late = json!({"class": "Lamp", "selector": "last", "source": "last => 1"});
        let answer = client.good("save-method", late).await;
        let message = answer["warnings"][0]["message"].as_str().unwrap_or_default();
        assert!(message.contains("ahead of the disk: external_edit"), "{answer:?}");
        assert_eq!(client.pending().await, ["Lamp isOn", "Lamp last"]);
        client.text("Workspace autoflush: false").await;
        client.good("clear-changes", json!({})).await;
        // Another file is flushed although one is in conflict.
        client.save("Lamp", "isOn", "isOn => 9").await;
        let side = json!({"class": "Room", "selector": "light", "side": "class", "source": "light => 1"});
        client.good("save-method", side).await;
        write(&home, "src/lamp.bt", LAMP);
        let report = client.good("flush", json!({})).await;
        assert_eq!(
            (reason(&report), &report["files"][0]["file"]),
            (json!("external_edit"), &json!("src/room.bt"))
        );
    });
}

#[test]
fn changes_are_undone_by_changes() {
    let home = started("revert", &[]);
    block_on(async {
        let client = Client::of(&home).await;
        client.text("lamp := Lamp spawn").await;
        let modification = client.save("Lamp", "isOn", "isOn => 9").await;
        client.good("revert", json!({"seq": modification})).await;
        assert_eq!(client.value("lamp isOn").await, false);
        let addition = client.save("Lamp", "brandNew", "brandNew => 9").await;
        client.good("revert", json!({"seq": addition})).await;
        assert_eq!(client.error("lamp brandNew").await, "does_not_understand");
        let removed = client
            .good("remove-method", json!({"class": "Lamp", "selector": "last"}))
            .await;
        client
            .good("revert", json!({"seq": removed["entry"]["seq"]}))
            .await;
        assert_eq!(client.value("lamp last").await, 99);
        let removed = client.good("remove-class", json!({"class": "Room"})).await;
        assert_eq!(client.error("Room size").await, "class_not_found");
        let back = client
            .good("revert", json!({"seq": removed["entry"]["seq"]}))
            .await;
        assert!(back["entry"].is_object());
        assert_eq!(client.value("Room size").await, 4);
        assert_eq!(client.pending().await, NOTHING);
        client.good("flush", json!({"confirm_destructive": true})).await;
        assert_eq!(read(&home, "src/lamp.bt"), LAMP);
        assert!(
            exists(&home, "src/room.bt"),
            "nobody deletes the file of a living class"
        );
        // Written ones are the version control system's task.
        let written = client.save("Lamp", "isOn", "isOn => 9").await;
        client.good("flush", json!({})).await;
        assert_eq!(
            client.refused("revert", json!({"seq": written})).await,
            "revert_not_possible"
        );
        // A method that came later than its file was read comes back like any other.
        client.save("Lamp", "late", "late => 5").await;
        client.good("flush", json!({})).await;
        for (op, fields) in [
            ("remove-method", json!({"class": "Lamp", "selector": "late"})),
            (
                "save-method",
                json!({"class": "Lamp", "selector": "late", "source": "late => 6"}),
            ),
        ] {
            let changed = client.good(op, fields).await;
            client
                .good("revert", json!({"seq": changed["entry"]["seq"]}))
                .await;
            assert_eq!(client.value("lamp late").await, 5, "{op}");
        }
        // A class of the prompt gets its previous definition back.
        client.text("Object subclass: Pad\n  class a => 1").await;
        let again = client
            .good("eval", json!({"code": "Object subclass: Pad\n  class a => 2"}))
            .await;
        client
            .good("revert", json!({"seq": again["entries"][0]["seq"]}))
            .await;
        assert_eq!(client.value("Pad a").await, 1);
        client.save("Lamp", "isOn", "isOn => 10").await;
        client.good("clear-changes", json!({})).await;
        assert_eq!(client.pending().await, NOTHING);
        assert_eq!(client.value("lamp isOn").await, 10, "the image keeps the code");
    });
}

/// A class that no file has is in memory alone: taking it out and back loses nothing, nor what was changed of another before.
#[test]
fn a_removed_class_comes_back_as_the_image_had_it() {
    let home = started("back", &[]);
    block_on(async {
        let client = Client::of(&home).await;
        let new = json!({"source": "Object subclass: Fan\n  class speed => 3\n", "path": "src/fan.bt"});
        client.good("save-class", new.clone()).await;
        let remove = async |class: &str| {
            let removed = client.good("remove-class", json!({"class": class})).await;
            removed["entry"]["seq"].clone()
        };
        let removed = remove("Fan").await;
        assert_eq!(client.error("Fan speed").await, "class_not_found");
        client.good("revert", json!({"seq": removed})).await;
        assert_eq!(client.value("Fan speed").await, 3);
        remove("Fan").await;
        let again = json!({"source": "Object subclass: Fan\n  class speed => 4\n", "path": "src/fan.bt"});
        client.good("save-class", again).await;
        assert_eq!(client.value("Fan speed").await, 4);
        assert_eq!(
            client.refused("save-class", new).await,
            "target_exists",
            "the file is promised"
        );
        let report = client.good("flush", json!({})).await;
        assert_eq!(
            (&report["new_classes"], &report["removed_classes"]),
            (&json!(["Fan"]), &json!([]))
        );
        assert!(read(&home, "src/fan.bt").contains("speed => 4"));

        let patch = json!({"class": "Room", "selector": "size", "side": "class", "source": "size => 5"});
        client.good("save-method", patch).await;
        let removed = remove("Room").await;
        client.good("revert", json!({"seq": removed})).await;
        assert_eq!(client.value("Room size").await, 5);
        client.good("flush", json!({})).await;
        assert!(read(&home, "src/room.bt").contains("size => 5"));
        assert_eq!(client.value("Room size").await, 5);
    });
}

/// Nobody here has the texts of the library's methods; what was changed or taken out comes back all the same.
#[test]
fn changes_of_the_library_are_undone() {
    let home = started("library", &[]);
    block_on(async {
        let client = Client::of(&home).await;
        let changes = [
            ("Integer", "max:", "max: other => 77", "3 max: 4", json!(4)),
            ("List", "sort", "sort => 77", "#(2, 1) sort last", json!(2)),
            ("Collection", "sum", "sum => 77", "#(1, 2) sum", json!(3)),
        ];
        for (class, selector, source, code, value) in changes {
            for op in ["save-method", "try-method", "remove-method"] {
                for undo in ["revert", "discard"] {
                    assert_eq!(client.value(code).await, value, "{op} {class} {selector}");
                    let mut fields = json!({"class": class, "selector": selector});
                    if op != "remove-method" {
                        fields["source"] = source.into();
                    }
                    let changed = client.good(op, fields).await;
                    client.good(undo, json!({"seq": changed["entry"]["seq"]})).await;
                    assert_eq!(client.value(code).await, value, "{op}, {undo} {class} {selector}");
                }
            }
        }
        // What no written send would see is refused.
        for (class, selector) in [
            ("Integer", "+"),
            ("String", "++"),
            ("String", "<="),
            ("Dictionary", "at:put:"),
            ("Block", "value:"),
            ("True", "not"),
        ] {
            let names = ["a", "b"];
            let head: String = match selector.matches(':').count() {
                0 if selector == "not" => selector.to_owned(),
                0 => format!("{selector} a"),
                _ => selector
                    .split_terminator(':')
                    .zip(names)
                    .map(|(part, name)| format!("{part}: {name} "))
                    .collect(),
            };
            let patch = json!({"class": class, "selector": selector, "source": format!("{head} => 1")});
            let answer = client.ask("save-method", patch).await;
            assert_eq!(
                answer["error"]["diagnostics"][0]["code"], "E0239",
                "{class} {selector}: {answer:?}"
            );
            let answer = client
                .ask("remove-method", json!({"class": class, "selector": selector}))
                .await;
            assert_eq!(
                answer["error"]["diagnostics"][0]["code"], "E0239",
                "{class} {selector}: {answer:?}"
            );
        }
        // Undone twice, done again, and twice on top of each other.
        let patch = |value: u32| json!({"class": "Integer", "selector": "max:", "source": format!("max: other => {value}")});
        let first = client.good("save-method", patch(7)).await["entry"]["seq"].clone();
        let second = client.good("save-method", patch(8)).await["entry"]["seq"].clone();
        for (seq, value) in [(&second, 7), (&first, 4), (&first, 7)] {
            client.good("revert", json!({"seq": seq})).await;
            assert_eq!(client.value("3 max: 4").await, value);
        }
    });
}

#[test]
fn classes_are_made_and_removed_with_their_files() {
    let home = started("classes", &[]);
    block_on(async {
        let client = Client::of(&home).await;
        let fan = "Object subclass: Fan\n  class speed => 3\n";
        let save = |source: &str, path: &str| json!({"source": source, "path": path});
        let other = fan.replace("Fan", "Ventilator");
        for (source, path, expected) in [
            (other.as_str(), "src/lamp.bt", "target_exists"),
            (&other, "../ventilator.bt", "target_outside_project"),
            (&other, "src/other.bt", "class_name_mismatch"),
            (LAMP, "src/more/lamp.bt", "class_already_loaded"),
        ] {
            assert_eq!(
                client.refused("save-class", save(source, path)).await,
                expected,
                "{path}"
            );
        }
        assert_eq!(client.value("Lamp spawn last").await, 99);
        client.good("save-class", save(fan, "src/fan.bt")).await;
        assert_eq!(client.value("Fan speed").await, 3);
        assert!(!exists(&home, "src/fan.bt"));
        write(&home, "src/fan.bt", "// mine\n");
        let report = client.good("flush", json!({})).await;
        assert_eq!(report["conflicts"][0]["reason"], "target_exists");
        std::fs::remove_file(home.project().join("src/fan.bt")).expect("removed");
        let report = client.good("flush", json!({})).await;
        assert_eq!(report["new_classes"], json!(["Fan"]));
        assert_eq!(read(&home, "src/fan.bt"), fan);
        // Removal leaves the file until that is confirmed.
        client.good("remove-class", json!({"class": "Fan"})).await;
        assert_eq!(client.error("Fan speed").await, "class_not_found");
        let report = client.good("flush", json!({})).await;
        assert_eq!(report["skipped"][0]["reason"], "destructive");
        assert!(exists(&home, "src/fan.bt"));
        let report = client.good("flush", json!({"confirm_destructive": true})).await;
        assert_eq!(report["removed_classes"], json!(["Fan"]));
        assert!(!exists(&home, "src/fan.bt"));
        assert_eq!(
            client.refused("remove-class", json!({"class": "Integer"})).await,
            "forbidden"
        );
        assert_eq!(
            client.refused("remove-class", json!({"class": "Nope"})).await,
            "class_not_found"
        );
    });
}

#[test]
fn messages_in_the_image_reach_the_same_handlers() {
    let home = started("image", &[]);
    block_on(async {
        let client = Client::of(&home).await;
        client.text("lamp := Lamp spawn").await;
        client.text("Lamp compile: #isOn source: \"isOn => 21\"").await;
        assert_eq!(client.value("lamp isOn").await, 21);
        assert_eq!(client.text("Workspace changes").await, "ChangeLog with 1 entry");
        let diff = client.value("Workspace changes activeEntries last diff").await;
        assert!(
            diff.as_str()
                .unwrap()
                .contains("-   isOn   =>   self.on\n+   isOn => 21"),
            "{diff}"
        );
        assert_eq!(client.value("Workspace flush at: #flushed").await, 1);
        assert!(read(&home, "src/lamp.bt").contains("  isOn => 21\n"));
        client.text("Lamp removeSelector: #last").await;
        assert_eq!(client.error("lamp last").await, "does_not_understand");
        client
            .text("Workspace changes revert: Workspace changes activeEntries last")
            .await;
        assert_eq!(client.value("lamp last").await, 99);
        // Ephemeral ones are not written, and pruned after a flush of their session.
        client.text("Lamp tryCompile: #isOn source: \"isOn => 22\"").await;
        assert_eq!(client.value("lamp isOn").await, 22);
        client.text("Lamp >> toggle => 5").await;
        client.text("Workspace flush").await;
        assert!(!read(&home, "src/lamp.bt").contains("22"));
        assert_eq!(client.pending().await, NOTHING);
        client.text("Lamp reload").await;
        assert_eq!(client.value("lamp isOn").await, 21);
        assert_eq!(client.error("Integer reload").await, "no_source_file");
        assert_eq!(
            client.refused("reload", json!({"class": "Integer"})).await,
            "no_source_file"
        );
        // Files come in.
        write(
            &home,
            "src/room.bt",
            "Object subclass: Room\n  class light => 5\n",
        );
        let changed = client.value("Workspace sync at: #changedCount").await;
        assert!(changed.as_u64().is_some_and(|count| count >= 1), "{changed}");
        assert_eq!(client.value("Room light").await, 5);
        write(
            &home,
            "src/room.bt",
            "Object subclass: Room\n  class light => 6\n",
        );
        assert_eq!(client.text("Workspace load: \"src/room.bt\"").await, "#(Room)");
        assert_eq!(client.value("Room light").await, 6);
        assert_eq!(client.error("Workspace load: \"nope.bt\"").await, "not_found");
        client
            .text("Workspace newClass: \"Object subclass: Vent\n  class a => 1\n\" at: \"src/vent.bt\"")
            .await;
        client.text("Room removeFromSystem").await;
        client.text("Workspace flush").await;
        assert!(exists(&home, "src/vent.bt") && exists(&home, "src/room.bt"));
        client.text("Workspace flushIncludingDestructive").await;
        assert!(!exists(&home, "src/room.bt"));
        // Every change is written at once, and the setting outlives the workspace.
        assert_eq!(client.value("Workspace autoflush").await, false);
        client.text("Workspace autoflush: true").await;
        let answer = client.good("eval", json!({"code": "Lamp >> isOn => 31"})).await;
        assert_eq!(answer["entries"][0]["settled"], "flushed");
        assert!(read(&home, "src/lamp.bt").contains("  isOn => 31\n"));
        client.text("Vent removeFromSystem").await;
        assert!(exists(&home, "src/vent.bt"), "autoflush implies no deletion");
        // What cannot be written is told, and stays.
        write(&home, "src/lamp.bt", "Actor subclass: Lamp\n  state: on = ((\n");
        let answer = client.good("eval", json!({"code": "Lamp >> isOn => 32"})).await;
        let message = answer["warnings"][0]["message"].as_str().unwrap_or_default();
        assert!(message.contains("in memory only"), "{answer:?}");
        assert_eq!(client.value("lamp isOn").await, 32);
        let metadata = std::fs::read_to_string(home.workspace().join("metadata.json")).expect("metadata");
        let metadata: Value = serde_json::from_str(&metadata).expect("JSON");
        assert_eq!(metadata["settings"]["autoflush"], true);
    });
}

#[test]
fn classes_of_others_are_patched_in_memory_only() {
    let home = started("others", &[]);
    block_on(async {
        let client = Client::of(&home).await;
        let size = json!({"class": "Screw", "selector": "size", "side": "class", "source": "size => 40"});
        client.good("save-method", size).await;
        assert_eq!(client.value("Room size").await, 40);
        client.text("Integer >> zork => self + 1").await;
        assert_eq!(client.value("3 zork").await, 4);
        client.text("Object subclass: Pad\n  class a => 1").await;
        let report = client.good("flush", json!({})).await;
        let skipped: Vec<(&Value, &Value)> = report["skipped"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|skip| (&skip["class"], &skip["reason"]))
            .collect();
        assert_eq!(
            skipped,
            [
                (&json!("Screw"), &json!("dependency:parts")),
                (&json!("Integer"), &json!("stdlib")),
                (&json!("Pad"), &json!("dynamic")),
            ]
        );
        assert_eq!(
            read(&home, "../parts/src/screw.bt"),
            "Object subclass: Screw\n  class size => 4\n"
        );
    });
}

#[test]
fn nothing_acknowledged_is_lost_when_the_daemon_is_killed() {
    let home = started("killed", &[]);
    block_on(async {
        let client = Client::of(&home).await;
        client.save("Lamp", "isOn", "isOn => 77").await;
        let attempt = json!({"class": "Lamp", "selector": "last", "source": "last => 1"});
        client.good("try-method", attempt).await;
    });
    let pid = home.info()["pid"].as_u64().expect("a pid");
    kill(u32::try_from(pid).expect("a pid"));
    home.start(&[]);
    block_on(async {
        let client = Client::of(&home).await;
        assert_eq!(client.value("Lamp spawn isOn").await, false, "files count");
        assert_eq!(client.pending().await, NOTHING);
        let all = client.good("changes", json!({"all": true})).await;
        let rows: Vec<(&Value, &Value, &Value)> = all["entries"]
            .as_array()
            .expect("entries")
            .iter()
            .map(|entry| (&entry["selector"], &entry["orphan"], &entry["state"]))
            .collect();
        assert_eq!(
            rows,
            [
                (&json!("isOn"), &json!(true), &json!("waiting")),
                (&json!("last"), &json!(false), &json!("settled")),
            ]
        );
        client.good("flush", json!({})).await;
        assert_eq!(
            read(&home, "src/lamp.bt"),
            LAMP,
            "an earlier start's are not written"
        );
        client.save("Lamp", "isOn", "isOn => 78").await;
    });
    let restarted = home.run(&["workspace", "restart", "--clean"]);
    assert!(restarted.status.success());
    block_on(async {
        let client = Client::of(&home).await;
        assert_eq!(client.value("Lamp spawn isOn").await, false);
        assert_eq!(client.pending().await, NOTHING);
        client.good("flush", json!({})).await;
        assert_eq!(read(&home, "src/lamp.bt"), LAMP);
    });
    assert!(
        std::fs::read_dir(home.workspace().join("changes/archive"))
            .expect("an archive")
            .next()
            .is_some()
    );
}

/// What is saved into a class of a file is refused exactly when the file with it would be, so that a flush never writes
/// what does not compile.
#[test]
fn a_method_is_refused_when_its_file_would_be() {
    let home = started("refused-alike", &[]);
    block_on(async {
        let client = Client::of(&home).await;
        client
            .good(
                "load-source",
                json!({"source": "abstract Object subclass: Shape\n  class a => 1"}),
            )
            .await;
        for (body, is_good) in [
            ("Lamp new", false),
            ("Lamp new: #{#on => true}", false),
            ("Room new", false),
            ("#(1) collect: [:each | Lamp new]", false),
            ("Lamp spawn", true),
            ("3 + 4", true),
        ] {
            write(
                &home,
                "other/tried.bt",
                &format!("Object subclass: Tried\n  class tried => {body}\n"),
            );
            let loaded = client.ask("load-file", json!({"path": "other/tried.bt"})).await;
            let is_loaded = kind(&loaded) == "none" && loaded["errors"] == json!([]);
            assert_eq!(is_loaded, is_good, "{body}: {loaded:?}");
            for (class, side) in [("Lamp", "instance"), ("Room", "class")] {
                let source = format!("tried => {body}");
                let method = json!({"class": class, "selector": "tried", "source": source, "side": side});
                let saved = client.ask("save-method", method).await;
                let expected = if is_good { "none" } else { "compile_failed" };
                assert_eq!(kind(&saved), expected, "{class}: {body}");
                let side = if side == "class" { " class" } else { "" };
                assert_eq!(
                    client.error(&format!("{class}{side} >> {source}")).await,
                    expected,
                    "{body}"
                );
            }
        }
        // Classes that stand in no file are as free as the session.
        assert_eq!(client.error("Shape class >> b => Lamp new").await, "none");
    });
}

/// What is generated for fields is there as long as no method takes its place.
#[test]
fn a_generated_method_comes_back_when_the_one_in_its_place_goes() {
    let home = started("generated", &[]);
    block_on(async {
        let client = Client::of(&home).await;
        write(
            &home,
            "src/dot.bt",
            "Value subclass: Dot\n  field: x = 1\n\n  twice => self x * 2\n",
        );
        client.good("load-project", json!({})).await;
        let remove = async |selector: &str, side: &str| {
            let gone = json!({"class": "Dot", "selector": selector, "side": side});
            client.good("remove-method", gone).await
        };
        // Nothing took its place: it belongs to the field.
        for (selector, side) in [("x", "instance"), ("withX:", "instance"), ("x:", "class")] {
            let gone = json!({"class": "Dot", "selector": selector, "side": side});
            assert_eq!(
                client.refused("remove-method", gone).await,
                "forbidden",
                "{selector}"
            );
        }
        assert_eq!(client.error("Dot removeSelector: #x").await, "forbidden");
        assert_eq!(client.text("(Dot x: 3) withX: 4").await, "Dot(x: 4)");
        client.text("Dot >> x => 5").await;
        client.text("Dot >> withX: n => 6").await;
        client.text("Dot class >> x: n => 7").await;
        assert_eq!(client.value("Dot new x + Dot new twice").await, 15);
        assert_eq!(client.value("Dot x: 2").await, 7);
        remove("x", "instance").await;
        remove("withX:", "instance").await;
        remove("x:", "class").await;
        let generated = "#(Dot new x, Dot new twice, (Dot x: 3) withX: 4)";
        assert_eq!(client.text(generated).await, "#(1, 2, Dot(x: 4))");
        assert_eq!(client.pending().await, [""; 0]);
        // The same where the file has the method, and the module that was loaded nothing generated.
        client.text("Dot >> x => 5").await;
        client.good("flush", json!({})).await;
        client.good("load-project", json!({})).await;
        assert_eq!(client.value("Dot new x + Dot new twice").await, 15);
        remove("x", "instance").await;
        assert_eq!(client.text(generated).await, "#(1, 2, Dot(x: 4))");
        assert_eq!(client.pending().await, ["Dot x"]);
        client.good("flush", json!({})).await;
        client.good("load-project", json!({})).await;
        assert_eq!(client.text(generated).await, "#(1, 2, Dot(x: 4))");
        // And of a class that was typed.
        client.text("Value subclass: Mark\n  field: y = 1").await;
        client.text("Mark >> y => 5").await;
        client.text("Mark removeSelector: #y").await;
        assert_eq!(client.value("Mark new y").await, 1);
    });
}
