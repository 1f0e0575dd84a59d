//! Posted events: what the core checks of them and what they set in motion.
//!
//! Who may post, and how often, is decided before a post comes here.

use serde_json::Value;

use super::lane::Request;
use super::{Core, Effect, Ms, Save, log};
use crate::report::{Level, Part, Source};

/// A value for a declared event.
#[derive(Clone, Debug)]
pub struct Post {
    pub id: u64,
    pub event: String,
    pub value: String,
    /// The post's sender wants to hear how the workflow ended.
    pub waits: bool,
}

/// What becomes of a post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Accepted {
        changed: bool,
    },
    /// No such event.
    Unknown,
    /// The value does not match the event's pattern.
    Pattern,
    Stopping,
    /// The state could not be saved.
    State,
}

/// A post whose value is being saved.
#[derive(Debug)]
pub(super) struct Saving {
    id: u64,
    event: String,
    before: Option<Value>,
    /// Whether the value is another than before.
    changed: bool,
    waits: bool,
}

impl Core {
    pub(super) fn posted(&mut self, now: Ms, post: Post, out: &mut Vec<Effect>) {
        let verdict = self.judge(&post);
        let Verdict::Accepted { changed } = verdict else {
            self.answer(post.id, &post.event, verdict, out);
            return;
        };
        // The value may be there already and yet not in the file.
        if !changed && !self.state.is_dirty() {
            self.answer(post.id, &post.event, verdict, out);
            return;
        }
        let key = self
            .config
            .event
            .get(&post.event)
            .map(|event| event.state_key.clone())
            .unwrap_or_default();
        let before = self.state.get(&key).cloned();
        self.set_state(now, &key, Value::String(post.value), out);
        self.posts.push_back(Saving {
            id: post.id,
            event: post.event,
            before,
            changed,
            waits: post.waits,
        });
        out.push(Effect::Save(Save::Post));
    }

    fn judge(&self, post: &Post) -> Verdict {
        let Some(event) = self.config.event.get(&post.event) else {
            return Verdict::Unknown;
        };
        if self
            .patterns
            .get(&post.event)
            .is_some_and(|pattern| !pattern.is_match(&post.value))
        {
            return Verdict::Pattern;
        }
        if self.is_stopping() {
            return Verdict::Stopping;
        }
        let same =
            matches!(self.state.get(&event.state_key), Some(Value::String(held)) if *held == post.value);
        Verdict::Accepted { changed: !same }
    }

    pub(super) fn post_saved(&mut self, result: Result<(), String>, out: &mut Vec<Effect>) {
        let Some(saving) = self.posts.pop_front() else {
            return;
        };
        let Some(event) = self.config.event.get(&saving.event).cloned() else {
            return;
        };
        let accepted = Verdict::Accepted {
            changed: saving.changed,
        };
        if result.is_ok() && !saving.changed {
            self.answer(saving.id, &saving.event, accepted, out);
            return;
        }
        if let Err(reason) = result {
            self.state.restore(&event.state_key, saving.before);
            out.push(Effect::StateChanged(event.state_key.clone()));
            out.push(log(Level::Error, Part::State, reason));
            self.answer(saving.id, &saving.event, Verdict::State, out);
            return;
        }
        let mut request = Request::new(
            &event.workflow,
            Source::Event,
            Vec::new(),
            vec![format!("event {}", saving.event)],
        );
        if saving.waits {
            request.waiters.push(saving.id);
        }
        self.lane.push(request);
        self.answer(saving.id, &saving.event, accepted, out);
    }

    fn answer(&mut self, post: u64, event: &str, verdict: Verdict, out: &mut Vec<Effect>) {
        self.counts
            .posted(event, matches!(verdict, Verdict::Accepted { .. }));
        self.revision += 1;
        out.push(Effect::Answer { post, verdict });
    }

    /// A post that did not come as far as the core.
    pub fn count_rejected(&mut self, now: Ms, event: &str) {
        self.counts.at(now);
        self.counts.posted(event, false);
        self.revision += 1;
    }
}
