//! `beamtalk generate stubs`: a typed class for each Erlang module, made from the types its `.beam` file carries.
//!
//! The class is a native one: its methods call the functions of the module. Copied into `src/` it gives completion,
//! documentation and checks for the module.

use std::path::{Path, PathBuf};

use anyhow::Context;
use beamtalk_compiler::ffi::Function;
use beamtalk_node::Erlang;
use beamtalk_project::build::graph;
use beamtalk_project::specs::Specs;
use beamtalk_project::{Project, files};

use crate::exit::{Exit, Fault};
use crate::terminal::Terminal;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Erlang modules: of OTP, or of the project's `native/`.
    #[arg(required = true, value_name = "MODULE")]
    modules: Vec<String>,
    /// A further directory of `.beam` files.
    #[arg(long, value_name = "D")]
    native_dir: Option<PathBuf>,
    /// Where the classes are written.
    #[arg(short, value_name = "DIR", default_value = "stubs")]
    output: PathBuf,
}

pub(crate) fn run(terminal: &mut Terminal, arguments: &Arguments) -> anyhow::Result<Exit> {
    for module in &arguments.modules {
        if !is_word(module) {
            return Err(Fault::usage("bad_module", format!("'{module}' is not a module name")).into());
        }
    }
    let directories = directories(arguments)?;
    let erlang = Erlang::find()?;
    let specs = Specs::new(directories, Some(&erlang));
    // All modules are read before the first file is written.
    let mut stubs = Vec::new();
    for module in &arguments.modules {
        let functions = match specs.find(module) {
            Some(path) => specs.functions(module, &path).map_err(|fault| fault.to_string()),
            None => Err("no .beam file is on the code path".to_owned()),
        };
        let functions = functions.map_err(|text| {
            Fault::failure("module_not_found", format!("module '{module}': {text}")).with_hint(
                "build the project first, or name the directory of the .beam file with --native-dir",
            )
        })?;
        stubs.push((module, class(module, &functions)?));
    }
    let output = &arguments.output;
    std::fs::create_dir_all(output).with_context(|| format!("cannot create {}", output.display()))?;
    let mut written = Vec::new();
    for (module, text) in stubs {
        let path = output.join(format!("{module}.bt"));
        files::write_atomic(&path, text.as_bytes())?;
        if !terminal.is_json() {
            terminal.print(path.display())?;
        }
        written.push(path);
    }
    if terminal.is_json() {
        terminal.print(serde_json::json!({ "files": written }))?;
    }
    Ok(Exit::Success)
}

/// Where `.beam` files are looked for before OTP's own.
fn directories(arguments: &Arguments) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    if let Some(directory) = &arguments.native_dir {
        if !directory.is_dir() {
            let message = format!("{} is not a directory", directory.display());
            return Err(Fault::usage("path_missing", message).into());
        }
        found.push(directory.clone());
    }
    if let Some(project) = Project::find(Path::new("."))? {
        found.push(graph::native_output(&project.output()));
    }
    Ok(found)
}

/// The text of the class, in the standard layout.
fn class(module: &str, functions: &[Function]) -> anyhow::Result<String> {
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
    beamtalk_syntax::format(&text)
        .map_err(|error| anyhow::anyhow!("the stub of '{module}' cannot be laid out: {error}"))
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

fn is_word(name: &str) -> bool {
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

    use super::class;

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
        let text = class(
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
