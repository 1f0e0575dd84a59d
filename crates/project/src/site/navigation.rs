//! The list of everything at the side of each page: the guide, the project's packages, the library.

use super::html::{address, escape};
use super::{Package, Site};

pub(super) fn render(site: &Site, here: &str) -> String {
    let up = "../".repeat(here.matches('/').count());
    let mut out = String::from("<nav aria-label=\"Contents\">\n");
    let guide: Vec<(String, String)> = site
        .guide
        .keys()
        .filter(|name| *name != "index")
        .map(|name| (format!("guide/{name}.html"), site.guide_title(name)))
        .collect();
    if !guide.is_empty() {
        out += &section("Guide", guide, here, &up, true);
    }
    for package in site.packages() {
        let links = package
            .entries
            .iter()
            .map(|entry| (format!("{}.html", entry.name), entry.name.clone()))
            .collect();
        out += &section(&package.title, links, here, &up, !package.is_library);
    }
    out + "</nav>\n"
}

/// A list of pages under a title; a long one is open only where the reader is in it.
fn section(title: &str, links: Vec<(String, String)>, here: &str, up: &str, is_own: bool) -> String {
    let is_open = is_own || links.iter().any(|(page, _)| page == here);
    let open = if is_open { " open" } else { "" };
    let mut out = format!("<details{open}><summary>{}</summary>\n<ul>\n", escape(title));
    for (page, name) in links {
        let current = if page == here {
            " aria-current=\"page\""
        } else {
            ""
        };
        out += &format!(
            "<li><a href=\"{up}{}\"{current}>{}</a></li>\n",
            address(&page),
            escape(&name)
        );
    }
    out + "</ul>\n</details>\n"
}

impl Site {
    /// The packages that have pages: the project's own by name, then the library.
    pub(super) fn packages(&self) -> Vec<Package<'_>> {
        let mut packages: Vec<Package<'_>> = Vec::new();
        for entry in self.shown() {
            let (title, is_library) = if entry.package.is_empty() {
                (super::LIBRARY, true)
            } else {
                (entry.package.as_str(), false)
            };
            match packages.iter_mut().find(|package| package.title == title) {
                Some(package) => package.entries.push(entry),
                None => packages.push(Package {
                    title: title.to_owned(),
                    is_library,
                    entries: vec![entry],
                }),
            }
        }
        packages.sort_by(|one, other| (one.is_library, &one.title).cmp(&(other.is_library, &other.title)));
        packages
    }

    /// What a page of the guide calls itself.
    pub(super) fn guide_title(&self, name: &str) -> String {
        let text = self.guide.get(name).map_or("", String::as_str);
        let title = text.lines().find_map(|line| line.strip_prefix("# "));
        title.map_or_else(|| name.to_owned(), |title| title.trim().replace('`', ""))
    }
}
