//! A small tree in memory: a file, a directory, a stream that blocks until it is fed, a file whose
//! write never ends, and one that panics.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use beamtalk_ninep::{
    Answer, AuthFile, Fault, Hangup, Limits, Node, OpenFile, OpenRequest, Owner, Payload, Qid, ReadAnswer,
    Refusal, Session, Stat, WriteAnswer, mode, serve,
};
use tokio::sync::Notify;

#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) text: Mutex<Vec<u8>>,
    pub(crate) stream: Mutex<Vec<u8>>,
    pub(crate) fed: Notify,
    pub(crate) faults: Mutex<Vec<&'static str>>,
    pub(crate) release: Notify,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Root,
    Directory,
    Text,
    Stream,
    Slow,
    Panic,
}

const ALL: &[(Place, &str, u32, u64)] = &[
    (Place::Root, "/", mode::DIRECTORY | 0o700, 1),
    (Place::Directory, "dir", mode::DIRECTORY | 0o500, 2),
    (Place::Panic, "panic", 0o600, 3),
    (Place::Slow, "slow", 0o600, 4),
    (Place::Stream, "stream", 0o400, 5),
    (Place::Text, "text", 0o600, 6),
];

pub(crate) struct Tree {
    pub(crate) shared: Arc<Shared>,
    pub(crate) place: Place,
}

impl Tree {
    fn at(&self, place: Place) -> Arc<dyn Node> {
        Arc::new(Tree {
            shared: Arc::clone(&self.shared),
            place,
        })
    }
}

fn stat_of(place: Place, length: u64) -> Stat {
    let (_, name, bits, path) = ALL.iter().find(|row| row.0 == place).copied().unwrap();
    Stat {
        qid: Qid {
            kind: (bits >> 24) as u8,
            version: 0,
            path,
        },
        mode: bits,
        length,
        name: name.to_owned(),
        uid: "me".to_owned(),
        gid: "me".to_owned(),
        muid: "me".to_owned(),
        ..Stat::default()
    }
}

impl Node for Tree {
    fn stat(&self) -> Result<Stat, Refusal> {
        let length = if self.place == Place::Text {
            self.shared.text.lock().unwrap().len()
        } else {
            0
        };
        Ok(stat_of(self.place, length as u64))
    }

    fn walk(&self, name: &str) -> Result<Arc<dyn Node>, Refusal> {
        if name == ".." {
            return Ok(self.at(Place::Root));
        }
        let found = ALL.iter().find(|row| row.1 == name && self.place == Place::Root);
        found.map(|row| self.at(row.0)).ok_or(Refusal::NOT_FOUND)
    }

    fn list(&self) -> Result<Vec<Stat>, Refusal> {
        let inner = if self.place == Place::Root { &ALL[1..] } else { &[] };
        Ok(inner.iter().map(|row| stat_of(row.0, 0)).collect())
    }

    fn open(&self, _: OpenRequest) -> Answer<Box<dyn OpenFile>> {
        let file = Opened {
            shared: Arc::clone(&self.shared),
            place: self.place,
        };
        Box::pin(std::future::ready(Ok(Box::new(file) as Box<dyn OpenFile>)))
    }
}

struct Opened {
    shared: Arc<Shared>,
    place: Place,
}

impl OpenFile for Opened {
    fn read(&mut self, offset: u64, count: u32) -> ReadAnswer {
        match self.place {
            Place::Stream => {
                let shared = Arc::clone(&self.shared);
                ReadAnswer::Later(Box::pin(async move {
                    loop {
                        let fed = shared.fed.notified();
                        let taken = std::mem::take(&mut *shared.stream.lock().unwrap());
                        if !taken.is_empty() {
                            return Ok(Payload::from(taken));
                        }
                        fed.await;
                    }
                }))
            }
            Place::Panic => panic!("a handler fails"),
            _ => {
                let text = self.shared.text.lock().unwrap();
                let start = usize::try_from(offset).unwrap_or(usize::MAX).min(text.len());
                let end = (start + count as usize).min(text.len());
                ReadAnswer::Now(Ok(Payload::from(text[start..end].to_vec())))
            }
        }
    }

    fn write(&mut self, offset: u64, data: Payload) -> WriteAnswer {
        if self.place == Place::Slow {
            let shared = Arc::clone(&self.shared);
            return WriteAnswer::Later(Box::pin(async move {
                shared.release.notified().await;
                Ok(())
            }));
        }
        let mut text = self.shared.text.lock().unwrap();
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        if start > text.len() {
            return WriteAnswer::Now(Err(Refusal::BAD_OFFSET));
        }
        text.truncate(start);
        text.extend_from_slice(data.as_ref());
        WriteAnswer::Now(Ok(()))
    }
}

pub(crate) struct Everybody(pub(crate) Arc<Shared>);

impl Session for Everybody {
    fn auth(&self, _: &str, _: &str, _: Option<u32>) -> Result<Arc<dyn AuthFile>, Refusal> {
        Err(Refusal::NO_AUTH_REQUIRED)
    }

    fn attach(
        &self,
        _: Option<Arc<dyn AuthFile>>,
        _: &str,
        _: &str,
        _: Option<u32>,
    ) -> Result<Arc<dyn Node>, Refusal> {
        Ok(Arc::new(Tree {
            shared: Arc::clone(&self.0),
            place: Place::Root,
        }))
    }

    fn fault(&self, fault: Fault) {
        self.0.faults.lock().unwrap().push(fault.word());
    }
}

/// A served connection; the server runs on a thread of its own.
pub(crate) fn connection(limits: Limits) -> (std::os::unix::net::UnixStream, Arc<Shared>) {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    ours.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    theirs.set_nonblocking(true).unwrap();
    let shared = Arc::new(Shared {
        text: Mutex::new(b"hello, world\n".to_vec()),
        ..Shared::default()
    });
    let session = Arc::new(Everybody(Arc::clone(&shared)));
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async move {
            let stream = tokio::net::UnixStream::from_std(theirs).unwrap();
            serve(
                stream,
                session,
                Owner { uid: 1000, gid: 1000 },
                limits,
                Hangup::default(),
            )
            .await;
        });
    });
    (ours, shared)
}
