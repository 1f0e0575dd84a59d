//! What holds for this server: flags, the user's settings, the project's. Nobody but the user widens.

use std::path::Path;
use std::time::Duration;

use beamtalk_mcp::{Approval, LoopRight, NarrowedBy, Policy, Settings, Toolset, Way};
use beamtalk_project::Project;
use beamtalk_project::manifest::McpRules;
use globset::Glob;

use crate::config::McpConfig;
use crate::exit::Fault;

/// What a client, or whoever starts the server for it, asks for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) policy: Option<String>,
    pub(crate) toolsets: Option<String>,
    pub(crate) starts: bool,
    pub(crate) allows_outside: bool,
    pub(crate) eval_ceiling_s: Option<u64>,
    pub(crate) way: Way,
}

pub(crate) struct Rules {
    pub(crate) settings: Settings,
    /// What the person should know.
    pub(crate) notices: Vec<String>,
}

fn bad(message: impl Into<String>) -> Fault {
    Fault::usage("bad_config", message)
}

impl Rules {
    pub(super) fn new(arguments: &Asked, user: &McpConfig, root: &Path) -> anyhow::Result<Self> {
        let project = Project::at(root)?.and_then(|project| project.manifest);
        let project = project.map(|manifest| manifest.mcp).unwrap_or_default();
        Ok(Self::of(arguments, user, &project)?)
    }

    fn of(arguments: &Asked, user: &McpConfig, project: &McpRules) -> Result<Self, Fault> {
        let mut notices = Vec::new();
        let policy = |word: &Option<String>| -> Result<Option<Policy>, Fault> {
            word.as_deref().map(|word| word.parse().map_err(bad)).transpose()
        };
        let most = policy(&user.max_policy)?.unwrap_or_default();
        let usual = policy(&user.policy)?.unwrap_or_default().min(most);
        let mut settings = Settings {
            policy: policy(&arguments.policy)?.unwrap_or(usual),
            ..Settings::default()
        };
        settings.narrow(most, NarrowedBy::User);
        if settings.narrowed_by.is_some() {
            notices.push(format!(
                "the policy is '{}': config.toml allows no more ([mcp] max-policy)",
                settings.policy
            ));
        }
        let of_project = policy(&project.policy).map_err(|fault| {
            Fault::usage(
                "invalid_manifest",
                format!("beamtalk.toml: [mcp] policy: {fault}"),
            )
        })?;
        if let Some(wanted) = of_project {
            if wanted > most {
                return Err(widened("policy", wanted.name(), most.name()));
            }
            settings.narrow(wanted, NarrowedBy::Project);
        }
        settings.toolsets = toolsets(arguments, user)?;
        let right = |word: &Option<String>| -> Result<Option<LoopRight>, Fault> {
            word.as_deref().map(|word| word.parse().map_err(bad)).transpose()
        };
        settings.loop_right = right(&user.loop_right)?.unwrap_or_default();
        if let Some(wanted) = right(&project.loop_right)? {
            if wanted > settings.loop_right {
                return Err(widened("loop", wanted.name(), settings.loop_right.name()));
            }
            settings.loop_right = wanted;
        }
        settings.deny_tools = [user.deny_tools.clone(), project.deny_tools.clone()].concat();
        settings.denied_by_project.clone_from(&project.deny_tools);
        settings
            .denied_by_project
            .retain(|tool| !user.deny_tools.contains(tool));
        let known = listed_names();
        let sets = |list: &Option<String>| -> Result<Option<Vec<Toolset>>, Fault> {
            list.as_ref()
                .map(|list| Settings::parse_toolsets(list).map_err(bad))
                .transpose()
        };
        settings.within = sets(&project.toolsets)?;
        if let (Some(wanted), Some(most)) = (&settings.within, sets(&user.toolsets)?)
            && let Some(wider) = wanted.iter().find(|set| !most.contains(set))
        {
            return Err(widened(
                "toolsets",
                wider.name(),
                user.toolsets.as_deref().unwrap_or_default(),
            ));
        }
        if let Some(seconds) = user.session_idle_s {
            settings.session_idle = Duration::from_secs(seconds);
        }
        if let Some(odd) = settings.deny_tools.iter().find(|name| !known.contains(name)) {
            return Err(bad(format!("[mcp] deny-tools: there is no tool '{odd}'")));
        }
        if arguments.allows_outside && !user.allows_outside {
            notices.push(
                "files outside the project stay closed: config.toml does not allow them ([mcp] allow-outside-project)"
                    .to_owned(),
            );
        }
        settings.allow_outside = arguments.allows_outside && user.allows_outside;
        let ceiling = user.eval_ceiling_s.map(Duration::from_secs);
        let ceiling = ceiling
            .unwrap_or(settings.eval_ceiling)
            .min(settings.eval_ceiling);
        let asked = arguments.eval_ceiling_s.map(Duration::from_secs);
        settings.eval_ceiling = asked
            .unwrap_or(ceiling)
            .min(ceiling)
            .max(Duration::from_millis(1));
        settings.starts_workspace = arguments.starts || user.starts;
        settings.way = arguments.way;
        approvals(&mut settings, user, project)?;
        settings.deny_paths = [user.deny_paths.clone(), project.deny_paths.clone()].concat();
        settings.paths_denied_by_project.clone_from(&project.deny_paths);
        settings
            .paths_denied_by_project
            .retain(|pattern| !user.deny_paths.contains(pattern));
        // One that cannot be read would deny nothing.
        let mut patterns = settings.deny_paths.iter();
        if let Some(odd) = patterns.find(|pattern| Glob::new(pattern).is_err()) {
            return Err(bad(format!("[mcp] deny-paths: '{odd}' is no pattern")));
        }
        Ok(Self { settings, notices })
    }
}

fn widened(key: &str, wanted: &str, most: &str) -> Fault {
    bad(format!(
        "beamtalk.toml: [mcp] {key} = \"{wanted}\" is wider than the user's \"{most}\""
    ))
    .with_hint("a project can only narrow what config.toml allows")
}

/// A project can ask a person more often, and give them less time.
fn approvals(settings: &mut Settings, user: &McpConfig, project: &McpRules) -> Result<(), Fault> {
    let level = |word: &Option<String>| -> Result<Option<Approval>, Fault> {
        word.as_deref().map(|word| word.parse().map_err(bad)).transpose()
    };
    settings.approval = level(&user.approval)?.unwrap_or_default();
    if let Some(wanted) = level(&project.approval)? {
        if wanted < settings.approval {
            return Err(widened("approval", wanted.name(), settings.approval.name()));
        }
        settings.approval = wanted;
    }
    if let Some(seconds) = user.approval_timeout_s {
        settings.approval_timeout = Duration::from_secs(seconds.max(1));
    }
    if let Some(seconds) = project.approval_timeout_s {
        let wanted = Duration::from_secs(seconds.max(1));
        if wanted > settings.approval_timeout {
            let most = settings.approval_timeout.as_secs().to_string();
            return Err(widened("approval-timeout", &seconds.to_string(), &most));
        }
        settings.approval_timeout = wanted;
    }
    Ok(())
}

fn toolsets(arguments: &Asked, user: &McpConfig) -> Result<Vec<Toolset>, Fault> {
    let parse = |list: &String| Settings::parse_toolsets(list).map_err(bad);
    let wanted = arguments.toolsets.as_ref().or(user.toolsets.as_ref());
    Ok(wanted.map(parse).transpose()?.unwrap_or_else(|| {
        // An agent session has its own tools, too.
        let is_agent = std::env::var_os("AGENT_ID").is_some_and(|id| !id.is_empty());
        let agents = is_agent.then_some(Toolset::Agents);
        std::iter::once(Toolset::Lean).chain(agents).collect()
    }))
}

/// The names of all tools there are.
fn listed_names() -> Vec<String> {
    beamtalk_mcp::names().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(policy: Option<&str>) -> Asked {
        Asked {
            policy: policy.map(str::to_owned),
            allows_outside: true,
            ..Asked::default()
        }
    }

    #[test]
    fn flags_that_came_with_a_checkout_widen_nothing() {
        let rules = Rules::of(
            &arguments(Some("full")),
            &McpConfig::default(),
            &McpRules::default(),
        );
        let rules = rules.unwrap();
        assert_eq!(rules.settings.policy, Policy::Edit);
        assert_eq!(rules.settings.narrowed_by, Some(NarrowedBy::User));
        assert!(!rules.settings.allow_outside);
        assert_eq!(rules.notices.len(), 2);
    }

    #[test]
    fn the_user_allows_and_the_project_narrows() {
        let user = McpConfig {
            max_policy: Some("full".to_owned()),
            ..McpConfig::default()
        };
        let plain = Rules::of(&arguments(None), &user, &McpRules::default()).unwrap();
        assert_eq!(plain.settings.policy, Policy::Edit, "full has to be asked for");
        let full = Rules::of(&arguments(Some("full")), &user, &McpRules::default()).unwrap();
        assert_eq!(
            (full.settings.policy, full.settings.narrowed_by),
            (Policy::Full, None)
        );
        let project = McpRules {
            policy: Some("read-only".to_owned()),
            deny_tools: vec!["test".to_owned()],
            ..McpRules::default()
        };
        let narrow = Rules::of(&arguments(Some("full")), &user, &project).unwrap();
        assert_eq!(narrow.settings.policy, Policy::ReadOnly);
        assert_eq!(narrow.settings.narrowed_by, Some(NarrowedBy::Project));
        assert_eq!(narrow.settings.deny_tools, ["test"]);
    }

    #[test]
    fn a_project_lists_no_toolset_beyond_those_the_user_named() {
        let user = McpConfig {
            toolsets: Some("core,test".to_owned()),
            ..McpConfig::default()
        };
        let of = |sets: &str| {
            let project = McpRules {
                toolsets: Some(sets.to_owned()),
                ..McpRules::default()
            };
            Rules::of(&arguments(None), &user, &project)
        };
        assert_eq!(of("core").unwrap().settings.within, Some(vec![Toolset::Core]));
        for wider in ["all", "core,edit"] {
            assert_eq!(of(wider).err().unwrap().exit.code(), 2, "{wider}");
        }
    }

    #[test]
    fn a_project_that_tries_to_widen_is_at_fault() {
        for project in [
            McpRules {
                policy: Some("full".to_owned()),
                ..McpRules::default()
            },
            McpRules {
                approval_timeout_s: Some(3_600),
                ..McpRules::default()
            },
            McpRules {
                loop_right: Some("control".to_owned()),
                ..McpRules::default()
            },
            McpRules {
                deny_tools: vec!["frobnicate".to_owned()],
                ..McpRules::default()
            },
            McpRules {
                deny_paths: vec!["secrets/[".to_owned()],
                ..McpRules::default()
            },
        ] {
            let fault = Rules::of(&arguments(None), &McpConfig::default(), &project).err();
            assert_eq!(fault.unwrap().exit.code(), 2, "{project:?}");
        }
    }
}
