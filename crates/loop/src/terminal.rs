//! How lines look: labels, colours, dim bodies, escape sequences removed.

use std::borrow::Cow;
use std::fmt::Write;

use crate::config::BodyStyle;

const COLOURS: [u8; 5] = [31, 32, 33, 34, 36];

/// Whether a stream is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    Off,
    On,
}

/// The bracketed label and the blank behind it.
pub(crate) fn label(name: &str, colour: Colour, style: BodyStyle) -> String {
    match (colour, style) {
        (Colour::Off, _) => format!("[{name}] "),
        (Colour::On, BodyStyle::Plain) => format!("\x1b[1;{}m[{name}]\x1b[0m ", colour_of(name)),
        (Colour::On, BodyStyle::Dim) => format!("\x1b[2;1;{}m[{name}]\x1b[0m ", colour_of(name)),
    }
}

/// The colour of a label: always the same for the same text.
fn colour_of(name: &str) -> u8 {
    let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    COLOURS[hash as usize % COLOURS.len()]
}

/// One line of a child as it is shown: label, body, line end.
pub(crate) fn child_line(name: &str, body: &str, colour: Colour, style: BodyStyle) -> String {
    if body.is_empty() {
        return "\n".to_owned();
    }
    let mut line = label(name, colour, style);
    match (colour, style) {
        (Colour::On, BodyStyle::Dim) => push_dim(&mut line, body),
        (Colour::Off, _) | (Colour::On, BodyStyle::Plain) => line.push_str(body),
    }
    line.push('\n');
    line
}

/// A dim body: dimmed anew after every colour the child sets.
fn push_dim(line: &mut String, body: &str) {
    line.push_str("\x1b[2m");
    let mut rest = body;
    while let Some(at) = rest.find('\x1b') {
        let length = escape_length(&rest[at..]);
        let (before, escape) = rest[..at + length].split_at(at);
        line.push_str(before);
        line.push_str(escape);
        if escape.starts_with("\x1b[") && escape.ends_with('m') {
            line.push_str("\x1b[2m");
        }
        rest = &rest[at + length..];
    }
    write!(line, "{rest}\x1b[0m").expect("writing to a text cannot fail");
}

/// The text without terminal escape sequences.
pub(crate) fn without_escapes(text: &str) -> Cow<'_, str> {
    if !text.contains('\x1b') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\x1b') {
        plain.push_str(&rest[..at]);
        rest = &rest[at + escape_length(&rest[at..])..];
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

/// The length in bytes of the escape sequence at the start of `text`.
fn escape_length(text: &str) -> usize {
    let mut letters = text.char_indices().skip(1);
    let Some((_, kind)) = letters.next() else {
        return text.len();
    };
    let end = |found: Option<(usize, char)>| found.map_or(text.len(), |(at, letter)| at + letter.len_utf8());
    match kind {
        // Parameters and intermediates, then one final letter.
        '[' => end(letters.find(|(_, letter)| matches!(letter, '\x40'..='\x7e'))),
        // Texts end with BEL or ESC \.
        ']' | 'P' | 'X' | '^' | '_' => {
            let mut before = kind;
            end(letters.find(|&(_, letter)| {
                let ends = letter == '\x07' || (before == '\x1b' && letter == '\\');
                before = letter;
                ends
            }))
        }
        // Charset choices and the like: intermediates, then one letter.
        '\x20'..='\x2f' => end(letters.find(|(_, letter)| !matches!(letter, '\x20'..='\x2f'))),
        _ => 1 + kind.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn labels_are_coloured_by_their_text() {
        assert_eq!(label("sh web", Colour::Off, BodyStyle::Dim), "[sh web] ");
        let colour = colour_of("sh web");
        assert!(COLOURS.contains(&colour));
        assert_eq!(
            label("sh web", Colour::On, BodyStyle::Plain),
            format!("\x1b[1;{colour}m[sh web]\x1b[0m ")
        );
        assert_eq!(
            label("sh web", Colour::On, BodyStyle::Dim),
            format!("\x1b[2;1;{colour}m[sh web]\x1b[0m ")
        );
        // FNV-1a of "a" is 0xe40c292c.
        assert_eq!(colour_of("a"), COLOURS[0xe40c_292c_usize % 5]);
    }

    #[test]
    fn dim_bodies_stay_dim() {
        let line = child_line("x", "a\x1b[32mb\x1b[0mc\x1b[Kd", Colour::On, BodyStyle::Dim);
        assert!(
            line.ends_with(" \x1b[2ma\x1b[32m\x1b[2mb\x1b[0m\x1b[2mc\x1b[Kd\x1b[0m\n"),
            "{line:?}"
        );
    }

    #[test]
    fn empty_lines_have_no_label() {
        assert_eq!(child_line("x", "", Colour::On, BodyStyle::Dim), "\n");
    }

    #[test]
    fn escapes_are_removed_whole() {
        let table = [
            ("\x1b[32mport 7431\x1b[0m", "port 7431"),
            ("\x1b]0;title\x07x", "x"),
            ("\x1b]8;;http://u\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\x1b(Bx", "x"),
            ("\x1bcx", "x"),
            ("\x1b", ""),
            ("\x1b[12;", ""),
            ("plain μ", "plain μ"),
        ];
        for (text, expected) in table {
            assert_eq!(without_escapes(text), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "[\\x00-\\x7fμ€\u{1f600}]{0,60}") {
            prop_assert!(!without_escapes(&text).contains('\x1b'));
            let line = child_line("n", &text, Colour::On, BodyStyle::Dim);
            prop_assert!(line.ends_with('\n'));
        }
    }
}
