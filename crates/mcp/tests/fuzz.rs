//! The checks of the fuzz target on a fixed set of broken lines.

#![expect(clippy::disallowed_methods, reason = "the seeds are files")]
#![expect(unreachable_pub, reason = "shared with the fuzz targets")]

#[path = "../../../fuzz/checks/mcp.rs"]
mod mcp;
#[path = "../../../fuzz/checks/mutate.rs"]
mod mutate;
#[path = "../../../fuzz/checks/seeds.rs"]
mod seeds;

#[test]
fn broken_lines_are_answered_once() {
    let seeds = seeds::of("mcp");
    assert!(seeds.len() > 3, "the seeds have moved");
    mutate::each_mutation(&seeds, 20_000, mcp::check);
}
