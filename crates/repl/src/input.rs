//! Where one input ends and the next begins: in what is typed, pasted, or comes from a stream.
//!
//! The rule is the same everywhere. An input goes on while something is open in it, and with lines that are indented
//! deeper than its first. A class or protocol goes on over blank lines too, as long as an indented line follows; only
//! somebody who types line by line ends it with a blank line. A line at column 0 begins a new input.

use std::collections::VecDeque;
use std::io::{self, BufRead};

/// Where lines come from, and whether the next one is there already.
pub(crate) trait Lines {
    /// The next line without its end; `None` when there are no more.
    fn next_line(&mut self) -> io::Result<Option<String>>;

    /// May a line be read at once?
    fn is_at_hand(&mut self) -> bool;

    /// May a line be read without making the other side wait?
    fn is_ready(&mut self) -> bool;
}

/// Splits lines into inputs.
#[derive(Debug)]
pub(crate) struct Inputs<L> {
    lines: L,
    /// Read to see whether they belong to the input before them, and they do not.
    ahead: VecDeque<String>,
}

impl<L: Lines> Inputs<L> {
    pub(crate) fn new(lines: L) -> Self {
        Self {
            lines,
            ahead: VecDeque::new(),
        }
    }

    /// One line, for code that reads standard input and for questions.
    pub(crate) fn next_line(&mut self) -> io::Result<Option<String>> {
        match self.ahead.pop_front() {
            Some(line) => Ok(Some(line)),
            None => self.lines.next_line(),
        }
    }

    /// The next input; what is left at the end counts as one even when it is not complete.
    pub(crate) fn next_input(&mut self) -> io::Result<Option<String>> {
        let mut input = String::new();
        while let Some(line) = self.next_line()? {
            if input.is_empty() {
                if line.trim().is_empty() {
                    continue;
                }
                if is_command(&line) {
                    return Ok(Some(line));
                }
            } else {
                input.push('\n');
            }
            input.push_str(&line);
            // A comment belongs to what it stands before.
            if is_comment(&input) || beamtalk_syntax::is_open(&input) {
                continue;
            }
            if !self.goes_on(&mut input)? {
                return Ok(Some(input));
            }
        }
        Ok((!input.trim().is_empty() && !is_comment(&input)).then_some(input))
    }

    /// Whether the next line belongs to this input. Blank lines before it are taken in; where it does not belong they
    /// are not. Whoever waits for an answer before the next line is not kept waiting: a class is complete when nothing
    /// follows it for a while, anything else when nothing follows at once.
    fn goes_on(&mut self, input: &mut String) -> io::Result<bool> {
        let is_definition = beamtalk_syntax::ends_in_definition(input);
        let margin = indentation(input);
        let mut blank = 0;
        loop {
            if self.ahead.len() <= blank {
                let is_there = if is_definition {
                    // A class that has nothing yet is not what anybody waits for.
                    beamtalk_syntax::is_incomplete(input) || self.lines.is_ready()
                } else {
                    self.lines.is_at_hand()
                };
                if !is_there {
                    return Ok(false);
                }
                match self.lines.next_line()? {
                    Some(line) => self.ahead.push_back(line),
                    None => return Ok(false),
                }
            }
            let Some(line) = self.ahead.get(blank) else {
                return Ok(false);
            };
            if !line.trim().is_empty() {
                let is_part = indentation(line) > margin;
                if is_part {
                    for line in self.ahead.drain(..blank) {
                        input.push('\n');
                        input.push_str(&line);
                    }
                }
                return Ok(is_part);
            }
            if !is_definition {
                return Ok(false);
            }
            blank += 1;
        }
    }
}

/// Lines of a text that is there as a whole.
struct Whole(VecDeque<String>);

impl Lines for Whole {
    fn next_line(&mut self) -> io::Result<Option<String>> {
        Ok(self.0.pop_front())
    }

    fn is_at_hand(&mut self) -> bool {
        true
    }

    fn is_ready(&mut self) -> bool {
        true
    }
}

/// How a text came into the editor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Line by line.
    Typed,
    /// At once, or in parts so.
    Pasted,
}

/// The complete inputs of a text, and what is begun at its end.
pub(crate) fn split(text: &str, origin: Origin) -> (Vec<String>, Option<String>) {
    let lines: VecDeque<String> = text.split('\n').map(str::to_owned).collect();
    let mut inputs = Inputs::new(Whole(lines));
    let mut found = Vec::new();
    // Memory cannot fail.
    while let Ok(Some(input)) = inputs.next_input() {
        found.push(input);
    }
    let is_begun = found.last().is_some_and(|last| match origin {
        _ if is_command(last) => false,
        _ if beamtalk_syntax::is_open(last) => true,
        Origin::Pasted => false,
        Origin::Typed => beamtalk_syntax::ends_in_definition(last) && !ends_blank(text),
    });
    let begun = if is_begun { found.pop() } else { None };
    // A comment above a class that is still to come.
    let begun = begun.or_else(|| (found.is_empty() && is_documentation(text)).then(|| text.to_owned()));
    (found, begun)
}

fn is_command(line: &str) -> bool {
    line.trim_start().starts_with(':')
}

fn is_comment(text: &str) -> bool {
    text.lines()
        .all(|line| line.trim().is_empty() || line.trim_start().starts_with("//"))
}

fn is_documentation(text: &str) -> bool {
    is_comment(text) && text.lines().any(|line| line.trim_start().starts_with("///")) && !ends_blank(text)
}

/// Whether the last line is blank, which is what Enter in an empty line makes of a text.
fn ends_blank(text: &str) -> bool {
    text.rsplit_once('\n')
        .is_some_and(|(_, last)| last.trim().is_empty())
}

/// Columns before the first letter of a text.
fn indentation(text: &str) -> usize {
    text.len() - text.trim_start_matches([' ', '\t']).len()
}

/// Columns of a step of indentation.
const STEP: usize = 2;

/// With how many blanks the line after these begins; none in a string, where they would be part of it.
pub(crate) fn next_indentation(lines: &[String]) -> usize {
    if beamtalk_syntax::is_text_open(&lines.join("\n")) {
        return 0;
    }
    let Some(last) = lines.iter().rev().find(|line| !line.trim().is_empty()) else {
        return 0;
    };
    let code = last.split("//").next().unwrap_or_default().trim_end();
    let margin = indentation(last);
    let opened = code.matches(['[', '(', '{']).count();
    let closed = code.matches([']', ')', '}']).count();
    let is_header = margin == 0 && beamtalk_syntax::ends_in_definition(&lines.join("\n"));
    if opened > closed || code.ends_with("=>") || is_header {
        margin + STEP
    } else if lines.len() == 1 && margin == 0 && !code.is_empty() && beamtalk_syntax::is_open(code) {
        STEP
    } else {
        margin
    }
}

/// Standard input, read through a buffer of our own so that we know what is in it.
#[derive(Debug)]
pub(crate) struct StandardInput {
    reader: io::BufReader<std::fs::File>,
}

/// How long a writer may take between two lines of one class.
const PAUSE: rustix::time::Timespec = rustix::time::Timespec {
    tv_sec: 0,
    tv_nsec: 300_000_000,
};

impl StandardInput {
    pub(crate) fn open() -> io::Result<Self> {
        let descriptor = rustix::io::dup(rustix::stdio::stdin())?;
        Ok(Self {
            reader: io::BufReader::new(descriptor.into()),
        })
    }
}

impl Lines for StandardInput {
    fn next_line(&mut self) -> io::Result<Option<String>> {
        let mut bytes = Vec::new();
        if self.reader.read_until(b'\n', &mut bytes)? == 0 {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&bytes);
        Ok(Some(line.trim_end_matches(['\n', '\r']).to_owned()))
    }

    fn is_at_hand(&mut self) -> bool {
        !self.reader.buffer().is_empty()
    }

    fn is_ready(&mut self) -> bool {
        use rustix::event::{PollFd, PollFlags, poll};
        if !self.reader.buffer().is_empty() {
            return true;
        }
        let mut watched = [PollFd::new(self.reader.get_ref(), PollFlags::IN)];
        matches!(poll(&mut watched, Some(&PAUSE)), Ok(ready) if ready > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Text {
        lines: VecDeque<String>,
        is_ready: bool,
    }

    impl Lines for Text {
        fn next_line(&mut self) -> io::Result<Option<String>> {
            Ok(self.lines.pop_front())
        }

        fn is_at_hand(&mut self) -> bool {
            self.is_ready
        }

        fn is_ready(&mut self) -> bool {
            self.is_ready
        }
    }

    fn split_lines(text: &str, is_ready: bool) -> Vec<String> {
        let lines = text.lines().map(str::to_owned).collect();
        let mut inputs = Inputs::new(Text { lines, is_ready });
        std::iter::from_fn(|| inputs.next_input().expect("memory cannot fail")).collect()
    }

    #[test]
    fn each_complete_input_stands_alone() {
        assert_eq!(
            split_lines("1 + 2\n\nx := [\n  3\n]\n:bindings\n\"a\nb\"", true),
            ["1 + 2", "x := [\n  3\n]", ":bindings", "\"a\nb\""]
        );
    }

    #[test]
    fn a_class_takes_all_its_members() {
        let class = "Actor subclass: Lamp\n  state: on = false\n\n  toggle => self.on := self.on not\n\n  isOn =>\n    self.on";
        assert_eq!(
            split_lines(&format!("{class}\n\nLamp spawn isOn\n"), true),
            [class, "Lamp spawn isOn"]
        );
    }

    #[test]
    fn nobody_waits_for_members_that_may_not_come() {
        assert_eq!(
            split_lines("Object subclass: A\n  one => 1\n  two => 2", false),
            ["Object subclass: A\n  one => 1", "  two => 2"]
        );
    }

    #[test]
    fn an_indented_line_goes_on_and_a_line_at_column_0_begins() {
        assert_eq!(
            split_lines("x := List new\n  add: 1\n3\n\n  4\n  5", true),
            ["x := List new\n  add: 1", "3", "  4", "  5"]
        );
        assert_eq!(
            split_lines(
                "/// A lamp.\nObject subclass: A\n  one => 1\nA new one\n// bye",
                true
            ),
            ["/// A lamp.\nObject subclass: A\n  one => 1", "A new one"]
        );
    }

    #[test]
    fn a_typed_class_ends_with_a_blank_line_and_a_pasted_one_does_not() {
        let class = "Object subclass: A\n  one => 1";
        let begun = |text: &str, origin| split(text, origin);
        assert_eq!(begun(class, Origin::Typed), (vec![], Some(class.to_owned())));
        assert_eq!(begun(class, Origin::Pasted), (vec![class.to_owned()], None));
        let ended = (vec![class.to_owned()], None);
        assert_eq!(begun(&format!("{class}\n"), Origin::Typed), ended);
        assert_eq!(begun(&format!("{class}\n  "), Origin::Typed), ended);
        assert_eq!(
            begun(&format!("{class}\nA new"), Origin::Typed),
            (vec![class.to_owned(), "A new".to_owned()], None)
        );
        assert_eq!(
            begun(&format!("{class}\nObject subclass: B"), Origin::Typed),
            (vec![class.to_owned()], Some("Object subclass: B".to_owned()))
        );
        assert_eq!(begun("1 + 2", Origin::Typed), (vec!["1 + 2".to_owned()], None));
        assert_eq!(
            begun("x := [", Origin::Pasted),
            (vec![], Some("x := [".to_owned()))
        );
        assert_eq!(begun("// only a word", Origin::Typed), (vec![], None));
        assert_eq!(
            begun("/// Of a class.", Origin::Typed).1.as_deref(),
            Some("/// Of a class.")
        );
        assert_eq!(
            begun(":load [", Origin::Typed),
            (vec![":load [".to_owned()], None)
        );
    }

    #[test]
    fn the_next_line_is_indented_as_the_code_wants() {
        let next = |text: &str| {
            let lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
            next_indentation(&lines)
        };
        assert_eq!(next("Object subclass: A"), 2);
        assert_eq!(next("Object subclass: A\n  state: x = 0"), 2);
        assert_eq!(next("Object subclass: A\n  go =>"), 4);
        assert_eq!(next("Object subclass: A\n  go =>\n    x ifTrue: ["), 6);
        assert_eq!(next("Object subclass: A\n  go =>\n    x"), 4);
        assert_eq!(next("#(1,"), 2);
        assert_eq!(next("1 +"), 2);
        assert_eq!(next("#(1,\n  2,"), 2);
        assert_eq!(next("1 + 2"), 0);
        assert_eq!(next(""), 0);
        assert_eq!(next("x := \"a"), 0);
        assert_eq!(next("Object subclass: A\n  go => \"a ["), 0);
        assert_eq!(next("Object subclass: A\n  go => \"a\nb\n  c"), 0);
        assert_eq!(next("Object subclass: A\n  go => \"a\nb\" size"), 2);
    }

    #[test]
    fn what_is_left_open_is_still_an_input() {
        assert_eq!(split_lines("x := [1", true), ["x := [1"]);
        assert_eq!(split_lines("\n  \n", true), Vec::<String>::new());
    }
}
