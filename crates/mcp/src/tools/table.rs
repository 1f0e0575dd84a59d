//! The table of tools: name, title, class, hints, toolset, description.

use crate::settings::{Policy, Toolset};

/// What a tool may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Read,
    Execute,
    /// Loses something that is not easily had again.
    Destroy,
}

impl Class {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Read => "R",
            Self::Execute => "X",
            Self::Destroy => "XD",
        }
    }

    /// The narrowest policy that allows it.
    pub(crate) fn policy(self) -> Policy {
        match self {
            Self::Read => Policy::ReadOnly,
            Self::Execute => Policy::Edit,
            Self::Destroy => Policy::Full,
        }
    }
}

pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) class: Class,
    /// Read-only, destructive, idempotent, open world: a capital is a yes.
    pub(crate) hints: &'static str,
    pub(crate) set: Toolset,
    pub(crate) is_lean: bool,
    pub(crate) description: &'static str,
}

macro_rules! table {
    ($($name:literal $title:literal $class:ident $hints:literal $set:ident $lean:literal $description:literal;)*) => {
        /// In the order of the specification.
        pub(crate) const TOOLS: &[Tool] = &[$(Tool {
            name: $name,
            title: $title,
            class: Class::$class,
            hints: $hints,
            set: Toolset::$set,
            is_lean: $lean,
            description: $description,
        },)*];
    };
}

table! {
    // Ask and evaluate.
    "evaluate" "Evaluate code" Execute "rDiO" Core true
        "Run Beamtalk code in the live workspace and answer its last value, what it printed, and its class. It runs with the user's rights: it can do whatever any other tool can, and paths in it are not checked. Variables: without `session` they are forgotten afterwards; `session: \"new\"` keeps them and answers a handle `ev_…` to pass next time. A handle ends after {idle} without use, 24 h, or when the node restarts. Classes and actors are shared by all and stay. To change code for good use save_method or save_class, then flush. A class definition replaces the whole class: start from read_source.";
    "close_session" "Close a session" Execute "rdIo" Core false
        "Forget the variables of a handle `ev_…`. Actors it started live on.";
    "bindings" "List variables" Read "RdIo" Core false
        "The variables of a handle with their printed values and classes; without `session` those of the workspace.";
    "interrupt" "Stop evaluations" Execute "rdIo" Core true
        "Stop the evaluation that runs in a handle; without `session` all evaluations of yours. They answer with kind `interrupted`; variables are as before.";
    "complete" "Complete code" Read "RdIo" Core false
        "What may stand at the cursor in a piece of code: messages, classes, variables. Nothing is evaluated.";
    "check_code" "Check code" Read "RdIo" Core true
        "Compile code for checking only and answer findings with line and column. Nothing runs, nothing is installed. Use it before saving. `mode`: `expression` (default), `method` (one method of a class) or `class` (a whole definition).";
    "docs" "Read documentation" Read "RdIo" Core true
        "Documentation of a class (`class`), of one of its methods (`class` and `selector`) or of an Erlang module (`erlang_module`), as Markdown. Works for the standard library without a workspace. To find a name first use search_docs.";
    "search_docs" "Search documentation" Read "RdIo" Core true
        "Search the built-in guide, the standard library and error codes. Start here when you do not know Beamtalk: query `language`, `actors`, `testing`. A hit's `uri` can be read as a resource; a class also with docs. Needs no workspace.";
    "search_examples" "Search examples" Read "RdIo" Core false
        "Search code examples of the guide and the standard library. Needs no workspace.";
    "search_classes" "Search classes" Read "RdIo" Core false
        "Search classes of the standard library by words of their documentation. Needs no workspace.";
    "list_classes" "List classes" Read "RdIo" Core true
        "Classes with superclass and first line of documentation. `filter`: `user` (this project), `stdlib`, or a superclass such as `Actor`. Long lists go on with `next_cursor`.";
    "read_source" "Read source" Read "RdIo" Core true
        "Source of a class, or of one method, as it runs now in the workspace. `disk_differs` says that its file has something else. Use the text as the base for save_method.";
    "find_code" "Find senders and implementors" Read "RdIo" Core true
        "Where a selector is sent (`senders`) or defined (`implementors`), or where a class is used (`references`). Sites have class, method, file and line; read one with read_source.";
    "list_packages" "List packages" Read "RdIo" Core false
        "The packages of the project: itself, its dependencies and the standard library, with version and source. Needs no workspace.";
    "package_classes" "List a package's classes" Read "RdIo" Core false
        "The classes of a package's files with superclass and first line of documentation. Needs no workspace.";
    "list_actors" "List actors" Read "RdIo" Core true
        "Living actors with pid, class and registered name. Look into one with inspect.";
    "inspect" "Inspect an object" Read "RdIo" Core true
        "Look into an actor (`actor`: a pid such as `<0.187.0>` or a registered name) or a variable (`binding` with `session`). `path` goes deeper into fields that are `drillable`. Runs no code of the object.";
    "supervision_tree" "Show supervisors" Read "RdIo" Core true
        "Supervisors and the processes they supervise, each with its parent. `scope: \"system\"` shows the runtime's own too.";
    "show_codegen" "Show generated code" Read "RdIo" Core false
        "The Erlang that the compiler makes of code, or of a class or method.";
    "read_transcript" "Read the Transcript" Read "RdIo" Core false
        "The last lines that code wrote to the Transcript.";
    "describe" "Describe this server" Read "RdIo" Core true
        "What holds here: policy and who narrowed it, toolsets (and how to get more), limits, versions, whether a workspace runs and how it does.";
    "lint" "Lint files" Read "RdIo" Core false
        "Everything compiler and linter say about the project's files on disk, or one file or directory (`path`). Needs no workspace. For code in memory use check_code.";
    "diagnostic_summary" "Count findings" Read "RdIo" Core false
        "How many findings of which code the project's files have. Needs no workspace.";
    // Load and change.
    "load_file" "Load a file" Execute "rdIO" Edit false
        "Load a file of the project, or all below a directory, into the workspace. Loading runs no methods. Use it after you changed a file on disk.";
    "load_project" "Load the project" Execute "rdIO" Edit false
        "Build the project and load what changed on disk. `include_tests` loads test/ too.";
    "reload_class" "Reload a class" Execute "rdIo" Edit false
        "Load the file of a class again; its living actors follow at their next message.";
    "unload" "Unload a class" Destroy "rDIo" Edit false
        "Take a class out of memory although it has actors; they stop. Its file stays. Needs confirmation.";
    "kill_actor" "Stop an actor" Destroy "rDIo" Edit false
        "End an actor; its state is lost. `graceful: false` does not let it finish. A supervisor may start it again. Needs confirmation.";
    "precheck_method" "Check a method before saving" Read "RdIo" Edit false
        "What saving this method would say: findings in it and in the methods that send it. Nothing is installed.";
    "try_method" "Try a method" Execute "rdIo" Edit false
        "Install a method in memory only; it is never written to a file. Living actors use it at their next message.";
    "save_method" "Save a method" Execute "rdIo" Edit true
        "Add or replace a method in the live workspace. Living actors use it at their next message. It is pending until flush writes it to its file. `source` is the whole method: head, `=>` and body, without its `///` comment, which stays. `selector` as in `at:put:`. Revert with revert_change.";
    "save_class" "Define a class" Execute "rdio" Edit true
        "Define a new class from a whole class text. `path` is the file that flush will create, such as `src/Lamp.bt`; one that exists is refused (`target_exists`). For a class that exists use save_method; to change its superclass, fields or comment evaluate its whole text, that of read_source: a definition replaces all methods.";
    "remove_method" "Remove a method" Execute "rdIo" Edit false
        "Take a method out of memory; flush takes it out of its file. Revert with revert_change.";
    "remove_class" "Remove a class" Destroy "rDio" Edit false
        "Take a class out of memory; its actors stop. Its file stays until a flush with confirm_destructive. Needs confirmation.";
    "list_changes" "List changes" Read "RdIo" Edit true
        "Changes that are in memory and not in files, with number (`seq`), class, selector, author kind (`human` or `agent`) and conflicts with files. `all` shows settled ones too; `waiting` are kept for the person, who installs or drops them.";
    "dirty_methods" "List changed methods" Read "RdIo" Edit false
        "Selectors with pending changes, by class.";
    "diff_change" "Show a change" Read "RdIo" Edit true
        "Unified diff of a change (`seq`), of all pending ones of a class (`class`), or of everything pending. In a conflict also base, image and disk.";
    "flush" "Write changes to files" Execute "rdIo" Edit true
        "Write pending changes to their files: all, or of one `class`, `file`, `kind` or `author_kind`. `author_kind: \"agent\"` writes only changes made through MCP. Files changed meanwhile are merged; what cannot be is in `conflicts`: diff_change shows the sides, the person decides, or resolve_conflict (toolset edit, policy `full`). Removed classes stay in their files without confirm_destructive, which needs policy `full`.";
    "revert_change" "Revert a change" Execute "rdio" Edit true
        "Undo a change by its number (`seq` of list_changes), in memory; undoing an undo brings it back.";
    "resolve_conflict" "Resolve a conflict" Destroy "rDio" Edit false
        "Decide a conflict between memory and file: `take: \"image\"` or `\"disk\"`; the other side is lost. See diff_change first. Needs confirmation.";
    "recheck_image" "Check everything again" Read "RdIo" Edit false
        "Check all classes in memory again and answer findings.";
    // Tests and tracing.
    "list_tests" "List tests" Read "RdIo" Test false
        "Test classes that are loaded, with their methods. Load them with load_project and include_tests.";
    "test" "Run tests" Execute "rdiO" Test true
        "Run tests in the workspace: one `method` of a `class`, a `class`, a `file`, or all. Tests are loaded from test/ first. Passing ones are counted, failing ones listed with message and output.";
    "enable_tracing" "Record messages" Execute "rdIo" Test false
        "Start recording messages between actors; read them with get_traces.";
    "disable_tracing" "Stop recording" Execute "rdIo" Test false
        "Stop recording messages between actors.";
    "get_traces" "Read recorded messages" Read "RdIo" Test false
        "Recorded messages between actors, newest first, with outcome and duration.";
    "actor_stats" "Count messages" Read "RdIo" Test false
        "Recorded messages counted by actor and selector, with durations.";
    "export_traces" "Export recorded messages" Execute "rdio" Test false
        "Write recorded messages to a file of the project.";
    // The loop.
    "loop_status" "Show the loop" Read "RdIo" Loop true
        "What the development loop of the project does: processes, workflows, their last runs and causes. `loop_not_running` if there is none.";
    "loop_graph" "Show the loop's graph" Read "RdIo" Loop false
        "Who sets which workflow in motion.";
    "loop_state" "Read the loop's state" Read "RdIo" Loop false
        "Session state of the loop, one key or all. It cannot be written from here.";
    "loop_output" "Read a process's output" Read "RdIo" Loop false
        "The last lines that a process of the loop said.";
    "post_event" "Post an event" Execute "rdIO" Loop false
        "Post a value to a declared event of the loop; the loop's own checks and rates apply. Needs the right `post`.";
    "run_workflow" "Run a workflow" Execute "rDiO" Loop false
        "Run a declared workflow of the loop that the workspace hosts, when its turn comes, and wait for its end unless `wait` is false. It runs the programs the workflow names. Needs the right `control`.";
    "control_process" "Control a process" Execute "rDiO" Loop false
        "Start, stop or restart a declared process of the loop. Needs the right `control`.";
    // Agents.
    "list_sessions" "List agent sessions" Read "RdIo" Agents false
        "Sessions of agents with id, backend, state, role and directory. Needs the agents' daemon.";
    "create_session" "Start an agent session" Execute "rdiO" Agents false
        "Start a session of a backend in a directory. It runs a program with the rights of its sandbox profile.";
    "spawn_agent" "Start an agent with a role" Execute "rdiO" Agents false
        "Start a session of a backend with a role, and prompt it.";
    "control_session" "Control an agent session" Execute "rDiO" Agents false
        "Stop, restart, interrupt, refresh, clear, compact or resume a session. `clear` and `compact` change its conversation.";
    "kill_agent" "End an agent session" Destroy "rDIo" Agents false
        "End a session for good; a worktree with changes stays. Needs confirmation.";
    "prompt_session" "Prompt an agent" Execute "rdiO" Agents false
        "Hand a prompt to a session. With `wait` the answer is what it says in this turn.";
    "read_output" "Read an agent's output" Read "RdIo" Agents false
        "The last bytes of a session's output, and its state.";
    "session_diff" "Show an agent's changes" Read "RdIo" Agents false
        "The diff of a session's worktree, with its statistics.";
    "set_state" "Set the own state" Execute "rdIo" Agents false
        "Say that this session is running or idle. Only for a client that is an agent session.";
    "send_message" "Send a message" Execute "rdio" Agents false
        "Send mail to a session or to `user`.";
    "check_inbox" "Check the inbox" Execute "rdio" Agents false
        "The oldest message of the own inbox; it is put aside as handled unless `complete` is false.";
    "mail_history" "Read mail" Read "RdIo" Agents false
        "Messages of a session or of `user`, newest first.";
    "mail_search" "Search mail" Read "RdIo" Agents false
        "Messages of a session or of `user` with a text in them, newest first.";
    "list_roles" "List roles" Read "RdIo" Agents false
        "Roles that an agent can be started with.";
    "list_skills" "List skills" Read "RdIo" Agents false
        "Skills with their descriptions; read one with load_skill.";
    "discover_skill" "Find a skill" Read "RdIo" Agents false
        "Skills with a word in their name or description.";
    "load_skill" "Read a skill" Read "RdIo" Agents false
        "The text of a skill.";
    "list_files" "List files of the tree" Read "RdIo" Agents false
        "Names in a directory of the agents' file tree.";
    "read_file" "Read a file of the tree" Read "RdIo" Agents false
        "The text of a file of the agents' file tree.";
    "write_file" "Write a file of the tree" Execute "rDiO" Agents false
        "Write to a file of the agents' tree. It counts as the tool that does the same; what is no tool's work is denied.";
    "execute_code" "Run a program in a sandbox" Execute "rDiO" Agents false
        "Run a program (bash, or the `language` named) in a sandbox of its own with an empty temporary directory that is removed afterwards; answers what it printed and how it ended. Needs the agents' daemon. For Beamtalk code use evaluate.";
    "list_approvals" "List calls that wait" Read "RdIo" Agents false
        "Calls of yours that wait for a person.";
    "ask_person" "Ask the person" Execute "rdio" Agents false
        "Put a question to the person at the workspace and wait for the answer.";
}
