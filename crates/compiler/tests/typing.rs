//! Types: nothing is told about code that works.

#[path = "support/corpus.rs"]
mod corpus;

use std::fmt::Write;

use beamtalk_compiler::types;
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
