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
