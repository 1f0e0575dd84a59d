//! Completion and hover as answers of the wire protocol.

use beamtalk_compiler::ClassTable;
use beamtalk_compiler::complete::{self, Binding, Erlang};
use serde_json::{Value, json};

use super::job::Variable;

/// `completions` and `start`; besides, `erlang` says which names only the node knows: its fields are those of
/// `erlang-complete`.
pub(super) fn completions(table: &ClassTable, bound: &[Variable], code: &str, cursor: usize) -> Value {
    let found = complete::complete(table, &bindings(bound), code, cursor);
    let items: Vec<Value> = found
        .items
        .iter()
        .map(|item| {
            json!({
                "text": item.text.as_str(),
                "kind": item.kind.name(),
                "detail": item.detail.as_deref(),
                "origin": item.origin.as_deref(),
            })
        })
        .collect();
    let mut data = json!({"completions": items, "start": found.start});
    if let Some(erlang) = found.erlang {
        let module = match &erlang {
            Erlang::Modules => None,
            Erlang::Functions(module) => Some(module.as_str()),
        };
        data["erlang"] = json!({"prefix": found.prefix.as_str(), "module": module});
    }
    data
}

/// `contents`, `signature` and `kind`, all null where there is nothing to say.
pub(super) fn hover(table: &ClassTable, bound: &[Variable], code: &str, cursor: usize) -> Value {
    match complete::hover(table, &bindings(bound), code, cursor) {
        Some(found) => json!({
            "contents": found.contents,
            "signature": found.signature.as_deref(),
            "kind": found.kind.name(),
        }),
        None => json!({"contents": null, "signature": null, "kind": null}),
    }
}

fn bindings(bound: &[Variable]) -> Vec<Binding> {
    bound
        .iter()
        .map(|variable| Binding {
            name: variable.name.as_str().into(),
            class: variable.class.as_deref().map(Into::into),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete(code: &str) -> Value {
        let bound = [Variable {
            name: "total".into(),
            class: Some("Integer".into()),
        }];
        completions(&crate::compile::worker::library(), &bound, code, code.len())
    }

    #[test]
    fn completions_of_the_library_have_the_fields_of_the_protocol() {
        let data = complete("total factor");
        assert_eq!(data["start"], 6);
        assert_eq!(
            data["completions"],
            json!([{"text": "factorial", "kind": "method", "detail": "factorial -> Integer", "origin": "Integer"}])
        );
        assert_eq!(complete("tot")["completions"][0]["kind"], "variable");
    }

    #[test]
    fn erlang_names_are_asked_of_the_node() {
        assert_eq!(
            complete("Erlang li")["erlang"],
            json!({"prefix": "li", "module": null})
        );
        assert_eq!(
            complete("Erlang lists se")["erlang"],
            json!({"prefix": "se", "module": "lists"})
        );
    }

    #[test]
    fn hover_of_the_library_tells_the_documentation() {
        let data = hover(&crate::compile::worker::library(), &[], "3 factorial", 5);
        assert_eq!(data["signature"], "factorial -> Integer");
        assert!(
            data["contents"]
                .as_str()
                .is_some_and(|text| text.contains("product"))
        );
        assert_eq!(
            hover(&crate::compile::worker::library(), &[], "3", 1)["contents"],
            Value::Null
        );
    }
}
