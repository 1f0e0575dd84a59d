//! `:inspect`: which value is looked at, and how deep.

use beamtalk_wire::answers::{InspectAnswer, InspectedField};
use beamtalk_wire::requests::{Inspect, Step as Name};

use unicode_width::UnicodeWidthStr;

use crate::answers::count;
use crate::paint::Palette;
use crate::render::Rendered;
use crate::top::fitted;

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
    path: Vec<(Name, String)>,
    /// From 1.
    page: u64,
    /// Of the last answer.
    fields: Vec<InspectedField>,
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

    /// What is asked for.
    pub(crate) fn request(&self) -> Inspect {
        let (actor, binding) = match &self.root {
            Root::Actor(pid) => (Some(pid.clone()), None),
            Root::Binding(name) => (None, Some(name.clone())),
        };
        let names = self.path.iter().map(|(name, _)| name.clone());
        Inspect {
            actor,
            binding,
            path: Some(names.collect()).filter(|names: &Vec<Name>| !names.is_empty()),
            page: Some(self.page).filter(|page| *page > 1),
            understands: Some(true),
            ..Inspect::default()
        }
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
    pub(crate) fn show(&mut self, answer: &InspectAnswer, columns: usize, palette: Palette) -> Rendered {
        self.fields.clone_from(&answer.fields);
        let total = answer.total;
        let shown_before = (self.page - 1) * PAGE;
        self.has_more = total > shown_before + self.fields.len() as u64;
        let mut rendered = Rendered::default();
        rendered.line(&format!("{}{}", palette.code(&answer.class), self.trail()));
        if let Some(text) = answer.text.as_deref().filter(|_| self.page == 1) {
            let line = fitted(&text.replace('\n', "\\n"), columns.saturating_sub(2));
            rendered.line(&format!("= {}", palette.value(&line, &answer.class)));
        }
        let width = self
            .fields
            .iter()
            .map(|field| field.label.chars().count())
            .max()
            .unwrap_or(0);
        for field in &self.fields {
            let mark = if field.drillable { "▸" } else { " " };
            let value = palette.value(&field.text, &field.class);
            rendered.line(&format!("{mark} {:width$}  {value}", field.label));
        }
        if self.has_more {
            rendered.line(&format!(
                "… {} to {} of {total}; `:i +` shows more",
                shown_before + 1,
                shown_before + self.fields.len() as u64
            ));
        }
        if self.page == 1 {
            understood(&mut rendered, answer, columns, palette);
        }
        rendered
    }
}

/// Lines of names that are shown of each class.
const NAME_LINES: usize = 2;

/// What a value understands: of each class how many messages, and as many of their names as fit.
fn understood(rendered: &mut Rendered, answer: &InspectAnswer, columns: usize, palette: Palette) {
    let classes = answer.understands.iter().flatten();
    let total: usize = classes.clone().map(|class| class.selectors.len()).sum();
    if total > 0 {
        rendered.line(&format!("understands {}:", count(total as u64, "message")));
    }
    for class in classes {
        let head = format!("  {} ({})", class.class, class.selectors.len());
        let mut lines = vec![String::new()];
        let mut room = columns.saturating_sub(head.width() + 1);
        let mut is_cut = false;
        for name in &class.selectors {
            let line = lines.last().map_or(0, |line| line.width());
            if line > 0 && line + 1 + name.width() + 2 > room {
                if lines.len() == NAME_LINES {
                    is_cut = true;
                    break;
                }
                room = columns.saturating_sub(4);
                lines.push(String::new());
            }
            if let Some(line) = lines.last_mut() {
                if !line.is_empty() {
                    line.push(' ');
                }
                line.push_str(name);
            }
        }
        if let Some(line) = lines.last_mut().filter(|_| is_cut) {
            line.push_str(" …");
        }
        let names = lines.join("\n    ");
        rendered.line(&format!("{head} {}", palette.aside(&names)));
    }
}

fn shown_name(name: &Name) -> String {
    match name {
        Name::Name(name) => name.clone(),
        Name::Number(number) => number.to_string(),
    }
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
    if let Some(field) = view
        .fields
        .iter()
        .find(|field| shown_name(&field.name) == words || field.label == words)
    {
        let mut inner = View::new(view.root.clone());
        inner.path.clone_from(&view.path);
        inner.path.push((field.name.clone(), field.label.clone()));
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
    use serde_json::{Value, json};

    use super::super::test_answers::answer;
    use super::*;

    fn lamp() -> InspectAnswer {
        answer(json!({"kind": "actor", "class": "Lamp", "total": 2, "fields": [
            {"name": "on", "label": "on", "text": "false", "class": "Boolean", "drillable": false},
            {"name": "bulbs", "label": "bulbs", "text": "#(1, 2)", "class": "List", "drillable": true}]}))
    }

    #[test]
    fn a_field_name_looks_inside_and_dots_come_back() {
        let mut view = View::new(Root::Actor("<0.9.0>".to_owned()));
        let shown = view.show(&lamp(), 80, Palette::Plain);
        assert_eq!(shown.out, "Lamp\n  on     false\n▸ bulbs  #(1, 2)\n");
        let Step::Look(inner) = step(Some(&view), "bulbs") else {
            panic!("bulbs can be looked into")
        };
        assert_eq!(
            json!(inner.request()),
            json!({"actor": "<0.9.0>", "path": ["bulbs"], "understands": true})
        );
        let Step::Look(outer) = step(Some(&inner), "..") else {
            panic!("there is an outer one")
        };
        assert_eq!(
            json!(outer.request()),
            json!({"actor": "<0.9.0>", "understands": true})
        );
        assert!(matches!(step(Some(&outer), ".."), Step::Refused(_)));
        // What has nothing inside shows its value and what it understands.
        assert!(matches!(step(Some(&view), "on"), Step::Look(_)));
        assert_eq!(step(Some(&view), "lamp2"), Step::Evaluate);
        assert_eq!(step(None, "bulbs"), Step::Evaluate);
    }

    #[test]
    fn anything_shows_its_value_and_what_it_understands() {
        let names: Vec<String> = (0..60).map(|number| format!("message{number}:")).collect();
        let three: InspectAnswer = answer(
            json!({"kind": "value", "class": "Integer", "total": 0, "fields": [],
            "text": "3", "understands": [{"class": "Integer", "selectors": ["+", "abs", "isEven"]},
                                         {"class": "Object", "selectors": names}]}),
        );
        for columns in [80, 120] {
            let mut view = View::new(Root::Binding("inspected".to_owned()));
            let shown = view.show(&three, columns, Palette::Plain).out;
            assert!(shown.lines().all(|line| line.width() <= columns), "{shown}");
            insta::assert_snapshot!(format!("inspected_on_{columns}_columns"), shown);
        }
        let mut view = View::new(Root::Binding("inspected".to_owned()));
        insta::assert_snapshot!("inspected_in_colour", view.show(&three, 80, Palette::Colored).out);
    }

    #[test]
    fn long_collections_come_in_pages() {
        let mut view = View::new(Root::Binding("xs".to_owned()));
        let fields: Vec<Value> = (0..50)
            .map(
                |n| json!({"name": n + 1, "label": "1", "text": "0", "class": "Integer", "drillable": false}),
            )
            .collect();
        let page = |fields: &[Value]| {
            answer(json!({"kind": "collection", "class": "List", "total": 70, "fields": fields}))
        };
        let shown = view.show(&page(&fields), 80, Palette::Plain);
        assert!(
            shown.out.ends_with("… 1 to 50 of 70; `:i +` shows more\n"),
            "{}",
            shown.out
        );
        let Step::Look(mut next) = step(Some(&view), "+") else {
            panic!("there is a second page")
        };
        assert_eq!(next.request().page, Some(2));
        next.show(&page(&fields[..20]), 80, Palette::Plain);
        assert!(matches!(step(Some(&next), "+"), Step::Refused(_)));
    }

    #[test]
    fn pids_are_known() {
        assert_eq!(actor_pid("Actor(Lamp, 0.187.0)"), Some("0.187.0"));
        assert_eq!(actor_pid("Actor(Lamp, registered)"), None);
        assert!(is_pid("<0.1.0>") && is_pid("0.1.0") && !is_pid("1.0") && !is_pid("a.b.c"));
    }
}
