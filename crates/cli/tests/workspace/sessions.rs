//! What sessions define without a file, and what is loaded from outside the project.

use serde_json::{Value, json};

use crate::home::block_on;
use crate::project::{Client, started, write};

/// A type alias, a protocol and a class of the prompt are known to every later input, also to a new compiler worker.
#[test]
fn aliases_of_a_session_are_types_everywhere() {
    let home = started("aliases", &[]);
    block_on(async {
        let client = Client::of(&home).await;
        assert_eq!(client.text("type Way = #north | #south").await, "Way");
        let both = "[:w :: Way | w matchExhaustive: [#north -> 1; #south -> 2]] value: #south";
        assert_eq!(client.value(both).await, 2);
        assert_eq!(
            client
                .error("[:w :: Way | w matchExhaustive: [#north -> 1]] value: #south")
                .await,
            "compile_failed"
        );
        let walker = "Value subclass: Walker\n  field: way :: Way = #north\n  turn: w :: Way -> Way => w matchExhaustive: [#north -> #south; #south -> #north]";
        let answer = client.good("eval", json!({ "code": walker })).await;
        assert_eq!(
            answer.get("warnings").unwrap_or(&json!([])),
            &json!([]),
            "{answer:?}"
        );
        assert_eq!(client.value("Walker new turn: #north").await, "south");
        // A method of its own, a nested name, and a protocol by itself.
        let answer = client
            .good(
                "eval",
                json!({"code": "Walker >> back: w :: Way -> Way => self turn: w"}),
            )
            .await;
        assert_eq!(
            answer.get("warnings").unwrap_or(&json!([])),
            &json!([]),
            "{answer:?}"
        );
        client.text("type Stay = Way | nil").await;
        let three = "[:w :: Stay | w matchExhaustive: [#north -> 1; #south -> 2; nil -> 3]] value: nil";
        assert_eq!(client.value(three).await, 3);
        client.text("Protocol define: Turning\n  turn: w").await;
        let answer = client
            .good(
                "eval",
                json!({"code": "Value subclass: Wheel\n  field: on :: Turning | Nil = nil"}),
            )
            .await;
        assert_eq!(
            answer.get("warnings").unwrap_or(&json!([])),
            &json!([]),
            "{answer:?}"
        );
        // Defined again, the later one counts.
        client.text("type Way = #north | #south | #west").await;
        assert_eq!(client.error(both).await, "compile_failed");
        let docs = client.good("docs", json!({"class": "Way"})).await;
        assert_eq!(
            docs["docs"],
            "```beamtalk\ntype Way = #north | #south | #west\n```"
        );
        let docs = client.good("docs", json!({"class": "Timeout"})).await;
        assert!(
            docs["docs"]
                .as_str()
                .is_some_and(|text| text.contains("type Timeout = ")),
            "{docs:?}"
        );
        for fields in [
            json!({"class": "NoSuchThing"}),
            json!({"class": "Way", "selector": "size"}),
            json!({"class": "way"}),
        ] {
            assert_eq!(client.refused("docs", fields).await, "class_not_found");
        }
    });
}

/// Classes without a file are checked with the others.
#[test]
fn the_whole_image_is_checked_again() {
    let home = started("recheck", &[]);
    block_on(async {
        let client = Client::of(&home).await;
        let checked = async || -> (Value, Vec<String>) {
            let answer = client.good("recheck-image", json!({})).await;
            let findings = answer["findings"].as_array().cloned().expect("findings");
            let text = |finding: &Value| format!("{}: {}", finding["file"], finding["message"]);
            (answer["checked"].clone(), findings.iter().map(text).collect())
        };
        let (files, before) = checked().await;
        client.text("type Way = #north | #south").await;
        client
            .text("Object subclass: Guide\n  way: w :: Way => w matchExhaustive: [#north -> 1; #south -> 2]")
            .await;
        client.text("Object subclass: Other\n  go => 1").await;
        client.text("Object subclass: Other\n  go => 2").await;
        let (count, findings) = checked().await;
        assert_eq!(count.as_u64(), files.as_u64().map(|count| count + 2), "each once");
        assert_eq!(findings, before);
        client.text("type Way = #north | #south | #west").await;
        let (_, findings) = checked().await;
        let new: Vec<&String> = findings.iter().filter(|one| !before.contains(one)).collect();
        assert_eq!(new, ["\"Guide\": \"matchExhaustive: leaves `#west` unhandled\""]);
        assert_eq!(
            client.value("(Workspace recheckImage at: #findings) size").await,
            json!(findings.len())
        );
    });
}

const COUNTER: &str = "-module(probe_counter).\n-export([next/1]).\nnext(N) -> N + 1.\n";

/// A file of another package brings its native code; when that does not compile nothing is loaded.
#[test]
fn a_file_of_another_package_brings_its_native_code() {
    let home = started("foreign", &[]);
    write(
        &home,
        "../probe/beamtalk.toml",
        "[package]\nname = \"probe\"\nversion = \"1.0.0\"\n",
    );
    write(&home, "../probe/native/probe_counter.erl", COUNTER);
    write(
        &home,
        "../probe/src/Probe.bt",
        "Object subclass: Probe native: probe_counter\n  class next: n -> Integer => self delegate\n",
    );
    write(
        &home,
        "../broken/beamtalk.toml",
        "[package]\nname = \"broken\"\nversion = \"1.0.0\"\n",
    );
    write(
        &home,
        "../broken/native/broken_native.erl",
        "-module(broken_native).\n-export([go/0]).\ngo() -> .\n",
    );
    write(
        &home,
        "../broken/src/Broken.bt",
        "Object subclass: Broken native: broken_native\n  class go -> Integer => self delegate\n",
    );
    block_on(async {
        let client = Client::of(&home).await;
        let answer = client
            .good("load-file", json!({"path": "../probe/src/Probe.bt"}))
            .await;
        assert_eq!(answer["classes"], json!(["Probe"]));
        assert_eq!(client.value("Probe next: 4").await, 5);
        assert_eq!(
            client
                .refused("load-file", json!({"path": "../broken/src/Broken.bt"}))
                .await,
            "native_compile_failed"
        );
        assert_eq!(client.error("Broken go").await, "class_not_found");
        assert_eq!(
            client
                .value("[Workspace load: \"../broken/src/Broken.bt\"] on: Error do: [:e | e kind]")
                .await,
            "native_compile_failed"
        );
    });
}
