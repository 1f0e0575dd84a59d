// An error as section 6 wants it: what, why, what to do, and where it came from.

import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import type { Diagnostic, ErrorBody, Frame } from "../wire/protocol";
import { fixOf, proposal } from "../kernel/fixes";
import { inspect } from "../kernel/inspect";
import { go, marked } from "../kernel/routes";
import { visible } from "../kernel/text";

function isLibrary(frame: Frame): boolean {
  if (frame.file === undefined) return frame.receiver === undefined;
  return frame.file.startsWith("lib/") || frame.file.startsWith("beamtalk:") || frame.file.includes("/stdlib/");
}

/** Where a frame is: the method in the image, else the line of the file. */
function open({ class: name, selector, file, line }: Frame, at: number): void {
  if (file !== undefined && line !== undefined) marked.value = { file, line, at };
  if (name !== undefined) go("class", name.endsWith(" class") ? `${name.slice(0, -" class".length)}.class` : name, ...(selector === undefined ? [] : [selector]));
  else if (file !== undefined) go("file", ...`${file}${line === undefined ? "" : `:${line}`}`.split("/"));
}

function Frames({ frames, at: since }: { frames: Frame[]; at: number }): JSX.Element {
  const [isWhole, showWhole] = useState(false);
  const own = frames.filter((frame) => !isLibrary(frame));
  const hidden = frames.length - own.length;
  return (
    <ul class="frames code" aria-label="Frames">
      {(isWhole ? frames : own).map((frame, at) => (
        <li key={at}>
          <button class="link" onClick={() => open(frame, since)}>
            {visible(`${frame.class ?? "?"}${frame.selector === undefined ? "" : `>>${frame.selector}`}`)}
          </button>
          {frame.file === undefined ? null : <span class="muted"> {visible(frame.file)}{frame.line === undefined ? "" : `:${frame.line}`}</span>}
          {frame.receiver === undefined ? null : <> <button class="link" onClick={() => inspect({ ref: frame.receiver ?? "" }, "receiver")}>receiver</button></>}
          {(frame.arguments ?? []).map((ref, number) => <span key={ref}> <button class="link" onClick={() => inspect({ ref }, `argument ${number + 1}`)}>argument {number + 1}</button></span>)}
        </li>
      ))}
      {hidden > 0 && !isWhole ? <li><button class="link" onClick={() => showWhole(true)}>{hidden} library {hidden === 1 ? "frame" : "frames"}</button></li> : null}
    </ul>
  );
}

/** The line something is in, with a mark below the place. */
function place(code: string | null | undefined, found: { line: number | null; column?: number }): string | null {
  const line = found.line === null ? undefined : code?.split("\n")[found.line - 1];
  if (line === undefined || line.length > 200) return null;
  return found.column === undefined ? line : `${line}\n${" ".repeat(Math.max(0, found.column - 1))}^`;
}

/** A button that mends what was found, where that is known. */
export function FixButton({ found, code, onFix }: { found: Diagnostic; code: string | null | undefined; onFix: (found: Diagnostic) => void }): JSX.Element | null {
  const fix = code === null || code === undefined ? null : fixOf(found, code);
  return fix === null ? null : <button class="plain" onClick={() => onFix(found)}>{visible(fix.title)}</button>;
}

export function Fault({ error, at, code, onCorrect, onFix, children }: { error: ErrorBody; at: number; code?: string | null; onCorrect?: (word: string) => void; onFix?: (found: Diagnostic) => void; children?: ComponentChildren }): JSX.Element {
  const word = proposal(`${error.message} ${error.hint ?? ""}`);
  return (
    <div class="fault">
      <div class="fault-head">
        <span class="chip danger">{error.kind}</span>
        <span class="code">{visible(error.message)}</span>
      </div>
      {error.hint === undefined ? null : <div class="muted">{visible(error.hint)}</div>}
      {word === null || onCorrect === undefined || error.diagnostics !== undefined ? null : <div><button class="plain" onClick={() => onCorrect(word)}>Did you mean '{visible(word)}'?</button></div>}
      {(error.diagnostics ?? []).slice(0, 20).map((found, at) => (
        <div key={at} class="code">
          <span class={`chip ${found.severity === "error" ? "danger" : "warn"}`}>{found.code ?? found.severity}</span>{" "}
          {found.line === null ? "" : <span class="muted">line {found.line} </span>}{visible(found.message)}
          {found.hint === null ? null : <span class="muted"> {visible(found.hint)}</span>}
          {onFix === undefined ? null : <> <FixButton found={found} code={code} onFix={onFix} /></>}
          {place(code, found) === null ? null : <pre class="code muted">{visible(place(code, found) ?? "")}</pre>}
        </div>
      ))}
      {error.stack === undefined || error.stack.length === 0 ? null : <Frames frames={error.stack} at={at} />}
      {children === undefined ? null : <div class="fault-acts">{children}</div>}
    </div>
  );
}

/** A refusal where it happened; stays until it is dismissed. */
export function Problem({ error, onDismiss }: { error: ErrorBody | null; onDismiss: () => void }): JSX.Element | null {
  if (error === null) return null;
  return (
    <div class="problem" role="alert">
      <span class="chip danger">{error.kind}</span>
      <span>{visible(error.message)}</span>
      {error.hint === undefined ? null : <span class="muted">{visible(error.hint)}</span>}
      <button class="right" aria-label="Dismiss" onClick={onDismiss}>✕</button>
    </div>
  );
}
