// Two tabs changed the same lines of one text: one of them is chosen, after a look at both.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { compared } from "../../kernel/merge";
import { visible } from "../../kernel/text";

export function Clash({ mine, theirs, onKeep, onTake }: { mine: string; theirs: string; onKeep: () => void; onTake: () => void }): JSX.Element {
  const [isOpen, open] = useState(false);
  return (
    <>
      <div class="banner" role="alert">
        Another tab changed this buffer.
        <button class="plain" onClick={onKeep}>Keep mine</button>
        <button class="plain" onClick={onTake}>Take theirs</button>
        <button class="plain" aria-pressed={isOpen} onClick={() => open(!isOpen)}>Compare</button>
      </div>
      {isOpen ? <div class="diff code compare" role="group" aria-label="Mine and theirs" tabIndex={0}>{compared(mine, theirs).map((row, at) => <div key={at} class={row.kind}>{row.kind === "minus" ? "- " : row.kind === "plus" ? "+ " : "  "}{visible(row.text)}</div>)}</div> : null}
    </>
  );
}
