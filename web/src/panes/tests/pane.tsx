// Tests: run one, a class, what failed, or all; what failed and why.

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { offer } from "../../kernel/actions";
import type { PaneProps } from "../../kernel/layout";
import { announce, toast } from "../../kernel/notices";
import { go, note, place } from "../../kernel/routes";
import { client, epoch, fault, isFrozen, isOwner, sessionId } from "../../kernel/store";
import { clock, count, duration, match, visible } from "../../kernel/text";
import { Problem } from "../../parts/fault";
import { List } from "../../parts/list";
import { Act } from "../../parts/act";
import { useAnswer, useKept } from "../../parts/use";
import type { ErrorBody, LoadError, TestOutcome } from "../../wire/protocol";
import { failedFirst, subjectOf, testRows, type Outcome, type TestRow } from "./model";

/** Outcomes stay when the pane is closed. */
const outcomes = signal<ReadonlyMap<string, Outcome>>(new Map());
/** Files of tests that did not load. */
const broken = signal<readonly LoadError[]>([]);
/** Classes whose tests run again when something changed. */
const watched = signal<ReadonlySet<string>>(new Set());
/** How many of how many have ended. */
const progress = signal<{ done: number; of: number } | null>(null);
const runs = signal<string | null>(null);
const problem = signal<ErrorBody | null>(null);
/** Sessions whose tests run now, other than by this page. */
const others = signal<readonly string[]>([]);

function keep(tests: readonly TestOutcome[], at = Date.now()): void {
  const next = new Map(outcomes.value);
  for (const test of tests) next.set(`${test.class}>>${test.name}`, { ...test, at });
  outcomes.value = next;
}

async function run(title: string, ask: () => Promise<{ results: { tests: TestOutcome[]; passed: number; failed: number } }>): Promise<void> {
  if (runs.value !== null) return;
  runs.value = title;
  progress.value = null;
  problem.value = null;
  try {
    const { results } = await ask();
    keep(results.tests);
    announce(`${results.passed} passed, ${results.failed} failed`);
  } catch (cause) {
    problem.value = fault(cause);
  }
  runs.value = null;
  progress.value = null;
}

/** The project's tests, as they are in their files. */
async function loadTests(): Promise<void> {
  const answer = await client.request("load-tests", {});
  broken.value = answer.errors;
}

/** A class of tests of a name that is free. */
async function makeClass(names: readonly string[]): Promise<void> {
  let number = 1;
  while (names.includes(`New${number}Test`)) number += 1;
  const name = `New${number}Test`;
  try {
    await client.request("save-class", { source: `TestCase subclass: ${name}\n\n  testSomething => self assert: true\n`, path: `test/${name}.bt` });
    toast(`${name} made; its file test/${name}.bt comes with the next flush`);
    go("class", name, "testSomething");
  } catch (cause) {
    problem.value = fault(cause);
  }
}

const MARKS: Record<string, [string, string]> = { pass: ["ok", "✓"], fail: ["danger", "✗"], error: ["danger", "✗"], skip: ["muted", "–"] };

let waiting: ReturnType<typeof setTimeout> | undefined;

export default function Tests({ isVisible }: PaneProps): JSX.Element {
  const [filter, setFilter] = useKept("tests", "filter", "");
  const [sorting, setSorting] = useKept("tests", "failed-first", "yes");
  const [selected, select] = useState<string | null>(null);
  const { answer, error, again } = useAnswer(() => client.request("list-tests", {}), [], isVisible);
  useEffect(() => client.on("classes", () => { again(); rerun(); }), [epoch.value]);
  // What ended while nobody listened, then what ends: by whoever it is run.
  const last = useAnswer(() => client.request("test-results", {}), [], isVisible);
  useEffect(() => {
    if (last.answer === null) return;
    for (const one of last.answer.results) keep([one.test], one.at);
    others.value = last.answer.running.map((one) => one.session).filter((one) => one !== sessionId.value);
  }, [last.answer]);
  useEffect(() => client.on("tests", (event) => {
    if (event.event === "result") {
      keep([event.data.test]);
      if (progress.value !== null) progress.value = { ...progress.value, done: progress.value.done + 1 };
    }
    if (event.event === "started" && event.data.session !== sessionId.value) others.value = [...others.value, event.data.session];
    if (event.event === "finished") others.value = others.value.filter((one) => one !== event.data.session);
  }), [epoch.value]);
  const rows = testRows(answer?.tests ?? [], outcomes.value).filter((row) => match(filter, row.key) !== null);
  const list = sorting === "" ? rows : failedFirst(rows);
  const tests = rows.filter((row) => row.method !== null);
  const begin = (of: number): void => { progress.value = { done: 0, of }; };
  const runAll = (): void => void run("all tests", async () => { await loadTests(); again(); begin(tests.length); return client.request("test-all", {}); });
  const runFile = (file: string): void => void run(file, () => { begin(tests.filter((row) => row.file === file).length); return client.request("test", { file }); });
  // Changes come in rows; the tests run after the last.
  const rerun = (): void => {
    if (watched.value.size === 0 || !isOwner.value) return;
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const names = [...watched.value];
      void run(names.join(", "), async () => {
        const all = await Promise.all(names.map((name) => client.request("test", { class: name })));
        const tests = all.flatMap((one) => one.results.tests);
        const passed = tests.filter((test) => test.status === "pass").length;
        return { results: { tests, passed, failed: tests.length - passed } };
      });
    }, 300);
  };
  const runRow = (row: TestRow): void => void run(row.key, () => client.request("test", row.method === null ? { class: row.className } : { class: row.className, method: row.method }));
  const runFailed = (): void => void run("failed tests", async () => {
    const tests: TestOutcome[] = [];
    for (const row of rows.filter((one) => one.method !== null && ["fail", "error"].includes(one.outcome?.status ?? ""))) {
      tests.push(...(await client.request("test", { class: row.className, method: row.method ?? "" })).results.tests);
    }
    const passed = tests.filter((test) => test.status === "pass").length;
    return { results: { tests, passed, failed: tests.length - passed } };
  });
  const load = (): void => void run("loading", async () => { await loadTests(); again(); return { results: { tests: [], passed: 0, failed: 0 } }; });
  useEffect(() => offer("tests", [
    { title: "Run all tests", key: "A", isChange: true, run: runAll },
    { title: "Run failed tests", key: "X", isChange: true, run: runFailed },
    { title: "Run this", isChange: true, run: () => { const row = rows.find((one) => one.key === selected); if (row !== undefined) runRow(row); } },
    { title: "Open the test", run: () => { const row = rows.find((one) => one.key === selected); if (row !== undefined) go("class", row.className, ...(row.method === null ? [] : [row.method])); } },
  ]), [rows.length, outcomes.value, selected]);
  useEffect(() => {
    const [, name, method] = place.value?.pane === "tests" ? place.value.parts : [];
    if (name === undefined) return;
    setFilter(name);
    if (method !== undefined) select(`${name}>>${method}`);
  }, [place.value]);
  const choose = (row: TestRow): void => { select(row.key); note("test", row.className, ...(row.method === null ? [] : [row.method])); };
  const subject = (row: TestRow): string | null => subjectOf(row.className);
  const tally = [...outcomes.value.values()];
  const failed = tally.filter((test) => test.status === "fail" || test.status === "error").length;
  const shownRow = rows.find((row) => row.key === selected);
  return (
    <div class="fill">
      <div class="bar">
        <input type="search" aria-label="Filter tests" placeholder="filter" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
        {tally.length === 0 ? <span class="muted">{count(rows.filter((row) => row.method !== null).length, "test")}</span> : <span><span class="ok">{tally.length - failed} passed</span>{failed === 0 ? null : <span class="danger">, {failed} failed</span>}</span>}
        <button class="plain" aria-pressed={sorting !== ""} onClick={() => setSorting(sorting === "" ? "yes" : "")}>Failed first</button>
        {isOwner.value ? (
          <span class="right">
            {runs.value === null ? <button class="primary" disabled={isFrozen.value} onClick={runAll}>Run all</button> : <><span class="muted">running {visible(runs.value)} {progress.value === null ? "" : `${progress.value.done} of ${progress.value.of} `}</span><button class="plain" onClick={() => void client.request("interrupt", {}).catch(() => undefined)}>Stop</button></>}{" "}
            {failed === 0 ? null : <Act disabled={runs.value !== null} onClick={runFailed}>Run failed</Act>}
          </span>
        ) : null}
      </div>
      {runs.value === null && others.value.length === 0 ? null : <progress aria-label="Tests run" {...(progress.value === null ? {} : { value: progress.value.done, max: Math.max(1, progress.value.of) })} style={{ width: "100%", height: "4px" }} />}
      {broken.value.map((one, at) => <div key={at} class="problem" role="alert"><span class="chip danger">✗ {visible(one.kind)}</span> <span class="code">{visible(one.path ?? "")}{one.line == null ? "" : `:${one.line}`}</span> <span>{visible(one.message)}</span>{one.path == null ? null : <button class="link" onClick={() => go("file", ...`${one.path}${one.line == null ? "" : `:${one.line}`}`.split("/"))}>Open</button>}</div>)}
      <Problem error={problem.value ?? error} onDismiss={() => { problem.value = null; again(); }} />
      {rows.length === 0 && answer !== null ? <div class="empty"><span>{filter === "" ? "No tests yet." : `No test called '${visible(filter)}'.`}</span><span><Act onClick={() => void makeClass((answer?.tests ?? []).map((one) => one.class))}>New test class</Act> <Act onClick={load}>Load the project's tests</Act></span></div> : (
        <List label="Tests" items={list} keyOf={(row) => row.key} selected={selected} onSelect={choose} onOpen={(row) => { if (isOwner.value && !isFrozen.value) runRow(row); }}
          row={(row) => {
            const [tone, sign] = MARKS[row.outcome?.status ?? ""] ?? ["muted", "·"];
            return (
              <>
                <span class={tone} style={{ width: "14px" }}>{row.method === null ? "" : sign}</span>
                <span class={`code cut ${row.method === null ? "" : "inner"}`}>{visible(row.method ?? row.className)}</span>
                {row.outcome === undefined ? null : <><span class={tone}>{row.outcome.status}</span><span class="muted right number">{duration(row.outcome.duration * 1000)}</span>{row.outcome.at === undefined ? null : <span class="muted number">{clock(row.outcome.at)}</span>}</>}
                {row.method === null && watched.value.has(row.className) ? <span class="chip">on change</span> : null}
              </>
            );
          }} />
      )}
      {shownRow !== undefined ? (
        <div class="detail">
          <div class="bar">
            <span class="code cut">{visible(shownRow.key)}</span>
            {shownRow.outcome?.file == null ? null : <button class="link" onClick={() => go("file", ...`${shownRow.outcome?.file ?? ""}:${shownRow.outcome?.line ?? 1}`.split("/"))}>{visible(shownRow.outcome.file)}:{shownRow.outcome.line ?? 1}</button>}
            <span class="right">
              <button class="plain" onClick={() => go("class", shownRow.className, ...(shownRow.method === null ? [] : [shownRow.method]))}>Open</button>{" "}
              {subject(shownRow) === null ? null : <><button class="plain" onClick={() => go("class", subject(shownRow) ?? "")}>Open {visible(subject(shownRow) ?? "")}</button>{" "}</>}
              {isOwner.value ? <><button class="plain" aria-pressed={watched.value.has(shownRow.className)} title="run the tests of this class after every change" onClick={() => { const next = new Set(watched.value); if (!next.delete(shownRow.className)) next.add(shownRow.className); watched.value = next; }}>On change</button>{" "}</> : null}
              {shownRow.file === null ? null : <><Act disabled={runs.value !== null} onClick={() => runFile(shownRow.file ?? "")}>Run file</Act>{" "}</>}
              <Act disabled={runs.value !== null} onClick={() => runRow(shownRow)}>Run</Act>
            </span>
          </div>
          {shownRow.outcome?.error === undefined ? null : (
            <div class="failure">
              <div class="danger">{visible(shownRow.outcome.error.message)}</div>
              {shownRow.outcome.error.expected === undefined ? null : <pre class="code"><span class="minus">- {visible(shownRow.outcome.error.expected)}</span> <span class="muted">expected</span>{"\n"}<span class="plus">+ {visible(shownRow.outcome.error.actual ?? "")}</span> <span class="muted">actual</span></pre>}
            </div>
          )}
          {(shownRow.outcome?.output ?? "") === "" ? null : <pre class="code failure">{visible(shownRow.outcome?.output ?? "").slice(0, 65536)}</pre>}
        </div>
      ) : null}
    </div>
  );
}
