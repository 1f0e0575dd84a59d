//! Drawing the model.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, Clear, Paragraph, Row as TableRow, Table, Wrap};
use serde_json::Value;

use super::model::{Model, Pane};

const HEADINGS: [&str; 6] = ["ID", "BACKEND", "STATE", "ALIAS", "ROLE", "CWD"];

pub(super) fn draw(frame: &mut Frame<'_>, model: &Model) {
    let [table, preview, status] = Layout::vertical([
        Constraint::Percentage(40),
        Constraint::Min(3),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    draw_table(frame, model, table);
    let block = Block::new().borders(Borders::ALL).title("screen");
    frame.render_widget(Paragraph::new(model.preview.as_str()).block(block), preview);
    let connection = if model.connected { "" } else { "disconnected  " };
    let line = format!("{connection}{}  ? help  q quit", model.status);
    frame.render_widget(Line::from(line), status);
    draw_pane(frame, model);
}

fn draw_table(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    let rows = model.visible().into_iter().enumerate().map(|(index, row)| {
        let style = if index == model.selected {
            Style::new().add_modifier(Modifier::REVERSED)
        } else {
            Style::new()
        };
        TableRow::new(row.cells.clone()).style(style)
    });
    let widths = [
        Constraint::Length(8),
        Constraint::Length(10),
        Constraint::Length(8),
        Constraint::Length(20),
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
        .block(Block::new().borders(Borders::ALL).title(title));
    frame.render_widget(table, area);
}

fn draw_pane(frame: &mut Frame<'_>, model: &Model) {
    let (title, text) = match &model.pane {
        Pane::Sessions => return,
        Pane::Text { title, text, .. } => (title.clone(), last_lines(text, frame.area().height)),
        Pane::Field { label, text, .. } => (label.clone(), format!("{text}▏")),
        Pane::Kill(id) => ("kill".to_owned(), format!("kill {id}? y/n")),
        Pane::Inbox {
            folder,
            messages,
            selected,
        } => ((*folder).to_owned(), inbox_lines(messages, *selected)),
    };
    let area = frame.area();
    let inner = Rect {
        x: area.width / 10,
        y: area.height / 6,
        width: area.width - area.width / 5,
        height: area.height - area.height / 3,
    };
    frame.render_widget(Clear, inner);
    let block = Block::new().borders(Borders::ALL).title(title);
    frame.render_widget(
        Paragraph::new(text).wrap(Wrap { trim: false }).block(block),
        inner,
    );
}

fn last_lines(text: &str, height: u16) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let room = usize::from(height - height / 3).saturating_sub(2);
    lines
        .get(lines.len().saturating_sub(room)..)
        .unwrap_or_default()
        .join("\n")
}

fn inbox_lines(messages: &[Value], selected: usize) -> String {
    if messages.is_empty() {
        return "no messages".to_owned();
    }
    let text = |message: &Value, key: &str| {
        message
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let line = |(index, message): (usize, &Value)| {
        let mark = if index == selected { ">" } else { " " };
        format!(
            "{mark} {}  {}  {}",
            text(message, "from"),
            text(message, "type"),
            text(message, "subject")
        )
    };
    messages
        .iter()
        .enumerate()
        .map(line)
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::model::{Model, Pane, Row};
    use super::draw;

    fn shown(model: &Model) -> String {
        let mut terminal = Terminal::new(TestBackend::new(100, 24)).unwrap();
        terminal.draw(|frame| draw(frame, model)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn sessions_preview_and_state_of_the_connection_are_shown() {
        let cells = ["5e1fa0c2", "echo", "idle", "demo", "-", "/tmp"].map(str::to_owned);
        let mut model = Model {
            rows: vec![Row {
                id: "5e1fa0c2".to_owned(),
                cells,
                pid: None,
            }],
            preview: "echo: hello".to_owned(),
            ..Model::default()
        };
        let screen = shown(&model);
        for part in ["5e1fa0c2", "demo", "echo: hello", "disconnected"] {
            assert!(screen.contains(part), "{part}\n{screen}");
        }
        model.connected = true;
        model.pane = Pane::Kill("5e1fa0c2".to_owned());
        let screen = shown(&model);
        assert!(
            screen.contains("kill 5e1fa0c2? y/n") && !screen.contains("disconnected"),
            "{screen}"
        );
    }
}
