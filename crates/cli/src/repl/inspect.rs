//! `:inspect`: which value is looked at, and how deep.

use serde_json::{Map, Value, json};

use super::answers::number;
use super::paint::Palette;
use super::render::{Rendered, objects, text};

/// What the outermost value is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    Actor(String),
    Binding(String),
}

/// A place that is being looked at. `None` of a session means nothing is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View {
    root: Root,
    /// Names of the fields from the root down, with the text that is shown for them.
    path: Vec<(Value, String)>,
    /// From 1.
    page: u64,
    /// Fields of the last answer: name, label, whether there is something inside.
    fields: Vec<(Value, String, bool)>,
    has_more: bool,
}

/// What `:inspect` with these words asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Look(View),
    /// An expression whose value is to be looked at.
    Evaluate,
    Refused(String),
}

impl View {
    pub(crate) fn new(root: Root) -> Self {
        Self {
            root,
            path: Vec::new(),
            page: 1,
            fields: Vec::new(),
            has_more: false,
        }
    }

    /// The fields of the operation.
    pub(crate) fn request(&self) -> Map<String, Value> {
        let mut fields = Map::new();
        match &self.root {
            Root::Actor(pid) => fields.insert("actor".to_owned(), pid.as_str().into()),
            Root::Binding(name) => fields.insert("binding".to_owned(), name.as_str().into()),
        };
        if !self.path.is_empty() {
            let names: Vec<&Value> = self.path.iter().map(|(name, _)| name).collect();
            fields.insert("path".to_owned(), json!(names));
        }
        if self.page > 1 {
            fields.insert("page".to_owned(), self.page.into());
        }
        fields
    }

    /// The way from the outermost value; nothing when this is it.
    fn trail(&self) -> String {
        let (Root::Actor(root) | Root::Binding(root)) = &self.root;
        let steps: String = self.path.iter().map(|(_, label)| format!(" › {label}")).collect();
        if steps.is_empty() {
            steps
        } else {
            format!(" ({root}{steps})")
        }
    }

    /// Take in the answer and show it.
    pub(crate) fn show(&mut self, answer: &Map<String, Value>, palette: Palette) -> Rendered {
        self.fields = objects(answer, "fields")
            .map(|field| {
                let name = field.get("name").cloned().unwrap_or_default();
                let label = match text(field, "label") {
                    "" => shown_name(&name),
                    label => label.to_owned(),
                };
                let is_drillable = field.get("drillable") == Some(&Value::Bool(true));
                (name, label, is_drillable)
            })
            .collect();
        let total = number(answer, "total");
        let shown_before = (self.page - 1) * PAGE;
        self.has_more = total > shown_before + self.fields.len() as u64;
        let mut rendered = Rendered::default();
        rendered.line(&format!(
            "{}{}",
            palette.code(text(answer, "class")),
            self.trail()
        ));
        let width = self
            .fields
            .iter()
            .map(|(_, label, _)| label.chars().count())
            .max()
            .unwrap_or(0);
        for (field, (_, label, is_drillable)) in objects(answer, "fields").zip(&self.fields) {
            let mark = if *is_drillable { "▸" } else { " " };
            let value = palette.value(text(field, "text"), text(field, "class"));
            rendered.line(&format!("{mark} {label:width$}  {value}"));
        }
        if self.has_more {
            rendered.line(&format!(
                "… {} to {} of {total}; `:i +` shows more",
                shown_before + 1,
                shown_before + self.fields.len() as u64
            ));
        }
        rendered
    }
}

fn shown_name(name: &Value) -> String {
    name.as_str().map_or_else(|| name.to_string(), str::to_owned)
}

/// Elements of a collection that come in one answer.
const PAGE: u64 = 50;

/// What `:inspect WORDS` means after this view.
pub(crate) fn step(view: Option<&View>, words: &str) -> Step {
    let words = words.trim();
    if is_pid(words) {
        return Step::Look(View::new(Root::Actor(words.to_owned())));
    }
    let Some(view) = view else {
        return Step::Evaluate;
    };
    if let Some((name, label, is_drillable)) = view
        .fields
        .iter()
        .find(|(name, label, _)| shown_name(name) == words || label == words)
    {
        if !is_drillable {
            return Step::Refused(format!("There is nothing inside {label}"));
        }
        let mut inner = View::new(view.root.clone());
        inner.path.clone_from(&view.path);
        inner.path.push((name.clone(), label.clone()));
        return Step::Look(inner);
    }
    match words {
        ".." => {
            let mut outer = View::new(view.root.clone());
            outer.path.clone_from(&view.path);
            if outer.path.pop().is_none() {
                return Step::Refused("This is the outermost value".to_owned());
            }
            Step::Look(outer)
        }
        "+" if view.has_more => {
            let mut next = view.clone();
            next.page += 1;
            Step::Look(next)
        }
        "+" => Step::Refused("There is no more".to_owned()),
        _ => Step::Evaluate,
    }
}

/// `<0.187.0>` or `0.187.0`.
fn is_pid(words: &str) -> bool {
    let inner = words
        .strip_prefix('<')
        .and_then(|rest| rest.strip_suffix('>'))
        .unwrap_or(words);
    let parts: Vec<&str> = inner.split('.').collect();
    parts.len() == 3
        && parts
            .iter()
            .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The pid in the printed form of an actor, `Actor(Lamp, 0.187.0)`.
pub(crate) fn actor_pid(printed: &str) -> Option<&str> {
    let inside = printed.strip_prefix("Actor(")?.strip_suffix(')')?;
    let (_, pid) = inside.rsplit_once(", ")?;
    is_pid(pid).then_some(pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer() -> Map<String, Value> {
        let answer = json!({"kind": "actor", "class": "Lamp", "total": 2, "fields": [
            {"name": "on", "label": "on", "text": "false", "class": "Boolean", "drillable": false},
            {"name": "bulbs", "label": "bulbs", "text": "#(1, 2)", "class": "List", "drillable": true}]});
        answer.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn a_field_name_looks_inside_and_dots_come_back() {
        let mut view = View::new(Root::Actor("<0.9.0>".to_owned()));
        let shown = view.show(&answer(), Palette::Plain);
        assert_eq!(shown.out, "Lamp\n  on     false\n▸ bulbs  #(1, 2)\n");
        let Step::Look(inner) = step(Some(&view), "bulbs") else {
            panic!("bulbs can be looked into")
        };
        assert_eq!(
            Value::Object(inner.request()),
            json!({"actor": "<0.9.0>", "path": ["bulbs"]})
        );
        let Step::Look(outer) = step(Some(&inner), "..") else {
            panic!("there is an outer one")
        };
        assert_eq!(Value::Object(outer.request()), json!({"actor": "<0.9.0>"}));
        assert!(matches!(step(Some(&outer), ".."), Step::Refused(_)));
        assert!(matches!(step(Some(&view), "on"), Step::Refused(_)));
        assert_eq!(step(Some(&view), "lamp2"), Step::Evaluate);
        assert_eq!(step(None, "bulbs"), Step::Evaluate);
    }

    #[test]
    fn long_collections_come_in_pages() {
        let mut view = View::new(Root::Binding("xs".to_owned()));
        let fields: Vec<Value> = (0..50)
            .map(|n| json!({"name": n + 1, "text": "0", "class": "Integer"}))
            .collect();
        let first = json!({"class": "List", "total": 70, "fields": fields});
        let shown = view.show(first.as_object().expect("object"), Palette::Plain);
        assert!(
            shown.out.ends_with("… 1 to 50 of 70; `:i +` shows more\n"),
            "{}",
            shown.out
        );
        let Step::Look(mut next) = step(Some(&view), "+") else {
            panic!("there is a second page")
        };
        assert_eq!(next.request().get("page"), Some(&json!(2)));
        let second = json!({"class": "List", "total": 70, "fields": fields.get(..20)});
        next.show(second.as_object().expect("object"), Palette::Plain);
        assert!(matches!(step(Some(&next), "+"), Step::Refused(_)));
    }

    #[test]
    fn pids_are_known() {
        assert_eq!(actor_pid("Actor(Lamp, 0.187.0)"), Some("0.187.0"));
        assert_eq!(actor_pid("Actor(Lamp, registered)"), None);
        assert!(is_pid("<0.1.0>") && is_pid("0.1.0") && !is_pid("1.0") && !is_pid("a.b.c"));
    }
}
