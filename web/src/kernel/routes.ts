// Places that have an address: `#/class/Lamp/toggle`. A link opens something and never runs, saves or sends anything.

import { signal } from "@preact/signals";
import type { PaneId, PaneKind } from "./layout";

export interface Place {
  pane: PaneId;
  /** What of the pane, in its own words. */
  parts: string[];
}

const FIRST: Record<string, PaneKind> = {
  workspace: "workspace", class: "classes", senders: "classes", implementors: "classes", references: "classes",
  actor: "inspector", inspect: "inspector", actors: "actors", supervision: "supervision", transcript: "transcript",
  file: "classes", changes: "changes", test: "tests", bindings: "bindings", log: "log", audit: "audit",
};

/** The place an address names, or null. */
export function parse(hash: string): Place | null {
  if (!hash.startsWith("#/")) return null;
  const parts = hash.slice(2).split("/").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  const first = parts[0] ?? "";
  const pane = Object.hasOwn(FIRST, first) ? FIRST[first] : undefined;
  return pane === undefined ? null : { pane, parts: parts.filter((part, at) => at === 0 || part !== "") };
}

export function format(parts: string[]): string {
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

/** A path with a line behind it, as in `src/Lamp.bt:12`. */
export function readFilePlace(parts: readonly string[]): { path: string; line: number | null } {
  const text = parts.join("/");
  const found = /^(.*):(\d+)$/.exec(text);
  return found === null ? { path: text, line: null } : { path: found[1] ?? "", line: Number(found[2]) };
}

/** A line of a file that is to be marked where its method is shown, and since when that is wanted. */
export const marked = signal<{ file: string; line: number; at: number } | null>(null);

/** How many places are remembered. */
const MOST = 50;

/** A list with one more place on top. */
export function visited(list: readonly string[], hash: string): string[] {
  return [hash, ...list.filter((one) => one !== hash)].slice(0, MOST);
}

/** Addresses that were kept; whatever is none is left out. */
export function readRecent(text: string | null): string[] {
  try {
    const read: unknown = JSON.parse(text ?? "[]");
    return Array.isArray(read) ? read.filter((one): one is string => typeof one === "string" && parse(one) !== null).slice(0, MOST) : [];
  } catch {
    return [];
  }
}

/** Where the page is. Panes look at it and open what it names. */
export const place = signal<Place | null>(null);
/** Told when a pane is to be seen; the shell shows it. */
export const wanted = signal<{ pane: PaneId; focus: boolean } | null>(null);

function reach(hash: string, focus: boolean, pane?: PaneId): void {
  const next = parse(hash);
  if (next === null) return;
  place.value = { ...next, pane: pane ?? next.pane };
  wanted.value = { pane: pane ?? next.pane, focus };
}

/** Whether the last click or key was with Shift: what is opened then gets a tab of its own. */
let isShift = false;
/** One more pane of a kind; the shell knows which are there. */
export const spare = signal<(kind: PaneKind) => PaneId>((kind) => kind);

/** The pane that something opens in: one of its own with Shift, where there may be several. */
export function landing(kind: PaneKind): PaneId {
  if (!isShift || (kind !== "classes" && kind !== "inspector")) return kind;
  isShift = false;
  return spare.peek()(kind);
}

/** Open a place: Back comes back from it. */
export function go(...parts: string[]): void {
  const kind = FIRST[parts[0] ?? ""];
  if (kind !== undefined) goIn(landing(kind), ...parts);
}

/** The same in a certain pane. */
export function goIn(pane: PaneId, ...parts: string[]): void {
  const hash = format(parts);
  if (location.hash !== hash) history.pushState(null, "", hash);
  reach(hash, true, pane);
}

/** Something was selected where the page is already: the address follows. */
export function note(...parts: string[]): void {
  history.replaceState(null, "", format(parts));
}

export function startRoutes(): void {
  const hold = (event: MouseEvent | KeyboardEvent): void => {
    isShift = event.shiftKey;
    setTimeout(() => { isShift = false; }, 0);
  };
  document.addEventListener("click", hold, true);
  document.addEventListener("dblclick", hold, true);
  // Shift with Enter in a text prints; in a list it opens.
  document.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.target as HTMLElement | null)?.isContentEditable === false) hold(event); }, true);
  addEventListener("popstate", () => reach(location.hash, false));
  // Most browsers tell both of a new address; once is enough.
  addEventListener("hashchange", () => { if (place.peek() === null || format(place.peek()?.parts ?? []) !== location.hash) reach(location.hash, false); });
  if (location.hash !== "") reach(location.hash, false);
}
