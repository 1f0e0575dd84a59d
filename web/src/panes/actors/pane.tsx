// Actors: who runs, how busy they are, and how the image as a whole does.

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { offer } from "../../kernel/actions";
import { inspect } from "../../kernel/inspect";
import type { PaneProps } from "../../kernel/layout";
import { ask, toast } from "../../kernel/notices";
import { go, place } from "../../kernel/routes";
import { actorClass, client, epoch, fault, isOnline, now, status } from "../../kernel/store";
import { age, bytes, count, grouped, visible } from "../../kernel/text";
import { Problem } from "../../parts/fault";
import { List } from "../../parts/list";
import { Act, Try } from "../../parts/act";
import { useKept, usePulse } from "../../parts/use";
import type { ErrorBody } from "../../wire/protocol";
import { rowOf, withEnded, withoutOld, workOf, type ActorRow, type Ended, type Order, type Work } from "./model";
import { Vitals } from "./vitals";

const HEADS: [Order, string][] = [["class", "class"], ["name", "name"], ["queue", "queue"], ["memory", "memory"], ["reductions", "reductions/s"], ["age", "age"]];
/** Rows asked for beyond those in sight. */
const SPARE = 30;

interface Window {
  from: number;
  total: number;
  rows: ActorRow[];
  sampled: number | null;
}

/** Kept when the pane is closed. */
const window = signal<Window | null>(null);
const ended = signal<Ended>(new Map());
let work: Work = new Map();

/** `-queue` is by queue, the greatest first. */
function readOrder(text: string): { by: Order; isDescending: boolean } {
  const by = text.replace(/^-/, "") as Order;
  return { by: HEADS.some(([one]) => one === by) ? by : "queue", isDescending: text.startsWith("-") };
}

/** The name of the supervisor an actor has. */
async function supervisorOf(pid: string): Promise<string | null> {
  const { nodes } = await client.request("supervision-tree", {}).catch(() => ({ nodes: [] }));
  const parent = nodes.find((one) => one.pid === nodes.find((two) => two.pid === pid)?.parent);
  return parent === undefined ? null : (parent.class ?? parent.name ?? parent.pid);
}

export default function Actors({ isVisible }: PaneProps): JSX.Element {
  const [tab, setTab] = useKept("actors", "tab", "actors");
  const [filter, setFilter] = useKept("actors", "filter", "");
  const [sorted, setSorted] = useKept("actors", "order", "-queue");
  const [grouping, setGrouping] = useKept("actors", "grouped", "");
  const order = readOrder(sorted);
  const [selected, select] = useState<string | null>(null);
  const [problem, setProblem] = useState<ErrorBody | null>(null);
  const sight = useRef({ first: 0, last: 40 });
  const asked = useRef({ isOpen: false, isWanted: false });
  const isShown = isVisible && tab !== "vitals";
  // One question at a time: what comes into sight meanwhile is asked for after the answer.
  const read = (): void => {
    if (!isOnline.value || document.hidden) return;
    if (asked.current.isOpen) { asked.current.isWanted = true; return; }
    asked.current = { isOpen: true, isWanted: false };
    const offset = Math.max(0, sight.current.first - SPARE);
    const limit = Math.min(500, sight.current.last - offset + SPARE);
    const find = filter === "" ? {} : { find: filter };
    client.request("actors", { offset, limit, sort: grouping === "" ? order.by : "class", descending: grouping === "" && order.isDescending, stats: true, ...find }).then((answer) => {
      const now = Date.now();
      const rows = answer.actors.map((actor) => rowOf(actor, work, now));
      work = workOf(answer.actors, now);
      ended.value = withoutOld(ended.value, now);
      const before = window.value?.from === offset ? window.value.rows : [];
      window.value = { from: offset, total: answer.total ?? rows.length, rows: withEnded(rows, before, ended.value), sampled: answer.sampled ?? null };
      setProblem(null);
    }, (cause: unknown) => setProblem(fault(cause))).finally(() => {
      const isWanted = asked.current.isWanted;
      asked.current = { isOpen: false, isWanted: false };
      if (isWanted) latest.current();
    });
  };
  const latest = useRef(read);
  latest.current = read;
  useEffect(() => { if (isShown) read(); }, [isShown, filter, sorted, grouping, epoch.value, isOnline.value]);
  usePulse(() => latest.current(), isShown, 1000);
  useEffect(() => client.on("actors", (event) => {
    // Only those in sight are seen to end.
    if (event.event !== "stopped" || window.value?.rows.some((row) => row.pid === event.data.pid) !== true) return;
    const now = Date.now();
    ended.value = new Map(withoutOld(ended.value, now)).set(event.data.pid, { at: now, reason: event.data.reason });
  }), [epoch.value]);
  const known = window.value;
  const list = useMemo(() => (known === null ? [] : withEnded(known.rows, known.rows, ended.value)), [known, ended.value]);
  const total = (known?.total ?? 0);
  // The first of each class.
  const heads = useMemo(() => new Set(list.filter((row, at) => list[at - 1]?.className !== row.className).map((row) => row.pid)), [list]);
  const current = list.find((row) => row.pid === selected) ?? null;
  const onWindow = (first: number, last: number): void => {
    sight.current = { first, last };
    if (known !== null && (first < known.from || last > known.from + known.rows.length) && (last <= known.total || first < known.from)) read();
  };
  const open = (row: ActorRow): void => inspect({ actor: row.pid }, row.className);
  const stop = async (row: ActorRow, isKill: boolean): Promise<void> => {
    if (row.ended !== null) { status.value = `${row.className} ${row.pid} ended`; return; }
    const keeper = await supervisorOf(row.pid);
    const after = keeper === null ? "It has no supervisor." : `Its supervisor ${keeper} may start it again.`;
    if (!(await ask(`${isKill ? "Kill" : "Stop"} ${row.className} ${row.pid}?`, `${isKill ? "It ends at once." : "It is asked to end."} ${after}`, isKill ? "Kill" : "Stop"))) return;
    client.request("kill", { actor: row.pid, graceful: !isKill }).then(() => toast(`${row.className} ${row.pid} ended`), (cause: unknown) => setProblem(fault(cause)));
  };
  useEffect(() => { if (place.value?.pane === "actors" && place.value.parts[1] !== undefined) { setTab("actors"); setFilter(place.value.parts[1]); } }, [place.value]);
  useEffect(() => offer("actors", [
    { title: "Inspect the actor", key: "i", run: () => { if (current !== null) open(current); } },
    { title: "Browse its class", run: () => { if (current !== null) go("class", current.className); } },
    { title: "Stop the actor", isChange: true, run: () => { if (current !== null) void stop(current, false); } },
    { title: "Kill the actor", key: "k", isChange: true, run: () => { if (current !== null) void stop(current, true); } },
  ]), [current?.pid]);
  return (
    <div class="fill">
      <div class="bar">
        <span class="tabs2" role="tablist" aria-label="Views"><button role="tab" aria-selected={tab !== "vitals"} onClick={() => setTab("actors")}>Actors</button><button role="tab" aria-selected={tab === "vitals"} onClick={() => setTab("vitals")}>Vitals</button></span>
        {tab !== "vitals" ? <><input type="search" aria-label="Filter actors" placeholder="filter" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} /><span class="muted number">{count(total, "actor")}</span>{known?.sampled == null ? null : <span class="muted">ordered by a sample of {grouped(known.sampled)}</span>}</> : null}
        {tab !== "vitals" ? <button class="plain" aria-pressed={grouping !== ""} title="in the order of classes, each with a head" onClick={() => setGrouping(grouping === "" ? "class" : "")}>By class</button> : null}
        {current !== null && current.ended === null && tab !== "vitals" ? (
          <span class="right">
            <button class="plain" onClick={() => open(current)}>Inspect</button>{" "}
            <button class="plain" onClick={() => go("class", current.className)}>Class</button>{" "}
            <button class="plain" onClick={() => { navigator.clipboard?.writeText(current.pid).then(() => toast(`${current.pid} copied`), () => { status.value = "The browser did not allow to copy"; }); }}>Copy pid</button>{" "}
            <Act onClick={() => void stop(current, false)}>Stop…</Act>{" "}<Act onClick={() => void stop(current, true)}>Kill…</Act>
          </span>
        ) : null}
      </div>
      <Problem error={problem} onDismiss={() => { setProblem(null); read(); }} />
      {tab === "vitals" ? <Vitals isVisible={isVisible} /> : known !== null && list.length === 0 && filter === "" ? <div class="empty"><span>No actors run.{actorClass.value === null ? null : <> Try: <Try code={`${actorClass.value} spawn`} /> in the Workspace.</>}</span></div> : (
        <>
          <div class="heads" role="row">
            <span class="col-pid" role="columnheader">pid</span>
            {HEADS.map(([by, title]) => (
              <span key={by} role="columnheader" class={`col-${by} ${by === "class" || by === "name" ? "" : "number"}`} aria-sort={order.by !== by || grouping !== "" ? "none" : order.isDescending ? "descending" : "ascending"}><button onClick={() => { setGrouping(""); setSorted(`${(order.by === by ? !order.isDescending : by !== "class" && by !== "name") ? "-" : ""}${by}`); }}>{title}{order.by === by && grouping === "" ? (order.isDescending ? " ↓" : " ↑") : ""}</button></span>
            ))}
          </div>
          <List label="Actors" role="grid" items={list} from={known?.from ?? 0} total={Math.max(total, (known?.from ?? 0) + list.length)} onWindow={onWindow} keyOf={(row) => row.pid} selected={selected} onSelect={(row) => select(row.pid)} onOpen={open} rowClass={(row) => (row.ended === null ? "" : "gone")} row={(row) => (
            <>
              <span class="muted code col-pid">{visible(row.pid)}</span>
              <span class={`code cut col-class ${grouping !== "" && heads.has(row.pid) ? "first" : ""}`}>{visible(row.className)}{row.message === null ? null : <span class="muted"> {visible(row.message)}</span>}</span>
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
