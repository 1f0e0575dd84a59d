// What panes remember with the layout they are in: filters, order, selection.

import { signal } from "@preact/signals";
import type { PaneId } from "./layout";

export type Remembered = Record<string, Record<string, string>>;

export const states = signal<Remembered>({});

/** The longest text that is remembered. */
const LONGEST = 200;

export function remember(pane: PaneId, key: string, text: string): void {
  const value = text.slice(0, LONGEST);
  if (states.peek()[pane]?.[key] === value) return;
  states.value = { ...states.peek(), [pane]: { ...states.peek()[pane], [key]: value } };
}

/** What was kept, as far as it is what it should be. */
export function readStates(read: unknown, panes: readonly string[]): Remembered {
  if (typeof read !== "object" || read === null) return {};
  const texts = (of: unknown): Record<string, string> => Object.fromEntries(Object.entries(of ?? {}).filter((pair): pair is [string, string] => typeof pair[1] === "string" && pair[1].length <= LONGEST).slice(0, 20));
  return Object.fromEntries(Object.entries(read).filter(([pane]) => panes.includes(pane)).map(([pane, of]) => [pane, texts(of)]));
}

/** Panes with text that is nowhere else yet. */
export const edited = signal<readonly PaneId[]>([]);

export function setEdited(pane: PaneId, isEdited: boolean): void {
  if (edited.peek().includes(pane) !== isEdited) edited.value = isEdited ? [...edited.peek(), pane] : edited.peek().filter((one) => one !== pane);
}
