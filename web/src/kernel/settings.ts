// Settings of the person at the page, kept on the desk.

import { effect, signal } from "@preact/signals";
import { keep, kept } from "./desk";

export interface Settings {
  theme: "system" | "light" | "dark";
  /** Single letters act in pane mode. */
  letters: boolean;
  wrap: boolean;
  line_numbers: boolean;
  autocomplete: boolean;
}

const DEFAULTS: Settings = { theme: "system", letters: true, wrap: true, line_numbers: true, autocomplete: true };

export const settings = signal<Settings>(DEFAULTS);

effect(() => {
  document.documentElement.dataset.theme = settings.value.theme;
});

export function readSettings(): void {
  try {
    const read = JSON.parse(kept("settings") ?? "{}") as Partial<Settings>;
    const next = { ...DEFAULTS };
    if (read.theme === "light" || read.theme === "dark") next.theme = read.theme;
    for (const name of ["letters", "wrap", "line_numbers", "autocomplete"] as const) {
      if (typeof read[name] === "boolean") next[name] = read[name];
    }
    settings.value = next;
  } catch {
    settings.value = DEFAULTS;
  }
}

export function change(next: Partial<Settings>): void {
  settings.value = { ...settings.value, ...next };
  keep("settings", JSON.stringify(settings.value));
}
