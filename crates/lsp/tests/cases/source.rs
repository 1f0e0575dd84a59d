//! A case: files with a marker in one of them.

use serde_json::{Value, json};

const PLACE: char = '‸';
const FROM: char = '«';
const TO: char = '»';

pub(crate) struct Case {
    /// Paths and texts without markers.
    pub(crate) files: Vec<(String, String)>,
    /// The file with the marker, or the last one.
    pub(crate) marked: String,
    place: Option<usize>,
    selection: Option<(usize, usize)>,
    options: Vec<(String, String)>,
}

impl Case {
    pub(crate) fn new(text: &str) -> Self {
        let mut case = Self {
            files: Vec::new(),
            marked: String::new(),
            place: None,
            selection: None,
            options: Vec::new(),
        };
        let mut name = "src/Main.bt".to_owned();
        let mut content = String::new();
        for line in text.split_inclusive('\n') {
            if let Some((key, value)) = line.strip_prefix("//! ").and_then(|rest| rest.split_once(':')) {
                case.options
                    .push((key.trim().to_owned(), value.trim().to_owned()));
            } else if let Some(path) = line.strip_prefix("//- ") {
                case.add(&name, std::mem::take(&mut content));
                path.trim().clone_into(&mut name);
            } else {
                content.push_str(line);
            }
        }
        case.add(&name, content);
        if case.marked.is_empty() {
            let (name, _) = case.files.last().unwrap();
            case.marked.clone_from(name);
        }
        case
    }

    fn add(&mut self, name: &str, text: String) {
        if text.is_empty() && self.files.is_empty() && name == "src/Main.bt" {
            return;
        }
        let mut plain = String::new();
        let mut start = 0;
        for c in text.chars() {
            match c {
                PLACE => self.place = Some(plain.len()),
                FROM => start = plain.len(),
                TO => self.selection = Some((start, plain.len())),
                _ => {
                    plain.push(c);
                    continue;
                }
            }
            name.clone_into(&mut self.marked);
        }
        self.files.push((name.to_owned(), plain));
    }

    pub(crate) fn option(&self, key: &str) -> Option<&str> {
        let mut options = self.options.iter();
        options
            .find(|(known, _)| known == key)
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self, path: &str) -> &str {
        let mut files = self.files.iter();
        files
            .find(|(known, _)| known == path)
            .map_or("", |(_, text)| text)
    }

    /// Columns in UTF-16, which every client speaks.
    fn place_of(&self, offset: usize) -> Value {
        let before = &self.text(&self.marked)[..offset];
        let line = before.matches('\n').count();
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        json!({"line": line, "character": before[start..].encode_utf16().count()})
    }

    pub(crate) fn position(&self) -> Value {
        self.place_of(self.place.expect("the case has a marker"))
    }

    pub(crate) fn selection(&self) -> Option<Value> {
        let (start, end) = self.selection?;
        Some(json!({"start": self.place_of(start), "end": self.place_of(end)}))
    }

    pub(crate) fn everything(&self) -> Value {
        json!({"start": self.place_of(0), "end": self.place_of(self.text(&self.marked).len())})
    }

    /// The offset of a position of a file.
    pub(crate) fn offset(&self, path: &str, position: &Value) -> usize {
        offset(self.text(path), position)
    }
}

pub(crate) fn offset(text: &str, position: &Value) -> usize {
    let line = position["line"].as_u64().unwrap() as usize;
    let character = position["character"].as_u64().unwrap() as usize;
    let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let mut column = 0;
    let mut at = start;
    for c in text[start..].chars() {
        if column >= character || c == '\n' {
            break;
        }
        column += c.len_utf16();
        at += c.len_utf8();
    }
    at
}
