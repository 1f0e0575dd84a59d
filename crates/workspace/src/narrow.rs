//! What a project may say about the workspace it is opened in: switch capabilities off, nothing else.

use std::path::Path;

/// Names of the capabilities that the manifest's `[workspace]` table switches off. A manifest that cannot be read is
/// reported by the build.
pub(crate) fn disabled_by_manifest(root: &Path) -> Vec<String> {
    let Ok(text) = std::fs::read_to_string(root.join("beamtalk.toml")) else {
        return Vec::new();
    };
    disabled(&text)
}

fn disabled(text: &str) -> Vec<String> {
    let Ok(manifest) = text.parse::<toml::Table>() else {
        return Vec::new();
    };
    let Some(workspace) = manifest.get("workspace").and_then(toml::Value::as_table) else {
        return Vec::new();
    };
    let is_off = |name: &str, off: &toml::Value| workspace.get(name).is_some_and(|value| value == off);
    [
        ("subprocess", toml::Value::Boolean(false)),
        ("ffi", toml::Value::Boolean(false)),
        ("http", toml::Value::Boolean(false)),
        ("fs", toml::Value::String("ro".to_owned())),
    ]
    .iter()
    .filter(|(name, off)| is_off(name, off))
    .map(|(name, _)| (*name).to_owned())
    .collect()
}

#[cfg(test)]
mod tests {
    use super::disabled;
    use crate::options::StartOptions;

    #[test]
    fn manifest_cannot_bind() {
        let text = "[package]\nname = \"x\"\n[workspace]\nbind = \"0.0.0.0\"\nsubprocess = false\nhttp = true\nfs = \"ro\"\n";
        let off = disabled(text);
        assert_eq!(off, ["subprocess", "fs"]);
        let mut options = StartOptions {
            no_http: true,
            ..StartOptions::default()
        };
        options.narrow(&off);
        assert!(options.no_http, "a project switches nothing on");
        assert_eq!(options.bind, None);
        assert!(options.no_subprocess && options.read_only_fs);
    }
}
