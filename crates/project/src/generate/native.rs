//! The Erlang module behind a `native:` class, ready to be filled in.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use beamtalk_compiler::{ClassTable, Kind, erlang_atom, is_delegate};
use beamtalk_syntax::ast::{Class, Item, Method};
use beamtalk_syntax::nearest;
use beamtalk_syntax::span::Span;

use crate::Fault;
use crate::source::Parsed;

/// The module's name and its text.
pub fn skeleton(files: &[Parsed], table: &ClassTable, name: &str) -> Result<(String, String), Fault> {
    let classes = || {
        files.iter().flat_map(|parsed| {
            parsed.file.unit.items.iter().filter_map(move |item| match item {
                Item::Class(class) => Some((parsed, class)),
                _ => None,
            })
        })
    };
    let Some((parsed, class)) = classes().find(|(_, class)| class.name.text == name) else {
        let known = classes().map(|(_, class)| class.name.text.as_str());
        let fault = Fault::failure("class_not_found", format!("the project has no class '{name}'"));
        return Err(match nearest(name, known, 1).first() {
            Some(close) => fault.with_hint(format!("did you mean '{close}'?")),
            None => fault,
        });
    };
    let Some(module) = &class.native else {
        let message = format!("'{name}' is not a native class");
        let hint = format!("name its Erlang module in the header: subclass: {name} native: module");
        return Err(Fault::usage("not_native", message).with_hint(hint));
    };
    let delegates: Vec<&Method> = class
        .methods
        .iter()
        .filter(|method| is_delegate(method))
        .collect();
    let text = match table.kind(name) {
        Kind::Actor => actor(class, &module.text, &delegates, parsed),
        Kind::Object | Kind::Value => functions(class, &module.text, &delegates, parsed),
    };
    Ok((module.text.to_string(), text))
}

/// What an Erlang function is called by, or what a process is asked: the signature as the class has it.
fn signature(method: &Method, parsed: &Parsed) -> String {
    let end = method
        .result
        .as_ref()
        .map_or(method.head.span.end, |result| result.span.end);
    let start = method.head.span.start;
    let text = Span::new(start, end).text(&parsed.file.text);
    let words: Vec<&str> = text.split_whitespace().collect();
    let side = if method.is_class { "class " } else { "" };
    format!("{side}{}", words.join(" "))
}

fn functions(class: &Class, module: &str, delegates: &[&Method], parsed: &Parsed) -> String {
    // Selectors that share their first keyword and their number of arguments share the function.
    let mut heads: BTreeMap<(String, usize), (Vec<String>, Vec<String>)> = BTreeMap::new();
    for method in delegates {
        let parameters = method
            .head
            .parameters
            .iter()
            .map(|parameter| variable(&parameter.name.text));
        let receiver = (!method.is_class).then(|| "_Self".to_owned());
        let parameters: Vec<String> = receiver.into_iter().chain(parameters).collect();
        let first = method.head.selector.split(':').next().unwrap_or_default();
        let (signatures, _) = heads
            .entry((first.to_owned(), parameters.len()))
            .or_insert_with(|| (Vec::new(), distinct(parameters)));
        signatures.push(signature(method, parsed));
    }
    let exports: Vec<String> = heads
        .keys()
        .map(|(name, arity)| format!("{}/{arity}", erlang_atom(name)))
        .collect();
    let mut text = format!(
        "%% The Erlang side of the class {}.\n-module({}).\n\n-export([{}]).\n",
        class.name.text,
        erlang_atom(module),
        exports.join(", ")
    );
    for ((name, arity), (signatures, parameters)) in &heads {
        text.push('\n');
        for signature in signatures {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "%% {signature}");
        }
        let anything = vec!["term()"; *arity].join(", ");
        let name = erlang_atom(name);
        let _ = writeln!(text, "-spec {name}({anything}) -> term().");
        let _ = writeln!(
            text,
            "{name}({}) ->\n    error(not_implemented).",
            parameters.join(", ")
        );
    }
    text
}

fn actor(class: &Class, module: &str, delegates: &[&Method], parsed: &Parsed) -> String {
    let mut text = format!(
        "%% The process behind the actor class {}.\n-module({}).\n-behaviour(gen_server).\n\n\
         -export([start_link/1]).\n-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).\n\n\
         %% Config is the Dictionary of spawnWith:, or an empty one.\n\
         -spec start_link(map()) -> {{ok, pid()}} | {{error, term()}}.\n\
         start_link(Config) ->\n    gen_server:start_link(?MODULE, Config, []).\n\n\
         init(Config) ->\n    {{ok, Config}}.\n\n",
        class.name.text,
        erlang_atom(module)
    );
    for method in delegates.iter().filter(|method| !method.is_class) {
        let parameters = method
            .head
            .parameters
            .iter()
            .map(|parameter| variable(&parameter.name.text))
            .collect();
        let _ = write!(
            text,
            "%% {}\nhandle_call({{{}, [{}], _Context}}, _From, State) ->\n    {{reply, {{error, not_implemented}}, State}};\n",
            signature(method, parsed),
            erlang_atom(&method.head.selector),
            distinct(parameters).join(", ")
        );
    }
    text.push_str(
        "handle_call({Selector, _Arguments, _Context}, _From, State) ->\n    \
         {reply, {error, {does_not_understand, Selector}}, State}.\n\n\
         %% What is sent with `!`.\n\
         handle_cast({cast, _Selector, _Arguments, _Context}, State) ->\n    {noreply, State}.\n\n\
         handle_info(_Message, State) ->\n    {noreply, State}.\n",
    );
    text
}

/// A parameter as an Erlang variable that may stay unused.
fn variable(name: &str) -> String {
    let name: String = name
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '_')
        .collect();
    let mut letters = name.trim_start_matches('_').chars();
    let first = letters.next().map_or('A', |first| first.to_ascii_uppercase());
    format!("_{first}{}", letters.as_str())
}

/// The same names, numbered where one would stand twice.
fn distinct(names: Vec<String>) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    for name in names {
        let count = seen
            .iter()
            .filter(|known| **known == name || known.starts_with(&format!("{name}_")))
            .count();
        seen.push(if count == 0 {
            name
        } else {
            format!("{name}_{}", count + 1)
        });
    }
    seen
}

#[cfg(test)]
mod tests {
    use beamtalk_compiler::erlang_atom;

    use super::{distinct, variable};

    #[test]
    fn names_become_erlang() {
        assert_eq!(variable("key"), "_Key");
        assert_eq!(variable("_x"), "_X");
        assert_eq!(erlang_atom("read"), "read");
        assert_eq!(erlang_atom("at:put:"), "'at:put:'");
        assert_eq!(erlang_atom("receive"), "'receive'");
        let names = ["_A", "_A", "_B"].map(str::to_owned).to_vec();
        assert_eq!(distinct(names), ["_A", "_A_2", "_B"]);
    }
}
