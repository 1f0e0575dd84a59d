//! The types of Erlang functions, from the files of the installed OTP.

use beamtalk_compiler::ffi::{Function, Kinds, Module};
use beamtalk_node::Erlang;
use beamtalk_project::specs::Specs;

fn specs() -> Specs {
    Specs::new(Vec::new(), Some(&Erlang::find().expect("Erlang is installed")))
}

fn module(specs: &Specs, name: &str) -> Module {
    let path = specs
        .find(name)
        .unwrap_or_else(|| panic!("{name} is part of OTP"));
    Module::new(specs.functions(name, &path).expect("the file can be read"))
}

fn function(module: &Module, name: &str, arity: usize) -> Function {
    let found = module.function(name, arity);
    found.unwrap_or_else(|| panic!("{name}/{arity}")).clone()
}

fn parameters(function: &Function) -> Vec<String> {
    let shown = function
        .parameters
        .iter()
        .map(|it| format!("{} :: {}", it.name, it.text));
    shown.collect()
}

#[test]
fn specifications_are_mapped_as_the_reference_says() {
    let specs = specs();
    let lists = module(&specs, "lists");
    let seq = function(&lists, "seq", 2);
    assert_eq!(parameters(&seq), ["From :: Integer", "To :: Integer"]);
    assert_eq!(seq.answer, "List(Integer)");
    assert_eq!(lists.arities("seq"), [2, 3]);
    assert_eq!(lists.arities("no_such"), Vec::<usize>::new());
    let reverse = function(&lists, "reverse", 1);
    assert!(!reverse.parameters[0].kinds.meets(Kinds::INTEGER));
    assert!(reverse.parameters[0].kinds.meets(Kinds::LIST));
    assert_eq!(function(&lists, "member", 2).answer, "Boolean");

    let file = module(&specs, "file");
    assert_eq!(function(&file, "read_file", 1).answer, "Result(String, Dynamic)");
    assert!(
        function(&file, "read_file", 1)
            .result
            .starts_with("Result(String | Binary, ")
    );
    assert_eq!(function(&file, "delete", 1).answer, "Result(Nil, Dynamic)");

    let erlang = module(&specs, "erlang");
    // `calendar:date()`: the types of other modules are not looked into.
    assert_eq!(function(&erlang, "date", 0).answer, "Dynamic");
    assert_eq!(function(&erlang, "node", 0).answer, "Symbol");
    assert_eq!(function(&erlang, "binary_to_term", 1).answer, "Dynamic");
    assert_eq!(function(&erlang, "halt", 0).answer, "Never");
    assert!(specs.find("no_such_module").is_none());
}

#[test]
fn character_lists_of_the_modules_of_text_are_not_promised_to_be_lists() {
    let specs = specs();
    assert_eq!(function(&module(&specs, "os"), "getenv", 2).answer, "Dynamic");
    assert_eq!(
        function(&module(&specs, "filename"), "basename", 1).answer,
        "Dynamic"
    );
    assert_eq!(
        function(&module(&specs, "erlang"), "integer_to_list", 1).answer,
        "List(Integer)"
    );
}

/// Every module of the standard library can be read, and every type that comes out is one that the parser knows.
#[test]
fn every_module_of_the_standard_library_is_read() {
    let specs = specs();
    let lists = specs.find("lists").expect("lists");
    let directory = lists.parent().expect("a directory");
    let mut count = 0;
    for entry in std::fs::read_dir(directory).expect("can be listed") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        if path.extension().is_none_or(|extension| extension != "beam") {
            continue;
        }
        let functions = specs
            .functions(&name, &path)
            .unwrap_or_else(|fault| panic!("{name}: {fault}"));
        let module = Module::new(functions);
        for function in module.functions() {
            let arity = function.parameters.len();
            let answer = module.answer(&function.name, arity);
            assert!(
                answer.is_some(),
                "{name}:{}/{arity} answers {}",
                function.name,
                function.answer
            );
        }
        count += 1;
    }
    assert!(count > 50, "{count}");
}
