// How the image does: memory, schedulers, work, processes and traffic of the last quarter of an hour.

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { settings } from "../../kernel/settings";
import { client, epoch, fault } from "../../kernel/store";
import { bytes, clock, count, grouped } from "../../kernel/text";
import { Problem } from "../../parts/fault";
import { usePulse } from "../../parts/use";
import type { ErrorBody } from "../../wire/protocol";
import { joined, seriesOf, type Samples, type Series } from "./model";

const MOST = 900;
const vitals = signal<Samples | null>(null);

const perSecond = (value: number): string => `${bytes(value)}/s`;

const CHARTS: { title: string; fields: [string, string][]; text: (value: number) => string }[] = [
  { title: "Memory", fields: [["total", "total"], ["processes_memory", "processes"], ["binary", "binary"], ["ets", "tables"]], text: bytes },
  { title: "Schedulers", fields: [["schedulers", "busy"]], text: (value) => `${Math.round(value)} %` },
  { title: "Work", fields: [["reductions", "reductions/s"]], text: grouped },
  { title: "Processes", fields: [["processes", "processes"], ["run_queue", "run queue"]], text: grouped },
  { title: "Input and output", fields: [["input", "in"], ["output", "out"]], text: perSecond },
];

/** A chart of our series; the library comes with the first one. */
function Chart({ title, names, series, text }: { title: string; names: string[]; series: Series; text: (value: number) => string }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<{ setData: (data: number[][]) => void; setSize: (size: { width: number; height: number }) => void; destroy: () => void } | null>(null);
  const latest = useRef(series);
  latest.current = series;
  const data = (): number[][] => [latest.current.at.map((at) => at / 1000), ...names.map((_, index) => latest.current.values[index] ?? [])];
  useEffect(() => {
    let isOver = false;
    let watch: ResizeObserver | null = null;
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const again = (): void => plot.current?.setData(data());
    dark.addEventListener("change", again);
    void import("uplot").then(({ default: Plot }) => {
      if (isOver || box.current === null) return;
      // Asked for at each drawing: the theme may have changed.
      const colour = (name: string) => (): string => getComputedStyle(document.documentElement).getPropertyValue(name);
      const [muted, line] = [colour("--muted"), colour("--line")];
      const made = new Plot({
        width: box.current.clientWidth, height: 160, legend: { show: false }, cursor: { show: false }, scales: { x: { range: (_plot, low, high) => [Math.min(low, high - 60), high] }, y: { range: (_plot, _low, high) => [0, Math.max(1, high * 1.1)] } },
        series: [{}, ...names.map((label, index) => ({ label, stroke: colour(`--series-${index + 1}`), width: 2, ...(index === 0 ? {} : { dash: [[], [6, 3], [2, 2], [8, 2, 2, 2]][index] ?? [] }) }))],
        axes: [{ stroke: muted, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, values: (_plot, splits) => splits.map((at) => clock(at * 1000)) }, { stroke: muted, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, size: 70, values: (_plot, splits) => splits.map(text) }],
      }, data() as [number[], ...number[][]], box.current);
      plot.current = made as unknown as typeof plot.current;
      watch = new ResizeObserver(() => { if (box.current !== null) made.setSize({ width: box.current.clientWidth, height: 160 }); });
      watch.observe(box.current);
    });
    return () => {
      isOver = true;
      watch?.disconnect();
      dark.removeEventListener("change", again);
      plot.current?.destroy();
      plot.current = null;
    };
  }, []);
  useEffect(() => plot.current?.setData(data()), [series, settings.value.theme]);
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
  const [error, setError] = useState<ErrorBody | null>(null);
  const look = (): void => {
    const last = vitals.value?.rows.at(-1)?.[0] ?? 0;
    client.request("vitals", last === 0 ? {} : { since: last }).then((answer) => {
      setError(null);
      vitals.value = joined(vitals.value, answer.fields, answer.samples, MOST);
    }, (cause: unknown) => setError(fault(cause)));
  };
  // What an image told that has ended is not what this one does.
  useEffect(() => { vitals.value = null; if (isVisible) look(); }, [epoch.value]);
  useEffect(() => { if (isVisible) look(); }, [isVisible]);
  usePulse(look, isVisible);
  const known = vitals.value;
  return (
    <div class="scroll">
      <Problem error={error} onDismiss={() => setError(null)} />
      <div class="bar"><span class="muted">{known === null ? "" : `${count(known.rows.length, "sample")} of the last 15 minutes`}</span><button class="plain right" aria-pressed={isTable} onClick={() => setTable(!isTable)}>Show as {isTable ? "chart" : "table"}</button></div>
      {CHARTS.map(({ title, fields, text }) => {
        const series = known === null ? { at: [], values: [] } : seriesOf(known, fields.map(([field]) => field));
        const names = fields.map(([, name]) => name);
        return isTable ? <section key={title}><h3 style={{ padding: "8px 12px 0" }}>{title}</h3><Table series={series} names={names} text={text} /></section> : <Chart key={title} title={title} names={names} series={series} text={text} />;
      })}
    </div>
  );
}
