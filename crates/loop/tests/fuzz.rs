//! The checks of the fuzz targets on a fixed set of broken configs and posts.

#![expect(unreachable_pub, reason = "shared with the fuzz targets")]

#[path = "../../../fuzz/checks/loop_config.rs"]
mod loop_config;
#[path = "../../../fuzz/checks/mutate.rs"]
mod mutate;
#[path = "../../../fuzz/checks/seeds.rs"]
mod seeds;

#[test]
fn broken_configs_are_read_or_refused_with_a_reason() {
    let seeds = seeds::of("loop_config");
    assert!(!seeds.is_empty(), "the seeds have moved");
    mutate::each_mutation(&seeds, 3_000, loop_config::check);
}

#[test]
fn broken_posts_are_never_admitted() {
    let seeds = seeds::of("head");
    assert!(!seeds.is_empty(), "the seeds have moved");
    mutate::each_mutation(&seeds, 20_000, beamtalk_loop::read_strange_post);
}
