// Ways to look at values, and what other clients do while one looks.

import assert from "node:assert/strict";
import type { Locator } from "playwright-core";
import { enter, ready, shot } from "../support/browser";
import { Stage } from "../support/stage";

const stage = Stage.of({
  "src/Loud.bt": `/// A value whose own methods tell that they ran.
Value subclass: Loud
  field: name = "quiet"

  printString => Transcript show: "printed"; cr. "loud"
  size => Transcript show: "sized"; cr. 3
  do: block => Transcript show: "done"; cr
`,
});
const pane = (name: string): Locator => stage.pane(name);
const inspector = (): Locator => pane("Inspector");
const tab = (name: string): Locator => inspector().getByRole("tab", { name, exact: true });

async function inspect(code: string, name: string): Promise<void> {
  await stage.evaluate(`${name} := ${code}. nil`, "ControlOrMeta+d");
  await stage.goTo(`#/inspect/${name}`);
  await inspector().getByRole("navigation", { name: "Path" }).getByText(name, { exact: true }).waitFor();
}

stage.test("numbers are a list, a chart and a histogram, and the chart is a table too", async () => {
  await inspect("(1 to: 2000) asList collect: [:n | n * n]", "squares");
  await inspector().getByRole("listbox").getByRole("option").first().waitFor();
  await tab("Chart").click();
  await inspector().getByRole("img", { name: /2,000 values from 1 to 4,000,000/ }).waitFor();
  await shot(stage.watched, "40-chart");
  await inspector().getByRole("button", { name: "Show as table" }).click();
  await inspector().getByRole("table").getByRole("row").nth(3).getByText("9", { exact: true }).waitFor();
  await tab("Histogram").click();
  await inspector().locator("svg rect").nth(29).waitFor({ state: "attached" });
  await shot(stage.watched, "41-histogram");
});

stage.test("dictionaries in a list are a table: sorted, searched, opened", async () => {
  await inspect("#(#{#name => \"Bo\", #age => 7}, #{#name => \"Al\", #age => 41}, #{#name => \"Cy\", #age => 5})", "people");
  await tab("Table").click();
  const rows = inspector().getByRole("grid", { name: "Table" }).getByRole("row");
  await inspector().getByRole("button", { name: "age", exact: true }).click();
  await rows.first().getByText("\"Cy\"").waitFor();
  await inspector().getByRole("button", { name: /^age/ }).click();
  await rows.first().getByText("\"Al\"").waitFor();
  await shot(stage.watched, "42-table");
  await rows.first().click();
  await inspector().getByRole("navigation", { name: "Path" }).getByText("2", { exact: true }).waitFor();
});

stage.test("nested dictionaries are a tree whose branches come when they are opened", async () => {
  await inspect("#{#a => #{#b => #(1, 2)}, #c => 3}", "nested");
  await tab("Tree").click();
  await inspector().getByRole("treeitem", { name: /^#a:/ }).click();
  await inspector().getByRole("treeitem", { name: /^#b:/ }).click();
  await inspector().getByRole("treeitem", { name: /^2: 2/ }).waitFor();
  await shot(stage.watched, "43-tree");
});

stage.test("texts have lines, bytes and characters; numbers have digits; keys choose", async () => {
  await inspect("\"one\\ntwo é\"", "words");
  await tab("Lines").click();
  await inspector().getByText("two é").first().waitFor();
  await tab("Characters").click();
  await inspector().getByText("newline").waitFor();
  await inspector().getByRole("grid").first().focus();
  await stage.page.keyboard.press("3");
  await inspector().getByText("6f 6e 65").first().waitFor();
  await inspect("255", "number");
  await tab("Hex").click();
  await inspector().getByText("16rFF").waitFor();
});

stage.test("a class shows its methods and its place; an actor its process; a row leads there", async () => {
  await inspect("Lamp spawn", "lamp");
  await tab("Process").click();
  await inspector().getByText("message_queue_len").waitFor();
  await inspect("Lamp", "kind");
  await tab("Methods").click();
  await inspector().getByText("toggle", { exact: true }).first().waitFor();
  await tab("Hierarchy").click();
  await inspector().getByText("this class").waitFor();
  await tab("Instances").click();
  await inspector().getByRole("grid").getByRole("row").first().click();
  await inspector().getByLabel("Message to the actor").waitFor();
});

stage.test("a message is sent to the actor that is looked at, code sees self", async () => {
  await inspector().getByLabel("Message to the actor").fill("toggle");
  await inspector().getByRole("button", { name: "Send" }).click();
  await inspector().locator("output").getByText("true").waitFor();
  await inspector().getByLabel("Message to the actor").fill("toggle. 3");
  await inspector().getByRole("button", { name: "Send" }).click();
  await inspector().locator("output").getByText("to an actor the code is one message").waitFor();
  await inspect("#(3, 4)", "pair");
  await inspector().getByLabel("Code with self").fill("self inject: 0 into: [:a :b | a + b]");
  await inspector().getByRole("button", { name: "Print", exact: true }).click();
  await inspector().locator("output").getByText("7").waitFor();
});

stage.test("S16, S17 every view of a value with effects runs none of them", async () => {
  await inspect("#(Loud new, #{#a => Loud new})", "trap");
  await stage.evaluate("alone := Loud new. nil", "ControlOrMeta+d");
  for (const [target, kind] of [["trap", "List"], ["alone", "Loud"]] as const) {
    await stage.goTo(`#/inspect/${target}`);
    await inspector().locator(".column-view > .bar > .chip").getByText(kind, { exact: true }).waitFor();
    const tabs = inspector().getByRole("tab");
    for (let at = 0; at < await tabs.count(); at += 1) {
      await tabs.nth(at).click();
      await inspector().locator(".row, pre, svg, dl").first().waitFor({ state: "attached" });
    }
  }
  await stage.goTo("#/inspect/trap/2");
  await inspector().getByText("Loud").first().waitFor();
  assert.equal(await stage.value("Transcript recent size"), "0", "nothing was written");
});

stage.test("variables are removed one by one, names of all sessions are marked", async () => {
  await stage.evaluate("gone := 1. stays := 2. nil", "ControlOrMeta+d");
  await stage.choose("Bindings");
  const list = pane("Bindings").getByRole("listbox", { name: "Variables" });
  await list.getByRole("option", { name: /Transcript.*global/ }).waitFor();
  await list.getByText("gone", { exact: true }).click();
  await pane("Bindings").getByRole("button", { name: "Remove" }).click();
  await list.getByText("gone", { exact: true }).waitFor({ state: "detached" });
  await list.getByText("stays", { exact: true }).waitFor();
  await shot(stage.watched, "44-bindings");
});

stage.test("tests that another tab ran are here too; the log has what was before; the trail goes on", async () => {
  await stage.evaluate("Logger error: \"something grave\". nil", "ControlOrMeta+d");
  const second = await enter(stage.browser, stage.house);
  await ready(second.page);
  await second.page.keyboard.press("Escape");
  await second.page.keyboard.press("g");
  await second.page.keyboard.press("e");
  await second.page.getByRole("region", { name: "Tests" }).getByRole("button", { name: "Run all" }).click();
  await second.page.getByRole("region", { name: "Tests" }).getByText("2 passed").waitFor();
  await second.context.close();
  await stage.choose("Tests");
  await pane("Tests").getByText("2 passed").waitFor();
  await stage.choose("Log");
  await pane("Log").getByText("something grave").first().waitFor();
  await shot(stage.watched, "45-log");
  await stage.choose("Audit");
  const before = Number(/–([\d,]+),/.exec(await pane("Audit").getByText(/seq 1–/).innerText())?.[1]?.replaceAll(",", ""));
  await stage.page.evaluate(() => undefined);
  await stage.house.beamtalk("repl", "-e", "1 + 2");
  await pane("Audit").getByText(/^repl( |$)/).first().waitFor();
  const after = Number(/–([\d,]+),/.exec(await pane("Audit").getByText(/seq 1–/).innerText())?.[1]?.replaceAll(",", ""));
  assert.ok(after > before);
});

stage.test("the palette takes the REPL's commands", async () => {
  await stage.page.keyboard.press("Escape");
  await stage.page.keyboard.press("ControlOrMeta+k");
  const field = stage.page.getByRole("combobox", { name: "Search" });
  await field.fill(":sta");
  await stage.page.getByRole("option", { name: /:status/ }).click();
  await stage.page.getByRole("status").getByText(/node up/).first().waitFor();
  await stage.page.keyboard.press("ControlOrMeta+k");
  await field.fill(":senders");
  await stage.page.keyboard.press("Enter");
  assert.equal(await field.inputValue(), ":senders ");
  await field.fill(":senders toggle");
  await stage.page.keyboard.press("Enter");
  await stage.page.waitForFunction(() => location.hash === "#/senders/toggle");
});

stage.test("a change that was replaced after it was shown is not written", async () => {
  const before = stage.house.read("src/Lamp.bt");
  await stage.house.beamtalk("repl", "-e", "Lamp >> isOn => self.on =:= true");
  await stage.choose("Changes");
  await pane("Changes").getByText("Lamp>>isOn").first().click();
  // What was seen is made another than what is there, as if it had been changed after the last look.
  await stage.page.evaluate(() => {
    const socket = WebSocket.prototype.send;
    WebSocket.prototype.send = function send(text): void {
      if (String(text).includes("\"flush\"")) text = String(text).replaceAll(/"(\d+)":"[0-9a-f]{64}"/g, "\"$1\":\"0000\"");
      socket.call(this, text);
    };
  });
  await pane("Changes").getByRole("button", { name: "Flush this" }).click();
  await pane("Changes").getByText("Lamp>>isOn changed since you looked").waitFor();
  assert.equal(stage.house.read("src/Lamp.bt"), before);
  await shot(stage.watched, "46-expect");
});

stage.test("a pane floats above the others, moves by keys, is kept over a reload and goes back", async () => {
  await stage.choose("Layout: Start");
  await stage.choose("Reset layout");
  await stage.page.getByRole("button", { name: "Menu of Inspector" }).click();
  await stage.page.getByRole("menuitem", { name: "Float" }).click();
  const handle = stage.page.getByRole("group", { name: "Move Inspector" });
  await handle.waitFor();
  const before = (await handle.boundingBox())?.x ?? 0;
  await handle.focus();
  for (let step = 0; step < 3; step += 1) await stage.page.keyboard.press("ArrowRight");
  await stage.page.waitForFunction((x) => (document.querySelector(".floating")?.getBoundingClientRect().x ?? 0) > x + 40, before);
  await shot(stage.watched, "47-floating");
  await stage.page.waitForFunction(() => document.querySelector(".floating") !== null);
  for (let tries = 0; tries < 100 && !stage.watched.frames.some((frame) => frame.includes("floats")); tries += 1) await stage.page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 50)));
  await stage.page.reload();
  await ready(stage.page);
  await handle.waitFor();
  await stage.page.getByRole("button", { name: "Menu of Inspector" }).click();
  await stage.page.getByRole("menuitem", { name: "Put back" }).click();
  await stage.page.getByRole("tab", { name: "Inspector" }).waitFor();
  assert.equal(await handle.count(), 0);
});

stage.test("20,000 classes are listed, filtered and left without a halt", async () => {
  const context = stage.watched.context;
  const page = await context.newPage();
  // A real image of that size takes minutes to make; the page cannot tell it from this one.
  await page.addInitScript(() => {
    const Real = WebSocket;
    globalThis.WebSocket = class extends Real {
      override set onmessage(listener: ((event: MessageEvent) => void) | null) {
        super.onmessage = listener === null ? null : (event: MessageEvent) => {
          const message = JSON.parse(String(event.data)) as { rows?: Record<string, unknown>[] };
          const first = message.rows?.find((row) => row.name === "Lamp");
          if (message.rows === undefined || first === undefined) return listener(event);
          for (let at = 0; at < 20_000; at += 1) message.rows.push({ ...first, name: `Many${at}` });
          listener(new MessageEvent("message", { data: JSON.stringify(message) }));
        };
      }
    };
  });
  await page.goto(`${stage.page.url().split("#")[0] ?? ""}#/class/Lamp`);
  const classes = page.getByRole("region", { name: "Classes" });
  await classes.getByText("Many0", { exact: true }).or(classes.getByText("Many1", { exact: true })).first().waitFor();
  const filter = classes.getByRole("searchbox").first();
  await filter.fill("Many19999");
  await classes.getByText("Many19999", { exact: true }).first().waitFor();
  assert.ok(await page.evaluate(() => document.querySelectorAll("#pane-classes .row").length) < 400);
  await page.close();
});

stage.test("the node ends in the middle of a page: what was shown stays, what is asked says why", async () => {
  await inspect("(1 to: 5000) asList", "long");
  await inspector().getByText("of 5,000").first().waitFor();
  await stage.house.beamtalk("repl", "-e", "Erlang erlang halt: 0").catch(() => undefined);
  await stage.page.getByText(/^The image is restarting; actors and variables are gone\./).waitFor();
  await stage.page.getByRole("banner").getByText("running").waitFor({ timeout: 20_000 });
  await inspector().getByText(/has no variable 'long'/).first().waitFor();
  assert.equal(await stage.value("1 + 2"), "3");
});
