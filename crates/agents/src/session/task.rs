//! The shell around the core: one task per session waits on the world and performs effects.

mod effects;
pub(crate) mod process;

use std::sync::Arc;
use std::time::Duration;

use beamtalk_ninep::Refusal;
use beamtalk_storage::time::now_millis;
use tokio::sync::mpsc;

use super::core::{Core, Event, Rules, State};
use super::shared::{Command, Operation, SessionShared};
use crate::config::{Backend, Deliver};
use crate::daemon::Hub;
use crate::error::refusal;
use crate::hooks;
use crate::mail::{Box as MailBox, Message};
use crate::tmux::Window;

/// How a task begins.
pub(crate) enum Start {
    New,
    /// Take over what a former daemon left; `None` if there is no window any more.
    Adopt(Option<Box<Window>>),
    /// There is no tmux server any more: the machine was started anew.
    Resume,
    /// The same, and it is to stay stopped.
    Rest,
}

/// A turn under way.
pub(super) struct Turn {
    pub(super) offset: u64,
    pub(super) began: u64,
}

pub(crate) struct Task {
    pub(super) hub: Arc<Hub>,
    pub(super) shared: Arc<SessionShared>,
    pub(super) core: Core,
    pub(super) backend: Backend,
    queue: mpsc::UnboundedReceiver<Command>,
    pub(super) launches: u64,
    pub(super) launch_offset: u64,
    pub(super) turn: Option<Turn>,
    pub(super) dialogs_done: Vec<usize>,
    /// The message this turn answers.
    pub(super) answering: Option<Message>,
    /// The budget whose end was told.
    pub(super) budget_told: Option<String>,
    nudged: Vec<String>,
    mail_at: Option<u64>,
    pub(super) idle_at: Option<u64>,
}

impl Task {
    pub(crate) fn spawn(
        hub: Arc<Hub>,
        shared: Arc<SessionShared>,
        backend: Backend,
        queue: mpsc::UnboundedReceiver<Command>,
        start: Start,
    ) {
        let record = shared.record();
        let mut core = Core::new(Rules::of(&backend), record.state());
        core.crashes = record.crashes;
        core.last_error.clone_from(&record.last_error);
        let offset = shared.output.extent().end;
        let turn = record
            .turn_start
            .filter(|_| matches!(record.state(), State::Running | State::Waiting));
        let turn = turn.map(|offset| Turn {
            offset,
            began: hub.now(),
        });
        let task = Task {
            launches: now_millis(),
            hub,
            shared,
            core,
            backend,
            queue,
            launch_offset: offset,
            turn,
            dialogs_done: Vec::new(),
            answering: None,
            budget_told: None,
            nudged: Vec::new(),
            mail_at: None,
            idle_at: None,
        };
        tokio::spawn(task.run(start));
    }

    async fn run(mut self, start: Start) {
        match start {
            Start::New => self.launch(false).await,
            Start::Adopt(window) => self.adopt(window).await,
            Start::Resume => {
                self.forget_window();
                let now = self.hub.now();
                self.feed_quietly(Event::Rebooted { now }).await;
                if self.core.state == State::Error {
                    let reason = self.core.last_error.as_deref().unwrap_or("it does not start");
                    self.hub.not_resumed(&self.shared.id, reason);
                }
            }
            Start::Rest => {
                self.forget_window();
                self.feed_quietly(Event::Stopped).await;
            }
        }
        self.idle_at.get_or_insert(self.hub.now());
        self.serve_queue().await;
        self.plan_mail();
        while self.core.state != State::Exited {
            let wake = [self.core.deadline(), self.mail_at].into_iter().flatten().min();
            let pause = wake.map(|at| Duration::from_millis(at.saturating_sub(self.hub.now())));
            tokio::select! {
                command = self.queue.recv() => match command {
                    Some(command) => self.obey(command).await,
                    None => return,
                },
                () = tokio::time::sleep(pause.unwrap_or_default()), if pause.is_some() => self.tick().await,
            }
        }
        self.hub.forget(&self.shared);
    }

    async fn obey(&mut self, command: Command) {
        self.note_backend();
        match command {
            Command::Prompt { text, from, done } => {
                let outcome = self.deliver(&text, &from).await;
                drop(done.send(outcome));
            }
            Command::Operate { operation, done } => {
                let outcome = self.operate(operation).await;
                drop(done.send(outcome));
            }
            Command::WriteState { to, control, done } => {
                // A program that reports has gone on, though its screen was not looked at since.
                self.look_for_question().await;
                if to == State::Idle && matches!(self.core.state, State::Running | State::Starting) {
                    self.settle().await;
                }
                let now = self.hub.now();
                let outcome = self.feed(Event::Written { now, to, control }).await;
                drop(done.send(outcome));
            }
            Command::Interrupt { done } => {
                let outcome = self.press("C-c").await;
                drop(done.send(outcome));
            }
            Command::Refresh { done } => {
                self.check_window().await;
                drop(done.send(Ok(())));
            }
            Command::Screen { done } => {
                let outcome = self.screen().await;
                drop(done.send(outcome));
            }
            Command::Answer { approve, shown, done } => {
                let outcome = self.answer_question(approve, &shown).await;
                drop(done.send(outcome));
            }
            Command::Tick => self.check_window().await,
            // Noted above.
            Command::Started => {}
            Command::OutputGrew { bytes } => {
                self.shared.touch();
                self.output_grew(bytes).await;
            }
            Command::NewMail => {
                self.shared.touch();
                self.hub.touch();
                self.plan_mail();
            }
            Command::MailSent => {
                let now = self.hub.now();
                self.feed_quietly(Event::MailSent { now }).await;
            }
            Command::Save => self.save_options().await,
            Command::CheckPrompt { text, done } => {
                let outcome = self.check_prompt(&text);
                drop(done.send(outcome));
            }
            // Served below.
            Command::Queued => {}
        }
        self.serve_queue().await;
        self.plan_mail();
    }

    async fn tick(&mut self) {
        let now = self.hub.now();
        let busy_children = self.backend.busy_children && self.has_children();
        self.feed_quietly(Event::Tick { now, busy_children }).await;
        self.serve_queue().await;
        if self.mail_at.is_some_and(|at| now >= at) && self.core.state == State::Idle {
            self.mail_at = None;
            self.tell_of_mail().await;
        }
        self.plan_mail();
    }

    async fn operate(&mut self, operation: Operation) -> Result<(), Refusal> {
        match operation {
            Operation::Stop => {
                if self.core.state != State::Stopped {
                    self.stop_process().await;
                    self.feed(Event::Stopped).await?;
                }
                Ok(())
            }
            Operation::Restart => {
                self.stop_process().await;
                let now = self.hub.now();
                self.feed(Event::RestartAsked { now }).await
            }
            Operation::Kill => {
                self.destroy().await;
                self.leave_worktree().await;
                self.feed(Event::Killed).await
            }
            Operation::Clear => self.send_sequence("clear", &self.backend.clear.clone()).await,
            Operation::Compact => self.send_sequence("compact", &self.backend.compact.clone()).await,
            Operation::Resume => self.send_sequence("resume", &self.backend.resume.clone()).await,
        }
    }

    /// A copy without changes goes with its session.
    async fn leave_worktree(&self) {
        let Ok((worktree, author)) = self.shared.worktree() else {
            return;
        };
        let _alone = self.shared.git.lock().await;
        if worktree.is_clean(&author, &self.shared.id).await.unwrap_or(false)
            && let Err(refused) = worktree.remove().await
        {
            tracing::warn!(session = %self.shared.id, reason = %refused, "the worktree cannot be removed");
        }
    }

    fn forget_window(&self) {
        self.shared.change_record(|record| {
            record.window = None;
            record.forget_processes();
        });
    }

    /// Take over what is there.
    async fn adopt(&mut self, window: Option<Box<Window>>) {
        let now = self.hub.now();
        let Some(window) = window else {
            self.forget_window();
            self.feed_quietly(Event::WindowLost { now }).await;
            return;
        };
        let server = self.hub.tmux.server_pid().await.ok().flatten();
        self.shared.change_record(|record| {
            record.window = Some(window.number.clone());
            record.server = server;
        });
        if window.dead {
            self.check_window().await;
            if self.core.state == State::Error {
                self.feed_quietly(Event::Adopted { now }).await;
            }
            return;
        }
        self.note_pane(window.pid);
        self.note_backend();
        self.feed_quietly(Event::Adopted { now }).await;
        if !window.piped
            && let Err(error) = self.hub.tmux.capture(&window.number, &self.shared.id).await
        {
            tracing::warn!(%error, session = %self.shared.id, "output is not captured");
        }
        if matches!(self.core.state, State::Error) && self.core.last_error.as_deref() == Some("window lost") {
            self.feed_quietly(Event::FoundAlive { now }).await;
        }
        for state in hooks::take_notes(&self.shared.directory.join("tmp")) {
            let now = self.hub.now();
            self.feed_quietly(Event::Written {
                now,
                to: state,
                control: false,
            })
            .await;
        }
    }

    /// Set when mail is to be brought to the agent's attention.
    fn plan_mail(&mut self) {
        let rule = &self.backend.mail;
        self.mail_at = None;
        if self.core.state != State::Idle || rule.deliver == Deliver::Off {
            return;
        }
        let inbox = self.hub.mail.list(&self.shared.id, MailBox::Inbox);
        let due = match rule.deliver {
            Deliver::Nudge => inbox.iter().any(|id| !self.nudged.contains(id)),
            Deliver::Body => inbox.iter().any(|id| self.is_prompt_request(id)),
            Deliver::Off => false,
        };
        if due {
            self.mail_at = Some(self.idle_since() + rule.idle_ms);
        }
    }

    fn is_prompt_request(&self, id: &str) -> bool {
        self.hub
            .mail
            .message(&self.shared.id, MailBox::Inbox, id)
            .is_some_and(|message| message.kind == "PROMPT_REQUEST")
    }

    async fn tell_of_mail(&mut self) {
        let inbox = self.hub.mail.list(&self.shared.id, MailBox::Inbox);
        match self.backend.mail.deliver {
            Deliver::Off => {}
            Deliver::Nudge => {
                let text = self.hub.config().mail.nudge_text.clone();
                if self.deliver(text.as_bytes(), "user").await.is_ok() {
                    self.nudged = inbox;
                }
            }
            Deliver::Body => {
                let oldest = inbox.iter().find(|id| self.is_prompt_request(id));
                let message =
                    oldest.and_then(|id| self.hub.mail.message(&self.shared.id, MailBox::Inbox, id));
                let Some(message) = message else { return };
                // A body that cannot be delivered is not tried for ever.
                if let Err(refused) = self.hub.mail.complete(&self.shared.id, &message.id) {
                    tracing::warn!(session = %self.shared.id, reason = %refused, "mail cannot be completed");
                    return;
                }
                match self.deliver(message.body.as_bytes(), &message.from).await {
                    Ok(_) => self.answering = Some(message),
                    Err(refused) => {
                        tracing::warn!(session = %self.shared.id, reason = %refused, "mail cannot be delivered");
                    }
                }
            }
        }
    }

    pub(super) async fn screen(&self) -> Result<String, Refusal> {
        let window = self.shared.with_record(|record| record.window.clone());
        let Some(window) = window else {
            return Ok(String::new());
        };
        self.hub
            .tmux
            .screen(&window)
            .await
            .map_err(|error| refusal(format!("delivery failed: {error}")))
    }

    async fn press(&self, key: &str) -> Result<(), Refusal> {
        let window = self.shared.with_record(|record| record.window.clone());
        let Some(window) = window else { return Ok(()) };
        let sent = self.hub.tmux.keys(&window, &[key.to_owned()]).await;
        sent.map_err(|error| refusal(format!("delivery failed: {error}")))
    }
}
