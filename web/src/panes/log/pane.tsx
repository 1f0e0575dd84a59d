// The log of node and daemon: what stands in its files, and what comes, following the end.

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { offer } from "../../kernel/actions";
import type { PaneProps } from "../../kernel/layout";
import { toast } from "../../kernel/notices";
import { go } from "../../kernel/routes";
import { settings } from "../../kernel/settings";
import { client, epoch, fault, isOwner, status } from "../../kernel/store";
import { count, visible } from "../../kernel/text";
import { Problem } from "../../parts/fault";
import { List } from "../../parts/list";
import { useKept } from "../../parts/use";
import type { ErrorBody } from "../../wire/protocol";
import { frames, together, MOST, type Entry } from "./model";

const LEVELS = ["error", "warning", "notice", "info", "debug"] as const;
const entries = signal<readonly Entry[]>([]);
const isPaused = signal(false);
const waiting = signal(0);
const problem = signal<ErrorBody | null>(null);
let next = 1;
let end: (() => void) | null = null;
let level = "";
let fresh: Entry[] = [];
/** What is before this was cleared from sight. */
let cleared = "";

function draw(): void {
  waiting.value = isPaused.value ? fresh.length : 0;
  if (fresh.length === 0 || isPaused.value || document.hidden) return;
  const now = fresh;
  fresh = [];
  entries.value = [...entries.value, ...now].slice(-MOST);
}

function where(name: string | null, selector: string | null): string {
  return name === null ? "" : `${name}${selector === null ? "" : `>>${selector}`}`;
}

interface Line { time: string; level: string; domain: string; class: string | null; selector: string | null; msg: string }

function entryOf(line: Line): Entry {
  return { key: next++, time: line.time, level: line.level, domain: line.domain, where: where(line.class, line.selector), msg: line.msg.slice(0, 65_536) };
}

/** Everything that is told since the daemon started, then what stands in the files from before: nothing falls between. */
function listen(wanted: string): void {
  if (level === wanted) return readFiles();
  end?.();
  level = wanted;
  entries.value = [];
  fresh = [];
  end = client.on("logs", (event) => {
    if (event.event !== "entry") return;
    if (fresh.length === 0) setTimeout(draw, 50);
    fresh.push(entryOf(event.data));
  }, { level: wanted }, 0);
  readFiles();
}

function readFiles(): void {
  const of = level;
  client.request("log", { limit: 1000, level: of }).then((answer) => {
    if (of !== level) return;
    problem.value = null;
    const told = [...entries.value, ...fresh];
    fresh = [];
    entries.value = together(answer.entries.map(entryOf), told).filter((entry) => entry.time > cleared);
  }, (cause: unknown) => { problem.value = fault(cause); });
}

document.addEventListener("visibilitychange", draw);

const TONES: Record<string, string> = { error: "danger", critical: "danger", alert: "danger", emergency: "danger", warning: "warn", debug: "" };

/** A report of a crash: its first line, and the rest when it is wanted, with places that can be opened. */
function Report({ entry }: { entry: Entry }): JSX.Element {
  const all = frames(entry.msg);
  const [isWhole, showWhole] = useState(false);
  const shown = isWhole ? all : all.filter((frame) => frame.to !== null);
  return (
    <div class="code failure detail">
      <div class="bar">
        <span class="muted">{visible(entry.time)} {visible(entry.domain)} {visible(entry.where)}</span>
        <span class="right">
          <button class="plain" onClick={() => { navigator.clipboard?.writeText(`${entry.time} [${entry.level}] [${entry.domain}] ${entry.where} ${entry.msg}`).then(() => toast("copied"), () => { status.value = "The browser did not allow to copy"; }); }}>Copy</button>{" "}
          <button class="plain" title="what was written at that moment" onClick={() => go("transcript", `at-${Date.parse(entry.time)}`)}>Transcript then</button>
        </span>
      </div>
      <pre class="code failure">{visible(entry.msg.split("\n")[0] ?? "")}</pre>
      {shown.map((frame, at) => <div key={at} class="frame-line">{frame.to === null ? visible(frame.text) : <button class="link" onClick={() => go(...(frame.to ?? []))}>{visible(frame.text.trim())}</button>}</div>)}
      {all.length > shown.length ? <button class="link" onClick={() => showWhole(true)}>{count(all.length - shown.length, "more line")}</button> : null}
    </div>
  );
}

export default function Log({ isVisible }: PaneProps): JSX.Element {
  const [search, setSearch] = useKept("log", "search", "");
  const [wanted, setWanted] = useKept("log", "level", "info");
  const [domain, setDomain] = useKept("log", "domain", "");
  const [selected, select] = useState<string | null>(null);
  const [nodeLevel, setNodeLevel] = useState<string | null>(null);
  const chosen = (LEVELS as readonly string[]).includes(wanted) ? wanted : "info";
  useEffect(() => { if (isOwner.value && isVisible) listen(chosen); }, [isOwner.value, isVisible, epoch.value, chosen]);
  useEffect(() => { if (isVisible) draw(); }, [isVisible]);
  const pause = (): void => { isPaused.value = !isPaused.value; draw(); };
  const clear = (): void => { cleared = entries.value.at(-1)?.time ?? cleared; entries.value = []; };
  const toEnd = (): void => { const list = document.querySelector("#pane-log .list"); if (list !== null) list.scrollTop = list.scrollHeight; };
  useEffect(() => offer("log", [
    { title: "Pause the log", key: "p", run: pause },
    { title: "Clear the view of the log", key: "c", run: clear },
    { title: "Follow the end of the log", key: "End", run: toEnd },
  ]), []);
  useEffect(() => { if (isVisible && isOwner.value) client.request("log-level", {}).then((answer) => setNodeLevel(answer.level), () => undefined); }, [isVisible, epoch.value]);
  if (!isOwner.value) return <div class="empty">Only the owner sees the log.</div>;
  const words = search.toLowerCase();
  const domains = [...new Set(entries.value.map((entry) => entry.domain))].sort();
  const list = entries.value.filter((entry) => (domain === "" || entry.domain === domain) && (words === "" || `${entry.msg} ${entry.where} ${entry.domain}`.toLowerCase().includes(words)));
  const current = list.find((entry) => String(entry.key) === selected);
  return (
    <div class="fill">
      <div class="bar">
        <input type="search" aria-label="Search the log" placeholder="search" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
        <select aria-label="Level" title="shown from this level on" value={chosen} onChange={(event) => setWanted(event.currentTarget.value)}>{LEVELS.map((one) => <option key={one} value={one}>{one}</option>)}</select>
        <select aria-label="Domain" value={domain} onChange={(event) => setDomain(event.currentTarget.value)}><option value="">all domains</option>{domains.map((one) => <option key={one} value={one}>{visible(one)}</option>)}</select>
        <span class="muted">{count(list.length, "entry").replace("entrys", "entries")}</span>
        <span class="right">
          <label class="muted">node logs <select aria-label="Level of the node" value={nodeLevel ?? "info"} onChange={(event) => { const next = event.currentTarget.value; client.request("log-level", { level: next }).then((answer) => { setNodeLevel(answer.level); toast(`the node logs from ${answer.level} on`); }, (cause: unknown) => { problem.value = fault(cause); }); }}>{[...new Set([...LEVELS, nodeLevel ?? "info"])].map((one) => <option key={one} value={one}>{one}</option>)}</select></label>
          <button class="plain" aria-pressed={isPaused.value} onClick={pause}>{isPaused.value ? `Go on (${waiting.value})` : "Pause"}</button>
          <button class="plain" onClick={clear}>Clear</button>
        </span>
      </div>
      <Problem error={problem.value} onDismiss={() => { problem.value = null; }} />
      {list.length === 0 ? <div class="empty"><span>Nothing at this level.</span>{chosen === "debug" ? null : <button class="plain" onClick={() => setWanted("debug")}>Show debug</button>}</div> : (
        <List label="Log" role="grid" isFollowing={settings.value.follow} items={list} keyOf={(entry) => String(entry.key)} selected={selected} onSelect={(entry) => select(String(entry.key))}
          row={(entry) => (
            <><span class="muted code">{visible(entry.time).slice(11, 19)}</span><span class={`chip ${TONES[entry.level] ?? ""}`}>{visible(entry.level)}</span><span class="muted cut">{visible(entry.domain)}</span><span class="code cut grow">{visible(entry.msg.split("\n")[0] ?? "")}</span><span class="muted cut">{visible(entry.where)}</span></>
          )} />
      )}
      {current === undefined ? null : <Report key={current.key} entry={current} />}
    </div>
  );
}
