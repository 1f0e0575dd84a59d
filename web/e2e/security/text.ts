// Text of the image, of files and of links is text: nothing of it runs, turns direction or hides.

import assert from "node:assert/strict";
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import type { Locator } from "playwright-core";
import { ready, type } from "../support/browser";
import { byHand } from "../support/byhand";
import { SIGMA, quoted, symbol } from "../support/sigma";
import { Stage } from "../support/stage";

const BAD = "<img src=x onerror=pwned=1>";
/** Those a file can hold. */
const WRITTEN = Object.values(SIGMA).filter((text) => !/[\u0000\ud83d\u001b]/.test(text));
const shown = (text: string): string => text.replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g, (one) => `⟨U+${one.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0") ?? ""}⟩`);
const stage = Stage.of({
  "src/Bad.bt": `/// ${BAD} class comment </textarea><iframe srcdoc=x>
Actor subclass: Bad
  state: text = ${quoted(BAD)}

  /// ${BAD} doc comment
  say => ${quoted("<script>pwned=1</script>")}

  fail => Error signal: ${quoted(`${BAD} message`)}

${WRITTEN.map((text, at) => `  /// ${text}\n  says${at} => ${quoted(text)}\n`).join("\n")}
`,
  "test/BadTest.bt": `TestCase subclass: BadTest

  testBad => self assert: ${quoted(`${BAD} actual`)} equals: ${quoted(`${BAD} wanted`)}
${WRITTEN.map((text, at) => `\n  test${at} => self assert: ${quoted(`${text} actual`)} equals: ${quoted(text)}\n`).join("")}`,
});
const pane = (name: string): Locator => stage.pane(name);

async function unharmed(): Promise<void> {
  assert.equal(await stage.page.evaluate(() => "pwned" in globalThis), false);
  assert.equal(await stage.page.evaluate(() => document.querySelectorAll("#app img:not(.cm-widgetBuffer), #app iframe, #app script, #app svg").length), 0);
  assert.deepEqual(stage.watched.faults, []);
}

stage.test("S1 values, keys, symbols and names are shown as they are written", async () => {
  for (const [name, text] of Object.entries(SIGMA)) {
    if (name === "nul") continue;
    const shown = await stage.value(quoted(text));
    assert.ok(shown.length >= text.length, `${name}: ${shown}`);
    if (name === "turned") assert.match(shown, /U\+202E/);
    if (name === "terminal") assert.doesNotMatch(shown, /\u001b/);
    await unharmed();
  }
  await stage.evaluate(`d := #{${quoted(BAD)} => #(${quoted(SIGMA.script ?? "")}), ${symbol(BAD)} => 1}`, "ControlOrMeta+i");
  await pane("Inspector").getByRole("option").filter({ hasText: BAD }).first().click();
  await pane("Inspector").getByText("<script>pwned=1</script>").first().waitFor();
  await unharmed();
  assert.match(await stage.value(`(Bad spawn) registerAs: ${symbol(BAD)}`), /./);
  await unharmed();
});

stage.test("S1 the Transcript shows orders to terminals as characters", async () => {
  for (const text of Object.values(SIGMA)) await stage.evaluate(`Transcript show: ${quoted(text)}; cr`, "ControlOrMeta+d");
  const told = pane("Transcript").getByRole("log");
  await told.getByText(BAD).waitFor();
  await told.getByText(/U\+001B/).first().waitFor();
  await told.getByText(/U\+202E/).first().waitFor();
  await unharmed();
});

stage.test("S1 errors, warnings and their hints", async () => {
  const failed = await stage.evaluate("Bad spawn fail");
  await failed.getByText(`${BAD} message`).first().waitFor();
  const strange = await stage.evaluate(`3 perform: ${symbol(BAD)}`);
  await strange.getByText(/img src=x/).first().waitFor();
  await unharmed();
});

stage.test("S1 every text, as key, element, symbol, name of an actor and message of an error", async () => {
  const texts = Object.values(SIGMA).filter((text) => !/[\u0000\ud83d]/.test(text));
  for (const [at, text] of texts.entries()) {
    await stage.evaluate(`all${at} := #{${quoted(text)} => #(${quoted(text)}), #key => ${symbol(text)}}. (Bad spawn) registerAs: ${symbol(`${at} ${text}`)}`, "ControlOrMeta+d");
    await stage.goTo(`#/inspect/all${at}`);
    await pane("Inspector").getByRole("navigation", { name: "Path" }).getByText(`all${at}`, { exact: true }).waitFor();
    await pane("Inspector").getByRole("option").first().waitFor();
    await pane("Inspector").getByRole("option").filter({ hasText: shown(text).slice(0, 8) }).first().waitFor();
    const failed = await stage.evaluate(`Error signal: ${quoted(text)}`);
    await failed.getByText(shown(text).replaceAll("\n", "")).first().waitFor();
    await stage.choose("Actors");
    await pane("Actors").getByLabel("Filter actors").fill("Bad");
    await pane("Actors").getByRole("grid").getByRole("row").first().waitFor();
    await unharmed();
  }
  await pane("Actors").getByLabel("Filter actors").fill("");
});

stage.test("S1 comments, sources, actors, bindings, tests and the log", async () => {
  await stage.goTo("#/class/Bad/say");
  await pane("Classes").locator(".cm-content").getByText(`${BAD} doc comment`).waitFor();
  await pane("Classes").getByRole("tab", { name: "Comment" }).click();
  await pane("Classes").getByText(/class comment <\/textarea><iframe/).waitFor();
  await unharmed();
  await stage.choose("Actors");
  await pane("Actors").getByRole("grid").getByRole("row", { name: /Bad/ }).first().click();
  await pane("Actors").getByRole("button", { name: "Inspect" }).click();
  await pane("Inspector").getByRole("option").filter({ hasText: BAD }).first().waitFor();
  await stage.choose("Bindings");
  await pane("Bindings").getByText("d", { exact: true }).waitFor();
  await stage.choose("Log");
  await stage.evaluate(`Logger error: ${quoted(BAD)}`, "ControlOrMeta+d");
  await pane("Log").getByText(BAD).first().waitFor();
  await stage.choose("Tests");
  await pane("Tests").getByRole("button", { name: "Run all" }).click();
  await pane("Tests").getByRole("option", { name: /testBad/ }).click();
  await pane("Tests").locator(".failure").getByText(/actual/).first().waitFor();
  await stage.choose("Supervision");
  await pane("Supervision").getByText("Bad").first().waitFor();
  await stage.choose("Changes");
  await stage.choose("Audit");
  await pane("Audit").getByRole("grid").getByRole("row").first().waitFor();
  await unharmed();
});

stage.test("S1 every text in comments, sources, the log and failures of tests; a NUL and half a character too", async () => {
  for (const at of WRITTEN.keys()) {
    await stage.goTo(`#/class/Bad/says${at}`);
    await pane("Classes").locator(".cm-content").getByText(`says${at} =>`).waitFor();
    await unharmed();
  }
  await stage.choose("Log");
  for (const text of Object.values(SIGMA)) {
    // By hand: an editor takes no NUL and no half of a character.
    await byHand(stage.page, [{ op: "eval", code: `Logger error: ${quoted(text)}. Transcript show: ${quoted(text)}; cr` }]);
  }
  await pane("Log").getByRole("grid").getByText(/U\+001B/).first().waitFor();
  await pane("Log").getByRole("grid").getByText("a⟨U+0000⟩b").first().waitFor();
  await unharmed();
  await stage.choose("Tests");
  for (const at of WRITTEN.keys()) {
    await pane("Tests").getByRole("option", { name: new RegExp(`^✗ ?test${at}\\b`) }).click();
    await pane("Tests").locator(".failure").getByText(shown(WRITTEN[at] ?? "").slice(0, 12)).first().waitFor();
    await unharmed();
  }
});

stage.test("S4 filters and searches take any text for text", async () => {
  for (const name of ["Classes", "Actors", "Supervision", "Transcript", "Tests", "Bindings", "Log", "Audit"]) {
    await stage.choose(name);
    const field = pane(name).getByRole("searchbox").first();
    for (const text of WRITTEN) await field.fill(text);
    await unharmed();
    await field.fill("");
  }
});

stage.test("S4 links, palette and filters take any text for text", async () => {
  // An address holds no lone half of a character.
  const texts = Object.values(SIGMA).filter((text) => !text.includes("\ud83d"));
  for (const text of [...texts, "%", "%E0%A4%A", "../../etc/passwd", "__proto__", "constructor"]) {
    for (const kind of ["class", "senders", "implementors", "references", "inspect", "actor", "test", "transcript", "changes", "audit", "workspace", "nothing"]) {
      await stage.goTo(`#/${kind}/${encodeURIComponent(text)}/${text.replaceAll("/", "")}`);
    }
  }
  await stage.goTo(`#/class/${encodeURIComponent(BAD)}`);
  await pane("Classes").getByText(`Nothing called '${BAD}'.`).waitFor();
  await unharmed();
  for (const prefix of ["", "@", "#", ">", ":", "/"]) {
    await stage.page.keyboard.press("ControlOrMeta+k");
    await stage.page.keyboard.insertText(`${prefix}${BAD}`);
    await stage.page.getByRole("listbox", { name: "Results" }).getByText(BAD).first().waitFor();
    await stage.page.keyboard.press("Escape");
  }
  await stage.page.keyboard.press("ControlOrMeta+k");
  await stage.page.keyboard.insertText(`=${quoted(BAD)}`);
  await stage.page.keyboard.press("Enter");
  await stage.page.getByRole("listbox", { name: "Results" }).getByText(BAD).waitFor();
  await stage.page.keyboard.press("Escape");
  await unharmed();
});

stage.test("S4 a layout or settings that are none become the preset", async () => {
  await stage.choose("Layout: Start");
  await stage.choose("Reset layout");
  await pane("Transcript").waitFor();
  for (const text of [BAD, "{", "null", "[]", '{"columns":[{"groups":[{"tabs":["<img src=x>","__proto__"]}]}]}', '{"columns":[]}', '{"columns":"x"}', "1e400"]) {
    await stage.page.evaluate((layout) => new Promise<void>((resolve) => {
      const socket = new WebSocket(`${location.origin.replace("http", "ws")}/ws`, ["beamtalk.v1"]);
      socket.onopen = () => socket.send(JSON.stringify({ type: "hello", client: "browser", protocol: "1.1" }));
      let version = 0;
      socket.onmessage = ({ data }) => {
        const message = JSON.parse(String(data)) as { op?: string; id?: string; error?: { details?: { version?: number } } };
        const write = (): void => socket.send(JSON.stringify({ op: "desk-write", id: "w", name: "layout/start", text: layout, version }));
        if (message.op === "session-started") write();
        if (message.id !== "w") return;
        if (message.error === undefined) { socket.close(); resolve(); return; }
        version = message.error.details?.version ?? 0;
        write();
      };
    }), text);
    await stage.page.goto("about:blank");
    await stage.page.goBack();
    await ready(stage.page);
    await pane("Transcript").waitFor();
  }
  // What else is kept on the desk: settings, places, texts.
  const version = async (name: string): Promise<number> => {
    const [found] = await byHand(stage.page, [{ op: "desk-read", names: [name] }]);
    return (found?.items as Record<string, { version: number }> | undefined)?.[name]?.version ?? 0;
  };
  for (const [name, text] of [["settings", `{"theme":"${BAD.replaceAll('"', "")}","letters":"x"}`], ["settings", "null"], ["recent", JSON.stringify([BAD, `#/class/${BAD}`, 7])], ["scratch/evil", WRITTEN.join("\n")], ["layout/start", JSON.stringify({ columns: [], states: { log: { search: BAD } } })]] as const) {
    const [answer] = await byHand(stage.page, [{ op: "desk-write", name, text, version: await version(name) }]);
    assert.equal(answer?.error, undefined, name);
    await stage.page.goto("about:blank");
    await stage.page.goBack();
    await ready(stage.page);
  }
  await stage.goTo("#/workspace/evil");
  await stage.page.locator("#pane-workspace .cm-content").getByText(BAD).first().waitFor();
  await unharmed();
  await stage.goTo("#/workspace/main");
});

stage.test("S26 ten megabytes are refused with a sentence, one without a blank are shown", async () => {
  await type(stage.page, "1 + 2");
  await stage.page.evaluate(() => {
    const data = new DataTransfer();
    data.setData("text/plain", "x".repeat(10 * 1024 * 1024));
    document.querySelector("#pane-workspace .cm-content")?.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
  });
  await stage.page.getByRole("contentinfo").getByText(/over 1 MiB/).waitFor();
  assert.deepEqual(await stage.page.locator("#pane-workspace .cm-line").allInnerTexts(), ["1 + 2"]);
  const long = await stage.evaluate('"x" repeat: 1000000');
  await long.getByText(/cut|more/).first().waitFor();
  await stage.evaluate('Transcript show: ("y" repeat: 1000000); cr', "ControlOrMeta+d");
  await stage.choose("Transcript");
  await pane("Transcript").getByText(/KB more/).waitFor();
  assert.equal(await stage.value("6 * 7"), "42");
  await unharmed();
});

stage.test("S26 a message over 1 MiB ends nothing but itself", async () => {
  const closed = await stage.page.evaluate(() => new Promise<number>((resolve) => {
    const socket = new WebSocket(`${location.origin.replace("http", "ws")}/ws`, ["beamtalk.v1"]);
    socket.onopen = () => { socket.send(JSON.stringify({ type: "hello", client: "browser", protocol: "1.1" })); socket.send(JSON.stringify({ op: "eval", id: "x", code: "y".repeat(2 * 1024 * 1024) })); };
    socket.onclose = ({ code }) => resolve(code);
    socket.onmessage = ({ data }) => { if (String(data).includes("message_too_large")) resolve(1009); };
  }));
  assert.equal(closed, 1009);
  assert.equal(await stage.value("7 * 7"), "49");
});

stage.test("S27 paths outside the project are refused, to whatever reads or writes files", async () => {
  const paths = ["../../etc/passwd.bt", "/etc/beamtalk-out.bt", "src/../../x.bt"];
  const answers = await byHand(stage.page, paths.map((path) => ({ op: "save-class", source: "Value subclass: Out\n\n  x => 1\n", path })));
  assert.deepEqual(answers.map((answer) => answer.error?.kind), paths.map(() => "target_outside_project"));
  symlinkSync("/etc", join(stage.house.project, "docs"));
  const others = [...paths, "../../etc/passwd", "/etc/passwd", "docs/passwd.md", "docs/hosts.bt", "beamtalk:secret", "beamtalk:tour/../x.md"];
  for (const op of ["doc-read", "doc-write"]) {
    const refused = await byHand(stage.page, others.map((path) => ({ op, path, text: "x" })));
    assert.deepEqual(refused.map((answer) => answer.error?.kind), others.map(() => "target_outside_project"), op);
  }
  await stage.goTo(`#/file/${["..", "..", "etc", "passwd"].join("/")}`);
  await pane("Classes").getByText(/is not in the project/).waitFor();
  await unharmed();
});

stage.test("S18 nothing of all this broke the policy", () => assert.deepEqual(stage.watched.faults, []));
