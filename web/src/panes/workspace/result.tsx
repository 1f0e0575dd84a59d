// What came of an evaluation, below its input.

import type { Signal } from "@preact/signals";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { inspect } from "../../kernel/inspect";
import { pinned } from "../../editor/results";
import { images, isFrozen, isOwner, now } from "../../kernel/store";
import { bytes, clock, duration, visible } from "../../kernel/text";
import { Fault, FixButton } from "../../parts/fault";
import type { Diagnostic } from "../../wire/protocol";
import { tail, type Result } from "./model";

export interface Acts {
  stop: (id: string) => void;
  answer: (id: string, text: string | null) => void;
  correct: (id: string, word: string) => void;
  fix: (id: string, found: Diagnostic) => void;
  dismiss: (id: string) => void;
  pin: (id: string) => void;
  unfold: (id: string) => void;
  /** The input it came from, as far as it is still there. */
  code: (id: string) => string | null;
  /** Evaluate the same input once more. */
  again: (id: string) => void;
  /** Copy what went wrong, for somebody else. */
  report: (id: string) => void;
}

const FOLD = 12;

function Output({ result }: { result: Result }): JSX.Element | null {
  const [isWhole, showWhole] = useState(false);
  if (result.output === "") return null;
  const { text, total } = tail(result, isWhole ? Number.POSITIVE_INFINITY : FOLD);
  const hidden = isWhole ? 0 : Math.max(0, total - FOLD);
  return (
    <>
      {result.cut > 0 && isWhole ? <div class="muted">{bytes(result.cut)} before this are not shown</div> : null}
      {hidden > 0 ? <button class="link" onClick={() => showWhole(true)}>{hidden.toLocaleString("en-US")} more lines</button> : null}
      {isWhole && total > FOLD ? <button class="link" onClick={() => showWhole(false)}>fold</button> : null}
      <pre class="output" data-lines={total}>{visible(text)}</pre>
    </>
  );
}

function Asked({ prompt, onAnswer }: { prompt: string; onAnswer: (text: string | null) => void }): JSX.Element {
  const [text, setText] = useState("");
  return (
    <form class="asked" onSubmit={(event) => { event.preventDefault(); onAnswer(`${text}\n`); }}>
      <label><span class="code">{visible(prompt)}</span> <input aria-label="Input of the program" value={text} onInput={(event) => setText(event.currentTarget.value)} ref={(field) => field?.focus()} /></label>
      <button class="plain">Send</button>
      <button class="plain" type="button" onClick={() => onAnswer(null)}>End of input</button>
    </form>
  );
}

export function ResultView({ result: of, acts, folded }: { result: Signal<Result>; acts: Acts; folded: Signal<ReadonlySet<string>> }): JSX.Element {
  const result = of.value;
  const [isPinned, setPinned] = useState(pinned.has(result.id));
  // References live as long as the image does.
  const [image] = useState(images.peek());
  const isGone = image !== images.value;
  const { state, about } = result;
  const [isWide, setWide] = useState(false);
  const isLong = (result.text?.length ?? 0) > 2000;
  const text = result.text === null ? null : isLong && !isWide ? `${result.text.slice(0, 2000)}…` : result.text;
  const showsValue = state === "done" && text !== null && about.how !== "do";
  if (folded.value.has(result.id)) return <div class={`result ${state}`} data-state={state} data-id={result.id}><button class="link cut" onClick={() => acts.unfold(result.id)}><span class={state === "failed" ? "danger" : "ok"}>{state === "failed" ? "✗" : "✓"}</span> {visible((result.text ?? result.error?.message ?? "").slice(0, 80))}</button></div>;
  const pin = <button class="link" aria-label={isPinned ? "Unpin the result" : "Pin the result"} title={isPinned ? "stays when the input is evaluated again" : "keep it when the input is evaluated again"} aria-pressed={isPinned} onClick={() => { acts.pin(result.id); setPinned(!isPinned); }}>{isPinned ? "Pinned" : "Pin"}</button>;
  return (
    <div class={`result ${state}`} data-state={state} data-id={result.id}>
      {result.steps.length === 0 ? null : <table class="code steps" aria-label="Statements"><tbody>{result.steps.map((step, at) => <tr key={at}><td>{visible(step.source)}</td><td>{visible(step.text).slice(0, 500)}</td></tr>)}</tbody></table>}
      <Output result={result} />
      {result.prompt !== null && isOwner.value ? <Asked prompt={result.prompt} onAnswer={(answer) => acts.answer(result.id, answer)} /> : null}
      {state === "running" ? (
        <div class="line"><span class="muted">running {Math.max(0, Math.round((now.value - about.at) / 1000))} s</span> <button class="plain" onClick={() => acts.stop(result.id)}>Stop</button></div>
      ) : null}
      {showsValue ? (
        <div class="line">
          <span class="code value">{visible(text)}</span>
          <span class="chip">{result.className ?? "?"}</span>
          {result.ms === null ? null : <span class="muted number">{duration(result.ms)}</span>}
          {isLong ? <button class="link" onClick={() => setWide(!isWide)}>{isWide ? "less" : "more"}</button> : null}
          {result.isCut ? <span class="muted">… cut</span> : null}
          {result.ref === null ? null : isGone ? <span class="muted">from an earlier image</span> : <button class="link" onClick={() => inspect({ ref: result.ref ?? "" }, result.className ?? "value")}>Inspect</button>}
          {pin}
          <button class="close" aria-label="Dismiss the result" onClick={() => acts.dismiss(result.id)}>✕</button>
        </div>
      ) : null}
      {state === "done" && !showsValue ? <div class="line"><span class="ok">✓</span>{result.ms === null ? null : <span class="muted number">{duration(result.ms)}</span>}<button class="close" aria-label="Dismiss the result" onClick={() => acts.dismiss(result.id)}>✕</button></div> : null}
      {state === "lost" ? <div class="muted">output of {clock(about.at)} is no longer kept ({bytes(result.lostBytes)})</div> : null}
      {result.warnings.map((warning, at) => <div key={at} class="line"><span class="chip warn">{"code" in warning && warning.code !== null ? warning.code : warning.severity}</span> <span>{visible(warning.message)}</span>{"line" in warning && isOwner.value ? <FixButton found={warning} code={acts.code(result.id)} onFix={(found) => acts.fix(result.id, found)} /> : null}</div>)}
      {result.error === null ? null : <div class="line top"><Fault error={result.error} at={about.at} code={acts.code(result.id)} onCorrect={(word) => acts.correct(result.id, word)} onFix={(found) => acts.fix(result.id, found)}>
        {result.ref === null ? null : isGone ? <span class="muted">from an earlier image</span> : <button class="link" onClick={() => inspect({ ref: result.ref ?? "" }, result.error?.kind ?? "error")}>Inspect exception</button>}
        {typeof result.error.details?.actor !== "string" || isGone ? null : <button class="link" title="its state is as it was before the message" onClick={() => inspect({ actor: String(result.error?.details?.actor) }, String(result.error?.details?.actor))}>Inspect actor</button>}
        {isOwner.value ? <button class="link" disabled={isFrozen.value} onClick={() => acts.again(result.id)}>Do it again</button> : null}
        <button class="link" onClick={() => acts.report(result.id)}>Copy as report</button>
      </Fault><button class="close" aria-label="Dismiss the result" onClick={() => acts.dismiss(result.id)}>✕</button></div>}
    </div>
  );
}
