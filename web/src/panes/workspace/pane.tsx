// The Workspace: type, evaluate, see what came of it below.

import { computed, signal, type Signal } from "@preact/signals";
import { closeCompletion } from "@codemirror/autocomplete";
import { Prec } from "@codemirror/state";
import { keymap, type EditorView } from "@codemirror/view";
import { render, type JSX } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { setDiagnostics } from "@codemirror/lint";
import { addResult, dropResults, pinned, resultPlaces, results as resultField } from "../../editor/results";
import { shown, surface } from "../../editor/surface";
import { keyText, offer } from "../../kernel/actions";
import { arrived, clash, keep, kept, names } from "../../kernel/desk";
import { fixOf } from "../../kernel/fixes";
import { inspect } from "../../kernel/inspect";
import type { PaneProps } from "../../kernel/layout";
import { stretch } from "../../kernel/merge";
import { alarm, announce, page, toast } from "../../kernel/notices";
import { place as route } from "../../kernel/routes";
import { settings } from "../../kernel/settings";
import { client, epoch, fault, actorClass, frameListeners, insertion, isFrozen, isOnline, isOwner, running, status, workspaceName } from "../../kernel/store";
import { byteOffset, placeOfByte, visible } from "../../kernel/text";
import type { Frame } from "../../wire/client";
import { OpError } from "../../wire/client";
import { Act } from "../../parts/act";
import { buffer, buffers, newBuffer, openBuffer, removeBuffer } from "./buffers";
import { Clash } from "./clash";
import { begun, findPlace, heard, mark, readAbout, report, type About, type Result } from "./model";
import { saveAsNotebook } from "./notebook";
import { ResultView, type Acts } from "./result";
import { Signs } from "./signs";

const isEmpty = signal(true);
/** All results of this session, by request. They outlive the pane, so that closing it loses nothing. */
const results = new Map<string, Signal<Result>>();
const elements = new Map<string, HTMLElement>();
/** Results whose text is gone. */
const stray = signal<string[]>([]);
/** So many results are shown whole; older ones are a line each, up to this. */
const [MOST, ALL] = [500, 2000];
const folded = signal<ReadonlySet<string>>(new Set());
let view: EditorView | null = null;

const runningResults = signal(0);
async function findExample(): Promise<void> {
  const { rows } = await client.request("browse-classes", {}).catch(() => ({ rows: [] }));
  const own = rows.filter((row) => row.superclass === "Actor" && !row.abstract && (row.category === null || row.category === workspaceName.value));
  actorClass.value = own[0]?.name ?? null;
}

function elementOf(id: string): HTMLElement {
  let element = elements.get(id);
  const result = results.get(id);
  if (element === undefined && result !== undefined) {
    element = document.createElement("div");
    element.className = "holder";
    elements.set(id, element);
    render(<ResultView result={result} acts={acts} folded={folded} />, element);
  }
  return element ?? document.createElement("div");
}

/** Put a result below its input, if it is of this buffer and the text is still there. */
function place(id: string): void {
  const result = results.get(id)?.peek();
  if (view === null || result === undefined || result.about.buffer !== buffer.peek()) return;
  const at = findPlace(result.about, view.state.doc.toString());
  if (at === null) stray.value = [...stray.value.filter((one) => one !== id), id];
  else view.dispatch({ effects: addResult.of({ id, at, element: elementOf(id) }) });
}

/** Pieces of output wait for the next drawing, where those of one evaluation are one. */
const pieces = new Map<string, Frame>();

function drawPieces(): void {
  const now = [...pieces.values()];
  pieces.clear();
  for (const frame of now) hear(frame);
}

function onFrame(frame: Frame): void {
  const id = frame.id ?? "";
  const waiting = pieces.get(id);
  if (typeof frame.out === "string" && (frame.status ?? []).length === 0 && results.has(id)) {
    if (pieces.size === 0) requestAnimationFrame(drawPieces);
    pieces.set(id, waiting === undefined ? frame : { ...waiting, out: `${waiting.out ?? ""}${frame.out}` });
    return;
  }
  if (waiting !== undefined) {
    pieces.delete(id);
    hear(waiting);
  }
  hear(frame);
}

function hear(frame: Frame): void {
  const id = frame.id ?? "";
  let result = results.get(id);
  if (result === undefined) {
    const about = readAbout(frame.about);
    if (about === null) return;
    result = signal(begun(id, about));
    results.set(id, result);
    forgetOld();
    place(id);
  }
  const before = result.peek();
  const next = heard(before, frame, Date.now());
  result.value = next;
  if (next.state !== "running" && before.state === "running") ended(next, frame.replayed === true);
  runningResults.value = [...results.values()].filter((one) => one.peek().state === "running").length;
  const current = [...results.values()].map((one) => one.peek()).find((one) => one.state === "running");
  const isOurs = running.value?.id !== "" || frame.status?.includes("done") === true;
  const isKnown = current !== undefined && running.value?.id === current.id;
  if ((isOurs || current !== undefined) && !isKnown) running.value = current === undefined ? null : { id: current.id, since: current.about.at };
  view?.requestMeasure();
}
frameListeners.add(onFrame);

function ended(result: Result, isOld: boolean): void {
  if (isOld) return;
  if (result.error !== null) alarm(result.error.message);
  if (result.error?.diagnostics !== undefined && view !== null) {
    const at = rangeOf(result.id);
    const marks = at === null ? [] : shown(result.error.diagnostics, view.state.sliceDoc(at.from, at.to)).map((one) => ({ ...one, from: one.from + at.from, to: Math.min(one.to + at.from, at.to) }));
    view.dispatch(setDiagnostics(view.state, marks));
  }
  if (result.state !== "done") return;
  if (settings.peek().reader) announce(result.about.how === "do" || result.text === null ? "done" : `${visible(result.text).slice(0, 500)}, ${result.className ?? ""}`);
  if (result.about.how === "inspect" && result.ref !== null) {
    // An actor is looked at as one: it has an address, and a process that is told about.
    const actor = /^Actor\((\w+), (\d+\.\d+\.\d+)\)$/.exec(result.text ?? "");
    if (actor !== null && actor[1] === result.className && actor[2] !== undefined) inspect({ actor: actor[2] }, result.className);
    else inspect({ ref: result.ref }, result.className ?? "value");
  }
  if (result.about.how === "comment" && view !== null && result.text !== null) {
    const at = resultPlaces(view).get(result.id);
    if (at !== undefined) view.dispatch({ changes: { from: at, insert: ` // => ${result.text.replaceAll("\n", "\\n")}` } });
  }
}

function forgetOld(): void {
  const done = [...results.keys()].filter((id) => results.get(id)?.peek().state !== "running" && !pinned.has(id));
  for (const id of done.slice(0, Math.max(0, results.size - ALL))) forget(id);
  const old = done.slice(0, Math.max(0, results.size - MOST));
  if (old.some((id) => !folded.peek().has(id))) folded.value = new Set([...folded.peek(), ...old]);
}

function forget(id: string): void {
  view?.dispatch({ effects: dropResults.of((one) => one === id) });
  const element = elements.get(id);
  if (element !== undefined) render(null, element);
  elements.delete(id);
  pinned.delete(id);
  results.delete(id);
  stray.value = stray.value.filter((one) => one !== id);
}

/** Where the input of a result is now. */
function rangeOf(id: string): { from: number; to: number } | null {
  const result = results.get(id)?.peek();
  const to = view === null || result === undefined || result.about.buffer !== buffer.peek() ? null : findPlace(result.about, view.state.doc.toString());
  return to === null || result === undefined ? null : { from: to - (result.about.to - result.about.from), to };
}

const acts: Acts = {
  stop: (id) => void client.request("interrupt", { for: id }).catch((cause: unknown) => { status.value = fault(cause).message; }),
  answer: (id, text) => void client.request("stdin", text === null ? { for: id, eof: true } : { for: id, value: text }).catch((cause: unknown) => { status.value = fault(cause).message; }),
  dismiss: forget,
  pin: (id) => { if (!pinned.delete(id)) pinned.add(id); },
  unfold: (id) => { folded.value = new Set([...folded.peek()].filter((one) => one !== id)); },
  code: (id) => { const at = rangeOf(id); return at === null || view === null ? null : view.state.sliceDoc(at.from, at.to); },
  again: (id) => {
    const at = rangeOf(id);
    const how = results.get(id)?.peek().about.how;
    if (view !== null && at !== null && how !== undefined && isOnline.value) run(view, at, how);
  },
  report: (id) => {
    const error = results.get(id)?.peek().error;
    const at = rangeOf(id);
    if (error === null || error === undefined) return;
    const code = view === null || at === null ? null : view.state.sliceDoc(at.from, at.to);
    navigator.clipboard.writeText(report(code, error, client.server ?? "")).then(() => toast("copied"), () => { status.value = "The browser did not allow to copy"; });
  },
  fix: (id, found) => {
    const at = rangeOf(id);
    const fix = view === null || at === null ? null : fixOf(found, view.state.sliceDoc(at.from, at.to));
    if (view === null || at === null || fix === null) return;
    const wasWrong = results.get(id)?.peek().state === "failed";
    view.dispatch({ changes: fix.changes.map((one) => ({ ...one, from: one.from + at.from, to: one.to + at.from })), ...(wasWrong ? { effects: dropResults.of((one) => one === id) } : {}) });
    view.focus();
  },
  correct: (id, word) => {
    const wrong = results.get(id)?.peek().error?.selector;
    const at = rangeOf(id);
    if (view === null || at === null || wrong === undefined) return;
    const { from } = at;
    const found = view.state.sliceDoc(from, at.to).lastIndexOf(wrong);
    if (found < 0) return;
    view.dispatch({ changes: { from: from + found, to: from + found + wrong.length, insert: word }, effects: dropResults.of((one) => one === id) });
    view.focus();
  },
};

/** The selection, else the input the caret is in: the daemon says where inputs are. */
async function chosen(of: EditorView): Promise<{ from: number; to: number } | null> {
  const { main } = of.state.selection;
  if (!main.empty) return { from: main.from, to: main.to };
  const text = of.state.doc.toString();
  const answer = await client.request("doc-cells", { text });
  const caret = byteOffset(text, main.head);
  const inputs = answer.cells.flatMap((cell) => cell.inputs);
  const line = of.state.doc.lineAt(main.head);
  const lineStart = byteOffset(text, line.from);
  const found = inputs.find((input) => input.start <= caret && caret <= input.end) ?? [...inputs].reverse().find((input) => input.end <= caret && line.text.trim() === "") ?? inputs.find((input) => input.start >= lineStart);
  return found === undefined ? null : { from: placeOfByte(text, found.start), to: placeOfByte(text, found.end) };
}

async function evaluate(how: About["how"]): Promise<void> {
  if (!isOwner.value) {
    status.value = "Observers cannot change anything";
    return;
  }
  if (view === null) return;
  if (isFrozen.value) {
    status.value = "Nothing can be evaluated before the connection is back";
    return;
  }
  closeCompletion(view);
  try {
    const range = await chosen(view);
    if (range !== null) run(view, range, how);
  } catch (cause) {
    status.value = fault(cause).message;
  }
}

function run(of: EditorView, range: { from: number; to: number }, how: About["how"]): void {
  try {
    const code = of.state.sliceDoc(range.from, range.to);
    const about: About = { buffer: buffer.value, ...range, hash: mark(code), how, at: Date.now() };
    const id = client.nextId();
    const asked = client.request("eval", { code, ...(how === "do" ? {} : { hold: true }), ...(how === "trace" ? { trace: true } : {}) }, { about: JSON.stringify(about) });
    results.set(id, signal(begun(id, about)));
    forgetOld();
    of.dispatch({ effects: addResult.of({ id, at: range.to, element: elementOf(id) }) });
    running.value ??= { id, since: about.at };
    asked.catch((cause: unknown) => {
      // What the daemon answers comes as a frame; this is what never got there.
      if (cause instanceof OpError && cause.body.kind === "message_too_large") onFrame({ id, status: ["done", "error"], error: cause.body });
    });
  } catch (cause) {
    status.value = fault(cause).message;
  }
}

const keys = Prec.highest(keymap.of([
  { key: "Mod-d", run: () => { void evaluate("do"); return true; }, preventDefault: true },
  { key: "Mod-Enter", run: () => { void evaluate("do"); return true; } },
  { key: "Mod-p", run: () => { void evaluate("print"); return true; }, preventDefault: true },
  { key: "Shift-Enter", run: () => { void evaluate("print"); return true; } },
  { key: "Mod-i", run: () => { void evaluate("inspect"); return true; }, preventDefault: true },
  { key: "Mod-Shift-Enter", run: () => { void evaluate("inspect"); return true; } },
  { key: "Alt-Enter", run: () => { void evaluate("comment"); return true; } },
]));

function clear(): void {
  for (const id of [...results.keys()]) if (results.get(id)?.peek().state !== "running" && !pinned.has(id)) forget(id);
}

/** Erlang as it is made of the input at the caret. */
async function showGenerated(): Promise<void> {
  if (view === null) return;
  try {
    const range = await chosen(view);
    if (range === null) return;
    const answer = await client.request("show-codegen", { code: view.state.sliceDoc(range.from, range.to) });
    page.value = { title: "Generated code", text: answer.erlang ?? answer.core_erlang ?? "" };
  } catch (cause) {
    status.value = fault(cause).message;
  }
}

/** What another tab did to the text that is shown. */
function OtherTab(): JSX.Element | null {
  const at = clash.value;
  if (at === null || at.name !== `scratch/${buffer.value}` || view === null) return null;
  const settle = (text: string): void => {
    const change = view === null ? null : stretch(view.state.doc.toString(), text);
    clash.value = null;
    if (change !== null) view?.dispatch({ changes: change });
    keep(at.name, text, 0);
  };
  const mine = view.state.doc.toString();
  return <Clash mine={mine} theirs={at.theirs} onKeep={() => settle(view?.state.doc.toString() ?? mine)} onTake={() => settle(at.theirs)} />;
}

export default function Workspace({ isVisible }: PaneProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    buffers.value = [...new Set(["main", ...names("scratch/").map((name) => name.slice("scratch/".length))])];
  }, [epoch.value]);
  useEffect(() => { if (isEmpty.value && isOwner.value && actorClass.value === null) void findExample(); }, [epoch.value, isEmpty.value, workspaceName.value]);
  // Before anything is drawn: the texts of two places would take the elements of the results from each other, for ever.
  useLayoutEffect(() => {
    if (box.current === null || !isOwner.value) return;
    const text = kept(`scratch/${buffer.value}`) ?? "";
    isEmpty.value = text === "";
    stray.value = [];
    view = surface({
      parent: box.current, text, label: `Workspace, buffer ${buffer.value}`, extensions: [keys, resultField],
      onChange: (next) => {
        isEmpty.value = next === "";
        keep(`scratch/${buffer.peek()}`, next);
      },
      onSave: () => toast("kept"),
      mode: (code) => (code.trim() === "" || code.length > 64 * 1024 || /^\s*(\w+ )*\w+ subclass:/m.test(code) ? null : "expression"),
    });
    const made = view;
    for (const id of results.keys()) place(id);
    view.dispatch({ selection: { anchor: view.state.doc.length } });
    if (document.activeElement === document.body && !matchMedia("(max-width: 480px)").matches) view.focus();
    performance.mark("workspace-ready");
    return () => {
      made.destroy();
      if (view === made) view = null;
    };
  }, [buffer.value, isOwner.value]);
  // A link may name a buffer, and one that is not there yet.
  useEffect(() => {
    const [, name] = route.value?.pane === "workspace" ? route.value.parts : [];
    if (name === undefined || !/^[a-z0-9_.-]{1,100}$/.test(name)) return;
    if (!buffers.peek().includes(name)) buffers.value = [...buffers.peek(), name].slice(0, 50);
    buffer.value = name;
  }, [route.value]);
  // What another tab wrote comes into the text as it is; the caret stays where it was.
  useEffect(() => {
    for (const { name } of arrived.value) {
      const own = name.startsWith("scratch/") ? name.slice("scratch/".length) : null;
      if (own !== null && !buffers.peek().includes(own)) buffers.value = [...buffers.peek(), own];
    }
    const news = arrived.value.find((one) => one.name === `scratch/${buffer.peek()}`);
    if (news === undefined || view === null) return;
    const change = stretch(view.state.doc.toString(), news.text);
    if (change !== null) view.dispatch({ changes: change });
    if (news.isMerged) toast("merged with a change of another tab");
  }, [arrived.value]);
  useEffect(() => {
    const text = insertion.value;
    if (text === null || view === null) return;
    insertion.value = null;
    view.dispatch(view.state.replaceSelection(text));
    view.focus();
  }, [insertion.value]);
  useEffect(() => offer("workspace", [
    { title: "Do it", key: "Mod-D", isChange: true, run: () => void evaluate("do") },
    { title: "Print it", key: "Mod-P", isChange: true, run: () => void evaluate("print") },
    { title: "Inspect it", key: "Mod-I", isChange: true, run: () => void evaluate("inspect") },
    { title: "Insert the value as a comment", key: "Alt-Enter", isChange: true, run: () => void evaluate("comment") },
    { title: "Trace it statement by statement", isChange: true, run: () => void evaluate("trace") },
    { title: "Time it", isChange: true, run: () => void evaluate("print") },
    { title: "Show generated code", run: () => void showGenerated() },
    { title: "Save", key: "Mod-S", isChange: true, run: () => toast("kept") },
    { title: "Save the selection as a notebook", isChange: true, run: () => { if (view !== null) { const { from, to, empty } = view.state.selection.main; void saveAsNotebook(buffer.peek(), empty ? view.state.doc.toString() : view.state.sliceDoc(from, to)); } } },
    { title: "Clear results", run: clear },
    { title: "New buffer", isChange: true, run: newBuffer },
  ]), []);
  if (!isOwner.value) return <div class="empty">You are looking as an observer.</div>;
  const example = (text: string): JSX.Element => <button class="link code" onClick={() => { view?.dispatch({ changes: { from: 0, insert: text }, selection: { anchor: text.length } }); view?.focus(); }}>{text}</button>;
  return (
    <div class="fill" style={{ position: "relative" }} hidden={!isVisible}>
      <div class="bar">
        <span class="wide"><Act title={keyText("Mod-D")} onClick={() => void evaluate("do")}>Do</Act>{" "}<Act title={keyText("Mod-P")} onClick={() => void evaluate("print")}>Print</Act>{" "}<Act title={keyText("Mod-I")} onClick={() => void evaluate("inspect")}>Inspect</Act></span>
        {runningResults.value > 1 ? <span class="muted">{runningResults.value - 1} waiting</span> : null}
        <span class="buffers right" role="tablist" aria-label="Buffers">
          {buffers.value.map((name) => <button key={name} role="tab" aria-selected={name === buffer.value} onClick={() => openBuffer(name)}>{name}</button>)}
          {buffer.value === "main" ? null : <button aria-label={`Remove buffer ${buffer.value}`} title="remove this buffer" onClick={() => void removeBuffer(buffer.value)}>✕</button>}
          <button aria-label="New buffer" title="new buffer" onClick={newBuffer}>+</button>
        </span>
      </div>
      <OtherTab />
      <div class="surface" ref={box} />
      {isEmpty.value ? <div class="hint">Type an expression and press {keyText("Mod-P")}. Try: {example("6 factorial")} · {example("Beamtalk version")}{actorClass.value === null ? null : <> · {example(`${actorClass.value} spawn`)}</>}</div> : null}
      {stray.value.length === 0 ? null : (
        <div class="earlier"><div class="muted" style={{ padding: "4px 12px" }}>earlier</div>
          {stray.value.map((id) => { const result = results.get(id); return result === undefined ? null : <ResultView key={id} result={result} acts={acts} folded={folded} />; })}
        </div>
      )}
      <Signs view={() => view} onEvaluate={(how) => void evaluate(how)} />
    </div>
  );
}

export const hasRunning = computed(() => runningResults.value > 0);
