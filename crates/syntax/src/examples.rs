//! Examples in documentation: fenced `beamtalk` blocks in `///` comments and in Markdown.

pub mod expectation;
pub mod script;

use crate::ast::{Item, Unit};
use crate::fences::{self, Fence};
use crate::span::LineIndex;
use script::{Load, Script, Style};

/// A fenced block that has an expectation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// `Class>>selector (doc)`, or the empty text in Markdown.
    pub name: String,
    /// The line of its first input in the file.
    pub line: usize,
    pub text: String,
}

/// The blocks in the documentation comments of a source file.
pub fn blocks_in_source(source: &str, unit: &Unit) -> Vec<Block> {
    let owners = owners(source, unit);
    let mut blocks = Vec::new();
    let mut comment: Vec<(usize, &str)> = Vec::new();
    let lines = source.lines().enumerate().map(|(at, line)| (at + 1, line));
    for (number, line) in lines.chain(std::iter::once((usize::MAX, ""))) {
        if let Some(text) = line.trim_start().strip_prefix("///") {
            comment.push((number, text.strip_prefix(' ').unwrap_or(text)));
            continue;
        }
        if let Some((last, _)) = comment.last() {
            let owner = owners
                .iter()
                .find(|(line, _)| line > last)
                .map_or("", |(_, name)| name.as_str());
            blocks.extend(
                fences::in_lines(&comment)
                    .into_iter()
                    .map(|Fence { line, text }| Block {
                        name: format!("{owner} (doc)"),
                        line,
                        text,
                    }),
            );
        }
        comment.clear();
    }
    blocks
}

/// The blocks of a Markdown file, in order.
fn blocks_in_markdown(text: &str) -> Vec<Block> {
    fences::in_markdown(text)
        .into_iter()
        .map(|Fence { line, text }| Block {
            name: String::new(),
            line,
            text,
        })
        .collect()
}

/// All blocks of a Markdown text as one script: they share variables.
pub fn markdown_script(text: &str) -> Script {
    let mut whole = Script::default();
    whole
        .loads
        .extend(markdown_fixtures(text).into_iter().map(|path| Load {
            line: 1,
            path,
            error: None,
        }));
    for block in blocks_in_markdown(text) {
        let parsed = script::parse(&block.text, Style::Documentation, block.line);
        whole.inputs.extend(parsed.inputs);
    }
    whole
}

/// Paths named by `<!-- btfixture: path -->`.
fn markdown_fixtures(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| line.trim().strip_prefix("<!--")?.strip_suffix("-->"))
        .filter_map(|inner| inner.trim().strip_prefix("btfixture:"))
        .map(|path| path.trim().to_owned())
        .collect()
}

/// The lines on which classes and methods start, with their names, in line order.
fn owners(source: &str, unit: &Unit) -> Vec<(usize, String)> {
    let index = LineIndex::new(source);
    let line = |offset: u32| index.line(offset) as usize;
    let mut owners = Vec::new();
    for item in &unit.items {
        match item {
            Item::Class(class) => {
                owners.push((line(class.header.start), class.name.text.to_string()));
                for slot in &class.slots {
                    owners.push((
                        line(slot.span.start),
                        format!("{}.{}", class.name.text, slot.name.text),
                    ));
                }
                for method in &class.methods {
                    let side = if method.is_class { " class" } else { "" };
                    let name = format!("{}{side}>>{}", class.name.text, method.head.selector);
                    owners.push((line(method.span.start), name));
                }
            }
            Item::Protocol(protocol) => {
                owners.push((line(protocol.span.start), protocol.name.text.to_string()));
                for signature in &protocol.signatures {
                    let name = format!("{}>>{}", protocol.name.text, signature.head.selector);
                    owners.push((line(signature.span.start), name));
                }
            }
            Item::TypeAlias(alias) => owners.push((line(alias.span.start), alias.name.text.to_string())),
            Item::Extension(extension) => {
                let side = if extension.method.is_class { " class" } else { "" };
                let name = format!(
                    "{}{side}>>{}",
                    extension.target.name.text, extension.method.head.selector
                );
                owners.push((line(extension.span.start), name));
            }
            Item::Statement(_) => {}
        }
    }
    owners.sort();
    owners
}

#[cfg(test)]
mod tests;
