//! `beamtalk mcp`: the workspace for an AI client, over standard input and output.

mod check;
mod check_http;
mod clients;
mod docs;
mod host;
mod paths;
mod project;
mod rules;
mod serve;
mod service;
mod streams;

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use beamtalk_agents::{DoorSettings, tools};
use beamtalk_mcp::{Way, door, listing};
use beamtalk_storage::StateDirectory;
use serde_json::{Value, json};

use paths::Paths;

use crate::config::Config;
use crate::exit::{Exit, Fault};
use crate::terminal::Terminal;
use crate::workspace_link::find_place;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The project; without it the one of this directory.
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// What the client may do; can only narrow what your own settings allow.
    #[arg(long, value_name = "P", value_parser = ["read-only", "edit", "full"])]
    policy: Option<String>,
    /// Which tools are listed: lean, core, edit, test, loop, agents, all.
    #[arg(long, value_name = "LIST")]
    toolsets: Option<String>,
    /// Start the workspace when a call first needs it.
    #[arg(long)]
    start: bool,
    /// Let tools name files outside the project, if your own settings allow it.
    #[arg(long)]
    allow_outside_project: bool,
    /// The longest time, in seconds, that a call may ask for an evaluation.
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..))]
    eval_ceiling: Option<u64>,
    /// Check that all of this works, as a client would.
    #[arg(long, conflicts_with_all = ["print_config", "list_tools"])]
    check: bool,
    /// Print what goes into the settings of a client.
    #[arg(long, value_name = "CLIENT", conflicts_with = "list_tools", value_parser = clap::builder::PossibleValuesParser::new(clients::NAMES))]
    print_config: Option<String>,
    /// Print the tools that a client would see.
    #[arg(long)]
    list_tools: bool,
    /// Serve the agent's session of this name, from outside of it; started by the agents' daemon.
    #[arg(long, hide = true, value_name = "ID")]
    door: Option<String>,
    #[arg(long, hide = true, value_parser = ["none", "read", "write"])]
    door_workspace: Option<String>,
    #[arg(long, hide = true, value_parser = ["none", "observe", "post", "control"])]
    door_loop: Option<String>,
}

pub(crate) use service::make as make_service;

impl Arguments {
    fn asked(&self) -> rules::Asked {
        rules::Asked {
            policy: self.policy.clone(),
            toolsets: self.toolsets.clone(),
            starts: self.start,
            allows_outside: self.allow_outside_project,
            eval_ceiling_s: self.eval_ceiling,
            way: if self.door.is_some() {
                Way::Door
            } else {
                Way::Stdio
            },
        }
    }

    /// How a client starts the server with what was given here; the project is said in its own way.
    fn words(&self, workspace: Option<&str>) -> Vec<String> {
        let ceiling = self.eval_ceiling.map(|seconds| seconds.to_string());
        let mut words = vec!["mcp".to_owned(), "--start".to_owned()];
        for (flag, value) in [
            ("--workspace", workspace),
            ("--policy", self.policy.as_deref()),
            ("--toolsets", self.toolsets.as_deref()),
            ("--eval-ceiling", ceiling.as_deref()),
        ] {
            words.extend(
                value
                    .map(|value| [flag.to_owned(), value.to_owned()])
                    .into_iter()
                    .flatten(),
            );
        }
        words.extend(
            self.allow_outside_project
                .then(|| "--allow-outside-project".to_owned()),
        );
        words
    }
}

/// What holds for the files of a project at a session's door, where a session may write them at all.
pub(crate) fn door_rules(state: &StateDirectory, root: &Path) -> Result<DoorSettings, String> {
    let asked = rules::Asked {
        way: Way::Door,
        ..rules::Asked::default()
    };
    let config = Config::of(state).map_err(|cause| cause.to_string())?;
    let rules = rules::Rules::new(&asked, &config.mcp, root).map_err(|cause| cause.to_string())?;
    let mut settings = rules.settings;
    let paths = Paths::new(root, state.path(), &settings);
    door::narrow(&mut settings, (Some("write"), None));
    Ok(DoorSettings {
        settings,
        names: Box::new(move |path| paths.inside(path).map(drop).map_err(|error| error.message)),
    })
}

pub(crate) fn run(terminal: &mut Terminal, arguments: &Arguments) -> anyhow::Result<Exit> {
    if let Some(project) = &arguments.project {
        std::env::set_current_dir(project)
            .map_err(|cause| Fault::usage("no_project", format!("{}: {cause}", project.display())))?;
    }
    if let Some(client) = &arguments.print_config {
        return print_config(terminal, client, arguments);
    }
    if arguments.door.is_none()
        && let Some(pipe) = tools::own_door()
    {
        // What holds for a session only its server knows, which is asked.
        if arguments.list_tools {
            return list(terminal, &check::tools(terminal, arguments)?);
        }
        if arguments.check {
            return check::run(terminal, arguments, None);
        }
        let asked = arguments.asked();
        let first = door::narrower(
            asked.policy.as_deref(),
            asked.toolsets.as_deref(),
            asked.eval_ceiling_s,
        );
        return Ok(if tools::copy(&pipe, first) {
            Exit::Success
        } else {
            Exit::Code(5)
        });
    }
    let place = find_place(terminal, None)?;
    let config = Config::of(&place.state)?;
    let mut rules = rules::Rules::new(&arguments.asked(), &config.mcp, &place.root)?;
    if arguments.door.is_some() {
        let rights = (
            arguments.door_workspace.as_deref(),
            arguments.door_loop.as_deref(),
        );
        door::narrow(&mut rules.settings, rights);
    }
    if arguments.list_tools {
        return list(terminal, &listing(&rules.settings));
    }
    if arguments.check {
        return check::run(terminal, arguments, Some((&rules, &place)));
    }
    for notice in &rules.notices {
        terminal.error(notice);
    }
    let reach = host::Reach::Outside {
        options: config.start,
        starts: rules.settings.starts_workspace,
    };
    let host = host::Workspace::new(Arc::new(place), reach, terminal.network, &rules);
    let host = host.speaking_for(arguments.door.clone());
    serve::serve(Rc::new(host), Rc::new(rules.settings))
}

/// The settings of a client; where the workspace serves HTTP, those for that are told beside.
fn print_config(terminal: &mut Terminal, client: &str, arguments: &Arguments) -> anyhow::Result<Exit> {
    let words = arguments.words(terminal.workspace.as_deref());
    terminal.print(clients::snippet(client, &std::env::current_exe()?, &words)?)?;
    let served = find_place(terminal, None)
        .ok()
        .and_then(|place| check_http::served(&place));
    if let Some(http) = served.and_then(|address| clients::http_snippet(client, address)) {
        terminal.error("Or over HTTP, with a token of 'beamtalk workspace token create NAME --mcp edit':");
        terminal.error(&http);
    }
    Ok(Exit::Success)
}

fn list(terminal: &mut Terminal, tools: &[Value]) -> anyhow::Result<Exit> {
    if terminal.is_json() {
        terminal.print(json!({ "tools": tools }))?;
        return Ok(Exit::Success);
    }
    let word = |tool: &Value, field: &str| tool[field].as_str().unwrap_or_default().to_owned();
    for tool in tools {
        let class = tool["_meta"]["beamtalk/class"].as_str().unwrap_or_default();
        terminal.print(format_args!(
            "{:<20} {class:<2}  {}",
            word(tool, "name"),
            word(tool, "title")
        ))?;
    }
    Ok(Exit::Success)
}
