//! Disk and image changed at once, through the real binary: nothing a person wrote is overwritten or lost without a choice.

use std::collections::{BTreeMap, BTreeSet};

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

// ---- any order of edits and choices ----

const METHODS: [&str; 3] = ["a", "b", "c"];

/// A source of choices that the seed decides.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }
}

/// What each method is, on one side.
type State = BTreeMap<&'static str, u64>;

fn toy(methods: &State) -> String {
    let body: String = methods
        .iter()
        .map(|(name, value)| format!("\n  {name} => {value}\n"))
        .collect();
    format!("Value subclass: Toy\n{body}")
}

fn on_disk(text: &str) -> State {
    let value = |name: &'static str| {
        let line = text
            .lines()
            .find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(" => "))?;
        Some((name, line.parse().ok()?))
    };
    METHODS.into_iter().filter_map(value).collect()
}

async fn in_image(client: &Client) -> State {
    let mut found = State::new();
    for name in METHODS {
        let answer = client
            .ask("eval", json!({"code": format!("Toy new {name}")}))
            .await;
        if let Some(value) = answer.get("value").and_then(Value::as_u64) {
            found.insert(name, value);
        }
    }
    found
}

#[test]
fn no_order_of_edits_and_choices_loses_what_was_written() {
    let home = started("orders", &[]);
    for seed in [3, 11, 40] {
        block_on(campaign(&home, seed));
    }
}

#[expect(clippy::too_many_lines, reason = "one arm for each thing that can happen")]
async fn campaign(home: &crate::home::Home, seed: u64) {
    let client = Client::of(home).await;
    let mut dice = Dice(seed);
    let mut next = seed * 1_000;
    let mut fresh = || {
        next += 1;
        next
    };
    let start: State = METHODS.into_iter().map(|name| (name, fresh())).collect();
    client.good("clear-changes", json!({})).await;
    write(home, "src/toy.bt", &toy(&start));
    client.good("load-project", json!({})).await;
    // Versions of the disk that the image has taken over, was flushed to, or was told to replace.
    let mut seen: BTreeSet<(&str, Option<u64>)> =
        start.iter().map(|(name, value)| (*name, Some(*value))).collect();
    // What was written at the prompt and has neither reached the disk nor been given up.
    let mut own: BTreeSet<(&str, Option<u64>)> = BTreeSet::new();
    let mut history = Vec::new();
    for _ in 0..45 {
        let (disk, image) = (on_disk(&read(home, "src/toy.bt")), in_image(&client).await);
        let name = METHODS[dice.roll(3)];
        let action = [
            "disk", "patch", "anew", "remove", "flush", "flush", "sync", "take", "discard",
        ][dice.roll(9)];
        history.push(format!("{action} {name}"));
        let told = || format!("seed {seed}: {history:?} disk {disk:?} image {image:?}");
        let mut is_choice = false;
        match action {
            "disk" => {
                let mut new = disk.clone();
                if dice.roll(4) == 0 {
                    new.remove(name);
                } else {
                    new.insert(name, fresh());
                }
                write(home, "src/toy.bt", &toy(&new));
                continue;
            }
            "patch" => {
                let value = fresh();
                client.text(&format!("Toy >> {name} => {value}")).await;
                own.insert((name, Some(value)));
                own.retain(|(method, known)| *method != name || *known == Some(value));
            }
            "anew" => {
                let new: State = METHODS
                    .into_iter()
                    .filter(|_| dice.roll(4) > 0)
                    .map(|name| (name, fresh()))
                    .collect();
                client.text(toy(&new).trim()).await;
                own = new.iter().map(|(name, value)| (*name, Some(*value))).collect();
            }
            "remove" if image.contains_key(name) => {
                client
                    .good("remove-method", json!({"class": "Toy", "selector": name}))
                    .await;
                own.retain(|(method, _)| *method != name);
                own.insert((name, None));
            }
            "remove" => {}
            "flush" => {
                let report = client.good("flush", json!({})).await;
                let now = on_disk(&read(home, "src/toy.bt"));
                if report["conflicts"] == json!([]) {
                    for (method, value) in &own {
                        assert_eq!(now.get(method).copied(), *value, "written: {}", told());
                    }
                    own.clear();
                    seen.extend(
                        METHODS
                            .map(|method| (method, now.get(method).copied()))
                            .into_iter()
                            .filter(|(method, value)| image.get(method).copied() == *value),
                    );
                } else {
                    assert_eq!(now, disk, "left alone: {}", told());
                }
            }
            "sync" => {
                client.good("load-project", json!({})).await;
                let now = in_image(&client).await;
                for method in METHODS {
                    if now.get(method) == disk.get(method) {
                        seen.insert((method, disk.get(method).copied()));
                    }
                }
                own.retain(|(method, value)| disk.get(method).copied() != *value);
            }
            "take" => {
                let from = ["image", "disk"][dice.roll(2)];
                let answer = client
                    .ask("take", json!({"from": from, "class": "Toy", "selector": name}))
                    .await;
                is_choice = true;
                if answer.contains_key("entries") && from == "image" {
                    seen.insert((name, disk.get(name).copied()));
                } else if answer.contains_key("entries") {
                    let now = in_image(&client).await;
                    if own.iter().any(|(method, _)| *method == name) {
                        assert_eq!(now.get(name), disk.get(name), "taken: {}", told());
                        seen.insert((name, disk.get(name).copied()));
                    }
                    own.retain(|(method, _)| *method != name);
                }
            }
            _ => {
                client.good("discard", json!({"class": "Toy"})).await;
                is_choice = true;
                let now = in_image(&client).await;
                for (method, _) in &own {
                    assert_eq!(now.get(method), disk.get(method), "discarded: {}", told());
                    seen.insert((method, disk.get(method).copied()));
                }
                own.clear();
                assert_eq!(client.pending().await, NOTHING, "{}", told());
            }
        }
        let disk_now = on_disk(&read(home, "src/toy.bt"));
        let image_now = in_image(&client).await;
        for method in METHODS {
            let (before, after) = (disk.get(method).copied(), disk_now.get(method).copied());
            assert!(
                before == after || (action == "flush" && seen.contains(&(method, before))),
                "{method} on disk was {before:?} and nobody had seen it: {}",
                told()
            );
            let (before, after) = (image.get(method).copied(), image_now.get(method).copied());
            let is_own = own.contains(&(method, before));
            assert!(
                before == after || !is_own || is_choice || ["patch", "anew", "remove"].contains(&action),
                "{method} in the image was {before:?}: {}",
                told()
            );
        }
    }
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
