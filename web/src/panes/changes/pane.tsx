// Changes: what the image has and the files do not, what conflicts, and writing it to the files.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { offer } from "../../kernel/actions";
import type { PaneProps } from "../../kernel/layout";
import { ask, toast } from "../../kernel/notices";
import { go, note, place } from "../../kernel/routes";
import { client, epoch, fault, isOwner, now, pending, sessionId, waiting } from "../../kernel/store";
import { age, count, match, visible } from "../../kernel/text";
import { Problem } from "../../parts/fault";
import { List } from "../../parts/list";
import { Act } from "../../parts/act";
import { useAnswer, useKept } from "../../parts/use";
import type { AuthorKind, EntryView, ErrorBody, Finding, FlushAnswer } from "../../wire/protocol";
import { Diff, DiffForm } from "./diff";
import { authorOf, byFile, nameOf, sections } from "./model";
import { ThreeWay } from "./three";

/** A section, a file in it, or a change of that file. */
type Row = { title: string } | { file: string; of: string } | { entry: EntryView };
const keyOf = (row: Row): string => ("entry" in row ? String(row.entry.seq) : "file" in row ? `${row.of} ${row.file}` : row.title);

function told(answer: FlushAnswer): string {
  const files = answer.files.length;
  if (answer.flushed === 0 && files === 0) return "nothing was flushed";
  return answer.flushed === 0 ? `flushed ${count(files, "file")}` : `flushed ${count(answer.flushed, "method")} across ${count(files, "file")}`;
}

/** How much the checks found because of a change. */
function findingsOf(entry: EntryView, findings: readonly Finding[]): number {
  return entry.active ? findings.filter((one) => "changed_class" in one && one.changed_class === entry.class && (one.selector === null || one.selector === entry.selector)).length : 0;
}

/** The number of the change that is another than was shown. */
function changedSince(error: ErrorBody): number | null {
  const seq = Number((error.details ?? {}).seq);
  return Number.isNaN(seq) ? null : seq;
}

export default function Changes({ isVisible }: PaneProps): JSX.Element {
  const [turn, setTurn] = useState(0);
  const [selected, select] = useState<number | null>(null);
  const [marked, mark] = useState<ReadonlySet<number>>(new Set());
  const [three, setThree] = useState<string | null>(null);
  const [problem, setProblem] = useState<ErrorBody | null>(null);
  const [isAuto, setAuto] = useState(false);
  const [earlier, setEarlier] = useKept("changes", "earlier", "");
  const [filter, setFilter] = useKept("changes", "filter", "");
  const [missing, setMissing] = useState<number | null>(null);
  const { answer, error, again } = useAnswer(() => client.request("changes", { disk: true, ...(earlier === "" ? {} : { all: true }) }), [turn, earlier], isVisible);
  const findings = useAnswer(() => client.request("reload-findings", {}), [turn], isVisible).answer?.findings ?? [];
  const refresh = (): void => setTurn((old) => old + 1);
  useEffect(() => client.on("changes", refresh), [epoch.value]);
  useEffect(() => client.on("workspace", (event) => { if (["flush_completed", "disk_changed", "node_started"].includes(event.event)) refresh(); }), [epoch.value]);
  useEffect(() => {
    if (answer === null) return;
    setAuto(answer.autoflush === true);
    pending.value = answer.entries.filter((entry) => entry.active).length;
    waiting.value = answer.waiting.length;
  }, [answer]);
  useEffect(() => {
    const seq = Number(place.value?.pane === "changes" ? place.value.parts[1] : Number.NaN);
    if (!Number.isNaN(seq)) select(seq);
    setMissing(Number.isNaN(seq) ? null : seq);
  }, [place.value]);
  const isWanted = (entry: EntryView): boolean => match(filter, `${nameOf(entry)} ${entry.source_file ?? ""} ${entry.author}`) !== null;
  const groups = (answer === null ? [] : sections(answer)).map((group) => ({ ...group, entries: group.entries.filter(isWanted) })).filter((group) => group.entries.length > 0);
  const rows: Row[] = groups.flatMap((group) => [{ title: group.title }, ...byFile(group.entries).flatMap(({ file, entries: of }) => [{ file, of: group.title }, ...of.map((entry) => ({ entry }))])]);
  const entries = rows.flatMap((row) => ("entry" in row ? [row.entry] : []));
  const current = entries.find((entry) => entry.seq === selected) ?? null;
  const conflict = answer?.conflicts.find((one) => current !== null && one.seqs.includes(current.seq)) ?? null;
  const act = (work: Promise<unknown>, done: string): void => {
    work.then(() => { setProblem(null); toast(done); refresh(); }, (cause: unknown) => setProblem(fault(cause)));
  };
  // Only what is shown is written: who changed one meanwhile is not written over.
  const flush = (fields: { seqs?: number[]; confirm_destructive?: boolean; file?: string; class?: string; author_kind?: AuthorKind }): void => {
    const isMeant = (entry: EntryView): boolean => (fields.seqs === undefined || fields.seqs.includes(entry.seq)) && (fields.file === undefined || entry.source_file === fields.file) && (fields.class === undefined || entry.class === fields.class) && (fields.author_kind === undefined || entry.author_kind === fields.author_kind);
    const shown = entries.filter((entry) => entry.active && isMeant(entry) && !entry.shadowed);
    const expect = Object.fromEntries(shown.map((entry) => [String(entry.seq), entry.sha256]));
    client.request("flush", { ...fields, expect }).then((done) => {
      setProblem(null);
      if (done.conflicts.length === 0 || done.files.length > 0) toast(told(done));
      if (done.conflicts.length > 0) setProblem({ kind: "file_changed", message: `${count(done.conflicts.length, "file")} changed in the same place on disk and in the image`, hint: "Select the change and open the three-way view." });
      else if (done.skipped.some((one) => one.reason === "destructive")) void askDestructive(done);
      refresh();
    }, (cause: unknown) => { setProblem(fault(cause)); refresh(); });
  };
  const askDestructive = async (done: FlushAnswer): Promise<void> => {
    const gone = done.skipped.filter((one) => one.reason === "destructive");
    const word = gone[0]?.class ?? "";
    if (await ask("Remove from the files?", `These removals were not flushed: ${gone.map((one) => `${one.class}${one.selector === null ? "" : `>>${one.selector}`}`).join(", ")}.`, "Flush removals", { typed: word })) flush({ confirm_destructive: true });
  };
  const wanted = entries.filter((entry) => marked.has(entry.seq));
  const chosen = wanted.length > 0 ? wanted : current === null ? [] : [current];
  // What a filter hides is not meant.
  const flushAll = (): void => flush(filter === "" ? {} : { seqs: entries.filter((entry) => entry.active).map((entry) => entry.seq) });
  const flushSelected = (): void => { if (chosen.length > 0) flush({ seqs: chosen.map((entry) => entry.seq) }); };
  const markCurrent = (): void => {
    if (current === null) return;
    const next = new Set(marked);
    if (!next.delete(current.seq)) next.add(current.seq);
    mark(next);
  };
  const revert = async (entry: EntryView): Promise<void> => {
    if (await ask(`Revert ${nameOf(entry)}?`, "The image gets the text back that it had before.", "Revert")) act(client.request("revert", { seq: entry.seq }), `${nameOf(entry)} reverted`);
  };
  const pick = (seq: number): void => { select(seq); note("changes", String(seq)); };
  const clear = async (): Promise<void> => {
    const many = count(pending.value, "pending change");
    if (await ask("Forget pending changes?", `${many} will be forgotten: the image keeps its code, the files stay as they are, and nothing of it can be flushed or reverted any more.`, "Forget")) act(client.request("clear-changes", {}), `${many} forgotten`);
  };
  const discard = async (entry: EntryView): Promise<void> => {
    if (await ask(`Discard ${nameOf(entry)}?`, "It is set aside, and what is on disk is loaded for it.", "Discard")) act(client.request("discard", { seq: entry.seq }), `${nameOf(entry)} set aside`);
  };
  const removals = entries.filter((entry) => entry.active && entry.kind === "remove-class");
  const removeFiles = async (): Promise<void> => {
    const files = [...new Set(removals.map((entry) => entry.source_file ?? entry.class))];
    const deeds = [...new Set(removals.map((entry) => (entry.deletes_file === true ? `${entry.source_file ?? entry.class} is deleted` : `${entry.class} is cut out of ${entry.source_file ?? "its file"}`)))];
    if (await ask("Delete source text?", `${deeds.join("; ")}.`, "Flush removals", { typed: files[0] ?? "" })) flush({ confirm_destructive: true });
  };
  const isPerson = entries.some((entry) => entry.active && entry.author_kind !== "agent");
  const isAgent = entries.some((entry) => entry.active && entry.author_kind === "agent");
  const openThree = (): void => { const file = conflict?.file ?? current?.source_file ?? null; if (file !== null) setThree(file); };
  useEffect(() => offer("changes", [
    { title: "Select the change", key: "Space", isChange: true, run: markCurrent },
    { title: "Flush the selection", key: "F", isChange: true, run: flushSelected },
    { title: "Revert", key: "v", isChange: true, run: () => { if (current !== null) void revert(current); } },
    { title: "Three-way view", key: "3", run: openThree },
    { title: "Open in the class browser", run: () => { if (current !== null) go("class", current.side === "class" ? `${current.class}.class` : current.class, current.selector ?? ""); } },
    { title: "Discard", isChange: true, run: () => { if (current !== null) void discard(current); } },
    { title: "Flush all", isChange: true, run: flushAll },
  ]), [current?.seq, answer, marked, filter]);
  if (three !== null) return <ThreeWay file={three} onDone={() => { setThree(null); setProblem(null); refresh(); }} />;
  return (
    <div class="fill">
      <div class="bar">
        <input type="search" aria-label="Filter changes" placeholder="filter" size={10} value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
        <span class="muted">{entries.length === 0 ? "" : count(entries.length, "change")}</span>
        <button class="plain" aria-pressed={earlier !== ""} title="those that are settled too" onClick={() => setEarlier(earlier === "" ? "yes" : "")}>Earlier</button>
        {isOwner.value ? (
          <>
            <label title="write every change to its file at once"><input type="checkbox" checked={isAuto} style={{ minHeight: "auto" }} onChange={(event) => { const on = event.currentTarget.checked; client.request("autoflush", { on }).then((found) => setAuto(found.on), (cause: unknown) => setProblem(fault(cause))); }} /> autoflush</label>
            <span class="right">
              {current === null || !current.active ? null : <><Act onClick={flushSelected}>Flush {chosen.length > 1 ? `${chosen.length} changes` : "this"}</Act> <Act onClick={() => void revert(current)}>Revert…</Act>{" "}</>}
              {isPerson && isAgent ? <><Act title="only what agents changed" onClick={() => flush({ author_kind: "agent" })}>Flush agents'</Act>{" "}</> : null}
              {removals.length === 0 ? null : <><Act title="deletes files" onClick={() => void removeFiles()}>Flush removals…</Act>{" "}</>}
              {pending.value === 0 ? null : <><Act title="forget what is pending" onClick={() => void clear()}>Clear…</Act>{" "}</>}
              <Act kind="primary" disabled={pending.value === 0} onClick={flushAll}>{filter === "" ? "Flush all" : "Flush shown"}</Act>
            </span>
          </>
        ) : null}
      </div>
      {missing !== null && answer !== null && !entries.some((entry) => entry.seq === missing) ? <div class="problem" role="alert">Nothing called '{missing}'.<button class="right" aria-label="Dismiss" onClick={() => setMissing(null)}>✕</button></div> : null}
      <Problem error={problem ?? error} onDismiss={() => { setProblem(null); again(); }} />
      {problem?.kind === "version_conflict" ? <div class="problem"><button class="plain" onClick={() => { setProblem(null); refresh(); const seq = changedSince(problem); if (seq !== null) pick(seq); }}>Show what changed</button></div> : null}
      {entries.filter((entry) => entry.active || entry.state === "waiting").length === 0 && earlier === "" && filter === "" && answer !== null ? (
        <div class="empty">
          <span>{(answer.disk_changed?.length ?? 0) > 0 ? `${count(answer.disk_changed?.length ?? 0, "file")} changed on disk.` : "The image and the files agree."}</span>
        </div>
      ) : (
        <div style={{ height: current === null ? "100%" : `min(45%, calc(var(--row) * ${rows.length} + 2px))`, display: "flex", flexDirection: "column", flex: "none" }}>
          <List label="Changes" items={rows} keyOf={keyOf} selected={selected === null ? null : String(selected)}
            onSelect={(row) => { if ("entry" in row) pick(row.entry.seq); }} onOpen={(row) => { if ("entry" in row) go("class", row.entry.side === "class" ? `${row.entry.class}.class` : row.entry.class, row.entry.selector ?? ""); }}
            row={(row) => ("title" in row ? <strong>{row.title}</strong> : "file" in row ? (
              <><span class="muted code cut">{visible(row.file)}</span>{row.of === "Earlier" || row.of === "From the last run" || row.file === "no file" ? null : <span class="right"><Act kind="link" onClick={() => flush({ file: row.file })}>Flush file</Act></span>}</>
            ) : (
              <>
                {marked.has(row.entry.seq) ? <span class="ok" aria-label="selected">☑</span> : null}
                <span class="code cut inner">{visible(nameOf(row.entry))}</span>
                <span class="chip">{row.entry.kind}</span>
                {row.entry.active ? null : <span class="muted">{row.entry.settled ?? row.entry.state}</span>}
                {findingsOf(row.entry, findings) === 0 ? null : <button class="chip warn" title="what the change breaks" onClick={() => go("class", row.entry.class, row.entry.selector ?? "")}>{count(findingsOf(row.entry, findings), "finding")}</button>}
                {row.entry.intent === "ephemeral" ? <span class="chip info">tried</span> : null}
                <span class={row.entry.author_kind === "agent" ? "chip accent" : "muted cut"}>{visible(authorOf(row.entry, sessionId.value))}</span>
                {row.entry.flushable ? null : <span class="chip warn">{visible(row.entry.not_flushable_reason ?? "not flushable")}</span>}
                <span class="muted number right" title={row.entry.ts}>{age((now.value - Date.parse(row.entry.ts)) / 1000)}</span>
              </>
            ))} />
        </div>
      )}
      {conflict === null ? null : (
        <div class="problem"><span class="chip danger">{conflict.reason}</span> {visible(conflict.file)} {visible(conflict.detail ?? "")}
          {isOwner.value ? <span class="right"><button class="plain" onClick={openThree}>Three-way</button> <button class="plain" onClick={() => act(client.request("take", { from: "image", file: conflict.file }), "the image's text was taken")}>Take image</button> <button class="plain" onClick={() => act(client.request("take", { from: "disk", file: conflict.file }), "the file's text was taken")}>Take disk</button></span> : null}
        </div>
      )}
      {current === null ? null : (
        <div class="bar">
          <button class="plain" onClick={() => go("class", current.side === "class" ? `${current.class}.class` : current.class, current.selector ?? "")}>Open</button>
          {current.active && conflict === null ? <><Act onClick={() => flush({ class: current.class })}>Flush {visible(current.class)}</Act><Act onClick={() => void discard(current)}>Discard…</Act></> : null}
          <span class="right"><DiffForm /></span>
        </div>
      )}
      {current?.state === "waiting" && isOwner.value ? <div class="problem"><span>It waits since an earlier run.</span><span class="right"><button class="plain" onClick={() => act(client.request("restore", { seq: current.seq }), `${nameOf(current)} restored`)}>Restore</button> <button class="plain" onClick={() => act(client.request("discard", { seq: current.seq }), `${nameOf(current)} set aside`)}>Discard</button></span></div> : null}
      {current === null ? null : <Diff seq={current.seq} turn={turn} />}
    </div>
  );
}
