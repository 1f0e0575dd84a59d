// Supervisors, what they supervise, and what happened to it lately.

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { offer } from "../../kernel/actions";
import { inspect } from "../../kernel/inspect";
import type { PaneProps } from "../../kernel/layout";
import { ask, toast } from "../../kernel/notices";
import { go } from "../../kernel/routes";
import { client, epoch, fault, isOwner, now, status } from "../../kernel/store";
import { clock, count, visible } from "../../kernel/text";
import { Problem } from "../../parts/fault";
import { List } from "../../parts/list";
import { Act } from "../../parts/act";
import { useAnswer, useKept } from "../../parts/use";
import { narrow, recent, rows, titleOf, type Happened, type Row } from "./model";

/** By supervisor and child. */
const happened = signal<ReadonlyMap<string, Happened[]>>(new Map());
const gaveUp = signal<{ supervisor: string; reason: string | null; at: number }[]>([]);

function remember(key: string, one: Happened): void {
  const next = new Map(happened.value);
  next.set(key, [...(next.get(key) ?? []), one].slice(-50));
  happened.value = next;
}

export default function Supervision({ isVisible }: PaneProps): JSX.Element {
  const [scope, setScope] = useState<"default" | "system">("default");
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const [selected, select] = useState<string | null>(null);
  const [filter, setFilter] = useKept("supervision", "filter", "");
  const { answer, error, again } = useAnswer(() => client.request("supervision-tree", { scope }), [scope], isVisible);
  useEffect(() => client.on("supervision", (event) => {
    if (event.event === "child_restarted" || event.event === "child_crashed") {
      remember(event.data.pid ?? event.data.child, { at: Date.now(), what: event.event === "child_restarted" ? "restarted" : "crashed", reason: event.data.reason });
      if (event.event === "child_restarted") remember(event.data.supervisor, { at: Date.now(), what: "restarted", reason: event.data.reason });
    }
    if (event.event === "gave_up") gaveUp.value = [...gaveUp.value, { supervisor: event.data.supervisor, reason: event.data.reason, at: Date.now() }];
    again();
  }), [epoch.value]);
  // Actors that come and go are in the tree too; a crowd of them is read once.
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const end = client.on("actors", () => { timer ??= setTimeout(() => { timer = undefined; again(); }, 1000); });
    return () => {
      clearTimeout(timer);
      end();
    };
  }, [epoch.value]);
  const list = rows(narrow(answer?.nodes ?? [], filter), closed);
  const current = list.find((row) => row.process.pid === selected)?.process ?? null;
  const stop = async (): Promise<void> => {
    if (current === null) return;
    const parent = answer?.nodes.find((one) => one.pid === current.parent);
    if (!(await ask(`Stop ${titleOf(current)} ${current.pid}?`, parent === undefined ? "It is asked to end." : `It is asked to end; ${titleOf(parent)} may start it again.`, "Stop"))) return;
    client.request("kill", { actor: current.pid }).then(() => { toast(`${current.pid} ended`); again(); }, (cause: unknown) => { status.value = fault(cause).message; });
  };
  useEffect(() => offer("supervision", current === null ? [] : [
    { title: "Inspect the process", key: "i", run: () => inspect({ actor: current.pid }, current.class ?? current.pid) },
    ...(current.class === null ? [] : [{ title: "Browse its class", run: () => go("class", current.class ?? "") }]),
    { title: "Stop the process", isChange: true, run: () => void stop() },
  ]), [current?.pid]);
  const about = (row: Row): JSX.Element => {
    const { process } = row;
    const events = happened.value.get(process.pid) ?? [];
    const last = events[events.length - 1];
    const isFresh = last !== undefined && now.value - last.at < 5000;
    // A supervisor is known by its name, its class or its process.
    const keys = process.strategy === undefined ? [process.pid] : [process.name, process.class, process.pid];
    const restarts = Math.max(...keys.map((key) => recent(happened.value.get(key ?? "") ?? [], now.value)));
    return (
      <>
        <span class="muted" aria-hidden="true" style={{ width: "12px", flex: "none" }}>{row.isOpen === undefined ? "" : row.isOpen ? "▾" : "▸"}</span>
        <span class={`code cut ${isFresh ? "fresh" : ""}`}>{visible(titleOf(process))}</span>
        <span class="chip">{process.kind.replace(/^beamtalk/, "").toLowerCase()}</span>
        {process.strategy === undefined ? null : <span class="muted">{process.strategy.replaceAll("_", " ")}</span>}
        {process.class !== null && titleOf(process) !== process.class ? <span class="muted cut">{visible(process.class)}</span> : null}
        {isFresh ? <span class="chip warn">{last.what}</span> : null}
        {restarts > 0 ? <span class="muted">{count(restarts, "restart")}/min</span> : null}
        {row.hidden > 0 ? <span class="muted">… {row.hidden.toLocaleString("en-US")} more · filter</span> : null}
        <span class="right muted number">{process.child_count > 0 ? count(process.child_count, "child").replace("childs", "children") : ""}</span>
        <span class="muted code">{process.pid}</span>
      </>
    );
  };
  return (
    <div class="fill">
      <div class="bar">
        <input type="search" aria-label="Filter processes" placeholder="filter" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
        <span class="muted">{count(list.length, "process").replace("processs", "processes")}</span>
        {current === null ? null : (
          <span>
            <button class="plain" onClick={() => inspect({ actor: current.pid }, current.class ?? current.pid)}>Inspect</button>{" "}
            {current.class === null ? null : <button class="plain" onClick={() => go("class", current.class ?? "")}>Class</button>}{" "}
            {current.kind.toLowerCase().includes("supervisor") ? null : <Act onClick={() => void stop()}>Stop…</Act>}
          </span>
        )}
        {isOwner.value ? <label class="right"><input type="checkbox" checked={scope === "system"} onChange={(event) => setScope(event.currentTarget.checked ? "system" : "default")} style={{ minHeight: "auto" }} /> system</label> : null}
      </div>
      <Problem error={error} onDismiss={again} />
      {gaveUp.value.map((one, at) => (
        <div key={at} class="problem" role="alert"><span class="chip danger">gave up</span> {visible(one.supervisor)} at {clock(one.at)} {visible(one.reason ?? "")} {isOwner.value ? <button class="link" onClick={() => go("log")}>Log</button> : null}<button class="right" aria-label="Dismiss" onClick={() => { gaveUp.value = gaveUp.value.filter((other) => other !== one); }}>✕</button></div>
      ))}
      {list.length === 0 && answer !== null ? <div class="empty"><span>No supervisor of yours runs. <code>beamtalk run .</code> starts <code>[application]</code>.</span></div> : (
        <List role="tree" label="Supervision" items={list} keyOf={(row) => row.process.pid} selected={selected} onSelect={(row) => select(row.process.pid)}
          onOpen={(row) => inspect({ actor: row.process.pid }, row.process.class ?? row.process.pid)}
          level={(row) => ({ level: row.level, ...(row.isOpen === undefined ? {} : { isOpen: row.isOpen }) })}
          onToggle={(row, isOpen) => { const next = new Set(closed); if (isOpen) next.delete(row.process.pid); else next.add(row.process.pid); setClosed(next); }}
          row={about} />
      )}
    </div>
  );
}
