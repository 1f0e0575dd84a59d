// The extension as a whole: the editor's API mocked at its edge, language client, protocol and binary real.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import * as mock from "./mock/vscode";
import { binary, lamp, start, stop, until } from "./support";

const token = new mock.CancellationTokenSource().token;

before(start);
after(stop);

test("the extension starts the server and says nothing is wrong", async () => {
  const isReady = (text: string): boolean => text.includes("No workspace runs here");
  if (!isReady(mock.state.statusBar[0]?.tooltip ?? "")) await until(mock.state.status.event, isReady);
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

test("senders above a method open the editor's own list", async () => {
  const shown: unknown[] = [];
  mock.commands.registerCommand("editor.action.showReferences", (...words) => shown.push(...words));
  const uri = mock.Uri.file(lamp).toString();
  const place = { line: 5, character: 2 };
  await mock.commands.executeCommand("beamtalk.showReferences", uri, place, [{ uri, range: { start: place, end: place } }]);
  assert.equal(String(shown[0]), uri);
  assert.equal((shown[2] as unknown[]).length, 1);
});

test("the manifest and the code agree", () => {
  const { contributes } = JSON.parse(readFileSync("package.json", "utf8"));
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

test("a program that is not there is said, and a right path mends it", async () => {
  mock.state.messages.length = 0;
  const change = async (path: string): Promise<void> => {
    mock.state.settings["beamtalk.path"] = path;
    await mock.commands.executeCommand("beamtalk.restartServer");
  };
  await change("/nowhere/beamtalk");
  assert.match(mock.state.messages.join("\n"), /beamtalk/i);
  assert.match(mock.state.statusBar[0]?.tooltip ?? "", /does not run/);
  mock.state.messages.length = 0;
  await mock.commands.executeCommand("beamtalk.flushAll");
  assert.equal(mock.state.messages.length, 1, mock.state.messages.join("\n"));
  const mended = until(mock.state.status.event, (text) => text.includes("No workspace runs here"));
  await change(binary);
  await mended;
});

/** A folder that somebody sent must not choose which program is run. */
test("no folder can set the path of the program", () => {
  const { contributes, capabilities } = JSON.parse(readFileSync("package.json", "utf8"));
  assert.equal(contributes.configuration.properties["beamtalk.path"].scope, "machine");
  assert.equal(capabilities.untrustedWorkspaces.supported, false);
});
