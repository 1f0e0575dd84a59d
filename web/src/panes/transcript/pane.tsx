// The Transcript: what programs write, in lines, following its end.

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { offer } from "../../kernel/actions";
import { keep as keepText, kept as keptText } from "../../kernel/desk";
import type { PaneProps } from "../../kernel/layout";
import { announce, page, toast } from "../../kernel/notices";
import { go, place } from "../../kernel/routes";
import { settings } from "../../kernel/settings";
import { client, epoch, fault, isOwner, sessionId, status } from "../../kernel/store";
import { bytes, clock, count, grouped, visible } from "../../kernel/text";
import { Act, Try } from "../../parts/act";
import { useKept } from "../../parts/use";
import { MOST, add, found, gap, lineAt, none, prepend, tone, type Line, type Lines, type Piece } from "./model";

const kept = signal<Lines>(none);
const isPaused = signal(false);
const waiting = signal(0);
let pieces: Piece[] = [];
let isDrawing = false;
let hasStarted = false;
/** The number of the oldest piece that was read, and whether there are older ones. */
let oldest = 0;
let isReading = false;

/** What arrived since the last frame, at once. */
function draw(): void {
  isDrawing = false;
  if (document.hidden || isPaused.value) {
    waiting.value = pieces.length;
    return;
  }
  const now = pieces;
  pieces = [];
  waiting.value = 0;
  if (now.length === 0) return;
  const before = kept.peek();
  kept.value = add(before, now);
  told += kept.value.lines.length + kept.value.dropped - before.lines.length - before.dropped;
  if (told > 0) speak ??= setTimeout(() => { speak = undefined; announce(spokenLines(told)); told = 0; }, 2000);
}

/** What a screen reader is told of new lines: how many, and to whom it is wished the last of them too. */
function spokenLines(number: number): string {
  const last = settings.peek().reader ? kept.peek().lines.filter((line) => line.text !== "").slice(-Math.min(number, 5)).map((line) => visible(line.text).slice(0, 200)) : [];
  return [number > last.length ? count(number, "new line") : "", ...last].filter((text) => text !== "").join(". ");
}

/** New lines that were not announced yet. */
let told = 0;
let speak: ReturnType<typeof setTimeout> | undefined;

function later(): void {
  if (isDrawing) return;
  isDrawing = true;
  requestAnimationFrame(draw);
}

type Entry = { seq: number; at: number; text: string; by?: string };
const pieceOf = (entry: Entry): Piece => ({ text: entry.text, at: entry.at, seq: entry.seq, by: entry.by ?? null });

async function begin(): Promise<void> {
  if (hasStarted) return;
  hasStarted = true;
  const before = await client.request("transcript", { limit: 1000 }).catch(() => null);
  const entries: Entry[] = before?.entries ?? [];
  oldest = entries[0]?.seq ?? 0;
  kept.value = add(kept.peek(), entries.map(pieceOf));
  client.on("transcript", (event) => {
    if (event.event === "gap") {
      draw();
      kept.value = gap(kept.peek(), event.data.to - event.data.from + 1, Date.now());
    }
    if (event.event !== "text") return;
    pieces.push({ text: event.data.text, at: Date.now(), seq: event.seq ?? 0, by: event.data.by ?? null });
    later();
  }, {}, entries.at(-1)?.seq ?? 0);
  document.addEventListener("visibilitychange", later);
}

/** The page before the oldest line; answers how many lines came. */
async function readOlder(): Promise<number> {
  if (isReading || oldest <= 1 || kept.peek().lines.length >= MOST) return 0;
  isReading = true;
  const answer = await client.request("transcript", { before: oldest, limit: 1000 }).catch(() => null);
  isReading = false;
  if (answer === null) return 0;
  oldest = answer.entries[0]?.seq ?? 0;
  const before = kept.peek().lines.length;
  kept.value = prepend(kept.peek(), answer.entries.map(pieceOf));
  return kept.peek().lines.length - before;
}

/** All of a line that is too long to be shown. */
function openWhole(line: Line): void {
  client.request("transcript", { before: line.seq + 1, limit: 1 }).then(
    (answer) => { page.value = { title: `Written at ${clock(line.at)}`, text: (answer.entries[0]?.text ?? "it is no longer kept").slice(0, 1 << 20) }; },
    (cause: unknown) => { status.value = fault(cause).message; },
  );
}

/** What is selected, else what is shown. */
function chosenText(lines: readonly Line[]): string {
  const selection = String(getSelection());
  return selection === "" ? lines.map((line) => line.text).join("\n").slice(-(1 << 20)) : selection;
}

function toBuffer(lines: readonly Line[]): void {
  let number = 1;
  while (keptText(`scratch/transcript-${number}`) !== null) number += 1;
  keepText(`scratch/transcript-${number}`, chosenText(lines), 0);
  go("workspace", `transcript-${number}`);
}

function nameOf(by: string): string {
  return by === sessionId.value ? "this tab" : by.startsWith("s-") ? `session ${by}` : by;
}

const ROW = 20;
const SPARE = 10;

export default function Transcript({ isVisible }: PaneProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const [search, setSearch] = useKept("transcript", "search", "");
  const [mine, setMine] = useKept("transcript", "mine", "");
  const [view, setView] = useState({ top: 0, height: 400 });
  const [marked, setMarked] = useState<number | null>(null);
  const isFollowing = useRef(settings.value.follow);
  useEffect(() => { void begin(); }, [epoch.value]);
  const lines = found(kept.value.lines, search, mine === "" ? null : sessionId.value);
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null || !isVisible) return;
    if (isFollowing.current) element.scrollTop = element.scrollHeight;
    if (element.clientHeight !== view.height) setView({ top: element.scrollTop, height: element.clientHeight });
  }, [kept.value, isVisible, search, mine]);
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const watch = new ResizeObserver(() => setView({ top: element.scrollTop, height: element.clientHeight }));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  useEffect(() => {
    const wanted = place.value?.pane === "transcript" ? place.value.parts[1] : undefined;
    const at = wanted === undefined ? null : lineAt(kept.value.lines, wanted);
    if (at === null || box.current === null) return;
    isFollowing.current = false;
    setMarked(kept.value.lines[at]?.key ?? null);
    box.current.scrollTop = Math.max(0, at * ROW - view.height / 2);
  }, [place.value, kept.value.lines.length === 0]);
  const pause = (): void => {
    isPaused.value = !isPaused.value;
    announce(isPaused.value ? "Transcript paused" : "Transcript goes on");
    later();
  };
  const clear = (): void => { kept.value = { ...none, next: kept.value.next, dropped: kept.value.dropped + kept.value.lines.length }; oldest = 0; };
  const end = (): void => {
    isFollowing.current = true;
    if (box.current !== null) box.current.scrollTop = box.current.scrollHeight;
  };
  useEffect(() => offer("transcript", [
    { title: "Pause the Transcript", key: "p", run: pause },
    { title: "Clear the view of the Transcript", key: "c", run: clear },
    { title: "Follow the end of the Transcript", key: "End", run: end },
  ]), []);
  // At the end the place follows from the number of lines: nothing has to be measured.
  const top = isFollowing.current ? Math.max(0, lines.length * ROW - view.height) : view.top;
  const first = Math.max(0, Math.floor(top / ROW) - SPARE);
  const last = Math.min(lines.length, Math.ceil((top + view.height) / ROW) + SPARE);
  return (
    <div class="fill">
      <div class="bar">
        <input type="search" aria-label="Search the Transcript" placeholder="search" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
        <span class="muted number" data-count={kept.value.lines.length + kept.value.dropped}>{search === "" && mine === "" ? count(lines.length, "line") : `${grouped(lines.length)} found`}</span>
        <span class="right">
          {isOwner.value ? <button class="plain" aria-pressed={mine !== ""} title="only what this tab wrote" onClick={() => setMine(mine === "" ? "yes" : "")}>Mine</button> : null}
          <button class="plain" aria-pressed={isPaused.value} onClick={pause}>{isPaused.value ? `Go on (${waiting.value})` : "Pause"}</button>
          <button class="plain" onClick={clear}>Clear</button>
          <button class="plain" title="what is selected, else what is shown" onClick={() => { navigator.clipboard?.writeText(chosenText(lines)).then(() => toast("copied"), () => { status.value = "The browser did not allow to copy"; }); }}>Copy</button>
          <Act title="what is selected, else what is shown, as a text in the Workspace" onClick={() => toBuffer(lines)}>To buffer</Act>
        </span>
      </div>
      {lines.length === 0 ? (
        <div class="empty"><span>{search === "" && mine === "" ? "Nothing written yet." : "Nothing found."}</span>{search === "" && mine === "" && isOwner.value ? <span>Try: <Try code={'Transcript show: "hello"; cr'} /></span> : null}</div>
      ) : null}
      <div
        ref={box} class="scroll told code" role="log" aria-live="off" aria-label="Transcript" tabIndex={0}
        onScroll={(event) => {
          const element = event.currentTarget;
          isFollowing.current = element.scrollTop + element.clientHeight >= element.scrollHeight - ROW;
          const next = { top: element.scrollTop, height: element.clientHeight };
          if (next.top < 200 && search === "" && mine === "") void readOlder().then((more) => { if (more > 0) element.scrollTop += more * ROW; });
          setView((old) => (old.top === next.top && old.height === next.height ? old : isFollowing.current && old.height === next.height ? old : next));
        }}
      >
        <div style={{ height: `${lines.length * ROW}px`, position: "relative" }}>
          {lines.slice(first, last).map((line, index) => {
            const isNew = line.by !== null && lines[first + index - 1]?.by !== line.by;
            return (
              <div key={line.key} class={`told-line ${line.isGap ? "info" : ""} ${line.key === marked ? "fresh" : ""}`} title={`${clock(line.at)}${line.by === null ? "" : `, ${nameOf(line.by)}`}`} style={{ top: `${(first + index) * ROW}px`, ...(line.by === null ? {} : { borderLeftColor: `var(--series-${tone(line.by)})` }) }}>
                {visible(line.text)}{line.more === 0 ? null : <>… {bytes(line.more)} more · <button class="link" onClick={() => openWhole(line)}>Open</button></>}
                {isNew ? <span class="told-by">{visible(nameOf(line.by ?? ""))}</span> : null}
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}
