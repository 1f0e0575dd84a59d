//! An input while it is typed: its lines, which one is being edited, and what a key does to them.
//!
//! Pure: the editor edits one line at a time, and every key that concerns more than that line comes here.

use crate::input::{self, Origin};

/// A key that concerns more than the line it is pressed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Enter,
    /// A new line, even if the input is complete.
    Newline,
    Up,
    Down,
    /// Left of the first character.
    Left,
    /// Right of the last character.
    Right,
    /// Before the first character.
    Backspace,
    /// After the last character.
    Delete,
    Earlier,
    Later,
    /// A blank in the place of those that were there.
    Blank,
    /// One step of indentation less.
    Outdent,
    /// Not a key: several lines came at once.
    Paste,
}

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Edit the current line with the cursor before this byte.
    Edit(usize),
    Submit,
    /// Put an earlier, or a later, input in the place of this one.
    Earlier,
    Later,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pending {
    lines: Vec<String>,
    at: usize,
    origin: Origin,
}

impl Pending {
    /// An input with the cursor at its end.
    pub(crate) fn new(text: &str) -> Self {
        let lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
        Self {
            at: lines.len() - 1,
            // What is there already was not typed here; an empty input will be.
            origin: if text.is_empty() {
                Origin::Typed
            } else {
                Origin::Pasted
            },
            lines,
        }
    }

    /// An input that is begun and goes on being typed.
    pub(crate) fn begun(text: &str) -> Self {
        let mut pending = Self::new(text);
        pending.origin = Origin::Typed;
        pending.open_line();
        pending
    }

    /// The complete inputs in it, and what is begun at its end.
    pub(crate) fn split(&self) -> (Vec<String>, Option<String>) {
        input::split(&self.text(), self.origin)
    }

    /// An empty line after the last one, indented.
    fn open_line(&mut self) -> Step {
        let blanks = input::next_indentation(&self.lines);
        self.lines.push(" ".repeat(blanks));
        self.at = self.lines.len() - 1;
        Step::Edit(blanks)
    }

    pub(crate) fn text(&self) -> String {
        self.lines.join("\n")
    }

    /// The number of the line that is edited.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn lines(&self) -> &[String] {
        &self.lines
    }

    pub(crate) fn line(&self) -> &str {
        self.lines.get(self.at).map_or("", String::as_str)
    }

    pub(crate) fn before(&self) -> &[String] {
        self.lines.get(..self.at).unwrap_or_default()
    }

    pub(crate) fn after(&self) -> &[String] {
        self.lines.get(self.at + 1..).unwrap_or_default()
    }

    fn is_last(&self) -> bool {
        self.after().is_empty()
    }

    /// The edited line is now `text`, and a key was pressed with the cursor before the byte `position`. A text of
    /// several lines, which was pasted or found, takes the place of the one line.
    pub(crate) fn press(&mut self, key: Key, text: &str, position: usize) -> Step {
        let position = floor(text, position);
        let mut column = position;
        let pieces: Vec<String> = text.split('\n').map(str::to_owned).collect();
        let piece = text.get(..position).unwrap_or_default().matches('\n').count();
        if let Some(start) = text.get(..position).and_then(|before| before.rfind('\n')) {
            column = position - start - 1;
        }
        if pieces.len() > 1 {
            self.origin = Origin::Pasted;
        }
        self.lines.splice(self.at..=self.at, pieces);
        self.at += piece;
        match key {
            Key::Paste => Step::Edit(column),
            Key::Enter if self.has_input() => Step::Submit,
            Key::Enter | Key::Newline if self.is_last() && column == self.line().len() => {
                // Blanks that nobody typed anything after are none, unless they are part of a string.
                let is_text = beamtalk_syntax::is_text_open(&self.before().join("\n"));
                let line = self.lines.get_mut(self.at).filter(|line| line.trim().is_empty());
                if let Some(line) = line.filter(|_| !is_text) {
                    line.clear();
                }
                self.open_line()
            }
            Key::Enter | Key::Newline => {
                let rest = self.lines.get_mut(self.at).map(|line| line.split_off(column));
                self.at += 1;
                self.lines.insert(self.at, rest.unwrap_or_default());
                Step::Edit(0)
            }
            Key::Up if self.at == 0 => Step::Earlier,
            Key::Down if self.is_last() => Step::Later,
            Key::Earlier => Step::Earlier,
            Key::Later => Step::Later,
            Key::Up => self.go(self.at - 1, column),
            Key::Down => self.go(self.at + 1, column),
            Key::Left if self.at > 0 => {
                self.at -= 1;
                Step::Edit(self.line().len())
            }
            Key::Right if !self.is_last() => {
                self.at += 1;
                Step::Edit(0)
            }
            Key::Backspace if self.at > 0 => {
                self.at -= 1;
                self.join()
            }
            Key::Delete if !self.is_last() => self.join(),
            Key::Blank => self.reindent(column, 1),
            Key::Outdent => self.reindent(column, column.saturating_sub(1) / 2 * 2),
            Key::Left | Key::Right | Key::Backspace | Key::Delete => Step::Edit(column),
        }
    }

    /// Whether Enter has something to evaluate, or nothing to wait for.
    fn has_input(&self) -> bool {
        let (inputs, begun) = self.split();
        !inputs.is_empty() || begun.is_none()
    }

    /// So many blanks in the place of what stands before the column, which is nothing else.
    fn reindent(&mut self, column: usize, blanks: usize) -> Step {
        if let Some(line) = self.lines.get_mut(self.at) {
            *line = format!("{}{}", " ".repeat(blanks), line.get(column..).unwrap_or_default());
        }
        Step::Edit(blanks)
    }

    /// To another line, as many characters from its start.
    fn go(&mut self, line: usize, column: usize) -> Step {
        let characters = self.line().get(..column).unwrap_or_default().chars().count();
        self.at = line;
        let mut places = self.line().char_indices().map(|(place, _)| place);
        Step::Edit(places.nth(characters).unwrap_or(self.line().len()))
    }

    /// Append the next line to the edited one.
    fn join(&mut self) -> Step {
        let end = self.line().len();
        let next = self.lines.remove(self.at + 1);
        if let Some(line) = self.lines.get_mut(self.at) {
            line.push_str(&next);
        }
        Step::Edit(end)
    }
}

/// The last place up to this one where a character begins.
fn floor(text: &str, position: usize) -> usize {
    (0..=position.min(text.len()))
        .rev()
        .find(|place| text.is_char_boundary(*place))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(pending: &mut Pending, key: Key, text: &str, position: usize) -> Step {
        pending.press(key, text, position)
    }

    #[test]
    fn enter_adds_lines_until_the_input_is_complete() {
        let mut pending = Pending::new("");
        assert_eq!(press(&mut pending, Key::Enter, "x := [", 6), Step::Edit(2));
        assert_eq!(
            (pending.at(), pending.before(), pending.line()),
            (1, &["x := [".to_owned()][..], "  ")
        );
        let mut pending = Pending::new("1 +");
        assert_eq!(press(&mut pending, Key::Enter, "1 + 2", 0), Step::Submit);
        assert_eq!(pending.text(), "1 + 2");
    }

    #[test]
    fn a_class_is_typed_until_a_blank_line_or_one_at_column_0() {
        let mut pending = Pending::new("");
        let header = "Object subclass: A";
        assert_eq!(
            press(&mut pending, Key::Enter, header, header.len()),
            Step::Edit(2)
        );
        assert_eq!(press(&mut pending, Key::Enter, "  one =>", 8), Step::Edit(4));
        assert_eq!(press(&mut pending, Key::Enter, "    1", 5), Step::Edit(4));
        assert_eq!(press(&mut pending, Key::Enter, "  two => 2", 10), Step::Edit(2));
        let mut stepped = pending.clone();
        assert_eq!(press(&mut stepped, Key::Outdent, "    x", 4), Step::Edit(2));
        assert_eq!(stepped.line(), "  x");
        assert_eq!(press(&mut stepped, Key::Outdent, "   ", 3), Step::Edit(2));
        assert_eq!(press(&mut stepped, Key::Blank, "  ", 2), Step::Edit(1));
        assert_eq!(stepped.line(), " ");
        let mut blank = pending.clone();
        assert_eq!(press(&mut blank, Key::Enter, "  ", 2), Step::Submit);
        let class = "Object subclass: A\n  one =>\n    1\n  two => 2";
        assert_eq!(blank.split(), (vec![class.to_owned()], None));
        assert_eq!(
            press(&mut pending, Key::Enter, "Object subclass: B", 18),
            Step::Submit
        );
        let (inputs, begun) = pending.split();
        assert_eq!(inputs, [class]);
        let next = Pending::begun(&begun.expect("the next class"));
        assert_eq!((next.text().as_str(), next.at()), ("Object subclass: B\n  ", 1));
    }

    #[test]
    fn blanks_of_a_string_are_those_that_were_typed() {
        let mut pending = Pending::new("");
        assert_eq!(press(&mut pending, Key::Enter, "x := #(\"a", 9), Step::Edit(0));
        assert_eq!(press(&mut pending, Key::Enter, "  ", 2), Step::Edit(0));
        assert_eq!(press(&mut pending, Key::Enter, "b\",", 3), Step::Edit(0));
        assert_eq!(pending.text(), "x := #(\"a\n  \nb\",\n");
    }

    #[test]
    fn earlier_lines_are_edited_split_and_joined() {
        let mut pending = Pending::new("x := [\n  1\n  22");
        assert_eq!(press(&mut pending, Key::Up, "  22", 4), Step::Edit(3));
        assert_eq!(pending.line(), "  1");
        assert_eq!(press(&mut pending, Key::Newline, "  17", 3), Step::Edit(0));
        assert_eq!(pending.text(), "x := [\n  1\n7\n  22");
        assert_eq!(press(&mut pending, Key::Backspace, "7", 0), Step::Edit(3));
        assert_eq!(pending.text(), "x := [\n  17\n  22");
        assert_eq!(press(&mut pending, Key::Delete, "  17", 4), Step::Edit(4));
        assert_eq!(pending.text(), "x := [\n  17  22");
        assert_eq!(press(&mut pending, Key::Left, "  17", 0), Step::Edit(6));
        assert_eq!(press(&mut pending, Key::Right, "x := [", 6), Step::Edit(0));
        assert_eq!(pending.at(), 1);
        assert_eq!(press(&mut pending, Key::Down, "  17", 0), Step::Later);
        assert_eq!(press(&mut pending, Key::Up, "  17", 0), Step::Edit(0));
        assert_eq!(press(&mut pending, Key::Up, "x := [", 0), Step::Earlier);
    }

    #[test]
    fn an_input_completed_in_the_middle_is_whole() {
        let mut pending = Pending::new("[\n1\n2");
        pending.at = 0;
        assert_eq!(press(&mut pending, Key::Enter, "0", 0), Step::Submit);
        assert_eq!(pending.text(), "0\n1\n2");
    }

    #[test]
    fn pasted_lines_become_lines() {
        let mut pending = Pending::new("a\nb");
        assert_eq!(press(&mut pending, Key::Paste, "b1\nä2\nc", 5), Step::Edit(2));
        assert_eq!((pending.at(), pending.text().as_str()), (2, "a\nb1\nä2\nc"));
        assert_eq!(press(&mut pending, Key::Up, "ä2", 3), Step::Edit(2));
        assert_eq!(floor("ä", 1), 0);
    }
}
