// Charts of values: a line or bars, drawn as shapes of our own, and the same as a table.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { grouped } from "../kernel/text";
import type { ShownView } from "../wire/protocol";
import { ends, share, short, tick } from "./model";

const WIDTH = 600;
const HEIGHT = 240;
const EDGE = { left: 56, bottom: 24, top: 8, right: 8 };

export function Chart({ view }: { view: ShownView }): JSX.Element {
  const [isTable, setTable] = useState(false);
  const { x = [], y = [] } = view.series?.[0] ?? {};
  const isHistogram = view.mark === "histogram";
  const [left, right] = ends(x);
  const [least, most] = ends(y);
  const [low, high] = [isHistogram ? 0 : Math.min(0, least), Math.max(most, isHistogram ? 1 : least)];
  const [inner, tall] = [WIDTH - EDGE.left - EDGE.right, HEIGHT - EDGE.top - EDGE.bottom];
  const across = (value: number): number => EDGE.left + share(value, left, right) * inner;
  const up = (value: number): number => EDGE.top + (1 - share(value, low, high)) * tall;
  const bar = inner / Math.max(1, x.length);
  const about = `${view.title}: ${grouped(view.of ?? y.length)} values from ${tick(least)} to ${tick(most)}`;
  return (
    <div class="scroll chart">
      <div class="bar">
        <span class="muted">{view.shown === view.of ? `${grouped(view.of ?? 0)} values` : `${grouped(view.shown ?? 0)} of ${grouped(view.of ?? 0)} shown`}</span>
        <button class="plain right" aria-pressed={isTable} onClick={() => setTable(!isTable)}>Show as {isTable ? "chart" : "table"}</button>
      </div>
      {isTable ? (
        <table class="code"><thead><tr><th>{view.x?.title ?? "x"}</th><th>{isHistogram ? "count" : (view.y?.title ?? "y")}</th></tr></thead><tbody>{x.slice(0, 500).map((at, row) => <tr key={row}><td class="number">{tick(at)}</td><td class="number">{tick(y[row] ?? 0)}</td></tr>)}</tbody></table>
      ) : (
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={about}>
          {[0, 0.5, 1].map((part) => {
            const value = isHistogram ? Math.round(low + (high - low) * part) : low + (high - low) * part;
            return <g key={part}><line class="rule" x1={EDGE.left} x2={WIDTH - EDGE.right} y1={up(value)} y2={up(value)} /><text x={EDGE.left - 6} y={up(value) + 4} text-anchor="end">{short(value)}</text></g>;
          })}
          {[0, 1].map((part) => <text key={part} x={part === 0 ? EDGE.left : WIDTH - EDGE.right} y={HEIGHT - 6} text-anchor={part === 0 ? "start" : "end"}>{short(part === 0 ? left : right)}</text>)}
          {isHistogram ? x.map((at, place) => <rect key={place} x={EDGE.left + place * bar + 1} width={Math.max(1, bar - 2)} y={up(y[place] ?? 0)} height={Math.max(0, EDGE.top + tall - up(y[place] ?? 0))}><title>{`${tick(at)}: ${grouped(y[place] ?? 0)}`}</title></rect>)
            : <polyline points={x.map((at, place) => `${across(at).toFixed(1)},${up(y[place] ?? 0).toFixed(1)}`).join(" ")} />}
        </svg>
      )}
    </div>
  );
}
