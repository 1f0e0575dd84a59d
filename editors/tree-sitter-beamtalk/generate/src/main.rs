//! Makes src/parser.c of grammar.js: run by `make grammar`, never by a build. Kept apart from the
//! workspace, so that nobody else compiles the generator.

use std::path::Path;
use std::process::ExitCode;

use tree_sitter_generate::{OptLevel, generate_parser_in_directory};

/// Understood by the editors of the last years.
const ABI: usize = 14;

fn main() -> ExitCode {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut notes = Vec::new();
    let made = generate_parser_in_directory(
        &folder,
        None::<&Path>,
        None::<&Path>,
        ABI,
        None,
        Some("node"),
        true,
        OptLevel::default(),
        &mut notes,
    );
    for note in notes {
        eprintln!("{note:?}");
    }
    if let Err(error) = made {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    // A test compares this with grammar.js, so that no old parser is committed.
    let grammar = std::fs::read(folder.join("grammar.js")).expect("the grammar was just read");
    let hash = grammar.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    match std::fs::write(folder.join("src/grammar.stamp"), format!("{hash:016x}\n")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
