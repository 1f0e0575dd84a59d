//! Inputs to start from.

/// The seeds of a fuzz target, by name.
pub fn of(target: &str) -> Vec<Vec<u8>> {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/seeds")
        .join(target);
    let mut paths: Vec<_> = std::fs::read_dir(directory)
        .expect("the seeds are there")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    paths.sort();
    let contents = paths
        .iter()
        .map(|path| std::fs::read(path).expect("a seed can be read"));
    contents.collect()
}
