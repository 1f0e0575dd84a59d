//! The source of the image beside that of the files, as tools tell it.

use serde_json::json;

use super::Mcp;
use crate::project::{started, write};

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
