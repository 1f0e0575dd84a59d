// The variables of this session, and the names every session sees.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { inspect } from "../../kernel/inspect";
import { offer } from "../../kernel/actions";
import type { PaneProps } from "../../kernel/layout";
import { ask, toast } from "../../kernel/notices";
import { client, epoch, fault, insertion, isOwner, now, sessionId, status } from "../../kernel/store";
import { count, match, visible } from "../../kernel/text";
import { Problem } from "../../parts/fault";
import { List } from "../../parts/list";
import { Act, Try } from "../../parts/act";
import { useAnswer, useKept, usePulse } from "../../parts/use";
import type { SessionInfo } from "../../wire/protocol";

/** Names whose value is another than when it was last looked at, with when that was seen. */
function useChanged(bindings: Record<string, { text?: string } | undefined> | null, of: string | null): ReadonlyMap<string, number> {
  const before = useRef<{ of: string | null; texts: Map<string, string> } | null>(null);
  const [marks, setMarks] = useState<ReadonlyMap<string, number>>(new Map());
  useEffect(() => {
    if (bindings === null) return;
    const texts = new Map(Object.entries(bindings).map(([name, value]) => [name, value?.text ?? ""]));
    const old = before.current;
    before.current = { of, texts };
    if (old === null || old.of !== of) return;
    const changed = [...texts].filter(([name, text]) => old.texts.get(name) !== text).map(([name]): [string, number] => [name, Date.now()]);
    if (changed.length > 0) setMarks((known) => new Map([...known, ...changed]));
  }, [bindings, of]);
  return marks;
}

export default function Bindings({ isVisible }: PaneProps): JSX.Element {
  const [filter, setFilter] = useKept("bindings", "filter", "");
  const [selected, select] = useState<string | null>(null);
  /** Whose names are shown; null is this session. */
  const [of, setOf] = useState<string | null>(null);
  const [sessions, setSessions] = useState<readonly SessionInfo[]>([]);
  const { answer, error, again } = useAnswer(() => client.request("bindings", { scope: "all" }, of === null ? {} : { session: of }), [of], isVisible);
  const readSessions = (): void => { client.request("sessions", {}).then((found) => { setSessions(found.sessions.filter((one) => one.id !== sessionId.value)); }, () => undefined); };
  useEffect(() => { if (isVisible) readSessions(); }, [isVisible, epoch.value]);
  usePulse(() => { if (of !== null) again(); readSessions(); }, isVisible && of !== null, 2000);
  const fresh = useChanged(answer?.bindings ?? null, of);
  useEffect(() => client.on("bindings", (event) => {
    if (event.event === "changed" && event.data.session === sessionId.value) again();
  }), [epoch.value]);
  const order = ["session", "workspace", "global"];
  const rows = Object.entries(answer?.bindings ?? {}).filter(([name]) => match(filter, name) !== null)
    .sort(([one, first], [two, second]) => order.indexOf(first?.scope ?? "") - order.indexOf(second?.scope ?? "") || one.localeCompare(two));
  const own = rows.filter(([, value]) => value?.scope === "session");
  const remove = async (name: string, scope: string | undefined): Promise<void> => {
    if (scope !== "session" && scope !== "workspace") return;
    if (scope === "workspace" && !(await ask(`Remove ${name} for all sessions?`, "Every session loses this name. What it names stays where it is used.", "Remove"))) return;
    client.request("unbind", { name, scope }).then(() => { toast(`${name} removed`); again(); }, (cause: unknown) => { status.value = fault(cause).message; });
  };
  const clear = async (): Promise<void> => {
    if (!(await ask("Clear all variables?", `${count(own.length, "variable")} of this session will be forgotten. Classes and actors stay.`, "Clear"))) return;
    client.request("clear", {}).then(() => { toast("variables cleared"); again(); }, (cause: unknown) => { status.value = fault(cause).message; });
  };
  useEffect(() => offer("bindings", [
    { title: "Clear variables", isChange: true, run: () => void clear() },
    { title: "Remove the variable", key: "Delete", isChange: true, run: () => { const row = rows.find(([name]) => name === selected); if (row !== undefined) void remove(row[0], row[1]?.scope); } },
    { title: "Inspect the variable", key: "i", run: () => { if (selected !== null) inspect({ binding: selected }, selected); } },
  ]), [rows.length, selected]);
  const current = rows.find(([name]) => name === selected);
  return (
    <div class="fill">
      <div class="bar">
        <input type="search" aria-label="Filter variables" placeholder="filter" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
        <span class="muted">{count(own.length, "variable")}</span>
        <span class="right">
          {sessions.length === 0 || !isOwner.value ? null : <select aria-label="Session" value={of ?? ""} onChange={(event) => { select(null); setOf(event.currentTarget.value === "" ? null : event.currentTarget.value); }}><option value="">this session</option>{sessions.map((one) => <option key={one.id} value={one.id}>{one.client} {one.id}</option>)}</select>}{" "}
          {current === undefined || of !== null ? null : <button class="plain" onClick={() => inspect({ binding: current[0] }, current[0])}>Inspect</button>}{" "}
          {current === undefined || !isOwner.value ? null : <button class="plain" title="into the text of the Workspace" onClick={() => { insertion.value = current[0]; }}>Insert</button>}{" "}
          {current !== undefined && of === null && current[1]?.scope !== "global" ? <Act onClick={() => void remove(current[0], current[1]?.scope)}>Remove</Act> : null}{" "}
          {own.length > 0 && of === null ? <Act onClick={() => void clear()}>Clear…</Act> : null}
        </span>
      </div>
      <Problem error={error !== null && of !== null && error.kind === "session_not_found" ? { kind: error.kind, message: "that session ended" } : error} onDismiss={() => { setOf(null); again(); }} />
      {own.length === 0 && answer !== null && filter === "" ? <div class="empty"><span>No variables. <Try code="x := 3" /> makes one.</span></div> : null}
      {rows.length === 0 ? null : (
        <List label="Variables" items={rows} keyOf={([name]) => name} selected={selected} onSelect={([name]) => select(name)} onOpen={([name]) => { if (of === null) inspect({ binding: name }, name); }} row={([name, value]) => (
          <>
            <span class="code" style={{ width: "30%", flex: "none" }}>{visible(name)}</span>
            <span class={`code cut grow ${now.value - (fresh.get(name) ?? 0) < 5000 ? "fresh" : ""}`} style={{ minWidth: "25%" }}>{visible(value?.text ?? "")}</span>
            {now.value - (fresh.get(name) ?? 0) < 5000 ? <span class="chip">changed</span> : null}
            <span class="chip cut" style={{ maxWidth: "40%", flexShrink: 1 }}>{visible(value?.class ?? "")}</span>
            {value?.scope === "session" ? null : <span class="muted">{value?.scope ?? ""}</span>}
          </>
        )} />
      )}
    </div>
  );
}
