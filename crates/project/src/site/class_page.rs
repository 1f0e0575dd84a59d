//! The page of one class, protocol or alias.

use std::collections::BTreeSet;

use super::html::{Page, address, escape};
use super::index_page::{member_anchor, summary};
use super::model::{Entry, Kind, Member};
use super::{Site, highlight, markdown};

pub(super) fn render(site: &Site, entry: &Entry) -> String {
    let kind = match entry.kind {
        Kind::Class => "",
        Kind::Protocol => " <span class=\"note\">protocol</span>",
        Kind::Alias => " <span class=\"note\">type</span>",
        Kind::Extensions => " <span class=\"note\">extensions</span>",
    };
    let mut body = format!("<h1>{}{kind}</h1>\n", escape(&entry.name));
    if !entry.header.is_empty() {
        body += &format!("<pre><code>{}</code></pre>\n", highlight::render(&entry.header));
    }
    body += &lineage(site, entry);
    body += &text(site, &entry.doc);
    body += &slots(site, entry);
    let shown: Vec<&Member> = entry
        .members
        .iter()
        .filter(|member| !member.is_internal)
        .collect();
    body += &protocol(site, &shown);
    for (title, is_class) in [("Class methods", true), ("Methods", false)] {
        let mut side = shown
            .iter()
            .filter(|member| member.is_class == is_class)
            .peekable();
        if side.peek().is_some() {
            body += &format!("<h2>{title}</h2>\n");
            side.for_each(|member| body += &method(site, member));
        }
    }
    body += &inherited(site, entry);
    let path = format!("{}.html", entry.name);
    Page::new(site, &entry.name, &path).with_body(&body).to_string()
}

fn text(site: &Site, doc: &str) -> String {
    markdown::render(doc, &|name| site.link(name, ""))
}

/// Ancestors, subclasses and the source.
fn lineage(site: &Site, entry: &Entry) -> String {
    let mut out = String::from("<p class=\"note\">");
    let mut chain: Vec<String> = site
        .ancestors(entry)
        .iter()
        .map(|ancestor| site.class_name(&ancestor.name))
        .collect();
    if chain.is_empty() {
        chain.extend(entry.superclass.as_deref().map(escape));
    }
    if !chain.is_empty() {
        out += &format!("Inherits from {}. ", chain.join(" → "));
    }
    let below: Vec<String> = site
        .documented
        .iter()
        .filter_map(|name| site.entries.get(name))
        .filter(|other| other.kind == Kind::Class && other.superclass.as_deref() == Some(&entry.name))
        .map(|other| site.class_name(&other.name))
        .collect();
    if !below.is_empty() {
        out += &format!("Subclasses: {}. ", below.join(", "));
    }
    if let Some(link) = source_link(site, &entry.path, entry.line) {
        out += &format!("Source: {link}.");
    }
    out + "</p>\n"
}

fn source_link(site: &Site, path: &str, line: u32) -> Option<String> {
    site.sources.contains_key(path).then(|| {
        format!(
            "<a href=\"source/{}.html#L{line}\">{}:{line}</a>",
            address(path),
            escape(path)
        )
    })
}

fn slots(site: &Site, entry: &Entry) -> String {
    if entry.slots.is_empty() {
        return String::new();
    }
    let mut out = String::from("<h2>Slots</h2>\n<table>\n");
    for slot in &entry.slots {
        out += &format!(
            "<tr id=\"slot-{}\"><td><code>{}</code></td><td>{}</td></tr>\n",
            escape(&slot.name),
            highlight::render(&slot.text),
            text(site, &slot.doc)
        );
    }
    out + "</table>\n"
}

/// All selectors at one glance.
fn protocol(site: &Site, members: &[&Member]) -> String {
    if members.is_empty() {
        return String::new();
    }
    let mut out = String::from("<h2>Protocol</h2>\n<table>\n");
    for member in members {
        let side = if member.is_class { "class " } else { "" };
        out += &format!(
            "<tr><td><a href=\"#{}\"><code>{side}{}</code></a></td><td>{}</td></tr>\n",
            member_anchor(member.is_class, &member.selector),
            escape(&member.selector),
            markdown::line(&summary(&member.doc), &|name| site.link(name, ""))
        );
    }
    out + "</table>\n"
}

fn method(site: &Site, member: &Member) -> String {
    let side = if member.is_class { "class " } else { "" };
    let source = source_link(site, &member.path, member.line).map_or_else(String::new, |link| {
        format!("<span class=\"source-link\">{link}</span>")
    });
    format!(
        "<div class=\"method\" id=\"{}\"><h3><code>{side}{}</code>{source}</h3>\n{}</div>\n",
        member_anchor(member.is_class, &member.selector),
        highlight::render(&member.signature),
        text(site, &member.doc)
    )
}

/// What the ancestors add, nearest first, without what is overridden on the way.
fn inherited(site: &Site, entry: &Entry) -> String {
    let key = |member: &Member| (member.is_class, member.selector.clone());
    let mut seen: BTreeSet<(bool, String)> = entry.members.iter().map(key).collect();
    let mut out = String::new();
    for ancestor in site.ancestors(entry) {
        let mut links = Vec::new();
        for member in ancestor.members.iter().filter(|member| !member.is_internal) {
            if !seen.insert(key(member)) {
                continue;
            }
            let side = if member.is_class { "class " } else { "" };
            let code = format!("<code>{side}{}</code>", escape(&member.selector));
            links.push(match site.link(&ancestor.name, "") {
                Some(page) => format!(
                    "<a href=\"{page}#{}\">{code}</a>",
                    member_anchor(member.is_class, &member.selector)
                ),
                None => code,
            });
        }
        if !links.is_empty() {
            out += &format!(
                "<h3>From {}</h3>\n<p>{}</p>\n",
                site.class_name(&ancestor.name),
                links.join(" ")
            );
        }
    }
    if out.is_empty() {
        return out;
    }
    format!("<h2>Inherited methods</h2>\n{out}")
}
