//! Erlang beside Beamtalk: `native-prefix`, `native-hardcoded-module`.
//!
//! The text is read as tokens only, so that comments and strings do not count.

use beamtalk_syntax::diagnostic::Diagnostic;
use beamtalk_syntax::span::Span;
use ecow::eco_format;

use crate::codes;

/// One Erlang file of a package.
#[derive(Clone, Copy, Debug)]
pub struct Native<'a> {
    pub text: &'a str,
    /// The file name without extension, which is the name of the module.
    pub module: &'a str,
    pub package: Option<&'a str>,
}

pub fn lint_native(file: &Native<'_>) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    if let Some(package) = file.package
        && !file.module.starts_with(package)
    {
        let message = eco_format!(
            "native module `{}` does not start with the package name `{package}` (native-prefix)",
            file.module
        );
        let span = module_span(file).unwrap_or_default();
        out.push(
            Diagnostic::lint(codes::NATIVE_PREFIX, span, message).with_hint(eco_format!(
                "Modules share one namespace; call it `{package}_{}`.",
                file.module
            )),
        );
    }
    for span in quoted_atoms(file.text) {
        let atom = span.text(file.text);
        if atom.starts_with("'bt@") {
            let message = eco_format!(
                "{atom} is the module of a Beamtalk class, named by hand (native-hardcoded-module)"
            );
            out.push(
                Diagnostic::lint(codes::NATIVE_HARDCODED_MODULE, span, message).with_hint(
                    "Include `beamtalk_classes.hrl` and use its macro, or send the class a message.",
                ),
            );
        }
    }
    out
}

/// The name in `-module(name).`
fn module_span(file: &Native<'_>) -> Option<Span> {
    let attribute = file.text.find("-module(")? + "-module(".len();
    let rest = file.text.get(attribute..)?;
    let length = rest.find(')')?;
    Some(Span::new(attribute as u32, (attribute + length) as u32))
}

/// Where `'…'` stands outside comments, strings and characters.
fn quoted_atoms(text: &str) -> Vec<Span> {
    let mut found = Vec::new();
    let mut characters = text.char_indices().peekable();
    while let Some((start, character)) = characters.next() {
        match character {
            '%' => while characters.next_if(|(_, c)| *c != '\n').is_some() {},
            '$' => {
                if let Some((_, '\\')) = characters.next() {
                    characters.next();
                }
            }
            '"' | '\'' => {
                while let Some((at, inner)) = characters.next() {
                    if inner == '\\' {
                        characters.next();
                    } else if inner == character {
                        if character == '\'' {
                            found.push(Span::new(start as u32, at as u32 + 1));
                        }
                        break;
                    }
                }
            }
            _ => {}
        }
    }
    found
}
