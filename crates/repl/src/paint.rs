//! Colours of a session: input while it is typed, values, errors.

use beamtalk_syntax::{Paint, highlight};

/// Whether a session uses colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Palette {
    Plain,
    Colored,
}

const RESET: &str = "\x1b[0m";
const STRING: &str = "\x1b[32m";
const NUMBER: &str = "\x1b[33m";
const CONSTANT: &str = "\x1b[1;34m";
const OPAQUE: &str = "\x1b[36m";
const CLASS_NAME: &str = "\x1b[35m";
const COMMENT: &str = "\x1b[90m";
const ERROR: &str = "\x1b[1;31m";

/// Classes whose values show only that they are there.
const OPAQUE_CLASSES: &[&str] = &["Block", "Pid", "Port", "Reference"];

impl Palette {
    /// Code, or the printed form of a value made of literals.
    pub(crate) fn code(self, text: &str) -> String {
        self.code_after("", text)
    }

    /// Code that goes on from earlier lines, which decide what it is part of.
    pub(crate) fn code_after(self, before: &str, text: &str) -> String {
        if self == Palette::Plain {
            return text.to_owned();
        }
        let whole = format!("{before}{text}");
        let mut painted = String::with_capacity(text.len() * 2);
        let mut at = before.len();
        for (span, paint) in highlight(&whole) {
            let start = (span.start as usize).max(at);
            let end = span.end as usize;
            if end <= start {
                continue;
            }
            painted.push_str(whole.get(at..start).unwrap_or_default());
            painted.push_str(match paint {
                Paint::String => STRING,
                Paint::Number => NUMBER,
                Paint::Constant => CONSTANT,
                Paint::ClassName => CLASS_NAME,
                Paint::Comment => COMMENT,
            });
            painted.push_str(whole.get(start..end).unwrap_or_default());
            painted.push_str(RESET);
            at = end;
        }
        painted.push_str(whole.get(at..).unwrap_or_default());
        painted
    }

    /// The printed form of a value of this class.
    pub(crate) fn value(self, text: &str, class: &str) -> String {
        let is_opaque = OPAQUE_CLASSES.contains(&class) || text.starts_with("Actor(");
        if is_opaque {
            self.wrap(OPAQUE, text)
        } else {
            self.code(text)
        }
    }

    pub(crate) fn error(self, text: &str) -> String {
        self.wrap(ERROR, text)
    }

    /// Something that matters less than what stands beside it.
    pub(crate) fn aside(self, text: &str) -> String {
        self.wrap(COMMENT, text)
    }

    fn wrap(self, start: &str, text: &str) -> String {
        match self {
            Palette::Plain => text.to_owned(),
            Palette::Colored => format!("{start}{text}{RESET}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(painted: &str) -> String {
        let mut text = String::new();
        let mut rest = painted;
        while let Some((before, after)) = rest.split_once("\x1b[") {
            text.push_str(before);
            rest = after.split_once('m').map_or("", |(_, after)| after);
        }
        text + rest
    }

    #[test]
    fn every_kind_has_its_colour() {
        let painted = Palette::Colored.code("Lamp at: 3 put: \"on\" // nil");
        assert_eq!(
            painted,
            "\x1b[35mLamp\x1b[0m at: \x1b[33m3\x1b[0m put: \x1b[32m\"on\"\x1b[0m \x1b[90m// nil\x1b[0m"
        );
        assert_eq!(Palette::Colored.code("nil"), "\x1b[1;34mnil\x1b[0m");
        assert_eq!(
            Palette::Colored.value("Actor(Lamp, 0.187.0)", "Lamp"),
            "\x1b[36mActor(Lamp, 0.187.0)\x1b[0m"
        );
        assert_eq!(Palette::Colored.error("Error: no"), "\x1b[1;31mError: no\x1b[0m");
    }

    #[test]
    fn without_colours_text_stays_as_it_is() {
        for text in ["Lamp at: 3", "\"ünï {x}\"", "#(1, 2"] {
            assert_eq!(Palette::Plain.code(text), text);
            assert_eq!(plain(&Palette::Colored.code(text)), text);
        }
    }

    #[test]
    fn earlier_lines_decide_what_a_line_is() {
        assert_eq!(
            Palette::Colored.code_after("x := \"one\n", "two 3\""),
            "\x1b[32mtwo 3\"\x1b[0m"
        );
    }
}
