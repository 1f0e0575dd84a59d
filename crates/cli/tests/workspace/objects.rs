//! Objects of the image through the real binary: inspectors and actors of every kind.

use serde_json::{Value, json};

use crate::home::block_on;
use crate::project::{Client, started, write};

#[test]
fn an_inspector_evaluates_with_self_bound_to_its_subject() {
    let home = started("inspector", &[]);
    block_on(async {
        let client = Client::of(&home).await;
        client
            .text("Value subclass: Point\n  field: x = 3\n  field: y = 4\n  sum => self.x + self.y")
            .await;
        let value =
            |subject: &str, source: &str| format!("((Inspector on: {subject}) evaluate: \"{source}\") value");
        for (subject, source, expected) in [
            ("(Point x: 30 y: 4)", "self.x + self sum", json!(64)),
            (
                "(Point new)",
                "a := self sum. #(a, self.y) inject: 1 into: [:n :each | n + each]",
                json!(12),
            ),
            ("(Point new)", "self.x > 2 ifTrue: [^ #yes]. #no", json!("yes")),
            ("20", "self * 2", json!(40)),
            (
                "#(3, 1, 2)",
                "(self collect: [:each | each * self size]) last",
                json!(6),
            ),
            ("Room", "self size", json!(4)),
        ] {
            assert_eq!(
                client.value(&value(subject, source)).await,
                expected,
                "{subject}: {source}"
            );
        }
        // Again and again under one name; blocks that were made live on.
        client
            .text(&format!(
                "blocks := (1 to: 5) asList collect: [:n | {}]",
                value("n", "[:k | self + k]")
            ))
            .await;
        assert_eq!(
            client.value("blocks collect: [:each | each value: 10]").await,
            json!([11, 12, 13, 14, 15])
        );
        let failed = |source: &str| format!("((Inspector on: 20) evaluate: \"{source}\") error kind");
        for source in ["self frobnicate", "((", "noSuchThing"] {
            assert_eq!(client.value(&failed(source)).await, "eval_failed", "{source}");
        }
        assert_eq!(
            client
                .value("((Inspector on: Lamp spawn) evaluate: \"1\") error kind")
                .await,
            "actor_eval_unsupported"
        );
        assert_eq!(client.pending().await, ["new-class Point"]);
    });
}

const NATIVE: &str = "-module(orbit_disk).
-behaviour(gen_server).
-export([start_link/1, init/1, handle_call/3, handle_cast/2]).
start_link(Config) -> gen_server:start_link(?MODULE, Config, []).
init(Config) -> {ok, maps:merge(#{size => 9}, Config)}.
handle_call({size, [], _}, _, #{size := Size} = State) -> {reply, {ok, Size}, State}.
handle_cast(_, State) -> {noreply, State}.
";

#[test]
fn native_actors_are_actors_for_every_op() {
    let home = started("native", &[]);
    write(&home, "native/orbit_disk.erl", NATIVE);
    write(
        &home,
        "src/disk.bt",
        "Actor subclass: Disk native: orbit_disk\n  size => self delegate\n",
    );
    write(
        &home,
        "src/rack.bt",
        "Supervisor subclass: Rack\n  class children => #(Disk)\n",
    );
    block_on(async {
        let client = Client::of(&home).await;
        client.good("load-project", json!({})).await;
        client.text("disk := Disk spawn").await;
        assert_eq!(client.value("disk size").await, 9);
        let actors = async || {
            let answer = client.good("actors", json!({"class": "Disk"})).await;
            answer["actors"].as_array().cloned().expect("actors")
        };
        let found = actors().await;
        assert_eq!((found.len(), &found[0]["class"]), (1, &json!("Disk")));
        assert!(found[0]["spawned_at"].is_u64());
        let pid = found[0]["pid"].clone();
        let seen = client.good("inspect", json!({"actor": pid})).await;
        assert_eq!(
            (&seen["kind"], &seen["class"], &seen["fields"][0]["text"]),
            (&json!("actor"), &json!("Disk"), &json!("9"))
        );
        let stats = client.good("pid-stats", json!({"actor": pid})).await;
        assert_eq!(stats["status"], json!(["done"]));
        assert_eq!(stats["stats"]["queue_len"], stats["queue_len"]);
        assert!(stats["stats"]["status"].is_string());
        client.text("Rack supervise").await;
        assert_eq!(actors().await.len(), 2);
        let tree = client.good("supervision-tree", json!({})).await;
        let nodes = tree["nodes"].as_array().expect("nodes");
        let rack = nodes
            .iter()
            .find(|node| node["class"] == "Rack")
            .expect("the supervisor");
        let is_child = |node: &&Value| node["parent"] == rack["pid"] && node["class"] == "Disk";
        assert_eq!(nodes.iter().filter(is_child).count(), 1, "{nodes:?}");
        client.good("kill", json!({"actor": pid})).await;
        assert_eq!(client.error("disk size").await, "actor_dead");
        assert_eq!(actors().await.len(), 1);
    });
}

#[test]
fn the_workspace_answers_as_its_reference_says() {
    let home = started("interface", &[]);
    block_on(async {
        let client = Client::of(&home).await;
        assert_eq!(
            client.value("Workspace dependencies keys").await,
            json!(["parts"])
        );
        assert_eq!(
            client.text("Workspace dependencies at: \"parts\"").await,
            "Package(parts v0.1.0)"
        );
        assert_eq!(client.error("Workspace load: \"src/nope.bt\"").await, "not_found");
        let made = |source: &str| format!("Workspace newClass: \"{source}\" at: \"src/fan.bt\"");
        assert_eq!(client.error(&made("// nothing")).await, "no_class_declared");
        let two = "Object subclass: Fan\n  class a => 1\n\nObject subclass: Van\n  class a => 1\n";
        assert_eq!(client.error(&made(two)).await, "multiple_classes_declared");
        client.text(&made("Object subclass: Fan\n  class a => 1\n")).await;
        assert_eq!(
            client.value("Workspace flush at: #files").await,
            json!(["src/fan.bt"])
        );
        // A class of the prompt that was removed comes back.
        client
            .text("/// Flat.\nObject subclass: Pad\n  class a => 1")
            .await;
        let removed = client.good("remove-class", json!({"class": "Pad"})).await;
        assert_eq!(client.error("Pad a").await, "class_not_found");
        let seq = removed["entry"]["seq"].clone();
        client.good("revert", json!({ "seq": seq })).await;
        assert_eq!(client.value("Pad a").await, 1);
        assert_eq!(client.text("Pad doc").await, "\"Flat.\"");
    });
}
