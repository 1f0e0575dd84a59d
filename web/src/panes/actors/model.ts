// Actors as rows with their figures, and the rate between two looks. Pure.

import type { Actor, TopActor } from "../../wire/protocol";

export interface ActorRow {
  pid: string;
  className: string;
  name: string | null;
  spawnedAt: number | null;
  queue: number | null;
  memory: number | null;
  reductions: number | null;
  message: string | null;
  /** Why it ended, if it did. */
  ended: { at: number; reason: string } | null;
}

export type Order = "class" | "queue" | "memory" | "reductions" | "age" | "name";

export function rowOf(actor: Actor): ActorRow {
  return { pid: actor.pid, className: actor.class, name: actor.name, spawnedAt: actor.spawned_at, queue: null, memory: null, reductions: null, message: null, ended: null };
}

/** Rows with the figures of those that were looked at closely. */
export function withFigures(rows: readonly ActorRow[], top: readonly TopActor[]): ActorRow[] {
  const known = new Map(top.map((one) => [one.pid, one]));
  return rows.map((row) => {
    const found = known.get(row.pid);
    return found === undefined ? row : { ...row, queue: found.queue_len, memory: found.memory, reductions: found.reductions, message: found.message };
  });
}

export function ordered(rows: readonly ActorRow[], order: Order, isDescending: boolean): ActorRow[] {
  const sign = isDescending ? -1 : 1;
  const value = (row: ActorRow): string | number => {
    if (order === "class") return row.className;
    if (order === "name") return row.name ?? "";
    if (order === "age") return row.spawnedAt ?? 0;
    return row[order] ?? -1;
  };
  return [...rows].sort((one, two) => {
    const [first, second] = [value(one), value(two)];
    const compared = typeof first === "string" ? first.localeCompare(String(second)) : first - Number(second);
    return compared === 0 ? one.pid.localeCompare(two.pid) : compared * sign;
  });
}

/** How long an ended actor is still shown. */
export const LINGER = 5000;

export function withoutOld(rows: readonly ActorRow[], now: number): ActorRow[] {
  return rows.filter((row) => row.ended === null || now - row.ended.at < LINGER);
}

/** A kept series: the newest points, as columns. */
export interface Series {
  at: number[];
  values: number[][];
}

export function pushed(series: Series, at: number, values: number[], most: number): Series {
  const cut = Math.max(0, series.at.length + 1 - most);
  return { at: [...series.at.slice(cut), at], values: values.map((value, index) => [...(series.values[index] ?? []).slice(cut), value]) };
}
