//! Which files of the browser workspace the binary carries: what `web/build.mjs` made, or a page that says it is missing.

use std::path::Path;

fn main() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let built = here.join("../../web/dist");
    let is_wanted = std::env::var_os("BEAMTALK_WEB").is_none_or(|wanted| wanted != "none");
    let files = if is_wanted && built.join("index.html").is_file() {
        built
    } else {
        here.join("src/gate/notice")
    };
    println!("cargo:rerun-if-env-changed=BEAMTALK_WEB");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={}", here.join("../../web/dist").display());
    println!("cargo:rustc-env=BEAMTALK_WEB_FILES={}", files.display());
}
