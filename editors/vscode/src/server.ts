// The one connection of the extension: `beamtalk lsp`. Everything else asks through it.
import * as vscode from "vscode";
import { ExecuteCommandRequest, LanguageClient, State as ClientState, type Executable, type LanguageClientOptions, type Location, type Position } from "vscode-languageclient/node";
import type { Commands, State, TestResult } from "./protocol";

/** A question the server cannot answer, in words for the user. */
export class Unavailable extends Error {}

export class Server implements vscode.Disposable {
  private client: LanguageClient | undefined;
  private readonly statusEmitter = new vscode.EventEmitter<State>();
  private readonly transcriptEmitter = new vscode.EventEmitter<string>();
  private readonly connectionEmitter = new vscode.EventEmitter<boolean>();
  private readonly testedEmitter = new vscode.EventEmitter<TestResult[]>();
  /** Tests were run from above their methods. */
  readonly onTested = this.testedEmitter.event;
  /** The workspace started, ended, or its counts changed. */
  readonly onStatus = this.statusEmitter.event;
  readonly onTranscript = this.transcriptEmitter.event;
  /** True when the server is ready, false when it is gone. */
  readonly onConnection = this.connectionEmitter.event;

  constructor(private readonly log: vscode.LogOutputChannel) {}

  async start(): Promise<void> {
    await this.stop();
    const settings = vscode.workspace.getConfiguration("beamtalk");
    const executable: Executable = { command: settings.get("path", "beamtalk"), args: ["lsp"] };
    const options: LanguageClientOptions = {
      documentSelector: ["file", "untitled", "beamtalk-stdlib", "beamtalk-live"].map((scheme) => ({ scheme, language: "beamtalk" })),
      initializationOptions: { live: settings.get("live", "onSave"), events: true },
      outputChannel: this.log,
      middleware: {
        // What stands above a method was clicked: its senders, or a test, of whose answer the editor shows nothing by itself.
        executeCommand: async (command, words, next) => {
          if (command === "beamtalk.showReferences") return this.showReferences(words[0], words[1], words[2]);
          const answer = await next(command, words);
          if (command === "beamtalk.runTest") this.testedEmitter.fire((answer as Commands["beamtalk.runTest"]["answer"]).results);
          return answer;
        },
      },
      synchronize: { configurationSection: "beamtalk", fileEvents: vscode.workspace.createFileSystemWatcher("**/{*.bt,*.btscript,beamtalk.toml}") },
    };
    const client = new LanguageClient("beamtalk", "Beamtalk", executable, options);
    this.client = client;
    client.onDidChangeState(({ newState }) => {
      if (this.client === client) this.connectionEmitter.fire(newState === ClientState.Running);
    });
    client.onNotification("beamtalk/status", (state: State) => this.statusEmitter.fire(state));
    client.onNotification("beamtalk/transcript", ({ text }: { text: string }) => this.transcriptEmitter.fire(text));
    await client.start();
  }

  async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    if (client?.needsStop()) await client.stop();
  }

  /** Does the running server offer this command? */
  can(command: keyof Commands): boolean {
    return this.client?.initializeResult?.capabilities.executeCommandProvider?.commands.includes(command) ?? false;
  }

  async call<C extends keyof Commands>(command: C, argument: Commands[C]["argument"], token?: vscode.CancellationToken): Promise<Commands[C]["answer"]> {
    if (!this.client) throw new Unavailable("The language server does not run. Is the setting beamtalk.path right?");
    if (!this.can(command)) throw new Unavailable(`This beamtalk does not offer ${command}: it is too old, or too new for the extension.`);
    return this.client.sendRequest(ExecuteCommandRequest.type, { command, arguments: [argument] }, token);
  }

  /** Places in the editor's own list of references. */
  private async showReferences(uri: string, position: Position, locations: Location[]): Promise<void> {
    const convert = this.client?.protocol2CodeConverter;
    if (!convert) return;
    await vscode.commands.executeCommand("editor.action.showReferences", convert.asUri(uri), convert.asPosition(position), locations.map((one) => convert.asLocation(one)));
  }

  async dispose(): Promise<void> {
    await this.stop();
    for (const emitter of [this.statusEmitter, this.transcriptEmitter, this.connectionEmitter, this.testedEmitter]) emitter.dispose();
  }
}

/** Runs a command of the user's: what fails is said, never thrown at the editor. */
export async function reporting<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    void vscode.window.showErrorMessage(error instanceof Error ? error.message : String(error));
    return undefined;
  }
}
