//! The frame of every page.

use std::fmt;

use sha2::{Digest, Sha256};

use super::{Site, navigation};

/// Text that stands between tags or in an attribute in double quotes.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(character),
        }
    }
    out
}

/// A name that may stand behind `#`: letters and digits as they are, everything else as its code.
pub(super) fn anchor(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii_alphanumeric() {
            out.push(character);
        } else {
            out += &format!("-{:x}", character as u32);
        }
    }
    out
}

/// A path as a part of an address.
pub(super) fn address(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-+@~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out += &format!("%{byte:02X}");
        }
    }
    out
}

const STYLE: &str = include_str!("style.css");
pub(super) const SEARCH: &str = include_str!("search.js");

/// One page: title, where it lies, what is in it.
pub(super) struct Page<'a> {
    site: &'a Site,
    title: &'a str,
    /// The address of the page below the first directory.
    path: &'a str,
    body: &'a str,
    script: &'a str,
}

impl<'a> Page<'a> {
    pub(super) fn new(site: &'a Site, title: &'a str, path: &'a str) -> Self {
        Self {
            site,
            title,
            path,
            body: "",
            script: "",
        }
    }

    pub(super) fn with_body(mut self, body: &'a str) -> Self {
        self.body = body;
        self
    }

    pub(super) fn with_script(mut self, script: &'a str) -> Self {
        self.script = script;
        self
    }
}

impl fmt::Display for Page<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let script = if self.script.is_empty() {
            "'none'".to_owned()
        } else {
            source_hash(self.script)
        };
        let policy = format!(
            "default-src 'none'; style-src {}; script-src {script}; img-src 'self' data:; base-uri 'none'",
            source_hash(STYLE)
        );
        let up = "../".repeat(self.path.matches('/').count());
        let site = escape(&self.site.title);
        let title = escape(self.title);
        write!(
            formatter,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"referrer\" content=\"no-referrer\">\n\
             <title>{title} · {site}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
             <a class=\"skip\" href=\"#content\">Skip to the text</a>\n\
             <header><a class=\"home\" href=\"{up}index.html\">{site}</a>\
             <form action=\"{up}index.html\" role=\"search\"><input type=\"search\" name=\"q\" id=\"q\" \
             placeholder=\"Search\" aria-label=\"Search classes and methods\"></form></header>\n\
             <input type=\"checkbox\" id=\"menu\"><label for=\"menu\">Contents</label>\n\
             {}<main id=\"content\">\n{}\n</main>\n",
            navigation::render(self.site, self.path),
            self.body
        )?;
        if !self.script.is_empty() {
            writeln!(formatter, "<script>{}</script>", self.script)?;
        }
        formatter.write_str("</body>\n</html>\n")
    }
}

/// How a policy names a text that may stand in the page.
fn source_hash(text: &str) -> String {
    format!(
        "'sha256-{}'",
        beamtalk_storage::base64(&Sha256::digest(text.as_bytes()))
    )
}

#[cfg(test)]
mod tests {
    use super::{anchor, escape};

    #[test]
    fn nothing_of_a_text_is_markup() {
        assert_eq!(
            escape("<a b=\"c\" d='e'>&"),
            "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;"
        );
        assert_eq!(anchor("at:put:"), "at-3aput-3a");
    }
}
