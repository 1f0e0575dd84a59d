//! Disk and image changed at once, through the real binary: nothing a person wrote is overwritten or lost without a choice.

use crate::home::block_on;
use crate::project::{Client, LAMP, exists, read, started, write};
use serde_json::{Map, Value, json};

const NOTHING: [&str; 0] = [];

fn reason(answer: &Map<String, Value>) -> &str {
    answer["conflicts"][0]["reason"].as_str().unwrap_or("none")
}

/// The lamp with `isOn` edited and a method added, as an editor would leave it.
fn edited() -> String {
    LAMP.replace("=>   self.on\n", "=> self.on not\n")
        .replace("last => 99\n", "last => 99\n\n  // by hand\n  added => 1\n")
}

#[test]
fn an_edit_on_disk_before_a_patch_is_not_overwritten() {
    let home = started("before", &[]);
    block_on(async {
        let client = Client::of(&home).await;
        assert_eq!(client.value("Lamp spawn isOn").await, false);
        write(&home, "src/lamp.bt", &edited());
        client.text("Lamp >> isOn => 7").await;
        let report = client.good("flush", json!({})).await;
        assert_eq!(reason(&report), "external_edit");
        assert_eq!(report["conflicts"][0]["detail"], "Lamp>>isOn");
        assert_eq!(read(&home, "src/lamp.bt"), edited());
        // All three are shown.
        let diff = client.good("diff", json!({"seq": 1})).await;
        let diff = diff["diff"].as_str().expect("a text");
        for part in ["self.on", "isOn => 7", "self.on not"] {
            assert!(diff.contains(part), "{part}: {diff}");
        }
        let sides = client
            .good("change-sides", json!({"class": "Lamp", "selector": "isOn"}))
            .await;
        assert_eq!(sides["places"][0]["selector"], "isOn");
        let sha = sides["disk_sha256"].clone();
        // A choice counts for what was shown.
        write(
            &home,
            "src/lamp.bt",
            &edited().replace("self.on not", "self.on not not"),
        );
        let late = json!({"from": "image", "class": "Lamp", "disk_sha256": sha});
        assert_eq!(client.refused("take", late).await, "file_changed");
        write(&home, "src/lamp.bt", &edited());
        client
            .good(
                "take",
                json!({"from": "image", "class": "Lamp", "disk_sha256": sha}),
            )
            .await;
        // It counts for no later version.
        write(&home, "src/lamp.bt", &edited().replace("self.on not", "3"));
        assert_eq!(reason(&client.good("flush", json!({})).await), "external_edit");
        write(&home, "src/lamp.bt", &edited());
        let report = client.good("flush", json!({})).await;
        assert_eq!(
            (reason(&report), &report["merged"]),
            ("none", &json!(["src/lamp.bt"]))
        );
        assert_eq!(
            read(&home, "src/lamp.bt"),
            edited().replace("isOn   => self.on not", "isOn => 7")
        );
        assert_eq!(
            client.error("Lamp spawn added").await,
            "does_not_understand",
            "a flush loads nothing"
        );
        client.good("load-project", json!({})).await;
        assert_eq!(client.value("Lamp spawn added").await, 1);
        assert_eq!(client.value("Lamp spawn isOn").await, 7);
    });
}

#[test]
fn a_class_defined_anew_is_merged_with_the_disk() {
    let home = started("merge", &[]);
    block_on(async {
        let client = Client::of(&home).await;
        let other = LAMP.replace("last => 99\n", "last => 100\n\n  added => 1\n");
        write(&home, "src/lamp.bt", &other);
        client
            .text("Actor subclass: Lamp\n  state: on = false\n  state: count =   0\n  isOn => 7\n  toggle =>\n    self.count := self.count + 1.   // counted\n    self.on := self.on not\n  class   make => Lamp spawn\n  last => 99")
            .await;
        let report = client.good("flush", json!({})).await;
        assert_eq!(reason(&report), "none", "{report:?}");
        assert_eq!(
            read(&home, "src/lamp.bt"),
            other.replace("isOn   =>   self.on", "isOn => 7")
        );
    });
}

#[test]
fn loading_keeps_what_is_pending_and_tells_conflicts() {
    let home = started("loading", &[]);
    block_on(async {
        let client = Client::of(&home).await;
        client.text("Lamp >> isOn => 7").await;
        client.text("Lamp >> fresh => 8").await;
        for op in ["load-project", "reload"] {
            write(&home, "src/lamp.bt", &edited());
            let answer = client.good(op, json!({"class": "Lamp"})).await;
            assert_eq!(reason(&answer), "external_edit", "{op}: {answer:?}");
            for (code, value) in [("isOn", 7), ("fresh", 8), ("added", 1), ("last", 99)] {
                assert_eq!(
                    client.value(&format!("Lamp spawn {code}")).await,
                    value,
                    "{op} {code}"
                );
            }
            assert_eq!(client.pending().await, ["Lamp isOn", "Lamp fresh"], "{op}");
            // The base has not moved: it is still a conflict.
            assert_eq!(
                reason(&client.good("flush", json!({})).await),
                "external_edit",
                "{op}"
            );
            assert_eq!(read(&home, "src/lamp.bt"), edited(), "{op}");
        }
        // The disk's version of one, the image's of the other.
        client
            .good(
                "take",
                json!({"from": "disk", "class": "Lamp", "selector": "isOn"}),
            )
            .await;
        assert_eq!(client.value("Lamp spawn isOn").await, true);
        assert_eq!(client.pending().await, ["Lamp fresh"]);
        let report = client.good("flush", json!({})).await;
        assert_eq!((reason(&report), &report["flushed"]), ("none", &json!(1)));
        assert!(read(&home, "src/lamp.bt").contains("self.on not"));
        // What was added at the prompt, flushed and removed on disk is gone after a load.
        write(&home, "src/lamp.bt", LAMP);
        client.good("load-project", json!({})).await;
        assert_eq!(client.error("Lamp spawn fresh").await, "does_not_understand");
    });
}

#[test]
fn changes_are_set_aside_and_a_merged_text_settles() {
    let home = started("aside", &[]);
    block_on(async {
        let client = Client::of(&home).await;
        client.text("Lamp >> isOn => 7").await;
        client.text("Lamp >> fresh => 8").await;
        client
            .good("remove-method", json!({"class": "Lamp", "selector": "last"}))
            .await;
        let fan = json!({"source": "Object subclass: Fan\n  class speed => 3\n", "path": "src/fan.bt"});
        client.good("save-class", fan).await;
        client.text("Object subclass: Pad\n  class a => 1").await;
        client.good("remove-class", json!({"class": "Room"})).await;
        write(&home, "src/lamp.bt", &edited());
        assert_eq!(client.refused("discard", json!({})).await, "missing_parameter");
        let answer = client.good("discard", json!({"all": true})).await;
        assert_eq!(answer["entries"].as_array().map(Vec::len), Some(6), "{answer:?}");
        assert_eq!(client.pending().await, NOTHING);
        assert_eq!(client.value("Lamp spawn isOn").await, true, "the disk's version");
        assert_eq!(client.value("Lamp spawn last").await, 99);
        assert_eq!(client.error("Lamp spawn fresh").await, "does_not_understand");
        assert_eq!(client.error("Fan speed").await, "class_not_found");
        assert_eq!(client.error("Pad a").await, "class_not_found");
        assert_eq!(client.value("Room size").await, 4);
        // A text made of both.
        client.text("Lamp >> isOn => 9").await;
        let sides = client.good("change-sides", json!({"file": "src/lamp.bt"})).await;
        let both = edited().replace("self.on not", "10");
        let settle = json!({"file": "src/lamp.bt", "text": both, "disk_sha256": sides["disk_sha256"]});
        write(&home, "src/lamp.bt", LAMP);
        assert_eq!(client.refused("settle", settle.clone()).await, "file_changed");
        write(&home, "src/lamp.bt", &edited());
        client.good("settle", settle).await;
        assert_eq!(read(&home, "src/lamp.bt"), both);
        assert_eq!(client.value("Lamp spawn isOn").await, 10);
        assert_eq!(client.pending().await, NOTHING);
        // A file that is gone is written anew only when chosen.
        client.text("Lamp >> isOn => 11").await;
        std::fs::remove_file(home.project().join("src/lamp.bt")).expect("removed");
        assert_eq!(reason(&client.good("flush", json!({})).await), "file_missing");
        assert_eq!(
            client
                .refused("take", json!({"from": "disk", "class": "Lamp"}))
                .await,
            "file_not_found"
        );
        client
            .good("take", json!({"from": "image", "class": "Lamp"}))
            .await;
        client.good("flush", json!({})).await;
        assert_eq!(
            read(&home, "src/lamp.bt"),
            both.replace("isOn   => 10", "isOn => 11")
        );
    });
}

#[test]
fn undoing_makes_no_chains() {
    let home = started("chains", &[]);
    block_on(async {
        let client = Client::of(&home).await;
        let first = client.save("Lamp", "last", "last => 1").await;
        let second = client.save("Lamp", "last", "last => 2").await;
        client.good("revert", json!({"seq": second})).await;
        assert_eq!(client.value("Lamp spawn last").await, 1);
        assert_eq!(client.pending().await, ["Lamp last"]);
        client.good("revert", json!({"seq": second})).await;
        assert_eq!(client.value("Lamp spawn last").await, 2, "the revert reverted");
        client.good("revert", json!({"seq": first})).await;
        assert_eq!(client.value("Lamp spawn last").await, 99);
        assert_eq!(client.pending().await, NOTHING, "the image is its base");
        let all = client.good("changes", json!({"all": true})).await;
        assert_eq!(all["entries"].as_array().map(Vec::len), Some(2), "no chain");
        client.good("flush", json!({})).await;
        assert_eq!(read(&home, "src/lamp.bt"), LAMP);
    });
}

#[test]
fn a_workspace_without_writing_writes_nothing_by_itself_either() {
    let home = started("reading", &["--read-only-fs"]);
    block_on(async {
        let client = Client::of(&home).await;
        client.text("Workspace autoflush: true").await;
        let answer = client.good("eval", json!({"code": "Lamp >> isOn => 7"})).await;
        let warning = answer["warnings"][0]["message"].as_str().unwrap_or_default();
        assert!(warning.contains("--read-only-fs"), "{answer:?}");
        let settle = json!({"file": "src/lamp.bt", "text": "", "disk_sha256": ""});
        for (op, fields) in [("flush", json!({})), ("settle", settle)] {
            assert_eq!(client.refused(op, fields).await, "capability_disabled", "{op}");
        }
        let fan = json!({"source": "Object subclass: Fan\n  class speed => 3\n", "path": "src/fan.bt"});
        client.good("save-class", fan).await;
        assert_eq!(read(&home, "src/lamp.bt"), LAMP);
        assert!(!exists(&home, "src/fan.bt"));
    });
}

const FAN: &str = "Value subclass: Fan\n  field: x = 0\n  one => 1\n  two => 2\n";

#[test]
fn taking_the_disk_leaves_what_is_in_no_conflict() {
    let home = started("onlyconflicts", &[]);
    write(&home, "src/Fan.bt", FAN);
    block_on(async {
        let client = Client::of(&home).await;
        client.good("load-project", json!({})).await;
        for selection in [json!({"all": true}), json!({"class": "Fan"})] {
            client.text("Fan >> one => 11").await;
            client.text("Fan >> two => 22").await;
            client.text("Fan >> brandNew => 33").await;
            write(&home, "src/Fan.bt", &FAN.replace("one => 1", "one => 100"));
            let mut fields = selection.as_object().cloned().expect("fields");
            fields.insert("from".to_owned(), json!("disk"));
            let taken = client.good("take", Value::Object(fields)).await;
            let pending = client.pending().await;
            assert_eq!(pending, ["Fan two", "Fan brandNew"], "{selection}");
            for (selector, value) in [("one", 100), ("two", 22), ("brandNew", 33)] {
                let code = format!("Fan new {selector}");
                assert_eq!(client.value(&code).await, value, "{selection} {code}");
            }
            // What was set aside is to be had again.
            let seq = taken["entries"][0]["seq"].clone();
            client.good("restore", json!({"seq": seq})).await;
            assert_eq!(client.value("Fan new one").await, 11);
            client.good("discard", json!({"class": "Fan"})).await;
            write(&home, "src/Fan.bt", FAN);
            client.good("load-project", json!({})).await;
        }
    });
}

#[test]
fn discarding_an_older_entry_leaves_the_newer_one() {
    let home = started("older", &[]);
    write(&home, "src/Fan.bt", FAN);
    block_on(async {
        let client = Client::of(&home).await;
        client.good("load-project", json!({})).await;
        client.text("Fan >> one => 11").await;
        client.text("Fan >> one => 12").await;
        client.good("discard", json!({"seq": 1})).await;
        assert_eq!(client.value("Fan new one").await, 12);
        assert_eq!(client.pending().await, ["Fan one"]);
        // What was set aside does not come back by undoing the newer one.
        client.good("revert", json!({"seq": 2})).await;
        assert_eq!(client.value("Fan new one").await, 1);
        assert_eq!(client.pending().await, NOTHING);
    });
}

/// Whatever is loaded in between, a method that was added and removed again stays away from image and disk.
#[test]
fn a_method_added_and_removed_again_does_not_come_back() {
    let home = started("addremove", &[]);
    write(&home, "src/Fan.bt", FAN);
    block_on(async {
        let client = Client::of(&home).await;
        for (op, fields) in [
            ("reload", json!({"class": "Fan"})),
            ("load-project", json!({})),
            ("load-file", json!({"path": "src/Fan.bt"})),
        ] {
            client.good("load-project", json!({})).await;
            client.text("Fan >> extra => 3").await;
            client.text("Fan removeSelector: #extra").await;
            // A change of another method on disk makes it loaded for sure.
            write(&home, "src/Fan.bt", &FAN.replace("two => 2", "two => 20"));
            client.good(op, fields).await;
            assert_eq!(client.value("Fan new two").await, 20, "{op}");
            assert_eq!(client.pending().await, NOTHING, "{op}");
            assert_eq!(client.value("Fan new respondsTo: #extra").await, false, "{op}");
            client.good("flush", json!({})).await;
            assert!(!read(&home, "src/Fan.bt").contains("extra"), "{op}");
            write(&home, "src/Fan.bt", FAN);
        }
    });
}

/// What was only tried is never written, also when its file is written anew.
#[test]
fn a_try_does_not_reach_a_file_that_is_written_anew() {
    let home = started("tryanew", &[]);
    write(&home, "src/Fan.bt", FAN);
    block_on(async {
        let client = Client::of(&home).await;
        client.good("load-project", json!({})).await;
        client.text("Fan >> one => 11").await;
        client.text("Fan tryCompile: #one source: \"one => 12\"").await;
        client.text("Fan tryCompile: #two source: \"two => 21\"").await;
        client
            .text("Fan tryCompile: #three source: \"three => 31\"")
            .await;
        assert_eq!(
            client.value("Fan new one + Fan new two + Fan new three").await,
            64
        );
        let dirty = client.good("dirty", json!({})).await;
        assert_eq!(dirty["dirty"], json!({"Fan": ["one"]}), "{dirty:?}");
        std::fs::remove_file(home.project().join("src/Fan.bt")).expect("removed");
        client
            .good("take", json!({"from": "image", "class": "Fan"}))
            .await;
        client.good("flush", json!({})).await;
        let text = read(&home, "src/Fan.bt");
        assert_eq!(text, FAN.replace("one => 1", "one => 11"));
        assert_eq!(
            client.value("Fan new one + Fan new two + Fan new three").await,
            64
        );
    });
}

#[test]
fn changes_follow_a_class_to_its_new_file() {
    let home = started("moved", &[]);
    write(&home, "src/Fan.bt", FAN);
    block_on(async {
        let client = Client::of(&home).await;
        client.good("load-project", json!({})).await;
        client.text("Fan >> one => 11").await;
        std::fs::remove_file(home.project().join("src/Fan.bt")).expect("removed");
        write(&home, "src/sub/Fan.bt", FAN);
        let answer = client.good("load-project", json!({})).await;
        assert_eq!(answer["errors"], json!([]), "{answer:?}");
        assert_eq!(client.value("Fan new one").await, 11);
        assert_eq!(client.value("Fan new two").await, 2);
        assert_eq!(client.pending().await, ["Fan one"]);
        let report = client.good("flush", json!({})).await;
        assert_eq!(reason(&report), "none", "{report:?}");
        assert_eq!(
            read(&home, "src/sub/Fan.bt"),
            FAN.replace("one => 1", "one => 11")
        );
        assert!(!exists(&home, "src/Fan.bt"));
    });
}

#[test]
fn a_class_of_another_file_does_not_replace_pending_changes() {
    let home = started("otherfile", &[]);
    write(&home, "src/Fan.bt", FAN);
    write(&home, "../elsewhere/Fan.bt", &FAN.replace("=> 2", "=> 200"));
    write(
        &home,
        "../elsewhere/Belt.bt",
        "Value subclass: Belt\n  length => 8\n",
    );
    block_on(async {
        let client = Client::of(&home).await;
        client.good("load-project", json!({})).await;
        client.text("Fan >> one => 11").await;
        let path = home.project().join("../elsewhere/Fan.bt");
        let load = json!({"path": path});
        let answer = client.ask("load-file", load.clone()).await;
        let told = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(
            told.contains("Fan>>one") && told.contains("src/Fan.bt"),
            "{answer:?}"
        );
        let answer = client
            .good("load-file", json!({"path": path.parent().expect("a directory")}))
            .await;
        assert_eq!(answer["errors"].as_array().map(Vec::len), Some(1), "{answer:?}");
        assert_eq!(client.value("Belt new length").await, 8);
        assert_eq!(client.value("Fan new one").await, 11);
        assert_eq!(client.value("Fan new two").await, 2);
        // Once nothing of it is pending, it is loaded.
        client.good("flush", json!({})).await;
        client.good("load-file", load).await;
        assert_eq!(client.value("Fan new two").await, 200);
    });
}

#[test]
fn headers_that_do_not_go_together_are_a_conflict() {
    let home = started("headers", &[]);
    write(&home, "src/Fan.bt", FAN);
    block_on(async {
        let client = Client::of(&home).await;
        client.good("load-project", json!({})).await;
        // The disk's method needs the disk's field, the image's method needs the image's.
        let disk = "Value subclass: Fan\n  field: y = 5\n  one => self.y\n  two => 2\n";
        let image = "Value subclass: Fan\n  field: z = 7\n  one => 1\n  two => self.z";
        for op in ["load-project", "reload"] {
            client.text(image).await;
            write(&home, "src/Fan.bt", disk);
            let answer = client.good(op, json!({"class": "Fan"})).await;
            assert_eq!(
                answer.get("errors").unwrap_or(&json!([])),
                &json!([]),
                "{answer:?}"
            );
            assert_eq!(reason(&answer), "external_edit", "{op}: {answer:?}");
            let detail = answer["conflicts"][0]["detail"].as_str().unwrap_or_default();
            assert!(detail.starts_with("Fan"), "{op}: {detail}");
            assert_eq!(client.value("Fan new two").await, 7, "the image is as it was");
            assert_eq!(client.pending().await, ["new-class Fan"]);
            let seq = client.good("changes", json!({})).await["entries"][0]["seq"].clone();
            let diff = client.good("diff", json!({"seq": seq})).await;
            let diff = diff["diff"].as_str().unwrap_or_default();
            for part in ["field: x", "field: y", "field: z"] {
                assert!(diff.contains(part), "{part}: {diff}");
            }
            client.good("discard", json!({"class": "Fan"})).await;
            client.good("load-project", json!({})).await;
            assert_eq!(client.value("Fan new one").await, 5, "{op}");
            assert_eq!(client.value("Fan new two").await, 2, "{op}");
            write(&home, "src/Fan.bt", FAN);
            client.good("load-project", json!({})).await;
        }
        client.text(image).await;
        write(&home, "src/Fan.bt", disk);
        client.good("load-project", json!({})).await;
        client
            .good("take", json!({"from": "image", "class": "Fan"}))
            .await;
        let report = client.good("flush", json!({})).await;
        assert_eq!(reason(&report), "none", "{report:?}");
        assert_eq!(
            read(&home, "src/Fan.bt"),
            "Value subclass: Fan\n  field: z = 7\n  one => self.y\n  two => self.z\n"
        );
    });
}

#[test]
fn comments_typed_with_a_change_reach_the_file() {
    let home = started("comments", &[]);
    write(&home, "src/Fan.bt", FAN);
    write(
        &home,
        "src/More.bt",
        "Fan >> three => 3 // old\n\nFan >> four => 4 // kept\n",
    );
    block_on(async {
        let client = Client::of(&home).await;
        client.good("load-project", json!({})).await;
        client.text("Fan >> one => 5 // why").await;
        client
            .text("// As asked.\nFan >> two =>\n  22\n  // the end")
            .await;
        client.text("Fan >> fresh => 6 /* new */").await;
        client.text("Fan >> three => 33 // because").await;
        client.text("Fan >> four => 44").await;
        client.good("flush", json!({})).await;
        assert_eq!(
            read(&home, "src/Fan.bt"),
            "Value subclass: Fan\n  field: x = 0\n  one => 5 // why\n  // As asked.\n  two =>\n    22\n    // the end\n\n  fresh => 6 /* new */\n"
        );
        assert_eq!(
            read(&home, "src/More.bt"),
            "Fan >> three => 33 // because\n\nFan >> four => 44 // kept\n"
        );
        assert_eq!(client.pending().await, NOTHING);
        // A second time nothing is written twice, and a comment that changed on disk is no text to overwrite.
        client.text("Fan >> one => 5 // why").await;
        assert_eq!(client.pending().await, NOTHING);
        let edited = read(&home, "src/Fan.bt").replace("// why", "// by hand");
        write(&home, "src/Fan.bt", &edited);
        client.text("Fan >> one => 7 // because").await;
        assert_eq!(reason(&client.good("flush", json!({})).await), "external_edit");
        assert_eq!(read(&home, "src/Fan.bt"), edited);
    });
}

#[test]
fn a_change_made_while_its_file_was_broken_is_written_once_it_is_mended() {
    let home = started("mended", &[]);
    write(&home, "src/Fan.bt", FAN);
    block_on(async {
        let client = Client::of(&home).await;
        client.good("load-project", json!({})).await;
        write(&home, "src/Fan.bt", &FAN.replace("one => 1", "one => ((("));
        client.text("Fan >> two => 22").await;
        let report = client.good("flush", json!({})).await;
        assert_eq!(report["skipped"][0]["reason"], "dynamic", "{report:?}");
        write(&home, "src/Fan.bt", &FAN.replace("one => 1", "one => 111"));
        client.good("load-project", json!({})).await;
        assert_eq!(client.value("Fan new two").await, 22);
        assert_eq!(client.value("Fan new one").await, 111);
        let report = client.good("flush", json!({})).await;
        assert_eq!(
            (reason(&report), &report["flushed"]),
            ("none", &json!(1)),
            "{report:?}"
        );
        assert_eq!(
            read(&home, "src/Fan.bt"),
            FAN.replace("one => 1", "one => 111").replace("=> 2", "=> 22")
        );
    });
}

#[test]
fn a_header_that_gave_way_to_the_disk_can_be_restored() {
    let home = started("aheader", &[]);
    write(&home, "src/Fan.bt", FAN);
    block_on(async {
        let client = Client::of(&home).await;
        client.good("load-project", json!({})).await;
        let image = "Value subclass: Fan\n  field: x = 7\n  one => 11\n  two => 2";
        client.text(image).await;
        write(&home, "src/Fan.bt", &FAN.replace("x = 0", "x = 5"));
        client.good("take", json!({"from": "disk", "class": "Fan"})).await;
        assert_eq!(client.value("Fan new x").await, 5);
        assert_eq!(client.value("Fan new one").await, 11, "no conflict about it");
        let all = client.good("changes", json!({"all": true})).await;
        let aside = all["entries"].as_array().expect("entries").iter();
        let aside: Vec<&Value> = aside.filter(|entry| entry["settled"] == "replaced").collect();
        assert_eq!(aside.len(), 1, "{aside:?}");
        client.good("restore", json!({"seq": aside[0]["seq"]})).await;
        assert_eq!(client.value("Fan new x").await, 7);
        assert_eq!(client.value("Fan new one").await, 11);
        assert_eq!(client.pending().await, ["new-class Fan"]);
        assert_eq!(reason(&client.good("flush", json!({})).await), "external_edit");
    });
}

#[test]
fn undoing_an_old_change_gives_what_was_loaded_since() {
    let home = started("oldchange", &[]);
    write(&home, "src/Fan.bt", FAN);
    block_on(async {
        let client = Client::of(&home).await;
        client.good("load-project", json!({})).await;
        let changed = client.save("Fan", "one", "one => 11").await;
        let added = client.save("Fan", "fresh", "fresh => 12").await;
        client.good("discard", json!({"all": true})).await;
        let newer = format!("{}\n  fresh => 200\n", FAN.replace("one => 1", "one => 100"));
        write(&home, "src/Fan.bt", &newer);
        client.good("load-project", json!({})).await;
        for (seq, selector, old, new) in [(changed, "one", 11, 100), (added, "fresh", 12, 200)] {
            client.good("restore", json!({"seq": seq})).await;
            assert_eq!(client.value(&format!("Fan new {selector}")).await, old);
            client.good("revert", json!({"seq": seq})).await;
            assert_eq!(
                client.value(&format!("Fan new {selector}")).await,
                new,
                "as on disk"
            );
        }
        assert_eq!(client.pending().await, NOTHING);
    });
}

#[test]
fn changes_of_a_class_that_was_renamed_have_a_way_out() {
    let home = started("renamed", &[]);
    write(&home, "src/Fan.bt", FAN);
    block_on(async {
        let client = Client::of(&home).await;
        client.good("load-project", json!({})).await;
        client.text("Fan >> one => 11").await;
        client.text("Fan >> fresh => 12").await;
        let renamed = FAN.replace("Fan", "Blower");
        write(&home, "src/Fan.bt", &renamed);
        let answer = client.good("load-project", json!({})).await;
        assert_eq!(reason(&answer), "span_out_of_range", "{answer:?}");
        assert_eq!(client.value("Fan new one").await, 11);
        let report = client.good("flush", json!({})).await;
        assert_eq!(reason(&report), "span_out_of_range", "{report:?}");
        assert_eq!(read(&home, "src/Fan.bt"), renamed);
        let image = json!({"from": "image", "class": "Fan"});
        assert_eq!(client.refused("take", image).await, "reload_failed");
        assert_eq!(client.pending().await, ["Fan one", "Fan fresh"]);
        client.good("take", json!({"from": "disk", "class": "Fan"})).await;
        assert_eq!(client.pending().await, NOTHING);
        let answer = client.good("load-project", json!({})).await;
        assert_eq!((answer.get("conflicts"), &answer["errors"]), (None, &json!([])));
        assert_eq!(client.value("Blower new one").await, 1);
    });
}
