//! Random orders of edits on disk, changes of the image and choices between them, held against what was written: nothing
//! is lost or overwritten without a choice. Some of the methods stand in a file that is not their class's.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::home::{Home, block_on};
use crate::project::{Client, read, started, write};

const NOTHING: [&str; 0] = [];

const METHODS: [&str; 5] = ["a", "b", "c", "d", "e"];

const CLASS: &str = "src/toy.bt";

/// The file that adds the last two methods to the class, unless they have joined the class meanwhile.
const MORE: &str = "src/more.bt";

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

fn more(methods: &State) -> String {
    let body: String = methods
        .iter()
        .map(|(name, value)| format!("\nToy >> {name} => {value}\n"))
        .collect();
    format!("// More of the toy.\n{body}")
}

/// The methods in a text of either file.
fn methods_in(text: &str) -> State {
    let value = |name: &'static str| {
        let method = |line: &str| {
            let line = line.trim();
            let line = line.strip_prefix("Toy >> ").unwrap_or(line);
            line.strip_prefix(name)?.strip_prefix(" => ").map(str::to_owned)
        };
        Some((name, text.lines().find_map(method)?.parse().ok()?))
    };
    METHODS.into_iter().filter_map(value).collect()
}

fn on_disk(home: &Home) -> State {
    let mut all = methods_in(&read(home, MORE));
    for (name, value) in methods_in(&read(home, CLASS)) {
        assert_eq!(all.insert(name, value), None, "{name} is in both files");
    }
    all
}

/// Change a method on disk, where it stands.
fn edit(home: &Home, name: &'static str, value: Option<u64>) {
    let (mut class, mut other) = (methods_in(&read(home, CLASS)), methods_in(&read(home, MORE)));
    let is_other = other.contains_key(name) || (!class.contains_key(name) && ["d", "e"].contains(&name));
    let methods = if is_other { &mut other } else { &mut class };
    match value {
        Some(value) => methods.insert(name, value),
        None => methods.remove(name),
    };
    if is_other {
        write(home, MORE, &more(&other));
    } else {
        write(home, CLASS, &toy(&class));
    }
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

/// The methods that stand in the class itself, as the image has it.
async fn in_class(client: &Client) -> Vec<&'static str> {
    let sides = client.good("change-sides", json!({"file": CLASS})).await;
    let own = methods_in(sides["image"].as_str().unwrap_or_default());
    let is_own = |name: &&str| own.contains_key(name) || ["a", "b", "c"].contains(name);
    METHODS.into_iter().filter(is_own).collect()
}

#[test]
fn no_order_of_edits_and_choices_loses_what_was_written() {
    let home = started("orders", &[]);
    for seed in [3, 11, 40, 103] {
        block_on(campaign(&home, seed));
    }
}

#[expect(clippy::too_many_lines, reason = "one arm for each thing that can happen")]
async fn campaign(home: &Home, seed: u64) {
    let client = Client::of(home).await;
    let mut dice = Dice(seed);
    let mut next = seed * 1_000;
    let mut fresh = || {
        next += 1;
        next
    };
    let start: State = METHODS.into_iter().map(|name| (name, fresh())).collect();
    client.good("clear-changes", json!({})).await;
    let (others, own): (State, State) = start.iter().partition(|(name, _)| ["d", "e"].contains(*name));
    write(home, CLASS, &toy(&own));
    write(home, MORE, &more(&others));
    let answer = client.good("load-project", json!({"force": true})).await;
    assert_eq!(answer["errors"], json!([]), "{answer:?}");
    assert_eq!(in_image(&client).await, start, "seed {seed}");
    // Versions of the disk that the image has taken over, was flushed to, or was told to replace.
    let mut seen: BTreeSet<(&str, Option<u64>)> =
        start.iter().map(|(name, value)| (*name, Some(*value))).collect();
    // What was written at the prompt and has neither reached the disk nor been given up.
    let mut own: BTreeSet<(&str, Option<u64>)> = BTreeSet::new();
    let mut history = Vec::new();
    for _ in 0..45 {
        let (disk, image) = (on_disk(home), in_image(&client).await);
        let texts = [CLASS, MORE].map(|file| read(home, file));
        let class = in_class(&client).await;
        let name = METHODS[dice.roll(METHODS.len())];
        let action = [
            "disk", "patch", "anew", "remove", "flush", "flush", "sync", "take", "discard",
        ][dice.roll(9)];
        history.push(format!("{action} {name}"));
        let told = || format!("seed {seed}: {history:?} disk {texts:?} image {image:?}");
        // The methods that the action may give another text in the image.
        let mut concerned = vec![name];
        match action {
            "disk" => {
                let value = (dice.roll(4) > 0).then(&mut fresh);
                edit(home, name, value);
                continue;
            }
            "patch" => {
                let value = fresh();
                client.text(&format!("Toy >> {name} => {value}")).await;
                own.retain(|(method, _)| *method != name);
                own.insert((name, Some(value)));
            }
            "anew" => {
                let new: State = class
                    .iter()
                    .filter(|_| dice.roll(4) > 0)
                    .map(|name| (*name, fresh()))
                    .collect();
                client.text(toy(&new).trim()).await;
                own.retain(|(method, _)| !class.contains(method));
                own.extend(new.iter().map(|(name, value)| (*name, Some(*value))));
                concerned.clone_from(&class);
            }
            "remove" if image.contains_key(name) => {
                client
                    .good("remove-method", json!({"class": "Toy", "selector": name}))
                    .await;
                let now = in_image(&client).await;
                assert_eq!(now.get(name), None, "removed: {}", told());
                own.retain(|(method, _)| *method != name);
                own.insert((name, None));
            }
            "remove" => {}
            "flush" => {
                concerned.clear();
                let report = client.good("flush", json!({})).await;
                let now = on_disk(home);
                let pending = client.pending().await;
                let is_pending = |method: &str| {
                    pending.contains(&format!("Toy {method}"))
                        || (class.contains(&method) && pending.contains(&"new-class Toy".to_owned()))
                };
                own.retain(|(method, value)| {
                    let is_left = is_pending(method);
                    assert!(
                        is_left || now.get(method).copied() == *value,
                        "{method} is written: {}",
                        told()
                    );
                    is_left
                });
                for (file, text) in [CLASS, MORE].iter().zip(&texts) {
                    let conflicts = report["conflicts"].as_array().expect("a list");
                    if conflicts.iter().any(|conflict| conflict["file"] == *file) {
                        assert_eq!(read(home, file), *text, "left alone: {}", told());
                    }
                }
                assert_eq!(
                    report["conflicts"] == json!([]),
                    own.is_empty(),
                    "what is not written is told: {report:?} {}",
                    told()
                );
                seen.extend(
                    METHODS
                        .map(|method| (method, now.get(method).copied()))
                        .into_iter()
                        .filter(|(method, value)| image.get(method).copied() == *value),
                );
            }
            "sync" => {
                concerned.clear();
                let answer = client.good("load-project", json!({})).await;
                assert_eq!(answer["errors"], json!([]), "{answer:?} {}", told());
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
                let now = in_image(&client).await;
                for (method, _) in &own {
                    assert_eq!(now.get(method), disk.get(method), "discarded: {}", told());
                }
                // A new definition of the class may have left methods out, too.
                let is_taken = |method: &&str| now.get(method) == disk.get(method);
                let taken = METHODS.into_iter().filter(is_taken);
                seen.extend(taken.map(|method| (method, disk.get(method).copied())));
                own.clear();
                assert_eq!(client.pending().await, NOTHING, "{}", told());
            }
        }
        let disk_now = on_disk(home);
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
                before == after || !is_own || concerned.contains(&method),
                "{method} in the image was {before:?}: {}",
                told()
            );
        }
    }
}
