// Actors: who runs, how busy they are, and how the image as a whole does.

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { offer } from "../../kernel/actions";
import { inspect } from "../../kernel/inspect";
import type { PaneProps } from "../../kernel/layout";
import { ask, toast } from "../../kernel/notices";
import { go } from "../../kernel/routes";
import { client, epoch, fault, isOwner, now } from "../../kernel/store";
import { age, bytes, count, grouped, match, visible } from "../../kernel/text";
import { Problem } from "../../parts/fault";
import { List } from "../../parts/list";
import { useAnswer, usePulse } from "../../parts/use";
import type { ErrorBody } from "../../wire/protocol";
import { ordered, rowOf, withFigures, withoutOld, type ActorRow, type Order } from "./model";
import { Vitals } from "./vitals";

const rows = signal<readonly ActorRow[]>([]);
const isKnown = signal(false);

const HEADS: [Order, string][] = [["class", "class"], ["name", "name"], ["queue", "queue"], ["memory", "memory"], ["reductions", "reductions"], ["age", "age"]];

/** Changes of one moment are applied together. */
let events: ((list: ActorRow[]) => ActorRow[])[] = [];
function later(change: (list: ActorRow[]) => ActorRow[]): void {
  if (events.length === 0) setTimeout(apply, 100);
  events.push(change);
}
function apply(): void {
  const now = events;
  events = [];
  rows.value = now.reduce((list, change) => change(list), [...rows.value]);
}

export default function Actors({ isVisible }: PaneProps): JSX.Element {
  const [tab, setTab] = useState<"actors" | "vitals">("actors");
  const [filter, setFilter] = useState("");
  const [order, setOrder] = useState<{ by: Order; isDescending: boolean }>({ by: "queue", isDescending: true });
  const [selected, select] = useState<string | null>(null);
  const [problem, setProblem] = useState<ErrorBody | null>(null);
  const isShown = isVisible && tab === "actors";
  const { answer, error, again } = useAnswer(() => client.request("actors", {}), [], isShown);
  useEffect(() => {
    if (answer === null) return;
    isKnown.value = true;
    const before = new Map(rows.peek().map((row) => [row.pid, row]));
    rows.value = [...answer.actors.map((actor) => before.get(actor.pid) ?? rowOf(actor)), ...withoutOld(rows.peek().filter((row) => row.ended !== null), Date.now())];
  }, [answer]);
  useEffect(() => client.on("actors", (event) => {
    if (event.event === "spawned") {
      const { pid, class: className, spawned_at } = event.data;
      later((list) => { if (!list.some((row) => row.pid === pid)) list.push(rowOf({ pid, class: className, module: null, spawned_at, name: null })); return list; });
    } else if (event.event === "stopped") {
      const ended = { at: Date.now(), reason: event.data.reason };
      later((list) => list.map((row) => (row.pid === event.data.pid ? { ...row, ended } : row)));
      setTimeout(() => later((list) => withoutOld(list, Date.now())), 5100);
    } else again();
  }), [epoch.value]);
  const sort = order.by === "age" ? "queue" : order.by;
  const figures = useAnswer(() => client.request("top-actors", { sort, limit: 200 }), [sort], isShown);
  usePulse(figures.again, isShown, 1000);
  const list = useMemo(() => {
    const known = withFigures(rows.value, figures.answer?.actors ?? []);
    const wanted = filter === "" ? known : known.filter((row) => match(filter, `${row.className} ${row.name ?? ""} ${row.pid}`) !== null);
    return ordered(wanted, order.by, order.isDescending);
  }, [rows.value, figures.answer, filter, order]);
  const current = list.find((row) => row.pid === selected) ?? null;
  const open = (row: ActorRow): void => inspect({ actor: row.pid }, row.className);
  const stop = async (row: ActorRow, isKill: boolean): Promise<void> => {
    if (!(await ask(`${isKill ? "Kill" : "Stop"} ${row.className} ${row.pid}?`, isKill ? "It ends at once; a supervisor may start it again." : "It is asked to end; a supervisor may start it again.", isKill ? "Kill" : "Stop"))) return;
    client.request("kill", { actor: row.pid, graceful: !isKill }).then(() => toast(`${row.className} ${row.pid} ended`), (cause: unknown) => setProblem(fault(cause)));
  };
  useEffect(() => offer("actors", [
    { title: "Inspect the actor", key: "i", run: () => { if (current !== null) open(current); } },
    { title: "Kill the actor", key: "k", isChange: true, run: () => { if (current !== null) void stop(current, true); } },
  ]), [current?.pid]);
  const total = rows.value.filter((row) => row.ended === null).length;
  return (
    <div class="fill">
      <div class="bar">
        <span class="tabs2" role="tablist" aria-label="Views"><button role="tab" aria-selected={tab === "actors"} onClick={() => setTab("actors")}>Actors</button><button role="tab" aria-selected={tab === "vitals"} onClick={() => setTab("vitals")}>Vitals</button></span>
        {tab === "actors" ? <><input type="search" aria-label="Filter actors" placeholder="filter" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} /><span class="muted number">{count(total, "actor")}</span></> : null}
        {current !== null && current.ended === null && tab === "actors" ? (
          <span class="right">
            <button class="plain" onClick={() => open(current)}>Inspect</button>{" "}
            <button class="plain" onClick={() => go("class", current.className)}>Class</button>{" "}
            {isOwner.value ? <><button class="plain" onClick={() => void stop(current, false)}>Stop…</button> <button class="plain" onClick={() => void stop(current, true)}>Kill…</button></> : null}
          </span>
        ) : null}
      </div>
      <Problem error={problem ?? error} onDismiss={() => { setProblem(null); again(); }} />
      {tab === "vitals" ? <Vitals isVisible={isVisible} /> : isKnown.value && rows.value.length === 0 ? <div class="empty"><span>No actors run. Try: <code>Lamp spawn</code> in the Workspace.</span></div> : (
        <>
          <div class="heads">
            <span class="col-pid">pid</span>
            {HEADS.map(([by, title]) => (
              <button key={by} class={`col-${by} ${by === "class" || by === "name" ? "" : "number"}`} onClick={() => setOrder({ by, isDescending: order.by === by ? !order.isDescending : by !== "class" && by !== "name" })}>{title}{order.by === by ? (order.isDescending ? " ↓" : " ↑") : ""}</button>
            ))}
          </div>
          <List label="Actors" items={list} keyOf={(row) => row.pid} selected={selected} onSelect={(row) => select(row.pid)} onOpen={open} rowClass={(row) => (row.ended === null ? "" : "gone")} row={(row) => (
            <>
              <span class="muted code col-pid">{visible(row.pid)}</span>
              <span class="code cut col-class">{visible(row.className)}</span>
              <span class="code cut col-name">{row.ended === null ? visible(row.name ?? "") : visible(row.ended.reason)}</span>
              <span class="number col-queue">{row.queue === null ? "" : grouped(row.queue)}</span>
              <span class="number col-memory">{row.memory === null ? "" : bytes(row.memory)}</span>
              <span class="number col-reductions">{row.reductions === null ? "" : grouped(row.reductions)}</span>
              <span class="number muted col-age">{row.spawnedAt === null ? "" : age(now.value / 1000 - row.spawnedAt)}</span>
            </>
          )} />
        </>
      )}
    </div>
  );
}
