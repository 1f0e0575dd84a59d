// Where the panes are: columns of groups of tabs. A pure value with the things that can be done to it, so that a
// layout that was kept, sent or typed by hand is checked in one place.

export const PANES = [
  "workspace", "classes", "inspector", "actors", "supervision", "transcript", "changes", "tests", "bindings", "log", "audit",
  // Of these there may be several, to look at one thing beside another.
  "classes2", "classes3", "classes4", "inspector2", "inspector3", "inspector4",
] as const;
export type PaneId = (typeof PANES)[number];
/** Those of which one is always meant when none is named. */
export type PaneKind = Exclude<PaneId, `${string}${2 | 3 | 4}`>;
export const KINDS = PANES.filter((pane): pane is PaneKind => !/\d$/.test(pane));

export function kindOf(pane: PaneId): PaneKind {
  return KINDS.find((kind) => pane.startsWith(kind)) ?? "workspace";
}

/** One more of a kind: the first that is not on the screen, the last where all are. */
export function another(layout: Layout, kind: PaneKind): PaneId {
  const shown = [...groups(layout).flatMap((one) => one.tabs), ...(layout.floats ?? []).map((one) => one.pane)];
  const all = PANES.filter((pane) => kindOf(pane) === kind);
  return all.find((pane) => !shown.includes(pane)) ?? all.at(-1) ?? kind;
}

/** What every pane is given. */
export interface PaneProps {
  /** Which one it is, where there are several of its kind. */
  pane: PaneId;
  /** Whether it can be seen; one that cannot asks for nothing. */
  isVisible: boolean;
}

export interface Group {
  tabs: PaneId[];
  active: PaneId;
  /** Share of its column, in percent. */
  size: number;
}
export interface Column {
  groups: Group[];
  size: number;
}
/** A pane above the others: its place and size in percent of the screen. */
export interface Float {
  pane: PaneId;
  x: number;
  y: number;
  width: number;
  height: number;
}
export interface Layout {
  columns: Column[];
  /** The last one is on top. */
  floats?: Float[];
}

/** The same panes where there is little room: at most two columns, each one group. */
export function narrowed(layout: Layout, newest: readonly PaneId[]): Layout {
  const all = layout.columns.map((column) => column.groups.flatMap((one) => one.tabs));
  const [first = [], ...rest] = all;
  const parts = [first, rest.flat()].filter((tabs) => tabs.length > 0);
  const floating = (layout.floats ?? []).map((one) => one.pane);
  const shown = [...newest, ...groups(layout).map((one) => one.active)];
  return { columns: parts.map((tabs, at) => {
    const own = at === parts.length - 1 ? [...tabs, ...floating] : tabs;
    return { size: 100 / parts.length, groups: [{ tabs: own, active: shown.find((pane) => own.includes(pane)) ?? own[0] ?? "workspace", size: 100 }] };
  }) };
}

export type Edge = "middle" | "left" | "right" | "above" | "below";

function group(size: number, ...tabs: [PaneId, ...PaneId[]]): Group {
  return { tabs, active: tabs[0], size };
}

export const PRESETS: Record<string, Layout> = {
  Start: { columns: [{ size: 55, groups: [group(100, "workspace")] }, { size: 45, groups: [group(60, "inspector", "classes"), group(40, "transcript", "tests")] }] },
  Code: { columns: [{ size: 60, groups: [group(100, "classes")] }, { size: 40, groups: [group(55, "workspace"), group(45, "changes", "tests", "transcript")] }] },
  Observe: { columns: [{ size: 45, groups: [group(45, "actors"), group(55, "supervision")] }, { size: 55, groups: [group(60, "inspector"), group(40, "transcript", "log")] }] },
  Performance: { columns: [{ size: 60, groups: [group(100, "actors")] }, { size: 40, groups: [group(100, "supervision")] }] },
};

const copy = (layout: Layout): Layout => structuredClone(layout);

/** Takes away what is empty and makes shares add up to 100. */
function settle(layout: Layout): Layout {
  for (const column of layout.columns) column.groups = column.groups.filter((one) => one.tabs.length > 0);
  layout.columns = layout.columns.filter((one) => one.groups.length > 0);
  if (layout.columns.length === 0) layout.columns = [{ size: 100, groups: [group(100, "workspace")] }];
  share(layout.columns);
  for (const column of layout.columns) share(column.groups);
  return layout;
}

function share(parts: { size: number }[]): void {
  const sum = parts.reduce((total, part) => total + part.size, 0);
  if (Math.abs(sum - 100) < 0.001) return;
  for (const part of parts) part.size = (part.size / sum) * 100;
}

export function groups(layout: Layout): Group[] {
  return layout.columns.flatMap((column) => column.groups);
}

export function visiblePanes(layout: Layout): PaneId[] {
  return [...groups(layout).map((one) => one.active), ...(layout.floats ?? []).map((one) => one.pane)];
}

/** Take a pane out of its group and put it above the others. */
export function float(layout: Layout, pane: PaneId): Layout {
  if (layout.floats?.some((one) => one.pane === pane) === true || groups(layout).flatMap((one) => one.tabs).length === 1) return layout;
  const next = close(layout, pane);
  const step = 3 * ((next.floats ?? []).length % 5);
  return { ...next, floats: [...(next.floats ?? []), { pane, x: 25 + step, y: 15 + step, width: 45, height: 55 }] };
}

/** Put a pane that floats back among the others. */
export function sink(layout: Layout, pane: PaneId): Layout {
  return show({ ...layout, floats: (layout.floats ?? []).filter((one) => one.pane !== pane) }, pane);
}

/** Move or resize a pane that floats; it stays on the screen and comes to the top. */
export function drift(layout: Layout, pane: PaneId, to: Partial<Omit<Float, "pane">>): Layout {
  const found = layout.floats?.find((one) => one.pane === pane);
  if (found === undefined) return layout;
  const within = (value: number, least: number, most: number): number => Math.min(most, Math.max(least, value));
  const wanted = { ...found, ...to };
  const [width, height] = [within(wanted.width, 15, 100), within(wanted.height, 15, 100)];
  const moved = { pane, width, height, x: within(wanted.x, 0, 100 - width), y: within(wanted.y, 0, 100 - height) };
  return { ...layout, floats: [...(layout.floats ?? []).filter((one) => one.pane !== pane), moved] };
}

/** Where a pane goes that is not there: beside its kin, else into the last group. */
const KIN: PaneKind[][] = [["inspector", "classes"], ["transcript", "changes", "tests", "log", "audit", "bindings"], ["actors", "supervision"]];

export function show(layout: Layout, pane: PaneId): Layout {
  if (layout.floats?.some((one) => one.pane === pane) === true) return drift(layout, pane, {});
  const next = copy(layout);
  const all = groups(next);
  const home = all.find((one) => one.tabs.includes(pane));
  if (home !== undefined) {
    home.active = pane;
    return next;
  }
  const kin = KIN.find((family) => family.includes(kindOf(pane))) ?? [];
  const host = all.find((one) => one.tabs.some((tab) => kin.includes(kindOf(tab)))) ?? all[all.length - 1];
  if (host !== undefined) {
    host.tabs.push(pane);
    host.active = pane;
  }
  return settle(next);
}

export function close(layout: Layout, pane: PaneId): Layout {
  const next = copy(layout);
  if (next.floats !== undefined) next.floats = next.floats.filter((one) => one.pane !== pane);
  for (const one of groups(next)) {
    const at = one.tabs.indexOf(pane);
    if (at < 0) continue;
    one.tabs.splice(at, 1);
    if (one.active === pane) one.active = one.tabs[Math.max(0, at - 1)] ?? pane;
  }
  return settle(next);
}

/** Put a pane into the group of another one, or beside it. */
export function move(layout: Layout, pane: PaneId, target: PaneId, edge: Edge): Layout {
  if (pane === target && edge === "middle") return layout;
  const source = groups(layout).find((one) => one.tabs.includes(pane));
  if (pane === target && source?.tabs.length === 1) return layout;
  const next = copy(layout);
  for (const one of groups(next)) {
    const at = one.tabs.indexOf(pane);
    if (at < 0) continue;
    one.tabs.splice(at, 1);
    if (one.active === pane) one.active = one.tabs[0] ?? pane;
  }
  const column = next.columns.find((one) => one.groups.some((two) => two.tabs.includes(target)));
  const home = column?.groups.find((one) => one.tabs.includes(target));
  if (column === undefined || home === undefined) return layout;
  const [columnAt, groupAt] = [next.columns.indexOf(column), column.groups.indexOf(home)];
  if (edge === "middle") {
    home.tabs.push(pane);
    home.active = pane;
  } else if (edge === "above" || edge === "below") {
    home.size /= 2;
    column.groups.splice(groupAt + (edge === "below" ? 1 : 0), 0, group(home.size, pane));
  } else {
    column.size /= 2;
    next.columns.splice(columnAt + (edge === "right" ? 1 : 0), 0, { size: column.size, groups: [group(100, pane)] });
  }
  return settle(next);
}

/** Move the border after a part by so many percent; neither side gets smaller than `least`. */
export function resize(layout: Layout, column: number, after: number | null, percent: number, least: number): Layout {
  const next = copy(layout);
  const parts = after === null ? next.columns : (next.columns[column]?.groups ?? []);
  const at = after ?? column;
  const [first, second] = [parts[at], parts[at + 1]];
  if (first === undefined || second === undefined) return layout;
  const both = first.size + second.size;
  const size = Math.min(both - least, Math.max(least, first.size + percent));
  [first.size, second.size] = [size, both - size];
  return next;
}

/** A layout that was kept. Anything that is none becomes null; panes of another version are left out. */
export function parse(text: string): Layout | null {
  try {
    const read = JSON.parse(text) as Layout;
    const seen = new Set<PaneId>();
    const isNew = (tab: unknown): tab is PaneId =>
      PANES.includes(tab as PaneId) && !seen.has(tab as PaneId) && seen.add(tab as PaneId).size > 0;
    const number = (size: unknown): number => (typeof size === "number" && size > 0 && size <= 100 ? size : 50);
    const columns = read.columns.map((column) => ({
      size: number(column.size),
      groups: column.groups.map((one) => {
        const tabs = one.tabs.filter(isNew);
        return { tabs, active: tabs.includes(one.active) ? one.active : (tabs[0] ?? "workspace"), size: number(one.size) };
      }),
    }));
    if (seen.size === 0) return null;
    const place = (value: unknown, most: number): number => (typeof value === "number" && value >= 0 && value <= most ? value : most / 4);
    const floats = (Array.isArray(read.floats) ? read.floats : []).filter((one) => isNew(one?.pane)).map((one) => ({
      pane: one.pane, x: place(one.x, 85), y: place(one.y, 85), width: Math.max(15, place(one.width, 100)), height: Math.max(15, place(one.height, 100)),
    }));
    return { ...settle({ columns }), ...(floats.length === 0 ? {} : { floats }) };
  } catch {
    return null;
  }
}
