//! API documentation as a set of HTML pages that need no server and load nothing from elsewhere.
//!
//! Pure: parsed sources in, names and texts of pages out. Everything that comes from a source is escaped; a policy in
//! each page forbids every script but its own.

mod class_page;
mod highlight;
mod html;
mod index_page;
mod markdown;
mod model;
mod navigation;

use std::collections::{BTreeMap, BTreeSet};

use crate::site::html::{Page, escape};
pub use crate::site::model::{Entry, Kind, entries};

/// What the standard library is called among the packages.
const LIBRARY: &str = "Standard library";

/// What a package has pages for.
struct Package<'a> {
    title: String,
    is_library: bool,
    entries: Vec<&'a Entry>,
}

/// What a site is made of.
#[derive(Debug, Default)]
pub struct Site {
    pub title: String,
    /// Every class, protocol and alias that is known, by name.
    pub entries: BTreeMap<String, Entry>,
    /// The names that have a page.
    pub documented: BTreeSet<String>,
    /// What the package adds to classes that have no page of their own.
    pub extensions: BTreeMap<String, Entry>,
    /// The sources that have a page: path and text.
    pub sources: BTreeMap<String, String>,
    /// Markdown pages: name and text. The one named `index` stands on the first page.
    pub guide: BTreeMap<String, String>,
}

impl Site {
    /// The pages: path below the output directory, and content.
    pub fn pages(&self) -> BTreeMap<String, String> {
        let mut pages = BTreeMap::new();
        pages.insert("index.html".to_owned(), index_page::render(self));
        for entry in self.shown() {
            pages.insert(format!("{}.html", entry.name), class_page::render(self, entry));
        }
        for (path, text) in &self.sources {
            pages.insert(format!("source/{path}.html"), source_page(self, path, text));
        }
        for (name, text) in self.guide.iter().filter(|(name, _)| *name != "index") {
            // Pages of the guide lie beside each other.
            let link = |name: &str| {
                let address = self.link(name, "../")?;
                Some(address.strip_prefix("../guide/").unwrap_or(&address).to_owned())
            };
            let body = markdown::page(text, &link);
            let path = format!("guide/{name}.html");
            let title = self.guide_title(name);
            let page = Page::new(self, &title, &path).with_body(&body).to_string();
            pages.insert(path, page);
        }
        pages
    }

    /// Add the declarations of a file; internal ones have no page.
    pub fn add(&mut self, entry: Entry, is_shown: bool) {
        if is_shown && !entry.is_internal {
            self.documented.insert(entry.name.clone());
        }
        self.entries.entry(entry.name.clone()).or_insert(entry);
    }

    /// Methods added to a class, once all classes are known.
    pub fn extend(&mut self, extension: Entry) {
        let known = match self.entries.get_mut(&extension.name) {
            Some(entry) if self.documented.contains(&extension.name) => entry,
            _ => {
                let name = extension.name.clone();
                self.extensions.entry(name).or_insert_with(|| Entry {
                    members: Vec::new(),
                    ..extension.clone()
                })
            }
        };
        known.members.extend(extension.members);
    }

    /// Everything that has a page, by name.
    fn shown(&self) -> Vec<&Entry> {
        let own = self.documented.iter().filter_map(|name| self.entries.get(name));
        let mut all: Vec<&Entry> = own.chain(self.extensions.values()).collect();
        all.sort_by_key(|entry| &entry.name);
        all
    }

    /// The address of a class, or of a page of the guide, from a page `up` directories below the first.
    fn link(&self, name: &str, up: &str) -> Option<String> {
        if let Some(stem) = name.strip_suffix(".md") {
            let is_page = self.guide.contains_key(stem) && stem != "index";
            return is_page.then(|| format!("{up}guide/{}.html", html::address(stem)));
        }
        self.documented.contains(name).then(|| format!("{up}{name}.html"))
    }

    /// The name of a class, with a link where it has a page.
    fn class_name(&self, name: &str) -> String {
        match self.link(name, "") {
            Some(address) => format!("<a href=\"{address}\">{}</a>", escape(name)),
            None => escape(name),
        }
    }

    /// The class and its ancestors as far as they are known, nearest first.
    fn ancestors<'a>(&'a self, entry: &'a Entry) -> Vec<&'a Entry> {
        let mut chain: Vec<&Entry> = Vec::new();
        let mut next = entry.superclass.as_ref().and_then(|name| self.entries.get(name));
        while let Some(ancestor) = next {
            if ancestor.name == entry.name || chain.iter().any(|seen| seen.name == ancestor.name) {
                break;
            }
            chain.push(ancestor);
            next = ancestor
                .superclass
                .as_ref()
                .and_then(|name| self.entries.get(name));
        }
        chain
    }
}

/// A source text with a mark for each line.
fn source_page(site: &Site, path: &str, text: &str) -> String {
    let mut body = format!("<h1>{}</h1>\n<pre class=\"source\">", escape(path));
    for (at, line) in highlight::render(text).lines().enumerate() {
        let number = at + 1;
        body += &format!("<span id=\"L{number}\"><a href=\"#L{number}\">{number:>5}</a>  {line}</span>\n");
    }
    body += "</pre>";
    let page = format!("source/{path}.html");
    Page::new(site, path, &page).with_body(&body).to_string()
}

#[cfg(test)]
mod tests;
