//! Performing what the core decides.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use beamtalk_ninep::Refusal;
use beamtalk_storage::time::now_seconds;
use serde_json::json;

use super::{Task, Turn};
use crate::error::refusal;
use crate::hooks;
use crate::mail::{Draft, USER};
use crate::session::chat::Speaker;
use crate::session::core::{Effect, Event, State};
use crate::session::record::Record;
use crate::session::{conversation, usage};
use crate::text::clean;

/// More output than this of one turn is not kept in `out`.
const OUT_BYTES: u64 = 1 << 20;
/// How long output must rest after a hook said the turn is over.
const REST: Duration = Duration::from_millis(100);
const LONGEST_REST: Duration = Duration::from_secs(1);

impl Task {
    /// Give an event to the core and do what it says; an error if it refuses.
    pub(in crate::session) async fn feed(&mut self, event: Event) -> Result<(), Refusal> {
        let mut refused = None;
        let mut effects: std::collections::VecDeque<Effect> = self.core.handle(event).into();
        while let Some(effect) = effects.pop_front() {
            match effect {
                Effect::Refuse(text) => refused = Some(refusal(text)),
                Effect::Launch => Box::pin(self.launch(false)).await,
                Effect::Relaunch { attempt } => {
                    self.hub
                        .events
                        .emit(&self.shared.id, "Restart", json!({"attempt": attempt}));
                    Box::pin(self.launch(true)).await;
                }
                Effect::ReadScreen => {
                    if let Some(asked) = self.question_on_screen().await {
                        let now = self.hub.now();
                        effects.extend(self.core.handle(Event::Question { now, asked }));
                        if asked {
                            continue;
                        }
                    }
                    if self.screen_matches().await {
                        let now = self.hub.now();
                        effects.extend(self.core.handle(Event::ScreenMatches { now }));
                    }
                }
                other => self.perform(other),
            }
        }
        self.shared.change_record(|record| {
            record.crashes = self.core.crashes;
            record.last_error.clone_from(&self.core.last_error);
        });
        refused.map_or(Ok(()), Err)
    }

    pub(super) async fn feed_quietly(&mut self, event: Event) {
        if let Err(refused) = self.feed(event).await {
            tracing::debug!(session = %self.shared.id, reason = %refused, "event refused");
        }
    }

    fn perform(&mut self, effect: Effect) {
        let id = self.shared.id.clone();
        match effect {
            Effect::TurnBegan => {
                self.shared.output.refresh();
                let offset = self.shared.output.extent().end;
                self.turn = Some(Turn {
                    offset,
                    began: self.hub.now(),
                });
                self.shared
                    .change_record(|record| record.turn_start = Some(offset));
                self.shared.status.send_modify(|status| status.begun += 1);
            }
            Effect::FinishTurn => self.collect_turn(),
            Effect::Changed { old, new } => self.changed(old, new),
            Effect::AnnounceTurn { reason } => self.announce_turn(reason),
            Effect::Crashed { ending, crashes } => {
                let data = json!({"status": ending.status, "signal": ending.signal, "crashes": crashes});
                self.hub.events.emit(&id, "Crash", data);
            }
            Effect::ContextDue => self.shared.context_due.store(true, Ordering::Relaxed),
            Effect::Continue => {
                let draft = Draft {
                    to: id.clone(),
                    kind: "PROMPT_REQUEST".to_owned(),
                    subject: "continue".to_owned(),
                    body: "The session was restarted after a crash. Go on with the interrupted work."
                        .to_owned(),
                    metadata: serde_json::Map::new(),
                };
                if let Err(refused) = self.hub.post(USER, &id, draft) {
                    tracing::warn!(session = %id, reason = %refused, "continuation cannot be sent");
                }
            }
            Effect::Refuse(_) | Effect::Launch | Effect::Relaunch { .. } | Effect::ReadScreen => {}
        }
    }

    fn changed(&mut self, old: State, new: State) {
        self.shared.change_record(|record| {
            new.word().clone_into(&mut record.state);
            record.idle_since = (new == State::Idle).then(now_seconds);
            record.crashes = self.core.crashes;
            record.last_error.clone_from(&self.core.last_error);
            if matches!(new, State::Stopped | State::Error | State::Exited) && !matches!(old, State::Stopped)
            {
                record.turn_start = None;
            }
        });
        self.idle_at = (new == State::Idle).then(|| self.hub.now());
        if new == State::Idle {
            self.note_conversation();
        }
        if let Err(error) = self.shared.save() {
            tracing::error!(%error, session = %self.shared.id, "record cannot be written");
        }
        self.hub.touch();
        let data = json!({"old_state": old.word(), "new_state": new.word(), "state": new.word()});
        self.hub.events.emit(&self.shared.id, "StateChange", data);
        let is_at_rest = matches!(new, State::Idle | State::Stopped | State::Error | State::Exited);
        if old == State::Waiting || is_at_rest {
            self.hub.approvals.backend_went_on(&self.shared.id);
        }
        if new == State::Waiting {
            self.hub
                .events
                .emit(&self.shared.id, "ApprovalAsked", json!({"kind": "backend"}));
        }
        self.shared.status.send_modify(|status| status.state = new);
        if let (State::Waiting, Some(pattern)) = (new, &self.backend.approval) {
            let (hub, session) = (Arc::clone(&self.hub), Arc::clone(&self.shared));
            tokio::spawn(hub.screen_asks(session, pattern.clone()));
        }
    }

    /// Remember what the program calls its conversation, if it tells.
    fn note_conversation(&self) {
        let told = self.backend.conversation.as_ref().and_then(|pattern| {
            self.shared.output.refresh();
            let text = clean(&self.shared.output.tail(self.launch_offset, OUT_BYTES));
            conversation::told(pattern, &text)
        });
        let written = || {
            let place = self.shared.with_record(Record::place);
            let file = self.backend.conversation_file.as_ref()?;
            conversation::written(&place.join(file))
        };
        if let Some(id) = told.or_else(written) {
            self.shared.change_record(|record| record.conversation = Some(id));
        }
    }

    /// Whether the screen shows a question of the program; nothing for one that asks none.
    async fn question_on_screen(&self) -> Option<bool> {
        let approval = self.backend.approval.as_ref()?;
        if !matches!(self.core.state, State::Running | State::Waiting) {
            return None;
        }
        let screen = self.screen().await.ok()?;
        Some(approval.is_match(screen.trim_end()))
    }

    /// See whether the question that a session waits with is still there.
    pub(super) async fn look_for_question(&mut self) {
        if self.core.state == State::Waiting && self.question_on_screen().await == Some(false) {
            let now = self.hub.now();
            self.feed_quietly(Event::Question { now, asked: false }).await;
        }
    }

    pub(super) fn idle_since(&self) -> u64 {
        self.idle_at.unwrap_or_else(|| self.hub.now())
    }

    /// `out` and the chat log, from what was printed since the prompt.
    fn collect_turn(&mut self) {
        let Some(turn) = &self.turn else { return };
        self.shared.output.refresh();
        let raw = self.shared.output.tail(turn.offset, OUT_BYTES);
        let text = self.without_ready_line(clean(&raw));
        let stored = crate::files::replace_quickly(&self.shared.directory.join("out"), text.as_bytes())
            .and_then(|()| self.shared.chat.add(Speaker::Assistant, &text));
        if let Err(error) = stored {
            tracing::error!(%error, session = %self.shared.id, "answer cannot be stored");
        }
        self.shared.change_texts(|texts| texts.out = text);
    }

    fn announce_turn(&mut self, reason: &str) {
        let Some(turn) = self.turn.take() else { return };
        let text = self.shared.with_texts(|texts| texts.out.clone());
        let turns = self.shared.change_record(|record| {
            record.turns += 1;
            record.turn_start = None;
            record.turns
        });
        let ms = self.hub.now().saturating_sub(turn.began);
        let mut amount = usage::reported(self.backend.usage.as_ref(), &text, ms);
        if self.backend.usage_by_hook {
            amount = hooks::take_usage(&self.shared.directory.join("tmp"), amount);
        }
        let usage = self.shared.change_texts(|texts| {
            texts.usage.add(amount);
            texts.usage.clone()
        });
        if let Err(error) = usage.write(&self.shared.directory) {
            tracing::error!(%error, session = %self.shared.id, "usage cannot be written");
        }
        let data = json!({"turn": turns, "bytes": text.len(), "ms": ms, "reason": reason});
        self.hub.events.emit(&self.shared.id, "TurnEnd", data);
        self.shared
            .status
            .send_modify(|status| status.finished = status.begun);
        if let Some(message) = self.answering.take() {
            let mut subject = format!("Re: {}", message.subject);
            while subject.len() > 200 {
                subject.pop();
            }
            let draft = Draft {
                to: message.from.clone(),
                kind: "PROMPT_RESPONSE".to_owned(),
                subject,
                body: text,
                metadata: serde_json::Map::new(),
            };
            if let Err(refused) = self.hub.post(&self.shared.id, &message.from, draft) {
                tracing::warn!(session = %self.shared.id, reason = %refused, "answer cannot be sent");
            }
        }
    }

    /// A last line that is only the program's own prompt is not part of an answer.
    fn without_ready_line(&self, text: String) -> String {
        let start = text.rfind('\n').map_or(0, |at| at + 1);
        let last = text.get(start..).unwrap_or_default();
        let is_ready =
            |regex: &Option<regex::Regex>| regex.as_ref().is_some_and(|regex| regex.is_match(last));
        if !last.is_empty() && (is_ready(&self.backend.ready_regex) || is_ready(&self.backend.idle_regex)) {
            return text.get(..start).unwrap_or_default().to_owned();
        }
        text
    }

    /// A hook is faster than the terminal: wait until the output has arrived too.
    pub(super) async fn settle(&mut self) {
        let begun = tokio::time::Instant::now();
        let offset = self.turn.as_ref().map_or(self.launch_offset, |turn| turn.offset);
        let mut signal = self.shared.output.signal.subscribe();
        let mut rested = tokio::time::Instant::now();
        while begun.elapsed() < LONGEST_REST {
            self.shared.output.refresh();
            let text = clean(&self.shared.output.tail(offset, 4096));
            let last = text.rsplit('\n').next().unwrap_or_default();
            let ready = self
                .backend
                .ready_regex
                .as_ref()
                .is_some_and(|regex| regex.is_match(last));
            if ready || (self.backend.ready_regex.is_none() && rested.elapsed() >= REST) {
                return;
            }
            if tokio::time::timeout(Duration::from_millis(20), signal.changed())
                .await
                .is_ok()
            {
                rested = tokio::time::Instant::now();
            }
        }
    }

    pub(super) async fn output_grew(&mut self, bytes: u64) {
        let now = self.hub.now();
        self.feed_quietly(Event::Output { now, bytes }).await;
        if self.core.state != State::Starting {
            return;
        }
        if self.backend.error_patterns.is_empty() && self.backend.dialogs.is_empty() {
            return;
        }
        let text = clean(&self.shared.output.tail(self.launch_offset, 64 << 10));
        let bad = self
            .backend
            .error_patterns
            .iter()
            .find_map(|pattern| text.lines().find(|line| pattern.is_match(line)));
        if let Some(line) = bad {
            let line = line.to_owned();
            self.feed_quietly(Event::ErrorLine { line }).await;
            return;
        }
        let window = self
            .shared
            .with_record(|record| record.window.clone())
            .unwrap_or_default();
        for (index, dialog) in self.backend.dialogs.iter().enumerate() {
            let asked =
                dialog.pattern.is_match(&text) && !(dialog.once && self.dialogs_done.contains(&index));
            if asked {
                self.dialogs_done.push(index);
                if let Err(error) = self.hub.tmux.keys(&window, &dialog.keys).await {
                    tracing::warn!(%error, session = %self.shared.id, "dialog cannot be answered");
                }
            }
        }
    }

    async fn screen_matches(&self) -> bool {
        let regex = match self.core.state {
            State::Starting => &self.backend.ready_regex,
            _ => &self.backend.idle_regex,
        };
        let Some(regex) = regex else { return false };
        let window = self
            .shared
            .with_record(|record| record.window.clone())
            .unwrap_or_default();
        let Ok(raw) = self.hub.tmux.last_line(&window).await else {
            return false;
        };
        // tmux drops blanks at the end of a line, which a prompt often has.
        regex.is_match(&raw) || regex.is_match(&format!("{raw} "))
    }
}
