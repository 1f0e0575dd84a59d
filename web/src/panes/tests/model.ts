// Tests as rows: a class, then its methods, each with its last outcome. Pure.

import type { TestClass, TestOutcome } from "../../wire/protocol";

export interface TestRow {
  key: string;
  className: string;
  /** Null for the row of the class itself. */
  method: string | null;
  outcome: Outcome | undefined;
  /** Where its class comes from. */
  file: string | null;
}

/** What came of a test, and when. */
export type Outcome = TestOutcome & { at?: number };

export function testRows(tests: readonly TestClass[], outcomes: ReadonlyMap<string, Outcome>): TestRow[] {
  return tests.flatMap((one) => [
    { key: one.class, className: one.class, method: null, outcome: undefined, file: one.file },
    ...one.methods.map((method) => ({ key: `${one.class}>>${method}`, className: one.class, method, outcome: outcomes.get(`${one.class}>>${method}`), file: one.file })),
  ]);
}

function isFailed(row: TestRow): boolean {
  return row.outcome?.status === "fail" || row.outcome?.status === "error";
}

/** Classes with failures before the others, failures first in their class. */
export function failedFirst(rows: readonly TestRow[]): TestRow[] {
  const classes = new Map<string, TestRow[]>();
  for (const row of rows) classes.set(row.className, [...(classes.get(row.className) ?? []), row]);
  const order = [...classes.values()].sort((one, two) => Number(two.some(isFailed)) - Number(one.some(isFailed)));
  return order.flatMap((group) => [...group].sort((one, two) => Number(two.method === null) - Number(one.method === null) || Number(isFailed(two)) - Number(isFailed(one))));
}

/** The class a class of tests is about: `LampTest` is about `Lamp`. */
export function subjectOf(className: string): string | null {
  const found = /^(.+?)Tests?$/.exec(className);
  return found?.[1] ?? null;
}
