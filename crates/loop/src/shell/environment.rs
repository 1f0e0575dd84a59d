//! What a child finds in its environment.

use std::collections::BTreeMap;
use std::ffi::OsString;

use crate::config::{Config, event_variable};
use crate::events::gate::Token;

/// The longest list of changed files that is handed over in a variable.
const CHANGED_LIMIT: usize = 96 * 1024;

/// What the environment of one child depends on.
pub(crate) struct Given<'a> {
    pub(crate) config: &'a Config,
    pub(crate) own: &'a BTreeMap<String, String>,
    pub(crate) workflow: &'a str,
    pub(crate) changed: &'a [String],
    pub(crate) browser_url: Option<&'a str>,
    pub(crate) events: Option<EventAccess<'a>>,
}

/// How a child may post events.
pub(crate) struct EventAccess<'a> {
    pub(crate) base_url: &'a str,
    pub(crate) token: &'a Token,
    /// Absent means all.
    pub(crate) scope: Option<&'a [String]>,
}

fn is_reserved(name: &str) -> bool {
    name.starts_with("DEVLOOP_EVENT") || name == "DEVLOOP_BROWSER_EVENTS_URL"
}

/// Changes to the inherited environment, which is given as the names in `inherited`.
pub(crate) fn environment(
    given: &Given<'_>,
    inherited: impl Iterator<Item = OsString>,
) -> BTreeMap<OsString, Option<OsString>> {
    let mut changes: BTreeMap<OsString, Option<OsString>> = BTreeMap::new();
    for name in inherited.filter(|name| name.to_str().is_some_and(is_reserved)) {
        changes.insert(name, None);
    }
    let mut set = |name: &str, value: &str| drop(changes.insert(name.into(), Some(value.into())));
    for (name, value) in given.own.iter().filter(|(name, _)| !is_reserved(name)) {
        set(name, value);
    }
    if let Some(events) = &given.events {
        set("DEVLOOP_EVENTS_BASE_URL", events.base_url);
        set("DEVLOOP_EVENTS_TOKEN", events.token.reveal());
        let open = |name: &&String| events.scope.is_none_or(|scope| scope.contains(name));
        for name in given.config.event.keys().filter(open) {
            set(
                &event_variable(name),
                &format!("{}/events/{}", events.base_url, encode(name)),
            );
        }
    }
    if let Some(url) = given.browser_url {
        set("DEVLOOP_BROWSER_EVENTS_URL", url);
    }
    set("DEVLOOP_ROOT", &given.config.root.to_string_lossy());
    set("DEVLOOP_STATE", &given.config.state_file.to_string_lossy());
    set("DEVLOOP_WORKFLOW", given.workflow);
    let (list, cut) = changed_json(given.changed);
    set("DEVLOOP_CHANGED_FILES_JSON", &list);
    if cut {
        set("DEVLOOP_CHANGED_FILES_TRUNCATED", "1");
    } else {
        changes.insert("DEVLOOP_CHANGED_FILES_TRUNCATED".into(), None);
    }
    changes
}

/// The list as JSON, as much of it as fits, and whether something was left out.
fn changed_json(changed: &[String]) -> (String, bool) {
    let mut text = String::from("[");
    for (index, path) in changed.iter().enumerate() {
        let item = serde_json::Value::String(path.clone()).to_string();
        if text.len() + item.len() + 2 > CHANGED_LIMIT {
            text.push(']');
            return (text, true);
        }
        if index > 0 {
            text.push(',');
        }
        text.push_str(&item);
    }
    text.push(']');
    (text, false)
}

/// A name as one segment of an address.
fn encode(name: &str) -> String {
    name.bytes()
        .map(|byte| {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn config() -> Config {
        let text = "watch.w.paths = [\"go\"]\nworkflow.w.steps = [{ action = \"notify_reload\" }]\n\
                    event.a-b = { state_key = \"a\", workflow = \"w\" }\n\
                    event.c = { state_key = \"c\", workflow = \"w\" }";
        crate::config::check(
            Path::new("/tmp/devloop.toml"),
            text,
            crate::config::RemoteBind::Refuse,
        )
        .valid()
        .unwrap()
    }

    fn found(given: &Given<'_>, inherited: &[&str]) -> BTreeMap<String, Option<String>> {
        environment(given, inherited.iter().map(OsString::from))
            .into_iter()
            .map(|(name, value)| {
                (
                    name.into_string().unwrap(),
                    value.map(|value| value.into_string().unwrap()),
                )
            })
            .collect()
    }

    #[test]
    fn fixed_variables_win_and_nothing_leaks_from_an_outer_loop() {
        let config = config();
        let own = BTreeMap::from([
            ("DEVLOOP_WORKFLOW".to_owned(), "forged".to_owned()),
            ("DEVLOOP_EVENTS_TOKEN".to_owned(), "forged".to_owned()),
            ("COLOR".to_owned(), "teal".to_owned()),
        ]);
        let changed = ["go".to_owned()];
        let given = Given {
            config: &config,
            own: &own,
            workflow: "inner",
            changed: &changed,
            browser_url: None,
            events: None,
        };
        let found = found(
            &given,
            &[
                "PATH",
                "DEVLOOP_EVENTS_TOKEN",
                "DEVLOOP_EVENT_X_URL",
                "DEVLOOP_BROWSER_EVENTS_URL",
            ],
        );
        assert_eq!(found["DEVLOOP_WORKFLOW"], Some("inner".into()));
        assert_eq!(found["COLOR"], Some("teal".into()));
        assert_eq!(found["DEVLOOP_CHANGED_FILES_JSON"], Some("[\"go\"]".into()));
        assert_eq!(found["DEVLOOP_EVENTS_TOKEN"], None);
        assert_eq!(found["DEVLOOP_EVENT_X_URL"], None);
        assert_eq!(found["DEVLOOP_BROWSER_EVENTS_URL"], None);
        assert!(!found.contains_key("PATH"));
    }

    #[test]
    fn a_scope_limits_the_addresses_given() {
        let config = config();
        let gate = crate::events::gate::Gate::new(&config).unwrap();
        let token = gate.run_token();
        let scope = ["c".to_owned()];
        let given = Given {
            config: &config,
            own: &BTreeMap::new(),
            workflow: "startup",
            changed: &[],
            browser_url: Some("http://b"),
            events: Some(EventAccess {
                base_url: "http://e",
                token: &token,
                scope: Some(&scope),
            }),
        };
        let found = found(&given, &[]);
        assert_eq!(found["DEVLOOP_EVENT_C_URL"], Some("http://e/events/c".into()));
        assert!(!found.contains_key("DEVLOOP_EVENT_A_B_URL"));
        assert_eq!(found["DEVLOOP_BROWSER_EVENTS_URL"], Some("http://b".into()));
    }

    #[test]
    fn long_lists_are_cut_to_what_fits() {
        let paths: Vec<String> = (0..10_000)
            .map(|index| format!("some/long/path/number/{index}"))
            .collect();
        let (text, cut) = changed_json(&paths);
        assert!(cut && text.len() <= CHANGED_LIMIT);
        let list: Vec<String> = serde_json::from_str(&text).unwrap();
        assert_eq!(list[..], paths[..list.len()]);
        assert_eq!(changed_json(&[]), ("[]".into(), false));
    }

    #[test]
    fn names_become_one_segment() {
        assert_eq!(encode("a/b c-d"), "a%2Fb%20c-d");
    }
}
