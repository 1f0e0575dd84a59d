//! One function per request: protocol rules first, then the node.

use std::sync::Arc;

use super::connection::{ReplyFuture, Shared};
use super::directory::Listing;
use super::fids::{Fid, Open, Opened, Target};
use super::{Need, Node, OpenRequest, ReadAnswer, WriteAnswer};
use crate::error::Refusal;
use crate::message::{Dialect, Names, Payload, Reply, Request};
use crate::stat::{Qid, Stat};

type Outcome = Result<Reply, Refusal>;

/// Names per walk.
const WALK_NAMES: usize = 16;
/// Bytes per name.
const NAME_BYTES: usize = 255;

/// A request that was begun.
pub(super) enum Started {
    Done(Outcome),
    Waiting(ReplyFuture),
}

/// Whether giving the request up leaves nothing half done.
pub(super) fn is_harmless(request: &Request) -> bool {
    matches!(
        request,
        Request::Read { .. }
            | Request::Readdir { .. }
            | Request::Walk { .. }
            | Request::Stat { .. }
            | Request::Getattr { .. }
            | Request::Statfs { .. }
            | Request::Attach { .. }
    )
}

pub(super) async fn answer(shared: Arc<Shared>, request: Request) -> Outcome {
    match request {
        Request::Version { .. } | Request::Flush { .. } => Err(Refusal::INTERNAL),
        Request::Auth {
            afid,
            uname,
            aname,
            n_uname,
        } => {
            shared.lock().fids.check_free(afid, shared.limits.fids)?;
            let auth = shared.session.auth(&uname, &aname, n_uname.uid())?;
            let aqid = auth.qid();
            shared.lock().fids.insert(afid, Fid::new(Target::Auth(auth)));
            Ok(Reply::Auth { aqid })
        }
        Request::Attach {
            fid,
            afid,
            uname,
            aname,
            n_uname,
        } => {
            shared.lock().fids.check_free(fid, shared.limits.fids)?;
            let auth = if afid == crate::NOFID {
                None
            } else {
                let number = shared.lock().fids.get(afid)?;
                match number.target() {
                    Target::Auth(auth) => Some(auth),
                    Target::Node(_) => return Err(Refusal::BAD_FID),
                }
            };
            let node = shared.session.attach(auth, &uname, &aname, n_uname.uid())?;
            let qid = ready(&node, Need::Step).await?.qid()?;
            shared.lock().fids.insert(fid, Fid::new(Target::Node(node)));
            Ok(Reply::Attach { qid })
        }
        Request::Walk { fid, newfid, wname } => walk(&shared, fid, newfid, &wname).await,
        Request::Open { fid, mode } => {
            let (qid, iounit) = open(&shared, fid, plan9_mode(&shared, mode), mode & 3 == 3, false).await?;
            Ok(Reply::Open { qid, iounit })
        }
        Request::Lopen { fid, flags } => {
            let request = linux_flags(&shared, flags);
            let (qid, iounit) = open(&shared, fid, request, false, flags & 0o200_000 != 0).await?;
            Ok(Reply::Lopen { qid, iounit })
        }
        Request::Create {
            fid,
            name,
            perm,
            mode,
        } => {
            let (qid, iounit) = create(&shared, fid, &name, perm, plan9_mode(&shared, mode)).await?;
            Ok(Reply::Create { qid, iounit })
        }
        Request::Lcreate {
            fid,
            name,
            flags,
            mode,
            ..
        } => {
            let (qid, iounit) = create(&shared, fid, &name, mode, linux_flags(&shared, flags)).await?;
            Ok(Reply::Lcreate { qid, iounit })
        }
        Request::Read { fid, offset, count } => read(&shared, fid, offset, count).await,
        Request::Readdir { fid, offset, count } => {
            let count = count.min(shared.lock().msize - 11);
            let fid = shared.get(fid)?;
            let mut open = fid.open.lock().await;
            match open.as_mut().map(|open| &mut open.what) {
                Some(Opened::Directory(listing)) => Ok(Reply::Readdir {
                    data: listing.readdir(offset, count).await?,
                }),
                Some(Opened::File(_)) => Err(Refusal::WALK_IN_FILE),
                None => Err(Refusal::PERMISSION_DENIED),
            }
        }
        Request::Write { fid, offset, data } => write(&shared, fid, offset, data).await,
        Request::Clunk { fid } => {
            let fid = shared.lock().fids.remove(fid)?;
            clunk(&fid).await?;
            Ok(Reply::Clunk {})
        }
        Request::Remove { fid } => {
            let fid = shared.lock().fids.remove(fid)?;
            // Wait for what was asked on this fid before.
            drop(fid.open.lock().await);
            fid.node()?.remove().await?;
            Ok(Reply::Remove {})
        }
        Request::Unlinkat { fid, name, .. } => {
            check_name(&name)?;
            let directory = shared.get(fid)?.node()?;
            let node = ready(&directory, Need::Step).await?.walk(&name)?;
            ready(&node, Need::Step).await?.qid()?;
            node.remove().await?;
            Ok(Reply::Unlinkat {})
        }
        Request::Stat { fid } => Ok(Reply::Stat {
            stat: stat(&shared.get(fid)?.node()?).await?,
        }),
        Request::Wstat { fid, stat } => {
            wstat(&shared, fid, &stat).await?;
            Ok(Reply::Wstat {})
        }
        Request::Getattr { fid, mask } => getattr(&shared, fid, mask).await,
        Request::Setattr {
            fid,
            valid,
            mode,
            uid,
            gid,
            size,
            ..
        } => {
            setattr(&shared, fid, valid, (mode, uid, gid), size).await?;
            Ok(Reply::Setattr {})
        }
        Request::Fsync { fid, .. } => {
            commit(&*shared.get(fid)?).await?;
            Ok(Reply::Fsync {})
        }
        Request::Statfs { fid } => {
            shared.get(fid)?;
            Ok(Reply::Statfs {
                kind: 0x0102_1997,
                bsize: 4096,
                blocks: 0,
                bfree: 0,
                bavail: 0,
                files: 0,
                ffree: 0,
                fsid: 0,
                namelen: 255,
            })
        }
        Request::Readlink { fid } => {
            shared.get(fid)?;
            Err(Refusal::INVALID)
        }
        Request::Lock { fid, .. } => {
            shared.get(fid)?;
            Ok(Reply::Lock { status: 0 })
        }
        Request::Getlock {
            fid,
            start,
            length,
            proc_id,
            client_id,
            ..
        } => {
            shared.get(fid)?;
            Ok(Reply::Getlock {
                kind: 2,
                start,
                length,
                proc_id,
                client_id,
            })
        }
    }
}

impl Shared {
    fn get(&self, fid: u32) -> Result<Arc<Fid>, Refusal> {
        self.lock().fids.get(fid)
    }
}

fn check_name(name: &str) -> Result<(), Refusal> {
    if name.is_empty() || name.len() > NAME_BYTES || name.contains('/') {
        return Err(Refusal::BAD_NAME);
    }
    Ok(())
}

/// The node with what it needs to answer.
pub(super) async fn ready(node: &Arc<dyn Node>, need: Need) -> Result<Arc<dyn Node>, Refusal> {
    match node.ready(need) {
        Some(asked) => asked.await,
        None => Ok(Arc::clone(node)),
    }
}

async fn stat(node: &Arc<dyn Node>) -> Result<Stat, Refusal> {
    ready(node, Need::Stat).await?.stat()
}

/// One step of a walk.
async fn step(node: &Arc<dyn Node>, name: &str) -> Result<(Arc<dyn Node>, Qid), Refusal> {
    check_name(name)?;
    let node = ready(node, Need::Step).await?;
    if !node.qid()?.is_directory() {
        return Err(Refusal::WALK_IN_FILE);
    }
    let next = node.walk(name)?;
    let qid = ready(&next, Need::Step).await?.qid()?;
    Ok((next, qid))
}

async fn walk(shared: &Shared, number: u32, new_number: u32, wname: &Names) -> Outcome {
    let fid = shared.get(number)?;
    if wname.0.len() > WALK_NAMES {
        return Err(Refusal::TOO_MANY_NAMES);
    }
    if fid.is_open() {
        return Err(Refusal::CLONE_OPEN);
    }
    if new_number != number {
        shared.lock().fids.check_free(new_number, shared.limits.fids)?;
    }
    let mut node = fid.node()?;
    let mut wqid: Vec<Qid> = Vec::with_capacity(wname.0.len());
    for name in &wname.0 {
        match step(&node, name).await {
            Ok((next, qid)) => {
                node = next;
                wqid.push(qid);
            }
            Err(refusal) if wqid.is_empty() => return Err(refusal),
            // Neither fid changes; the client sees how far it came.
            Err(_) => return Ok(Reply::Walk { wqid }),
        }
    }
    if new_number == number {
        fid.move_to(Target::Node(node));
    } else {
        let mut state = shared.lock();
        // Another request may have taken it while this one waited.
        state.fids.check_free(new_number, shared.limits.fids)?;
        state.fids.insert(new_number, Fid::new(Target::Node(node)));
    }
    Ok(Reply::Walk { wqid })
}

fn largest_write(shared: &Shared) -> u32 {
    shared.lock().msize - 24
}

fn plan9_mode(shared: &Shared, mode: u8) -> OpenRequest {
    OpenRequest {
        read: matches!(mode & 3, 0 | 2 | 3),
        write: matches!(mode & 3, 1 | 2),
        truncate: mode & 0x10 != 0,
        append: false,
        remove_on_close: mode & 0x40 != 0,
        fills_buffers: false,
        largest_write: largest_write(shared),
    }
}

fn linux_flags(shared: &Shared, flags: u32) -> OpenRequest {
    OpenRequest {
        read: matches!(flags & 3, 0 | 2),
        write: matches!(flags & 3, 1 | 2),
        truncate: flags & 0o1000 != 0,
        append: flags & 0o2000 != 0,
        remove_on_close: false,
        fills_buffers: flags & 0o4000 == 0,
        largest_write: largest_write(shared),
    }
}

async fn open(
    shared: &Shared,
    number: u32,
    request: OpenRequest,
    execute: bool,
    wants_directory: bool,
) -> Result<(Qid, u32), Refusal> {
    let fid = shared.get(number)?;
    let node = fid.node()?;
    let stat = stat(&node).await?;
    if stat.is_directory() {
        if request.write || request.truncate || request.remove_on_close {
            return Err(Refusal::IS_DIRECTORY);
        }
    } else if wants_directory {
        return Err(Refusal::new(20, "not a directory"));
    }
    let denied = (request.read && stat.mode & 0o400 == 0)
        || ((request.write || request.truncate) && stat.mode & 0o200 == 0)
        || (execute && stat.mode & 0o100 == 0);
    if denied {
        node.decided("open", Some(&Refusal::PERMISSION_DENIED));
        return Err(Refusal::PERMISSION_DENIED);
    }
    if !fid.claim() {
        return Err(Refusal::ALREADY_OPEN);
    }
    let mut slot = fid.open.lock().await;
    let opened = match node.open(request).await {
        Ok(file) if stat.is_directory() => {
            drop(file);
            Opened::Directory(Listing::new(Arc::clone(&node)))
        }
        Ok(file) => Opened::File(file),
        Err(refusal) => {
            fid.unclaim();
            return Err(refusal);
        }
    };
    *slot = Some(Open {
        what: opened,
        read: request.read,
        write: request.write,
        append: request.append,
        remove_on_close: request.remove_on_close,
    });
    Ok((stat.qid, largest_write(shared)))
}

async fn create(
    shared: &Shared,
    number: u32,
    name: &str,
    perm: u32,
    request: OpenRequest,
) -> Result<(Qid, u32), Refusal> {
    let fid = shared.get(number)?;
    check_name(name)?;
    if name == "." || name == ".." {
        return Err(Refusal::BAD_NAME);
    }
    let node = fid.node()?;
    let directory = ready(&node, Need::Step).await?;
    if !directory.qid()?.is_directory() {
        return Err(Refusal::WALK_IN_FILE);
    }
    if !fid.claim() {
        return Err(Refusal::ALREADY_OPEN);
    }
    let mut slot = fid.open.lock().await;
    if step(&directory, name).await.is_ok() {
        fid.unclaim();
        return Err(Refusal::FILE_EXISTS);
    }
    let created = node.create(name, perm, request).await;
    node.decided("create", created.as_ref().err());
    match created {
        Ok((made, file)) => {
            let qid = ready(&made, Need::Step).await?.qid()?;
            fid.move_to(Target::Node(made));
            *slot = Some(Open {
                what: Opened::File(file),
                read: request.read,
                write: request.write,
                append: request.append,
                remove_on_close: request.remove_on_close,
            });
            Ok((qid, largest_write(shared)))
        }
        Err(refusal) => {
            fid.unclaim();
            Err(refusal)
        }
    }
}

async fn read(shared: &Shared, number: u32, offset: u64, count: u32) -> Outcome {
    let (dialect, count) = {
        let state = shared.lock();
        (state.dialect, count.min(state.msize - 11))
    };
    let fid = shared.get(number)?;
    if let Target::Auth(auth) = fid.target() {
        let mut data = auth.read(offset, count)?;
        data.truncate(count as usize);
        return Ok(Reply::Read {
            data: Payload::from(data),
        });
    }
    let mut slot = fid.open.lock().await;
    let Some(open) = slot.as_mut().filter(|open| open.read) else {
        return Err(Refusal::PERMISSION_DENIED);
    };
    let data = match &mut open.what {
        Opened::Directory(_) if dialect == Some(Dialect::Linux) => return Err(Refusal::IS_DIRECTORY),
        Opened::Directory(listing) => listing.read(offset, count).await?,
        Opened::File(file) => match file.read(offset, count) {
            ReadAnswer::Now(outcome) => outcome?,
            ReadAnswer::Later(future) => {
                drop(slot);
                future.await?
            }
        },
    };
    Ok(Reply::Read {
        data: data.cut(count as usize),
    })
}

/// A read that can be answered on the spot, without a future: most can. `None` if it has to wait
/// for its turn on the fid.
pub(super) fn read_at_once(shared: &Shared, number: u32, offset: u64, count: u32) -> Option<Started> {
    let (fid, count) = {
        let state = shared.lock();
        let count = count.min(state.msize - 11);
        match state.fids.get(number) {
            Ok(fid) => (fid, count),
            Err(refusal) => return Some(Started::Done(Err(refusal))),
        }
    };
    let mut slot = fid.open.try_lock().ok()?;
    let open = slot.as_mut().filter(|open| open.read)?;
    let Opened::File(file) = &mut open.what else {
        return None;
    };
    Some(match file.read(offset, count) {
        ReadAnswer::Now(outcome) => Started::Done(outcome.map(|data| Reply::Read {
            data: data.cut(count as usize),
        })),
        ReadAnswer::Later(future) => Started::Waiting(Box::pin(async move {
            Ok(Reply::Read {
                data: future.await?.cut(count as usize),
            })
        })),
    })
}

async fn write(shared: &Shared, number: u32, offset: u64, data: Payload) -> Outcome {
    let fid = shared.get(number)?;
    let count = data.len() as u32;
    if let Target::Auth(auth) = fid.target() {
        auth.write(data.as_ref()).await?;
        return Ok(Reply::Write { count });
    }
    let mut slot = fid.open.lock().await;
    let Some(open) = slot.as_mut().filter(|open| open.write) else {
        return Err(Refusal::PERMISSION_DENIED);
    };
    let offset = if open.append { u64::MAX } else { offset };
    match &mut open.what {
        Opened::Directory(_) => return Err(Refusal::IS_DIRECTORY),
        Opened::File(file) => finish(file.write(offset, data)).await?,
    }
    Ok(Reply::Write { count })
}

async fn finish(answer: WriteAnswer) -> Result<(), Refusal> {
    match answer {
        WriteAnswer::Now(outcome) => outcome,
        WriteAnswer::Later(future) => future.await,
    }
}

async fn commit(fid: &Fid) -> Result<(), Refusal> {
    let mut slot = fid.open.lock().await;
    match slot.as_mut().map(|open| (&mut open.what, open.write)) {
        Some((Opened::File(file), true)) => finish(file.commit()).await,
        _ => Ok(()),
    }
}

async fn clunk(fid: &Fid) -> Result<(), Refusal> {
    let committed = commit(fid).await;
    let removes = fid
        .open
        .lock()
        .await
        .as_ref()
        .is_some_and(|open| open.remove_on_close);
    if removes {
        fid.node()?.remove().await?;
    }
    committed
}

async fn set_length(fid: &Fid, length: u64, current: u64) -> Result<(), Refusal> {
    let mut slot = fid.open.lock().await;
    match slot.as_mut().map(|open| (&mut open.what, open.write)) {
        Some((Opened::File(file), true)) => file.set_length(length),
        _ if length == 0 || length == current => Ok(()),
        _ => Err(Refusal::WSTAT_PROHIBITED),
    }
}

async fn wstat(shared: &Shared, number: u32, wanted: &Stat) -> Result<(), Refusal> {
    let fid = shared.get(number)?;
    let node = fid.node()?;
    let outcome = wstat_now(&fid, &stat(&node).await?, wanted).await;
    node.decided("wstat", outcome.as_ref().err());
    outcome
}

async fn wstat_now(fid: &Fid, current: &Stat, wanted: &Stat) -> Result<(), Refusal> {
    let same_text = |new: &str, old: &str| new.is_empty() || new == old;
    let unchanged = same_text(&wanted.name, &current.name)
        && same_text(&wanted.uid, &current.uid)
        && same_text(&wanted.gid, &current.gid)
        && same_text(&wanted.muid, &current.muid)
        && (wanted.mode == u32::MAX || wanted.mode == current.mode);
    if !unchanged {
        return Err(Refusal::WSTAT_PROHIBITED);
    }
    if wanted.length == u64::MAX {
        commit(fid).await
    } else {
        set_length(fid, wanted.length, current.length).await
    }
}

async fn setattr(
    shared: &Shared,
    number: u32,
    valid: u32,
    (mode, uid, gid): (u32, u32, u32),
    size: u64,
) -> Result<(), Refusal> {
    let fid = shared.get(number)?;
    let node = fid.node()?;
    let current = stat(&node).await?;
    let changed = (valid & 1 != 0 && mode & 0o7777 != current.mode & 0o7777)
        || (valid & 2 != 0 && uid != shared.owner.uid)
        || (valid & 4 != 0 && gid != shared.owner.gid);
    let outcome = if changed {
        Err(Refusal::WSTAT_PROHIBITED)
    } else if valid & 8 != 0 {
        set_length(&fid, size, current.length).await
    } else {
        Ok(())
    };
    node.decided("wstat", outcome.as_ref().err());
    outcome
}

async fn getattr(shared: &Shared, number: u32, mask: u64) -> Outcome {
    let stat = stat(&shared.get(number)?.node()?).await?;
    let kind = if stat.is_directory() { 0o040_000 } else { 0o100_000 };
    let (atime, mtime) = (u64::from(stat.atime), u64::from(stat.mtime));
    Ok(Reply::Getattr {
        valid: mask & 0x7ff,
        qid: stat.qid,
        mode: kind | (stat.mode & 0o777),
        uid: shared.owner.uid,
        gid: shared.owner.gid,
        nlink: 1,
        rdev: 0,
        size: stat.length,
        blksize: 4096,
        blocks: stat.length.div_ceil(512),
        atime,
        atime_ns: 0,
        mtime,
        mtime_ns: 0,
        ctime: mtime,
        ctime_ns: 0,
        btime: 0,
        btime_ns: 0,
        generation: 0,
        data_version: 0,
    })
}
