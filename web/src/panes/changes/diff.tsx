// What a change changes: in one column, or side by side where there is room for it.

import type { JSX } from "preact";
import { change, settings } from "../../kernel/settings";
import { client } from "../../kernel/store";
import { visible } from "../../kernel/text";
import { Problem } from "../../parts/fault";
import { useAnswer } from "../../parts/use";
import { diffLines, pairs } from "./model";

const isWide = (): boolean => !matchMedia("(max-width: 900px)").matches;

/** Chooses how differences are shown; there is no choice where there is no room. */
export function DiffForm(): JSX.Element | null {
  if (!isWide()) return null;
  const isSplit = settings.value.diff === "split";
  return <button class="link" onClick={() => change({ diff: isSplit ? "unified" : "split" })}>{isSplit ? "one column" : "side by side"}</button>;
}

export function Diff({ seq, turn }: { seq: number; turn: number }): JSX.Element {
  const { answer, error, again } = useAnswer(() => client.request("diff", { seq }), [seq, turn]);
  const lines = answer === null ? [] : diffLines(answer.diff.slice(0, 1 << 20));
  const isSplit = settings.value.diff === "split" && isWide();
  return (
    <div class="diff code" aria-label="Diff" tabIndex={0}>
      <Problem error={error} onDismiss={again} />
      {isSplit
        ? pairs(lines).map(([left, right], at) => <div key={at} class="pair"><div class={left?.kind ?? ""}>{visible(left?.text ?? "")}</div><div class={right?.kind ?? ""}>{visible(right?.text ?? "")}</div></div>)
        : lines.map((line, at) => <div key={at} class={line.kind}>{visible(line.text)}</div>)}
    </div>
  );
}
