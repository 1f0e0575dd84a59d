//! The checks of the fuzz targets on a fixed set of broken terminal output.

#![expect(unreachable_pub, reason = "shared with the fuzz targets")]

#[path = "../../../fuzz/checks/agents.rs"]
mod agents;
#[path = "../../../fuzz/checks/mutate.rs"]
mod mutate;
#[path = "../../../fuzz/checks/seeds.rs"]
mod seeds;

#[test]
fn broken_output_is_cleaned_whatever_it_holds() {
    let seeds: Vec<Vec<u8>> = [
        &b"plain\r\nlines\n"[..],
        b"\x1b[1;31mred\x1b[0m and \x1b]0;title\x07text\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\",
        b"progress 1%\rprogress 100%\r\n\x08\x08back\x7f",
        b"\x1b[?2004h\x1b[200~paste\x1b[201~\x1b(B\x1b=\x1b>\x1bM",
        b"\xe2\x82\xac \xf0\x9f\x98\x80 \xc3\x28 \xff\xfe \xc2\x80\xc2\x9b31m",
        b"new 'a b' \"c\\\"d\" e''f /tmp/../x//y/./z",
        b"\x90dcs\x9c\x1bPdcs\x1b\\\x1b_apc\x1b\\\x1b^pm\x1b\\",
        b"a\0b\x01\x02\x1b",
    ]
    .iter()
    .map(|seed| seed.to_vec())
    .collect();
    mutate::each_mutation(&seeds, 50_000, agents::check);
}

#[test]
fn broken_configurations_are_read_or_refused() {
    let seeds = seeds::of("yaml");
    assert!(!seeds.is_empty(), "the seeds have moved");
    mutate::each_mutation(&seeds, 5_000, |bytes| {
        if let Ok(text) = std::str::from_utf8(bytes) {
            beamtalk_agents::read_strange_config(text);
        }
    });
}
