// A phone, a narrow window, an empty project, a page of another version, a clock that jumps.

import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { cable, open, ready, shot, type, visit } from "../support/browser";
import { byHand } from "../support/byhand";
import { Stage } from "../support/stage";

const stage = Stage.of({ "src/Lamp.bt": "", "test/LampTest.bt": "" });

async function fits(page: Page): Promise<void> {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.ok(wide <= 0, `scrolls sideways by ${wide}`);
}

stage.test("a project with no classes says what to do in every pane", async () => {
  for (const [name, text] of [["Classes", "No classes of yours yet."], ["Actors", "No actors run."], ["Supervision", "No supervisor of yours runs."], ["Transcript", "Nothing written yet."], ["Changes", "The image and the files agree."], ["Tests", "No tests yet."], ["Bindings", "No variables."], ["Inspector", "Select something"]] as const) {
    await stage.choose(name);
    await stage.pane(name).getByText(text).first().waitFor();
  }
  await shot(stage.watched, "30-empty");
  // The one thing to do there is a button that does it.
  await stage.choose("Classes");
  await stage.pane("Classes").getByRole("button", { name: "Open the tour" }).click();
  await stage.pane("Classes").locator(".cm-content").getByText(/^# /).first().waitFor();
  await stage.pane("Classes").getByRole("button", { name: "Close" }).click();
  await stage.pane("Classes").getByRole("button", { name: "New class…" }).first().click();
  await stage.pane("Classes").getByRole("form", { name: "New class" }).or(stage.pane("Classes").getByLabel("Name")).first().waitFor();
  await stage.page.keyboard.press("Escape");
});

stage.test("21 a phone: one pane, a bar below, large targets, nothing sideways", async () => {
  const phone = await visit(stage.browser, await stage.house.url(), { size: { width: 390, height: 844 } });
  const { page } = phone;
  await ready(page);
  await type(page, "6 factorial");
  await page.getByRole("button", { name: "Print" }).click();
  await page.locator(".result .value").getByText("720").waitFor();
  await fits(page);
  assert.ok(await page.locator(".signs").evaluate((row) => row.scrollWidth <= row.clientWidth), "all signs are in sight");
  await shot(phone, "21-phone-workspace");
  for (const name of ["Transcript", "Changes", "Classes"]) {
    await page.getByRole("navigation", { name: "Panes" }).getByRole("button", { name }).click();
    await page.getByRole("region", { name }).waitFor();
    await fits(page);
    await shot(phone, `21-phone-${name.toLowerCase()}`);
  }
  // What can be done with a row comes up after a long press, and from the head.
  await page.getByRole("region", { name: "Classes" }).getByRole("button", { name: /^all \d+ classes/ }).click();
  await page.getByRole("listbox", { name: "Classes" }).getByRole("option", { name: /^Actor/ }).first().dispatchEvent("contextmenu");
  await page.getByRole("dialog", { name: "Actions of Classes" }).getByRole("button", { name: "New class" }).waitFor();
  await shot(phone, "21-phone-sheet");
  await page.getByRole("button", { name: "Close" }).click();
  await shot(phone, "21-phone-classes-list");
  await page.getByRole("button", { name: "Actions of Classes" }).click();
  await page.getByRole("dialog", { name: "Actions of Classes" }).getByRole("button", { name: "Close" }).click();
  await fits(page);
  const small = await page.locator("nav.bottom button, .bar button, .signs button").evaluateAll((all) => all.map((one) => one.getBoundingClientRect()).filter((box) => box.height > 0 && box.height < 43.5).length);
  assert.equal(small, 0, "targets are 44 px high");
  await page.emulateMedia({ colorScheme: "dark" });
  await page.getByRole("button", { name: "More" }).click();
  await page.getByRole("dialog", { name: "Command palette" }).waitFor();
  await page.screenshot({ path: "e2e/shots/21-phone-palette-dark.png", animations: "disabled" });
  assert.deepEqual(phone.faults, []);
  await phone.context.close();
});

stage.test("every pane has a name, a way in by key, and no trap", async () => {
  const regions = await stage.page.getByRole("region").evaluateAll((all) => all.map((one) => one.getAttribute("aria-label")));
  assert.equal(new Set(regions).size, regions.length);
  const names: (string | null)[] = [];
  for (let step = 0; step < 6; step += 1) {
    await stage.page.keyboard.press("F6");
    names.push(await stage.page.evaluate(() => document.activeElement?.closest("[role=region]")?.getAttribute("aria-label") ?? null));
  }
  assert.ok(new Set(names).size >= 3 && !names.includes(null), names.join());
  // Tab leaves everything but a text, where Escape comes first.
  await stage.page.locator("#pane-workspace .cm-content").click();
  await stage.page.keyboard.press("Escape");
  const seen = new Set<string>();
  for (let step = 0; step < 60; step += 1) {
    await stage.page.keyboard.press("Tab");
    seen.add(await stage.page.evaluate(() => document.activeElement?.closest("[role=region], header, footer")?.getAttribute("aria-label") ?? document.activeElement?.closest("header, footer")?.tagName ?? "body"));
    if (await stage.page.evaluate(() => document.activeElement?.classList.contains("cm-content") === true)) await stage.page.keyboard.press("Escape");
  }
  assert.ok(seen.size >= 3, [...seen].join());
  // A finger or an unsteady hand needs 24 px; a word in a sentence is as high as its line.
  const tiny = await stage.page.locator("button:not(.link), input, select").evaluateAll((all) => all.filter((one) => { const box = one.getBoundingClientRect(); return one.getClientRects().length > 0 && one.closest(".skip, .hidden, .cm-editor") === null && (one as HTMLInputElement).type !== "checkbox" && (box.height < 23.5 || box.width < 23.5); }).map((one) => one.outerHTML.slice(0, 120)));
  assert.deepEqual(tiny, []);
  const unnamed = await stage.page.locator("button, input, select, [role=listbox], [role=tree]").evaluateAll((all) => all.filter((one) => one.getClientRects().length > 0 && (one.getAttribute("aria-label") ?? one.textContent ?? "").trim() === "" && one.closest("label") === null).map((one) => one.outerHTML.slice(0, 100)));
  assert.deepEqual(unnamed, []);
});

stage.test("a page of an older binary says that it is old, stays as it is, and is new after a reload", async () => {
  const page = await stage.watched.context.newPage();
  let isUpdated = false;
  const lines: { close: (options: { code: number }) => Promise<void> }[] = [];
  await page.routeWebSocket(/\/ws$/, (socket) => {
    const server = socket.connectToServer();
    server.onMessage((message) => socket.send(isUpdated ? String(message).replace("beamtalk/", "beamtalk/9.") : message));
    lines.push(socket);
  });
  await page.goto(stage.page.url().split("#")[0] ?? "");
  await ready(page);
  await type(page, "typed in the old page");
  isUpdated = true;
  await lines[0]?.close({ code: 3000 });
  await page.getByText("The workspace was updated.").waitFor();
  assert.ok(await page.locator(".dock.frozen").isVisible());
  assert.match(await page.locator("#pane-workspace .cm-content").innerText(), /typed in the old page/);
  await page.screenshot({ path: "e2e/shots/39-updated-light.png" });
  await page.getByRole("button", { name: "Reload" }).click();
  await page.getByRole("contentinfo").getByText("connected", { exact: true }).waitFor();
  await page.close();
});

stage.test("a clock that jumps loses nothing", async () => {
  const context = await stage.browser.newContext();
  const page = (await open(context, await stage.house.url())).page;
  await ready(page);
  await page.clock.install();
  await page.evaluate(() => { const real = Date.now; Date.now = () => real() + 3_600_000; });
  await type(page, "1 + 1");
  await page.keyboard.press("ControlOrMeta+p");
  await page.locator(".result .value").getByText("2", { exact: true }).waitFor();
  await page.evaluate(() => { const real = Date.now; Date.now = () => real() - 7_200_000; });
  await type(page, "1 + 2");
  await page.keyboard.press("ControlOrMeta+p");
  await page.locator(".result .value").getByText("3", { exact: true }).waitFor();
  assert.doesNotMatch(await page.locator("body").innerText(), /-\d+ (s|ms)/);
  await context.close();
});

stage.test("a laptop that sleeps wakes with everything: the line is dead, timers are late, output has gone on", async () => {
  const context = await stage.browser.newContext();
  const line = await cable(context);
  const { page } = await open(context, await stage.house.url());
  await ready(page);
  await type(page, "1 to: 40 do: [:i | Transcript show: i printString; cr. Timer sleep: 50]. #awake");
  await page.keyboard.press("ControlOrMeta+p");
  await page.waitForFunction(() => Number(document.querySelector(".output")?.getAttribute("data-lines") ?? 0) >= 5);
  const session = await context.newCDPSession(page);
  await session.send("Page.setWebLifecycleState", { state: "frozen" });
  line.cut();
  // Until all of it has been written.
  const isWritten = async (): Promise<boolean> => JSON.stringify(await byHand(stage.page, [{ op: "transcript", limit: 5 }])).includes("40");
  while (!(await isWritten())) await stage.page.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)));
  line.mend();
  await session.send("Page.setWebLifecycleState", { state: "active" });
  await page.locator(".result .value").getByText("#awake").waitFor({ timeout: 20_000 });
  const more = page.getByRole("button", { name: /more lines/ });
  await more.click();
  assert.deepEqual((await page.locator(".output").innerText()).trim().split("\n").map(Number), Array.from({ length: 40 }, (_, at) => at + 1));
  await context.close();
});
