// Classes as rows: a list by package, or a tree by superclass. Pure.

import type { ClassRow, Finding, Site } from "../../wire/protocol";
import { match, visible } from "../../kernel/text";

export interface Row {
  row: ClassRow;
  level: number;
}

/** The user's own: of the project's package, or only in the image. */
export function isOwn(row: ClassRow, project: string): boolean {
  return row.category === null || row.category === project;
}

export const OWN = "*project";
export const ALL = "*";

/** The packages there are: the project first, then those it uses, then everything. */
export function packagesOf(rows: readonly ClassRow[], project: string): { key: string; title: string; count: number }[] {
  const counts = new Map<string, number>();
  for (const row of rows) if (!isOwn(row, project)) counts.set(row.category ?? "", (counts.get(row.category ?? "") ?? 0) + 1);
  const own = rows.filter((row) => isOwn(row, project)).length;
  const others = [...counts].sort(([one], [two]) => one.localeCompare(two)).map(([key, count]) => ({ key, title: key, count }));
  return [{ key: OWN, title: project, count: own }, ...others, { key: ALL, title: "all", count: rows.length }];
}

export function filtered(rows: readonly ClassRow[], filter: string, project: string | null): ClassRow[] {
  const wanted = project === null ? rows : rows.filter((row) => isOwn(row, project));
  if (filter === "") return [...wanted].sort((one, two) => one.name.localeCompare(two.name));
  return wanted
    .map((row) => ({ row, score: match(filter, row.name) }))
    .filter((one): one is { row: ClassRow; score: number } => one.score !== null)
    .sort((one, two) => two.score - one.score)
    .map((one) => one.row);
}

/** Subclasses below their superclass; one whose superclass is not shown stands at the top. */
export function tree(rows: readonly ClassRow[]): Row[] {
  const names = new Set(rows.map((row) => row.name));
  const below = new Map<string, ClassRow[]>();
  for (const row of rows) {
    const parent = row.superclass !== null && names.has(row.superclass) && row.superclass !== row.name ? row.superclass : "";
    below.set(parent, [...(below.get(parent) ?? []), row]);
  }
  const found: Row[] = [];
  const seen = new Set<string>();
  const visit = (parent: string, level: number): void => {
    for (const row of below.get(parent) ?? []) {
      if (seen.has(row.name)) continue;
      seen.add(row.name);
      found.push({ row, level });
      visit(row.name, level + 1);
    }
  };
  visit("", 0);
  return found;
}

/** The class nearest in spelling, for an address that names none. */
export function nearest(name: string, rows: readonly ClassRow[]): string | null {
  let best: { name: string; distance: number } | null = null;
  for (const row of rows) {
    const distance = edits(name.toLowerCase(), row.name.toLowerCase());
    if (distance <= Math.max(1, Math.floor(name.length / 3)) && (best === null || distance < best.distance)) best = { name: row.name, distance };
  }
  return best?.name ?? null;
}

/** Edits from one word to another; two letters that changed places are one. */
function edits(one: string, two: string): number {
  let earlier: number[] = [];
  let before = [...Array(two.length + 1).keys()];
  for (let row = 1; row <= one.length; row += 1) {
    const next = [row];
    for (let column = 1; column <= two.length; column += 1) {
      const cost = one[row - 1] === two[column - 1] ? 0 : 1;
      let least = Math.min((next[column - 1] ?? 0) + 1, (before[column] ?? 0) + 1, (before[column - 1] ?? 0) + cost);
      if (row > 1 && column > 1 && one[row - 1] === two[column - 2] && one[row - 2] === two[column - 1]) least = Math.min(least, (earlier[column - 2] ?? 0) + 1);
      next.push(least);
    }
    [earlier, before] = [before, next];
  }
  return before[two.length] ?? 0;
}

/** A method's selector from its source: what stands before `=>`. */
export function selectorOf(source: string): string | null {
  const code = source.split("\n").filter((line) => !line.trim().startsWith("//") && line.trim() !== "");
  const head = (code[0] ?? "").replace(/^\s*(?:(?:sealed|internal|class)\s+)*/, "").split(/=>|->/)[0]?.trim() ?? "";
  const parts = [...head.matchAll(/([A-Za-z_]\w*:)/g)].map((found) => found[1]);
  if (parts.length > 0) return parts.join("");
  const binary = /^([-+*/<>=~%,&|@]+)\s/.exec(head);
  if (binary !== null) return binary[1] ?? null;
  const unary = /^([A-Za-z_]\w*)$/.exec(head);
  return unary?.[1] ?? null;
}

/** The text of a method as it stands in its file, without indentation: its documentation belongs to it. */
export function fullSource(doc: string | null, source: string): string {
  if (doc === null || doc === "") return source;
  const lines = doc.split("\n").map((line) => (line === "" ? "///" : `/// ${line}`));
  return `${lines.join("\n")}\n${source}`;
}

/** The line of a method's text that is a line of its file, counted from 1. */
export function lineOf(file: string, line: number, source: string): number | null {
  const wanted = (file.split("\n")[line - 1] ?? "").trim();
  const found = wanted === "" ? -1 : source.split("\n").findIndex((one) => one.trim() === wanted);
  return found < 0 ? null : found + 1;
}

export function siteText(site: Site): string {
  return `${site.class}${site.class_side ? " class" : ""}${site.method === null ? "" : `>>${site.method}`}`;
}

/** Where in the text of a method the messages are that findings of its class speak of. */
export function marksOf(findings: readonly Finding[], text: string): { from: number; to: number; severity: "error" | "warning"; message: string }[] {
  return findings.flatMap((found) => {
    const selector = "selector" in found ? found.selector : null;
    const word = selector?.split(":")[0] ?? "";
    const at = word === "" ? null : new RegExp(`(?<![\\w#])${word.replaceAll(/[^\w]/g, "\\$&")}(?!\\w)`).exec(text);
    if (at === null) return [];
    return [{ from: at.index, to: at.index + word.length, severity: found.severity === "error" ? ("error" as const) : ("warning" as const), message: visible(`${found.code === null ? "" : `${found.code} `}${found.message}`) }];
  });
}
