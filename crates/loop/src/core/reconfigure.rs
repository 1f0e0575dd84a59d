//! Another config for a run under way.

use std::sync::Arc;

use super::operate::By;
use super::process::{Input, Phase as ProcessPhase};
use super::supervise::Supervised;
use super::{Core, Effect, Ms, Phase, finish, log, patterns_of};
use crate::config::Config;
use crate::pattern::Groups;
use crate::report::{Level, Part};

impl Core {
    /// A checked config is to be applied, when no execution is under way that follows the old one.
    pub(super) fn reconfigured(&mut self, config: Arc<Config>) {
        if !self.is_stopping() {
            self.next_config = Some(config);
        }
    }

    pub(super) fn apply_config(&mut self, now: Ms, out: &mut Vec<Effect>) {
        if self.running.is_some() || self.phase != Phase::Running {
            return;
        }
        let Some(config) = self.next_config.take() else {
            return;
        };
        let old = std::mem::replace(&mut self.config, Arc::clone(&config));
        // Before anything is started by it.
        out.push(Effect::Applied(Arc::clone(&config)));
        self.groups = Groups::new(&config);
        self.patterns = patterns_of(&config);
        self.window.reconfigure(config.debounce_ms, config.debounce_mode);
        self.counts.reconfigure(&config);
        self.polls.reconfigure(now, &config);
        let gone = self
            .lane
            .take_unless(|request| config.workflow.contains_key(&request.workflow));
        for request in gone {
            finish(&request, &Err("the workflow is gone from the config".into()), out);
        }
        for name in old
            .process
            .keys()
            .filter(|name| !config.process.contains_key(*name))
        {
            self.command(now, name, Input::Stop, By::Itself, out);
        }
        for (name, process) in &config.process {
            let Some(before) = old.process.get(name) else {
                self.processes
                    .entry(name.clone())
                    .or_insert_with(|| Supervised::new(name, process));
                if process.autostart {
                    self.command(now, name, Input::Start, By::Itself, out);
                }
                continue;
            };
            if before == process {
                continue;
            }
            let Some(found) = self.processes.get_mut(name) else {
                continue;
            };
            found.reconfigure(process);
            match found.machine.phase() {
                ProcessPhase::Up { .. } | ProcessPhase::Spawning | ProcessPhase::Backoff { .. } => {
                    self.command(now, name, Input::Restart, By::Itself, out);
                }
                ProcessPhase::Down | ProcessPhase::Exited { .. } | ProcessPhase::Stopping { .. } => {}
            }
        }
        self.revision += 1;
        out.push(log(Level::Info, Part::Engine, "the edited config is in force"));
    }

    /// Forget processes that are gone from the config, once nothing of them is left.
    pub(super) fn forget_retired(&mut self) {
        let config = &self.config;
        self.processes
            .retain(|name, found| config.process.contains_key(name) || !found.is_settled());
        self.started.retain(|name| self.processes.contains_key(name));
    }
}
