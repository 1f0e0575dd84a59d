// Tables and lists: a window of rows, sorted and searched where the value lives.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { grouped, visible } from "../kernel/text";
import { List } from "../parts/list";
import type { Opened, ShownView, ViewRow } from "../wire/protocol";

interface Props {
  view: ShownView;
  sort: string;
  find: string;
  onSort: (sort: string) => void;
  onFind: (find: string) => void;
  onFrom: (from: number) => void;
  onOpen: (target: Opened) => void;
}

const PAGE = 100;

export function Rows({ view, sort, find, onSort, onFind, onFrom, onOpen }: Props): JSX.Element {
  const [selected, select] = useState<string | null>(null);
  const rows = view.rows ?? [];
  const columns = view.columns ?? [];
  const from = view.from ?? 0;
  const total = view.total ?? from + rows.length;
  const open = (row: ViewRow): void => { if (row.open !== null && row.cells.some((cell) => cell.drillable || cell.class === null)) onOpen(row.open); };
  const isNumber = columns.map((column, at) => column.kind === "number" || (rows.length > 0 && rows.every((row) => ["Integer", "Float"].includes(row.cells[at]?.class ?? ""))));
  // A number that leads the row needs little room.
  const width = (at: number): Record<string, string> => (at === 0 && columns[0]?.kind === "number" ? { flex: "0 0 72px" } : { flex: "1 1 0", minWidth: "0" });
  return (
    <>
      {total > 8 || find !== "" ? <div class="bar"><input type="search" aria-label={`Find in ${view.title}`} placeholder="find" value={find} onInput={(event) => onFind(event.currentTarget.value)} /><span class="muted number">{grouped(total)} {total === 1 ? "row" : "rows"}</span>{view.order === "unsorted" ? <span class="muted">unsorted</span> : null}</div> : null}
      <div class="heads" role="row">
        {columns.map((column, at) => <span key={column.title} role="columnheader" style={width(at)} class={isNumber[at] === true ? "number" : ""} aria-sort={sort === column.title ? "ascending" : sort === `-${column.title}` ? "descending" : "none"}><button onClick={() => onSort(sort === column.title ? `-${column.title}` : column.title)}>{visible(column.title)}{sort === column.title ? " ↑" : sort === `-${column.title}` ? " ↓" : ""}</button></span>)}
      </div>
      {rows.length === 0 ? <div class="empty">{find === "" ? "Nothing here." : `Nothing with '${visible(find)}' in it.`}</div> : (
        <List label={view.title} role="grid" items={rows} keyOf={(_row, at) => String(from + at)} selected={selected} onSelect={(row, at) => { select(String(from + at)); open(row); }} row={(row) => row.cells.map((cell, at) => (
          <span key={at} style={width(at)} class={`code cut ${isNumber[at] === true ? "number" : ""}`} title={visible(cell.text).slice(0, 500)}>{visible(cell.text).slice(0, 300)}</span>
        ))} />
      )}
      {total > rows.length ? (
        <div class="bar pages">
          <button class="plain" disabled={from === 0} onClick={() => onFrom(Math.max(0, from - PAGE))}>Before</button>
          <span class="muted number">{grouped(from + 1)}–{grouped(from + rows.length)} of {grouped(total)}</span>
          <button class="plain" disabled={from + rows.length >= total || rows.length === 0} onClick={() => onFrom(from + PAGE)}>After</button>
        </div>
      ) : null}
    </>
  );
}
