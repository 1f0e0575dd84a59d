//! The schemas of the tools are those of their types. `UPDATE=1` writes them.

#![expect(clippy::disallowed_methods, reason = "what is generated is a file")]

#[test]
fn the_schemas_are_those_of_the_types() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/schema/tools.json");
    let text = serde_json::to_string_pretty(&beamtalk_mcp::schema::generate()).expect("JSON") + "\n";
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(file, text).expect("written");
        return;
    }
    let found = std::fs::read_to_string(file).unwrap_or_default();
    assert!(
        found == text,
        "{file} is stale: UPDATE=1 cargo test -p beamtalk-mcp --test generated"
    );
}
