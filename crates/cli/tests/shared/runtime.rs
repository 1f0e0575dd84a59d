//! One unpacked runtime for all tests: hundreds of files written for each of a thousand homes would be a tenth of their time.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// For `BEAMTALK_RUNTIME_DIR`; tests that run as somebody else read it too.
pub(crate) fn runtime() -> PathBuf {
    let runtime = beamtalk_node::Runtime::below(Path::new(env!("CARGO_TARGET_TMPDIR")))
        .expect("the runtime is unpacked");
    let readable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(runtime.path(), readable).expect("the runtime is ours");
    runtime.path().to_owned()
}
