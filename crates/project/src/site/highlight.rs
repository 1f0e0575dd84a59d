//! Beamtalk source as HTML, its parts marked for the style sheet.

use beamtalk_syntax::{Paint, highlight};

use super::html::escape;

pub(super) fn render(source: &str) -> String {
    let mut out = String::with_capacity(source.len() * 2);
    let mut done = 0;
    for (span, paint) in highlight(source) {
        let (start, end) = (span.start as usize, span.end as usize);
        let (Some(between), Some(part)) = (source.get(done..start), source.get(start..end)) else {
            continue;
        };
        let class = match paint {
            Paint::String => "s",
            Paint::Number => "n",
            Paint::Constant => "k",
            Paint::ClassName => "t",
            Paint::Comment => "c",
        };
        out += &escape(between);
        // A span of each line, so that a text can be cut into lines.
        let lines: Vec<String> = part
            .split('\n')
            .map(|line| format!("<span class=\"{class}\">{}</span>", escape(line)))
            .collect();
        out += &lines.join("\n");
        done = end;
    }
    out += &escape(source.get(done..).unwrap_or_default());
    out
}
