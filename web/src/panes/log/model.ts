// Entries of the log from two ways, the files and what is told, as one list in the order of time. Pure.

export interface Entry {
  key: number;
  time: string;
  level: string;
  domain: string;
  where: string;
  msg: string;
}

export const MOST = 10_000;

const mark = (entry: Entry): string => `${entry.time} ${entry.level} ${entry.msg}`;

/** Both together: what came both ways stands once. Two equal entries of one way are two. */
export function together(old: readonly Entry[], fresh: readonly Entry[]): Entry[] {
  const left = new Map<string, number>();
  for (const entry of old) left.set(mark(entry), (left.get(mark(entry)) ?? 0) + 1);
  const more = fresh.filter((entry) => {
    const count = left.get(mark(entry)) ?? 0;
    left.set(mark(entry), count - 1);
    return count <= 0;
  });
  const last = old.at(-1)?.time ?? "";
  const all = more.every((entry) => entry.time >= last) ? [...old, ...more] : [...old, ...more].sort((one, two) => (one.time < two.time ? -1 : one.time > two.time ? 1 : one.key - two.key));
  return all.slice(-MOST);
}

export interface Frame {
  text: string;
  /** Where it leads, in the words of an address; null where it leads nowhere. */
  to: string[] | null;
}

/** The lines of a report below its first, with the methods and places of source in them: `Lamp>>toggle/0 (Lamp.bt:12)`. */
export function frames(msg: string): Frame[] {
  return msg.split("\n").slice(1).map((text) => {
    const method = /^\s*([A-Z]\w*)( class)?>>([^\s(]+?)(?:\/\d+)?(?=\s|$)/.exec(text);
    const file = /((?:[\w.-]+\/)+[\w.-]+\.bt):(\d+)/.exec(text);
    if (method !== null) return { text, to: ["class", `${method[1] ?? ""}${method[2] === undefined ? "" : ".class"}`, method[3] ?? ""] };
    return { text, to: file === null ? null : ["file", ...`${file[1] ?? ""}:${file[2] ?? "1"}`.split("/")] };
  });
}
