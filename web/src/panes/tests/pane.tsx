// Tests: run one, a class, what failed, or all; what failed and why.

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { offer } from "../../kernel/actions";
import type { PaneProps } from "../../kernel/layout";
import { toast } from "../../kernel/notices";
import { go, note, place } from "../../kernel/routes";
import { client, epoch, fault, isFrozen, isOwner, sessionId, testing } from "../../kernel/store";
import { clock, count, duration, match, visible } from "../../kernel/text";
import { Problem } from "../../parts/fault";
import { List } from "../../parts/list";
import { Act } from "../../parts/act";
import { useAnswer, useKept } from "../../parts/use";
import type { ListTestsAnswer } from "../../wire/protocol";
import { failedFirst, isFailed, subjectOf, testRows, testsOf, type TestRow } from "./model";
import { broken, keep, loadTests, outcomes, problem, progress, run, runEverything, runFile, runRows, runs, stop } from "./runs";

/** Classes and documents whose tests run again when something changed. */
const watched = signal<ReadonlySet<string>>(new Set());
/** Sessions whose tests run now, other than by this page. */
const others = signal<readonly string[]>([]);

const list = (): Promise<ListTestsAnswer> => client.request("list-tests", {});

/** The tests of a class; those that are only in files are loaded for it. */
async function runTestsOf(name: string): Promise<void> {
  let rows = testsOf(name, testRows(await list(), outcomes.value));
  if (rows.every((row) => row.isDocument)) {
    await loadTests();
    rows = testsOf(name, testRows(await list(), outcomes.value));
  }
  if (rows.length === 0) problem.value = { kind: "no_tests", message: `${name} has no tests`, hint: `They would be in a class ${name}Test, or be examples in its documentation.` };
  else await runRows(rows);
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
  const rows = answer === null ? [] : testRows(answer, outcomes.value).filter((row) => match(filter, row.key) !== null);
  const shown = sorting === "" ? rows : failedFirst(rows);
  const runAll = (): void => void run("all tests", async () => {
    await loadTests();
    again();
    await runEverything(testRows(await list(), outcomes.value));
  });
  // Changes come in rows; the tests run after the last.
  const rerun = (): void => {
    if (watched.value.size === 0 || !isOwner.value) return;
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const names = [...watched.value];
      void run(names.join(", "), async () => runRows(testRows(await list(), outcomes.value).filter((row) => row.test === null && names.includes(row.owner))));
    }, 300);
  };
  const runRow = (row: TestRow): void => void run(row.key, () => runRows([row]));
  const runFailed = (): void => void run("failed tests", () => runRows(rows.filter(isFailed)));
  const load = (): void => void run("loading", async () => { await loadTests(); again(); });
  // Somebody wants the tests of a class that is shown elsewhere.
  useEffect(() => {
    const wanted = testing.value;
    if (wanted === null) return;
    testing.value = null;
    void run(`tests of ${wanted}`, async () => { await runTestsOf(wanted); again(); });
  }, [testing.value]);
  const open = ({ owner, test, isDocument, line }: TestRow): void => {
    if (isDocument) go("file", ...`${owner}${line === null ? "" : `:${line}`}`.split("/"));
    else go("class", owner, ...(test === null ? [] : [test]));
  };
  useEffect(() => offer("tests", [
    { title: "Run all tests", key: "A", isChange: true, run: runAll },
    { title: "Run failed tests", key: "X", isChange: true, run: runFailed },
    { title: "Run this", isChange: true, run: () => { const row = rows.find((one) => one.key === selected); if (row !== undefined) runRow(row); } },
    { title: "Open the test", run: () => { const row = rows.find((one) => one.key === selected); if (row !== undefined) open(row); } },
  ]), [rows.length, outcomes.value, selected]);
  useEffect(() => {
    const [, name, method] = place.value?.pane === "tests" ? place.value.parts : [];
    if (name === undefined) return;
    setFilter(name);
    if (method !== undefined) select(`${name}>>${method}`);
  }, [place.value]);
  const choose = (row: TestRow): void => { select(row.key); note("test", row.owner, ...(row.test === null ? [] : [row.test])); };
  const subject = (row: TestRow): string | null => (row.isDocument ? null : subjectOf(row.owner));
  const tally = [...outcomes.value.values()];
  const failed = tally.filter((test) => test.status === "fail" || test.status === "error").length;
  const shownRow = rows.find((row) => row.key === selected);
  return (
    <div class="fill">
      <div class="bar">
        <input type="search" aria-label="Filter tests" placeholder="filter" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
        {tally.length === 0 ? <span class="muted">{count(rows.filter((row) => row.test !== null).length, "test")}</span> : <span><span class="ok">{tally.length - failed} passed</span>{failed === 0 ? null : <span class="danger">, {failed} failed</span>}</span>}
        <button class="plain" aria-pressed={sorting !== ""} onClick={() => setSorting(sorting === "" ? "yes" : "")}>Failed first</button>
        {isOwner.value ? (
          <span class="right">
            {runs.value === null ? <button class="primary" disabled={isFrozen.value} onClick={runAll}>Run all</button> : <><span class="muted">running {visible(runs.value)} {progress.value === null ? "" : `${progress.value.done} of ${progress.value.of} `}</span><button class="plain" onClick={stop}>Stop</button></>}{" "}
            {failed === 0 ? null : <Act disabled={runs.value !== null} onClick={runFailed}>Run failed</Act>}
            {answer?.tests.length === 0 && answer.documents.length > 0 ? <Act disabled={runs.value !== null} title="load the project's tests" onClick={load}>Load tests</Act> : null}
          </span>
        ) : null}
      </div>
      {runs.value === null && others.value.length === 0 ? null : <progress aria-label="Tests run" {...(progress.value === null ? {} : { value: progress.value.done, max: Math.max(1, progress.value.of) })} style={{ width: "100%", height: "4px" }} />}
      {broken.value.map((one, at) => <div key={at} class="problem" role="alert"><span class="chip danger">✗ {visible(one.kind)}</span> <span class="code">{visible(one.path ?? "")}{one.line == null ? "" : `:${one.line}`}</span> <span>{visible(one.message)}</span>{one.path == null ? null : <button class="link" onClick={() => go("file", ...`${one.path}${one.line == null ? "" : `:${one.line}`}`.split("/"))}>Open</button>}</div>)}
      <Problem error={problem.value ?? error} onDismiss={() => { problem.value = null; again(); }} />
      {rows.length === 0 && answer !== null ? <div class="empty"><span>{filter === "" ? "No tests yet." : `No test called '${visible(filter)}'.`}</span><span><Act onClick={() => void makeClass((answer?.tests ?? []).map((one) => one.class))}>New test class</Act> <Act onClick={load}>Load the project's tests</Act></span></div> : (
        <List label="Tests" items={shown} keyOf={(row) => row.key} selected={selected} onSelect={choose} onOpen={(row) => { if (isOwner.value && !isFrozen.value) runRow(row); }}
          row={(row) => {
            const [tone, sign] = MARKS[row.outcome?.status ?? ""] ?? ["muted", "·"];
            return (
              <>
                <span class={tone} style={{ width: "14px" }}>{row.test === null ? "" : sign}</span>
                <span class={`code cut ${row.test === null ? "" : "inner"}`}>{visible(row.test ?? row.owner)}</span>
                {row.outcome === undefined ? null : <><span class={tone}>{row.outcome.status}</span><span class="muted right number">{duration(row.outcome.duration * 1000)}</span>{row.outcome.at === undefined ? null : <span class="muted number">{clock(row.outcome.at)}</span>}</>}
                {row.test === null && watched.value.has(row.owner) ? <span class="chip">on change</span> : null}
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
              <button class="plain" onClick={() => open(shownRow)}>Open</button>{" "}
              {subject(shownRow) === null ? null : <><button class="plain" onClick={() => go("class", subject(shownRow) ?? "")}>Open {visible(subject(shownRow) ?? "")}</button>{" "}</>}
              {isOwner.value ? <><button class="plain" aria-pressed={watched.value.has(shownRow.owner)} title={`run ${shownRow.isDocument ? "this document" : "the tests of this class"} after every change`} onClick={() => { const next = new Set(watched.value); if (!next.delete(shownRow.owner)) next.add(shownRow.owner); watched.value = next; }}>On change</button>{" "}</> : null}
              {shownRow.file === null || shownRow.isDocument ? null : <><Act disabled={runs.value !== null} onClick={() => void run(shownRow.file ?? "", () => runFile(shownRow.file ?? ""))}>Run file</Act>{" "}</>}
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
