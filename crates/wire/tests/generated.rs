//! What is made of the types: the tables of `docs/protocol.md`, JSON Schemas, TypeScript. `UPDATE=1` writes them.

#![expect(clippy::disallowed_methods, reason = "what is generated is files")]

use std::any::TypeId;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use beamtalk_wire::schema::{Visitor, each_operation};
use beamtalk_wire::{ErrorKind, Head, Op, Operation, Push};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};
use ts_rs::{Config, TS, TypeVisitor};

/// A file with what it should be; fails when it is something else.
fn check(path: &str, text: &str) {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
        std::fs::write(&file, text).expect("written");
        return;
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        found == text,
        "{path} is stale: UPDATE=1 cargo test -p beamtalk-wire --test generated"
    );
}

// ---- JSON Schemas

struct Schemas {
    requests: SchemaGenerator,
    answers: SchemaGenerator,
    ops: Map<String, Value>,
}

impl Visitor for Schemas {
    fn operation<O, A>(&mut self)
    where
        O: Operation<Answer = A> + JsonSchema + TS + 'static,
        A: JsonSchema + TS + 'static,
    {
        let about = json!({
            "access": O::OP.access(),
            "request": self.requests.subschema_for::<O>(),
            "answer": self.answers.subschema_for::<A>(),
        });
        self.ops.insert(O::OP.name().to_owned(), about);
    }
}

fn schemas() -> Value {
    let at = |place: &str| {
        let place = place.to_owned();
        SchemaSettings::draft2020_12().with(|settings| settings.definitions_path = place.into())
    };
    let mut schemas = Schemas {
        requests: at("/requests").for_deserialize().into_generator(),
        answers: at("/answers").for_serialize().into_generator(),
        ops: Map::new(),
    };
    each_operation(&mut schemas);
    let event = schemas.answers.subschema_for::<Push>();
    let head = schemas.answers.subschema_for::<Head>();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "ops": schemas.ops,
        "message": head,
        "event": event,
        "requests": schemas.requests.take_definitions(true),
        "answers": schemas.answers.take_definitions(true),
    })
}

#[test]
fn the_schemas_are_those_of_the_types() {
    let text = serde_json::to_string_pretty(&schemas()).expect("JSON");
    check("crates/wire/schema/protocol.json", &format!("{text}\n"));
}

// ---- TypeScript

struct Declarations {
    config: Config,
    seen: BTreeSet<TypeId>,
    declared: BTreeMap<String, String>,
    ops: Vec<(String, String, String)>,
}

impl Declarations {
    fn add<T: TS + 'static + ?Sized>(&mut self) {
        if !self.seen.insert(TypeId::of::<T>()) {
            return;
        }
        // What has no place of its own is written where it is used.
        if T::output_path().is_some() {
            let about = T::docs().unwrap_or_default();
            let declared = format!("{about}export {}\n", T::decl(&self.config));
            self.declared.insert(T::ident(&self.config), declared);
        }
        T::visit_dependencies(self);
        T::visit_generics(self);
    }
}

impl TypeVisitor for Declarations {
    fn visit<T: TS + 'static + ?Sized>(&mut self) {
        self.add::<T>();
    }
}

impl Visitor for Declarations {
    fn operation<O, A>(&mut self)
    where
        O: Operation<Answer = A> + JsonSchema + TS + 'static,
        A: JsonSchema + TS + 'static,
    {
        self.add::<O>();
        self.add::<A>();
        let names = (O::name(&self.config), A::name(&self.config));
        self.ops.push((O::OP.name().to_owned(), names.0, names.1));
    }
}

#[test]
fn the_typescript_is_that_of_the_types() {
    let mut found = Declarations {
        config: Config::new().with_large_int("number"),
        seen: BTreeSet::new(),
        declared: BTreeMap::new(),
        ops: Vec::new(),
    };
    each_operation(&mut found);
    found.add::<Push>();
    found.add::<Head>();
    let mut text =
        "// The workspace protocol. Made of the types in crates/wire by its tests; do not edit.\n\n"
            .to_owned();
    for declared in found.declared.values() {
        text.push_str(declared);
        text.push('\n');
    }
    text.push_str(
        "/** What each operation is asked with, and what it answers. */\nexport type Operations = {\n",
    );
    for (op, request, answer) in &found.ops {
        text.push_str(&format!(
            "  {op:?}: {{ request: {request}, answer: {answer} }},\n"
        ));
    }
    text.push_str("};\n");
    check("web/src/wire/protocol.ts", &text);
}

// ---- tables

/// The names of an object's fields, those that may be absent with a `?`.
fn fields(schema: &Value) -> Vec<String> {
    let required = |name: &str| {
        let required = schema["required"].as_array();
        required.is_some_and(|required| required.iter().any(|one| one == name))
    };
    let properties = schema["properties"].as_object();
    let mut names: Vec<(bool, &String)> = properties
        .into_iter()
        .flatten()
        .map(|(name, _)| (!required(name), name))
        .collect();
    names.sort_unstable();
    let shown = |(is_optional, name): (bool, &String)| {
        let mark = if is_optional { "?" } else { "" };
        format!("`{name}{mark}`")
    };
    names.into_iter().map(shown).collect()
}

fn listed(names: &[String]) -> String {
    if names.is_empty() {
        "–".to_owned()
    } else {
        names.join(", ")
    }
}

fn operations(schemas: &Value) -> String {
    let mut table = "| Op | | | Fields | Answer | Audit |\n|---|---|---|---|---|---|\n".to_owned();
    let at = |reference: &Value| {
        let pointer = reference["$ref"].as_str().unwrap_or_default();
        schemas
            .pointer(pointer.trim_start_matches('#'))
            .cloned()
            .unwrap_or_default()
    };
    for op in Op::ALL {
        let about = &schemas["ops"][op.name()];
        let (request, answer) = (at(&about["request"]), at(&about["answer"]));
        let asked: Vec<String> = op
            .fields()
            .iter()
            .map(|field| format!("`{}{}`", field.name(), if field.is_optional { "?" } else { "" }))
            .collect();
        table.push_str(&format!(
            "| `{}` | {} | {} | {} | {} | {} |\n",
            op.name(),
            op.access().letter(),
            request["description"]
                .as_str()
                .unwrap_or_default()
                .replace('\n', " "),
            listed(&asked),
            listed(&fields(&answer)),
            op.audit().unwrap_or("–")
        ));
    }
    table
}

fn events(schemas: &Value) -> String {
    let mut table = "| Channel | Events |\n|---|---|\n".to_owned();
    let definitions = &schemas["answers"];
    let one_of = |name: &str| definitions[name]["oneOf"].as_array().cloned().unwrap_or_default();
    for channel in beamtalk_wire::Channel::ALL {
        let mut words = channel.name().split('_').map(|word| {
            let (first, rest) = word.split_at(1);
            format!("{}{rest}", first.to_uppercase())
        });
        let name = format!("{}Event", words.by_ref().collect::<String>());
        let told: Vec<String> = one_of(&name)
            .iter()
            .filter_map(|event| {
                let event_name = event["properties"]["event"]["const"].as_str()?;
                let data = fields(&event["properties"]["data"]);
                (event_name != "dropped").then(|| match data.as_slice() {
                    [] => format!("`{event_name}`"),
                    data => format!("`{event_name}` ({})", data.join(", ")),
                })
            })
            .collect();
        assert!(!told.is_empty(), "{name} has no events");
        table.push_str(&format!("| `{}` | {} |\n", channel.name(), told.join("; ")));
    }
    table
}

fn kinds() -> String {
    let names: Vec<String> = ErrorKind::KNOWN.iter().map(|kind| format!("`{kind}`")).collect();
    format!("{}.\n", names.join(", "))
}

/// A page with what is between its markers replaced.
fn filled(page: &str, marker: &str, inside: &str) -> String {
    let (start, end) = (format!("<!-- {marker} -->\n"), format!("<!-- /{marker} -->"));
    let (before, rest) = page
        .split_once(&start)
        .unwrap_or_else(|| panic!("no marker {marker}"));
    let (_, after) = rest.split_once(&end).expect("an end");
    format!("{before}{start}{inside}{end}{after}")
}

#[test]
fn the_tables_of_the_page_are_those_of_the_types() {
    let schemas = schemas();
    let path = "docs/protocol.md";
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    let mut page = std::fs::read_to_string(file).expect("the page");
    page = filled(&page, "operations", &operations(&schemas));
    page = filled(&page, "events", &events(&schemas));
    page = filled(&page, "error kinds", &kinds());
    check(path, &page);
}
