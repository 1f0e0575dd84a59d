//! What to do about an error that says only what is wrong: a client that follows hints finds its way.

use beamtalk_wire::{ErrorBody, requests};
use serde_json::Value;

use crate::arguments::nearest;
use crate::host::Host;

/// The same error with something to do next.
pub(crate) async fn advised<H: Host>(host: &H, mut error: Box<ErrorBody>) -> Box<ErrorBody> {
    let own = error.hint.take();
    // A command of the prompt is nothing that a client could give.
    let is_command = own.as_ref().is_some_and(|hint| hint.starts_with(':'));
    if own.is_some() && !is_command {
        error.hint = own;
        return error;
    }
    error.hint = match error.kind.name() {
        "class_not_found" => {
            let named = error.details.get("class").and_then(Value::as_str);
            let named = named.map(str::to_owned).or_else(|| error.class.clone());
            Some(class_hint(host, named.as_deref()).await)
        }
        "not_found" if is_command => {
            Some("list_changes shows what is pending, diff_change what differs".to_owned())
        }
        kind => of_kind(kind).map(str::to_owned),
    };
    if let (None, Some(command)) = (&error.hint, own) {
        error.hint = Some(format!("the person can, at the prompt: {command}"));
    }
    error
}

async fn class_hint<H: Host>(host: &H, named: Option<&str>) -> String {
    let all = "list_classes shows those there are";
    let Some(named) = named.filter(|_| host.is_connected()) else {
        return all.to_owned();
    };
    if let Some(file) = host.file_defining(named) {
        return format!(
            "{file} defines it and is not loaded: load_file (toolset edit) loads it, or evaluate Workspace load: \"{file}\""
        );
    }
    let known = host.ask(&requests::ListClasses { filter: None }).await;
    let known = known.map(|asked| asked.answer.class_list).unwrap_or_default();
    let names: Vec<String> = known.into_iter().map(|class| class.name).collect();
    match nearest(named, names.iter().map(String::as_str)) {
        Some(close) => format!("did you mean '{close}'? {all}"),
        None => all.to_owned(),
    }
}

fn of_kind(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "selector_not_found" => "read_source of the class shows its methods; 'side' is instance or class",
        "compile_failed" => {
            "mend what the diagnostics name; check_code looks at code without running it, search_docs explains a code"
        }
        "target_exists" => {
            "choose another path for another class; of this one change methods with save_method, and the superclass, fields \
             or comment by evaluating its whole text, that of read_source: a definition replaces all methods"
        }
        "file_not_found" | "read_error" => "paths are relative to the root of the project",
        "class_name_mismatch" => "a class stands in a file that has its name and ends in .bt",
        "invalid_actor" | "actor_not_alive" => "list_actors shows those that live",
        "undefined_variable" => "evaluate assigns it; pass the session whose variables are meant",
        "module_not_loaded" => "it is the name of a module as Erlang has it, such as lists",
        "shutting_down" => "try again in a moment; if nobody starts it again: beamtalk workspace start",
        "no_source" => "docs tells what it does",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::failure;
    use crate::strange::Nowhere;

    #[tokio::test]
    async fn an_error_says_what_to_do_and_keeps_its_own_advice() {
        let host = Nowhere::new();
        for kind in [
            "class_not_found",
            "selector_not_found",
            "compile_failed",
            "target_exists",
        ] {
            let advised = advised(&host, failure(kind, "no")).await;
            assert!(advised.hint.is_some(), "{kind}");
        }
        let own = Box::new(failure("class_not_found", "no").hint("own"));
        assert_eq!(advised(&host, own).await.hint.as_deref(), Some("own"));
        assert_eq!(advised(&host, failure("node_down", "no")).await.hint, None);
        let terminal = |kind: &str| Box::new(failure(kind, "no").hint(":changes lists what is pending"));
        let known = advised(&host, terminal("not_found")).await.hint;
        assert!(known.expect("a hint").starts_with("list_changes"));
        let other = advised(&host, terminal("conflict")).await.hint;
        assert_eq!(
            other.as_deref(),
            Some("the person can, at the prompt: :changes lists what is pending")
        );
    }
}
