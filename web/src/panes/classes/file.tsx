// A whole file in an editor; saving writes it, and a source is loaded too.

import type { EditorView } from "@codemirror/view";
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { markLine, surface } from "../../editor/surface";
import { toast } from "../../kernel/notices";
import { client, epoch, fault } from "../../kernel/store";
import { count, visible } from "../../kernel/text";
import { Problem } from "../../parts/fault";
import type { ErrorBody } from "../../wire/protocol";

interface Read {
  text: string;
  sha256: string;
  isWritable: boolean;
}

export function File({ path, line }: { path: string; line: number | null }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const [read, setRead] = useState<Read | null>(null);
  const [isChanged, setChanged] = useState(false);
  const [error, setError] = useState<ErrorBody | null>(null);
  /** What is on disk now, when that is not what was read. */
  const [disk, setDisk] = useState<{ text: string; sha256: string } | null>(null);
  const current = useRef<Read | null>(null);
  current.current = read;

  const show = (next: Read): void => {
    setDisk(null);
    setError(null);
    setRead(next);
  };
  const save = (over?: string): void => {
    const text = view.current?.state.doc.toString() ?? "";
    const base_sha256 = over ?? current.current?.sha256;
    client.request("doc-write", { path, text, ...(base_sha256 === undefined ? {} : { base_sha256 }) }).then((answer) => {
      setDisk(null);
      setChanged(false);
      current.current = { text, sha256: answer.sha256, isWritable: true };
      setRead(current.current);
      const [first] = answer.errors;
      setError(first === undefined ? null : { kind: first.kind, message: `${path} is written; the image keeps its code: ${first.message}`, ...(first.hint === null ? {} : { hint: first.hint }) });
      toast(`${path} written${answer.classes.length === 0 ? "" : `, ${count(answer.classes.length, "class").replace("classs", "classes")} loaded`}`);
    }, (cause: unknown) => {
      const refused = fault(cause);
      const { text: theirs, sha256 } = (refused.details ?? {}) as { text?: unknown; sha256?: unknown };
      if (refused.kind === "file_changed" && typeof theirs === "string" && typeof sha256 === "string") setDisk({ text: theirs, sha256 });
      else setError(refused);
    });
  };
  const saving = useRef(save);
  saving.current = save;

  useEffect(() => {
    let isOver = false;
    client.request("doc-read", { path }).then(
      (answer) => { if (!isOver && (view.current === null || view.current.state.doc.toString() === current.current?.text)) show({ text: answer.text, sha256: answer.sha256, isWritable: answer.writable }); },
      (cause: unknown) => { if (!isOver) setError(fault(cause)); },
    );
    return () => { isOver = true; };
  }, [path, epoch.value]);
  useEffect(() => {
    if (box.current === null || read === null || view.current?.state.doc.toString() === read.text) return;
    view.current?.destroy();
    view.current = surface({
      parent: box.current, text: read.text, label: `File ${path}`, isReadOnly: !read.isWritable, mode: () => (path.endsWith(".bt") ? "class" : null),
      onChange: (next) => setChanged(next !== current.current?.text),
      onSave: () => { if (current.current?.isWritable === true) saving.current(); },
    });
    setChanged(false);
  }, [read]);
  useEffect(() => () => { view.current?.destroy(); view.current = null; }, []);
  useEffect(() => { if (line !== null && view.current !== null) markLine(view.current, line); }, [line, read?.sha256]);
  return (
    <div class="below">
      <div class="bar">
        <span class="code cut">{visible(path)}</span>
        {read === null || read.isWritable ? null : <span class="chip">read only</span>}
        {isChanged ? <span class="muted">edited</span> : null}
        {read?.isWritable === true ? <button class="primary right" disabled={!isChanged} onClick={() => save()}>Save</button> : null}
      </div>
      <Problem error={error} onDismiss={() => setError(null)} />
      {disk === null ? null : (
        <div class="problem" role="alert">Changed on disk too
          <button class="plain" onClick={() => save(disk.sha256)}>Keep mine</button>
          <button class="plain" onClick={() => show({ ...disk, isWritable: true })}>Take disk</button>
        </div>
      )}
      <div class="surface" ref={box} />
    </div>
  );
}
