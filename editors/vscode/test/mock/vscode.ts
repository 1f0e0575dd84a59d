// The edge of the editor: as much of the API as the extension and its language client use, recording what they show.
// Everything behind it is real: the client, the protocol, the binary.
import { readFileSync } from "node:fs";
import { URI } from "vscode-uri";

export const version = "1.91.0";
export { URI as Uri };

type Listener<T> = (event: T) => unknown;

export class Disposable {
  constructor(private readonly work: () => unknown = () => undefined) {}
  static from(...all: { dispose(): unknown }[]): Disposable {
    return new Disposable(() => all.forEach((one) => one.dispose()));
  }
  dispose(): unknown {
    return this.work();
  }
}

export class EventEmitter<T> {
  private readonly listeners = new Set<Listener<T>>();
  readonly event = (listener: Listener<T>, self?: unknown, disposables?: Disposable[]): Disposable => {
    const bound = self ? listener.bind(self) : listener;
    this.listeners.add(bound);
    const made = new Disposable(() => this.listeners.delete(bound));
    disposables?.push(made);
    return made;
  };
  fire(event: T): void {
    for (const listener of [...this.listeners]) listener(event);
  }
  dispose(): void {
    this.listeners.clear();
  }
}

export class CancellationTokenSource {
  private readonly emitter = new EventEmitter<void>();
  readonly token = { isCancellationRequested: false, onCancellationRequested: this.emitter.event };
  cancel(): void {
    this.token.isCancellationRequested = true;
    this.emitter.fire();
  }
  dispose(): void {}
}

export class CancellationError extends Error {}

export class Position {
  constructor(readonly line: number, readonly character: number) {}
  isBefore(other: Position): boolean {
    return this.line < other.line || (this.line === other.line && this.character < other.character);
  }
  isEqual(other: Position): boolean {
    return this.line === other.line && this.character === other.character;
  }
}

export class Range {
  readonly start: Position;
  readonly end: Position;
  constructor(start: Position | number, end: Position | number, endLine?: number, endCharacter?: number) {
    this.start = typeof start === "number" ? new Position(start, end as number) : start;
    this.end = typeof start === "number" ? new Position(endLine ?? 0, endCharacter ?? 0) : (end as Position);
  }
  get isEmpty(): boolean {
    return this.start.isEqual(this.end);
  }
}

export class Selection extends Range {
  get active(): Position {
    return this.end;
  }
}

export class Location {
  constructor(readonly uri: URI, readonly range: Range) {}
}

export class MarkdownString {
  value: string;
  constructor(value = "") {
    this.value = value;
  }
  appendCodeblock(code: string, language = ""): this {
    this.value += `\n\`\`\`${language}\n${code}\n\`\`\`\n`;
    return this;
  }
}

export class ThemeColor {
  constructor(readonly id: string) {}
}
export class ThemeIcon {
  constructor(readonly id: string) {}
}
export class RelativePattern {
  constructor(readonly base: unknown, readonly pattern: string) {}
}
export class TreeItem {
  constructor(readonly label: string, readonly collapsibleState = 0) {}
}
export class TestMessage {
  location: Location | undefined;
  constructor(readonly message: string) {}
}
export class Diagnostic {
  constructor(readonly range: Range, readonly message: string, readonly severity = 0) {}
}
export class Hover {
  constructor(readonly contents: unknown, readonly range?: Range) {}
}
export class CompletionItem {
  constructor(readonly label: unknown, readonly kind?: number) {}
}
export class CompletionList {
  constructor(readonly items: unknown[] = [], readonly isIncomplete = false) {}
}
export class SnippetString {
  constructor(readonly value = "") {}
}
export class TextEdit {
  constructor(readonly range: Range, readonly newText: string) {}
}
export class CodeLens {
  command: unknown;
  constructor(readonly range: Range, command?: unknown) {
    this.command = command;
  }
}
export class DocumentSymbol {
  children: unknown[] = [];
  constructor(readonly name: string, readonly detail: string, readonly kind: number, readonly range: Range, readonly selectionRange: Range) {}
}

export class TabInputText {
  constructor(readonly uri: URI) {}
}

class Plain {
  constructor(...values: unknown[]) {
    Object.assign(this, values);
  }
}
// Made by the client for answers that no test of ours looks into.
export class TestRunRequest extends Plain {}
export class SymbolInformation extends Plain {}
export class SignatureInformation extends Plain {}
export class SignatureHelp extends Plain {}
export class ParameterInformation extends Plain {}
export class SemanticTokens extends Plain {}
export class SemanticTokensEdit extends Plain {}
export class SemanticTokensEdits extends Plain {}
export class SelectionRange extends Plain {}
export class LinkedEditingRanges extends Plain {}
export class InlineValueVariableLookup extends Plain {}
export class InlineValueText extends Plain {}
export class InlineValueEvaluatableExpression extends Plain {}
export class InlineCompletionList extends Plain {}
export class InlineCompletionItem extends Plain {}
export class InlayHintLabelPart extends Plain {}
export class InlayHint extends Plain {}
export class FoldingRange extends Plain {}
export class DocumentLink extends Plain {}
export class DocumentHighlight extends Plain {}
export class DiagnosticRelatedInformation extends Plain {}
export class ColorPresentation extends Plain {}
export class ColorInformation extends Plain {}
export class Color extends Plain {}
export class CodeAction extends Plain {}
export class CallHierarchyItem extends Plain {}
export class CallHierarchyIncomingCall extends Plain {}
export class CallHierarchyOutgoingCall extends Plain {}
export class TypeHierarchyItem extends Plain {}
export class WorkspaceEdit extends Plain {}
export class SnippetTextEdit extends Plain {}
export class TabInputTextDiff extends Plain {}
export class TabInputCustom extends Plain {}
export class TabInputNotebook extends Plain {}
export class CodeActionKind {
  constructor(readonly value: string) {}
  append(part: string): CodeActionKind {
    return new CodeActionKind(this.value ? `${this.value}.${part}` : part);
  }
  static readonly Empty = new CodeActionKind("");
  static readonly QuickFix = new CodeActionKind("quickfix");
  static readonly Refactor = new CodeActionKind("refactor");
  static readonly RefactorExtract = new CodeActionKind("refactor.extract");
  static readonly RefactorInline = new CodeActionKind("refactor.inline");
  static readonly RefactorRewrite = new CodeActionKind("refactor.rewrite");
  static readonly Source = new CodeActionKind("source");
  static readonly SourceOrganizeImports = new CodeActionKind("source.organizeImports");
}

const numbered = <N extends string>(...names: N[]): Record<N, number> => Object.fromEntries(names.map((name, index) => [name, index])) as Record<N, number>;
export const DiagnosticSeverity = numbered("Error", "Warning", "Information", "Hint");
export const DiagnosticTag = { Unnecessary: 1, Deprecated: 2 };
export const CompletionItemTag = { Deprecated: 1 };
export const CompletionItemKind = { Text: 0, TypeParameter: 24 };
export const CompletionTriggerKind = numbered("Invoke", "TriggerCharacter", "TriggerForIncompleteCompletions");
export const SymbolTag = { Deprecated: 1 };
export const SymbolKind = { Property: 6, TypeParameter: 25 };
export const SignatureHelpTriggerKind = { Invoke: 1, TriggerCharacter: 2, ContentChange: 3 };
export const DocumentHighlightKind = numbered("Text", "Read", "Write");
export const FoldingRangeKind = { Comment: 1, Imports: 2, Region: 3 };
export const CodeActionTriggerKind = { Invoke: 1, Automatic: 2 };
export const InlineCompletionTriggerKind = { Invoke: 0, Automatic: 1 };
export const TextDocumentSaveReason = { Manual: 1, AfterDelay: 2, FocusOut: 3 };
export const NotebookCellKind = { Markup: 1, Code: 2 };
export const LogLevel = numbered("Off", "Trace", "Debug", "Info", "Warning", "Error");
export const FileType = { File: 1, Directory: 2 };
export const ProgressLocation = { SourceControl: 1, Window: 10, Notification: 15 };
export const TreeItemCollapsibleState = numbered("None", "Collapsed", "Expanded");
export const StatusBarAlignment = { Left: 1, Right: 2 };
export const DecorationRangeBehavior = numbered("OpenOpen", "ClosedClosed", "OpenClosed", "ClosedOpen");
export const TestRunProfileKind = { Run: 1, Debug: 2, Coverage: 3 };

// What the editor shows and holds

export class TextDocument {
  readonly languageId = "beamtalk";
  readonly isUntitled = false;
  readonly isDirty = false;
  readonly isClosed = false;
  readonly eol = 1;
  readonly encoding = "utf8";
  version = 1;
  constructor(readonly uri: URI, private text: string) {}
  get fileName(): string {
    return this.uri.fsPath;
  }
  get lineCount(): number {
    return this.text.split("\n").length;
  }
  change(text: string): void {
    this.text = text;
    this.version += 1;
    state.changed.fire({ document: this, contentChanges: [{ text }], reason: undefined });
  }
  private offset(position: Position): number {
    return this.text.split("\n").slice(0, position.line).join("\n").length + (position.line > 0 ? 1 : 0) + position.character;
  }
  getText(range?: Range): string {
    return range ? this.text.slice(this.offset(range.start), this.offset(range.end)) : this.text;
  }
  lineAt(line: number): { text: string; range: Range } {
    const text = this.text.split("\n")[line] ?? "";
    return { text, range: new Range(line, 0, line, text.length) };
  }
}

type Decoration = { options: unknown };
type Editor = { document: TextDocument; selection: Selection; setDecorations(kind: Decoration, options: unknown[]): void; decorations: Map<Decoration, unknown[]> };

/** What tests look at and set. */
export const state = {
  settings: {} as Record<string, unknown>,
  messages: [] as string[],
  /** What the user answers to a question. */
  answer: undefined as string | undefined,
  providers: new Map<string, unknown[]>(),
  trees: new Map<string, { getChildren(parent?: unknown): Promise<unknown[]>; getTreeItem(item: unknown): TreeItem }>(),
  commands: new Map<string, (...words: unknown[]) => unknown>(),
  context: new Map<string, unknown>(),
  statusBar: [] as { text: string; tooltip?: string }[],
  terminal: [] as string[],
  output: new Map<string, string>(),
  diagnostics: new Map<string, Diagnostic[]>(),
  controllers: [] as ReturnType<typeof tests.createTestController>[],
  opened: new EventEmitter<TextDocument>(),
  closed: new EventEmitter<TextDocument>(),
  saved: new EventEmitter<TextDocument>(),
  changed: new EventEmitter<unknown>(),
  published: new EventEmitter<string>(),
  tabs: new EventEmitter<unknown>(),
  status: new EventEmitter<string>(),
  printed: new EventEmitter<string>(),
  configuration: new EventEmitter<{ affectsConfiguration(section: string): boolean }>(),
};

export function open(path: string, line = 0): Editor {
  const document = new TextDocument(URI.file(path), readFileSync(path, "utf8"));
  workspace.textDocuments.push(document);
  const decorations = new Map<Decoration, unknown[]>();
  const editor: Editor = {
    document,
    selection: new Selection(line, 0, line, 0),
    decorations,
    setDecorations: (kind, options) => void decorations.set(kind, options),
  };
  window.visibleTextEditors.push(editor);
  window.activeTextEditor = editor;
  const tab = { isActive: true, input: new TabInputText(document.uri) };
  window.tabGroups.all[0]?.tabs.push(tab);
  state.tabs.fire({ opened: [tab], closed: [], changed: [] });
  state.opened.fire(document);
  return editor;
}

const never = new EventEmitter<never>().event;
const nothing = new Disposable();

export const workspace = {
  textDocuments: [] as TextDocument[],
  notebookDocuments: [],
  workspaceFolders: [] as { uri: URI; name: string; index: number }[],
  onDidOpenTextDocument: state.opened.event,
  onDidCloseTextDocument: state.closed.event,
  onDidSaveTextDocument: state.saved.event,
  onDidChangeTextDocument: state.changed.event,
  onDidChangeConfiguration: state.configuration.event,
  onDidChangeWorkspaceFolders: never,
  onWillSaveTextDocument: never,
  onWillCreateFiles: never,
  onWillRenameFiles: never,
  onWillDeleteFiles: never,
  onDidCreateFiles: never,
  onDidRenameFiles: never,
  onDidDeleteFiles: never,
  onDidOpenNotebookDocument: never,
  onDidCloseNotebookDocument: never,
  onDidSaveNotebookDocument: never,
  onDidChangeNotebookDocument: never,
  fs: {},
  getWorkspaceFolder: (_: URI) => workspace.workspaceFolders[0],
  asRelativePath: (path: unknown) => String(path),
  getConfiguration(section = "") {
    const key = (name: string) => (section ? `${section}.${name}` : name);
    return {
      get: (name: string, otherwise?: unknown) => state.settings[key(name)] ?? otherwise,
      has: (name: string) => key(name) in state.settings,
      inspect: () => undefined,
      update: async (name: string, value: unknown) => void (state.settings[key(name)] = value),
    };
  },
  createFileSystemWatcher: () => ({ onDidCreate: never, onDidChange: never, onDidDelete: never, dispose() {} }),
  registerTextDocumentContentProvider(scheme: string, provider: unknown) {
    state.providers.set(`content ${scheme}`, [provider]);
    return nothing;
  },
  applyEdit: async () => true,
};

const say = async (text: string): Promise<string | undefined> => {
  state.messages.push(text);
  return state.answer;
};

export const window = {
  activeTextEditor: undefined as Editor | undefined,
  visibleTextEditors: [] as Editor[],
  terminals: [] as { name: string; show(): void; sendText(text: string): void }[],
  tabGroups: { all: [{ isActive: true, tabs: [] as { isActive: boolean; input: TabInputText }[] }], onDidChangeTabs: state.tabs.event, onDidChangeTabGroups: never },
  state: { focused: true },
  onDidChangeActiveTextEditor: never,
  onDidChangeVisibleTextEditors: never,
  onDidChangeWindowState: never,
  showInformationMessage: say,
  showWarningMessage: say,
  showErrorMessage: say,
  showTextDocument: async () => undefined,
  withProgress: (_: unknown, work: (progress: unknown, token: unknown) => unknown) => work({ report() {} }, new CancellationTokenSource().token),
  createOutputChannel(name: string) {
    const append = (text: unknown): void => {
      state.output.set(name, (state.output.get(name) ?? "") + String(text));
      state.printed.fire(name);
    };
    const line = (text: unknown): void => append(`${String(text)}\n`);
    return { name, logLevel: LogLevel.Info, onDidChangeLogLevel: never, append, appendLine: line, trace: line, debug: line, info: line, warn: line, error: line, replace: line, clear() {}, show() {}, hide() {}, dispose() {} };
  },
  createStatusBarItem() {
    const item = { text: "", tooltip: "", name: "", command: "", show() {}, hide() {}, dispose() {} };
    const watched = new Proxy(item, {
      set(target, name, value) {
        Object.assign(target, { [name]: value });
        if (name === "tooltip") state.status.fire(String(value));
        return true;
      },
    });
    state.statusBar.push(watched);
    return watched;
  },
  createTextEditorDecorationType: (options: unknown) => ({ options, dispose() {} }),
  createTerminal(name: string) {
    const made = { name, show() {}, sendText: (text: string) => void state.terminal.push(text) };
    window.terminals.push(made);
    return made;
  },
  registerTreeDataProvider(id: string, provider: never) {
    state.trees.set(id, provider);
    return nothing;
  },
};

export const commands = {
  registerCommand(name: string, work: (...words: unknown[]) => unknown) {
    if (state.commands.has(name)) throw new Error(`command '${name}' already exists`);
    state.commands.set(name, work);
    return new Disposable(() => state.commands.delete(name));
  },
  async executeCommand(name: string, ...words: unknown[]) {
    if (name === "setContext") return void state.context.set(words[0] as string, words[1]);
    const command = state.commands.get(name);
    if (!command) throw new Error(`command '${name}' not found`);
    return command(...words);
  },
};

function registered(kind: string) {
  return (...words: unknown[]) => {
    state.providers.set(kind, words);
    return new Disposable(() => state.providers.delete(kind));
  };
}

export const languages = {
  match: (selector: { scheme?: string; language?: string }[] | { scheme?: string; language?: string }, document: TextDocument) => {
    const filters = Array.isArray(selector) ? selector : [selector];
    return filters.some((filter) => (!filter.scheme || filter.scheme === document.uri.scheme) && (!filter.language || filter.language === document.languageId)) ? 10 : 0;
  },
  createDiagnosticCollection: (name: string) => ({
    name,
    set(uri: URI, found: Diagnostic[]) {
      state.diagnostics.set(uri.toString(), found ?? []);
      state.published.fire(uri.toString());
    },
    delete: (uri: URI) => state.diagnostics.delete(uri.toString()),
    get: (uri: URI) => state.diagnostics.get(uri.toString()),
    has: (uri: URI) => state.diagnostics.has(uri.toString()),
    clear: () => state.diagnostics.clear(),
    forEach() {},
    dispose() {},
  }),
  ...Object.fromEntries(
    ["SignatureHelp", "WorkspaceSymbol", "TypeHierarchy", "TypeDefinition", "SelectionRange", "Rename", "Reference", "LinkedEditingRange", "InlineCompletionItem", "InlayHints", "InlineValues", "Implementation", "Hover", "FoldingRange", "DocumentSymbol", "DocumentSemanticTokens", "DocumentRangeSemanticTokens", "DocumentLink", "DocumentHighlight", "Definition", "Declaration", "CompletionItem", "Color", "CodeLens", "CodeActions", "CallHierarchy"]
      .map((kind) => [`register${kind}Provider`, registered(kind)])
      .concat(["OnTypeFormatting", "DocumentRangeFormatting", "DocumentFormatting"].map((kind) => [`register${kind}EditProvider`, registered(kind)])),
  ),
};

class Items {
  private readonly all = new Map<string, { id: string }>();
  get size(): number {
    return this.all.size;
  }
  add(item: { id: string }): void {
    this.all.set(item.id, item);
  }
  replace(items: { id: string }[]): void {
    this.all.clear();
    for (const item of items) this.add(item);
  }
  get(id: string): unknown {
    return this.all.get(id);
  }
  forEach(work: (item: never) => void): void {
    this.all.forEach((item) => work(item as never));
  }
}

export const tests = {
  createTestController(id: string, label: string) {
    const outcomes: string[] = [];
    const note = (kind: string) => (item: { id: string }, message?: TestMessage | number): void =>
      void outcomes.push([kind, item.id, message instanceof TestMessage ? message.message : ""].filter(Boolean).join(" "));
    const made = {
      id,
      label,
      items: new Items(),
      outcomes,
      profiles: [] as ((request: unknown, token: unknown) => unknown)[],
      resolveHandler: undefined as unknown,
      refreshHandler: undefined as unknown,
      createTestItem: (id: string, label: string, uri?: URI) => ({ id, label, uri, range: undefined, children: new Items() }),
      createRunProfile: (_: string, __: number, work: (request: unknown, token: unknown) => unknown) => void made.profiles.push(work),
      createTestRun: () => ({ started: note("started"), passed: note("passed"), failed: note("failed"), errored: note("errored"), skipped: note("skipped"), end: () => void outcomes.push("end") }),
      dispose() {},
    };
    state.controllers.push(made);
    return made;
  },
};

export const env = { language: "en", appName: "mock", openExternal: async () => true };
export const extensions = { getExtension: () => undefined };
