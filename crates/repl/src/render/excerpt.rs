//! A line of the input with carets below the place of a fault.

use beamtalk_wire::answers::Diagnostic;
use unicode_width::UnicodeWidthChar;

/// Columns of a line that are shown; of a longer one those around the place.
const WIDTH: usize = 100;
/// Columns kept before the place then.
const LEAD: usize = 40;

/// Two lines, or nothing when the place is not in this input.
pub(crate) fn excerpt(input: &str, fault: &Diagnostic) -> Option<String> {
    let line = input.lines().nth(fault.line?.checked_sub(1)? as usize)?;
    let start = fault.column?.checked_sub(1)? as usize;
    let characters: Vec<char> = line.chars().collect();
    // Behind the last character is a place too: something is missing there.
    if start > characters.len() {
        return None;
    }
    let is_one_line = fault.end_line.is_none_or(|end| Some(end) == fault.line);
    let end = match fault.end_column {
        Some(end) if is_one_line => (end as usize).saturating_sub(1),
        Some(_) => characters.len(),
        None => start + 1,
    };
    let from = if characters.len() > WIDTH {
        start.saturating_sub(LEAD)
    } else {
        0
    };
    let shown: String = characters
        .iter()
        .skip(from)
        .take(WIDTH)
        .map(|character| plain(*character))
        .collect();
    let columns = |part: &[char]| {
        part.iter()
            .map(|character| plain(*character).width().unwrap_or(0))
            .sum::<usize>()
    };
    let before = columns(characters.get(from..start).unwrap_or_default());
    let below = columns(
        characters
            .get(start..end.min(from + WIDTH).max(start).min(characters.len()))
            .unwrap_or_default(),
    );
    Some(format!(
        "  {}\n  {}{}\n",
        shown.trim_end(),
        " ".repeat(before),
        "^".repeat(below.max(1))
    ))
}

/// Control characters take one column and do nothing.
fn plain(character: char) -> char {
    if character.is_control() { ' ' } else { character }
}

#[cfg(test)]
mod tests {
    use beamtalk_wire::answers::Diagnostic;
    use serde_json::{Value, json};

    use super::excerpt;

    fn below(input: &str, place: Value) -> Option<String> {
        let mut fault = json!({"severity": "error", "message": "m"});
        if let (Some(fault), Value::Object(place)) = (fault.as_object_mut(), place) {
            fault.extend(place);
        }
        let fault: Diagnostic = serde_json::from_value(fault).expect("a diagnostic");
        excerpt(input, &fault)
    }

    #[test]
    fn carets_stand_below_the_place() {
        let one = |line: u32, from: u32, to: u32| json!({"line": line, "column": from, "end_line": line, "end_column": to});
        assert_eq!(
            below("1 + foo bar", one(1, 5, 8)).as_deref(),
            Some("  1 + foo bar\n      ^^^\n")
        );
        assert_eq!(
            below("x := #(1,\n 2 3)", one(2, 4, 5)).as_deref(),
            Some("   2 3)\n     ^\n")
        );
        // At the end, in wide characters, behind a tab, over several lines.
        assert_eq!(below("1 +", one(1, 4, 4)).as_deref(), Some("  1 +\n     ^\n"));
        assert_eq!(
            below("\"日本\" x", one(1, 6, 7)).as_deref(),
            Some("  \"日本\" x\n         ^\n")
        );
        assert_eq!(below("\tab", one(1, 2, 4)).as_deref(), Some("   ab\n   ^^\n"));
        let two = json!({"line": 1, "column": 6, "end_line": 2, "end_column": 2});
        assert_eq!(below("x := [\n1", two).as_deref(), Some("  x := [\n       ^\n"));
    }

    #[test]
    fn a_long_line_is_cut_around_the_place() {
        let input = format!("{}foo{}", "a ".repeat(200), " b".repeat(200));
        let shown = below(
            &input,
            json!({"line": 1, "column": 401, "end_line": 1, "end_column": 404}),
        )
        .expect("shown");
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[0].find("foo"), lines[1].find("^^^"));
        assert!(lines[0].len() <= 102, "{shown}");
    }

    #[test]
    fn a_place_elsewhere_shows_nothing() {
        for place in [
            json!({}),
            json!({"line": 9, "column": 1}),
            json!({"line": 1, "column": 0}),
            json!({"line": 1, "column": 7}),
        ] {
            assert_eq!(below("1 + 2", place.clone()), None, "{place}");
        }
    }
}
