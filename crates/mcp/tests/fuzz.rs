//! The checks of the fuzz target on a fixed set of broken lines.

#![expect(unreachable_pub, reason = "shared with the fuzz targets")]

#[path = "../../../fuzz/checks/mcp.rs"]
mod mcp;
#[path = "../../../fuzz/checks/mutate.rs"]
mod mutate;
#[path = "../../../fuzz/checks/seeds.rs"]
mod seeds;

/// However a line is broken, a request in it gets one answer and nothing panics. `FUZZ_LINES` says how many are tried.
#[test]
fn broken_lines_are_answered_once() {
    let seeds = seeds::of("mcp");
    assert!(seeds.len() > 3, "the seeds have moved");
    let wanted = std::env::var("FUZZ_LINES").ok();
    let count = wanted.map_or(20_000, |count| count.parse().expect("a number"));
    mutate::each_mutation(&seeds, count, mcp::check);
}
