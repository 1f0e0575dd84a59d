// Lines of the Transcript from pieces of text, bounded. Pure.

export interface Line {
  key: number;
  text: string;
  at: number;
  /** Not written by anybody: says that something is missing. */
  isGap: boolean;
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

function cut(text: string): string {
  return text.length <= LONGEST ? text : `${text.slice(0, LONGEST)}… ${((text.length - LONGEST) / 1000).toFixed(1)} KB more`;
}

/** Add pieces, each with its time. One call for many pieces costs one copy. */
export function add(before: Lines, pieces: readonly { text: string; at: number }[]): Lines {
  const lines = before.lines.slice();
  let { isOpen, next, dropped } = before;
  for (const piece of pieces) {
    const parts = piece.text.split("\n");
    parts.forEach((part, index) => {
      const isLast = index === parts.length - 1;
      if (isLast && part === "") return;
      const open = isOpen && index === 0 ? lines[lines.length - 1] : undefined;
      if (open !== undefined) lines[lines.length - 1] = { ...open, text: open.text.length > LONGEST ? open.text : cut(open.text + part) };
      else lines.push({ key: next++, text: cut(part), at: piece.at, isGap: false });
    });
    isOpen = !piece.text.endsWith("\n") && piece.text !== "" ? true : piece.text === "" ? isOpen : false;
  }
  const over = lines.length - MOST;
  if (over > 0) {
    lines.splice(0, over);
    dropped += over;
  }
  return { lines, isOpen, next, dropped };
}

export function gap(before: Lines, count: number, at: number): Lines {
  const lines = [...before.lines, { key: before.next, text: `${count.toLocaleString("en-US")} entries are gone`, at, isGap: true }];
  return { ...before, lines, next: before.next + 1, isOpen: false };
}

export function found(lines: readonly Line[], text: string): readonly Line[] {
  if (text === "") return lines;
  const wanted = text.toLowerCase();
  return lines.filter((line) => line.text.toLowerCase().includes(wanted));
}
