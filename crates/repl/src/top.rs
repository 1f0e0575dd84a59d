//! `:top`: the actors that do most, as a table that is drawn anew every second.
//!
//! The table is pure; the shell around it takes the terminal, reads keys and gives it back however it ends.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use beamtalk_wire::answers::{TopActor, TopActorsAnswer};
use beamtalk_wire::requests::{TopActors, TopOrder};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::answers::status::size;
use crate::answers::{count, grouped};
use crate::paint::Palette;

/// Between two tables. A workspace that needs long for one is asked less often.
const PAUSE: Duration = Duration::from_secs(1);
/// Lines of the screen that are no actors.
const HEAD: u16 = 3;

/// What a key does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Press {
    Leave,
    Sort(TopOrder),
    Nothing,
}

pub(crate) fn press(key: u8) -> Press {
    match key {
        // Escape, Ctrl-C and Ctrl-D mean what `q` does.
        b'q' | b'Q' | 0x1b | 3 | 4 => Press::Leave,
        b'l' => Press::Sort(TopOrder::Queue),
        b'm' => Press::Sort(TopOrder::Memory),
        b'r' => Press::Sort(TopOrder::Reductions),
        b'c' => Press::Sort(TopOrder::Class),
        b'n' => Press::Sort(TopOrder::Name),
        _ => Press::Nothing,
    }
}

/// What is asked for a screen of so many rows.
pub(crate) fn request(order: TopOrder, rows: u16) -> TopActors {
    TopActors {
        sort: Some(order),
        limit: Some(u64::from(rows.saturating_sub(HEAD).max(1))),
    }
}

/// The table: a line about all, the head, the actors. Every line fits the width.
pub(crate) fn table(
    answer: &TopActorsAnswer,
    order: TopOrder,
    columns: usize,
    palette: Palette,
) -> Vec<String> {
    let classes: Vec<String> = answer
        .classes
        .iter()
        .map(|found| format!("{} {}", found.class, grouped(found.count)))
        .collect();
    let summary = match answer.total {
        0 => "No actors".to_owned(),
        total => format!("{}: {}", count(total, "actor"), classes.join(", ")),
    };
    let by = match order {
        TopOrder::Queue => "queue length",
        TopOrder::Memory => "memory",
        TopOrder::Reductions => "reductions",
        TopOrder::Class => "class",
        TopOrder::Name => "name",
    };
    let keys = format!("by {by}; l queue, m memory, r reductions, c class, n name, q leaves");
    let mut lines = vec![fitted(&summary, columns), palette.aside(&fitted(&keys, columns))];
    // What is left after the numbers is shared by the three names.
    let numbers = 12 + 8 + 9 + 14;
    let names = columns.saturating_sub(numbers + 3).max(24);
    let (class, name) = (names * 2 / 5, names * 3 / 10);
    let message = names - class - name;
    let row = |parts: [&str; 7]| {
        let [pid, class_name, actor_name, queue, memory, reductions, current] = parts;
        let line = format!(
            "{} {} {} {} {} {} {}",
            padded(pid, 11),
            padded(class_name, class),
            padded(actor_name, name),
            right(queue, 7),
            right(memory, 8),
            right(reductions, 13),
            fitted(current, message)
        );
        fitted(line.trim_end(), columns)
    };
    lines.push(row([
        "PID",
        "CLASS",
        "NAME",
        "QUEUE",
        "MEMORY",
        "REDUCTIONS",
        "MESSAGE",
    ]));
    for actor in &answer.actors {
        let TopActor {
            pid,
            class,
            name,
            queue_len,
            memory,
            reductions,
            message,
        } = actor;
        lines.push(row([
            pid,
            class,
            name.as_deref().unwrap_or_default(),
            &grouped(*queue_len),
            &size(*memory),
            &grouped(*reductions),
            message.as_deref().unwrap_or("-"),
        ]));
    }
    lines
}

/// Cut to a width, with an ellipsis. What could steer the terminal is left out.
pub(crate) fn fitted(text: &str, columns: usize) -> String {
    let text: String = text.chars().filter(|letter| !letter.is_control()).collect();
    if text.width() <= columns {
        return text;
    }
    let mut shown = String::new();
    let mut width = 0;
    for letter in text.chars() {
        width += letter.width().unwrap_or(0);
        if width >= columns {
            break;
        }
        shown.push(letter);
    }
    shown.push('…');
    shown
}

fn padded(text: &str, columns: usize) -> String {
    let text = fitted(text, columns);
    let blanks = columns.saturating_sub(text.width());
    format!("{text}{}", " ".repeat(blanks))
}

fn right(text: &str, columns: usize) -> String {
    format!("{}{text}", " ".repeat(columns.saturating_sub(text.width())))
}

/// The terminal while the view has it: another screen, keys one by one and unseen. Given back when it is dropped.
pub(crate) struct Taken {
    before: Termios,
}

impl Taken {
    pub(crate) fn take() -> io::Result<Self> {
        let before = tcgetattr(rustix::stdio::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &raw)?;
        let taken = Self { before };
        write("\x1b[?1049h\x1b[?25l")?;
        Ok(taken)
    }
}

pub(crate) fn draw(lines: &[String], rows: u16) -> io::Result<()> {
    let mut text = String::from("\x1b[H");
    for (number, line) in lines.iter().take(usize::from(rows)).enumerate() {
        if number > 0 {
            text.push_str("\r\n");
        }
        text.push_str(line);
        text.push_str("\x1b[K");
    }
    text.push_str("\x1b[J");
    write(&text)
}

/// The next key; `None` when there is none for a while.
pub(crate) fn key(took: Duration) -> io::Result<Option<u8>> {
    let until = Instant::now() + PAUSE.max(took * 4);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        let wait = rustix::time::Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(1),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        let stdin = rustix::stdio::stdin();
        let mut watched = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut watched, Some(&wait)) {
            Ok(0) => return Ok(None),
            // A new size of the window: the table is drawn at once.
            Err(rustix::io::Errno::INTR) => return Ok(None),
            Err(error) => return Err(error.into()),
            Ok(_) => {}
        }
        let mut bytes = [0; 16];
        return match rustix::io::read(stdin, &mut bytes) {
            // The terminal is gone.
            Ok(0) => Ok(Some(b'q')),
            // A key that sends more than one byte is none of ours.
            Ok(1) => Ok(bytes.first().copied()),
            Ok(_) => Ok(Some(0)),
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => Err(error.into()),
        };
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        drop(write("\x1b[?25h\x1b[?1049l"));
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Drain, &self.before);
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::test_answers::answer;
    use super::*;

    fn busy() -> TopActorsAnswer {
        answer(
            json!({"total": 100_002, "classes": [{"class": "Lamp", "count": 100_000}, {"class": "Kettle", "count": 2}],
            "actors": [
                {"pid": "0.187.0", "class": "Lamp", "name": null, "queue_len": 12_345, "memory": 2_621_440,
                 "reductions": 1_234_567_890u64, "message": "toggle"},
                {"pid": "0.99999.12", "class": "AVeryLongClassNameThatGoesOnAndOnForEver", "name": "boiler",
                 "queue_len": 0, "memory": 2688, "reductions": 42, "message": null},
                {"pid": "0.9.0", "class": "Kettle", "name": "evil\u{1b}[2J", "queue_len": 0, "memory": 2688,
                 "reductions": 42, "message": "at:put:withAVeryLongKeyword:andOneMore:"}]}),
        )
    }

    #[test]
    fn the_table_fits_every_width() {
        for columns in [80, 120] {
            let lines = table(&busy(), TopOrder::Memory, columns, Palette::Plain);
            for line in &lines {
                assert!(line.width() <= columns, "{columns}: {line:?}");
            }
            insta::assert_snapshot!(format!("top_on_{columns}_columns"), lines.join("\n"));
        }
        let painted = table(&busy(), TopOrder::Queue, 80, Palette::Colored).join("\n");
        insta::assert_snapshot!("top_in_colour", painted);
        for columns in [0, 1, 10, 40] {
            table(&busy(), TopOrder::Name, columns, Palette::Plain);
        }
    }

    #[test]
    fn keys_sort_and_leave() {
        assert_eq!(press(b'q'), Press::Leave);
        assert_eq!(press(3), Press::Leave);
        assert_eq!(press(b'm'), Press::Sort(TopOrder::Memory));
        assert_eq!(press(b'x'), Press::Nothing);
        assert_eq!(request(TopOrder::Queue, 50).limit, Some(47));
        assert_eq!(request(TopOrder::Queue, 0).limit, Some(1));
    }
}
