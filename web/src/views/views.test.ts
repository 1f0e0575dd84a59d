import assert from "node:assert/strict";
import { test } from "node:test";
import type { ViewNode } from "../wire/protocol";
import { ends, flat, share, tick } from "./model";

const node = (name: string): ViewNode => ({ node: name, parent: null, text: name, class: null, has_children: true, open: null });

test("what is below an open node follows it, one level deeper", () => {
  const below = new Map([["a", [node("b")]], ["b", [node("c")]], ["x", [node("y")]]]);
  assert.deepEqual(flat([node("a"), node("d")], below).map((one) => [one.node.node, one.level]), [["a", 0], ["b", 1], ["c", 2], ["d", 0]]);
});

test("axes show every number in a few characters", () => {
  for (const value of [0, 7, -3.14159, 1e20, 1e-9, 12_345_678, 0.1 + 0.2]) assert.ok(tick(value).length <= 12, tick(value));
  assert.equal(share(5, 0, 10), 0.5);
  assert.equal(share(3, 3, 3), 0.5);
  assert.deepEqual(ends([3, -1, 2]), [-1, 3]);
  assert.deepEqual(ends([]), [0, 1]);
});
