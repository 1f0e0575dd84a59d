//! The real library, and all the Beamtalk there is in the repository.

use std::fs;
use std::path::{Path, PathBuf};

use beamtalk_compiler::{ClassTable, Origin, SourceFile, module_name};
use beamtalk_syntax::diagnostic::Diagnostic;
use beamtalk_syntax::span::LineIndex;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn file(name: &str, text: &str, origin: Origin) -> SourceFile {
    let parse = if origin == Origin::Session {
        beamtalk_syntax::parse_input(text)
    } else {
        beamtalk_syntax::parse_file(text)
    };
    let package = match origin {
        Origin::Library => Some("stdlib".into()),
        Origin::Session => None,
        Origin::Package | Origin::Test => Some("demo".into()),
    };
    SourceFile {
        path: format!("src/{name}.bt").into(),
        text: text.into(),
        unit: parse.unit,
        module: module_name(package.as_deref(), name).into(),
        package,
        origin,
    }
}

pub(crate) fn library_files() -> Vec<SourceFile> {
    let mut paths: Vec<PathBuf> = fs::read_dir(root().join("lib"))
        .expect("the library is there")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|it| it == "bt"))
        .collect();
    paths.sort();
    let read = |path: &PathBuf| {
        let text = fs::read_to_string(path).expect("readable");
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        file(&name, &text, Origin::Library)
    };
    paths.iter().map(read).collect()
}

pub(crate) fn library() -> ClassTable {
    let mut table = ClassTable::empty();
    library_files().iter().for_each(|file| table.declare(file));
    table
}

fn below(directory: &Path, wanted: &[&str], found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            below(&path, wanted, found);
        } else if path
            .extension()
            .is_some_and(|it| wanted.iter().any(|ending| it == *ending))
        {
            found.push(path);
        }
    }
}

/// Every source, script, and example of the documentation and of doc comments: a name and a text each.
pub(crate) fn texts() -> Vec<(String, String, Origin)> {
    let mut texts = Vec::new();
    let mut paths = Vec::new();
    for directory in ["tests/lang", "docs", "lib", "bench/lang/beamtalk"] {
        below(&root().join(directory), &["bt", "btscript", "md"], &mut paths);
    }
    for path in paths {
        let text = fs::read_to_string(&path).expect("readable");
        let name = path
            .strip_prefix(root())
            .unwrap_or(&path)
            .to_string_lossy()
            .into_owned();
        let ending = path
            .extension()
            .map(|it| it.to_string_lossy().into_owned())
            .unwrap_or_default();
        // Broken sources, and classes that change while the script runs: a text has only its last definition.
        let is_changing = name.starts_with("tests/lang/13-live") || name.contains("exhaustive");
        if name.starts_with("tests/lang/broken") || is_changing {
            continue;
        }
        match ending.as_str() {
            "btscript" => texts.push((name, text, Origin::Session)),
            "md" => texts.extend(examples(&name, &text, "")),
            _ if name.starts_with("lib") => texts.extend(examples(&name, &text, "///")),
            _ => texts.push((name, text, Origin::Test)),
        }
    }
    texts
}

/// What stands between fences, each with blank lines before it so that its lines keep their numbers.
fn examples(name: &str, text: &str, comment: &str) -> Vec<(String, String, Origin)> {
    let mut found = Vec::new();
    let mut inside: Option<String> = None;
    for (number, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        let content = if comment.is_empty() {
            Some(line)
        } else {
            trimmed
                .strip_prefix(comment)
                .map(|rest| rest.strip_prefix(' ').unwrap_or(rest))
        };
        let Some(content) = content else {
            inside = None;
            continue;
        };
        match (&mut inside, content.trim_start().strip_prefix("```")) {
            (None, Some(language)) if matches!(language.trim(), "beamtalk" | "smalltalk") => {
                inside = Some("\n".repeat(number + 1));
            }
            (None, _) => {}
            (Some(_), Some(_)) => {
                let body = inside.take().unwrap_or_default();
                found.push((name.to_owned(), body, Origin::Session));
            }
            (Some(body), None) => {
                body.push_str(content);
                body.push('\n');
            }
        }
    }
    found
}

/// Mistakes that stand in the corpus on purpose, by a part of their line.
const DELIBERATE: &[&str] = &[
    "frobnicate",
    "self zork",
    "nil foo",
    "super nothing",
    "nvAsk:",
    "self should: 1 raise:",
    "\"a\" == #a",
    "nil zork",
    "QaWork named: nil",
    "b registerAs: nil",
    "nil bar",
    "x bar",
    "bad -> Integer",
    "[:w :: AlStay | w match:",
];

/// Whether the input around an offset is there to fail when it is run.
pub(crate) fn is_expected_to_fail(text: &str, offset: u32) -> bool {
    let start = text
        .get(..offset as usize)
        .and_then(|before| before.rfind('\n'))
        .map_or(0, |at| at + 1);
    let rest = text.get(start..).unwrap_or("");
    let line = rest.lines().next().unwrap_or("");
    let is_caught = [
        "on: Exception do:",
        "on: Error do:",
        "on: RuntimeError do:",
        " error kind",
        "raise:",
    ];
    if is_caught.iter().chain(DELIBERATE).any(|part| line.contains(part)) {
        return true;
    }
    let expectation = rest.lines().find(|line| line.contains("// =>"));
    expectation.is_some_and(|line| {
        let expected = line.split("// =>").nth(1).map_or("", str::trim_start);
        expected.starts_with("ERROR") || expected.starts_with("WARNING")
    })
}

/// A part of the possible values fails: worth a hint, and the others work.
pub(crate) fn is_partial(diagnostic: &Diagnostic) -> bool {
    let is_hint = diagnostic.severity == beamtalk_syntax::diagnostic::Severity::Hint;
    let hint = diagnostic.hint.as_deref().unwrap_or("");
    is_hint && (hint.starts_with("The receiver is") || hint.ends_with("not fit."))
}

pub(crate) fn render(text: &str, diagnostic: &Diagnostic) -> String {
    let lines = LineIndex::new(text);
    let position = lines.position(text, diagnostic.span.start);
    let line = text.lines().nth(position.line as usize - 1).unwrap_or("");
    let hint = diagnostic
        .hint
        .as_deref()
        .map(|hint| format!("\n      hint: {hint}"))
        .unwrap_or_default();
    format!(
        "{}:{} {} {:?}: {}{hint}\n      {}",
        position.line,
        position.column,
        diagnostic.code,
        diagnostic.severity,
        diagnostic.message,
        line.trim()
    )
}
