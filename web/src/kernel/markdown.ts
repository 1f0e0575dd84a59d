// Markdown as data: blocks and the pieces of a line. No markup ever comes of it: whatever is not understood, tags of
// HTML among it, is text. Every search ends after a bounded way, so that no text takes long.

import { parse as parsePlace } from "./routes";

export type Inline =
  | { is: "text" | "code"; text: string }
  | { is: "strong" | "emphasis"; of: Inline[] }
  | { is: "link"; of: Inline[]; to: string }
  | { is: "break" };

export type Block =
  | { is: "heading"; level: number; of: Inline[] }
  | { is: "paragraph"; of: Inline[] }
  | { is: "code"; text: string }
  | { is: "list"; isOrdered: boolean; start: number; items: Block[][] }
  | { is: "quote"; of: Block[] }
  | { is: "table"; head: Inline[][]; rows: Inline[][][] }
  | { is: "rule" };

/** How deep blocks and pieces lie in each other, and how far the end of a piece is looked for. */
const DEEPEST = 8;
const FURTHEST = 2000;

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])(?: +(.*)|$)/;
const QUOTE = /^ {0,3}> ?/;
const RULER = /^\s*\|?(?:\s*:?-+:?\s*\|)+\s*(?::?-+:?\s*)?$/;

export function blocks(text: string): Block[] {
  return read(text.replaceAll("\r\n", "\n").split("\n"), 0);
}

function read(lines: readonly string[], depth: number): Block[] {
  const found: Block[] = [];
  let at = 0;
  const line = (): string => lines[at] ?? "";
  while (at < lines.length) {
    const fence = FENCE.exec(line())?.[1];
    const heading = HEADING.exec(line());
    if (line().trim() === "") at += 1;
    else if (fence !== undefined) {
      const inner: string[] = [];
      for (at += 1; at < lines.length && !line().trim().startsWith(fence); at += 1) inner.push(line());
      at += 1;
      found.push({ is: "code", text: inner.join("\n") });
    } else if (heading !== null) {
      found.push({ is: "heading", level: heading[1]?.length ?? 1, of: inline(heading[2] ?? "") });
      at += 1;
    } else if (RULE.test(line())) {
      found.push({ is: "rule" });
      at += 1;
    } else if (depth < DEEPEST && QUOTE.test(line())) {
      const inner: string[] = [];
      for (; at < lines.length && QUOTE.test(line()); at += 1) inner.push(line().replace(QUOTE, ""));
      found.push({ is: "quote", of: read(inner, depth + 1) });
    } else if (depth < DEEPEST && ITEM.test(line())) {
      const [list, next] = readList(lines, at, depth);
      found.push(list);
      at = next;
    } else if (line().includes("|") && RULER.test(lines[at + 1] ?? "")) {
      const head = cells(line());
      const rows: Inline[][][] = [];
      for (at += 2; at < lines.length && line().includes("|"); at += 1) rows.push(cells(line()));
      found.push({ is: "table", head, rows });
    } else {
      const inner: string[] = [];
      do {
        inner.push(line());
        at += 1;
      } while (at < lines.length && !endsParagraph(line(), depth));
      found.push({ is: "paragraph", of: inline(inner.map((one) => one.trimStart()).join("\n")) });
    }
  }
  return found;
}

function endsParagraph(line: string, depth: number): boolean {
  return line.trim() === "" || FENCE.test(line) || HEADING.test(line) || RULE.test(line) || (depth < DEEPEST && (QUOTE.test(line) || ITEM.test(line)));
}

/** A list from line `at` on, and the line after it. What is indented below an item belongs to it. */
function readList(lines: readonly string[], from: number, depth: number): [Block, number] {
  const sign = ITEM.exec(lines[from] ?? "")?.[2] ?? "-";
  const isOrdered = /\d/.test(sign);
  const items: Block[][] = [];
  let at = from;
  while (at < lines.length) {
    const item = ITEM.exec(lines[at] ?? "");
    if (item === null || /\d/.test(item[2] ?? "") !== isOrdered) break;
    const width = (item[1]?.length ?? 0) + (item[2]?.length ?? 1) + 1;
    const inner = [item[3] ?? ""];
    for (at += 1; at < lines.length; at += 1) {
      const line = lines[at] ?? "";
      const indent = line.length - line.trimStart().length;
      if (line.trim() === "") {
        const next = lines[at + 1] ?? "";
        if (next.length - next.trimStart().length < width) break;
      } else if (indent < width && (ITEM.test(line) || endsParagraph(line, depth))) break;
      inner.push(line.slice(Math.min(indent, width)));
    }
    items.push(read(inner, depth + 1));
    // Items of one list may stand apart.
    const next = lines[at + 1] ?? "";
    if (lines[at]?.trim() === "" && ITEM.test(next) && /^\s*\d/.test(next) === isOrdered) at += 1;
  }
  return [{ is: "list", isOrdered, start: isOrdered ? Number.parseInt(sign, 10) : 1, items }, at];
}

function cells(line: string): Inline[][] {
  return line.trim().replace(/^\|/, "").replace(/\|$/, "").split(/(?<!\\)\|/).map((cell) => inline(cell.trim().replaceAll("\\|", "|")));
}

const TAG = /^<(?:\/?[A-Za-z][^<>\n]{0,300}|!--[^<>]{0,300}--)>/;
const ADDRESS = /^<((?:https?:\/\/|mailto:)[^\s<>]{1,2000})>/i;

/** The pieces of a line. */
export function inline(text: string, depth = 0): Inline[] {
  const found: Inline[] = [];
  let plain = "";
  let at = 0;
  const flush = (): void => {
    if (plain !== "") found.push({ is: "text", text: plain });
    plain = "";
  };
  const put = (piece: Inline, next: number): void => {
    flush();
    found.push(piece);
    at = next;
  };
  while (at < text.length) {
    const sign = text[at] ?? "";
    const rest = (): string => text.slice(at, at + FURTHEST);
    if (sign === "\\" && /[!-/:-@[-`{-~]/.test(text[at + 1] ?? "")) {
      plain += text[at + 1] ?? "";
      at += 2;
    } else if (sign === "`") {
      const marks = /^`+/.exec(rest())?.[0] ?? "`";
      const end = rest().slice(marks.length).search(new RegExp(`(?<!\`)${marks}(?!\`)`));
      if (end < 0) {
        plain += marks;
        at += marks.length;
      } else put({ is: "code", text: text.slice(at + marks.length, at + marks.length + end).replace(/^ (.*[^ ].*) $/s, "$1") }, at + 2 * marks.length + end);
    } else if ((sign === "*" || sign === "_") && depth < DEEPEST) {
      const piece = emphasis(text, at, sign, depth);
      if (piece === null) {
        plain += sign;
        at += 1;
      } else put(...piece);
    } else if (sign === "[" || (sign === "!" && text[at + 1] === "[")) {
      const link = linkAt(text, sign === "!" ? at + 1 : at, depth);
      if (link === null) {
        plain += sign;
        at += 1;
      } else put(...link);
    } else if (sign === "<" && ADDRESS.test(rest())) {
      const address = ADDRESS.exec(rest())?.[1] ?? "";
      put({ is: "link", of: [{ is: "text", text: address }], to: address }, at + address.length + 2);
    } else if (sign === "<" && TAG.test(rest())) {
      const tag = TAG.exec(rest())?.[0] ?? "";
      put({ is: "code", text: tag }, at + tag.length);
    } else if (sign === "\n") {
      if (/ {2}$/.test(plain)) put({ is: "break" }, at + 1);
      else {
        plain += " ";
        at += 1;
      }
    } else {
      plain += sign;
      at += 1;
    }
  }
  flush();
  return found;
}

function emphasis(text: string, at: number, sign: string, depth: number): [Inline, number] | null {
  const isStrong = text[at + 1] === sign;
  const marks = isStrong ? sign + sign : sign;
  const begin = at + marks.length;
  if (/^\s?$/.test(text[begin] ?? "") || (sign === "_" && /\w/.test(text[at - 1] ?? ""))) return null;
  for (let end = text.indexOf(marks, begin + 1); end >= 0 && end < at + FURTHEST; end = text.indexOf(marks, end + 1)) {
    const [before, after] = [text[end - 1] ?? "", text[end + marks.length] ?? ""];
    if (/\s/.test(before) || before === "\\" || (sign === "_" && /\w/.test(after)) || after === sign || (!isStrong && before === sign)) continue;
    return [{ is: isStrong ? "strong" : "emphasis", of: inline(text.slice(begin, end), depth + 1) }, end + marks.length];
  }
  return null;
}

/** `[text](address "title")` from a bracket on; pictures are not fetched and become links too. */
function linkAt(text: string, at: number, depth: number): [Inline, number] | null {
  let open = 0;
  let close = at;
  for (; close < text.length && close < at + FURTHEST; close += 1) {
    if (text[close] === "[") open += 1;
    if (text[close] === "]") open -= 1;
    if (open === 0) break;
  }
  if (open !== 0 || text[close + 1] !== "(" || depth >= DEEPEST) return null;
  const found = /^\(\s*(<[^<>\n]*>|(?:[^\s()]|\([^\s()]*\))*)(?:\s+(?:"[^"]*"|'[^']*'))?\s*\)/.exec(text.slice(close + 1, close + 1 + FURTHEST));
  if (found === null) return null;
  const to = (found[1] ?? "").replace(/^<(.*)>$/, "$1");
  return [{ is: "link", of: inline(text.slice(at + 1, close), depth + 1), to }, close + 1 + found[0].length];
}

export type Target = { is: "outside"; to: string; host: string } | { is: "place"; to: string } | { is: "file"; path: string };

/** Where a link may lead: to the web or a mailbox, to a place of this page, to a document of the project. Else nowhere. */
export function targetOf(to: string): Target | null {
  if (/[\s\u0000-\u001f\u007f]/.test(to)) return null;
  if (/^(https?|mailto):/i.test(to)) {
    try {
      const url = new URL(to);
      return { is: "outside", to: url.href, host: url.protocol === "mailto:" ? url.pathname : url.host };
    } catch {
      return null;
    }
  }
  if (to.startsWith("#")) return parsePlace(to) === null ? null : { is: "place", to };
  const path = to.split("#")[0] ?? "";
  if (!/^[\w.-][\w./ -]*\.(md|bt|btscript)$/.test(path) || path.split("/").includes("..")) return null;
  return { is: "file", path: path.replace(/^(\.\/)+/, "") };
}
