//! Effects to deeds, one by one.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use beamtalk_process::{Error, Spec, Stdin, find_program, spawn_detached};

use super::children::{self, CompiledRule, Job, Start, stop_of};
use super::detached::MARK;
use super::environment::{EventAccess, Given, environment};
use super::hooks::{self, Run};
use super::tails::LogFile;
use super::{Holder, Shell};
use crate::config::Process;
use crate::core::{Effect, Event, Ms};
use crate::events::gate::Token;
use crate::host::Fact;
use crate::ignore_files::IgnoreFiles;
use crate::output::Speaker;
use crate::report::{ChildKind, Level, Part, Report};
use crate::state_file;

impl Shell {
    /// Do what the core wants; gives the answer when there is one at once.
    pub(super) fn perform(&mut self, effect: Effect) -> Option<Event> {
        match effect {
            Effect::Report(report) => self.output.report(&report),
            Effect::StateChanged(key) => self.output.tell(&Fact::StateChanged { key: &key }),
            Effect::Save(why) => {
                let result = state_file::write(&self.config.state_file, self.core.values());
                return Some(Event::Saved {
                    why,
                    version: self.core.version(),
                    result: result.map_err(|error| error.to_string()),
                });
            }
            Effect::Spawn { process, generation } => return self.spawn(process, generation),
            Effect::Stop { process, generation } => {
                // What is detached is left alone when the loop ends.
                let is_left = self.core.is_stopping()
                    && self
                        .config
                        .process
                        .get(&process)
                        .is_some_and(|found| found.detached);
                if is_left {
                    self.jobs.remove(&(process.clone(), generation));
                    return Some(Event::Gone { process, generation });
                }
                // A job that has ended already has said, or is saying, that it is gone.
                match self.jobs.remove(&(process.clone(), generation)) {
                    Some(job) => {
                        let _ = job.stop.send(());
                    }
                    None => return Some(Event::Gone { process, generation }),
                }
            }
            Effect::Probe { id, url, limit } => self.prober.ask(id, url, limit, self.inbox.clone()),
            Effect::RunHook {
                id,
                hook,
                workflow,
                changed,
                limit,
            } => {
                if let Err(reason) = self.run_hook(id, &hook, &workflow, &changed, limit) {
                    return Some(Event::HookDone {
                        id,
                        result: Err(reason),
                    });
                }
            }
            Effect::StopHook { id } => {
                if let Some(stop) = self.hooks.remove(&id) {
                    let _ = stop.send(());
                }
            }
            Effect::CheckWindow(paths) => {
                let is_missing = |path: &String| self.config.root.join(path).symlink_metadata().is_err();
                let missing: BTreeSet<String> =
                    paths.iter().filter(|path| is_missing(path)).cloned().collect();
                let checked: Vec<String> = paths.into_iter().filter(|path| !missing.contains(path)).collect();
                let excluded = self.excluded(&checked);
                return Some(Event::WindowChecked { missing, excluded });
            }
            Effect::LoadConfig => return self.load_config(),
            Effect::Applied(config) => self.apply(config),
            // Nobody listening is fine.
            Effect::Reload => {
                drop(self.reloads.send(()));
                self.output.tell(&Fact::ReloadSent);
            }
            Effect::Answer { post, verdict } => {
                if let Some(poster) = self.posts.get_mut(&post) {
                    if let Some(reply) = poster.verdict.take() {
                        let _ = reply.send(verdict);
                    }
                    if poster.done.is_none() || verdict != (crate::core::Verdict::Accepted { changed: true })
                    {
                        self.posts.remove(&post);
                    }
                }
            }
            Effect::Queued { waiter, number } => {
                let queued = self
                    .posts
                    .get_mut(&waiter)
                    .and_then(|poster| poster.queued.take());
                if let Some(queued) = queued {
                    // Who asked may have gone.
                    let _ = queued.send(number);
                }
            }
            Effect::Finished { waiter, result } => {
                if let Some(done) = self.posts.remove(&waiter).and_then(|poster| poster.done) {
                    drop(done.send(result));
                }
            }
            Effect::Ready => self.output.report(&Report::Ready {
                config: self.config.file.display().to_string(),
                root: self.config.root.display().to_string(),
                events_url: self.servers.events.clone(),
                browser_url: self.servers.browser.clone(),
            }),
            Effect::Closing => drop(self.watching.take()),
            Effect::End { code } => self.end(code),
        }
        None
    }

    /// Which of the paths files such as `.gitignore` exclude, where some group wants to know.
    fn excluded(&self, paths: &[String]) -> BTreeSet<String> {
        if !self.config.watch.values().any(|group| group.ignore_files) {
            return BTreeSet::new();
        }
        let mut files = IgnoreFiles::new(&self.config.root);
        paths
            .iter()
            .filter(|path| files.excludes(path))
            .cloned()
            .collect()
    }

    /// What a child is told of events, and the token it alone holds when it has a scope.
    fn token_for(
        &mut self,
        holder: &Holder,
        by: String,
        scope: Option<&[String]>,
    ) -> Result<Option<Token>, String> {
        if self.servers.events.is_none() {
            return Ok(None);
        }
        match scope {
            None => Ok(Some(self.desk.gate().run_token())),
            Some([]) => Ok(None),
            Some(events) => {
                let token = self
                    .desk
                    .gate()
                    .issue(by, events)
                    .map_err(|error| error.to_string())?;
                self.tokens.insert(holder.clone(), token.clone());
                Ok(Some(token))
            }
        }
    }

    fn spec(
        &self,
        command: &[String],
        cwd: Option<&PathBuf>,
        stdin: Stdin,
        given: &Given<'_>,
    ) -> Result<Spec, Error> {
        let (program, arguments) = command
            .split_first()
            .expect("a checked config has no empty command");
        let root = &self.config.root;
        let path = given
            .own
            .get("PATH")
            .map(std::ffi::OsString::from)
            .or_else(|| match &self.environment {
                Some(inherited) => inherited.get(OsStr::new("PATH")).cloned(),
                None => std::env::var_os("PATH"),
            });
        Ok(Spec {
            program: find_program(program, root, path.as_deref())?,
            name: program.into(),
            arguments: arguments.iter().map(Into::into).collect(),
            directory: cwd.map_or_else(|| root.clone(), |cwd| root.join(cwd)),
            environment: self.inherited(given),
            stdin,
        })
    }

    /// The changes that make this program's environment the child's.
    fn inherited(&self, given: &Given<'_>) -> BTreeMap<OsString, Option<OsString>> {
        let own = std::env::vars_os().map(|(name, _)| name);
        let Some(inherited) = &self.environment else {
            return environment(given, own);
        };
        let mut changes: BTreeMap<OsString, Option<OsString>> = own.map(|name| (name, None)).collect();
        let set = inherited
            .iter()
            .map(|(name, value)| (name.clone(), Some(value.clone())));
        changes.extend(set);
        changes.extend(environment(given, inherited.keys().cloned()));
        changes
    }

    /// Ask for a start; whether it came about is told later, unless it is known at once.
    fn spawn(&mut self, name: String, generation: u64) -> Option<Event> {
        let reason = self.try_spawn(&name, generation).err()?;
        Some(Event::SpawnFailed {
            process: name,
            generation,
            reason,
        })
    }

    fn try_spawn(&mut self, name: &str, generation: u64) -> Result<(), String> {
        let config = std::sync::Arc::clone(&self.config);
        let process = config.process.get(name).ok_or("no such process")?;
        // The token of the last start ends with it.
        self.tokens
            .extract_if(
                ..,
                |holder, _| matches!(holder, Holder::Process(other, _) if other == name),
            )
            .for_each(|(_, token)| self.desk.gate().revoke(&token));
        let holder = Holder::Process(name.to_owned(), generation);
        let token = self.token_for(&holder, format!("process {name}"), process.events.as_deref())?;
        let given = Given {
            config: &config,
            own: &process.env,
            workflow: "startup",
            changed: &[],
            browser_url: self.servers.browser.as_deref(),
            events: access(
                self.servers.events.as_deref(),
                token.as_ref(),
                process.events.as_deref(),
            ),
        };
        let spec = self
            .spec(&process.command, process.cwd.as_ref(), Stdin::Held, &given)
            .map_err(|error| error.to_string())?;
        if process.detached {
            let job = self.start_detached(name, generation, process, &spec)?;
            self.jobs.retain(|(other, _), _| other != name);
            self.jobs.insert((name.to_owned(), generation), job);
            return Ok(());
        }
        let file = match &process.log {
            Some(path) => Some(LogFile::open(&config.root, path)?),
            None => None,
        };
        let start = Start {
            name: name.to_owned(),
            generation,
            spec,
            speaker: speaker(
                ChildKind::Process,
                name,
                &process.command,
                process.output.body_style,
            ),
            inherit: process.output.inherit,
            rules: CompiledRule::all(process),
            stop: stop_of(process),
            file,
        };
        let keepers = self.keepers.as_ref().ok_or("the guard is gone")?;
        let job = children::start(start, keepers, &self.output, &self.desk.tails, &self.inbox)
            .map_err(|error| error.to_string())?;
        self.jobs.retain(|(other, _), _| other != name);
        self.jobs.insert((name.to_owned(), generation), job);
        Ok(())
    }

    /// Start a program that outlives the loop, or find the one an earlier run started.
    fn start_detached(
        &mut self,
        name: &str,
        generation: u64,
        process: &Process,
        spec: &Spec,
    ) -> Result<Job, String> {
        let program = match self.detached.find(name) {
            Some(program) => program,
            None => {
                let output = match &process.log {
                    Some(path) => Some(LogFile::for_others(&self.config.root, path)?),
                    None => None,
                };
                let program = spawn_detached(spec, output).map_err(|error| error.to_string())?;
                self.detached
                    .add(format!("process {name}"), program)
                    .map_err(|error| format!("it could not be written down: {error}"))?;
                program
            }
        };
        let start = (name.to_owned(), generation);
        Ok(children::follow_detached(
            program,
            start,
            stop_of(process),
            &self.inbox,
        ))
    }

    fn run_hook(
        &mut self,
        id: u64,
        name: &str,
        workflow: &str,
        changed: &[String],
        limit: Option<Ms>,
    ) -> Result<(), String> {
        let config = std::sync::Arc::clone(&self.config);
        let hook = config.hook.get(name).ok_or("no such hook")?;
        let failed = |error: String| format!("failed to run hook '{name}': {error}");
        let token = self
            .token_for(&Holder::Hook(id), format!("hook {name}"), hook.events.as_deref())
            .map_err(failed)?;
        let given = Given {
            config: &config,
            own: &hook.env,
            workflow,
            changed,
            browser_url: self.servers.browser.as_deref(),
            events: access(
                self.servers.events.as_deref(),
                token.as_ref(),
                hook.events.as_deref(),
            ),
        };
        let mut spec = self
            .spec(&hook.command, hook.cwd.as_ref(), Stdin::Null, &given)
            .map_err(|error| failed(error.to_string()))?;
        let mark = hook.detached.then(|| format!("{}.{id}", std::process::id()));
        if let Some(mark) = &mark {
            spec.environment.insert(MARK.into(), Some(mark.into()));
            self.marks.insert(id, (name.to_owned(), mark.clone()));
        }
        let run = Run {
            id,
            name: name.to_owned(),
            spec,
            speaker: speaker(ChildKind::Hook, name, &hook.command, hook.output.body_style),
            inherit: hook.output.inherit,
            capture: hook.capture,
            limit,
            last: (workflow == "observe" && hook.quiet_polls)
                .then(|| Arc::clone(self.quiet.entry(name.to_owned()).or_default())),
            mark,
        };
        let keepers = self.keepers.as_ref().ok_or("the guard is gone")?;
        let stop = hooks::start(run, keepers, &self.output, &self.inbox)?;
        self.hooks.insert(id, stop);
        Ok(())
    }

    /// What has to be undone when a child is gone, before the core hears of it.
    pub(super) fn child_gone(&mut self, event: &Event) {
        match event {
            Event::HookDone { id, .. } => {
                self.hooks.remove(id);
                self.register_left(*id);
                self.revoke(&Holder::Hook(*id));
            }
            Event::SpawnFailed {
                process, generation, ..
            } => {
                self.jobs.remove(&(process.clone(), *generation));
                self.revoke(&Holder::Process(process.clone(), *generation));
            }
            Event::Exited {
                process, generation, ..
            } => {
                self.revoke(&Holder::Process(process.clone(), *generation));
            }
            Event::Gone { process, generation } => {
                self.jobs.remove(&(process.clone(), *generation));
                self.revoke(&Holder::Process(process.clone(), *generation));
            }
            _ => {}
        }
    }

    /// A detached hook has ended: write down what it left.
    fn register_left(&mut self, id: u64) {
        let Some((hook, mark)) = self.marks.remove(&id) else {
            return;
        };
        if let Err(error) = self.detached.add_marked(&hook, &mark) {
            let text = format!("what hook '{hook}' left behind is not written down: {error}");
            self.log(Level::Warn, Part::Process, text);
        }
    }

    fn revoke(&mut self, holder: &Holder) {
        if let Some(token) = self.tokens.remove(holder) {
            self.desk.gate().revoke(&token);
        }
    }
}

fn access<'a>(
    base_url: Option<&'a str>,
    token: Option<&'a Token>,
    scope: Option<&'a [String]>,
) -> Option<EventAccess<'a>> {
    Some(EventAccess {
        base_url: base_url?,
        token: token?,
        scope,
    })
}

fn speaker(kind: ChildKind, name: &str, command: &[String], style: crate::config::BodyStyle) -> Speaker {
    let program = command.first().map(String::as_str).unwrap_or_default();
    let exe = Path::new(program)
        .file_name()
        .map_or_else(|| program.into(), std::ffi::OsStr::to_string_lossy);
    Speaker {
        kind,
        name: name.to_owned(),
        label: format!("{exe} {name}"),
        style,
    }
}
