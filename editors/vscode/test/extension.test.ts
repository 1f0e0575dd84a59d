// The extension as a whole: the editor's API mocked at its edge, language client, protocol and binary real.
import assert from "node:assert/strict";
import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { activate, deactivate } from "../src/extension";
import * as mock from "./mock/vscode";

const binary = resolve(process.env.BEAMTALK ?? "../../target/debug/beamtalk");
const folder = mkdtempSync(join(tmpdir(), "beamtalk-vscode-"));
const lamp = join(folder, "src/Lamp.bt");
const context = { subscriptions: [] as { dispose(): unknown }[] };
const token = new mock.CancellationTokenSource().token;

/** Waits for an event, not for a time; the limit only ends a broken run. */
function until<T>(event: (listener: (value: T) => unknown) => { dispose(): unknown }, wanted: (value: T) => boolean): Promise<T> {
  return new Promise((found, failed) => {
    const limit = setTimeout(() => failed(new Error("nothing came")), 30_000);
    const subscription = event((value) => {
      if (!wanted(value)) return;
      clearTimeout(limit);
      subscription.dispose();
      found(value);
    });
  });
}

before(async () => {
  mkdirSync(join(folder, "src"));
  writeFileSync(join(folder, "beamtalk.toml"), '[package]\nname = "shop"\nversion = "0.1.0"\n');
  writeFileSync(lamp, "/// Gives light.\nActor subclass: Lamp\n  state: on = false\n\n  /// Switches over.\n  toggle => self.on := self.on not\n");
  process.env.BEAMTALK_HOME = join(folder, "home");
  mock.state.settings["beamtalk.path"] = binary;
  mock.workspace.workspaceFolders.push({ uri: mock.Uri.file(folder), name: "shop", index: 0 });
  await activate(context as never);
});

after(async () => {
  await deactivate();
  for (const part of context.subscriptions) part.dispose();
  rmSync(folder, { recursive: true, force: true });
});

test("the extension starts the server and says nothing is wrong", () => {
  assert.deepEqual(mock.state.messages, []);
  assert.equal(mock.state.statusBar[0]?.text, "$(circle-outline) Beamtalk");
});

test("a fault in a file is a diagnostic, and goes when it is mended", async () => {
  const editor = mock.open(lamp);
  const key = editor.document.uri.toString();
  const text = editor.document.getText();
  const broken = until(mock.state.published.event, (uri) => uri === key && (mock.state.diagnostics.get(uri)?.length ?? 0) > 0);
  editor.document.change(`${text}\n  broken => self frobnicate: (\n`);
  await broken;
  const mended = until(mock.state.published.event, (uri) => uri === key && mock.state.diagnostics.get(uri)?.length === 0);
  editor.document.change(text);
  await mended;
});

test("hover answers through the client", async () => {
  const [, provider] = mock.state.providers.get("Hover") as [unknown, { provideHover(document: unknown, position: unknown, token: unknown): Promise<mock.Hover> }];
  const editor = mock.window.activeTextEditor;
  assert.ok(editor);
  const hover = await provider.provideHover(editor.document, new mock.Position(1, 18), token);
  assert.match(JSON.stringify(hover.contents), /Gives light/);
});

test("the manifest and the code agree", async () => {
  const { contributes } = JSON.parse((await import("node:fs")).readFileSync("package.json", "utf8"));
  const declared: string[] = contributes.commands.map((one: { command: string }) => one.command);
  for (const command of declared) assert.ok(mock.state.commands.has(command), command);
  for (const { id } of contributes.views.beamtalk) assert.ok(mock.state.trees.has(id), id);
  const used = [...contributes.keybindings, ...Object.values(contributes.menus).flat()] as { command: string }[];
  for (const { command } of used) assert.ok(declared.includes(command), command);
});

test("a program is run in a terminal", async () => {
  await mock.commands.executeCommand("beamtalk.runProgram");
  assert.deepEqual(mock.state.terminal, [`${binary} run`]);
});
