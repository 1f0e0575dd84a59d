// Calls of AI clients that wait for a person: what would be done, and a yes to exactly what is shown.

import { effect, signal } from "@preact/signals";
import type { JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { alarm } from "../kernel/notices";
import { settings } from "../kernel/settings";
import { client, epoch, fault, isOwner, now, status, workspaceName } from "../kernel/store";
import { count, visible } from "../kernel/text";
import type { Approval } from "../wire/protocol";

const held = signal<Approval[]>([]);
export const areApprovalsShown = signal(false);

/** Say that calls wait; to somebody who looks elsewhere through the browser, if that was wished. */
function tell(all: readonly Approval[]): void {
  const text = `${count(all.length, "call")} waiting for you`;
  alarm(text);
  if (!settings.peek().notify || !document.hidden || Notification.permission !== "granted") return;
  const last = all.at(-1);
  const note = new Notification(`${workspaceName.peek()}: ${text}`, { body: last === undefined ? "" : visible(`${last.who}: ${last.summary}`).slice(0, 200), tag: "approvals" });
  note.onclick = () => { focus(); areApprovalsShown.value = true; note.close(); };
}

/** Ask which calls wait; an observer is told none. */
export function readApprovals(): void {
  if (!isOwner.peek()) return;
  client.request("approvals", {}).then(
    (answer) => {
      if (answer.approvals.length > held.peek().length) tell(answer.approvals);
      held.value = answer.approvals;
      if (answer.approvals.length === 0) areApprovalsShown.value = false;
    },
    () => undefined,
  );
}

/** From now on what waits is known. */
export function watchApprovals(): void {
  client.on("workspace", (event) => { if (event.event === "approvals_waiting") readApprovals(); });
  effect(() => { if (epoch.value > 0) readApprovals(); });
}

function answer(one: Approval, word: string, text: string): void {
  const said = text === "" ? {} : { text };
  client.request("approval-answer", { for: one.id, answer: word, sha256: one.sha256, ...said }).then(readApprovals, (cause: unknown) => {
    status.value = fault(cause).message;
    readApprovals();
  });
}

/** In the head: how many wait. */
export function Waiting(): JSX.Element | null {
  if (held.value.length === 0) return null;
  return <button class="chip warn" onClick={() => { areApprovalsShown.value = true; }}>{count(held.value.length, "call")} waiting</button>;
}

function One({ one }: { one: Approval }): JSX.Element {
  const [text, setText] = useState("");
  const [isRule, setRule] = useState(false);
  const left = Math.max(0, one.expires - Math.floor(now.value / 1000));
  const isQuestion = one.tool === "ask_person";
  return (
    <section class="held" aria-label={`${visible(one.tool)} of ${visible(one.who)}`}>
      <h3>{visible(one.summary)}</h3>
      <p class="muted">{visible(one.who)} · <span class="code">{visible(one.tool)}</span> · {left} s left</p>
      <pre class="code">{visible(one.text)}</pre>
      {one.effect === undefined ? null : <pre class="code">{visible(one.effect)}</pre>}
      {one.diff === undefined ? null : <pre class="code">{visible(one.diff)}</pre>}
      <p class="muted code cut">sha256 {one.sha256}</p>
      {isRule ? <p>From now on <span class="code">{visible(one.tool)}</span> with exactly these arguments goes on without a question.</p> : null}
      <input aria-label={isQuestion ? "Answer" : "Reason"} placeholder={isQuestion ? "answer" : "reason, for a no"} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      <div class="acts">
        <button class="plain" onClick={() => answer(one, "reject", text)}>Reject</button>
        {isQuestion ? <button class="primary" disabled={text === ""} onClick={() => answer(one, "text", text)}>Answer</button> : null}
        {one.may_be_rule ? <button class="plain" onClick={() => (isRule ? answer(one, "always", "") : setRule(true))}>{isRule ? "Write the rule" : "Approve always"}</button> : null}
        {isQuestion ? null : <button class="primary" onClick={() => answer(one, "approve", "")}>Approve</button>}
      </div>
    </section>
  );
}

/** Everything that waits, each with its answer. */
export function ApprovalsDialog(): JSX.Element | null {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => { if (areApprovalsShown.value) box.current?.focus(); }, [areApprovalsShown.value]);
  if (!areApprovalsShown.value) return null;
  const close = (): void => { areApprovalsShown.value = false; };
  return (
    <div class="veil">
      <div ref={box} class="dialog approvals fade" role="dialog" aria-modal="true" aria-label="Calls that wait" tabIndex={-1} onKeyDown={(event) => { if (event.key === "Escape") { close(); event.stopPropagation(); } }}>
        <h2>Calls that wait for you</h2>
        {held.value.map((one) => <One key={one.id} one={one} />)}
        <div class="acts"><button class="plain" onClick={close}>Close</button></div>
      </div>
    </div>
  );
}
