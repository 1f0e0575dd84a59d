//! Files, children and time as plain values, checked while the core acts on them.

use std::collections::BTreeMap;
use std::path::Path;

use super::super::*;
use crate::config::{RemoteBind, check};
use crate::report::WorkflowPhase;

pub(super) struct World {
    pub(super) core: Core,
    pub(super) now: Ms,
    pub(super) disk: BTreeMap<String, Value>,
    pub(super) disk_fails: bool,
    pub(super) spawn_fails: bool,
    pub(super) missing: BTreeSet<String>,
    pub(super) excluded: BTreeSet<String>,
    pub(super) alive: BTreeMap<String, u64>,
    pub(super) stopping: BTreeMap<String, u64>,
    pub(super) hooks: BTreeMap<u64, String>,
    pub(super) probes: BTreeSet<u64>,
    pub(super) running: usize,
    pub(super) closing: bool,
    pub(super) answered: BTreeMap<u64, Verdict>,
    pub(super) finished: BTreeMap<u64, Result<(), String>>,
    pub(super) said: Vec<String>,
    pub(super) ended: Option<u8>,
    pub(super) reloads: usize,
    /// The hook the execution under way ran last.
    pub(super) stepping: Option<u64>,
    pub(super) seen_version: u64,
    pub(super) stale_since: Option<Ms>,
}

impl World {
    pub(super) fn with(text: &str, plan: Plan) -> Self {
        let config = check(Path::new("/tmp/devloop.toml"), text, RemoteBind::Refuse)
            .valid()
            .unwrap();
        let mut world = Self {
            core: Core::new(Arc::new(config), plan, BTreeMap::new()),
            now: 0,
            disk: BTreeMap::new(),
            disk_fails: false,
            spawn_fails: false,
            missing: BTreeSet::new(),
            excluded: BTreeSet::new(),
            alive: BTreeMap::new(),
            stopping: BTreeMap::new(),
            hooks: BTreeMap::new(),
            probes: BTreeSet::new(),
            running: 0,
            closing: false,
            answered: BTreeMap::new(),
            finished: BTreeMap::new(),
            said: Vec::new(),
            ended: None,
            reloads: 0,
            stepping: None,
            seen_version: 0,
            stale_since: None,
        };
        world.feed(Event::Begin);
        world
    }

    pub(super) fn new(text: &str) -> Self {
        Self::with(text, Plan::default())
    }

    pub(super) fn feed(&mut self, event: Event) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            for effect in self.core.handle(self.now, event) {
                assert!(self.ended.is_none(), "nothing happens after the end: {effect:?}");
                events.extend(self.perform(effect));
            }
        }
        self.check_age();
    }

    /// The file equals memory at most 100 ms after a change. What could not be written waits for
    /// the next change.
    pub(super) fn check_age(&mut self) {
        if self.core.version() != self.seen_version {
            self.seen_version = self.core.version();
            self.stale_since.get_or_insert(self.now);
        }
        if self.disk_fails || &self.disk == self.core.values() {
            self.stale_since = None;
        }
        let age = self.stale_since.map_or(0, |since| self.now - since);
        assert!(age <= 100, "the file is {age} ms behind");
    }

    pub(super) fn perform(&mut self, effect: Effect) -> Option<Event> {
        match effect {
            Effect::Report(Report::Said { text }) => self.said.push(text),
            Effect::Report(Report::Log { text, .. }) => self.said.push(text),
            Effect::Report(Report::Workflow {
                source: Source::Trigger | Source::Inline,
                ..
            })
            | Effect::LoadConfig
            | Effect::Queued { .. }
            | Effect::Applied(_) => {}
            Effect::Report(Report::Workflow {
                phase: WorkflowPhase::Start,
                ..
            }) => {
                self.running += 1;
                assert_eq!(self.running, 1, "one execution at a time");
            }
            Effect::Report(Report::Workflow { .. }) => self.running -= 1,
            Effect::Report(_) | Effect::Ready | Effect::StateChanged(_) => {}
            Effect::Save(why) => {
                let result = if self.disk_fails {
                    Err("disk full".to_owned())
                } else {
                    Ok(())
                };
                if result.is_ok() {
                    self.disk = self.core.values().clone();
                }
                return Some(Event::Saved {
                    why,
                    version: self.core.version(),
                    result,
                });
            }
            Effect::Spawn { process, generation } => {
                assert!(!self.closing, "no start once shutdown has begun");
                assert!(
                    !self.alive.contains_key(&process),
                    "no start while the last one is there"
                );
                self.check_disk();
                if self.spawn_fails {
                    return Some(Event::SpawnFailed {
                        process,
                        generation,
                        reason: "no".into(),
                    });
                }
                self.alive.insert(process.clone(), generation);
                return Some(Event::Spawned {
                    process,
                    generation,
                    pid: 9,
                });
            }
            Effect::Stop { process, generation } => {
                if self.alive.get(&process) == Some(&generation) {
                    self.stopping.insert(process, generation);
                } else {
                    return Some(Event::Gone { process, generation });
                }
            }
            Effect::Probe { id, .. } => drop(self.probes.insert(id)),
            Effect::RunHook {
                id, hook, workflow, ..
            } => {
                assert!(!self.closing, "no hook once shutdown has begun");
                if workflow == "observe" {
                    assert!(
                        !self.hooks.values().any(|other| *other == hook),
                        "no hook is polled twice at once"
                    );
                } else {
                    assert!(
                        self.stepping.is_none_or(|other| !self.hooks.contains_key(&other)),
                        "the steps of an execution run one at a time"
                    );
                    self.stepping = Some(id);
                }
                self.check_disk();
                self.hooks.insert(id, hook);
            }
            Effect::StopHook { id } => {
                self.hooks.remove(&id);
                return Some(Event::HookDone {
                    id,
                    result: Err("stopped".into()),
                });
            }
            Effect::CheckWindow(paths) => {
                let missing = paths
                    .into_iter()
                    .filter(|path| self.missing.contains(path))
                    .collect();
                return Some(Event::WindowChecked {
                    missing,
                    excluded: self.excluded.clone(),
                });
            }
            Effect::Reload => self.reloads += 1,
            Effect::Answer { post, verdict } => {
                assert!(
                    self.answered.insert(post, verdict).is_none(),
                    "one answer for each post"
                );
                if matches!(verdict, Verdict::Accepted { .. }) {
                    self.check_disk();
                }
            }
            Effect::Finished { waiter, result } => drop(self.finished.insert(waiter, result)),
            Effect::Closing => {
                self.closing = true;
            }
            Effect::End { code } => {
                self.check_disk();
                self.ended = Some(code);
            }
        }
        None
    }

    /// Before a child is started or an event answered, the file equals memory.
    pub(super) fn check_disk(&self) {
        if !self.disk_fails {
            assert_eq!(&self.disk, self.core.values());
        }
    }

    /// Let time pass, with a tick at every deadline.
    pub(super) fn pass(&mut self, time: Ms) {
        let until = self.now + time;
        let mut ticks = 0;
        while let Some(due) = self.core.deadline().filter(|due| *due <= until) {
            ticks += 1;
            assert!(
                ticks < 10_000,
                "a deadline that is never met: {due} at {}",
                self.now
            );
            self.now = self.now.max(due);
            self.feed(Event::Tick);
        }
        self.now = until;
        self.feed(Event::Tick);
    }

    pub(super) fn change(&mut self, path: &str) {
        self.feed(Event::Changed {
            changes: vec![Change {
                path: path.into(),
                known: true,
            }],
            at: self.now,
        });
    }

    pub(super) fn post(&mut self, id: u64, event: &str, value: &str) {
        self.feed(Event::Posted(Post {
            id,
            event: event.into(),
            value: value.into(),
            waits: true,
        }));
    }

    pub(super) fn finish_hook(&mut self, result: Result<Captured, String>) {
        if let Some((id, _)) = self.hooks.pop_first() {
            self.feed(Event::HookDone { id, result });
        }
    }

    pub(super) fn all_gone(&mut self) {
        while let Some((process, generation)) = self.stopping.pop_first() {
            self.alive.remove(&process);
            self.feed(Event::Gone { process, generation });
        }
    }

    pub(super) fn one_gone(&mut self) {
        if let Some((process, generation)) = self.stopping.pop_first() {
            self.alive.remove(&process);
            self.feed(Event::Gone { process, generation });
        }
    }

    pub(super) fn exit(&mut self, process: &str, code: i32) {
        if let Some(generation) = self.alive.get(process).copied()
            && !self.stopping.contains_key(process)
        {
            self.alive.remove(process);
            let process = process.to_owned();
            self.feed(Event::Exited {
                process,
                generation,
                exit: Exit::Code(code),
                leftovers: false,
            });
        }
    }

    pub(super) fn runs(&self, workflow: &str) -> usize {
        self.said
            .iter()
            .filter(|line| **line == format!("running workflow {workflow}"))
            .count()
    }
}
