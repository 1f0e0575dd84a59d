//! Comparing what an input did with what its script expects.

/// What an input did.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It answered a value, or printed an echo. Strings and symbols have a human form as well.
    Shown {
        printed: String,
        displayed: Option<String>,
    },
    Raised(Raised),
    /// It did not compile; the messages of its errors.
    Refused(Vec<String>),
    /// It took too long, or the script ended before it.
    NotRun(String),
}

/// An error as the node reports it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Raised {
    pub kind: String,
    pub tag: Option<String>,
    pub message: String,
    /// What a person is told instead of the message, with a hint.
    pub told: String,
    pub hint: Option<String>,
    pub printed: String,
    pub frames: Vec<String>,
}

impl Raised {
    /// An error as a workspace answers it. `standard` is its message where a person is told another one.
    pub fn answered(
        kind: String,
        told: String,
        standard: Option<&str>,
        hint: Option<String>,
        tag: Option<&str>,
    ) -> Self {
        let message = standard.unwrap_or(&told).to_owned();
        let printed = match &hint {
            Some(hint) => format!("{message}\nHint: {hint}"),
            None => message.clone(),
        };
        Self {
            kind,
            tag: tag.map(str::to_owned),
            message,
            told,
            hint,
            printed,
            frames: Vec::new(),
        }
    }
}

impl Outcome {
    /// A value that is known only as it prints.
    pub fn printed(printed: String) -> Self {
        Self::Shown {
            displayed: displayed(&printed),
            printed,
        }
    }

    /// What a person is told of it.
    pub fn describe(&self) -> String {
        match self {
            Self::Shown { printed, .. } => printed.clone(),
            Self::Raised(raised) => {
                let frames: Vec<String> = raised
                    .frames
                    .iter()
                    .take(5)
                    .map(|frame| format!("\n      at {frame}"))
                    .collect();
                let hint = raised
                    .hint
                    .as_ref()
                    .map_or_else(String::new, |hint| format!("\n      Hint: {hint}"));
                format!(
                    "ERROR: {} ({}){hint}{}",
                    raised.told.replace('\n', "\n      "),
                    raised.kind,
                    frames.concat()
                )
            }
            Self::Refused(messages) => format!("ERROR: {}", messages.join("; ")),
            Self::NotRun(reason) => reason.clone(),
        }
    }

    /// Whether it is what an input should do: what is expected of it, else no error.
    pub fn is_right(&self, expectation: Option<&Expectation>, diagnostics: &[String]) -> bool {
        match expectation {
            Some(expectation) => expectation.is_met(self, diagnostics),
            None => matches!(self, Self::Shown { .. }),
        }
    }
}

/// The human form of a printed String or Symbol.
fn displayed(printed: &str) -> Option<String> {
    if let Some(inner) = printed.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        return Some(inner.replace("\"\"", "\""));
    }
    let symbol = printed.strip_prefix('#')?;
    if let Some(quoted) = symbol.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        return Some(quoted.replace("''", "'"));
    }
    let is_literal =
        symbol.starts_with(['(', '[', '{']) || symbol.contains(['<', ' ']) && symbol.ends_with('>');
    (!is_literal).then(|| symbol.to_owned())
}

/// The text after `// =>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// Any value, but no error.
    Anything,
    Text(String),
    Error(String),
    Warning(String),
    NoWarning(String),
}

impl Expectation {
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        let after = |prefix: &str| text.strip_prefix(prefix).map(|rest| rest.trim().to_owned());
        if text == "_" {
            Expectation::Anything
        } else if let Some(rest) = after("ERROR:") {
            Expectation::Error(rest)
        } else if let Some(rest) = after("WARNING:") {
            Expectation::Warning(rest)
        } else if let Some(rest) = after("NO-WARNING:") {
            Expectation::NoWarning(rest)
        } else {
            Expectation::Text(text.to_owned())
        }
    }

    /// As it stands in the script.
    pub fn shown(&self) -> String {
        match self {
            Expectation::Anything => "_".to_owned(),
            Expectation::Text(text) => text.clone(),
            Expectation::Error(text) => format!("ERROR: {text}"),
            Expectation::Warning(text) => format!("WARNING: {text}"),
            Expectation::NoWarning(text) => format!("NO-WARNING: {text}"),
        }
    }

    /// Whether the outcome is as expected; `diagnostics` are the messages the compiler gave.
    pub fn is_met(&self, outcome: &Outcome, diagnostics: &[String]) -> bool {
        match self {
            Expectation::Anything => matches!(outcome, Outcome::Shown { .. }),
            Expectation::Text(wanted) => match outcome {
                Outcome::Shown { printed, displayed } => {
                    matches(wanted, printed) || displayed.as_ref().is_some_and(|text| matches(wanted, text))
                }
                Outcome::Raised(_) | Outcome::Refused(_) | Outcome::NotRun(_) => false,
            },
            Expectation::Error(wanted) => match outcome {
                Outcome::Raised(raised) => {
                    raised.kind == *wanted
                        || raised.tag.as_deref() == Some(wanted)
                        || occurs(wanted, &raised.printed)
                        || occurs(wanted, &raised.message)
                }
                // A kind such as `undefined_variable` is found in `Undefined variable: x` as well.
                Outcome::Refused(messages) => messages.iter().any(|message| {
                    occurs(wanted, message)
                        || message
                            .to_lowercase()
                            .contains(&wanted.replace('_', " ").to_lowercase())
                }),
                Outcome::Shown { .. } | Outcome::NotRun(_) => false,
            },
            Expectation::Warning(wanted) => diagnostics.iter().any(|message| occurs(wanted, message)),
            Expectation::NoWarning(wanted) => !diagnostics.iter().any(|message| occurs(wanted, message)),
        }
    }
}

/// Compare a text with a pattern whose `_` stand for any text. An underscore between letters or digits
/// is itself.
fn matches(pattern: &str, text: &str) -> bool {
    let text = text.trim();
    if pattern.trim() == text {
        return true;
    }
    let parts = fixed_parts(pattern.trim());
    let [first, middle @ .., last] = parts.as_slice() else {
        return parts.first().is_some_and(|only| only.trim() == text);
    };
    let Some(mut rest) = text.strip_prefix(first.as_str()) else {
        return false;
    };
    for part in middle {
        match rest.find(part.as_str()) {
            Some(at) => rest = rest.get(at + part.len()..).unwrap_or(""),
            None => return false,
        }
    }
    rest.len() >= last.len() && rest.ends_with(last.as_str())
}

/// Whether a text contains the pattern, as it is written or with its `_` standing for any text.
fn occurs(pattern: &str, text: &str) -> bool {
    if text.contains(pattern) {
        return true;
    }
    let mut rest = text;
    fixed_parts(pattern)
        .iter()
        .all(|part| match rest.find(part.as_str()) {
            Some(at) => {
                rest = rest.get(at + part.len()..).unwrap_or("");
                true
            }
            None => false,
        })
}

/// The parts between wildcards, with escapes turned into their characters.
fn fixed_parts(pattern: &str) -> Vec<String> {
    let characters: Vec<char> = pattern.chars().collect();
    let mut parts = vec![String::new()];
    let push = |parts: &mut Vec<String>, c: char| {
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    };
    let mut at = 0;
    while let Some(c) = characters.get(at).copied() {
        let next = characters.get(at + 1).copied();
        let escaped = match (c, next) {
            ('\\', Some('n')) => Some('\n'),
            ('\\', Some('t')) => Some('\t'),
            ('\\', Some('\\')) => Some('\\'),
            ('\\', Some('"')) => Some('"'),
            _ => None,
        };
        if let Some(escaped) = escaped {
            push(&mut parts, escaped);
            at += 2;
            continue;
        }
        let before = at.checked_sub(1).and_then(|before| characters.get(before));
        let is_inside =
            before.is_some_and(|c| c.is_alphanumeric()) && next.is_some_and(char::is_alphanumeric);
        if c == '_' && !is_inside {
            parts.push(String::new());
        } else {
            push(&mut parts, c);
        }
        at += 1;
    }
    parts
}

#[cfg(test)]
mod tests;
