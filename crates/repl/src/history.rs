//! Earlier inputs, kept in a file of the workspace's directory: one escaped line per input.
//!
//! All terminals of a project share the file. Each input is appended when it is made, under a lock, and what others
//! appended meanwhile is taken in with the next prompt.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};

use beamtalk_storage::{Directory, StorageError};

/// Inputs that are kept.
const KEPT: usize = 10_000;
/// How far the file may outgrow that before it is cut.
const SLACK: usize = 1_000;
const FILE: &str = "repl_history";
/// Taken by whoever appends and by whoever cuts, since cutting puts another file in the place of this one.
const LOCK: &str = "repl_history.lock";

/// The history of a terminal.
#[derive(Debug)]
pub struct History {
    directory: Option<Directory>,
    last: Option<String>,
    /// Bytes of the file that this terminal knows.
    known: u64,
    /// Of other terminals, not yet asked for.
    news: Vec<String>,
}

impl History {
    /// Open the history in this directory; answers the earlier inputs, oldest first.
    pub fn open(directory: Option<Directory>) -> Result<(Self, Vec<String>), StorageError> {
        let mut history = Self {
            directory,
            last: None,
            known: 0,
            news: Vec::new(),
        };
        let Some(directory) = history.directory.clone() else {
            return Ok((history, Vec::new()));
        };
        let _lock = lock(&directory)?;
        let bytes = directory.read(FILE)?.unwrap_or_default();
        history.known = bytes.len() as u64;
        let mut entries = decode(&String::from_utf8_lossy(&bytes));
        if entries.len() > KEPT {
            let surplus = entries.len() - KEPT;
            entries.drain(..surplus);
            if surplus > SLACK {
                let cut = encode_all(&entries);
                if undisturbed(directory.write_atomically(FILE, cut.as_bytes(), 0o600))?.is_some() {
                    history.known = cut.len() as u64;
                }
            }
        }
        history.last = entries.last().cloned();
        Ok((history, entries))
    }

    /// What other terminals recorded since this was asked last.
    pub(crate) fn news(&mut self) -> Result<Vec<String>, StorageError> {
        self.take_in()?;
        Ok(std::mem::take(&mut self.news))
    }

    /// Read what was appended since.
    fn take_in(&mut self) -> Result<(), StorageError> {
        let Some(directory) = &self.directory else {
            return Ok(());
        };
        let Some(Some(mut file)) = undisturbed(directory.open(FILE))? else {
            return Ok(());
        };
        let size = file.metadata().map_or(self.known, |about| about.len());
        if size < self.known {
            // It was cut: what is left of it is known, but for the last few that the next start shows.
            self.known = size;
        }
        let mut bytes = Vec::new();
        if size == self.known
            || file.seek(SeekFrom::Start(self.known)).is_err()
            || file.read_to_end(&mut bytes).is_err()
        {
            return Ok(());
        }
        // A line that is being written is taken in the next time.
        let end = bytes.iter().rposition(|byte| *byte == b'\n');
        bytes.truncate(end.map_or(0, |at| at + 1));
        self.known += bytes.len() as u64;
        let entries = decode(&String::from_utf8_lossy(&bytes));
        if let Some(last) = entries.last() {
            self.last = Some(last.clone());
        }
        self.news.extend(entries);
        Ok(())
    }

    /// Record an input. Answers whether it is a new entry: repetitions and inputs with a blank before them are not.
    pub(crate) fn add(&mut self, input: &str) -> Result<bool, StorageError> {
        if !is_recorded(self.last.as_deref(), input) {
            return Ok(false);
        }
        if let Some(directory) = self.directory.clone() {
            let _lock = lock(&directory)?;
            self.take_in()?;
            if let Some(mut file) = undisturbed(directory.append(FILE))? {
                let line = encode(input);
                // In one piece: a terminal that is killed leaves a whole line or none.
                if file.write_all(line.as_bytes()).is_ok() {
                    self.known += line.len() as u64;
                }
            }
        }
        self.last = Some(input.to_owned());
        Ok(true)
    }
}

/// Held until it is dropped; `None` where the disk does not give one.
fn lock(directory: &Directory) -> Result<Option<File>, StorageError> {
    let file = undisturbed(directory.append(LOCK))?;
    Ok(file.filter(|file| file.lock().is_ok()))
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
    fn two_terminals_share_what_they_record() {
        let place = tempfile::tempdir().unwrap();
        let state = beamtalk_storage::StateDirectory::open(Some(place.path().join("home"))).unwrap();
        let directory = state.directory("kept").unwrap();
        let (mut one, earlier) = History::open(Some(directory.clone())).unwrap();
        assert!(earlier.is_empty());
        let (mut two, _) = History::open(Some(directory.clone())).unwrap();
        assert!(one.add("1").unwrap());
        assert!(two.add("2\n3").unwrap());
        assert_eq!(two.news().unwrap(), ["1"], "before its own, and its own is none");
        assert_eq!(one.news().unwrap(), ["2\n3"]);
        assert!(one.news().unwrap().is_empty());
        let threads = (0..4).map(|thread| {
            let (mut history, _) = History::open(Some(directory.clone())).unwrap();
            std::thread::spawn(move || {
                for number in 0..50 {
                    history.add(&format!("{thread} * {number}")).unwrap();
                }
            })
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(one.news().unwrap().len(), 200);
        let (_, all) = History::open(Some(directory)).unwrap();
        assert_eq!(all.len(), 202);
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
