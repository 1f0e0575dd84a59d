//! The classes of the library: what they are about, and the page of each, from its source.

use std::fmt::Write as _;

use beamtalk_syntax::ast::{Class, Item, Method, Slot, SlotKeyword, Unit};

/// Names that stand for one object each; their messages are those of its class.
pub const SINGLETONS: &[(&str, &str)] = &[
    ("Workspace", "WorkspaceInterface"),
    ("Transcript", "TranscriptStream"),
    ("Beamtalk", "BeamtalkInterface"),
];

/// What the classes of the library are about.
pub const TOPICS: &[(&str, &str)] = &[
    (
        "Objects and classes",
        "ProtoObject Object Value Behaviour Class Metaclass Protocol Printable CompiledMethod ClassBuilder Package",
    ),
    ("Truth and nothing", "Boolean True False UndefinedObject"),
    ("Numbers", "Number Integer Float Random"),
    (
        "Text and bytes",
        "String Symbol Character Binary Regex Json JsonRepresentable Uuid Digest",
    ),
    (
        "Collections",
        "Collection List Array Tuple Dictionary Set Bag Interval Queue Stream Ets",
    ),
    (
        "Blocks, results, errors",
        "Block Result Exception Error RuntimeError TypeError InstantiationError BEAMError ExitError ThrowError \
         StackFrame RetryPolicy",
    ),
    ("Time", "DateTime Duration Time Timer"),
    (
        "Actors and supervision",
        "Actor Server Supervisor DynamicSupervisor SupervisionSpec SupervisionTree SupervisionNode Parallel \
         TimeoutProxy AtomicCounter",
    ),
    (
        "Files, programs, network",
        "File FileHandle Console Logger System OS Program CommandResult Subprocess ReactiveSubprocess HTTPClient \
         HTTPResponse",
    ),
    ("Erlang", "Erlang ErlangModule Pid Port Reference"),
    ("Tests", "TestCase TestResult TestRunner"),
    (
        "Announcements",
        "Announcement Announcer SystemAnnouncer Subscription SubscriptionNode AnnouncementNavigation ActorSpawned \
         ActorStopped BindingChanged ClassLoaded ClassRemoved FlushCompleted ObjectStateChanged \
         SupervisionChildAdded SupervisionChildCrashed",
    ),
    (
        "The workspace",
        "WorkspaceInterface BeamtalkInterface TranscriptStream Session BindingsView ChangeLog ChangeEntry Inspector \
         InspectorField SystemNavigation ProcessNavigation Tracing",
    ),
    (
        "The loop",
        "Loop LoopProcess LoopRun LoopState LoopAnnouncement LoopEventAccepted LoopEventRejected LoopFilesChanged \
         LoopProcessExited LoopProcessReady LoopProcessStarted LoopReloadSent LoopStateChanged LoopWorkflowFailed \
         LoopWorkflowFinished LoopWorkflowStarted",
    ),
    (
        "Agents",
        "Agents Agent AgentMessage AgentEvent AgentCrashed AgentCreated AgentMailReceived AgentRemoved \
         AgentStateChanged AgentTurnEnded",
    ),
];

/// Files of the library, without their suffix: one class or protocol each.
pub fn names() -> impl Iterator<Item = &'static str> {
    beamtalk_node::library_sources().map(|(name, _)| name.trim_end_matches(".bt"))
}

pub fn classes_page() -> String {
    let mut page = String::from("# Classes of the library\n\n");
    for (topic, names) in TOPICS {
        let names: Vec<String> = names.split(' ').map(|name| format!("`{name}`")).collect();
        let _ = writeln!(page, "## {topic}\n\n{}\n", names.join(", "));
    }
    let singletons = SINGLETONS.iter();
    let singletons = singletons.map(|(name, class)| format!("`{name}` is the one `{class}`"));
    let _ = writeln!(page, "{}.", singletons.collect::<Vec<_>>().join(", "));
    page
}

/// The page of a class, a method, a type alias, or one of the objects everybody knows.
pub fn page(topic: &str, selector: Option<&str>) -> Option<String> {
    let known = SINGLETONS.iter().find(|(name, _)| *name == topic);
    let topic = known.map_or(topic, |(_, class)| class);
    let source = beamtalk_node::library_sources().find(|(name, _)| name.strip_suffix(".bt") == Some(topic));
    match (source, selector) {
        (Some(_), Some(selector)) => method_page(topic, selector),
        (Some((_, text)), None) => Some(class_page(&beamtalk_syntax::parse_file(text).unit, text)),
        (None, None) => alias_page(topic),
        (None, Some(_)) => None,
    }
}

fn alias_page(name: &str) -> Option<String> {
    // Aliases stand above the class that uses them.
    let head = format!("type {name} ");
    beamtalk_node::library_sources()
        .filter(|(_, text)| text.contains(&head))
        .find_map(|(_, text)| {
            let unit = beamtalk_syntax::parse_file(text).unit;
            unit.items.iter().find_map(|item| match item {
                Item::TypeAlias(alias) if alias.name.text == name => {
                    let doc = alias.doc.as_deref().unwrap_or_default().trim();
                    let source = alias.span.text(text);
                    Some(format!("# {name}\n\n```beamtalk\n{source}\n```\n\n{doc}\n"))
                }
                _ => None,
            })
        })
}

fn class_page(unit: &Unit, text: &str) -> String {
    let mut page = String::new();
    for item in &unit.items {
        match item {
            Item::Class(class) => write_class(&mut page, class, text),
            Item::Protocol(protocol) => {
                // Writing to a String cannot fail.
                let _ = writeln!(page, "# {} (protocol)\n", protocol.name.text);
                let _ = writeln!(page, "{}\n", protocol.doc.as_deref().unwrap_or_default());
                for signature in &protocol.signatures {
                    let _ = writeln!(page, "- `{}`", signature.span.text(text));
                }
            }
            Item::Extension(extension) => write_method(&mut page, &extension.method, text),
            Item::TypeAlias(_) | Item::Statement(_) => {}
        }
    }
    page
}

fn write_class(page: &mut String, class: &Class, text: &str) {
    let _ = writeln!(
        page,
        "# {}\n\n`{}`\n",
        class.name.text,
        class.header.text(text).trim()
    );
    if let Some(doc) = &class.doc {
        let _ = writeln!(page, "{}\n", doc.trim());
    }
    write_slots(page, class, text);
    for (title, is_class) in [("Class methods", true), ("Methods", false)] {
        let methods: Vec<&Method> = class
            .methods
            .iter()
            .filter(|method| method.is_class == is_class)
            .collect();
        if !methods.is_empty() {
            let _ = writeln!(page, "## {title}\n");
            for method in methods {
                write_method(page, method, text);
            }
        }
    }
}

/// Fields, and what comes with those of a value: how one is made, and how another is made of one.
fn write_slots(page: &mut String, class: &Class, text: &str) {
    let fields: Vec<&Slot> = class
        .slots
        .iter()
        .filter(|slot| slot.keyword == SlotKeyword::Field)
        .collect();
    if fields.is_empty() {
        return;
    }
    let _ = writeln!(page, "## Fields\n");
    for slot in &fields {
        let declared = slot.span.text(text);
        let declared = declared.split_once("field:").map_or(declared, |(_, rest)| rest);
        let _ = writeln!(page, "- `{}`", declared.trim());
    }
    let name = &class.name.text;
    let keywords: Vec<String> = fields
        .iter()
        .map(|slot| format!("{0}: {0}", slot.name.text))
        .collect();
    let _ = writeln!(page, "\n`{name} {}` makes one.\n", keywords.join(" "));
}

fn write_method(page: &mut String, method: &Method, text: &str) {
    let result = method
        .result
        .as_ref()
        .map_or_else(String::new, |result| format!(" -> {}", result.span.text(text)));
    let _ = writeln!(page, "### {}{result}\n", method.head.span.text(text));
    if let Some(doc) = &method.doc {
        let _ = writeln!(page, "{}\n", doc.trim());
    }
}

/// A method of a class, looked up through its superclasses.
fn method_page(class: &str, selector: &str) -> Option<String> {
    let mut current = class.to_owned();
    loop {
        let (_, text) =
            beamtalk_node::library_sources().find(|(name, _)| name.strip_suffix(".bt") == Some(&current))?;
        let unit = beamtalk_syntax::parse_file(text).unit;
        let found = unit.items.iter().find_map(|item| match item {
            Item::Class(class) => Some(class),
            _ => None,
        })?;
        if let Some(method) = found
            .methods
            .iter()
            .find(|method| method.head.selector == selector)
        {
            let mut page = format!("# {current} >> {selector}\n\n");
            write_method(&mut page, method, text);
            return Some(page);
        }
        current = found.superclass.as_ref()?.name.text.to_string();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{TOPICS, names, page};

    #[test]
    fn every_class_of_the_library_is_about_something() {
        let sorted: Vec<&str> = TOPICS.iter().flat_map(|(_, names)| names.split(' ')).collect();
        let known: BTreeSet<&str> = sorted.iter().copied().collect();
        assert_eq!(known.len(), sorted.len(), "a class has one topic");
        assert_eq!(known, names().collect());
    }

    #[test]
    fn objects_aliases_and_fields_are_known() {
        let of = |topic: &str| page(topic, None).unwrap_or_default();
        assert!(of("Workspace").starts_with("# WorkspaceInterface\n"));
        assert!(page("Transcript", Some("show:")).is_some_and(|text| text.contains("show:")));
        assert!(of("Timeout").contains("type Timeout = Integer | #infinity"));
        let response = of("HTTPResponse");
        for part in [
            "- `status :: Integer",
            "`HTTPResponse status: status headers: headers body: body` makes one",
        ] {
            assert!(response.contains(part), "{part} in {response}");
        }
        assert_eq!(page("Nobody", None), None);
    }
}
