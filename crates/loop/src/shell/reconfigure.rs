//! The config file was edited and `reload_config` is on: read it, and put it in force.

use std::sync::{Arc, PoisonError};

use super::{Inbound, Shell};
use crate::config::{Config, RemoteBind, load};
use crate::core::Event;
use crate::report::{Level, Part, Report};
use crate::watch::{Scope, Teller};

impl Shell {
    /// The edited config, when it is valid. What cannot change while the loop runs stays.
    pub(super) fn load_config(&mut self) -> Option<Event> {
        let old = Arc::clone(&self.config);
        let remote = if old
            .event_server
            .address()
            .is_some_and(|address| !address.ip().is_loopback())
        {
            RemoteBind::Allow
        } else {
            RemoteBind::Refuse
        };
        let text = crate::files::read(&old.file).ok();
        if text.is_some() && text == self.config_text {
            return None;
        }
        self.config_text = text;
        let mut config = match load(Some(&old.file), &old.root, remote).valid() {
            Ok(config) => config,
            Err(errors) => {
                for error in errors {
                    self.log(Level::Error, Part::Engine, error.text);
                }
                let text = "the edited config is not valid; the one before stays in force".to_owned();
                self.log(Level::Error, Part::Engine, text);
                return None;
            }
        };
        for name in self.keep_fixed(&mut config) {
            let text = format!("{name} changed; restart the loop to apply that");
            self.log(Level::Warn, Part::Engine, text);
        }
        Some(Event::Reconfigured(Arc::new(config)))
    }

    /// Put back what needs a new run; gives the names of what was different.
    fn keep_fixed(&self, config: &mut Config) -> Vec<&'static str> {
        let old = &self.config;
        let mut different = Vec::new();
        if config.root != old.root {
            different.push("root");
            config.root.clone_from(&old.root);
        }
        if config.state_file != old.state_file {
            different.push("state_file");
            config.state_file.clone_from(&old.state_file);
        }
        let has_events = self.servers.events.is_some();
        if config.event_server.bind != old.event_server.bind || (!config.event.is_empty() && !has_events) {
            different.push("event_server");
            config.event_server.bind.clone_from(&old.event_server.bind);
        }
        let has_reload = self.servers.browser.is_some();
        if config.browser_reload_server.bind != old.browser_reload_server.bind
            || (config.uses_reload() && !has_reload)
        {
            different.push("browser_reload_server");
            config
                .browser_reload_server
                .bind
                .clone_from(&old.browser_reload_server.bind);
        }
        different
    }

    /// A config is in force from now on.
    pub(super) fn apply(&mut self, config: Arc<Config>) {
        self.config = Arc::clone(&config);
        *self.desk.config.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&config);
        self.desk.gate().reconfigure(&config);
        let (inbox, output) = (self.inbox.clone(), self.output.clone());
        tokio::spawn(async move {
            let told = inbox.clone();
            let teller: Teller = Box::new(move |notice| told.blocking_send(Inbound::Notice(notice)).is_ok());
            // The old watcher goes when the new one has seen everything there is.
            match crate::watch::start(Scope::new(&config), config.watcher.clone(), teller).await {
                Ok(watching) => drop(inbox.send(Inbound::Watching(watching)).await),
                Err(error) => {
                    let text = format!("the groups of the edited config are not watched: {error}");
                    output.report(&Report::log(Level::Error, Part::Watch, text));
                }
            }
        });
    }
}
