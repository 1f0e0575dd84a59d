// A question before something is lost, the table of keys, and words that come and go.

import { signal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { actionsOf, focused, keyText, sheetOf } from "../kernel/actions";
import type { PaneId } from "../kernel/layout";
import { alarmed, page, question, spoken, toasts, type Question } from "../kernel/notices";
import { isFrozen, isOwner } from "../kernel/store";
import { visible } from "../kernel/text";
import { Markdown } from "../parts/markdown";
import { TITLES } from "./panes";

export const areKeysShown = signal(false);

/** Tab stays inside. */
function trap(event: KeyboardEvent, box: HTMLElement | null): void {
  const all = [...(box?.querySelectorAll<HTMLElement>("button, input") ?? [])].filter((one) => !one.hasAttribute("disabled"));
  const at = all.indexOf(document.activeElement as HTMLElement);
  event.preventDefault();
  all[(at + (event.shiftKey ? -1 : 1) + all.length) % all.length]?.focus();
}

function Dialog({ asked }: { asked: Question }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const before = useRef(document.activeElement as HTMLElement | null);
  const [typed, setTyped] = useState("");
  useLayoutEffect(() => {
    // A destructive button is never the one that has focus first.
    box.current?.querySelector<HTMLElement>(asked.typed === undefined ? "button" : "input")?.focus();
    return () => before.current?.focus();
  }, []);
  const isReady = asked.typed === undefined || asked.typed === typed;
  return (
    <div class="veil">
      <div ref={box} class="dialog fade" role="alertdialog" aria-modal="true" aria-labelledby="dialog-title" aria-describedby="dialog-text" onKeyDown={(event) => {
        if (event.key === "Escape") asked.answer(false);
        else if (event.key === "Tab") trap(event, box.current);
        else return;
        event.stopPropagation();
      }}>
        <h2 id="dialog-title">{asked.title}</h2>
        <p id="dialog-text">{asked.text}</p>
        {asked.typed === undefined ? null : <label>Type <code>{asked.typed}</code> to go on <input value={typed} onInput={(event) => setTyped(event.currentTarget.value)} /></label>}
        <div class="acts">
          <button class="plain" onClick={() => asked.answer(false)}>Cancel</button>
          <button class={asked.isDestructive ? "destructive" : "primary"} disabled={!isReady} onClick={() => asked.answer(true)}>{asked.act}</button>
        </div>
      </div>
    </div>
  );
}

const ANYWHERE: [string, string][] = [
  ["Mod-K", "command palette"], ["Mod-.", "interrupt the evaluation"], ["F6, Shift-F6", "next, previous pane"],
  ["Esc", "from a text to its pane"], ["Enter", "back into the text"], ["g + letter", "go to a pane"], ["f, r", "full screen, refresh"], [".", "menu of the pane"], ["/", "palette"], ["?", "these keys"],
];
const SURFACE: [string, string][] = [
  ["Mod-D, Mod-Enter", "do it"], ["Mod-P, Shift-Enter", "print it"], ["Mod-I", "inspect it"], ["Alt-Enter", "print it and write the value behind it"],
  ["Mod-B", "browse the class or method at the caret"], ["Alt-N, Alt-M, Alt-R", "senders, implementors, references"], ["Mod-click", "browse what is clicked"],
  ["Ctrl-Space, Tab", "complete, accept"], ["F1", "documentation"], ["Mod-S", "save"], ["Alt-Shift-F", "format"], ["Alt-E, Alt-J", "select what is around, the next like it"],
  ["Mod-F, Mod-Alt-G", "find, go to a line"], ["Mod-/, Alt-↑↓", "comment, move the line"], ["Ctrl-M", "Tab moves on instead of indenting"],
];

const LISTS: [string, string][] = [["↑↓ Home End PgUp PgDn", "move"], ["←→", "close, open"], ["Enter", "open"], ["Mod-F", "filter"], ["Mod-C", "copy as text"]];

/** Something to read above everything else, until it is closed. */
function Sheet({ label, onClose, children }: { label: string; onClose: () => void; children: ComponentChildren }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const before = useRef(document.activeElement as HTMLElement | null);
  useLayoutEffect(() => {
    box.current?.querySelector<HTMLElement>(".acts button")?.focus();
    return () => before.current?.focus();
  }, []);
  return (
    <div class="veil">
      <div ref={box} class="dialog" style={{ maxWidth: "560px" }} role="dialog" aria-modal="true" aria-label={label} onKeyDown={(event) => {
        if (event.key === "Escape") onClose();
        else if (event.key === "Tab") trap(event, box.current);
        else return;
        event.stopPropagation();
      }}>
        {children}
        <div class="acts"><button class="plain" onClick={onClose}>Close</button></div>
      </div>
    </div>
  );
}

/** What can be done in a pane, one below the other. */
function Acts({ pane }: { pane: PaneId }): JSX.Element {
  const all = actionsOf(pane).filter((action) => isOwner.value || action.isChange !== true);
  const close = (): void => { sheetOf.value = null; };
  return (
    <Sheet label={`Actions of ${TITLES[pane]}`} onClose={close}>
      <h2>{TITLES[pane]}</h2>
      {all.length === 0 ? <p class="muted">Nothing can be done here.</p> : null}
      <div class="choices">{all.map((action) => <button key={action.title} disabled={action.isChange === true && isFrozen.value} onClick={() => { close(); action.run(); }}><span class="grow">{action.title}</span>{action.key === undefined ? null : <kbd>{keyText(action.key)}</kbd>}</button>)}</div>
    </Sheet>
  );
}

function Keys(): JSX.Element {
  const own = actionsOf(focused.value).filter((action) => isOwner.value || action.isChange !== true).flatMap((action): [string, string][] => (action.key === undefined ? [] : [[action.key, action.title]]));
  const part = (title: string, rows: [string, string][]): JSX.Element[] => [
    <h3 key={title} style={{ gridColumn: "1 / -1" }}>{title}</h3>,
    ...rows.flatMap(([key, does]) => [<span key={`${title}${key}`}><kbd>{keyText(key)}</kbd></span>, <span key={`${title}${key}does`}>{does}</span>]),
  ];
  return (
    <Sheet label="Keys" onClose={() => { areKeysShown.value = false; }}>
      <div class="keys">
        {own.length === 0 || focused.value === null ? null : part(TITLES[focused.value], own)}
        {part("In a text", SURFACE)}
        {part("In a list", LISTS)}
        {part("Anywhere", ANYWHERE)}
      </div>
    </Sheet>
  );
}

export function Dialogs(): JSX.Element {
  return (
    <>
      {question.value === null ? null : <Dialog asked={question.value} />}
      {areKeysShown.value ? <Keys /> : null}
      {sheetOf.value === null ? null : <Acts pane={sheetOf.value} />}
      {page.value === null ? null : <Sheet label={page.value.title} onClose={() => { page.value = null; }}>{page.value.isMarkdown === true ? <Markdown text={page.value.text} /> : <pre class="code page">{visible(page.value.text)}</pre>}</Sheet>}
      <div class="toasts">{toasts.value.map((one) => <div key={one.id} class="toast fade">{one.text}</div>)}</div>
      <div class="hidden" role="status" aria-live="polite">{[spoken.value, ...toasts.value.map((one) => one.text)].filter((one) => one !== "").join(". ")}</div>
      <div class="hidden" role="alert">{alarmed.value}</div>
    </>
  );
}
