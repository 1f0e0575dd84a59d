use std::fs;

use crate::support::Place;

const BASE: &str = "Value subclass: Base\n  field: size :: Integer = 0\n  next -> Integer => self.size + 1\n";

/// What `check` says is what a check from nothing says, whatever was checked before.
#[test]
fn what_was_found_before_never_hides_what_is_there_now() {
    let place = Place::with_project();
    place.write("src/Base.bt", BASE);
    place.write(
        "src/User.bt",
        "Object subclass: User\n  class a: b :: Base => b next + 1\n",
    );
    let fresh = || {
        let _ = fs::remove_dir_all(place.directory().join("_build"));
        place.run(&["check", "--json"])
    };
    place.run(&["check"]).expect_code(0);
    for text in [
        BASE.replace("+ 1", "+ \"a\""),
        BASE.replace("next -> Integer", "next -> Symbol"),
        BASE.replace("next", "after"),
        "Object subclass: Other\n".to_owned(),
        BASE.to_owned(),
    ] {
        place.write("src/Base.bt", &text);
        let again = place.run(&["check", "--json"]);
        let (twice, fresh) = (place.run(&["check", "--json"]), fresh());
        assert_eq!(again.stdout, fresh.stdout, "{text}");
        assert_eq!(twice.stdout, fresh.stdout, "{text}");
    }
}

/// `--explain` prints the expressions behind a finding with their types, down to where a variable got its value.
#[test]
fn explaining_follows_types_to_where_they_come_from() {
    let place = Place::with_project();
    place.write(
        "src/Use.bt",
        "Object subclass: Use\n  class run: d :: Dictionary(Symbol, String) =>\n    x := d at: #a ifAbsent: [nil]\n    y := x\n    y frobnicate\n",
    );
    let told = place.run(&["check", "--explain"]).stdout;
    for line in [
        "src/Use.bt:5:7: how ",
        "  3:10 `d` is Dictionary(Symbol, String)",
        "  3:10 `d at: #a ifAbsent: [nil]` is String | Nil",
        "  4:10 `x` is String | Nil",
        "  5:5 `y` is String | Nil",
    ] {
        assert!(told.contains(line), "{line} is not in\n{told}");
    }
}

/// `lsp --check` says what an editor gets in any directory, and why something is missing.
#[test]
fn an_editor_is_told_what_is_missing() {
    let report = |place: &Place| place.run(&["lsp", "--check"]).expect_code(0).stdout;
    let bare = Place::new();
    let told = report(&bare);
    assert!(
        told.contains("--  project        no beamtalk.toml here or above"),
        "{told}"
    );
    assert!(told.contains("--  workspace      none runs"), "{told}");
    assert!(told.contains("ok  library"), "{told}");
    assert!(told.contains("ok  requests"), "{told}");
    let broken = Place::with_project();
    broken.write(
        "src/Broken.bt",
        "Object subclass: Broken\n  a => (1 + \n  b => 2\n",
    );
    let told = report(&broken);
    assert!(told.contains("1 with syntax errors"), "{told}");
    assert!(told.contains("ok  dependencies"), "{told}");
    broken.write("beamtalk.toml", "[package\nname = 3");
    let told = report(&broken);
    assert!(told.contains("--  project "), "{told}");
    assert!(told.contains("beamtalk.toml:1: "), "{told}");
    assert!(
        told.contains("--  dependencies   not known until the manifest can be read"),
        "{told}"
    );
    let lonely = Place::with_project();
    let manifest = lonely.read("beamtalk.toml");
    lonely.write(
        "beamtalk.toml",
        &format!("{manifest}\n[dependencies]\nunits = {{ path = \"../nowhere\" }}\n"),
    );
    let told = report(&lonely);
    assert!(told.contains("--  dependencies   dependency 'units'"), "{told}");
}
