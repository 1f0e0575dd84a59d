//! What the linter says, and that its fixes change nothing else. Each snapshot shows the source and the findings.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

#[path = "support/library.rs"]
mod support;

use std::path::Path;

use beamtalk_compiler::complete::coverage;
use beamtalk_compiler::lint::{Native, fix, lint_file, lint_native};
use beamtalk_compiler::{ClassTable, Origin, SourceFile};
use beamtalk_syntax::ast::{Expression, Item, Statement};
use beamtalk_syntax::diagnostic::{Diagnostic, Severity};
use beamtalk_syntax::span::Span;
use proptest::prelude::*;

use support::{library, render, source_file};

fn lint(source: &str) -> Vec<Diagnostic> {
    let mut table = library();
    let (file, syntax) = source_file("Demo", source, Origin::Package);
    assert!(syntax.is_empty(), "the source must parse: {syntax:?}");
    table.declare(&file);
    lint_file(&file, &table)
}

/// Findings, and the text after `--fix` where it differs.
fn findings(source: &str) -> String {
    let diagnostics = lint(source);
    let mut out = render(source, &diagnostics);
    if let Some((fixed, count)) = fix(source, &diagnostics) {
        out += &format!("FIXED {count}\n{fixed}");
    }
    out
}

macro_rules! findings {
    ($name:ident, $source:literal) => {
        #[test]
        fn $name() {
            insta::assert_snapshot!(findings($source));
        }
    };
}

findings!(
    a_caret_before_the_last_expression_is_needless,
    "Value subclass: Demo
  one => ^1
  two =>
    ^   self one // kept
  three => self one ifNil: [^3]. ^ x := 4
  four: x =>
    x isNil ifTrue: [^nil]
    x
"
);

findings!(
    parentheses_that_change_nothing,
    "Value subclass: Demo
  field: size = (3)

  sums: a and: b =>
    (a + b) * 2
    a + (b * 2) - (a - b)
    (a * 2) + b
    2 ** (3 ** 2)
    (2 ** 3) ** 2
    ((a + b)) * 2
    (a foo) bar
    (a foo: b) bar
    a foo: (b + 1) bar: (b baz: 3)
    x := (a foo; bar)
    (a foo bar); baz; qux
    (a foo) bar; baz
    #{(a) => (b), (1) => (a foo: b), (a + 1) => 2}
    #((a foo: 1), a | (b foo))
    \"{(a)} {(a foo: b)} {(y := 3)}\"
    a match: ([b])
    a match: [1 -> ([b]); 2 -> (b); _ -> (b foo; bar)]
    a foo:(b)bar:(b)
    (a)foo
    a-(-1)
    (a
      foo)
    (a foo).
    (x := 3)
"
);

findings!(
    points_before_a_line_end,
    "Value subclass: Demo
  one: a =>
    a foo.
    a bar. a baz. // last
    [a foo. a bar.]
    a do: [:x | x foo. ]
    a qux
"
);

findings!(
    three_messages_to_one_receiver,
    "Value subclass: Demo
  run: stream and: other =>
    stream first
    stream second: 2
    stream + 3
    stream isNil ifTrue: [other a. other b. other c]
    other first
    other second
    stream third
    Demo one
    Demo two
    Demo three
    self one
    self two
    self three

  changing: stream =>
    stream first
    stream second: (stream := nil)
    stream third
    x := 1
    [x := x + 1] value
    x foo
    x bar
    x baz

  silenced: stream =>
    @expect lint
    stream first
    stream second
    stream third
"
);

findings!(
    assertions_in_a_row_are_no_cascade,
    "TestCase subclass: Demo
  testAll =>
    self assert: 1
    self assert: 2
    self assert: 3
"
);

findings!(
    statements_without_effect,
    "Actor subclass: Demo
  state: size = 1

  run: x =>
    3
    \"text\"
    \"made by {x foo}\"
    x
    self.size
    #(1, x)
    #(1, x foo)
    x + 1 * 2
    1 / 2
    x / 2
    x =:= 3
    [x foo]
    x foo
    self tick!
    x
"
);

findings!(
    an_operator_of_the_program_may_have_effects,
    "Value subclass: Demo
  + other => other log
  run: x =>
    x + 1
    1 + 2
    x - 1
    x
"
);

findings!(
    assignments_nobody_sees,
    "Value subclass: Demo
  field: size = 0

  run: items =>
    total := 0
    items do: [:each | total := total + each]
    items do: [:each | each := each * 2]
    items do: [:each | last := each]
    items do: [:each | kept := each. kept foo. kept := nil]
    items do: [:each | n := 0. [n < 3] whileTrue: [n := n + 1]]
    items do: [:each | f := [each]. each := 2. f value]
    items do: [:each | _ignored := each]
    items do: [:each | each match: [x -> x := 1]]
    Timer after: 10 do: [total := 3]
    total
"
);

findings!(
    an_actor_may_assign_in_blocks,
    "Actor subclass: Demo
  state: size = 0

  run: items =>
    items do: [:each | each := each * 2]
"
);

findings!(
    inspect_is_no_text,
    "Value subclass: Demo
  run: x =>
    a := \"got \" ++ x inspect
    b := \"{x inspect}\"
    c :: String := x inspect
    x inspect
    self error: (x inspect)
    x inspect foo
    a ++ b ++ c
  name -> String => self inspect
"
);

findings!(
    an_object_that_could_be_a_value,
    "Object subclass: Demo
  area => 3
"
);

findings!(
    an_object_that_makes_itself_is_none,
    "Object subclass: Demo
  class new => super new
  area => 3
"
);

findings!(
    a_namespace_is_no_value,
    "Object subclass: Demo
  class area: x => x * x
"
);

findings!(
    a_local_says_its_type_twice,
    "Value subclass: Demo
  run =>
    a :: Integer := 3
    b :: Object := 3
    a + b
"
);

findings!(
    unused_expects_are_removed,
    "@expect unused
Value subclass: Demo
  @expect unused \"not needed\"
  one: x => x

  @expect unused
  two: x => 3

  three =>
    @expect lint
    (3)
    @expect lint // why
    @expect all
    4
    @expect dnu
    self one: 5
"
);

findings!(
    shadows_and_timers_are_warnings,
    "Actor subclass: Demo
  run: x =>
    Timer every: 10 do: [self tick. self tick!. self foo; bar. self pid]
    x do: [:x | x foo]
"
);

#[test]
fn native_modules_carry_their_package_and_name_no_class() {
    let text = "-module(lists2).\n%% 'bt@demo@a'\nrun() -> 'bt@demo@orbit':foo(\"'bt@x'\", $', 'ok').\n";
    let found = lint_native(&Native {
        text,
        module: "lists2",
        package: Some("demo"),
    });
    insta::assert_snapshot!(render(text, &found));
    let fine = lint_native(&Native {
        text: "-module(demo_lists).\n",
        module: "demo_lists",
        package: Some("demo"),
    });
    assert_eq!(fine, []);
}

#[test]
fn types_come_from_literals_annotations_and_declared_answers() {
    let source = "Value subclass: Demo
  field: size :: Integer = 1
  field: other = nil

  class make -> Demo => self new

  grow: by :: Integer and: what =>
    x := self.size
    y := what
    z := 1
    z := Demo make
    u :: Integer | Demo := what foo
    Demo make size
    self.other
    u
    z
    what foo
    [:each :: Integer | each]
    (Erlang lists) reverse: what
    self untold
    x

  untold => what := 3. what
";
    let mut table = library();
    let (file, _) = source_file("Demo", source, Origin::Package);
    table.declare(&file);
    let found = coverage(&file, &table);
    let lines: Vec<String> = found
        .iter()
        .flat_map(|class| {
            let head = format!("{} {}/{}", class.class, class.typed(), class.total);
            let dynamic = class
                .dynamic
                .iter()
                .map(|it| format!("  {}: {}", it.span.text(source), it.reason));
            std::iter::once(head).chain(dynamic)
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

/// The sources of the standard library with a table of all of them.
#[expect(clippy::disallowed_methods, reason = "the library is files")]
fn whole_library() -> (ClassTable, Vec<SourceFile>) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lib");
    let mut table = ClassTable::empty();
    let mut files = Vec::new();
    let mut entries: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let (file, _) = source_file(name, &text, Origin::Library);
        table.declare(&file);
        files.push(file);
    }
    (table, files)
}

/// Style is a matter of taste, what a rule claims is not: no warning, and no fix that would change anything.
#[test]
fn what_is_said_about_the_library_is_true() {
    let (table, files) = whole_library();
    for file in &files {
        let mut found = lint_file(file, &table);
        fixes_hold(file, &table);
        found.retain(|diagnostic| diagnostic.severity != Severity::Lint);
        assert!(found.is_empty(), "{}", render(&file.text, &found));
    }
}

fn expressions(unit: &beamtalk_syntax::ast::Unit) -> Vec<Span> {
    fn statements(body: &[Statement], out: &mut Vec<Span>) {
        for statement in body {
            expression(&statement.expression, out);
        }
    }
    fn expression(node: &Expression, out: &mut Vec<Span>) {
        use beamtalk_syntax::ast::ExpressionKind as Kind;
        out.push(node.span);
        match &node.kind {
            Kind::Send(send) => {
                expression(&send.receiver, out);
                send.message.arguments.iter().for_each(|e| expression(e, out));
            }
            Kind::Cascade { receiver, messages } => {
                expression(receiver, out);
                messages
                    .iter()
                    .flat_map(|message| &message.arguments)
                    .for_each(|e| expression(e, out));
            }
            Kind::Assign { value, .. } | Kind::Return(value) | Kind::Parenthesized(value) => {
                expression(value, out);
            }
            Kind::Block(block) => statements(&block.body, out),
            Kind::Array(elements) | Kind::List { elements, .. } => {
                elements.iter().for_each(|e| expression(e, out));
            }
            Kind::Dictionary(pairs) => pairs.iter().for_each(|(key, value)| {
                expression(key, out);
                expression(value, out);
            }),
            Kind::Match { value, arms, .. } => {
                expression(value, out);
                arms.iter().for_each(|arm| expression(&arm.body, out));
            }
            _ => {}
        }
    }
    let mut out = Vec::new();
    for item in &unit.items {
        if let Item::Class(class) = item {
            class
                .methods
                .iter()
                .for_each(|method| statements(&method.body, &mut out));
        }
    }
    out
}

/// Every fix alone, and all together, leave the tree as it was.
fn fixes_hold(file: &SourceFile, table: &ClassTable) {
    let found = lint_file(file, table);
    for diagnostic in found.iter().filter(|diagnostic| !diagnostic.edits.is_empty()) {
        assert!(
            fix(&file.text, std::slice::from_ref(diagnostic)).is_some(),
            "{}",
            render(&file.text, std::slice::from_ref(diagnostic))
        );
    }
    if found.iter().any(|diagnostic| !diagnostic.edits.is_empty()) {
        assert!(
            fix(&file.text, &found).is_some(),
            "{}",
            render(&file.text, &found)
        );
    }
}

proptest! {
    // Each case compiles: a quarter of the usual number, which the environment can raise. Many places take no parentheses, so that
    // most texts are none, however many cases there are.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, max_global_rejects: u32::MAX, failure_persistence: None, ..ProptestConfig::default() })]

    /// Parentheses put around parts of real code: what is called needless is.
    #[test]
    fn what_is_called_needless_changes_nothing(picks in prop::collection::vec((0..1000usize, 0..1000usize), 1..12)) {
        let (table, files) = whole_library();
        let (first, _) = picks[0];
        let original = &files[first % files.len()];
        let places = expressions(&original.unit);
        prop_assume!(!places.is_empty());
        let mut chosen: Vec<Span> = picks.iter().map(|(_, at)| places[at % places.len()]).collect();
        chosen.sort();
        chosen.dedup();
        let mut text = String::new();
        for (at, character) in original.text.char_indices() {
            let at = at as u32;
            for _ in chosen.iter().filter(|span| span.end == at) {
                text.push(')');
            }
            for _ in chosen.iter().filter(|span| span.start == at) {
                text.push('(');
            }
            text.push(character);
        }
        let (file, syntax) = source_file("Demo", &text, Origin::Library);
        prop_assume!(!syntax.iter().any(|diagnostic| diagnostic.severity == Severity::Error));
        fixes_hold(&file, &table);
    }

    /// Broken texts are looked at without a panic, and never made different.
    #[test]
    fn broken_texts_do_no_harm(pick in 0..1000usize, from in 0.0..1.0f64, length in 0..40usize, insert in "[()\\[\\]{}^.:;#\"a-c1 \n@=>|-]{0,6}") {
        let (table, files) = whole_library();
        let original = &files[pick % files.len()];
        let characters: Vec<char> = original.text.chars().collect();
        let start = (from * characters.len() as f64) as usize;
        let text: String = characters[..start]
            .iter()
            .copied()
            .chain(insert.chars())
            .chain(characters.iter().skip(start + length).copied())
            .collect();
        let (file, syntax) = source_file("Demo", &text, Origin::Package);
        let found = lint_file(&file, &table);
        if syntax.iter().all(|diagnostic| diagnostic.severity != Severity::Error) {
            fixes_hold(&file, &table);
        } else {
            prop_assert!(fix(&text, &found).is_none());
        }
    }
}
