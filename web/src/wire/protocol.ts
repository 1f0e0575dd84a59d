// The workspace protocol. Made of the types in crates/wire by its tests; do not edit.

/**
 * What an operation may do.
 */
export type Access = "R" | "X" | "A";

export type Actor = { pid: string, class: string, module: string | null, 
/**
 * Seconds since 1970.
 */
spawned_at: number | null, name: string | null, 
/**
 * These with `stats`.
 */
queue_len?: number, memory?: number, reductions?: number, 
/**
 * What it works on.
 */
message?: string, };

/**
 * By what living actors are put in order.
 */
export type ActorOrder = "class" | "name" | "queue" | "memory" | "reductions" | "age";

/**
 * Messages counted by actor and selector.
 */
export type ActorStats = { actor?: string, };

export type ActorStatsAnswer = { stats: Array<TraceStats>, };

/**
 * Living actors: all of them, or a window with `offset` or `limit`.
 */
export type Actors = { class?: string, 
/**
 * How many to leave out.
 */
offset?: number, 
/**
 * At most 500; 50 if absent.
 */
limit?: number, sort?: ActorOrder, descending?: boolean, 
/**
 * Only those with this text in pid, class or name.
 */
find?: string, 
/**
 * With queue, memory, reductions and what they work on.
 */
stats?: boolean, };

export type ActorsAnswer = { actors: Array<Actor>, 
/**
 * Of a window: how many there are.
 */
total?: number, 
/**
 * So many of them were looked at for the order, because there are too many.
 */
sampled?: number, };

export type ActorsEvent = { "event": "spawned", "data": { pid: string, class: string, spawned_at: number, } } | { "event": "stopped", "data": { pid: string, class: string, 
/**
 * `normal`, `shutdown` or `crashed`.
 */
reason: string, } } | { "event": "dropped", "data": { count: number, } } | { "event": "gap", "data": { from: number, to: number, } };

export type Approval = { id: string, 
/**
 * Who asks: `owner`, `token:NAME`, `session:ID`.
 */
who: string, tool: string, summary: string, text: string, 
/**
 * Over everything that is shown.
 */
sha256: string, 
/**
 * Unix seconds.
 */
asked: number, expires: number, 
/**
 * Whether `always` is possible.
 */
may_be_rule: boolean, effect?: string, diff?: string, };

/**
 * Answer for a person.
 */
export type ApprovalAnswer = { 
/**
 * The call that waits, or a rule.
 */
for: string, 
/**
 * `approve`, `always`, `reject`, `text`, or `forget` for a rule.
 */
answer: string, 
/**
 * A reason, or the answer to a question.
 */
text?: string, 
/**
 * Of what was shown; without it nothing is approved.
 */
sha256?: string, };

/**
 * Hold a call until a person answers. The answer comes when they have, or when their time is over.
 */
export type ApprovalAsk = { tool: string, summary: string, 
/**
 * The arguments as text.
 */
text: string, 
/**
 * What it would do, as JSON.
 */
effect?: string, diff?: string, 
/**
 * How long they may take.
 */
timeout_s?: number, 
/**
 * Whether the very same call may be approved always.
 */
may_be_rule?: boolean, };

export type ApprovalAskAnswer = { 
/**
 * Its name.
 */
approval: string, 
/**
 * `approve`, `reject`, `no answer`, or the answer to a question.
 */
answer: string, text?: string, };

export type ApprovalRule = { id: string, tool: string, text: string, };

/**
 * The calls that wait for a person: all for the owner at a terminal or page, one's own otherwise.
 */
export type Approvals = { 
/**
 * Rules of `approve always` instead.
 */
rules?: boolean, };

export type ApprovalsAnswer = { approvals: Array<Approval>, rules: Array<ApprovalRule>, };

/**
 * A cue to ask again.
 */
export type ApprovalsEvent = { "event": "changed", "data": { count: number, } } | { "event": "dropped", "data": { count: number, } } | { "event": "gap", "data": { from: number, to: number, } };

export type AuditEvent = { "event": "record", "data": { record: { [key in string]: JsonValue }, } } | { "event": "dropped", "data": { count: number, } } | { "event": "gap", "data": { from: number, to: number, } };

export type AuditState = { ok: boolean, 
/**
 * The number of the last record; 0 before the first.
 */
seq: number, 
/**
 * Records that could not be written and are not yet confessed in the trail.
 */
lost: number, text: boolean, required: boolean, error?: string, };

/**
 * One's own calls through MCP in the last day, counted by tool and outcome.
 */
export type AuditSummary = Record<symbol, never>;

export type AuditSummaryAnswer = { counts: Array<ToolCount>, };

/**
 * Records of the audit trail, the newest last.
 */
export type AuditTrail = { 
/**
 * Only records with a smaller number.
 */
before?: number, 
/**
 * At most 1,000; 200 if absent.
 */
limit?: number, 
/**
 * Only of these types.
 */
type?: Array<string>, 
/**
 * Only of this session.
 */
of_session?: string, };

export type AuditTrailAnswer = { 
/**
 * As they stand in the trail.
 */
records: Array<{ [key in string]: JsonValue }>, 
/**
 * The numbers of the oldest and the newest record there is; 0 when there is none.
 */
first: number, last: number, 
/**
 * Numbers before which some are missing.
 */
gaps: Array<number>, };

export type AuthorKind = "human" | "agent";

/**
 * Whether changes are written to their files at once.
 */
export type Autoflush = { 
/**
 * Switches it.
 */
on?: boolean, };

export type AutoflushAnswer = { on: boolean, };

/**
 * For whom a name is bound.
 */
export type BindingScope = "session" | "workspace" | "global" | "all";

/**
 * The variables of a session.
 */
export type Bindings = { 
/**
 * With text and class; so if absent.
 */
values?: boolean, handle?: string, 
/**
 * Whose names; each is answered with its own scope then.
 */
scope?: BindingScope, };

export type BindingsAnswer = { bindings: { [key in string]: BoundValue }, };

/**
 * A cue to ask again.
 */
export type BindingsEvent = { "event": "changed", "data": { session: string, } } | { "event": "dropped", "data": { count: number, } } | { "event": "gap", "data": { from: number, to: number, } };

/**
 * Empty when values were not asked for.
 */
export type BoundValue = { text?: string, class?: string, 
/**
 * `session`, `workspace` or `global`; when it was asked for.
 */
scope?: string, };

/**
 * Everything of a class that is text: its head, its own methods, where it comes from.
 */
export type BrowseClass = { class: string, };

export type BrowseClassAnswer = { definition: string, superclass: string | null, comment: string | null, 
/**
 * `value`, `actor` or another kind of object.
 */
kind: string, package: string | null, source_file: string | null, 
/**
 * In its file.
 */
line: number | null, methods: Array<MethodText>, 
/**
 * A flush can write it to its file.
 */
flushable?: boolean, };

/**
 * The head of a class, with its state.
 */
export type BrowseClassDefinition = { class: string, };

export type BrowseClassDefinitionAnswer = { definition: string, state: Array<StateField>, comment: string | null, origin: string, disk_differs: boolean | null, };

/**
 * All classes, as a browser shows them.
 */
export type BrowseClasses = Record<symbol, never>;

export type BrowseClassesAnswer = { rows: Array<ClassRow>, };

/**
 * The source of a method.
 */
export type BrowseMethodSource = { class: string, selector: string, 
/**
 * `instance` if absent.
 */
side?: Side, };

export type BrowseMethodSourceAnswer = { source: string | null, doc: string | null, signature: string | null, source_status: string, origin: string, 
/**
 * `null` without a file.
 */
disk_differs: boolean | null, };

/**
 * The Erlang behind a class.
 */
export type BrowseNativeSource = { class: string, };

export type BrowseNativeSourceAnswer = { module: string, source: string, 
/**
 * Functions and the lines of their clauses.
 */
clauses: Array<NativeClause>, };

/**
 * The selectors of one side of a class, by protocol.
 */
export type BrowseProtocols = { class: string, 
/**
 * `instance` if absent.
 */
side?: Side, };

export type BrowseProtocolsAnswer = { protocols: Array<Protocol>, };

/**
 * End a question of this connection that is not answered yet. It is answered with `interrupted`.
 */
export type Cancel = { 
/**
 * Its `id`.
 */
for: string, };

export type Capabilities = { subprocess: boolean, ffi: boolean, http: boolean, fs: FileAccess, };

/**
 * What was changed. `Instance` and `Class` are methods that were added or replaced on that side.
 */
export type ChangeKind = "instance" | "class" | "new-class" | "remove-method" | "remove-class" | "unknown";

/**
 * Base, image and disk: exactly one of `seq`, `file`, `class`.
 */
export type ChangeSides = { seq?: number, file?: string, class?: string, selector?: string, side?: Side, };

export type ChangeSidesAnswer = { file: string | null, base: string | null, image: string | null, disk: string | null, disk_sha256: string | null, places: Array<Place>, };

/**
 * Pending changes, those that wait, and conflicts.
 */
export type Changes = { 
/**
 * Settled ones, too.
 */
all?: boolean, 
/**
 * Also the files that changed on disk.
 */
disk?: boolean, };

export type ChangesAnswer = { entries: Array<EntryView>, waiting: Array<EntryView>, conflicts: Array<Conflict>, 
/**
 * Files that are not what was loaded; with `disk`.
 */
disk_changed?: Array<string>, 
/**
 * Whether changes are written to their files at once.
 */
autoflush?: boolean, };

export type ChangesEvent = { "event": "added", "data": { seq: number, class: string, selector: string | null, file: string | null, author: string, } } | { "event": "retired", "data": { seq: number, class: string, selector: string | null, file: string | null, } } | { "event": "conflict", "data": { file: string, reason: string, seqs: Array<number>, } } | { "event": "dropped", "data": { count: number, } } | { "event": "gap", "data": { from: number, to: number, } };

export type Channel = "transcript" | "actors" | "classes" | "bindings" | "supervision" | "object" | "reload_check" | "workspace" | "logs" | "changes" | "tests" | "desk" | "audit" | "approvals";

export type ChannelsAnswer = { 
/**
 * All that are active now.
 */
channels: Array<Channel>, };

/**
 * What a text is, for checking.
 */
export type CheckMode = "expression" | "method" | "class";

export type ClassCount = { class: string, count: number, };

export type ClassInfo = { found: boolean, symbol: string, 
/**
 * `class`.
 */
kind: string, superclass: string | null, superclass_chain: Array<string>, methods: Array<string>, class_methods: Array<string>, slots: Array<string>, class_slots: Array<string>, source: string | null, package: string | null, line: number | null, doc: string | null, };

export type ClassRow = { name: string, superclass: string | null, category: string | null, comment: string | null, sealed: boolean, abstract: boolean, internal: boolean, source_file: string | null, 
/**
 * `both`, `static` or `runtime`.
 */
origin: string, is_test: boolean, is_protocol: boolean, };

export type ClassSummary = { name: string, superclass: string | null, doc: string | null, sealed: boolean, abstract: boolean, };

export type ClassesEvent = { "event": "loaded", "data": { class: string, source_file: string | null, } } | { "event": "changed", "data": { class: string, source_file: string | null, } } | { "event": "removed", "data": { class: string, source_file: string | null, } } | { "event": "dropped", "data": { count: number, } } | { "event": "gap", "data": { from: number, to: number, } };

/**
 * Forget the variables of one's own session.
 */
export type Clear = Record<symbol, never>;

/**
 * Forget all pending changes; the image keeps the code.
 */
export type ClearChanges = Record<symbol, never>;

export type ClearChangesAnswer = { cleared: number, };

/**
 * Forget what was recorded.
 */
export type ClearTraces = Record<symbol, never>;

/**
 * Make a session with a copy of the variables.
 */
export type Clone = Record<symbol, never>;

export type CloneAnswer = { 
/**
 * The new one.
 */
session: string, };

/**
 * End the session now.
 */
export type Close = Record<symbol, never>;

/**
 * How generated code is shown.
 */
export type CodeForm = "erlang" | "core";

/**
 * What may stand at the cursor. Nothing is evaluated.
 */
export type Complete = { code: string, 
/**
 * Byte offset; the end if absent.
 */
cursor?: number, handle?: string, };

export type CompleteAnswer = { completions: Array<Completion>, 
/**
 * Byte offset of what they replace.
 */
start: number, };

export type Completion = { text: string, kind: string, detail: string | null, origin: string | null, };

/**
 * A file that the image and the disk changed in the same place.
 */
export type Conflict = { file: string, reason: ConflictReason, 
/**
 * The definitions concerned, or what is wrong with the file.
 */
detail: string | null, 
/**
 * The entries that stay pending.
 */
seqs: Array<number>, };

export type ConflictReason = "external_edit" | "file_missing" | "target_exists" | "span_out_of_range" | "write_failed";

/**
 * What was decided about, and what was loaded for it.
 */
export type DecideAnswer = { entries: Array<Entry>, classes: Array<string>, };

/**
 * What there is: operations, versions, capabilities, limits.
 */
export type Describe = Record<symbol, never>;

export type DescribeAnswer = { ops: { [key in string]: OpDescription }, versions: Versions, capabilities: Capabilities, limits: LimitsInForce, };

export type DeskEvent = { "event": "changed", "data": { name: string, version: number, } } | { "event": "dropped", "data": { count: number, } } | { "event": "gap", "data": { from: number, to: number, } };

export type DeskItem = { text: string, version: number, 
/**
 * Milliseconds since 1970.
 */
at: number, };

/**
 * Texts that clients keep with the workspace: layouts, scratch texts, settings.
 */
export type DeskRead = { 
/**
 * All if absent.
 */
names?: Array<string>, };

export type DeskReadAnswer = { items: { [key in string]: DeskItem }, };

/**
 * Keep a text, or remove it.
 */
export type DeskWrite = { 
/**
 * Of `a`–`z`, digits, `/`, `_`, `.` and `-`.
 */
name: string, 
/**
 * Of the text that was read; 0 when there was none.
 */
version: number, 
/**
 * Absent removes it.
 */
text?: string, };

export type DeskWriteAnswer = { version: number, };

/**
 * A finding of the compiler.
 */
export type Diagnostic = { file: string | null, line: number | null, code: string | null, severity: Severity, category: string | null, message: string, hint: string | null, notes: Array<Note>, 
/**
 * Byte offsets.
 */
span_start?: number, span_end?: number, column?: number, end_line?: number, end_column?: number, 
/**
 * What mends it without changing what the code does: all of it or nothing. Absent when only a person can
 * decide.
 */
fix?: Array<TextEdit>, };

/**
 * Findings of the compiler; nothing is installed.
 */
export type Diagnostics = { code: string, mode?: CheckMode, 
/**
 * The class of a method: with it the method is compiled and linted, without it only read.
 */
class?: string, side?: Side, };

export type DiagnosticsAnswer = { diagnostics: Array<Diagnostic>, };

/**
 * What a change changes.
 */
export type Diff = { seq: number, };

export type DiffAnswer = { 
/**
 * Unified.
 */
diff: string, };

/**
 * Pending selectors by class.
 */
export type Dirty = Record<symbol, never>;

export type DirtyAnswer = { dirty: { [key in string]: Array<string> }, };

/**
 * Record no more.
 */
export type DisableTracing = Record<symbol, never>;

/**
 * Set changes aside: exactly one of the fields.
 */
export type Discard = { seq?: number, class?: string, file?: string, all?: boolean, };

export type DocCell = { index: number, start: number, end: number, inputs: Array<InputPlace>, };

/**
 * Where the inputs of a text are, by the rule of scripts.
 */
export type DocCells = { text: string, form?: TextForm, };

export type DocCellsAnswer = { cells: Array<DocCell>, };

/**
 * Documents and sources of the project, by path.
 */
export type DocList = { 
/**
 * Only those with this text in their path or title.
 */
find?: string, 
/**
 * At most 1,000; 200 if absent.
 */
limit?: number, };

export type DocListAnswer = { documents: Array<DocumentInfo>, };

/**
 * The text of a document or source of the project: `.md`, `.bt`, `.btscript`, for owners also `.erl`, `.toml`.
 */
export type DocRead = { 
/**
 * Relative to the project; or `beamtalk:tour`.
 */
path: string, };

export type DocReadAnswer = { text: string, sha256: string, 
/**
 * Whether the one who asked may write it.
 */
writable: boolean, };

/**
 * Write a document or source of the project as a whole; a source is loaded too.
 */
export type DocWrite = { 
/**
 * A `.md`, `.bt` or `.btscript` below the project.
 */
path: string, text: string, 
/**
 * Of the text that was read; absent when there was none.
 */
base_sha256?: string, };

export type DocWriteAnswer = { sha256: string, 
/**
 * Classes that were loaded.
 */
classes: Array<string>, 
/**
 * Why the image keeps the code it had; the file is written all the same.
 */
errors: Array<LoadError>, };

/**
 * Documentation of a class, of a method, or of Erlang.
 */
export type Docs = { class?: string, 
/**
 * Of a finding, as in `E0201`.
 */
code?: string, erlang_module?: string, selector?: string, side?: Side, };

export type DocsAnswer = { 
/**
 * Markdown.
 */
docs: string, };

export type DocumentInfo = { path: string, 
/**
 * The first heading; else the name of the file.
 */
title: string, 
/**
 * How many blocks of code are run as examples.
 */
cells: number, bytes: number, 
/**
 * Milliseconds since 1970.
 */
changed_at: number, };

/**
 * Record messages between actors.
 */
export type EnableTracing = Record<symbol, never>;

export type Entry = { seq: number, 
/**
 * UTC, ISO 8601.
 */
ts: string, 
/**
 * Counts the starts of the workspace.
 */
epoch: number, kind: ChangeKind, class: string, selector: string | null, side: Side | null, intent: Intent, flushable: boolean, 
/**
 * `stdlib`, `dynamic` or `dependency:<path>`.
 */
not_flushable_reason: string | null, 
/**
 * Names of files below the log's directory.
 */
source_ref: string | null, prev_source_ref: string | null, 
/**
 * The text the image loaded or last flushed for the definition: what the file is compared with. `None`: it had none.
 */
base_ref: string | null, 
/**
 * Relative to the project.
 */
source_file: string | null, 
/**
 * The session.
 */
author: string, author_kind: AuthorKind, state: State, 
/**
 * Only of a settled one.
 */
settled: Settled | null, 
/**
 * The source is the text of a whole file, not of one definition.
 */
is_whole_file: boolean, 
/**
 * The method stands beside its class, as `Target >> method`: a new definition of the class is none of it.
 */
is_extension: boolean, };

export type EntryAnswer = { entry: LoggedEntry | null, };

/**
 * An entry with what the log knows about it now.
 */
export type EntryView = { 
/**
 * Waits since an earlier start.
 */
orphan: boolean, prior_epoch: boolean, 
/**
 * Pending: in the image and not in its file.
 */
active: boolean, shadowed: boolean, 
/**
 * Its file has the same already.
 */
clean: boolean, 
/**
 * Of its source, for `expect`; the one of the empty text when it has none.
 */
sha256: string, 
/**
 * Why the node, started anew, did not take it.
 */
not_installed?: ErrorBody, 
/**
 * Of a class that is to go out of its file: whether nothing would be left, so that the file goes too.
 */
deletes_file?: boolean, seq: number, 
/**
 * UTC, ISO 8601.
 */
ts: string, 
/**
 * Counts the starts of the workspace.
 */
epoch: number, kind: ChangeKind, class: string, selector: string | null, side: Side | null, intent: Intent, flushable: boolean, 
/**
 * `stdlib`, `dynamic` or `dependency:<path>`.
 */
not_flushable_reason: string | null, 
/**
 * Names of files below the log's directory.
 */
source_ref: string | null, prev_source_ref: string | null, 
/**
 * The text the image loaded or last flushed for the definition: what the file is compared with. `None`: it had none.
 */
base_ref: string | null, 
/**
 * Relative to the project.
 */
source_file: string | null, 
/**
 * The session.
 */
author: string, author_kind: AuthorKind, state: State, 
/**
 * Only of a settled one.
 */
settled: Settled | null, 
/**
 * The source is the text of a whole file, not of one definition.
 */
is_whole_file: boolean, 
/**
 * The method stands beside its class, as `Target >> method`: a new definition of the class is none of it.
 */
is_extension: boolean, };

/**
 * Modules of Erlang, or functions of one.
 */
export type ErlangComplete = { prefix?: string, module?: string, };

export type ErlangCompleteAnswer = { completions: Array<Completion>, };

export type ErrorBody = { kind: ErrorKind, message: string, class?: string, selector?: string, hint?: string, location?: Location, stack?: Array<Frame>, details?: Record<string, unknown>, diagnostics?: Array<Diagnostic>, 
/**
 * A reference to the exception.
 */
ref?: string, };

/**
 * What went wrong: stable and machine-readable.
 */
export type ErrorKind = "invalid_request" | "unknown_op" | "missing_parameter" | "invalid_parameter" | "duplicate_id" | "message_too_large" | "forbidden" | "policy_denied" | "capability_disabled" | "eval_limit" | "read_limit" | "ref_gone" | "compiler_limit" | "compiler_crash" | "busy" | "timeout" | "interrupted" | "no_input_pending" | "node_down" | "node_starting" | "shutting_down" | "audit_failed" | "session_not_found" | "session_expired" | "cross_session_mutation_unsupported" | "tree_error" | "compile_failed" | "parse_error" | "undefined_variable" | "class_not_found" | "selector_not_found" | "no_source_file" | "module_not_loaded" | "actors_exist" | "incompatible_reload" | "native_compile_failed" | "invalid_actor" | "actor_not_alive" | "inspect_failed" | "file_not_found" | "read_error" | "write_failed" | "lock_mismatch" | "load_failed" | "not_found" | "flush_io_error" | "name_conflict" | "version_conflict" | "file_changed" | "pending_changes" | "no_source" | "no_class_declared" | "multiple_classes_declared" | "class_name_mismatch" | "class_already_loaded" | "target_exists" | "target_outside_project" | "revert_not_possible" | "revert_install_failed" | "unsupported_revert_kind" | "reload_failed" | "no_workspace" | "internal_error" | string;

/**
 * Run code in the session. Output comes before the answer.
 */
export type Eval = { code: string, 
/**
 * Answer the value of each statement.
 */
trace?: boolean, 
/**
 * From the arrival of the request.
 */
timeout_ms?: number, 
/**
 * What the code is called in locations.
 */
file?: string, line?: number, 
/**
 * Answer as `text` what a session shows on so many columns; 0 for everything in one line. The `printString`
 * if absent.
 */
width?: number, 
/**
 * In the variables of a handle; `once` for variables that are forgotten afterwards.
 */
handle?: string, 
/**
 * Keep the value and answer a reference to it.
 */
hold?: boolean, 
/**
 * What the code may ask of the loop: `none`, `observe`, `post`, `control`; everything if absent.
 */
loop_right?: string, 
/**
 * What `self` is in the code: exactly one of `actor`, `binding`, `class`, `ref`. For an actor the code is one
 * message to it.
 */
self?: SelfTarget, };

/**
 * The value of code.
 */
export type EvalAnswer = { 
/**
 * As JSON; absent when the program ended.
 */
value?: unknown, 
/**
 * As it is printed.
 */
text: string, class?: string, 
/**
 * With `hold`: what `inspect` finds the value by.
 */
ref?: string, 
/**
 * With `trace`.
 */
steps?: Array<TracedStep>, 
/**
 * When the program ended, and of `run-entry`.
 */
exit_code?: number, 
/**
 * What it defined.
 */
classes?: Array<string>, entries?: Array<LoggedEntry>, 
/**
 * Actors that keep their old code and state.
 */
migration_failures?: Array<MigrationFailure>, };

/**
 * Write messages between actors to a file.
 */
export type ExportTraces = { path?: string, actor?: string, selector?: string, class?: string, 
/**
 * `ok`, `error` or `timeout`.
 */
outcome?: string, min_duration_ns?: number, limit?: number, };

export type ExportTracesAnswer = { path: string, count: number, };

export type FileAccess = "rw" | "ro";

/**
 * What became of a file.
 */
export type FileChange = "changed" | "created" | "deleted";

/**
 * A finding about a change, or about those who use what was changed.
 */
export type Finding = UseFinding | Diagnostic;

export type FindingSite = { class: string, file: string | null, line: number | null, column: number | null, };

export type FindingsAnswer = { checked: number, stale: number, findings: Array<Finding>, };

/**
 * How a request stands.
 */
export type Flag = "done" | "error" | "interrupted" | "need-input" | "test-error" | "truncated" | "unknown";

/**
 * Write what is pending to its files.
 */
export type Flush = { class?: string, file?: string, kind?: OneOrMore<WantedKind>, author_kind?: OneOrMore<AuthorKind>, 
/**
 * Removals of classes, too.
 */
confirm_destructive?: boolean, 
/**
 * The image's version of everything that is in conflict in this file.
 */
force_file?: string, 
/**
 * Only these changes; one that was replaced meanwhile is not written.
 */
seqs?: Array<number>, 
/**
 * Hashes of pending changes as they were shown, by number; nothing is written when one is another by now.
 */
expect?: { [key in string]: string }, };

export type FlushAnswer = { 
/**
 * How many definitions were written or taken out, and classes removed.
 */
flushed: number, files: Array<FlushedFile>, 
/**
 * Files that had also changed on disk.
 */
merged: Array<string>, new_classes: Array<string>, removed_classes: Array<string>, skipped: Array<Skip>, conflicts: Array<Conflict>, };

export type FlushedFile = { file: string, kind: FileChange, };

/**
 * Code as the formatter writes it.
 */
export type Format = { code: string, };

export type FormatAnswer = { text: string, };

export type Frame = { class?: string, selector?: string, file?: string, line?: number, 
/**
 * References to what the message that failed was sent to, and with.
 */
receiver?: string, arguments?: Array<string>, };

/**
 * Which side counts.
 */
export type From = "image" | "disk";

/**
 * Messages between actors, newest first.
 */
export type GetTraces = { actor?: string, selector?: string, class?: string, 
/**
 * `ok`, `error` or `timeout`.
 */
outcome?: string, min_duration_ns?: number, 
/**
 * 100 if absent.
 */
limit?: number, };

export type GetTracesAnswer = { traces: Array<Trace>, };

/**
 * Forget a handle and its variables.
 */
export type HandleClose = { handle: string, };

export type HandleInfo = { handle: string, busy: boolean, 
/**
 * Seconds since it was last used.
 */
idle_s: number, };

/**
 * One's own handles.
 */
export type HandleList = Record<symbol, never>;

export type HandleListAnswer = { handles: Array<HandleInfo>, };

/**
 * Make a handle: variables that belong to who asks and outlive the connection.
 */
export type HandleOpen = Record<symbol, never>;

export type HandleOpenAnswer = { 
/**
 * `ev_` and 22 letters that say nothing.
 */
handle: string, };

/**
 * What every message that belongs to a request may have; what an operation answers is beside it.
 */
export type Head = { id?: string, session?: string, status?: Array<Flag>, 
/**
 * Of a session that keeps its frames: the number of this one.
 */
n?: number, 
/**
 * What the request was sent with, in its first and last kept frame.
 */
about?: string, 
/**
 * It is sent again.
 */
replayed?: boolean, 
/**
 * Of this request only the end is still known: so many bytes are gone.
 */
lost_bytes?: number, 
/**
 * A piece of output.
 */
out?: string, 
/**
 * What input is asked for with.
 */
prompt?: string, error?: ErrorBody, warnings?: Array<Warning>, };

/**
 * How the workspace does.
 */
export type Health = { 
/**
 * Only what the daemon knows: without the numbers that the node is asked for.
 */
brief?: boolean, };

export type HealthAnswer = { workspace_id: string, nonce: string, 
/**
 * `up`, `starting`, `down` or `failed`.
 */
node: string, uptime_s: number, connections: number, sessions: number, restarts: number, queue_drops: number, compiler_kills: number, audit: AuditState, last_error: string | null, 
/**
 * While the node is up.
 */
memory?: NodeMemory, processes?: number, run_queue?: number, 
/**
 * What is loaded of the project, if there is one.
 */
project?: LoadedProject, };

/**
 * A change that is left out because a newer one of the same definition is pending.
 */
export type HeldBack = { seq: number, class: string, selector: string | null, side: Side | null, file: string | null, reason: string, detail: string, };

/**
 * What is at the cursor.
 */
export type Hover = { code: string, 
/**
 * Byte offset; the end if absent.
 */
cursor?: number, };

export type HoverAnswer = { 
/**
 * Markdown.
 */
contents: string | null, signature: string | null, kind: string | null, };

/**
 * What is known of a class or selector.
 */
export type Info = { symbol: string, };

export type InfoAnswer = { info: SymbolInfo, };

/**
 * Byte offsets; `end` is after its last byte.
 */
export type InputPlace = { start: number, end: number, line: number, };

/**
 * Look into an actor, a variable, a class, or a value that is held.
 */
export type Inspect = { actor?: string, binding?: string, class?: string, 
/**
 * What `eval` with `hold` answered.
 */
ref?: string, 
/**
 * From the outermost value down.
 */
path?: Array<Step>, 
/**
 * Of 50 elements, from 1.
 */
page?: number, 
/**
 * How many elements to leave out, instead of `page`.
 */
offset?: number, 
/**
 * At most 500; 50 if absent.
 */
limit?: number, 
/**
 * Answer where the first entry with this key, name or index is, in `at`, and the window that begins there.
 */
find?: string, 
/**
 * Answer the messages it understands too.
 */
understands?: boolean, 
/**
 * Whose variable it is.
 */
handle?: string, };

export type InspectAnswer = { kind: string, class: string, fields: Array<InspectedField>, total: number, 
/**
 * `sorted`, or `unsorted` for a dictionary too large to be put in order.
 */
order?: string, 
/**
 * With `find`: how many entries stand before the one that was found. Absent when none was.
 */
at?: number, 
/**
 * The value itself, as tools print it.
 */
text?: string, 
/**
 * With `understands`: from its own class up.
 */
understands?: Array<Understood>, };

export type InspectedField = { name: Step, label: string, text: string, class: string, 
/**
 * There is something inside.
 */
drillable: boolean, };

export type Intent = "durable" | "ephemeral";

/**
 * Stop what runs, of one's own session or of another one. The evaluation answers `interrupted`.
 */
export type Interrupt = { 
/**
 * The `id` of the evaluation, on whichever connection.
 */
for?: string, handle?: string, };

export type JobAnswer = { 
/**
 * `tk_` and 22 letters that say nothing.
 */
job: string, 
/**
 * `working`, `completed`, `failed` or `cancelled`.
 */
state: string, 
/**
 * ISO 8601.
 */
created: string, updated: string, 
/**
 * How long it is kept, from its beginning.
 */
ttl_ms: number, message?: string, 
/**
 * The result of the call as JSON, or why it was lost.
 */
result?: string, };

/**
 * Stop one's own work.
 */
export type JobCancel = { job: string, };

/**
 * How far one's own work is; with `wait_ms` not before it has ended, or so much time has passed.
 */
export type JobGet = { job: string, wait_ms?: number, };

/**
 * Start work that goes on without its client: a call of a tool, as the MCP server orders it.
 */
export type JobStart = { order: string, };

export type JsonValue = number | string | boolean | Array<JsonValue> | { [key in string]: JsonValue } | null;

/**
 * End an actor.
 */
export type Kill = { actor: string, 
/**
 * Let it end by itself; so if absent.
 */
graceful?: boolean, };

export type LastOutcome = { 
/**
 * When it ended, in milliseconds since 1970.
 */
at: number, test: TestOutcome, };

/**
 * What came of each test when it last ran, and what runs now.
 */
export type LastResults = Record<symbol, never>;

export type LastResultsAnswer = { results: Array<LastOutcome>, running: Array<RunningTests>, };

export type LimitsInForce = { inbound_frame: number, outbound_frame: number, open_requests: number, waiting_evals: number, eval_heap_mb: number, eval_timeout_s: number, eval_output: number, eval_text: number, session_grace_s: number, compiler_memory_mb: number, compiler_timeout_s: number, };

/**
 * Classes by name.
 */
export type ListClasses = { 
/**
 * `stdlib`, `user`, or a superclass.
 */
filter?: string, };

export type ListClassesAnswer = { class_list: Array<ClassSummary>, };

/**
 * The tests that are loaded, and the documents that have examples.
 */
export type ListTests = Record<symbol, never>;

export type ListTestsAnswer = { tests: Array<TestClass>, documents: Array<TestDocument>, };

export type LoadAnswer = { classes: Array<string>, errors: Array<LoadError>, summary?: string, affected_actors?: number, migration_failures?: Array<MigrationFailure>, conflicts?: Array<Conflict>, changed_count?: number, unchanged_count?: number, deleted_count?: number, disk_changed?: Array<string>, };

/**
 * Why a file was left out.
 */
export type LoadError = { path: string | null, line: number | null, message: string, hint: string | null, kind: string, };

/**
 * Load a file, or all files below a directory.
 */
export type LoadFile = { path: string, 
/**
 * Files of the directory that are not loaded, as the project's root has them.
 */
except?: Array<string>, };

/**
 * Build the project and load what changed.
 */
export type LoadProject = { 
/**
 * Of the project; `.` if absent.
 */
path?: string, include_tests?: boolean, 
/**
 * Load what did not change, too.
 */
force?: boolean, };

/**
 * Define the classes of a text.
 */
export type LoadSource = { source: string, 
/**
 * What the text is called in locations.
 */
name?: string, };

/**
 * Load the files below `test/`.
 */
export type LoadTests = Record<symbol, never>;

export type LoadedModule = { name: string, class: string | null, source_file: string | null, actor_count: number, 
/**
 * Seconds since 1970.
 */
load_time: number, };

export type LoadedProject = { name: string, version: string, classes: number, };

export type Location = { file: string, line: number, column?: number, end_line?: number, end_column?: number, };

/**
 * Lines of the log of the image, the newest last.
 */
export type Log = { 
/**
 * Only lines with a smaller number.
 */
before?: number, 
/**
 * At most 1,000; 200 if absent.
 */
limit?: number, 
/**
 * This one and graver.
 */
level?: string, 
/**
 * Only lines with this text in them.
 */
find?: string, };

export type LogAnswer = { entries: Array<LogLine>, };

/**
 * Read or set the level of the log.
 */
export type LogLevel = { level?: string, };

export type LogLevelAnswer = { level: string, };

export type LogLine = { seq: number, time: string, level: string, domain: string, class: string | null, selector: string | null, msg: string, };

/**
 * An entry that was just made.
 */
export type LoggedEntry = { 
/**
 * Why the image is ahead of the disk, although it should not be.
 */
warning?: string, seq: number, 
/**
 * UTC, ISO 8601.
 */
ts: string, 
/**
 * Counts the starts of the workspace.
 */
epoch: number, kind: ChangeKind, class: string, selector: string | null, side: Side | null, intent: Intent, flushable: boolean, 
/**
 * `stdlib`, `dynamic` or `dependency:<path>`.
 */
not_flushable_reason: string | null, 
/**
 * Names of files below the log's directory.
 */
source_ref: string | null, prev_source_ref: string | null, 
/**
 * The text the image loaded or last flushed for the definition: what the file is compared with. `None`: it had none.
 */
base_ref: string | null, 
/**
 * Relative to the project.
 */
source_file: string | null, 
/**
 * The session.
 */
author: string, author_kind: AuthorKind, state: State, 
/**
 * Only of a settled one.
 */
settled: Settled | null, 
/**
 * The source is the text of a whole file, not of one definition.
 */
is_whole_file: boolean, 
/**
 * The method stands beside its class, as `Target >> method`: a new definition of the class is none of it.
 */
is_extension: boolean, };

export type LogsEvent = { "event": "entry", "data": { time: string, level: string, domain: string, class: string | null, selector: string | null, msg: string, } } | { "event": "dropped", "data": { count: number, } } | { "event": "gap", "data": { from: number, to: number, } };

/**
 * Run a declared workflow of the loop that this workspace hosts, when its turn comes.
 */
export type LoopRun = { workflow: string, 
/**
 * Files that it is told have changed.
 */
changed?: Array<string>, 
/**
 * Answer when it has ended.
 */
wait?: boolean, };

export type LoopRunAnswer = { 
/**
 * Why it failed, if its end was waited for.
 */
failure?: string, };

/**
 * Record that a tool was called through MCP. Texts of the call are not sent.
 */
export type McpCall = { tool: string, 
/**
 * `R`, `X` or `XD`.
 */
class: string, era: string, 
/**
 * `ok`, `error`, `denied`, `declined`, `cancelled` or `limit`.
 */
outcome: string, 
/**
 * The client's word for itself.
 */
client_info?: string, 
/**
 * Of the arguments.
 */
sha256?: string, bytes?: number, ms?: number, error_kind?: string, 
/**
 * How many alike this one stands for.
 */
count?: number, 
/**
 * The `traceparent` of the call.
 */
trace?: string, 
/**
 * `stdio`, `http` or `door`.
 */
way?: string, 
/**
 * The name of the person's answer to it.
 */
approval?: string, 
/**
 * The task it was the work of.
 */
task?: string, };

export type MethodPlace = { selector: string, side: Side, line: number | null, };

export type MethodText = { selector: string, side: Side, 
/**
 * As it was written; `null` for one without a text.
 */
source: string | null, doc: string | null, 
/**
 * `indexed`, `synthetic` or `runtime`.
 */
source_status: string, 
/**
 * In its file.
 */
line: number | null, };

/**
 * The own methods of a class.
 */
export type Methods = { class: string, };

export type MethodsAnswer = { methods: Array<MethodPlace>, };

/**
 * An actor that keeps its old code and state.
 */
export type MigrationFailure = { actor: string, reason: string, };

/**
 * The modules of the project.
 */
export type Modules = Record<symbol, never>;

export type ModulesAnswer = { modules: Array<LoadedModule>, };

export type NativeClause = { function: string, arity: number, line: number, };

/**
 * What is looked for.
 */
export type NavKind = "senders" | "implementors" | "references";

/**
 * Senders or implementors of a selector, references to a class.
 */
export type NavQuery = { kind: NavKind, selector?: string, class?: string, };

export type NavQueryAnswer = { sites: Array<Site>, };

/**
 * Classes and their methods, sorted by name.
 */
export type NavSymbols = { scope?: SymbolScope, };

export type NavSymbolsAnswer = { classes: Array<Symbol>, };

/**
 * Bytes, by what they are for.
 */
export type NodeMemory = { total: number, processes: number, system: number, atom: number, binary: number, code: number, ets: number, };

/**
 * A change that the image did not take.
 */
export type NotInstalled = { seq: number, error: ErrorBody, };

/**
 * Another place that a finding speaks of.
 */
export type Note = { message: string, line: number, column: number, };

/**
 * That it was done.
 */
export type Nothing = Record<symbol, never>;

export type ObjectEvent = { "event": "changed", "data": { actor: string, fields: Array<string>, } } | { "event": "dropped", "data": { count: number, } } | { "event": "gap", "data": { from: number, to: number, } };

/**
 * One, or a list.
 */
export type OneOrMore<T> = T | Array<T>;

export type OpDescription = { class: Access, 
/**
 * Those that may be left out end in `?`.
 */
fields: Array<string>, 
/**
 * The type of the audit record.
 */
audit: string | null, };

/**
 * What a row opens: one of the first four, and the way from it.
 */
export type Opened = { path: Array<Step>, actor?: string, binding?: string, class?: string, ref?: string, };

/**
 * How a process does.
 */
export type PidStats = { actor: string, };

/**
 * All of `stats` once more, but `status`, which is the answer's own.
 */
export type PidStatsAnswer = { stats: ProcessStats, queue_len?: number, memory?: number, reductions?: number, current_function?: string, };

/**
 * One definition three ways.
 */
export type Place = { class: string, side: Side | null, selector: string | null, base: string | null, image: string | null, disk: string | null, };

/**
 * What a method, and those who call it, would be told if it were saved.
 */
export type PrecheckMethod = { class: string, selector: string, source: string, side?: Side, };

export type PrecheckMethodAnswer = { findings: Array<Finding>, checked: number, not_checked: number, total_candidates: number, cap_note: string | null, checked_owners: Array<string>, };

/**
 * Of a dead process, the status only.
 */
export type ProcessStats = { status: string, queue_len?: number, memory?: number, reductions?: number, current_function?: string, };

export type Protocol = { name: string, selectors: Array<ProtocolSelector>, };

export type ProtocolSelector = { selector: string, line: number | null, 
/**
 * `indexed`, `synthetic` or `runtime`.
 */
source_status: string, origin: string, };

/**
 * Keep what a person is asked until the answer comes; it can be taken once, within ten minutes, by who kept it.
 */
export type QuestionKeep = { text: string, };

export type QuestionKeepAnswer = { 
/**
 * `rq_` and 22 letters that say nothing.
 */
state: string, };

/**
 * Take a question that was kept.
 */
export type QuestionTake = { state: string, };

export type QuestionTakeAnswer = { text: string, };

/**
 * Check all classes again.
 */
export type RecheckImage = Record<symbol, never>;

/**
 * Load the file of a class again.
 */
export type Reload = { class: string, };

export type ReloadAnswer = { classes: Array<string>, errors: Array<LoadError>, affected_actors: number, migration_failures: Array<MigrationFailure>, findings: Array<Finding>, conflicts?: Array<Conflict>, };

/**
 * For every class in `checked_owners` a client replaces what it shows by these findings.
 */
export type ReloadCheckEvent = { "event": "completed", "data": { changed_class: string, changed_selector: string | null, classification: string, checked: number, not_checked: number, checked_owners: Array<string>, findings: Array<Finding>, } } | { "event": "dropped", "data": { count: number, } } | { "event": "gap", "data": { from: number, to: number, } };

/**
 * What the last checks found.
 */
export type ReloadFindings = Record<symbol, never>;

/**
 * Take a class out; a flush deletes its file.
 */
export type RemoveClass = { class: string, };

/**
 * Take a method out.
 */
export type RemoveMethod = { class: string, selector: string, side?: Side, };

/**
 * Send what was kept for the session again, then the answer.
 */
export type Replay = { 
/**
 * Only what has a greater number.
 */
after?: number, };

export type ReplayAnswer = { 
/**
 * The number of the last frame there is.
 */
last: number, 
/**
 * How many finished requests are no longer kept.
 */
lost: number, 
/**
 * Requests that were begun and are not answered yet.
 */
open: Array<string>, };

/**
 * Install changes of an earlier run: exactly one of the fields.
 */
export type Restore = { seq?: number, class?: string, all?: boolean, };

export type RestoreAnswer = { entries: Array<Entry>, failed: Array<NotInstalled>, conflicts: Array<HeldBack>, };

/**
 * Undo a change, or bring back one that was undone.
 */
export type Revert = { seq: number, };

/**
 * Run a class method as a program.
 */
export type RunEntry = { class: string, selector: string, args?: Array<string>, };

/**
 * Tests that run.
 */
export type RunningTests = { 
/**
 * The session that asked for them.
 */
session: string, class: string | null, 
/**
 * When they began, in milliseconds since 1970.
 */
since: number, 
/**
 * How many have ended.
 */
ended: number, };

/**
 * Define a class whose file is made by a flush.
 */
export type SaveClass = { source: string, 
/**
 * Of the file, in the project.
 */
path: string, };

export type SaveClassAnswer = { classes: Array<string>, entry: LoggedEntry, affected_actors?: number, migration_failures?: Array<MigrationFailure>, };

/**
 * Install a method; it is pending until it is flushed.
 */
export type SaveMethod = { class: string, selector: string, source: string, side?: Side, 
/**
 * Of the source that this one was made from.
 */
base_sha256?: string, };

export type SaveMethodAnswer = { entry: LoggedEntry | null, findings: Array<Finding>, };

/**
 * Which processes.
 */
export type Scope = "default" | "system";

export type SelectorInfo = { found: boolean, symbol: string, 
/**
 * `selector`.
 */
kind: string, implementors: Array<Site>, };

/**
 * A value that is named by where it is.
 */
export type SelfTarget = { actor?: string, binding?: string, class?: string, ref?: string, 
/**
 * From the outermost value down.
 */
path?: Array<Step>, };

export type SessionInfo = { id: string, client: string, peer: string, 
/**
 * Seconds since 1970.
 */
connected_at: number, busy: boolean, };

/**
 * All sessions.
 */
export type Sessions = Record<symbol, never>;

export type SessionsAnswer = { sessions: Array<SessionInfo>, };

/**
 * Write a text that was made of all sides, and load it.
 */
export type Settle = { file: string, text: string, 
/**
 * Of the file as it was shown; empty when there was none.
 */
disk_sha256: string, 
/**
 * Hashes of pending changes as they were shown, by number.
 */
expect?: { [key in string]: string }, };

/**
 * How a change was settled.
 */
export type Settled = "flushed" | "reverted" | "discarded" | "cleared" | "replaced" | "pruned" | "unknown";

export type Severity = "error" | "warning" | "lint" | "hint";

/**
 * The code that the compiler makes of `code`, or of a class.
 */
export type ShowCodegen = { code?: string, class?: string, selector?: string, form?: CodeForm, };

/**
 * One of both, by the form that was asked for.
 */
export type ShowCodegenAnswer = { erlang?: string, core_erlang?: string, };

/**
 * Which fields there are depends on the kind.
 */
export type ShownView = { id: string, 
/**
 * `table`, `list`, `tree`, `text`, `chart`, `image` or `figures`.
 */
kind: string, title: string, 
/**
 * `null` when nobody knows.
 */
total: number | null, 
/**
 * Code was run for it.
 */
computed: boolean, columns?: Array<ViewColumn>, 
/**
 * Where the rows, or the text, begin.
 */
from?: number, 
/**
 * `sorted` or `unsorted`.
 */
order?: string, rows?: Array<ViewRow>, nodes?: Array<ViewNode>, text?: string, language?: string, 
/**
 * The text ends here.
 */
end?: boolean, mark?: string, x?: ViewAxis, y?: ViewAxis, series?: Array<ViewSeries>, shown?: number, of?: number, mime?: string, base64?: string, alt?: string, figures?: Array<ViewFigure>, 
/**
 * What the view leaves out, and why.
 */
note?: string, };

/**
 * Stop the workspace.
 */
export type Shutdown = { 
/**
 * Without waiting for what runs.
 */
force?: boolean, };

export type Side = "instance" | "class";

export type Site = { class: string, class_side: boolean, method: string | null, line: number | null, source_file: string | null, };

export type Skip = { seq: number, class: string, selector: string | null, kind: ChangeKind, 
/**
 * `destructive`, `ephemeral`, or why the entry is not flushable.
 */
reason: string, };

export type SourceAnswer = { classes: Array<string>, entries?: Array<LoggedEntry>, affected_actors?: number, migration_failures?: Array<MigrationFailure>, };

/**
 * Where a change stands.
 */
export type State = "pending" | "waiting" | "settled";

export type StateField = { name: string, type: string | null, default: string | null, };

/**
 * Input for an evaluation that waits for it: `value`, or `eof`.
 */
export type Stdin = { 
/**
 * The `id` of the evaluation.
 */
for: string, value?: string, eof?: boolean, };

/**
 * A field of a value, by name or number.
 */
export type Step = string | number;

/**
 * Listen to channels.
 */
export type Subscribe = { channels: Array<Channel>, 
/**
 * For `object`.
 */
actor?: string, 
/**
 * For `logs`: this one and graver.
 */
level?: string, 
/**
 * By channel: first what was told after this number.
 */
since?: { [key in string]: number }, };

export type SupervisedProcess = { pid: string, parent: string | null, name: string | null, kind: string, class: string | null, child_count: number, 
/**
 * Of a supervisor: `one_for_one`, `one_for_all`, `rest_for_one` or `simple_one_for_one`.
 */
strategy?: string, };

export type SupervisionEvent = { "event": "child_added", "data": { supervisor: string, child: string, pid: string | null, reason: string | null, } } | { "event": "child_crashed", "data": { supervisor: string, child: string, pid: string | null, reason: string | null, } } | { "event": "child_restarted", "data": { supervisor: string, child: string, pid: string | null, reason: string | null, } } | { "event": "gave_up", "data": { supervisor: string, child: string | null, pid: string | null, reason: string | null, } } | { "event": "dropped", "data": { count: number, } } | { "event": "gap", "data": { from: number, to: number, } };

/**
 * Supervisors and what they supervise.
 */
export type SupervisionTree = { 
/**
 * `system` is not for observers.
 */
scope?: Scope, };

export type SupervisionTreeAnswer = { nodes: Array<SupervisedProcess>, };

export type Symbol = { name: string, source_file: string | null, line: number | null, methods: Array<MethodPlace>, };

/**
 * What a symbol is.
 */
export type SymbolInfo = ClassInfo | SelectorInfo | { found: boolean, symbol: string, };

/**
 * Which classes.
 */
export type SymbolScope = "user" | "all";

/**
 * Decide for the image's or the disk's version: exactly one of `seq`, `class`, `file`, `all`.
 */
export type Take = { from: From, seq?: number, class?: string, file?: string, all?: boolean, selector?: string, side?: Side, 
/**
 * Of the file as it was shown.
 */
disk_sha256?: string, };

export type TakeAnswer = { entries: Array<Entry>, conflicts: Array<Conflict>, };

/**
 * Run tests. The flag `test-error` says that one failed.
 */
export type Test = { class?: string, method?: string, file?: string, 
/**
 * A source or Markdown file whose examples are run.
 */
document?: string, 
/**
 * Only the example of the document that begins in this line.
 */
line?: number, 
/**
 * How many at the same time.
 */
jobs?: number, 
/**
 * How long one test may take; 60000 if absent.
 */
test_timeout_ms?: number, };

/**
 * Run all tests.
 */
export type TestAll = { jobs?: number, test_timeout_ms?: number, };

export type TestAnswer = { results: TestResults, };

export type TestClass = { class: string, methods: Array<string>, file: string | null, };

/**
 * A file whose documentation has examples with expectations.
 */
export type TestDocument = { file: string, examples: Array<TestExample>, };

export type TestExample = { name: string, 
/**
 * Where its first input is.
 */
line: number, };

export type TestFailure = { kind: string, message: string, expected?: string, actual?: string, 
/**
 * Innermost first: `Lamp>>on (src/Lamp.bt:4)`.
 */
stack?: Array<string>, };

export type TestOutcome = { class: string, name: string, file: string | null, line: number | null, 
/**
 * `pass`, `fail`, `error` or `skip`.
 */
status: string, 
/**
 * Seconds.
 */
duration: number, output: string, error?: TestFailure, reason?: string, };

export type TestResults = { total: number, passed: number, failed: number, skipped: number, duration: number, seed: number, tests: Array<TestOutcome>, };

export type TestsEvent = { "event": "started", "data": { class: string | null, method: string | null, session: string, } } | { "event": "result", "data": { test: TestOutcome, } } | { "event": "finished", "data": { total: number, passed: number, failed: number, skipped: number, session: string, } } | { "event": "dropped", "data": { count: number, } } | { "event": "gap", "data": { from: number, to: number, } };

/**
 * One change of the text that a finding is about.
 */
export type TextEdit = { 
/**
 * Byte offsets, like those of the finding.
 */
start: number, end: number, 
/**
 * What stands there instead.
 */
text: string, };

/**
 * How a text is made of inputs.
 */
export type TextForm = "script";

export type ToolCount = { tool: string, outcome: string, count: number, 
/**
 * Why it was refused.
 */
error_kind?: string, };

export type TopActor = { pid: string, class: string, name: string | null, queue_len: number, memory: number, reductions: number, 
/**
 * What it works on; `null` when it waits.
 */
message: string | null, };

/**
 * The actors that come first in an order, and how many there are of each class.
 */
export type TopActors = { 
/**
 * `queue` if absent. Numbers: the largest first.
 */
sort?: TopOrder, 
/**
 * At most 200; 50 if absent.
 */
limit?: number, };

export type TopActorsAnswer = { actors: Array<TopActor>, total: number, 
/**
 * The largest count first.
 */
classes: Array<ClassCount>, };

/**
 * By what actors are put in order.
 */
export type TopOrder = "queue" | "memory" | "reductions" | "class" | "name";

export type Trace = { actor: string, class: string | null, selector: string, mode: string, outcome: string, duration_ns: number, timestamp_ns: number, };

export type TraceStats = { actor: string, class: string | null, selector: string, calls: number, ok: number, errors: number, timeouts: number, total_duration_ns: number, avg_duration_ns: number, min_duration_ns: number, max_duration_ns: number, };

/**
 * A statement and its value, as it is printed.
 */
export type TracedStep = { src: string, text: string, };

/**
 * What was written to the Transcript, the newest last.
 */
export type Transcript = { 
/**
 * Only what has a smaller number.
 */
before?: number, 
/**
 * At most 1,000; 200 if absent.
 */
limit?: number, 
/**
 * Only entries with this text in them.
 */
find?: string, };

export type TranscriptAnswer = { entries: Array<TranscriptEntry>, 
/**
 * The number of the oldest that is kept; 0 when there is none.
 */
first: number, };

export type TranscriptEntry = { seq: number, 
/**
 * Milliseconds since 1970.
 */
at: number, text: string, 
/**
 * The session, `agent NAME` or the actor that wrote it.
 */
by?: string, };

export type TranscriptEvent = { "event": "text", "data": { text: string, 
/**
 * The `id` of the evaluation of this connection that caused it.
 */
for: string | null, 
/**
 * For clients that keep: the session, `agent NAME` or the actor that wrote it.
 */
by?: string, } } | { "event": "dropped", "data": { count: number, } } | { "event": "gap", "data": { from: number, to: number, } };

/**
 * How the bytes of a file are written.
 */
export type TreeEncoding = "text" | "base64";

/**
 * A file below `loop/` as it grows: `out` until it ends or is interrupted.
 */
export type TreeFollow = { path: string, 
/**
 * Where to begin, such as `since 88`.
 */
command?: string, };

/**
 * The names in a directory below `loop/`.
 */
export type TreeList = { 
/**
 * Names in it are percent-encoded as in the agents' tree.
 */
path: string, };

export type TreeListAnswer = { names: Array<string>, };

/**
 * A piece of a file below `loop/`.
 */
export type TreeRead = { path: string, offset?: number, encoding?: TreeEncoding, };

export type TreeReadAnswer = { data: string, 
/**
 * Nothing follows.
 */
end: boolean, };

/**
 * Write to a file below `loop/`: commands, or the value of an event.
 */
export type TreeWrite = { path: string, data: string, };

export type TreeWriteAnswer = { 
/**
 * What the file answers; empty if it does not.
 */
answer: string, };

/**
 * Install a method that is never flushed.
 */
export type TryMethod = { class: string, selector: string, source: string, side?: Side, 
/**
 * Of the source that this one was made from.
 */
base_sha256?: string, };

/**
 * Forget one variable of one's own session, or a name that is bound for all.
 */
export type Unbind = { name: string, scope?: UnbindScope, };

/**
 * From where a name is taken.
 */
export type UnbindScope = "session" | "workspace";

/**
 * Messages that come from one class.
 */
export type Understood = { class: string, selectors: Array<string>, };

/**
 * Take a class out of the image.
 */
export type Unload = { class: string, 
/**
 * Although it has actors.
 */
force?: boolean, };

/**
 * Listen no more.
 */
export type Unsubscribe = { channels: Array<Channel>, };

/**
 * A finding about one of those who use what was changed.
 */
export type UseFinding = { file: string | null, line: number | null, code: string | null, severity: Severity, category: string | null, message: string, hint: string | null, notes: Array<Note>, 
/**
 * Byte offsets.
 */
span_start?: number, span_end?: number, column?: number, end_line?: number, end_column?: number, 
/**
 * What mends it without changing what the code does: all of it or nothing. Absent when only a person can
 * decide.
 */
fix?: Array<TextEdit>, 
/**
 * The class that the finding is in.
 */
owner: string, changed_class: string, selector: string | null, classification: string, note: string | null, sites: Array<FindingSite>, start: number | null, end: number | null, };

/**
 * Whether there was something to do.
 */
export type ValueAnswer = { value: boolean, };

export type Versions = { protocol: string, beamtalk: string, };

/**
 * A part of a view: of something by the view's name, or of a view that was answered before.
 */
export type View = { actor?: string, binding?: string, class?: string, ref?: string, path?: Array<Step>, handle?: string, 
/**
 * One that `views` answered; the first if absent.
 */
name?: string, 
/**
 * The `id` of an earlier answer, instead of all the others.
 */
view?: string, 
/**
 * How many rows to leave out; of texts, bytes.
 */
from?: number, 
/**
 * At most 500; 100 if absent.
 */
count?: number, 
/**
 * Of a tree: answer what is below this one.
 */
node?: string, 
/**
 * The title of a column; with `-` before it, the greatest first.
 */
sort?: string, 
/**
 * Only rows with this text in them.
 */
find?: string, };

export type ViewAnswer = { view: ShownView, };

export type ViewAxis = { title: string, kind?: string, };

export type ViewCell = { text: string, class: string | null, drillable: boolean, };

export type ViewColumn = { title: string, 
/**
 * `text`, `number`, `time` or `object`.
 */
kind: string, };

export type ViewFigure = { name: string, text: string, 
/**
 * `ok`, `warn` or `danger`.
 */
state: string | null, };

export type ViewName = { name: string, title: string, 
/**
 * `builtin`, or `method` for one that runs code.
 */
origin: string, class?: string, selector?: string, line?: number, };

export type ViewNode = { node: string, parent: string | null, text: string, class: string | null, has_children: boolean, open: Opened | null, };

export type ViewRow = { cells: Array<ViewCell>, open: Opened | null, };

export type ViewSeries = { name: string, x: Array<number>, y: Array<number>, };

/**
 * The ways to look at exactly one of: an actor, a variable, a class, a value that is held.
 */
export type Views = { actor?: string, binding?: string, class?: string, 
/**
 * What `eval` with `hold` answered.
 */
ref?: string, 
/**
 * From the outermost value down.
 */
path?: Array<Step>, 
/**
 * Whose variable it is.
 */
handle?: string, };

export type ViewsAnswer = { 
/**
 * The first is the one to show.
 */
views: Array<ViewName>, };

/**
 * How the image did in the last 15 minutes.
 */
export type Vitals = { 
/**
 * Only samples after this time, in milliseconds since 1970.
 */
since?: number, };

export type VitalsAnswer = { 
/**
 * What the numbers of a sample are; the first is the time in milliseconds since 1970.
 */
fields: Array<string>, samples: Array<Array<number>>, };

/**
 * A kind of change that can be asked for.
 */
export type WantedKind = "instance" | "class" | "new-class" | "remove-method" | "remove-class";

/**
 * Something that was done is not quite as it was meant.
 */
export type Warning = Diagnostic | { severity: Severity, message: string, };

export type WorkspaceEvent = { "event": "node_exited", "data": { reason: string, } } | { "event": "node_started", "data": { reinstalled: number, failed: Array<NotInstalled>, waiting: number, } } | { "event": "flush_completed", "data": { files: Array<FlushedFile>, } } | { "event": "logged", "data": { entry: Entry, } } | { "event": "disk_changed", "data": { files: Array<string>, } } | { "event": "changes_waiting", "data": { count: number, } } | { "event": "approvals_waiting", "data": { count: number, } } | { "event": "stopping", "data": { reason: string, } } | { "event": "rotated", "data": Record<symbol, never> } | { "event": "dropped", "data": { count: number, } } | { "event": "gap", "data": { from: number, to: number, } };

/**
 * An event as it is sent.
 */
export type push = { "type": "push", 
/**
 * On channels that number their events.
 */
seq?: number, } & ({ "channel": "transcript" } & TranscriptEvent | { "channel": "actors" } & ActorsEvent | { "channel": "classes" } & ClassesEvent | { "channel": "bindings" } & BindingsEvent | { "channel": "supervision" } & SupervisionEvent | { "channel": "object" } & ObjectEvent | { "channel": "reload_check" } & ReloadCheckEvent | { "channel": "workspace" } & WorkspaceEvent | { "channel": "logs" } & LogsEvent | { "channel": "changes" } & ChangesEvent | { "channel": "tests" } & TestsEvent | { "channel": "desk" } & DeskEvent | { "channel": "audit" } & AuditEvent | { "channel": "approvals" } & ApprovalsEvent);

/** What each operation is asked with, and what it answers. */
export type Operations = {
  "eval": { request: Eval, answer: EvalAnswer },
  "stdin": { request: Stdin, answer: Nothing },
  "interrupt": { request: Interrupt, answer: ValueAnswer },
  "loop-run": { request: LoopRun, answer: LoopRunAnswer },
  "run-entry": { request: RunEntry, answer: EvalAnswer },
  "complete": { request: Complete, answer: CompleteAnswer },
  "erlang-complete": { request: ErlangComplete, answer: ErlangCompleteAnswer },
  "hover": { request: Hover, answer: HoverAnswer },
  "info": { request: Info, answer: InfoAnswer },
  "docs": { request: Docs, answer: DocsAnswer },
  "diagnostics": { request: Diagnostics, answer: DiagnosticsAnswer },
  "show-codegen": { request: ShowCodegen, answer: ShowCodegenAnswer },
  "format": { request: Format, answer: FormatAnswer },
  "doc-cells": { request: DocCells, answer: DocCellsAnswer },
  "load-file": { request: LoadFile, answer: LoadAnswer },
  "load-source": { request: LoadSource, answer: SourceAnswer },
  "load-project": { request: LoadProject, answer: LoadAnswer },
  "load-tests": { request: LoadTests, answer: LoadAnswer },
  "reload": { request: Reload, answer: ReloadAnswer },
  "unload": { request: Unload, answer: Nothing },
  "modules": { request: Modules, answer: ModulesAnswer },
  "sessions": { request: Sessions, answer: SessionsAnswer },
  "bindings": { request: Bindings, answer: BindingsAnswer },
  "clear": { request: Clear, answer: Nothing },
  "unbind": { request: Unbind, answer: Nothing },
  "clone": { request: Clone, answer: CloneAnswer },
  "close": { request: Close, answer: Nothing },
  "handle-open": { request: HandleOpen, answer: HandleOpenAnswer },
  "handle-close": { request: HandleClose, answer: ValueAnswer },
  "handle-list": { request: HandleList, answer: HandleListAnswer },
  "question-keep": { request: QuestionKeep, answer: QuestionKeepAnswer },
  "question-take": { request: QuestionTake, answer: QuestionTakeAnswer },
  "job-start": { request: JobStart, answer: JobAnswer },
  "job-get": { request: JobGet, answer: JobAnswer },
  "job-cancel": { request: JobCancel, answer: Nothing },
  "approval-ask": { request: ApprovalAsk, answer: ApprovalAskAnswer },
  "approvals": { request: Approvals, answer: ApprovalsAnswer },
  "approval-answer": { request: ApprovalAnswer, answer: Nothing },
  "audit-summary": { request: AuditSummary, answer: AuditSummaryAnswer },
  "cancel": { request: Cancel, answer: ValueAnswer },
  "replay": { request: Replay, answer: ReplayAnswer },
  "desk-read": { request: DeskRead, answer: DeskReadAnswer },
  "doc-list": { request: DocList, answer: DocListAnswer },
  "doc-read": { request: DocRead, answer: DocReadAnswer },
  "doc-write": { request: DocWrite, answer: DocWriteAnswer },
  "desk-write": { request: DeskWrite, answer: DeskWriteAnswer },
  "list-classes": { request: ListClasses, answer: ListClassesAnswer },
  "methods": { request: Methods, answer: MethodsAnswer },
  "browse-classes": { request: BrowseClasses, answer: BrowseClassesAnswer },
  "browse-protocols": { request: BrowseProtocols, answer: BrowseProtocolsAnswer },
  "browse-method-source": { request: BrowseMethodSource, answer: BrowseMethodSourceAnswer },
  "browse-class-definition": { request: BrowseClassDefinition, answer: BrowseClassDefinitionAnswer },
  "browse-class": { request: BrowseClass, answer: BrowseClassAnswer },
  "browse-native-source": { request: BrowseNativeSource, answer: BrowseNativeSourceAnswer },
  "nav-query": { request: NavQuery, answer: NavQueryAnswer },
  "nav-symbols": { request: NavSymbols, answer: NavSymbolsAnswer },
  "actors": { request: Actors, answer: ActorsAnswer },
  "inspect": { request: Inspect, answer: InspectAnswer },
  "views": { request: Views, answer: ViewsAnswer },
  "view": { request: View, answer: ViewAnswer },
  "pid-stats": { request: PidStats, answer: PidStatsAnswer },
  "top-actors": { request: TopActors, answer: TopActorsAnswer },
  "supervision-tree": { request: SupervisionTree, answer: SupervisionTreeAnswer },
  "kill": { request: Kill, answer: ValueAnswer },
  "list-tests": { request: ListTests, answer: ListTestsAnswer },
  "test": { request: Test, answer: TestAnswer },
  "test-all": { request: TestAll, answer: TestAnswer },
  "test-results": { request: LastResults, answer: LastResultsAnswer },
  "save-method": { request: SaveMethod, answer: SaveMethodAnswer },
  "try-method": { request: TryMethod, answer: SaveMethodAnswer },
  "save-class": { request: SaveClass, answer: SaveClassAnswer },
  "remove-method": { request: RemoveMethod, answer: EntryAnswer },
  "remove-class": { request: RemoveClass, answer: EntryAnswer },
  "precheck-method": { request: PrecheckMethod, answer: PrecheckMethodAnswer },
  "changes": { request: Changes, answer: ChangesAnswer },
  "dirty": { request: Dirty, answer: DirtyAnswer },
  "diff": { request: Diff, answer: DiffAnswer },
  "revert": { request: Revert, answer: EntryAnswer },
  "restore": { request: Restore, answer: RestoreAnswer },
  "clear-changes": { request: ClearChanges, answer: ClearChangesAnswer },
  "take": { request: Take, answer: TakeAnswer },
  "settle": { request: Settle, answer: DecideAnswer },
  "discard": { request: Discard, answer: DecideAnswer },
  "change-sides": { request: ChangeSides, answer: ChangeSidesAnswer },
  "flush": { request: Flush, answer: FlushAnswer },
  "autoflush": { request: Autoflush, answer: AutoflushAnswer },
  "recheck-image": { request: RecheckImage, answer: FindingsAnswer },
  "reload-findings": { request: ReloadFindings, answer: FindingsAnswer },
  "subscribe": { request: Subscribe, answer: ChannelsAnswer },
  "unsubscribe": { request: Unsubscribe, answer: ChannelsAnswer },
  "enable-tracing": { request: EnableTracing, answer: Nothing },
  "disable-tracing": { request: DisableTracing, answer: Nothing },
  "clear-traces": { request: ClearTraces, answer: Nothing },
  "get-traces": { request: GetTraces, answer: GetTracesAnswer },
  "actor-stats": { request: ActorStats, answer: ActorStatsAnswer },
  "export-traces": { request: ExportTraces, answer: ExportTracesAnswer },
  "transcript": { request: Transcript, answer: TranscriptAnswer },
  "vitals": { request: Vitals, answer: VitalsAnswer },
  "log": { request: Log, answer: LogAnswer },
  "tree-list": { request: TreeList, answer: TreeListAnswer },
  "tree-read": { request: TreeRead, answer: TreeReadAnswer },
  "tree-follow": { request: TreeFollow, answer: Nothing },
  "tree-write": { request: TreeWrite, answer: TreeWriteAnswer },
  "mcp-call": { request: McpCall, answer: Nothing },
  "log-level": { request: LogLevel, answer: LogLevelAnswer },
  "describe": { request: Describe, answer: DescribeAnswer },
  "health": { request: Health, answer: HealthAnswer },
  "audit": { request: AuditTrail, answer: AuditTrailAnswer },
  "shutdown": { request: Shutdown, answer: Nothing },
};
