//! `beamtalk fmt`: bring source files into the standard layout.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use beamtalk_project::findings::{self, Counts, FileFindings, Finding, Policy};
use beamtalk_project::source::Text;
use beamtalk_project::{Project, files};
use beamtalk_syntax::diagnostic::{Diagnostic, Severity};
use beamtalk_syntax::examples::expectation::Expectation;
use beamtalk_syntax::examples::script::{self, Style};
use beamtalk_syntax::span::Span;
use beamtalk_syntax::{FormatError, diff};

use crate::exit::{Exit, Fault};
use crate::terminal::Terminal;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Files and directories; `-` formats standard input to standard output. Without any, the whole project.
    paths: Vec<PathBuf>,
    /// Change nothing; show a diff for each file that is not formatted, and exit 1 if there is one.
    #[arg(long)]
    check: bool,
}

#[derive(clap::Args)]
pub(crate) struct CheckArguments {
    /// Files and directories; without any, the whole project.
    paths: Vec<PathBuf>,
}

impl From<CheckArguments> for Arguments {
    fn from(arguments: CheckArguments) -> Self {
        Self {
            paths: arguments.paths,
            check: true,
        }
    }
}

/// What became of one file.
enum Outcome {
    Unchanged,
    Changed(String),
    Faulty(FileFindings),
    /// The formatter would change the meaning.
    Refused,
}

pub(crate) fn run(terminal: &mut Terminal, arguments: &Arguments) -> anyhow::Result<Exit> {
    if arguments.paths == [Path::new("-")] {
        return format_input(terminal, arguments.check);
    }
    let base = std::env::current_dir()?;
    let base = std::fs::canonicalize(&base).unwrap_or(base);
    let mut counts = Counts::default();
    let mut changed = 0;
    let mut refused = Vec::new();
    for path in sources(&arguments.paths)? {
        let text = Text::read(&path, &base)?;
        match format(&text) {
            Outcome::Unchanged => {}
            Outcome::Changed(formatted) => {
                changed += 1;
                if arguments.check {
                    let difference = diff::unified([&text.shown, &text.shown], &text.content, &formatted);
                    if terminal.is_json() {
                        terminal.print(serde_json::json!({"file": text.shown, "diff": difference}))?;
                    } else {
                        terminal.print(difference.trim_end())?;
                    }
                } else {
                    files::write_atomic(&path, formatted.as_bytes())?;
                    terminal.status(format_args!("Formatted {}", text.shown));
                }
            }
            Outcome::Faulty(file) => findings::report(terminal, &file, &Policy::default(), &mut counts)?,
            Outcome::Refused => refused.push(text.shown),
        }
    }
    if !refused.is_empty() {
        return Err(Fault {
            exit: Exit::Internal,
            kind: "format_unsafe",
            message: format!(
                "formatting would change the meaning of {}; left alone",
                refused.join(", ")
            ),
            hint: Some("this is a fault of Beamtalk; please report it with the file".to_owned()),
        }
        .into());
    }
    if counts.errors > 0 {
        return Err(Fault::failure("syntax_error", "files with syntax errors were left alone").into());
    }
    if arguments.check && changed > 0 {
        let plural = if changed == 1 { " is" } else { "s are" };
        return Err(
            Fault::failure("not_formatted", format!("{changed} file{plural} not formatted"))
                .with_hint("beamtalk fmt")
                .into(),
        );
    }
    Ok(Exit::Success)
}

/// The files to format: all `.bt` and `.btscript` below the paths.
fn sources(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let default = [PathBuf::from(".")];
    let paths = if paths.is_empty() { &default } else { paths };
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            let root = match Project::find(path)? {
                Some(project) if *path == default[0] => project.root,
                _ => path.clone(),
            };
            found.extend(files::find(&std::fs::canonicalize(root)?, &["bt", "btscript"])?);
        } else if path.is_file() {
            found.push(std::fs::canonicalize(path)?);
        } else {
            return Err(Fault::usage("path_missing", format!("{} does not exist", path.display())).into());
        }
    }
    Ok(found)
}

/// Scripts are checked for syntax but never rewritten.
fn format(text: &Text) -> Outcome {
    let faulty = |diagnostics: &[Diagnostic]| {
        Outcome::Faulty(FileFindings {
            path: text.shown.clone(),
            text: text.content.clone(),
            findings: diagnostics.iter().map(Finding::from).collect(),
        })
    };
    if let Some(fault) = text.fault() {
        return faulty(std::slice::from_ref(fault));
    }
    if files::has_extension(&text.path, &["btscript"]) {
        let diagnostics = script_errors(&text.content);
        return if diagnostics.is_empty() {
            Outcome::Unchanged
        } else {
            faulty(&diagnostics)
        };
    }
    match beamtalk_syntax::format(&text.content) {
        Ok(formatted) if formatted == text.content => Outcome::Unchanged,
        Ok(formatted) => Outcome::Changed(formatted),
        Err(FormatError::Syntax(diagnostics)) => faulty(&diagnostics),
        Err(FormatError::Changed) => Outcome::Refused,
    }
}

/// Syntax errors of a script's inputs, except where the script expects an error.
fn script_errors(text: &str) -> Vec<Diagnostic> {
    let script = script::parse(text, Style::Script, 1);
    let wanted = script
        .inputs
        .iter()
        .filter(|input| !matches!(input.expectation, Some(Expectation::Error(_))));
    wanted
        .flat_map(|input| {
            let offset = text
                .lines()
                .take(input.line - 1)
                .map(|line| line.len() + 1)
                .sum::<usize>() as u32;
            let moved = move |span: Span| Span::new(span.start + offset, span.end + offset);
            beamtalk_syntax::parse_input(&input.text)
                .diagnostics
                .into_iter()
                .filter(|diagnostic| diagnostic.severity == Severity::Error)
                .map(move |diagnostic| Diagnostic {
                    span: moved(diagnostic.span),
                    notes: diagnostic
                        .notes
                        .into_iter()
                        .map(|(span, text)| (moved(span), text))
                        .collect(),
                    ..diagnostic
                })
        })
        .collect()
}

fn format_input(terminal: &mut Terminal, is_check: bool) -> anyhow::Result<Exit> {
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| Fault::failure("bad_input", format!("standard input: {error}")))?;
    match beamtalk_syntax::format(&text) {
        Ok(formatted) if is_check => {
            let difference = diff::unified(["-", "-"], &text, &formatted);
            std::io::stdout().lock().write_all(difference.as_bytes())?;
            Ok(if difference.is_empty() {
                Exit::Success
            } else {
                Exit::Failure
            })
        }
        Ok(formatted) => {
            std::io::stdout().lock().write_all(formatted.as_bytes())?;
            Ok(Exit::Success)
        }
        Err(FormatError::Syntax(diagnostics)) => {
            let findings = diagnostics.iter().map(Finding::from).collect();
            let file = FileFindings {
                path: "-".to_owned(),
                text,
                findings,
            };
            findings::report(terminal, &file, &Policy::default(), &mut Counts::default())?;
            Err(Fault::failure("syntax_error", "the input has syntax errors").into())
        }
        Err(FormatError::Changed) => Err(Fault {
            exit: Exit::Internal,
            kind: "format_unsafe",
            message: "formatting would change the meaning of the input".to_owned(),
            hint: None,
        }
        .into()),
    }
}
