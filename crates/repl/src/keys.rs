//! Keys of the editor that lead out of the line they are pressed in.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustyline::history::History;
use rustyline::{
    Cmd, ConditionalEventHandler, Editor, Event, EventContext, EventHandler, Helper, KeyCode, KeyEvent,
    Modifiers, RepeatCount,
};

use crate::pending::Key;

/// What the keys know of the input, and what they tell.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    /// Code is typed, not an answer.
    pub(crate) is_active: bool,
    pub(crate) is_first: bool,
    pub(crate) is_last: bool,
    /// Earlier inputs are searched; what is found is not pasted.
    is_searching: bool,
    pressed: Option<(Key, usize)>,
    pasted: Option<(String, usize)>,
    /// Blanks the line began with, as long as nothing was typed.
    indented: usize,
    /// The line as it was last drawn, and the place of the cursor.
    seen: (String, usize),
}

impl Keys {
    /// The next line is read.
    pub(crate) fn reset(&mut self, is_first: bool, is_last: bool, line: (&str, usize)) {
        *self = Self {
            is_active: true,
            is_first,
            is_last,
            seen: (line.0.to_owned(), line.1),
            // Steps of indentation are of two blanks; a single one was typed.
            indented: if line.0.trim().is_empty() && line.0.len().is_multiple_of(2) {
                line.0.len()
            } else {
                0
            },
            ..Self::default()
        };
    }

    /// The key that ended the line, with the place of the cursor.
    pub(crate) fn take_pressed(&mut self) -> Option<(Key, usize)> {
        self.pressed.take()
    }

    /// What was pasted, if that is why the editor came back.
    pub(crate) fn take_pasted(&mut self) -> Option<(String, usize)> {
        self.pasted.take()
    }

    /// Whether the editor is about to come back with several lines.
    pub(crate) fn is_pasted(&self) -> bool {
        self.pasted.is_some()
    }

    /// The line as far as it was typed.
    pub(crate) fn seen(&self) -> (String, usize) {
        self.seen.clone()
    }

    /// Look at a line while it is edited; true if it holds several lines that have to be told apart.
    pub(crate) fn look_at(&mut self, line: &str, position: usize) -> bool {
        if self.is_active && !self.is_searching {
            self.seen = (line.to_owned(), position);
        }
        if !self.is_active || self.is_searching || self.pasted.is_some() || !line.contains('\n') {
            return false;
        }
        self.pasted = Some((line.to_owned(), position));
        true
    }

    /// Whoever types the blanks before a line means these and not those that were there.
    fn press_blank(&mut self, line: &str, position: usize) -> Option<Cmd> {
        let indented = std::mem::take(&mut self.indented);
        let is_untouched = self.is_active && indented > 0 && line.len() == indented && line.trim().is_empty();
        if !is_untouched {
            return None;
        }
        self.pressed = Some((Key::Blank, position));
        Some(Cmd::AcceptLine)
    }

    /// Before a line there is nothing to complete.
    fn press_tab(&mut self, line: &str, position: usize) -> Option<Cmd> {
        self.indented = 0;
        let is_before = line
            .get(..position)
            .is_some_and(|before| before.trim().is_empty());
        (self.is_active && !self.is_first && is_before).then(|| Cmd::Insert(1, "  ".to_owned()))
    }

    fn press(&mut self, key: Key, line: &str, position: usize) -> Option<Cmd> {
        let before = line.get(..position).unwrap_or_default();
        if key == Key::Backspace && self.is_active && !self.is_first && is_blank(before) {
            self.pressed = Some((Key::Outdent, position));
            return Some(Cmd::AcceptLine);
        }
        let is_out = match key {
            Key::Left | Key::Backspace => position == 0 && !self.is_first,
            Key::Right | Key::Delete => position == line.len() && !self.is_last,
            _ => true,
        };
        if !self.is_active || !is_out {
            return None;
        }
        self.pressed = Some((key, position));
        Some(Cmd::AcceptLine)
    }
}

fn is_blank(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte == b' ')
}

pub(crate) type Shared = Arc<Mutex<Keys>>;

pub(crate) fn lock(keys: &Shared) -> MutexGuard<'_, Keys> {
    keys.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is made of a key.
#[derive(Clone, Copy)]
enum Bound {
    Key(Key),
    Search,
    Blank,
    Tab,
}

struct Handler {
    keys: Shared,
    bound: Bound,
}

impl ConditionalEventHandler for Handler {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, context: &EventContext) -> Option<Cmd> {
        let mut keys = lock(&self.keys);
        match self.bound {
            Bound::Key(key) => keys.press(key, context.line(), context.pos()),
            Bound::Search => {
                keys.is_searching = true;
                None
            }
            Bound::Blank => keys.press_blank(context.line(), context.pos()),
            Bound::Tab => keys.press_tab(context.line(), context.pos()),
        }
    }
}

/// Have the editor tell of these keys.
pub(crate) fn bind<H: Helper, I: History>(editor: &mut Editor<H, I>, keys: &Shared) {
    let plain = |code| KeyEvent(code, Modifiers::NONE);
    let bindings = [
        (plain(KeyCode::Enter), Bound::Key(Key::Enter)),
        (KeyEvent(KeyCode::Enter, Modifiers::ALT), Bound::Key(Key::Newline)),
        (plain(KeyCode::Up), Bound::Key(Key::Up)),
        (plain(KeyCode::Down), Bound::Key(Key::Down)),
        (plain(KeyCode::Left), Bound::Key(Key::Left)),
        (KeyEvent::ctrl('B'), Bound::Key(Key::Left)),
        (plain(KeyCode::Right), Bound::Key(Key::Right)),
        (KeyEvent::ctrl('F'), Bound::Key(Key::Right)),
        (plain(KeyCode::Backspace), Bound::Key(Key::Backspace)),
        (KeyEvent::ctrl('H'), Bound::Key(Key::Backspace)),
        (plain(KeyCode::Delete), Bound::Key(Key::Delete)),
        (KeyEvent::ctrl('P'), Bound::Key(Key::Earlier)),
        (KeyEvent::ctrl('N'), Bound::Key(Key::Later)),
        (KeyEvent::ctrl('R'), Bound::Search),
        (KeyEvent::ctrl('S'), Bound::Search),
        (plain(KeyCode::Char(' ')), Bound::Blank),
        (plain(KeyCode::Tab), Bound::Tab),
    ];
    for (event, bound) in bindings {
        let handler = Handler {
            keys: keys.clone(),
            bound,
        };
        editor.bind_sequence(event, EventHandler::Conditional(Box::new(handler)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_keys_at_an_edge_lead_out_of_a_line() {
        let mut keys = Keys::default();
        assert_eq!(keys.press(Key::Enter, "x", 1), None, "an answer is typed");
        keys.reset(true, false, ("", 0));
        assert_eq!(keys.press(Key::Left, "x", 0), None, "there is no line before");
        assert_eq!(keys.press(Key::Right, "x", 0), None, "there is more in the line");
        assert_eq!(keys.press(Key::Right, "x", 1), Some(Cmd::AcceptLine));
        assert_eq!(keys.take_pressed(), Some((Key::Right, 1)));
        assert_eq!(keys.take_pressed(), None);
    }

    #[test]
    fn blanks_before_a_line_are_those_that_are_typed() {
        let mut keys = Keys::default();
        keys.reset(false, true, ("    ", 4));
        assert_eq!(keys.press(Key::Backspace, "    ", 4), Some(Cmd::AcceptLine));
        assert_eq!(keys.take_pressed(), Some((Key::Outdent, 4)));
        assert_eq!(keys.press(Key::Backspace, "  x", 3), None);
        assert_eq!(keys.press_blank("    ", 4), Some(Cmd::AcceptLine));
        assert_eq!(keys.take_pressed(), Some((Key::Blank, 4)));
        assert_eq!(keys.press_blank(" ", 1), None, "only the first");
        keys.reset(false, true, ("  ", 2));
        assert_eq!(keys.press_blank("  x", 3), None);
        assert_eq!(keys.press_tab("  ", 2), Some(Cmd::Insert(1, "  ".to_owned())));
        assert_eq!(keys.press_tab("  x", 3), None);
    }

    #[test]
    fn several_lines_are_noticed_unless_they_are_searched() {
        let mut keys = Keys::default();
        keys.reset(true, true, ("", 0));
        assert!(!keys.look_at("x", 1));
        assert_eq!(keys.seen(), ("x".to_owned(), 1));
        assert!(keys.look_at("x\ny", 3));
        assert!(!keys.look_at("x\ny", 3), "once");
        assert_eq!(keys.take_pasted(), Some(("x\ny".to_owned(), 3)));
        keys.is_searching = true;
        assert!(!keys.look_at("x\ny", 3));
    }
}
