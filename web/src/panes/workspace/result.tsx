// What came of an evaluation, below its input.

import type { Signal } from "@preact/signals";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { inspect } from "../../kernel/inspect";
import { isOwner, now } from "../../kernel/store";
import { bytes, clock, duration, visible } from "../../kernel/text";
import { Fault } from "../../parts/fault";
import { tail, type Result } from "./model";

export interface Acts {
  stop: (id: string) => void;
  answer: (id: string, text: string | null) => void;
  correct: (id: string, word: string) => void;
  dismiss: (id: string) => void;
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

export function ResultView({ result: of, acts }: { result: Signal<Result>; acts: Acts }): JSX.Element {
  const result = of.value;
  const { state, about } = result;
  const [isWide, setWide] = useState(false);
  const isLong = (result.text?.length ?? 0) > 2000;
  const text = result.text === null ? null : isLong && !isWide ? `${result.text.slice(0, 2000)}…` : result.text;
  const showsValue = state === "done" && text !== null && about.how !== "do";
  return (
    <div class={`result ${state}`} data-state={state} data-id={result.id}>
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
          {result.ref === null ? null : <button class="link" onClick={() => inspect({ ref: result.ref ?? "" }, result.className ?? "value")}>Inspect</button>}
          <button class="close" aria-label="Dismiss the result" onClick={() => acts.dismiss(result.id)}>✕</button>
        </div>
      ) : null}
      {state === "done" && !showsValue ? <div class="line"><span class="ok">✓</span>{result.ms === null ? null : <span class="muted number">{duration(result.ms)}</span>}<button class="close" aria-label="Dismiss the result" onClick={() => acts.dismiss(result.id)}>✕</button></div> : null}
      {state === "lost" ? <div class="muted">output of {clock(about.at)} is no longer kept ({bytes(result.lostBytes)})</div> : null}
      {result.warnings.map((warning, at) => <div key={at} class="line"><span class="chip warn">{"code" in warning && warning.code !== null ? warning.code : warning.severity}</span> <span>{visible(warning.message)}</span></div>)}
      {result.error === null ? null : <div class="line top"><Fault error={result.error} at={about.at} onCorrect={(word) => acts.correct(result.id, word)}>
        {result.ref === null ? null : <button class="link" onClick={() => inspect({ ref: result.ref ?? "" }, result.error?.kind ?? "error")}>Inspect exception</button>}
        {isOwner.value ? <button class="link" onClick={() => acts.again(result.id)}>Do it again</button> : null}
        <button class="link" onClick={() => acts.report(result.id)}>Copy as report</button>
      </Fault><button class="close" aria-label="Dismiss the result" onClick={() => acts.dismiss(result.id)}>✕</button></div>}
    </div>
  );
}
