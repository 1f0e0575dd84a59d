//! The source of the image beside that of the files, as tools tell it.

use serde_json::{Value, json};

use super::{Mcp, configure};
use crate::project::{read, started, write, written};

/// What a model is told leads on: sources that are given are taken, and errors say the next step.
#[test]
fn what_a_model_is_told_leads_on() {
    let home = started("mcp-leads", &[]);
    let mut mcp = Mcp::start(&home, &["--toolsets", "all"]);
    let made = json!({"class": "Lamp", "selector": "make", "side": "class"});
    let source = mcp.good("read_source", made)["source"].clone();
    assert!(source.as_str().expect("a text").starts_with("class "), "{source}");
    for side in [json!("class"), Value::Null] {
        let mut method = json!({"class": "Lamp", "selector": "make", "source": source});
        if !side.is_null() {
            method["side"] = side;
        }
        let saved = mcp.good("save_method", method);
        assert!(
            saved["entry"].is_null() || saved["entry"]["title"] == "Lamp class>>make",
            "{saved}"
        );
    }
    assert_eq!(
        mcp.good("evaluate", json!({"code": "Lamp make isOn"}))["value"],
        false
    );
    let field = json!({"class": "Lamp", "selector": "owner", "source": "owner => self.owner"});
    let unknown = mcp.bad("save_method", field);
    assert!(unknown["hint"].to_string().contains("read_source"), "{unknown}");
    let again = json!({"path": "src/lamp.bt", "source": "Actor subclass: Lamp\n  state: owner = 1\n"});
    let exists = mcp.bad("save_class", again);
    assert_eq!(exists["kind"], "target_exists", "{exists}");
    assert!(
        exists["hint"].to_string().contains("replaces all methods"),
        "{exists}"
    );
    // Names are found whatever their capitals, and classes that are only in a file.
    let close = mcp.bad("docs", json!({"class": "JSON"}));
    assert!(close["hint"].to_string().contains("'Json'"), "{close}");
    write(&home, "src/shelf.bt", "Object subclass: Shelf\n  class a => 1\n");
    let filed = mcp.bad("read_source", json!({"class": "Shelf"}));
    assert!(filed["hint"].to_string().contains("src/shelf.bt"), "{filed}");
    mcp.good("evaluate", json!({"code": "Workspace load: \"src/shelf.bt\""}));
    mcp.good("read_source", json!({"class": "Shelf"}));
    // A failing test says where.
    write(
        &home,
        "test/LampTest.bt",
        "TestCase subclass: LampTest\n  testBroken =>\n    #(1, 2) at: 7\n",
    );
    let failed = mcp.good("test", json!({"class": "LampTest"}));
    let stack = failed["tests"][0]["error"]["stack"].to_string();
    assert!(
        stack.contains("LampTest>>testBroken (test/LampTest.bt:3)"),
        "{failed}"
    );
    // A prompt keeps to its class.
    let prompt = |name: &str| json!({"name": "find_slow", "arguments": {"class": name}});
    let uris = mcp.ask("prompts/get", prompt("Lamp"))["result"]["messages"].to_string();
    assert!(uris.contains("beamtalk://stats/class/Lamp"), "{uris}");
    assert_eq!(mcp.ask("prompts/get", prompt("Nope"))["error"]["code"], -32602);
}

/// What was added and taken away again is no difference to the file; what is still in the file is.
#[test]
fn a_class_differs_from_its_file_only_while_it_does() {
    let home = started("mcp-differs", &[]);
    let mut mcp = Mcp::start(&home, &["--toolsets", "all"]);
    let differs = |mcp: &mut Mcp| mcp.good("read_source", json!({"class": "Lamp"}))["disk_differs"].clone();
    assert_eq!(differs(&mut mcp), false);
    mcp.good(
        "save_method",
        json!({"class": "Lamp", "selector": "frob", "source": "frob => 1"}),
    );
    assert_eq!(differs(&mut mcp), true);
    mcp.good("remove_method", json!({"class": "Lamp", "selector": "frob"}));
    assert_eq!(differs(&mut mcp), false);
    mcp.good("remove_method", json!({"class": "Lamp", "selector": "toggle"}));
    assert_eq!(differs(&mut mcp), true);
}

/// The file has a method if it has all of it, and nothing more.
#[test]
fn a_method_differs_unless_its_file_has_just_it() {
    let home = started("mcp-method-differs", &[]);
    let mut mcp = Mcp::start(&home, &["--toolsets", "all"]);
    let text = |method: &str| format!("Object subclass: Cup\n{method}\n\n  last => 9\n");
    write(&home, "src/cup.bt", &text("  bar => 1"));
    mcp.good("load_project", json!({}));
    for (method, differs) in [
        ("  bar => 1", false),
        ("  bar => 10", true),
        ("  bar => 1 + 5", true),
        ("  bar => 1\n    + 5", true),
        ("  // bar => 1\n  bar => 2", true),
        ("  foobar => 1\n  bar => 2", true),
        ("  /// Its size.\n  bar => 1\n  // and so on", false),
        ("  baz => 1", true),
    ] {
        write(&home, "src/cup.bt", &text(method));
        let read = mcp.good("read_source", json!({"class": "Cup", "selector": "bar"}));
        assert_eq!(read["disk_differs"], differs, "{method}: {read}");
    }
}

/// All sides of what is in conflict are shown, whichever way it is asked for.
#[test]
fn the_sides_of_a_conflict_are_those_of_what_is_in_conflict() {
    let home = started("mcp-sides", &[]);
    write(&home, "src/cup.bt", "Object subclass: Cup\n  bar => 1\n");
    let mut mcp = Mcp::start(&home, &["--toolsets", "all"]);
    mcp.good("load_project", json!({}));
    let save = |selector: &str, value: u32| json!({"class": "Cup", "selector": selector, "source": format!("{selector} => {value}")});
    mcp.good("save_method", save("aaa", 1));
    mcp.good("save_method", save("bar", 100));
    write(&home, "src/cup.bt", "Object subclass: Cup\n  bar => 50\n");
    let of_bar = mcp.good("list_changes", json!({}))["entries"][0]["seq"].clone();
    for asked in [json!({"class": "Cup"}), json!({}), json!({"seq": of_bar})] {
        let sides = mcp.good("diff_change", asked.clone());
        assert_eq!(
            (&sides["base"], &sides["image"], &sides["disk"]),
            (&json!("bar => 1"), &json!("bar => 100"), &json!("bar => 50")),
            "{asked}: {sides}"
        );
    }
}

/// A yes is for the texts that were there when it was asked for: what was written meanwhile is not lost by it.
#[test]
fn a_yes_to_a_side_is_for_the_texts_as_they_were() {
    let home = written("mcp-meanwhile");
    configure(&home, "[mcp]\nmax-policy = \"full\"\n");
    let cup = |value: u32| format!("Value subclass: Cup\n  bar => {value}\n");
    write(&home, "src/cup.bt", &cup(1));
    home.start(&[]);
    let mut mcp = Mcp::that_can_ask(&home, &["--toolsets", "all", "--policy", "full"]);
    let save = |mcp: &mut Mcp, value: u32| {
        let source = format!("bar => {value}");
        mcp.good(
            "save_method",
            json!({"class": "Cup", "selector": "bar", "source": source}),
        );
    };
    save(&mut mcp, 100);
    write(&home, "src/cup.bt", &cup(50));
    let yes = json!({"action": "accept", "content": {"approve": true}});
    let call = |take: &str, state: &Value| {
        let mut call = json!({"name": "resolve_conflict", "arguments": {"class": "Cup", "take": take}});
        if !state.is_null() {
            call["requestState"] = state.clone();
            call["inputResponses"] = json!({"go": yes});
        }
        call
    };
    // The file is edited while the person thinks about it, and then what is in memory.
    for (take, changes_file) in [("image", true), ("disk", false)] {
        let asked = mcp.ask("tools/call", call(take, &Value::Null))["result"].clone();
        assert_eq!(asked["resultType"], "input_required", "{take}: {asked}");
        if changes_file {
            write(&home, "src/cup.bt", &cup(51));
        } else {
            save(&mut mcp, 101);
        }
        let again = mcp.ask("tools/call", call(take, &asked["requestState"]))["result"].clone();
        assert_eq!(again["resultType"], "input_required", "{take}: {again}");
        assert_eq!(read(&home, "src/cup.bt"), cup(51), "{take}");
    }
    assert_eq!(mcp.good("evaluate", json!({"code": "Cup new bar"}))["value"], 101);
    let asked = mcp.ask("tools/call", call("disk", &Value::Null))["result"].clone();
    let done = mcp.ask("tools/call", call("disk", &asked["requestState"]))["result"].clone();
    assert_eq!(done["isError"], false, "{done}");
    assert_eq!(mcp.good("evaluate", json!({"code": "Cup new bar"}))["value"], 51);
}

/// A person is asked about a conflict, and about nothing that is none: a change that is only pending stays.
#[test]
fn who_takes_a_side_is_asked_only_about_a_conflict() {
    let home = written("mcp-take");
    configure(&home, "[mcp]\nmax-policy = \"full\"\n");
    write(&home, "src/cup.bt", "Value subclass: Cup\n  bar => 1\n");
    home.start(&[]);
    let mut mcp = Mcp::that_can_ask(&home, &["--toolsets", "all", "--policy", "full"]);
    let save = |selector: &str, value: u32| json!({"class": "Cup", "selector": selector, "source": format!("{selector} => {value}")});
    mcp.good("save_method", save("aaa", 1));
    mcp.good("save_method", save("bar", 100));
    let of = |take: &str| json!({"class": "Cup", "take": take});
    let method = |selector: &str, take: &str| json!({"class": "Cup", "selector": selector, "take": take, "confirm": true});
    let of_class = |take: &str| json!({"class": "Cup", "selector": "bar", "side": "class", "take": take});
    let refused = |mcp: &mut Mcp, call: &Value, subject: &str| {
        let error = mcp.bad("resolve_conflict", call.clone());
        assert_eq!(error["kind"], "not_found", "{call}: {error}");
        assert_eq!(error["message"], format!("{subject} is in no conflict"), "{call}");
        let hint = error["hint"].as_str().unwrap_or_default();
        assert!(
            hint.contains("list_changes") && hint.contains("revert_change"),
            "{hint}"
        );
    };
    for take in ["image", "disk"] {
        refused(&mut mcp, &of(take), "Cup");
        refused(&mut mcp, &method("bar", take), "Cup>>bar");
        refused(&mut mcp, &method("aaa", take), "Cup>>aaa");
        refused(&mut mcp, &method("nothing", take), "Cup>>nothing");
    }
    assert_eq!(
        mcp.good("dirty_methods", json!({}))["dirty"],
        json!({"Cup": ["aaa", "bar"]})
    );
    write(&home, "src/cup.bt", "Value subclass: Cup\n  bar => 50\n");
    // So many calls that may lose something are too many for one server.
    let mut mcp = Mcp::that_can_ask(&home, &["--toolsets", "all", "--policy", "full"]);
    for take in ["image", "disk"] {
        for lost in [of(take), method("bar", take)] {
            let asked = mcp.result("resolve_conflict", lost.clone());
            let form = &asked["inputRequests"]["go"]["params"]["message"];
            assert!(
                form.as_str().is_some_and(|text| text.contains("is lost")),
                "{lost}: {asked}"
            );
        }
        // Beside a conflict is none, and neither is the other side of its class.
        refused(&mut mcp, &method("aaa", take), "Cup>>aaa");
        refused(&mut mcp, &of_class(take), "Cup class>>bar");
    }
    let odd = mcp.bad(
        "resolve_conflict",
        json!({"class": "Cup", "side": "class", "take": "disk"}),
    );
    assert_eq!(
        (&odd["kind"], &odd["details"]["path"]),
        (&json!("invalid_parameter"), &json!("/side")),
        "{odd}"
    );
    assert_eq!(mcp.good("evaluate", json!({"code": "Cup new bar"}))["value"], 100);
    let mut plain = Mcp::start(&home, &["--toolsets", "all", "--policy", "full"]);
    plain.good("resolve_conflict", method("bar", "disk"));
    assert_eq!(mcp.good("evaluate", json!({"code": "Cup new bar"}))["value"], 50);
    assert_eq!(
        mcp.good("dirty_methods", json!({}))["dirty"],
        json!({"Cup": ["aaa"]})
    );
}
