//! The checks of the fuzz target on a fixed set of broken terms.

#![expect(clippy::disallowed_methods, reason = "the seeds are files")]
#![expect(unreachable_pub, reason = "shared with the fuzz targets")]

#[path = "../../../fuzz/checks/etf.rs"]
mod etf;
#[path = "../../../fuzz/checks/mutate.rs"]
mod mutate;
#[path = "../../../fuzz/checks/seeds.rs"]
mod seeds;

#[test]
fn broken_terms_are_refused_or_read_and_written_alike() {
    let seeds = seeds::of("etf");
    assert!(seeds.len() > 5, "the seeds have moved");
    mutate::each_mutation(&seeds, 50_000, etf::check);
}
