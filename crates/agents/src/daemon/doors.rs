//! A door per session: a directory with a socket in it that only this session sees. It is mounted
//! in the place of the namespace, so it outlives the daemon; the socket in it is made anew.

use std::os::fd::OwnedFd;
use std::sync::{Arc, PoisonError};

use rustix::fs::{AtFlags, Mode, OFlags};

use super::Hub;
use super::listen::{self, Entrance};
use crate::files;
use crate::places::DOORS;

/// The directory `name` in `parent`, made if it is not there.
fn directory(parent: &OwnedFd, name: &str) -> std::io::Result<OwnedFd> {
    match rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o700)) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    rustix::fs::fchmod(&opened, Mode::from_raw_mode(0o700))?;
    Ok(opened)
}

impl Hub {
    /// Listen at the door of a session.
    pub(crate) fn open_door(self: &Arc<Self>, id: &str) -> std::io::Result<()> {
        let door = directory(&directory(&self.namespace, DOORS)?, id)?;
        let listener = listen::bind(&door)?;
        let entrance = Entrance::Session(id.to_owned());
        let accepting = tokio::spawn(listen::accept(listener, Arc::clone(self), entrance));
        let mut doors = self.doors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = doors.insert(id.to_owned(), accepting.abort_handle()) {
            before.abort();
        }
        Ok(())
    }

    /// The session is gone: so is its door.
    pub(crate) fn close_door(&self, id: &str) {
        let mut doors = self.doors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(accepting) = doors.remove(id) {
            accepting.abort();
        }
        drop(doors);
        self.remove_door(id);
    }

    fn remove_door(&self, id: &str) {
        let removed = directory(&self.namespace, DOORS).and_then(|doors| {
            listen::unbind(directory(&doors, id)?);
            Ok(rustix::fs::unlinkat(&doors, id, AtFlags::REMOVEDIR)?)
        });
        if let Err(error) = removed {
            tracing::warn!(%error, session = id, "the door cannot be removed");
        }
    }

    /// Remove the doors of sessions that are no more.
    pub(crate) fn remove_lost_doors(&self) {
        for id in files::names(&self.places.namespace.join(DOORS)) {
            if self.session(&id).is_err() {
                self.remove_door(&id);
            }
        }
    }

    /// The daemon stops: nobody answers at any door. The directories stay for the next one.
    pub(super) fn stop_doors(&self) {
        let mut doors = self.doors.lock().unwrap_or_else(PoisonError::into_inner);
        for (id, accepting) in std::mem::take(&mut *doors) {
            accepting.abort();
            let door = directory(&self.namespace, DOORS).and_then(|all| directory(&all, &id));
            if let Ok(door) = door {
                listen::unbind(door);
            }
        }
        // Stays while a session has its door in it.
        rustix::fs::unlinkat(&self.namespace, DOORS, AtFlags::REMOVEDIR).ok();
    }
}
