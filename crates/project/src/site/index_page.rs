//! The first page: everything there is, and the search.

use serde_json::json;

use super::html::{Page, SEARCH, address, anchor, escape};
use super::model::{Entry, Kind};
use super::{Site, markdown};

pub(super) fn render(site: &Site) -> String {
    let mut body = match site.guide.get("index") {
        Some(text) => markdown::page(text, &|name| site.link(name, "")),
        None => format!("<h1>{}</h1>\n", escape(&site.title)),
    };
    body += "<ul id=\"found\" hidden></ul>\n<div id=\"all\">\n";
    for package in site.packages() {
        if package.is_library {
            body += &guide(site);
        }
        let note = if package.is_library {
            ""
        } else {
            " <span class=\"note\">package</span>"
        };
        body += &format!("<h2>{}{note}</h2>\n", escape(&package.title));
        for (title, kinds) in [
            ("", &[Kind::Class, Kind::Extensions][..]),
            ("Protocols", &[Kind::Protocol][..]),
            ("Types", &[Kind::Alias][..]),
        ] {
            body += &listed(site, title, &package.entries, kinds);
        }
    }
    if !site.packages().iter().any(|package| package.is_library) {
        body += &guide(site);
    }
    body += "</div>\n";
    // Inside a script element only `<` could end it.
    let data = serde_json::Value::from(search_entries(site))
        .to_string()
        .replace('<', "\\u003c");
    body += &format!("<script type=\"application/json\" id=\"entries\">{data}</script>");
    Page::new(site, "API", "index.html")
        .with_body(&body)
        .with_script(SEARCH)
        .to_string()
}

/// The pages of the guide, between the project's own packages and the library.
fn guide(site: &Site) -> String {
    let mut names = site.guide.keys().filter(|name| *name != "index").peekable();
    if names.peek().is_none() {
        return String::new();
    }
    let mut out = String::from("<h2>Guide</h2>\n<ul>\n");
    for name in names {
        out += &format!(
            "<li><a href=\"guide/{}.html\">{}</a></li>\n",
            address(name),
            escape(&site.guide_title(name))
        );
    }
    out + "</ul>\n"
}

fn listed(site: &Site, title: &str, entries: &[&Entry], kinds: &[Kind]) -> String {
    let mut shown = entries
        .iter()
        .filter(|entry| kinds.contains(&entry.kind))
        .peekable();
    if shown.peek().is_none() {
        return String::new();
    }
    let mut out = String::new();
    if !title.is_empty() {
        out += &format!("<h3>{title}</h3>\n");
    }
    out += "<table>\n";
    for entry in shown {
        out += &format!(
            "<tr><td><a href=\"{0}.html\">{0}</a></td><td>{1}</td></tr>\n",
            escape(&entry.name),
            markdown::line(&summary(&entry.doc), &|name| site.link(name, ""))
        );
    }
    out + "</table>\n"
}

fn search_entries(site: &Site) -> Vec<serde_json::Value> {
    let mut found = Vec::new();
    for entry in site.shown() {
        let page = format!("{}.html", entry.name);
        found.push(json!({"name": entry.name, "page": page, "about": summary(&entry.doc)}));
        for member in entry.members.iter().filter(|member| !member.is_internal) {
            let side = if member.is_class { " class" } else { "" };
            let address = format!("{page}#{}", member_anchor(member.is_class, &member.selector));
            found.push(json!({
                "name": format!("{}{side} >> {}", entry.name, member.selector),
                "page": address,
                "about": summary(&member.doc),
            }));
        }
    }
    for name in site.guide.keys().filter(|name| *name != "index") {
        found.push(json!({"name": name, "page": format!("guide/{}.html", address(name)), "about": "guide"}));
    }
    found
}

pub(super) fn member_anchor(is_class: bool, selector: &str) -> String {
    let side = if is_class { "class" } else { "method" };
    format!("{side}-{}", anchor(selector))
}

/// The first sentence, or the first line.
pub(super) fn summary(doc: &str) -> String {
    let paragraph: Vec<&str> = doc
        .lines()
        .map(str::trim)
        .take_while(|line| !line.is_empty() && !line.starts_with("```") && !line.starts_with('#'))
        .collect();
    let text = paragraph.join(" ");
    match text.find(". ") {
        Some(end) => text[..=end].to_owned(),
        None => text,
    }
}
