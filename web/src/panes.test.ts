import assert from "node:assert/strict";
import test from "node:test";
import type { ChangesAnswer, ClassRow, EntryView, Place, SupervisedProcess, TestOutcome } from "./wire/protocol";
import { joined, rowOf, seriesOf, withEnded, withoutOld, workOf } from "./panes/actors/model";
import { document } from "./panes/workspace/notebook";
import { diffLines, hasMarks, isContested, merged, pairs, plainChoice, sections } from "./panes/changes/model";
import { filtered, nearest, selectorOf, tree } from "./panes/classes/model";
import { recent, rows } from "./panes/supervision/model";
import { gapsOf } from "./panes/audit/model";
import { frames, together, type Entry } from "./panes/log/model";
import { failedFirst, requestOf, subjectOf, testRows, testsOf } from "./panes/tests/model";
import { MOST, add, found, gap, lineAt, none, prepend, tone } from "./panes/transcript/model";
import { begun, findPlace, heard, mark, readAbout, type About, tail } from "./panes/workspace/model";

const about: About = { buffer: "main", from: 3, to: 8, hash: mark("1 + 2"), how: "print", at: 1000 };

test("a piece of code as a document is fenced by more than it has itself", () => {
  assert.equal(document("main", "1 + 1"), "# main\n<!-- btnotebook -->\n\n```beamtalk\n1 + 1\n```\n");
  assert.match(document("x", "// a\n  ````\n"), /\n`````beamtalk\n\/\/ a\n {2}````\n`````\n$/);
});

test("workspace: frames of any page load make one result", () => {
  let result = begun("a-1", about);
  result = heard(result, { id: "a-1", out: "one\n" }, 0);
  result = heard(result, { id: "a-1", status: ["need-input"], prompt: "name? " }, 0);
  assert.equal(result.prompt, "name? ");
  result = heard(result, { id: "a-1", out: "two\n" }, 0);
  result = heard(result, { id: "a-1", status: ["done"], text: "3", class: "Integer", ref: "v-1" }, 1040);
  assert.deepEqual([result.output, result.state, result.text, result.className, result.ref, result.ms, result.prompt], ["one\ntwo\n", "done", "3", "Integer", "v-1", 40, null]);
  const failed = heard(begun("b", about), { id: "b", status: ["done", "error"], error: { kind: "x", message: "no" } }, 0);
  assert.equal(failed.state, "failed");
  const lost = heard(begun("c", about), { id: "c", status: ["done"], lost_bytes: 5 }, 0);
  assert.equal(lost.state, "lost");
});

test("workspace: the last lines of an output, and how many there are", () => {
  const shown = (output: string, most: number) => tail({ output, ends: output.split("\n").length - 1 }, most);
  assert.deepEqual(shown("a\nb\nc\n", 2), { text: "b\nc", total: 3 });
  assert.deepEqual(shown("a\nb\nc", 2), { text: "b\nc", total: 3 });
  assert.deepEqual(shown("\n\n", 5), { text: "\n", total: 2 });
  assert.deepEqual(shown("a", 5), { text: "a", total: 1 });
  assert.deepEqual(shown("\na\n", Number.POSITIVE_INFINITY), { text: "\na", total: 2 });
  assert.deepEqual(shown("", 5), { text: "", total: 0 });
});

test("workspace: output is bounded and says so", () => {
  const result = heard(begun("a", about), { id: "a", out: "x".repeat(300_000) }, 0);
  assert.equal(result.output.length + result.cut, 300_000);
  assert.ok(result.output.length <= 256 * 1024);
});

test("workspace: a result finds its input again", () => {
  assert.equal(findPlace(about, "// 1 + 2"), 8);
  assert.equal(findPlace({ ...about, from: 0, to: 5 }, "new line\n1 + 2\n"), 14);
  assert.equal(findPlace(about, "something else"), null);
});

test("workspace: what came back is not trusted", () => {
  for (const bad of [undefined, 3, "", "null", "[]", "{", '{"buffer":3}']) assert.equal(readAbout(bad), null);
});

test("transcript: pieces become lines", () => {
  let lines = add(none, [{ text: "a", at: 1, seq: 1, by: null }, { text: "b\nc\n", at: 2, seq: 1, by: null }, { text: "\nd", at: 3, seq: 1, by: null }]);
  assert.deepEqual(lines.lines.map((line) => line.text), ["ab", "c", "", "d"]);
  lines = add(lines, [{ text: "e\n", at: 4, seq: 1, by: null }]);
  assert.deepEqual(lines.lines.map((line) => line.text), ["ab", "c", "", "de"]);
  assert.equal(gap(lines, 1204, 5).lines.at(-1)?.text, "1,204 entries are gone");
  assert.equal(found(lines.lines, "DE").length, 1);
});

test("transcript: many lines are bounded, none is counted twice", () => {
  let lines = none;
  for (let round = 0; round < 30; round += 1) lines = add(lines, Array.from({ length: 1000 }, (_, at) => ({ text: `${round * 1000 + at}\n`, at: 0, seq: 1, by: null })));
  assert.equal(lines.lines.length, MOST);
  assert.equal(lines.dropped + lines.lines.length, 30_000);
  assert.equal(lines.lines.at(-1)?.text, "29999");
});

const classRow = (name: string, superclass: string | null, category: string | null): ClassRow => ({ name, superclass, category, comment: null, sealed: false, abstract: false, internal: false, source_file: null, origin: "both", is_test: false, is_protocol: false });

test("classes: own ones, a tree, a near name", () => {
  const all = [classRow("Lamp", "Actor", "lamp"), classRow("Actor", "Object", "stdlib"), classRow("Bulb", "Lamp", null)];
  assert.deepEqual(filtered(all, "", "lamp").map((row) => row.name), ["Bulb", "Lamp"]);
  assert.deepEqual(filtered(all, "act", null).map((row) => row.name), ["Actor"]);
  assert.deepEqual(tree(all).map((row) => [row.row.name, row.level]), [["Actor", 0], ["Lamp", 1], ["Bulb", 2]]);
  assert.deepEqual(tree([classRow("A", "B", null), classRow("B", "A", null)]).length, 0, "a loop ends");
  assert.equal(nearest("Lmap", all), "Lamp");
  assert.equal(nearest("Elephant", all), null);
});

test("classes: a selector from its source", () => {
  const cases: [string, string | null][] = [
    ["toggle => 1", "toggle"], ["/// doc\nat: i put: v => 1", "at:put:"], ["+ other => 1", "+"], ["class make => 1", "make"],
    ["size -> Integer => 3", "size"], ["fill: litres :: Integer -> Integer => 3", "fill:"], ["", null], ["3 + 4", null],
  ];
  for (const [source, expected] of cases) assert.equal(selectorOf(source), expected, source);
});

const entry = (seq: number, more: Partial<EntryView> = {}): EntryView => ({ seq, active: true, class: "Lamp", selector: "toggle", side: "instance", ...more }) as EntryView;

test("changes: conflicts first, then pending, then what waits", () => {
  const answer = { entries: [entry(1), entry(2), entry(3, { active: false })], waiting: [entry(4)], conflicts: [{ file: "a", reason: "external_edit", detail: null, seqs: [2] }] } as unknown as ChangesAnswer;
  assert.deepEqual(sections(answer).map((one) => [one.title, one.entries.map((two) => two.seq)]), [["Conflicts", [2]], ["Pending", [1]], ["From the last run", [4]], ["Earlier", [3]]]);
  assert.deepEqual(diffLines("--- a\n+++ b\n@@ 1 @@\n-x\n+y\n z\n").map((line) => line.kind), ["head", "head", "head", "minus", "plus", "same"]);
  assert.deepEqual(diffLines("--- a\n+++ b\n@@ 1 @@\n--- x\n+++y\n").map((line) => line.kind), ["head", "head", "head", "minus", "plus"], "a line that went may begin with the sign of a file");
  const [files, ...rest] = pairs(diffLines("--- a\n+++ b\n@@ 1 @@\n-x\n+y\n+z\n"));
  assert.deepEqual(files?.map((line) => line?.text), ["--- a", "+++ b"], "each side names its own file");
  assert.deepEqual(rest.map((pair) => pair.map((line) => line?.text ?? null)), [["@@ 1 @@", "@@ 1 @@"], ["-x", "+y"], [null, "+z"]]);
});

test("changes: three sides become one text", () => {
  const place = (base: string | null, image: string | null, disk: string | null): Place => ({ class: "C", side: "instance", selector: "m", base, image, disk });
  const contested = place("  a => 1\n", "  a => 2\n", "  a => 3\n");
  assert.ok(isContested(contested));
  assert.equal(plainChoice(place("x", "y", "x")), "image");
  assert.equal(plainChoice(place("x", "x", "y")), "disk");
  const disk = "C\n  a => 3\n  b => 1\n";
  assert.ok(hasMarks(merged(disk, [contested], [])));
  assert.equal(merged(disk, [contested], ["image"]), "C\n  a => 2\n  b => 1\n");
  assert.equal(merged(disk, [contested], ["disk"]), disk);
  // What was typed without indentation is taken as its file has it.
  const typed = place("/// c\n  a => 0", "/// c\na =>\n  2", "/// c\n  a => 1");
  assert.equal(merged("C\n  /// c\n  a => 1\n", [typed], ["image"], "C\n  /// c\n  a =>\n    2\n"), "C\n  /// c\n  a =>\n    2\n");
  assert.equal(merged(disk, [place(null, "  n => $$&\n", null)], ["image"]), `${disk}\n  n => $$&\n`);
});

const process = (pid: string, parent: string | null): SupervisedProcess => ({ pid, parent, name: null, kind: "actor", class: "C", child_count: 0 });

test("supervision: a tree that ends, with what is closed closed", () => {
  const nodes = [process("1", null), process("2", "1"), process("3", "2"), process("9", "gone")];
  assert.deepEqual(rows(nodes, new Set()).map((row) => [row.process.pid, row.level]), [["1", 0], ["2", 1], ["3", 2], ["9", 0]]);
  assert.deepEqual(rows(nodes, new Set(["1"])).map((row) => row.process.pid), ["1", "9"]);
  assert.deepEqual(rows([process("1", "2"), process("2", "1")], new Set()), []);
  const many = rows([process("0", null), ...Array.from({ length: 5000 }, (_, at) => process(`c${at}`, "0"))], new Set());
  assert.equal(many.length, 201);
  assert.equal(many.at(-1)?.hidden, 4800);
  assert.equal(recent([{ at: 0, what: "restarted", reason: null }, { at: 90_000, what: "restarted", reason: null }], 100_000), 1);
});

test("actors: work between two looks, and those that ended stay where they stood", () => {
  const actor = (pid: string, reductions: number) => ({ pid, class: "C", module: null, spawned_at: 1, name: null, queue_len: 0, memory: 1, reductions });
  const work = workOf([actor("a", 100)], 1000);
  assert.equal(rowOf(actor("a", 600), work, 1500).reductions, 1000);
  assert.equal(rowOf(actor("b", 600), work, 1500).reductions, null);
  const before = ["a", "b", "c"].map((pid) => rowOf(actor(pid, 0), new Map(), 0));
  const ended = new Map([["b", { at: 0, reason: "crashed" }], ["x", { at: 4000, reason: "normal" }]]);
  const shown = withEnded(before.filter((row) => row.pid !== "b"), before, ended);
  assert.deepEqual(shown.map((row) => [row.pid, row.ended?.reason ?? null]), [["a", null], ["b", "crashed"], ["c", null]]);
  assert.deepEqual([...withoutOld(ended, 6000).keys()], ["x"]);
});

test("vitals: later samples follow, none twice, the oldest go", () => {
  let samples = joined(null, ["at", "total"], [[1, 10], [2, 20]], 3);
  samples = joined(samples, ["at", "total"], [[2, 20], [3, 30], [4, 40]], 3);
  assert.deepEqual(seriesOf(samples, ["total", "nothing"]), { at: [2, 3, 4], values: [[20, 30, 40], [0, 0, 0]] });
});

test("tests: failures first", () => {
  const outcome = (status: string): TestOutcome => ({ class: "B", name: "testY", file: null, line: null, status, duration: 0, output: "" });
  const list = testRows({ tests: [{ class: "A", methods: ["testX"], file: null }, { class: "B", methods: ["testW", "testY"], file: null }], documents: [] }, new Map([["B>>testY", outcome("fail")]]));
  assert.deepEqual(failedFirst(list).map((row) => row.key), ["B", "B>>testY", "B>>testW", "A", "A>>testX"]);
});

const logged = (key: number, time: string, msg: string): Entry => ({ key, time, level: "info", domain: "user", where: "", msg });

test("tests: examples of documents stand below classes, are run by their line, and belong to the class they are about", () => {
  const listed = { tests: [{ class: "LampTest", methods: ["testOn"], file: null }], documents: [{ file: "src/Lamp.bt", examples: [{ name: "Lamp>>toggle (doc)", line: 9 }] }, { file: "src/Lamps.bt", examples: [{ name: "Lamps (doc)", line: 3 }] }] };
  const rows = testRows(listed, new Map());
  assert.deepEqual(rows.map((row) => row.key), ["LampTest", "LampTest>>testOn", "src/Lamp.bt", "src/Lamp.bt>>Lamp>>toggle (doc)", "src/Lamps.bt", "src/Lamps.bt>>Lamps (doc)"]);
  assert.deepEqual(rows.slice(1, 4).map(requestOf), [{ class: "LampTest", method: "testOn" }, { document: "src/Lamp.bt" }, { document: "src/Lamp.bt", line: 9 }]);
  assert.deepEqual(testsOf("Lamp", rows).map((row) => row.key), ["LampTest", "src/Lamp.bt"]);
  assert.deepEqual(testsOf("LampTest", rows).map((row) => row.key), ["LampTest"]);
  assert.deepEqual(testsOf("Lam", rows), []);
});

test("log: what comes from files and what is told is one list, each entry once", () => {
  const file = [logged(1, "09:00:01", "a"), logged(2, "09:00:02", "b"), logged(3, "09:00:02", "b")];
  const told = [logged(4, "09:00:02", "b"), logged(5, "09:00:02", "c"), logged(6, "09:00:01", "early"), logged(7, "09:00:03", "d")];
  assert.deepEqual(together(file, told).map((entry) => entry.msg), ["a", "early", "b", "b", "c", "d"], "of one moment nothing is lost");
  assert.deepEqual(together([], told).length, 4);
  assert.deepEqual(together(file, []).length, 3);
  assert.deepEqual(frames("crash\n  Hint: x\n  Lamp>>at:put:/2 (Lamp.bt:12)\n  Lamp class>>new\n  in src/a/Lamp.bt:3").map((one) => one.to), [null, ["class", "Lamp", "at:put:"], ["class", "Lamp.class", "new"], ["file", "src", "a", "Lamp.bt:3"]]);
});

test("transcript: older lines come before, links lead to a piece or a time, writers keep their colour", () => {
  const piece = (seq: number, by: string | null): { text: string; at: number; seq: number; by: string | null } => ({ text: `line ${seq}\n`, at: seq * 10_000, seq, by });
  const lines = prepend(add(none, [piece(3, "s-1"), piece(4, null)]), [piece(1, "0.1.0"), piece(2, null)]);
  assert.deepEqual(lines.lines.map((line) => line.seq), [1, 2, 3, 4]);
  assert.equal(new Set(lines.lines.map((line) => line.key)).size, 4);
  assert.equal(lineAt(lines.lines, "3"), 2);
  assert.equal(lineAt(lines.lines, "at-20000"), 1);
  assert.equal(lineAt(lines.lines, "9"), null);
  assert.equal(found(lines.lines, "", "s-1").length, 1);
  assert.equal(tone("s-1"), tone("s-1"));
  const long = add(none, [{ text: "y".repeat(20_000), at: 1, seq: 7, by: null }]).lines[0];
  assert.deepEqual([long?.text.length, long?.more, long?.seq], [16_384, 3616, 7]);
  assert.equal(prepend(add(none, Array.from({ length: MOST }, (_, at) => piece(at + 10, null))), [piece(1, null)]).lines.length, MOST, "the page holds no more");
});

test("audit: what is missing is named", () => {
  assert.deepEqual(gapsOf([1, 2, 411, 416, 418], [416]), ["seq 412–415 are missing"]);
  assert.deepEqual(gapsOf([1, 3], [3]), ["seq 2 is missing"]);
  assert.deepEqual(gapsOf([], []), []);
});

test("tests: the class they are about", () => {
  assert.deepEqual(["LampTest", "LampTests", "Test", "Lamp"].map(subjectOf), ["Lamp", "Lamp", null, null]);
});
