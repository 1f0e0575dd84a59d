// A tree from rows that name their parents, with what happened lately. Pure.

import type { SupervisedProcess } from "../../wire/protocol";

export interface Row {
  process: SupervisedProcess;
  level: number;
  isOpen: boolean | undefined;
  /** So many children are left out. */
  hidden: number;
}

/** Children shown below one parent. */
const MOST = 200;

export function rows(nodes: readonly SupervisedProcess[], closed: ReadonlySet<string>): Row[] {
  const known = new Set(nodes.map((node) => node.pid));
  const children = new Map<string | null, SupervisedProcess[]>();
  for (const node of nodes) {
    const parent = node.parent !== null && known.has(node.parent) && node.parent !== node.pid ? node.parent : null;
    const siblings = children.get(parent);
    if (siblings === undefined) children.set(parent, [node]);
    else siblings.push(node);
  }
  const found: Row[] = [];
  const seen = new Set<string>();
  const visit = (parent: string | null, level: number): void => {
    const all = children.get(parent) ?? [];
    for (const process of all.slice(0, MOST)) {
      // A loop in what was answered must not be one here.
      if (seen.has(process.pid)) continue;
      seen.add(process.pid);
      const has = children.has(process.pid);
      const isOpen = has ? !closed.has(process.pid) : undefined;
      found.push({ process, level, isOpen, hidden: 0 });
      if (isOpen === true) visit(process.pid, level + 1);
    }
    const last = found[found.length - 1];
    if (all.length > MOST && last !== undefined) last.hidden = all.length - MOST;
  };
  visit(null, 0);
  return found;
}

/** What a person calls it: the name somebody gave it, not one that was made for it. */
export function titleOf(process: SupervisedProcess): string {
  const name = process.name?.startsWith("beamtalk_") === true && process.class !== null ? null : process.name;
  return name ?? process.class ?? process.pid;
}

/** Those with a text in them, and what is above them. */
export function narrow(nodes: readonly SupervisedProcess[], text: string): readonly SupervisedProcess[] {
  if (text === "") return nodes;
  const wanted = text.toLowerCase();
  const all = new Map(nodes.map((node) => [node.pid, node]));
  const kept = new Set<string>();
  for (const node of nodes) {
    if (!`${node.pid} ${node.name ?? ""} ${node.class ?? ""}`.toLowerCase().includes(wanted)) continue;
    for (let at: SupervisedProcess | undefined = node; at !== undefined && !kept.has(at.pid); at = all.get(at.parent ?? "")) kept.add(at.pid);
  }
  return nodes.filter((node) => kept.has(node.pid));
}

export interface Happened {
  at: number;
  what: string;
  reason: string | null;
}

/** How often a child was restarted within the last minute. */
export function recent(happened: readonly Happened[], now: number): number {
  return happened.filter((one) => one.what === "restarted" && now - one.at < 60_000).length;
}
