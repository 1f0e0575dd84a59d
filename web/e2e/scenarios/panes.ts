// What the panes promise beyond the scenarios: that nothing falls between, who did what, and ways from one to the other.

import assert from "node:assert/strict";
import type { Locator } from "playwright-core";
import { enter, ready, shot, type } from "../support/browser";
import { byHand } from "../support/byhand";
import { Stage } from "../support/stage";

const stage = Stage.of({
  "src/Post.bt": `/// Writes by itself, and fails when it is asked to.
Actor subclass: Post
  state: count = 0

  say: text => Transcript show: text; cr
  fail => 1 / 0
  viewNothing => nil
`,
  "src/Keeper.bt": `/// Keeps a post alive.
Supervisor subclass: Keeper

  class children => #(Post)
  class strategy => #oneForAll
`,
});
const pane = (name: string): Locator => stage.pane(name);
const grid = (name: string): Locator => pane(name).getByRole("grid");

stage.test("the log follows its end, has what was written a moment before it was opened, and nothing twice", async () => {
  await stage.evaluate("1 to: 150 do: [:i | Logger warn: \"entry {i} of many\"]. Logger error: \"the very last\"", "ControlOrMeta+d");
  await stage.choose("Log");
  await grid("Log").getByText("the very last").waitFor();
  await stage.evaluate("Logger error: \"written while it is open\"", "ControlOrMeta+d");
  await grid("Log").getByText("written while it is open").waitFor();
  // Another look at the files brings nothing again.
  await stage.choose("Transcript");
  await stage.choose("Log");
  await pane("Log").getByLabel("Search the log").fill("the very last");
  await pane("Log").getByText("1 entry", { exact: true }).waitFor();
  await pane("Log").getByLabel("Search the log").fill("of many");
  await pane("Log").getByText("150 entries", { exact: true }).waitFor();
  await pane("Log").getByLabel("Search the log").fill("");
  // Who scrolls up stays there.
  await grid("Log").evaluate((list) => { list.scrollTop = 0; list.dispatchEvent(new Event("scroll")); });
  await grid("Log").getByText("entry 1 of many").or(grid("Log").getByRole("row").first()).first().waitFor();
  await stage.evaluate("Logger error: \"below what is seen\"", "ControlOrMeta+d");
  await pane("Log").getByText(/^15\d entries|^1[6-9]\d entries/).waitFor();
  assert.equal(await grid("Log").getByText("below what is seen").count(), 0);
  await pane("Log").focus();
  await stage.page.keyboard.press("End");
  await grid("Log").getByText("below what is seen").waitFor();
});

stage.test("the log pauses and counts, is narrowed by level and domain, and changes what the node logs", async () => {
  await pane("Log").getByRole("button", { name: "Pause" }).click();
  await stage.evaluate("Logger error: \"while paused\"", "ControlOrMeta+d");
  await pane("Log").getByRole("button", { name: "Go on (1)" }).click();
  await grid("Log").getByText("while paused").waitFor();
  await pane("Log").getByLabel("Level", { exact: true }).selectOption("error");
  await grid("Log").getByText("while paused").waitFor();
  await grid("Log").getByText("of many").first().waitFor({ state: "detached" });
  await pane("Log").getByLabel("Level of the node").selectOption("debug");
  await stage.page.locator(".toast").getByText("the node logs from debug on").waitFor();
  await pane("Log").getByLabel("Level", { exact: true }).selectOption("debug");
  await stage.evaluate("Logger debug: \"a small thing\"", "ControlOrMeta+d");
  await grid("Log").getByText("a small thing").waitFor();
  await pane("Log").getByLabel("Level of the node").selectOption("info");
  await pane("Log").getByLabel("Level", { exact: true }).selectOption("info");
  await shot(stage.watched, "48-log");
});

stage.test("an actor that fails is in the log with its place, in the error with its state", async () => {
  await stage.evaluate("post := Post spawn", "ControlOrMeta+d");
  const failed = await stage.evaluate("post fail");
  await failed.getByRole("button", { name: "Inspect actor" }).click();
  await pane("Inspector").getByText("count", { exact: true }).waitFor();
  assert.match(stage.page.url(), /#\/actor\/0\.\d+\.0$/);
  // What nobody waits for is reported; the report is folded and leads to the method.
  await stage.evaluate("post fail!", "ControlOrMeta+d");
  await stage.choose("Log");
  await grid("Log").getByText(/^Post>>fail: /).or(grid("Log").getByText(/fail.*arithmetic/)).last().click();
  const report = pane("Log").locator(".detail");
  assert.equal(await report.getByText(/Hint:/).count(), 0, "folded");
  await report.getByRole("button", { name: /more line/ }).click();
  await report.getByText(/Hint:/).waitFor();
  await report.getByRole("button", { name: /^Post>>fail/ }).click();
  await pane("Classes").locator(".cm-content").getByText("fail => 1 / 0").waitFor();
});

stage.test("the Transcript says who wrote: this tab, another session, an actor; and shows only mine", async () => {
  await stage.choose("Transcript");
  await stage.evaluate("Transcript show: \"from here\"; cr", "ControlOrMeta+d");
  await stage.house.beamtalk("repl", "-e", "Transcript show: \"from there\"; cr");
  await stage.evaluate("teller := Post spawn. teller say: \"by itself\"!", "ControlOrMeta+d");
  const line = (text: string): Locator => pane("Transcript").locator(".told-line").filter({ hasText: text });
  await line("from here").getByText("this tab").waitFor();
  await line("from there").getByText(/session s-[0-9a-f]{8}/).waitFor();
  await line("by itself").getByText(/^0\.\d+\.0$/).waitFor();
  await pane("Transcript").getByRole("button", { name: "Mine" }).click();
  await line("from here").waitFor();
  assert.equal(await line("from there").count(), 0);
  await shot(stage.watched, "49-origin");
  await pane("Transcript").getByRole("button", { name: "Mine" }).click();
});

stage.test("older lines come when one scrolls up; a line too long is opened; lines become a text", async () => {
  await stage.evaluate("1 to: 3000 do: [:i | Transcript show: \"old {i}\"; cr]. Transcript show: (\"y\" repeat: 200000); cr", "ControlOrMeta+d");
  const second = await enter(stage.browser, stage.house);
  await ready(second.page);
  const told = second.page.getByRole("region", { name: "Transcript" });
  await told.getByText(/183\.6 KB more/).waitFor();
  await told.getByRole("button", { name: "Open" }).click();
  await second.page.getByRole("dialog").getByText("yyyyyyyyyyyy").waitFor();
  await second.page.keyboard.press("Escape");
  // Each page leads to the one before, until the oldest is there.
  await told.getByLabel("Search the Transcript").fill("");
  for (let round = 0; round < 20; round += 1) {
    const before = await told.locator("[data-count]").innerText();
    await told.getByRole("log").evaluate((list) => { list.scrollTop = 1; list.scrollTop = 0; list.dispatchEvent(new Event("scroll")); });
    const isWhole = await told.locator(".told-line").getByText("from here").isVisible().catch(() => false);
    if (isWhole) break;
    await second.page.waitForFunction((old) => document.querySelector("#pane-transcript [data-count]")?.textContent !== old, before, { timeout: 3000 }).catch(() => undefined);
  }
  await told.getByLabel("Search the Transcript").fill("from here");
  await told.getByText("1 found").waitFor();
  await told.getByRole("button", { name: "To buffer" }).click();
  await second.page.locator("#pane-workspace .cm-content").getByText("from here").waitFor();
  assert.match(second.page.url(), /#\/workspace\/transcript-1$/);
  assert.deepEqual(second.faults, []);
  await second.context.close();
});

stage.test("a link leads further in, the address follows, a value gets a name, a dead actor says so", async () => {
  await stage.evaluate("nest := #{#a => #(10, 20, 30)}. other := 3", "ControlOrMeta+d");
  await stage.goTo("#/inspect/other");
  await pane("Inspector").getByRole("navigation", { name: "Path" }).getByText("other", { exact: true }).waitFor();
  await stage.goTo("#/inspect/nest/a");
  await pane("Inspector").locator(".column-view.last").getByRole("option").filter({ hasText: "20" }).waitFor();
  await pane("Inspector").getByRole("button", { name: "Back", exact: true }).click();
  await stage.page.waitForFunction(() => location.hash === "#/inspect/nest");
  await pane("Inspector").getByRole("option").filter({ hasText: "10" }).first().click();
  await stage.page.waitForFunction(() => decodeURIComponent(location.hash) === "#/inspect/nest/#a");
  await pane("Inspector").getByRole("button", { name: "Name…" }).click();
  await pane("Inspector").getByLabel("Name of the variable").fill("inner");
  await stage.page.keyboard.press("Enter");
  await stage.page.locator(".toast").getByText("inner is bound").waitFor();
  assert.equal(await stage.value("inner size"), "3");
  await pane("Inspector").getByRole("button", { name: "▷ Print" }).click();
  await pane("Inspector").locator("output").getByText("10, 20, 30").waitFor();
  await pane("Inspector").getByRole("button", { name: "Class", exact: true }).click();
  await pane("Classes").getByRole("tab", { name: "Source" }).waitFor();
  const pid = /0\.\d+\.0/.exec(await stage.value("doomed := Post spawn. doomed"))?.[0] ?? "";
  await stage.goTo(`#/actor/${pid}`);
  await pane("Inspector").getByText("count", { exact: true }).waitFor();
  await pane("Inspector").getByRole("button", { name: "Name…" }).click();
  await pane("Inspector").getByLabel("Name of the variable").fill("named");
  await stage.page.keyboard.press("Enter");
  await stage.page.locator(".toast").getByText("named is bound").waitFor();
  assert.ok((await stage.value("named")).includes(pid));
  await stage.evaluate("doomed kill", "ControlOrMeta+d");
  await pane("Inspector").getByText(/^ended \d\d:\d\d:\d\d, reason \w+/).waitFor();
  await pane("Inspector").getByText("count", { exact: true }).waitFor();
  await shot(stage.watched, "50-ended");
});

stage.test("actors in the order of classes; supervisors with their strategy, narrowed", async () => {
  await stage.evaluate("keeper := Keeper supervise unwrap. Lamp spawn. Lamp spawn", "ControlOrMeta+d");
  await stage.choose("Actors");
  await pane("Actors").getByRole("button", { name: "By class" }).click();
  await pane("Actors").locator(".col-class.first").getByText("Post").waitFor();
  await grid("Actors").getByRole("row", { name: /Lamp/ }).first().click();
  await stage.watched.context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await pane("Actors").getByRole("button", { name: "Copy pid" }).click();
  await stage.page.locator(".toast").getByText(/0\.\d+\.0 copied/).waitFor();
  await pane("Actors").getByRole("button", { name: "By class" }).click();
  await stage.choose("Supervision");
  await pane("Supervision").getByRole("treeitem", { name: /Keeper.*one for all/ }).waitFor();
  await pane("Supervision").getByLabel("Filter processes").fill("Post");
  await pane("Supervision").getByRole("treeitem", { name: /Keeper/ }).waitFor();
  await pane("Supervision").getByRole("treeitem", { name: /Post/ }).first().click();
  await pane("Supervision").getByRole("button", { name: "Stop…" }).click();
  await stage.page.getByRole("alertdialog").getByText(/Keeper may start it again/).waitFor();
  await stage.page.keyboard.press("Escape");
  await pane("Supervision").getByLabel("Filter processes").fill("");
});

stage.test("variables: what changed is marked, those of other sessions are read, one is put into the text", async () => {
  await stage.choose("Bindings");
  await stage.evaluate("marked := 1", "ControlOrMeta+d");
  await pane("Bindings").getByRole("option", { name: /^marked/ }).waitFor();
  await stage.evaluate("marked := 2", "ControlOrMeta+d");
  await pane("Bindings").getByRole("option", { name: /^marked.*2.*changed/ }).waitFor();
  await pane("Bindings").getByRole("option", { name: /^marked/ }).click();
  await type(stage.page, "");
  await pane("Bindings").getByRole("button", { name: "Insert" }).click();
  await stage.page.locator("#pane-workspace .cm-content").getByText("marked").waitFor();
  const second = await enter(stage.browser, stage.house);
  await ready(second.page);
  await type(second.page, "elsewhere := 77");
  await second.page.keyboard.press("ControlOrMeta+d");
  await second.page.locator(".result[data-state=done]").waitFor();
  const id = await second.page.evaluate(() => sessionStorage.getItem("session") ?? "");
  await stage.choose("Transcript");
  await stage.choose("Bindings");
  await pane("Bindings").getByLabel("Session").selectOption(id);
  await pane("Bindings").getByRole("option", { name: /^elsewhere.*77/ }).click();
  assert.equal(await pane("Bindings").getByRole("button", { name: "Remove" }).count(), 0, "others are only read");
  await second.context.close();
  await pane("Bindings").getByLabel("Session").selectOption("");
});

stage.test("tests run again after a change, lead to what they are about; a file that does not compile is a row", async () => {
  await stage.choose("Tests");
  await pane("Tests").getByRole("button", { name: "Load the project's tests" }).click();
  await pane("Tests").getByRole("option", { name: /^LampTest/ }).click();
  await pane("Tests").getByRole("button", { name: "On change" }).click();
  await stage.house.beamtalk("repl", "-e", "Lamp >> isOn => #strange");
  await pane("Tests").getByText(/1 passed|[12] failed/).first().waitFor();
  await pane("Tests").getByRole("button", { name: "On change" }).click();
  await pane("Tests").getByRole("option", { name: /testToggle/ }).click();
  assert.match(await pane("Tests").locator(".detail").innerText(), /test\/LampTest\.bt:\d+/);
  await pane("Tests").getByRole("button", { name: "Open Lamp" }).click();
  await pane("Classes").getByRole("option", { name: /toggle/ }).first().waitFor();
  stage.house.write("test/WrongTest.bt", "TestCase subclass: WrongTest\n\n  testX => (1\n");
  await stage.choose("Tests");
  await pane("Tests").getByRole("button", { name: "Run all" }).click();
  await pane("Tests").getByRole("alert").filter({ hasText: "test/WrongTest.bt" }).waitFor();
  await shot(stage.watched, "51-tests");
});

stage.test("changes stand under their files; the difference is shown both ways; settled ones are earlier", async () => {
  await stage.choose("Changes");
  await pane("Changes").getByRole("option", { name: /src\/Lamp\.bt/ }).waitFor();
  await pane("Changes").getByRole("option", { name: /Lamp>>isOn/ }).click();
  assert.match(stage.page.url(), /#\/changes\/\d+$/);
  await pane("Changes").getByRole("button", { name: "side by side" }).click();
  await pane("Changes").locator(".pair .plus").getByText("#strange").waitFor();
  await shot(stage.watched, "52-side-by-side");
  await pane("Changes").getByRole("button", { name: "one column" }).click();
  await pane("Changes").getByRole("button", { name: "Flush file" }).click();
  await pane("Changes").getByText("The image and the files agree.").waitFor();
  assert.match(stage.house.read("src/Lamp.bt"), /isOn => #strange/);
  await pane("Changes").getByRole("button", { name: "Earlier" }).click();
  await pane("Changes").getByRole("option", { name: /Lamp>>isOn.*flushed/ }).waitFor();
  await pane("Changes").getByRole("button", { name: "Earlier" }).click();
});

stage.test("the trail goes back as far as one scrolls, and says who it was", async () => {
  await byHand(stage.page, Array.from({ length: 1010 }, (_, at) => ({ op: "eval", code: String(at) })));
  await stage.choose("Audit");
  const list = grid("Audit");
  await list.getByRole("row").filter({ hasText: "browser · browser" }).first().waitFor();
  // Scrolling to the end brings what is older, until the first record is there.
  await stage.page.waitForFunction(() => {
    const rows = document.querySelector<HTMLElement>("#pane-audit .list");
    if (rows !== null) rows.scrollTop = rows.scrollHeight;
    return [...document.querySelectorAll("#pane-audit .row")].some((row) => row.firstElementChild?.textContent === "1");
  }, undefined, { polling: 100, timeout: 30_000 });
});

stage.test("what was written is there after the daemon was stopped and started", async () => {
  await stage.evaluate("Transcript show: \"before the end of all\"; cr", "ControlOrMeta+d");
  await pane("Transcript").locator(".told-line").or(stage.page.locator("#tab-transcript")).first().waitFor();
  await stage.house.beamtalk("workspace", "stop", "--force");
  await stage.house.beamtalk("workspace", "start");
  const again = await enter(stage.browser, stage.house);
  await ready(again.page);
  await again.page.keyboard.press("Escape");
  await again.page.keyboard.press("g");
  await again.page.keyboard.press("t");
  await again.page.getByRole("region", { name: "Transcript" }).getByText("before the end of all").waitFor();
  assert.deepEqual(again.faults, []);
  await again.context.close();
});
