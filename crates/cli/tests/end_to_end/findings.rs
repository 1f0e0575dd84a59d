//! What `check` finds in whole packages: each line that is marked with `//! severity category text`, and no other.

use std::collections::BTreeSet;

use crate::support::Place;

/// Severity, category and text at a line of a file.
type Row = (String, u64, String, String, String);

/// Compares what `check --json` says with the marks in the sources.
#[track_caller]
fn check(place: &Place, sources: &[(&str, &str)]) {
    let mut expected: Vec<Row> = Vec::new();
    for (path, text) in sources {
        let mut bare = String::new();
        for (number, line) in (1..).zip(text.lines()) {
            let mut parts = line.split("//! ");
            bare.push_str(parts.next().unwrap_or("").trim_end());
            bare.push('\n');
            for mark in parts {
                let mut words = mark.trim().splitn(3, ' ').map(str::to_owned);
                let mut word = || words.next().unwrap_or_default();
                expected.push(((*path).to_owned(), number, word(), word(), word()));
            }
        }
        place.write(path, &bare);
    }
    let told = place.run(&["check", "--json"]).stdout;
    let mut found: Vec<Row> = Vec::new();
    for line in told.lines() {
        let row: serde_json::Value = serde_json::from_str(line).expect("a line of JSON");
        let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
        if row["code"].is_string() && row["file"].is_string() {
            let hint = text("hint");
            let message = format!("{} / {hint}", text("message"));
            let line = row["line"].as_u64().unwrap_or_default();
            found.push((text("file"), line, text("severity"), text("category"), message));
        }
    }
    let mut missing = Vec::new();
    for row in &expected {
        let (file, line, severity, category, text) = row;
        let at = found.iter().position(|(f, l, s, c, t)| {
            (f, l, s) == (file, line, severity)
                && c.replace('-', "_") == *category
                && t.contains(text.as_str())
        });
        match at {
            Some(at) => drop(found.remove(at)),
            None => missing.push(row),
        }
    }
    assert!(
        missing.is_empty() && found.is_empty(),
        "not found: {missing:#?}\nnot expected: {found:#?}"
    );
}

const RECT: &str = "Value subclass: Rect
  field: w :: Integer = 1
  field: h :: Integer = 1
  area -> Integer => self.w * self.h
  scaled: k :: Integer -> Rect => self withW: self.w * k
  kind -> #flat | #tall => self.h > self.w ifTrue: [#tall] ifFalse: [#flat]
";

const METER: &str = "Actor subclass: Meter
  state: level :: Integer = 0
  state: unit :: String | Nil = nil
  fill: n :: Integer -> Integer => self.level := self.level + n
  label -> String => self.unit ifNil: [\"?\"]
  width -> Integer => self.unit size //! hint dnu Nil does not understand 'size'
  reset -> Nil =>
    self.level := \"empty\" //! warning type field `level` declared as Integer, got String
    nil
  class standard -> Meter => self spawnWith: #{#level => 1, #colour => #red} //! warning type Unknown field 'colour' for Meter
";

/// Every row of the table of severities, as it is met in classes, class methods, values, actors, blocks and tests.
#[test]
fn every_row_of_the_table_is_found_where_it_stands() {
    let place = Place::with_project();
    check(
        &place,
        &[
            ("src/Rect.bt", RECT),
            ("src/Meter.bt", METER),
            (
                "src/Proxy.bt",
                "Object subclass: Proxy\n  class doesNotUnderstand: _selector args: list => list\n  class m => self anything: 3\n",
            ),
            (
                "src/Use.bt",
                "Object subclass: Use
  class ret -> Integer => \"str\" //! warning type Method 'ret' in Use declares return type Integer, but body returns String
  class dnu: c :: String => c frobnicate //! hint dnu String does not understand 'frobnicate'
  class near => Rect new aera //! hint dnu Did you mean 'area'?
  class some: x :: Integer | String => x size //! hint dnu Integer does not understand 'size'
  class all: x :: Integer | String => x frobnicate //! warning dnu does not understand 'frobnicate'
  class silent: x => x frobnicate
  class proxy => Proxy frobnicate: 3
  class operand => 5 + \"a\" //! warning type Argument 1 of '+' on Integer expects Number, got String
  class inBlock => #(1, 2) collect: [:n | n + #a] //! warning type expects Number, got #a
  class bounds => 1 to: \"x\" do: [:i | i] //! warning type Argument 1 of 'to:do:' on Integer expects Number, got String
  class condition => [3] whileTrue: [4] //! warning type The condition of 'whileTrue:' must answer a Boolean, got Integer
  class argument => Rect new scaled: 2.5 //! warning type Argument 1 of 'scaled:' on Rect expects Integer, got Float
  class actor: m :: Meter => m fill: \"x\" //! warning type Argument 1 of 'fill:' on Meter expects Integer, got String
  class cast: m :: Meter => m fil: 3! //! hint dnu Did you mean 'fill:'?
  class key => Rect new: #{#depth => 4} //! warning type Unknown field 'depth' for Rect
  class value => Rect new: #{#w => \"wide\"} //! warning type field `w` declared as Integer, got String
  class way => Rect new kind match: [#flat -> 1] //! warning type match leaves `#tall` unhandled
  class truth: b :: Boolean => b match: [true -> 1] //! warning type match leaves `false` unhandled
  class never: k :: #on | #off => k =:= #broken //! hint type
  class unknown => Frobozz new //! warning unresolved_class Unresolved class `Frobozz`
  class named: x :: Intger => x //! warning unresolved_class unknown type `Intger` (did you mean `Integer`?)
  class local =>
    n :: Integer := \"a\" //! warning type Type mismatch: declared as Integer, got String
    n
  class unused =>
    n := 3 //! warning unused n
    4
  class expected =>
    @expect type
    5 + \"a\"
  class stale =>
    @expect type_annotation //! warning  stale @expect: no type_annotation diagnostic here
    5 + 1
",
            ),
            (
                "src/Typed.bt",
                "typed Object subclass: Typed
  class a: x -> Integer => 3 //! warning type_annotation Missing type annotation for parameter `x` in typed class `Typed` //! warning unused x
  class b: x :: Dynamic -> Nil =>
    x frobnicate //! warning type expression inferred as Dynamic in typed class `Typed` (dynamic receiver)
    nil
  class c: u :: Use class -> Nil =>
    u silent: 3 //! warning type expression inferred as Dynamic in typed class `Typed` (unannotated return)
    nil
",
            ),
            (
                "test/RectTest.bt",
                "TestCase subclass: RectTest
  testArea => self assert: Rect new area equals: 1
  testWrong => self should: [Rect new aera] raise: #does_not_understand //! hint dnu Rect does not understand 'aera'
",
            ),
        ],
    );
}

/// Calls of Erlang against the specifications of the installed OTP.
#[test]
fn calls_of_erlang_are_checked_against_otp() {
    let place = Place::with_project();
    check(
        &place,
        &[(
            "src/Calls.bt",
            "Object subclass: Calls
  class a => Erlang nosuchmodule foo //! warning unresolved_ffi Erlang module `nosuchmodule` is not on the code path
  class b => Erlang lists revers: #(1) //! warning unresolved_ffi Did you mean 'reverse'?
  class c => Erlang lists reverse: #(1) with: 2 and: 3 //! warning arity_mismatch lists:reverse
  class d => Erlang lists reverse: 3 //! warning type Argument 1 of 'reverse' on Erlang lists expects List
  class e => (Erlang lists seq: 1 to: 3) first frobnicate //! hint dnu Integer does not understand 'frobnicate'
  class f => (Erlang file read_file: \"x\") frobnicate //! hint dnu Result does not understand 'frobnicate'
  class g -> Integer => Erlang erlang node //! warning type but body returns Symbol
  class h =>
    lists := Erlang lists
    lists revers: #(1) //! warning unresolved_ffi Erlang module `lists` has no function `revers`
    lists reverse: #(1)
  class i => (Erlang lists seq: 1 to: 3) first + 1
",
        )],
    );
}

/// Machines are told what cannot work, and where its type comes from.
#[test]
fn json_has_the_witness_and_the_places_it_comes_from() {
    let place = Place::with_project();
    place.write(
        "src/Use.bt",
        "Object subclass: Use\n  class run: d :: Dictionary(Symbol, String) =>\n    x := d at: #a ifAbsent: [nil]\n    x size\n",
    );
    let told = place.run(&["check", "--json"]).stdout;
    let first = told.lines().next().expect("a finding");
    let row: serde_json::Value = serde_json::from_str(first).expect("a line of JSON");
    assert_eq!(row["category"], "dnu", "{row}");
    assert_eq!(row["witness"], "Nil", "{row}");
    let lines: BTreeSet<u64> = row["notes"]
        .as_array()
        .expect("notes")
        .iter()
        .filter_map(|note| note["line"].as_u64())
        .collect();
    assert!(lines.contains(&3), "{row}");
}

/// Letters that name type parameters in the library may name classes in a package.
#[test]
fn a_class_named_by_a_letter_is_no_parameter_of_the_library() {
    let place = Place::with_project();
    let letters = ["A", "B", "E", "K", "R", "T", "V"];
    let sources: Vec<(String, String)> = letters
        .iter()
        .map(|letter| {
            (
                format!("src/{letter}.bt"),
                format!("Value subclass: {letter}\n  own -> {letter} => self\n"),
            )
        })
        .collect();
    let mut all: Vec<(&str, &str)> = sources
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    all.push((
        "src/Use.bt",
        "Object subclass: Use
  class a => (#(1, 2) inject: 0 into: [:sum :n | sum + n]) + 1
  class b => (#(1, 2) collect: [:n | n printString]) first size
  class c => (#{#a => 1} at: #b ifAbsent: [0]) + 1
  class d => ((Result ok: 3) map: [:n | n + 1]) value + 1
  class e: x :: A => x own
  class f => self e: 3 //! warning type Argument 1 of 'e:' on Use class expects A, got Integer
",
    ));
    check(&place, &all);
}
