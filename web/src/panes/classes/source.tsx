// The text of a method: saved, tried, checked while it is typed, removed.

import { setDiagnostics } from "@codemirror/lint";
import type { EditorView } from "@codemirror/view";
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { format, markLine, recheck, shown, surface } from "../../editor/surface";
import { offer } from "../../kernel/actions";
import { fixOf } from "../../kernel/fixes";
import { ask, page, toast } from "../../kernel/notices";
import { go, marked } from "../../kernel/routes";
import { setEdited } from "../../kernel/states";
import { client, epoch, fault, isOwner, status } from "../../kernel/store";
import { age, sha256, visible } from "../../kernel/text";
import { Act } from "../../parts/act";
import { FixButton, Problem } from "../../parts/fault";
import type { Diagnostic, ErrorBody, Finding, Side } from "../../wire/protocol";
import { fullSource, lineOf, marksOf, selectorOf } from "./model";
import { changedAt, changes, choose, conflicts, dirty, found, isChosen, ownerOf, type Browser } from "./state";

const NEW_METHOD = "newMethod =>\n  nil\n";
/** Longer texts are shown and not edited here. */
const LONGEST = 256 * 1024;

/** The text of a method in an editor; saving installs it. */
export function Source({ browser, className, side, selector, onSaved }: { browser: Browser; className: string; side: Side; selector: string | null; onSaved: (selector: string) => void }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const base = useRef<string | null>(null);
  const [isChanged, setChanged] = useState(false);
  const [error, setError] = useState<ErrorBody | null>(null);
  const [findings, setFindings] = useState<Finding[]>([]);
  /** What the compiler and the linter say of the text as it is. */
  const [{ own, checked }, setOwn] = useState<{ own: Diagnostic[]; checked: string }>({ own: [], checked: "" });
  const [text, setText] = useState("");
  const [turn, setTurn] = useState(0);
  const [about, setAbout] = useState<{ origin: string; isMissing: boolean } | null>(null);
  const isNew = selector === "";

  const save = (intent: "save-method" | "try-method", isForced = false): void => {
    const source = view.current?.state.doc.toString() ?? "";
    const name = selectorOf(source);
    if (name === null) return setError({ kind: "parse_error", message: "the first line must be a selector followed by =>" });
    void (async () => {
      try {
        const base_sha256 = base.current === null || isForced || isNew ? undefined : await sha256(base.current);
        const answer = await client.request(intent, { class: className, selector: name, source, side, ...(base_sha256 === undefined ? {} : { base_sha256 }) });
        base.current = source;
        setChanged(false);
        setError(null);
        setFindings(answer.findings);
        toast(intent === "save-method" ? `${className}>>${name} saved, not flushed yet` : `${className}>>${name} tried`);
        onSaved(name);
      } catch (cause) {
        const refused = fault(cause);
        setError(refused.kind === "version_conflict" ? await told(refused, className, name) : refused);
        const editor = view.current;
        if (editor === null || refused.diagnostics === undefined) return;
        const marks = shown(refused.diagnostics, source);
        editor.dispatch(setDiagnostics(editor.state, marks));
        if (marks[0] !== undefined) editor.dispatch({ selection: { anchor: marks[0].from }, scrollIntoView: true });
        editor.focus();
      }
    })();
  };
  // What saving it would break, while it is typed.
  const precheck = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const check = (text: string): void => {
    clearTimeout(precheck.current);
    precheck.current = setTimeout(() => {
      const name = selectorOf(text);
      if (name === null || document.hidden || !isOwner.value) return;
      client.request("precheck-method", { class: className, selector: name, source: text, side }).then((answer) => {
        if (view.current?.state.doc.toString() === text) setFindings(answer.findings);
      }, (cause: unknown) => {
        const refused = fault(cause);
        const editor = view.current;
        if (editor !== null && refused.diagnostics !== undefined && editor.state.doc.toString() === text) editor.dispatch(setDiagnostics(editor.state, shown(refused.diagnostics, text)));
      });
    }, 500);
  };
  const saving = useRef(save);
  saving.current = save;
  // At once: what comes in its place may be edited already when effects are undone.
  useLayoutEffect(() => () => { clearTimeout(precheck.current); setEdited(browser.pane, false); }, []);
  useEffect(() => setEdited(browser.pane, isChanged), [isChanged]);

  useEffect(() => {
    let isOver = false;
    setError(null);
    setFindings([]);
    setOwn({ own: [], checked: "" });
    const make = (text: string, isReadOnly: boolean): void => {
      if (isOver || box.current === null) return;
      base.current = isNew ? null : text;
      view.current?.destroy();
      view.current = surface({
        parent: box.current, text, label: `Source of ${className}>>${selector ?? ""}`, isReadOnly: isReadOnly || text.length > LONGEST, mode: () => "method", of: { class: className, side }, onFindings: (own, checked) => setOwn({ own, checked }),
        onChange: (next) => { setChanged(next !== base.current); check(next); },
        onSave: () => { if (isOwner.value) saving.current("save-method"); },
      });
      setChanged(isNew);
      setText(text);
    };
    if (isNew) make(NEW_METHOD, false);
    else if (selector !== null) {
      client.request("browse-method-source", { class: className, selector, side }).then((answer) => {
        setAbout({ origin: answer.origin, isMissing: answer.source === null });
        make(answer.source === null ? "" : fullSource(answer.doc, answer.source), answer.source === null);
      }, (cause: unknown) => { if (!isOver) setError(fault(cause)); });
    }
    return () => {
      isOver = true;
      view.current?.destroy();
      view.current = null;
    };
  }, [className, side, selector, turn]);
  const here = found.value.filter((one) => ownerOf(one) === className);
  // Where this method sends what was found to be missing.
  useEffect(() => {
    const editor = view.current;
    if (editor === null) return;
    const text = editor.state.doc.toString();
    editor.dispatch(setDiagnostics(editor.state, [...shown(own, text), ...marksOf(here, text)]));
  }, [found.value, own, text]);
  useEffect(() => { if (view.current !== null) recheck(view.current); }, [changes.value]);
  // Whoever was sent to a line sees it marked.
  const isNewer = useSentTo(view, text, className);
  // Somebody else changed the method while it is shown: the text follows unless it is being edited.
  useEffect(() => {
    if (selector === null || isNew || isChanged) return;
    client.request("browse-method-source", { class: className, selector, side }).then((answer) => {
      const editor = view.current;
      // It was not there when it was asked for, and is now.
      if (editor === null && answer.source !== null) return setTurn((old) => old + 1);
      if (editor === null || answer.source === null) return;
      const text = fullSource(answer.doc, answer.source);
      if (text === editor.state.doc.toString()) return;
      base.current = text;
      editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: text } });
    }, () => undefined);
  }, [changes.value, epoch.value]);

  const mend = (finding: Diagnostic): void => {
    const [editor, fix] = [view.current, fixOf(finding, checked)];
    if (editor === null || fix === null) return;
    if (editor.state.doc.toString() !== checked) status.value = "The text was changed since it was checked";
    else editor.dispatch({ changes: fix.changes });
  };
  const showOther = async (): Promise<void> => {
    const answer = await client.request("browse-method-source", { class: className, selector: selector ?? "", side }).catch(() => null);
    page.value = { title: `${className}>>${selector ?? ""} as it is now`, text: answer?.source == null ? "it is gone" : fullSource(answer.doc, answer.source) };
  };
  useEffect(() => offer(browser.pane, [
    { title: "New class", key: "N", isChange: true, run: () => browser.naming.value() },
    { title: "New method", key: "n", isChange: true, run: () => choose(browser, { selector: "" }) },
    ...(selector === null ? [] : [{ title: "Save the method", key: "Mod-S", isChange: true, run: () => saving.current("save-method") }]),
  ]), [selector]);
  if (selector === null) return <div class="empty"><span>Choose a method{isOwner.value ? <>, or <button class="link" onClick={() => choose(browser, { selector: "" })}>write a new one</button></> : null}.</span></div>;
  const isUnflushed = (dirty.value[className] ?? []).includes(selector);
  return (
    <div class="below">
      <div class="bar">
        <span class="code cut">{visible(className)}{side === "class" ? " class" : ""}&gt;&gt;{visible(isNew ? "…" : selector)}</span>
        {isUnflushed ? <button class="chip warn" onClick={() => go("changes")}>unflushed</button> : null}
        {isUnflushed && conflicts.value.some((one) => one.detail?.includes(selector) === true) ? <button class="chip danger" onClick={() => go("changes")}>conflict</button> : null}
        {about === null || about.origin === "both" ? null : <span class="chip">{about.origin}</span>}
        {isChanged ? <span class="muted">edited</span> : null}
        <span class="right">
          {isOwner.value && about?.isMissing !== true ? (
            <>
              <Act kind="primary" disabled={!isChanged} onClick={() => save("save-method")}>Save</Act>{" "}
              <Act disabled={!isChanged} onClick={() => save("try-method")} title="install it without ever writing it to the file">Try</Act>{" "}
              <Act onClick={() => { if (view.current !== null) format(view.current); }}>Format</Act>{" "}
              {isNew ? null : <Act onClick={() => void removeMethod(browser, className, selector, side)}>Remove…</Act>}{" "}
            </>
          ) : null}
          {isNew ? null : <button class="plain" title={`copy as ${className} >> ${selector}`} onClick={() => { navigator.clipboard?.writeText(`${className}${side === "class" ? " class" : ""} >> ${view.current?.state.doc.toString() ?? ""}`).then(() => toast("copied"), () => { status.value = "The browser did not allow to copy"; }); }}>Copy</button>}
        </span>
      </div>
      <Problem error={error} onDismiss={() => setError(null)} />
      {error?.kind === "version_conflict" ? <div class="problem"><button class="plain" onClick={() => void showOther()}>Show</button><Act onClick={() => save("save-method", true)}>Save mine anyway</Act></div> : null}
      {isNewer ? <div class="problem" role="status">the code shown is newer than the error</div> : null}
      {about?.isMissing === true ? <div class="empty">The source of this method is not known.</div> : null}
      <div class="surface" ref={box} />
      <Findings list={joined(own, findings, here)} code={checked} onFix={mend} />
    </div>
  );
}

/** Who changed it meanwhile, and when. */
async function told(refused: ErrorBody, className: string, selector: string): Promise<ErrorBody> {
  const answer = await client.request("changes", {}).catch(() => null);
  const last = answer?.entries.filter((entry) => entry.class === className && entry.selector === selector).at(-1);
  if (last === undefined) return refused;
  const who = last.author_kind === "agent" ? `agent ${last.author}` : `session ${last.author}`;
  return { ...refused, message: `${className}>>${selector} was changed by ${who} ${age((Date.now() - Date.parse(last.ts)) / 1000)} ago` };
}

/** Marks the line of an error; says whether the class was changed after it happened. */
function useSentTo(view: { current: EditorView | null }, text: string, className: string): boolean {
  const [isNewer, setNewer] = useState(false);
  const wanted = marked.value;
  useEffect(() => {
    setNewer(false);
    if (wanted === null || text === "") return;
    marked.value = null;
    setNewer((changedAt.get(className) ?? 0) > wanted.at);
    client.request("doc-read", { path: wanted.file }).then((answer) => {
      const line = lineOf(answer.text, wanted.line, text);
      if (line !== null && view.current !== null) markLine(view.current, line);
    }, () => undefined);
  }, [wanted, text]);
  return isNewer;
}

async function removeMethod(browser: Browser, className: string, selector: string, side: Side): Promise<void> {
  if (!(await ask(`Remove ${className}>>${selector}?`, "It goes from the image now and from its file with the next flush.", "Remove"))) return;
  client.request("remove-method", { class: className, selector, side }).then(() => { toast(`${className}>>${selector} removed`); if (isChosen(browser, className, selector)) choose(browser, { selector: null }); changes.value += 1; }, (cause: unknown) => toast(fault(cause).message));
}

/** The code of a finding; pressed it says what it stands for. */
function Code({ code, severity }: { code: string | null; severity: string }): JSX.Element {
  const tone = severity === "error" ? "danger" : severity === "warning" ? "warn" : "info";
  if (code === null) return <span class={`chip ${tone}`}>{severity}</span>;
  return <button class={`chip ${tone}`} title={`beamtalk docs ${code}`} onClick={() => { client.request("docs", { code }).then(({ docs }) => { page.value = { title: code, text: docs, isMarkdown: true }; }, (cause: unknown) => toast(fault(cause).message)); }}>{code}</button>;
}

/** All of them, without what the same text is found to have in another way. */
function joined(own: readonly Diagnostic[], ...others: readonly (readonly Finding[])[]): (Finding | Diagnostic)[] {
  const all: (Finding | Diagnostic)[] = [...own];
  for (const one of others.flat()) if (!all.some((two) => two.message === one.message)) all.push(one);
  return all;
}

function Findings({ list, code, onFix }: { list: readonly (Finding | Diagnostic)[]; code: string; onFix: (found: Diagnostic) => void }): JSX.Element | null {
  if (list.length === 0) return null;
  return (
    <div class="findings" role="list" aria-label="Findings">
      {list.slice(0, 200).map((found, at) => (
        <div key={at} role="listitem">
          <Code code={found.code} severity={found.severity} />
          {"owner" in found ? <button class="link code" onClick={() => go("class", found.owner)}>{visible(found.owner)}</button> : null}
          {found.line === null ? null : <span class="muted number">line {found.line}</span>}
          <span>{visible(found.message)}</span>
          {found.hint === null ? null : <span class="muted">{visible(found.hint)}</span>}
          {"owner" in found || !isOwner.value ? null : <FixButton found={found} code={code} onFix={onFix} />}
        </div>
      ))}
    </div>
  );
}

