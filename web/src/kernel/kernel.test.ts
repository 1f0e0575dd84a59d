import assert from "node:assert/strict";
import test from "node:test";
import { KINDS, PRESETS, another, close, drift, float, groups, kindOf, move, narrowed, parse, resize, show, sink, visiblePanes } from "./layout";
import { format, parse as parseRoute, readRecent, visited } from "./routes";
import { readStates } from "./states";
import { age, byteOffset, bytes, match, placeOfByte, placesOfBytes, visible } from "./text";

const start = PRESETS.Start ?? { columns: [] };

test("a pane that is shown is active, in its group or beside its kin", () => {
  assert.ok(visiblePanes(show(start, "classes")).includes("classes"));
  const next = show(start, "log");
  assert.deepEqual(groups(next).find((group) => group.tabs.includes("log"))?.tabs, ["transcript", "tests", "log"]);
});

test("closing everything leaves the Workspace", () => {
  let layout = start;
  for (const group of groups(start)) for (const pane of group.tabs) layout = close(layout, pane);
  assert.deepEqual(visiblePanes(layout), ["workspace"]);
});

test("moving keeps every pane once and the shares whole", () => {
  for (const edge of ["middle", "left", "right", "above", "below"] as const) {
    const next = move(start, "tests", "workspace", edge);
    const all = groups(next).flatMap((group) => group.tabs).sort();
    assert.deepEqual(all, groups(start).flatMap((group) => group.tabs).sort(), edge);
    assert.ok(Math.abs(next.columns.reduce((sum, column) => sum + column.size, 0) - 100) < 0.01);
  }
  assert.equal(move(start, "workspace", "workspace", "right"), start, "alone in its group it stays");
});

test("borders stop before a pane is gone", () => {
  const next = resize(start, 0, null, 90, 15);
  assert.equal(Math.round(next.columns[1]?.size ?? 0), 15);
});

test("a pane that floats is in one place, on the screen, and comes back", () => {
  const start = PRESETS.Start!;
  let layout = float(start, "inspector");
  assert.ok(!groups(layout).some((one) => one.tabs.includes("inspector")));
  assert.ok(visiblePanes(layout).includes("inspector"));
  assert.equal(show(layout, "inspector").floats?.length, 1);
  layout = float(layout, "transcript");
  layout = drift(layout, "inspector", { x: 500, y: -3, width: 1 });
  assert.deepEqual(layout.floats?.at(-1), { pane: "inspector", x: 85, y: 0, width: 15, height: 55 });
  assert.deepEqual(parse(JSON.stringify(layout)), layout);
  assert.equal(parse(JSON.stringify({ ...layout, floats: [{ pane: "inspector" }, { pane: "nothing" }, { pane: "workspace" }, null] }))?.floats?.length, 1);
  layout = sink(layout, "inspector");
  assert.equal(groups(layout).filter((one) => one.tabs.includes("inspector")).length, 1);
  assert.deepEqual(layout.floats?.map((one) => one.pane), ["transcript"]);
  assert.equal(close(layout, "transcript").floats?.length, 0);
  assert.deepEqual(float({ columns: [{ size: 100, groups: [{ tabs: ["workspace"], active: "workspace", size: 100 }] }] }, "workspace").floats, undefined);
});

test("places that were opened come newest first, each once, and from outside only if they are places", () => {
  assert.deepEqual(visited(visited(visited([], "#/class/A"), "#/class/B"), "#/class/A"), ["#/class/A", "#/class/B"]);
  assert.equal(Array.from({ length: 80 }, (_, at) => `#/class/C${at}`).reduce<string[]>(visited, []).length, 50);
  assert.deepEqual(readRecent(JSON.stringify(["#/class/A", "javascript:1", 7, null, "#/nothing"])), ["#/class/A"]);
  for (const text of [null, "", "{", "{}", "3"]) assert.deepEqual(readRecent(text), []);
});

test("a layout from outside is checked", () => {
  for (const bad of ["", "null", "[]", "{}", '{"columns":[]}', '{"columns":[{"groups":[{"tabs":["<img>"]}]}]}', '{"columns":3}']) assert.equal(parse(bad), null, bad);
  const read = parse('{"columns":[{"size":1e9,"groups":[{"tabs":["workspace","workspace","future"],"active":"future","size":-1}]}]}');
  assert.deepEqual(read, { columns: [{ size: 100, groups: [{ tabs: ["workspace"], active: "workspace", size: 100 }] }] });
  assert.deepEqual(parse(JSON.stringify(start)), start);
});

test("addresses lead to panes and nowhere else", () => {
  assert.deepEqual(parseRoute("#/class/Lamp/at%3Aput%3A"), { pane: "classes", parts: ["class", "Lamp", "at:put:"] });
  assert.equal(format(["class", "Lamp", "/"]), "#/class/Lamp/%2F");
  for (const none of ["", "#", "#login=x", "#/nowhere", "#/__proto__", "#/constructor"]) assert.equal(parseRoute(none), null, none);
  assert.deepEqual(parseRoute("#/class/%E0%A4%A"), { pane: "classes", parts: ["class", "%E0%A4%A"] });
});

test("what hides is shown", () => {
  assert.equal(visible("a\u202eb\u0000c\u200bd\td\n"), "a⟨U+202E⟩b⟨U+0000⟩c⟨U+200B⟩d\td\n");
  assert.equal(visible("\ud800 \u{1f600}"), "⟨U+D800⟩ \u{1f600}");
});

test("bytes and places agree in both directions", () => {
  const text = "aä€😀b";
  for (let place = 0; place <= text.length; place += 1) {
    if (place === 4) continue;
    assert.equal(placeOfByte(text, byteOffset(text, place)), place);
  }
});

test("numbers for people", () => {
  assert.deepEqual([bytes(999), bytes(1234), bytes(5_600_000)], ["999 B", "1.2 KB", "5.6 MB"]);
  assert.deepEqual([age(-3), age(59), age(3700), age(200_000)], ["0 s", "59 s", "1 h", "2 d"]);
});

test("the better match comes first", () => {
  const score = (text: string): number => match("lt", text) ?? -1;
  assert.ok(score("LampTest") > score("Flatten"));
  assert.equal(match("xyz", "Lamp"), null);
});

test("where there is little room there are at most two columns, and all panes", () => {
  for (const preset of Object.values(PRESETS)) {
    const next = narrowed(preset, []);
    assert.ok(next.columns.length <= 2 && next.columns.every((column) => column.groups.length === 1));
    assert.deepEqual(groups(next).flatMap((one) => one.tabs).sort(), groups(preset).flatMap((one) => one.tabs).sort());
  }
  assert.equal(groups(narrowed(start, ["tests"]))[1]?.active, "tests", "what was last asked for is seen");
});

test("what panes remember is texts, and of known panes", () => {
  assert.deepEqual(readStates({ log: { search: "x", bad: 3, long: "y".repeat(300) }, nothing: { a: "b" }, tests: null }, ["log", "tests"]), { log: { search: "x" }, tests: {} });
  for (const bad of [null, 3, "x", undefined]) assert.deepEqual(readStates(bad, ["log"]), {});
});

test("many places in a text are found as one is", () => {
  const text = "a ä 漢 𝄞 z\n".repeat(3);
  const offsets = [5, 0, 40, 12, 999, 7, 7];
  assert.deepEqual(placesOfBytes(text, offsets), offsets.map((offset) => placeOfByte(text, offset)));
});

test("of class browsers and Inspectors there may be four, of everything else one", () => {
  let layout = show(start, "classes");
  const made: string[] = [];
  for (let at = 0; at < 5; at += 1) {
    const next = another(layout, "classes");
    made.push(next);
    layout = show(layout, next);
  }
  assert.deepEqual(made, ["classes2", "classes3", "classes4", "classes4", "classes4"]);
  assert.equal(another(layout, "tests"), "tests");
  const home = groups(layout).find((group) => group.tabs.includes("classes4"));
  assert.ok(home?.tabs.includes("classes"), "beside its kin");
  assert.equal(another(close(layout, "classes3"), "classes"), "classes3", "one that was closed is free again");
  assert.deepEqual(parse(JSON.stringify(layout)), layout, "and is kept");
  assert.deepEqual(KINDS.map(kindOf), KINDS);
  assert.equal(kindOf("inspector3"), "inspector");
});
