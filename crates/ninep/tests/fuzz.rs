//! The checks of the fuzz targets on a fixed set of broken messages.

#![expect(unreachable_pub, reason = "shared with the fuzz targets")]

#[path = "../../../fuzz/checks/mutate.rs"]
mod mutate;
#[path = "../../../fuzz/checks/ninep.rs"]
mod ninep;

use beamtalk_ninep::{Dialect, parse_request};

#[test]
fn broken_messages_are_refused_or_read_but_never_hurt() {
    let traces = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/ninep");
    let mut seeds: Vec<Vec<u8>> = Vec::new();
    for entry in std::fs::read_dir(traces).unwrap() {
        for line in std::fs::read_to_string(entry.unwrap().path()).unwrap().lines() {
            seeds.push(line.as_bytes().to_vec());
            if let Some((tag, request)) = parse_request(line) {
                for dialect in [Dialect::Plan9, Dialect::Linux] {
                    let mut frame = Vec::new();
                    request.encode(tag, dialect, &mut frame);
                    // The checks take type and body.
                    let mut bytes = vec![request.number()];
                    bytes.extend_from_slice(frame.get(7..).unwrap_or_default());
                    seeds.push(bytes);
                }
            }
        }
    }
    assert!(seeds.len() > 100, "the traces have moved");
    mutate::each_mutation(&seeds, 50_000, ninep::check);
}
