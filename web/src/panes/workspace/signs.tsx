// What a phone's keyboard hides: a row above it.

import type { EditorView } from "@codemirror/view";
import type { JSX } from "preact";
import { Act } from "../../parts/act";

const SIGNS = ["#", "[", "]", ":=", "^"];

export function Signs({ view, onEvaluate }: { view: () => EditorView | null; onEvaluate: (how: "do" | "print" | "inspect") => void }): JSX.Element {
  return (
    <div class="signs">
      <Act onClick={() => onEvaluate("do")}>Do</Act><Act onClick={() => onEvaluate("print")}>Print</Act><Act onClick={() => onEvaluate("inspect")}>Inspect</Act>
      {SIGNS.map((sign) => <button key={sign} onPointerDown={(event) => { event.preventDefault(); view()?.dispatch(view()?.state.replaceSelection(sign) ?? {}); }}>{sign}</button>)}
      <button aria-label="Leave the text" onPointerDown={(event) => { event.preventDefault(); view()?.contentDOM.blur(); }}>⎋</button>
    </div>
  );
}
