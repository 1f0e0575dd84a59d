//! The examples of the pages people start with, driven three ways with the same result: typed, pasted, piped.

use std::path::Path;

use regex::Regex;

use crate::screen::Screen;
use crate::support::Place;

const END: &str = "\"that was all\"";

/// The lines of all examples of a page, a blank one between two examples.
fn examples(page: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = Vec::new();
    let mut is_inside = false;
    for line in text.lines() {
        match line {
            "```beamtalk" => is_inside = true,
            "```" if is_inside => {
                is_inside = false;
                lines.push(String::new());
            }
            line if is_inside => lines.push(line.to_owned()),
            _ => {}
        }
    }
    assert!(lines.len() > 5, "{page} has examples");
    lines
}

/// What is printed, without prompts and what stands behind them, each process the same.
fn results(shown: &str) -> Vec<String> {
    let pid = Regex::new(r"\b0\.\d+\.\d+\b").unwrap();
    shown
        .lines()
        .filter(|line| !line.starts_with('>') && !line.starts_with("..>") && !line.is_empty())
        .map(|line| pid.replace_all(line.trim_end(), "0.0.0").into_owned())
        .collect()
}

/// The same without errors, which end what is piped, and warnings, which go to the other stream there.
fn without_errors(results: &[String]) -> Vec<&String> {
    let is_of_error = |line: &&String| {
        ["Error: ", "Hint: ", "  at ", "Line: ", "⚠ "]
            .iter()
            .any(|start| line.starts_with(start))
    };
    results.iter().filter(|line| !is_of_error(line)).collect()
}

/// What a session showed after its greeting.
fn session(screen: &Screen) -> Vec<String> {
    screen.wait_for(&format!("\n{END}\n"));
    screen.wait_for_last("> ");
    let shown = screen.shown();
    let start = shown.find("\n>").unwrap();
    results(&shown[start..])
}

fn typed(lines: &[String]) -> Vec<String> {
    let place = Place::new();
    let screen = Screen::repl_with(&place, 200);
    // Nothing waits for the prompt: what is typed ahead belongs to the next one.
    for line in lines {
        screen.line(line);
    }
    screen.line(END);
    let shown = session(&screen);
    drop(screen);
    place.stop();
    shown
}

fn pasted(lines: &[String]) -> Vec<String> {
    let place = Place::new();
    let screen = Screen::repl_with(&place, 200);
    screen.paste(&format!("{}\n{END}", lines.join("\n")));
    screen.wait_for(&format!("..> {END}"));
    screen.keys(&["Enter"]);
    let shown = session(&screen);
    drop(screen);
    place.stop();
    shown
}

fn piped(lines: &[String]) -> Vec<String> {
    let place = Place::new();
    let good: Vec<&str> = lines
        .iter()
        .filter(|line| !line.contains("// => ERROR"))
        .map(String::as_str)
        .collect();
    let done = place
        .run_with_input(&["repl"], &format!("{}\n{END}\n", good.join("\n")))
        .expect_code(0);
    place.stop();
    results(&done.stdout)
}

fn drive(page: &str) {
    let lines = examples(page);
    let typed = typed(&lines);
    let pasted = pasted(&lines);
    assert_eq!(typed, pasted, "typed and pasted, {page}");
    let piped = piped(&lines);
    assert_eq!(
        without_errors(&typed),
        piped.iter().collect::<Vec<_>>(),
        "typed and piped, {page}"
    );
    let mut shown = typed.iter();
    for line in &lines {
        let Some((_, wanted)) = line.split_once("// => ") else {
            continue;
        };
        let is_it = |got: &String| match wanted.strip_prefix("ERROR:") {
            Some(_) => got.starts_with("Error: "),
            None if wanted.contains('_') && !wanted.contains('#') => {
                got.starts_with(wanted.split('_').next().unwrap_or_default())
            }
            None => got == wanted,
        };
        assert!(shown.any(is_it), "{page}: {line} does not print that: {typed:#?}");
    }
}

#[test]
fn the_examples_of_the_readme_are_the_same_every_way() {
    drive("README.md");
}

#[test]
fn the_examples_of_the_tour_are_the_same_every_way() {
    drive("docs/tour.md");
}
