// What the Inspector looks at. Values that have no name are held by the session under a reference.

import { signal } from "@preact/signals";
import { go, wanted } from "./routes";

export type Target = { actor: string } | { binding: string } | { class: string } | { ref: string };

export const inspected = signal<{ target: Target; title: string } | null>(null);

export function inspect(target: Target, title: string): void {
  inspected.value = { target, title };
  if ("binding" in target) go("inspect", target.binding);
  else if ("actor" in target) go("actor", target.actor);
  else wanted.value = { pane: "inspector", focus: true };
}
