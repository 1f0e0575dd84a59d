import assert from "node:assert/strict";
import test from "node:test";
import { blocks, inline, targetOf, type Inline } from "./markdown";

const plain = (pieces: Inline[]): string => pieces.map((one) => (one.is === "break" ? "\n" : "text" in one ? one.text : plain(one.of))).join("");

test("markdown: headings, paragraphs, code, quotes, rules and tables", () => {
  const read = blocks("# One #\n\ntext\nmore\n\n```beamtalk\n# no heading\n```\n> said\n> again\n\n---\n| a | b |\n|---|:-:|\n| 1 | 2 \\| 3 |\n");
  assert.deepEqual(read.map((one) => one.is), ["heading", "paragraph", "code", "quote", "rule", "table"]);
  assert.ok(read[1]?.is === "paragraph" && plain(read[1].of) === "text more");
  assert.ok(read[2]?.is === "code" && read[2].text === "# no heading");
  assert.ok(read[5]?.is === "table" && read[5].rows[0]?.map(plain).join() === "1,2 | 3");
});

test("markdown: lists with numbers, what is below an item, and items that stand apart", () => {
  const [list] = blocks("3. one\n   still one\n\n   - inner\n\n4. two\n\nafter");
  assert.ok(list?.is === "list" && list.isOrdered && list.start === 3 && list.items.length === 2);
  assert.deepEqual(list.items[0]?.map((one) => one.is), ["paragraph", "list"]);
  assert.equal(blocks("- a\n- b\n1. c").length, 2);
});

test("markdown: pieces of a line", () => {
  assert.deepEqual(inline("a **b *c*** `d ** e` f_g_h \\*i\\*"), [
    { is: "text", text: "a " }, { is: "strong", of: [{ is: "text", text: "b " }, { is: "emphasis", of: [{ is: "text", text: "c" }] }] },
    { is: "text", text: " " }, { is: "code", text: "d ** e" }, { is: "text", text: " f_g_h *i*" },
  ]);
  assert.deepEqual(inline("[x](docs/a.md \"t\") ![p](q.png)"), [{ is: "link", of: [{ is: "text", text: "x" }], to: "docs/a.md" }, { is: "text", text: " " }, { is: "link", of: [{ is: "text", text: "p" }], to: "q.png" }]);
  assert.deepEqual(inline("2 * 3 * 4"), [{ is: "text", text: "2 * 3 * 4" }]);
});

test("markdown: tags are code, and what is never closed is text", () => {
  assert.deepEqual(inline("<img src=x onerror=y>"), [{ is: "code", text: "<img src=x onerror=y>" }]);
  for (const text of ["**open", "`open", "[open", "[a](b c d", "a < b", "_"]) assert.equal(plain(inline(text)), text);
});

test("markdown: links lead to the web, to places of this page and to documents, and nowhere else", () => {
  assert.deepEqual(targetOf("https://example.org/a"), { is: "outside", to: "https://example.org/a", host: "example.org" });
  assert.deepEqual(targetOf("mailto:a@b.c"), { is: "outside", to: "mailto:a@b.c", host: "a@b.c" });
  assert.deepEqual(targetOf("#/class/Lamp"), { is: "place", to: "#/class/Lamp" });
  assert.deepEqual(targetOf("./docs/a.md#part"), { is: "file", path: "docs/a.md" });
  for (const to of ["javascript:alert(1)", "JaVaScRiPt:x", "java\tscript:x", " javascript:x", "data:text/html,x", "vbscript:x", "file:///etc/passwd", "//host/a.md", "/etc/a.md", "../a.md", "a/../../b.md", "#/agent/x", "#top", "https://", "a.png", "&#106;avascript:x"]) assert.equal(targetOf(to), null, to);
});

test("markdown: no text takes for ever or goes too deep", () => {
  for (const piece of ["[", "*", "**a", "`", "<", "> ", "- ", "![", "_a", "[a](", "|\n|-\n", "\\", "``` "]) blocks(piece.repeat(20_000));
});
