#![no_main]

#[path = "../checks/ninep.rs"]
mod ninep;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ninep::check(bytes));
