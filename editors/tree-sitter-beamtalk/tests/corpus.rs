//! The trees of `test/corpus`, in the format of tree-sitter's own test command. `UPDATE=1` writes what is found.

#![expect(clippy::disallowed_methods, reason = "tests read and write their files")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::fmt::Write;
use std::path::{Path, PathBuf};

use tree_sitter::{Node, Parser, TreeCursor};

struct Case {
    name: String,
    source: String,
    expected: String,
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("test/corpus");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

/// `===`, name, `===`, source, `---`, tree.
fn cases(text: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut parts = text.split("==================\n").skip(1);
    while let (Some(name), Some(rest)) = (parts.next(), parts.next()) {
        let (source, expected) = rest.split_once("\n---\n").unwrap();
        cases.push(Case {
            name: name.trim().to_owned(),
            source: source.to_owned(),
            expected: expected.trim().to_owned(),
        });
    }
    cases
}

/// The named nodes, one on each line.
fn show(cursor: &mut TreeCursor, depth: usize, out: &mut String) {
    let node: Node = cursor.node();
    if node.is_named() || node.is_missing() {
        if depth > 0 {
            out.push('\n');
        }
        out.push_str(&"  ".repeat(depth));
        if let Some(field) = cursor.field_name() {
            let _ = write!(out, "{field}: ");
        }
        let _ = write!(
            out,
            "({}",
            if node.is_missing() { "MISSING" } else { node.kind() }
        );
        if cursor.goto_first_child() {
            loop {
                show(cursor, depth + 1, out);
                if !cursor.goto_next_sibling() {
                    break;
                }
            }
            cursor.goto_parent();
        }
        out.push(')');
    }
}

#[test]
fn sources_become_the_trees_of_the_corpus() {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_beamtalk::language()).unwrap();
    let mut faults = Vec::new();
    let mut count = 0;
    for file in files() {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut written = String::new();
        for case in cases(&text) {
            count += 1;
            let tree = parser.parse(&case.source, None).unwrap();
            let mut found = String::new();
            show(&mut tree.walk(), 0, &mut found);
            if found != case.expected {
                faults.push(format!(
                    "{}\n{}\nfound\n{found}\nexpected\n{}",
                    case.name, case.source, case.expected
                ));
            }
            let bar = "==================";
            let _ = write!(
                written,
                "{bar}\n{}\n{bar}\n{}\n---\n\n{found}\n\n",
                case.name, case.source
            );
        }
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&file, written).unwrap();
        }
    }
    assert!(count >= 25, "{count} cases");
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}
