//! Commands as they are written to control files. Whoever decides what they may do reads them here, as whoever does
//! them.

/// The words of every command of one write, or nothing where a quote stays open. A command is a line, or several where a
/// quoted text has lines of its own; an empty line is a command without words.
pub fn commands(text: &str) -> Option<Vec<Vec<String>>> {
    let mut commands = Vec::new();
    let mut lines = text.split('\n').peekable();
    while let Some(line) = lines.next() {
        // The end of the last line begins no other.
        if line.is_empty() && lines.peek().is_none() && !commands.is_empty() {
            break;
        }
        let mut command = line.to_owned();
        let words = loop {
            if let Some(words) = split_words(&command) {
                break words;
            }
            command.push('\n');
            command.push_str(lines.next()?);
        };
        commands.push(words);
    }
    Some(commands)
}

/// What `new` takes with a value.
pub const NEW_KEYS: [&str; 8] = [
    "sandbox", "model", "level", "alias", "role", "context", "worktree", "base",
];

/// Whether a word behind the backend of `new` is the directory.
pub fn is_directory_of_new(word: &str) -> bool {
    word != "worktree"
        && !word
            .split_once('=')
            .is_some_and(|(key, _)| NEW_KEYS.contains(&key))
}

/// Split a command line at blanks; `'…'` and `"…"` group.
pub fn split_words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut letters = line.chars().peekable();
    loop {
        while letters.next_if(|c| c.is_whitespace()).is_some() {}
        if letters.peek().is_none() {
            return Some(words);
        }
        let mut word = String::new();
        while let Some(letter) = letters.next_if(|c| !c.is_whitespace()) {
            match letter {
                '\'' => loop {
                    match letters.next()? {
                        '\'' if letters.next_if_eq(&'\'').is_some() => word.push('\''),
                        '\'' => break,
                        other => word.push(other),
                    }
                },
                '"' => loop {
                    match letters.next()? {
                        '\\' => match letters.next()? {
                            quoted @ ('"' | '\\') => word.push(quoted),
                            other => {
                                word.push('\\');
                                word.push(other);
                            }
                        },
                        '"' => break,
                        other => word.push(other),
                    }
                },
                other => word.push(other),
            }
        }
        words.push(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_at_blanks_outside_quotes() {
        assert_eq!(
            split_words("new 'a b' \"c \\\" d\" it''s").expect("words"),
            ["new", "a b", "c \" d", "its"]
        );
        assert_eq!(split_words("x 'don''t'").expect("words"), ["x", "don't"]);
        assert_eq!(
            split_words("context='one two'").expect("words"),
            ["context=one two"]
        );
        assert!(split_words("'open").is_none());
    }

    #[test]
    fn a_write_is_its_commands() {
        let found = |text: &str| commands(text).expect("commands");
        assert_eq!(found("stop\n\"kill\"\n"), [["stop"], ["kill"]]);
        assert_eq!(found("k\"il\"l"), [["kill"]]);
        assert_eq!(found("'ki\nll' x"), [["ki\nll", "x"]]);
        assert_eq!(found("a\r\nb"), [["a"], ["b"]]);
        assert_eq!(found(""), [[""; 0]]);
        assert_eq!(found("\n\n"), [[""; 0], [""; 0]]);
        assert!(commands("stop\n\"kill").is_none());
    }
}
