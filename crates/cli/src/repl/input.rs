//! Inputs out of a stream that is no terminal: one complete input at a time.

use std::collections::VecDeque;
use std::io::{self, BufRead};

/// Where lines come from, and whether the next one is there already.
pub(crate) trait Lines {
    /// The next line without its end; `None` when there are no more.
    fn next_line(&mut self) -> io::Result<Option<String>>;

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
                if line.trim_start().starts_with(':') {
                    return Ok(Some(line));
                }
            } else {
                input.push('\n');
            }
            input.push_str(&line);
            if !beamtalk_syntax::is_incomplete(&input) {
                self.add_members(&mut input)?;
                return Ok(Some(input));
            }
        }
        Ok((!input.trim().is_empty()).then_some(input))
    }

    /// Indented lines after a class are further members of it. A terminal cannot know whether more will come; a file
    /// can. Where the next line is not there yet the class is taken as complete, so that nobody waits for ever.
    fn add_members(&mut self, input: &mut String) -> io::Result<()> {
        if !beamtalk_syntax::ends_in_definition(input) {
            return Ok(());
        }
        loop {
            let mut blank = 0;
            let next = loop {
                while self.ahead.len() <= blank {
                    if !self.lines.is_ready() {
                        return Ok(());
                    }
                    match self.lines.next_line()? {
                        Some(line) => self.ahead.push_back(line),
                        None => return Ok(()),
                    }
                }
                match self.ahead.get(blank) {
                    Some(line) if line.trim().is_empty() => blank += 1,
                    other => break other,
                }
            };
            if !next.is_some_and(|line| line.starts_with([' ', '\t'])) {
                return Ok(());
            }
            for line in self.ahead.drain(..=blank) {
                input.push('\n');
                input.push_str(&line);
            }
            while beamtalk_syntax::is_incomplete(input) {
                let Some(line) = self.next_line()? else {
                    return Ok(());
                };
                input.push('\n');
                input.push_str(&line);
            }
        }
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
    tv_nsec: 50_000_000,
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

        fn is_ready(&mut self) -> bool {
            self.is_ready
        }
    }

    fn split(text: &str, is_ready: bool) -> Vec<String> {
        let lines = text.lines().map(str::to_owned).collect();
        let mut inputs = Inputs::new(Text { lines, is_ready });
        std::iter::from_fn(|| inputs.next_input().expect("memory cannot fail")).collect()
    }

    #[test]
    fn each_complete_input_stands_alone() {
        assert_eq!(
            split("1 + 2\n\nx := [\n  3\n]\n:bindings\n\"a\nb\"", true),
            ["1 + 2", "x := [\n  3\n]", ":bindings", "\"a\nb\""]
        );
    }

    #[test]
    fn a_class_takes_all_its_members() {
        let class = "Actor subclass: Lamp\n  state: on = false\n\n  toggle => self.on := self.on not\n\n  isOn =>\n    self.on";
        assert_eq!(
            split(&format!("{class}\n\nLamp spawn isOn\n"), true),
            [class, "Lamp spawn isOn"]
        );
    }

    #[test]
    fn nobody_waits_for_members_that_may_not_come() {
        assert_eq!(
            split("Object subclass: A\n  one => 1\n  two => 2", false),
            ["Object subclass: A\n  one => 1", "  two => 2"]
        );
    }

    #[test]
    fn what_is_left_open_is_still_an_input() {
        assert_eq!(split("x := [1", true), ["x := [1"]);
        assert_eq!(split("\n  \n", true), Vec::<String>::new());
    }
}
