//! What is known of the image while the connection lasts.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use beamtalk_ninep::Refusal;
use beamtalk_wire::answers::{Actor, BrowseClassAnswer};
use beamtalk_wire::class_file::without_side;
use beamtalk_wire::requests::{Actors, BrowseClass, ListClasses};
use beamtalk_wire::{ErrorKind, Side};

use super::{Failure, Live, lock};
use crate::ages::AgeWriter;

/// How much of the Transcript, and how many entries of the change log, a follower may be behind.
pub(super) const TRANSCRIPT_BYTES: usize = 4 << 20;
const ENTRIES: usize = 1_024;
/// Classes that are asked for before they are wanted.
const AHEAD: usize = 24;

/// One method of a class.
#[derive(Clone, Debug)]
pub(crate) struct MethodText {
    pub(crate) side: Side,
    pub(crate) selector: String,
    pub(crate) source: Arc<Vec<u8>>,
}

/// A class as text.
pub(crate) struct ClassText {
    pub(crate) told: BrowseClassAnswer,
    /// Sorted by side and selector; what the compiler made is left out.
    pub(crate) methods: Vec<MethodText>,
    /// Over all of it: a class whose text is another has another.
    pub(crate) hash: u64,
}

/// A method as its file has it: its documentation, then its definition. The side is told by the directory.
fn written(method: &beamtalk_wire::answers::MethodText) -> String {
    let Some(source) = &method.source else {
        return String::new();
    };
    let is_documented = source.lines().any(|line| line.trim_start().starts_with("///"));
    let mut text = String::new();
    for line in method
        .doc
        .iter()
        .filter(|_| !is_documented)
        .flat_map(|doc| doc.lines())
    {
        text.push_str(format!("/// {line}").trim_end());
        text.push('\n');
    }
    text.push_str(&match method.side {
        Side::Instance => source.clone(),
        Side::Class => without_side(source).0,
    });
    text
}

impl ClassText {
    fn new(mut told: BrowseClassAnswer) -> Self {
        let hash = super::hash(&serde_json::to_vec(&told).unwrap_or_default());
        let mut methods: Vec<MethodText> = std::mem::take(&mut told.methods)
            .into_iter()
            .filter(|method| method.source_status != "synthetic")
            .map(|method| MethodText {
                side: method.side,
                source: Arc::new(written(&method).into_bytes()),
                selector: method.selector,
            })
            .collect();
        methods.sort_by(|one, other| (one.side, &one.selector).cmp(&(other.side, &other.selector)));
        ClassText { told, methods, hash }
    }

    pub(crate) fn method(&self, side: Side, selector: &str) -> Option<&MethodText> {
        self.methods
            .iter()
            .find(|method| method.side == side && method.selector == selector)
    }

    pub(crate) fn selectors(&self, side: Side) -> impl Iterator<Item = &MethodText> {
        self.methods.iter().filter(move |method| method.side == side)
    }
}

/// Text that grows at its end and is forgotten at its beginning.
#[derive(Default)]
pub(crate) struct Scroll {
    text: Mutex<(u64, VecDeque<u8>)>,
}

impl Scroll {
    pub(crate) fn push(&self, bytes: &[u8]) {
        let mut text = lock(&self.text);
        text.1.extend(bytes);
        let excess = text.1.len().saturating_sub(TRANSCRIPT_BYTES);
        text.1.drain(..excess);
        text.0 += excess as u64;
    }

    /// First and last offset that are kept.
    pub(crate) fn extent(&self) -> (u64, u64) {
        let text = lock(&self.text);
        (text.0, text.0 + text.1.len() as u64)
    }

    /// What is kept from an offset on; `None` if its beginning is forgotten.
    pub(crate) fn since(&self, offset: u64, count: usize) -> Option<Vec<u8>> {
        let text = lock(&self.text);
        let start = usize::try_from(offset.checked_sub(text.0)?).unwrap_or(usize::MAX);
        Some(text.1.iter().copied().skip(start).take(count).collect())
    }
}

/// The newest entries of the change log, as lines, with their numbers.
#[derive(Default)]
pub(crate) struct Log {
    lines: Mutex<VecDeque<(u64, Arc<str>)>>,
}

impl Log {
    pub(crate) fn push(&self, seq: u64, line: String) {
        let mut lines = lock(&self.lines);
        lines.push_back((seq, line.into()));
        if lines.len() > ENTRIES {
            lines.pop_front();
        }
    }

    /// Entries after a number.
    pub(crate) fn after(&self, seq: u64) -> Vec<(u64, Arc<str>)> {
        let lines = lock(&self.lines);
        let start = lines.partition_point(|(known, _)| *known <= seq);
        lines.iter().skip(start).cloned().collect()
    }
}

#[derive(Default)]
struct Classes {
    names: Option<Arc<Vec<String>>>,
    texts: BTreeMap<String, Arc<ClassText>>,
    /// Those that are being asked for; whoever wants one too waits for it.
    asked: BTreeMap<String, Arc<tokio::sync::Mutex<()>>>,
    /// The last that was wanted.
    last: String,
    /// Grows with everything that is taken back: an answer that was asked for before is not kept.
    age: u64,
}

impl Classes {
    /// Note that a class is wanted; those that will be next if somebody goes through them in order.
    fn wanted(&mut self, name: &str) -> Vec<String> {
        if self.last == name {
            return Vec::new();
        }
        let last = std::mem::replace(&mut self.last, name.to_owned());
        let Some(names) = &self.names else {
            return Vec::new();
        };
        let Ok(at) = names.binary_search_by(|known| known.as_str().cmp(name)) else {
            return Vec::new();
        };
        let before = at.checked_sub(1).and_then(|before| names.get(before));
        if before != Some(&last) {
            return Vec::new();
        }
        let next = names.iter().skip(at + 1).take(AHEAD);
        next.filter(|name| !self.texts.contains_key(*name) && !self.asked.contains_key(*name))
            .cloned()
            .collect()
    }
}

#[derive(Default)]
struct Living {
    actors: Option<Arc<BTreeMap<String, Actor>>>,
    age: u64,
}

#[derive(Default)]
pub(crate) struct Known {
    /// Where it is told that something was heard of a class.
    ages: Option<Arc<AgeWriter>>,
    classes: Mutex<Classes>,
    actors: Mutex<Living>,
    pub(crate) transcript: Scroll,
    pub(crate) log: Log,
}

impl Known {
    pub(crate) fn new(ages: Option<Arc<AgeWriter>>) -> Self {
        Known {
            ages,
            ..Known::default()
        }
    }

    /// A class is another, is new or is gone.
    pub(crate) fn forget_class(&self, class: &str) {
        let mut classes = lock(&self.classes);
        classes.age += 1;
        classes.names = None;
        classes.texts.remove(class);
        drop(classes);
        self.grow();
    }

    fn grow(&self) {
        if let Some(ages) = &self.ages {
            ages.grow();
        }
    }

    /// Grows with everything that is heard of any class.
    pub(crate) fn class_age(&self) -> u64 {
        lock(&self.classes).age
    }

    /// The same of actors.
    pub(crate) fn actor_age(&self) -> u64 {
        lock(&self.actors).age
    }

    pub(crate) fn forget_all(&self) {
        let mut classes = lock(&self.classes);
        classes.age += 1;
        classes.names = None;
        classes.texts.clear();
        drop(classes);
        self.grow();
        self.forget_actors();
    }

    pub(crate) fn forget_actors(&self) {
        let mut living = lock(&self.actors);
        living.age += 1;
        living.actors = None;
    }

    pub(crate) fn actor_came(&self, actor: Actor) {
        let mut living = lock(&self.actors);
        living.age += 1;
        if let Some(actors) = &mut living.actors {
            Arc::make_mut(actors).insert(bare(&actor.pid).to_owned(), actor);
        }
    }

    pub(crate) fn actor_went(&self, pid: &str) {
        let mut living = lock(&self.actors);
        living.age += 1;
        if let Some(actors) = &mut living.actors {
            Arc::make_mut(actors).remove(bare(pid));
        }
    }
}

/// A process id without brackets.
pub(crate) fn bare(pid: &str) -> &str {
    pid.trim_start_matches("#Pid").trim_matches(['<', '>'])
}

impl Live {
    /// The names of all classes, sorted.
    pub(crate) async fn class_names(&self) -> Result<Arc<Vec<String>>, Refusal> {
        let age = {
            let classes = lock(&self.known.classes);
            if let Some(names) = &classes.names {
                return Ok(Arc::clone(names));
            }
            classes.age
        };
        let told = self.ask(&ListClasses::default()).await?;
        let mut names: Vec<String> = told.class_list.into_iter().map(|class| class.name).collect();
        names.sort();
        let names = Arc::new(names);
        let mut classes = lock(&self.known.classes);
        if classes.age == age {
            classes.names = Some(Arc::clone(&names));
        }
        Ok(names)
    }

    /// A class with its methods. Who goes through the classes in order finds the next ones there already.
    pub(crate) async fn class(self: &Arc<Self>, name: &str) -> Result<Arc<ClassText>, Refusal> {
        let next = lock(&self.known.classes).wanted(name);
        for name in next {
            let live = Arc::clone(self);
            // Who wants it hears what went wrong.
            tokio::spawn(async move { drop(live.fetch(&name).await) });
        }
        self.fetch(name).await
    }

    async fn fetch(&self, name: &str) -> Result<Arc<ClassText>, Refusal> {
        let turn = {
            let mut classes = lock(&self.known.classes);
            if let Some(text) = classes.texts.get(name) {
                return Ok(Arc::clone(text));
            }
            Arc::clone(classes.asked.entry(name.to_owned()).or_default())
        };
        let _turn = turn.lock().await;
        let outcome = self.fetch_now(name).await;
        lock(&self.known.classes).asked.remove(name);
        outcome
    }

    async fn fetch_now(&self, name: &str) -> Result<Arc<ClassText>, Refusal> {
        let age = {
            let classes = lock(&self.known.classes);
            if let Some(text) = classes.texts.get(name) {
                return Ok(Arc::clone(text));
            }
            classes.age
        };
        let request = BrowseClass {
            class: name.to_owned(),
        };
        let told = self.ask(&request).await.map_err(|failure| match failure {
            Failure::Told(error) if error.kind == ErrorKind::ClassNotFound => Refusal::NOT_FOUND,
            failure => failure.into(),
        })?;
        let text = Arc::new(ClassText::new(told));
        let mut classes = lock(&self.known.classes);
        if classes.age == age {
            classes.texts.insert(name.to_owned(), Arc::clone(&text));
        }
        Ok(text)
    }

    /// Ask for the actors before somebody wants them: from then on they are kept by what is told of them.
    pub(super) fn know_actors(self: &Arc<Self>) {
        let live = Arc::clone(self);
        // Who wants them hears what went wrong.
        tokio::spawn(async move { drop(live.actors().await) });
    }

    /// The actors by process id.
    pub(crate) async fn actors(&self) -> Result<Arc<BTreeMap<String, Actor>>, Refusal> {
        let age = {
            let living = lock(&self.known.actors);
            if let Some(actors) = &living.actors {
                return Ok(Arc::clone(actors));
            }
            living.age
        };
        let told = self.ask(&Actors::default()).await?;
        let by_pid = |actor: Actor| (bare(&actor.pid).to_owned(), actor);
        let actors: Arc<BTreeMap<String, Actor>> = Arc::new(told.actors.into_iter().map(by_pid).collect());
        let mut living = lock(&self.known.actors);
        if living.age == age {
            living.actors = Some(Arc::clone(&actors));
        }
        Ok(actors)
    }
}
