//! Following output files and ticks with inotify; polling where inotify is not to be had.

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tokio::io::unix::AsyncFd;

use super::Hub;
use crate::sandbox::STARTED;
use crate::session::shared::{Command, SessionShared};
use crate::tap::TICK;

enum Watched {
    Output(Weak<SessionShared>),
    Directory(Weak<SessionShared>),
}

pub(super) async fn run(hub: Arc<Hub>) {
    let opened = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)
        .map_err(std::io::Error::from)
        .and_then(crate::sys::wait_on);
    match opened {
        Ok(descriptor) => follow(&hub, &descriptor).await,
        Err(error) => {
            tracing::warn!(%error, "no inotify; output is polled");
            poll(&hub).await;
        }
    }
}

async fn follow(hub: &Arc<Hub>, descriptor: &AsyncFd<OwnedFd>) {
    let mut watched: HashMap<i32, Watched> = HashMap::new();
    loop {
        add_new(hub, descriptor, &mut watched);
        tokio::select! {
            () = hub.watch_more.notified() => {}
            ready = descriptor.readable() => {
                let Ok(mut guard) = ready else { return };
                drain(descriptor.get_ref(), &mut watched);
                guard.clear_ready();
                // What came between reading and clearing.
                drain(descriptor.get_ref(), &mut watched);
            }
        }
    }
}

fn add_new(hub: &Hub, descriptor: &AsyncFd<OwnedFd>, watched: &mut HashMap<i32, Watched>) {
    let new = std::mem::take(&mut *hub.watches.lock().unwrap_or_else(PoisonError::into_inner));
    for session in new {
        let output = inotify::add_watch(
            descriptor.get_ref(),
            session.output.directory(),
            WatchFlags::MODIFY | WatchFlags::CREATE,
        );
        let directory = inotify::add_watch(descriptor.get_ref(), &session.directory, WatchFlags::MOVED_TO);
        match (output, directory) {
            (Ok(output), Ok(directory)) => {
                watched.insert(output, Watched::Output(Arc::downgrade(&session)));
                watched.insert(directory, Watched::Directory(Arc::downgrade(&session)));
            }
            _ => tracing::warn!(session = %session.id, "session cannot be watched"),
        }
        grew(&session);
    }
}

fn drain(descriptor: &OwnedFd, watched: &mut HashMap<i32, Watched>) {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut reader = inotify::Reader::new(descriptor, &mut buffer);
    while let Ok(event) = reader.next() {
        match watched.get(&event.wd()) {
            Some(Watched::Output(session)) => {
                if let Some(session) = session.upgrade() {
                    grew(&session);
                }
            }
            Some(Watched::Directory(session)) => {
                let is = |wanted: &str| {
                    event
                        .file_name()
                        .is_some_and(|name| name.to_bytes() == wanted.as_bytes())
                };
                let command = if is(TICK) {
                    Some(Command::Tick)
                } else {
                    is(STARTED).then_some(Command::Started)
                };
                if let (Some(command), Some(session)) = (command, session.upgrade()) {
                    session.tell(command);
                }
            }
            None => {}
        }
        if event.events().contains(inotify::ReadFlags::IGNORED) {
            watched.remove(&event.wd());
        }
    }
}

fn grew(session: &SessionShared) {
    let bytes = session.output.refresh();
    if bytes > 0 {
        session.tell(Command::OutputGrew { bytes });
    }
}

async fn poll(hub: &Hub) {
    loop {
        tokio::time::sleep(Duration::from_millis(50)).await;
        for session in hub.sessions() {
            grew(&session);
        }
    }
}
