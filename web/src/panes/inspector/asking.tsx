// Code with the inspected value as `self`; to an actor it is one message.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Target } from "../../kernel/inspect";
import { inspect } from "../../kernel/inspect";
import { client, fault, isFrozen } from "../../kernel/store";
import { visible } from "../../kernel/text";
import type { Step } from "../../wire/protocol";
import { placeOf } from "./place";

export function Asking({ target, steps }: { target: Target; steps: readonly Step[] }): JSX.Element {
  const [code, setCode] = useState("");
  const [said, setSaid] = useState<{ text: string; isError: boolean; ref: string | null } | null>(null);
  const isActor = "actor" in target && steps.length === 0;
  const send = (what = code): void => {
    if (what.trim() === "") return;
    client.request("eval", { code: what, hold: true, self: placeOf(target, steps) }).then(
      (answer) => setSaid({ text: answer.text, isError: false, ref: answer.ref ?? null }),
      (cause: unknown) => setSaid({ text: fault(cause).message, isError: true, ref: null }),
    );
  };
  return (
    <form class="bar asking" onSubmit={(event) => { event.preventDefault(); send(); }}>
      <input class="code grow" aria-label={isActor ? "Message to the actor" : "Code with self"} placeholder={isActor ? "a message, as in: toggle" : "code with self, as in: self printString"} value={code} onInput={(event) => setCode(event.currentTarget.value)} />
      <button class="plain" type="submit" disabled={isFrozen.value}>{isActor ? "Send" : "Print"}</button>
      <button class="plain" type="button" disabled={isFrozen.value} title="runs printString" onClick={() => send(isActor ? "printString" : "self printString")}>▷ Print</button>
      {said === null ? null : <output class={`code cut ${said.isError ? "danger" : ""}`} title={visible(said.text).slice(0, 500)}>{visible(said.text).slice(0, 300)}</output>}
      {said?.ref == null ? null : <button class="link" type="button" onClick={() => inspect({ ref: said.ref ?? "" }, said.text.slice(0, 40))}>Inspect</button>}
    </form>
  );
}
