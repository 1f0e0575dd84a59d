// Mod-K: one field and one list for panes, actions, classes, methods and values.

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { actionsOf, focused, keyText, type Action } from "../kernel/actions";
import { KINDS } from "../kernel/layout";
import { recent } from "../kernel/recent";
import { go, parse as parseRoute } from "../kernel/routes";
import { client, fault, isOwner } from "../kernel/store";
import { match, visible } from "../kernel/text";
import type { DocumentInfo } from "../wire/protocol";
import { allowed, commandOf } from "./commands";
import { LAYOUTS, layoutName, layoutNames, openLayout, reveal } from "./dock";
import { LETTERS, TITLES } from "./panes";

export const isPaletteOpen = signal(false);
/** What to type into it when it opens. */
const start = signal("");

export interface Entry {
  text: string;
  detail: string;
  run: () => void;
  /** What is typed instead of running it: it needs more. */
  fill?: string;
}

/** Classes and selectors, read once and after they changed. */
const symbols = signal<{ classes: string[]; selectors: [string, string, string][]; names: string[] } | null>(null);
let isStale = true;

export function openPalette(text = ""): void {
  start.value = text;
  isPaletteOpen.value = true;
  if (!isStale) return;
  isStale = false;
  client.request("nav-symbols", { scope: "all" }).then(
    ({ classes }) => {
      const selectors = classes.flatMap((one) => one.methods.map((method): [string, string, string] => [method.selector, one.name, method.side]));
      symbols.value = { classes: classes.map((one) => one.name), selectors, names: [...new Set(selectors.map(([selector]) => selector))] };
    },
    () => { isStale = true; },
  );
}

export function watchSymbols(): void {
  client.on("classes", () => { isStale = true; });
}

/** Documents and sources of the project that were last asked for. */
const documents = signal<{ find: string; list: readonly DocumentInfo[] }>({ find: "", list: [] });

function findDocuments(find: string): void {
  client.request("doc-list", { find, limit: 12 }).then((answer) => { documents.value = { find, list: answer.documents }; }, () => undefined);
}

/** The best of many, without sorting those that do not match. */
export function best<Item>(typed: string, items: readonly Item[], textOf: (item: Item) => string, most = 12): Item[] {
  const found: { item: Item; score: number }[] = [];
  for (const item of items) {
    const score = match(typed, textOf(item));
    if (score !== null) found.push({ item, score });
  }
  return found.sort((one, two) => two.score - one.score).slice(0, most).map((one) => one.item);
}

function openMethod(className: string, selector: string, side: string): void {
  go("class", side === "class" ? `${className}.class` : className, selector);
}

function entriesFor(text: string, actions: Action[]): Entry[] {
  const rest = text.slice(1);
  const { classes, selectors, names } = symbols.value ?? { classes: [], selectors: [], names: [] };
  if (text.startsWith("@") && rest.includes(">")) {
    const [name = "", typed = ""] = rest.split(">");
    const own = selectors.filter(([, owner]) => owner.toLowerCase() === name.toLowerCase());
    return best(typed, own, ([selector]) => selector).map(([selector, owner, side]) => ({ text: `${owner}>>${selector}`, detail: side, run: () => openMethod(owner, selector, side) }));
  }
  const classEntries = (typed: string, most?: number): Entry[] => best(typed, classes, (name) => name, most).map((name) => ({ text: name, detail: "class", run: () => go("class", name) }));
  if (text.startsWith("@")) return classEntries(rest);
  if (text.startsWith("#")) {
    const wantsSenders = rest.endsWith("<");
    const typed = wantsSenders ? rest.slice(0, -1) : rest;
    return best(typed, names, (name) => name).map((name) => ({
      text: name, detail: wantsSenders ? "senders" : "implementors", run: () => go(wantsSenders ? "senders" : "implementors", name),
    }));
  }
  if (text.startsWith("/")) {
    return best(rest, documents.value.list, ({ path }) => path).map(({ path, title }) => ({ text: path, detail: path.endsWith(title) ? "" : title, run: () => go("file", ...path.split("/")) }));
  }
  if (text.startsWith(":")) {
    const typed = commandOf(rest);
    const ready = typed !== null && (typed.rest !== "" || typed.command.takes === undefined || typed.command.takes.startsWith("[")) && allowed().includes(typed.command) ? typed : null;
    const others = best(rest.split(" ")[0] ?? "", allowed(), (one) => one.name).filter((one) => one !== ready?.command);
    return [
      ...(ready === null ? [] : [{ text: `:${ready.command.name} ${ready.rest}`.trim(), detail: ready.command.does, run: () => void ready.command.run(ready.rest) }]),
      ...(rest.includes(" ") ? [] : others.map((one) => ({ text: `:${one.name}${one.takes === undefined ? "" : ` ${one.takes}`}`, detail: one.does, ...(one.takes === undefined ? {} : { fill: `:${one.name} ` }), run: () => void one.run("") }))),
    ].slice(0, 12);
  }
  const acts = actions.map((action) => ({ text: action.title, detail: action.key === undefined ? "" : keyText(action.key), run: action.run }));
  if (text.startsWith(">")) return best(rest, acts, (one) => one.text);
  const panes = KINDS.filter((pane) => isOwner.value || pane !== "audit").map((pane) => ({
    text: TITLES[pane], detail: `g ${Object.keys(LETTERS).find((letter) => LETTERS[letter] === pane) ?? ""}`, run: () => reveal(pane, true),
  }));
  const presets = layoutNames().map((name) => ({ text: `Layout: ${LAYOUTS[name] ?? name}`, detail: name === layoutName.value ? "shown" : "layout", run: () => openLayout(name) }));
  // A link may have named what is not there: that is no place.
  const isKnown = (kind: string, name: string): boolean =>
    kind === "class" ? classes.includes(name.replace(/\.class$/u, "")) : selectors.some(([selector]) => selector === name);
  const places = recent.value.flatMap((hash) => {
    const parts = parseRoute(hash)?.parts ?? [];
    return parts.length < 2 || !isKnown(parts[0] ?? "", parts[1] ?? "") ? [] : [{ text: parts.slice(1).join(" "), detail: `recent ${parts[0] ?? ""}`, run: () => go(...parts) }];
  });
  return best(text, [...(text === "" ? places.slice(0, 3) : []), ...panes, ...acts, ...(text === "" ? [] : places), ...presets, ...(text === "" ? [] : classEntries(text))], (one) => one.text);
}

export function Palette({ actions }: { actions: Action[] }): JSX.Element | null {
  const [text, setText] = useState(start.value);
  const [at, setAt] = useState(0);
  const [value, setValue] = useState<string | null>(null);
  const field = useRef<HTMLInputElement>(null);
  const before = useRef(document.activeElement as HTMLElement | null);
  // Before the next key can be typed.
  useLayoutEffect(() => {
    field.current?.focus();
    field.current?.select();
    return () => { if (document.activeElement === document.body) before.current?.focus(); };
  }, []);
  useEffect(() => { if (text.startsWith("/")) findDocuments(text.slice(1)); }, [text]);
  const all = useMemo(() => [...actionsOf(focused.value).filter((action) => isOwner.value || action.isChange !== true), ...actions], [actions, focused.value]);
  const entries: Entry[] = useMemo(() => (text.startsWith("=") ? [] : entriesFor(text, all)), [text, symbols.value, documents.value, all]);
  const leave = (): void => { isPaletteOpen.value = false; };
  const choose = (entry: Entry | undefined): void => {
    if (text.startsWith("=") && isOwner.value) {
      client.request("eval", { code: text.slice(1) }).then((answer) => setValue(answer.text), (cause: unknown) => setValue(fault(cause).message));
      return;
    }
    if (entry === undefined) return;
    if (entry.fill !== undefined) { setText(entry.fill); setAt(0); field.current?.focus(); return; }
    leave();
    before.current?.focus();
    entry.run();
  };
  return (
    <div class="veil" onPointerDown={(event) => { if (event.target === event.currentTarget) leave(); }}>
      <div class="palette fade" role="dialog" aria-label="Command palette">
        <input
          ref={field} role="combobox" aria-expanded="true" aria-controls="palette-list" aria-label="Search" autocomplete="off" spellcheck={false}
          {...(entries.length === 0 ? {} : { "aria-activedescendant": `palette-${at}` })}
          placeholder="Panes, actions, classes · @class · #selector · /file · >action · :command · =expression" value={text}
          onInput={(event) => { setText(event.currentTarget.value); setAt(0); setValue(null); }}
          onKeyDown={(event) => {
            if (event.key === "ArrowDown") setAt(Math.min(entries.length - 1, at + 1));
            else if (event.key === "ArrowUp") setAt(Math.max(0, at - 1));
            else if (event.key === "Enter") choose(entries[at]);
            else if (event.key === "Escape") { leave(); before.current?.focus(); }
            else if (event.key !== "Tab") return;
            event.preventDefault();
            event.stopPropagation();
          }}
        />
        <div id="palette-list" role="listbox" aria-label="Results">
          {entries.map((entry, place) => (
            <div key={`${entry.text}-${entry.detail}`} id={`palette-${place}`} class="row" role="option" aria-selected={place === at} onPointerMove={() => setAt(place)} onClick={() => choose(entry)}>
              <span class="cut">{visible(entry.text)}</span><span class="right">{visible(entry.detail)}</span>
            </div>
          ))}
          {text.startsWith("=") ? <div class="row"><span class="code cut">{value === null ? "Enter evaluates" : visible(value)}</span></div> : null}
          {entries.length === 0 && !text.startsWith("=") ? <div class="row muted">Nothing called '{visible(text)}'.</div> : null}
        </div>
      </div>
    </div>
  );
}
