//! The few system calls no safe wrapper offers, each behind a safe function.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

fn whole_file(kind: libc::c_int) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    }
}

#[expect(unsafe_code, reason = "rustix has no open-file-description locks")]
fn lock_call(file: impl AsFd, command: libc::c_int, lock: &mut libc::flock) -> io::Result<()> {
    // SAFETY: the descriptor is open for the call and `lock` is a valid flock structure.
    let outcome = unsafe { libc::fcntl(file.as_fd().as_raw_fd(), command, std::ptr::from_mut(lock)) };
    if outcome == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Take the exclusive open-file-description lock without waiting; false if another holds it.
pub(crate) fn try_lock(file: impl AsFd) -> io::Result<bool> {
    match lock_call(file, libc::F_OFD_SETLK, &mut whole_file(libc::F_WRLCK)) {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether somebody holds the lock; it is not taken.
pub(crate) fn is_locked(file: impl AsFd) -> io::Result<bool> {
    let mut lock = whole_file(libc::F_WRLCK);
    lock_call(file, libc::F_OFD_GETLK, &mut lock)?;
    Ok(libc::c_int::from(lock.l_type) != libc::F_UNLCK)
}

/// The Landlock ABI of the kernel, 0 without Landlock.
#[expect(unsafe_code, reason = "the landlock crate keeps the ABI number to itself")]
pub(crate) fn landlock_abi() -> u32 {
    // SAFETY: with LANDLOCK_CREATE_RULESET_VERSION the call reads no memory.
    let abi = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<u8>(),
            0_usize,
            1_u32,
        )
    };
    u32::try_from(abi).unwrap_or(0)
}

/// Move this process into new namespaces. Only for single-threaded launchers.
#[expect(
    unsafe_code,
    reason = "unshare can surprise other threads; launchers have none"
)]
pub(crate) fn unshare(flags: rustix::thread::UnshareFlags) -> io::Result<()> {
    // SAFETY: no file descriptor table is unshared, and the launcher has one thread.
    unsafe { rustix::thread::unshare_unsafe(flags) }.map_err(io::Error::from)
}

/// The user on the other side of a socket. The process there may be in another namespace, where
/// it has no number; safe wrappers insist on one.
#[expect(
    unsafe_code,
    reason = "rustix takes a peer without a process number for a failure"
)]
pub(crate) fn peer_uid(socket: impl AsFd) -> io::Result<u32> {
    let mut found = libc::ucred {
        pid: 0,
        uid: u32::MAX,
        gid: u32::MAX,
    };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into a structure of that size.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            std::ptr::from_mut(&mut found).cast(),
            std::ptr::from_mut(&mut length),
        )
    };
    if outcome == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(found.uid)
    }
}

/// The process on the other side of a socket, by a descriptor that stays its own.
#[expect(unsafe_code, reason = "rustix does not know SO_PEERPIDFD")]
pub(crate) fn peer_process(socket: impl AsFd) -> io::Result<std::os::fd::OwnedFd> {
    use std::os::fd::FromRawFd;
    let mut found: libc::c_int = -1;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into a number of that size.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERPIDFD,
            std::ptr::from_mut(&mut found).cast(),
            std::ptr::from_mut(&mut length),
        )
    };
    if outcome == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { std::os::fd::OwnedFd::from_raw_fd(found) })
}

/// Whether the process behind a descriptor has ended.
pub(crate) fn has_ended(process: &std::os::fd::OwnedFd) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut waiting = [PollFd::new(process, PollFlags::IN)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    !matches!(poll(&mut waiting, Some(&now)), Ok(0))
}

/// Whether a process can gain privileges no more; `None` if it cannot be looked at.
pub(crate) fn is_confined(pid: u32) -> Option<bool> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let word = status.lines().find_map(|line| line.strip_prefix("NoNewPrivs:"))?;
    Some(word.trim() != "0")
}

/// Which side of a fork this is.
pub(crate) enum Forked {
    Parent { child: rustix::process::Pid },
    Child,
}

/// Go on as two processes. Only for single-threaded launchers.
#[expect(
    unsafe_code,
    reason = "a fork copies one thread only; launchers have no other"
)]
pub(crate) fn fork() -> io::Result<Forked> {
    // SAFETY: with one thread no lock is held by a thread the child does not have.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        number => Ok(match rustix::process::Pid::from_raw(number) {
            Some(child) => Forked::Parent { child },
            None => Forked::Child,
        }),
    }
}

/// Leave what the terminal sends to the program that is watched over.
pub(crate) fn ignore_terminal() {
    ignore(&[
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGTSTP,
        libc::SIGTTOU,
        libc::SIGTTIN,
    ]);
}

/// Go on whatever is sent, and have the kernel collect children that end, orphans given to this
/// process too.
pub(crate) fn ignore_everything() {
    ignore_terminal();
    ignore(&[libc::SIGTERM, libc::SIGHUP, libc::SIGCHLD]);
}

#[expect(unsafe_code, reason = "no safe wrapper sets a signal to be ignored")]
fn ignore(signals: &[libc::c_int]) {
    for number in signals {
        // SAFETY: ignoring runs no code of ours.
        unsafe { libc::signal(*number, libc::SIG_IGN) };
    }
}

/// End a process that a fork made, without a word of the program it was.
#[expect(
    unsafe_code,
    reason = "no safe wrapper ends without running what the parent left to do"
)]
pub(crate) fn leave(status: u8) -> ! {
    // SAFETY: ends the process and touches no memory.
    unsafe { libc::_exit(i32::from(status)) }
}

/// Die of a signal, as the program that is watched over did.
#[expect(unsafe_code, reason = "no safe wrapper restores the default of a signal")]
pub(crate) fn die_of(number: i32) {
    // The dump of the watcher would tell nothing about the program.
    let none = rustix::process::Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    rustix::process::setrlimit(rustix::process::Resource::Core, none).ok();
    // SAFETY: the default action runs no code of ours.
    unsafe { libc::signal(number, libc::SIG_DFL) };
    if let Some(signal) = rustix::process::Signal::from_named_raw(number) {
        rustix::process::kill_process(rustix::process::getpid(), signal).ok();
    }
}

/// A descriptor the runtime waits on.
#[expect(
    unsafe_code,
    reason = "the runtime trusts that the descriptor stays open; an owned one does"
)]
pub(crate) fn wait_on(
    descriptor: std::os::fd::OwnedFd,
) -> io::Result<tokio::io::unix::AsyncFd<std::os::fd::OwnedFd>> {
    // SAFETY: an `OwnedFd` keeps the same descriptor open until it is dropped.
    unsafe { tokio::io::unix::AsyncFd::register(descriptor) }.map_err(io::Error::from)
}

/// The mount a descriptor stands for, and those below it, cannot be changed from now on.
#[expect(unsafe_code, reason = "rustix does not know mount_setattr")]
pub(crate) fn fix_mounts(mount: impl AsFd) -> io::Result<()> {
    // The fields of `struct mount_attr`: set, clear, propagation, user namespace.
    let attributes: [u64; 4] = [MOUNT_ATTR_RDONLY, 0, 0, 0];
    // SAFETY: the path is a constant string, and the kernel reads `size_of_val` bytes of the array.
    let outcome = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_fd().as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | libc::AT_RECURSIVE,
            attributes.as_ptr(),
            size_of_val(&attributes),
        )
    };
    if outcome == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

const MOUNT_ATTR_RDONLY: u64 = 1;

/// Go on with an empty session keyring. Where the kernel has no keyrings there is nothing to leave.
#[expect(unsafe_code, reason = "no safe wrapper knows keyrings")]
pub(crate) fn leave_keyring() {
    const JOIN_SESSION_KEYRING: libc::c_long = 1;
    // SAFETY: without a name the call reads no memory.
    unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, std::ptr::null::<u8>()) };
}

/// How the kernel names the architecture this program was built for.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

/// The program that refuses the calls of keyrings, and every call of another architecture, whose
/// numbers mean something else.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn key_filter() -> Vec<libc::sock_filter> {
    const LOAD: u16 = 0x20;
    const IF_EQUAL: u16 = 0x15;
    const IF_AT_LEAST: u16 = 0x35;
    const ANSWER: u16 = 0x06;
    const ALLOW: u32 = 0x7fff_0000;
    // Numbers from here on are those of another way to call, with 32-bit pointers.
    const OTHER_WAY: u32 = 0x4000_0000;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let refuse = |errno: libc::c_int| libc::SECCOMP_RET_ERRNO | errno.unsigned_abs();
    let number = |call: libc::c_long| u32::try_from(call).unwrap_or(u32::MAX);
    vec![
        step(LOAD, 0, 0, 4),
        step(IF_EQUAL, 0, 5, ARCHITECTURE),
        step(LOAD, 0, 0, 0),
        step(IF_AT_LEAST, 3, 0, OTHER_WAY),
        step(IF_EQUAL, 4, 0, number(libc::SYS_add_key)),
        step(IF_EQUAL, 3, 0, number(libc::SYS_request_key)),
        step(IF_EQUAL, 2, 1, number(libc::SYS_keyctl)),
        step(ANSWER, 0, 0, refuse(libc::ENOSYS)),
        step(ANSWER, 0, 0, ALLOW),
        step(ANSWER, 0, 0, refuse(libc::EPERM)),
    ]
}

/// Refuse the calls of keyrings to this process and all it starts: the keys of a user are no
/// matter of namespaces for root, and of none for a process that keeps its session.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[expect(unsafe_code, reason = "no safe wrapper installs a filter of system calls")]
pub(crate) fn refuse_keys() -> io::Result<()> {
    let mut steps = key_filter();
    let program = libc::sock_fprog {
        len: u16::try_from(steps.len()).map_err(io::Error::other)?,
        filter: steps.as_mut_ptr(),
    };
    // SAFETY: the kernel copies `len` steps, which live until the call returns.
    let outcome = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            0_u32,
            std::ptr::from_ref(&program),
        )
    };
    if outcome == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn refuse_keys() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
