// The variables of this session, and the names every session sees.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { inspect } from "../../kernel/inspect";
import { offer } from "../../kernel/actions";
import type { PaneProps } from "../../kernel/layout";
import { ask, toast } from "../../kernel/notices";
import { client, epoch, fault, isOwner, sessionId, status } from "../../kernel/store";
import { count, match, visible } from "../../kernel/text";
import { Problem } from "../../parts/fault";
import { List } from "../../parts/list";
import { useAnswer } from "../../parts/use";

export default function Bindings({ isVisible }: PaneProps): JSX.Element {
  const [filter, setFilter] = useState("");
  const [selected, select] = useState<string | null>(null);
  const { answer, error, again } = useAnswer(() => client.request("bindings", { scope: "all" }), [], isVisible);
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
          {current === undefined ? null : <button class="plain" onClick={() => inspect({ binding: current[0] }, current[0])}>Inspect</button>}{" "}
          {isOwner.value && current !== undefined && current[1]?.scope !== "global" ? <button class="plain" onClick={() => void remove(current[0], current[1]?.scope)}>Remove</button> : null}{" "}
          {isOwner.value && own.length > 0 ? <button class="plain" onClick={() => void clear()}>Clear…</button> : null}
        </span>
      </div>
      <Problem error={error} onDismiss={again} />
      {own.length === 0 && answer !== null && filter === "" ? <div class="empty"><span>No variables. <code>x := 3</code> makes one.</span></div> : null}
      {rows.length === 0 ? null : (
        <List label="Variables" items={rows} keyOf={([name]) => name} selected={selected} onSelect={([name]) => select(name)} onOpen={([name]) => inspect({ binding: name }, name)} row={([name, value]) => (
          <>
            <span class="code" style={{ width: "30%", flex: "none" }}>{visible(name)}</span>
            <span class="code cut grow" style={{ minWidth: "25%" }}>{visible(value?.text ?? "")}</span>
            <span class="chip cut" style={{ maxWidth: "40%", flexShrink: 1 }}>{visible(value?.class ?? "")}</span>
            {value?.scope === "session" ? null : <span class="muted">{value?.scope ?? ""}</span>}
          </>
        )} />
      )}
    </div>
  );
}
