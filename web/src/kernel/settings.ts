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
  /** Transcript and Log follow their end. */
  follow: boolean;
  diff: "unified" | "split";
  /** A screen reader is told values and what the Transcript says, not only that something came. */
  reader: boolean;
  /** Calls that wait are told by the browser while the page is hidden. */
  notify: boolean;
}

/** Those that are on or off, with what they are called. */
export const SWITCHES = { letters: "Single letter keys", wrap: "Wrap long lines", line_numbers: "Line numbers", autocomplete: "Complete while typing", follow: "Follow the end", reader: "Screen reader mode", notify: "Notify of calls that wait" } as const;

const DEFAULTS: Settings = { theme: "system", letters: true, wrap: true, line_numbers: true, autocomplete: true, follow: true, diff: "unified", reader: false, notify: false };

export const settings = signal<Settings>(DEFAULTS);

effect(() => {
  document.documentElement.dataset.theme = settings.value.theme;
});

export function readSettings(): void {
  try {
    const read = JSON.parse(kept("settings") ?? "{}") as Partial<Settings>;
    const next = { ...DEFAULTS };
    if (read.theme === "light" || read.theme === "dark") next.theme = read.theme;
    if (read.diff === "split") next.diff = read.diff;
    for (const name of Object.keys(SWITCHES) as (keyof typeof SWITCHES)[]) {
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

/** Turn a switch; answers what to say about it. The browser is asked before it may notify. */
export async function flip(name: keyof typeof SWITCHES): Promise<string> {
  const isOn = !settings.value[name];
  if (name === "notify" && isOn && (!("Notification" in globalThis) || (await Notification.requestPermission()) !== "granted")) return "The browser does not allow notifications";
  change({ [name]: isOn });
  return `${SWITCHES[name]}: ${isOn ? "on" : "off"}`;
}
