//! The Markdown of documentation comments and guides as HTML.
//!
//! Markup of the text itself is never taken over: every character is escaped, and a link leads only to `http`, `https`
//! or a place beside the page.

use pulldown_cmark::{CodeBlockKind, CowStr, Event, Options, Parser, Tag, TagEnd};

use super::highlight;
use super::html::{address, escape};

/// Where the page of a class, or of a Markdown file by its name, is, if it has one.
pub(super) type Link<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// A text below the title of its page.
pub(super) fn render(text: &str, link: &Link<'_>) -> String {
    rendered(text, link, 1)
}

/// A text that is a page with a title of its own.
pub(super) fn page(text: &str, link: &Link<'_>) -> String {
    rendered(text, link, 0)
}

fn rendered(text: &str, link: &Link<'_>, lower: usize) -> String {
    let mut writer = Writer {
        lower,
        out: String::new(),
        link,
        code: None,
        links: Vec::new(),
        is_head: false,
    };
    for event in Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH) {
        writer.take(event);
    }
    writer.out
}

/// One line without blocks.
pub(super) fn line(text: &str, link: &Link<'_>) -> String {
    let html = render(text, link);
    let html = html.trim_end();
    let inner = html
        .strip_prefix("<p>")
        .and_then(|html| html.strip_suffix("</p>"));
    match inner {
        Some(inner) if !inner.contains("<p>") => inner.to_owned(),
        _ => escape(text),
    }
}

struct Writer<'a> {
    out: String,
    /// How many levels headings are lowered.
    lower: usize,
    link: &'a Link<'a>,
    /// The code block being read: whether it is Beamtalk, and its text.
    code: Option<(bool, String)>,
    /// The links around, and whether each of them leads anywhere.
    links: Vec<bool>,
    is_head: bool,
}

impl Writer<'_> {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(end) => self.end(end),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.out += &escape(&text),
            },
            Event::Code(text) => self.code_span(&text),
            Event::Html(text) | Event::InlineHtml(text) => self.out += &escape(&text),
            Event::SoftBreak => self.out.push('\n'),
            Event::HardBreak => self.out += "<br>\n",
            Event::Rule => self.out += "<hr>\n",
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                self.out += &escape(&text);
            }
            Event::TaskListMarker(is_done) => self.out += if is_done { "☑ " } else { "☐ " },
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::CodeBlock(kind) => self.code = Some((is_beamtalk(&kind), String::new())),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => self.open_link(&dest_url),
            Tag::List(Some(first)) if first != 1 => self.out += &format!("<ol start=\"{first}\">\n"),
            Tag::TableHead => {
                self.is_head = true;
                self.out += "<tr>";
            }
            other => {
                let tag = self.name(other.to_end());
                if let Some((name, is_block)) = tag {
                    self.out += &format!("<{name}>{}", if is_block { "\n" } else { "" });
                }
            }
        }
    }

    fn end(&mut self, end: TagEnd) {
        match end {
            TagEnd::CodeBlock => {
                if let Some((is_beamtalk, code)) = self.code.take() {
                    let code = code.trim_end();
                    let html = if is_beamtalk {
                        highlight::render(code)
                    } else {
                        escape(code)
                    };
                    self.out += &format!("<pre><code>{html}</code></pre>\n");
                }
            }
            TagEnd::Link | TagEnd::Image => {
                if self.links.pop() == Some(true) {
                    self.out += "</a>";
                }
            }
            TagEnd::TableHead => {
                self.is_head = false;
                self.out += "</tr>\n";
            }
            other => {
                if let Some((name, _)) = self.name(other) {
                    let is_inline = matches!(name, "em" | "strong" | "del" | "td" | "th");
                    self.out += &format!("</{name}>{}", if is_inline { "" } else { "\n" });
                }
            }
        }
    }

    /// The element, and whether a new line follows its start.
    fn name(&self, end: TagEnd) -> Option<(&'static str, bool)> {
        Some(match end {
            TagEnd::Paragraph => ("p", false),
            TagEnd::Heading(level) => {
                let level = level as usize + self.lower;
                (
                    ["h1", "h2", "h3", "h4", "h5"].get(level - 1).unwrap_or(&"h6"),
                    false,
                )
            }
            TagEnd::BlockQuote(_) => ("blockquote", true),
            TagEnd::List(true) => ("ol", true),
            TagEnd::List(false) => ("ul", true),
            TagEnd::Item => ("li", false),
            TagEnd::Table => ("table", true),
            TagEnd::TableRow => ("tr", false),
            TagEnd::TableCell if self.is_head => ("th", false),
            TagEnd::TableCell => ("td", false),
            TagEnd::Emphasis => ("em", false),
            TagEnd::Strong => ("strong", false),
            TagEnd::Strikethrough => ("del", false),
            _ => return None,
        })
    }

    /// The name of a class becomes a link; inside a link there is no other.
    fn code_span(&mut self, text: &str) {
        let html = format!("<code>{}</code>", escape(text));
        let page = if self.links.contains(&true) {
            None
        } else {
            (self.link)(text)
        };
        self.out += &match page {
            Some(page) => format!("<a href=\"{page}\">{html}</a>"),
            None => html,
        };
    }

    fn open_link(&mut self, target: &str) {
        let target = if self.links.contains(&true) {
            None
        } else {
            safe(target, self.link).or_else(|| (self.link)(target))
        };
        if let Some(target) = &target {
            self.out += &format!("<a href=\"{target}\">");
        }
        self.links.push(target.is_some());
    }
}

fn is_beamtalk(kind: &CodeBlockKind<'_>) -> bool {
    match kind {
        CodeBlockKind::Indented => true,
        CodeBlockKind::Fenced(info) => {
            let info: &CowStr<'_> = info;
            matches!(
                info.split_whitespace().next().unwrap_or_default(),
                "" | "beamtalk" | "bt"
            )
        }
    }
}

/// An address that cannot run anything. Files that are no pages of the site have none.
fn safe(target: &str, link: &Link<'_>) -> Option<String> {
    if target.starts_with("https://") || target.starts_with("http://") {
        return Some(escape(target));
    }
    let (path, fragment) = target.split_once('#').unwrap_or((target, ""));
    let is_plain = |text: &str| !text.contains(|c: char| c == ':' || c == '\\' || c.is_control());
    if !is_plain(path) || path.starts_with('/') || (path.is_empty() && fragment.is_empty()) {
        return None;
    }
    let fragment = if fragment.is_empty() {
        String::new()
    } else {
        format!("#{}", address(fragment))
    };
    let page = match path.strip_suffix(".md") {
        Some(_) => link(path.rsplit('/').next().unwrap_or(path))?,
        None => address(path),
    };
    Some(format!("{page}{fragment}"))
}
