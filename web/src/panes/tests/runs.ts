// Runs of tests: what runs, how far it is, and what came of it. All of it stays when the pane is closed.

import { signal } from "@preact/signals";
import { announce } from "../../kernel/notices";
import { client, fault, status } from "../../kernel/store";
import type { ErrorBody, LoadError, TestOutcome, TestResults } from "../../wire/protocol";
import { requestOf, type Outcome, type TestRow } from "./model";

export const outcomes = signal<ReadonlyMap<string, Outcome>>(new Map());
/** Files of tests that did not load. */
export const broken = signal<readonly LoadError[]>([]);
/** What is run now, in words. */
export const runs = signal<string | null>(null);
/** How many of how many have ended. */
export const progress = signal<{ done: number; of: number } | null>(null);
export const problem = signal<ErrorBody | null>(null);

/** The request that runs tests now, and whether the rest is not wanted any more. */
let [current, isStopped]: [string | null, boolean] = [null, false];

export function keep(tests: readonly TestOutcome[], at = Date.now()): void {
  const next = new Map(outcomes.value);
  for (const test of tests) next.set(`${test.class}>>${test.name}`, { ...test, at });
  outcomes.value = next;
}

/** The project's tests, as they are in their files. */
export async function loadTests(): Promise<void> {
  broken.value = (await client.request("load-tests", {})).errors;
}

/** One thing at a time; what is refused is shown in the pane. */
export async function run(title: string, work: () => Promise<void>): Promise<void> {
  if (runs.value !== null) {
    status.value = `${runs.value} still ${runs.value.endsWith("s") ? "run" : "runs"}`;
    return;
  }
  runs.value = title;
  progress.value = null;
  problem.value = null;
  isStopped = false;
  try {
    await work();
  } catch (cause) {
    const refused = fault(cause);
    if (isStopped) status.value = "Stopped";
    else problem.value = refused;
  }
  [runs.value, progress.value, current] = [null, null, null];
}

async function ask(request: () => Promise<{ results: TestResults }>): Promise<TestResults> {
  current = client.nextId();
  const { results } = await request();
  keep(results.tests);
  return results;
}

/** Rows one after another, until somebody stops it. */
export async function runRows(rows: readonly TestRow[], all: { passed: number; failed: number } = { passed: 0, failed: 0 }): Promise<void> {
  for (const row of rows) {
    if (isStopped) break;
    const results = await ask(() => client.request("test", requestOf(row)));
    all = { passed: all.passed + results.passed, failed: all.failed + results.failed };
  }
  announce(`${all.passed} passed, ${all.failed} failed`);
}

/** Every class at once, then the documents. */
export async function runEverything(rows: readonly TestRow[]): Promise<void> {
  progress.value = { done: 0, of: rows.filter((row) => row.test !== null).length };
  const results = await ask(() => client.request("test-all", {}));
  await runRows(rows.filter((row) => row.isDocument && row.test === null), results);
}

export async function runFile(file: string): Promise<void> {
  const results = await ask(() => client.request("test", { file }));
  announce(`${results.passed} passed, ${results.failed} failed`);
}

export function stop(): void {
  isStopped = true;
  if (current !== null) client.request("interrupt", { for: current }).catch((cause: unknown) => { status.value = fault(cause).message; });
}
