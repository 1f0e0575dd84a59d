//! Where the lines of a method stand when it is put into a class.
//!
//! A line at or left of the column of a method's head belongs to the next member, so a method written at the margin
//! is moved to the right as a whole. Lines inside strings stay: their text is part of a value.

use crate::lexer;

/// The text of a method as it stands in a class whose members start after `indent`. Its first line gets no indentation.
pub fn as_member(source: &str, indent: &str) -> String {
    let source = source.trim();
    let lines = movable_lines(source);
    let head_line = head_line(source);
    let stands_at_margin = if head_line > 0 {
        lines
            .iter()
            .any(|line| line.number == head_line && line.indentation == 0)
    } else {
        let least = lines.iter().map(|line| line.indentation).min();
        least.is_some_and(|least| least <= indent.chars().count())
    };
    if !stands_at_margin {
        return source.to_owned();
    }
    let mut out = String::with_capacity(source.len() + lines.len() * indent.len());
    let mut done = 0;
    for line in lines {
        out.push_str(source.get(done..line.start).unwrap_or_default());
        out.push_str(indent);
        done = line.start;
    }
    out.push_str(source.get(done..).unwrap_or_default());
    out
}

/// A text with every line that may move further to the right, and where in the new text the blanks came in.
pub fn indented(source: &str, by: &str) -> (String, Vec<usize>) {
    let mut out = String::with_capacity(source.len() + 64);
    let mut places = vec![0];
    out.push_str(by);
    let mut done = 0;
    for line in movable_lines(source) {
        out.push_str(source.get(done..line.start).unwrap_or_default());
        places.push(out.len());
        out.push_str(by);
        done = line.start;
    }
    out.push_str(source.get(done..).unwrap_or_default());
    (out, places)
}

/// A text cut out of a line that has `column` characters before it, with its other lines that much further to the left.
pub fn at_margin(source: &str, column: usize) -> String {
    let mut out = String::with_capacity(source.len());
    let mut done = 0;
    for line in movable_lines(source) {
        out.push_str(source.get(done..line.start).unwrap_or_default());
        let rest = source.get(line.start..).unwrap_or_default();
        let blanks = rest.chars().take(column.min(line.indentation));
        done = line.start + blanks.map(char::len_utf8).sum::<usize>();
    }
    out.push_str(source.get(done..).unwrap_or_default());
    out
}

/// The same method with its lines as far left as in a class whose members start at the margin, to compare texts.
pub fn same_method(a: &str, b: &str) -> bool {
    normal(a) == normal(b)
}

fn normal(source: &str) -> Vec<String> {
    let source = source.trim().replace("\r\n", "\n");
    let lines = movable_lines(&source);
    let least = lines.iter().map(|line| line.indentation).min().unwrap_or(0);
    source
        .split('\n')
        .enumerate()
        .map(|(number, text)| {
            let is_movable = lines.iter().any(|line| line.number == number);
            let cut: String = if is_movable {
                text.chars().skip(least).collect()
            } else {
                text.to_owned()
            };
            cut.trim_end().to_owned()
        })
        .collect()
}

struct Line {
    number: usize,
    start: usize,
    /// Characters before the first one that is not blank.
    indentation: usize,
}

/// The lines after the first that are not blank and do not start inside a token.
fn movable_lines(source: &str) -> Vec<Line> {
    let tokens = lexer::lex(source).tokens;
    let mut start = 0;
    let mut out = Vec::new();
    for (number, text) in source.split_inclusive('\n').enumerate() {
        let at = start as u32;
        let is_inside = tokens
            .iter()
            .any(|token| token.start < at && at < token.end.max(token.start));
        if number > 0 && !text.trim().is_empty() && !is_inside {
            out.push(Line {
                number,
                start,
                indentation: text.chars().take_while(|c| c.is_whitespace()).count(),
            });
        }
        start += text.len();
    }
    out
}

/// Documentation and comments may stand before the head.
fn head_line(source: &str) -> usize {
    let first = lexer::lex(source).tokens.first().map_or(0, |token| token.start);
    source
        .get(..first as usize)
        .unwrap_or_default()
        .matches('\n')
        .count()
}

#[cfg(test)]
mod tests {
    use super::{as_member, same_method};

    #[test]
    fn a_method_at_the_margin_moves_as_a_whole() {
        assert_eq!(as_member("a =>\n  1\n\n  2", "  "), "a =>\n    1\n\n    2");
        assert_eq!(as_member("/// Doc.\na => 1", "\t"), "/// Doc.\n\ta => 1");
    }

    #[test]
    fn a_method_cut_out_of_a_class_stays() {
        assert_eq!(as_member("a =>\n    1\n    2", "  "), "a =>\n    1\n    2");
        assert_eq!(
            as_member("/// Doc.\n  a =>\n    1", "  "),
            "/// Doc.\n  a =>\n    1"
        );
    }

    #[test]
    fn lines_of_a_string_are_never_touched() {
        let source = "a =>\n  \"one\ntwo {self b} three\n  four\"\n  1";
        let expected = "a =>\n    \"one\ntwo {self b} three\n  four\"\n    1";
        assert_eq!(as_member(source, "  "), expected);
    }

    #[test]
    fn indentation_makes_no_difference() {
        assert!(same_method("a =>\n  1\n  2", "a =>\n    1\n    2\n"));
        assert!(same_method("a =>\r\n  1", "a =>\n  1"));
        assert!(!same_method("a =>\n  \"x\n y\"", "a =>\n  \"x\n  y\""));
        assert!(!same_method("a => 1", "a => 2"));
    }
}
