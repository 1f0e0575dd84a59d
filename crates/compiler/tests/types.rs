//! The cases of `tests/types`: small sources with the findings they must have beside their lines.
//!
//! A file is a prelude of declarations and then cases, each headed by a line
//! `//// name (x :: Integer, y) -> String`. The statements of a case become the body of a method of class `Case`
//! with these parameters and this result; its declarations become files of their own. `//! severity category text`
//! at the end of a line is a finding expected there, whose text contains what is written. Nothing else may be
//! found that has to do with types.
//!
//! `tests/types/pending.txt` lists cases that do not pass yet, whose differences are printed; one that passes must
//! leave the list.

#![expect(clippy::disallowed_methods, reason = "the cases are files")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use beamtalk_compiler::ffi::{Function, Kinds, Module, Parameter, SpecTable};
use beamtalk_compiler::lint::lint_file;
use beamtalk_compiler::{ClassTable, Origin, SourceFile, codes, module_name};
use beamtalk_syntax::ast::Item;
use beamtalk_syntax::diagnostic::{Diagnostic, Severity};
use beamtalk_syntax::span::{LineIndex, Span};

/// Findings that count although a case does not expect them: all errors, and these categories.
const CATEGORIES: &[&str] = &[
    "dnu",
    "type",
    "type_annotation",
    "unresolved_class",
    "unresolved_ffi",
    "arity_mismatch",
    "sendability",
    "visibility",
];
/// An `@expect` that suppressed nothing, which has no category.
const STALE_EXPECT: &str = "W0208";
/// The lines before the statements of a case in the text that is compiled.
const HEADER_LINES: usize = 2;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    let entries =
        std::fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    for entry in entries {
        let path = entry.expect("a directory entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "bt") {
            found.push(path);
        }
    }
    found.sort();
}

fn parsed(folder: &str, name: &str, text: &str, origin: Origin) -> (SourceFile, Vec<Diagnostic>) {
    let parse = beamtalk_syntax::parse_file(text);
    let package = if origin == Origin::Library {
        "beamtalk"
    } else {
        "demo"
    };
    let file = SourceFile {
        path: format!("{folder}/{name}.bt").into(),
        text: text.into(),
        unit: parse.unit,
        module: module_name((origin != Origin::Library).then_some("demo"), name).into(),
        package: Some(package.into()),
        origin,
    };
    (file, parse.diagnostics)
}

/// Some functions of OTP, as their specifications have them.
fn specs() -> SpecTable {
    const LIST: Kinds = Kinds::LIST.or(Kinds::BINARY);
    const NUMBER: Kinds = Kinds::INTEGER.or(Kinds::FLOAT);
    type Row = (&'static str, &'static [(Kinds, &'static str)], &'static str);
    let modules: &[(&str, &[Row])] = &[
        (
            "lists",
            &[
                ("map", &[(Kinds::FUN, "Block"), (LIST, "List")], "List"),
                ("member", &[(Kinds::ANY, "Dynamic"), (LIST, "List")], "Boolean"),
                ("reverse", &[(LIST, "List")], "List"),
                ("reverse", &[(LIST, "List"), (Kinds::ANY, "Dynamic")], "Dynamic"),
                ("seq", &[(Kinds::INTEGER, "Integer"); 2], "List(Integer)"),
                ("seq", &[(Kinds::INTEGER, "Integer"); 3], "List(Integer)"),
            ],
        ),
        (
            "erlang",
            &[
                ("abs", &[(NUMBER, "Number")], "Integer | Float"),
                ("binary_to_term", &[(Kinds::BINARY, "Binary")], "Dynamic"),
                ("date", &[], "Tuple(Integer, Integer, Integer)"),
                ("node", &[], "Symbol"),
                ("system_time", &[], "Integer"),
            ],
        ),
        (
            "file",
            &[
                ("delete", &[(Kinds::ANY, "Dynamic")], "Result(Nil, Dynamic)"),
                ("read_file", &[(Kinds::ANY, "Dynamic")], "Result(String, Dynamic)"),
            ],
        ),
        ("filename", &[("basename", &[(Kinds::ANY, "Dynamic")], "Dynamic")]),
        (
            "maps",
            &[
                ("keys", &[(Kinds::MAP, "Dictionary")], "List"),
                (
                    "put",
                    &[
                        (Kinds::ANY, "Dynamic"),
                        (Kinds::ANY, "Dynamic"),
                        (Kinds::MAP, "Dictionary"),
                    ],
                    "Dictionary",
                ),
            ],
        ),
        ("os", &[("getenv", &[(LIST, "List(Integer)")], "Dynamic")]),
    ];
    let mut table = SpecTable::default();
    for (module, rows) in modules {
        let functions = rows.iter().map(|(name, parameters, answer)| Function {
            name: (*name).into(),
            parameters: parameters
                .iter()
                .map(|(kinds, text)| Parameter {
                    name: "".into(),
                    text: (*text).into(),
                    kinds: *kinds,
                    atoms: None,
                })
                .collect(),
            result: (*answer).into(),
            answer: (*answer).into(),
        });
        table.add(*module, Module::new(functions.collect()));
    }
    table.add_missing("no_such_module_here");
    table.add_missing("listz");
    table
}

fn library() -> ClassTable {
    let mut table = ClassTable::empty();
    table.set_specs(specs());
    let mut paths = Vec::new();
    sources(&root().join("lib"), &mut paths);
    for path in paths {
        let name = path.file_stem().expect("a file name").to_string_lossy();
        let (file, diagnostics) = parsed("lib", &name, &read(&path), Origin::Library);
        assert!(diagnostics.is_empty(), "{name}: {diagnostics:?}");
        table.declare(&file);
    }
    table
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    line: usize,
    severity: String,
    category: String,
    text: String,
    code: &'static str,
    is_counted: bool,
}

impl Finding {
    fn is_expected_by(&self, expected: &Self) -> bool {
        self.line == expected.line
            && self.severity == expected.severity
            // The reference gives errors no category.
            && (self.category == expected.category || self.severity == "error")
            && self.text.contains(&expected.text)
    }
}

struct Case {
    id: String,
    parameters: Vec<String>,
    result: Option<String>,
    /// The whole text of the file with everything but this case blank.
    text: String,
    expected: Vec<Finding>,
}

/// The lines in `keep`, at their places.
fn only(text: &str, keep: impl Fn(usize) -> bool) -> String {
    let mut out = String::new();
    for (number, line) in text.lines().enumerate() {
        if keep(number) {
            out.push_str(line);
        }
        out.push('\n');
    }
    out
}

/// `x :: Tuple(Integer, String), y`: split where no parenthesis is open.
fn parameters(text: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut depth = 0usize;
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if c == ',' && depth == 0 {
            found.push(String::new());
        } else if let Some(last) = found.last_mut() {
            last.push(c);
        }
    }
    found
        .iter()
        .map(|one| one.trim().to_owned())
        .filter(|one| !one.is_empty())
        .collect()
}

/// `name (parameters) -> result`
fn header(line: &str) -> (String, Vec<String>, Option<String>) {
    let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
    let rest = rest.trim();
    let (list, result) = match rest.rsplit_once("->") {
        Some((list, result)) if list.trim().is_empty() || list.trim_end().ends_with(')') => {
            (list.trim(), Some(result.trim().to_owned()))
        }
        _ => (rest, None),
    };
    let list = list
        .strip_prefix('(')
        .and_then(|list| list.strip_suffix(')'))
        .unwrap_or("");
    (name.to_owned(), parameters(list), result)
}

fn expected(text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for mark in line.split("//! ").skip(1) {
            let mut words = mark.trim().splitn(3, ' ');
            let mut word = || words.next().unwrap_or("").trim().to_owned();
            found.push(Finding {
                line: number + 1,
                severity: word(),
                category: word(),
                text: word(),
                code: "",
                is_counted: true,
            });
        }
    }
    found
}

/// The prelude of a file and its cases.
fn cases(path: &Path) -> (String, Vec<Case>) {
    let text = read(path);
    let base = root().join("tests/types");
    let name = path
        .strip_prefix(&base)
        .expect("below tests/types")
        .to_string_lossy()
        .into_owned();
    let heads: Vec<(usize, String)> = text
        .lines()
        .enumerate()
        .filter_map(|(number, line)| {
            line.strip_prefix("//// ")
                .map(|head| (number, head.trim().to_owned()))
        })
        .collect();
    let first = heads.first().map_or(usize::MAX, |(number, _)| *number);
    let prelude = only(&text, |number| number < first);
    let mut found = Vec::new();
    for (index, (start, head)) in heads.iter().enumerate() {
        let end = heads.get(index + 1).map_or(usize::MAX, |(number, _)| *number);
        let text = only(&text, |number| number > *start && number < end);
        let (case, parameters, result) = header(head);
        found.push(Case {
            id: format!("{name}#{case}"),
            parameters,
            result,
            expected: expected(&text),
            text,
        });
    }
    (prelude, found)
}

fn span(item: &Item) -> Span {
    match item {
        Item::Class(class) => class.span,
        Item::Protocol(protocol) => protocol.span,
        Item::TypeAlias(alias) => alias.span,
        Item::Extension(extension) => extension.span,
        Item::Statement(statement) => statement.span,
    }
}

/// A source of a case: its file name, its text, and how many lines it starts before the case's own text.
struct Part {
    name: String,
    text: String,
    shift: usize,
}

/// Each declaration is a file; all statements are one method.
fn parts(text: &str, parameters: &[String], result: Option<&str>) -> Vec<Part> {
    let unit = beamtalk_syntax::parse_input(text).unit;
    let mut out = Vec::new();
    let mut statements = vec![false; text.len()];
    let mut start = 0;
    for (number, item) in unit.items.iter().enumerate() {
        let mut end = (span(item).end as usize).max(start);
        // A cast ends with its sign.
        if text.get(end..).is_some_and(|rest| rest.starts_with('!')) {
            end += 1;
        }
        let name = match item {
            Item::Class(class) => class.name.text.to_string(),
            Item::Protocol(protocol) => protocol.name.text.to_string(),
            Item::TypeAlias(alias) => format!("{}Alias", alias.name.text),
            Item::Extension(_) => format!("Extension{number}"),
            Item::Statement(_) => {
                statements[start..end].fill(true);
                start = end;
                continue;
            }
        };
        let kept = blank(text, |at| (start..end).contains(&at));
        out.push(Part {
            name,
            text: kept,
            shift: 0,
        });
        start = end;
    }
    if statements.contains(&true) {
        let body = blank(text, |at| statements.get(at).copied().unwrap_or(false));
        out.push(Part {
            name: "Case".to_owned(),
            text: method(&body, parameters, result),
            shift: HEADER_LINES,
        });
    }
    out
}

/// The text with spaces in the place of what is not kept; lines stay where they are.
fn blank(text: &str, keep: impl Fn(usize) -> bool) -> String {
    text.char_indices()
        .map(|(at, c)| if c == '\n' || keep(at) { c } else { ' ' })
        .collect()
}

fn method(body: &str, parameters: &[String], result: Option<&str>) -> String {
    let mut head = String::new();
    for (number, parameter) in parameters.iter().enumerate() {
        let keyword = if number == 0 {
            "run:".to_owned()
        } else {
            format!("with{number}:")
        };
        let _ = write!(head, "{keyword} {parameter} ");
    }
    if parameters.is_empty() {
        head.push_str("run ");
    }
    if let Some(result) = result {
        let _ = write!(head, "-> {result} ");
    }
    let mut text = format!("Object subclass: Case\n  {head}=>\n");
    for line in body.lines() {
        let _ = writeln!(text, "    {line}");
    }
    text
}

/// What is found in some parts, with lines as in the file of the case.
fn findings(folder: &str, parts: Vec<Part>, table: &mut ClassTable) -> Vec<Finding> {
    let mut files = Vec::new();
    for part in parts {
        let (file, diagnostics) = parsed(folder, &part.name, &part.text, Origin::Package);
        table.declare(&file);
        files.push((file, diagnostics, part.shift));
    }
    let mut found = Vec::new();
    for (file, mut diagnostics, shift) in files {
        // Everything the compiler says, and what only the linter shows.
        diagnostics.extend(lint_file(&file, table));
        let lines = LineIndex::new(&file.text);
        for diagnostic in diagnostics {
            let line = lines.position(&file.text, diagnostic.span.start).line as usize;
            let category = diagnostic
                .category
                .map_or("-".to_owned(), |it| it.name().replace('-', "_"));
            let mut text = diagnostic.message.to_string();
            for more in diagnostic
                .hint
                .iter()
                .chain(diagnostic.notes.iter().map(|(_, text)| text))
            {
                let _ = write!(text, " / {more}");
            }
            found.push(Finding {
                line: line.saturating_sub(shift),
                severity: diagnostic.severity.name().to_owned(),
                is_counted: diagnostic.severity == Severity::Error
                    || (diagnostic.severity != Severity::Lint && CATEGORIES.contains(&category.as_str()))
                    || diagnostic.code == STALE_EXPECT,
                category,
                text,
                code: diagnostic.code,
            });
        }
    }
    found.sort();
    found
}

/// The differences between what is expected and what is found; none when the case passes.
fn differences(case: &Case, prelude: &ClassTable) -> String {
    let mut table = prelude.clone();
    let parts = parts(&case.text, &case.parameters, case.result.as_deref());
    let mut found = findings("case", parts, &mut table);
    let mut out = String::new();
    for expected in &case.expected {
        match found.iter().position(|finding| finding.is_expected_by(expected)) {
            Some(at) => drop(found.remove(at)),
            None => {
                let Finding {
                    line,
                    severity,
                    category,
                    text,
                    ..
                } = expected;
                let _ = writeln!(out, "  line {line}: missing {severity} {category} {text}");
            }
        }
    }
    for finding in found.iter().filter(|finding| finding.is_counted) {
        let Finding {
            line,
            severity,
            category,
            text,
            ..
        } = finding;
        let _ = writeln!(out, "  line {line}: not expected: {severity} {category} {text}");
    }
    out
}

fn declared(prelude: &str, library: &ClassTable, path: &Path) -> ClassTable {
    let mut table = library.clone();
    let found = findings("src", parts(prelude, &[], None), &mut table);
    let counted: Vec<&Finding> = found.iter().filter(|finding| finding.is_counted).collect();
    assert!(
        counted.is_empty(),
        "the prelude of {} must be silent: {counted:#?}",
        path.display()
    );
    table
}

#[test]
fn every_case_has_its_findings_and_no_others() {
    let pending_path = root().join("tests/types/pending.txt");
    let pending: BTreeSet<String> = read(&pending_path)
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect();
    let library = library();
    let mut paths = Vec::new();
    sources(&root().join("tests/types"), &mut paths);
    let mut seen = BTreeSet::new();
    let mut report = String::new();
    for path in &paths {
        let (prelude, cases) = cases(path);
        let table = declared(&prelude, &library, path);
        for case in cases {
            assert!(seen.insert(case.id.clone()), "{} stands twice", case.id);
            let differences = differences(&case, &table);
            let is_pending = pending.contains(&case.id);
            match (differences.is_empty(), is_pending) {
                (true, false) => {}
                (true, true) => {
                    let _ = writeln!(report, "{}: passes, so it must leave pending.txt", case.id);
                }
                (false, true) => print!("PENDING {}\n{differences}", case.id),
                (false, false) => {
                    let _ = write!(report, "{}\n{differences}", case.id);
                }
            }
        }
    }
    for gone in pending.difference(&seen) {
        let _ = writeln!(report, "{gone}: is in pending.txt but nowhere else");
    }
    println!("{} cases, {} pending", seen.len(), pending.len());
    assert!(seen.len() >= 400, "only {} cases", seen.len());
    assert!(report.is_empty(), "\n{report}");
}

/// Codes that one package alone cannot show: they are about others, a prompt, a workspace or Erlang beside it.
const ELSEWHERE: &[&str] = &[
    "E0204", "E0205", "E0301", "E0304", "E0401", "E0403", "E0501", "E0701", "W0302", "W0305", "W0306",
    "L0301", "L0501",
];

#[test]
fn every_example_of_a_code_shows_it() {
    let library = library();
    let mut report = String::new();
    let known: BTreeSet<&str> = codes::examples().map(|example| example.code).collect();
    for (code, _) in codes::ALL.iter().filter(|(code, _)| !known.contains(code)) {
        let _ = writeln!(report, "{code}: no example");
    }
    for example in codes::examples().filter(|example| !ELSEWHERE.contains(&example.code)) {
        let found = |text: &str| {
            let mut table = library.clone();
            findings("src", parts(&format!("{text}\n"), &[], None), &mut table)
        };
        let has = |found: &[Finding]| found.iter().any(|finding| finding.code == example.code);
        let wrong = found(example.wrong);
        if !has(&wrong) {
            let _ = writeln!(report, "{}: not in the wrong one: {wrong:#?}", example.code);
        }
        let right = found(example.right);
        if right
            .iter()
            .any(|finding| finding.code == example.code || finding.is_counted)
        {
            let _ = writeln!(report, "{}: the right one has {right:#?}", example.code);
        }
    }
    assert!(report.is_empty(), "\n{report}");
}
