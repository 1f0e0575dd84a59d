//! A typed class for an Erlang module, made from the types that its functions carry.

use beamtalk_compiler::ffi::Function;

use crate::Fault;

/// The text of the class, in the standard layout.
pub fn stub(module: &str, functions: &[Function]) -> Result<String, Fault> {
    let mut text = format!(
        "/// The Erlang module `{module}`.\ntyped Object subclass: {} native: {module}\n",
        class_name(module)
    );
    for function in functions {
        let Function { name, result, .. } = function;
        let method = format!("{} -> {result} => self delegate", head(function));
        let (parsed, faults) = beamtalk_syntax::parse_method(&method);
        let is_possible = is_word(name) && !beamtalk_compiler::is_erlang_reserved(name) && name != "delegate";
        let arity = function.parameters.len();
        if is_possible && parsed.is_some() && faults.is_empty() {
            text.push_str(&format!("\n  /// `{module}:{name}/{arity}`\n  class {method}\n"));
        } else {
            text.push_str(&format!("\n  // {name}/{arity} cannot be a method\n"));
        }
    }
    beamtalk_syntax::format(&text).map_err(|error| {
        Fault::failure(
            "failed",
            format!("the stub of '{module}' cannot be laid out: {error}"),
        )
    })
}

/// `seq: from :: Integer to: to :: Integer`: the first keyword is the function, the others name the parameters.
fn head(function: &Function) -> String {
    let mut names: Vec<String> = Vec::new();
    let mut parts = Vec::new();
    for (at, parameter) in function.parameters.iter().enumerate() {
        let kind = &parameter.text;
        let mut name = parameter_name(&parameter.name, at);
        if names.contains(&name) {
            name = format!("{name}{}", at + 1);
        }
        let keyword = if at == 0 { function.name.as_str() } else { &name };
        parts.push(format!("{keyword}: {name} :: {kind}"));
        names.push(name);
    }
    if parts.is_empty() {
        function.name.to_string()
    } else {
        parts.join(" ")
    }
}

/// `List1` → `list1`; what cannot be a name is counted.
fn parameter_name(name: &str, at: usize) -> String {
    const WORDS: &[&str] = &[
        "self", "super", "true", "false", "nil", "class", "typed", "sealed", "abstract", "internal",
    ];
    let mut letters = name.trim_start_matches('_').chars();
    let first = letters.next().map(|first| first.to_ascii_lowercase());
    let lower: String = first.into_iter().chain(letters).collect();
    if is_word(&lower) && !WORDS.contains(&lower.as_str()) {
        lower
    } else {
        format!("argument{}", at + 1)
    }
}

pub fn is_word(name: &str) -> bool {
    name.len() <= 255
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// `gen_tcp` → `ErlangGenTcp`: the plain name may be a standard class.
fn class_name(module: &str) -> String {
    let words = module.split('_').map(|word| {
        let mut letters = word.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    });
    std::iter::once("Erlang".to_owned()).chain(words).collect()
}

#[cfg(test)]
mod tests {
    use beamtalk_compiler::ffi::{Function, Kinds, Parameter};

    use super::stub;

    #[test]
    fn a_module_becomes_a_typed_native_class() {
        let function = |name: &str, parameters: &[(&str, &str)], result: &str| Function {
            name: name.into(),
            parameters: parameters
                .iter()
                .map(|(name, kind)| Parameter {
                    name: (*name).into(),
                    text: (*kind).into(),
                    kinds: Kinds::ANY,
                    atoms: None,
                })
                .collect(),
            result: result.into(),
            answer: result.into(),
        };
        let text = stub(
            "gen_odd",
            &[
                function("seq", &[("From", "Integer"), ("To", "Integer")], "List(Integer)"),
                function("now", &[], "Integer"),
                function("receive", &[], "Integer"),
                function("pair", &[("X", "Dynamic"), ("X", "Dynamic")], "Dynamic"),
            ],
        )
        .unwrap();
        insta::assert_snapshot!(text);
    }
}
