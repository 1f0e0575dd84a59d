//! What tools tell, and what they do not: values with secret names, files that are closed, who refuses.

use serde_json::json;

use super::{Mcp, configure};
use crate::project::{started, write, written};

/// A name that says its value is secret hides it wherever the value is reached or shown.
#[test]
fn a_secret_name_hides_its_value_however_it_is_reached() {
    let home = started("mcp-named", &[]);
    let mut mcp = Mcp::start(&home, &["--toolsets", "all"]);
    let code = "token := \"sesame1\". d := #{\"secretKey\" => #(\"sesame2\"), \"n\" => 1}. l := #(d, 7). 1";
    let session = mcp.good("evaluate", json!({"code": code, "session": "new"}))["session"].clone();
    let bindings = mcp.good("bindings", json!({"session": session})).to_string();
    assert!(
        !bindings.contains("sesame") && bindings.contains("=> 1"),
        "{bindings}"
    );
    for (binding, path) in [
        ("token", json!([])),
        ("d", json!([])),
        ("d", json!(["\"secretKey\""])),
        ("d", json!(["\"secretKey\"", "1"])),
        ("l", json!([])),
        ("l", json!(["1"])),
    ] {
        let seen = mcp.result(
            "inspect",
            json!({"binding": binding, "path": path, "session": session}),
        );
        assert!(!seen.to_string().contains("sesame"), "{binding} {path}: {seen}");
    }
    let seen = mcp.good("inspect", json!({"binding": "l", "session": session}));
    assert!(seen.to_string().contains('7'), "{seen}");
    let safe = "Actor subclass: Safe\n  state: password = \"sesame3\"\n  state: inner = #{\"apiToken\" => \"sesame4\"}\n  state: size = 12\n";
    mcp.good("save_class", json!({"source": safe, "path": "src/safe.bt"}));
    let pid = mcp.good("evaluate", json!({"code": "Safe spawn pid printString"}))["value"].clone();
    let actors = mcp.good("list_actors", json!({"class": "Safe"}));
    let actor = actors["actors"][0]["pid"].as_str().expect("a pid").to_owned();
    assert!(!pid.is_null());
    for path in [json!([]), json!(["password"]), json!(["inner"])] {
        let seen = mcp.result("inspect", json!({"actor": actor, "path": path}));
        assert!(!seen.to_string().contains("sesame"), "{path}: {seen}");
    }
    let bare = actor.trim_matches(['<', '>']);
    let read = mcp.ask(
        "resources/read",
        json!({"uri": format!("beamtalk://actor/{bare}")}),
    );
    let read = read["result"].to_string();
    assert!(read.contains("12") && !read.contains("sesame"), "{read}");
}

/// A value that is printed into an error, its details or the output hides the same.
#[test]
fn a_secret_name_hides_its_value_in_errors_and_output_too() {
    let home = started("mcp-named-told", &[]);
    let mut mcp = Mcp::start(&home, &["--toolsets", "all"]);
    let class =
        "Value subclass: Conf\n  field: password = \"sesame1\"\n  use => Erlang lists reverse: self\n";
    mcp.good("evaluate", json!({"code": class}));
    for code in [
        "Conf new use",
        "Erlang lists reverse: #{#password => \"sesame2\"}",
        "Erlang erlang binary_to_atom: #{#secret => \"sesame3\"}",
        "Erlang erlang error: #{#token => \"sesame4\"}",
        "Erlang erlang throw: #{#token => \"sesame4\"}",
        "Erlang erlang exit: Conf new",
        "Conf new frob",
        "#(Conf new) at: 9",
        "Error signal: Conf new printString",
    ] {
        let seen = mcp.bad("evaluate", json!({"code": code}));
        assert!(!seen.to_string().contains("sesame"), "{code}: {seen}");
    }
    let shown = mcp.good(
        "evaluate",
        json!({"code": "Transcript show: \"made \"; show: Conf new; show: #{#secret => \"sesame5\", #n => 12}; cr. 1"}),
    );
    let read = mcp.good("read_transcript", json!({}));
    for seen in [&shown["output"], &read["text"]] {
        let text = seen.as_str().expect("a text");
        assert!(
            text.contains("made Conf(") && text.contains("12") && !text.contains("sesame"),
            "{text}"
        );
    }
}

/// An evaluation that fails leaves the variables of its handle as they were; a person at the prompt sees how far it went.
#[test]
fn a_failed_evaluation_leaves_the_variables_as_they_were() {
    let home = started("mcp-undo", &[]);
    let mut mcp = Mcp::start(&home, &[]);
    let session = mcp.good("evaluate", json!({"code": "x := 1", "session": "new"}))["session"].clone();
    for code in [
        "x := 2. y := 3. Error signal: \"boo\"",
        "x := 99. 1 / 0",
        "1 to: 3 do: [:i | x := x + i. i = 2 ifTrue: [Error signal: \"boo\"]]",
        "[:n | x := n] value: 5. nil frob",
    ] {
        mcp.bad("evaluate", json!({"code": code, "session": session}));
        let x = mcp.good("evaluate", json!({"code": "x", "session": session}));
        assert_eq!(x["value"], 1, "{code}");
    }
    assert_eq!(
        mcp.bad("evaluate", json!({"code": "y", "session": session}))["kind"],
        "undefined_variable"
    );
    mcp.good("evaluate", json!({"code": "x := x + 1", "session": session}));
    let x = mcp.good("evaluate", json!({"code": "x", "session": session}));
    assert_eq!(x["value"], 2);
}

/// What is closed to clients is not told of by any check, and a refusal names whose word it is.
#[test]
fn checks_tell_nothing_of_closed_files() {
    let home = written("mcp-closed");
    let manifest = crate::project::read(&home, "beamtalk.toml");
    let closed = "\n[mcp]\ndeny-paths = [\"src/priv*.bt\"]\ndeny-tools = [\"test\"]\n";
    write(&home, "beamtalk.toml", &(manifest + closed));
    write(
        &home,
        "src/private.bt",
        "Object subclass: Private\n  go =>\n    hiddenName := 1\n    2\n",
    );
    configure(&home, "[mcp]\nmax-policy = \"full\"\n");
    home.start(&[]);
    let mut mcp = Mcp::start(&home, &["--toolsets", "all", "--policy", "full"]);
    let open = "Object subclass: Open\n  go =>\n    seenName := 1\n    2\n";
    mcp.good("save_class", json!({"source": open, "path": "src/open.bt"}));
    let found = mcp.good("recheck_image", json!({})).to_string();
    assert!(
        found.contains("seenName") && !found.contains("hiddenName"),
        "{found}"
    );
    for (tool, arguments) in [
        ("lint", json!({})),
        (
            "save_method",
            json!({"class": "Open", "selector": "go", "source": "go => Private new go"}),
        ),
        ("reload_class", json!({"class": "Private"})),
    ] {
        let told = mcp.result(tool, arguments).to_string();
        assert!(!told.contains("hiddenName"), "{tool}: {told}");
    }
    let denied = mcp.bad("test", json!({}));
    assert_eq!(
        (&denied["kind"], &denied["details"]["by"]),
        (&json!("policy_denied"), &json!("project"))
    );
    let denied = mcp.bad("load_file", json!({"path": "../x.bt"}));
    assert_eq!(denied["kind"], "path_denied");
    assert_eq!(
        denied["details"],
        json!({"policy": "full", "by": "user"}),
        "{denied}"
    );
    // Nobody is asked about what is refused in any case.
    assert_eq!(
        mcp.bad("remove_class", json!({"class": "Integer"}))["kind"],
        "forbidden"
    );
}

/// Nothing is said of a file that is gone once its class stands elsewhere.
#[test]
fn a_file_that_is_gone_is_not_found_fault_with() {
    let home = started("mcp-gone", &[]);
    let mut mcp = Mcp::start(&home, &["--toolsets", "all"]);
    let cup = "Object subclass: Cup\n  bar => 1\n";
    write(&home, "src/first.bt", cup);
    mcp.good("load_project", json!({}));
    write(&home, "src/second.bt", cup);
    mcp.result("load_project", json!({}));
    std::fs::remove_file(home.project().join("src/first.bt")).expect("a file");
    mcp.good("load_project", json!({}));
    let found = mcp.good("recheck_image", json!({}));
    assert_eq!(found["findings"], json!([]), "{found}");
    let cup = mcp.good("read_source", json!({"class": "Cup"}));
    assert_eq!(cup["file"], "src/second.bt", "{cup}");
}
