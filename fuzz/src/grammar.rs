//! Texts of a form: rules whose alternatives are chosen by bytes.

/// A sequence of choices; when the bytes are used up every choice is the first.
pub struct Entropy<'a> {
    bytes: &'a [u8],
}

impl<'a> Entropy<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    fn below(&mut self, limit: usize) -> usize {
        match self.bytes.split_first() {
            Some((first, rest)) => {
                self.bytes = rest;
                *first as usize % limit.max(1)
            }
            None => 0,
        }
    }
}

/// Rules by name. `<name>` in an alternative is another rule; the first alternative of a rule should be a short one, as it
/// is taken when the choices run out or the text is deep.
pub struct Grammar(pub &'static [(&'static str, &'static [&'static str])]);

/// Deeper rules take their first alternative.
const DEPTH: usize = 24;
/// Longer texts reach nothing new.
const LENGTH: usize = 1024;

impl Grammar {
    /// The text that the choices lead to from the first rule.
    pub fn text(&self, choices: &mut Entropy<'_>) -> String {
        let mut out = String::new();
        if let Some((name, _)) = self.0.first() {
            self.expand(name, choices, DEPTH, &mut out);
        }
        out
    }

    fn expand(&self, name: &str, choices: &mut Entropy<'_>, depth: usize, out: &mut String) {
        let Some((_, alternatives)) = self.0.iter().find(|(known, _)| *known == name) else {
            panic!("the grammar has no rule <{name}>");
        };
        let chosen = if depth == 0 || out.len() > LENGTH {
            0
        } else {
            choices.below(alternatives.len())
        };
        let mut rest = alternatives[chosen];
        while let Some(at) = rest.find('<') {
            let end = rest[at..].find('>').map(|end| at + end);
            let rule = end.map(|end| &rest[at + 1..end]);
            match rule
                .filter(|rule| !rule.is_empty() && rule.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'))
            {
                Some(rule) if depth > 0 => {
                    out.push_str(&rest[..at]);
                    self.expand(rule, choices, depth - 1, out);
                    rest = &rest[at + rule.len() + 2..];
                }
                Some(rule) => {
                    out.push_str(&rest[..at]);
                    rest = &rest[at + rule.len() + 2..];
                }
                None => {
                    out.push_str(&rest[..=at]);
                    rest = &rest[at + 1..];
                }
            }
        }
        out.push_str(rest);
    }
}
