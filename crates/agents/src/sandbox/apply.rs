//! Entering the sandbox: namespaces, then no privileges, then Landlock.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreatedAttr, Scope,
};
use rustix::fs::{Mode, OFlags};
use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags};

use super::user_flag;
use crate::config::Access;
use crate::session::launch::Launch;
use crate::sys;

/// Move into the namespaces of `launch`; that of processes holds for children only.
pub(super) fn namespaces(launch: &Launch) -> Result<(), String> {
    let mut flags = UnshareFlags::empty();
    flags.set(UnshareFlags::NEWNS, launch.mount);
    flags.set(UnshareFlags::NEWIPC, launch.ipc);
    flags.set(UnshareFlags::NEWNET, launch.net);
    flags.set(UnshareFlags::NEWPID, launch.pid);
    if flags.is_empty() {
        return Ok(());
    }
    unshare(flags).map_err(|error| format!("namespaces: {error}"))
}

/// New namespaces, through a user namespace with the same user where that is needed.
pub(super) fn unshare(flags: UnshareFlags) -> std::io::Result<()> {
    let (uid, gid) = (
        rustix::process::geteuid().as_raw(),
        rustix::process::getegid().as_raw(),
    );
    let user = user_flag();
    sys::unshare(flags | user)?;
    if user.is_empty() {
        return Ok(());
    }
    let map = |file: &str, text: String| {
        std::fs::OpenOptions::new()
            .write(true)
            .open(file)
            .and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()))
    };
    map("/proc/self/setgroups", "deny".to_owned())?;
    map("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    map("/proc/self/gid_map", format!("{gid} {gid} 1"))
}

/// Give up every capability for good, also as root.
pub(super) fn drop_privileges() -> Result<(), String> {
    for number in 0..u64::BITS {
        let one = CapabilitySet::from_bits_retain(1 << number);
        // Numbers the kernel does not know, and sets that are out of reach already, stay.
        rustix::thread::remove_capability_from_bounding_set(one).ok();
    }
    rustix::thread::clear_ambient_capability_set().ok();
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    rustix::thread::set_capabilities(None, none).map_err(|error| format!("capabilities: {error}"))
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

/// Leave the owner's keys behind: a session keyring of its own, and no way to any other.
pub(super) fn without_keys(launch: &Launch) -> Result<(), String> {
    sys::leave_keyring();
    match sys::refuse_keys() {
        Err(error) if !launch.best_effort => Err(format!("keyrings: {error}")),
        _ => Ok(()),
    }
}

/// Restrict this process to what is granted, as it looks from inside; nothing is made, removed or
/// renamed in the `closed` directories, nor in those on the way to them.
pub(super) fn restrict(
    launch: &Launch,
    terminal: Option<&Path>,
    closed: &BTreeSet<PathBuf>,
) -> Result<(), String> {
    if !launch.landlock {
        return if launch.best_effort {
            Ok(())
        } else {
            Err("kernel has no Landlock".to_owned())
        };
    }
    let own = [
        (launch.tmp.clone(), Access::Rw),
        // Its helpers.
        (crate::helpers::directory(&launch.tmp), Access::Rox),
        (launch.visible_namespace().to_owned(), Access::Ro),
    ];
    let granted = launch
        .paths
        .iter()
        .map(|(path, access)| (PathBuf::from(path), *access));
    let terminal = terminal.map(|path| (path.to_owned(), Access::Rw));
    let rules = granted
        .chain(own)
        .chain(terminal)
        .flat_map(|(path, access)| rules(&path, access, closed));
    confine(launch, rules).map_err(|error| error.to_string())
}

/// A place and what may be done in it and below.
type Rule = (OwnedFd, BitFlags<AccessFs>);

/// The rules that grant `path`. Rights hold for everything below a place, so a directory around a
/// closed one gives none to change its entries, and each of the other directories in it gives its own.
fn rules(path: &Path, access: Access, closed: &BTreeSet<PathBuf>) -> Vec<Rule> {
    // Links on the way to what is granted are followed here as everywhere.
    let Ok(real) = std::fs::canonicalize(path) else {
        return Vec::new();
    };
    let place = |path: &Path, kind: OFlags| {
        let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW | kind;
        rustix::fs::open(path, flags, Mode::empty()).ok()
    };
    let mut given = rights(access);
    if !real.is_dir() {
        given &= AccessFs::from_file(ABI_USED);
    }
    let on_the_way: BTreeSet<&Path> = closed
        .iter()
        .flat_map(|closed| closed.ancestors())
        .filter(|around| around.starts_with(&real))
        .collect();
    if on_the_way.is_empty() {
        return place(&real, OFlags::empty())
            .map(|place| (place, given))
            .into_iter()
            .collect();
    }
    let others = on_the_way
        .iter()
        .flat_map(|directory| std::fs::read_dir(directory).into_iter().flatten().flatten())
        .map(|entry| entry.path())
        .filter(|path| !on_the_way.contains(path.as_path()))
        .filter_map(|path| Some((place(&path, OFlags::DIRECTORY)?, given)));
    place(&real, OFlags::empty())
        .map(|place| (place, given & !entry_rights()))
        .into_iter()
        .chain(others)
        .collect()
}

/// The rights to change what a directory holds.
fn entry_rights() -> BitFlags<AccessFs> {
    AccessFs::RemoveDir
        | AccessFs::RemoveFile
        | AccessFs::MakeChar
        | AccessFs::MakeDir
        | AccessFs::MakeReg
        | AccessFs::MakeSock
        | AccessFs::MakeFifo
        | AccessFs::MakeBlock
        | AccessFs::MakeSym
        | AccessFs::Refer
}

fn confine(launch: &Launch, rules: impl Iterator<Item = Rule>) -> Result<(), landlock::RulesetError> {
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
    for (place, allowed) in rules {
        created = created.add_rule(PathBeneath::new(place, allowed))?;
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
