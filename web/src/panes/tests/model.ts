// Tests as rows: a class or a document, then its tests, each with its last outcome. Pure.

import type { ListTestsAnswer, Test, TestOutcome } from "../../wire/protocol";

export interface TestRow {
  key: string;
  /** The class, or the path of the document. */
  owner: string;
  isDocument: boolean;
  /** Null for the row of the class or document itself. */
  test: string | null;
  outcome: Outcome | undefined;
  /** Where it comes from. */
  file: string | null;
  /** Where an example begins. */
  line: number | null;
}

/** What came of a test, and when. */
export type Outcome = TestOutcome & { at?: number };

export function testRows({ tests, documents }: ListTestsAnswer, outcomes: ReadonlyMap<string, Outcome>): TestRow[] {
  const row = (owner: string, isDocument: boolean, file: string | null, test: string | null, line: number | null): TestRow => {
    const key = test === null ? owner : `${owner}>>${test}`;
    return { key, owner, isDocument, file, test, line, outcome: test === null ? undefined : outcomes.get(key) };
  };
  return [
    ...tests.flatMap((one) => [row(one.class, false, one.file, null, null), ...one.methods.map((method) => row(one.class, false, one.file, method, null))]),
    ...documents.flatMap((one) => [row(one.file, true, one.file, null, null), ...one.examples.map(({ name, line }) => row(one.file, true, one.file, name, line))]),
  ];
}

/** What runs a row: one test, or all of its class or document. */
export function requestOf({ owner, isDocument, test, line }: TestRow): Test {
  if (isDocument) return line === null ? { document: owner } : { document: owner, line };
  return test === null ? { class: owner } : { class: owner, method: test };
}

export function isFailed(row: TestRow): boolean {
  return row.outcome?.status === "fail" || row.outcome?.status === "error";
}

/** Classes with failures before the others, failures first in their class. */
export function failedFirst(rows: readonly TestRow[]): TestRow[] {
  const owners = new Map<string, TestRow[]>();
  for (const row of rows) owners.set(row.owner, [...(owners.get(row.owner) ?? []), row]);
  const order = [...owners.values()].sort((one, two) => Number(two.some(isFailed)) - Number(one.some(isFailed)));
  return order.flatMap((group) => [...group].sort((one, two) => Number(two.test === null) - Number(one.test === null) || Number(isFailed(two)) - Number(isFailed(one))));
}

/** The class a class of tests is about: `LampTest` is about `Lamp`. */
export function subjectOf(className: string): string | null {
  const found = /^(.+?)Tests?$/.exec(className);
  return found?.[1] ?? null;
}

/** The rows of classes and documents that test a class: itself, what is named after it, the examples in its documentation. */
export function testsOf(className: string, rows: readonly TestRow[]): TestRow[] {
  const isExample = (name: string | null): boolean => name !== null && [" (doc)", ">>", " class>>"].some((next) => name.startsWith(className + next));
  const documents = new Set(rows.filter((row) => row.isDocument && isExample(row.test)).map((row) => row.owner));
  return rows.filter((row) => row.test === null && (row.isDocument ? documents.has(row.owner) : row.owner === className || subjectOf(row.owner) === className));
}
