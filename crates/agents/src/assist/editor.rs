//! A text being written, with a cursor.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Editor {
    pub(super) text: String,
    /// In bytes, always between two characters.
    pub(super) cursor: usize,
}

impl Editor {
    /// The cursor stands at the end.
    pub(super) fn new(text: &str) -> Self {
        Editor {
            text: text.to_owned(),
            cursor: text.len(),
        }
    }

    pub(super) fn insert(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    fn before(&self) -> &str {
        self.text.get(..self.cursor).unwrap_or_default()
    }

    fn after(&self) -> &str {
        self.text.get(self.cursor..).unwrap_or_default()
    }

    fn line_start(&self) -> usize {
        self.before().rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.after()
            .find('\n')
            .map_or(self.text.len(), |at| self.cursor + at)
    }

    /// Where the character before the cursor begins.
    fn previous(&self) -> usize {
        self.before().char_indices().next_back().map_or(0, |(at, _)| at)
    }

    fn next(&self) -> usize {
        self.after()
            .chars()
            .next()
            .map_or(self.text.len(), |letter| self.cursor + letter.len_utf8())
    }

    /// The same column in the line that begins at `start`.
    fn column_in(&self, start: usize) -> usize {
        let column = self
            .before()
            .get(self.line_start()..)
            .unwrap_or_default()
            .chars()
            .count();
        let line = self.text.get(start..).unwrap_or_default();
        let line = line.split('\n').next().unwrap_or_default();
        start + line.chars().take(column).map(char::len_utf8).sum::<usize>()
    }

    /// What a key does to the text; keys that mean nothing here do nothing.
    pub(super) fn press(&mut self, key: KeyEvent) {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('a') if control => self.cursor = self.line_start(),
            KeyCode::Char('e') if control => self.cursor = self.line_end(),
            KeyCode::Char('u') if control => {
                let start = self.line_start();
                self.text.replace_range(start..self.cursor, "");
                self.cursor = start;
            }
            KeyCode::Char(letter) if !control => self.insert(letter.encode_utf8(&mut [0; 4])),
            KeyCode::Tab => self.insert("\t"),
            KeyCode::Backspace => {
                let start = self.previous();
                self.text.replace_range(start..self.cursor, "");
                self.cursor = start;
            }
            KeyCode::Delete => {
                let end = self.next();
                self.text.replace_range(self.cursor..end, "");
            }
            KeyCode::Left => self.cursor = self.previous(),
            KeyCode::Right => self.cursor = self.next(),
            KeyCode::Home => self.cursor = self.line_start(),
            KeyCode::End => self.cursor = self.line_end(),
            KeyCode::Up => {
                if let Some(above) = self.line_start().checked_sub(1) {
                    let start = self.text.get(..above).and_then(|text| text.rfind('\n'));
                    self.cursor = self.column_in(start.map_or(0, |at| at + 1));
                }
            }
            KeyCode::Down if self.line_end() < self.text.len() => {
                self.cursor = self.column_in(self.line_end() + 1);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    use super::Editor;

    fn after(text: &str, keys: &[KeyCode]) -> (String, usize) {
        let mut editor = Editor::new(text);
        for key in keys {
            editor.press(KeyEvent::new(*key, KeyModifiers::NONE));
        }
        (editor.text, editor.cursor)
    }

    #[test]
    fn keys_move_and_change_whole_characters() {
        use KeyCode::{Backspace, Char, Delete, Down, End, Home, Left, Right, Up};
        assert_eq!(after("añb", &[Left, Backspace]), ("ab".to_owned(), 1));
        assert_eq!(after("añb", &[Home, Right, Delete]), ("ab".to_owned(), 1));
        assert_eq!(after("añ", &[Left, Left, Left, Char('→')]), ("→añ".to_owned(), 3));
        assert_eq!(
            after("", &[Backspace, Delete, Up, Down, Home, End]),
            (String::new(), 0)
        );
        // Lines keep their column as far as they reach.
        assert_eq!(
            after("long line\nab\nmore", &[Up]),
            ("long line\nab\nmore".to_owned(), 12)
        );
        assert_eq!(after("äöü\nab", &[Up]), ("äöü\nab".to_owned(), 4));
        assert_eq!(
            after("ab\nlonger", &[Home, Up, Down, End]),
            ("ab\nlonger".to_owned(), 9)
        );
        assert_eq!(after("ab\nc", &[Home, Backspace]), ("abc".to_owned(), 2));
    }
}
