//! Classes defined anew or loaded again, through the real binary: running actors follow, files and packages stay.

use std::time::Duration;

use crate::home::{block_on, wait_until};
use crate::project::{Client, read, started, write};
use serde_json::{Value, json};

const NOTHING: [&str; 0] = [];

#[test]
fn a_class_of_the_project_defined_anew_at_the_prompt_stays_in_its_file() {
    let home = started("anew", &[]);
    block_on(async {
        let client = Client::of(&home).await;
        client.text("lamp := Lamp spawn").await;
        client.save("Lamp", "isOn", "isOn => 6").await;
        let anew = "Actor subclass: Lamp\n  state: on = true\n  state: watts = 40\n\n  isOn => 7\n\n  watts => self.watts";
        let answer = client.good("eval", json!({ "code": anew })).await;
        assert_eq!(answer["text"], "Lamp");
        assert_eq!(
            (client.value("lamp isOn").await, client.value("lamp watts").await),
            (json!(7), json!(40))
        );
        assert_eq!(client.error("lamp last").await, "does_not_understand");
        assert_eq!(client.value("Lamp sourceFile").await, "src/lamp.bt");
        assert_eq!(client.value("Room light").await, 7, "for everybody");
        let info = client.good("info", json!({"symbol": "Lamp"})).await;
        assert_eq!(info["info"]["package"], "orbit");
        assert_eq!(client.pending().await, ["new-class Lamp"]);
        let entry = &answer["entries"][0];
        assert_eq!(
            (&entry["flushable"], &entry["source_file"]),
            (&json!(true), &json!("src/lamp.bt"))
        );
        // Methods of it go on as before, also one that the file has and the new definition has not.
        client.text("Lamp >> watts => 60").await;
        client.text("Lamp >> last => 98").await;
        assert_eq!(client.value("lamp watts + lamp last").await, 158);
        let report = client.good("flush", json!({})).await;
        assert_eq!(
            (&report["conflicts"], &report["files"], &report["flushed"]),
            (
                &json!([]),
                &json!([{"file": "src/lamp.bt", "kind": "changed"}]),
                &json!(6)
            )
        );
        // Its single changes are written; what stands between stays.
        let expected = "// A lamp, with odd spacing.\n\n/// Gives light.\nActor subclass: Lamp\n  state: on = true\n  state: watts = 40\n\n\n  /// Is it on?\n  isOn => 7\n\n  // a stray comment\n\n\n  last => 98\n\n  watts => 60\n";
        assert_eq!(read(&home, "src/lamp.bt"), expected);
        assert_eq!(client.pending().await, NOTHING);
        client.good("reload", json!({"class": "Lamp"})).await;
        client.good("load-project", json!({})).await;
        assert_eq!(client.value("lamp watts + lamp last").await, 158);
        // Together with statements and other definitions, and undone.
        let mixed = "/// Brighter.\nActor subclass: Lamp\n  isOn => 8\nObject subclass: Pad\n  class a => Lamp spawn isOn\n\nLamp spawn isOn + Pad a";
        let answer = client.good("eval", json!({ "code": mixed })).await;
        assert_eq!(answer["value"], 16);
        assert_eq!(client.value("Lamp sourceFile").await, "src/lamp.bt");
        assert_eq!(client.text("Pad sourceFile").await, "nil");
        let seq = answer["entries"][0]["seq"].clone();
        client.good("revert", json!({ "seq": seq })).await;
        assert_eq!(client.value("Lamp spawn last").await, 98);
        assert_eq!(client.pending().await, ["new-class Pad"]);
        // A file that somebody edits meanwhile is not overwritten.
        client.text("Actor subclass: Lamp\n  isOn => 9").await;
        let mine = format!("// Mine.\n{expected}").replace("isOn => 7", "isOn => 70");
        write(&home, "src/lamp.bt", &mine);
        let report = client.good("flush", json!({})).await;
        assert_eq!(report["conflicts"][0]["reason"], "external_edit");
        let report = client.good("flush", json!({"force_file": "src/lamp.bt"})).await;
        assert_eq!(report["conflicts"], json!([]));
        assert_eq!(
            read(&home, "src/lamp.bt"),
            "// Mine.\n// A lamp, with odd spacing.\n\n/// Gives light.\nActor subclass: Lamp\n\n\n  /// Is it on?\n  isOn => 9\n\n  // a stray comment\n\n"
        );
        // A class that has no file yet is written as it is then.
        let fan = "// Air.\nObject subclass: Fan\n  class speed => 3\n";
        client
            .good("save-class", json!({"source": fan, "path": "src/fan.bt"}))
            .await;
        client.text("Object subclass: Fan\n  class speed => 4").await;
        let report = client.good("flush", json!({})).await;
        assert_eq!(report["new_classes"], json!(["Fan"]));
        assert_eq!(read(&home, "src/fan.bt"), fan.replace('3', "4"));
    });
}

#[test]
fn a_class_of_a_dependency_is_loaded_again_from_its_own_file() {
    let home = started("dependency", &[]);
    block_on(async {
        let client = Client::of(&home).await;
        write(
            &home,
            "../parts/src/screw.bt",
            "Object subclass: Screw\n  class size => 9\n",
        );
        let answer = client.good("reload", json!({"class": "Screw"})).await;
        assert_eq!(answer["classes"], json!(["Screw"]));
        assert_eq!(
            (client.value("Screw size").await, client.value("Room size").await),
            (json!(9), json!(9))
        );
        write(
            &home,
            "../parts/src/screw.bt",
            "Object subclass: Screw\n  class size => 10\n",
        );
        client.text("Screw reload").await;
        assert_eq!(client.value("Screw size").await, 10);
        let info = client.good("info", json!({"symbol": "Screw"})).await;
        assert_eq!(info["info"]["package"], "parts");
        // Defined anew it stays a class of its package, and no file changes.
        client.text("Object subclass: Screw\n  class size => 11").await;
        let report = client.good("flush", json!({})).await;
        assert_eq!(report["skipped"][0]["reason"], "dependency:parts");
        client.good("reload", json!({"class": "Screw"})).await;
        assert_eq!(client.value("Room size").await, 10);
        let size = json!({"class": "Screw", "side": "class", "selector": "size"});
        let seen = client.good("browse-method-source", size).await;
        assert_eq!(
            (&seen["origin"], &seen["disk_differs"]),
            (&json!("both"), &json!(false))
        );
        client.text("Lamp >> isOn => 7").await;
        let changed = json!({"class": "Lamp", "side": "instance", "selector": "isOn"});
        let seen = client.good("browse-method-source", changed).await;
        assert_eq!(
            (&seen["origin"], &seen["disk_differs"]),
            (&json!("both"), &json!(true))
        );
        for class in ["Integer", "Actor"] {
            assert_eq!(
                client.refused("reload", json!({ "class": class })).await,
                "no_source_file"
            );
        }
        assert_eq!(
            client.refused("reload", json!({"class": "size"})).await,
            "class_not_found"
        );
    });
}

#[test]
fn the_state_of_running_actors_follows_their_class() {
    let home = started("state", &[]);
    block_on(async {
        let client = Client::of(&home).await;
        client.text("lamp := Lamp spawn").await;
        client.text("lamp toggle").await;
        let coloured = "Actor subclass: Lamp\n  state: on = false\n  state: colour = \"red\"\n  isOn => self.on\n  colour => self.colour\n";
        write(&home, "src/lamp.bt", coloured);
        let answer = client.good("reload", json!({"class": "Lamp"})).await;
        assert_eq!(
            (&answer["affected_actors"], &answer["migration_failures"]),
            (&json!(1), &json!([]))
        );
        assert_eq!(client.value("lamp colour").await, "red");
        assert_eq!(client.value("lamp isOn").await, true, "kept");
        let log = || std::fs::read_to_string(home.workspace().join("workspace.log")).unwrap_or_default();
        wait_until("dropped values are logged", Duration::from_secs(5), || {
            log().contains("Lamp: removed slots (count) of 1 actor(s) are dropped")
        });
        // A default that cannot be evaluated: the actor keeps its code and its state, others have the new ones.
        let faulty = coloured
            .replace("=> self.on\n", "=> #new\n")
            .replace("  isOn", "  state: bad = 1 / (0 max: 0)\n  isOn");
        write(&home, "src/lamp.bt", &faulty);
        for op in ["reload", "load-project"] {
            let answer = client.good(op, json!({"class": "Lamp"})).await;
            let failures = answer["migration_failures"].as_array().expect("a list");
            assert_eq!(failures.len(), 1, "{op}");
            assert!(
                failures[0]["reason"]
                    .as_str()
                    .is_some_and(|text| text.contains("zero"))
            );
            assert_eq!(client.value("lamp isOn").await, true, "{op}: its old code");
            let seen = client
                .good("inspect", json!({"actor": failures[0]["actor"]}))
                .await;
            let names: Vec<&Value> = seen["fields"]
                .as_array()
                .expect("fields")
                .iter()
                .map(|field| &field["name"])
                .collect();
            assert_eq!(names, ["colour", "on"], "{op}");
        }
        write(&home, "src/lamp.bt", &faulty.replace("1 / (0 max: 0)", "1"));
        let answer = client.good("reload", json!({"class": "Lamp"})).await;
        assert_eq!(answer["migration_failures"], json!([]));
        assert_eq!(client.value("lamp isOn").await, "new");
        assert_eq!(client.value("lamp colour").await, "red");
        // A class of another kind is refused, whichever way it comes.
        write(&home, "src/lamp.bt", "Value subclass: Lamp\n  field: on = 1\n");
        for op in ["reload", "load-project"] {
            assert_eq!(
                client.refused(op, json!({"class": "Lamp"})).await,
                "incompatible_reload"
            );
        }
        assert_eq!(
            client.error("Object subclass: Lamp\n  zip => 3").await,
            "incompatible_reload"
        );
        assert_eq!(client.value("lamp colour").await, "red");
        // At the prompt.
        let answer = client
            .good("eval", json!({"code": "Actor subclass: Lamp\n  state: on = 1\n  state: worse = 1 / (0 max: 0)\n  isOn => 3"}))
            .await;
        assert_eq!(answer["migration_failures"].as_array().map(Vec::len), Some(1));
        let message = answer["warnings"][0]["message"].as_str().unwrap_or_default();
        assert!(message.contains("keeps its old code and state"), "{message}");
        assert_eq!(client.value("lamp isOn").await, "new");
        client
            .text("Actor subclass: Pad\n  state: a = 1\n  a => self.a")
            .await;
        client.text("pad := Pad spawn").await;
        client
            .text("Actor subclass: Pad\n  state: a = 1\n  state: b = 2\n  a => self.a\n  b => self.b")
            .await;
        assert_eq!(
            (client.value("pad a").await, client.value("pad b").await),
            (json!(1), json!(2))
        );
    });
}

#[test]
fn a_method_that_others_reach_through_self_is_new_for_all_of_them() {
    let home = started("reached", &[]);
    let mut tower = String::from(
        "Actor subclass: Tower\n  top => self middle + 1\n  middle => self base + 1\n  base => 1\n",
    );
    for n in 0..30 {
        tower.push_str(&format!("  other{n} => self step{n}\n  step{n} => {n}\n"));
    }
    write(&home, "src/tower.bt", &tower);
    block_on(async {
        let client = Client::of(&home).await;
        client.good("load-project", json!({})).await;
        client.text("tower := Tower spawn").await;
        for base in [10, 20] {
            client.text(&format!("Tower >> base => {base}")).await;
            let heights = client.value("#(tower top, tower middle, tower base)").await;
            assert_eq!(heights, json!([base + 2, base + 1, base]));
        }
        client.text("Tower >> middle => self base * 2").await;
        client.text("Tower >> base => 30").await;
        assert_eq!(client.value("#(tower top, tower middle)").await, json!([61, 60]));
        client.text("Tower >> step3 => 33").await;
        assert_eq!(client.value("tower other3").await, 33);
        client.text("Tower removeSelector: #step3").await;
        assert_eq!(client.error("tower other3").await, "does_not_understand");
        // Only what was asked for is a change.
        assert_eq!(
            client.pending().await,
            ["Tower middle", "Tower base", "Tower step3"]
        );
        client.good("flush", json!({})).await;
        let expected = tower
            .replace("self base + 1", "self base * 2")
            .replace("base => 1", "base => 30")
            .replace("  step3 => 3\n", "");
        assert_eq!(read(&home, "src/tower.bt"), expected);
    });
}

#[test]
fn callers_are_checked_before_a_change_and_after_it() {
    let home = started("callers", &[]);
    write(
        &home,
        "src/lamp.bt",
        "typed Actor subclass: Lamp\n  state: on :: Boolean = false\n  isOn -> Boolean => self.on\n",
    );
    write(
        &home,
        "src/room.bt",
        "typed Object subclass: Room\n  class look: lamp :: Lamp -> Boolean => lamp isOn\n  class size -> Integer => 4\n",
    );
    block_on(async {
        let client = Client::of(&home).await;
        client.good("load-project", json!({})).await;
        let change = json!({"class": "Lamp", "selector": "isOn", "source": "isOn -> Integer => 7"});
        let answer = client.good("precheck-method", change).await;
        assert_eq!(
            (
                &answer["checked"],
                &answer["not_checked"],
                &answer["findings"][0]["message"]
            ),
            (
                &json!(1),
                &json!(0),
                &json!("Method 'look:' in Room declares return type Boolean, but body returns Integer")
            )
        );
        let precheck = "(Lamp precheckCompile: #isOn source: \"isOn -> Integer => 7\")";
        assert_eq!(
            client.value(&format!("{precheck} at: #checkedOwners")).await,
            json!(["Room"])
        );
        assert_eq!(
            client
                .error("Lamp precheckCompile: #isOn source: \"isOn => nope\"")
                .await,
            "compile_failed"
        );
        let wrong = json!({"class": "Lamp", "selector": "isOn", "source": "isOn => nope"});
        let answer = client.good("precheck-method", wrong).await;
        assert_eq!(
            (
                &answer["findings"][0]["column"],
                &answer["findings"][0]["end_column"]
            ),
            (&json!(9), &json!(13))
        );
        assert_eq!(client.pending().await, NOTHING, "nothing was installed");
        // What nobody answers any more is told to those who send it, whichever way it went.
        client.text("Lamp removeSelector: #isOn").await;
        let findings = async || {
            let stored = client.good("reload-findings", json!({})).await;
            stored["findings"].as_array().cloned().expect("a list")
        };
        let mut found = findings().await;
        for _ in 0..100 {
            if !found.is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
            found = findings().await;
        }
        assert_eq!(
            (
                &found[0]["owner"],
                &found[0]["selector"],
                &found[0]["severity"],
                &found[0]["line"]
            ),
            (&json!("Room"), &json!("isOn"), &json!("hint"), &json!(2))
        );
        client.good("discard", json!({"class": "Lamp"})).await;
        client.good("reload", json!({"class": "Lamp"})).await;
        assert_eq!(findings().await, Vec::<Value>::new(), "replaced as a whole");
        write(
            &home,
            "src/lamp.bt",
            "typed Actor subclass: Lamp\n  state: on :: Boolean = false\n",
        );
        let answer = client.good("reload", json!({"class": "Lamp"})).await;
        assert_eq!(answer["findings"][0]["owner"], "Room");
    });
}

/// A block may be called, and an endless loop go on, long after a method was replaced or its class defined anew.
#[test]
fn blocks_and_endless_loops_send_to_what_is_there_now() {
    let home = started("callbacks", &[]);
    block_on(async {
        let client = Client::of(&home).await;
        let class = "Value subclass: Bell\n  field: seen = #()\n  tone => #old\n  block => [self tone]\n  class tone => #old\n  class block => [self tone]\n  class ask: other => (other at: 1) value\n  ring: announcer => announcer when: Strike do: [:e | Board note: self tone]\n  watch: many =>\n    seen := #()\n    [seen size < many] whileTrue: [Board step. seen := seen ++ #(self tone)]\n    seen\n  class watch: many =>\n    seen := #()\n    [\n      Board step\n      seen := seen ++ #(self tone)\n      seen size >= many ifTrue: [^seen]\n    ] repeat";
        let board = "Object subclass: Board\n  classState: notes = #()\n  classState: left = 0\n  class note: n => self.notes := self.notes ++ #(n)\n  class notes => self.notes\n  class left: n => self.left := n\n  class step =>\n    self.left := self.left - 1\n    self.left =:= 0 ifTrue: [\n      Bell compile: #tone source: \"tone => #new\"\n      Bell class compile: #tone source: \"tone => #new\"\n    ]";
        let strike = "Announcement subclass: Strike";
        for text in [board, strike, class] {
            client.text(text).await;
        }
        client.text("bell := Bell new. own := bell block. theirs := Bell block. bus := Announcer new. bell ring: bus").await;
        for code in ["own value", "theirs value"] {
            assert_eq!(client.text(code).await, "#old", "{code}");
        }
        for code in ["bell watch: 4", "Bell watch: 4"] {
            client.text("Bell >> tone => #old").await;
            client.text("Bell class >> tone => #old").await;
            client.text("Board left: 2").await;
            assert_eq!(client.text(code).await, "#(#old, #new, #new, #new)", "{code}");
        }
        client.text("bus announceAndWait: Strike new").await;
        for (code, shown) in [
            ("own value", "#new"),
            ("theirs value", "#new"),
            ("Board notes", "#(#new)"),
        ] {
            assert_eq!(client.text(code).await, shown, "{code}");
        }
        client.text(&class.replace("#old", "#anew")).await;
        assert_eq!(client.text("theirs value").await, "#anew");
        assert_eq!(client.text("own value").await, "#anew");
    });
}

/// What a class gets for its fields is replaced and removed like any other method, for the class itself too.
#[test]
fn generated_methods_are_replaced_for_the_class_itself() {
    let home = started("generated", &[]);
    block_on(async {
        let client = Client::of(&home).await;
        let class = "Value subclass: Peg\n  field: x = 1\n  here => self x\n  moved => self withX: 5\n  class made => self x: 3";
        client.text(class).await;
        let ways = [
            ("Peg >> x", "Peg new x", "Peg new here"),
            ("Peg >> withX: v", "Peg new withX: 5", "Peg new moved"),
            ("Peg class >> x: v", "Peg x: 3", "Peg made"),
        ];
        for (head, written, own) in ways {
            let before = client.text(written).await;
            assert_eq!(client.text(own).await, before, "{head}");
            let answer = client
                .good("eval", json!({"code": format!("{head} => #mine")}))
                .await;
            for code in [written, own] {
                assert_eq!(client.text(code).await, "#mine", "{head}: {code}");
            }
            let seq = answer["entries"][0]["seq"].clone();
            client.good("revert", json!({"seq": seq})).await;
            for code in [written, own] {
                assert_eq!(client.text(code).await, before, "{head}, reverted: {code}");
            }
        }
        // They belong to the field, and do not go without it.
        for (selector, side, own) in [("x", "instance", "Peg new here"), ("x:", "class", "Peg made")] {
            let gone = json!({"class": "Peg", "selector": selector, "side": side});
            let before = client.text(own).await;
            assert_eq!(
                client.refused("remove-method", gone).await,
                "forbidden",
                "{selector}"
            );
            assert_eq!(client.text(own).await, before, "{selector}");
        }
    });
}

/// Methods that extend a class are no part of its definition: whatever becomes of that leaves them alone.
#[test]
fn a_definition_undone_leaves_the_extensions_of_its_class() {
    let home = started("undone", &[]);
    block_on(async {
        let client = Client::of(&home).await;
        let host =
            "Value subclass: Host\n  field: f = 1\n  a => 1\n\nHost >> ext => 5\n\nHost class >> made => 6\n";
        write(&home, "src/host.bt", host);
        write(&home, "src/more.bt", "Host >> more => 7\n");
        client.good("load-project", json!({})).await;
        let all = "#(Host new a, Host new ext, Host made, Host new more)";
        assert_eq!(client.text(all).await, "#(1, 5, 6, 7)");
        let anew = "Value subclass: Host\n  field: f = 1\n  a => 2";
        for op in ["revert", "discard"] {
            let answer = client.good("eval", json!({ "code": anew })).await;
            assert_eq!(client.text(all).await, "#(2, 5, 6, 7)");
            let seq = answer["entries"][0]["seq"].clone();
            client.text("Host >> ext => 50").await;
            client.good(op, json!({ "seq": seq })).await;
            assert_eq!(client.text(all).await, "#(1, 50, 6, 7)", "{op}");
            assert_eq!(client.pending().await, ["Host ext"], "{op}");
            client.good("discard", json!({"all": true})).await;
            assert_eq!(client.text(all).await, "#(1, 5, 6, 7)", "{op}");
            assert_eq!(client.pending().await, NOTHING, "{op}");
        }
        assert_eq!(read(&home, "src/host.bt"), host);
    });
}
