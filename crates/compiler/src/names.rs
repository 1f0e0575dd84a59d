//! Names on the Erlang side: modules, functions.

use ecow::{EcoString, eco_format};

/// Words no Erlang function can be called by without quotes; a native method may not be named like one.
const ERLANG_RESERVED: &[&str] = &[
    "after", "and", "andalso", "band", "begin", "bnot", "bor", "bsl", "bsr", "bxor", "case", "catch", "cond",
    "div", "else", "end", "fun", "if", "let", "maybe", "not", "of", "or", "orelse", "receive", "rem", "try",
    "when", "xor",
];

/// Whether Erlang reads this word as something other than a name.
pub fn is_erlang_reserved(word: &str) -> bool {
    ERLANG_RESERVED.contains(&word)
}

/// A name as Erlang's atom, quoted where that is needed.
pub fn erlang_atom(name: &str) -> String {
    let is_plain = name.starts_with(|first: char| first.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '@')
        && !is_erlang_reserved(name);
    if is_plain {
        name.to_owned()
    } else {
        format!("'{name}'")
    }
}

/// The BEAM module of a source file: `bt@package@path`, or `bt@name` outside a package.
///
/// `path` is relative to `src/`, with or without its extension.
pub fn module_name(package: Option<&str>, path: &str) -> String {
    let stem = path.strip_suffix(".bt").unwrap_or(path);
    let path: Vec<String> = stem
        .split('/')
        .filter(|part| !part.is_empty())
        .map(snake_case)
        .collect();
    match package {
        Some(package) => format!("bt@{package}@{}", path.join("@")),
        None => format!("bt@{}", path.last().cloned().unwrap_or_default()),
    }
}

/// `HTTPServer` → `http_server`, `MyApp2` → `my_app2`, `Rect+Json` → `rect_json`.
pub(crate) fn snake_case(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut out = String::with_capacity(name.len() + 4);
    for (index, &c) in chars.iter().enumerate() {
        if !c.is_ascii_alphanumeric() {
            if !out.ends_with('_') && !out.is_empty() {
                out.push('_');
            }
            continue;
        }
        if c.is_ascii_uppercase() && !out.is_empty() && !out.ends_with('_') {
            let previous = chars.get(index.wrapping_sub(1)).copied().unwrap_or('_');
            let next_is_lower = chars.get(index + 1).is_some_and(char::is_ascii_lowercase);
            if previous.is_ascii_lowercase() || previous.is_ascii_digit() || next_is_lower {
                out.push('_');
            }
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// The Erlang function of an instance method.
pub(crate) fn instance_function(selector: &str) -> EcoString {
    match selector {
        // Every module has a `module_info/1` already; no keyword method has this name with one argument.
        "module_info" => "module_info:".into(),
        _ => atom(selector.into()),
    }
}

/// The Erlang function of a class method.
pub(crate) fn class_function(selector: &str) -> EcoString {
    atom(eco_format!("class {}", atom(selector.into())))
}

/// The Erlang function of an extension.
pub(crate) fn extension_function(target: &str, is_class: bool, selector: &str) -> EcoString {
    atom(if is_class {
        eco_format!("{target} class >> {selector}")
    } else {
        eco_format!("{target} >> {selector}")
    })
}

/// The module of a method defined in a session: one for each class, side and selector.
pub(crate) fn patch_module(extension: &beamtalk_syntax::ast::Extension) -> EcoString {
    let target = &extension.target.name.text;
    let side = if extension.method.is_class { "class " } else { "" };
    let method = format!("{side}{}", extension.method.head.selector);
    eco_format!(
        "bt@patch@{}@{:016x}",
        snake_case(target),
        fnv1a(method.as_bytes())
    )
}

/// The function of the method that a function belongs to: its own, or the method's whose loop or rest it is.
pub(crate) fn method_of(function: &str) -> &str {
    [" loop ", " rest ", " fast "]
        .iter()
        .find_map(|part| function.rfind(part).and_then(|at| function.get(..at)))
        .unwrap_or(function)
}

/// Atoms hold 255 characters; a longer name becomes its hash.
pub(crate) fn atom(name: EcoString) -> EcoString {
    if name.chars().count() <= 255 {
        name
    } else {
        eco_format!("kw_{:016x}", fnv1a(name.as_bytes()))
    }
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snake_case_starts_a_word_at_a_capital() {
        for (name, expected) in [
            ("HttpPool", "http_pool"),
            ("HTTPServer", "http_server"),
            ("MyApp2", "my_app2"),
            ("Rect+Json", "rect_json"),
            ("Rect", "rect"),
            ("OTPNode", "otp_node"),
        ] {
            assert_eq!(snake_case(name), expected);
        }
    }

    #[test]
    fn modules_carry_package_and_path() {
        assert_eq!(
            module_name(Some("orbit"), "util/OrbitMath.bt"),
            "bt@orbit@util@orbit_math"
        );
        assert_eq!(module_name(None, "test/fixtures/Kettle.bt"), "bt@kettle");
    }

    #[test]
    fn a_long_selector_becomes_its_hash() {
        let long = "part:".repeat(60);
        let name = instance_function(&long);
        assert!(name.starts_with("kw_") && name.len() == 19, "{name}");
    }
}
