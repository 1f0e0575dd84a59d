//! Values whose names say that they are secret: of a variable, a field or a key, also inside of the text of another value.
//! This stops accidents, not code that wants to print a secret in another form.

use serde_json::Value;

/// What such a name has in it.
const WORDS: [&str; 4] = ["cookie", "token", "secret", "password"];
pub(crate) const MASK: &str = "***";

pub(crate) fn is_secret(name: &str) -> bool {
    let name = name.to_lowercase();
    WORDS.iter().any(|word| name.contains(word))
}

/// A value with its name, as it is printed.
pub(crate) fn named(name: &str, text: &str) -> String {
    if is_secret(name) {
        MASK.to_owned()
    } else {
        masked(text)
    }
}

/// A value as JSON, whose texts are printed values or parts of them.
pub(crate) fn masked_value(value: Value) -> Value {
    match value {
        Value::String(text) => masked(&text).into(),
        Value::Array(values) => values.into_iter().map(masked_value).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| {
                let value = if is_secret(&name) {
                    MASK.into()
                } else {
                    masked_value(value)
                };
                (name, value)
            })
            .collect(),
        other => other,
    }
}

/// Text that is JSON in every line; of another line not what its names say is secret.
pub(crate) fn masked_json(text: &str) -> String {
    let one = |line: &str| match serde_json::from_str(line) {
        Ok(value) => masked_value(value).to_string(),
        Err(_) => masked(line),
    };
    text.split('\n').map(one).collect::<Vec<_>>().join("\n")
}

/// Lines of a name and its value, which goes to the end of the line.
pub(crate) fn masked_lines(text: &str) -> String {
    let one = |line: &str| match line.split_once(": ") {
        Some((name, value)) => format!("{name}: {}", named(name, value)),
        None => masked(line),
    };
    text.split('\n').map(one).collect::<Vec<_>>().join("\n")
}

/// What a statement came to: an assignment or a variable has its name.
pub(crate) fn masked_step(source: &str, text: &str) -> String {
    let source = source.trim();
    let end = source.find(|letter: char| !(letter.is_alphanumeric() || letter == '_'));
    let (name, rest) = source.split_at(end.unwrap_or(source.len()));
    let rest = rest.trim_start();
    let is_of_variable = rest.is_empty() || rest.starts_with(":=");
    named(if is_of_variable { name } else { "" }, text)
}

/// A printed value without what stands behind such names in it: `#{"apiToken" => "x"}`, `a Login(password: "x")`.
pub(crate) fn masked(text: &str) -> String {
    masked_where(text, |lead, named| !is_prose(lead, named))
}

/// Text that code wrote, which may have printed values in it: what it says in its own words stays.
pub(crate) fn masked_output(text: &str) -> String {
    masked_where(text, |lead, _| {
        lead.trim_end_matches('#').trim_end().ends_with(['(', '{', ','])
    })
}

fn masked_where(text: &str, is_of_value: impl Fn(&str, &str) -> bool) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((name, value)) = next_pair(rest) {
        let (before, behind) = rest.split_at(value);
        kept.push_str(before);
        let (lead, named) = before.split_at(name);
        if is_secret(named) && is_of_value(lead, named) {
            kept.push_str(MASK);
            rest = behind.get(length_of_value(behind)..).unwrap_or_default();
        } else {
            rest = behind;
        }
    }
    kept.push_str(rest);
    kept
}

/// Whether a name is the last word of a sentence: `unexpected token: }`.
fn is_prose(lead: &str, named: &str) -> bool {
    let is_word_before = lead.trim_end_matches(' ').ends_with(char::is_alphanumeric);
    lead.ends_with(' ') && is_word_before && !named.contains("=>")
}

/// Where the next name begins that has a value, and where that value does.
fn next_pair(text: &str) -> Option<(usize, usize)> {
    let mut from = 0;
    loop {
        let rest = text.get(from..)?;
        let arrow = rest.find("=>").map(|at| (at, 2));
        let colon = rest.find(": ").map(|at| (at, 1));
        let (at, length) = [arrow, colon].into_iter().flatten().min()?;
        let name = rest.get(..at)?.trim_end();
        let value = from + at + length;
        let space = text.get(value..)?;
        let value = value + space.len() - space.trim_start().len();
        if let Some(start) = start_of_name(name) {
            return Some((from + start, value));
        }
        from = value;
    }
}

/// Where the name begins that ends here: in quotes, or one word.
fn start_of_name(text: &str) -> Option<usize> {
    if let Some(quoted) = text.strip_suffix('"') {
        return quoted.rfind('"');
    }
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let start = text.trim_end_matches(is_part).len();
    (start < text.len()).then_some(start)
}

/// How long the value at the beginning of a text is; all of it where it does not end, being cut.
fn length_of_value(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut is_quoted = false;
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' if is_quoted => drop(letters.next()),
            '"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 0 => return at,
            ')' | ']' | '}' => depth -= 1,
            ',' | '\n' if depth == 0 => return at,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_behind_a_secret_name_is_not_shown() {
        for (text, wanted) in [
            ("42", "42"),
            ("#{\"secretKey\" => \"v\"}", "#{\"secretKey\" => ***}"),
            (
                "#{#apiToken => #(1, 2), #count => 3}",
                "#{#apiToken => ***, #count => 3}",
            ),
            (
                "#{\"a\" => #{\"my password\" => \"x, } y\"}, \"b\" => 2}",
                "#{\"a\" => #{\"my password\" => ***}, \"b\" => 2}",
            ),
            (
                "a Login(user: \"kim\", password: \"a \\\" b\", age: 3)",
                "a Login(user: \"kim\", password: ***, age: 3)",
            ),
            ("#{\"token\" => \"cut off he…", "#{\"token\" => ***"),
            ("#{\"cookie\"=>1}", "#{\"cookie\"=>***}"),
            ("no pair: here", "no pair: here"),
            (
                "Result error: unexpected token: } in f(token: 1)",
                "Result error: unexpected token: } in f(token: ***)",
            ),
            ("token: 1\n  token: 2", "token: ***\n  token: ***"),
            ("\"=> token\"", "\"=> token\""),
            ("it => ", "it => "),
            ("=>", "=>"),
        ] {
            assert_eq!(masked(text), wanted);
        }
    }

    #[test]
    fn what_code_writes_in_its_own_words_stays() {
        for (text, wanted) in [
            (
                "token: 1\npassword: see above\n",
                "token: 1\npassword: see above\n",
            ),
            (
                "made Conf(password: \"hunter2\") and Conf(n: 1, token: 2)\n",
                "made Conf(password: ***) and Conf(n: 1, token: ***)\n",
            ),
            (
                "#{#secret => 1, #n => 2} #{ \"token\" => 3}",
                "#{#secret => ***, #n => 2} #{ \"token\" => ***}",
            ),
        ] {
            assert_eq!(masked_output(text), wanted);
        }
    }

    #[test]
    fn names_stand_beside_their_values_in_many_forms() {
        assert_eq!(masked_lines("myToken: a, b\nn: 1\n"), "myToken: ***\nn: 1\n");
        assert_eq!(
            masked_json("{\"secret\":[1],\"in\":{\"a\":\"b(password: 1)\"}}\n"),
            "{\"in\":{\"a\":\"b(password: ***)\"},\"secret\":\"***\"}\n"
        );
        for (source, wanted) in [
            ("password := \"x\"", "***"),
            ("password", "***"),
            ("password size", "1"),
            ("n := 1", "1"),
        ] {
            assert_eq!(masked_step(source, "1"), wanted, "{source}");
        }
    }

    proptest::proptest! {
        /// Whatever the text, nothing panics, and what has no such name stays as it is.
        #[test]
        fn other_texts_stay(text in "[a-z\"=>:,(){}#\\\\ é\n]{0,60}") {
            proptest::prop_assume!(!is_secret(&text));
            proptest::prop_assert_eq!(masked(&text), text);
        }
    }
}
