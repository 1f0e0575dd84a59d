// Changing code in the image and writing it to files.

import assert from "node:assert/strict";
import type { Locator } from "playwright-core";
import { ready, shot, type } from "../support/browser";
import { Stage } from "../support/stage";

const stage = Stage.of({}, [], (one) => one.choose("Layout: Code"));

const pane = (name: string): Locator => stage.pane(name);
const source = (): Locator => pane("Classes").locator(".cm-content");

async function openMethod(hash: string, text: string): Promise<void> {
  await stage.page.evaluate((to) => { location.hash = to; }, hash);
  await source().getByText(text).first().waitFor();
}

async function rewrite(text: string): Promise<void> {
  await source().click();
  await stage.page.keyboard.press("ControlOrMeta+a");
  await stage.page.keyboard.insertText(text);
}

const value = (code: string): Promise<string> => stage.value(code);

stage.test("08 saving a method changes what runs", async () => {
  await type(stage.page, "lamp := Lamp spawn");
  await stage.page.keyboard.press("ControlOrMeta+d");
  await stage.page.locator("#pane-workspace .result[data-state=done]").waitFor();
  await openMethod("#/class/Lamp/toggle", "self.on not");
  await rewrite("/// Switch it, and answer whether it is on.\ntoggle => self.on := #glowing");
  await stage.page.keyboard.press("ControlOrMeta+s");
  await pane("Classes").getByRole("button", { name: "unflushed" }).waitFor();
  await stage.page.getByRole("contentinfo").getByText("1 unflushed").waitFor();
  assert.equal(await value("lamp toggle"), "#glowing");
  await pane("Changes").getByRole("option", { name: /Lamp>>toggle/ }).waitFor();
  await pane("Changes").getByText("1 change", { exact: true }).waitFor();
  await shot(stage.watched, "08-class-browser");
});

stage.test("08b a save that does not compile keeps the text and says where", async () => {
  await openMethod("#/class/Lamp/isOn", "self.on");
  await rewrite("isOn => (self.on");
  await stage.page.keyboard.press("ControlOrMeta+s");
  await pane("Classes").getByRole("alert").waitFor();
  assert.match(await source().innerText(), /isOn => \(self\.on/);
  await shot(stage.watched, "08b-refused");
  await rewrite("isOn => self.on");
  await stage.page.keyboard.press("ControlOrMeta+s");
});

stage.test("09 a change that breaks a sender is a finding in the sender", async () => {
  await stage.page.locator("#tab-tests").click();
  await pane("Tests").getByRole("button", { name: "Load the project's tests" }).click();
  await pane("Tests").getByRole("option", { name: /testToggle/ }).waitFor();
  await stage.page.locator("#tab-changes").click();
  await openMethod("#/class/Lamp/isOn", "self.on");
  await pane("Classes").getByRole("button", { name: "Remove…" }).click();
  await stage.page.getByRole("alertdialog").getByRole("button", { name: "Remove" }).click();
  await openMethod("#/class/LampTest/testToggle", "lamp isOn");
  await pane("Classes").getByRole("list", { name: "Findings" }).getByText(/isOn/).first().waitFor();
  await pane("Classes").locator(".cm-lintRange").getByText("isOn").waitFor();
  await pane("Classes").getByRole("list", { name: "Findings" }).getByRole("button", { name: /^[EHW]\d{4}$/ }).first().click();
  await stage.page.getByRole("dialog", { name: /^[EHW]\d{4}$/ }).getByRole("heading", { name: "Wrong" }).waitFor();
  await stage.page.keyboard.press("Escape");
  await shot(stage.watched, "09-finding");
  await pane("Changes").getByRole("option", { name: /isOn/ }).last().click();
  await pane("Changes").getByRole("button", { name: "Revert…" }).click();
  await stage.page.getByRole("alertdialog").getByRole("button", { name: "Revert" }).click();
  await pane("Classes").locator(".cm-lintRange").waitFor({ state: "detached" });
});

stage.test("10 flushing writes exactly what changed", async () => {
  const before = stage.house.read("src/Lamp.bt");
  await pane("Changes").getByRole("option", { name: /Lamp>>toggle/ }).click();
  await pane("Changes").locator(".diff .plus").getByText("#glowing").waitFor();
  await shot(stage.watched, "10-diff");
  await stage.page.keyboard.press("F");
  await stage.page.locator(".toast").getByText("flushed 1 method across 1 file").waitFor();
  await pane("Changes").getByText("The image and the files agree.").waitFor();
  const now = stage.house.read("src/Lamp.bt");
  assert.equal(now.replace("self.on := #glowing", "self.on := self.on not"), before);
  await pane("Classes").getByText("unflushed").first().waitFor({ state: "detached" });
});

stage.test("what is chosen stays chosen when somebody else changes the class; a method that comes is shown", async () => {
  await openMethod("#/class/Lamp/toggle", "#glowing");
  await pane("Classes").getByRole("option", { name: /^isOn/ }).click();
  await stage.house.beamtalk("repl", "-e", "Lamp >> other => 1");
  await pane("Classes").getByRole("option", { name: /^other/ }).waitFor();
  assert.equal(await pane("Classes").getByRole("option", { name: /^isOn/ }).getAttribute("aria-selected"), "true");
  await pane("Changes").getByRole("option", { name: /Lamp>>other/ }).click();
  await pane("Changes").getByRole("button", { name: "Revert…" }).click();
  await stage.page.getByRole("alertdialog").getByRole("button", { name: "Revert" }).click();
  await pane("Classes").getByRole("option", { name: /^other/ }).waitFor({ state: "detached" });
  assert.equal(await pane("Classes").getByRole("option", { name: /^isOn/ }).getAttribute("aria-selected"), "true");
  // A link to a method that is not there yet leads to it once it is.
  await stage.goTo("#/class/Lamp/later");
  await pane("Classes").getByRole("alert").getByText(/does not define 'later'/).waitFor();
  await stage.house.beamtalk("repl", "-e", "Lamp >> later => #here");
  await source().getByText("#here").waitFor();
  await pane("Changes").getByRole("option", { name: /Lamp>>later/ }).click();
  await pane("Changes").getByRole("button", { name: "Revert…" }).click();
  await stage.page.getByRole("alertdialog").getByRole("button", { name: "Revert" }).click();
  await pane("Changes").getByText("The image and the files agree.").waitFor();
});

stage.test("10b of several changes only the selected are flushed", async () => {
  for (const [name, text] of [["isOn", "isOn => #one"], ["broken", "broken => #two"]] as const) {
    await openMethod(`#/class/Lamp/${name}`, name);
    await rewrite(text);
    await stage.page.keyboard.press("ControlOrMeta+s");
    await pane("Changes").getByRole("option", { name: new RegExp(`Lamp>>${name}`) }).waitFor();
  }
  await pane("Changes").getByRole("option", { name: /Lamp>>broken/ }).click();
  await pane("Changes").getByRole("button", { name: "Flush this" }).click();
  await stage.page.locator(".toast").getByText("flushed 1 method across 1 file").waitFor();
  assert.match(stage.house.read("src/Lamp.bt"), /broken => #two/);
  assert.doesNotMatch(stage.house.read("src/Lamp.bt"), /#one/);
  await pane("Changes").getByRole("button", { name: "Flush all" }).click();
  await pane("Changes").getByText("The image and the files agree.").waitFor();
});

stage.test("11 a conflict is settled from three sides: one place from disk, another edited", async () => {
  for (const [name, shown, text] of [["toggle", "#glowing", "/// Switch it, and answer whether it is on.\ntoggle => self.on := #image"], ["isOn", "#one", "isOn => #imageOn"]] as const) {
    await openMethod(`#/class/Lamp/${name}`, shown);
    await rewrite(text);
    await stage.page.keyboard.press("ControlOrMeta+s");
    await pane("Changes").getByRole("option", { name: new RegExp(`Lamp>>${name}`) }).waitFor();
  }
  stage.house.write("src/Lamp.bt", stage.house.read("src/Lamp.bt").replace("#glowing", "#disk").replace("#one", "#diskOn"));
  await pane("Changes").getByRole("button", { name: "Flush all" }).click();
  await pane("Changes").getByRole("alert").waitFor();
  await pane("Changes").getByRole("option", { name: /Lamp>>toggle/ }).click();
  await pane("Changes").getByRole("button", { name: "Three-way" }).click();
  await pane("Changes").getByRole("heading", { name: "disk" }).nth(1).waitFor();
  for (const name of ["base", "image", "disk"]) assert.equal(await pane("Changes").getByRole("heading", { name }).count(), 2, name);
  const settle = pane("Changes").getByRole("button", { name: "Settle" });
  assert.ok(await settle.isDisabled(), "marks are left");
  await shot(stage.watched, "11-three-way");
  // The second place is edited by hand, and stays so when the first is chosen.
  const result = pane("Changes").locator(".surface .cm-content");
  const text = (await result.locator(".cm-line").allInnerTexts()).map((one) => one.replace(/\n$/, "")).join("\n");
  const edited = text.replace(/ *<<<<<<< image\n((?!=======)[^])*?#imageOn[^]*?>>>>>>> disk/, "  isOn => #both");
  assert.notEqual(edited, text);
  await result.click();
  await stage.page.keyboard.press("ControlOrMeta+a");
  await stage.page.keyboard.insertText(edited);
  assert.ok(await settle.isDisabled(), "one mark is left");
  await pane("Changes").locator(".contested").filter({ hasText: "Lamp>>toggle" }).getByRole("button", { name: "disk", exact: true }).click();
  await stage.page.waitForFunction(() => !(document.querySelector("#pane-changes .three .primary") as HTMLButtonElement | null)?.disabled);
  // What cannot be read is not settled.
  await result.getByText("#both").click();
  await stage.page.keyboard.press("End");
  await stage.page.keyboard.type(" foo: ((");
  await pane("Changes").locator(".section-head .danger").waitFor();
  assert.ok(await settle.isDisabled(), "the result cannot be read");
  for (let at = 0; at < " foo: ((".length; at += 1) await stage.page.keyboard.press("Backspace");
  await stage.page.waitForFunction(() => !(document.querySelector("#pane-changes .three .primary") as HTMLButtonElement | null)?.disabled);
  const settled = (await result.locator(".cm-line").allInnerTexts()).map((one) => one.replace(/\n$/, "")).join("\n");
  await settle.click();
  await pane("Changes").getByText("The image and the files agree.").waitFor();
  assert.equal(stage.house.read("src/Lamp.bt").trimEnd(), settled.trimEnd());
  assert.match(settled, /toggle => self\.on := #disk/);
  assert.match(settled, /isOn => #both/);
  assert.equal(await value("Lamp spawn toggle"), "#disk");
  assert.equal(await value("Lamp spawn isOn"), "#both");
});

stage.test("a whole file is opened by its path, written for what was read, and loaded", async () => {
  await stage.page.keyboard.press("Escape");
  await stage.page.keyboard.press("ControlOrMeta+k");
  await stage.page.keyboard.type("/src/Lam");
  await stage.page.getByRole("option", { name: /^src\/Lamp\.bt/ }).first().waitFor();
  await stage.page.keyboard.press("Enter");
  await pane("Classes").locator(".cm-content").getByText("Actor subclass: Lamp").waitFor();
  assert.match(stage.page.url(), /#\/file\/src\/Lamp\.bt$/);
  const before = stage.house.read("src/Lamp.bt");
  await rewrite(before.replace("#both", "#written"));
  stage.house.write("src/Lamp.bt", `${before}\n// outside\n`);
  await stage.page.keyboard.press("ControlOrMeta+s");
  await pane("Classes").getByText("Changed on disk too").waitFor();
  assert.equal(stage.house.read("src/Lamp.bt"), `${before}\n// outside\n`, "nothing is written until it is chosen");
  await pane("Classes").getByRole("button", { name: "Keep mine" }).click();
  await stage.page.locator(".toast").getByText("src/Lamp.bt written, 1 class loaded").waitFor();
  assert.equal(stage.house.read("src/Lamp.bt"), before.replace("#both", "#written"));
  assert.equal(await value("Lamp spawn isOn"), "#written");
  await stage.goTo("#/file/src/Lamp.bt:2");
  await pane("Classes").locator(".cm-marked").getByText("Actor subclass: Lamp").waitFor();
  await shot(stage.watched, "13-file");
});

stage.test("a new class has its file after a flush", async () => {
  await pane("Classes").getByRole("button", { name: "New class…" }).click();
  assert.equal(await pane("Classes").getByLabel("File", { exact: true }).first().inputValue(), "src/NewClass1.bt", "a path is proposed");
  await pane("Classes").getByRole("button", { name: "Make" }).click();
  await pane("Classes").getByRole("option", { name: /^NewClass1/ }).waitFor();
  assert.equal(await value("NewClass1 new hello"), '"hello"');
  await pane("Changes").getByRole("button", { name: "Flush all" }).click();
  await pane("Changes").getByText("The image and the files agree.").waitFor();
  assert.match(stage.house.read("src/NewClass1.bt"), /Value subclass: NewClass1/);
});

stage.test("senders, implementors and a name that is nearly right", async () => {
  await stage.page.evaluate(() => { location.hash = "#/senders/toggle"; });
  await pane("Classes").getByText(/senders of toggle/).waitFor();
  await stage.page.evaluate(() => { location.hash = "#/class/Lmap"; });
  await pane("Classes").getByRole("button", { name: "Did you mean Lamp?" }).click();
  await pane("Classes").getByRole("option", { name: /toggle/ }).waitFor();
});

stage.test("tests run, and a failure says why", async () => {
  await stage.page.locator("#tab-tests").click();
  await pane("Tests").getByRole("option", { name: /testToggle/ }).waitFor();
  await pane("Tests").getByRole("button", { name: "Run all" }).click();
  await pane("Tests").getByText(/failed/).first().waitFor();
  await pane("Tests").getByRole("option", { name: /✗/ }).first().click();
  await pane("Tests").locator(".failure").first().waitFor();
  await shot(stage.watched, "12-tests");
});

stage.test("files changed on disk are told and loaded", async () => {
  stage.house.write("src/Lamp.bt", stage.house.read("src/Lamp.bt").replace("#disk", "#loaded"));
  await stage.page.reload();
  await ready(stage.page);
  await stage.page.getByRole("contentinfo").getByRole("button", { name: "Load" }).click();
  await stage.page.getByRole("contentinfo").getByText("changed on disk").waitFor({ state: "detached" });
  assert.equal(await value("Lamp spawn toggle"), "#loaded");
});

stage.test("nothing broke the policy", () => {
  assert.deepEqual(stage.watched.faults, []);
});
