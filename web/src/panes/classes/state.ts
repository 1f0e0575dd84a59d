// What the class browser has chosen and what it heard of: shared by its parts, kept when it is closed.

import { signal, type Signal } from "@preact/signals";
import type { PaneId } from "../../kernel/layout";
import { format, note } from "../../kernel/routes";
import { remember } from "../../kernel/states";
import { client } from "../../kernel/store";
import type { Conflict, Finding, Side } from "../../wire/protocol";

export interface Chosen {
  className: string | null;
  side: Side;
  selector: string | null;
}
export type Tab = "source" | "definition" | "comment" | "senders" | "implementors" | "file" | "generated";

/** One class browser: there may be several. */
export interface Browser {
  pane: PaneId;
  chosen: Signal<Chosen>;
  tab: Signal<Tab>;
  /** Asks for a new class. */
  naming: Signal<() => void>;
}
const all = new Map<PaneId, Browser>();

export function browserIn(pane: PaneId): Browser {
  const known = all.get(pane) ?? { pane, chosen: signal<Chosen>({ className: null, side: "instance", selector: null }), tab: signal<Tab>("source"), naming: signal(() => undefined) };
  all.set(pane, known);
  return known;
}
/** Counts up when classes changed. */
export const changes = signal(0);
/** When classes were last changed. */
export const changedAt = new Map<string, number>();
export const dirty = signal<Record<string, string[] | undefined>>({});
let isListening = false;
let [recheck, counting]: (ReturnType<typeof setTimeout> | undefined)[] = [];

export function listen(): void {
  if (isListening) return;
  isListening = true;
  client.on("classes", (event) => {
    changes.value += 1;
    if ("data" in event && "class" in event.data) changedAt.set(String(event.data.class), Date.now());
    // What was found may be no more; only a check of everything says so.
    clearTimeout(recheck);
    if (found.value.length > 0) recheck = setTimeout(() => void client.request("recheck-image", {}).then((now) => { found.value = now.findings; }, () => undefined), 300);
  });
  // What was flushed or reverted is no longer apart from its file.
  client.on("changes", () => {
    clearTimeout(counting);
    counting = setTimeout(readDirty, 150);
  });
  client.on("reload_check", (event) => {
    if (event.event !== "completed") return;
    const { checked_owners, findings } = event.data;
    found.value = [...found.value.filter((one) => !checked_owners.includes(ownerOf(one))), ...findings];
  });
}

/** What the last checks found, for all classes. */
export const found = signal<readonly Finding[]>([]);

export function ownerOf(finding: Finding): string {
  return "owner" in finding ? finding.owner : "";
}

export function choose({ pane, chosen }: Browser, next: Partial<Chosen>): void {
  chosen.value = { ...chosen.value, ...next };
  const { className, side, selector } = chosen.value;
  if (className === null) return;
  const address = ["class", side === "class" ? `${className}.class` : className, ...(selector === null ? [] : [selector])];
  note(...address);
  // The first follows the address; another one remembers its place with the layout.
  if (pane !== "classes") remember(pane, "at", format(address));
}

/** Files whose text on disk and in the image both changed. */
export const conflicts = signal<readonly Conflict[]>([]);

/** Which methods are not in their files yet, and which files are in conflict. */
export function readDirty(): void {
  client.request("dirty", {}).then((answer) => { dirty.value = answer.dirty; }, () => undefined);
  client.request("changes", {}).then((answer) => { conflicts.value = answer.conflicts; }, () => undefined);
}

/** Whether this is still what is chosen: an answer may come when somebody has gone on. */
export function isChosen({ chosen }: Browser, className: string, selector: string | null): boolean {
  return chosen.peek().className === className && chosen.peek().selector === selector;
}
