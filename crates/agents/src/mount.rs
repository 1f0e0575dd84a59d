//! The tree as a directory of the system, by FUSE: mounted by whoever may read it, without being root.
//!
//! `files` does the work; here its answers become FUSE's, and paths become numbers.

mod aside;
mod files;
mod numbers;
mod snapshots;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use beamtalk_ninep::{Attachment, Error};
use fuser::{
    Config, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, MountOption, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request,
    Session, TimeOrNow, WriteFlags,
};

use crate::ages::Ages;
use files::{Errno, Files, Opening, Seen};
use numbers::{Numbers, Reading};
use snapshots::Listing;

/// How long the kernel may believe what it was told of a class's files, so that who lists them and opens them next asks
/// once: less than it takes to hear of a change. What changes by itself it asks for each time.
const BELIEVED: Duration = Duration::from_millis(10);
const THREADS: usize = 4;
/// How long a read waits before it is looked whether its reader still wants it.
const SLICE: Duration = Duration::from_millis(200);

struct Mounted {
    files: Arc<Files>,
    numbers: Mutex<Numbers>,
    listings: Mutex<(u64, BTreeMap<u64, Arc<Listing>>)>,
    uid: u32,
    gid: u32,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn errno(error: Errno) -> fuser::Errno {
    fuser::Errno::from_i32(error.0)
}

fn below(directory: &str, name: &OsStr) -> Result<String, Errno> {
    let name = name.to_str().ok_or(Errno(libc::EINVAL))?;
    if name.len() > 255 {
        return Err(Errno(libc::ENAMETOOLONG));
    }
    Ok(if directory.is_empty() {
        name.to_owned()
    } else {
        format!("{directory}/{name}")
    })
}

/// Whether a signal waits for a process that it neither blocks nor ignores.
pub fn is_signalled(pid: u32) -> bool {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) else {
        return true;
    };
    let mask = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
            .unwrap_or(0)
    };
    (mask("SigPnd:") | mask("ShdPnd:")) & !mask("SigBlk:") & !mask("SigIgn:") != 0
}

/// How long the system may take to tell of a process.
const TOLD: Duration = Duration::from_millis(200);

/// Whether a process is ending because of a signal. One that ends by itself has no signal in its exit code, one that
/// goes on has no exit code.
fn was_killed(pid: u32) -> bool {
    const EXIT_CODE: usize = 49;
    let (tell, told) = std::sync::mpsc::channel();
    // Of a process that becomes another program the system tells only afterwards, and that waits for us.
    std::thread::spawn(move || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        // Who waited no longer knows that it lives.
        let _ = tell.send(stat.unwrap_or_default());
    });
    let stat = told.recv_timeout(TOLD).unwrap_or_default();
    // The name before may have anything in it.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let code = fields.split_whitespace().nth(EXIT_CODE);
    code.and_then(|code| code.parse::<i64>().ok())
        .is_some_and(|code| code & 0x7f != 0)
}

fn believed(path: &str) -> Duration {
    let name = path.rsplit('/').next().unwrap_or_default();
    if path.starts_with("classes/") && name != ".error" {
        BELIEVED
    } else {
        Duration::ZERO
    }
}

fn opening(flags: i32) -> Opening {
    let access = flags & libc::O_ACCMODE;
    Opening {
        reads: access != libc::O_WRONLY,
        writes: access != libc::O_RDONLY,
        truncates: flags & libc::O_TRUNC != 0,
        appends: flags & libc::O_APPEND != 0,
    }
}

impl Mounted {
    fn attributes(&self, number: INodeNo, seen: &Seen) -> FileAttr {
        FileAttr {
            ino: number,
            size: seen.length,
            blocks: seen.length.div_ceil(512),
            atime: seen.changed,
            mtime: seen.changed,
            ctime: seen.changed,
            crtime: seen.changed,
            kind: if seen.is_directory {
                FileType::Directory
            } else {
                FileType::RegularFile
            },
            perm: seen.mode,
            nlink: 1,
            uid: self.uid,
            gid: self.gid,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }

    fn path(&self, number: INodeNo) -> Result<String, Errno> {
        lock(&self.numbers).path(number)
    }

    fn child(&self, parent: INodeNo, name: &OsStr) -> Result<String, Errno> {
        below(&self.path(parent)?, name)
    }

    fn found(&self, path: &str) -> Result<FileAttr, Errno> {
        let seen = self.files.look(path)?;
        let number = lock(&self.numbers).number(path, &seen);
        Ok(self.attributes(number, &seen))
    }

    fn seen(&self, number: INodeNo) -> Result<(String, FileAttr), Errno> {
        let path = self.path(number)?;
        let fixed = lock(&self.numbers).fixed(number);
        if let Some(seen) = fixed {
            return Ok((path, self.attributes(number, &seen)));
        }
        let seen = self.files.look(&path)?;
        lock(&self.numbers).tell(number, &seen);
        Ok((path, self.attributes(number, &seen)))
    }

    fn listing(&self, handle: FileHandle) -> Result<Arc<Listing>, Errno> {
        let listings = lock(&self.listings);
        listings.1.get(&handle.0).cloned().ok_or(Errno(libc::EBADF))
    }
}

fn answer(reply: ReplyEmpty, outcome: Result<(), Errno>) {
    match outcome {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(errno(error)),
    }
}

impl Filesystem for Mounted {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        // The attributes come with the names only as long as somebody looks at them: 10,000 actors are mostly listed.
        for wanted in [
            InitFlags::FUSE_ATOMIC_O_TRUNC,
            InitFlags::FUSE_DO_READDIRPLUS,
            InitFlags::FUSE_READDIRPLUS_AUTO,
            InitFlags::FUSE_PARALLEL_DIROPS,
        ] {
            // A kernel that cannot cuts files in a step of its own, and asks for each name.
            let _ = config.add_capabilities(wanted);
        }
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = self
            .child(parent, name)
            .and_then(|path| Ok((self.found(&path)?, believed(&path))));
        match found {
            Ok((found, believed)) => reply.entry(&believed, &found, Generation(0)),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn forget(&self, _: &Request, number: INodeNo, times: u64) {
        lock(&self.numbers).give_back(number.0, times);
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.seen(number) {
            Ok((path, seen)) => reply.attr(&believed(&path), &seen),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        handle: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let change = || {
            let path = self.path(number)?;
            if uid.is_some_and(|uid| uid != self.uid) || gid.is_some_and(|gid| gid != self.gid) {
                return Err(Errno(libc::EPERM));
            }
            if let Some(mode) = mode {
                self.files.change_mode(&path, (mode & 0o777) as u16)?;
            }
            if let Some(size) = size {
                lock(&self.numbers).before_writing(number)?;
                self.files
                    .set_length(&path, handle.map(|handle| handle.0), size)?;
            }
            let seen = self.seen(number);
            lock(&self.numbers).untell(number);
            seen
        };
        match change() {
            Ok((_, seen)) => reply.attr(&Duration::ZERO, &seen),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn mkdir(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, _: u32, reply: ReplyEntry) {
        reply.error(fuser::Errno::EOPNOTSUPP);
    }

    fn symlink(&self, _: &Request, _: INodeNo, _: &OsStr, _: &Path, reply: ReplyEntry) {
        reply.error(fuser::Errno::EPERM);
    }

    fn link(&self, _: &Request, _: INodeNo, _: INodeNo, _: &OsStr, reply: ReplyEntry) {
        reply.error(fuser::Errno::EPERM);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let removed = self.child(parent, name).and_then(|path| self.files.remove(&path));
        answer(reply, removed);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let removed = self.child(parent, name).and_then(|path| self.files.remove(&path));
        answer(reply, removed);
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let renamed = || {
            let (from, to) = (self.child(parent, name)?, self.child(new_parent, new_name)?);
            if flags.contains(RenameFlags::RENAME_EXCHANGE) {
                return Err(Errno(libc::EINVAL));
            }
            let keeps = flags.contains(RenameFlags::RENAME_NOREPLACE);
            self.files.rename(&from, &to, keeps)?;
            lock(&self.numbers).rename(&from, &to);
            Ok(())
        };
        answer(reply, renamed());
    }

    fn open(&self, _: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let how = opening(flags.0);
        if how.writes
            && let Err(error) = lock(&self.numbers).begin_writing(number)
        {
            return reply.error(errno(error));
        }
        let opened = self.path(number).and_then(|path| self.files.open(&path, how));
        let mut numbers = lock(&self.numbers);
        let (handle, content) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                if how.writes {
                    numbers.could_not_write(number);
                }
                return reply.error(errno(error));
            }
        };
        let flags = if how.writes {
            numbers.open_to_write(number, handle);
            FopenFlags::FOPEN_DIRECT_IO
        } else {
            let reading = content.map(|content| numbers.open_to_read(number, handle, &content));
            // Who only reads has nothing to commit.
            FopenFlags::FOPEN_NOFLUSH
                | match reading.unwrap_or(Reading::Direct) {
                    Reading::Direct => FopenFlags::FOPEN_DIRECT_IO,
                    Reading::Anew => FopenFlags::empty(),
                    Reading::Kept => FopenFlags::FOPEN_KEEP_CACHE,
                }
        };
        drop(numbers);
        reply.opened(FileHandle(handle), flags);
    }

    fn create(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let created = || {
            let path = self.child(parent, name)?;
            let handle = self.files.create(&path, (mode & 0o777) as u16, opening(flags))?;
            let found = self.found(&path)?;
            lock(&self.numbers).open_to_write(found.ino, handle);
            Ok::<_, Errno>((handle, found))
        };
        match created() {
            Ok((handle, seen)) => reply.created(
                &Duration::ZERO,
                &seen,
                Generation(0),
                FileHandle(handle),
                FopenFlags::FOPEN_DIRECT_IO,
            ),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn read(
        &self,
        request: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let Some(live) = self.files.live(handle.0) else {
            return match self.files.read(handle.0, offset, size) {
                Ok(bytes) => reply.data(&bytes),
                Err(error) => reply.error(errno(error)),
            };
        };
        // May wait for ever, and others do not wait for it.
        let reader = request.pid();
        std::thread::spawn(move || {
            let piece = lock(&live).read_wanted(size, SLICE, || !is_signalled(reader));
            match piece {
                Ok(piece) => reply.data(piece.as_ref()),
                // Whoever was told to end would wait for the answer nevertheless.
                Err(Error::TimedOut) => reply.error(fuser::Errno::EINTR),
                Err(error) => reply.error(errno(error.into())),
            }
        });
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let (files, bytes) = (Arc::clone(&self.files), data.to_vec());
        let write = move || match files.write(handle.0, offset, &bytes) {
            Ok(()) => reply.written(bytes.len() as u32),
            Err(error) => reply.error(errno(error)),
        };
        if self.files.live(handle.0).is_some() {
            // A prompt is answered when it was delivered.
            std::thread::spawn(write);
        } else {
            write();
        }
    }

    fn flush(&self, request: &Request, _: INodeNo, handle: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // Closed by the kernel for somebody who was killed while writing: nobody said that this is all.
        if self.files.is_dirty(handle.0) && was_killed(request.pid()) {
            self.files.abandon(handle.0);
            return reply.ok();
        }
        answer(reply, self.files.commit(handle.0));
    }

    fn fsync(&self, _: &Request, _: INodeNo, handle: FileHandle, _: bool, reply: ReplyEmpty) {
        answer(reply, self.files.commit(handle.0));
    }

    fn release(
        &self,
        _: &Request,
        number: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.files.release(handle.0);
        lock(&self.numbers).close(number, handle.0);
        reply.ok();
    }

    fn opendir(&self, _: &Request, number: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let listed = self.path(number).and_then(|path| self.files.list(&path));
        match listed {
            Ok(mut listed) => {
                let here = Seen::directory();
                listed.splice(0..0, [(".".to_owned(), here.clone()), ("..".to_owned(), here)]);
                let mut listings = lock(&self.listings);
                listings.0 += 1;
                let handle = listings.0;
                listings.1.insert(handle, Arc::new(listed));
                drop(listings);
                reply.opened(FileHandle(handle), FopenFlags::empty());
            }
            Err(error) => reply.error(errno(error)),
        }
    }

    fn readdir(
        &self,
        _: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let (Ok(directory), Ok(listing)) = (self.path(number), self.listing(handle)) else {
            return reply.error(fuser::Errno::EBADF);
        };
        for (at, (name, seen)) in (0_u64..).zip(listing.iter()).skip(offset as usize) {
            let Ok(path) = below(&directory, OsStr::new(name)) else {
                continue;
            };
            let kind = if seen.is_directory {
                FileType::Directory
            } else {
                FileType::RegularFile
            };
            let number = if name == "." || name == ".." {
                number
            } else {
                lock(&self.numbers).listed(&path)
            };
            if reply.add(number, at + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn readdirplus(
        &self,
        _: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let (Ok(directory), Ok(listing)) = (self.path(number), self.listing(handle)) else {
            return reply.error(fuser::Errno::EBADF);
        };
        for (at, (name, seen)) in (0_u64..).zip(listing.iter()).skip(offset as usize) {
            let Ok(path) = below(&directory, OsStr::new(name)) else {
                continue;
            };
            let is_dot = name == "." || name == "..";
            let number = if is_dot {
                number
            } else {
                lock(&self.numbers).number(&path, seen)
            };
            let attributes = self.attributes(number, seen);
            let is_full = reply.add(number, at + 1, name, &believed(&path), &attributes, Generation(0));
            if is_full {
                if !is_dot {
                    lock(&self.numbers).give_back(number.0, 1);
                }
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(&self, _: &Request, _: INodeNo, handle: FileHandle, _: OpenFlags, reply: ReplyEmpty) {
        lock(&self.listings).1.remove(&handle.0);
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        reply.statfs(0, 0, 0, 0, 0, 4096, 255, 4096);
    }
}

/// A mounted tree.
pub struct Mount {
    session: Session<Mounted>,
    files: Arc<Files>,
}

impl Mount {
    /// Mount a tree, attached twice, at `directory`. The second connection is for those who wait. `ages` are the
    /// daemon's own, for who comes in by its main door.
    pub fn new(
        tree: Attachment,
        live: Attachment,
        ages: Option<Ages>,
        directory: &Path,
    ) -> std::io::Result<Self> {
        let files = Arc::new(Files::new(tree, live, ages));
        let mounted = Mounted {
            files: Arc::clone(&files),
            numbers: Mutex::new(Numbers::new()),
            listings: Mutex::default(),
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
        };
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName("beamtalk".to_owned()),
            MountOption::Subtype("beamtalk".to_owned()),
            MountOption::NoDev,
            MountOption::NoSuid,
            MountOption::NoExec,
            MountOption::NoAtime,
        ];
        config.n_threads = Some(THREADS);
        let session = Session::new(mounted, directory, &config)?;
        Ok(Mount { session, files })
    }

    /// Serve until it is unmounted, the daemon ends, or something comes from `stop`.
    pub fn serve(mut self, stop: &Receiver<()>, stopping: Sender<()>) -> std::io::Result<()> {
        let mut unmounter = self.session.unmount_callable();
        let files = Arc::clone(&self.files);
        let ended = stopping.clone();
        std::thread::spawn(move || {
            if let Ok(mut events) = files.patient().open("events", 0) {
                // Read for nothing but its end.
                while events.read_next(None).is_ok_and(|piece| !piece.is_empty()) {}
            }
            let _ = ended.send(());
        });
        let session = self.session;
        std::thread::spawn(move || {
            drop(session.run());
            let _ = stopping.send(());
        });
        // Nobody is left to send when all of them are gone.
        let _ = stop.recv();
        unmounter.unmount()
    }
}
