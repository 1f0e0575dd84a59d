// A conflict from three sides: what it was, what the image has, what the file has, and what it shall be.

import type { EditorView } from "@codemirror/view";
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { surface } from "../../editor/surface";
import { toast } from "../../kernel/notices";
import { client, fault, isOwner } from "../../kernel/store";
import { visible } from "../../kernel/text";
import { Problem } from "../../parts/fault";
import type { ChangeSidesAnswer, ErrorBody } from "../../wire/protocol";
import { dedented, hasMarks, isContested, merged, replaced, type Choice } from "./model";

export function ThreeWay({ file, onDone }: { file: string; onDone: () => void }): JSX.Element {
  const [sides, setSides] = useState<ChangeSidesAnswer | null>(null);
  const [choices, setChoices] = useState<Choice[]>([]);
  const [error, setError] = useState<ErrorBody | null>(null);
  const [isMarked, setMarked] = useState(true);
  /** Why the result cannot be read; null while it can. */
  const [broken, setBroken] = useState<string | null>(null);
  const checking = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const check = (text: string): void => {
    setMarked(hasMarks(text));
    clearTimeout(checking.current);
    if (!file.endsWith(".bt") || hasMarks(text)) return setBroken(null);
    checking.current = setTimeout(() => {
      client.request("diagnostics", { code: text, mode: "class" }).then(({ diagnostics }) => {
        const fault = diagnostics.find((one) => one.category === "syntax" && one.severity === "error");
        if (view.current?.state.doc.toString() === text) setBroken(fault === undefined ? null : `line ${fault.line ?? "?"}: ${fault.message}`);
      }, () => undefined);
    }, 250);
  };
  const box = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const read = (): void => {
    client.request("change-sides", { file }).then((answer) => { setSides(answer); setChoices([]); setError(null); }, (cause: unknown) => setError(fault(cause)));
  };
  useEffect(read, [file]);
  useEffect(() => {
    if (box.current === null || sides === null) return;
    const text = merged(sides.disk ?? "", sides.places, [], sides.image ?? "");
    view.current?.destroy();
    view.current = surface({ parent: box.current, text, label: `Result for ${file}`, onChange: check });
    check(text);
  }, [sides]);
  useEffect(() => () => { clearTimeout(checking.current); view.current?.destroy(); }, []);
  const choose = (at: number, choice: Choice): void => {
    if (sides === null || view.current === null) return;
    const next = [...choices];
    next[at] = choice;
    const [before, after] = [choices, next].map((all) => merged(sides.disk ?? "", sides.places, all, sides.image ?? ""));
    // What was typed elsewhere stays.
    const change = replaced(before ?? "", after ?? "", view.current.state.doc.toString());
    if (change !== null) view.current.dispatch({ changes: change });
    setChoices(next);
  };
  const settle = (): void => {
    if (sides === null || view.current === null) return;
    client.request("settle", { file, text: view.current.state.doc.toString(), disk_sha256: sides.disk_sha256 ?? "" }).then(
      () => { toast(`${file} settled`); onDone(); },
      (cause: unknown) => setError(fault(cause)),
    );
  };
  return (
    <div class="three">
      <div class="bar">
        <h3>{visible(file)}</h3>
        {isOwner.value ? <span class="right"><button class="primary" disabled={isMarked || broken !== null} title={isMarked ? "choose a side for each place first" : broken !== null ? "the result cannot be read" : ""} onClick={settle}>Settle</button> <button class="plain" onClick={onDone}>Close</button></span> : null}
      </div>
      <Problem error={error} onDismiss={() => setError(null)} />
      {error?.kind === "file_changed" ? <div class="problem"><button class="plain" onClick={read}>Read the file again</button></div> : null}
      {(sides?.places ?? []).map((place, at) => (
        <div key={at}>
          <div class={`bar ${isContested(place) ? "contested" : ""}`}>
            <span class="code">{visible(place.selector === null ? place.class : `${place.class}>>${place.selector}`)}</span>
            {isContested(place) ? <span class="chip warn">changed on both sides</span> : <span class="muted">changed on one side</span>}
            <span class="right">{(["image", "disk", "both"] as const).map((choice) => <button key={choice} class="plain" aria-pressed={choices[at] === choice} onClick={() => choose(at, choice)}>{choice}</button>)}</span>
          </div>
          <div class="sides3">
            {([["base", place.base], ["image", place.image], ["disk", place.disk]] as const).map(([title, text]) => (
              <div key={title}><h3>{title}</h3><pre class="code">{text === null ? <span class="muted">not there</span> : visible(dedented(text))}</pre></div>
            ))}
          </div>
        </div>
      ))}
      <div class="section-head">result{isMarked ? " (has conflict marks)" : ""}{broken === null ? null : <span class="danger"> {visible(broken)}</span>}</div>
      <div class="surface" ref={box} style={{ minHeight: "160px", flex: "1 0 160px" }} />
    </div>
  );
}
