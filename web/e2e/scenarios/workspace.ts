// Typing, evaluating, and never losing what came of it.

import assert from "node:assert/strict";
import { cable, hurry, open, ready, shot, type } from "../support/browser";
import { byHand } from "../support/byhand";
import { Stage } from "../support/stage";

/** An address that logs in, left lying while the other scenarios run. */
let late = { url: "", at: 0 };
const stage = Stage.of({}, [], async ({ house }) => { late = { url: await house.url(), at: Date.now() }; });

async function press(text: string, key: string): Promise<void> {
  await type(stage.page, text);
  await stage.page.keyboard.press(key);
}

stage.test("01 login: the address has no token, the name and state are told, the caret is in the Workspace", async () => {
  assert.match(stage.page.url(), /^http:\/\/w[a-z2-7]{20}\.localhost:\d+\/$/);
  await stage.page.getByRole("banner").getByText("lamp", { exact: true }).waitFor();
  await stage.page.getByRole("banner").getByText("running").waitFor();
  assert.ok(await stage.page.evaluate(() => document.activeElement?.classList.contains("cm-content")));
  assert.equal(await stage.page.title(), "lamp · Beamtalk");
  for (const name of ["Workspace", "Inspector", "Transcript"]) await stage.page.getByRole("region", { name }).waitFor();
  await shot(stage.watched, "01-login");
});

stage.test("03 do, print, inspect", async () => {
  await press("lamp := Lamp spawn", "ControlOrMeta+d");
  await stage.results.getByText("✓").waitFor();
  await press("lamp toggle", "ControlOrMeta+p");
  await stage.results.getByText("true", { exact: true }).waitFor();
  await stage.results.getByText("Boolean").or(stage.results.getByText("True")).first().waitFor();
  await stage.results.getByText(/^(<1|\d+) ms$/).waitFor();
  await press("lamp", "ControlOrMeta+i");
  const inspector = stage.page.getByRole("region", { name: "Inspector" });
  await inspector.getByRole("option").filter({ hasText: "on" }).getByText("true", { exact: true }).waitFor();
  await stage.page.getByText("Nothing written yet.").waitFor();
  await shot(stage.watched, "03-inspect");
});

stage.test("03b the input at the caret is what is evaluated", async () => {
  await type(stage.page, "a := [\n  40 + 2\n]\n\n// note\na value + 1");
  await stage.page.keyboard.press("ControlOrMeta+Home");
  await stage.page.keyboard.press("ControlOrMeta+d");
  await stage.results.getByText("✓").waitFor();
  await stage.page.keyboard.press("ControlOrMeta+End");
  await stage.page.keyboard.press("Alt+Enter");
  await stage.page.locator("#pane-workspace .cm-content").getByText("a value + 1 // => 43").waitFor();
});

stage.test("04 completion and documentation", async () => {
  await press("lamp := Lamp spawn", "ControlOrMeta+d");
  await stage.results.getByText("✓").waitFor();
  await type(stage.page, "lamp ");
  await stage.page.keyboard.type("to", { delay: 30 });
  const list = stage.page.locator(".cm-tooltip-autocomplete");
  await list.getByRole("option").first().waitFor();
  assert.match(await list.getByRole("option").first().innerText(), /^toggle/);
  await stage.page.locator(".cm-completionInfo").getByText("Switch it, and answer whether it is on.").waitFor();
  await shot(stage.watched, "04-completion");
  await stage.page.keyboard.press("Escape");
  await type(stage.page, "lamp toggle");
  await stage.page.keyboard.press("F1");
  const card = stage.page.locator(".cm-tooltip.card");
  await card.getByText("Switch it, and answer whether it is on.").waitFor();
  assert.match(await card.innerText(), /^toggle\n/, "its signature comes first");
  await shot(stage.watched, "04-card");
  await stage.page.keyboard.press("Escape");
});

stage.test("05 errors: head, proposal that corrects the text, frames that open the source", async () => {
  await press("lamp := Lamp spawn", "ControlOrMeta+d");
  await stage.results.getByText("✓").waitFor();
  await press("lamp togle", "ControlOrMeta+p");
  await stage.results.getByText("does_not_understand").waitFor();
  await stage.results.getByText("Lamp does not understand 'togle'").waitFor();
  await stage.results.getByRole("button", { name: "receiver" }).click();
  await stage.page.getByRole("region", { name: "Inspector" }).getByRole("option").filter({ hasText: "on" }).waitFor();
  await stage.results.getByRole("button", { name: "Inspect exception" }).click();
  await stage.page.getByRole("region", { name: "Inspector" }).getByRole("tab", { name: "Message and hint" }).waitFor();
  await stage.results.getByRole("button", { name: "Did you mean 'toggle'?" }).click();
  await stage.page.locator("#pane-workspace .cm-content").getByText("lamp toggle").waitFor();
  await press("lamp broken", "ControlOrMeta+p");
  await stage.results.getByText(/Check the spelling/).waitFor();
  const before = await stage.results.getAttribute("data-id");
  await stage.results.getByRole("button", { name: "Do it again" }).click();
  await stage.page.waitForFunction((old) => { const now = document.querySelector("#pane-workspace .surface .result.failed"); return now !== null && now.getAttribute("data-id") !== old; }, before);
  await stage.watched.context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await stage.results.getByRole("button", { name: "Copy as report" }).click();
  await stage.page.locator(".toast").getByText("copied").waitFor();
  const report = await stage.page.evaluate(() => navigator.clipboard.readText());
  assert.match(report, /^lamp broken\n\ndoes_not_understand: Lamp does not understand 'missing:'[\s\S]*Lamp>>broken \(src\/Lamp\.bt:10\)[\s\S]*beamtalk\//);
  await stage.results.getByRole("list", { name: "Frames" }).getByRole("button", { name: "Lamp>>broken" }).click();
  await stage.page.getByRole("region", { name: "Classes" }).locator(".cm-content").getByText("self missing: 3").waitFor();
  assert.match(await stage.page.getByRole("region", { name: "Classes" }).locator(".cm-marked").innerText(), /broken => self missing: 3/);
  await shot(stage.watched, "05-error");
});

stage.test("06 output survives a reload, a lost connection, and another tab", async () => {
  const numbers = async (): Promise<number[]> => {
    const more = stage.results.getByRole("button", { name: /more lines/ });
    if (await more.isVisible().catch(() => false)) await more.click();
    return (await stage.results.locator(".output").first().innerText()).trim().split("\n").map(Number);
  };
  const reaches = (least: number): Promise<unknown> => stage.page.waitForFunction((count) => Number(document.querySelector(".output")?.getAttribute("data-lines") ?? 0) >= count, least, { timeout: 60_000 });
  const whole = async (least: number): Promise<void> => {
    const found = await numbers();
    assert.ok(found.length >= least, `${found.length} lines`);
    assert.deepEqual(found, found.map((_, at) => at + 1));
  };
  const stop = (): Promise<void> => stage.page.getByRole("banner").getByRole("button", { name: "Stop" }).waitFor();
  const line = await cable(stage.watched.context);
  await stage.page.reload();
  await ready(stage.page);
  // It waits before its end until this scenario is there too, however slow the machine.
  await press("gate := Lamp spawn. gate registerAs: #gate. 1 to: 600 do: [:i | Transcript show: i printString; cr. Timer sleep: 50. i == 400 ifTrue: [[gate isOn] whileFalse: [Timer sleep: 20]]]", "ControlOrMeta+d");
  await reaches(100);
  await stage.page.reload();
  await ready(stage.page);
  await reaches(101);
  await whole(101);
  await stop();
  await reaches(200);
  line.cut();
  await stage.page.getByText(/^Connection lost\. Trying again in \d s\./).waitFor();
  const held = (await numbers()).length;
  await new Promise((done) => { setTimeout(done, 5000); });
  assert.equal((await numbers()).length, held, "what is shown stays as it is");
  line.mend();
  await hurry(stage.page);
  const told = stage.page.getByText(/^Reconnected\. [\d,]+ lines arrived meanwhile\.$/);
  await told.waitFor();
  const missed = Number(/[\d,]+/.exec(await told.innerText())?.[0].replaceAll(",", ""));
  assert.ok(missed >= 50, `${missed} lines in five seconds`);
  await whole(held + 50);
  await stop();
  await reaches(300);
  await stage.reopen();
  await ready(stage.page);
  await stage.page.getByText(/^Reconnected\. [\d,]+ lines? arrived meanwhile\.$/).waitFor();
  await stop();
  await whole(300);
  await byHand(stage.page, [{ op: "eval", code: "(Lamp named: #gate) unwrap toggle" }]);
  await reaches(600);
  await whole(600);
  await stage.page.getByRole("banner").getByRole("button", { name: "Stop" }).waitFor({ state: "detached" });
  await shot(stage.watched, "06-output");
});

stage.test("the Workspace moves to another place while the page is slow to draw: its results move along", async () => {
  // What is to be done after a drawing waits for as long as the test wants.
  await stage.watched.context.addInitScript(() => {
    const [frame, timer] = [requestAnimationFrame.bind(globalThis), setTimeout.bind(globalThis)];
    const waiting: (() => void)[] = [];
    const drawing = { isSlow: false, goOn: (): void => { drawing.isSlow = false; for (const one of waiting.splice(0)) one(); } };
    const later = (run: () => void, start: () => number): number => { if (!drawing.isSlow) return start(); waiting.push(run); return 0; };
    Object.assign(globalThis, { drawing });
    globalThis.requestAnimationFrame = (run) => later(() => run(performance.now()), () => frame(run));
    globalThis.setTimeout = ((run: () => void, ms?: number) => (ms === 35 ? later(run, () => Number(timer(run, ms))) : timer(run, ms))) as typeof setTimeout;
  });
  const { page } = await open(stage.watched.context, stage.page.url());
  await ready(page);
  await type(page, "Transcript show: \"begun\"; cr. Timer sleep: 3000. #slept");
  await page.keyboard.press("ControlOrMeta+p");
  await page.locator("#pane-workspace .result.running").getByText("begun").waitFor();
  await page.keyboard.press("ControlOrMeta+k");
  await page.keyboard.type("Layout: Code");
  await page.getByRole("option", { name: "Layout: Code" }).waitFor();
  await page.evaluate(() => { (globalThis as unknown as { drawing: { isSlow: boolean } }).drawing.isSlow = true; });
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector("#pane-classes") !== null && !document.querySelector("header")?.textContent?.includes("evaluating"), undefined, { polling: 50 });
  await page.evaluate(() => (globalThis as unknown as { drawing: { goOn: () => void } }).drawing.goOn());
  await page.locator("#pane-workspace .surface .result .value").getByText("#slept").waitFor();
  await page.close();
});

stage.test("07 input and interrupt", async () => {
  await press('name := Console readLine: "name? ". "hello " ++ name', "ControlOrMeta+p");
  const field = stage.page.getByLabel("Input of the program");
  await field.fill("Ada");
  await stage.page.getByRole("button", { name: "Send" }).click();
  await stage.results.getByText(/hello Ada/).waitFor();
  await press("x := 5", "ControlOrMeta+d");
  await stage.results.getByText("✓").waitFor();
  await press("x := 6. [true] whileTrue: []", "ControlOrMeta+d");
  await stage.page.getByRole("banner").getByRole("button", { name: "Stop" }).waitFor();
  await stage.page.keyboard.press("ControlOrMeta+.");
  await stage.results.getByText("interrupted", { exact: true }).waitFor();
  await press("x", "ControlOrMeta+p");
  await stage.results.getByText("5", { exact: true }).waitFor();
});

stage.test("keys, palette and panes without a mouse", async () => {
  await stage.page.keyboard.press("Escape");
  await stage.page.keyboard.press("g");
  await stage.page.keyboard.press("b");
  await stage.page.getByRole("region", { name: "Bindings" }).getByText("lamp").first().waitFor();
  await stage.page.keyboard.press("?");
  await stage.page.getByRole("dialog", { name: "Keys" }).waitFor();
  await shot(stage.watched, "02-keys");
  await stage.page.keyboard.press("Escape");
  await stage.page.keyboard.press("ControlOrMeta+k");
  await stage.page.keyboard.type("@Lam");
  await stage.page.getByRole("listbox", { name: "Results" }).getByRole("option", { name: /^Lamp/ }).first().waitFor();
  await stage.page.keyboard.press("Enter");
  await stage.page.getByRole("region", { name: "Classes" }).getByRole("option", { name: /toggle/ }).waitFor();
  assert.match(stage.page.url(), /#\/class\/Lamp$/);
  await stage.page.keyboard.press("F6");
  await stage.page.keyboard.press("Shift+F6");
  await stage.page.goBack();
});

stage.test("S11 an address that logs in is of no use after a minute", async () => {
  await stage.page.waitForTimeout(Math.max(0, late.at + 61_000 - Date.now()));
  const context = await stage.browser.newContext();
  const page = await context.newPage();
  const answered = page.waitForResponse((response) => new URL(response.url()).pathname === "/login");
  await page.goto(late.url).catch(() => undefined);
  assert.equal((await answered).status(), 403);
  assert.deepEqual(await context.cookies(), []);
  assert.equal(await page.locator(".head").count(), 0);
  await context.close();
}, 120_000);

stage.test("nothing of all this broke the policy or asked another host", () => {
  assert.deepEqual(stage.watched.faults.filter((fault) => !/ERR_INTERNET_DISCONNECTED/.test(fault)), []);
});
