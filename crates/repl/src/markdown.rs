//! Markdown for a terminal: wrapped to its width, with colours where there are any.

use pulldown_cmark::{Alignment, CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use unicode_width::UnicodeWidthStr;

use crate::paint::Palette;

/// Lines longer than this are hard to read, however wide the terminal is.
const WIDEST: usize = 100;
const NARROWEST: usize = 20;
/// Columns that deep lists and quotations leave.
const LEAST: usize = 10;

/// The text with colours and without marks, each line at most `width` columns; code is never wrapped.
pub fn render(markdown: &str, width: usize, palette: Palette) -> String {
    let mut page = Page {
        out: String::new(),
        width: width.clamp(NARROWEST, WIDEST),
        palette,
        inline: Vec::new(),
        styles: Vec::new(),
        lists: Vec::new(),
        quotes: 0,
        marker: None,
        code: None,
        table: None,
    };
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
        page.take(event);
    }
    page.end_paragraph();
    let text = page.out.trim_end().to_owned();
    if text.is_empty() { text } else { text + "\n" }
}

/// How a piece of text is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    Plain,
    Strong,
    Emphasis,
    Code,
    Heading,
}

impl Style {
    fn escape(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Strong => Some("\x1b[1m"),
            Self::Emphasis => Some("\x1b[3m"),
            Self::Code => Some("\x1b[36m"),
            Self::Heading => Some("\x1b[1;35m"),
        }
    }
}

type Piece = (Style, String);

struct Page {
    out: String,
    width: usize,
    palette: Palette,
    /// The paragraph, heading or cell that is being read.
    inline: Vec<Piece>,
    styles: Vec<Style>,
    /// The next number of each list we are in; `None` for one without numbers.
    lists: Vec<Option<u64>>,
    quotes: usize,
    /// What stands before the first line of a list's item.
    marker: Option<String>,
    /// A block of code, and whether it is in our language.
    code: Option<(String, bool)>,
    table: Option<Table>,
}

#[derive(Default)]
struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Vec<Piece>>>,
}

impl Page {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text),
            Event::Code(text) => self.inline.push((Style::Code, plain(&text))),
            Event::SoftBreak => self.text(" "),
            Event::HardBreak => {
                self.wrap_inline();
            }
            Event::Rule => self.block("─".repeat(self.room()).as_str()),
            // Written for browsers; on a terminal the text around it has to do.
            Event::Html(_) | Event::InlineHtml(_) => {}
            Event::FootnoteReference(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.text(&text);
            }
            Event::TaskListMarker(is_done) => self.text(if is_done { "[x] " } else { "[ ] " }),
        }
    }

    fn text(&mut self, text: &str) {
        if let Some((code, _)) = &mut self.code {
            let lines: Vec<String> = text.split('\n').map(plain).collect();
            code.push_str(&lines.join("\n"));
        } else {
            let style = self.styles.last().copied().unwrap_or(Style::Plain);
            self.inline.push((style, plain(text)));
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { .. } => self.styles.push(Style::Heading),
            Tag::Strong => self.styles.push(Style::Strong),
            Tag::Emphasis => self.styles.push(Style::Emphasis),
            Tag::BlockQuote(_) => {
                self.end_paragraph();
                self.quotes += 1;
            }
            Tag::List(first) => {
                self.wrap_inline();
                self.lists.push(first);
            }
            Tag::Item => {
                let depth = self.lists.len().saturating_sub(1);
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "• ".to_owned(),
                };
                self.marker = Some(format!("{}{mark}", "  ".repeat(depth)));
            }
            Tag::CodeBlock(kind) => {
                self.wrap_inline();
                let is_ours = matches!(&kind, CodeBlockKind::Fenced(language) if &**language == "beamtalk");
                self.code = Some((String::new(), is_ours));
            }
            Tag::Table(alignments) => {
                self.table = Some(Table {
                    alignments,
                    rows: Vec::new(),
                });
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => {
                self.styles.pop();
                self.end_paragraph();
            }
            TagEnd::Strong | TagEnd::Emphasis => {
                self.styles.pop();
            }
            TagEnd::Paragraph => self.end_paragraph(),
            TagEnd::BlockQuote(_) => {
                self.end_paragraph();
                self.quotes = self.quotes.saturating_sub(1);
            }
            TagEnd::Item => {
                self.wrap_inline();
            }
            TagEnd::List(_) => {
                self.lists.pop();
                if self.lists.is_empty() {
                    self.blank();
                }
            }
            TagEnd::CodeBlock => {
                if let Some((code, is_ours)) = self.code.take() {
                    let shown = if is_ours { self.palette.code(&code) } else { code };
                    let indent = format!("{}    ", self.lead());
                    for line in shown.lines() {
                        self.out.push_str(format!("{indent}{line}").trim_end());
                        self.out.push('\n');
                    }
                    self.blank();
                }
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.inline);
                if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.write_table(&table);
                    self.blank();
                }
            }
            _ => {}
        }
    }

    /// What every line of the current place starts with.
    fn lead(&self) -> String {
        let quotes = "│ ".repeat(self.quotes);
        let items = "  ".repeat(self.lists.len());
        format!("{quotes}{items}")
    }

    fn room(&self) -> usize {
        self.width.saturating_sub(self.lead().width()).max(LEAST)
    }

    fn block(&mut self, line: &str) {
        self.out.push_str(line);
        self.out.push('\n');
        self.blank();
    }

    fn blank(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    /// Items follow each other without blank lines; paragraphs do not.
    fn end_paragraph(&mut self) {
        if self.wrap_inline() && self.lists.is_empty() {
            self.blank();
        }
    }

    /// Write what was read, as lines; answers whether there was any.
    fn wrap_inline(&mut self) -> bool {
        let pieces = std::mem::take(&mut self.inline);
        if pieces.iter().all(|(_, text)| text.trim().is_empty()) && self.marker.is_none() {
            return false;
        }
        let rest = self.lead();
        let first = match self.marker.take() {
            Some(marker) => format!("{}{marker}", "│ ".repeat(self.quotes)),
            None => rest.clone(),
        };
        let rest = " ".repeat(first.width().saturating_sub(rest.width())) + &rest;
        let lines = wrap(&pieces, self.width.saturating_sub(rest.width()).max(LEAST));
        for (index, line) in lines.iter().enumerate() {
            self.out.push_str(if index == 0 { &first } else { &rest });
            self.out.push_str(&self.paint(line));
            self.out.push('\n');
        }
        true
    }

    fn paint(&self, line: &[Piece]) -> String {
        let mut text = String::new();
        for run in line.chunk_by(|(before, _), (after, _)| before == after) {
            let escape = run.first().and_then(|(style, _)| style.escape());
            let words: String = run.iter().map(|(_, piece)| piece.as_str()).collect();
            match escape.filter(|_| self.palette == Palette::Colored) {
                Some(escape) => text.push_str(&format!("{escape}{words}\x1b[0m")),
                None => text.push_str(&words),
            }
        }
        text
    }

    fn write_table(&mut self, table: &Table) {
        let widths = columns(table, self.room());
        let lead = self.lead();
        for (index, row) in table.rows.iter().enumerate() {
            let cells: Vec<Vec<Vec<Piece>>> = row
                .iter()
                .zip(&widths)
                .map(|(cell, width)| wrap(cell, *width))
                .collect();
            for line in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
                let mut text = lead.clone();
                for (column, (cell, width)) in cells.iter().zip(&widths).enumerate() {
                    let pieces = cell.get(line).map(Vec::as_slice).unwrap_or_default();
                    let free = width.saturating_sub(columns_of(pieces));
                    let is_right = table.alignments.get(column) == Some(&Alignment::Right);
                    let (before, after) = if is_right { (free, 0) } else { (0, free) };
                    text.push_str(&" ".repeat(before));
                    text.push_str(&self.paint(pieces));
                    text.push_str(&" ".repeat(after + 2));
                }
                self.out.push_str(text.trim_end());
                self.out.push('\n');
            }
            if index == 0 {
                let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                self.out.push_str(&format!("{lead}{}\n", rule.join("  ")));
            }
        }
    }
}

/// Control characters of a text do nothing to the terminal.
fn plain(text: &str) -> String {
    text.replace(char::is_control, " ")
}

fn columns_of(pieces: &[Piece]) -> usize {
    pieces.iter().map(|(_, text)| text.width()).sum()
}

/// A width for each column: what it needs if all fit, else the widest give way to a fair share.
fn columns(table: &Table, room: usize) -> Vec<usize> {
    let count = table.rows.iter().map(Vec::len).max().unwrap_or(0);
    let mut widths = vec![1; count];
    for row in &table.rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = columns_of(cell).max(*width);
        }
    }
    let room = room.saturating_sub(2 * count.saturating_sub(1)).max(count);
    loop {
        let total: usize = widths.iter().sum();
        if total <= room {
            return widths;
        }
        let Some(widest) = widths.iter_mut().max() else {
            return widths;
        };
        *widest = widest.saturating_sub(total - room).max(*widest * 3 / 4).max(1);
        if *widest <= 8 {
            return widths;
        }
    }
}

/// Lines of at most so many columns. A word that is longer stands alone.
fn wrap(pieces: &[Piece], width: usize) -> Vec<Vec<Piece>> {
    let mut lines: Vec<Vec<Piece>> = vec![Vec::new()];
    let mut used = 0;
    for word in words(pieces) {
        let columns = columns_of(&word);
        if used > 0 && used + 1 + columns > width {
            lines.push(Vec::new());
            used = 0;
        }
        if let Some(line) = lines.last_mut() {
            if used > 0 {
                // The blank inside a piece of one style is part of it.
                let style = match (line.last(), word.first()) {
                    (Some((before, _)), Some((after, _))) if before == after => *before,
                    _ => Style::Plain,
                };
                line.push((style, " ".to_owned()));
                used += 1;
            }
            line.extend(word);
        }
        used += columns;
    }
    lines
}

/// What stands between blanks, whatever styles it has.
fn words(pieces: &[Piece]) -> Vec<Vec<Piece>> {
    let mut words: Vec<Vec<Piece>> = vec![Vec::new()];
    for (style, text) in pieces {
        for (index, part) in text.split(' ').enumerate() {
            if index > 0 {
                words.push(Vec::new());
            }
            if let Some(word) = words.last_mut().filter(|_| !part.is_empty()) {
                word.push((*style, part.to_owned()));
            }
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr;

    use super::render;
    use crate::paint::Palette;

    const PAGE: &str = "# A page\n\nSome `code` and **strong** words that are long enough to be wrapped at the end of \
        a line.\n\n- one\n- two, which is longer than the line it stands on and so goes on below its text\n  - deeper\n\n\
        1. first\n2. second\n\n```beamtalk\nx := 3   // kept as it is\n```\n\n> A quotation.\n\n\
        | Name | Meaning |\n|---|---:|\n| `a` | the first letter of the alphabet, described at length |\n| b | 2 |\n";

    #[test]
    fn a_page_is_laid_out() {
        insta::assert_snapshot!(render(PAGE, 40, Palette::Plain));
        insta::assert_snapshot!(render(PAGE, 100, Palette::Plain));
    }

    #[test]
    fn colours_are_escapes_around_the_same_text() {
        let painted = render(PAGE, 40, Palette::Colored);
        assert!(painted.contains("\x1b[1;35mA page\x1b[0m"), "{painted}");
        let mut plain = String::new();
        let mut rest = painted.as_str();
        while let Some((before, after)) = rest.split_once("\x1b[") {
            plain.push_str(before);
            rest = after.split_once('m').map_or("", |(_, after)| after);
        }
        assert_eq!(plain + rest, render(PAGE, 40, Palette::Plain));
    }

    #[test]
    fn nothing_but_code_and_long_words_is_wider_than_the_terminal() {
        for width in [20, 37, 80] {
            for line in render(PAGE, width, Palette::Plain).lines() {
                let is_code = line.starts_with("    ");
                assert!(
                    is_code || line.width() <= width || !line.trim().contains(' '),
                    "{width}: {line}"
                );
            }
        }
    }

    #[test]
    fn strange_text_is_only_text() {
        for text in [
            "",
            "\n\n",
            "|",
            "| a |\n|--|",
            "```",
            "* * *",
            "<b>x",
            "> > > a",
            "[x](y \"z",
            "\u{1b}[31m",
        ] {
            assert!(!render(text, 1, Palette::Plain).contains('\u{1b}'), "{text:?}");
        }
    }
}
