// The last places that were opened, newest first, kept with the desk.

import { effect, signal } from "@preact/signals";
import { keep, kept } from "./desk";
import { format, place, readRecent, visited } from "./routes";

/** Their addresses. */
export const recent = signal<readonly string[]>([]);

export function startRecent(): void {
  recent.value = readRecent(kept("recent"));
  effect(() => {
    const at = place.value;
    // A pane alone is no place.
    if (at === null || at.parts.length < 2) return;
    const next = visited(recent.peek(), format(at.parts));
    if (next[0] === recent.peek()[0]) return;
    recent.value = next;
    keep("recent", JSON.stringify(next));
  });
}
