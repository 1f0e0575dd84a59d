// Lines of the Transcript from pieces of text, bounded. Pure.

export interface Line {
  key: number;
  text: string;
  at: number;
  /** The piece it began with. */
  seq: number;
  /** Who wrote it: a session, an agent or an actor. */
  by: string | null;
  /** So many characters are left out. */
  more: number;
  /** Not written by anybody: says that something is missing. */
  isGap: boolean;
}

export interface Piece {
  text: string;
  at: number;
  seq: number;
  by: string | null;
}

export interface Lines {
  lines: readonly Line[];
  /** The last line is not ended yet. */
  isOpen: boolean;
  next: number;
  /** How many went at the beginning. */
  dropped: number;
}

export const MOST = 10_000;
const LONGEST = 16 * 1024;

export const none: Lines = { lines: [], isOpen: false, next: 1, dropped: 0 };

function cut(line: Line, text: string, before = 0): Line {
  return { ...line, text: text.slice(0, LONGEST), more: before + Math.max(0, text.length - LONGEST) };
}

/** Add pieces, each with its time. One call for many pieces costs one copy. */
export function add(before: Lines, pieces: readonly Piece[]): Lines {
  const lines = before.lines.slice();
  let { isOpen, next, dropped } = before;
  for (const piece of pieces) {
    const parts = piece.text.split("\n");
    parts.forEach((part, index) => {
      const isLast = index === parts.length - 1;
      if (isLast && part === "") return;
      const open = isOpen && index === 0 ? lines[lines.length - 1] : undefined;
      if (open !== undefined) lines[lines.length - 1] = cut({ ...open, seq: part.length > LONGEST ? piece.seq : open.seq }, open.text + part, open.more);
      else lines.push(cut({ key: next++, text: "", at: piece.at, seq: piece.seq, by: piece.by, more: 0, isGap: false }, part));
    });
    if (piece.text !== "") isOpen = !piece.text.endsWith("\n");
  }
  const over = lines.length - MOST;
  if (over > 0) {
    lines.splice(0, over);
    dropped += over;
  }
  return { lines, isOpen, next, dropped };
}

/** Older pieces before the first line, as many lines as there is room for. */
export function prepend(now: Lines, pieces: readonly Piece[]): Lines {
  const older = add({ ...none, next: now.next }, pieces);
  const room = Math.max(0, MOST - now.lines.length);
  return { ...now, lines: [...older.lines.slice(older.lines.length - Math.min(room, older.lines.length)), ...now.lines], next: older.next };
}

export function gap(before: Lines, count: number, at: number): Lines {
  const lines = [...before.lines, { key: before.next, text: `${count.toLocaleString("en-US")} entries are gone`, at, seq: 0, by: null, more: 0, isGap: true }];
  return { ...before, lines, next: before.next + 1, isOpen: false };
}

/** Those with a text in them, and of one writer if it is given. */
export function found(lines: readonly Line[], text: string, by: string | null = null): readonly Line[] {
  if (text === "" && by === null) return lines;
  const wanted = text.toLowerCase();
  return lines.filter((line) => (by === null || line.by === by) && line.text.toLowerCase().includes(wanted));
}

/** A number from 1 to 8 for a writer, always the same. */
export function tone(by: string): number {
  let value = 0;
  for (let at = 0; at < by.length; at += 1) value = (value * 31 + by.charCodeAt(at)) >>> 0;
  return (value % 8) + 1;
}

/** The line a link means: of a piece, or the first at a time or after it. */
export function lineAt(lines: readonly Line[], wanted: string): number | null {
  const time = /^at-(\d+)$/.exec(wanted);
  const place = time !== null ? lines.findIndex((line) => line.at >= Number(time[1]) - 1000) : lines.findIndex((line) => line.seq >= Number(wanted));
  return place < 0 ? null : place;
}
