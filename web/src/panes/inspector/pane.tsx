// The Inspector: looking into a value without running anything. Each column is a step further in.

import { signal, type Signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { keyText, offer } from "../../kernel/actions";
import { inspect, inspectedIn, type Subject, type Target } from "../../kernel/inspect";
import type { PaneId, PaneProps } from "../../kernel/layout";
import { toast } from "../../kernel/notices";
import { format, go, note, parse, place } from "../../kernel/routes";
import { remember, states } from "../../kernel/states";
import { client, epoch, fault, images, isOnline, isOwner, status } from "../../kernel/store";
import { bytes, clock, grouped, visible } from "../../kernel/text";
import { Act } from "../../parts/act";
import { Problem } from "../../parts/fault";
import { List } from "../../parts/list";
import { useAnswer, usePulse } from "../../parts/use";
import { View, type Place } from "../../views/view";
import type { ErrorBody, InspectAnswer, InspectedField, Opened, Step } from "../../wire/protocol";
import { Asking } from "./asking";
import { placeOf } from "./place";

/** One Inspector: there may be several. It outlives the pane, so that closing it loses nothing. */
interface Looking {
  pane: PaneId;
  subject: Signal<Subject | null>;
  /** The subject when an address was last followed. */
  entered: Subject | null;
  path: Signal<Step[]>;
  /** Looks again at the last column: something there changed. */
  look: Signal<() => void>;
  /** Chooses a view of the last column. */
  pick: Signal<(at: number) => void>;
}
const all = new Map<PaneId, Looking>();

function lookingIn(pane: PaneId): Looking {
  const known = all.get(pane) ?? { pane, subject: inspectedIn(pane), entered: null, path: signal<Step[]>([]), look: signal<() => void>(() => undefined), pick: signal<(at: number) => void>(() => undefined) };
  all.set(pane, known);
  return known;
}
const WINDOW = 50;

/** Views that are the fields themselves: the column shows them. */
const OWN = ["elements", "entries", "fields", "state"];

export function ask(target: Target, steps: readonly Step[], offset: number, find = ""): Promise<InspectAnswer> {
  return client.request("inspect", { ...placeOf(target, steps), offset, limit: WINDOW, ...(find === "" ? {} : { find }) });
}

/** Go further in or back; the address follows. */
function walk(of: Looking, steps: Step[]): void {
  of.path.value = steps;
  const address = addressOf(of);
  if (address !== null) note(...address);
}

/** The address of what is looked at, if it has one. */
function addressOf({ subject, path }: Looking): string[] | null {
  const target = subject.peek()?.target;
  const words = path.peek().map(String);
  if (target === undefined) return null;
  return "binding" in target ? ["inspect", target.binding, ...words] : "actor" in target ? ["actor", target.actor, ...words] : null;
}

function enter(of: Looking, parts: readonly string[]): void {
  const [kind, name, ...rest] = parts;
  if (name === undefined) return;
  const target: Target = kind === "actor" ? { actor: name } : { binding: name };
  const now = of.subject.peek();
  const isSame = now !== null && JSON.stringify(now.target) === JSON.stringify(target);
  // What is opened once more is looked at once more: a variable may have another value by now. What `inspect` has just
  // told is new already.
  if (!isSame || now === of.entered) of.subject.value = { target, title: isSame ? now.title : name };
  of.entered = of.subject.peek();
  of.path.value = rest.map((step) => (/^\d+$/.test(step) ? Number(step) : step));
}

/** Go where a row of a view leads: further in, or to something else. */
function follow(of: Looking, opened: Opened, from: Place): void {
  const own = ["actor", "binding", "class", "ref"] as const;
  if (own.every((key) => opened[key] === from[key])) walk(of, opened.path);
  else if (opened.actor !== undefined) inspect({ actor: opened.actor }, opened.actor, of.pane);
  else if (opened.class !== undefined) inspect({ class: opened.class }, opened.class, of.pane);
}

interface Rows {
  from: number;
  rows: InspectedField[];
}

/** One value: what it is, and its fields in windows that are asked for as they come into sight. Another value is another
 * column, so that nothing of the one before is shown under its name. */
function Column({ of, turn, target, steps, isLast, isFollowing }: { of: Looking; turn: number; target: Target; steps: readonly Step[]; isLast: boolean; isFollowing: boolean }): JSX.Element {
  const [head, setHead] = useState<InspectAnswer | null>(null);
  const [window, setWindow] = useState<Rows>({ from: 0, rows: [] });
  const [changed, setChanged] = useState<ReadonlySet<string>>(new Set());
  const [error, setError] = useState<ErrorBody | null>(null);
  const [jump, setJump] = useState("");
  const [chosen, setChosen] = useState(0);
  const known = useAnswer(() => client.request("views", { ...placeOf(target, steps) }), [turn]);
  const views = known.answer?.views ?? [];
  const view = views[Math.min(chosen, views.length - 1)];
  const asked = useRef(0);
  const read = (wanted: number, find = ""): void => {
    if (!isOnline.value) return;
    asked.current += 1;
    const mine = asked.current;
    ask(target, steps, wanted, find).then((answer) => {
      // Answers may come in another order than they were asked for: the last question counts.
      if (mine !== asked.current) return;
      if (find !== "" && answer.at === undefined) return setError({ kind: "not_found", message: `there is no '${find}' here` });
      const offset = answer.at ?? wanted;
      // It has become shorter than that.
      if (answer.fields.length === 0 && offset > 0) return read(Math.max(0, answer.total - WINDOW));
      setError(null);
      setHead((old) => {
        if (old !== null && offset === window.from) {
          const before = new Map(window.rows.map((row) => [row.label, row.text]));
          setChanged(new Set(answer.fields.filter((row) => before.has(row.label) && before.get(row.label) !== row.text).map((row) => row.label)));
        }
        return answer;
      });
      setWindow({ from: offset, rows: answer.fields });
    }, (cause: unknown) => { if (mine === asked.current) setError(fault(cause)); });
  };
  // The same once more, or after the line was lost: the same window, and what is shown stays until the answer is there.
  useEffect(() => read(window.from), [epoch.value, turn]);
  // An actor says itself when it changed; everything else is looked at again.
  const isTold = "actor" in target;
  usePulse(() => read(window.from), isFollowing && !isTold, 500);
  useEffect(() => { if (isLast) of.look.value = () => read(window.from); }, [isLast, window.from]);
  useEffect(() => {
    if (!isFollowing || !("actor" in target)) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const end = client.on("object", (event) => { if (event.event !== "changed" || event.data.actor === target.actor) timer ??= setTimeout(() => { timer = undefined; of.look.peek()(); }, 250); }, { actor: target.actor });
    return () => { clearTimeout(timer); end(); };
  }, [isFollowing]);
  const selected = of.path.value[steps.length];
  useEffect(() => { if (isLast) of.pick.value = (at) => { if (at < views.length) setChosen(at); }; }, [isLast, views.length]);
  const choose = (field: InspectedField): void => { if (field.drillable) walk(of, [...steps, field.name]); };
  const isOwn = view === undefined || OWN.includes(view.name) && head?.class !== undefined && !head.class.endsWith(" class");
  const isKeyed = view?.name === "entries" || view?.name === "fields" || view?.name === "state";
  const onOpen = (opened: Opened): void => follow(of, opened, placeOf(target, steps));
  // Its views come with it: what is shown first does not move when they are known.
  if (head === null || (known.answer === null && known.error === null)) return <div class="column-view"><Problem error={error} onDismiss={() => setError(null)} />{error === null ? <div class="empty">…</div> : null}</div>;
  return (
    <div class={`column-view ${isLast ? "last" : ""}`}>
      <div class="bar">
        <span class="chip">{head.class}</span>
        <span class="code cut grow" title={visible(head.text ?? "").slice(0, 500)}>{visible(head.text ?? "").slice(0, 300)}</span>
        {head.total > 8 && isOwn ? (
          <form onSubmit={(event) => { event.preventDefault(); const to = Number(jump.replaceAll(",", "")) - 1; if (to >= 0) read(Math.min(to, Math.max(0, head.total - WINDOW))); else if (jump !== "") read(0, jump); }}>
            <input aria-label={isKeyed ? "Find a key" : "Jump to index"} placeholder={isKeyed ? "key" : `of ${grouped(head.total)}`} size={10} value={jump} onInput={(event) => setJump(event.currentTarget.value)} />
          </form>
        ) : null}
      </div>
      {views.length > 1 ? (
        <div class="bar tabs2" role="tablist" aria-label="Views">
          {views.map((one, at) => <button key={one.name} role="tab" aria-selected={one === view} title={at < 9 ? `key ${at + 1}` : ""} onClick={() => setChosen(at)}>{visible(one.title)}</button>)}
        </div>
      ) : null}
      <Problem error={error} onDismiss={() => setError(null)} />
      {!isOwn && view !== undefined ? <View place={placeOf(target, steps)} name={view.name} isVisible={true} onOpen={onOpen} /> : head.total === 0 ? <pre class="code whole">{visible(head.text ?? "")}</pre> : (
        <>
          {head.order === "unsorted" ? <div class="muted" style={{ padding: "2px 8px" }}>unsorted</div> : null}
          <Windowed onBack={() => walk(of, of.path.value.slice(0, -1))} head={head} window={window} onNeed={read} row={(field) => (
            <>
              <span class={`code name cut ${typeof field.name === "number" ? "index" : ""}`}>{visible(field.label)}</span>
              <span class={`code cut grow ${changed.has(field.label) ? "fresh" : ""}`}>{visible(field.text).slice(0, 300)}</span>
              <span class="chip">{field.class}</span>
              <span class="muted" aria-hidden="true">{field.drillable ? "›" : ""}</span>
            </>
          )} selected={selected} onSelect={choose} label={`Fields of ${head.class}`} />
          <div class="muted count">{amount(head.total, view?.name)}</div>
        </>
      )}
    </div>
  );
}

/** How much there is of what is shown. */
function amount(total: number, name: string | undefined): string {
  const [one, many] = name === "elements" ? ["element", "elements"] : name === "entries" ? ["entry", "entries"] : ["field", "fields"];
  return `${grouped(total)} ${total === 1 ? one : many}`;
}

/** The browser cannot scroll ten million rows of 24 px, so a long list shows a window that the ends move. */
function Windowed(props: { onBack: () => void; head: InspectAnswer; window: Rows; row: (field: InspectedField) => JSX.Element; selected: Step | undefined; onSelect: (field: InspectedField) => void; onNeed: (offset: number) => void; label: string }): JSX.Element {
  const { head, window } = props;
  const end = window.from + window.rows.length;
  const step = (to: number): void => props.onNeed(Math.max(0, Math.min(head.total - WINDOW, to)));
  return (
    <>
      <List
        label={props.label} items={window.rows} keyOf={(field) => String(field.name)} selected={props.selected === undefined ? null : String(props.selected)}
        onSelect={props.onSelect} row={props.row}
        onKey={(event) => {
          if (event.key === "Backspace") props.onBack();
        }}
      />
      {head.total > WINDOW ? (
        <div class="bar pages">
          <button class="plain" disabled={window.from === 0} onClick={() => step(0)}>First</button>
          <button class="plain" disabled={window.from === 0} onClick={() => step(window.from - WINDOW)}>Before</button>
          <span class="muted number" data-window={window.from}>{grouped(window.from + 1)}–{grouped(end)} of {grouped(head.total)}</span>
          <button class="plain" disabled={end >= head.total} onClick={() => step(window.from + WINDOW)}>After</button>
          <button class="plain" disabled={end >= head.total} onClick={() => step(head.total - WINDOW)}>Last</button>
        </div>
      ) : null}
    </>
  );
}

/** How the actor does; once it ended, when and why. */
function ProcessLine({ actor, isVisible }: { actor: string; isVisible: boolean }): JSX.Element | null {
  const { answer, error, again } = useAnswer(() => client.request("pid-stats", { actor }), [actor], isVisible);
  const [end, setEnd] = useState<{ at: number; reason: string | null } | null>(null);
  usePulse(again, isVisible && end === null);
  useEffect(() => setEnd(null), [actor]);
  useEffect(() => client.on("actors", (event) => { if (event.event === "stopped" && event.data.pid === actor) setEnd({ at: Date.now(), reason: event.data.reason }); }), [actor, epoch.value]);
  useEffect(() => { if (error?.kind === "actor_not_alive") setEnd((old) => old ?? { at: Date.now(), reason: null }); }, [error]);
  if (end !== null) return <span class="danger">ended {clock(end.at)}{end.reason === null ? "" : `, reason ${end.reason}`}{isOwner.value ? <> · <button class="link" onClick={() => go("log")}>Log</button></> : null}</span>;
  if (error !== null) return <span class="danger">{visible(error.message)}</span>;
  if (answer === null) return null;
  return <span class="muted number cut" style={{ flex: "1 1 0" }}>{answer.stats.status} · queue {answer.queue_len ?? 0} · {bytes(answer.memory ?? 0)}</span>;
}

/** Give the value a name in this session. */
function Name({ target, steps }: { target: Target; steps: readonly Step[] }): JSX.Element {
  const [name, setName] = useState<string | null>(null);
  const bind = (): void => {
    if (name === null || !/^[a-z_]\w*$/.test(name)) { status.value = "A name begins with a small letter and has only letters, digits and _"; return; }
    // Code with a `self` has variables of its own, and to an actor it is a message.
    const isActor = "actor" in target && steps.length === 0;
    const bound = isActor ? client.request("eval", { code: `${name} := Workspace actorAt: "${target.actor}"` }) : client.request("eval", { code: `Session current bindings at: #${name} put: self`, self: placeOf(target, steps) });
    bound.then(
      () => { toast(`${name} is bound`); setName(null); },
      (cause: unknown) => { status.value = fault(cause).message; },
    );
  };
  if (name === null) return <Act title="bind it to a variable of this session" onClick={() => setName("")}>Name…</Act>;
  return <form onSubmit={(event) => { event.preventDefault(); bind(); }}><input class="code" aria-label="Name of the variable" size={10} value={name} ref={(field) => field?.focus()} onInput={(event) => setName(event.currentTarget.value)} onKeyDown={(event) => { if (event.key === "Escape") { setName(null); event.stopPropagation(); } }} /></form>;
}

export default function Inspector({ pane, isVisible }: PaneProps): JSX.Element {
  const of = lookingIn(pane);
  const { subject: inspected, path, look, pick } = of;
  const [isFollowing, setFollowing] = useState(false);
  const [className, setClassName] = useState<string | null>(null);
  /** The image in which a reference was taken. */
  const [image, setImage] = useState(images.peek());
  useEffect(() => {
    const at = place.value;
    if (at?.pane === pane) enter(of, at.parts);
  }, [place.value]);
  // The first follows the address; another one remembers its place with the layout.
  useEffect(() => {
    const kept = pane === "inspector" || inspected.peek() !== null ? undefined : states.peek()[pane]?.at;
    if (kept !== undefined) enter(of, parse(kept)?.parts ?? []);
  }, []);
  const subject = JSON.stringify(inspected.value?.target ?? null);
  useEffect(() => {
    setFollowing(false);
    setImage(images.peek());
    // A link may name a way further in, and so may what was remembered.
    const [at, address] = [place.peek(), addressOf(of)];
    const isLinked = address !== null && (at?.pane === pane && at.parts[1] === address[1] || pane !== "inspector" && states.peek()[pane]?.at === format(address));
    if (!isLinked) path.value = [];
  }, [subject]);
  useEffect(() => {
    const address = addressOf(of);
    if (pane !== "inspector" && address !== null) remember(pane, "at", format(address));
  }, [inspected.value, path.value]);
  useEffect(() => {
    const target = inspected.value?.target;
    if (target === undefined || !isOnline.value) return;
    client.request("inspect", { ...placeOf(target, path.value), limit: 1 }).then((found) => setClassName(found.class), () => setClassName(null));
  }, [subject, path.value, epoch.value]);
  useEffect(() => offer(pane, [
    { title: "Back", key: "Backspace", run: () => walk(of, path.value.slice(0, -1)) },
    ...[1, 2, 3, 4, 5, 6, 7, 8, 9].map((number) => ({ title: `Choose view ${number}`, key: String(number), run: () => pick.value(number - 1) })),
    { title: "Follow live", key: "l", run: () => setFollowing((old) => !old) },
  ]), []);
  const at = inspected.value;
  const shown = useRef<{ of: Subject | null; turn: number }>({ of: null, turn: 0 });
  if (shown.current.of !== at) shown.current = { of: at, turn: shown.current.turn + 1 };
  if (at === null) return <div class="empty"><span>Select something{isOwner.value ? <> and press <kbd>{keyText("Mod-I")}</kbd></> : null}.</span></div>;
  if ("ref" in at.target && image !== images.value) return <div class="empty"><span>{visible(at.title)} is from an earlier image.</span><span>The image was started again; evaluate again to look into the value.</span></div>;
  const columns = [...Array(path.value.length + 1).keys()].slice(-3);
  return (
    <div class="fill">
      <div class="bar">
        <nav aria-label="Path" class="grow cut">
          <button class="link code" onClick={() => walk(of, [])}>{visible(at.title)}</button>
          {path.value.map((step, index) => <span key={index}> › <button class="link code" onClick={() => walk(of, path.value.slice(0, index + 1))}>{visible(String(step))}</button></span>)}
        </nav>
        {"actor" in at.target ? <ProcessLine actor={at.target.actor} isVisible={isVisible} /> : null}
        <button class="plain" disabled={path.value.length === 0} onClick={() => walk(of, path.value.slice(0, -1))}>Back</button>
        <button class="plain" onClick={() => look.value()}>Refresh</button>
        <button class="plain" aria-pressed={isFollowing} onClick={() => setFollowing(!isFollowing)}>{isFollowing ? "Following" : "Follow"}</button>
        {className === null ? null : <button class="plain" title={`browse ${className}`} onClick={() => go("class", className.endsWith(" class") ? `${className.slice(0, -6)}.class` : className)}>Class</button>}
        {isOwner.value ? <Name key={`${subject} ${JSON.stringify(path.value)}`} target={at.target} steps={path.value} /> : null}
      </div>
      {isOwner.value ? <Asking key={JSON.stringify([at.target, path.value])} target={at.target} steps={path.value} /> : null}
      <div class="columns">
        {columns.map((depth) => <Column turn={shown.current.turn} key={JSON.stringify([at.target, path.value.slice(0, depth)])} of={of} target={at.target} steps={path.value.slice(0, depth)} isLast={depth === path.value.length} isFollowing={isFollowing && isVisible && depth === path.value.length} />)}
      </div>
    </div>
  );
}
