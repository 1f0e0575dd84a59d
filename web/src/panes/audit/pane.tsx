// The audit trail: who did what, newest first, and whether anything is missing.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { PaneProps } from "../../kernel/layout";
import { client, epoch, isOwner } from "../../kernel/store";
import { grouped, visible } from "../../kernel/text";
import { Problem } from "../../parts/fault";
import { List } from "../../parts/list";
import { useAnswer } from "../../parts/use";

const text = (value: unknown): string => (typeof value === "string" ? value : value === null || value === undefined ? "" : JSON.stringify(value));

export default function Audit({ isVisible }: PaneProps): JSX.Element {
  const [filter, setFilter] = useState("");
  const [selected, select] = useState<string | null>(null);
  const { answer, error, again } = useAnswer(() => (isOwner.value ? client.request("audit", { limit: 1000 }) : null), [], isVisible);
  const [fresh, setFresh] = useState<readonly Record<string, unknown>[]>([]);
  useEffect(() => {
    if (!isOwner.value || !isVisible) return;
    return client.on("audit", (event) => { if (event.event === "record") setFresh((old) => [...old, event.data.record].slice(-10_000)); });
  }, [isVisible, epoch.value]);
  if (!isOwner.value) return <div class="empty">Only the owner sees the audit trail.</div>;
  const wanted = filter.toLowerCase();
  const known = answer?.records ?? [];
  const newest = Math.max(0, ...known.map((record) => Number(record.seq)));
  const later = fresh.filter((record) => Number(record.seq) > newest);
  const last = Math.max(answer?.last ?? 0, ...later.map((record) => Number(record.seq)));
  const list = [...known, ...later].reverse().filter((record) => wanted === "" || JSON.stringify(record).toLowerCase().includes(wanted));
  const current = list.find((record) => String(record.seq) === selected);
  return (
    <div class="fill">
      <div class="bar">
        <input type="search" aria-label="Filter records" placeholder="filter" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
        {answer === null ? null : <span class="muted">seq {grouped(answer.first)}–{grouped(last)}, {answer.gaps.length === 0 ? "no gap" : <span class="danger">missing before {answer.gaps.slice(0, 5).map(grouped).join(", ")}</span>}</span>}
        <button class="plain right" onClick={again}>Refresh</button>
      </div>
      <Problem error={error} onDismiss={again} />
      <List label="Records" items={list} keyOf={(record) => String(record.seq)} selected={selected} onSelect={(record) => select(String(record.seq))} row={(record) => (
        <>
          <span class="muted number" style={{ width: "48px", flex: "none" }}>{grouped(Number(record.seq))}</span>
          <span class="muted code">{visible(text(record.ts ?? record.time)).slice(11, 19)}</span>
          <span class="chip">{visible(text(record.type))}</span>
          <span class="cut">{visible(text(record.client))}</span>
          <span class="code cut grow">{visible(text(record.target ?? record.op ?? record.action ?? record.what ?? record.class))}</span>
          <span class={`cut ${record.outcome === "error" ? "danger" : "muted"}`}>{visible(text(record.outcome))}</span>
        </>
      )} />
      {current === undefined ? null : <pre class="code failure detail">{visible(JSON.stringify(current, null, 2))}</pre>}
    </div>
  );
}
