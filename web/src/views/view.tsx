// A view of something that runs nothing: asked for in windows, drawn by its kind.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { client } from "../kernel/store";
import { grouped, visible } from "../kernel/text";
import { Problem } from "../parts/fault";
import { useAnswer } from "../parts/use";
import type { Opened, ShownView, Step } from "../wire/protocol";
import { Chart } from "./chart";
import { Rows } from "./rows";
import { Tree } from "./tree";

/** What is looked at: one of the first four, and the way from it. */
export interface Place {
  actor?: string;
  binding?: string;
  class?: string;
  ref?: string;
  path: Step[];
}

export const WINDOW = 100;

interface Props {
  place: Place;
  name: string;
  isVisible: boolean;
  onOpen: (target: Opened) => void;
}

function Text({ view, onFrom }: { view: ShownView; onFrom: (from: number) => void }): JSX.Element {
  const from = view.from ?? 0;
  return (
    <>
      <pre class="code whole scroll" tabIndex={0} aria-label={view.title}>{visible(view.text ?? "")}</pre>
      {from === 0 && view.end === true ? null : (
        <div class="bar pages">
          <button class="plain" disabled={from === 0} onClick={() => onFrom(Math.max(0, from - 65536))}>Before</button>
          <span class="muted number">{grouped(from)} of {grouped(view.total ?? 0)} bytes</span>
          <button class="plain" disabled={view.end === true} onClick={() => onFrom(from + 65536)}>After</button>
        </div>
      )}
    </>
  );
}

function Figures({ view }: { view: ShownView }): JSX.Element {
  return (
    <dl class="figures">
      {(view.figures ?? []).map((figure) => (
        <div key={figure.name}><dt class="muted">{visible(figure.name)}</dt><dd class={`code ${figure.state ?? ""}`}>{figure.state === null ? null : <span class={`chip ${figure.state}`}>{figure.state === "danger" ? "error" : figure.state}</span>} {visible(figure.text)}</dd></div>
      ))}
    </dl>
  );
}

export function View({ place, name, isVisible, onOpen }: Props): JSX.Element {
  const [from, setFrom] = useState(0);
  const [sort, setSort] = useState("");
  const [find, setFind] = useState("");
  const key = JSON.stringify([place, name]);
  useEffect(() => { setFrom(0); setSort(""); setFind(""); }, [key]);
  const more = { ...(sort === "" ? {} : { sort }), ...(find === "" ? {} : { find }) };
  const { answer, error, again } = useAnswer(() => client.request("view", { ...place, name, from, count: WINDOW, ...more }), [key, from, sort, find], isVisible);
  const view = answer?.view ?? null;
  if (view === null) return <><Problem error={error} onDismiss={again} />{error === null ? <div class="empty">…</div> : null}</>;
  return (
    <>
      <Problem error={error} onDismiss={again} />
      {view.note === undefined ? null : <div class="muted note">{visible(view.note)}</div>}
      {view.kind === "text" ? <Text view={view} onFrom={setFrom} />
        : view.kind === "figures" ? <Figures view={view} />
        : view.kind === "chart" ? <Chart key={view.id} view={view} />
        : view.kind === "image" ? <div class="scroll picture"><img alt={visible(view.alt ?? "")} src={`data:${view.mime ?? "image/png"};base64,${view.base64 ?? ""}`} /></div>
        : view.kind === "tree" ? <Tree place={place} name={name} view={view} onOpen={onOpen} />
        : <Rows view={view} sort={sort} find={find} onSort={(next) => { setFrom(0); setSort(next); }} onFind={(next) => { setFrom(0); setFind(next); }} onFrom={setFrom} onOpen={onOpen} />}
    </>
  );
}
