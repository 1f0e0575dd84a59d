//! What is written to the files of a class in the agents' tree.

/// The first line of a new class that names its file.
const FILE_LINE: &str = "//file ";
/// The word that says in a class body on which side a method is.
const CLASS_SIDE: &str = "class ";

/// The file that the first line names, and the text after it.
pub fn named_file(text: &str) -> Option<(&str, &str)> {
    let (path, source) = text.strip_prefix(FILE_LINE)?.split_once('\n')?;
    Some((path.trim(), source))
}

/// The first class that a text defines.
pub fn declared(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("subclass:")?;
    let rest = rest.trim_start();
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'));
    let name = rest.get(..end.unwrap_or(rest.len()))?;
    (!name.is_empty()).then_some(name)
}

/// A method's text without the word for its side, and the line that had it.
pub fn without_side(source: &str) -> (String, Option<u32>) {
    let mut start = 0;
    for (number, line) in (1..).zip(source.split_inclusive('\n')) {
        let head = line.trim_start();
        if !head.is_empty() && !head.starts_with("//") {
            let at = start + line.len() - head.len();
            let (Some(before), Some(after)) = (source.get(..at), head.strip_prefix(CLASS_SIDE)) else {
                break;
            };
            let rest = source.get(start + line.len()..).unwrap_or_default();
            return (format!("{before}{after}{rest}"), Some(number));
        }
        start += line.len();
    }
    (source.to_owned(), None)
}
