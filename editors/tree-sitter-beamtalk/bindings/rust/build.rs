//! Compiles the committed parser; `make grammar` makes it of grammar.js.

fn main() {
    for file in ["parser.c", "scanner.c"] {
        println!("cargo:rerun-if-changed=src/{file}");
    }
    cc::Build::new()
        .std("c11")
        .include("src")
        .flag_if_supported("-Wno-unused")
        // The tables take long to optimise and gain nothing by it.
        .opt_level(0)
        .file("src/parser.c")
        .file("src/scanner.c")
        .compile("tree-sitter-beamtalk");
}
