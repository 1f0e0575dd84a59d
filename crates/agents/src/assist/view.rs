//! Drawing the model.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{
    Block, Borders, Clear, List, ListState, Paragraph, Row as TableRow, Table, TableState,
};
use serde_json::Value;
use unicode_width::UnicodeWidthChar;

use super::editor::Editor;
use super::model::{Model, Pane, text_of};

const HEADINGS: [&str; 6] = ["ID", "BACKEND", "STATE", "ALIAS", "ROLE", "CWD"];
const SELECTED: Style = Style::new().add_modifier(Modifier::REVERSED);
const CURSOR: char = '▏';

pub(super) fn draw(frame: &mut Frame<'_>, model: &mut Model) {
    let [table, preview, status] = Layout::vertical([
        Constraint::Percentage(40),
        Constraint::Min(3),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    draw_table(frame, model, table);
    let block = Block::new().borders(Borders::ALL).title("screen");
    let room = block.inner(preview);
    // What happens on a terminal happens at its end.
    let lines: Vec<&str> = model.preview.trim_end().lines().collect();
    let first = lines.len().saturating_sub(usize::from(room.height));
    let shown = lines.get(first..).unwrap_or_default().join("\n");
    frame.render_widget(Paragraph::new(shown).block(block), preview);
    let connection = if model.connected { "" } else { "disconnected  " };
    let line = format!("{connection}{}  ? help  q quit", model.status);
    frame.render_widget(Line::from(line), status);
    draw_pane(frame, model);
}

fn draw_table(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    let rows: Vec<TableRow<'_>> = model
        .visible()
        .iter()
        .map(|row| TableRow::new(row.cells.clone()))
        .collect();
    let widths = [
        Constraint::Length(8),
        Constraint::Length(9),
        Constraint::Length(8),
        Constraint::Length(18),
        Constraint::Length(14),
        Constraint::Min(10),
    ];
    let title = if model.filter.is_empty() {
        "sessions".to_owned()
    } else {
        format!("sessions /{}", model.filter)
    };
    let table = Table::new(rows, widths)
        .header(TableRow::new(HEADINGS).style(Style::new().add_modifier(Modifier::BOLD)))
        .row_highlight_style(SELECTED)
        .block(Block::new().borders(Borders::ALL).title(title));
    let mut state = TableState::new().with_selected(model.selected);
    frame.render_stateful_widget(table, area, &mut state);
}

fn draw_pane(frame: &mut Frame<'_>, model: &mut Model) {
    let Some(pane) = model.panes.last_mut() else {
        return;
    };
    // Around it the table stays in sight, below it the status.
    let area = frame.area();
    let outer = Rect {
        x: area.width.min(2),
        y: area.height.min(1),
        width: area.width.saturating_sub(4),
        height: area.height.saturating_sub(3),
    };
    let title = match &*pane {
        Pane::Text { title, .. } | Pane::Choice { title, .. } => title.clone(),
        Pane::Field { label, .. } => label.clone(),
        Pane::Kill(_) => "kill".to_owned(),
        Pane::Inbox { folder, .. } => (*folder).to_owned(),
        Pane::Daemon(_) => "daemon".to_owned(),
    };
    let block = Block::new().borders(Borders::ALL).title(title);
    let inner = block.inner(outer);
    frame.render_widget(Clear, outer);
    frame.render_widget(block, outer);
    let (width, height) = (usize::from(inner.width), usize::from(inner.height));
    match pane {
        Pane::Text {
            source,
            text,
            scrolled,
            ..
        } => {
            let rows = wrap(text, width);
            let last = rows.len().saturating_sub(height);
            *scrolled = (*scrolled).min(last);
            let first = if source.is_some() {
                last - *scrolled
            } else {
                *scrolled
            };
            draw_rows(frame, inner, &rows, first);
        }
        Pane::Field { editor, .. } => {
            let rows = wrap(&with_cursor(editor), width);
            let at = rows.iter().rposition(|row| row.contains(CURSOR)).unwrap_or(0);
            draw_rows(frame, inner, &rows, (at + 1).saturating_sub(height));
        }
        Pane::Kill(id) => draw_rows(frame, inner, &[format!("kill {id}? y/n")], 0),
        Pane::Daemon(text) => draw_rows(frame, inner, &wrap(text, width), 0),
        Pane::Choice { items, selected, .. } => {
            draw_list(
                frame,
                inner,
                items.iter().map(|(_, shown)| shown.clone()),
                *selected,
            );
        }
        Pane::Inbox {
            messages, selected, ..
        } => {
            if messages.is_empty() {
                draw_rows(frame, inner, &["no messages".to_owned()], 0);
            }
            draw_list(frame, inner, messages.iter().map(message_line), *selected);
        }
    }
}

fn draw_rows(frame: &mut Frame<'_>, area: Rect, rows: &[String], first: usize) {
    let shown = rows.iter().skip(first).take(usize::from(area.height));
    let lines: Vec<Line<'_>> = shown.map(|row| Line::from(row.as_str())).collect();
    frame.render_widget(Paragraph::new(lines), area);
}

fn draw_list(frame: &mut Frame<'_>, area: Rect, items: impl Iterator<Item = String>, selected: usize) {
    let list = List::new(items).highlight_style(SELECTED);
    let mut state = ListState::default().with_selected(Some(selected));
    frame.render_stateful_widget(list, area, &mut state);
}

fn message_line(message: &Value) -> String {
    format!(
        "{}  {}  {}",
        text_of(message, "from"),
        text_of(message, "type"),
        text_of(message, "subject")
    )
}

fn with_cursor(editor: &Editor) -> String {
    let (before, after) = editor.text.split_at(editor.cursor);
    // One that was typed would be taken for the cursor.
    let plain = |text: &str| text.replace(CURSOR, "|");
    format!("{}{CURSOR}{}", plain(before), plain(after))
}

/// The rows a text takes at a width. Long lines are cut; control characters have no place on a
/// screen.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut rows = Vec::new();
    for line in text.split('\n') {
        let mut row = String::new();
        let mut used = 0;
        for letter in line.replace('\t', "    ").chars() {
            let Some(wide) = letter.width() else { continue };
            if used + wide > width && !row.is_empty() {
                rows.push(std::mem::take(&mut row));
                used = 0;
            }
            row.push(letter);
            used += wide;
        }
        rows.push(row);
    }
    if rows.len() > 1 && text.ends_with('\n') {
        rows.pop();
    }
    rows
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use serde_json::json;

    use super::super::editor::Editor;
    use super::super::model::{Chosen, HELP, Model, Pane, Purpose, Row, Source};
    use super::{draw, wrap};

    fn shown(model: &mut Model, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, model)).unwrap();
        terminal.backend().to_string()
    }

    fn model(sessions: usize) -> Model {
        let row = |number: usize| {
            let id = format!("{number:08x}");
            Row {
                cells: [&id, "echo", "idle", "demo", "-", "/tmp"].map(str::to_owned),
                id,
                pid: None,
            }
        };
        Model {
            rows: (0..sessions).map(row).collect(),
            preview: "first\nsecond\necho: hello\nagent>\n\n\n".to_owned(),
            connected: true,
            ..Model::default()
        }
    }

    fn text(text: &str, source: Option<Source>) -> Pane {
        Pane::Text {
            title: "title".to_owned(),
            source,
            text: text.to_owned(),
            scrolled: 0,
        }
    }

    fn field(content: &str) -> Pane {
        Pane::Field {
            purpose: Purpose::Filter,
            label: "label".to_owned(),
            editor: Editor::new(content),
        }
    }

    #[test]
    fn the_screen_of_a_small_terminal() {
        insta::assert_snapshot!(shown(&mut model(2), 80, 24));
        let mut with_help = model(1);
        with_help.panes.push(text(HELP, None));
        insta::assert_snapshot!("help", shown(&mut with_help, 80, 24));
    }

    #[test]
    fn the_state_of_the_connection_and_questions_are_shown() {
        let mut model = model(1);
        model.connected = false;
        assert!(shown(&mut model, 80, 24).contains("disconnected"));
        model.connected = true;
        model.panes.push(Pane::Kill("5e1fa0c2".to_owned()));
        let screen = shown(&mut model, 80, 24);
        assert!(
            screen.contains("kill 5e1fa0c2? y/n") && !screen.contains("disconnected"),
            "{screen}"
        );
    }

    #[test]
    fn the_selected_row_and_the_cursor_are_always_in_sight() {
        let mut model = model(60);
        model.selected = 59;
        assert!(shown(&mut model, 80, 24).contains("0000003b"));
        let long: String = (0..100).map(|number| format!("line {number}\n")).collect();
        model.panes = vec![field(&long)];
        let screen = shown(&mut model, 80, 24);
        assert!(screen.contains("line 99") && screen.contains('▏'), "{screen}");
        let messages = (0..60).map(|number| json!({"subject": format!("<{number}>")}));
        model.panes = vec![Pane::Inbox {
            folder: "inbox",
            messages: messages.collect(),
            selected: 59,
        }];
        assert!(shown(&mut model, 80, 24).contains("<59>"));
    }

    #[test]
    fn growing_texts_show_their_end_and_others_their_beginning() {
        let long: String = (0..100).map(|number| format!("line {number}.\n")).collect();
        let mut model = model(1);
        model.panes = vec![text(&long, Some(Source::Events))];
        assert!(shown(&mut model, 80, 24).contains("line 99."));
        model.panes = vec![text(&long, None)];
        assert!(shown(&mut model, 80, 24).contains("line 0."));
        if let Some(Pane::Text { scrolled, .. }) = model.panes.last_mut() {
            *scrolled = usize::MAX;
        }
        assert!(shown(&mut model, 80, 24).contains("line 99."));
        assert!(matches!(model.panes.last(), Some(Pane::Text { scrolled, .. }) if *scrolled == 81));
    }

    #[test]
    fn no_size_is_too_odd() {
        let panes = [
            text("long 行 text \u{1b}[31m\twith\neverything", None),
            field("wide 行行行行"),
            Pane::Kill("5e1fa0c2".to_owned()),
            Pane::Daemon("runs".to_owned()),
            Pane::Choice {
                title: "level".to_owned(),
                chosen: Chosen::Backend,
                items: vec![("a".to_owned(), "b".to_owned())],
                selected: 0,
            },
            Pane::Inbox {
                folder: "inbox",
                messages: Vec::new(),
                selected: 0,
            },
        ];
        for (width, height) in [(1, 1), (2, 3), (5, 2), (7, 40), (200, 4), (80, 3), (300, 100)] {
            let mut model = model(3);
            shown(&mut model, width, height);
            for pane in &panes {
                model.panes = vec![pane.clone()];
                let screen = shown(&mut model, width, height);
                assert!(!screen.contains('\u{1b}'));
            }
        }
    }

    #[test]
    fn lines_are_cut_at_their_width() {
        assert_eq!(wrap("abcd\n\nef\n", 3), ["abc", "d", "", "ef"]);
        assert_eq!(wrap("行行a", 3), ["行", "行a"]);
        assert_eq!(wrap("a\u{7}b", 0), ["a", "b"]);
        assert_eq!(wrap("", 3), [""]);
    }
}
