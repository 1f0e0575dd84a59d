import assert from "node:assert/strict";
import test from "node:test";
import type { Diagnostic } from "../wire/protocol";
import { fixOf } from "./fixes";

function found(more: Partial<Diagnostic>): Diagnostic {
  return { file: null, line: 1, code: null, severity: "error", category: null, message: "", hint: null, notes: [], ...more };
}

test("the compiler's own fix comes first, its bytes are places", () => {
  const fix = fixOf(found({ hint: "Did you mean `x`?", span_start: 0, span_end: 1, fix: [{ start: 4, end: 5, text: "" }, { start: 7, end: 8, text: "!" }] }), "ä (b) c");
  assert.deepEqual(fix, { title: "Fix", changes: [{ from: 3, to: 4, insert: "" }, { from: 6, to: 7, insert: "!" }] });
});

test("a proposed name takes the place of the one word it is about", () => {
  assert.deepEqual(fixOf(found({ hint: "Did you mean `lamp`?", span_start: 2, span_end: 6 }), "a lmap"), { title: "Did you mean 'lamp'?", changes: [{ from: 2, to: 6, insert: "lamp" }] });
  assert.deepEqual(fixOf(found({ message: "bare word 'a' is not a valid map key; did you mean '#a'?", span_start: 2, span_end: 3 }), "#{a => 1}")?.changes, [{ from: 2, to: 3, insert: "#a" }]);
  assert.equal(fixOf(found({ hint: "Did you mean 'at:put:'?", span_start: 2, span_end: 5 }), "d at: 1 pt: 2"), null, "a keyword message is several words");
  assert.equal(fixOf(found({ hint: "Did you mean 'x'?", span_start: 0, span_end: 5 }), "a + b"), null, "more than a word");
  assert.equal(fixOf(found({ hint: "Did you mean 'x'?" }), "y"), null, "no place");
  assert.equal(fixOf(found({ hint: "Remove it.", span_start: 0, span_end: 1 }), "y"), null);
});
