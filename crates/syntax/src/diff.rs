//! Unified diffs of two texts.

use std::fmt::Write as _;

use crate::span::Span;

/// Lines of context around a change.
const CONTEXT: usize = 3;

/// Above this many line pairs the changed region is shown as one replacement.
const LARGEST_TABLE: usize = 4_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edit {
    Keep,
    Remove,
    Insert,
}

/// The change from one text to the other, each with its name, as a unified diff; empty when they are equal.
pub fn unified(names: [&str; 2], old: &str, new: &str) -> String {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let edits = edits(&old, &new);
    let mut out = String::new();
    for hunk in hunks(&edits) {
        if out.is_empty() {
            // Writing to a String cannot fail.
            let [old, new] = names;
            let _ = writeln!(out, "--- {old}\n+++ {new}");
        }
        write_hunk(&mut out, &edits, hunk, &old, &new);
    }
    out
}

/// The changes that turn one text into the other: whole lines of the old text, and what comes in their place.
pub fn changes(old: &str, new: &str) -> Vec<(Span, String)> {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let mut found: Vec<(Span, String)> = Vec::new();
    let mut at = 0_u32;
    let (mut olds, mut news) = (old.iter(), new.iter());
    let mut is_open = false;
    for edit in edits(&old, &new) {
        if edit == Edit::Keep {
            at += olds.next().map_or(0, |line| line.len() as u32);
            news.next();
            is_open = false;
            continue;
        }
        if !is_open {
            found.push((Span::new(at, at), String::new()));
            is_open = true;
        }
        let Some((span, text)) = found.last_mut() else {
            continue;
        };
        if edit == Edit::Remove {
            at += olds.next().map_or(0, |line| line.len() as u32);
            span.end = at;
        } else if let Some(line) = news.next() {
            text.push_str(line);
        }
    }
    found
}

/// A shortest edit script, equal ends first.
fn edits(old: &[&str], new: &[&str]) -> Vec<Edit> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let tail = old
        .iter()
        .skip(head)
        .rev()
        .zip(new.iter().skip(head).rev())
        .take_while(|(a, b)| a == b)
        .count();
    let old = old.get(head..old.len() - tail).unwrap_or_default();
    let new = new.get(head..new.len() - tail).unwrap_or_default();
    let mut edits = vec![Edit::Keep; head];
    if old.len().saturating_mul(new.len()) > LARGEST_TABLE {
        edits.extend(std::iter::repeat_n(Edit::Remove, old.len()));
        edits.extend(std::iter::repeat_n(Edit::Insert, new.len()));
    } else {
        edits.extend(middle(old, new));
    }
    edits.extend(std::iter::repeat_n(Edit::Keep, tail));
    edits
}

/// Longest common subsequence by table.
#[expect(
    clippy::indexing_slicing,
    reason = "both indices stay below the sizes of the table"
)]
fn middle(old: &[&str], new: &[&str]) -> Vec<Edit> {
    let width = new.len() + 1;
    let mut table = vec![0_u32; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            table[i * width + j] = if old[i] == new[j] {
                table[(i + 1) * width + j + 1] + 1
            } else {
                table[(i + 1) * width + j].max(table[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut edits = Vec::new();
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            edits.push(Edit::Keep);
            i += 1;
            j += 1;
        } else if j == new.len() || (i < old.len() && table[(i + 1) * width + j] >= table[i * width + j + 1])
        {
            edits.push(Edit::Remove);
            i += 1;
        } else {
            edits.push(Edit::Insert);
            j += 1;
        }
    }
    edits
}

/// Ranges of edits to show together.
fn hunks(edits: &[Edit]) -> Vec<std::ops::Range<usize>> {
    let mut hunks: Vec<std::ops::Range<usize>> = Vec::new();
    for (at, _) in edits.iter().enumerate().filter(|(_, edit)| **edit != Edit::Keep) {
        let start = at.saturating_sub(CONTEXT);
        let end = (at + CONTEXT + 1).min(edits.len());
        match hunks.last_mut() {
            Some(last) if start <= last.end => last.end = end,
            _ => hunks.push(start..end),
        }
    }
    hunks
}

fn write_hunk(out: &mut String, edits: &[Edit], hunk: std::ops::Range<usize>, old: &[&str], new: &[&str]) {
    let count = |edits: &[Edit], without: Edit| edits.iter().filter(|edit| **edit != without).count();
    let before = edits.get(..hunk.start).unwrap_or_default();
    let shown = edits.get(hunk).unwrap_or_default();
    let (mut i, mut j) = (count(before, Edit::Insert), count(before, Edit::Remove));
    let (removed, inserted) = (count(shown, Edit::Insert), count(shown, Edit::Remove));
    let _ = writeln!(out, "@@ -{},{removed} +{},{inserted} @@", i + 1, j + 1);
    for edit in shown {
        let (sign, line) = match edit {
            Edit::Keep => (' ', old.get(i)),
            Edit::Remove => ('-', old.get(i)),
            Edit::Insert => ('+', new.get(j)),
        };
        i += usize::from(*edit != Edit::Insert);
        j += usize::from(*edit != Edit::Remove);
        let line = line.copied().unwrap_or_default();
        out.push(sign);
        out.push_str(line);
        if !line.ends_with('\n') {
            out.push_str("\n\\ No newline at end of file\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::unified;

    #[test]
    fn equal_texts_have_no_diff() {
        assert_eq!(unified(["a", "b"], "x\n", "x\n"), "");
    }

    #[test]
    fn changes_are_shown_with_context() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n";
        let new = "1\n2\nthree\n4\n5\n6\n7\n8\n9\n10\n11\n12";
        insta::assert_snapshot!(unified(["src/A.bt", "src/A.bt"], old, new));
    }

    #[test]
    fn texts_may_be_empty() {
        assert_eq!(
            unified(["a", "b"], "", "x\n"),
            "--- a\n+++ b\n@@ -1,0 +1,1 @@\n+x\n"
        );
    }
}
