//! Any text parses without a panic, and what formats keeps its meaning and its layout.

use beamtalk_syntax::{FormatError, format_input, is_incomplete, parse_file, parse_method};

/// A method, or an input to wait for more of, is no longer; all of them are lexed and parsed alike.
const SHORT: usize = 200;

pub fn check(source: &str) {
    let _ = parse_file(source);
    if source.len() <= SHORT {
        let _ = parse_method(source);
        let _ = is_incomplete(source);
    }
    match format_input(source) {
        // What has its layout already keeps it.
        Ok(once) if once == source => {}
        Ok(once) => assert_eq!(format_input(&once).expect("formatted text formats"), once),
        Err(FormatError::Syntax(_)) => {}
        Err(FormatError::Changed) => panic!("formatting changes the meaning"),
    }
}
