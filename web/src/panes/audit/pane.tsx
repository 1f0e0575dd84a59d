// The audit trail: who did what, newest first, and whether anything is missing.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { PaneProps } from "../../kernel/layout";
import { toast } from "../../kernel/notices";
import { client, epoch, isOwner, status } from "../../kernel/store";
import { grouped, visible } from "../../kernel/text";
import { go, note, place } from "../../kernel/routes";
import { Problem } from "../../parts/fault";
import { List } from "../../parts/list";
import { useAnswer, useKept } from "../../parts/use";
import { gapsOf } from "./model";

const text = (value: unknown): string => (typeof value === "string" ? value : value === null || value === undefined ? "" : JSON.stringify(value));

/** So many records are kept in the page. */
const MOST = 10_000;

/** Who it was: the client, how it proved itself, the agent. */
function who(record: Record<string, unknown>): string {
  return [record.client, record.auth, record.agent].map(text).filter((one) => one !== "").join(" · ");
}

export default function Audit({ isVisible }: PaneProps): JSX.Element {
  const [filter, setFilter] = useKept("audit", "filter", "");
  const [type, setType] = useKept("audit", "type", "");
  const [selected, select] = useState<string | null>(null);
  const { answer, error, again } = useAnswer(() => (isOwner.value ? client.request("audit", { limit: 1000 }) : null), [], isVisible);
  const [fresh, setFresh] = useState<readonly Record<string, unknown>[]>([]);
  useEffect(() => {
    if (!isOwner.value || !isVisible) return;
    return client.on("audit", (event) => { if (event.event === "record") setFresh((old) => [...old, event.data.record].slice(-MOST)); });
  }, [isVisible, epoch.value]);
  // What is older than the first page, read as one scrolls there.
  const [older, setOlder] = useState<readonly Record<string, unknown>[]>([]);
  const isReading = useRef(false);
  useEffect(() => setOlder([]), [answer]);
  useEffect(() => { if (place.value?.pane === "audit" && place.value.parts[1] !== undefined) select(place.value.parts[1]); }, [place.value]);
  if (!isOwner.value) return <div class="empty">Only the owner sees the audit trail.</div>;
  const wanted = filter.toLowerCase();
  const known = [...older, ...(answer?.records ?? [])];
  const readOlder = (): void => {
    const before = Number(known[0]?.seq ?? 0);
    if (isReading.current || answer === null || before <= answer.first || known.length >= MOST) return;
    isReading.current = true;
    client.request("audit", { before, limit: 1000 }).then((page) => setOlder((old) => (old.length + (answer?.records.length ?? 0) === known.length ? [...page.records, ...old] : old)), () => undefined).finally(() => { isReading.current = false; });
  };
  const newest = Math.max(0, ...known.map((record) => Number(record.seq)));
  const later = fresh.filter((record) => Number(record.seq) > newest);
  const last = Math.max(answer?.last ?? 0, ...later.map((record) => Number(record.seq)));
  const all = [...known, ...later].reverse();
  const types = [...new Set(all.map((record) => text(record.type)))].sort();
  const list = all.filter((record) => (type === "" || text(record.type) === type) && (wanted === "" || JSON.stringify(record).toLowerCase().includes(wanted)));
  const gaps = gapsOf(all.map((record) => Number(record.seq)), answer?.gaps ?? []);
  const current = list.find((record) => String(record.seq) === selected);
  return (
    <div class="fill">
      <div class="bar">
        <input type="search" aria-label="Filter records" placeholder="filter" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
        {answer === null ? null : <span class="muted">seq {grouped(answer.first)}–{grouped(last)}, {gaps.length === 0 ? "no gap" : <span class="danger">{gaps.slice(0, 3).join("; ")}</span>}</span>}
        <select aria-label="Type" value={type} onChange={(event) => setType(event.currentTarget.value)}><option value="">all types</option>{types.map((one) => <option key={one} value={one}>{visible(one)}</option>)}</select>
        <button class="plain right" onClick={again}>Refresh</button>
      </div>
      <Problem error={error} onDismiss={again} />
      <List label="Records" role="grid" onWindow={(_, end) => { if (end >= list.length) readOlder(); }} items={list} keyOf={(record) => String(record.seq)} selected={selected} onSelect={(record) => { select(String(record.seq)); note("audit", String(record.seq)); }} row={(record) => (
        <>
          <span class="muted number" style={{ width: "48px", flex: "none" }}>{grouped(Number(record.seq))}</span>
          <span class="muted code">{visible(text(record.ts ?? record.time)).slice(11, 19)}</span>
          <span class="chip">{visible(text(record.type))}</span>
          <span class="cut">{visible(who(record))}</span>
          <span class="code cut grow">{visible(text(record.target ?? record.op ?? record.action ?? record.what ?? record.class))}</span>
          <span class={`cut ${record.outcome === "error" ? "danger" : "muted"}`}>{visible(text(record.outcome))}</span>
        </>
      )} />
      {current === undefined ? null : (
        <div class="detail">
          <div class="bar">
            <span class="muted">record {grouped(Number(current.seq))}</span>
            <span class="right">
              {text(current.class) === "" ? null : <button class="plain" onClick={() => go("class", text(current.class), ...(text(current.selector) === "" ? [] : [text(current.selector)]))}>Class</button>}{" "}
              {text(current.session) === "" ? null : <button class="plain" onClick={() => setFilter(text(current.session))}>This session</button>}{" "}
              <button class="plain" onClick={() => { navigator.clipboard?.writeText(JSON.stringify(current)).then(() => toast("copied"), () => { status.value = "The browser did not allow to copy"; }); }}>Copy</button>
            </span>
          </div>
          {current.code === undefined ? null : <div class="muted note">the text of code is in this trail because it was started with --audit-text</div>}
          <pre class="code failure">{visible(JSON.stringify(current, null, 2))}</pre>
        </div>
      )}
    </div>
  );
}
