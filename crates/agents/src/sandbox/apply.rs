//! Entering the sandbox: namespaces first, then Landlock.

use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreatedAttr, Scope,
};
use rustix::fs::{Mode, OFlags, StatVfsMountFlags};
use rustix::mount::{MountFlags, MountPropagationFlags};
use rustix::thread::UnshareFlags;

use super::{path_of, terminal, user_flag};
use crate::config::Access;
use crate::session::launch::Launch;
use crate::sys;

/// Move into the namespaces of `launch`; what is granted, opened before mounts hide it.
pub(super) fn prepare(launch: &Launch) -> Result<Vec<Rule>, String> {
    rustix::thread::set_no_new_privs(true).map_err(|error| error.to_string())?;
    let tty = terminal();
    // Resolved before mounts change what the paths mean.
    let mut rules = granted(launch);
    if let Some(tty) = &tty {
        rules.extend(rule(path_of(tty), Access::Rw));
    }
    if let Err(error) = namespaces(launch)
        && !launch.best_effort
    {
        return Err(error);
    }
    // The session's own places, as they look from inside.
    rules.extend(rule(&launch.tmp, Access::Rw));
    rules.extend(rule(&launch.namespace, Access::Ro));
    Ok(rules)
}

/// Restrict this process to what is granted; the reason why not otherwise.
pub(super) fn enter(launch: &Launch, mut rules: Vec<Rule>) -> Result<(), String> {
    if launch.pid
        && let Some(access) = launch.paths.get("/proc")
    {
        // As it looks in the namespace of its own.
        rules.extend(rule(Path::new("/proc"), *access));
    }
    if !launch.landlock {
        return if launch.best_effort {
            Ok(())
        } else {
            Err("kernel has no Landlock".to_owned())
        };
    }
    restrict(launch, rules).map_err(|error| error.to_string())
}

fn namespaces(launch: &Launch) -> Result<(), String> {
    let mut flags = UnshareFlags::empty();
    flags.set(UnshareFlags::NEWNS, launch.mount);
    flags.set(UnshareFlags::NEWIPC, launch.ipc);
    flags.set(UnshareFlags::NEWNET, launch.net);
    flags.set(UnshareFlags::NEWPID, launch.pid);
    if flags.is_empty() {
        return Ok(());
    }
    let (uid, gid) = (
        rustix::process::geteuid().as_raw(),
        rustix::process::getegid().as_raw(),
    );
    let user = user_flag();
    sys::unshare(flags | user).map_err(|error| format!("namespaces: {error}"))?;
    if !user.is_empty() {
        let map = |file: &str, text: String| {
            std::fs::OpenOptions::new()
                .write(true)
                .open(file)
                .and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()))
                .map_err(|error| format!("{file}: {error}"))
        };
        map("/proc/self/setgroups", "deny".to_owned())?;
        map("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
        map("/proc/self/gid_map", format!("{gid} {gid} 1"))?;
    }
    if launch.mount {
        hide(launch).map_err(|error| format!("mount: {error}"))
    } else {
        Ok(())
    }
}

/// Of the daemon's files leave only the socket and the session's own directory.
fn hide(launch: &Launch) -> std::io::Result<()> {
    let flags = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
    rustix::mount::mount_change("/", flags)?;
    let tmp = rustix::fs::open(
        &launch.tmp,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let tmpfs_flags = MountFlags::NOSUID | MountFlags::NODEV;
    rustix::mount::mount("none", &launch.state, "tmpfs", tmpfs_flags, c"mode=0700,size=64k")?;
    std::fs::create_dir_all(&launch.tmp)?;
    rustix::mount::mount_bind(format!("/proc/self/fd/{}", tmp.as_raw_fd()), &launch.tmp)?;
    // A directory of its own, so that a socket made by the next daemon shows here too.
    rustix::mount::mount_bind(launch.namespace.join(crate::daemon::DOOR), &launch.namespace)?;
    make_read_only(&launch.namespace)
}

/// All sessions share the door: one that may write to a directory around it must not be able to put
/// a socket of its own in its place.
fn make_read_only(mounted: &Path) -> std::io::Result<()> {
    let mut flags = MountFlags::BIND | MountFlags::RDONLY;
    let has = rustix::fs::statvfs(mounted)?.f_flag;
    // In a user namespace what is forbidden already must stay so.
    for (present, flag) in [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
    ] {
        flags.set(flag, has.contains(present));
    }
    Ok(rustix::mount::mount_remount(mounted, flags, c"")?)
}

const ABI_USED: ABI = ABI::V7;

fn rights(access: Access) -> BitFlags<AccessFs> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let write = AccessFs::from_write(ABI_USED) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    match access {
        Access::Ro => read,
        Access::Rox => read | AccessFs::Execute,
        Access::Rw => read | write,
        Access::Rwx => read | write | AccessFs::Execute,
    }
}

pub(super) type Rule = (PathFd, PathBuf, Access);

fn rule(path: &Path, access: Access) -> Option<Rule> {
    PathFd::new(path).ok().map(|fd| (fd, path.to_owned(), access))
}

fn granted(launch: &Launch) -> Vec<Rule> {
    launch
        .paths
        .iter()
        .filter_map(|(path, access)| rule(Path::new(path), *access))
        .collect()
}

fn restrict(launch: &Launch, rules: Vec<Rule>) -> Result<(), landlock::RulesetError> {
    let level = if launch.best_effort {
        CompatLevel::BestEffort
    } else {
        CompatLevel::SoftRequirement
    };
    let mut ruleset = Ruleset::default()
        .set_compatibility(level)
        .handle_access(AccessFs::from_all(ABI_USED))?;
    // With an own network namespace there is nothing left to reach.
    let ports = launch.network_limited && !launch.net;
    if ports {
        ruleset = ruleset.handle_access(AccessNet::from_all(ABI_USED))?;
    }
    let mut created = ruleset.scope(Scope::from_all(ABI_USED))?.create()?;
    for (fd, path, access) in rules {
        let mut wanted = rights(access);
        if !path.is_dir() {
            wanted &= AccessFs::from_file(ABI_USED);
        }
        created = created.add_rule(PathBeneath::new(fd, wanted))?;
    }
    if ports {
        for port in &launch.bind_tcp {
            created = created.add_rule(NetPort::new(*port, AccessNet::BindTcp))?;
        }
        for port in &launch.connect_tcp {
            created = created.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
        }
    }
    created.restrict_self().map(drop)
}
