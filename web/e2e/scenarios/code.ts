// Changing code in the image and writing it to files.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, Locator, Page } from "playwright-core";
import { enter, launch, ready, shot, type, type Watched } from "../support/browser";
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
  await page.keyboard.press("ControlOrMeta+k");
  await page.keyboard.type("Layout: Code");
  await page.keyboard.press("Enter");
});
after(async () => {
  await browser.close();
  await house.close();
});

const pane = (name: string): Locator => page.getByRole("region", { name });
const source = (): Locator => pane("Classes").locator(".cm-content");

async function openMethod(hash: string, text: string): Promise<void> {
  await page.evaluate((to) => { location.hash = to; }, hash);
  await source().getByText(text).first().waitFor();
}

async function rewrite(text: string): Promise<void> {
  await source().click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(text);
}

async function value(code: string): Promise<string> {
  await type(page, code);
  await page.keyboard.press("ControlOrMeta+p");
  const shown = page.locator("#pane-workspace .surface .result[data-state=done] .value");
  await shown.waitFor();
  return shown.innerText();
}

test("08 saving a method changes what runs", async () => {
  await type(page, "lamp := Lamp spawn");
  await page.keyboard.press("ControlOrMeta+d");
  await page.locator("#pane-workspace .result[data-state=done]").waitFor();
  await openMethod("#/class/Lamp/toggle", "self.on not");
  await rewrite("/// Switch it, and answer whether it is on.\ntoggle => self.on := #glowing");
  await page.keyboard.press("ControlOrMeta+s");
  await pane("Classes").getByRole("button", { name: "unflushed" }).waitFor();
  await page.getByRole("contentinfo").getByText("1 unflushed").waitFor();
  assert.equal(await value("lamp toggle"), "#glowing");
  await pane("Changes").getByRole("option", { name: /Lamp>>toggle/ }).waitFor();
  await shot(watched, "08-class-browser");
});

test("08b a save that does not compile keeps the text and says where", async () => {
  await openMethod("#/class/Lamp/isOn", "self.on");
  await rewrite("isOn => (self.on");
  await page.keyboard.press("ControlOrMeta+s");
  await pane("Classes").getByRole("alert").waitFor();
  assert.match(await source().innerText(), /isOn => \(self\.on/);
  await shot(watched, "08b-refused");
  await rewrite("isOn => self.on");
  await page.keyboard.press("ControlOrMeta+s");
});

test("09 a change that breaks a sender is a finding", async () => {
  await openMethod("#/class/Lamp/broken", "missing");
  await rewrite("broken => Lamp new nonsense");
  await page.keyboard.press("ControlOrMeta+s");
  await pane("Classes").getByText("Lamp>>broken").first().waitFor();
});

test("10 flushing writes exactly what changed", async () => {
  const before = house.read("src/Lamp.bt");
  await pane("Changes").getByRole("option", { name: /Lamp>>toggle/ }).click();
  await pane("Changes").locator(".diff .plus").getByText("#glowing").waitFor();
  await shot(watched, "10-diff");
  await page.keyboard.press("F");
  await page.locator(".toast").getByText(/flushed \d methods? across 1 file/).waitFor();
  await pane("Changes").getByText("The image and the files agree.").waitFor();
  const now = house.read("src/Lamp.bt");
  assert.equal(now.replace("self.on := #glowing", "self.on := self.on not").replace("Lamp new nonsense", "self missing: 3"), before);
});

test("11 a conflict is settled from three sides", async () => {
  await openMethod("#/class/Lamp/toggle", "#glowing");
  await rewrite("/// Switch it, and answer whether it is on.\ntoggle => self.on := #image");
  await page.keyboard.press("ControlOrMeta+s");
  await pane("Changes").getByRole("option", { name: /Lamp>>toggle/ }).waitFor();
  house.write("src/Lamp.bt", house.read("src/Lamp.bt").replace("#glowing", "#disk"));
  await pane("Changes").getByRole("button", { name: "Flush all" }).click();
  await pane("Changes").getByRole("alert").waitFor();
  await pane("Changes").getByRole("option", { name: /Lamp>>toggle/ }).click();
  await pane("Changes").getByRole("button", { name: "Three-way" }).click();
  await pane("Changes").getByRole("heading", { name: "base" }).waitFor();
  const settle = pane("Changes").getByRole("button", { name: "Settle" });
  assert.ok(await settle.isDisabled(), "marks are left");
  await shot(watched, "11-three-way");
  await pane("Changes").getByRole("button", { name: "disk", exact: true }).click();
  await page.waitForFunction(() => !(document.querySelector("#pane-changes .three .primary") as HTMLButtonElement | null)?.disabled);
  await settle.click();
  await pane("Changes").getByText("The image and the files agree.").waitFor();
  assert.match(house.read("src/Lamp.bt"), /toggle => self\.on := #disk/);
  assert.equal(await value("Lamp spawn toggle"), "#disk");
});

test("a new class has its file after a flush", async () => {
  await pane("Classes").getByRole("button", { name: "New class…" }).click();
  await pane("Classes").getByRole("option", { name: /^NewClass1/ }).waitFor();
  assert.equal(await value("NewClass1 new hello"), '"hello"');
  await pane("Changes").getByRole("button", { name: "Flush all" }).click();
  await pane("Changes").getByText("The image and the files agree.").waitFor();
  assert.match(house.read("src/NewClass1.bt"), /Object subclass: NewClass1/);
});

test("senders, implementors and a name that is nearly right", async () => {
  await page.evaluate(() => { location.hash = "#/senders/toggle"; });
  await pane("Classes").getByText(/senders of toggle/).waitFor();
  await page.evaluate(() => { location.hash = "#/class/Lmap"; });
  await pane("Classes").getByRole("button", { name: "Did you mean Lamp?" }).click();
  await pane("Classes").getByRole("option", { name: /toggle/ }).waitFor();
});

test("tests run, and a failure says why", async () => {
  await page.locator("#tab-tests").click();
  const load = pane("Tests").getByRole("button", { name: "Load the project's tests" });
  await load.or(pane("Tests").getByRole("button", { name: "Run all" })).first().waitFor();
  if (await load.isVisible()) await load.click();
  await pane("Tests").getByRole("option", { name: /testToggle/ }).waitFor();
  await pane("Tests").getByRole("button", { name: "Run all" }).click();
  await pane("Tests").getByText(/failed/).first().waitFor();
  await pane("Tests").getByRole("option", { name: /✗/ }).first().click();
  await pane("Tests").locator(".failure").first().waitFor();
  await shot(watched, "12-tests");
});

test("files changed on disk are told and loaded", async () => {
  house.write("src/Lamp.bt", house.read("src/Lamp.bt").replace("#disk", "#loaded"));
  await page.reload();
  await ready(page);
  await page.getByRole("contentinfo").getByRole("button", { name: "Load" }).click();
  await page.getByRole("contentinfo").getByText("changed on disk").waitFor({ state: "detached" });
  assert.equal(await value("Lamp spawn toggle"), "#loaded");
});

test("nothing broke the policy", () => {
  assert.deepEqual(watched.faults, []);
});
