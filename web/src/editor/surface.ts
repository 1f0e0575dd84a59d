// A surface: the editor every text with code is in, with completion, documentation and findings of the daemon.

import { acceptCompletion, autocompletion, closeBrackets, closeBracketsKeymap, closeCompletion, completionKeymap, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab, selectParentSyntax, toggleComment } from "@codemirror/commands";
import { bracketMatching, indentOnInput, indentUnit } from "@codemirror/language";
import { lintKeymap, setDiagnostics, type Action, type Diagnostic as Shown } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap, selectNextOccurrence } from "@codemirror/search";
import { Compartment, EditorState, Prec, type Extension } from "@codemirror/state";
import { Decoration, EditorView, ViewPlugin, drawSelection, highlightActiveLine, highlightActiveLineGutter, highlightSpecialChars, hoverTooltip, keymap, lineNumbers, showTooltip, type DecorationSet, type Tooltip, type ViewUpdate } from "@codemirror/view";
import { StateEffect, StateField } from "@codemirror/state";
import type { CheckMode, Diagnostic, Side } from "../wire/protocol";
import { effect } from "@preact/signals";
import { fixOf, type Fix } from "../kernel/fixes";
import { inspect } from "../kernel/inspect";
import { stretch } from "../kernel/merge";
import { go } from "../kernel/routes";
import { settings } from "../kernel/settings";
import { client, fault, isFrozen, isOnline, isOwner, status } from "../kernel/store";
import { byteOffset, placeOfByte, placesOfBytes, visible } from "../kernel/text";
import { beamtalk, colours } from "./language";

const look = EditorView.theme({
  "&": { height: "100%", fontSize: "13px", backgroundColor: "var(--bg)", color: "var(--text)" },
  ".cm-scroller": { fontFamily: "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace", lineHeight: "20px" },
  ".cm-content": { padding: "8px 0", caretColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--bg)", color: "var(--muted)", border: "none" },
  ".cm-activeLine": { backgroundColor: "var(--current)" },
  ".cm-activeLineGutter": { backgroundColor: "var(--current)", color: "var(--text)" },
  "&.cm-focused": { outline: "none" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--select) !important" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-selectionMatch, .cm-searchMatch": { backgroundColor: "var(--mark)" },
  ".cm-tooltip": { backgroundColor: "var(--raised)", color: "var(--text)", border: "1px solid var(--line)", borderRadius: "4px", boxShadow: "0 4px 16px rgb(0 0 0 / .25)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--select)", color: "var(--text)" },
  ".cm-tooltip-autocomplete ul li": { padding: "2px 8px !important" },
  ".cm-completionDetail": { color: "var(--muted)", fontStyle: "normal" },
  ".cm-panels": { backgroundColor: "var(--side)", color: "var(--text)", borderColor: "var(--line)" },
  ".cm-diagnosticAction": { font: "inherit", backgroundColor: "var(--accent)", color: "var(--on-accent)", padding: "2px 8px", borderRadius: "4px", marginLeft: "8px" },
  ".cm-completionInfo .card": { padding: "4px" },
  ".cm-marked": { backgroundColor: "var(--mark)" },
  ".cm-specialChar": { color: "var(--danger)" },
  ".cm-matchingBracket": { backgroundColor: "var(--accent-bg) !important", outline: "1px solid var(--accent)" },
  ".card": { maxWidth: "560px", maxHeight: "320px", overflow: "auto", padding: "8px 12px", whiteSpace: "pre-wrap" },
  "@media (max-width: 480px)": { "&": { fontSize: "16px" } },
});

/** What the daemon proposes at the caret. */
async function propose(context: CompletionContext): Promise<CompletionResult | null> {
  const before = context.matchBefore(/[\w:]*/);
  if (!context.explicit && (before === null || before.from === before.to || !settings.value.autocomplete)) return null;
  if (!isOnline.value) return null;
  const code = context.state.doc.toString();
  const cursor = byteOffset(code, context.pos);
  const answer = await client.request("complete", { code, cursor }).catch(() => null);
  if (answer === null || answer.completions.length === 0) return null;
  const types: Record<string, string> = { class: "class", variable: "variable", selector: "method", keyword: "keyword" };
  return {
    from: placeOfByte(code, answer.start),
    validFor: /^[\w:]*$/,
    options: answer.completions.map((one, at) => ({
      label: one.text,
      ...(one.detail === null || one.detail === one.text ? {} : { detail: visible(one.detail) }),
      type: types[one.kind] ?? "method",
      boost: -at,
      ...(one.origin === null ? {} : { info: () => explain(one.origin ?? "", one.text) }),
    })),
  };
}

/** What the method that is proposed says about itself. */
async function explain(name: string, selector: string): Promise<HTMLElement | null> {
  const answer = await client.request("docs", { class: name, selector }).catch(() => null);
  const text = plain(answer?.docs ?? "");
  return text === "" ? null : card(text);
}

function card(text: string): HTMLElement {
  const element = document.createElement("div");
  element.className = "card code";
  element.textContent = visible(text);
  return element;
}

async function documentation(view: EditorView, place: number): Promise<Tooltip | null> {
  if (!isOnline.value) return null;
  const code = view.state.doc.toString();
  const answer = await client.request("hover", { code, cursor: byteOffset(code, place) }).catch(() => null);
  const text = plain(answer?.contents ?? answer?.signature ?? "");
  return text === "" ? null : { pos: place, above: true, create: () => ({ dom: card(text) }) };
}

/** Documentation without its marks for code and emphasis. */
function plain(markdown: string): string {
  return markdown.split("\n").filter((line) => !line.startsWith("```")).map((line) => line.replace(/^\*([^*]+)\*$/, "$1").replace(/^#+ /, "")).join("\n").replaceAll(/\n{3,}/g, "\n\n").trim();
}

const setCard = StateEffect.define<Tooltip | null>();
/** The documentation that was asked for with a key; anything typed takes it away. */
const cardField = StateField.define<Tooltip | null>({
  create: () => null,
  update: (value, transaction) => {
    for (const effect of transaction.effects) if (effect.is(setCard)) return effect.value;
    return transaction.docChanged || transaction.selection !== undefined ? null : value;
  },
  provide: (field) => showTooltip.from(field),
});

const setMark = StateEffect.define<number | null>();
/** A line somebody was sent to. */
const markField = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update: (value, transaction) => {
    for (const effect of transaction.effects) {
      if (!effect.is(setMark)) continue;
      if (effect.value === null || effect.value < 1 || effect.value > transaction.state.doc.lines) return Decoration.none;
      return Decoration.set(Decoration.line({ class: "cm-marked" }).range(transaction.state.doc.line(effect.value).from));
    }
    return value.map(transaction.changes);
  },
  provide: (field) => EditorView.decorations.from(field),
});

/** Mark a line and show it. */
export function markLine(view: EditorView, line: number): void {
  const { doc } = view.state;
  const at = doc.line(Math.min(Math.max(line, 1), doc.lines)).from;
  view.dispatch({ effects: [setMark.of(line), EditorView.scrollIntoView(at, { y: "center" })], selection: { anchor: at } });
}

/** To the pane around it; Tab then goes on behind the text instead of back into it. */
function leave(view: EditorView): void {
  const pane = view.dom.closest<HTMLElement>(".pane");
  pane?.focus();
  const onKey = (event: KeyboardEvent): void => {
    if (event.key !== "Tab" || event.target !== pane) return;
    const stops = [...document.querySelectorAll<HTMLElement>("a[href], button, input, select, textarea, [tabindex='0'], [contenteditable=true]")]
      .filter((one) => one.tabIndex >= 0 && one.getClientRects().length > 0 && !one.hasAttribute("disabled") && (one === view.contentDOM || !view.dom.contains(one)));
    const next = stops[(stops.indexOf(view.contentDOM) + (event.shiftKey ? -1 : 1) + stops.length) % stops.length];
    event.preventDefault();
    next?.focus();
  };
  pane?.addEventListener("keydown", onKey);
  pane?.addEventListener("focusout", () => pane.removeEventListener("keydown", onKey), { once: true });
}

function word(state: EditorState): string {
  const { head } = state.selection.main;
  const line = state.doc.lineAt(head);
  let [from, to] = [head - line.from, head - line.from];
  while (from > 0 && /[\w:]/.test(line.text[from - 1] ?? "")) from -= 1;
  while (to < line.text.length && /[\w:]/.test(line.text[to] ?? "")) to += 1;
  return line.text.slice(from, to);
}

function browse(kind: "class" | "senders" | "implementors" | "references") {
  return (view: EditorView): boolean => {
    const name = word(view.state);
    if (name === "") return true;
    const isClass = /^[A-Z]/.test(name);
    if (kind === "class") go(isClass ? "class" : "implementors", name);
    else go(kind === "references" || isClass ? "references" : kind, name);
    return true;
  };
}

/** A place in the text under the pointer, with the key that means more than a click. */
const clicked = EditorView.domEventHandlers({
  mousedown: (event, view) => {
    const at = event.ctrlKey || event.metaKey ? view.posAtCoords({ x: event.clientX, y: event.clientY }) : null;
    if (at === null || event.button !== 0) return false;
    view.dispatch({ selection: { anchor: at } });
    event.preventDefault();
    return browse("class")(view);
  },
});

/** Put the text in order, as far as it can be read. */
export function format(view: EditorView): boolean {
  if (view.state.readOnly) return true;
  const code = view.state.doc.toString();
  client.request("format", { code }).then(({ text }) => {
    const change = view.state.doc.toString() === code ? stretch(code, text) : null;
    if (change !== null) view.dispatch({ changes: change });
  }, (cause: unknown) => { status.value = fault(cause).message; });
  return true;
}

type How = "do" | "print" | "inspect";

/** Evaluate the selection, else the line, of a text that is no scratch text: the value is shown above it. */
function evaluate(how: How) {
  return (view: EditorView): boolean => {
    if (!isOwner.value) {
      status.value = "Observers cannot change anything";
      return true;
    }
    const { main } = view.state.selection;
    const line = view.state.doc.lineAt(main.head);
    const [from, to] = main.empty ? [line.from, line.to] : [main.from, main.to];
    const code = view.state.sliceDoc(from, to).trim();
    if (code === "" || isFrozen.value) return true;
    const show = (text: string): void => view.dispatch({ effects: setCard.of({ pos: to, above: false, create: () => ({ dom: card(text.slice(0, 2000)) }) }) });
    client.request("eval", { code, hold: how !== "do" }).then((answer) => {
      if (how === "inspect") inspect({ ref: answer.ref ?? "" }, answer.class ?? "value");
      else if (how === "print") show(`${answer.text} (${answer.class ?? "?"})`);
      else status.value = `✓ ${code.slice(0, 60)}`;
    }, (cause: unknown) => { const { kind, message } = fault(cause); show(`${kind}: ${message}`); });
    return true;
  };
}

const evaluating = keymap.of([
  { key: "Mod-d", run: evaluate("do"), preventDefault: true }, { key: "Mod-Enter", run: evaluate("do") },
  { key: "Mod-p", run: evaluate("print"), preventDefault: true }, { key: "Shift-Enter", run: evaluate("print") },
  { key: "Mod-i", run: evaluate("inspect"), preventDefault: true }, { key: "Mod-Shift-Enter", run: evaluate("inspect") },
]);

/** Buttons that mend a finding where it is by then, as long as what they change is what was checked. */
function mending(fix: Fix | null, text: string, place: number): Action[] {
  if (fix === null || !isOwner.value) return [];
  const first = Math.min(...fix.changes.map((one) => one.from));
  const checked = text.slice(first, Math.max(...fix.changes.map((one) => one.to)));
  return [{
    name: visible(fix.title),
    apply: (view, from) => {
      const moved = from - place;
      if (view.state.readOnly) return;
      if (view.state.sliceDoc(first + moved, first + moved + checked.length) !== checked) status.value = "The text was changed since it was checked";
      else view.dispatch({ changes: fix.changes.map((one) => ({ from: one.from + moved, to: one.to + moved, insert: one.insert })) });
    },
  }];
}

/** So many findings are drawn in a text. */
const MOST = 200;

/** The daemon's findings as the editor shows them. */
export function shown(found: readonly Diagnostic[], text: string): Shown[] {
  // The text is gone through once, however much was found.
  const starts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  const places = placesOfBytes(text, found.flatMap((one) => [one.span_start ?? 0, one.span_end ?? 0]));
  return found.slice(0, MOST).map((one, at) => {
    const from = one.span_start === undefined ? (starts[(one.line ?? 1) - 1] ?? text.length) : (places[2 * at] ?? 0);
    const end = one.span_end === undefined ? text.indexOf("\n", from) : (places[2 * at + 1] ?? 0);
    const to = Math.max(from, Math.min(text.length, end < 0 ? text.length : end));
    const severity = one.severity === "error" ? ("error" as const) : one.severity === "warning" ? ("warning" as const) : ("info" as const);
    const place = Math.min(from, text.length);
    return { from: place, to, severity, actions: mending(fixOf(one, text), text, place), message: visible(`${one.code === null ? "" : `${one.code} `}${one.message}${one.hint === null ? "" : `\n${one.hint}`}`) };
  });
}

const again = StateEffect.define();

/** What was found rests on other classes too: look again when one of them changed. */
export function recheck(view: EditorView): void {
  view.dispatch({ effects: again.of(null) });
}

/** Findings while typing. */
function checks(mode: (text: string) => CheckMode | null, { of, onFindings }: SurfaceOptions): Extension {
  return ViewPlugin.fromClass(class {
    timer: ReturnType<typeof setTimeout> | undefined;
    constructor(readonly view: EditorView) {
      this.later();
    }
    update(update: ViewUpdate): void {
      if (update.docChanged || update.transactions.some((one) => one.effects.some((effect) => effect.is(again)))) this.later();
    }
    later(): void {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => void this.check(), 250);
    }
    async check(): Promise<void> {
      const { doc } = this.view.state;
      const code = doc.toString();
      const kind = mode(code);
      if (kind === null || !isOnline.value || document.hidden) return;
      const answer = await client.request("diagnostics", { code, mode: kind, ...of }).catch(() => null);
      if (answer === null || this.view.state.doc !== doc) return;
      if (onFindings !== undefined) onFindings(answer.diagnostics, code);
      else this.view.dispatch(setDiagnostics(this.view.state, shown(answer.diagnostics, code)));
    }
    destroy(): void {
      clearTimeout(this.timer);
    }
  });
}

export interface SurfaceOptions {
  parent: HTMLElement;
  text: string;
  label: string;
  isReadOnly?: boolean;
  mode?: (text: string) => CheckMode | null;
  /** The class a method is one of. */
  of?: { class: string; side: Side };
  /** Is told of what is found, and draws it together with what it knows itself. */
  onFindings?: (found: Diagnostic[], text: string) => void;
  extensions?: Extension[];
  onChange?: (text: string) => void;
  onSave?: () => void;
}

const [wrapping, numbering] = [new Compartment(), new Compartment()];
const wraps = (): Extension => (settings.value.wrap ? EditorView.lineWrapping : []);
const numbers = (): Extension => (settings.value.line_numbers ? [lineNumbers(), highlightActiveLineGutter()] : []);
/** Longer than this is refused rather than pasted. */
const LONGEST = 1024 * 1024;

export function surface(options: SurfaceOptions): EditorView {
  const readOnly = options.isReadOnly === true || !isOwner.value;
  const state = EditorState.create({
    doc: options.text,
    extensions: [
      Prec.high(keymap.of([
        { key: "F1", run: (view) => { closeCompletion(view); void documentation(view, view.state.selection.main.head).then((found) => view.dispatch({ effects: setCard.of(found) })); return true; } },
        { key: "Mod-b", run: browse("class") },
        { key: "Alt-n", run: browse("senders") },
        { key: "Alt-m", run: browse("implementors") },
        { key: "Alt-r", run: browse("references") },
        { key: "Mod-s", run: () => { if (readOnly) status.value = isOwner.value ? "This text cannot be changed" : "Observers cannot change anything"; else options.onSave?.(); return true; }, preventDefault: true },
        { key: "Alt-Shift-f", run: format },
        { key: "Tab", run: acceptCompletion },
        { key: "Alt-e", run: selectParentSyntax },
        { key: "Alt-j", run: selectNextOccurrence },
        { key: "Mod-/", run: toggleComment },
      ])),
      ...(options.extensions ?? []),
      evaluating,
      clicked,
      numbering.of(numbers()),
      highlightSpecialChars({ addSpecialChars: /[\u200b-\u200f\u2028-\u202e\u2060-\u206f\u061c\u180e]/ }),
      history(), drawSelection(), indentOnInput(), bracketMatching(), closeBrackets(), highlightActiveLine(), highlightSelectionMatches(),
      search({ top: true }), indentUnit.of("  "), EditorState.tabSize.of(2),
      autocompletion({ override: [propose], activateOnTypingDelay: 80, icons: false }),
      cardField,
      markField,
      hoverTooltip((view, place) => documentation(view, place), { hoverTime: 300 }),
      options.mode === undefined ? [] : checks(options.mode, options),
      keymap.of([...closeBracketsKeymap, ...defaultKeymap.filter((one) => one.key !== "Mod-i" && one.key !== "Mod-Enter" && one.key !== "Escape"), ...searchKeymap.filter((one) => one.key !== "Mod-d"), ...historyKeymap, ...completionKeymap, ...lintKeymap, indentWithTab]),
      // Whatever else Escape closes comes first; then it leaves the text for its pane.
      Prec.lowest(keymap.of([{ key: "Escape", run: (view) => { leave(view); return true; } }])),
      beamtalk, colours, look,
      wrapping.of(wraps()),
      EditorState.readOnly.of(readOnly),
      EditorView.editable.of(!readOnly),
      EditorView.contentAttributes.of({ "aria-label": options.label, spellcheck: "false", ...(readOnly ? { tabindex: "0" } : {}) }),
      EditorState.transactionFilter.of((transaction) => {
        if (!transaction.docChanged || transaction.newDoc.length <= LONGEST) return transaction;
        status.value = "That would make the text over 1 MiB; it was not taken";
        return [];
      }),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) options.onChange?.(update.state.doc.toString());
      }),
    ],
  });
  const view = new EditorView({ state, parent: options.parent });
  let isFirst = true;
  const end = effect(() => {
    const effects = [wrapping.reconfigure(wraps()), numbering.reconfigure(numbers())];
    if (!isFirst) view.dispatch({ effects });
    isFirst = false;
  });
  const destroy = view.destroy.bind(view);
  view.destroy = () => { end(); destroy(); };
  return view;
}
