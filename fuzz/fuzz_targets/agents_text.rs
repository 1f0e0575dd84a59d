#![no_main]

#[path = "../checks/agents.rs"]
mod agents;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| agents::check(bytes));
