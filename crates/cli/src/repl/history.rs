//! Earlier inputs, kept in a file of the run directory: one escaped line per input.

use beamtalk_storage::{Directory, StorageError};

/// Inputs that are kept.
const KEPT: usize = 10_000;
/// How far the file may outgrow that before it is cut.
const SLACK: usize = 1_000;
const FILE: &str = "repl_history";

/// The history of a terminal. Each input is written when it is made, so that none is lost with the terminal.
#[derive(Debug)]
pub(crate) struct History {
    directory: Option<Directory>,
    last: Option<String>,
}

impl History {
    /// Open the history in this run directory; answers the earlier inputs, oldest first.
    pub(crate) fn open(directory: Option<Directory>) -> Result<(Self, Vec<String>), StorageError> {
        let bytes = match &directory {
            Some(directory) => directory.read(FILE)?.unwrap_or_default(),
            None => Vec::new(),
        };
        let mut entries = decode(&String::from_utf8_lossy(&bytes));
        if entries.len() > KEPT {
            let surplus = entries.len() - KEPT;
            entries.drain(..surplus);
            if surplus > SLACK
                && let Some(directory) = &directory
            {
                undisturbed(directory.write_atomically(FILE, encode_all(&entries).as_bytes(), 0o600))?;
            }
        }
        let last = entries.last().cloned();
        Ok((Self { directory, last }, entries))
    }

    /// Record an input. Answers whether it is a new entry: repetitions and inputs with a blank before them are not.
    pub(crate) fn add(&mut self, input: &str) -> Result<bool, StorageError> {
        if !is_recorded(self.last.as_deref(), input) {
            return Ok(false);
        }
        self.last = Some(input.to_owned());
        if let Some(directory) = &self.directory {
            use std::io::Write;
            if let Some(mut file) = undisturbed(directory.append(FILE))? {
                drop(file.write_all(encode(input).as_bytes()));
            }
        }
        Ok(true)
    }
}

/// A disk that is full or cannot be written is no reason to disturb the work; a file that is not ours is.
fn undisturbed<T>(done: Result<T, StorageError>) -> Result<Option<T>, StorageError> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(StorageError::File { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_recorded(last: Option<&str>, input: &str) -> bool {
    !input.trim().is_empty() && !input.starts_with(char::is_whitespace) && last != Some(input)
}

fn encode(entry: &str) -> String {
    format!("{}\n", entry.replace('\\', "\\\\").replace('\n', "\\n"))
}

fn encode_all(entries: &[String]) -> String {
    entries.iter().map(|entry| encode(entry)).collect()
}

fn decode(text: &str) -> Vec<String> {
    text.lines()
        .filter(|line| !line.is_empty())
        .map(|line| {
            let mut entry = String::with_capacity(line.len());
            let mut characters = line.chars();
            while let Some(character) = characters.next() {
                match character {
                    '\\' => match characters.next() {
                        Some('n') => entry.push('\n'),
                        Some(other) => entry.push(other),
                        None => entry.push('\\'),
                    },
                    other => entry.push(other),
                }
            }
            entry
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_survive_the_file() {
        let entries = [
            "1 + 2",
            "Actor subclass: A\n  b => \"\\n\"",
            "back\\slash",
            "ü — x",
        ]
        .map(str::to_owned);
        assert_eq!(decode(&encode_all(&entries)), entries);
        assert_eq!(decode("\n\n"), Vec::<String>::new());
    }

    #[test]
    fn a_full_disk_does_not_end_the_session_and_a_planted_link_does() {
        let full = StorageError::file("write", "/h/repl_history")(std::io::Error::from_raw_os_error(28));
        assert!(undisturbed::<()>(Err(full)).unwrap().is_none());
        let link = StorageError::Symlink {
            path: "/h/repl_history".into(),
        };
        assert!(undisturbed::<()>(Err(link)).is_err());
    }

    #[test]
    fn repetitions_and_indented_inputs_are_not_recorded() {
        assert!(is_recorded(None, "x"));
        assert!(is_recorded(Some("y"), "x"));
        assert!(!is_recorded(Some("x"), "x"));
        assert!(!is_recorded(None, " secret"));
        assert!(!is_recorded(None, "  "));
    }
}
