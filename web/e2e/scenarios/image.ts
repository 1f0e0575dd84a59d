// Looking at an image that lives: large values, many actors, supervisors, and ends of node and daemon.

import assert from "node:assert/strict";
import type { Locator } from "playwright-core";
import { enter, evaluate, open, ready, shot, type } from "../support/browser";
import { Stage } from "../support/stage";

const stage = Stage.of({
  "src/Bulb.bt": `/// A lamp that comes back.
Actor subclass: Bulb
  state: on = false

  class supervisionPolicy => #permanent
`,
  "src/Crew.bt": `/// Keeps a bulb alive.
Supervisor subclass: Crew

  class children => #(Bulb)
`,
  "src/Hall.bt": `/// Keeps as many bulbs as are wanted.
DynamicSupervisor subclass: Hall

  class childClass => Bulb
`,
});
const pane = (name: string): Locator => stage.pane(name);

stage.test("18 ten million elements: first rows at once, the end, and a place in the middle", async () => {
  await stage.evaluate("big := (1 to: 10000000) asList. 1", "ControlOrMeta+d");
  await stage.goTo("#/inspect/big");
  const fields = pane("Inspector").getByRole("listbox");
  await fields.getByRole("option").first().waitFor();
  await pane("Inspector").getByText("of 10,000,000").first().waitFor();
  await pane("Inspector").getByRole("button", { name: "Last" }).click();
  await pane("Inspector").getByText("–10,000,000 of 10,000,000").waitFor();
  await pane("Inspector").getByLabel("Jump to index").fill("5,000,000");
  await stage.page.keyboard.press("Enter");
  await pane("Inspector").getByText("5,000,000–").waitFor();
  await fields.getByText("5000000", { exact: true }).first().waitFor();
  await shot(stage.watched, "18-ten-million");
  await stage.evaluate("big := nil", "ControlOrMeta+d");
});

stage.test("a variable that is opened again shows the value it has now", async () => {
  await stage.evaluate("thing := #(1, 2, 3)", "ControlOrMeta+d");
  await stage.goTo("#/inspect/thing");
  await stage.pane("Inspector").getByText("3 elements").waitFor();
  await stage.choose("Workspace");
  await stage.evaluate("thing := #(1, 2, 3, 4)", "ControlOrMeta+d");
  await stage.goTo("#/workspace");
  await stage.goTo("#/inspect/thing");
  await stage.pane("Inspector").getByText("4 elements").waitFor();
  await stage.evaluate("thing := \"text\". thing", "ControlOrMeta+i");
  await stage.pane("Inspector").locator(".chip").getByText("String").first().waitFor();
});

stage.test("of windows that were asked for the last one is shown, whichever answer comes last; a shorter value is shown to its end", async () => {
  let [held, late]: [string | null, (() => void) | null] = [null, null];
  const page = await stage.watched.context.newPage();
  await page.routeWebSocket(/\/ws$/, (socket) => {
    const server = socket.connectToServer();
    socket.onMessage((message) => {
      const { op, id, offset } = JSON.parse(String(message)) as { op?: string; id?: string; offset?: number };
      if (op === "inspect" && offset === 50) held = id ?? null;
      server.send(message);
    });
    server.onMessage((message) => {
      if (held !== null && String(message).includes(`"${held}"`)) late = () => socket.send(message);
      else socket.send(message);
    });
  });
  await page.goto(stage.page.url().split("#")[0] ?? "");
  await ready(page);
  await evaluate(page, "many := (1 to: 200) asList", "ControlOrMeta+d");
  await page.evaluate(() => { location.hash = "#/inspect/many"; });
  const inspector = page.getByRole("region", { name: "Inspector" });
  await inspector.getByText("1–50 of 200").waitFor();
  await inspector.getByRole("button", { name: "After" }).click();
  await inspector.getByRole("button", { name: "Last" }).click();
  await inspector.getByText("151–200 of 200").waitFor();
  for (let waited = 0; late === null && waited < 5000; waited += 20) await page.waitForTimeout(20);
  assert.ok(late !== null, "the first answer was held");
  (late as () => void)();
  await inspector.getByRole("button", { name: "Refresh" }).click();
  await inspector.getByText("151–200 of 200").waitFor();
  await evaluate(page, "many := (1 to: 60) asList", "ControlOrMeta+d");
  await inspector.getByRole("button", { name: "Refresh" }).click();
  await inspector.getByText("11–60 of 60").waitFor();
  await page.close();
});

stage.test("19 actors and supervision are live: a killed child is restarted, marked and counted", async () => {
  await stage.choose("Layout: Observe");
  await pane("Actors").getByText(/No actors run/).waitFor();
  await pane("Supervision").getByText(/No supervisor of yours runs/).waitFor();
  await shot(stage.watched, "19a-no-actors");
  await stage.choose("Workspace");
  await stage.evaluate("crew := Crew supervise unwrap. hall := Hall supervise unwrap. 1 to: 200 do: [:i | hall startChild]", "ControlOrMeta+d");
  await pane("Actors").getByText(/20[12] actors/).waitFor();
  const child = pane("Supervision").getByRole("treeitem", { name: /Bulb/ }).first();
  await child.waitFor();
  const pid = /0\.\d+\.0/.exec(await child.innerText())?.[0] ?? "";
  await pane("Actors").getByLabel("Filter actors").fill(pid);
  await pane("Actors").getByText("1 actor", { exact: true }).waitFor();
  await pane("Actors").getByRole("grid").getByRole("row").getByText(pid, { exact: true }).click();
  await pane("Actors").getByRole("button", { name: "Kill…" }).click();
  await stage.page.getByRole("alertdialog").getByText(/^It ends at once\. Its supervisor (Crew|Hall)\S* may start it again\.$/).waitFor();
  await stage.page.getByRole("alertdialog").getByRole("button", { name: "Kill" }).click();
  await pane("Supervision").getByText("1 restart/min").first().waitFor();
  await pane("Supervision").getByText("restarted", { exact: true }).first().waitFor();
  await pane("Supervision").getByText("200 children").waitFor();
  await shot(stage.watched, "19-observe");
  // The mark goes after five seconds, the count stays.
  await pane("Supervision").getByText("restarted", { exact: true }).first().waitFor({ state: "detached", timeout: 15_000 });
  await pane("Supervision").getByText("1 restart/min").first().waitFor();
  await pane("Actors").getByLabel("Filter actors").fill("");
  await pane("Actors").getByRole("tab", { name: "Vitals" }).click();
  await pane("Actors").getByRole("img", { name: /^Memory: total \d/ }).waitFor();
  await pane("Actors").locator("canvas").first().waitFor();
  await shot(stage.watched, "19b-vitals");
  await pane("Actors").getByRole("button", { name: "Show as table" }).click();
  await pane("Actors").getByRole("table").first().getByRole("row").nth(1).waitFor();
});

stage.test("a second tab is a session of its own; a copied tab too", async () => {
  await stage.evaluate("only := 7", "ControlOrMeta+d");
  const second = await stage.watched.context.newPage();
  await second.goto(stage.page.url());
  await ready(second);
  const sessions = await Promise.all([stage.page, second].map((page) => page.evaluate(() => sessionStorage.getItem("session"))));
  assert.notEqual(sessions[0], sessions[1]);
  // A tab made with "Duplicate" has the same storage, and so has a window that a page opens.
  const [copy] = await Promise.all([stage.watched.context.waitForEvent("page"), stage.page.evaluate(() => void window.open(location.href))]);
  await ready(copy);
  await copy.waitForFunction((session) => ![null, session].includes(sessionStorage.getItem("session")), sessions[0]);
  await second.evaluate((session) => sessionStorage.setItem("session", session ?? ""), sessions[0] ?? "");
  await second.reload();
  await ready(second);
  assert.notEqual(await second.evaluate(() => sessionStorage.getItem("session")), sessions[0]);
  await copy.close();
  assert.equal(await stage.value("only"), "7", "the first tab keeps its session");
  await second.close();
});

stage.test("a page that is slow keeps its session from a copy, and over a reload", async () => {
  const context = await stage.browser.newContext();
  // Busy for a second from the moment on that it has a session, and before it goes.
  await context.addInitScript(() => {
    const work = (): void => { for (const began = performance.now(); performance.now() - began < 1000;); };
    const set = Storage.prototype.setItem;
    Storage.prototype.setItem = function setItem(key: string, value: string) {
      set.call(this, key, value);
      if (key === "session") setTimeout(work, 0);
    };
    addEventListener("pagehide", work);
  });
  const { page } = await open(context, await stage.house.url());
  await ready(page);
  await evaluate(page, "slow := 8", "ControlOrMeta+d");
  const session = await page.evaluate(() => sessionStorage.getItem("session"));
  const [copy] = await Promise.all([context.waitForEvent("page"), page.evaluate(() => void window.open(location.href))]);
  await ready(copy);
  assert.equal(await (await evaluate(copy, "1 + 1")).locator(".value").innerText(), "2");
  assert.notEqual(await copy.evaluate(() => sessionStorage.getItem("session")), session);
  await page.reload();
  await ready(page);
  assert.equal(await (await evaluate(page, "slow")).locator(".value").innerText(), "8");
  assert.equal(await page.evaluate(() => sessionStorage.getItem("session")), session);
  await context.close();
});

stage.test("25 the node ends: a banner, then everything is live again with the unflushed change", async () => {
  await stage.choose("Layout: Code");
  await stage.goTo("#/class/Lamp/toggle");
  await pane("Classes").locator(".cm-content").getByText("self.on not").click();
  await stage.page.keyboard.press("ControlOrMeta+a");
  await stage.page.keyboard.insertText("toggle => self.on := #kept");
  await stage.page.keyboard.press("ControlOrMeta+s");
  await stage.page.getByRole("contentinfo").getByText("1 unflushed").waitFor();
  await type(stage.page, "Erlang erlang halt: 0");
  await stage.page.keyboard.press("ControlOrMeta+d");
  await stage.page.getByText("The image is restarting; actors and variables are gone. Classes are loaded again from disk, 1 unflushed change is installed again.").waitFor();
  assert.ok(await stage.page.evaluate(() => [...document.querySelectorAll("#pane-classes, #pane-workspace")].every((one) => one.matches(".frozen"))), "panes of the image are frozen");
  assert.ok(await stage.page.evaluate(() => document.querySelector("#pane-changes")?.matches(".frozen") === false), "others are live");
  await shot(stage.watched, "25-restarting");
  await stage.page.getByRole("banner").getByText("running").waitFor({ timeout: 20_000 });
  await stage.page.waitForFunction(() => document.querySelector(".frozen") === null);
  assert.equal(await stage.value("Lamp spawn toggle"), "#kept");
});

stage.test("25 the daemon ends: the page says so, and the typed text is there when it is back", async () => {
  await type(stage.page, "typed before the end");
  const sent = (): boolean => stage.watched.frames.some((frame) => frame.includes("desk-write") && frame.includes("typed before the end"));
  for (let tries = 0; tries < 1000 && !sent(); tries += 1) await stage.page.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)));
  assert.ok(sent());
  await stage.house.beamtalk("workspace", "stop", "--force");
  await stage.page.getByText(/^The workspace was stopped at \d\d:\d\d\. Run beamtalk web to open it again\.$/).waitFor();
  await shot(stage.watched, "25b-stopped");
  await stage.house.beamtalk("workspace", "start");
  const again = await enter(stage.browser, stage.house);
  await ready(again.page);
  await again.page.locator("#pane-workspace .cm-content").getByText("typed before the end").waitFor();
  assert.deepEqual(again.faults, []);
});

stage.test("a lost connection is told and tried again", async () => {
  const watched = await enter(stage.browser, stage.house);
  await ready(watched.page);
  const pid = await stage.house.pid();
  process.kill(pid, "SIGKILL");
  await watched.page.getByText(/^Connection lost\. Trying again in \d s\./).waitFor();
  await shot(watched, "38-lost");
  await watched.page.getByRole("banner").getByText("offline").waitFor();
});
