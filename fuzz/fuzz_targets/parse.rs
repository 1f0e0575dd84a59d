#![no_main]

#[path = "../checks/parse.rs"]
mod parse;

libfuzzer_sys::fuzz_target!(|source: &str| parse::check(source));
