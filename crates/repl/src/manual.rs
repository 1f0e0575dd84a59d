//! The pages that `:help` shows beside those the image has of its classes.

/// Whoever has the user guide.
pub trait Manual: Send + Sync {
    /// A page of the guide or of a code, as Markdown.
    fn page(&self, topic: &str) -> Option<String>;

    /// The pages of the guide, with one line about each.
    fn topics(&self) -> Vec<(&'static str, &'static str)>;

    /// The codes of findings.
    fn codes(&self) -> Vec<&'static str>;

    /// Names that stand for one object each, and its class, whose messages are its own.
    fn singletons(&self) -> &'static [(&'static str, &'static str)];

    /// What the classes of the library are about, with their names, one blank between two.
    fn subjects(&self) -> &'static [(&'static str, &'static str)];
}

/// A guide of one page and one code.
#[cfg(test)]
pub(crate) struct Small;

#[cfg(test)]
impl Manual for Small {
    fn page(&self, topic: &str) -> Option<String> {
        match topic {
            "supervisors" => Some("# Supervisors\n".to_owned()),
            "E0201" => Some("# E0201 (error)\n".to_owned()),
            _ => None,
        }
    }

    fn topics(&self) -> Vec<(&'static str, &'static str)> {
        vec![("supervisors", "what happens when processes end")]
    }

    fn codes(&self) -> Vec<&'static str> {
        vec!["E0201"]
    }

    fn singletons(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("Workspace", "WorkspaceInterface"),
            ("Transcript", "TranscriptStream"),
        ]
    }

    fn subjects(&self) -> &'static [(&'static str, &'static str)] {
        &[("Numbers", "Number Integer")]
    }
}
