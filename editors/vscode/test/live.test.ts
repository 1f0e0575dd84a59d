// The extension with a workspace that runs: a real daemon, a real node.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { after, before, test } from "node:test";
import * as mock from "./mock/vscode";
import { beamtalk, lamp, start, stop, until, write } from "./support";

type Options = { range: mock.Range; hoverMessage: mock.MarkdownString; renderOptions: { after: { contentText: string } } };

before(async () => {
  await start();
  const running = until(mock.state.status.event, (text) => text.includes("runs:"));
  beamtalk("workspace", "start");
  await running;
});

after(async () => {
  try {
    beamtalk("workspace", "stop");
  } finally {
    await stop();
  }
});

/** Evaluates one line of a scratch file and answers what stands behind it. */
async function evaluated(text: string): Promise<{ line: string; failed: boolean }> {
  const editor = mock.open(write("scratch.btscript", text));
  await mock.commands.executeCommand("beamtalk.evaluateSelection");
  const [values = [], failures = []] = [...editor.decorations.values()] as Options[][];
  const shown = [...values, ...failures];
  assert.equal(shown.length, 1, JSON.stringify(mock.state.messages));
  return { line: shown[0]?.renderOptions.after.contentText ?? "", failed: failures.length === 1 };
}

test("the status bar and the context know that it runs", () => {
  assert.match(mock.state.statusBar[0]?.text ?? "", /circle-filled/);
  assert.equal(mock.state.context.get("beamtalk.running"), true);
});

test("a value stands behind the line, an error is one, variables stay", async () => {
  assert.deepEqual(await evaluated("x := 3 + 4"), { line: " => 7", failed: false });
  assert.deepEqual(await evaluated("x * 6"), { line: " => 42", failed: false });
  const wrong = await evaluated("3 frobnicate");
  assert.ok(wrong.failed);
  assert.match(wrong.line, /^ ! does_not_understand: /);
});

test("a result goes when its text changes", async () => {
  await evaluated("1 + 1");
  const editor = mock.window.activeTextEditor;
  assert.ok(editor);
  assert.equal(mock.state.context.get("beamtalk.hasResults"), true);
  editor.document.change("1 + 2");
  assert.deepEqual([...editor.decorations.values()].flat(), []);
});

test("what a program prints is in the transcript", async () => {
  const printed = until(mock.state.printed.event, (name) => name === "Beamtalk Transcript");
  await evaluated('Transcript show: "hello from the image"');
  await printed;
  assert.match(mock.state.output.get("Beamtalk Transcript") ?? "", /hello from the image/);
});

test("a saved file is loaded, its actors are listed and inspected", async () => {
  const editor = mock.open(lamp);
  mock.state.saved.fire(editor.document);
  const spawned = until(mock.state.status.event, (text) => text.includes("1 actors"));
  assert.match((await evaluated("lamp := Lamp spawn")).line, /Actor\(Lamp, /);
  await spawned;
  const tree = mock.state.trees.get("beamtalk.actors");
  assert.ok(tree);
  const [actor] = await tree.getChildren();
  assert.equal(tree.getTreeItem(actor).label, "Lamp");
  await mock.commands.executeCommand("beamtalk.inspectActor", actor);
  const inspector = mock.state.trees.get("beamtalk.inspector");
  assert.ok(inspector);
  const [root] = await inspector.getChildren();
  const parts = (await inspector.getChildren(root)) as { name: string; value: string }[];
  assert.ok(parts.some((part) => part.name === "on" && part.value === "false"), JSON.stringify(parts));
});

test("tests are found, and run", async () => {
  const controller = mock.state.controllers[0];
  assert.ok(controller);
  await (controller.refreshHandler as () => Promise<void>)();
  assert.equal(controller.items.size, 1);
  await controller.profiles[0]?.({ include: undefined }, new mock.CancellationTokenSource().token);
  assert.ok(controller.outcomes.includes("passed LampTest>>testToggle"), controller.outcomes.join("; "));
  assert.ok(controller.outcomes.some((one) => /^(failed|errored) LampTest>>testWrong ./.test(one)), controller.outcomes.join("; "));
});

test("a change of the image is counted, and flushed to its file", async () => {
  const counted = until(mock.state.status.event, (text) => text.includes("1 unflushed change"));
  await evaluated("Lamp >> glow => #warm");
  await counted;
  assert.doesNotMatch(readFileSync(lamp, "utf8"), /glow/);
  mock.state.messages.length = 0;
  await mock.commands.executeCommand("beamtalk.flushAll");
  assert.deepEqual(mock.state.messages, ["Flushed 1 file."]);
  assert.match(readFileSync(lamp, "utf8"), /glow/);
});

test("changes of the image are dropped only after a question", async () => {
  const counted = until(mock.state.status.event, (text) => text.includes("1 unflushed change"));
  await evaluated("Lamp >> dim => #cold");
  await counted;
  mock.open(lamp);
  mock.state.answer = undefined;
  await mock.commands.executeCommand("beamtalk.revertThisFile");
  assert.equal((await evaluated("lamp dim")).line, " => #cold");
  mock.open(lamp);
  mock.state.answer = "Revert";
  await mock.commands.executeCommand("beamtalk.revertThisFile");
  assert.ok((await evaluated("lamp dim")).failed);
});

test("with onCommand a file is loaded when the person says so", async () => {
  const text = readFileSync(lamp, "utf8");
  writeFileSync(lamp, `${text.trimEnd()}\n\n  /// One more.\n  shine => #bright\n`);
  mock.open(lamp);
  await mock.commands.executeCommand("beamtalk.loadThisFile");
  assert.equal((await evaluated("lamp shine")).line, " => #bright");
});
