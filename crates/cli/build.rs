//! Has the binary's relocations packed where the system can read them so: unpacked they are megabytes that every process,
//! also the smallest server, reads at its start.

#![expect(
    clippy::disallowed_methods,
    reason = "a build script asks the system what it is"
)]

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if reads_packed() {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Whether the C library here is one that reads them, as 2.36 and later do.
fn reads_packed() -> bool {
    let is = |name: &str, wanted: &str| std::env::var(name).is_ok_and(|found| found == wanted);
    if !is("CARGO_CFG_TARGET_OS", "linux") || !is("CARGO_CFG_TARGET_ENV", "gnu") {
        return false;
    }
    let said = Command::new("getconf").arg("GNU_LIBC_VERSION").output();
    let said = said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned());
    let version = |text: String| -> Option<(u32, u32)> {
        let (major, minor) = text.trim().rsplit(' ').next()?.split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    };
    said.ok()
        .and_then(version)
        .is_some_and(|version| version >= (2, 36))
}
