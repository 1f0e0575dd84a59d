//! `mount` and `umount`: the tree as a kernel file system.

use std::os::fd::AsRawFd;
use std::path::Path;

use beamtalk_agents::{Places, Trust, connect_to};
use rustix::mount::{MountFlags, UnmountFlags};

use super::context::{Client, Failure};
use crate::exit::Exit;

pub(super) fn mount(client: &Client, directory: &Path) -> Result<Exit, Failure> {
    if rustix::process::geteuid().is_root() {
        let namespace = client.living_namespace();
        let trust = if client.is_namespace_named() {
            Trust::Named
        } else {
            Trust::OwnOrRoot
        };
        let stream = connect_to(&Places::of(&namespace).socket(), trust)?;
        use std::os::unix::fs::MetadataExt;
        let owner = std::fs::metadata(&namespace)?.uid();
        let number = stream.as_raw_fd();
        // The kernel goes on with a descriptor that is connected and checked already.
        rustix::io::fcntl_setfd(&stream, rustix::io::FdFlags::empty()).map_err(std::io::Error::from)?;
        let options = format!(
            "trans=fd,rfdno={number},wfdno={number},version=9p2000.L,uname=root,access={owner},dfltuid={owner},\
             cache=none,msize=65536"
        );
        let options = std::ffi::CString::new(options).map_err(std::io::Error::from)?;
        rustix::mount::mount(
            "beamtalk",
            directory,
            "9p",
            MountFlags::NODEV | MountFlags::NOSUID,
            options.as_c_str(),
        )
        .map_err(|error| Failure::plain(format!("mount: {}", std::io::Error::from(error))))?;
        return client.done();
    }
    let socket = Places::of(&client.living_namespace()).socket();
    match beamtalk_process::asked("9pfuse")
        .arg(socket)
        .arg(directory)
        .status()
    {
        Ok(status) if status.success() => client.done(),
        Ok(status) => Err(Failure::plain(format!("9pfuse: {status}"))),
        Err(_) => Err(Failure::plain("mount: needs root or 9pfuse")),
    }
}

pub(super) fn umount(client: &Client, directory: &Path) -> Result<Exit, Failure> {
    if rustix::process::geteuid().is_root() {
        rustix::mount::unmount(directory, UnmountFlags::empty())
            .map_err(|error| Failure::plain(format!("umount: {}", std::io::Error::from(error))))?;
        return client.done();
    }
    match beamtalk_process::asked("fusermount")
        .arg("-u")
        .arg(directory)
        .status()
    {
        Ok(status) if status.success() => client.done(),
        _ => Err(Failure::plain("umount: needs root or fusermount")),
    }
}
