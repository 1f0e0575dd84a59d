// Typing, evaluating, and never losing what came of it.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { enter, launch, open, ready, shot, type, type Watched } from "../support/browser";
import { House } from "../support/house";

let house: House;
let browser: Browser;
let watched: Watched;
let page: Page;

before(async () => {
  [house, browser] = await Promise.all([House.open(), launch()]);
  watched = await enter(browser, house);
  page = watched.page;
  await ready(page);
});
after(async () => {
  await browser.close();
  await house.close();
});

const results = (): ReturnType<Page["locator"]> => page.locator("#pane-workspace .surface .result");

async function press(text: string, key: string): Promise<void> {
  await type(page, text);
  await page.keyboard.press(key);
}

test("01 login: the address has no token, the name and state are told, the caret is in the Workspace", async () => {
  assert.match(page.url(), /^http:\/\/w[a-z2-7]{20}\.localhost:\d+\/$/);
  await page.getByRole("banner").getByText("lamp", { exact: true }).waitFor();
  await page.getByRole("banner").getByText("running").waitFor();
  assert.ok(await page.evaluate(() => document.activeElement?.classList.contains("cm-content")));
  assert.equal(await page.title(), "lamp · Beamtalk");
  for (const name of ["Workspace", "Inspector", "Transcript"]) await page.getByRole("region", { name }).waitFor();
  await shot(watched, "01-login");
});

test("03 do, print, inspect", async () => {
  await press("lamp := Lamp spawn", "ControlOrMeta+d");
  await results().getByText("✓").waitFor();
  await press("lamp toggle", "ControlOrMeta+p");
  await results().getByText("true", { exact: true }).waitFor();
  await results().getByText("Boolean").or(results().getByText("True")).first().waitFor();
  await press("lamp", "ControlOrMeta+i");
  const inspector = page.getByRole("region", { name: "Inspector" });
  await inspector.getByRole("option").filter({ hasText: "on" }).getByText("true", { exact: true }).waitFor();
  await page.getByText("Nothing written yet.").waitFor();
  await shot(watched, "03-inspect");
});

test("03b the input at the caret is what is evaluated", async () => {
  await type(page, "a := [\n  40 + 2\n]\n\n// note\na value + 1");
  await page.keyboard.press("ControlOrMeta+Home");
  await page.keyboard.press("ControlOrMeta+d");
  await results().getByText("✓").waitFor();
  await page.keyboard.press("ControlOrMeta+End");
  await page.keyboard.press("Alt+Enter");
  await page.locator("#pane-workspace .cm-content").getByText("a value + 1 // => 43").waitFor();
});

test("04 completion and documentation", async () => {
  await press("lamp := Lamp spawn", "ControlOrMeta+d");
  await results().getByText("✓").waitFor();
  await type(page, "lamp ");
  await page.keyboard.type("to", { delay: 30 });
  const list = page.locator(".cm-tooltip-autocomplete");
  await list.getByRole("option").first().waitFor();
  assert.match(await list.getByRole("option").first().innerText(), /^toggle/);
  await page.keyboard.press("Escape");
  await type(page, "lamp toggle");
  await page.keyboard.press("F1");
  await page.locator(".card").getByText("toggle").first().waitFor();
  await shot(watched, "04-card");
  await page.keyboard.press("Escape");
});

test("05 errors: head, proposal that corrects the text, frames that open the source", async () => {
  await press("lamp := Lamp spawn", "ControlOrMeta+d");
  await results().getByText("✓").waitFor();
  await press("lamp togle", "ControlOrMeta+p");
  await results().getByText("does_not_understand").waitFor();
  await results().getByRole("button", { name: "Did you mean 'toggle'?" }).click();
  await page.locator("#pane-workspace .cm-content").getByText("lamp toggle").waitFor();
  await press("lamp broken", "ControlOrMeta+p");
  await results().getByRole("list", { name: "Frames" }).getByRole("button", { name: "Lamp>>broken" }).click();
  await page.getByRole("region", { name: "Classes" }).locator(".cm-content").getByText("self missing: 3").waitFor();
  await shot(watched, "05-error");
});

test("06 output survives a reload, a lost connection, and another tab", async () => {
  const numbers = async (): Promise<number[]> => {
    const more = results().getByRole("button", { name: /more lines/ });
    if (await more.isVisible().catch(() => false)) await more.click();
    return (await results().locator(".output").first().innerText()).trim().split("\n").map(Number);
  };
  const reaches = (least: number): Promise<unknown> => page.waitForFunction((count) => Number(document.querySelector(".output")?.getAttribute("data-lines") ?? 0) >= count, least, { timeout: 60_000 });
  const whole = async (least: number): Promise<void> => {
    const found = await numbers();
    assert.ok(found.length >= least, `${found.length} lines`);
    assert.deepEqual(found, found.map((_, at) => at + 1));
  };
  await press("1 to: 120 do: [:i | Transcript show: i printString; cr. Timer sleep: 50]", "ControlOrMeta+d");
  await reaches(10);
  await page.reload();
  await ready(page);
  await reaches(20);
  await page.getByRole("banner").getByRole("button", { name: "Stop" }).waitFor();
  await page.context().setOffline(true);
  await page.evaluate(() => dispatchEvent(new Event("offline")));
  await page.context().setOffline(false);
  await reaches(40);
  await whole(40);
  const { context } = watched;
  const url = page.url();
  await page.close();
  watched = await open(context, url);
  page = watched.page;
  await ready(page);
  await reaches(120);
  await whole(120);
  await page.getByRole("banner").getByRole("button", { name: "Stop" }).waitFor({ state: "detached" });
  await shot(watched, "06-output");
});

test("07 input and interrupt", async () => {
  await press('name := Console readLine: "name? ". "hello " ++ name', "ControlOrMeta+p");
  const field = page.getByLabel("Input of the program");
  await field.fill("Ada");
  await page.getByRole("button", { name: "Send" }).click();
  await results().getByText(/hello Ada/).waitFor();
  await press("x := 5", "ControlOrMeta+d");
  await results().getByText("✓").waitFor();
  await press("x := 6. [true] whileTrue: []", "ControlOrMeta+d");
  await page.getByRole("banner").getByRole("button", { name: "Stop" }).waitFor();
  await page.keyboard.press("ControlOrMeta+.");
  await results().getByText("interrupted", { exact: true }).waitFor();
  await press("x", "ControlOrMeta+p");
  await results().getByText("5", { exact: true }).waitFor();
});

test("keys, palette and panes without a mouse", async () => {
  await page.keyboard.press("Escape");
  await page.keyboard.press("g");
  await page.keyboard.press("b");
  await page.getByRole("region", { name: "Bindings" }).getByText("lamp").first().waitFor();
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  await shot(watched, "02-keys");
  await page.keyboard.press("Escape");
  await page.keyboard.press("ControlOrMeta+k");
  await page.keyboard.type("@Lam");
  await page.getByRole("listbox", { name: "Results" }).getByRole("option", { name: /^Lamp/ }).first().waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("region", { name: "Classes" }).getByRole("option", { name: /toggle/ }).waitFor();
  assert.match(page.url(), /#\/class\/Lamp$/);
  await page.keyboard.press("F6");
  await page.keyboard.press("Shift+F6");
  await page.goBack();
});

test("nothing of all this broke the policy or asked another host", () => {
  assert.deepEqual(watched.faults.filter((fault) => !/ERR_INTERNET_DISCONNECTED/.test(fault)), []);
});
