// The class browser: packages, classes, methods, source; saving changes the image at once.

import { signal } from "@preact/signals";
import { setDiagnostics } from "@codemirror/lint";
import type { EditorView } from "@codemirror/view";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { markLine, shown, surface } from "../../editor/surface";
import { offer } from "../../kernel/actions";
import type { PaneProps } from "../../kernel/layout";
import { ask, page, toast } from "../../kernel/notices";
import { go, marked, note, place, readFilePlace } from "../../kernel/routes";
import { client, epoch, fault, isOwner, workspaceName } from "../../kernel/store";
import { count, sha256, visible } from "../../kernel/text";
import { Problem } from "../../parts/fault";
import { List } from "../../parts/list";
import { useAnswer } from "../../parts/use";
import type { Diagnostic, ErrorBody, Finding, Side, Site } from "../../wire/protocol";
import { File } from "./file";
import { filtered, fullSource, isOwn, lineOf, marksOf, nearest, selectorOf, siteText, tree } from "./model";

interface Chosen {
  className: string | null;
  side: Side;
  selector: string | null;
}
const chosen = signal<Chosen>({ className: null, side: "instance", selector: null });
type Tab = "source" | "definition" | "comment" | "senders" | "implementors" | "file";
const tab = signal<Tab>("source");
/** Counts up when classes changed. */
const changes = signal(0);
/** When classes were last changed. */
const changedAt = new Map<string, number>();
const dirty = signal<Record<string, string[] | undefined>>({});
let isListening = false;
let recheck: ReturnType<typeof setTimeout> | undefined;

function listen(): void {
  if (isListening) return;
  isListening = true;
  client.on("classes", (event) => {
    changes.value += 1;
    if ("data" in event && "class" in event.data) changedAt.set(String(event.data.class), Date.now());
    // What was found may be no more; only a check of everything says so.
    clearTimeout(recheck);
    if (found.value.length > 0) recheck = setTimeout(() => void client.request("recheck-image", {}).then((now) => { found.value = now.findings; }, () => undefined), 300);
  });
  client.on("reload_check", (event) => {
    if (event.event !== "completed") return;
    const { checked_owners, findings } = event.data;
    found.value = [...found.value.filter((one) => !checked_owners.includes(ownerOf(one))), ...findings];
  });
}

/** What the last checks found, for all classes. */
const found = signal<readonly Finding[]>([]);

function ownerOf(finding: Finding): string {
  return "owner" in finding ? finding.owner : "";
}

function choose(next: Partial<Chosen>): void {
  chosen.value = { ...chosen.value, ...next };
  const { className, side, selector } = chosen.value;
  if (className !== null) note("class", side === "class" ? `${className}.class` : className, ...(selector === null ? [] : [selector]));
}

/** What methods are under that nobody put anywhere. */
const UNSORTED = "as yet unclassified";
const NEW_METHOD = "newMethod =>\n  nil\n";

/** The text of a method in an editor; saving installs it. */
function Source({ className, side, selector, onSaved }: { className: string; side: Side; selector: string | null; onSaved: (selector: string) => void }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const base = useRef<string | null>(null);
  const [isChanged, setChanged] = useState(false);
  const [error, setError] = useState<ErrorBody | null>(null);
  const [findings, setFindings] = useState<Finding[]>([]);
  const [text, setText] = useState("");
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
        setError(refused);
        const editor = view.current;
        if (editor === null || refused.diagnostics === undefined) return;
        const marks = shown(refused.diagnostics, source);
        editor.dispatch(setDiagnostics(editor.state, marks));
        if (marks[0] !== undefined) editor.dispatch({ selection: { anchor: marks[0].from }, scrollIntoView: true });
        editor.focus();
      }
    })();
  };
  const format = (): void => {
    const editor = view.current;
    if (editor === null) return;
    client.request("format", { code: editor.state.doc.toString() }).then(
      ({ text }) => editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: text } }),
      (cause: unknown) => setError(fault(cause)),
    );
  };

  useEffect(() => {
    let isOver = false;
    setError(null);
    setFindings([]);
    const make = (text: string, isReadOnly: boolean): void => {
      if (isOver || box.current === null) return;
      base.current = isNew ? null : text;
      view.current?.destroy();
      view.current = surface({
        parent: box.current, text, label: `Source of ${className}>>${selector ?? ""}`, isReadOnly, mode: () => null,
        onChange: (next) => setChanged(next !== base.current),
        onSave: () => { if (isOwner.value) save("save-method"); },
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
  }, [className, side, selector]);
  const here = found.value.filter((one) => ownerOf(one) === className);
  // Where this method sends what was found to be missing.
  useEffect(() => {
    const editor = view.current;
    if (editor === null) return;
    const text = editor.state.doc.toString();
    editor.dispatch(setDiagnostics(editor.state, marksOf(here, text)));
  }, [found.value, text]);
  // Whoever was sent to a line sees it marked.
  const isNewer = useSentTo(view, text, className);
  // Somebody else changed the method while it is shown: the text follows unless it is being edited.
  useEffect(() => {
    if (selector === null || isNew || isChanged) return;
    client.request("browse-method-source", { class: className, selector, side }).then((answer) => {
      const editor = view.current;
      if (editor === null || answer.source === null) return;
      const text = fullSource(answer.doc, answer.source);
      if (text === editor.state.doc.toString()) return;
      base.current = text;
      editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: text } });
    }, () => undefined);
  }, [changes.value, epoch.value]);

  if (selector === null) return <div class="empty"><span>Choose a method{isOwner.value ? <>, or <button class="link" onClick={() => choose({ selector: "" })}>write a new one</button></> : null}.</span></div>;
  const isUnflushed = (dirty.value[className] ?? []).includes(selector);
  return (
    <div class="below">
      <div class="bar">
        <span class="code cut">{visible(className)}{side === "class" ? " class" : ""}&gt;&gt;{visible(isNew ? "…" : selector)}</span>
        {isUnflushed ? <button class="chip warn" onClick={() => go("changes")}>unflushed</button> : null}
        {about === null || about.origin === "both" ? null : <span class="chip">{about.origin}</span>}
        {isChanged ? <span class="muted">edited</span> : null}
        {isOwner.value && about?.isMissing !== true ? (
          <span class="right">
            <button class="primary" disabled={!isChanged} onClick={() => save("save-method")}>Save</button>{" "}
            <button class="plain" disabled={!isChanged} onClick={() => save("try-method")} title="install it without ever writing it to the file">Try</button>{" "}
            <button class="plain" onClick={format}>Format</button>{" "}
            {isNew ? null : <button class="plain" onClick={() => void removeMethod(className, selector, side)}>Remove…</button>}
          </span>
        ) : null}
      </div>
      <Problem error={error} onDismiss={() => setError(null)} />
      {error?.kind === "version_conflict" ? <div class="problem"><button class="plain" onClick={() => save("save-method", true)}>Save mine anyway</button></div> : null}
      {isNewer ? <div class="problem" role="status">the code shown is newer than the error</div> : null}
      {about?.isMissing === true ? <div class="empty">The source of this method is not known.</div> : null}
      <div class="surface" ref={box} />
      <Findings list={[...findings, ...here.filter((one) => !findings.some((two) => two.message === one.message))]} />
    </div>
  );
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

async function removeMethod(className: string, selector: string, side: Side): Promise<void> {
  if (!(await ask(`Remove ${className}>>${selector}?`, "It goes from the image now and from its file with the next flush.", "Remove"))) return;
  client.request("remove-method", { class: className, selector, side }).then(() => { toast(`${className}>>${selector} removed`); choose({ selector: null }); changes.value += 1; }, (cause: unknown) => toast(fault(cause).message));
}

/** The code of a finding; pressed it says what it stands for. */
function Code({ code, severity }: { code: string | null; severity: string }): JSX.Element {
  const tone = severity === "error" ? "danger" : "warn";
  if (code === null) return <span class={`chip ${tone}`}>{severity}</span>;
  return <button class={`chip ${tone}`} title={`beamtalk docs ${code}`} onClick={() => { client.request("docs", { code }).then(({ docs }) => { page.value = { title: code, text: docs }; }, (cause: unknown) => toast(fault(cause).message)); }}>{code}</button>;
}

function Findings({ list }: { list: readonly (Finding | Diagnostic)[] }): JSX.Element | null {
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
        </div>
      ))}
    </div>
  );
}

function Definition({ className, isVisible }: { className: string; isVisible: boolean }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const { answer, error, again } = useAnswer(() => client.request("browse-class-definition", { class: className }), [className, changes.value], isVisible);
  useEffect(() => {
    if (box.current === null || answer === null) return;
    const view = surface({ parent: box.current, text: answer.definition, label: `Definition of ${className}`, isReadOnly: true });
    return () => view.destroy();
  }, [answer?.definition]);
  return <div class="below"><Problem error={error} onDismiss={again} /><div class="surface" ref={box} /></div>;
}

function Comment({ className, isVisible }: { className: string; isVisible: boolean }): JSX.Element {
  const { answer, error, again } = useAnswer(() => client.request("docs", { class: className }), [className, changes.value], isVisible);
  return <div class="below"><Problem error={error} onDismiss={again} /><pre class="code scroll" style={{ padding: "8px 12px", whiteSpace: "pre-wrap" }}>{visible(answer?.docs ?? "")}</pre></div>;
}

export function Sites({ kind, name, isVisible }: { kind: "senders" | "implementors" | "references"; name: string; isVisible: boolean }): JSX.Element {
  const [selected, select] = useState<string | null>(null);
  const question = kind === "references" ? { kind, class: name } : { kind, selector: name };
  const { answer, error, again } = useAnswer(() => client.request("nav-query", question), [kind, name, changes.value], isVisible);
  const open = (site: Site): void => go("class", site.class_side ? `${site.class}.class` : site.class, ...(site.method === null ? [] : [site.method]));
  const keyOf = (site: Site, at: number): string => `${siteText(site)}-${site.line ?? ""}-${at}`;
  return (
    <div class="below">
      <Problem error={error} onDismiss={again} />
      {answer !== null && answer.sites.length === 0 ? <div class="empty">No {kind} of {visible(name)}.</div> : (
        <List label={`${kind} of ${name}`} items={answer?.sites ?? []} keyOf={keyOf} selected={selected} onSelect={(site, at) => select(keyOf(site, at))} onOpen={open} row={(site) => (
          <><span class="code cut">{visible(siteText(site))}</span><span class="muted right cut">{visible(site.source_file ?? "")}{site.line === null ? "" : `:${site.line}`}</span></>
        )} />
      )}
    </div>
  );
}

export default function Classes({ isVisible }: PaneProps): JSX.Element {
  const [filter, setFilter] = useState("");
  const [scope, setScope] = useState<"own" | "all">("own");
  const [form, setForm] = useState<"list" | "tree">("list");
  const [missing, setMissing] = useState<string | null>(null);
  const [query, setQuery] = useState<{ kind: "senders" | "implementors" | "references"; name: string } | null>(null);
  const [file, setFile] = useState<{ path: string; line: number | null } | null>(null);
  listen();
  const { answer, error, again } = useAnswer(() => client.request("browse-classes", {}), [changes.value], isVisible);
  const all = answer?.rows ?? [];
  const rows = useMemo(() => filtered(all, filter, scope === "own" ? workspaceName.value : null), [all, filter, scope, workspaceName.value]);
  const list = useMemo(() => (form === "tree" ? tree(rows) : rows.map((row) => ({ row, level: 0 }))), [rows, form]);
  const { className, side, selector } = chosen.value;
  const protocols = useAnswer(() => (className === null ? null : client.request("browse-protocols", { class: className, side })), [className, side, changes.value], isVisible);
  useEffect(() => { client.request("reload-findings", {}).then((last) => { found.value = last.findings; }, () => undefined); }, [epoch.value]);
  useEffect(() => {
    if (isVisible) client.request("dirty", {}).then((found) => { dirty.value = found.dirty; }, () => undefined);
  }, [changes.value, epoch.value, isVisible]);
  useEffect(() => {
    const at = place.value;
    if (at?.pane !== "classes" || answer === null) return;
    const [kind, name = "", method] = at.parts;
    setFile(kind === "file" ? readFilePlace(at.parts.slice(1)) : null);
    if (kind === "file") return;
    if (kind === "senders" || kind === "implementors" || kind === "references") return setQuery({ kind, name });
    setQuery(null);
    if (name === "") return;
    const isMeta = name.endsWith(".class");
    const plain = isMeta ? name.slice(0, -".class".length) : name;
    const row = all.find((one) => one.name === plain);
    setMissing(row === undefined ? plain : null);
    if (row === undefined) return;
    if (!isOwn(row, workspaceName.value)) setScope("all");
    tab.value = "source";
    chosen.value = { className: plain, side: isMeta ? "class" : "instance", selector: method ?? null };
  }, [place.value, answer]);
  const newClass = (): void => { void makeClass(all.map((row) => row.name)); };
  useEffect(() => offer("classes", [
    { title: "New class", key: "N", isChange: true, run: newClass },
    { title: "New method", key: "n", isChange: true, run: () => choose({ selector: "" }) },
  ].filter((action) => isOwner.value || !action.isChange)), [all.length]);
  const selectors = (protocols.answer?.protocols ?? []).flatMap((protocol) => protocol.selectors.map((one) => ({ ...one, protocol: protocol.name })));
  const sourceFile = all.find((row) => row.name === className)?.source_file ?? null;
  const guess = missing === null ? null : nearest(missing, all);
  return (
    <div class="fill browser">
      <div class="bar">
        <input type="search" aria-label="Filter classes" placeholder="filter classes" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
        <span class="sides"><button aria-pressed={scope === "own"} onClick={() => setScope("own")}>Project</button><button aria-pressed={scope === "all"} onClick={() => setScope("all")}>All</button></span>
        <span class="sides"><button aria-pressed={form === "list"} onClick={() => setForm("list")}>List</button><button aria-pressed={form === "tree"} onClick={() => setForm("tree")}>Tree</button></span>
        <span class="muted">{count(rows.length, "class").replace("classs", "classes")}</span>
        {isOwner.value ? <button class="plain right" onClick={newClass}>New class…</button> : null}
      </div>
      <Problem error={error} onDismiss={again} />
      {missing === null ? null : <div class="problem" role="alert">Nothing called '{visible(missing)}'. {guess === null ? null : <button class="link" onClick={() => go("class", guess)}>Did you mean {guess}?</button>}<button class="right" aria-label="Dismiss" onClick={() => setMissing(null)}>✕</button></div>}
      {answer !== null && rows.length === 0 && filter === "" ? <div class="empty"><span>No classes of yours yet.</span>{isOwner.value ? <button class="plain" onClick={newClass}>New class…</button> : null}</div> : (
        <div class="lists">
          <div>
            <List label="Classes" role={form === "tree" ? "tree" : "listbox"} items={list} keyOf={({ row }) => row.name} selected={className} {...(form === "tree" ? { level: (one: { level: number }) => ({ level: one.level }) } : {})}
              onSelect={({ row }) => { setQuery(null); setFile(null); choose({ className: row.name, selector: null }); }} row={({ row }) => (
                <><span class="code cut">{visible(row.name)}</span>{row.is_test ? <span class="chip">test</span> : null}{(dirty.value[row.name]?.length ?? 0) > 0 ? <span class="chip warn">unflushed</span> : null}<span class="muted right cut">{visible(row.superclass ?? "")}</span></>
              )} />
          </div>
          <div>
            <div class="bar"><span class="sides"><button aria-pressed={side === "instance"} onClick={() => choose({ side: "instance", selector: null })}>instance</button><button aria-pressed={side === "class"} onClick={() => choose({ side: "class", selector: null })}>class</button></span>{className !== null && isOwner.value ? <button class="right" aria-label="New method" title="New method" onClick={() => choose({ selector: "" })}>+</button> : null}</div>
            <Problem error={protocols.error} onDismiss={protocols.again} />
            {className === null ? <div class="empty">Choose a class.</div> : selectors.length === 0 ? <div class="empty">No methods on this side.</div> : (
              <List label="Methods" items={selectors} keyOf={(one) => one.selector} selected={selector} onSelect={(one) => { setQuery(null); setFile(null); choose({ selector: one.selector }); }} row={(one) => (
                <><span class="code cut">{visible(one.selector)}</span>{(dirty.value[className] ?? []).includes(one.selector) ? <span class="chip warn">unflushed</span> : null}{one.protocol === UNSORTED ? null : <span class="muted right cut">{visible(one.protocol)}</span>}</>
              )} />
            )}
          </div>
        </div>
      )}
      {file !== null ? (
        <>
          <div class="bar"><h3>file</h3><button class="right" aria-label="Close" onClick={() => setFile(null)}>✕</button></div>
          <File key={file.path} path={file.path} line={file.line} />
        </>
      ) : query !== null ? (
        <>
          <div class="bar"><h3>{query.kind} of <span class="code">{visible(query.name)}</span></h3><button class="right" aria-label="Close" onClick={() => setQuery(null)}>✕</button></div>
          <Sites kind={query.kind} name={query.name} isVisible={isVisible} />
        </>
      ) : className === null ? null : (
        <>
          <div class="bar tabs2" role="tablist" aria-label="Views of the class">
            {(["source", "definition", "comment", "senders", "implementors", ...(sourceFile === null ? [] : ["file" as const])] as const).map((one) => <button key={one} role="tab" aria-selected={tab.value === one} disabled={selector === null && (one === "senders" || one === "implementors")} onClick={() => { tab.value = one; }}>{one[0]?.toUpperCase()}{one.slice(1)}</button>)}
            {isOwner.value ? <button class="right" onClick={() => go("test", `${className}Test`)}>Tests</button> : null}
          </div>
          {tab.value === "definition" ? <Definition className={className} isVisible={isVisible} />
            : tab.value === "comment" ? <Comment className={className} isVisible={isVisible} />
            : tab.value === "file" && sourceFile !== null ? <File key={sourceFile} path={sourceFile} line={null} />
            : (tab.value === "senders" || tab.value === "implementors") && selector !== null ? <Sites kind={tab.value} name={selector} isVisible={isVisible} />
            : <Source key={`${className} ${side} ${selector ?? ""}`} className={className} side={side} selector={selector} onSaved={(name) => { changes.value += 1; choose({ selector: name }); }} />}
        </>
      )}
    </div>
  );
}

/** A class of a name that is free, in a file named after it. */
async function makeClass(names: string[]): Promise<void> {
  let number = 1;
  while (names.includes(`NewClass${number}`)) number += 1;
  const name = `NewClass${number}`;
  try {
    await client.request("save-class", { source: `Value subclass: ${name}\n\n  hello => "hello"\n`, path: `src/${name}.bt` });
    changes.value += 1;
    toast(`${name} made; its file src/${name}.bt comes with the next flush`);
    go("class", name);
  } catch (cause) {
    toast(fault(cause).message);
  }
}
