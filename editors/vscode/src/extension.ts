// Where the extension begins: one server, and the parts of the editor that ask it.
import * as vscode from "vscode";
import { Results, chosen } from "./evaluate";
import type { Actor } from "./protocol";
import { Server, reporting } from "./server";
import { Status } from "./status";
import { Tests } from "./tests";
import { Actors, Inspector } from "./trees";

let server: Server | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const log = vscode.window.createOutputChannel("Beamtalk Language Server", { log: true });
  const transcript = vscode.window.createOutputChannel("Beamtalk Transcript");
  const connection = new Server(log);
  server = connection;
  const results = new Results(connection);
  const actors = new Actors(connection);
  const inspector = new Inspector(connection);
  const tests = new Tests(connection);
  const refresh = (): void => {
    actors.refresh();
    void tests.refresh().catch((error) => log.error(String(error)));
  };
  context.subscriptions.push(
    log,
    transcript,
    results,
    tests,
    new Status(connection),
    connection.onTranscript((text) => transcript.append(text)),
    connection.onStatus(() => actors.refresh()),
    connection.onConnection((ready) => ready && refresh()),
    vscode.window.registerTreeDataProvider("beamtalk.actors", actors),
    vscode.window.registerTreeDataProvider("beamtalk.inspector", inspector),
    vscode.workspace.onDidSaveTextDocument((document) => document.languageId === "beamtalk" && refresh()),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("beamtalk.path")) void reporting(() => connection.start());
    }),
  );

  const command = (name: string, work: (...words: never[]) => Promise<unknown>): void => {
    context.subscriptions.push(vscode.commands.registerCommand(`beamtalk.${name}`, (...words: never[]) => reporting(() => work(...words))));
  };
  const editor = (): vscode.TextEditor => {
    const active = vscode.window.activeTextEditor;
    if (!active) throw new Error("No editor is open.");
    return active;
  };
  const here = (): string => editor().document.uri.toString();

  command("evaluateSelection", () => results.evaluate(editor()));
  command("clearResults", async () => results.clearAll());
  command("inspectSelection", async () => {
    const { text } = chosen(editor().document, editor().selection);
    await inspector.showValue(text.trim(), await connection.call("beamtalk.evaluate", { uri: here(), text }));
  });
  command("inspectActor", (actor: Actor) => inspector.show(actor.id));
  command("refreshActors", async () => refresh());
  command("loadThisFile", () => connection.call("beamtalk.load", { uri: here() }));
  command("flushAll", () => flush(connection, "beamtalk.flush", {}));
  command("flushThisFile", () => flush(connection, "beamtalk.flush.file", { uri: here() }));
  command("revertThisFile", async () => {
    const uri = here();
    const answer = await vscode.window.showWarningMessage("Drop the unflushed changes of this file?", { modal: true }, "Revert");
    if (answer === "Revert") await connection.call("beamtalk.revert", { uri });
  });
  command("runProgram", async () => terminal("run"));
  command("startWorkspace", async () => terminal("workspace start"));
  command("showTranscript", async () => transcript.show(true));
  command("restartServer", () => connection.start());

  await reporting(() => connection.start());
}

/** Flushes; what would delete files is done only after asking. */
export async function flush(connection: Server, command: "beamtalk.flush" | "beamtalk.flush.file", argument: { uri: string }| Record<string, never>): Promise<void> {
  const ask = (confirmDestructive: boolean) => connection.call(command, { ...argument, ...(confirmDestructive ? { confirmDestructive } : {}) } as { uri: string });
  let answer = await ask(false);
  if (answer.needsConfirmation?.length) {
    const list = answer.needsConfirmation.join("\n");
    const said = await vscode.window.showWarningMessage(`Flushing removes:\n${list}`, { modal: true }, "Flush and Remove");
    if (said !== "Flush and Remove") return;
    answer = await ask(true);
  }
  const count = answer.flushed?.length ?? 0;
  void vscode.window.showInformationMessage(count === 0 ? "Nothing to flush." : `Flushed ${count} ${count === 1 ? "file" : "files"}.`);
}

/** A command of the binary in the editor's terminal, for what a person starts and watches. */
function terminal(words: string): void {
  const path = vscode.workspace.getConfiguration("beamtalk").get("path", "beamtalk");
  const shell = vscode.window.terminals.find((open) => open.name === "Beamtalk") ?? vscode.window.createTerminal("Beamtalk");
  shell.show(true);
  shell.sendText(`${/^[\w./-]+$/.test(path) ? path : `"${path}"`} ${words}`);
}

export async function deactivate(): Promise<void> {
  await server?.dispose();
  server = undefined;
}
