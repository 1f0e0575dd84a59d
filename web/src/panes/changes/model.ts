// Changes as rows by file, a diff as lines, and the text that is made of base, image and disk. Pure.

import type { ChangesAnswer, EntryView, Place } from "../../wire/protocol";

export interface Section {
  title: string;
  entries: EntryView[];
}

export function sections(answer: ChangesAnswer): Section[] {
  const conflicting = new Set(answer.conflicts.flatMap((conflict) => conflict.seqs));
  const active = answer.entries.filter((entry) => entry.active);
  const found = [
    { title: "Conflicts", entries: active.filter((entry) => conflicting.has(entry.seq)) },
    { title: "Pending", entries: active.filter((entry) => !conflicting.has(entry.seq)) },
    { title: "From the last run", entries: answer.waiting },
    { title: "Earlier", entries: answer.entries.filter((entry) => !entry.active && !answer.waiting.some((one) => one.seq === entry.seq)).slice(-200).reverse() },
  ];
  return found.filter((section) => section.entries.length > 0);
}

/** Entries under the names of their files, in the order they came. */
export function byFile(entries: readonly EntryView[]): { file: string; entries: EntryView[] }[] {
  const files = new Map<string, EntryView[]>();
  for (const entry of entries) {
    const file = entry.source_file ?? "no file";
    const known = files.get(file);
    if (known === undefined) files.set(file, [entry]);
    else known.push(entry);
  }
  return [...files].map(([file, of]) => ({ file, entries: of }));
}

/** Who made a change, for a person. */
export function authorOf(entry: EntryView, own: string | null): string {
  if (entry.author === own) return "this tab";
  return entry.author_kind === "agent" ? `agent ${entry.author}` : entry.author;
}

export function nameOf(entry: EntryView): string {
  const side = entry.side === "class" ? " class" : "";
  return entry.selector === null ? entry.class : `${entry.class}${side}>>${entry.selector}`;
}

export interface DiffLine {
  kind: "plus" | "minus" | "head" | "same";
  text: string;
}

export function diffLines(diff: string): DiffLine[] {
  return diff.replace(/\n$/, "").split("\n").map((text, at) => {
    // Only the first two lines name files; further down `---` is a line that went.
    if (text.startsWith("@@") || (at < 2 && /^(---|\+\+\+)/.test(text))) return { kind: "head", text };
    return { kind: text.startsWith("+") ? "plus" : text.startsWith("-") ? "minus" : "same", text };
  });
}

/** The lines of a diff side by side: what went beside what came. */
export function pairs(lines: readonly DiffLine[]): [DiffLine | null, DiffLine | null][] {
  const found: [DiffLine | null, DiffLine | null][] = [];
  for (let at = 0; at < lines.length; ) {
    const line = lines[at];
    if (line === undefined) break;
    const next = lines[at + 1];
    if (line.kind === "head" && line.text.startsWith("---") && next?.kind === "head") {
      found.push([line, next]);
      at += 2;
      continue;
    }
    if (line.kind === "same" || line.kind === "head") {
      found.push([line, line]);
      at += 1;
      continue;
    }
    const [gone, came]: [DiffLine[], DiffLine[]] = [[], []];
    for (; lines[at]?.kind === "minus"; at += 1) gone.push(lines[at] as DiffLine);
    for (; lines[at]?.kind === "plus"; at += 1) came.push(lines[at] as DiffLine);
    for (let row = 0; row < Math.max(gone.length, came.length); row += 1) found.push([gone[row] ?? null, came[row] ?? null]);
  }
  return found;
}

export type Choice = "image" | "disk" | "both" | null;

/** Both sides changed it, and not to the same. */
export function isContested(place: Place): boolean {
  return place.image !== place.disk && place.image !== place.base && place.disk !== place.base;
}

/** The choice that needs nobody: whoever changed it is right. */
export function plainChoice(place: Place): Choice {
  if (isContested(place)) return null;
  return place.disk === place.base ? "image" : "disk";
}

export const OPEN = "<<<<<<< image";
const MIDDLE = "=======";
const CLOSE = ">>>>>>> disk";

/** A definition as the file has it, with the indentation of its lines; what was typed may have another. */
function asInFile(file: string, text: string): string {
  const wanted = text.replace(/\n$/, "").split("\n").map((line) => line.trim());
  const lines = file.split("\n");
  for (let at = 0; at + wanted.length <= lines.length; at += 1) {
    if (!wanted.every((line, step) => lines[at + step]?.trim() === line)) continue;
    const found = lines.slice(at, at + wanted.length).join("\n");
    return (/^\s/.test(text) ? found : found.trimStart()) + (text.endsWith("\n") ? "\n" : "");
  }
  return text;
}

function chosenText(place: Place, choice: Choice, imageFile: string): string {
  const [image, disk] = [asInFile(imageFile, place.image ?? ""), place.disk ?? ""];
  if (choice === "image") return image;
  if (choice === "disk") return disk;
  const joined = [image, disk].filter((text) => text !== "");
  if (choice === "both") return joined.join("\n");
  return [OPEN, image.replace(/\n$/, ""), MIDDLE, disk.replace(/\n$/, ""), CLOSE].join("\n") + (disk.endsWith("\n") ? "\n" : "");
}

/** The file's text with each place as it was chosen; a place nobody decided has conflict marks. */
export function merged(disk: string, places: readonly Place[], choices: readonly Choice[], imageFile = ""): string {
  let text = disk;
  places.forEach((place, at) => {
    const choice = choices[at] ?? plainChoice(place);
    if (choice === "disk") return;
    const next = chosenText(place, choice, imageFile);
    if (place.disk !== null && place.disk !== "" && text.includes(place.disk)) text = text.replace(place.disk, () => next);
    else if (next !== "") text = `${text.replace(/\n*$/, "\n\n")}${next.replace(/\n*$/, "\n")}`;
  });
  return text;
}

/** The change from one text to another, made in a third that has the changed part too. */
export function replaced(before: string, after: string, text: string): { from: number; to: number; insert: string } | null {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  // Whole lines: a part of one may be anywhere.
  start = before.lastIndexOf("\n", start - 1) + 1;
  let end = 0;
  while (end < before.length - start && end < after.length - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end += 1;
  const part = before.slice(start, before.length - end);
  const from = part === "" ? -1 : text.indexOf(part);
  return from < 0 ? null : { from, to: from + part.length, insert: after.slice(start, after.length - end) };
}

export function hasMarks(text: string): boolean {
  return text.split("\n").some((line) => /^\s*(<<<<<<<|>>>>>>>)/.test(line));
}

/** A definition cut out of its file: its first line has lost the indentation the others have. */
export function dedented(text: string): string {
  const [first = "", ...rest] = text.split("\n");
  if (/^\s/.test(first)) return text;
  const least = Math.min(...rest.filter((line) => line.trim() !== "").map((line) => line.length - line.trimStart().length), 80);
  return [first, ...rest.map((line) => line.slice(least === 80 ? 0 : Math.min(least, line.length - line.trimStart().length)))].join("\n");
}
