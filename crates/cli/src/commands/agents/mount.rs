//! `mount` and `umount`: the tree as a directory of the system.

use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use beamtalk_agents::{Mount, Places, Trust, connect_to, is_signalled};
use rustix::mount::{MountFlags, UnmountFlags};
use tokio::signal::unix::{SignalKind, signal};

use super::context::{Client, Failure};
use crate::exit::Exit;

const DEVICE: &str = "/dev/fuse";
const UNMOUNT: &str = "fusermount3";

pub(super) fn mount(
    client: &Client,
    directory: &Path,
    by_kernel: bool,
    foreground: bool,
) -> Result<Exit, Failure> {
    let directory = usable(directory)?;
    if by_kernel {
        return mount_by_kernel(client, &directory);
    }
    // Nobody to mount is told before anything else.
    drop(client.whole_tree()?);
    check_fuse()?;
    if foreground {
        serve(client, &directory)
    } else {
        launch(client, &directory)
    }
}

/// The directory to mount on. One whose server died is cleared first.
fn usable(directory: &Path) -> Result<PathBuf, Failure> {
    if let Err(error) = std::fs::metadata(directory)
        && error.raw_os_error() == Some(rustix::io::Errno::NOTCONN.raw_os_error())
    {
        drop(detach(directory, UnmountFlags::DETACH));
    }
    let found = std::fs::canonicalize(directory)
        .map_err(|error| Failure::plain(format!("mount: {}: {error}", directory.display())))?;
    if found.is_dir() {
        Ok(found)
    } else {
        Err(Failure::plain(format!(
            "mount: {}: not a directory",
            directory.display()
        )))
    }
}

fn check_fuse() -> Result<(), Failure> {
    let opened = std::fs::File::options().read(true).write(true).open(DEVICE);
    if let Err(error) = opened {
        return Err(Failure::plain(format!(
            "mount: needs {DEVICE} ({error}); as root, --kernel mounts without it"
        )));
    }
    let has_helper = beamtalk_process::asked(UNMOUNT).arg("-V").output().is_ok();
    if has_helper || rustix::process::geteuid().is_root() {
        Ok(())
    } else {
        Err(Failure::plain(format!(
            "mount: needs {UNMOUNT}: install the package fuse3"
        )))
    }
}

/// Leave a process that serves the directory, and come back when it is there.
#[expect(clippy::disallowed_methods, reason = "the mount outlives this process")]
fn launch(client: &Client, directory: &Path) -> Result<Exit, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["agents", "mount", "--foreground"]).arg(directory);
    if let Some(namespace) = client.namespace_option() {
        command.arg("--namespace").arg(namespace);
    }
    if let Some(file) = client.token_file_option() {
        command.arg("--token-file").arg(file);
    }
    let mut child = command
        .env(READY, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut said = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        // Ends when it is mounted, or when it is not.
        stderr.read_to_string(&mut said)?;
    }
    if child.try_wait()?.is_none() && said.is_empty() {
        return client.done();
    }
    let last = said.lines().last().unwrap_or("mount: failed");
    Err(Failure::plain(
        last.strip_prefix("beamtalk agents: ").unwrap_or(last),
    ))
}

/// Set for a process that lets go of its standard error when the directory is there.
const READY: &str = "BEAMTALK_MOUNT_READY";

fn serve(client: &Client, directory: &Path) -> Result<Exit, Failure> {
    let (tree, live) = (client.whole_tree()?, client.whole_tree()?);
    let failed = |error: std::io::Error| Failure::plain(format!("mount: {}: {error}", directory.display()));
    let mounted = Mount::new(tree, live, client.ages(), directory).map_err(failed)?;
    let (stopping, stop) = std::sync::mpsc::channel();
    let told = stopping.clone();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let (mut interrupt, mut terminate) = {
        let _inside = runtime.enter();
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
    };
    std::thread::spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        });
        let _ = told.send(());
    });
    if std::env::var_os(READY).is_some() {
        rustix::process::setsid().ok();
        std::env::set_current_dir("/")?;
        super::daemon::leave_terminal();
    }
    // What is still open in it does not keep it there; whoever has it open gets errors from now on.
    if mounted.serve(&stop, stopping).is_err() {
        detach(directory, UnmountFlags::DETACH)?;
    }
    Ok(Exit::Success)
}

fn mount_by_kernel(client: &Client, directory: &Path) -> Result<Exit, Failure> {
    if !rustix::process::geteuid().is_root() {
        return Err(Failure::plain("mount: --kernel needs root"));
    }
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
    client.done()
}

/// Take a mount away.
fn detach(directory: &Path, how: UnmountFlags) -> Result<(), Failure> {
    if rustix::process::geteuid().is_root() {
        return rustix::mount::unmount(directory, how)
            .map_err(|error| Failure::plain(format!("umount: {}", std::io::Error::from(error))));
    }
    let is_lazy = how.contains(UnmountFlags::DETACH);
    let ended = beamtalk_process::asked(UNMOUNT)
        .arg(if is_lazy { "-uz" } else { "-u" })
        .arg(directory)
        .output();
    match ended {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(Failure::plain(format!("umount: {}", said.trim())))
        }
        Err(_) => Err(Failure::plain(format!("umount: needs root or {UNMOUNT}"))),
    }
}

/// How long those that were told to end may take to let go of the directory, and how often it is looked.
const LETTING_GO: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(20);

pub(super) fn umount(client: &Client, directory: &Path) -> Result<Exit, Failure> {
    let limit = Instant::now() + LETTING_GO;
    loop {
        let Err(refused) = detach(directory, UnmountFlags::empty()) else {
            return client.done();
        };
        if !refused.message().contains("busy") {
            return Err(refused);
        }
        // Whoever reads what may never come lets go of it only some time after it was told to end.
        let users = users(directory);
        let is_ending = users.iter().all(|user| is_signalled(user.pid));
        if !is_ending || Instant::now() > limit {
            let names: Vec<String> = users
                .iter()
                .map(|user| format!("{} (PID {})", user.name, user.pid))
                .collect();
            return Err(Failure::plain(if names.is_empty() {
                refused.message().to_owned()
            } else {
                format!("umount: {} is used by {}", directory.display(), names.join(", "))
            }));
        }
        std::thread::sleep(LOOK);
    }
}

struct User {
    pid: u32,
    name: String,
}

/// The processes, as far as they can be seen, that have something below the directory open or work there.
fn users(directory: &Path) -> Vec<User> {
    // The directory itself is not asked: its server may be the one that hangs.
    let Ok(directory) = std::path::absolute(directory) else {
        return Vec::new();
    };
    let is_below =
        |link: PathBuf| std::fs::read_link(link).is_ok_and(|target| target.starts_with(&directory));
    let uses = |process: &Path| {
        let open = std::fs::read_dir(process.join("fd")).into_iter().flatten();
        is_below(process.join("cwd")) || open.flatten().any(|entry| is_below(entry.path()))
    };
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let name = std::fs::read_to_string(entry.path().join("comm")).ok()?;
        uses(&entry.path()).then(|| User {
            pid,
            name: name.trim().to_owned(),
        })
    })
    .collect()
}
