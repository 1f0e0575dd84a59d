// The panes on the screen: columns of groups of tabs, with borders to drag and tabs to move.

import type { JSX } from "preact";
import { Fragment } from "preact";
import { signal } from "@preact/signals";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { focused } from "../kernel/actions";
import { byAge, kept, newest as newestItem } from "../kernel/desk";
import { edited, readStates, states, type Remembered } from "../kernel/states";
import { PANES, PRESETS, close, another, drift, float, groups, kindOf, move, narrowed, parse as parseLayout, resize, show, sink, visiblePanes, type Edge, type Float, type Group, type Layout, type PaneId, type PaneKind } from "../kernel/layout";
import { spare } from "../kernel/routes";
import { isOnline, lastError, node } from "../kernel/store";
import { visible } from "../kernel/text";
import { BODIES, SIGNS, TITLES } from "./panes";

export const layout = signal<Layout>({ columns: [] });
export const full = signal<PaneId | null>(null);
/** The pane whose menu is open. */
export const menuOf = signal<PaneId | null>(null);
const dragged = signal<PaneId | null>(null);
const isNarrow = signal(matchMedia("(max-width: 900px)").matches);
matchMedia("(max-width: 900px)").addEventListener("change", (event) => { isNarrow.value = event.matches; });
/** Panes as they were last asked for, the newest first: of several in one place that one is seen. */
const newest = signal<readonly PaneId[]>([]);
/** Panes that were seen once stay, hidden or not. */
const seen = new Set<PaneId>();

/** Where focus goes when a pane is asked for: its own first choice, else its frame. */
export function focusPane(pane: PaneId): void {
  const frame = document.getElementById(`pane-${pane}`);
  const first = frame?.querySelector<HTMLElement>(".cm-content[contenteditable=true], [data-first], .list");
  (first ?? frame)?.focus();
}

/** The same after the pane has been drawn, unless something was opened above it or the focus was put elsewhere meanwhile.
    What closes gives the focus back to where it was, which is nobody's choice. */
function focusSoon(pane: PaneId): void {
  const before = document.activeElement;
  setTimeout(() => {
    const now = document.activeElement;
    const isMoved = now !== before && now !== document.body && before?.isConnected === true;
    if (!isMoved && document.querySelector(".veil") === null) focusPane(pane);
  }, 0);
}

/** The layout that is shown is kept under this name. */
export const layoutName = signal("start");
const PREFIX = "layout/";

/** Show a layout as it was left, or as it is made. */
export function openLayout(name: string, isFresh = false): void {
  const preset = Object.entries(PRESETS).find(([one]) => one.toLowerCase() === name)?.[1] ?? PRESETS.Start;
  const text = isFresh ? null : kept(`${PREFIX}${name}`);
  layoutName.value = name;
  states.value = text === null ? {} : statesOf(text);
  full.value = null;
  layout.value = (text === null ? null : parseLayout(text)) ?? structuredClone(preset ?? layout.value);
}

function statesOf(text: string): Remembered {
  try {
    return readStates((JSON.parse(text) as { states?: unknown }).states, PANES);
  } catch {
    return {};
  }
}

/** The layout that was used last. */
export function openLastLayout(): void {
  openLayout((newestItem(PREFIX) ?? `${PREFIX}start`).slice(PREFIX.length));
}

/** Names of layouts, the last used first. */
export function layoutNames(): string[] {
  const used = byAge(PREFIX).map((name) => name.slice(PREFIX.length)).filter((name) => name in LAYOUTS);
  return [...used, ...Object.keys(LAYOUTS).filter((name) => !used.includes(name))];
}
export const LAYOUTS: Record<string, string> = Object.fromEntries(Object.keys(PRESETS).map((name) => [name.toLowerCase(), name]));

/** What is kept of the layout that is shown. */
export function layoutText(): string {
  return JSON.stringify({ ...layout.value, states: states.value });
}

spare.value = (kind) => another(layout.peek(), kind);

export function reveal(pane: PaneId, isFocused: boolean): void {
  if (full.value !== null && full.value !== pane) full.value = null;
  newest.value = [pane, ...newest.value.filter((one) => one !== pane)];
  layout.value = show(layout.value, pane);
  if (isFocused) focusSoon(pane);
}

export function nextPane(step: number): void {
  const shown = visiblePanes(isNarrow.value ? narrowed(layout.value, newest.value) : layout.value);
  const at = focused.value === null ? -1 : shown.indexOf(focused.value);
  const next = shown[(at + step + shown.length) % shown.length];
  if (next !== undefined) focusPane(next);
}

/** Panes that show the image; without one they say why there is none. */
const OF_IMAGE: PaneKind[] = ["workspace", "classes", "inspector", "actors", "supervision", "tests", "bindings"];

export function Pane({ pane, isVisible }: { pane: PaneId; isVisible: boolean }): JSX.Element {
  const [Body, isOfImage] = [BODIES[kindOf(pane)], OF_IMAGE.includes(kindOf(pane))];
  seen.add(pane);
  return (
    <section
      id={`pane-${pane}`}
      class={`pane ${node.value !== "running" && isOfImage ? "frozen" : ""}`}
      role="region"
      aria-label={TITLES[pane]}
      tabIndex={-1}
      onFocusIn={() => (focused.value = pane)}
    >
      {node.value === "failed" && lastError.value !== null && isOfImage ? <div class="problem" role="alert"><span class="chip danger">failed</span> {visible(lastError.value)}</div> : null}
      <Body pane={pane} isVisible={isVisible} />
    </section>
  );
}

function Menu({ pane, onClose }: { pane: PaneId; onClose: () => void }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    box.current?.querySelector("button")?.focus();
    const away = (event: Event): void => {
      if (!box.current?.contains(event.target as Node)) onClose();
    };
    document.addEventListener("pointerdown", away, true);
    return () => document.removeEventListener("pointerdown", away, true);
  }, []);
  const act = (run: () => void) => (): void => {
    onClose();
    run();
  };
  const set = (edge: Edge) => act(() => (layout.value = move(layout.value, pane, pane, edge)));
  const items: [string, () => void][] = [
    ["Full screen", act(() => (full.value = full.value === pane ? null : pane))],
    ...(layout.value.floats?.some((one) => one.pane === pane) === true
      ? [["Put back", act(() => (layout.value = sink(layout.value, pane)))] as [string, () => void]]
      : [["Split right", set("right")], ["Split down", set("below")], ["Float", act(() => { layout.value = float(layout.value, pane); focusSoon(pane); })]] as [string, () => void][]),
    ["Copy link", act(() => void navigator.clipboard?.writeText(location.href))],
    ["Close", act(() => closePane(pane))],
  ];
  return (
    <div ref={box} class="menu" role="menu" style={{ right: "4px", top: "28px" }} onKeyDown={(event) => {
      const all = [...(box.current?.querySelectorAll("button") ?? [])];
      const at = all.indexOf(document.activeElement as HTMLButtonElement);
      if (event.key === "Escape") { onClose(); focusPane(pane); }
      else if (event.key === "ArrowDown") all[(at + 1) % all.length]?.focus();
      else if (event.key === "ArrowUp") all[(at - 1 + all.length) % all.length]?.focus();
      else return;
      event.preventDefault();
    }}>
      {items.map(([title, run]) => <button key={title} role="menuitem" onClick={run}>{title}</button>)}
    </div>
  );
}

function closePane(pane: PaneId): void {
  const home = groups(layout.value).find((one) => one.tabs.includes(pane));
  layout.value = close(layout.value, pane);
  const neighbour = home?.tabs.find((one) => one !== pane) ?? visiblePanes(layout.value)[0];
  if (neighbour !== undefined) focusSoon(neighbour);
}

function edgeAt(event: DragEvent, box: DOMRect): Edge {
  const [x, y] = [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
  if (x < 0.25) return "left";
  if (x > 0.75) return "right";
  if (y > 0.7) return "below";
  return y < 0.3 && y > 0.12 ? "above" : "middle";
}

/** Sign, name, and a dot where text is edited and not saved. */
function Title({ pane }: { pane: PaneId }): JSX.Element {
  return <><span class="sign" aria-hidden="true">{SIGNS[kindOf(pane)]}</span>{TITLES[pane]}{edited.value.includes(pane) ? <span class="edited" role="img" aria-label="edited"> ●</span> : null}</>;
}

function GroupView({ group }: { group: Group }): JSX.Element {
  const hasMenu = menuOf.value === group.active;
  const setMenu = (isOpen: boolean): void => { menuOf.value = isOpen ? group.active : null; };
  const [edge, setEdge] = useState<Edge | null>(null);
  const bar = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => bar.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest", inline: "nearest" }), [group.active]);
  const onTabKey = (event: KeyboardEvent): void => {
    const at = group.tabs.indexOf(group.active);
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (event.key === "Delete") closePane(group.active);
    const next = group.tabs[(at + step + group.tabs.length) % group.tabs.length];
    if (step === 0 || next === undefined) return;
    event.preventDefault();
    reveal(next, false);
    setTimeout(() => document.getElementById(`tab-${next}`)?.focus(), 0);
  };
  return (
    <div
      class="group"
      style={{ flex: `${group.size} 1 0`, minHeight: "120px" }}
      onDragOver={(event) => {
        if (dragged.value === null) return;
        event.preventDefault();
        setEdge(edgeAt(event, event.currentTarget.getBoundingClientRect()));
      }}
      onDragLeave={(event) => { if (!event.currentTarget.contains(event.relatedTarget as Node | null)) setEdge(null); }}
      onDrop={(event) => {
        event.preventDefault();
        if (dragged.value !== null) layout.value = move(layout.value, dragged.value, group.active, edgeAt(event, event.currentTarget.getBoundingClientRect()));
        setEdge(null);
      }}
    >
      <div ref={bar} class="tabs" role="tablist" aria-label="Panes" onKeyDown={onTabKey}>
        {group.tabs.map((tab) => (
          <button
            key={tab} id={`tab-${tab}`} class="tab" role="tab" draggable={!isNarrow.value}
            aria-selected={tab === group.active} aria-controls={`pane-${tab}`} tabIndex={tab === group.active ? 0 : -1}
            onClick={() => reveal(tab, false)}
            onDragStart={() => (dragged.value = tab)} onDragEnd={() => (dragged.value = null)}
          ><Title pane={tab} /></button>
        ))}
        <span class="tools">
          <button aria-label={`Menu of ${TITLES[group.active]}`} aria-haspopup="menu" aria-expanded={hasMenu} onClick={() => setMenu(!hasMenu)}>⋯</button>
        </span>
      </div>
      {hasMenu ? <Menu pane={group.active} onClose={() => setMenu(false)} /> : null}
      {group.tabs.map((tab) => (
        <div key={tab} role="tabpanel" aria-labelledby={`tab-${tab}`} hidden={tab !== group.active} class="fill" style={tab === group.active ? {} : { display: "none" }}>
          {tab === group.active || seen.has(tab) ? <Pane pane={tab} isVisible={tab === group.active} /> : null}
        </div>
      ))}
      {edge === null ? null : <div class={`drop ${edge}`} />}
    </div>
  );
}

function Sash({ column, after }: { column: number; after: number | null }): JSX.Element {
  const isRow = after !== null;
  const self = useRef<HTMLDivElement>(null);
  const by = (percent: number): void => {
    const box = self.current?.parentElement?.getBoundingClientRect();
    const least = box === undefined ? 15 : isRow ? (120 / box.height) * 100 : (240 / box.width) * 100;
    layout.value = resize(layout.value, column, after, percent, least);
  };
  return (
    <div
      ref={self} class={`sash ${isRow ? "h" : "v"}`} role="separator" tabIndex={0} aria-orientation={isRow ? "horizontal" : "vertical"} aria-label="Border"
      onKeyDown={(event) => {
        const step = { ArrowLeft: -3, ArrowUp: -3, ArrowRight: 3, ArrowDown: 3 }[event.key];
        if (step !== undefined) { event.preventDefault(); by(step); }
      }}
      onPointerDown={(event) => {
        const sash = event.currentTarget;
        const box = sash.parentElement?.getBoundingClientRect();
        if (box === undefined) return;
        sash.setPointerCapture(event.pointerId);
        let last = isRow ? event.clientY : event.clientX;
        sash.onpointermove = (move) => {
          const at = isRow ? move.clientY : move.clientX;
          by(((at - last) / (isRow ? box.height : box.width)) * 100);
          last = at;
        };
        sash.onpointerup = () => { sash.onpointermove = null; };
      }}
    />
  );
}

/** A pane above the others: dragged by its bar, resized by its corner, both by keys too. */
function Floating({ place }: { place: Float }): JSX.Element {
  const { pane, x, y, width, height } = place;
  const hasMenu = menuOf.value === pane;
  const setMenu = (isOpen: boolean): void => { menuOf.value = isOpen ? pane : null; };
  const by = (dx: number, dy: number, isSize: boolean): void => {
    const now = layout.value.floats?.find((one) => one.pane === pane) ?? place;
    layout.value = drift(layout.value, pane, isSize ? { width: now.width + dx, height: now.height + dy } : { x: now.x + dx, y: now.y + dy });
  };
  const drag = (isSize: boolean) => (event: PointerEvent & { currentTarget: HTMLElement }): void => {
    if ((event.target as HTMLElement).closest(".tools") !== null) return;
    const [handle, dock] = [event.currentTarget, document.getElementById("main")?.getBoundingClientRect()];
    if (dock === undefined) return;
    handle.setPointerCapture(event.pointerId);
    let last = { x: event.clientX, y: event.clientY };
    handle.onpointermove = (move) => {
      by(((move.clientX - last.x) / dock.width) * 100, ((move.clientY - last.y) / dock.height) * 100, isSize);
      last = { x: move.clientX, y: move.clientY };
    };
    handle.onpointerup = () => { handle.onpointermove = null; };
  };
  const keys = (isSize: boolean) => (event: KeyboardEvent): void => {
    const step = ({ ArrowLeft: [-2, 0], ArrowRight: [2, 0], ArrowUp: [0, -2], ArrowDown: [0, 2] } as Record<string, [number, number]>)[event.key];
    if (step === undefined) return;
    event.preventDefault();
    by(step[0], step[1], isSize);
  };
  return (
    <div class="group floating" style={{ left: `${x}%`, top: `${y}%`, width: `${width}%`, height: `${height}%` }}>
      <div class="tabs" tabIndex={0} role="group" aria-label={`Move ${TITLES[pane]}`} onPointerDown={drag(false)} onKeyDown={keys(false)}>
        <span class="tab" aria-selected="true"><Title pane={pane} /></span>
        <span class="tools"><button aria-label={`Menu of ${TITLES[pane]}`} aria-haspopup="menu" aria-expanded={hasMenu} onClick={() => setMenu(!hasMenu)}>⋯</button></span>
      </div>
      {hasMenu ? <Menu pane={pane} onClose={() => setMenu(false)} /> : null}
      <div class="fill"><Pane pane={pane} isVisible={true} /></div>
      <div class="corner" tabIndex={0} role="separator" aria-label={`Size of ${TITLES[pane]}`} onPointerDown={drag(true)} onKeyDown={keys(true)} />
    </div>
  );
}

export function Dock(): JSX.Element {
  const shown = full.value === null ? (isNarrow.value ? narrowed(layout.value, newest.value) : layout.value) : { columns: [{ size: 100, groups: [{ tabs: [full.value], active: full.value, size: 100 }] }] };
  return (
    <main class={`dock ${isOnline.value ? "" : "frozen"}`} id="main">
      {shown.columns.map((column, at) => (
        <Fragment key={at}>
          {at === 0 ? null : <Sash column={at - 1} after={null} />}
          <div class="column" style={{ flex: `${column.size} 1 0`, minWidth: "240px" }}>
            {column.groups.map((group, place) => (
              <Fragment key={group.tabs.join()}>
                {place === 0 ? null : <Sash column={at} after={place - 1} />}
                <GroupView group={group} />
              </Fragment>
            ))}
          </div>
        </Fragment>
      ))}
      {full.value === null && !isNarrow.value ? (layout.value.floats ?? []).map((place) => <Floating key={place.pane} place={place} />) : null}
    </main>
  );
}
