// A list of any length of which only the rows in sight exist. Keys move the selection; the selected row is what a
// screen reader is told.

import { Fragment, cloneElement, isValidElement, toChildArray, type ComponentChildren, type JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { isTyping, sheetOf } from "../kernel/actions";
import type { PaneId } from "../kernel/layout";
import { status } from "../kernel/store";

export interface ListProps<Item> {
  label: string;
  items: readonly Item[];
  keyOf: (item: Item, at: number) => string;
  selected: string | null;
  onSelect: (item: Item, at: number) => void;
  onOpen?: (item: Item, at: number) => void;
  row: (item: Item, at: number) => ComponentChildren;
  rowClass?: (item: Item) => string;
  /** `tree` rows say their level. */
  level?: (item: Item) => { level: number; isOpen?: boolean };
  onToggle?: (item: Item, isOpen: boolean) => void;
  onKey?: (event: KeyboardEvent) => void;
  /** The first of all rows that `items` starts with, and how many there are, where only a window is known. */
  from?: number;
  total?: number;
  onWindow?: (first: number, last: number) => void;
  /** The cells of a grid are what `row` answers. */
  role?: "listbox" | "tree" | "grid";
  /** New rows at the end are shown as they come, as long as the end is in sight. */
  isFollowing?: boolean;
}

const ROLES = { listbox: "option", tree: "treeitem", grid: "row" } as const;

/** What stands in a row, each as a cell. */
function cells(row: ComponentChildren): ComponentChildren {
  const all = isValidElement(row) && row.type === Fragment ? toChildArray((row as JSX.Element).props.children) : toChildArray(row);
  return all.map((one) => (isValidElement(one) ? cloneElement(one as JSX.Element, { role: "gridcell" }) : one));
}

const SPARE = 6;

function rowHeight(): number {
  return matchMedia("(pointer: coarse)").matches ? 44 : 24;
}

/** Lists are told apart: there may be two of one name. */
let lists = 0;

export function List<Item>(props: ListProps<Item>): JSX.Element {
  const [own] = useState(() => `list-${(lists += 1)}`);
  const { items, keyOf, selected } = props;
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  const height = rowHeight();
  const from = props.from ?? 0;
  const total = props.total ?? items.length;
  const first = Math.max(0, Math.floor(view.top / height) - SPARE);
  const last = Math.min(total, Math.ceil((view.top + view.height) / height) + SPARE);

  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    const measure = (): void => setView((old) => (old.height === element.clientHeight && old.top === element.scrollTop ? old : { top: element.scrollTop, height: element.clientHeight }));
    measure();
    const watch = new ResizeObserver(measure);
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  useLayoutEffect(() => {
    props.onWindow?.(first, last);
  }, [first, last, total]);

  const isAtEnd = useRef(true);
  useLayoutEffect(() => {
    const element = box.current;
    if (props.isFollowing === true && isAtEnd.current && element !== null) element.scrollTop = element.scrollHeight;
  }, [total, props.isFollowing, view.height]);

  const at = selected === null ? -1 : items.findIndex((item, place) => keyOf(item, place) === selected);
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null || at < 0) return;
    const top = (from + at) * height;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + height > element.scrollTop + element.clientHeight) element.scrollTop = top + height - element.clientHeight;
  }, [selected]);

  const move = (to: number): void => {
    const place = Math.min(items.length - 1, Math.max(0, to));
    const item = items[place];
    if (item !== undefined) props.onSelect(item, place);
  };
  const withMod = (event: KeyboardEvent): void => {
    if (event.key.toLowerCase() === "f") {
      const filter = box.current?.closest(".pane")?.querySelector<HTMLInputElement>("input[type=search]");
      if (filter == null) return;
      filter.focus();
    } else if (event.key.toLowerCase() === "c" && String(getSelection()) === "" && at >= 0) {
      const row = document.getElementById(`${own}-${selected ?? ""}`);
      const text = [...(row?.children ?? [])].map((one) => one.textContent ?? "").filter((one) => one !== "").join("\t");
      navigator.clipboard?.writeText(text).then(() => { status.value = "copied"; }, () => { status.value = "The browser did not allow to copy"; });
    } else return;
    event.preventDefault();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (isTyping(event.target) || event.altKey) return;
    if (event.ctrlKey || event.metaKey) return withMod(event);
    const page = Math.max(1, Math.floor(view.height / height) - 1);
    const item = items[at];
    const level = item === undefined ? undefined : props.level?.(item);
    const moves: Record<string, () => void> = {
      ArrowDown: () => move(at + 1), ArrowUp: () => move(at < 0 ? 0 : at - 1), Home: () => move(0), End: () => move(items.length - 1),
      PageDown: () => move(at + page), PageUp: () => move(at - page),
    };
    if (item !== undefined) {
      moves.Enter = () => props.onOpen?.(item, at);
      if (level !== undefined && level.isOpen !== undefined) {
        moves.ArrowRight = () => (level.isOpen === true ? move(at + 1) : props.onToggle?.(item, true));
        moves.ArrowLeft = () => props.onToggle?.(item, false);
      }
    }
    const act = moves[event.key];
    if (act === undefined) return props.onKey?.(event);
    event.preventDefault();
    act();
  };

  const shown: JSX.Element[] = [];
  for (let place = Math.max(first, from); place < Math.min(last, from + items.length); place += 1) {
    const item = items[place - from] as Item;
    const key = keyOf(item, place - from);
    const level = props.level?.(item);
    shown.push(
      <div
        key={key}
        id={`${own}-${key}`}
        class={`row ${props.rowClass?.(item) ?? ""}`}
        role={ROLES[props.role ?? "listbox"]}
        aria-selected={key === selected}
        {...(props.role === "grid" ? { "aria-rowindex": place + 1 } : { "aria-posinset": place + 1, "aria-setsize": total })}
        {...(level === undefined ? {} : { "aria-level": level.level + 1, ...(level.isOpen === undefined ? {} : { "aria-expanded": level.isOpen }) })}
        style={{ position: "absolute", top: `${place * height}px`, left: 0, right: 0, ...(level === undefined ? {} : { paddingLeft: `${8 + level.level * 16}px` }) }}
        onClick={() => {
          props.onSelect(item, place - from);
          if (level?.isOpen !== undefined) props.onToggle?.(item, !level.isOpen);
        }}
        onDblClick={() => props.onOpen?.(item, place - from)}
        onContextMenu={(event) => {
          const pane = event.currentTarget.closest(".pane")?.id.slice("pane-".length);
          if (pane === undefined || String(getSelection()) !== "") return;
          event.preventDefault();
          props.onSelect(item, place - from);
          sheetOf.value = pane as PaneId;
        }}
      >
        {props.role === "grid" ? cells(props.row(item, place - from)) : props.row(item, place - from)}
      </div>,
    );
  }
  return (
    <div
      ref={box}
      class="scroll list"
      role={props.role ?? "listbox"}
      aria-label={props.label}
      {...(props.role === "grid" ? { "aria-rowcount": total } : {})}
      {...(selected === null || at < 0 ? {} : { "aria-activedescendant": `${own}-${selected}` })}
      tabIndex={0}
      onKeyDown={onKeyDown}
      onScroll={(event) => {
        const element = event.currentTarget;
        isAtEnd.current = element.scrollTop + element.clientHeight >= element.scrollHeight - height;
        setView({ top: element.scrollTop, height: element.clientHeight });
      }}
    >
      <div {...(props.role === "grid" ? { role: "presentation" } : {})} style={{ position: "relative", height: `${total * height}px` }}>{shown}</div>
    </div>
  );
}
