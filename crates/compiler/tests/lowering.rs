//! The Erlang that sources become.
//!
//! `lowering/<topic>.bt` holds many small sources, each under a line `//// name`. A source that begins with a class,
//! a protocol or an extension is compiled as a file of a package, any other as the input of a session, whose answer is
//! its last expression; `x` and `y` are variables of that session. What stands above the first `////` is known to all
//! sources of the topic. The snapshot of a topic shows each source with what it becomes.

#![expect(clippy::disallowed_methods, reason = "the sources are files")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

#[path = "support/erlang.rs"]
mod erlang;

use std::path::Path;
use std::sync::OnceLock;

use beamtalk_compiler::{ClassTable, Origin, SourceFile, compile_file, compile_input, module_name};
use beamtalk_etf::{Limits, Term, decode};
use beamtalk_syntax::ast::Item;
use beamtalk_syntax::diagnostic::{Diagnostic, Severity};

fn source_file(name: &str, text: &str, package: Option<&str>, origin: Origin) -> SourceFile {
    let parse = if origin == Origin::Session {
        beamtalk_syntax::parse_input(text)
    } else {
        beamtalk_syntax::parse_file(text)
    };
    assert!(parse.diagnostics.is_empty(), "{text}\n{:?}", parse.diagnostics);
    SourceFile {
        path: format!("src/{name}.bt").into(),
        text: text.into(),
        unit: parse.unit,
        module: module_name(package, name).into(),
        package: package.map(Into::into),
        origin,
    }
}

/// The library itself: what a message becomes depends on what its classes say.
fn library() -> ClassTable {
    static LIBRARY: OnceLock<ClassTable> = OnceLock::new();
    let load = || {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lib");
        let mut paths: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "bt"))
            .collect();
        paths.sort();
        let mut table = ClassTable::empty();
        for path in paths {
            let text = std::fs::read_to_string(&path).unwrap();
            let name = path.file_stem().unwrap().to_str().unwrap();
            table.declare(&source_file(name, &text, Some("beamtalk"), Origin::Library));
        }
        table
    };
    LIBRARY.get_or_init(load).clone()
}

fn forms(bytes: &[u8]) -> Vec<Term> {
    match decode(bytes, Limits::default()).unwrap() {
        Term::List(forms) => forms,
        other => panic!("not a list of forms: {other:?}"),
    }
}

fn without_errors(diagnostics: &[Diagnostic], source: &str) {
    let errors: Vec<_> = diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error)
        .collect();
    assert!(errors.is_empty(), "{source}\n{errors:?}");
}

/// The functions of a module. What describes the class to the image is long and the same everywhere: it is shown
/// where there is nothing else.
fn module(forms: &[Term]) -> String {
    let functions: Vec<(String, String)> = forms.iter().filter_map(erlang::function).collect();
    let describes = |name: &str| matches!(name, "'__beamtalk_meta'/0" | "'__beamtalk_home'/0");
    let is_all = functions.iter().all(|(name, _)| describes(name));
    let shown: Vec<&str> = functions
        .iter()
        .filter(|(name, _)| is_all || !describes(name))
        .map(|(_, text)| text.as_str())
        .collect();
    shown.join("\n")
}

fn lowered(table: &ClassTable, source: &str) -> String {
    let parsed = beamtalk_syntax::parse_file(source).unit;
    let is_definition = !matches!(parsed.items.first(), Some(Item::Statement(_)) | None);
    let mut table = table.clone();
    if is_definition {
        let file = source_file("Demo", source, Some("demo"), Origin::Package);
        table.declare(&file);
        let compiled = compile_file(&file, &table);
        without_errors(&compiled.diagnostics, source);
        let modules: Vec<String> = compiled
            .modules
            .iter()
            .map(|compiled| format!("%% {}\n{}", compiled.name, module(&forms(&compiled.forms))))
            .collect();
        modules.join("\n")
    } else {
        let file = source_file("input", source, None, Origin::Session);
        let compiled = compile_input(&file, &table, &["x".into(), "y".into()]);
        without_errors(&compiled.diagnostics, source);
        let expression = compiled.expression.unwrap();
        erlang::body(&Term::List(forms(&expression.forms)), 0) + "\n"
    }
}

#[test]
fn sources_become_this_erlang() {
    let mut count = 0;
    insta::glob!("lowering/*.bt", |path| {
        let text = std::fs::read_to_string(path).unwrap();
        let mut sources = text.split("//// ");
        let mut table = library();
        let known = source_file("Known", sources.next().unwrap(), Some("demo"), Origin::Package);
        table.declare(&known);
        let mut out = String::new();
        for section in sources {
            let (name, source) = section.split_once('\n').unwrap();
            let source = source.trim();
            out += &format!("//// {name}\n{source}\n\n{}\n\n", lowered(&table, source));
            count += 1;
        }
        insta::with_settings!({ omit_expression => true }, { insta::assert_snapshot!(out) });
    });
    assert!(count >= 150, "only {count} sources");
}
