//! What a project may say about the workspace it is opened in: switch capabilities off and lower limits, nothing else.

use std::path::Path;

use crate::options::StartOptions;

/// The manifest's `[workspace]` table, as far as it narrows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Narrowing {
    no_subprocess: bool,
    no_ffi: bool,
    no_http: bool,
    read_only_fs: bool,
    eval_max_heap_mb: Option<u64>,
    eval_timeout_s: Option<u64>,
}

/// What the manifest at `root` says. One that cannot be read is reported by the build.
pub(crate) fn read(root: &Path) -> Narrowing {
    let text = beamtalk_storage::read_written(&root.join("beamtalk.toml"));
    text.map_or_else(
        |_| Narrowing::default(),
        |text| parse(&String::from_utf8_lossy(&text)),
    )
}

fn parse(text: &str) -> Narrowing {
    let manifest = text.parse::<toml::Table>().unwrap_or_default();
    let Some(workspace) = manifest.get("workspace").and_then(toml::Value::as_table) else {
        return Narrowing::default();
    };
    let is_set = |key: &str| workspace.get(key).and_then(toml::Value::as_bool) == Some(true);
    let number = |key: &str| {
        let number = workspace.get(key).and_then(toml::Value::as_integer);
        number.and_then(|number| u64::try_from(number).ok())
    };
    Narrowing {
        no_subprocess: is_set("no-subprocess"),
        no_ffi: is_set("no-ffi"),
        no_http: is_set("no-http"),
        read_only_fs: is_set("read-only-fs"),
        eval_max_heap_mb: number("eval-max-heap-mb"),
        eval_timeout_s: number("eval-timeout"),
    }
}

impl Narrowing {
    /// A project switches capabilities off, never on, and lowers limits, never raises them.
    pub(crate) fn apply(self, options: &mut StartOptions) {
        options.no_subprocess |= self.no_subprocess;
        options.no_ffi |= self.no_ffi;
        options.no_http |= self.no_http;
        options.read_only_fs |= self.read_only_fs;
        lower(&mut options.eval_max_heap_mb, self.eval_max_heap_mb);
        lower(&mut options.eval_timeout_s, self.eval_timeout_s);
    }
}

/// What restricted the workspace when it was started `last`, and was not taken back since, restricts it again. How it
/// could be reached is no restriction: nobody is let in again by a start that does not say so.
pub(crate) fn keep_restrictions(options: &mut StartOptions, last: &StartOptions) {
    options.no_subprocess |= last.no_subprocess;
    options.no_ffi |= last.no_ffi;
    options.no_http |= last.no_http;
    options.read_only_fs |= last.read_only_fs;
    options.audit_text |= last.audit_text;
    options.audit_required |= last.audit_required;
    lower(&mut options.eval_max_heap_mb, Some(last.eval_max_heap_mb));
    lower(&mut options.eval_timeout_s, Some(last.eval_timeout_s));
    lower(&mut options.max_processes, Some(last.max_processes));
    if last.node_max_memory_mb.is_some_and(|limit| limit > 0) {
        let limit = options.node_max_memory_mb.get_or_insert(0);
        lower(limit, last.node_max_memory_mb);
    }
}

/// 0 is no limit, which every other one is below.
fn lower(limit: &mut u64, wanted: Option<u64>) {
    match wanted {
        Some(wanted) if wanted > 0 && (*limit == 0 || wanted < *limit) => *limit = wanted,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::parse;
    use crate::options::StartOptions;

    #[test]
    fn manifest_cannot_bind() {
        let text = "[package]\nname = \"x\"\n[workspace]\nbind = \"0.0.0.0\"\nremote = true\nport = 80\n\
                    insecure-no-tls = true\nallow-host = [\"evil\"]\nno-subprocess = true\nno-http = false\n\
                    read-only-fs = true\n";
        let mut options = StartOptions {
            no_http: true,
            ..StartOptions::default()
        };
        let before = options.clone();
        parse(text).apply(&mut options);
        assert!(options.no_subprocess && options.read_only_fs);
        assert!(options.no_http, "a project switches nothing on");
        options.no_subprocess = false;
        options.read_only_fs = false;
        assert_eq!(options, before, "a project changes nothing else");
    }

    #[test]
    fn limits_are_only_lowered() {
        let lowered = |heap: u64, text: &str| {
            let mut options = StartOptions {
                eval_max_heap_mb: heap,
                ..StartOptions::default()
            };
            parse(text).apply(&mut options);
            options.eval_max_heap_mb
        };
        let wants = |megabytes: &str| format!("[workspace]\neval-max-heap-mb = {megabytes}\n");
        assert_eq!(lowered(512, &wants("256")), 256);
        assert_eq!(lowered(512, &wants("1024")), 512);
        assert_eq!(lowered(512, &wants("0")), 512);
        assert_eq!(lowered(0, &wants("256")), 256);
        assert_eq!(lowered(512, &wants("-1")), 512);
        assert_eq!(lowered(512, "not a manifest"), 512);
    }
}
