//! Methods that stand in another file than their class, through the real binary: they are changed, undone, flushed and
//! merged like any other.

use serde_json::{Value, json};

use crate::home::{Home, block_on};
use crate::project::{Client, read, started, write};

const NOTHING: [&str; 0] = [];

const FAN: &str = "Value subclass: Fan\n  one => 1\n";

const MORE: &str = "// More.\n\n/// Three.\nFan >> three => 3\n\nFan class >> make => 4\n";

fn fan(name: &str) -> Home {
    let home = started(name, &[]);
    write(&home, "src/Fan.bt", FAN);
    write(&home, "src/More.bt", MORE);
    home
}

async fn loaded(home: &Home) -> Client {
    let client = Client::of(home).await;
    client.good("load-project", json!({})).await;
    assert_eq!(client.value("Fan new three").await, 3);
    client
}

#[test]
fn a_method_that_stands_elsewhere_is_changed_where_it_stands() {
    let home = fan("elsewhere");
    block_on(async {
        let client = loaded(&home).await;
        client.text("Fan >> three => 33").await;
        client.text("Fan class >> make => 44").await;
        assert_eq!(client.pending().await, ["Fan three", "Fan make"]);
        // Neither loading nor a new definition of the class takes it away.
        let answer = client.good("load-project", json!({"force": true})).await;
        assert_eq!((&answer["errors"], answer.get("conflicts")), (&json!([]), None));
        client.good("reload", json!({"class": "Fan"})).await;
        client.text("Value subclass: Fan\n  one => 11").await;
        assert_eq!(client.value("Fan new three").await, 33);
        assert_eq!(client.value("Fan make").await, 44);
        assert_eq!(client.value("Fan new one").await, 11);
        let report = client.good("flush", json!({})).await;
        assert_eq!(report["conflicts"], json!([]), "{report:?}");
        assert_eq!(read(&home, "src/Fan.bt"), FAN.replace("=> 1", "=> 11"));
        let flushed = MORE.replace("=> 3", "=> 33").replace("=> 4", "=> 44");
        assert_eq!(read(&home, "src/More.bt"), flushed);
        client.text("Value subclass: Fan\n  one => 12").await;
        assert_eq!(client.value("Fan new three").await, 33, "as flushed");
        client.good("discard", json!({"all": true})).await;
        // What the file has no more, the image has no more.
        write(&home, "src/More.bt", "// Nothing more.\n");
        let answer = client.good("load-project", json!({})).await;
        assert_eq!(answer["errors"], json!([]), "{answer:?}");
        assert_eq!(client.error("Fan new three").await, "does_not_understand");
        assert_eq!(client.error("Fan make").await, "does_not_understand");
    });
}

#[test]
fn every_choice_is_there_for_a_method_that_stands_elsewhere() {
    let home = fan("choices");
    block_on(async {
        let client = loaded(&home).await;
        let seq = client.save("Fan", "three", "three => 33").await;
        client.good("revert", json!({"seq": seq})).await;
        assert_eq!(client.value("Fan new three").await, 3);
        client.good("revert", json!({"seq": seq})).await;
        assert_eq!(client.value("Fan new three").await, 33);
        client.good("discard", json!({"seq": seq})).await;
        assert_eq!(client.value("Fan new three").await, 3);
        assert_eq!(client.pending().await, NOTHING);
        client.good("restore", json!({"seq": seq})).await;
        assert_eq!(client.value("Fan new three").await, 33);
        // The disk has another by now.
        write(&home, "src/More.bt", &MORE.replace("=> 3", "=> 5"));
        let answer = client.good("load-project", json!({})).await;
        assert_eq!(answer["conflicts"][0]["detail"], "Fan>>three", "{answer:?}");
        assert_eq!(client.value("Fan new three").await, 33);
        let take = json!({"from": "disk", "class": "Fan", "selector": "three"});
        client.good("take", take).await;
        assert_eq!(client.value("Fan new three").await, 5);
        assert_eq!(client.pending().await, NOTHING);
        // Undoing a class leaves what is not in its text.
        client.text("Fan >> three => 33").await;
        let anew = client
            .good("eval", json!({"code": "Value subclass: Fan\n  one => 11"}))
            .await;
        client
            .good("revert", json!({"seq": anew["entries"][0]["seq"]}))
            .await;
        assert_eq!(client.value("Fan new three").await, 33);
        assert_eq!(client.pending().await, ["Fan three"]);
        client.good("discard", json!({"all": true})).await;
        assert_eq!(read(&home, "src/More.bt"), MORE.replace("=> 3", "=> 5"));
    });
}

#[test]
fn a_method_that_stands_elsewhere_can_be_removed() {
    let home = fan("removed");
    block_on(async {
        let client = loaded(&home).await;
        let remove = json!({"class": "Fan", "selector": "three"});
        let removed = client.good("remove-method", remove.clone()).await;
        assert_eq!(client.error("Fan new three").await, "does_not_understand");
        client.good("load-project", json!({"force": true})).await;
        assert_eq!(client.error("Fan new three").await, "does_not_understand");
        client
            .good("revert", json!({"seq": removed["entry"]["seq"]}))
            .await;
        assert_eq!(client.value("Fan new three").await, 3);
        assert_eq!(client.pending().await, NOTHING);
        client.good("remove-method", remove).await;
        client.good("flush", json!({})).await;
        assert_eq!(read(&home, "src/More.bt"), "// More.\n\nFan class >> make => 4\n");
        client.good("load-project", json!({"force": true})).await;
        assert_eq!(client.error("Fan new three").await, "does_not_understand");
        assert_eq!(client.value("Fan make").await, 4);
        // A class that goes and comes back has what other files add to it.
        let removed = client.good("remove-class", json!({"class": "Fan"})).await;
        client
            .good("revert", json!({"seq": removed["entry"]["seq"]}))
            .await;
        assert_eq!(client.value("Fan make").await, 4);
    });
}

#[test]
fn a_change_follows_a_method_to_the_file_that_has_it_now() {
    let home = fan("followed");
    block_on(async {
        let client = loaded(&home).await;
        // From the file that extends the class into the class, and one that was new the other way.
        client.text("Fan >> three => 33").await;
        client.text("Fan >> fresh => 7").await;
        let more = MORE.replace("/// Three.\nFan >> three => 3", "Fan >> fresh => 8");
        write(&home, "src/More.bt", &more);
        write(&home, "src/Fan.bt", &format!("{FAN}\n  three => 3\n"));
        let answer = client.good("load-project", json!({})).await;
        assert_eq!(answer["errors"], json!([]), "{answer:?}");
        let told: Vec<&Value> = answer["conflicts"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|conflict| &conflict["detail"])
            .collect();
        assert!(told.contains(&&json!("Fan>>fresh")), "{answer:?}");
        assert_eq!(client.value("Fan new three").await, 33);
        assert_eq!(client.value("Fan new fresh").await, 7);
        assert_eq!(client.pending().await, ["Fan three", "Fan fresh"]);
        client.good("take", json!({"from": "image", "all": true})).await;
        let report = client.good("flush", json!({})).await;
        assert_eq!(report["conflicts"], json!([]), "{report:?}");
        assert_eq!(read(&home, "src/More.bt"), more.replace("=> 8", "=> 7"));
        assert_eq!(read(&home, "src/Fan.bt"), format!("{FAN}\n  three => 33\n"));
    });
}

#[test]
fn what_was_typed_for_a_library_class_and_a_file_that_has_it_now_are_a_conflict() {
    let home = fan("library");
    block_on(async {
        let client = loaded(&home).await;
        client.text("String >> zap => 5").await;
        write(&home, "src/More.bt", &format!("{MORE}\nString >> zap => 50\n"));
        let answer = client.good("load-project", json!({})).await;
        assert_eq!(answer["conflicts"][0]["detail"], "String>>zap", "{answer:?}");
        assert_eq!(client.value("\"a\" zap").await, 5);
        let take = json!({"from": "disk", "class": "String", "selector": "zap"});
        client.good("take", take).await;
        assert_eq!(client.value("\"a\" zap").await, 50);
        assert_eq!(client.pending().await, NOTHING);
    });
}

#[test]
fn a_file_of_extensions_that_is_gone_can_be_written_anew_or_given_up() {
    let home = fan("gone");
    block_on(async {
        let client = loaded(&home).await;
        for is_kept in [true, false] {
            client.text("Fan >> three => 33").await;
            std::fs::remove_file(home.project().join("src/More.bt")).expect("removed");
            let report = client.good("flush", json!({})).await;
            assert_eq!(report["conflicts"][0]["reason"], "file_missing", "{report:?}");
            client
                .good("take", json!({"from": "image", "class": "Fan"}))
                .await;
            if is_kept {
                client.good("flush", json!({})).await;
                assert_eq!(read(&home, "src/More.bt"), MORE.replace("=> 3", "=> 33"));
            } else {
                client.good("discard", json!({"all": true})).await;
                assert_eq!(client.error("Fan new three").await, "does_not_understand");
                assert_eq!(
                    client.value("Fan new one").await,
                    1,
                    "the class is another file's"
                );
            }
            assert_eq!(client.pending().await, NOTHING);
        }
    });
}

#[test]
fn a_method_beside_its_class_is_no_part_of_a_new_definition() {
    let home = started("beside", &[]);
    let belt = "Value subclass: Belt\n  size => 9\n\nBelt >> extra => 8\n";
    write(&home, "src/Belt.bt", belt);
    block_on(async {
        let client = Client::of(&home).await;
        client.good("load-project", json!({})).await;
        client.text("Belt >> extra => 80").await;
        client.text("Value subclass: Belt\n  size => 91").await;
        assert_eq!(client.value("Belt new extra").await, 80);
        assert_eq!(client.pending().await, ["Belt extra", "new-class Belt"]);
        let report = client.good("flush", json!({})).await;
        assert_eq!(report["conflicts"], json!([]), "{report:?}");
        assert_eq!(
            read(&home, "src/Belt.bt"),
            belt.replace("=> 9", "=> 91").replace("=> 8", "=> 80")
        );
    });
}
