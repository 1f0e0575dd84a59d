//! `beamtalk type-coverage`: the share of expressions with a type.

use std::path::{Path, PathBuf};

use beamtalk_compiler::complete::{ClassCoverage, coverage};
use beamtalk_project::lock::Locking;
use beamtalk_project::source::{self, Parsed};
use beamtalk_syntax::span::LineIndex;
use serde_json::json;

use super::check::{Sources, read, readable};
use crate::exit::{Exit, Fault};
use crate::terminal::Terminal;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A project directory, a directory or a `.bt` file.
    #[arg(default_value = ".")]
    path: PathBuf,
    /// List every expression without a type, and why it has none.
    #[arg(long)]
    detail: bool,
    /// Exit 1 when the share is below N percent.
    #[arg(long, value_name = "N", value_parser = percent)]
    at_least: Option<f64>,
    /// Only this class.
    #[arg(long, value_name = "C")]
    class: Option<String>,
}

/// How many expressions below a path have a type, and how many there are, in files that count.
pub(crate) fn count(
    terminal: &mut Terminal,
    path: &Path,
    counts: impl Fn(&Path) -> bool,
) -> anyhow::Result<(u64, u64)> {
    let package = readable(terminal, path, Locking::Follow)?;
    let Sources { table, mut files } = read(&package, path)?;
    files.retain(|file| counts(&file.path));
    let all = source::parallel(&files, |file| coverage(&file.file, &table));
    let all = all.iter().flatten();
    Ok(all.fold((0, 0), |(typed, total), class| {
        (typed + class.typed() as u64, total + class.total as u64)
    }))
}

fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').parse::<f64>() {
        Ok(value) if (0.0..=100.0).contains(&value) => Ok(value),
        _ => Err("a number from 0 to 100".to_owned()),
    }
}

pub(crate) fn run(terminal: &mut Terminal, arguments: &Arguments) -> anyhow::Result<Exit> {
    let package = readable(terminal, &arguments.path, Locking::Follow)?;
    let Sources { table, files } = read(&package, &arguments.path)?;
    let mut counted = source::parallel(&files, |file| coverage(&file.file, &table));
    if let Some(wanted) = &arguments.class {
        counted
            .iter_mut()
            .for_each(|classes| classes.retain(|class| class.class == wanted.as_str()));
        if counted.iter().all(Vec::is_empty) {
            return Err(Fault::usage("class_not_found", format!("there is no class '{wanted}' here")).into());
        }
    }
    let all: Vec<(&Parsed, &ClassCoverage)> = files
        .iter()
        .zip(&counted)
        .flat_map(|(file, classes)| classes.iter().map(move |class| (file, class)))
        .filter(|(_, class)| class.total > 0)
        .collect();
    let total: usize = all.iter().map(|(_, class)| class.total).sum();
    let typed: usize = all.iter().map(|(_, class)| class.typed()).sum();
    let reached = share(typed, total);
    if terminal.is_json() {
        let classes: Vec<serde_json::Value> =
            all.iter().map(|(file, class)| class_json(file, class)).collect();
        terminal.print(json!({"typed": typed, "total": total, "percent": reached, "classes": classes}))?;
    } else {
        for (file, class) in &all {
            let name = &class.class;
            let line = format!(
                "{name:<32} {:>5.1} %  {} of {}",
                share(class.typed(), class.total),
                class.typed(),
                class.total
            );
            terminal.print(line)?;
            if arguments.detail {
                for (place, reason) in places(file, class) {
                    terminal.print(format_args!(
                        "  {}:{}:{}  {reason}",
                        file.file.path, place.line, place.column
                    ))?;
                }
            }
        }
        terminal.print(format_args!(
            "Type coverage: {reached:.1} % ({typed} of {total} expressions)"
        ))?;
    }
    match arguments.at_least {
        Some(wanted) if reached < wanted => {
            let message = format!("type coverage is {reached:.1} %, below {wanted} %");
            Err(Fault::failure("type_coverage", message).into())
        }
        _ => Ok(Exit::Success),
    }
}

/// In percent, to one digit and never rounded up; nothing to type is all typed.
fn share(typed: usize, total: usize) -> f64 {
    if total == 0 {
        return 100.0;
    }
    (typed as f64 / total as f64 * 1_000.0).floor() / 10.0
}

fn places<'a>(
    file: &'a Parsed,
    class: &'a ClassCoverage,
) -> impl Iterator<Item = (beamtalk_syntax::span::Position, &'static str)> + 'a {
    let index = LineIndex::new(&file.file.text);
    class.dynamic.iter().map(move |dynamic| {
        (
            index.position(&file.file.text, dynamic.span.start),
            dynamic.reason,
        )
    })
}

fn class_json(file: &Parsed, class: &ClassCoverage) -> serde_json::Value {
    let dynamic: Vec<serde_json::Value> = places(file, class)
        .map(|(place, reason)| json!({"line": place.line, "column": place.column, "reason": reason}))
        .collect();
    json!({
        "class": class.class.as_str(), "file": file.file.path.as_str(), "typed": class.typed(), "total": class.total,
        "percent": share(class.typed(), class.total), "dynamic": dynamic,
    })
}
