//! Names of classes across packages.

use crate::support::Place;

fn package(place: &Place, name: &str, rest: &str) {
    place.write(
        &format!("{name}/beamtalk.toml"),
        &format!("[package]\nname = \"{name}\"\nversion = \"1.0.0\"\n{rest}"),
    );
}

/// The project uses `units` and `vectors`, which both export `Parser`; `units` uses `angles`.
fn project(settings: &str) -> Place {
    let place = Place::with_project();
    place.write(
        "beamtalk.toml",
        &format!(
            "[package]\nname = \"work\"\nversion = \"0.1.0\"\n{settings}\n[dependencies]\n\
             units = {{ path = \"units\" }}\nvectors = {{ path = \"vectors\" }}\n"
        ),
    );
    package(&place, "angles", "");
    package(
        &place,
        "units",
        "[dependencies]\nangles = { path = \"../angles\" }\n",
    );
    package(&place, "vectors", "");
    place.write(
        "angles/src/Angle.bt",
        "Value subclass: Angle\n\n  class degrees: n => n\n",
    );
    place.write("angles/src/Secret.bt", "internal Value subclass: Secret\n");
    for name in ["units", "vectors"] {
        place.write(
            &format!("{name}/src/Parser.bt"),
            &format!(
                "Value subclass: Parser\n  field: from = \"{name}\"\n\n  class origin => Parser new from\n"
            ),
        );
    }
    place.write(
        "units/src/Lexer.bt",
        "Parser subclass: Lexer\n\n  class made -> Parser => Parser new\n\n  \
         class isParser: x => x match: [p :: Parser -> true; _ -> false]\n",
    );
    place
}

fn main(place: &Place, lines: &[&str]) {
    place.write(
        "src/Main.bt",
        &format!(
            "Object subclass: Main\n\n  class run =>\n    {}\n",
            lines.join("\n    ")
        ),
    );
}

#[test]
fn two_dependencies_may_export_one_name() {
    let place = project("");
    main(
        &place,
        &[
            "Console printLine: units@Parser origin",
            "Console printLine: vectors@Parser origin",
            "Console printLine: Lexer new from",
            "Console printLine: Lexer made printString",
            "Console printLine: Lexer superclass == units@Parser",
            "Console printLine: (Lexer isParser: units@Parser new)",
            "Console printLine: (Lexer isParser: vectors@Parser new)",
            "Console printLine: work@Main name",
        ],
    );
    let done = place.run(&["run", "Main", "run"]).expect_code(0);
    assert_eq!(
        done.stdout,
        "units\nvectors\nunits\nunits@Parser(from: \"units\")\ntrue\ntrue\nfalse\nMain\n"
    );
    assert_eq!(done.stderr.matches("warning").count(), 0, "{}", done.stderr);
    // The bare name is an error where it is used, and nowhere else.
    place.write(
        "src/Bad.bt",
        "Object subclass: Bad\n\n  class run => Parser new\n",
    );
    let done = place.run(&["build"]).expect_code(1);
    for part in [
        "error[E0301]: Class name 'Parser' is exported by multiple dependencies: 'units' and 'vectors'",
        "src/Bad.bt:3:16",
        "units@Parser",
    ] {
        assert!(done.stderr.contains(part), "{part} in {}", done.stderr);
    }
    assert!(done.stderr.contains("1 error found"), "{}", done.stderr);
    std::fs::remove_file(place.directory().join("src/Bad.bt")).unwrap();
    // A class of the package's own hides both.
    place.write(
        "src/Parser.bt",
        "Value subclass: Parser\n\n  class origin => \"work\"\n",
    );
    main(
        &place,
        &[
            "Console printLine: Parser origin",
            "Console printLine: vectors@Parser origin",
        ],
    );
    let done = place.run(&["run", "Main", "run"]).expect_code(0);
    assert_eq!(done.stdout, "work\nvectors\n");
    assert!(done.stderr.contains("warning[W0305]"), "{}", done.stderr);
}

#[test]
fn a_second_owner_of_a_name_rebuilds_the_first() {
    let place = project("");
    std::fs::remove_file(place.directory().join("vectors/src/Parser.bt")).unwrap();
    main(&place, &["Console printLine: Parser new printString"]);
    let done = place.run(&["run", "Main", "run"]).expect_code(0);
    assert_eq!(done.stdout, "Parser(from: \"units\")\n");
    place.write("vectors/src/Parser.bt", "Value subclass: Parser\n");
    place.run(&["build"]).expect_code(1);
    main(&place, &["Console printLine: units@Parser new printString"]);
    let done = place.run(&["run", "Main", "run"]).expect_code(0);
    assert_eq!(done.stdout, "units@Parser(from: \"units\")\n");
}

#[test]
fn a_class_of_a_dependency_of_a_dependency_is_told() {
    let place = project("");
    main(&place, &["Console printLine: (Angle degrees: 30)"]);
    let done = place.run(&["check", "--json"]).expect_code(0);
    let line: serde_json::Value = serde_json::from_str(done.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(line["code"], "W0302");
    assert_eq!(line["category"], "dependency");
    assert_eq!(
        line["message"],
        "class 'Angle' comes from 'angles', a dependency of 'units'"
    );
    assert_eq!(line["hint"], "add 'angles' to [dependencies] in beamtalk.toml");
    assert_eq!(line["line"], 4);
    let done = place.run(&["run", "Main", "run"]).expect_code(0);
    assert_eq!(done.stdout, "30\n");
    let done = place.run(&["lint"]).expect_code(1);
    assert!(done.stderr.contains("warning[W0302]"), "{}", done.stderr);
    let strict = project("strict-deps = true\n");
    main(&strict, &["Console printLine: (angles@Angle degrees: 30)"]);
    let done = strict.run(&["build"]).expect_code(1);
    assert!(done.stderr.contains("error[W0302]"), "{}", done.stderr);
    strict
        .run(&["deps", "add", "angles", "--path", "angles"])
        .expect_code(0);
    strict.run(&["build", "--warnings-as-errors"]).expect_code(0);
    for code in [
        "E0301", "W0302", "E0303", "E0304", "E0401", "E0402", "E0403", "W0306", "W0307",
    ] {
        place.run(&["docs", code]).expect_code(0);
    }
}

#[test]
fn unknown_packages_and_internal_classes_are_refused() {
    let place = project("");
    main(
        &place,
        &[
            "nowhere@Parser new",
            "units@Nothing new",
            "Secret new",
            "angles@Secret new",
        ],
    );
    let done = place.run(&["build"]).expect_code(1);
    for part in [
        "error[E0304]: Unknown package 'nowhere' in qualified reference 'nowhere@Parser'",
        "warning[W0201]: Unresolved class `units@Nothing`",
        "error[E0401]: Class 'Secret' is internal to package 'angles' and cannot be referenced from 'work'",
    ] {
        assert!(done.stderr.contains(part), "{part} in {}", done.stderr);
    }
    assert!(done.stderr.contains("3 errors found"), "{}", done.stderr);
    place.write("vectors/src/Whole.bt", "Value subclass: Integer\n");
    let done = place.run(&["build"]).expect_code(1);
    assert!(
        done.stderr
            .contains("error[E0303]: package 'vectors' (src/Whole.bt) exports 'Integer'"),
        "{}",
        done.stderr
    );
}

#[test]
fn tests_and_sessions_see_the_same_names() {
    let place = project("");
    place.write(
        "test/NamesTest.bt",
        "TestCase subclass: NamesTest\n\n  testBoth =>\n    self assert: units@Parser origin equals: \"units\"\n    \
         self assert: vectors@Parser origin equals: \"vectors\"\n",
    );
    place.run(&["test"]).expect_code(0);
    let done = place.run(&["eval", "units@Parser origin"]).expect_code(0);
    assert_eq!(done.stdout, "\"units\"\n");
    // In a session the last one wins, with a warning.
    let done = place.run(&["eval", "Parser origin"]).expect_code(0);
    assert_eq!(done.stdout, "\"vectors\"\n");
    assert!(
        done.stderr.contains("exported by multiple dependencies"),
        "{}",
        done.stderr
    );
    place.stop();
}

/// What a package keeps to itself must not show in what it offers, also inside the package.
#[test]
fn internal_names_in_public_signatures_are_refused() {
    let place = Place::with_project();
    place.write(
        "beamtalk.toml",
        "[package]\nname = \"work\"\nversion = \"0.1.0\"\n",
    );
    place.write(
        "src/Secret.bt",
        "internal Value subclass: Secret\n  field: next :: Secret | Nil = nil\n",
    );
    place.write(
        "src/Names.bt",
        "internal type Hidden = #a | #b\n\ntype Shown = Secret | Nil\n\ninternal type Fine = Secret\n",
    );
    place.write(
        "src/Store.bt",
        "Value subclass: Store\n  field: kept :: List(Secret) = #()\n  field: fine :: Shown = nil\n\n  \
         take: s :: Secret -> Nil => nil\n\n  give -> Secret | Nil => nil\n\n  pick: h :: Hidden -> Nil => nil\n\n  \
         class kind -> Secret class => Secret\n\n  internal own: s :: Secret -> Secret => s\n\n  \
         @expect visibility\n  allowed: s :: Secret -> Nil => nil\n",
    );
    place.write(
        "src/Store+More.bt",
        "Store >> more: s :: Secret -> Nil => nil\n\nSecret >> inner: s :: Secret -> Nil => nil\n",
    );
    place.write(
        "src/Holder.bt",
        "Protocol define: Holder\n  hold: s :: Secret -> Nil\n",
    );
    let done = place.run(&["build"]).expect_code(1);
    for what in [
        "Internal class 'Secret' appears in public signature of 'Store >> kept'",
        "Internal class 'Secret' appears in public signature of 'Store >> take:'",
        "Internal class 'Secret' appears in public signature of 'Store >> give'",
        "Internal class 'Hidden' appears in public signature of 'Store >> pick:'",
        "Internal class 'Secret' appears in public signature of 'Store class >> kind'",
        "Internal class 'Secret' appears in public signature of 'Store >> more:'",
        "Internal class 'Secret' appears in public signature of 'Holder >> hold:'",
        "Internal class 'Secret' appears in public signature of 'Shown'",
    ] {
        let text = format!("error[E0402]: {what}");
        assert!(done.stderr.contains(&text), "{text} in {}", done.stderr);
    }
    assert!(done.stderr.contains("8 errors found"), "{}", done.stderr);
    // Tests of the package may name what they test.
    for file in [
        "src/Store.bt",
        "src/Store+More.bt",
        "src/Holder.bt",
        "src/Names.bt",
    ] {
        std::fs::remove_file(place.directory().join(file)).unwrap();
    }
    place.write(
        "test/SecretTest.bt",
        "TestCase subclass: SecretTest\n  field: s :: Secret | Nil = nil\n\n  given: s :: Secret -> Secret => s\n\n  \
         testIt => self assert: (self given: Secret new) next equals: nil\n",
    );
    place.run(&["test"]).expect_code(0);
}

/// A method that a package keeps to itself is not sent from another one, where the receiver's class is known.
#[test]
fn internal_methods_are_not_called_from_outside() {
    let place = Place::with_project();
    place.write(
        "beamtalk.toml",
        "[package]\nname = \"work\"\nversion = \"0.1.0\"\n\n[dependencies]\nunits = { path = \"units\" }\n",
    );
    package(&place, "units", "");
    place.write(
        "units/src/Meter.bt",
        "Value subclass: Meter\n  field: n = 1\n\n  internal raw => self.n\n\n  class internal make: n => self new: #{#n => n}\n\n  \
         class of: n -> Meter => self make: n\n\n  shown => self raw printString\n",
    );
    place.write(
        "units/src/Meter+More.bt",
        "Meter >> internal twice => self raw * 2\n",
    );
    // Each line in a method of its own, so that one build tells of all.
    let main = |lines: &[&str]| {
        let methods = lines
            .iter()
            .enumerate()
            .map(|(index, line)| format!("  use{index}: m :: Meter with: any =>\n    {line}\n"));
        place.write(
            "src/Main.bt",
            &format!(
                "Meter subclass: Main\n\n  class run => nil\n\n{}",
                methods.collect::<Vec<_>>().join("\n")
            ),
        );
        place.run(&["build"])
    };
    let refused = [
        ("m raw", "raw"),
        ("(Meter of: 3) raw", "raw"),
        ("Meter make: 3", "make:"),
        ("self raw", "raw"),
        ("super raw", "raw"),
        ("x := Meter new. any do: [:_e | x raw]", "raw"),
        ("m twice", "twice"),
        ("any do: [:e :: Meter | e n; raw]", "raw"),
        ("m n > 3 ifTrue: [m raw] ifFalse: [0]", "raw"),
    ];
    let done = main(&refused.map(|(line, _)| line)).expect_code(1);
    for selector in ["raw", "make:", "twice"] {
        let text = format!(
            "error[E0403]: Method '{selector}' is internal to package 'units' and cannot be called from 'work'"
        );
        let expected = refused.iter().filter(|(_, one)| *one == selector).count();
        assert_eq!(
            done.stderr.matches(&text).count(),
            expected,
            "{text}: {}",
            done.stderr
        );
    }
    // Of an unknown receiver nothing is known; the package itself may, and whoever says that it is meant.
    main(&[
        "any raw",
        "m perform: #raw",
        "m shown",
        "Meter of: 3",
        "@expect visibility\n    m raw",
        "x := m. x := any. x raw",
    ])
    .expect_code(0);
    let done = place.run(&["eval", "(Meter of: 4) raw"]).expect_code(0);
    assert_eq!(done.stdout, "4\n");
    place.stop();
    place.write("src/Main.bt", "Meter subclass: Main\n\n  raw => 5\n");
    let done = place.run(&["build"]).expect_code(0);
    let text = "warning[W0306]: Method 'raw' shadows a method that is internal to package 'units'";
    assert!(done.stderr.contains(text), "{}", done.stderr);
}

#[test]
fn an_internal_method_satisfies_no_protocol() {
    let place = project("");
    place.write(
        "src/Sized.bt",
        "Protocol define: Sized\n  extending: Named\n\n  size -> Integer\n",
    );
    place.write(
        "src/Named.bt",
        "Protocol define: Named\n  name -> String\n\n  class unit -> String\n",
    );
    let class = |name: &str, kind: &str, body: &str| {
        place.write(
            &format!("src/{name}.bt"),
            &format!("{kind} subclass: {name}\n{body}"),
        );
    };
    // All it needs, one of it kept back; and a method of Object that everybody knows it by.
    class(
        "Crate",
        "Value",
        "  field: name = \"c\"\n\n  internal size => 1\n\n  class unit => \"kg\"\n\n  asString => \"x\"\n\n  internal printString => \"x\"\n",
    );
    class(
        "Box",
        "Value",
        "  field: name = \"b\"\n\n  size => 1\n\n  internal class unit => \"kg\"\n",
    );
    // Meant so; not conforming anyway; nobody outside can name it; nothing kept back.
    class(
        "Quiet",
        "Value",
        "  field: name = \"q\"\n\n  @expect visibility\n  internal size => 1\n\n  class unit => \"kg\"\n",
    );
    class("Half", "Value", "  internal size => 1\n");
    class(
        "Inner",
        "internal Value",
        "  field: name = \"i\"\n\n  internal size => 1\n\n  class unit => \"kg\"\n",
    );
    class(
        "Open",
        "Value",
        "  field: name = \"o\"\n\n  size => self weight\n\n  class unit => \"kg\"\n\n  internal weight => 1\n",
    );
    let done = place.run(&["build"]).expect_code(0);
    let warned = |text: &str| done.stderr.matches(text).count();
    let text = "warning[W0307]: Internal method ";
    for (what, count) in [
        ("'size' cannot satisfy protocol 'Sized'", 1),
        ("'unit' cannot satisfy protocol 'Named'", 1),
        ("'unit' cannot satisfy protocol 'Sized'", 1),
        ("'printString' cannot satisfy protocol 'Printable'", 1),
    ] {
        assert_eq!(warned(&format!("{text}{what}")), count, "{what}: {}", done.stderr);
    }
    assert_eq!(warned(text), 4, "{}", done.stderr);
}
