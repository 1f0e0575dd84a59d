// How the image does: memory, processes and run queue over the last minutes.

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { client } from "../../kernel/store";
import { bytes, clock, grouped } from "../../kernel/text";
import { usePulse } from "../../parts/use";
import { pushed, type Series } from "./model";

const MOST = 900;
const memory = signal<Series>({ at: [], values: [] });
const counts = signal<Series>({ at: [], values: [] });

const NAMES = ["total", "processes", "binary", "ets"];
const COUNTS = ["processes", "run queue"];

/** A chart of our series; the library comes with the first one. */
function Chart({ title, names, series, text }: { title: string; names: string[]; series: Series; text: (value: number) => string }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<{ setData: (data: number[][]) => void; setSize: (size: { width: number; height: number }) => void; destroy: () => void } | null>(null);
  const data = (): number[][] => [series.at.map((at) => at / 1000), ...names.map((_, index) => series.values[index] ?? [])];
  useEffect(() => {
    let isOver = false;
    let watch: ResizeObserver | null = null;
    void import("uplot").then(({ default: Plot }) => {
      if (isOver || box.current === null) return;
      // Asked for at each drawing: the theme may have changed.
      const colour = (name: string) => (): string => getComputedStyle(document.documentElement).getPropertyValue(name);
      const [muted, line] = [colour("--muted"), colour("--line")];
      const made = new Plot({
        width: box.current.clientWidth, height: 160, legend: { show: false }, cursor: { show: false }, scales: { x: { range: (_plot, low, high) => [Math.min(low, high - 60), high] }, y: { range: (_plot, _low, high) => [0, Math.max(1, high * 1.1)] } },
        series: [{}, ...names.map((label, index) => ({ label, stroke: colour(`--series-${index + 1}`), width: 2, ...(index === 0 ? {} : { dash: [[], [6, 3], [2, 2], [8, 2, 2, 2]][index] ?? [] }) }))],
        axes: [{ stroke: muted, grid: { stroke: line }, values: (_plot, splits) => splits.map((at) => clock(at * 1000)) }, { stroke: muted, grid: { stroke: line }, size: 70, values: (_plot, splits) => splits.map(text) }],
      }, data() as [number[], ...number[][]], box.current);
      plot.current = made as unknown as typeof plot.current;
      watch = new ResizeObserver(() => { if (box.current !== null) made.setSize({ width: box.current.clientWidth, height: 160 }); });
      watch.observe(box.current);
    });
    return () => {
      isOver = true;
      watch?.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, []);
  useEffect(() => plot.current?.setData(data()), [series]);
  return (
    <section style={{ padding: "8px 12px" }}>
      <h3>{title}</h3>
      <div class="muted">{names.map((name, index) => <span key={name} style={{ marginRight: "12px" }}><span style={{ color: `var(--series-${index + 1})` }} aria-hidden="true">■ </span>{name} <span class="number">{text(series.values[index]?.at(-1) ?? 0)}</span></span>)}</div>
      <div ref={box} role="img" aria-label={`${title}: ${names.map((name, index) => `${name} ${text(series.values[index]?.at(-1) ?? 0)}`).join(", ")}`} style={{ minHeight: "160px" }} />
    </section>
  );
}

function Table({ series, names, text }: { series: Series; names: string[]; text: (value: number) => string }): JSX.Element {
  return (
    <table class="code" style={{ margin: "8px 12px" }}>
      <thead><tr><th>time</th>{names.map((name) => <th key={name}>{name}</th>)}</tr></thead>
      <tbody>{series.at.slice(-60).map((at, row) => <tr key={at}><td>{clock(at)}</td>{names.map((name, index) => <td key={name} class="number">{text(series.values[index]?.slice(-60)[row] ?? 0)}</td>)}</tr>)}</tbody>
    </table>
  );
}

export function Vitals({ isVisible }: { isVisible: boolean }): JSX.Element {
  const [isTable, setTable] = useState(false);
  const look = (): void => {
    client.request("health", {}).then((health) => {
      const at = Date.now();
      if (health.memory !== undefined) memory.value = pushed(memory.value, at, [health.memory.total, health.memory.processes, health.memory.binary, health.memory.ets], MOST);
      counts.value = pushed(counts.value, at, [health.processes ?? 0, health.run_queue ?? 0], MOST);
    }, () => undefined);
  };
  useEffect(look, [isVisible]);
  usePulse(look, isVisible);
  return (
    <div class="scroll">
      <div class="bar"><button class="plain" aria-pressed={isTable} onClick={() => setTable(!isTable)}>Show as {isTable ? "chart" : "table"}</button></div>
      {isTable ? <><Table series={memory.value} names={NAMES} text={bytes} /><Table series={counts.value} names={COUNTS} text={grouped} /></> : (
        <><Chart title="Memory" names={NAMES} series={memory.value} text={bytes} /><Chart title="Load" names={COUNTS} series={counts.value} text={grouped} /></>
      )}
    </div>
  );
}
