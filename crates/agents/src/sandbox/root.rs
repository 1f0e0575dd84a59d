//! The root a session sees, built from nothing: granted paths, devices, a door, and no more.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, StatVfsMountFlags};
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};

use super::layout::Step;
use super::view::View;
use crate::session::launch::Launch;
use crate::sys;

const EMPTY: &str = ".empty";

/// A root under construction; nothing of it shows before `enter`.
pub(super) struct Root {
    base: PathBuf,
}

/// A file without content, at `path`.
fn touch(base: &OwnedFd, path: &Path) -> io::Result<()> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    match rustix::fs::openat(base, path, flags, Mode::from_raw_mode(0o400)) {
        Ok(_) | Err(rustix::io::Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn magic(descriptor: impl AsFd) -> String {
    format!("/proc/self/fd/{}", descriptor.as_fd().as_raw_fd())
}

/// Paths inside the root, relative to it.
fn inner(path: &Path) -> &Path {
    match path.strip_prefix("/") {
        Ok(rest) if rest != Path::new("") => rest,
        _ => Path::new("."),
    }
}

/// A place to look at or to mount on; never behind a link, which others might have put there.
fn hold(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let found = rustix::fs::openat2(
        rustix::fs::CWD,
        path,
        flags,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
    );
    match found {
        // Kernels before 5.6.
        Err(rustix::io::Errno::NOSYS) => Ok(rustix::fs::open(path, flags | OFlags::NOFOLLOW, Mode::empty())?),
        found => Ok(found?),
    }
}

fn named(path: &Path) -> impl Fn(io::Error) -> String {
    move |error| format!("{}: {error}", path.display())
}

impl Root {
    /// Put together what `view` shows; the session's directory is covered by it.
    pub(super) fn build(launch: &Launch, view: &View) -> Result<Self, String> {
        let flags = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
        rustix::mount::mount_change("/", flags).map_err(|error| error.to_string())?;
        // Held before the root covers anything.
        let mut sources: BTreeMap<&Path, OwnedFd> = BTreeMap::new();
        for step in &view.steps {
            if let Step::Show(path) = step {
                sources.insert(path, hold(path).map_err(named(path))?);
            }
        }
        let real = |path: &Path| std::fs::canonicalize(path).map_err(named(path));
        let door = real(&launch.door)?;
        let door = hold(&door).map_err(named(&door))?;
        let base = real(&launch.directory)?;
        mount_empty(&base).map_err(named(&base))?;
        let root = Root { base };
        root.fill(launch, view, &sources, &door)?;
        Ok(root)
    }

    fn fill(
        &self,
        launch: &Launch,
        view: &View,
        sources: &BTreeMap<&Path, OwnedFd>,
        door: &OwnedFd,
    ) -> Result<(), String> {
        let whole = sources.contains_key(Path::new("/"));
        let mut hidden = Vec::new();
        if let Some(source) = sources.get(Path::new("/")) {
            rustix::mount::mount_bind_recursive(magic(source), &self.base)
                .map_err(|error| format!("/: {error}"))?;
            if view.fixed.contains(Path::new("/")) {
                sys::fix_mounts(&hold(&self.base).map_err(named(&self.base))?)
                    .map_err(|error| format!("/: {error}"))?;
            }
        } else {
            let base = hold(&self.base).map_err(named(&self.base))?;
            touch(&base, Path::new(EMPTY)).map_err(named(Path::new(EMPTY)))?;
        }
        for step in &view.steps {
            let path = step.path();
            if path == Path::new("/") {
                continue;
            }
            match step {
                Step::Show(_) => {
                    let source = sources
                        .get(path)
                        .ok_or_else(|| format!("{}: lost", path.display()))?;
                    self.show(source, path).map_err(named(path))?;
                    // Landlock does not govern modes, owners, times and attributes. Done before
                    // anything is mounted below, which may be writable.
                    if view.fixed.contains(path) {
                        hold(&self.at(path))
                            .and_then(|shown| sys::fix_mounts(&shown))
                            .map_err(named(path))?;
                    }
                }
                Step::Hide(_) => {
                    if self.hide(path).map_err(named(path))? {
                        hidden.push(path);
                    }
                }
            }
        }
        let door_at = &view.door_at;
        self.show(door, door_at).map_err(named(door_at))?;
        read_only(&self.at(door_at)).map_err(named(door_at))?;
        if !whole {
            self.link(view).map_err(|error| format!("links: {error}"))?;
            let proc = self.at(Path::new("/proc"));
            if launch.pid {
                std::fs::create_dir_all(&proc).map_err(named(&proc))?;
            }
            std::fs::remove_file(self.base.join(EMPTY)).map_err(named(Path::new(EMPTY)))?;
        }
        for path in hidden {
            read_only(&self.at(path)).map_err(named(path))?;
        }
        if !whole {
            read_only(&self.base).map_err(named(&self.base))?;
        }
        Ok(())
    }

    fn at(&self, path: &Path) -> PathBuf {
        self.base.join(inner(path))
    }

    /// Where something can be mounted for `path`: made if it is not there.
    fn place(&self, path: &Path, directory: bool) -> io::Result<OwnedFd> {
        let at = self.at(path);
        if let Ok(there) = hold(&at) {
            return Ok(there);
        }
        if let Some(parent) = at.parent() {
            std::fs::create_dir_all(parent)?;
        }
        if directory {
            std::fs::create_dir_all(&at)?;
        } else {
            let base = hold(&self.base)?;
            touch(&base, inner(path))?;
        }
        hold(&at)
    }

    fn show(&self, source: &OwnedFd, path: &Path) -> io::Result<()> {
        let stat = rustix::fs::fstat(source)?;
        let directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        let target = self.place(path, directory)?;
        Ok(rustix::mount::mount_bind_recursive(
            magic(source),
            magic(&target),
        )?)
    }

    /// Cover `path` with nothing; whether it can still be written to.
    fn hide(&self, path: &Path) -> io::Result<bool> {
        let target = hold(&self.at(path))?;
        let stat = rustix::fs::fstat(&target)?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            mount_empty(magic(&target))?;
            return Ok(true);
        }
        let empty = match hold(&self.base.join(EMPTY)) {
            Ok(empty) => empty,
            // With everything granted there is no file of our own; this one has no content either.
            Err(_) => hold(Path::new("/dev/null"))?,
        };
        rustix::mount::mount_bind(magic(&empty), magic(&target))?;
        Ok(false)
    }

    /// The links on the way to granted paths, and those to the open files of a process.
    fn link(&self, view: &View) -> io::Result<()> {
        let standard = [
            ("/dev/fd", "/proc/self/fd"),
            ("/dev/stdin", "/proc/self/fd/0"),
            ("/dev/stdout", "/proc/self/fd/1"),
            ("/dev/stderr", "/proc/self/fd/2"),
        ]
        .map(|(at, to)| (PathBuf::from(at), PathBuf::from(to)));
        for (path, target) in view.links.iter().chain(standard.iter().map(|(at, to)| (at, to))) {
            let at = self.at(path);
            if std::fs::symlink_metadata(&at).is_ok() {
                continue;
            }
            if let Some(parent) = at.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::os::unix::fs::symlink(target, &at)?;
        }
        Ok(())
    }

    /// Mount the processes of the namespace this one is the first of.
    pub(super) fn mount_processes(&self) -> io::Result<()> {
        mount_processes(&self.at(Path::new("/proc")))
    }

    /// Leave the old root behind.
    pub(super) fn enter(&self) -> io::Result<()> {
        rustix::process::chdir(&self.base)?;
        rustix::process::pivot_root(".", ".")?;
        rustix::mount::unmount(".", UnmountFlags::DETACH)?;
        Ok(rustix::process::chdir("/")?)
    }
}

pub(super) fn mount_processes(at: &Path) -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    Ok(rustix::mount::mount(
        "proc",
        at,
        "proc",
        flags,
        None::<&std::ffi::CStr>,
    )?)
}

/// An empty directory over `at`.
pub(super) fn mount_empty(at: impl AsRef<Path>) -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    Ok(rustix::mount::mount(
        "none",
        at.as_ref(),
        "tmpfs",
        flags,
        c"mode=0755,size=1m",
    )?)
}

/// What is mounted at `at` cannot be changed from now on.
fn read_only(at: &Path) -> io::Result<()> {
    let mut flags = MountFlags::BIND | MountFlags::RDONLY;
    let has = rustix::fs::statvfs(at)?.f_flag;
    // In a user namespace what is forbidden already must stay so.
    for (present, flag) in [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
    ] {
        flags.set(flag, has.contains(present));
    }
    Ok(rustix::mount::mount_remount(at, flags, c"")?)
}

/// Write a file of `directory`, which may be out of sight by now.
pub(super) fn leave_in(directory: &OwnedFd, name: &str, text: &str) -> io::Result<()> {
    let temporary = format!("{name}.tmp");
    let flags = OFlags::CREATE | OFlags::TRUNC | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(directory, temporary.as_str(), flags, Mode::from_raw_mode(0o600))?;
    io::Write::write_all(&mut std::fs::File::from(file), text.as_bytes())?;
    if let Err(error) = rustix::fs::renameat(directory, temporary.as_str(), directory, name) {
        rustix::fs::unlinkat(directory, temporary.as_str(), AtFlags::empty()).ok();
        return Err(error.into());
    }
    Ok(())
}
