// The frame around the panes: keys, layouts, links, and every state of the connection.

import assert from "node:assert/strict";
import type { Locator, Page } from "playwright-core";
import { cable, enter, evaluate, hurry, open, ready, shot, type, visit } from "../support/browser";
import { byHand } from "../support/byhand";
import { Stage } from "../support/stage";

const stage = Stage.of();
const pane = (name: string): Locator => stage.pane(name);
const content = (page: Page = stage.page): Locator => page.locator("#pane-workspace .cm-content");
const status = (): Locator => stage.page.getByRole("contentinfo");

stage.test("keys of a text: Tab accepts, format, find, browse by a click, documents are never saved by the browser", async () => {
  await stage.evaluate("lamp := Lamp spawn", "ControlOrMeta+d");
  await type(stage.page, "lamp ");
  await stage.page.keyboard.type("togg", { delay: 30 });
  await stage.page.locator(".cm-tooltip-autocomplete").getByRole("option").first().waitFor();
  // A list that has just come up takes no key yet; a moment has gone by.
  await stage.page.evaluate(() => { const real = Date.now.bind(Date); Date.now = () => real() + 1000; });
  await stage.page.keyboard.press("Tab");
  await content().getByText("lamp toggle").waitFor();
  await type(stage.page, "x   :=   3+4");
  await stage.page.keyboard.press("Alt+Shift+F");
  await content().getByText("x := 3 + 4").waitFor();
  await stage.page.keyboard.press("ControlOrMeta+s");
  await stage.page.locator(".toast").getByText("kept").waitFor();
  await stage.page.keyboard.press("ControlOrMeta+f");
  await stage.page.locator(".cm-search").waitFor();
  await stage.page.keyboard.press("Escape");
  await type(stage.page, "Lamp spawn");
  await content().getByText("Lamp", { exact: true }).click({ modifiers: ["ControlOrMeta"] });
  await pane("Classes").getByRole("option", { name: /toggle/ }).waitFor();
  assert.match(stage.page.url(), /#\/class\/Lamp$/);
});

stage.test("the text of a method is evaluated like any other", async () => {
  await stage.goTo("#/class/Lamp/toggle");
  const source = pane("Classes").locator(".cm-content");
  await source.getByText("self.on not").click();
  await stage.page.keyboard.press("ControlOrMeta+a");
  await stage.page.keyboard.insertText("40 + 2");
  await stage.page.keyboard.press("ControlOrMeta+p");
  await stage.page.locator(".card").getByText("42 (Integer)").waitFor();
  await stage.page.keyboard.press("ControlOrMeta+i");
  await pane("Inspector").getByText("42").first().waitFor();
  // A text that is edited and not saved is marked at its tab.
  await stage.choose("Classes");
  await stage.page.locator("#tab-classes").getByRole("img", { name: "edited" }).waitFor();
  await pane("Classes").getByRole("option", { name: /isOn/ }).click();
  await stage.page.locator("#tab-classes").getByRole("img", { name: "edited" }).waitFor({ state: "detached" });
});

stage.test("what saving would break is said while it is typed", async () => {
  await stage.goTo("#/class/Lamp/toggle");
  const source = pane("Classes").locator(".cm-content");
  await source.getByText("self.on not").click();
  await stage.page.keyboard.press("ControlOrMeta+a");
  await stage.page.keyboard.insertText("toggle => self nothingLikeThis");
  await pane("Classes").getByRole("list", { name: "Findings" }).getByText(/nothingLikeThis/).first().waitFor();
  await pane("Classes").getByRole("option", { name: /isOn/ }).click();
});

stage.test("keys of lists: filter, copy, the menu of a pane, and what cannot be saved", async () => {
  await stage.choose("Classes");
  await pane("Classes").getByRole("listbox", { name: "Classes" }).focus();
  await stage.page.keyboard.press("ControlOrMeta+f");
  assert.equal(await stage.page.evaluate(() => document.activeElement?.getAttribute("aria-label")), "Filter classes");
  await stage.watched.context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await pane("Classes").getByRole("listbox", { name: "Classes" }).getByRole("option", { name: /^Lamp/ }).first().click();
  await pane("Classes").getByRole("listbox", { name: "Classes" }).focus();
  await stage.page.keyboard.press("ControlOrMeta+c");
  await status().getByText("copied").waitFor();
  assert.match(await stage.page.evaluate(() => navigator.clipboard.readText()), /^Lamp\b/);
  await pane("Classes").focus();
  await stage.page.keyboard.press(".");
  await stage.page.getByRole("menu").waitFor();
  await stage.page.keyboard.press("Escape");
  await stage.page.getByRole("menu").waitFor({ state: "detached" });
  // A pane that is asked for does not take the focus from what it was put on meanwhile.
  await stage.page.evaluate(async () => {
    for (const key of ["g", "c"]) document.activeElement?.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    document.querySelector<HTMLElement>("input[aria-label='Filter classes']")?.focus();
    await new Promise((done) => setTimeout(done, 50));
  });
  assert.equal(await stage.page.evaluate(() => document.activeElement?.getAttribute("aria-label")), "Filter classes");
  await stage.choose("Transcript");
  await pane("Transcript").focus();
  await stage.page.keyboard.press("ControlOrMeta+s");
  await status().getByText("There is nothing to save here").waitFor();
});

stage.test("generated code, statement by statement, a result that is pinned", async () => {
  await stage.goTo("#/class/Lamp/toggle");
  await pane("Classes").getByRole("tab", { name: "Generated" }).click();
  await pane("Classes").locator(".cm-content").getByText(/toggle/).first().waitFor();
  await pane("Classes").getByRole("tab", { name: "Source" }).click();
  await type(stage.page, "a := 1. b := a + 1. b * 10");
  await stage.choose("Trace it");
  await stage.results.getByRole("table", { name: "Statements" }).getByText("20").waitFor();
  const first = await stage.evaluate("100 + 1");
  await first.getByRole("button", { name: "Pin the result" }).click();
  await content().click();
  await stage.page.keyboard.press("ControlOrMeta+p");
  await stage.page.waitForFunction(() => document.querySelectorAll("#pane-workspace .surface .result").length >= 2);
  await stage.page.getByRole("button", { name: "Unpin the result" }).click();
});

stage.test("layouts are kept by name with what their panes remember; Reset layout restores one", async () => {
  await stage.choose("Layout: Code");
  await pane("Changes").waitFor();
  await pane("Classes").getByLabel("Filter classes").fill("Lam");
  await stage.choose("Audit");
  await pane("Audit").waitFor();
  await stage.choose("Layout: Observe");
  await pane("Actors").waitFor();
  assert.equal(await pane("Classes").count(), 0);
  await until(() => stage.watched.frames.some((frame) => frame.startsWith("→") && frame.includes("layout/observe")));
  const before = stage.watched.frames.length;
  await stage.choose("Layout: Code");
  await pane("Audit").waitFor();
  assert.equal(await pane("Classes").getByLabel("Filter classes").inputValue(), "Lam");
  const sent = (): boolean => stage.watched.frames.slice(before).some((frame) => frame.startsWith("→") && frame.includes("layout/code") && frame.includes("Lam"));
  await until(sent);
  await stage.page.reload();
  await ready(stage.page);
  await pane("Audit").waitFor();
  assert.equal(await pane("Classes").getByLabel("Filter classes").inputValue(), "Lam");
  await stage.choose("Reset layout");
  await stage.page.locator("#tab-audit").waitFor({ state: "detached" });
  assert.equal(await pane("Classes").getByLabel("Filter classes").inputValue(), "");
});

stage.test("settings act at once and stay", async () => {
  await stage.choose("Layout: Start");
  await stage.page.locator("#pane-workspace .cm-lineNumbers").waitFor();
  await stage.choose("Line numbers: switch");
  await stage.page.locator("#pane-workspace .cm-lineNumbers").waitFor({ state: "detached" });
  await stage.choose("Line numbers: switch");
  await stage.page.locator("#pane-workspace .cm-lineNumbers").waitFor();
});

stage.test("a window that is narrow has two columns of tabs, at least 240 px wide; four times as large it is a phone", async () => {
  const narrow = await visit(stage.browser, await stage.house.url(), { size: { width: 720, height: 900 } });
  await ready(narrow.page);
  assert.equal(await narrow.page.locator(".column").count(), 2);
  assert.equal(await narrow.page.locator(".column .group").count(), 2);
  assert.ok((await narrow.page.locator(".column").evaluateAll((all) => all.map((one) => one.getBoundingClientRect().width))).every((width) => width >= 240));
  await narrow.page.locator("#tab-tests").click();
  await narrow.page.getByRole("region", { name: "Tests" }).getByText(/No tests yet/).waitFor();
  await narrow.page.screenshot({ path: "e2e/shots/31-narrow-light.png" });
  await narrow.page.emulateMedia({ colorScheme: "dark" });
  await narrow.page.screenshot({ path: "e2e/shots/31-narrow-dark.png" });
  await narrow.page.setViewportSize({ width: 360, height: 225 });
  await narrow.page.getByRole("navigation", { name: "Panes" }).waitFor();
  assert.deepEqual(narrow.faults, []);
  await narrow.context.close();
});

/** Wait for something that no element shows. */
async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 400 && !(await holds()); tries += 1) await stage.page.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)));
  assert.ok(await holds());
}

stage.test("two tabs change one text: other lines are joined, the same line is asked about", async () => {
  await type(stage.page, "one\ntwo\nthree\nfour\nfive");
  const second = await enter(stage.browser, stage.house);
  await until(() => stage.watched.frames.some((frame) => frame.startsWith("→") && frame.includes("desk-write") && frame.includes("five")));
  await second.page.reload();
  await ready(second.page);
  await content(second.page).getByText("three").waitFor();
  // What one types the other sees.
  await type(second.page, "one\ntwo\nthree\nfour\nfive and more");
  await content().getByText("five and more").waitFor();
  await second.context.close();

  const away = await stage.browser.newContext();
  const line = await cable(away);
  const { page } = await open(away, await stage.house.url());
  await ready(page);
  await content(page).getByText("five and more").waitFor();
  line.cut();
  await page.locator(".banner").getByText(/^Connection lost/).waitFor();
  await type(page, "FIRST\ntwo\nthree\nfour\nfive and more");
  await type(stage.page, "one\ntwo\nthree\nfour\nLAST");
  await until(() => stage.watched.frames.some((frame) => frame.startsWith("→") && frame.includes("desk-write") && frame.includes("LAST")));
  line.mend();
  await hurry(page);
  await content(page).getByText("LAST").waitFor();
  await content(page).getByText("FIRST").waitFor();
  await content().getByText("FIRST").waitFor();
  line.cut();
  await page.locator(".banner").getByText(/^Connection lost/).waitFor();
  await type(page, "mine");
  await type(stage.page, "theirs");
  await until(() => stage.watched.frames.some((frame) => frame.startsWith("→") && frame.includes("desk-write") && frame.includes("\"theirs\"")));
  line.mend();
  await hurry(page);
  await page.getByText("Another tab changed this buffer.").waitFor();
  await page.getByRole("button", { name: "Compare" }).click();
  await page.locator(".compare .minus").getByText("mine").waitFor();
  await page.locator(".compare .plus").getByText("theirs").waitFor();
  await page.screenshot({ path: "e2e/shots/53-compare-light.png" });
  assert.equal(await content(page).innerText().then((text) => text.trim()), "mine", "nothing is lost before it is chosen");
  await page.getByRole("button", { name: "Keep mine" }).click();
  await content().getByText("mine").waitFor();
  await away.close();
});

stage.test("while the connection is lost nothing can be changed, texts can be edited and are kept", async () => {
  const context = await stage.browser.newContext();
  const line = await cable(context);
  const { page } = await open(context, await stage.house.url());
  await ready(page);
  line.cut();
  await page.getByText(/^Connection lost\. Trying again in \d s\./).waitFor();
  assert.ok(await page.getByRole("region", { name: "Workspace" }).getByRole("button", { name: "Print" }).isDisabled());
  await type(page, "typed while away");
  await page.keyboard.press("ControlOrMeta+p");
  await page.getByRole("contentinfo").getByText("Nothing can be evaluated before the connection is back").waitFor();
  line.mend();
  await hurry(page);
  await page.getByRole("contentinfo").getByText("connected", { exact: true }).waitFor();
  await content().getByText("typed while away").waitFor();
  await context.close();
});

stage.test("a layout and a text that were changed a moment before a reload are there after it", async () => {
  const context = await stage.browser.newContext();
  const line = await cable(context);
  const { page } = await open(context, await stage.house.url());
  await ready(page);
  await page.keyboard.press("ControlOrMeta+k");
  await page.keyboard.type("Layout: Performance");
  await page.keyboard.press("Enter");
  await page.locator("#tab-supervision").waitFor();
  // The line is cut, so that nothing can be sent before the page goes.
  line.cut();
  await page.getByText(/^Connection lost\./).waitFor();
  await page.evaluate(() => {
    document.querySelector<HTMLElement>("#tab-supervision")?.focus();
    document.querySelector<HTMLElement>("#pane-supervision")?.focus();
  });
  await page.keyboard.press("g");
  await page.keyboard.press("w");
  await page.locator("#pane-workspace .cm-content").waitFor();
  await type(page, "typed just before");
  await page.reload();
  line.mend();
  await page.locator("#pane-workspace .cm-content").getByText("typed just before").waitFor();
  await page.locator("#tab-supervision").waitFor();
  // By then the daemon has it too.
  await page.getByRole("contentinfo").getByText("connected", { exact: true }).waitFor();
  await until(async () => {
    const [read] = await byHand(page, [{ op: "desk-read", names: ["layout/performance", "scratch/main"] }]);
    const items = (read?.items ?? {}) as Record<string, { text: string } | undefined>;
    return items["layout/performance"]?.text.includes("workspace") === true && items["scratch/main"]?.text === "typed just before";
  });
  assert.equal(await page.evaluate(() => sessionStorage.getItem("unsent")), null, "nothing stays behind");
  await context.close();
});

stage.test("a session that another connection took says so, and is taken back", async () => {
  const watched = await enter(stage.browser, stage.house);
  await ready(watched.page);
  await type(watched.page, "mineOnly := 5");
  await watched.page.keyboard.press("ControlOrMeta+d");
  await watched.page.locator(".result[data-state=done]").waitFor();
  const session = await watched.page.evaluate(() => sessionStorage.getItem("session") ?? "");
  const thief = await watched.context.newPage();
  await thief.goto(watched.page.url().split("#")[0] ?? "");
  await ready(thief);
  await thief.evaluate((resume) => new Promise<void>((resolve) => {
    const socket = new WebSocket(`${location.origin.replace("http", "ws")}/ws`, ["beamtalk.v1"]);
    socket.onopen = () => socket.send(JSON.stringify({ type: "hello", client: "browser", protocol: "1.1", keep: true, resume }));
    socket.onmessage = ({ data }) => { if (String(data).includes("session-started")) resolve(); };
  }), session);
  await watched.page.getByText("This session is open in another tab.").waitFor();
  await watched.page.screenshot({ path: "e2e/shots/54-taken-over-light.png" });
  await watched.page.getByRole("button", { name: "Use here" }).click();
  await ready(watched.page);
  await watched.page.getByRole("banner").getByText("running").waitFor();
  assert.equal(await watched.page.evaluate(() => sessionStorage.getItem("session")), session);
  await watched.context.close();
});

stage.test("a tab that is opened while another has lost its connection leaves it its session; what never arrived is told", async () => {
  const context = await stage.browser.newContext();
  const page = await context.newPage();
  let [isCut, isDeaf] = [false, false];
  let line: { close: (options: { code: number }) => Promise<void> } | null = null;
  await page.routeWebSocket(/\/ws$/, (socket) => {
    if (isCut) return void socket.close({ code: 3000 });
    const server = socket.connectToServer();
    socket.onMessage((message) => { if (!isDeaf || !String(message).includes('"op":"eval"')) server.send(message); });
    line = socket;
  });
  await page.goto(await stage.house.url());
  await ready(page);
  await evaluate(page, "own := 5", "ControlOrMeta+d");
  isDeaf = true;
  await type(page, "own + 1");
  await page.keyboard.press("ControlOrMeta+p");
  await page.locator(".result.running").waitFor();
  [isCut, isDeaf] = [true, false];
  await (line as unknown as { close: (options: { code: number }) => Promise<void> }).close({ code: 3000 });
  await page.getByText(/^Connection lost\. Trying/).waitFor();
  const other = await context.newPage();
  await other.goto(page.url().split("#")[0] ?? "");
  await ready(other);
  isCut = false;
  await hurry(page);
  await page.locator(".result").getByText("it was not done").waitFor();
  assert.equal(await (await evaluate(page, "own")).locator(".value").innerText(), "5");
  assert.equal(await (await evaluate(other, "3 + 4")).locator(".value").innerText(), "7");
  const [one, two] = await Promise.all([page, other].map((each) => each.evaluate(() => sessionStorage.getItem("session"))));
  assert.notEqual(one, two);
  await context.close();
});

stage.test("a session that is gone is told, and why", async () => {
  const context = await stage.browser.newContext();
  let isOver = false;
  const lines: { close: (options: { code: number }) => Promise<void> }[] = [];
  // As if the grace time of the session were over.
  await context.routeWebSocket(/\/ws$/, (socket) => {
    const server = socket.connectToServer();
    socket.onMessage((message) => server.send(isOver ? String(message).replace(/"resume":"s-[0-9a-f]+"/, '"resume":"s-00000000"') : message));
    lines.push(socket);
  });
  const { page } = await open(context, await stage.house.url());
  await ready(page);
  isOver = true;
  await lines[0]?.close({ code: 3000 });
  await page.getByText("Reconnected with a new session: variables of the old one are gone.").waitFor();
  await page.getByRole("button", { name: "Why" }).click();
  await page.getByRole("dialog", { name: "Why" }).getByText(/kept for a while after its tab has gone/).waitFor();
  await context.close();
});

stage.test("an image that ends four times within a minute is given up, and the panes say why", async () => {
  const watched = await enter(stage.browser, stage.house);
  await ready(watched.page);
  for (let times = 0; times < 4; times += 1) {
    await stage.house.beamtalk("repl", "-e", "Erlang erlang halt: 3").catch(() => undefined);
    if (times < 3) await until(async () => (await stage.house.beamtalk("--json", "workspace", "status")).includes("\"node\":\"up\""));
  }
  await watched.page.getByText(/^The image ended four times within a minute\. Run beamtalk workspace restart\./).waitFor({ timeout: 30_000 });
  await watched.page.getByRole("region", { name: "Workspace" }).getByRole("alert").filter({ hasText: "failed" }).waitFor();
  await shot(watched, "55-failed");
  await watched.page.getByRole("button", { name: "Log" }).first().click();
  await watched.page.getByRole("region", { name: "Log" }).waitFor();
  await watched.context.close();
});
