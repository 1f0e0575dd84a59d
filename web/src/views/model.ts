// What views compute before anything is drawn. Pure.

import { grouped } from "../kernel/text";
import type { ViewNode } from "../wire/protocol";

export type Below = ReadonlyMap<string, readonly ViewNode[]>;

/** The nodes in sight, each with its depth. */
export function flat(nodes: readonly ViewNode[], below: Below, level = 0): { node: ViewNode; level: number }[] {
  return nodes.flatMap((node) => [{ node, level }, ...flat(below.get(node.node) ?? [], below, level + 1)]);
}

/** A number as an axis shows it. */
export function tick(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e15 || (size > 0 && size < 1e-3)) return value.toExponential(1);
  return Number.isInteger(value) ? grouped(value) : String(Number(value.toPrecision(4)));
}

/** The same where there is little room. */
export function short(value: number): string {
  return Math.abs(value) >= 100_000 && Math.abs(value) < 1e15 ? new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 2 }).format(value) : tick(value);
}

/** Where a number lies between two ends, from 0 to 1. */
export function share(value: number, low: number, high: number): number {
  return high === low ? 0.5 : (value - low) / (high - low);
}

/** The least and the greatest. */
export function ends(values: readonly number[]): [number, number] {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low > high ? [0, 1] : [low, high];
}
