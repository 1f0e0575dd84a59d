//! The Markdown of documentation comments as HTML.
//!
//! Headings, paragraphs, lists, tables, fenced code, quotes, `code`, **strong**, *emphasis* and links. Markup of the
//! text itself is never taken over: every character is escaped, and a link leads only to `http`, `https` or a place
//! beside the page.

use super::html::{address, escape};

/// Where the page of a class is, if it has one.
pub(super) type Link<'a> = dyn Fn(&str) -> Option<String> + 'a;

pub(super) fn render(text: &str, link: &Link<'_>) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut out = String::new();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let rest = &lines[at..];
        at += if line.trim().is_empty() {
            1
        } else if line.trim_start().starts_with("```") {
            fence(&mut out, rest)
        } else if let Some((level, title)) = heading(line) {
            // The page has its own title.
            let level = (level + 1).min(6);
            out += &format!("<h{level}>{}</h{level}>\n", inline(title, link));
            1
        } else if is_table(rest) {
            table(&mut out, rest, link)
        } else if marker(line).is_some() {
            list(&mut out, rest, link)
        } else if line.trim_start().starts_with('>') {
            quote(&mut out, rest, link)
        } else {
            paragraph(&mut out, rest, link)
        };
    }
    out
}

/// One line without blocks.
pub(super) fn line(text: &str, link: &Link<'_>) -> String {
    inline(text, link)
}

fn heading(line: &str) -> Option<(usize, &str)> {
    let level = line.chars().take_while(|c| *c == '#').count();
    let title = line.get(level..)?;
    (1..=6)
        .contains(&level)
        .then(|| title.strip_prefix(' '))
        .flatten()
        .map(|title| (level, title.trim()))
}

fn fence(out: &mut String, lines: &[&str]) -> usize {
    let body: Vec<&str> = lines
        .iter()
        .skip(1)
        .take_while(|line| !line.trim_start().starts_with("```"))
        .copied()
        .collect();
    *out += &format!("<pre><code>{}</code></pre>\n", escape(&body.join("\n")));
    (body.len() + 2).min(lines.len())
}

/// The text behind `- `, `* ` or `1. `, and whether the list is numbered.
fn marker(line: &str) -> Option<(bool, &str)> {
    let line = line.trim_start();
    if let Some(text) = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")) {
        return Some((false, text));
    }
    let digits = line.chars().take_while(char::is_ascii_digit).count();
    let text = line.get(digits..)?.strip_prefix(". ")?;
    (digits > 0).then_some((true, text))
}

fn list(out: &mut String, lines: &[&str], link: &Link<'_>) -> usize {
    let is_numbered = lines
        .first()
        .and_then(|line| marker(line))
        .is_some_and(|(is_numbered, _)| is_numbered);
    let mut items: Vec<String> = Vec::new();
    let mut used = 0;
    for line in lines {
        match (marker(line), items.last_mut()) {
            (Some((numbered, text)), _) if numbered == is_numbered => items.push(text.to_owned()),
            (None, Some(item)) if line.starts_with(' ') && !line.trim().is_empty() => {
                item.push(' ');
                item.push_str(line.trim());
            }
            _ => break,
        }
        used += 1;
    }
    let tag = if is_numbered { "ol" } else { "ul" };
    *out += &format!("<{tag}>\n");
    for item in &items {
        *out += &format!("<li>{}</li>\n", inline(item, link));
    }
    *out += &format!("</{tag}>\n");
    used.max(1)
}

fn quote(out: &mut String, lines: &[&str], link: &Link<'_>) -> usize {
    let body: Vec<&str> = lines
        .iter()
        .map_while(|line| line.trim_start().strip_prefix('>'))
        .map(str::trim)
        .collect();
    *out += &format!(
        "<blockquote><p>{}</p></blockquote>\n",
        inline(&body.join(" "), link)
    );
    body.len()
}

fn is_table(lines: &[&str]) -> bool {
    let [head, rule, ..] = lines else { return false };
    head.trim_start().starts_with('|')
        && rule.trim_start().starts_with('|')
        && rule.contains('-')
        && rule.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '))
}

fn table(out: &mut String, lines: &[&str], link: &Link<'_>) -> usize {
    let rows: Vec<&&str> = lines
        .iter()
        .take_while(|line| line.trim_start().starts_with('|'))
        .collect();
    *out += "<table>\n";
    for (at, row) in rows.iter().enumerate().filter(|(at, _)| *at != 1) {
        let tag = if at == 0 { "th" } else { "td" };
        let cells: Vec<String> = cells(row)
            .iter()
            .map(|cell| format!("<{tag}>{}</{tag}>", inline(cell, link)))
            .collect();
        *out += &format!("<tr>{}</tr>\n", cells.concat());
    }
    *out += "</table>\n";
    rows.len()
}

/// The cells of a row; `\|` is a bar inside one.
fn cells(row: &str) -> Vec<String> {
    let row = row.trim();
    let row = row.strip_prefix('|').unwrap_or(row);
    let row = row.strip_suffix('|').unwrap_or(row);
    let mut cells = vec![String::new()];
    let mut characters = row.chars().peekable();
    while let Some(character) = characters.next() {
        let cell = cells.last_mut().expect("there is always a cell");
        match character {
            '\\' if characters.next_if_eq(&'|').is_some() => cell.push('|'),
            '|' => cells.push(String::new()),
            _ => cell.push(character),
        }
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

fn paragraph(out: &mut String, lines: &[&str], link: &Link<'_>) -> usize {
    let starts_other = |line: &str| {
        line.trim().is_empty()
            || line.trim_start().starts_with("```")
            || heading(line).is_some()
            || marker(line).is_some()
    };
    let length = 1 + lines
        .iter()
        .skip(1)
        .take_while(|line| !starts_other(line))
        .count();
    let text: Vec<&str> = lines.iter().take(length).map(|line| line.trim()).collect();
    *out += &format!("<p>{}</p>\n", inline(&text.join("\n"), link));
    length
}

/// Markup inside a line.
fn inline(text: &str, link: &Link<'_>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some((html, used)) = code(rest, link)
            .or_else(|| linked(rest, link))
            .or_else(|| emphasis(rest, "**", "strong", link))
            .or_else(|| emphasis(rest, "*", "em", link))
        {
            out += &html;
            rest = &rest[used..];
        } else {
            out += &escape(&rest[..first.len_utf8()]);
            rest = &rest[first.len_utf8()..];
        }
    }
    out
}

/// `` `code` ``, also between two or more backquotes; the name of a class becomes a link.
fn code(text: &str, link: &Link<'_>) -> Option<(String, usize)> {
    let ticks = text.chars().take_while(|c| *c == '`').count();
    if ticks == 0 {
        return None;
    }
    let mark = &text[..ticks];
    let length = text[ticks..].find(mark)?;
    let inner = text[ticks..ticks + length].trim();
    let html = format!("<code>{}</code>", escape(inner));
    let html = match link(inner) {
        Some(page) => format!("<a href=\"{page}\">{html}</a>"),
        None => html,
    };
    Some((html, ticks + length + ticks))
}

/// `[text](address)`.
fn linked(text: &str, link: &Link<'_>) -> Option<(String, usize)> {
    let inner = text.strip_prefix('[')?;
    let middle = inner.find("](")?;
    let label = &inner[..middle];
    let target = &inner[middle + 2..];
    let end = target.find(')')?;
    let target = &target[..end];
    if label.contains('[') || target.contains(char::is_whitespace) {
        return None;
    }
    let used = 1 + middle + 2 + end + 1;
    // Inside a link there is no other.
    let label = inline(label, &|_| None);
    Some(match safe(target) {
        Some(target) => (format!("<a href=\"{target}\">{label}</a>"), used),
        None => {
            let shown =
                link(target).map_or_else(|| label.clone(), |page| format!("<a href=\"{page}\">{label}</a>"));
            (shown, used)
        }
    })
}

/// An address that cannot run anything.
fn safe(target: &str) -> Option<String> {
    if target.starts_with("https://") || target.starts_with("http://") {
        return Some(escape(target));
    }
    let (path, fragment) = target.split_once('#').unwrap_or((target, ""));
    let is_plain = |text: &str| !text.contains(|c: char| c == ':' || c == '\\' || c.is_control());
    if !is_plain(path) || path.starts_with('/') || (path.is_empty() && fragment.is_empty()) {
        return None;
    }
    // Pages of the guide lie beside each other.
    let path = match path.strip_suffix(".md") {
        Some(stem) => format!("{stem}.html"),
        None => path.to_owned(),
    };
    let fragment = if fragment.is_empty() {
        String::new()
    } else {
        format!("#{}", address(fragment))
    };
    Some(format!("{}{fragment}", address(&path)))
}

fn emphasis(text: &str, mark: &str, tag: &str, link: &Link<'_>) -> Option<(String, usize)> {
    let inner = text.strip_prefix(mark)?;
    if inner.starts_with(char::is_whitespace) {
        return None;
    }
    let length = inner.find(mark)?;
    let content = &inner[..length];
    if content.is_empty() || content.ends_with(char::is_whitespace) || content.contains('`') {
        return None;
    }
    let html = format!("<{tag}>{}</{tag}>", inline(content, link));
    Some((html, length + 2 * mark.len()))
}
