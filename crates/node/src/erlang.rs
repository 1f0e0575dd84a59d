//! Finding `erl` and knowing its release without starting it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use beamtalk_process::{find_program, is_executable};

use crate::Error;

/// The oldest Erlang/OTP release the runtime works on.
pub const OLDEST_RELEASE: u32 = 25;

/// The command that repairs a missing Erlang on the system we know best.
pub const INSTALL_COMMAND: &str = "sudo apt-get install --no-install-recommends erlang-base erlang-dev \
                                   erlang-crypto erlang-ssl erlang-inets erlang-eunit (Debian, Ubuntu), brew \
                                   install erlang (macOS), or see https://www.erlang.org/downloads";

/// An Erlang installation that is new enough.
#[derive(Clone, Debug)]
pub struct Erlang {
    program: PathBuf,
    release: u32,
    version: String,
}

impl Erlang {
    /// `BEAMTALK_ERL`, or `erl` on the path.
    pub fn find() -> Result<Self, Error> {
        let program = match std::env::var_os("BEAMTALK_ERL").filter(|value| !value.is_empty()) {
            Some(named) => {
                let path = PathBuf::from(&named);
                if is_executable(&path) {
                    path
                } else {
                    return Err(Error::ErlangMissing {
                        looked: format!("BEAMTALK_ERL={}", path.display()),
                    });
                }
            }
            None => search("erl").ok_or_else(|| Error::ErlangMissing {
                looked: "`erl`".to_owned(),
            })?,
        };
        let version = match read_version(&program) {
            Some(version) => version,
            None => ask_version(&program)?,
        };
        let release = version.split('.').next().and_then(|major| major.parse().ok());
        match release {
            Some(release) if release >= OLDEST_RELEASE => Ok(Self {
                program,
                release,
                version,
            }),
            Some(found) => Err(Error::ErlangTooOld { program, found }),
            None => Err(Error::ErlangUnknown { program }),
        }
    }

    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Such as 25.
    pub fn release(&self) -> u32 {
        self.release
    }

    /// Such as `25.2.3`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The compiler driver next to `erl`, where there is one.
    pub fn erlc(&self) -> Option<PathBuf> {
        let beside = self.program.with_file_name("erlc");
        if is_executable(&beside) {
            Some(beside)
        } else {
            search("erlc")
        }
    }

    /// Where the OTP applications are, when the installation has the usual shape.
    pub fn library_directory(&self) -> Option<PathBuf> {
        let directory = root(&self.program)?.join("lib");
        directory.is_dir().then_some(directory)
    }
}

/// The first program of this name on the path.
fn search(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    find_program(name, Path::new(""), Some(&path)).ok()
}

/// The installation directory: `erl` lives in its `bin/`.
fn root(program: &Path) -> Option<PathBuf> {
    let real = fs::canonicalize(program).ok()?;
    let root = real.parent()?.parent()?;
    root.join("releases").is_dir().then(|| root.to_owned())
}

/// The release's own version file; starting the emulator to ask would cost more than all the rest.
fn read_version(program: &Path) -> Option<String> {
    let releases = root(program)?.join("releases");
    let started = fs::read_to_string(releases.join("start_erl.data")).ok()?;
    let release = started.split_whitespace().nth(1)?;
    match fs::read_to_string(releases.join(release).join("OTP_VERSION")) {
        Ok(version) => Some(version.trim().to_owned()),
        Err(_) => Some(release.to_owned()),
    }
}

fn ask_version(program: &Path) -> Result<String, Error> {
    let output = beamtalk_process::asked(program)
        .args(["-noshell", "-noinput", "-boot", "start_clean", "-eval"])
        .arg("io:put_chars(erlang:system_info(otp_release)), halt().")
        .stderr(Stdio::null())
        .output()
        .map_err(|cause| Error::ErlangBroken {
            program: program.to_owned(),
            cause,
        })?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
