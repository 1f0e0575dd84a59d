use std::collections::{BTreeMap, BTreeSet};

use super::{Site, entries, markdown};

fn site(files: &[(&str, &str)]) -> Site {
    let mut site = Site {
        title: "demo <1>".to_owned(),
        ..Site::default()
    };
    for (path, text) in files {
        site.sources.insert((*path).to_owned(), (*text).to_owned());
        for entry in entries("demo", path, text, &beamtalk_syntax::parse_file(text).unit) {
            site.documented.insert(entry.name.clone());
            site.entries.insert(entry.name.clone(), entry);
        }
    }
    site
}

const BASE: &str = "/// A body that moves.\nValue subclass: Body\n  /// In kilograms.\n  field: mass :: Integer = 1\n\n  /// Answer a heavier one.\n  ///\n  /// ```beamtalk\n  /// Body new + 2\n  /// ```\n  + kilos :: Integer -> Body => self\n\n  class standard => self new\n\n  internal secret => 1\n";
const ORBIT: &str =
    "/// See `Body` and **both**.\nBody subclass: Orbit\n  + kilos => self\n  at: a put: b => b\n";

#[test]
fn pages_of_a_class_show_its_protocol_and_what_it_inherits() {
    let site = site(&[("src/Body.bt", BASE), ("src/Orbit.bt", ORBIT)]);
    let pages = site.pages();
    let names: Vec<&str> = pages.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "Body.html",
            "Orbit.html",
            "index.html",
            "source/src/Body.bt.html",
            "source/src/Orbit.bt.html"
        ]
    );
    let main = |page: &str| {
        let text = &pages[page];
        let start = text.find("<main ").unwrap();
        text[start..].to_owned()
    };
    insta::assert_snapshot!(format!("{}\n{}", main("Body.html"), main("Orbit.html")));
    assert!(!pages["Body.html"].contains("secret"));
}

#[test]
fn every_link_inside_the_site_leads_somewhere() {
    let site = site(&[("src/Body.bt", BASE), ("src/a b#c/Orbit.bt", ORBIT)]);
    let pages = site.pages();
    let decode = |address: &str| address.replace("%20", " ").replace("%23", "#");
    for (name, text) in &pages {
        let up = name.matches('/').count();
        for address in text
            .split("href=\"")
            .skip(1)
            .filter_map(|part| part.split('"').next())
        {
            let (path, fragment) = address.split_once('#').unwrap_or((address, ""));
            assert_eq!(
                path.matches("../").count(),
                if path.is_empty() { 0 } else { up },
                "{address}"
            );
            let target = match path.trim_start_matches("../") {
                "" => name.clone(),
                path => decode(path),
            };
            let page = pages.get(&target).unwrap_or_else(|| panic!("{name}: {address}"));
            assert!(
                fragment.is_empty() || page.contains(&format!("id=\"{fragment}\"")),
                "{name}: {address}"
            );
        }
    }
}

#[test]
fn a_comment_cannot_become_markup() {
    let evil = "<script>alert(1)</script> <img src=x onerror=alert(1)> [go](javascript:alert(1)) \
                [x](https://a.example/\"onclick=\"alert(1)) `</code><script>` **<b>** </script> \
                [y](data:text/html,<script>) \u{1}[z](java\tscript:alert)";
    let lines: String = evil.lines().map(|line| format!("/// {line}\n")).collect();
    let text = format!(
        "{lines}Value subclass: Evil\n  {lines}  field: a = \"<script>\"\n\n  {lines}  run: x => \"</span><script>\"\n"
    );
    let mut site = site(&[("src/Evil<script>.bt", &text)]);
    site.guide = BTreeMap::from([
        ("index".to_owned(), evil.to_owned()),
        (
            "<script>".to_owned(),
            format!("# {evil}\n\n| {evil} |\n|---|\n| {evil} |\n\n- {evil}\n> {evil}\n"),
        ),
    ]);
    let scripts = |text: &str| text.to_lowercase().matches("<script").count();
    for (name, page) in site.pages() {
        let own = if name == "index.html" { 2 } else { 0 };
        assert_eq!(scripts(&page), own, "{name}: {page}");
        assert_eq!(page.matches("</script").count(), own, "{name}");
        for part in [
            "<img",
            "href=\"javascript",
            "href=\"data",
            "onclick=\"alert",
            "<b>",
        ] {
            assert!(!page.contains(part), "{name}: {part}: {page}");
        }
        assert!(!page.contains("src=\""), "{name} loads something");
        assert!(page.contains("default-src 'none'"), "{name}");
    }
}

#[test]
fn markdown_is_read_as_people_write_it() {
    let text = "First *one* and `a < b`.\nSecond line with **strong** and 2 * 3 * 4.\n\n# Title\n\n- one\n  goes on\n- two\n\n1. first\n2. second\n\n| A | B |\n|---|---|\n| `x \\| y` | [z](other.md#part) [gone](gone.md) |\n\n> said\n\n```\n<code> `kept`\n```\n[`Body`](https://example.org/?a=1&b=2) unclosed `tick and **star";
    let known = BTreeSet::from(["Body", "other.md"]);
    let link = |name: &str| {
        let stem = name.trim_end_matches(".md");
        known.contains(name).then(|| format!("{stem}.html"))
    };
    insta::assert_snapshot!(markdown::render(text, &link));
}
