//! Views: pages that a client may show beside a result. They look and never act.

use serde_json::{Value, json};

const KIND: &str = "text/html;profile=mcp-app";
/// The side of the conversation that both have.
const BRIDGE: &str = include_str!("../views/bridge.js");

/// Name after `ui://beamtalk/`, tool, title, page.
const VIEWS: [(&str, &str, &str, &str); 2] = [
    (
        "inspector",
        "inspect",
        "Inspector",
        include_str!("../views/inspector.html"),
    ),
    (
        "supervision",
        "supervision_tree",
        "Supervision tree",
        include_str!("../views/supervision.html"),
    ),
];

/// What a tool says about its view, and who may call it from one.
pub(crate) fn of_tool(name: &str, is_reading: bool) -> Option<Value> {
    match VIEWS.iter().find(|(_, tool, ..)| *tool == name) {
        Some((view, ..)) => Some(json!({
            "resourceUri": format!("ui://beamtalk/{view}"),
            "visibility": ["model", "app"],
        })),
        None if is_reading => None,
        None => Some(json!({"visibility": ["model"]})),
    }
}

pub(crate) fn listed() -> impl Iterator<Item = Value> {
    VIEWS.iter().map(|(name, _, title, _)| {
        json!({
            "uri": format!("ui://beamtalk/{name}"),
            "name": format!("view/{name}"),
            "title": title,
            "mimeType": KIND,
            "_meta": {"ui": rules()},
        })
    })
}

/// Nothing is loaded from anywhere, nothing is sent anywhere.
fn rules() -> Value {
    json!({
        "csp": {"connectDomains": [], "resourceDomains": [], "frameDomains": []},
        "prefersBorder": true,
    })
}

/// The content of a view.
pub(crate) fn read(uri: &str) -> Option<Value> {
    let name = uri.strip_prefix("ui://beamtalk/")?;
    let (.., page) = VIEWS.iter().find(|(view, ..)| *view == name)?;
    Some(json!({
        "uri": uri,
        "mimeType": KIND,
        "text": page.replace("__BRIDGE__", BRIDGE),
        "_meta": {"ui": rules()},
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_is_small_and_inserts_text_only() {
        for (name, ..) in VIEWS {
            let view = read(&format!("ui://beamtalk/{name}")).expect(name);
            let page = view["text"].as_str().expect("a page");
            assert!(page.len() <= 96 * 1024);
            for word in [
                "innerHTML",
                "outerHTML",
                "insertAdjacent",
                "document.write",
                "eval(",
                "http://",
                "https://",
                "__BRIDGE__",
            ] {
                assert!(!page.contains(word), "{name}: {word}");
            }
        }
        assert!(read("ui://beamtalk/other").is_none());
    }
}
