//! Text rules: cleaned terminal output, safe prompts, command lines, paths.

use std::path::Path;

use beamtalk_ninep::Refusal;

use crate::error::refusal;

/// Terminal output as plain text: no escape sequences, no carriage returns, no control characters.
pub fn clean(raw: &[u8]) -> String {
    let text = String::from_utf8_lossy(raw);
    let mut out = String::with_capacity(text.len());
    let mut line_start = 0;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' => skip_escape(&mut letters),
            '\u{9b}' => skip_csi(&mut letters),
            '\u{9d}' => skip_string(&mut letters),
            '\r' => {
                // Terminals turn LF into CR LF, sometimes twice.
                while letters.peek() == Some(&'\r') {
                    letters.next();
                }
                if letters.peek() != Some(&'\n') {
                    out.truncate(line_start);
                }
            }
            '\n' => {
                out.push('\n');
                line_start = out.len();
            }
            '\u{8}' => {
                if out.len() > line_start {
                    out.pop();
                }
            }
            '\t' => out.push('\t'),
            other if other.is_control() => {}
            other => out.push(other),
        }
    }
    out
}

type Letters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn skip_escape(letters: &mut Letters<'_>) {
    match letters.next() {
        Some('[') => skip_csi(letters),
        Some(']' | 'P' | 'X' | '^' | '_') => skip_string(letters),
        // Intermediate bytes, then one final byte.
        Some(' '..='/') => {
            while letters.next_if(|c| (' '..='/').contains(c)).is_some() {}
            letters.next();
        }
        _ => {}
    }
}

fn skip_csi(letters: &mut Letters<'_>) {
    while letters.next_if(|c| (' '..='?').contains(c)).is_some() {}
    letters.next_if(|c| ('@'..='~').contains(c));
}

fn skip_string(letters: &mut Letters<'_>) {
    while let Some(letter) = letters.next() {
        match letter {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' => {
                letters.next_if(|c| *c == '\\');
                return;
            }
            _ => {}
        }
    }
}

/// A prompt that can press no keys: one final newline removed, controls dropped.
pub(crate) fn safe_prompt(bytes: &[u8]) -> Result<String, Refusal> {
    let text = String::from_utf8_lossy(bytes);
    if text.contains('\0') {
        return Err(refusal("invalid prompt"));
    }
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let safe: String = text
        .chars()
        .filter(|c| matches!(c, '\n' | '\t') || !c.is_control())
        .collect();
    if safe.is_empty() {
        Err(refusal("empty prompt"))
    } else {
        Ok(safe)
    }
}

/// A working directory as the server stores it: absolute, cleaned, existing, searchable.
pub fn check_directory(path: &str) -> Result<String, Refusal> {
    if path.len() > 4096 || path.chars().any(char::is_control) {
        return Err(refusal("invalid path"));
    }
    if !path.starts_with('/') {
        return Err(refusal(format!("path is not absolute: {path}")));
    }
    let clean = clean_path(path);
    let Ok(metadata) = std::fs::metadata(&clean) else {
        return Err(refusal(format!("path does not exist: {clean}")));
    };
    if !metadata.is_dir() {
        return Err(refusal(format!("path is not a directory: {clean}")));
    }
    if rustix::fs::access(Path::new(&clean), rustix::fs::Access::EXEC_OK).is_err() {
        return Err(refusal(format!("path does not exist: {clean}")));
    }
    Ok(clean)
}

/// Without `.`, `..` and doubled slashes, by text alone.
pub fn clean_path(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{clean, clean_path, safe_prompt};

    #[test]
    fn terminal_output_becomes_plain_text() {
        for (raw, plain) in [
            ("\u{1b}[31mred\u{1b}[0m\r\n", "red\n"),
            ("\u{1b}]0;title\u{7}x", "x"),
            ("\u{1b}]0;title\u{1b}\\x", "x"),
            ("50%\r100%\n", "100%\n"),
            ("ab\u{8}c", "ac"),
            ("a\r\r\nb", "a\nb"),
            ("\u{1b}(Bplain\u{1b}=", "plain"),
            ("bell\u{7}\ttab", "bell\ttab"),
            ("line\n\u{8}x", "line\nx"),
        ] {
            assert_eq!(clean(raw.as_bytes()), plain, "{raw:?}");
        }
        assert_eq!(clean(b"a\xffb"), "a\u{fffd}b");
    }

    #[test]
    fn prompts_cannot_press_keys() {
        assert_eq!(safe_prompt(b"a\r\nb\x1b[201~\x03!\n").unwrap(), "a\nb[201~!");
        assert_eq!(safe_prompt("x\u{85}\u{7f}y".as_bytes()).unwrap(), "xy");
        assert_eq!(safe_prompt(b"\n").unwrap_err().text, "empty prompt");
        assert_eq!(safe_prompt(b"a\0b").unwrap_err().text, "invalid prompt");
        assert_eq!(safe_prompt(b"a\n\n").unwrap(), "a\n");
    }

    #[test]
    fn paths_are_cleaned_by_text() {
        assert_eq!(clean_path("/tmp/../no//such/./x"), "/no/such/x");
        assert_eq!(clean_path("/../.."), "/");
    }

    proptest! {
        #[test]
        fn cleaned_text_has_no_control_characters(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            prop_assert!(clean(&bytes).chars().all(|c| matches!(c, '\n' | '\t') || !c.is_control()));
        }

        #[test]
        fn safe_prompts_have_no_control_characters(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            if let Ok(prompt) = safe_prompt(&bytes) {
                prop_assert!(prompt.chars().all(|c| matches!(c, '\n' | '\t') || !c.is_control()));
            }
        }
    }
}
