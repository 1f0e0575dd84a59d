//! The checks of the fuzz target on a fixed set of broken sources.

#![expect(unreachable_pub, reason = "shared with the fuzz targets")]
#![expect(clippy::disallowed_methods, reason = "the seeds are files")]

#[path = "../../../fuzz/checks/mutate.rs"]
mod mutate;
#[path = "../../../fuzz/checks/source.rs"]
mod source;

#[test]
fn broken_sources_are_read_and_formatting_keeps_what_they_say() {
    let library = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lib");
    let mut paths: Vec<_> = std::fs::read_dir(library)
        .unwrap()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|kind| kind == "bt"))
        .collect();
    paths.sort();
    let mut seeds = Vec::new();
    for path in paths {
        // Methods alone: small enough for many mutations, and every construct is there.
        let text = std::fs::read_to_string(path).unwrap();
        seeds.extend(text.split("\n\n").map(|part| part.as_bytes().to_vec()));
    }
    assert!(seeds.len() > 100, "the library has moved");
    // Found by the fuzz target.
    let found = [
        "$\\",
        "$\\ ",
        "$\\ \n",
        "x := $\\\n",
        "Protocol define: P\n  a\n\n  /// es\n\n\nN slow\n",
        "Object subclass: P\n  a => 1\n\n  /// es\n\n\nN slow\n",
        "Object subclass: A\n . /// es\nObject subclass: B\n",
        "Object subclass: A\n  a => 1. /// es\nObject subclass: B\n",
    ];
    seeds.extend(found.map(|text| text.as_bytes().to_vec()));
    mutate::each_mutation(&seeds, 4_000, |bytes| {
        if let Ok(text) = std::str::from_utf8(bytes) {
            source::check(text);
        }
    });
}
