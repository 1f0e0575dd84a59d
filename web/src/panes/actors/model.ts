// A window of the actors with their figures, those of it that ended, and the samples of the image. Pure.

import type { Actor } from "../../wire/protocol";

export interface ActorRow {
  pid: string;
  className: string;
  name: string | null;
  spawnedAt: number | null;
  queue: number | null;
  memory: number | null;
  /** In a second, once it was looked at twice. */
  reductions: number | null;
  message: string | null;
  /** Why it ended, if it did. */
  ended: { at: number; reason: string } | null;
}

export type Order = "class" | "queue" | "memory" | "reductions" | "age" | "name";

/** What is known of an actor's work at a time. */
export type Work = ReadonlyMap<string, { at: number; reductions: number }>;

export function rowOf(actor: Actor, before: Work, now: number): ActorRow {
  const last = before.get(actor.pid);
  const rate = last === undefined || actor.reductions === undefined || now <= last.at ? null : Math.max(0, Math.round(((actor.reductions - last.reductions) * 1000) / (now - last.at)));
  return {
    pid: actor.pid, className: actor.class, name: actor.name, spawnedAt: actor.spawned_at, queue: actor.queue_len ?? null, memory: actor.memory ?? null,
    reductions: rate, message: actor.message ?? null, ended: null,
  };
}

export function workOf(actors: readonly Actor[], now: number): Work {
  return new Map(actors.flatMap((actor) => (actor.reductions === undefined ? [] : [[actor.pid, { at: now, reductions: actor.reductions }] as const])));
}

/** How long an ended actor is still shown. */
export const LINGER = 5000;

/** Those that ended, by pid, with why. */
export type Ended = ReadonlyMap<string, { at: number; reason: string }>;

export function withoutOld(ended: Ended, now: number): Ended {
  return new Map([...ended].filter(([, one]) => now - one.at < LINGER));
}

/** A window that was just asked for, with those of the one before that ended where they stood. */
export function withEnded(rows: readonly ActorRow[], before: readonly ActorRow[], ended: Ended): ActorRow[] {
  const known = new Set(rows.map((row) => row.pid));
  const all = [...rows];
  before.forEach((row, at) => {
    const end = ended.get(row.pid);
    if (end !== undefined && !known.has(row.pid)) all.splice(Math.min(at, all.length), 0, { ...row, ended: end });
  });
  return all.map((row) => ({ ...row, ended: ended.get(row.pid) ?? null }));
}

/** A series of a chart: times, and a column of numbers for each name. */
export interface Series {
  at: number[];
  values: number[][];
}

/** Samples of the image: what their numbers are, the first being the time. */
export interface Samples {
  fields: string[];
  rows: number[][];
}

/** Samples with later ones behind them; the oldest go. */
export function joined(known: Samples | null, fields: string[], rows: number[][], most: number): Samples {
  if (known === null) return { fields, rows: rows.slice(-most) };
  const last = known.rows.at(-1)?.[0] ?? 0;
  return { fields, rows: [...known.rows, ...rows.filter((row) => (row[0] ?? 0) > last)].slice(-most) };
}

export function seriesOf(samples: Samples, names: readonly string[]): Series {
  const places = names.map((name) => samples.fields.indexOf(name));
  return { at: samples.rows.map((row) => row[0] ?? 0), values: places.map((place) => samples.rows.map((row) => row[place] ?? 0)) };
}
