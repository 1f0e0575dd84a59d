//! Lines of a text, and what is put in place of its parts.

use std::ops::Range;

/// What the lines right above a definition that belong to it start with.
pub(super) const DOCUMENTATION: [&str; 2] = ["///", "@expect"];

/// What lines above a method that are about it start with.
pub(super) const COMMENTS: [&str; 2] = ["//", "@expect"];

pub(super) fn line_start(text: &str, at: usize) -> usize {
    text.get(..at)
        .and_then(|before| before.rfind('\n'))
        .map_or(0, |newline| newline + 1)
}

/// The end of the line's content, before its line end.
pub(super) fn line_end(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    let length = rest.find('\n').unwrap_or(rest.len());
    let line = rest.get(..length).unwrap_or_default();
    at + line.strip_suffix('\r').unwrap_or(line).len()
}

fn after_newline(text: &str, line_end: usize) -> usize {
    let rest = text.get(line_end..).unwrap_or_default();
    line_end + rest.find('\n').map_or(rest.len(), |newline| newline + 1)
}

/// The blanks a line starts with.
pub(super) fn line_prefix(text: &str, at: usize) -> &str {
    let line = text.get(line_start(text, at)..).unwrap_or_default();
    let content = line.trim_start_matches([' ', '\t']);
    line.get(..line.len() - content.len()).unwrap_or_default()
}

/// The start of the first of the lines right above that begin with one of the marks; `at` when there is none.
pub(super) fn doc_start(text: &str, at: usize, marks: &[&str]) -> usize {
    let mut start = at;
    let mut line = line_start(text, at);
    if text.get(line..at).is_none_or(|prefix| !prefix.trim().is_empty()) {
        return at;
    }
    while let Some(before) = line.checked_sub(1) {
        let previous = line_start(text, before);
        let content = text.get(previous..before).unwrap_or_default();
        if !marks.iter().any(|mark| content.trim_start().starts_with(mark)) {
            break;
        }
        start = previous + (content.len() - content.trim_start().len());
        line = previous;
    }
    start
}

/// The end of the comment that follows on the same line; `at` when none does.
pub(super) fn comment_end(text: &str, at: usize) -> usize {
    let rest = text.get(at..line_end(text, at)).unwrap_or_default().trim_end();
    let comment = rest.trim_start();
    let is_block = comment
        .strip_prefix("/*")
        .is_some_and(|inner| inner.find("*/").is_some_and(|end| end + 2 == inner.len()));
    if is_block || comment.starts_with("//") {
        at + rest.len()
    } else {
        at
    }
}

/// The end of the lines below that are comments and belong to what stands above them: nothing follows right after them.
pub(super) fn comments_below(text: &str, at: usize) -> usize {
    let mut end = at;
    let mut next = after_newline(text, line_end(text, at));
    while next > end && next < text.len() {
        let line = text.get(next..line_end(text, next)).unwrap_or_default();
        match line.trim() {
            "" => return end,
            comment if comment.starts_with("//") => end = line_end(text, next),
            _ => return at,
        }
        next = after_newline(text, end);
    }
    end
}

/// The end of the indented comments below the last line of a body: they are in it.
pub(super) fn body_end(text: &str, at: usize) -> usize {
    let mut end = at;
    let mut next = after_newline(text, line_end(text, at));
    while next < text.len() {
        let content_end = line_end(text, next);
        let line = text.get(next..content_end).unwrap_or_default();
        let is_indented = line.starts_with([' ', '\t']);
        match line.trim() {
            "" => {}
            comment if is_indented && comment.starts_with("//") => end = content_end,
            _ => break,
        }
        next = after_newline(text, content_end);
    }
    end
}

/// What to cut for a part that goes, as whole lines where it has them for itself.
pub(super) fn removal(text: &str, part: Range<usize>) -> Range<usize> {
    let line_start = line_start(text, part.start);
    let content_end = line_end(text, part.end);
    let is_blank = |range: Range<usize>| text.get(range).is_some_and(|text| text.trim().is_empty());
    if !is_blank(line_start..part.start) || !is_blank(part.end..content_end) {
        return part;
    }
    let end = after_newline(text, content_end);
    // One of two blank lines that would meet goes too.
    let previous = line_start
        .checked_sub(1)
        .map(|before| self::line_start(text, before));
    match previous {
        Some(previous) if is_blank(end..line_end(text, end)) && is_blank(previous..line_start) => {
            previous..end
        }
        _ => line_start..end,
    }
}

/// Pieces do not overlap; those at one place come in their order.
pub(super) fn apply(text: &str, mut pieces: Vec<(Range<usize>, String)>) -> String {
    pieces.sort_by_key(|(range, _)| range.start);
    let mut out = String::with_capacity(text.len() + 256);
    let mut done = 0;
    for (range, new) in pieces {
        out.push_str(text.get(done..range.start).unwrap_or_default());
        out.push_str(&new);
        done = done.max(range.end);
    }
    out.push_str(text.get(done..).unwrap_or_default());
    out
}

pub(super) fn in_newlines_of(text: &str, new: &str) -> String {
    if text.contains("\r\n") {
        new.replace('\n', "\r\n")
    } else {
        new.to_owned()
    }
}
