// What the Inspectors look at. Values that have no name are held by the session under a reference.

import { signal, type Signal } from "@preact/signals";
import type { PaneId } from "./layout";
import { goIn, landing, wanted } from "./routes";

export type Target = { actor: string } | { binding: string } | { class: string } | { ref: string };
export interface Subject {
  target: Target;
  title: string;
}

const subjects = new Map<PaneId, Signal<Subject | null>>();

/** What one of them looks at. */
export function inspectedIn(pane: PaneId): Signal<Subject | null> {
  const known = subjects.get(pane) ?? signal<Subject | null>(null);
  subjects.set(pane, known);
  return known;
}

export function inspect(target: Target, title: string, pane = landing("inspector")): void {
  inspectedIn(pane).value = { target, title };
  if ("binding" in target) goIn(pane, "inspect", target.binding);
  else if ("actor" in target) goIn(pane, "actor", target.actor);
  else wanted.value = { pane, focus: true };
}
