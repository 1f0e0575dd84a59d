// The Transcript: what programs write, in lines, following its end.

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { offer } from "../../kernel/actions";
import type { PaneProps } from "../../kernel/layout";
import { announce } from "../../kernel/notices";
import { client, epoch, isOwner } from "../../kernel/store";
import { clock, count, grouped, visible } from "../../kernel/text";
import { add, found, gap, none, type Lines } from "./model";

const kept = signal<Lines>(none);
const isPaused = signal(false);
const waiting = signal(0);
let pieces: { text: string; at: number }[] = [];
let isDrawing = false;
let hasStarted = false;

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
  if (now.length > 0) kept.value = add(kept.peek(), now);
}

function later(): void {
  if (isDrawing) return;
  isDrawing = true;
  requestAnimationFrame(draw);
}

async function begin(): Promise<void> {
  if (hasStarted) return;
  hasStarted = true;
  const before = await client.request("transcript", { limit: 1000 }).catch(() => null);
  kept.value = add(kept.peek(), (before?.entries ?? []).map((entry) => ({ text: entry.text, at: entry.at })));
  client.on("transcript", (event) => {
    if (event.event === "gap") {
      draw();
      kept.value = gap(kept.peek(), event.data.to - event.data.from + 1, Date.now());
    }
    if (event.event !== "text") return;
    pieces.push({ text: event.data.text, at: Date.now() });
    later();
  }, {}, before?.entries.at(-1)?.seq ?? 0);
  document.addEventListener("visibilitychange", later);
}

const ROW = 20;
const SPARE = 10;

export default function Transcript({ isVisible }: PaneProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const [search, setSearch] = useState("");
  const [view, setView] = useState({ top: 0, height: 400 });
  const isFollowing = useRef(true);
  useEffect(() => { void begin(); }, [epoch.value]);
  const lines = found(kept.value.lines, search);
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null || !isVisible) return;
    if (isFollowing.current) element.scrollTop = element.scrollHeight;
    if (element.clientHeight !== view.height) setView({ top: element.scrollTop, height: element.clientHeight });
  }, [kept.value, isVisible, search]);
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const watch = new ResizeObserver(() => setView({ top: element.scrollTop, height: element.clientHeight }));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  const pause = (): void => {
    isPaused.value = !isPaused.value;
    announce(isPaused.value ? "Transcript paused" : "Transcript goes on");
    later();
  };
  const clear = (): void => { kept.value = { ...none, next: kept.value.next }; };
  const end = (): void => {
    isFollowing.current = true;
    if (box.current !== null) box.current.scrollTop = box.current.scrollHeight;
  };
  useEffect(() => offer("transcript", [
    { title: "Pause the Transcript", key: "p", run: pause },
    { title: "Clear the view of the Transcript", key: "c", run: clear },
    { title: "Follow the end of the Transcript", key: "End", run: end },
  ]), []);
  const first = Math.max(0, Math.floor(view.top / ROW) - SPARE);
  const last = Math.min(lines.length, Math.ceil((view.top + view.height) / ROW) + SPARE);
  return (
    <div class="fill">
      <div class="bar">
        <input type="search" aria-label="Search the Transcript" placeholder="search" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
        <span class="muted number" data-count={kept.value.lines.length + kept.value.dropped}>{search === "" ? count(lines.length, "line") : `${grouped(lines.length)} found`}</span>
        <span class="right" />
        <button class="plain" aria-pressed={isPaused.value} onClick={pause}>{isPaused.value ? `Go on (${waiting.value})` : "Pause"}</button>
        <button class="plain" onClick={clear}>Clear</button>
      </div>
      {lines.length === 0 ? (
        <div class="empty"><span>{search === "" ? "Nothing written yet." : "Nothing found."}</span>{search === "" && isOwner.value ? <span>Try: <code>Transcript show: "hello"; cr</code></span> : null}</div>
      ) : null}
      <div
        ref={box} class="scroll told code" role="log" aria-live="off" aria-label="Transcript" tabIndex={0}
        onScroll={(event) => {
          const element = event.currentTarget;
          isFollowing.current = element.scrollTop + element.clientHeight >= element.scrollHeight - ROW;
          setView({ top: element.scrollTop, height: element.clientHeight });
        }}
      >
        <div style={{ height: `${lines.length * ROW}px`, position: "relative" }}>
          {lines.slice(first, last).map((line, index) => (
            <div key={line.key} class={line.isGap ? "told-line info" : "told-line"} title={clock(line.at)} style={{ top: `${(first + index) * ROW}px` }}>{visible(line.text)}</div>
          ))}
        </div>
      </div>
    </div>
  );
}
