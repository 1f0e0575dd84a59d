//! Prompts on their way into a session.

use std::sync::atomic::Ordering;
use std::time::Duration;

use beamtalk_ninep::Refusal;
use serde_json::json;

use super::chat::Speaker;
use super::core::{Event, State};
use super::task::Task;
use super::usage::Budget;
use crate::config::{ContextRule, KeyStep, Slash};
use crate::error::refusal;
use crate::text::safe_prompt;
use crate::tmux::TmuxError;

impl Task {
    /// Paste a prompt and submit it; the number of the turn it began.
    pub(super) async fn deliver(&mut self, bytes: &[u8], from: &str) -> Result<u64, Refusal> {
        if self.has_ended() {
            // The news of it may be on its way: a prompt nobody reads is not delivered.
            self.check_window().await;
        }
        if let Some(text) = self.core.prompt_refusal() {
            return Err(refusal(text));
        }
        let prompt = self.check_prompt(bytes)?;
        self.check_budget()?;
        let Some(window) = self.shared.with_record(|record| record.window.clone()) else {
            return Err(refusal("delivery failed: no window"));
        };
        self.begin_typing(&window).await?;
        self.hub.events.emit(
            &self.shared.id,
            "Prompt",
            json!({"bytes": prompt.len(), "from": from}),
        );
        let now = self.hub.now();
        self.feed(Event::Prompted { now }).await?;
        let turn = self.shared.status.borrow().begun;
        if let Err(error) = self.shared.chat.add(Speaker::User, &prompt) {
            tracing::warn!(%error, session = %self.shared.id, "chat log cannot be written");
        }
        let text = self.with_context(&prompt);
        if let Err(error) = self.type_in(&window, &text).await {
            let now = self.hub.now();
            self.feed(Event::DeliveryFailed { now }).await?;
            return Err(refusal(format!("delivery failed: {error}")));
        }
        self.end_typing();
        self.shared.context_due.store(false, Ordering::Relaxed);
        Ok(turn)
    }

    /// What a prompt will be typed as, if it can be.
    pub(super) fn check_prompt(&self, bytes: &[u8]) -> Result<String, Refusal> {
        let limit = self.hub.config().limits.prompt_bytes;
        if bytes.len() > self.backend.prompt_bytes.min(limit) {
            return Err(refusal("prompt too large"));
        }
        let prompt = safe_prompt(bytes)?;
        self.check_slash(&prompt)?;
        Ok(prompt)
    }

    /// A session that has used what it was given gets no more prompts; the first refusal is told.
    fn check_budget(&mut self) -> Result<(), Refusal> {
        let (budget, is_reached) = self.shared.with_texts(|texts| {
            let budget = Budget::parse(&texts.budget).unwrap_or_default();
            (texts.budget.clone(), budget.is_reached(&texts.usage))
        });
        if !is_reached {
            self.budget_told = None;
            return Ok(());
        }
        if self.budget_told.as_ref() != Some(&budget) {
            let data = json!({"budget": budget.trim()});
            self.hub.events.emit(&self.shared.id, "BudgetReached", data);
            self.budget_told = Some(budget);
        }
        Err(refusal("budget reached"))
    }

    /// Deliver what waits, one turn each.
    pub(super) async fn serve_queue(&mut self) {
        while self.core.prompt_refusal().is_none() && !self.shared.prompts.is_empty() {
            if self.has_ended() || self.check_budget().is_err() {
                return;
            }
            let Some(queued) = self.shared.prompts.begin() else {
                return;
            };
            self.shared.touch();
            match self.deliver(queued.text.as_bytes(), &queued.author).await {
                Ok(_) => drop(self.shared.prompts.remove(&queued.id)),
                // Some of it may have been typed: nobody knows, and it is not typed again.
                Err(refused) if refused.text.starts_with("delivery failed") => {
                    tracing::warn!(session = %self.shared.id, reason = %refused, "a queued prompt may be lost");
                }
                Err(refused) => {
                    tracing::info!(session = %self.shared.id, reason = %refused, "a queued prompt waits on");
                    self.shared.prompts.give_back(&queued.id);
                    return;
                }
            }
        }
    }

    /// Note that something will be typed: the record says so when it is written next. What an attempt before, perhaps of
    /// another daemon, left in the line of the program is erased first.
    async fn begin_typing(&self, window: &str) -> Result<(), Refusal> {
        let is_left = self
            .shared
            .change_record(|record| std::mem::replace(&mut record.is_typing, true));
        if is_left && !self.backend.erase.is_empty() {
            let erased = self.hub.tmux.keys(window, &self.backend.erase).await;
            erased.map_err(|error| refusal(format!("delivery failed: {error}")))?;
            // What the program shows of it does not belong to what comes next.
            tokio::time::sleep(Duration::from_millis(self.backend.submit_delay_ms)).await;
        }
        Ok(())
    }

    /// It was submitted. The record may say otherwise until it is written again: to erase nothing does no harm.
    fn end_typing(&self) {
        self.shared.change_record(|record| record.is_typing = false);
    }

    async fn type_in(&self, window: &str, text: &str) -> Result<(), TmuxError> {
        self.hub.tmux.paste(window, &self.shared.id, text).await?;
        tokio::time::sleep(Duration::from_millis(self.backend.submit_delay_ms)).await;
        if self.has_ended() {
            return Err(TmuxError::Said("the program has ended".to_owned()));
        }
        self.hub.tmux.keys(window, &self.backend.submit).await
    }

    fn check_slash(&self, prompt: &str) -> Result<(), Refusal> {
        if !prompt.starts_with('/') {
            return Ok(());
        }
        let command = prompt.split_whitespace().next().unwrap_or(prompt);
        let allowed = match &self.backend.slash {
            Slash::Pass => true,
            Slash::Block => false,
            Slash::Only(list) => list
                .iter()
                .any(|known| known == command || known.as_str() == command.trim_start_matches('/')),
        };
        if allowed {
            return Ok(());
        }
        Err(refusal(format!(
            "slash command not supported by {} backend: {command}",
            self.backend.name
        )))
    }

    /// Context, a blank line and the prompt as one text.
    fn with_context(&self, prompt: &str) -> String {
        let context = self.shared.with_texts(|texts| texts.context.clone());
        let due =
            self.backend.context == ContextRule::Every || self.shared.context_due.load(Ordering::Relaxed);
        if context.is_empty() || !due || prompt.starts_with('/') {
            return prompt.to_owned();
        }
        let context = safe_prompt(context.as_bytes()).unwrap_or_default();
        format!("{context}\n\n{prompt}")
    }

    async fn type_steps(&self, window: &str, steps: &[KeyStep]) -> Result<(), Refusal> {
        for step in steps {
            let sent = match step {
                KeyStep::Text(text) => self.hub.tmux.literal(window, text).await,
                KeyStep::Key { key } => self.hub.tmux.keys(window, std::slice::from_ref(key)).await,
                KeyStep::Wait { wait_ms } => {
                    tokio::time::sleep(Duration::from_millis(*wait_ms)).await;
                    Ok(())
                }
            };
            sent.map_err(|error| refusal(format!("delivery failed: {error}")))?;
        }
        Ok(())
    }

    /// Answer the question of the program by its keys: only the one that was shown.
    pub(super) async fn answer_question(&self, approve: bool, shown: &str) -> Result<(), Refusal> {
        let changed = || refusal("request changed");
        if self.core.state != State::Waiting || self.screen().await?.trim_end() != shown {
            return Err(changed());
        }
        let (name, steps) = if approve {
            ("approve", &self.backend.approve)
        } else {
            ("reject", &self.backend.reject)
        };
        if steps.is_empty() {
            return Err(refusal(format!("{name} not implemented for this backend")));
        }
        let window = self.shared.with_record(|record| record.window.clone());
        let window = window.ok_or_else(changed)?;
        self.type_steps(&window, steps).await
    }

    /// Send the key sequence of `clear`, `compact` or `resume`.
    pub(super) async fn send_sequence(&self, name: &str, steps: &[KeyStep]) -> Result<(), Refusal> {
        if steps.is_empty() {
            return Err(refusal(format!("{name} not implemented for this backend")));
        }
        if let Some(text) = self.core.prompt_refusal() {
            return Err(refusal(text));
        }
        let Some(window) = self.shared.with_record(|record| record.window.clone()) else {
            return Err(refusal("delivery failed: no window"));
        };
        self.begin_typing(&window).await?;
        if let Err(error) = self.shared.save() {
            tracing::error!(%error, session = %self.shared.id, "record cannot be written");
        }
        self.type_steps(&window, steps).await?;
        self.end_typing();
        if name != "resume" {
            self.shared.context_due.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}
