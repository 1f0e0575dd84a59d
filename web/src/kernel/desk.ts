// Layout, scratch text and settings. The daemon keeps them for an owner, because the port and so the origin changes
// with every start; an observer's stay in the tab.

import { signal } from "@preact/signals";
import { OpError } from "../wire/client";
import { merge } from "./merge";
import { client, isOwner, phase } from "./store";

interface Item {
  text: string;
  version: number;
  /** The text of that version: what changes of this tab and of others started from. */
  base: string;
  /** When it was kept, as the daemon says. */
  at: number;
}

const items = new Map<string, Item>();
const timers = new Map<string, ReturnType<typeof setTimeout>>();
/** Texts not yet at the daemon; they go out when it is there again. */
const unsent = new Map<string, string>();
/** Somebody else changed an item in the same place: its name and the other text. */
export const clash = signal<{ name: string; theirs: string } | null>(null);
/** Texts that have somebody else's changes in them now. */
export const arrived = signal<readonly { name: string; text: string; isMerged: boolean }[]>([]);

const local = (name: string): string => `desk/${name}`;

export async function readDesk(): Promise<void> {
  if (!isOwner.value) {
    for (const key of Object.keys(sessionStorage)) {
      if (key.startsWith("desk/")) items.set(key.slice(5), { text: sessionStorage.getItem(key) ?? "", version: 0, base: "", at: 0 });
    }
    return;
  }
  takeLeft();
  const answer = await client.request("desk-read", {});
  const news: { name: string; text: string; isMerged: boolean }[] = [];
  for (const [name, item] of Object.entries(answer.items)) {
    if (item === undefined) continue;
    const known = items.get(name);
    if (unsent.get(name) === item.text) unsent.delete(name);
    if (!unsent.has(name) || known === undefined) items.set(name, { text: item.text, version: item.version, base: item.text, at: Number(item.at) });
    if (known !== undefined && known.text !== item.text && !unsent.has(name)) news.push({ name, text: item.text, isMerged: false });
  }
  if (news.length > 0) arrived.value = news;
  for (const [name, text] of unsent) keep(name, text, 0);
}

/** Other tabs write the same texts: what they change is shown as it comes. */
export function watchDesk(): void {
  if (!isOwner.value) return;
  client.on("desk", (event) => {
    if (event.event !== "changed") return;
    const { name, version } = event.data;
    if (!name.startsWith("scratch/") || sending.has(name) || version <= (items.get(name)?.version ?? 0)) return;
    client.request("desk-read", { names: [name] }).then(({ items: found }) => {
      const item = found[name];
      if (item !== undefined && item.version > (items.get(name)?.version ?? 0)) theirs(name, item.text, item.version);
    }, () => undefined);
  });
}

/** Another text of an item: taken where this tab changed nothing, joined where both changed other lines, else asked about. */
function theirs(name: string, text: string, version: number): void {
  const item = items.get(name) ?? { text, version, base: text, at: 0 };
  items.set(name, item);
  const mine = unsent.get(name);
  const joined = mine === undefined ? text : merge(item.base, mine, text);
  item.version = version;
  if (joined === null) {
    clash.value = { name, theirs: text };
    return;
  }
  item.base = text;
  item.text = joined;
  if (joined === text) unsent.delete(name);
  else keep(name, joined, 0);
  arrived.value = [{ name, text: joined, isMerged: mine !== undefined }];
}

/** The names of items, the last kept first. */
export function byAge(prefix: string): string[] {
  return [...items].filter(([name]) => name.startsWith(prefix)).sort(([, one], [, two]) => two.at - one.at).map(([name]) => name);
}

export function newest(prefix: string): string | null {
  return byAge(prefix)[0] ?? null;
}

/** Keep an item no longer. */
export function forget(name: string): void {
  const item = items.get(name);
  items.delete(name);
  unsent.delete(name);
  clearTimeout(timers.get(name));
  if (!isOwner.value) sessionStorage.removeItem(local(name));
  else if (item !== undefined) client.request("desk-write", { name, version: item.version }).catch(() => undefined);
}

export function kept(name: string): string | null {
  return items.get(name)?.text ?? null;
}

export function names(prefix: string): string[] {
  return [...items.keys()].filter((name) => name.startsWith(prefix)).sort();
}

/** Keep a text, half a second after the last of a row of changes. */
export function keep(name: string, text: string, afterMs = 500): void {
  const item = items.get(name) ?? { text, version: 0, base: "", at: 0 };
  // What came from another tab goes nowhere from here.
  if (items.has(name) && item.text === text && !unsent.has(name) && afterMs > 0) return;
  item.text = text;
  item.at = Date.now();
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

const LEFT = "unsent";

/** The page goes: what may not reach the daemon any more is left for the page that follows in this tab. */
export function leave(): void {
  sendAll();
  const left = phase.peek().is === "logged-out" ? [] : [...unsent.keys()].flatMap((name) => { const item = items.get(name); return item === undefined ? [] : [[name, item]]; });
  sessionStorage.removeItem(LEFT);
  try {
    if (left.length > 0) sessionStorage.setItem(LEFT, JSON.stringify(left));
  } catch {
    // More than a browser keeps: then only what was sent counts.
  }
}

/** What the page before this one left goes out as if it had been changed here. */
function takeLeft(): void {
  const left = JSON.parse(sessionStorage.getItem(LEFT) ?? "[]") as [string, Item][];
  sessionStorage.removeItem(LEFT);
  for (const [name, item] of left) {
    items.set(name, item);
    unsent.set(name, item.text);
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
    item.base = text;
    if (unsent.get(name) === text) unsent.delete(name);
    return true;
  } catch (cause) {
    if (!(cause instanceof OpError)) return false;
    if (cause.body.kind !== "version_conflict") {
      // Too much at once; a text is not given up for that.
      if (cause.body.kind === "busy") keep(name, unsent.get(name) ?? text, 1000);
      return false;
    }
    const other = cause.body.details ?? {};
    // The last arrangement of panes or settings counts.
    if (name.startsWith("scratch/")) theirs(name, String(other.text ?? ""), Number(other.version ?? 0));
    else item.version = Number(other.version ?? 0);
    return !name.startsWith("scratch/");
  }
}
