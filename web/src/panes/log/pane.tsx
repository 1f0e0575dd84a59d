// The log of node and daemon, as it comes.

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { offer } from "../../kernel/actions";
import type { PaneProps } from "../../kernel/layout";
import { client, epoch, fault, isOwner } from "../../kernel/store";
import { count, visible } from "../../kernel/text";
import { Problem } from "../../parts/fault";
import { List } from "../../parts/list";
import type { ErrorBody } from "../../wire/protocol";

interface Entry {
  key: number;
  time: string;
  level: string;
  domain: string;
  where: string;
  msg: string;
}

const LEVELS = ["error", "warning", "notice", "info", "debug"] as const;
const MOST = 10_000;
const entries = signal<readonly Entry[]>([]);
const level = signal<(typeof LEVELS)[number]>("info");
const isPaused = signal(false);
const problem = signal<ErrorBody | null>(null);
let next = 1;
let end: (() => void) | null = null;
let fresh: Entry[] = [];

function draw(): void {
  if (fresh.length === 0 || isPaused.value || document.hidden) return;
  entries.value = [...entries.value, ...fresh].slice(-MOST);
  fresh = [];
}

function where(name: string | null, selector: string | null): string {
  return name === null ? "" : `${name}${selector === null ? "" : `>>${selector}`}`;
}

/** What stands in the files from before, then what comes. */
function listen(): void {
  end?.();
  problem.value = null;
  client.request("log", { limit: 1000, level: level.value }).then((answer) => {
    const old = answer.entries.map((line) => ({ key: next++, time: line.time, level: line.level, domain: line.domain, where: where(line.class, line.selector), msg: line.msg }));
    // The end of the file may have been told as well.
    const known = new Set(old.map((entry) => `${entry.time} ${entry.msg}`));
    entries.value = [...old, ...entries.value.filter((entry) => entry.time > (old.at(-1)?.time ?? "") && !known.has(`${entry.time} ${entry.msg}`))].slice(-MOST);
  }, (cause: unknown) => { problem.value = fault(cause); });
  end = client.on("logs", (event) => {
    if (event.event !== "entry") return;
    const { time, domain, msg, class: name, selector } = event.data;
    if (fresh.length === 0) setTimeout(draw, 50);
    fresh.push({ key: next++, time, level: event.data.level, domain, where: where(name, selector), msg: msg.slice(0, 65536) });
  }, { level: level.value });
}

const TONES: Record<string, string> = { error: "danger", critical: "danger", alert: "danger", emergency: "danger", warning: "warn", debug: "" };

export default function Log({ isVisible }: PaneProps): JSX.Element {
  const [search, setSearch] = useState("");
  const [selected, select] = useState<string | null>(null);
  useEffect(() => { if (isOwner.value && isVisible) listen(); }, [isOwner.value, isVisible, epoch.value]);
  useEffect(() => { if (isVisible) draw(); }, [isVisible]);
  useEffect(() => offer("log", [
    { title: "Pause the log", key: "p", run: () => { isPaused.value = !isPaused.value; draw(); } },
    { title: "Clear the view of the log", key: "c", run: () => { entries.value = []; } },
  ]), []);
  if (!isOwner.value) return <div class="empty">Only the owner sees the log.</div>;
  const wanted = search.toLowerCase();
  const list = wanted === "" ? entries.value : entries.value.filter((entry) => `${entry.msg} ${entry.where} ${entry.domain}`.toLowerCase().includes(wanted));
  const current = list.find((entry) => String(entry.key) === selected);
  return (
    <div class="fill">
      <div class="bar">
        <input type="search" aria-label="Search the log" placeholder="search" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
        <select aria-label="Level" value={level.value} onChange={(event) => { level.value = event.currentTarget.value as (typeof LEVELS)[number]; listen(); }}>{LEVELS.map((one) => <option key={one} value={one}>{one}</option>)}</select>
        <span class="muted">{count(list.length, "entry").replace("entrys", "entries")}</span>
        <button class="plain right" aria-pressed={isPaused.value} onClick={() => { isPaused.value = !isPaused.value; draw(); }}>{isPaused.value ? "Go on" : "Pause"}</button>
        <button class="plain" onClick={() => { entries.value = []; }}>Clear</button>
      </div>
      <Problem error={problem.value} onDismiss={() => { problem.value = null; }} />
      {list.length === 0 ? <div class="empty"><span>Nothing at this level.</span>{level.value === "debug" ? null : <button class="plain" onClick={() => { level.value = "debug"; listen(); }}>Show debug</button>}</div> : (
        <List label="Log" items={list} keyOf={(entry) => String(entry.key)} selected={selected} onSelect={(entry) => select(String(entry.key))} row={(entry) => (
          <><span class="muted code">{visible(entry.time).slice(11, 19)}</span><span class={`chip ${TONES[entry.level] ?? ""}`}>{visible(entry.level)}</span><span class="muted cut">{visible(entry.domain)}</span><span class="code cut grow">{visible(entry.msg.split("\n")[0] ?? "")}</span><span class="muted cut">{visible(entry.where)}</span></>
        )} />
      )}
      {current === undefined ? null : <pre class="code failure detail">{visible(current.msg)}</pre>}
    </div>
  );
}
