//! `.btscript` files: loads, inputs and expectations.

use super::expectation::Expectation;

/// A script as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    pub loads: Vec<Load>,
    pub inputs: Vec<Input>,
    /// Directives that could not be read: line and text.
    pub malformed: Vec<(usize, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    pub line: usize,
    pub path: String,
    /// Loading must fail with a message that contains this.
    pub error: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// The line it starts on.
    pub line: usize,
    pub text: String,
    pub expectation: Option<Expectation>,
}

/// Where expectations may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// On the line after the input.
    Script,
    /// At the end of the input's line as well.
    Documentation,
}

const ARROW: &str = "// =>";

/// Read a script. `first_line` is the number of the text's first line in its file.
pub fn parse(text: &str, style: Style, first_line: usize) -> Script {
    let lines: Vec<&str> = text.lines().collect();
    let mut script = Script::default();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let trimmed = line.trim();
        if let Some(directive) = directive(trimmed) {
            match read_directive(directive, first_line + at) {
                Some(load) => script.loads.push(load),
                None => script.malformed.push((first_line + at, trimmed.to_owned())),
            }
            at += 1;
        } else if trimmed.is_empty() || trimmed.starts_with("//") {
            at += 1;
        } else {
            let (input, next) = read_input(&lines, at, style);
            script.inputs.push(Input {
                line: first_line + at,
                ..input
            });
            at = next;
        }
    }
    script
}

fn directive(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("//")?.trim_start();
    rest.starts_with("@load").then_some(rest)
}

fn read_directive(directive: &str, line: usize) -> Option<Load> {
    if let Some(rest) = directive.strip_prefix("@load-error") {
        let (path, error) = rest.split_once("=>")?;
        let (path, error) = (path.trim(), error.trim());
        let is_complete = rest.starts_with(char::is_whitespace) && !path.is_empty() && !error.is_empty();
        return is_complete.then(|| Load {
            line,
            path: path.to_owned(),
            error: Some(error.to_owned()),
        });
    }
    let rest = directive.strip_prefix("@load")?;
    let path = rest.trim();
    let is_complete = rest.starts_with(char::is_whitespace) && !path.is_empty() && !path.contains("=>");
    is_complete.then(|| Load {
        line,
        path: path.to_owned(),
        error: None,
    })
}

/// One input from line `at` on, and the line after it and its expectation.
fn read_input(lines: &[&str], at: usize, style: Style) -> (Input, usize) {
    let mut text = String::new();
    let mut next = at;
    let mut expectation = None;
    while let Some(line) = lines.get(next) {
        if next > at {
            if !crate::goes_on(&text, line) {
                break;
            }
            text.push('\n');
        }
        next += 1;
        if style == Style::Documentation
            && let Some((code, expected)) = line.rsplit_once(ARROW)
        {
            text.push_str(code.trim_end());
            expectation = Some(Expectation::parse(expected));
            break;
        }
        text.push_str(line);
    }
    if expectation.is_none()
        && let Some(expected) = lines.get(next).and_then(|line| line.trim().strip_prefix(ARROW))
    {
        expectation = Some(Expectation::parse(expected));
        next += 1;
    }
    (
        Input {
            line: 0,
            text,
            expectation,
        },
        next,
    )
}

#[cfg(test)]
mod tests;
