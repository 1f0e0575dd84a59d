//! `loop docs`: the built-in reference, from Markdown to plain text.

/// The pages, by topic.
pub const TOPICS: [(&str, &str); 4] = [
    ("config", include_str!("../../../docs/loop/config.md")),
    ("behavior", include_str!("../../../docs/loop/behavior.md")),
    ("security", include_str!("../../../docs/loop/security.md")),
    ("development", include_str!("../../../docs/loop/development.md")),
];

/// Markdown as plain text: no marks left, code indented, links written out.
pub fn plain(markdown: &str) -> String {
    let mut text = String::new();
    let mut code = false;
    for line in markdown.lines() {
        let trimmed = line.trim_start();
        if let Some(language) = trimmed.strip_prefix("```") {
            code = !code;
            if code && !language.trim().is_empty() {
                push(&mut text, &format!("[{}]", language.trim()));
            }
        } else if code {
            push(&mut text, &format!("    {line}"));
        } else if let Some(heading) = line.strip_prefix("# ") {
            push(&mut text, &inline(heading).to_uppercase());
        } else if let Some(heading) = line.strip_prefix("## ") {
            underline(&mut text, &inline(heading), "=");
        } else if let Some(heading) = line.strip_prefix("### ") {
            underline(&mut text, &inline(heading), "-");
        } else if is_rule(trimmed) {
            push(&mut text, &"-".repeat(40));
        } else if let Some(item) = trimmed.strip_prefix("- ").or_else(|| trimmed.strip_prefix("* ")) {
            let depth = (line.len() - trimmed.len()) / 2;
            push(&mut text, &format!("{}- {}", "  ".repeat(depth), inline(item)));
        } else if trimmed.starts_with('|') {
            if let Some(row) = table_row(trimmed) {
                push(&mut text, &row);
            }
        } else {
            push(&mut text, &inline(line));
        }
    }
    text
}

fn push(text: &mut String, line: &str) {
    text.push_str(line.trim_end());
    text.push('\n');
}

fn underline(text: &mut String, heading: &str, mark: &str) {
    push(text, heading);
    push(text, &mark.repeat(heading.chars().count()));
}

fn is_rule(line: &str) -> bool {
    line.len() >= 3 && (line.bytes().all(|byte| byte == b'-') || line.bytes().all(|byte| byte == b'*'))
}

/// The cells of a row; none for the line between head and body.
fn table_row(line: &str) -> Option<String> {
    let inside = line.trim().trim_start_matches('|').trim_end_matches('|');
    if inside.bytes().all(|byte| b"-:| ".contains(&byte)) {
        return None;
    }
    let protected = inside.replace("\\|", "\u{0}");
    let cells: Vec<String> = protected
        .split('|')
        .map(|cell| inline(&cell.trim().replace('\u{0}', "|")))
        .collect();
    Some(format!("  {}", cells.join("  ")))
}

/// One line without marks of emphasis and code, links written out.
fn inline(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some(letter) = rest.chars().next() {
        let after = &rest[letter.len_utf8()..];
        match letter {
            '`' => {
                if let Some((code, behind)) = after.split_once('`') {
                    text.push_str(code);
                    rest = behind;
                    continue;
                }
                text.push(letter);
            }
            '*' if after.starts_with('*') => {
                rest = &after[1..];
                continue;
            }
            '*' if after.contains('*') || text.ends_with(char::is_alphanumeric) => {}
            '[' => {
                if let Some((label, behind)) = after.split_once("](")
                    && let Some((url, behind)) = behind.split_once(')')
                {
                    text.push_str(&inline(label));
                    text.extend([" (", url, ")"]);
                    rest = behind;
                    continue;
                }
                text.push(letter);
            }
            _ => text.push(letter),
        }
        rest = after;
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_mark_has_its_plain_form() {
        let markdown = "# Top *one*\n\n## Two\n### Three\ntext `code *x*` **bold** [link](http://u)\n- a\n  - b\n\n```toml\nroot = \".\"\n```\n---\n| A | B |\n|---|---|\n| `x` | y |\n";
        assert_eq!(
            plain(markdown),
            "TOP ONE\n\nTwo\n===\nThree\n-----\ntext code *x* bold link (http://u)\n- a\n  - b\n\n[toml]\n    root = \".\"\n----------------------------------------\n  A  B\n  x  y\n"
        );
    }

    #[test]
    fn no_page_keeps_markdown_marks() {
        for (topic, markdown) in TOPICS {
            let text = plain(markdown);
            assert!(text.len() > 500, "{topic}");
            for line in text.lines() {
                assert!(
                    !line.starts_with('#') && !line.contains("```") && !line.contains("]("),
                    "{topic}: {line}"
                );
                assert!(!line.contains('`') || line.starts_with("    "), "{topic}: {line}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_text_is_survived(markdown in "(?s).{0,200}") {
            let text = plain(&markdown);
            prop_assert!(text.is_empty() || text.ends_with('\n'));
        }
    }
}
