//! The tools: what each is called, what it may do, what it takes and gives. The list has the order of the specification
//! and depends on policy and toolsets only; schemas are made of the types at test time.

mod actors;
mod agents;
mod changes;
mod classes;
mod docs;
mod editing;
mod evaluation;
mod loops;
mod parts;
#[cfg(test)]
mod rows;
mod server;
mod table;
mod testing;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use beamtalk_wire::Operation;
use serde_json::{Map, Value, json};

use crate::capabilities::{Client, Era};
use crate::confirmation::Effect;
use crate::host::{Asked, Host, HostError, failure};
use crate::progress::Progress;
use crate::session::Session;
use crate::settings::{LoopRight, NarrowedBy, Settings, Toolset, Way};
pub(crate) use actors::{actor_place, actor_value};
pub(crate) use agents::flushed;
pub(crate) use changes::{change_values, pending_diff, require_node};
pub(crate) use classes::{class_source, head_source, method};
pub(crate) use evaluation::{last_lines, newest};
pub(crate) use table::{Class, TOOLS, Tool};

/// Sessions of agents that are started in so much time.
const SESSIONS: usize = 10;
/// What a session says of itself and to others, which no policy of its door takes from it.
const OWN: [&str; 3] = ["set_state", "send_message", "check_inbox"];
const SESSIONS_TIME: std::time::Duration = std::time::Duration::from_mins(1);

/// Input and output schema of each tool, made of the types, as text: as values they would be a megabyte that is rarely
/// needed.
static SCHEMAS: LazyLock<BTreeMap<&str, (&str, &str)>> = LazyLock::new(|| {
    // Only the names of tools stand so far to the left.
    let tools = PUBLISHED.split("\n  \"").skip(1);
    let one = |text: &'static str| {
        let (name, schemas) = text.split_once("\": {\n    \"input\": ")?;
        let (input, output) = schemas.split_once(",\n    \"output\": ")?;
        let (output, _) = output.rsplit_once("\n  }")?;
        Some((name, (input, output)))
    };
    tools.filter_map(one).collect()
});
const PUBLISHED: &str = include_str!("../schema/tools.json");

/// Whether the paths in the arguments of a tool that does something are open to it: what each tool looks at itself, before
/// anybody is asked whether it may.
pub(crate) async fn check_paths<H: Host>(
    context: &Context<'_, H>,
    tool: &str,
    given: &Map<String, Value>,
) -> Result<(), HostError> {
    let text = |name: &str| given.get(name).and_then(Value::as_str);
    match tool {
        "load_file" | "load_project" => text("path").map(|path| context.host.source(path)).transpose()?,
        "save_class" | "export_traces" => text("path").map(|path| context.host.inside(path)).transpose()?,
        "flush" | "test" => text("file").map(|file| context.host.inside(file)).transpose()?,
        "create_session" | "spawn_agent" => Some(agents::directory_of_new(context, text("cwd")).await?),
        "write_file" => {
            let (path, text) = (text("path").unwrap_or_default(), text("text").unwrap_or_default());
            agents::checked_deed(context, path, text).await?;
            None
        }
        _ => None,
    };
    Ok(())
}

/// The names of all tools.
pub fn names() -> impl Iterator<Item = &'static str> {
    TOOLS.iter().map(|tool| tool.name)
}

fn schema(of: impl FnOnce((&'static str, &'static str)) -> &'static str, tool: &str) -> Value {
    let text = SCHEMAS.get(tool).copied().map(of).unwrap_or_default();
    serde_json::from_str(text).unwrap_or_default()
}

/// What a tool takes.
pub(crate) fn input_schema(tool: &str) -> Value {
    schema(|(input, _)| input, tool)
}

thread_local! {
    /// What the tools take that were called.
    static CALLED: RefCell<HashMap<&'static str, Value>> = RefCell::default();
}

/// Look at what a tool takes, which is read once.
pub(crate) fn with_input_schema<T>(tool: &'static str, look: impl FnOnce(&Value) -> T) -> T {
    CALLED.with_borrow_mut(|known| look(known.entry(tool).or_insert_with(|| input_schema(tool))))
}

/// What a tool gives.
pub(crate) fn output_schema(tool: &str) -> Value {
    schema(|(_, output)| output, tool)
}

/// Why a tool gave no result.
pub(crate) enum Failure {
    /// Something the model can act on.
    Error(HostError),
    /// The person has to say yes first.
    Ask(Effect),
    /// It is held until a person answers.
    Hold(Effect),
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Self {
        Self::Error(error)
    }
}

/// Arguments of which exactly one is given.
fn one_of(given: &[(&str, bool)]) -> Result<(), HostError> {
    if given.iter().filter(|(_, is_given)| *is_given).count() == 1 {
        return Ok(());
    }
    let names: Vec<&str> = given.iter().map(|(name, _)| *name).collect();
    let quoted: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
    let first = names.first().copied().unwrap_or_default();
    let error = failure(
        "invalid_parameter",
        format!("give either {}", quoted.join(" or ")),
    )
    .detail("path", format!("/{first}"))
    .detail("expected", format!("one of {}", names.join(", ")));
    Err(Box::new(error))
}

/// One call of a tool: for whom, and what is known of them.
pub(crate) struct Context<'a, H> {
    pub(crate) host: &'a H,
    pub(crate) settings: &'a Settings,
    pub(crate) era: Era,
    pub(crate) client: &'a Client,
    /// The variables of an old client's connection.
    pub(crate) own_handle: &'a tokio::sync::Mutex<Option<String>>,
    /// What a person has said yes to.
    pub(crate) approved: Option<Effect>,
    /// The effect of what was held and let go on.
    pub(crate) granted: Option<Effect>,
    /// Whether it is held before it loses something.
    pub(crate) is_held: bool,
    pub(crate) progress: &'a Progress,
    /// When sessions of agents were started.
    pub(crate) started: &'a std::cell::RefCell<Vec<std::time::Instant>>,
    /// The results of the last tests, whole.
    pub(crate) last_tests: &'a std::cell::RefCell<Option<Value>>,
}

impl<'a, H: Host> Context<'a, H> {
    /// Of a call that nobody was asked about.
    pub(crate) fn of(session: &'a Session<H>, era: Era, client: &'a Client, progress: &'a Progress) -> Self {
        Self {
            host: &*session.host,
            settings: &session.settings,
            era,
            client,
            own_handle: &session.own_handle,
            approved: None,
            granted: None,
            is_held: false,
            progress,
            started: &session.common.started,
            last_tests: &session.common.last_tests,
        }
    }

    pub(crate) async fn ask<O: Operation>(&self, request: &O) -> Result<Asked<O::Answer>, HostError> {
        self.host.ask(request).await
    }

    /// Go on only with a yes to exactly this effect.
    pub(crate) fn confirm(&self, confirm: Option<bool>, effect: Effect) -> Result<(), Failure> {
        if self.approved.as_ref() == Some(&effect) || (!self.client.can_be_asked && confirm == Some(true)) {
            return self.held(effect);
        }
        if self.client.can_be_asked {
            return Err(Failure::Ask(effect));
        }
        let error = failure("confirmation_needed", effect.summary.clone())
            .hint("ask the person; if they agree, call again with the confirming argument set to true")
            .detail("would", effect.to_json());
        Err(Failure::Error(Box::new(error)))
    }

    /// Go on only if a person let go on what is held, with exactly this effect.
    pub(crate) fn held(&self, effect: Effect) -> Result<(), Failure> {
        if !self.is_held || self.granted.as_ref() == Some(&effect) {
            return Ok(());
        }
        Err(Failure::Hold(effect))
    }

    /// So many sessions more are not started faster than so many a minute.
    pub(crate) fn pace_sessions(&self, more: usize) -> Result<(), HostError> {
        let mut started = self.started.borrow_mut();
        let now = std::time::Instant::now();
        started.retain(|at| now.duration_since(*at) < SESSIONS_TIME);
        if started.len() + more > SESSIONS && more > 0 {
            let oldest = started.first().copied().unwrap_or(now);
            let wait = SESSIONS_TIME.saturating_sub(now.duration_since(oldest));
            let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            let error = failure(
                "rate_limited",
                format!("{SESSIONS} sessions a minute are started"),
            )
            .detail("retry_after_ms", wait);
            return Err(Box::new(error.hint(format!("try again in {wait} ms"))));
        }
        started.extend(std::iter::repeat_n(now, more));
        Ok(())
    }

    pub(crate) fn loop_right(&self, needed: LoopRight) -> Result<(), HostError> {
        if self.settings.loop_right >= needed {
            return Ok(());
        }
        let message = format!("this needs the right '{needed}' on the loop");
        let error = failure("loop_forbidden", message)
            .hint("the user gives it in config.toml: [mcp] loop")
            .detail("right", self.settings.loop_right.name());
        Err(Box::new(error))
    }
}

/// What a call does.
pub(crate) struct Deeds {
    pub(crate) class: Class,
    /// It is the affair of the session whose client calls.
    pub(crate) is_own: bool,
    /// How often it loses something.
    pub(crate) losses: usize,
    /// The tools that do the same.
    pub(crate) others: Vec<&'static Tool>,
}

impl Tool {
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        TOOLS.iter().find(|tool| tool.name == name)
    }

    /// Whether a client sees the tool under these settings.
    pub(crate) fn is_listed(&self, settings: &Settings) -> bool {
        let is_in = |sets: &Vec<Toolset>| {
            sets.iter()
                .any(|set| *set == self.set || (*set == Toolset::Lean && self.is_lean))
        };
        is_in(&settings.toolsets)
            && settings.within.as_ref().is_none_or(is_in)
            && self.is_allowed(settings)
            && !self.is_denied(settings)
    }

    pub(crate) fn is_allowed(&self, settings: &Settings) -> bool {
        settings.policy >= self.class.policy() || (settings.way == Way::Door && OWN.contains(&self.name))
    }

    /// What one call of it does: itself, and what its arguments make of it.
    pub(crate) fn deeds(&self, given: &Map<String, Value>, own: Option<&str>) -> Deeds {
        let mut deeds = Deeds {
            class: self.class,
            is_own: own.is_some() && OWN.contains(&self.name),
            losses: usize::from(self.class == Class::Destroy),
            others: Vec::new(),
        };
        let text = |name: &str| given.get(name).and_then(Value::as_str).unwrap_or_default();
        match self.name {
            "flush" if given.get("confirm_destructive") == Some(&Value::Bool(true)) => {
                deeds.class = Class::Destroy;
                deeds.losses = 1;
            }
            "write_file" => {
                if let Ok(deed) = agents::deed(text("path"), text("text"), own) {
                    deeds.others = deed.tools.iter().filter_map(|name| Self::find(name)).collect();
                    deeds.losses = deed.losses;
                    deeds.is_own = deed.is_own;
                    if deed.losses > 0 {
                        deeds.class = Class::Destroy;
                    }
                }
            }
            _ => {}
        }
        deeds
    }

    /// Whether it may become a task.
    pub(crate) fn is_long(&self) -> bool {
        matches!(
            self.name,
            "evaluate"
                | "lint"
                | "diagnostic_summary"
                | "load_project"
                | "recheck_image"
                | "test"
                | "run_workflow"
                | "prompt_session"
                | "execute_code"
                | "ask_person"
        )
    }

    /// Whether long work of it is nothing without a workspace.
    pub(crate) fn needs_workspace(&self) -> bool {
        !matches!(
            self.name,
            "lint" | "diagnostic_summary" | "prompt_session" | "execute_code"
        )
    }

    pub(crate) fn is_denied(&self, settings: &Settings) -> bool {
        settings.deny_tools.iter().any(|name| name == self.name)
    }

    pub(crate) fn denied_by(&self, settings: &Settings) -> NarrowedBy {
        let mut of_project = settings.denied_by_project.iter();
        if of_project.any(|name| name == self.name) {
            NarrowedBy::Project
        } else {
            NarrowedBy::User
        }
    }

    fn describe(&self, settings: &Settings) -> Value {
        let hint = |place: usize| {
            let letter = self.hints.as_bytes().get(place);
            letter.is_some_and(u8::is_ascii_uppercase)
        };
        let idle = settings.session_idle.as_secs();
        let idle = match idle % 60 {
            0 => format!("{} min", idle / 60),
            _ => format!("{idle} s"),
        };
        let description = self.description.replace("{idle}", &idle);
        let mut meta = json!({"beamtalk/class": self.class.name()});
        if let Some(view) = crate::views::of_tool(self.name, self.class == Class::Read) {
            meta["ui"] = view;
        }
        json!({
            "name": self.name,
            "title": self.title,
            "description": description,
            "inputSchema": input_schema(self.name),
            "outputSchema": output_schema(self.name),
            "annotations": {
                "title": self.title,
                "readOnlyHint": hint(0),
                "destructiveHint": hint(1),
                "idempotentHint": hint(2),
                "openWorldHint": hint(3),
            },
            "_meta": meta,
        })
    }
}

/// The list a client gets under these settings.
pub fn listing(settings: &Settings) -> Vec<Value> {
    TOOLS
        .iter()
        .filter(|tool| tool.is_listed(settings))
        .map(|tool| tool.describe(settings))
        .collect()
}

/// Declares which function does the work of which tool, with what it takes and gives.
macro_rules! tools {
    ($($name:literal $module:ident $function:ident $input:ident $output:ident;)*) => {
        /// Call a tool whose arguments fit its schema.
        pub(crate) async fn call<H: Host>(
            name: &str,
            context: &Context<'_, H>,
            arguments: &Map<String, Value>,
        ) -> Result<Map<String, Value>, Failure> {
            match name {
                $($name => {
                    let input: $module::$input = read(arguments)?;
                    // Apart from the others: the way of a call is as small as what it calls.
                    let output: $module::$output = Box::pin($module::$function(context, input)).await?;
                    Ok(beamtalk_wire::object(&output))
                })*
                _ => Err(failure("internal_error", format!("nothing does the work of '{name}'")).into()),
            }
        }

        /// Do something for the types of every tool.
        #[cfg(feature = "schema")]
        pub(crate) fn each_tool(visitor: &mut impl crate::schema::Visitor) {
            $(visitor.tool::<$module::$input, $module::$output>($name);)*
        }
    };
}

tools! {
    "evaluate" evaluation evaluate Evaluate Evaluated;
    "close_session" evaluation close_session CloseSession Closed;
    "bindings" evaluation bindings Bindings Bound;
    "interrupt" evaluation interrupt Interrupt Interrupted;
    "complete" evaluation complete Complete Completed;
    "check_code" evaluation check_code CheckCode Checked;
    "docs" docs docs Docs Documented;
    "search_docs" docs search_docs SearchDocs Found;
    "search_examples" docs search_examples Search Found;
    "search_classes" docs search_classes Search Found;
    "list_classes" classes list_classes ListClasses ClassList;
    "read_source" classes read_source ReadSource Source;
    "find_code" classes find_code FindCode Sites;
    "list_packages" classes list_packages Nothing Packages;
    "package_classes" classes package_classes OfPackage ClassList;
    "list_actors" actors list_actors ListActors ActorList;
    "inspect" actors inspect Inspect Inspected;
    "supervision_tree" actors supervision_tree SupervisionTree Tree;
    "show_codegen" evaluation show_codegen ShowCodegen Code;
    "read_transcript" evaluation read_transcript ReadTranscript TranscriptText;
    "describe" server describe Describe Description;
    "lint" server lint Lint Linted;
    "diagnostic_summary" server diagnostic_summary Lint Summary;
    "load_file" editing load_file LoadFile Loaded;
    "load_project" editing load_project LoadProject Loaded;
    "reload_class" editing reload_class ReloadClass Reloaded;
    "unload" editing unload Unload Unloaded;
    "kill_actor" actors kill_actor KillActor Killed;
    "precheck_method" editing precheck_method Method Prechecked;
    "try_method" editing try_method Method Saved;
    "save_method" editing save_method Method Saved;
    "save_class" editing save_class SaveClass SavedClass;
    "remove_method" editing remove_method RemoveMethod Removed;
    "remove_class" editing remove_class RemoveClass RemovedClass;
    "list_changes" changes list_changes ListChanges ChangeList;
    "dirty_methods" changes dirty_methods Nothing Dirty;
    "diff_change" changes diff_change DiffChange Diff;
    "flush" changes flush Flush Flushed;
    "revert_change" changes revert_change RevertChange Reverted;
    "resolve_conflict" changes resolve_conflict ResolveConflict Resolved;
    "recheck_image" changes recheck_image Nothing Rechecked;
    "list_tests" testing list_tests Nothing TestList;
    "test" testing test Test Tests;
    "enable_tracing" testing enable_tracing Nothing Tracing;
    "disable_tracing" testing disable_tracing Nothing Tracing;
    "get_traces" testing get_traces GetTraces Traces;
    "actor_stats" testing actor_stats ActorStats Stats;
    "export_traces" testing export_traces ExportTraces Exported;
    "loop_status" loops loop_status Nothing LoopStatus;
    "loop_graph" loops loop_graph Nothing LoopGraph;
    "loop_state" loops loop_state LoopState LoopStates;
    "loop_output" loops loop_output LoopOutput LoopText;
    "post_event" loops post_event PostEvent Posted;
    "run_workflow" loops run_workflow RunWorkflow Ran;
    "control_process" loops control_process ControlProcess Controlled;
    "list_sessions" agents list_sessions ListSessions Sessions;
    "create_session" agents create_session CreateSession Record;
    "spawn_agent" agents spawn_agent SpawnAgent Record;
    "control_session" agents control_session ControlSession SessionState;
    "kill_agent" agents kill_agent KillAgent KilledAgent;
    "prompt_session" agents prompt_session PromptSession Prompted;
    "read_output" agents read_output ReadOutput SessionOutput;
    "session_diff" agents session_diff OfSession SessionDiff;
    "set_state" agents set_state SetState SessionState;
    "send_message" agents send_message SendMessage Sent;
    "check_inbox" agents check_inbox CheckInbox Inbox;
    "mail_history" agents mail_history MailHistory Messages;
    "mail_search" agents mail_history MailHistory Messages;
    "list_roles" agents list_roles Nothing Items;
    "list_skills" agents list_skills Nothing Items;
    "discover_skill" agents discover_skill Keyword Items;
    "load_skill" agents load_skill SkillName Text;
    "list_files" agents list_files TreePath Names;
    "read_file" agents read_file TreePath Text;
    "write_file" agents write_file WriteFile Written;
    "execute_code" agents execute_code ExecuteCode Executed;
    "list_approvals" agents list_approvals Nothing HeldCalls;
    "ask_person" agents ask_person AskPerson PersonSaid;
}

fn read<'a, T: serde::Deserialize<'a>>(arguments: &'a Map<String, Value>) -> Result<T, HostError> {
    T::deserialize(arguments).map_err(|cause| {
        failure(
            "invalid_parameter",
            format!("the arguments cannot be read: {cause}"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Policy;

    fn settings(toolsets: &str, policy: Policy) -> Settings {
        Settings {
            toolsets: Settings::parse_toolsets(toolsets).expect("toolsets"),
            policy,
            ..Settings::default()
        }
    }

    #[test]
    fn every_tool_has_schemas_and_texts_within_their_limits() {
        for tool in TOOLS {
            let schema = [
                ("input", input_schema(tool.name)),
                ("output", output_schema(tool.name)),
            ];
            for (_, side) in &schema {
                assert_eq!(side["additionalProperties"], false, "{}", tool.name);
                assert_eq!(side["type"], "object", "{}", tool.name);
            }
            assert!(schema[1].1["properties"].is_object(), "{}", tool.name);
            assert!(tool.description.len() <= 700, "{}", tool.name);
            assert!(tool.hints.len() == 4, "{}", tool.name);
            for (side, schema) in &schema {
                each_property(schema, &mut |name, property| {
                    let about = property["description"].as_str().unwrap_or_default();
                    let place = format!("{} {side} {name}", tool.name);
                    assert!(!about.is_empty() && about.len() <= 160, "{place}");
                    // Only the value of an evaluation may be of any type.
                    assert!(
                        property["type"].is_string() || place == "evaluate output value",
                        "{place}"
                    );
                    let items = &property["items"];
                    assert!(items.is_null() || items["type"].is_string(), "{place}");
                });
            }
        }
        for word in ["\"format\"", "$ref", "anyOf", "\"null\""] {
            assert!(!PUBLISHED.contains(word), "{word}");
        }
    }

    /// All properties, however deep they stand.
    fn each_property(schema: &Value, look: &mut impl FnMut(&str, &Value)) {
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            look(name, property);
            each_property(property, look);
        }
        for inner in ["items", "additionalProperties"] {
            if schema[inner].is_object() {
                each_property(&schema[inner], look);
            }
        }
    }

    #[test]
    fn lists_stay_within_their_limits() {
        let seen = |tools: &[Value]| -> usize {
            let size = |tool: &Value| {
                tool["name"].to_string().len()
                    + tool["description"].to_string().len()
                    + tool["inputSchema"].to_string().len()
            };
            tools.iter().map(size).sum()
        };
        let narrowed = Settings {
            within: Some(vec![Toolset::Test]),
            ..settings("lean", Policy::Full)
        };
        assert_eq!(listing(&narrowed).len(), 1, "a project narrows to what both name");
        let lean = listing(&settings("lean", Policy::Full));
        assert_eq!(lean.len(), 20);
        assert!(seen(&lean) <= 20 * 1024, "{}", seen(&lean));
        let all = listing(&settings("all", Policy::Full));
        assert!(Value::Array(all.clone()).to_string().len() <= 128 * 1024);
        assert_eq!(all.len(), TOOLS.len());
    }

    /// What a client of the usual tools is sent to is there, or its toolset is named.
    #[test]
    fn descriptions_of_lean_tools_lead_to_lean_tools() {
        let is_part = |letter: char| letter.is_ascii_lowercase() || letter == '_';
        for tool in TOOLS.iter().filter(|tool| tool.is_lean) {
            let text = tool.description;
            for (start, word) in text
                .split(|letter| !is_part(letter))
                .filter(|word| word.contains('_'))
                .filter_map(|word| Some((text.find(word)?, word)))
            {
                let rest = &text[start + word.len()..];
                let is_told = rest.starts_with(" (toolset ");
                let is_there = Tool::find(word).is_none_or(|named| named.is_lean);
                assert!(is_there || is_told, "{} sends to {word}", tool.name);
            }
        }
    }

    #[test]
    fn a_policy_hides_what_it_forbids() {
        let names = |policy: Policy| -> Vec<String> {
            let tools = listing(&settings("all", policy));
            tools
                .iter()
                .filter_map(|tool| tool["name"].as_str().map(str::to_owned))
                .collect()
        };
        let (read, edit) = (names(Policy::ReadOnly), names(Policy::Edit));
        assert!(!read.contains(&"evaluate".to_owned()) && read.contains(&"docs".to_owned()));
        assert!(edit.contains(&"evaluate".to_owned()) && !edit.contains(&"remove_class".to_owned()));
        for tool in TOOLS {
            let is_read = tool.class == Class::Read;
            assert_eq!(tool.hints.starts_with('R'), is_read, "{}", tool.name);
            assert_eq!(read.contains(&tool.name.to_owned()), is_read, "{}", tool.name);
        }
    }
}
