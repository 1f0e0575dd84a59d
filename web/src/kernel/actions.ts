// What can be done, by name: the palette lists it, keys reach it, panes add theirs while they are there.

import { signal } from "@preact/signals";
import type { PaneId } from "./layout";

export interface Action {
  title: string;
  /** As shown: `Mod-K`, `g w`, `F`. */
  key?: string;
  /** Changes something; observers do not have it. */
  isChange?: boolean;
  run: () => void;
}

export const focused = signal<PaneId | null>(null);

const ofPanes = signal<Partial<Record<PaneId, Action[]>>>({});

/** The actions of a pane, while it lives. */
export function offer(pane: PaneId, actions: Action[]): () => void {
  ofPanes.value = { ...ofPanes.peek(), [pane]: actions };
  return () => {
    if (ofPanes.peek()[pane] === actions) ofPanes.value = { ...ofPanes.peek(), [pane]: [] };
  };
}

export function actionsOf(pane: PaneId | null): Action[] {
  return pane === null ? [] : (ofPanes.value[pane] ?? []);
}

/** The pane whose actions are offered in a sheet: after a long press on a row, or from the head of a phone. */
export const sheetOf = signal<PaneId | null>(null);

export const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

export function keyText(key: string): string {
  return key.replaceAll("Mod", isMac ? "⌘" : "Ctrl");
}

/** Whether typing goes into a text. */
export function isTyping(target: EventTarget | null): boolean {
  const element = target as HTMLElement | null;
  return element !== null && (element.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName));
}
