// Tests: run one, a class, what failed, or all; what failed and why.

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { offer } from "../../kernel/actions";
import type { PaneProps } from "../../kernel/layout";
import { announce } from "../../kernel/notices";
import { go, place } from "../../kernel/routes";
import { client, epoch, fault, isOwner, sessionId } from "../../kernel/store";
import { count, duration, match, visible } from "../../kernel/text";
import { Problem } from "../../parts/fault";
import { List } from "../../parts/list";
import { useAnswer } from "../../parts/use";
import type { ErrorBody, TestOutcome } from "../../wire/protocol";
import { failedFirst, testRows, type TestRow } from "./model";

/** Outcomes stay when the pane is closed. */
const outcomes = signal<ReadonlyMap<string, TestOutcome>>(new Map());
const runs = signal<string | null>(null);
const problem = signal<ErrorBody | null>(null);
/** Sessions whose tests run now, other than by this page. */
const others = signal<readonly string[]>([]);

function keep(tests: readonly TestOutcome[]): void {
  const next = new Map(outcomes.value);
  for (const test of tests) next.set(`${test.class}>>${test.name}`, test);
  outcomes.value = next;
}

async function run(title: string, ask: () => Promise<{ results: { tests: TestOutcome[]; passed: number; failed: number } }>): Promise<void> {
  if (runs.value !== null) return;
  runs.value = title;
  problem.value = null;
  try {
    const { results } = await ask();
    keep(results.tests);
    announce(`${results.passed} passed, ${results.failed} failed`);
  } catch (cause) {
    problem.value = fault(cause);
  }
  runs.value = null;
}

const MARKS: Record<string, [string, string]> = { pass: ["ok", "✓"], fail: ["danger", "✗"], error: ["danger", "✗"], skip: ["muted", "–"] };

export default function Tests({ isVisible }: PaneProps): JSX.Element {
  const [filter, setFilter] = useState("");
  const [selected, select] = useState<string | null>(null);
  const { answer, error, again } = useAnswer(() => client.request("list-tests", {}), [], isVisible);
  useEffect(() => client.on("classes", again), [epoch.value]);
  // What ended while nobody listened, then what ends: by whoever it is run.
  const last = useAnswer(() => client.request("test-results", {}), [], isVisible);
  useEffect(() => {
    if (last.answer === null) return;
    keep(last.answer.results.map((one) => one.test));
    others.value = last.answer.running.map((one) => one.session).filter((one) => one !== sessionId.value);
  }, [last.answer]);
  useEffect(() => client.on("tests", (event) => {
    if (event.event === "result") keep([event.data.test]);
    if (event.event === "started" && event.data.session !== sessionId.value) others.value = [...others.value, event.data.session];
    if (event.event === "finished") others.value = others.value.filter((one) => one !== event.data.session);
  }), [epoch.value]);
  const rows = testRows(answer?.tests ?? [], outcomes.value).filter((row) => match(filter, row.key) !== null);
  const list = failedFirst(rows);
  const runAll = (): void => void run("all tests", async () => { await client.request("load-tests", {}); again(); return client.request("test-all", {}); });
  const runRow = (row: TestRow): void => void run(row.key, () => client.request("test", row.method === null ? { class: row.className } : { class: row.className, method: row.method }));
  const runFailed = (): void => void run("failed tests", async () => {
    const tests: TestOutcome[] = [];
    for (const row of rows.filter((one) => one.method !== null && ["fail", "error"].includes(one.outcome?.status ?? ""))) {
      tests.push(...(await client.request("test", { class: row.className, method: row.method ?? "" })).results.tests);
    }
    const passed = tests.filter((test) => test.status === "pass").length;
    return { results: { tests, passed, failed: tests.length - passed } };
  });
  const load = (): void => void run("loading", async () => { await client.request("load-tests", {}); again(); return { results: { tests: [], passed: 0, failed: 0 } }; });
  useEffect(() => offer("tests", [
    { title: "Run all tests", key: "A", isChange: true, run: runAll },
    { title: "Run failed tests", key: "X", isChange: true, run: runFailed },
  ]), [rows.length, outcomes.value]);
  useEffect(() => { if (place.value?.pane === "tests" && place.value.parts[1] !== undefined) setFilter(place.value.parts[1]); }, [place.value]);
  const tally = [...outcomes.value.values()];
  const failed = tally.filter((test) => test.status === "fail" || test.status === "error").length;
  const shownRow = rows.find((row) => row.key === selected);
  return (
    <div class="fill">
      <div class="bar">
        <input type="search" aria-label="Filter tests" placeholder="filter" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
        {tally.length === 0 ? <span class="muted">{count(rows.filter((row) => row.method !== null).length, "test")}</span> : <span><span class="ok">{tally.length - failed} passed</span>{failed === 0 ? null : <span class="danger">, {failed} failed</span>}</span>}
        {isOwner.value ? (
          <span class="right">
            {runs.value === null ? <button class="primary" onClick={runAll}>Run all</button> : <><span class="muted">running {visible(runs.value)} </span><button class="plain" onClick={() => void client.request("interrupt", {}).catch(() => undefined)}>Stop</button></>}{" "}
            {failed === 0 ? null : <button class="plain" disabled={runs.value !== null} onClick={runFailed}>Run failed</button>}
          </span>
        ) : null}
      </div>
      {runs.value === null && others.value.length === 0 ? null : <progress aria-label="Tests run" style={{ width: "100%", height: "4px" }} />}
      <Problem error={problem.value ?? error} onDismiss={() => { problem.value = null; again(); }} />
      {rows.length === 0 && answer !== null ? <div class="empty"><span>No tests are loaded.</span>{isOwner.value ? <button class="plain" onClick={load}>Load the project's tests</button> : null}</div> : (
        <List label="Tests" items={list} keyOf={(row) => row.key} selected={selected} onSelect={(row) => select(row.key)} onOpen={(row) => { if (isOwner.value) runRow(row); }}
          row={(row) => {
            const [tone, sign] = MARKS[row.outcome?.status ?? ""] ?? ["muted", "·"];
            return (
              <>
                <span class={tone} style={{ width: "14px", paddingLeft: row.method === null ? "0" : "0" }}>{row.method === null ? "" : sign}</span>
                <span class={`code cut ${row.method === null ? "" : "inner"}`}>{visible(row.method ?? row.className)}</span>
                {row.outcome === undefined ? null : <><span class={tone}>{row.outcome.status}</span><span class="muted right number">{duration(row.outcome.duration * 1000)}</span></>}
              </>
            );
          }} />
      )}
      {shownRow?.method !== null && shownRow !== undefined ? (
        <div class="detail">
          <div class="bar">
            <span class="code cut">{visible(shownRow.key)}</span>
            <span class="right"><button class="plain" onClick={() => go("class", shownRow.className, shownRow.method ?? "")}>Open</button> {isOwner.value ? <button class="plain" onClick={() => runRow(shownRow)}>Run</button> : null}</span>
          </div>
          {shownRow.outcome?.error === undefined ? null : (
            <div class="failure">
              <div class="danger">{visible(shownRow.outcome.error.message)}</div>
              {shownRow.outcome.error.expected === undefined ? null : <pre class="code"><span class="minus">- {visible(shownRow.outcome.error.expected)}</span>{"\n"}<span class="plus">+ {visible(shownRow.outcome.error.actual ?? "")}</span></pre>}
            </div>
          )}
          {(shownRow.outcome?.output ?? "") === "" ? null : <pre class="code failure">{visible(shownRow.outcome?.output ?? "").slice(0, 65536)}</pre>}
        </div>
      ) : null}
    </div>
  );
}
