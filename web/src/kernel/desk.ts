// Layout, scratch text and settings. The daemon keeps them for an owner, because the port and so the origin changes
// with every start; an observer's stay in the tab.

import { signal } from "@preact/signals";
import { OpError } from "../wire/client";
import { client, isOwner } from "./store";

interface Item {
  text: string;
  version: number;
}

const items = new Map<string, Item>();
const timers = new Map<string, ReturnType<typeof setTimeout>>();
/** Texts not yet at the daemon; they go out when it is there again. */
const unsent = new Map<string, string>();
/** Somebody else changed an item: its name and the other text. */
export const clash = signal<{ name: string; theirs: string } | null>(null);

const local = (name: string): string => `desk/${name}`;

export async function readDesk(): Promise<void> {
  if (!isOwner.value) {
    for (const key of Object.keys(sessionStorage)) {
      if (key.startsWith("desk/")) items.set(key.slice(5), { text: sessionStorage.getItem(key) ?? "", version: 0 });
    }
    return;
  }
  const answer = await client.request("desk-read", {});
  for (const [name, item] of Object.entries(answer.items)) {
    if (item !== undefined && !unsent.has(name)) items.set(name, { text: item.text, version: item.version });
  }
  for (const [name, text] of unsent) keep(name, text, 0);
}

export function kept(name: string): string | null {
  return items.get(name)?.text ?? null;
}

export function names(prefix: string): string[] {
  return [...items.keys()].filter((name) => name.startsWith(prefix)).sort();
}

/** Keep a text, half a second after the last of a row of changes. */
export function keep(name: string, text: string, afterMs = 500): void {
  const item = items.get(name) ?? { text, version: 0 };
  item.text = text;
  items.set(name, item);
  if (!isOwner.value) return sessionStorage.setItem(local(name), text);
  unsent.set(name, text);
  clearTimeout(timers.get(name));
  timers.set(name, setTimeout(() => void send(name), afterMs));
}

/** What waits for its half second goes out now: the page may be gone before. */
export function sendAll(): void {
  for (const name of unsent.keys()) {
    clearTimeout(timers.get(name));
    void send(name);
  }
}

/** Items that are on their way: the version of the next text comes with the answer. */
const sending = new Set<string>();

async function send(name: string): Promise<void> {
  const [text, item] = [unsent.get(name), items.get(name)];
  if (text === undefined || item === undefined || !client.isOnline || sending.has(name)) return;
  sending.add(name);
  const isKept = await write(name, text, item);
  sending.delete(name);
  if (isKept && unsent.has(name)) void send(name);
}

/** Answers whether it is kept, or may be tried again. */
async function write(name: string, text: string, item: Item): Promise<boolean> {
  try {
    const { version } = await client.request("desk-write", { name, text, version: item.version });
    item.version = version;
    if (unsent.get(name) === text) unsent.delete(name);
    return true;
  } catch (cause) {
    if (!(cause instanceof OpError)) return false;
    if (cause.body.kind !== "version_conflict") {
      // Too much at once; a text is not given up for that.
      if (cause.body.kind === "busy") keep(name, unsent.get(name) ?? text, 1000);
      return false;
    }
    const theirs = cause.body.details ?? {};
    item.version = Number(theirs.version ?? 0);
    if (!name.startsWith("scratch/")) return true;
    clash.value = { name, theirs: String(theirs.text ?? "") };
    return false;
  }
}
