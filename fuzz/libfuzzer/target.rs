//! One program for each target; its name says which check it runs.
#![no_main]
#![allow(dead_code, unused_imports)]

#[path = "../checks/agents.rs"]
mod agents;
#[path = "../checks/etf.rs"]
mod etf;
#[path = "../targets/grammar_of_source.rs"]
mod grammar_of_source;
#[path = "../checks/loop_config.rs"]
mod loop_config;
#[path = "../checks/ninep.rs"]
mod ninep;
#[path = "../checks/source.rs"]
mod source;
#[path = "../checks/wire.rs"]
mod wire;

use beamtalk_fuzz::Entropy;
use beamtalk_project::manifest::Manifest;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| match env!("CARGO_BIN_NAME") {
    "source" => drop(std::str::from_utf8(bytes).map(source::check)),
    "source_grammar" => source::check(&grammar_of_source::GRAMMAR.text(&mut Entropy::new(bytes))),
    "etf" => etf::check(bytes),
    "wire" => wire::check(bytes),
    "ninep" => ninep::check(bytes),
    "manifest" => drop(std::str::from_utf8(bytes).map(|text| Manifest::parse(text, "beamtalk.toml"))),
    "loop_config" => loop_config::check(bytes),
    "loop_head" => beamtalk_loop::read_strange_post(bytes),
    "yaml" => drop(std::str::from_utf8(bytes).map(beamtalk_agents::read_strange_config)),
    "agents_text" => agents::check(bytes),
    "gate" => beamtalk_workspace::gate::read_strange_bytes(bytes),
    "change_log" => beamtalk_workspace::changes::read_strange_log(bytes),
    name => panic!("no check is called {name}"),
});
