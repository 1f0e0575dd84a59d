//! JSON Schemas of the tools, made of their types at test time.

mod words;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// Something that is done with the types of every tool.
pub trait Visitor {
    fn tool<I: JsonSchema, O: JsonSchema>(&mut self, name: &str);
}

struct Schemas {
    inputs: SchemaGenerator,
    outputs: SchemaGenerator,
    tools: Map<String, Value>,
}

impl Visitor for Schemas {
    fn tool<I: JsonSchema, O: JsonSchema>(&mut self, name: &str) {
        let mut input = self.inputs.clone().into_root_schema_for::<I>().to_value();
        let mut output = self.outputs.clone().into_root_schema_for::<O>().to_value();
        for schema in [&mut input, &mut output] {
            tidy(schema);
            if let Some(fields) = schema.as_object_mut() {
                fields.remove("$schema");
                fields.remove("title");
                fields.remove("description");
            }
        }
        explain(&mut output);
        if let Some(properties) = output["properties"].as_object_mut() {
            let about = json!({"type": "boolean", "description": "It was longer; ask for less."});
            properties.insert("truncated".to_owned(), about);
        } else {
            output["properties"] = json!({});
        }
        output["additionalProperties"] = false.into();
        input["additionalProperties"] = false.into();
        if !input["properties"].is_object() {
            input["properties"] = json!({});
        }
        self.tools
            .insert(name.to_owned(), json!({"input": input, "output": output}));
    }
}

/// One type for each property, no formats, every object closed.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.remove("format");
            if fields.get("default").is_some_and(Value::is_null) {
                fields.remove("default");
            }
            if let Some(Value::Array(types)) = fields.get_mut("type") {
                types.retain(|one| one != "null");
                if let [one] = types.as_slice() {
                    let one = one.clone();
                    fields.insert("type".to_owned(), one);
                }
            }
            if let Some(Value::Array(words)) = fields.get_mut("enum") {
                words.retain(|word| !word.is_null());
            }
            // An alternative with nothing is the other one.
            if let Some(Value::Array(mut some)) = fields.remove("anyOf") {
                some.retain(|one| one["type"] != "null");
                if let [Value::Object(one)] = some.as_slice() {
                    for (key, value) in one {
                        fields.entry(key.clone()).or_insert_with(|| value.clone());
                    }
                } else {
                    fields.insert("anyOf".to_owned(), Value::Array(some));
                }
            }
            // Words that are described one by one are still words.
            if let Some(Value::Array(some)) = fields.get("oneOf") {
                let words: Vec<Value> = some
                    .iter()
                    .flat_map(|one| match &one["enum"] {
                        Value::Array(words) => words.clone(),
                        _ => vec![one["const"].clone()],
                    })
                    .collect();
                if words.iter().all(Value::is_string) {
                    fields.remove("oneOf");
                    fields.insert("type".to_owned(), "string".into());
                    fields.insert("enum".to_owned(), Value::Array(words));
                }
            }
            for value in fields.values_mut() {
                tidy(value);
            }
            if fields.contains_key("properties") && fields.get("type").is_some_and(|one| one == "object") {
                fields.insert("additionalProperties".to_owned(), false.into());
            }
        }
        Value::Array(values) => values.iter_mut().for_each(tidy),
        _ => {}
    }
}

/// Every property says what it is.
fn explain(schema: &mut Value) {
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        for (name, property) in properties {
            let word = words::WORDS.iter().find(|(known, _)| known == name);
            if let (Some((_, about)), Some(fields)) = (word, property.as_object_mut()) {
                fields.entry("description").or_insert_with(|| Value::from(*about));
            }
            explain(property);
        }
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get_mut(inner) {
            explain(inner);
        }
    }
}

/// The schemas of all tools, by name.
pub fn generate() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schemas = Schemas {
        inputs: settings.clone().for_deserialize().into_generator(),
        outputs: settings.for_serialize().into_generator(),
        tools: Map::new(),
    };
    crate::tools::each_tool(&mut schemas);
    Value::Object(schemas.tools)
}
