//! The checks of the fuzz target on a fixed set of broken requests.

#![expect(clippy::disallowed_methods, reason = "the seeds are files")]
#![expect(unreachable_pub, reason = "shared with the fuzz targets")]

#[path = "../../../fuzz/checks/mutate.rs"]
mod mutate;
#[path = "../../../fuzz/checks/seeds.rs"]
mod seeds;
#[path = "../../../fuzz/checks/wire.rs"]
mod wire;

#[test]
fn broken_requests_are_refused_or_written_and_read_again() {
    let seeds = seeds::of("wire");
    assert!(seeds.len() > 3, "the seeds have moved");
    mutate::each_mutation(&seeds, 30_000, wire::check);
}
