//! Whatever our own parser accepts, the grammar reads without an error node: every file of the library, of the
//! conformance tests, the examples and the benchmarks, and every example of the documentation.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::path::{Path, PathBuf};

use beamtalk_syntax::diagnostic::{Diagnostic, Severity};
use tree_sitter::{Node, Parser, Query, QueryCursor, StreamingIterator, Tree};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn find(folder: &Path, suffixes: &[&str], found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("_build") && !path.ends_with("node_modules") {
            find(&path, suffixes, found);
        } else if path
            .extension()
            .is_some_and(|extension| suffixes.iter().any(|suffix| extension == *suffix))
        {
            found.push(path);
        }
    }
}

fn sources(folders: &[&str], suffixes: &[&str]) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    for folder in folders {
        find(&root().join(folder), suffixes, &mut files);
    }
    files.sort();
    files
        .into_iter()
        .map(|path| {
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            (path, text)
        })
        .collect()
}

fn parser() -> Parser {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_beamtalk::language()).unwrap();
    parser
}

fn parse(text: &str) -> Tree {
    parser().parse(text, None).unwrap()
}

fn first_error(node: Node) -> Option<(usize, String)> {
    if node.is_error() || node.is_missing() {
        return Some((node.start_position().row + 1, node.to_sexp()));
    }
    let mut cursor = node.walk();
    node.children(&mut cursor)
        .filter(Node::has_error)
        .find_map(first_error)
}

fn is_accepted(diagnostics: &[Diagnostic]) -> bool {
    diagnostics
        .iter()
        .all(|diagnostic| diagnostic.severity != Severity::Error)
}

/// Checks one text that our parser accepts; answers what is wrong.
fn fault(path: &Path, text: &str) -> Option<String> {
    let (row, shown) = first_error(parse(text).root_node())?;
    Some(format!("{}, line {row} of\n{text}\n{shown}", path.display()))
}

#[test]
fn every_file_of_a_package_is_read() {
    let mut accepted = 0;
    let mut faults = Vec::new();
    for (path, text) in sources(
        &["lib", "tests/lang", "examples", "bench", "crates/compiler/tests"],
        &["bt"],
    ) {
        if is_accepted(&beamtalk_syntax::parse_file(&text).diagnostics) {
            accepted += 1;
            faults.extend(fault(&path, &text));
        }
    }
    assert!(accepted > 130, "{accepted} files");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The inputs of scripts one by one, since many are wrong on purpose, and the scripts without such as a whole.
#[test]
fn every_script_is_read() {
    let mut inputs = 0;
    let mut wholes = 0;
    let mut faults = Vec::new();
    for (path, text) in sources(&["tests/lang", "bench", "crates/syntax/fixtures"], &["btscript"]) {
        let mut all_accepted = true;
        for input in beamtalk_syntax::inputs(&text) {
            let input = &text[input];
            if is_accepted(&beamtalk_syntax::parse_input(input).diagnostics) {
                inputs += 1;
                faults.extend(fault(&path, input));
            } else {
                all_accepted = false;
            }
        }
        if all_accepted {
            wholes += 1;
            faults.extend(fault(&path, &text));
        }
    }
    assert!(
        inputs > 3_000 && wholes > 40,
        "{inputs} inputs, {wholes} whole scripts"
    );
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn fenced(text: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut open: Option<String> = None;
    for line in text.lines() {
        let line = line
            .trim_start()
            .strip_prefix("///")
            .map_or(line, |line| line.strip_prefix(' ').unwrap_or(line));
        match &mut open {
            None if line.trim_end() == "```beamtalk" => open = Some(String::new()),
            Some(_) if line.starts_with("```") => blocks.extend(open.take()),
            Some(block) => {
                block.push_str(line);
                block.push('\n');
            }
            None => {}
        }
    }
    blocks
}

#[test]
fn every_example_of_the_documentation_is_read() {
    let mut inputs = 0;
    let mut faults = Vec::new();
    let mut pages = sources(&["docs"], &["md"]);
    pages.extend(sources(&["lib"], &["bt"]));
    for (path, text) in pages {
        for block in fenced(&text) {
            for input in beamtalk_syntax::inputs(&block) {
                let input = &block[input];
                if is_accepted(&beamtalk_syntax::parse_input(input).diagnostics) {
                    inputs += 1;
                    faults.extend(fault(&path, input));
                }
            }
        }
    }
    assert!(inputs > 1_000, "{inputs} inputs");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// While a method is half typed the methods around it are still methods.
#[test]
fn what_is_left_open_ends_with_its_method() {
    for body in [
        "self do: [:each | each",
        "self at: (1 +",
        "self at:",
        "#(1, (2, [3",
        "x :=",
        "self at: 1 put: #{#a =>",
    ] {
        let text = format!(
            "Object subclass: Shop\n  first => 1\n\n  open => {body}\n\n  /// Closes.\n  close => 3\n"
        );
        let tree = parse(&text);
        let query = "(method_definition head: (method_head selector: (identifier) @name))";
        let names: Vec<&str> = captures(query, &tree, &text)
            .into_iter()
            .map(|(_, name)| name)
            .collect();
        assert_eq!(names, ["first", "open", "close"], "{text}{}", tree.root_node());
    }
}

/// Any prefix of a text is read to its end, however it breaks off.
#[test]
fn every_prefix_of_a_text_gives_a_tree() {
    let text = std::fs::read_to_string(root().join("lib/List.bt")).unwrap();
    let mut parser = parser();
    for length in (0..text.len().min(6_000)).step_by(7) {
        let prefix = &text.as_bytes()[..length];
        assert_eq!(parser.parse(prefix, None).unwrap().root_node().end_byte(), length);
    }
}

fn captures<'t>(query: &str, tree: &Tree, text: &'t str) -> Vec<(String, &'t str)> {
    let query = Query::new(&tree_sitter_beamtalk::language(), query).unwrap();
    let names = query.capture_names();
    let mut cursor = QueryCursor::new();
    let mut found = cursor.captures(&query, tree.root_node(), text.as_bytes());
    let mut out = Vec::new();
    while let Some((found, index)) = found.next() {
        let capture = found.captures()[*index];
        out.push((
            names[capture.index as usize].to_owned(),
            &text[capture.node.byte_range()],
        ));
    }
    out
}

const SAMPLE: &str = "/// Litres.\nActor subclass: Tank\n  state: level = 0\n\n  fill: litres :: Integer -> Integer =>\n    next := self.level + litres\n    self.level := next\n";

#[test]
fn highlights_name_what_a_reader_sees() {
    let found = captures(tree_sitter_beamtalk::HIGHLIGHTS, &parse(SAMPLE), SAMPLE);
    for expected in [
        ("comment.documentation", "/// Litres."),
        ("type.definition", "Tank"),
        ("keyword", "subclass:"),
        ("keyword", "state:"),
        ("variable.member", "level"),
        ("function.method", "fill:"),
        ("variable.parameter", "litres"),
        ("type", "Integer"),
        ("variable.member", ".level"),
        ("operator", "+"),
        ("number", "0"),
    ] {
        let (name, text) = expected;
        assert!(
            found.contains(&(name.to_owned(), text)),
            "{expected:?} in {found:?}"
        );
    }
}

#[test]
fn locals_know_scopes_definitions_and_references() {
    let found = captures(tree_sitter_beamtalk::LOCALS, &parse(SAMPLE), SAMPLE);
    let of = |kind: &str| -> Vec<&str> {
        found
            .iter()
            .filter(|(name, _)| name == kind)
            .map(|(_, text)| *text)
            .collect()
    };
    assert_eq!(of("local.definition.parameter"), ["litres"]);
    assert_eq!(of("local.definition.var"), ["next"]);
    assert_eq!(of("local.definition.field"), ["level"]);
    assert_eq!(of("local.scope").len(), 1);
    assert_eq!(
        of("local.reference")
            .iter()
            .filter(|text| **text == "litres")
            .count(),
        2
    );
}

#[test]
fn folds_and_indents_are_found() {
    let tree = parse(SAMPLE);
    let folds = captures(tree_sitter_beamtalk::FOLDS, &tree, SAMPLE);
    assert!(
        folds
            .iter()
            .any(|(_, text)| text.starts_with("Actor subclass:") && text.ends_with(":= next"))
    );
    assert!(folds.iter().any(|(_, text)| text.starts_with("fill:")));
    let indents = captures(tree_sitter_beamtalk::INDENTS, &tree, SAMPLE);
    assert!(
        indents
            .iter()
            .any(|(name, text)| name == "indent.begin" && text.starts_with("fill:"))
    );
}

/// The queries that the guide has for other editors name nodes there are.
#[test]
fn queries_of_the_guide_fit_the_grammar() {
    let page = std::fs::read_to_string(root().join("docs/editors.md")).unwrap();
    let queries: Vec<&str> = page
        .split("```scheme\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect();
    assert_eq!(queries.len(), 4);
    for query in queries {
        let sample = format!("{SAMPLE}\n  all => [(1)]. #(1). #{{#a => {{1, 2}}}}\n");
        assert!(!captures(query, &parse(&sample), &sample).is_empty(), "{query}");
    }
}

/// `make grammar` writes both: a changed grammar with the old parser is noticed here.
#[test]
fn the_parser_was_made_of_this_grammar() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let grammar = std::fs::read_to_string(folder.join("grammar.js")).unwrap();
    let stamp = std::fs::read_to_string(folder.join("src/grammar.stamp")).unwrap();
    assert_eq!(
        stamp.trim(),
        format!("{:016x}", fnv(grammar.as_bytes())),
        "run make grammar"
    );
}

/// FNV-1a, as the generator writes it.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
