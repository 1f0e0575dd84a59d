//! Drawing the model.

use beamtalk_loop::core::{ARROW, Status};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, List, Paragraph, Row, Table, TableState};

use super::model::{Model, Pane};

const SELECTED: Style = Style::new().add_modifier(Modifier::REVERSED);
const KEYS: &str = "s start  r restart  x stop  l output  q quit";

pub(super) fn draw(frame: &mut Frame<'_>, model: &Model) {
    let [top, middle, below, last] = Layout::vertical([
        Constraint::Percentage(30),
        Constraint::Percentage(if model.pane == Pane::Output { 70 } else { 35 }),
        Constraint::Percentage(if model.pane == Pane::Output { 0 } else { 35 }),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let Some(status) = &model.status else {
        frame.render_widget(Line::from("waiting for the loop"), last);
        return;
    };
    processes(frame, model, status, top);
    output(frame, model, middle);
    if model.pane == Pane::Overview {
        let [workflows_area, state_area, events_area] = Layout::horizontal([
            Constraint::Percentage(45),
            Constraint::Percentage(30),
            Constraint::Percentage(25),
        ])
        .areas(below);
        list(frame, "workflows", workflows(status), workflows_area);
        let state = model.state.iter().map(|(key, value)| format!("{key} = {value}"));
        list(frame, "state", state.collect(), state_area);
        let events = status.events.iter().map(|event| {
            format!(
                "{}  {} accepted  {} refused",
                event.name, event.accepted, event.rejected
            )
        });
        list(frame, "events", events.collect(), events_area);
    }
    frame.render_widget(Line::from(format!("{KEYS}  {}", model.message)), last);
}

fn processes(frame: &mut Frame<'_>, model: &Model, status: &Status, area: Rect) {
    let rows = status.processes.iter().map(|process| {
        Row::new([
            process.name.clone(),
            process.state.clone(),
            process.pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string()),
            process.restarts.to_string(),
        ])
    });
    let widths = [
        Constraint::Min(12),
        Constraint::Length(10),
        Constraint::Length(9),
        Constraint::Length(9),
    ];
    let title = format!("loop {}  pid {}  {}", status.phase, status.pid, status.config);
    let table = Table::new(rows, widths)
        .header(Row::new(["PROCESS", "STATE", "PID", "RESTARTS"]))
        .row_highlight_style(SELECTED)
        .block(Block::new().borders(Borders::ALL).title(title));
    let mut chosen = TableState::default().with_selected(Some(model.selected()));
    frame.render_stateful_widget(table, area, &mut chosen);
}

fn output(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    let title = model
        .chosen()
        .map_or_else(String::new, |name| format!("output of {name}"));
    let block = Block::new().borders(Borders::ALL).title(title);
    let room = usize::from(block.inner(area).height);
    // What was said last stands last.
    let skipped = model.output().len().saturating_sub(room);
    let lines: Vec<Line<'_>> = model
        .output()
        .skip(skipped)
        .map(|line| Line::from(line.as_str()))
        .collect();
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

/// Each workflow with its counts, and under it why it ran last.
fn workflows(status: &Status) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(running) = &status.lane.running {
        lines.push(format!(
            "running {} (step {}/{} {})",
            running.workflow, running.step, running.steps, running.action
        ));
    }
    for workflow in &status.workflows {
        let last = workflow.last.as_ref().map_or("-", |last| last.result.as_str());
        lines.push(format!(
            "{}  {} runs  {} failed  {last}",
            workflow.name, workflow.runs, workflow.failures
        ));
        let why = status.runs.iter().rev().find(|run| run.workflow == workflow.name);
        lines.extend(why.map(|run| format!("  {}", run.cause.join(ARROW))));
    }
    lines
}

fn list(frame: &mut Frame<'_>, title: &'static str, lines: Vec<String>, area: Rect) {
    let block = Block::new().borders(Borders::ALL).title(title);
    frame.render_widget(List::new(lines).block(block), area);
}
