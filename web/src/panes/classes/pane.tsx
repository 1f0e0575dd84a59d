// The class browser: packages, classes, protocols, methods, source; saving changes the image at once.

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { offer } from "../../kernel/actions";
import type { PaneProps } from "../../kernel/layout";
import { ask, toast } from "../../kernel/notices";
import { go, parse, place, readFilePlace, type Place } from "../../kernel/routes";
import { states } from "../../kernel/states";
import { client, epoch, fault, isOwner, status, testing, workspaceName } from "../../kernel/store";
import { count, visible } from "../../kernel/text";
import { Act } from "../../parts/act";
import { Problem } from "../../parts/fault";
import { List } from "../../parts/list";
import { useAnswer, useKept } from "../../parts/use";
import { File } from "./file";
import { ALL, OWN, filtered, isOwn, nearest, packagesOf, tree } from "./model";
import { Source } from "./source";
import { browserIn, changes, choose, conflicts, dirty, found, isChosen, listen, readDirty, type Browser } from "./state";
import { Comment, Definition, Generated, Sites } from "./tabs";

/** What methods are under that nobody put anywhere. */
const UNSORTED = "as yet unclassified";

export default function Classes({ pane, isVisible }: PaneProps): JSX.Element {
  const browser = browserIn(pane);
  const { chosen, tab, naming } = browser;
  const [filter, setFilter] = useKept(pane, "filter", "");
  const [wanted, setScope] = useKept(pane, "package", OWN);
  const [form, setForm] = useKept(pane, "form", "list");
  const [protocol, setProtocol] = useState("");
  const [isNaming, setNaming] = useState(false);
  const applied = useRef<Place | null>(null);
  const [missing, setMissing] = useState<string | null>(null);
  const [query, setQuery] = useState<{ kind: "senders" | "implementors" | "references"; name: string } | null>(null);
  const [file, setFile] = useState<{ path: string; line: number | null } | null>(null);
  listen();
  const { answer, error, again } = useAnswer(() => client.request("browse-classes", {}), [changes.value], isVisible);
  const all = answer?.rows ?? [];
  const packages = useMemo(() => packagesOf(all, workspaceName.value), [all, workspaceName.value]);
  const scope = packages.some((one) => one.key === wanted) ? wanted : OWN;
  const rows = useMemo(() => filtered(scope === OWN || scope === ALL ? all : all.filter((row) => row.category === scope), filter, scope === OWN ? workspaceName.value : null), [all, filter, scope, workspaceName.value]);
  const list = useMemo(() => (form === "tree" ? tree(rows) : rows.map((row) => ({ row, level: 0 }))), [rows, form]);
  const { className, side, selector } = chosen.value;
  const protocols = useAnswer(() => (className === null ? null : client.request("browse-protocols", { class: className, side })), [className, side, changes.value], isVisible);
  useEffect(() => { client.request("reload-findings", {}).then((last) => { found.value = last.findings; }, () => undefined); }, [epoch.value]);
  useEffect(() => {
    if (isVisible) readDirty();
  }, [changes.value, epoch.value, isVisible]);
  useEffect(() => {
    const at = place.value;
    // Once: what is chosen later by hand is not undone when classes change. A class that was not there may be there now.
    if (at?.pane !== pane || answer === null || (applied.current === at && missing === null)) return;
    applied.current = at;
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
    if (!isOwn(row, workspaceName.value) && scope !== ALL && row.category !== scope) setScope(ALL);
    setProtocol("");
    tab.value = "source";
    const next = { className: plain, side: isMeta ? "class" : "instance", selector: method ?? null } as const;
    if (pane === "classes") chosen.value = next;
    else choose(browser, next);
  }, [place.value, answer]);
  useEffect(() => {
    const kept = pane === "classes" || chosen.peek().className !== null || place.peek()?.pane === pane ? undefined : parse(states.peek()[pane]?.at ?? "")?.parts;
    const [, name, method] = kept ?? [];
    if (name !== undefined) chosen.value = { className: name.replace(/\.class$/, ""), side: name.endsWith(".class") ? "class" : "instance", selector: method ?? null };
  }, []);
  const newClass = (): void => setNaming(true);
  useEffect(() => { naming.value = newClass; }, []);
  useEffect(() => { if (className === null) return offer(pane, [{ title: "New class", key: "N", isChange: true, run: newClass }]); return undefined; }, [className]);
  const groups = protocols.answer?.protocols ?? [];
  const selectors = groups.filter((one) => protocol === "" || one.name === protocol).flatMap((one) => one.selectors.map((method) => ({ ...method, protocol: one.name })));
  const sourceFile = all.find((row) => row.name === className)?.source_file ?? null;
  const guess = missing === null ? null : nearest(missing, all);
  return (
    <div class="fill browser">
      <div class="bar">
        <input type="search" aria-label="Filter classes" placeholder="filter" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
        <select class="only-narrow" aria-label="Package" value={scope} onChange={(event) => setScope(event.currentTarget.value)}>{packages.map((one) => <option key={one.key} value={one.key}>{visible(one.title)}</option>)}</select>
        <span class="sides wide"><button aria-pressed={form === "list"} onClick={() => setForm("list")}>List</button><button aria-pressed={form === "tree"} onClick={() => setForm("tree")}>Tree</button></span>
        <span class="muted">{count(rows.length, "class").replace("classs", "classes")}</span>
        <span class="right"><Act onClick={newClass}>New class…</Act></span>
      </div>
      {isNaming ? <NewClass names={all.map((row) => row.name)} onDone={() => setNaming(false)} /> : null}
      <Problem error={error} onDismiss={again} />
      {missing === null ? null : <div class="problem" role="alert">Nothing called '{visible(missing)}'. {guess === null ? null : <button class="link" onClick={() => go("class", guess)}>Did you mean {guess}?</button>}<button class="right" aria-label="Dismiss" onClick={() => setMissing(null)}>✕</button></div>}
      {answer !== null && rows.length === 0 && filter === "" ? <div class="empty"><span>{scope === OWN ? "No classes of yours yet." : "No classes here."}</span><span><Act onClick={newClass}>New class…</Act>{scope === OWN ? <> <button class="plain" onClick={() => go("file", "beamtalk:tour")}>Open the tour</button> <button class="link" onClick={() => setScope(ALL)}>all {all.length} classes</button></> : null}</span></div> : (
        <div class="lists">
          <div class="packages"><List label="Packages" items={packages} keyOf={(one) => one.key} selected={scope} onSelect={(one) => setScope(one.key)} row={(one) => <><span class="cut">{visible(one.title)}</span><span class="muted right number">{one.count}</span></>} /></div>
          <div>
            <List label="Classes" role={form === "tree" ? "tree" : "listbox"} items={list} keyOf={({ row }) => row.name} selected={className} {...(form === "tree" ? { level: (one: { level: number }) => ({ level: one.level }) } : {})}
              onSelect={({ row }) => { setQuery(null); setFile(null); setProtocol(""); choose(browser, { className: row.name, selector: null }); }} row={({ row }) => (
                <><span class="code cut">{visible(row.name)}</span>{row.origin === "both" || !isOwn(row, workspaceName.value) ? null : <span class="chip">{row.origin}</span>}{conflicts.value.some((one) => one.file === row.source_file) ? <span class="chip danger">conflict</span> : null}{row.is_test ? <span class="chip">test</span> : null}{(dirty.value[row.name]?.length ?? 0) > 0 ? <span class="chip warn">unflushed</span> : null}<span class="muted right cut">{visible(row.superclass ?? "")}</span></>
              )} />
          </div>
          {groups.length > 1 ? <div class="packages"><List label="Protocols" items={[{ name: "" }, ...groups]} keyOf={(one) => one.name} selected={protocol} onSelect={(one) => setProtocol(one.name)} row={(one) => <span class="cut">{one.name === "" ? "all" : visible(one.name)}</span>} /></div> : null}
          <div>
            <div class="bar"><span class="sides"><button aria-pressed={side === "instance"} onClick={() => choose(browser, { side: "instance", selector: null })}>instance</button><button aria-pressed={side === "class"} onClick={() => choose(browser, { side: "class", selector: null })}>class</button></span>{className !== null && isOwner.value ? <button class="right" aria-label="New method" title="New method" onClick={() => choose(browser, { selector: "" })}>+</button> : null}</div>
            <Problem error={protocols.error} onDismiss={protocols.again} />
            {className === null ? <div class="empty">Choose a class.</div> : selectors.length === 0 ? <div class="empty">No methods on this side.</div> : (
              <List label="Methods" items={selectors} keyOf={(one) => one.selector} selected={selector} onSelect={(one) => { setQuery(null); setFile(null); choose(browser, { selector: one.selector }); }} row={(one) => (
                <><span class="code cut">{visible(one.selector)}</span>{/^view[A-Z]/.test(one.selector) ? <span class="chip">▷ view</span> : null}{(dirty.value[className] ?? []).includes(one.selector) ? <span class="chip warn">unflushed</span> : null}{one.protocol === UNSORTED ? null : <span class="muted right cut">{visible(one.protocol)}</span>}</>
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
            {(["source", "definition", "comment", "senders", "implementors", ...(sourceFile === null ? [] : ["file" as const]), "generated"] as const).map((one) => <button key={one} role="tab" aria-selected={tab.value === one} disabled={selector === null && (one === "senders" || one === "implementors")} onClick={() => { tab.value = one; }}>{one[0]?.toUpperCase()}{one.slice(1)}</button>)}
            <span class="right">
              <button title={`actors of ${className}`} onClick={() => go("actors", className)}>Instances</button>
              <Act kind="bare" label="Run tests" title={`run the tests of ${className}`} onClick={() => { testing.value = className; go("test", className); }}>▷ Tests</Act>
            </span>
          </div>
          {tab.value === "definition" ? <Definition className={className} isVisible={isVisible} onRemove={() => void removeClass(className, browser)} />
            : tab.value === "comment" ? <Comment className={className} isVisible={isVisible} />
            : tab.value === "generated" ? <Generated className={className} selector={selector === "" ? null : selector} isVisible={isVisible} />
            : tab.value === "file" && sourceFile !== null ? <File key={sourceFile} path={sourceFile} line={null} />
            : (tab.value === "senders" || tab.value === "implementors") && selector !== null ? <Sites kind={tab.value} name={selector} isVisible={isVisible} />
            : <Source browser={browser} key={`${className} ${side} ${selector ?? ""}`} className={className} side={side} selector={selector} onSaved={(name) => { changes.value += 1; if (isChosen(browser, className, selector)) choose(browser, { selector: name }); }} />}
        </>
      )}
    </div>
  );
}

/** The name of a new class, with the file that is proposed for it. */
function NewClass({ names, onDone }: { names: readonly string[]; onDone: () => void }): JSX.Element {
  const free = useMemo(() => { let number = 1; while (names.includes(`NewClass${number}`)) number += 1; return `NewClass${number}`; }, []);
  const [name, setName] = useState(free);
  const [parent, setParent] = useState("Value");
  const [path, setPath] = useState<string | null>(null);
  const file = path ?? `src/${name}.bt`;
  const make = (): void => {
    client.request("save-class", { source: `${parent} subclass: ${name}\n\n  hello => "hello"\n`, path: file }).then(() => {
      changes.value += 1;
      toast(`${name} made; its file ${file} comes with the next flush`);
      onDone();
      go("class", name);
    }, (cause: unknown) => { status.value = fault(cause).message; });
  };
  return (
    <form class="bar" aria-label="New class" onSubmit={(event) => { event.preventDefault(); make(); }} onKeyDown={(event) => { if (event.key === "Escape") { onDone(); event.stopPropagation(); } }}>
      <label>Name <input class="code" size={16} value={name} ref={(field) => { if (field !== null && document.activeElement !== field && document.activeElement?.closest("form") !== field.form) field.select(); }} onInput={(event) => setName(event.currentTarget.value)} /></label>
      <label>subclass of <input class="code" size={12} value={parent} onInput={(event) => setParent(event.currentTarget.value)} /></label>
      <label>File <input class="code" size={20} value={file} onInput={(event) => setPath(event.currentTarget.value)} /></label>
      <button class="primary" type="submit">Make</button>
      <button class="plain" type="button" onClick={onDone}>Cancel</button>
    </form>
  );
}

/** Its actors stop; who they are is said before. */
async function removeClass(name: string, browser: Browser): Promise<void> {
  const { total, actors } = await client.request("actors", { class: name, limit: 5 }).then((answer) => ({ total: answer.total ?? answer.actors.length, actors: answer.actors }), () => ({ total: 0, actors: [] }));
  const stops = total === 0 ? "No actor of it runs." : `${count(total, "actor")} of it will stop: ${actors.map((one) => one.pid).join(", ")}${total > actors.length ? ", …" : ""}.`;
  if (!(await ask(`Remove ${name}?`, `It goes from the image now and from its file once its removal is flushed. ${stops}`, "Remove"))) return;
  client.request("remove-class", { class: name }).then(() => { toast(`${name} removed`); if (browser.chosen.peek().className === name) choose(browser, { className: null, selector: null }); changes.value += 1; }, (cause: unknown) => { status.value = fault(cause).message; });
}
