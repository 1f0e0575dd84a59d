// Evaluations and what came of them, from frames in any number of page loads. Pure: frames in, results out.

import type { Frame } from "../../wire/client";
import type { ErrorBody, Warning } from "../../wire/protocol";

/** What was asked, as it travels with the request. */
export interface About {
  buffer: string;
  from: number;
  to: number;
  hash: string;
  how: "do" | "print" | "inspect" | "comment" | "trace";
  at: number;
}

export interface Result {
  id: string;
  about: About;
  output: string;
  /** How much of the output at its beginning is left out. */
  cut: number;
  /** How many line ends there were in all of it. */
  ends: number;
  prompt: string | null;
  state: "waiting" | "running" | "done" | "failed" | "lost";
  text: string | null;
  className: string | null;
  ref: string | null;
  ms: number | null;
  error: ErrorBody | null;
  warnings: Warning[];
  isCut: boolean;
  lostBytes: number;
  /** The value of each statement, where that was asked for. */
  steps: { source: string; text: string }[];
}

/** Output beyond this is cut at the beginning. */
const OUTPUT = 256 * 1024;

export function readAbout(text: unknown): About | null {
  if (typeof text !== "string") return null;
  try {
    const read = JSON.parse(text) as Partial<About>;
    if (typeof read.buffer !== "string" || typeof read.to !== "number") return null;
    return { buffer: read.buffer, from: Number(read.from ?? 0), to: read.to, hash: String(read.hash ?? ""), how: read.how ?? "do", at: Number(read.at ?? 0) };
  } catch {
    return null;
  }
}

export function begun(id: string, about: About): Result {
  return { id, about, output: "", cut: 0, ends: 0, prompt: null, state: "running", text: null, className: null, ref: null, ms: null, error: null, warnings: [], isCut: false, lostBytes: 0, steps: [] };
}

/** A result after a frame. */
export function heard(result: Result, frame: Frame, now: number): Result {
  const next = { ...result };
  if (typeof frame.out === "string") {
    next.output += frame.out;
    for (let at = frame.out.indexOf("\n"); at >= 0; at = frame.out.indexOf("\n", at + 1)) next.ends += 1;
    if (next.output.length > OUTPUT) {
      next.cut += next.output.length - OUTPUT;
      next.output = next.output.slice(-OUTPUT);
    }
  }
  const flags = frame.status ?? [];
  next.prompt = flags.includes("need-input") ? (frame.prompt ?? "") : null;
  if (!flags.includes("done")) return next;
  next.ms = result.about.at === 0 || frame.replayed === true ? null : Math.max(0, now - result.about.at);
  next.warnings = frame.warnings ?? [];
  next.isCut = flags.includes("truncated");
  next.lostBytes = frame.lost_bytes ?? 0;
  if (frame.error !== undefined) {
    next.state = "failed";
    next.error = frame.error;
    next.ref = frame.error.ref ?? null;
    return next;
  }
  next.state = next.lostBytes > 0 ? "lost" : "done";
  next.text = typeof frame.text === "string" ? frame.text : null;
  if (Array.isArray(frame.steps)) next.steps = (frame.steps as Record<string, unknown>[]).map((step) => ({ source: String(step.src ?? ""), text: String(step.text ?? "") }));
  next.className = typeof frame.class === "string" ? frame.class : null;
  next.ref = typeof frame.ref === "string" ? frame.ref : null;
  return next;
}

/** The last lines of an output, and how many there are; the rest is not looked at. */
export function tail(result: Pick<Result, "output" | "ends">, most: number): { text: string; total: number } {
  const text = result.output.endsWith("\n") ? result.output.slice(0, -1) : result.output;
  const total = result.output === "" ? 0 : result.ends + (result.output.endsWith("\n") ? 0 : 1);
  let at = text.length;
  for (let line = 0; line < most && at >= 0; line += 1) at = at === 0 ? -1 : text.lastIndexOf("\n", at - 1);
  return { text: text.slice(at + 1), total };
}

/** An error to hand on: what was evaluated, what went wrong and where. No values: they may be secrets. */
export function report(code: string | null, error: ErrorBody, server: string): string {
  const frames = (error.stack ?? []).map((frame) => `  ${frame.class ?? "?"}${frame.selector === undefined ? "" : `>>${frame.selector}`}${frame.file === undefined ? "" : ` (${frame.file}${frame.line === undefined ? "" : `:${frame.line}`})`}`);
  const found = (error.diagnostics ?? []).map((one) => `  ${one.code ?? one.severity}${one.line === null ? "" : ` line ${one.line}`}: ${one.message}`);
  return [...(code === null ? [] : [code, ""]), `${error.kind}: ${error.message}`, ...(error.hint === undefined ? [] : [error.hint]), ...found, ...frames, "", server].join("\n");
}

/** A cheap mark of a text, to find its place again. */
export function mark(text: string): string {
  let value = 5381;
  for (let at = 0; at < text.length; at += 1) value = ((value * 33) ^ text.charCodeAt(at)) >>> 0;
  return value.toString(36);
}

/** Where the input of a result is in a text now: its own range, else the only text with the same mark and length. */
export function findPlace(about: About, text: string): number | null {
  const length = about.to - about.from;
  if (mark(text.slice(about.from, about.to)) === about.hash) return about.to;
  if (length <= 0 || text.length > 200_000) return null;
  let found: number | null = null;
  for (let line = 0; line >= 0 && line < text.length; ) {
    if (mark(text.slice(line, line + length)) === about.hash) found ??= line + length;
    const next = text.indexOf("\n", line);
    line = next < 0 ? -1 : next + 1;
  }
  return found;
}
