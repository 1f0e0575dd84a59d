//! Classes taken out of the image and out of files that hold more than them, through the real binary.

use serde_json::json;

use crate::home::{Home, block_on};
use crate::project::{Client, exists, read, started, write};

const NOTHING: [&str; 0] = [];

const HOST: &str = "Object subclass: Host\n  class a => 1\n\nInteger >> trip => self * 3\n";

const TRIP: &str = "\nInteger >> trip => 44\n";

async fn with_file(home: &Home, file: &str, text: &str) -> Client {
    write(home, file, text);
    let client = Client::of(home).await;
    client.good("load-project", json!({})).await;
    client
}

#[test]
fn a_flush_cuts_a_removed_class_out_of_its_file_and_writes_the_rest() {
    let home = started("shared", &[]);
    block_on(async {
        let client = with_file(&home, "src/Host.bt", HOST).await;
        client.text("Integer >> trip => 44").await;
        client.good("remove-class", json!({"class": "Host"})).await;
        assert_eq!(client.value("4 trip").await, 44, "only the class was removed");
        let changes = client.good("changes", json!({})).await;
        assert_eq!(changes["entries"][1]["deletes_file"], false, "{changes:?}");
        // Loading the file again changes nothing of it.
        client.good("load-project", json!({"force": true})).await;
        assert_eq!(client.value("4 trip").await, 44);
        assert_eq!(client.error("Host a").await, "class_not_found");
        let report = client.good("flush", json!({})).await;
        assert_eq!(report["flushed"], 2, "{report:?}");
        assert_eq!(read(&home, "src/Host.bt"), TRIP);
        assert_eq!(client.pending().await, NOTHING);
        client.good("load-project", json!({"force": true})).await;
        assert_eq!(client.value("4 trip").await, 44);
        // A method that goes together with a class.
        let client = with_file(&home, "src/Host.bt", &format!("{HOST}\nInteger >> quad => 4\n")).await;
        assert_eq!(client.value("Host a + 4 quad").await, 5);
        let quad = json!({"class": "Integer", "selector": "quad"});
        client.good("remove-method", quad).await;
        client.good("remove-class", json!({"class": "Host"})).await;
        let report = client.good("flush", json!({})).await;
        assert_eq!(report["flushed"], 2, "{report:?}");
        assert_eq!(read(&home, "src/Host.bt"), "\nInteger >> trip => self * 3\n");
    });
}

#[test]
fn a_removed_class_comes_back_beside_what_its_file_has_in_the_image() {
    let home = started("comesback", &[]);
    block_on(async {
        let client = with_file(&home, "src/Host.bt", HOST).await;
        client.text("Host class >> a => 2").await;
        let removed = client.good("remove-class", json!({"class": "Host"})).await;
        assert_eq!(client.value("4 trip").await, 12);
        client.text("Integer >> trip => 44").await;
        client.good("flush", json!({"class": "Integer"})).await;
        let seq = json!({"seq": removed["entry"]["seq"]});
        client.good("revert", seq.clone()).await;
        assert_eq!(client.value("Host a").await, 2);
        assert_eq!(client.value("4 trip").await, 44);
        assert_eq!(client.pending().await, ["Host a"]);
        // Undone and done again.
        client.good("revert", seq.clone()).await;
        assert_eq!(client.error("Host a").await, "class_not_found");
        assert_eq!(client.value("4 trip").await, 44);
        client.good("revert", seq).await;
        assert_eq!(client.value("Host a").await, 2);
        client.good("flush", json!({"confirm_destructive": true})).await;
        let both = HOST.replace("self * 3", "44").replace("a => 1", "a => 2");
        assert_eq!(read(&home, "src/Host.bt"), both);
        // One that is unloaded takes only itself along, too.
        client.good("unload", json!({"class": "Host"})).await;
        assert_eq!(client.error("Host a").await, "class_not_found");
        assert_eq!(client.value("4 trip").await, 44);
        client.good("load-project", json!({"force": true})).await;
        assert_eq!(client.value("Host a").await, 2);
        // What the file has no more is gone, whoever ran it.
        client.good("unload", json!({"class": "Host"})).await;
        write(&home, "src/Host.bt", "Object subclass: Host\n  class a => 8\n");
        client.good("load-project", json!({})).await;
        assert_eq!(client.error("4 trip").await, "does_not_understand");
    });
}

#[test]
fn the_difference_of_a_removed_class_is_to_its_file_as_it_is_now() {
    let home = started("removeddiff", &[]);
    block_on(async {
        let solo = "Object subclass: Solo\n  class a => 1\n";
        let client = with_file(&home, "src/Solo.bt", solo).await;
        let removed = client.good("remove-class", json!({"class": "Solo"})).await;
        let seq = json!({"seq": removed["entry"]["seq"]});
        let edited = format!("{solo}  class precious => 5\n");
        write(&home, "src/Solo.bt", &edited);
        let report = client.good("flush", json!({"confirm_destructive": true})).await;
        assert_eq!(report["conflicts"][0]["reason"], "external_edit", "{report:?}");
        let diff = client.good("diff", seq.clone()).await;
        assert!(
            diff["diff"]
                .as_str()
                .unwrap()
                .contains("\n+  class precious => 5"),
            "{diff:?}"
        );
        let sides = client.good("change-sides", seq.clone()).await;
        assert_eq!(sides["disk"], edited.trim_end(), "{sides:?}");
        assert_eq!(
            (&sides["base"], &sides["image"]),
            (&json!(solo.trim_end()), &json!(null))
        );
        assert_eq!(client.refused("revert", seq).await, "revert_not_possible");
        client
            .good("take", json!({"from": "image", "class": "Solo"}))
            .await;
        client.good("flush", json!({"confirm_destructive": true})).await;
        assert!(!exists(&home, "src/Solo.bt"));
    });
}

#[test]
fn comments_beside_a_removed_class_are_shown_as_what_goes_with_it() {
    let home = started("removedkept", &[]);
    block_on(async {
        let solo =
            "// LICENSE text of mine\n\nObject subclass: Solo\n  class a => 1\n\n// footer notes of mine\n";
        let client = with_file(&home, "src/Solo.bt", solo).await;
        let removed = client.good("remove-class", json!({"class": "Solo"})).await;
        let changes = client.good("changes", json!({})).await;
        assert_eq!(changes["entries"][0]["deletes_file"], true, "{changes:?}");
        let seq = json!({"seq": removed["entry"]["seq"]});
        let diff = client.good("diff", seq).await;
        let diff = diff["diff"].as_str().unwrap();
        assert!(
            diff.contains("\n-// LICENSE") && diff.contains("\n-// footer"),
            "{diff}"
        );
        let report = client.good("flush", json!({})).await;
        assert_eq!(report["skipped"][0]["reason"], "destructive", "{report:?}");
        assert_eq!(read(&home, "src/Solo.bt"), solo);
        client.good("flush", json!({"confirm_destructive": true})).await;
        assert!(!exists(&home, "src/Solo.bt"));
    });
}
