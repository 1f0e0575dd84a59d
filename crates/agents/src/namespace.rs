//! The private directory of a daemon: where it is, and whether it can be trusted.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};

use crate::error::Fatal;
use crate::places::{user_name, variable};

/// The longest usable path; socket paths end at 107 bytes.
const PATH_BYTES: usize = 90;

/// The opened directory; files inside are reached through the descriptor.
pub struct Namespace {
    pub path: PathBuf,
    pub directory: OwnedFd,
    /// Said once when the mode had to be changed.
    pub warning: Option<String>,
}

/// The paths to try, best first.
pub fn candidates() -> Vec<PathBuf> {
    if let Some(path) = variable("NAMESPACE") {
        return vec![PathBuf::from(path)];
    }
    let user = variable("USER").unwrap_or_else(user_name);
    let plain = PathBuf::from(format!("/tmp/ns.{user}"));
    match variable("DISPLAY") {
        Some(display) => vec![
            PathBuf::from(format!("/tmp/ns.{user}.{}", display_part(&display))),
            plain,
        ],
        None => vec![plain],
    }
}

/// `:0.0` → `:0`, `/` → `_`.
fn display_part(display: &str) -> String {
    let short = match display.strip_suffix(".0") {
        Some(rest)
            if rest.rsplit_once(':').is_some_and(|(_, digits)| {
                !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
            }) =>
        {
            rest
        }
        _ => display,
    };
    short.replace('/', "_")
}

fn bad(path: &Path, reason: impl Into<String>) -> Fatal {
    Fatal::Namespace {
        path: path.display().to_string(),
        reason: reason.into(),
    }
}

impl Namespace {
    /// Create or check the directory for a daemon.
    pub fn open(path: &Path) -> Result<Self, Fatal> {
        let (parent, name) = open_parent(path)?;
        match rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o700)) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(bad(path, std::io::Error::from(error).to_string())),
        }
        let Some((directory, mode)) = open_own(path, &parent, name)? else {
            return Err(bad(path, "vanished"));
        };
        let warning = (mode != 0o700)
            .then(|| format!("name space dir {}: mode was {mode:04o}, now 0700", path.display()));
        if warning.is_some() {
            rustix::fs::fchmod(&directory, Mode::from_raw_mode(0o700)).map_err(std::io::Error::from)?;
        }
        Ok(Namespace {
            path: path.to_owned(),
            directory,
            warning,
        })
    }

    /// The same checks without changing anything: the mode of the directory if it is there.
    pub fn check(path: &Path) -> Result<Option<u32>, Fatal> {
        let (parent, name) = open_parent(path)?;
        Ok(open_own(path, &parent, name)?.map(|(_, mode)| mode))
    }
}

/// The parent, which nobody else can change, and the name in it.
fn open_parent(path: &Path) -> Result<(OwnedFd, &OsStr), Fatal> {
    check_path(path)?;
    let owner = rustix::process::geteuid().as_raw();
    let parent = path.parent().ok_or_else(|| bad(path, "path not usable"))?;
    let name = path.file_name().ok_or_else(|| bad(path, "path not usable"))?;
    let parent = rustix::fs::open(parent, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|error| bad(path, format!("parent: {}", std::io::Error::from(error))))?;
    let stat = rustix::fs::fstat(&parent).map_err(std::io::Error::from)?;
    let shared = stat.st_mode & 0o022 != 0 && stat.st_mode & 0o1000 == 0;
    if (stat.st_uid != 0 && stat.st_uid != owner) || shared {
        return Err(bad(path, "parent is writable by others"));
    }
    Ok((parent, name))
}

/// The directory and its mode; `None` if there is none.
fn open_own(path: &Path, parent: &OwnedFd, name: &OsStr) -> Result<Option<(OwnedFd, u32)>, Fatal> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = match rustix::fs::openat(parent, name, flags, Mode::empty()) {
        Ok(directory) => directory,
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(error) => {
            let stat = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW);
            let owner = rustix::process::geteuid().as_raw();
            let reason = match (error, stat) {
                (_, Ok(stat)) if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink => {
                    "is a symbolic link".to_owned()
                }
                (rustix::io::Errno::NOTDIR, _) => "not a directory".to_owned(),
                (_, Ok(stat)) if stat.st_uid != owner => format!("owned by uid {}", stat.st_uid),
                (other, _) => std::io::Error::from(other).to_string(),
            };
            return Err(bad(path, reason));
        }
    };
    let stat = rustix::fs::fstat(&directory).map_err(std::io::Error::from)?;
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(bad(path, format!("owned by uid {}", stat.st_uid)));
    }
    Ok(Some((directory, stat.st_mode & 0o7777)))
}

fn check_path(path: &Path) -> Result<(), Fatal> {
    let bytes = path.as_os_str().as_encoded_bytes();
    let usable = path.is_absolute()
        && bytes.len() <= PATH_BYTES
        && !bytes.iter().any(u8::is_ascii_control)
        && path
            .components()
            .all(|part| !matches!(part, Component::ParentDir));
    if usable {
        Ok(())
    } else {
        Err(bad(path, "path not usable"))
    }
}

/// The uid a client must not trust, if the directory belongs to another user.
pub(crate) fn check_for_client(path: &Path) -> Result<(), u32> {
    match rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat)
            if stat.st_uid != rustix::process::geteuid().as_raw()
                && rustix::process::geteuid().as_raw() != 0 =>
        {
            Err(stat.st_uid)
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::{Namespace, display_part};

    #[test]
    fn display_loses_its_screen_and_its_slashes() {
        assert_eq!(display_part(":0.0"), ":0");
        assert_eq!(display_part("host:10.0"), "host:10");
        assert_eq!(display_part("/tmp/x:0"), "_tmp_x:0");
        assert_eq!(display_part("a.0"), "a.0");
    }

    fn message(path: &std::path::Path) -> String {
        Namespace::open(path)
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    }

    #[test]
    fn unsafe_directories_are_refused() {
        let base = tempfile::tempdir().unwrap();
        let file = base.path().join("file");
        std::fs::write(&file, "x").unwrap();
        assert!(message(&file).ends_with("not a directory"), "{}", message(&file));
        let link = base.path().join("link");
        std::os::unix::fs::symlink(base.path(), &link).unwrap();
        assert!(
            message(&link).ends_with("is a symbolic link"),
            "{}",
            message(&link)
        );
        assert!(message(std::path::Path::new("relative")).ends_with("path not usable"));
        assert!(message(&base.path().join("a/../b")).ends_with("path not usable"));
        assert!(message(&base.path().join("x".repeat(100))).ends_with("path not usable"));
        let open = base.path().join("open");
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(message(&open.join("ns")).ends_with("parent is writable by others"));
    }

    #[test]
    fn a_loose_directory_is_tightened() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("ns");
        std::fs::create_dir(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let namespace = Namespace::open(&path).unwrap();
        assert!(namespace.warning.unwrap().ends_with("mode was 0755, now 0700"));
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o700
        );
    }
}
