// Texts by line: how one became another, and two changes of one text as one. Pure.

/** So many lines on each side are compared; past that a text is one change as a whole. */
const MOST = 3000;

export interface Piece {
  /** Lines of the first text from here to there became these of the second. */
  from: number;
  to: number;
  lines: readonly string[];
}

/** The smallest changes from one text to another, in order. */
export function changes(one: readonly string[], two: readonly string[]): Piece[] {
  let start = 0;
  while (start < one.length && start < two.length && one[start] === two[start]) start += 1;
  let end = 0;
  while (end < one.length - start && end < two.length - start && one[one.length - 1 - end] === two[two.length - 1 - end]) end += 1;
  const [left, right] = [one.slice(start, one.length - end), two.slice(start, two.length - end)];
  if (left.length === 0 && right.length === 0) return [];
  if (left.length === 0 || right.length === 0 || left.length > MOST || right.length > MOST) return [{ from: start, to: start + left.length, lines: right }];
  // Length of the longest common rest, from each pair of places on.
  const width = right.length + 1;
  const common = new Uint16Array((left.length + 1) * width);
  for (let row = left.length - 1; row >= 0; row -= 1) {
    for (let column = right.length - 1; column >= 0; column -= 1) {
      common[row * width + column] = left[row] === right[column] ? (common[(row + 1) * width + column + 1] ?? 0) + 1 : Math.max(common[(row + 1) * width + column] ?? 0, common[row * width + column + 1] ?? 0);
    }
  }
  const found: Piece[] = [];
  let [row, column] = [0, 0];
  while (row < left.length || column < right.length) {
    if (row < left.length && column < right.length && left[row] === right[column]) {
      [row, column] = [row + 1, column + 1];
      continue;
    }
    const [fromRow, fromColumn] = [row, column];
    while ((row < left.length || column < right.length) && !(row < left.length && column < right.length && left[row] === right[column])) {
      if (column >= right.length || (row < left.length && (common[(row + 1) * width + column] ?? 0) >= (common[row * width + column + 1] ?? 0))) row += 1;
      else column += 1;
    }
    found.push({ from: start + fromRow, to: start + row, lines: right.slice(fromColumn, column) });
  }
  return found;
}

/** Both changes of a text, or null where they touch the same lines. */
export function merge(base: string, mine: string, theirs: string): string | null {
  if (mine === theirs || theirs === base) return mine;
  if (mine === base) return theirs;
  const lines = base.split("\n");
  const [own, other] = [changes(lines, mine.split("\n")), changes(lines, theirs.split("\n"))];
  const all = [...own, ...other].sort((one, two) => one.from - two.from || one.to - two.to);
  const merged: string[] = [];
  let at = 0;
  for (const [index, piece] of all.entries()) {
    const before = all[index - 1];
    if (before !== undefined && before.from === piece.from && before.to === piece.to && before.lines.join("\n") === piece.lines.join("\n")) continue;
    // Lines side by side are one place to a person.
    if (before !== undefined && own.includes(before) !== own.includes(piece) && piece.from <= before.to) return null;
    merged.push(...lines.slice(at, piece.from), ...piece.lines);
    at = piece.to;
  }
  return [...merged, ...lines.slice(at)].join("\n");
}

export interface DiffRow {
  kind: "same" | "minus" | "plus";
  text: string;
}

/** All lines of both texts, with what went before what came. */
export function compared(one: string, two: string): DiffRow[] {
  const lines = one.split("\n");
  const rows: DiffRow[] = [];
  let at = 0;
  const same = (to: number): void => { for (; at < to; at += 1) rows.push({ kind: "same", text: lines[at] ?? "" }); };
  for (const piece of changes(lines, two.split("\n"))) {
    same(piece.from);
    for (; at < piece.to; at += 1) rows.push({ kind: "minus", text: lines[at] ?? "" });
    rows.push(...piece.lines.map((text) => ({ kind: "plus" as const, text })));
  }
  same(lines.length);
  return rows;
}

/** The one stretch of a text that has to be replaced to make it another. */
export function stretch(one: string, two: string): { from: number; to: number; insert: string } | null {
  if (one === two) return null;
  let start = 0;
  while (start < one.length && start < two.length && one[start] === two[start]) start += 1;
  let end = 0;
  while (end < one.length - start && end < two.length - start && one[one.length - 1 - end] === two[two.length - 1 - end]) end += 1;
  return { from: start, to: one.length - end, insert: two.slice(start, two.length - end) };
}
