//! Changing one thing in the text of a manifest and nothing else: comments, layout and line ends stay.
//!
//! A change is first tried as a splice of whole lines. Where the manifest is written in another way (dotted keys, an
//! inline table), the splice does not say what it should, and the syntax tree is changed instead.

use toml_edit::{Document, DocumentMut, InlineTable, Item, Table, value};

use super::{Dependency, Manifest, Source};

/// The text with a dependency added.
pub fn add_dependency(text: &str, dependency: &Dependency) -> String {
    let is_right = |new: &str| says(new, |manifest| manifest.dependencies.contains(dependency));
    let spliced = splice_dependency(text, dependency).filter(|new| is_right(new));
    spliced.unwrap_or_else(|| {
        through_tree(text, |document| {
            let dependencies = document
                .entry("dependencies")
                .or_insert(Item::Table(Table::new()));
            if let Some(table) = dependencies.as_table_like_mut() {
                table.insert(&dependency.name, value(entry(&dependency.source)));
            }
        })
    })
}

/// The text without a dependency.
pub fn remove_dependency(text: &str, name: &str) -> String {
    let is_right = |new: &str| {
        says(new, |manifest| {
            manifest.dependencies.iter().all(|known| known.name != name)
        })
    };
    let cut = cut_dependency(text, name).filter(|new| is_right(new));
    cut.unwrap_or_else(|| {
        through_tree(text, |document| {
            if let Some(table) = document.get_mut("dependencies").and_then(Item::as_table_like_mut) {
                table.remove(name);
            }
        })
    })
}

/// The text with another version; nothing if it has none.
pub fn set_version(text: &str, version: &str) -> Option<String> {
    let document = Document::parse(text).ok()?;
    let span = document.get("package")?.get("version")?.span()?;
    let quote = text.get(span.clone())?.chars().next()?;
    let (before, after) = (text.get(..span.start)?, text.get(span.end..)?);
    Some(format!("{before}{quote}{version}{quote}{after}"))
}

fn says(text: &str, is_so: impl Fn(&Manifest) -> bool) -> bool {
    Manifest::parse(text, "").is_ok_and(|manifest| is_so(&manifest))
}

/// A line below the last entry of `[dependencies]`; a table at the end of the text if there is none.
fn splice_dependency(text: &str, dependency: &Dependency) -> Option<String> {
    let document = Document::parse(text).ok()?;
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let line = format!("{} = {}", dependency.name, entry(&dependency.source));
    let table = document
        .get("dependencies")
        .and_then(Item::as_table)
        .filter(|table| !table.is_implicit() && !table.is_dotted());
    let Some(table) = table else {
        let gap = match text.trim_end_matches(['\r', '\n']) {
            "" => "",
            kept if kept.len() == text.len() => &[newline, newline].concat(),
            _ => newline,
        };
        return Some(format!("{text}{gap}[dependencies]{newline}{line}{newline}"));
    };
    let header = table.span()?.end;
    let last = table
        .iter()
        .filter(|(_, item)| item.is_value())
        .filter_map(|(_, item)| item.span())
        .map(|span| span.end)
        .max()
        .unwrap_or(header);
    let (before, after) = text.split_at_checked(line_end(text, last))?;
    let gap = if before.ends_with('\n') { "" } else { newline };
    Some(format!("{before}{gap}{line}{newline}{after}"))
}

/// The text without the lines of an entry, which is one line or a table of its own.
fn cut_dependency(text: &str, name: &str) -> Option<String> {
    let document = Document::parse(text).ok()?;
    let table = document.get("dependencies")?.as_table()?;
    let (key, item) = table.get_key_value(name)?;
    let (start, end) = match item {
        Item::Table(own) if !own.is_dotted() => {
            let last = own
                .iter()
                .filter_map(|(_, item)| item.span())
                .map(|span| span.end);
            (own.span()?.start, last.max().unwrap_or(own.span()?.end))
        }
        _ => (key.span()?.start, item.span()?.end),
    };
    let start = text.get(..start)?.rfind('\n').map_or(0, |at| at + 1);
    let (before, after) = (text.get(..start)?, text.get(line_end(text, end)..)?);
    Some(format!("{before}{after}"))
}

/// Just behind the line that a position is on.
fn line_end(text: &str, at: usize) -> usize {
    text.get(at..)
        .and_then(|rest| rest.find('\n'))
        .map_or(text.len(), |length| at + length + 1)
}

fn through_tree(text: &str, change: impl Fn(&mut DocumentMut)) -> String {
    match text.parse::<DocumentMut>() {
        Ok(mut document) => {
            change(&mut document);
            let new = document.to_string();
            if text.contains("\r\n") && !new.contains("\r\n") {
                new.replace('\n', "\r\n")
            } else {
                new
            }
        }
        // The caller has read the manifest, so this is not reached with one that can be changed.
        Err(_) => text.to_owned(),
    }
}

fn entry(source: &Source) -> InlineTable {
    let mut table = InlineTable::new();
    match source {
        Source::Path(path) => {
            table.insert("path", path.as_str().into());
        }
        Source::Git { url, reference } => {
            let (kind, name) = reference.parts();
            table.insert("git", url.as_str().into());
            table.insert(kind, name.into());
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::{add_dependency, remove_dependency, set_version};
    use crate::manifest::{Dependency, Reference, Source};

    const TEXT: &str = "# mine\n[package]   # here\nname = \"orbit\"\nversion = '0.3.0' # keep\n\n[dependencies]\n\
                        # geometry\nvectors = { path = \"../vectors\" } # near\n\n# end\n[native]\napplications = [ ]\n";

    fn units() -> Dependency {
        Dependency {
            name: "units".to_owned(),
            source: Source::Git {
                url: "https://example.org/units.git".to_owned(),
                reference: Reference::Tag("v1.2.0".to_owned()),
            },
        }
    }

    const LINE: &str = "units = { git = \"https://example.org/units.git\", tag = \"v1.2.0\" }";

    #[test]
    fn a_dependency_is_one_more_line() {
        let new = add_dependency(TEXT, &units());
        assert_eq!(new, TEXT.replace("# near\n", &format!("# near\n{LINE}\n")));
        assert_eq!(remove_dependency(&new, "units"), TEXT);
        let crlf = TEXT.replace('\n', "\r\n");
        let new = add_dependency(&crlf, &units());
        assert_eq!(new, crlf.replace("# near\r\n", &format!("# near\r\n{LINE}\r\n")));
        assert_eq!(remove_dependency(&new, "units"), crlf);
    }

    #[test]
    fn a_table_is_made_where_there_is_none() {
        let package = "[package]\nname = \"a\"\nversion = \"1.0.0\"\n";
        assert_eq!(
            add_dependency(package, &units()),
            format!("{package}\n[dependencies]\n{LINE}\n")
        );
        assert_eq!(
            add_dependency(package.trim_end(), &units()),
            format!("{package}\n[dependencies]\n{LINE}\n")
        );
        let empty = format!("{package}\n[dependencies]");
        assert_eq!(add_dependency(&empty, &units()), format!("{empty}\n{LINE}\n"));
    }

    #[test]
    fn other_ways_to_write_it_are_understood() {
        let package = "[package]\nname = \"a\"\nversion = \"1.0.0\"\n";
        for (text, rest) in [
            (
                format!("{package}[dependencies.x]\npath = \"x\"\n"),
                package.to_owned(),
            ),
            (
                format!("dependencies = {{ x = {{ path = \"x\" }} }}\n{package}"),
                format!("dependencies = {{}}\n{package}"),
            ),
            (
                format!("dependencies.x.path = \"x\"\n{package}"),
                package.to_owned(),
            ),
            (
                format!("{package}[dependencies]\nx.path = \"x\"\n"),
                format!("{package}[dependencies]\n"),
            ),
        ] {
            assert_eq!(remove_dependency(&text, "x"), rest);
            let manifest = super::Manifest::parse(&add_dependency(&text, &units()), "").unwrap();
            assert_eq!(manifest.dependencies.len(), 2, "{text}");
        }
    }

    #[test]
    fn a_version_changes_only_itself() {
        assert_eq!(
            set_version(TEXT, "0.4.0").unwrap(),
            TEXT.replace("0.3.0", "0.4.0")
        );
    }
}
