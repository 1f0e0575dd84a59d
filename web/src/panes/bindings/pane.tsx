// The variables of this session.

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
  const { answer, error, again } = useAnswer(() => client.request("bindings", {}), [], isVisible);
  useEffect(() => client.on("bindings", (event) => {
    if (event.event === "changed" && event.data.session === sessionId.value) again();
  }), [epoch.value]);
  const rows = Object.entries(answer?.bindings ?? {}).filter(([name]) => match(filter, name) !== null);
  const clear = async (): Promise<void> => {
    if (!(await ask("Clear all variables?", `${count(rows.length, "variable")} of this session will be forgotten. Classes and actors stay.`, "Clear"))) return;
    client.request("clear", {}).then(() => { toast("variables cleared"); again(); }, (cause: unknown) => { status.value = fault(cause).message; });
  };
  useEffect(() => offer("bindings", [{ title: "Clear variables", isChange: true, run: () => void clear() }]), [rows.length]);
  return (
    <div class="fill">
      <div class="bar">
        <input type="search" aria-label="Filter variables" placeholder="filter" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
        <span class="muted">{count(rows.length, "variable")}</span>
        {isOwner.value && rows.length > 0 ? <button class="plain right" onClick={() => void clear()}>Clear…</button> : null}
      </div>
      <Problem error={error} onDismiss={again} />
      {rows.length === 0 && answer !== null ? <div class="empty"><span>No variables. <code>x := 3</code> makes one.</span></div> : (
        <List label="Variables" items={rows} keyOf={([name]) => name} selected={selected} onSelect={([name]) => select(name)} onOpen={([name]) => inspect({ binding: name }, name)} row={([name, value]) => (
          <>
            <span class="code" style={{ width: "30%", flex: "none" }}>{visible(name)}</span>
            <span class="code cut grow">{visible(value?.text ?? "")}</span>
            <span class="chip">{value?.class ?? ""}</span>
          </>
        )} />
      )}
    </div>
  );
}
