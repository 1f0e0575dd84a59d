// An observer beside an owner: sees, and changes nothing by any way.

import assert from "node:assert/strict";
import type { Locator, Page } from "playwright-core";
import { enter, open, ready, shot, type Watched } from "../support/browser";
import { byHand } from "../support/byhand";
import { Stage } from "../support/stage";

const stage = Stage.of({
  "src/Trap.bt": `/// Whoever asks it anything changes it.
Actor subclass: Trap
  state: touched = 0

  printString =>
    self.touched := self.touched + 1
    "touched"

  size =>
    self.touched := self.touched + 1
    1

  do: _block => self.touched := self.touched + 1

  hash =>
    self.touched := self.touched + 1
    1

  count => self.touched
`,
}, [], async (one) => {
  await one.evaluate("trap := Trap spawn. trap registerAs: #trap. lamp := Lamp spawn", "ControlOrMeta+d");
  observer = await enter(one.browser, one.house, "--observer");
  await observer.page.getByRole("banner").getByText("observer").waitFor();
});
let observer: Watched;
const seen = (name: string): Locator => observer.page.getByRole("region", { name, exact: true });
const ALL = ["Workspace", "Classes", "Inspector", "Actors", "Supervision", "Transcript", "Changes", "Tests", "Bindings", "Log"];

async function show(page: Page, name: string): Promise<void> {
  await page.keyboard.press("ControlOrMeta+k");
  await page.keyboard.type(name);
  await page.keyboard.press("Enter");
  await page.getByRole("region", { name, exact: true }).waitFor();
}

stage.test("24 an observer has the same panes and sees the owner's Transcript as it is written", async () => {
  await seen("Workspace").getByText("You are looking as an observer.").waitFor();
  await show(observer.page, "Transcript");
  await stage.evaluate('Transcript show: "for everybody"; cr', "ControlOrMeta+d");
  await seen("Transcript").getByText("for everybody").waitFor();
  await show(observer.page, "Log");
  await seen("Log").getByText("Only the owner sees the log.").waitFor();
  await observer.page.keyboard.press("ControlOrMeta+k");
  await observer.page.keyboard.type("Audit");
  await observer.page.getByRole("listbox", { name: "Results" }).locator(".row").first().waitFor();
  assert.equal(await observer.page.getByRole("option", { name: "Audit g u" }).count(), 0);
  await observer.page.keyboard.press("Escape");
  await shot(observer, "24-observer");
});

stage.test("S15 every operation that changes or administers is refused to an observer", async () => {
  const [described] = await byHand(stage.page, [{ op: "describe" }]);
  const ops = described?.ops as Record<string, { class: string; fields: string[] }>;
  const barred = Object.entries(ops).filter(([, one]) => !/^(R|r|read)/.test(one.class)).map(([name]) => name).filter((name) => name !== "close");
  assert.ok(barred.length > 25, JSON.stringify(ops.eval));
  const answers = await byHand(observer.page, barred.map((op) => ({ op, code: "1", class: "Lamp", selector: "toggle", source: "toggle => 1", name: "x", text: "x", version: 0, seq: 1, file: "src/Lamp.bt", actor: "0.1.0", path: "src/Lamp.bt", for: "x", value: "x" })));
  const passed = barred.filter((_, at) => answers[at]?.error?.kind !== "forbidden");
  assert.deepEqual(passed, []);
  const [desk] = await byHand(observer.page, [{ op: "desk-read" }]);
  assert.equal(desk?.error?.kind, "forbidden");
});

stage.test("S15 no control of an observer changes anything, and no key", async () => {
  const words = /^(Do|Print|Inspect it|Save|Try|Remove…|New class…|New method|Flush.*|Revert…|Kill…|Stop…|Clear…|Run.*|Restore|Discard|Settle|Take image|Take disk|autoflush|Load.*)$/;
  for (const name of ALL) {
    await show(observer.page, name);
    const found = await seen(name).getByRole("button").allInnerTexts();
    assert.deepEqual(found.filter((one) => words.test(one.trim())), [], name);
    assert.equal(await seen(name).locator("[contenteditable=true]").count(), 0, name);
    await seen(name).focus();
    // All keys of panes and texts that change something, and all others that do not lead away.
    for (const key of ["F", "v", "3", "Space", "N", "n", "k", "j", "a", "b", "x", "w", "A", "X", "P", "i", "y", "p", "c", "l", "Delete", "Backspace", "Enter", "Control+s", "Control+d", "Control+p", "Control+i", "Control+Enter", "Shift+Enter", "Control+Shift+Enter", "Alt+Enter", "Control+.", "Alt+Shift+F"]) {
      await observer.page.keyboard.press(key);
      assert.equal(await observer.page.getByRole("alertdialog").count(), 0, `${name} ${key}`);
    }
  }
  // A key that would change something says why it does not.
  for (const [name, key] of [["Changes", "F"], ["Tests", "A"], ["Classes", "N"], ["Workspace", "Control+s"]] as const) {
    await observer.page.reload();
    await observer.page.getByRole("banner").getByText("observer").waitFor();
    await show(observer.page, name);
    await seen(name).focus();
    assert.equal(await observer.page.getByRole("contentinfo").getByText("Observers cannot change anything").count(), 0);
    await observer.page.keyboard.press(key);
    await observer.page.getByRole("contentinfo").getByText("Observers cannot change anything").waitFor();
  }
  const sent = observer.frames.filter((frame) => frame.startsWith("→")).filter((frame) => /"op":"(eval|save|try|remove|flush|revert|kill|clear|test(?!-results)|load|take|settle|desk-write|unbind)/.test(frame) && !frame.includes('"id":"h'));
  assert.deepEqual(sent, []);
});

stage.test("S16 looking at an object that changes when asked changes nothing, for an observer", async () => {
  await observer.page.evaluate(() => { location.hash = "#/actors"; });
  await seen("Actors").getByRole("grid").getByRole("row", { name: /Trap/ }).first().click();
  await seen("Actors").getByRole("button", { name: "Inspect" }).click();
  await seen("Inspector").getByText("touched").first().waitFor();
  await seen("Inspector").getByRole("button", { name: "Follow" }).click();
  const tabs = seen("Inspector").getByRole("tab");
  for (let at = 0; at < await tabs.count(); at += 1) {
    await tabs.nth(at).click();
    await seen("Inspector").locator(".row, pre, svg, dl, .empty").first().waitFor({ state: "attached" });
  }
  assert.equal(await seen("Inspector").getByRole("button", { name: "▷ Print" }).count(), 0, "what runs code is not there");
  await show(observer.page, "Supervision");
  await show(observer.page, "Bindings");
  assert.equal(await stage.value("trap count"), "0");
});

stage.test("S17 the owner may open every pane on it too", async () => {
  for (const name of ALL) {
    await show(stage.page, name);
    await stage.page.keyboard.press("r");
  }
  await stage.goTo("#/inspect/trap");
  await stage.pane("Inspector").getByText("touched").first().waitFor();
  await stage.goTo("#/class/Trap/count");
  assert.equal(await stage.value("trap count"), "0");
});

stage.test("S21 logging out empties the page, and Back shows nothing", async () => {
  const third = await enter(stage.browser, stage.house);
  await ready(third.page);
  await third.page.evaluate(() => fetch("/logout", { method: "POST" }));
  await third.page.getByText("You were logged out.").waitFor({ timeout: 1000 });
  assert.equal(await third.page.locator(".cm-content, .pane").count(), 0);
  await third.page.goto("about:blank");
  await third.page.goBack();
  await third.page.getByText("You were logged out.").waitFor();
  assert.equal(await third.page.locator(".pane").count(), 0);
  await third.context.close();
});

/** A page of somebody who logged in with an access token. */
async function withToken(name: string, ...flags: string[]): Promise<Watched> {
  const made = await stage.house.beamtalk("workspace", "token", "create", name, ...flags);
  const token = /btk_\S+/.exec(made)?.[0] ?? "";
  const context = await stage.browser.newContext();
  const watched = await open(context, `${new URL(stage.page.url()).origin}/`);
  assert.equal(await watched.page.evaluate((secret) => fetch("/login", { method: "POST", body: new URLSearchParams({ token: secret }) }).then((answer) => answer.ok), token), true);
  await watched.page.reload();
  return watched;
}

stage.test("S21 a token that is taken back ends its page within a second, and no other", async () => {
  const guest = await withToken("guest", "--role", "observer");
  await guest.page.getByRole("banner").getByText("observer").waitFor();
  await stage.house.beamtalk("workspace", "token", "revoke", "guest");
  await guest.page.getByText("You were logged out. Run beamtalk web to come back.").waitFor({ timeout: 1000 });
  assert.equal(await guest.page.locator(".pane, .head").count(), 0);
  assert.equal(await stage.value("20 + 3"), "23", "the owner stays");
  await guest.context.close();
});

stage.test("S22 a login whose time is over ends the open page, and its reload", async () => {
  const guest = await withToken("short", "--expires", "4s");
  await ready(guest.page);
  await guest.page.getByText("You were logged out.").waitFor({ timeout: 10_000 });
  assert.equal(await guest.page.locator(".pane, .head").count(), 0);
  await guest.page.reload();
  await guest.page.getByText("You were logged out.").waitFor();
  assert.equal(await guest.page.locator(".pane").count(), 0);
  await guest.context.close();
});

stage.test("S21 rotating the cookie ends every page within a second", async () => {
  await stage.house.beamtalk("workspace", "rotate-cookie");
  for (const { page } of [stage.watched, observer]) {
    await page.getByText("You were logged out. Run beamtalk web to come back.").waitFor({ timeout: 1000 });
    assert.equal(await page.locator(".pane, .head").count(), 0);
  }
  await shot(stage.watched, "25c-logged-out");
});

stage.test("S22 a login that was ended is a page that says so, after a reload too", async () => {
  await stage.page.reload();
  await stage.page.getByText("You were logged out.").waitFor();
  assert.equal(await stage.page.locator(".pane").count(), 0);
});

stage.test("S18 no policy was broken", () => {
  assert.deepEqual([...stage.watched.faults, ...observer.faults], []);
});
