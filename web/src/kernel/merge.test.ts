import assert from "node:assert/strict";
import { test } from "node:test";
import { changes, compared, merge, stretch } from "./merge";

test("changes apart are both taken, changes of one place by nobody", () => {
  assert.equal(merge("a\nb\nc\nd\ne", "A\nb\nc\nd\ne", "a\nb\nc\nd\nE"), "A\nb\nc\nd\nE");
  assert.equal(merge("a\nb\nc", "a\nmine\nc", "a\ntheirs\nc"), null);
  assert.equal(merge("a\nb\nc", "a\nsame\nc", "a\nsame\nc"), "a\nsame\nc");
  assert.equal(merge("", "mine", "theirs"), null);
  assert.equal(merge("a\nb\nc", "a\nc", "a\nb\nc\nd"), "a\nc\nd");
  assert.equal(merge("base", "base", "theirs"), "theirs");
  assert.equal(merge("base", "mine", "base"), "mine");
});

test("whatever two texts are, the changes lead from one to the other", () => {
  let seed = 7;
  const next = (most: number): number => { seed = (seed * 1103515245 + 12345) % 2147483648; return seed % most; };
  const text = (): string[] => Array.from({ length: next(12) }, () => "abc"[next(3)] ?? "");
  for (let run = 0; run < 500; run += 1) {
    const [one, two, three] = [text(), text(), text()];
    const made: string[] = [];
    let at = 0;
    for (const piece of changes(one, two)) { made.push(...one.slice(at, piece.from), ...piece.lines); at = piece.to; }
    assert.deepEqual([...made, ...one.slice(at)], two);
    assert.deepEqual(compared(one.join("\n"), two.join("\n")).filter((row) => row.kind !== "minus").map((row) => row.text).join("\n"), two.join("\n"));
    const [left, right] = [merge(one.join("\n"), two.join("\n"), three.join("\n")), merge(one.join("\n"), three.join("\n"), two.join("\n"))];
    assert.equal(left === null, right === null, "who merges does not matter");
    const found = stretch(one.join(), two.join());
    assert.equal(found === null ? one.join() : one.join().slice(0, found.from) + found.insert + one.join().slice(found.to), two.join());
  }
});
