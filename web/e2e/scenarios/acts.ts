// Fixes of findings, changes of agents and removals, what Shift opens, results that are folded, a trail that fails.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { calls } from "../support/agent";
import { open, ready, type } from "../support/browser";
import { Stage } from "../support/stage";

const stage = Stage.of({
  "src/Bulb.bt": "Object subclass: Bulb\n\n  watts => ^ (60)\n\n  name => \"bulb\"\n",
  "src/Fuse.bt": "Object subclass: Fuse\n\n  amps => 10\n",
});
const text = (): Promise<string> => stage.page.locator("#pane-workspace .cm-line").allInnerTexts().then((lines) => lines.join("\n"));

stage.test("a compile error is mended by the name it proposes, a safe fix by the compiler's own", async () => {
  const wrong = await stage.evaluate("lamp := Lamp spawn. lmap");
  await wrong.getByRole("button", { name: "Did you mean 'lamp'?" }).click();
  assert.equal(await text(), "lamp := Lamp spawn. lamp");
  // The text is checked while it is typed; the fix is in what the mark says.
  await stage.goTo("#/file/src/Bulb.bt");
  const file = stage.pane("Classes").locator(".cm-content");
  await file.getByText("watts").waitFor();
  await stage.pane("Classes").locator(".cm-lintRange").nth(1).hover();
  const fix = stage.page.locator(".cm-tooltip").getByRole("button", { name: "Fix" }).first();
  await fix.waitFor();
  await stage.page.screenshot({ path: "e2e/shots/41-fix-light.png" });
  await fix.click();
  await stage.page.waitForFunction(() => document.querySelector("#pane-classes .cm-content")?.textContent?.includes("^ (60)") === false);
  await file.click();
  await stage.page.keyboard.press("ControlOrMeta+s");
  await stage.page.locator(".toast").getByText("src/Bulb.bt written").waitFor();
  assert.match(stage.house.read("src/Bulb.bt"), /watts => (\(60\)|\^ 60)\n/, "one of the two was mended");
});

stage.test("what agents changed is flushed apart from what a person did", async () => {
  await stage.goTo("#/class/Lamp/isOn");
  const source = stage.pane("Classes").locator(".cm-content");
  await source.getByText("isOn").waitFor();
  await source.click();
  await stage.page.keyboard.press("ControlOrMeta+a");
  await stage.page.keyboard.insertText("isOn => self.on and: [true]");
  await stage.page.keyboard.press("ControlOrMeta+s");
  await stage.page.locator(".toast").getByText("saved").waitFor();
  const done = await calls(stage.house, "save_method", { class: "Fuse", selector: "amps", source: "amps => 16" });
  assert.equal(done.isError, false, done.text);
  await stage.choose("Changes");
  const pane = stage.pane("Changes");
  await pane.getByText("Fuse>>amps").waitFor();
  await pane.getByRole("button", { name: "Flush agents'" }).click();
  await stage.page.locator(".toast").getByText("flushed 1 method across 1 file").waitFor();
  assert.match(stage.house.read("src/Fuse.bt"), /amps => 16/);
  assert.doesNotMatch(stage.house.read("src/Lamp.bt"), /and: \[true\]/);
  await pane.getByRole("button", { name: "Flush all" }).click();
  await pane.getByText("The image and the files agree.").waitFor();
});

stage.test("a removal deletes its file only for whoever types the name of the file", async () => {
  await stage.goTo("#/class/Fuse");
  await stage.pane("Classes").getByRole("tab", { name: "Definition" }).click();
  await stage.pane("Classes").getByRole("button", { name: "Remove class…" }).click();
  await stage.page.getByRole("alertdialog").getByRole("button", { name: "Remove" }).click();
  await stage.choose("Changes");
  const pane = stage.pane("Changes");
  await pane.getByRole("button", { name: "Flush removals…" }).click();
  const dialog = stage.page.getByRole("alertdialog");
  await dialog.getByText("src/Fuse.bt").first().waitFor();
  const go = dialog.getByRole("button", { name: "Flush removals" });
  assert.ok(await go.isDisabled());
  await dialog.getByRole("textbox").fill("src/Bulb.bt");
  assert.ok(await go.isDisabled(), "another name will not do");
  await dialog.getByRole("textbox").fill("src/Fuse.bt");
  await go.click();
  await pane.getByText("The image and the files agree.").waitFor();
  assert.ok(!existsSync(join(stage.house.project, "src/Fuse.bt")));
});

stage.test("pending changes are forgotten after a question: the image keeps its code, the file stays", async () => {
  const file = stage.house.read("src/Lamp.bt");
  const done = await calls(stage.house, "save_method", { class: "Lamp", selector: "isOn", source: "isOn => 7" });
  assert.equal(done.isError, false, done.text);
  const pane = stage.pane("Changes");
  await pane.getByText("Lamp>>isOn").waitFor();
  await pane.getByRole("button", { name: "Clear…" }).click();
  await stage.page.getByRole("alertdialog").getByRole("button", { name: "Cancel" }).click();
  await pane.getByText("Lamp>>isOn").waitFor();
  await pane.getByRole("button", { name: "Clear…" }).click();
  await stage.page.getByRole("alertdialog").getByText("1 pending change will be forgotten").waitFor();
  await stage.page.getByRole("alertdialog").getByRole("button", { name: "Forget" }).click();
  await pane.getByText("The image and the files agree.").waitFor();
  assert.equal(stage.house.read("src/Lamp.bt"), file);
  await stage.choose("Workspace");
  assert.equal(await stage.value("Lamp spawn isOn"), "7");
});

stage.test("examples of empty panes come into the text; the selection becomes a document that test-docs runs", async () => {
  await stage.choose("Workspace");
  await type(stage.page, "");
  await stage.choose("Transcript");
  await stage.pane("Transcript").getByRole("button", { name: /^Transcript show:/ }).click();
  // The editor is asked for the text when its pane is drawn.
  await stage.page.locator("#pane-workspace .cm-line").getByText('Transcript show: "hello"; cr', { exact: true }).waitFor();
  assert.equal(await text(), 'Transcript show: "hello"; cr');
  await stage.page.keyboard.press("ControlOrMeta+d");
  await stage.pane("Transcript").getByText("hello").waitFor();
  await type(stage.page, "6 * 7 // => 42");
  await stage.choose("Save the selection as a notebook");
  await stage.page.locator(".toast").getByText("docs/main.md written").waitFor();
  assert.equal(stage.house.read("docs/main.md"), "# main\n<!-- btnotebook -->\n\n```beamtalk\n6 * 7 // => 42\n```\n");
  await stage.pane("Classes").locator(".cm-content").getByText("btnotebook").waitFor();
  assert.match(await stage.house.beamtalk("test-docs", "docs/main.md"), /1 (passed|met)/);
});

stage.test("Shift opens a class browser and an Inspector of its own, each with its place, kept over a reload", async () => {
  await stage.goTo("#/class/Lamp/toggle");
  await stage.pane("Classes").locator(".cm-content").getByText("toggle").first().waitFor();
  await stage.goTo("#/implementors/name");
  const site = stage.pane("Classes").getByRole("listbox", { name: "implementors of name" }).getByRole("option", { name: /Bulb/ });
  await site.waitFor();
  await site.dblclick({ modifiers: ["Shift"] });
  const second = stage.pane("Classes 2");
  await second.locator(".cm-content").getByText("bulb").waitFor();
  assert.equal(stage.watched.context.pages().length, 1, "in this page");
  await stage.goTo("#/class/Lamp/toggle");
  await stage.pane("Classes").locator(".cm-content").getByText("toggle").first().waitFor();
  await stage.page.locator("#tab-classes2").click();
  assert.match(await second.locator(".cm-content").innerText(), /name => "bulb"/, "the first went elsewhere, the second stayed");
  const ids = await stage.page.evaluate(() => [...document.querySelectorAll("[id]")].map((one) => one.id));
  assert.deepEqual(ids.filter((id, at) => ids.indexOf(id) !== at), [], "no two parts of the page have one name");
  // Two Inspectors follow two actors.
  await stage.choose("Workspace");
  await stage.evaluate("one := Lamp spawn. two := Lamp spawn. 1", "ControlOrMeta+d");
  await stage.choose("Bindings");
  const row = (name: string) => stage.pane("Bindings").getByRole("row", { name: new RegExp(`^${name}\\b`) }).or(stage.pane("Bindings").getByRole("option", { name: new RegExp(`^${name}\\b`) })).first();
  await row("one").dblclick();
  await stage.pane("Inspector").getByText("Lamp", { exact: true }).first().waitFor();
  await row("two").click();
  await stage.pane("Bindings").getByRole("button", { name: "Inspect" }).click({ modifiers: ["Shift"] });
  await stage.pane("Inspector 2").getByText("Lamp", { exact: true }).first().waitFor();
  assert.match(await stage.pane("Inspector 2").getByRole("navigation", { name: "Path" }).innerText(), /two/);
  await stage.page.reload();
  await ready(stage.page);
  await stage.page.locator("#tab-inspector2").click();
  assert.match(await stage.pane("Inspector 2").getByRole("navigation", { name: "Path" }).innerText(), /two/);
  await stage.page.locator("#tab-classes2").click();
  await stage.pane("Classes 2").locator(".cm-content").getByText("bulb").waitFor();
});

stage.test("changes are narrowed by a filter, and only what is shown is flushed; an address of none says so", async () => {
  for (const [name, source] of [["watts", "watts => 100"], ["name", "name => \"lamp\""]] as const) {
    const done = await calls(stage.house, "save_method", { class: "Bulb", selector: name, source });
    assert.equal(done.isError, false, done.text);
  }
  await stage.choose("Changes");
  const pane = stage.pane("Changes");
  await pane.getByText("Bulb>>name").waitFor();
  await pane.getByLabel("Filter changes").fill("watts");
  await pane.getByText("Bulb>>name").waitFor({ state: "detached" });
  await pane.getByRole("button", { name: "Flush shown" }).click();
  await stage.page.locator(".toast").getByText("flushed 1 method").waitFor();
  await pane.getByLabel("Filter changes").fill("");
  await pane.getByText("Bulb>>name").waitFor();
  assert.match(stage.house.read("src/Bulb.bt"), /watts => 100[^]*name => "bulb"/);
  await stage.goTo("#/changes/99999");
  await pane.getByRole("alert").getByText("Nothing called '99999'.").waitFor();
  await pane.getByRole("button", { name: "Dismiss" }).click();
  await pane.getByRole("button", { name: "Flush all" }).click();
  await pane.getByText("The image and the files agree.").waitFor();
});

stage.test("older results are a line each: a failed one looks failed, and is whole again when pressed", async () => {
  const context = stage.watched.context;
  await context.addInitScript(() => {
    const Real = WebSocket;
    globalThis.WebSocket = class extends Real {
      constructor(url: string | URL, words?: string | string[]) {
        super(url, words);
        (globalThis as unknown as { feed: (frame: unknown) => void }).feed = (frame) => this.onmessage?.(new MessageEvent("message", { data: JSON.stringify(frame) }));
      }
    };
  });
  const { page } = await open(context, stage.page.url().split("#")[0] ?? "");
  await ready(page);
  await type(page, "6 * 7");
  await page.evaluate(() => {
    const { feed } = globalThis as unknown as { feed: (frame: unknown) => void };
    for (let at = 0; at < 502; at += 1) {
      const about = JSON.stringify({ buffer: "main", from: 0, to: 3, hash: "none", how: "print", at: 1 });
      const end = at === 0 ? { status: ["done", "error"], error: { kind: "does_not_understand", message: "it went wrong" } } : { status: ["done"], text: String(at), class: "Integer" };
      feed({ id: `old-${at}`, n: 1_000_000 + at, about, ...end });
    }
  });
  const failed = page.locator('.result[data-id="old-0"]');
  await failed.locator(".danger").getByText("✗").waitFor();
  const tones = await page.evaluate(() => ["old-0", "old-1"].map((id) => getComputedStyle(document.querySelector(`.result[data-id="${id}"] button span`) ?? document.body).color));
  assert.notEqual(tones[0], tones[1], "the sign and its colour differ");
  await failed.getByRole("button", { name: /it went wrong/ }).click();
  await failed.getByText("does_not_understand").waitFor();
  await page.close();
});

stage.test("a screen reader is told values once that is switched on", async () => {
  await stage.choose("Workspace");
  const spoken = stage.page.locator(".hidden[role=status]");
  await stage.evaluate("40 + 1");
  assert.doesNotMatch(await spoken.innerText(), /41/);
  await stage.choose("Screen reader mode");
  await stage.page.locator(".toast").getByText("Screen reader mode: on").waitFor();
  await stage.evaluate("40 + 2");
  await stage.page.waitForFunction(() => document.querySelector(".hidden[role=status]")?.textContent?.includes("42, Integer") === true);
  await stage.choose("Screen reader mode");
});

stage.test("a trail that cannot be written is told in the words of the status", async () => {
  await stage.watched.context.routeWebSocket(/\/ws$/, (socket) => {
    const server = socket.connectToServer();
    server.onMessage((message) => socket.send(String(message).replace(/"audit":\{[^}]*\}/, '"audit":{"ok":false,"seq":7,"lost":2,"text":false,"required":false,"error":"audit.log: No space left on device"}')));
  });
  const { page } = await open(stage.watched.context, stage.page.url().split("#")[0] ?? "");
  await page.getByRole("alert").getByText("The audit trail cannot be written (audit.log: No space left on device), 2 lost").waitFor();
  await page.close();
});

stage.test("nothing of all this broke the policy", () => assert.deepEqual(stage.watched.faults, []));
