//! Types: nothing is told about code that works.

#![expect(
    clippy::disallowed_methods,
    reason = "the corpus is files, and time is what some tests are about"
)]

#[path = "support/corpus.rs"]
mod corpus;

use std::fmt::Write;
use std::time::{Duration, Instant};

use beamtalk_compiler::{ClassTable, Origin, SourceFile, types};
use beamtalk_syntax::ast;
use beamtalk_syntax::diagnostic::{Diagnostic, Severity};
use beamtalk_syntax::walk::{self, PartMut};
use corpus::{file, is_expected_to_fail, is_partial, library, library_files, render, texts};

#[test]
fn the_library_has_no_findings() {
    let table = library();
    let mut told = String::new();
    for file in library_files() {
        for diagnostic in types::of_file(&file, &table)
            .diagnostics()
            .iter()
            .filter(|it| !is_partial(it))
        {
            writeln!(told, "{} {}", file.path, render(&file.text, diagnostic)).expect("text");
        }
    }
    assert!(told.is_empty(), "{told}");
}

#[test]
fn scripts_examples_and_tests_have_no_findings_but_where_they_fail() {
    let library = library();
    let mut told = String::new();
    for (name, text, origin) in texts() {
        let file = file("Corpus", &text, origin);
        let mut table = library.clone();
        table.declare(&file);
        for diagnostic in types::of_file(&file, &table).diagnostics() {
            if !is_partial(diagnostic) && !is_expected_to_fail(&text, diagnostic.span.start) {
                writeln!(told, "{name}:{}", render(&text, diagnostic)).expect("text");
            }
        }
    }
    assert!(told.is_empty(), "{told}");
}

/// The gradual guarantee: an annotation that goes away never brings a warning.
#[test]
fn without_some_annotations_nothing_more_is_told() {
    let sources = library_files();
    let scripts = texts();
    for seed in 1..=6 {
        let mut random = Random(seed);
        let mut library = ClassTable::empty();
        let mut files = Vec::new();
        for mut file in sources.clone() {
            strip(&mut file, &mut random);
            library.declare(&file);
            files.push(file);
        }
        let mut told = String::new();
        for file in files {
            for diagnostic in types::of_file(&file, &library).diagnostics() {
                if diagnostic.severity < Severity::Hint && !asks_for_annotations(diagnostic) {
                    writeln!(told, "{} {}", file.path, render(&file.text, diagnostic)).expect("text");
                }
            }
        }
        for (name, text, origin) in &scripts {
            let mut file = file("Corpus", text, *origin);
            strip(&mut file, &mut random);
            let mut table = library.clone();
            table.declare(&file);
            for diagnostic in types::of_file(&file, &table).diagnostics() {
                // A closed union that matchExhaustive: needs may have been among what went away.
                let is_told = diagnostic.severity < Severity::Hint
                    && diagnostic.code != "E0209"
                    && !asks_for_annotations(diagnostic);
                if is_told && !is_expected_to_fail(text, diagnostic.span.start) {
                    writeln!(told, "{name}:{}", render(text, diagnostic)).expect("text");
                }
            }
        }
        assert!(told.is_empty(), "seed {seed}:\n{told}");
    }
}

/// A `typed` class asks for annotations: it says where one is missing, or something is not known for want of one.
fn asks_for_annotations(diagnostic: &Diagnostic) -> bool {
    diagnostic.code == "W0410"
}

/// A generator of numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn is_heads(&mut self) -> bool {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 63 == 1
    }
}

/// Takes every second annotation away.
fn strip(file: &mut SourceFile, random: &mut Random) {
    let mut drop_it = |annotation: &mut Option<ast::Type>| {
        if random.is_heads() {
            *annotation = None;
        }
    };
    fn of_method(method: &mut ast::Method, drop_it: &mut dyn FnMut(&mut Option<ast::Type>)) {
        method
            .head
            .parameters
            .iter_mut()
            .for_each(|parameter| drop_it(&mut parameter.annotation));
        drop_it(&mut method.result);
        method
            .body
            .iter_mut()
            .for_each(|statement| of_expression(&mut statement.expression, drop_it));
    }
    fn of_expression(node: &mut ast::Expression, drop_it: &mut dyn FnMut(&mut Option<ast::Type>)) {
        match &mut node.kind {
            ast::ExpressionKind::Assign { annotation, .. } => drop_it(annotation),
            ast::ExpressionKind::Block(block) => {
                block
                    .parameters
                    .iter_mut()
                    .for_each(|parameter| drop_it(&mut parameter.annotation));
            }
            _ => {}
        }
        walk::parts_mut(node, &mut |part| match part {
            PartMut::Expression(inner) => of_expression(inner, drop_it),
            PartMut::Statements(body) => {
                body.iter_mut()
                    .for_each(|statement| of_expression(&mut statement.expression, drop_it));
            }
            _ => {}
        });
    }
    for item in &mut file.unit.items {
        match item {
            ast::Item::Class(class) => {
                class
                    .slots
                    .iter_mut()
                    .for_each(|slot| drop_it(&mut slot.annotation));
                class
                    .methods
                    .iter_mut()
                    .for_each(|method| of_method(method, &mut drop_it));
            }
            ast::Item::Extension(extension) => of_method(&mut extension.method, &mut drop_it),
            ast::Item::Statement(statement) => of_expression(&mut statement.expression, &mut drop_it),
            ast::Item::Protocol(_) | ast::Item::TypeAlias(_) => {}
        }
    }
}

fn check(text: &str) -> Vec<Diagnostic> {
    let file = file("Demo", text, Origin::Package);
    let mut table = library();
    table.declare(&file);
    types::of_file(&file, &table).diagnostics().to_vec()
}

fn within(limit: Duration, work: impl FnOnce()) {
    let start = Instant::now();
    work();
    assert!(start.elapsed() < limit, "took {:?}", start.elapsed());
}

#[test]
fn long_unions_deep_generics_and_circles_are_harmless() {
    let members: Vec<String> = (0..10_000).map(|n| format!("#s{n}")).collect();
    let long = members.join(" | ");
    let arms = |letter: &str| {
        let all: Vec<String> = (0..10_000).map(|n| format!("#{letter}{n} -> {n}")).collect();
        all.join("; ")
    };
    let deep = format!("{}Integer{}", "List(".repeat(500), ")".repeat(500));
    let shared: String = (1..40).fold("  class m =>\n    x0 := 1\n".to_owned(), |text, n| {
        format!("{text}    x{n} := #{{#a => x{p}, #b => x{p}}}\n", p = n - 1)
    });
    let sources = [
        format!("type Long = {long}\nValue subclass: Demo\n  field: a :: Long = #s1\n  m: x :: Long -> Long => self n: x\n  n: y :: Long -> Long => y match: [#s1 -> #s2; _ -> #zz]\n"),
        format!("Value subclass: Demo\n  m: x :: {deep} -> {deep} => x first first\n"),
        format!("Value subclass: Demo\n  m: x :: {long} => x match: [{}]\n", arms("s")),
        format!("Value subclass: Demo\n  m: x :: {long} => x match: [{}]\n", arms("t")),
        format!("Value subclass: Demo\n  m: b :: List(Integer) => {}1{}\n", "b inject: 0 into: [:a :e | a + (".repeat(20), ")]".repeat(20)),
        "type A = B | nil\ntype B = A | Integer\nValue subclass: Demo\n  m: x :: A -> B => x foo\n".to_owned(),
        "Value subclass: Demo\n  a => self b\n  b => self a\n  c => self a foo\n  d: n => n = 0 ifTrue: [self d: n] ifFalse: [#(self d: n)]\n".to_owned(),
        "Demo subclass: Demo\n  a => self b\n".to_owned(),
        "Value subclass: Demo\n  field: a :: List(Integer, Integer, Foo(Bar)) = 3\n  m: x :: Integer(String) -> Self(3) => x foo\n".to_owned(),
        format!("Value subclass: Demo\n{shared}    x39 foo\n"),
        format!("Value subclass: Demo\n  m: x =>\n    y := 1\n{}{}\n", "    [:a | y := y + 1. 3 timesRepeat: [".repeat(40), "] ]".repeat(40)),
    ];
    for source in sources {
        within(Duration::from_secs(20), || drop(check(&source)));
    }
}

#[test]
fn broken_texts_never_crash() {
    let library = library();
    let mut random = 7_u64;
    for file_of in library_files() {
        for _ in 0..3 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (random >> 33) as usize % file_of.text.len().max(1);
            let cut = (0..=at)
                .rev()
                .find(|at| file_of.text.is_char_boundary(*at))
                .unwrap_or(0);
            let text = file_of.text.get(..cut).unwrap_or("");
            let broken = file("Broken", text, Origin::Package);
            let mut table = library.clone();
            table.declare(&broken);
            types::of_file(&broken, &table);
        }
    }
}

#[test]
fn findings_name_their_witness() {
    let found = check(
        "Object subclass: Demo\n  class m: d :: Dictionary(Symbol, String) =>\n    x := d at: #a ifAbsent: [nil]\n    x size\n    y := 3\n    y foo\n",
    );
    let told: Vec<String> = found
        .iter()
        .map(|it| {
            format!(
                "{} {:?} {:?}",
                it.message,
                it.hint,
                it.notes.iter().map(|note| &note.1).collect::<Vec<_>>()
            )
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}
